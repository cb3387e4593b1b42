#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Stands in for ssh, as mpiexec calls it: [-x] HOST COMMAND... The command runs as on another host of that name, with
# process IDs, shared memory and a boot ID of its own. The network and all other files remain those of this host.
set -e
[ "$1" = -x ] && shift
apart="--uts --mount --pid --fork --kill-child --mount-proc"
[ "$(id -u)" = 0 ] || apart="--user --map-root-user $apart"
# shellcheck disable=SC2016,SC2086
exec unshare $apart bash -ec '
    hostname "$1"
    mount -t tmpfs tmpfs /dev/shm
    cat /proc/sys/kernel/random/uuid > /dev/shm/boot_id
    mount --bind /dev/shm/boot_id /proc/sys/kernel/random/boot_id
    shift
    eval exec "$@"' node "$@"
