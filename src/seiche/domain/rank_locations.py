# SPDX-License-Identifier: BSD-3-Clause
"""Host and GPU of each rank, which determine the available transports.

Machines or containers may share a name, and their processes a PID. A host is therefore identified by its name, the boot
ID of its kernel and its PID namespace. For ranks of one host, access to each other's memory is attempted and verified
(`halo/transports/memory.py`).
"""

from __future__ import annotations

import contextlib
import os
import platform
from pathlib import Path
from typing import NamedTuple

from seiche.backend import Backend
from seiche.domain.world import World

_BOOT_ID_FILE = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE_LINK = Path("/proc/self/ns/pid")
#: Separates the name of a host, which cannot contain it, from the rest of its identity.
_SEPARATOR = "@"


class RankLocation(NamedTuple):
    """A rank's host and the PCI address of its GPU; None without a GPU."""

    host: str
    gpu: str | None


def boot_id() -> str:
    """Return the boot ID of the kernel, "" if there is none."""
    try:
        return _BOOT_ID_FILE.read_text().strip()
    except OSError:
        return ""


def pid_namespace() -> str:
    """Return the PID namespace of this process, "" if there is none."""
    with contextlib.suppress(OSError):
        return os.readlink(_PID_NAMESPACE_LINK).strip("pid:[]")
    return ""


def host_identity(name: str) -> str:
    """Return the identity "name@boot ID/PID namespace" of this host, or `name` if the system has neither."""
    suffix = f"{boot_id()}/{pid_namespace()}"
    return name if suffix == "/" else f"{name}{_SEPARATOR}{suffix}"


def host_name(host: str) -> str:
    """Return the name of a host identity."""
    return host.partition(_SEPARATOR)[0]


def on_different_hosts(first: str, second: str) -> str:
    """Return a message that two hosts differ."""
    name = host_name(first)
    return "on different hosts" + (f" or containers called {name}" if name == host_name(second) else "")


def hosts_of(world: World) -> list[str]:
    """Return the host identities of all ranks (collective)."""
    return world.allgather(host_of(world))


def rank_locations(backend: Backend, world: World) -> list[RankLocation]:
    """Return host and GPU of all ranks (collective)."""
    return world.allgather(RankLocation(host_of(world), backend.pci_address))


def host_of(world: World) -> str:
    """Return the identity of the host of this rank."""
    if world.comm is None:
        return host_identity(platform.node())
    from mpi4py import MPI

    return host_identity(str(MPI.Get_processor_name()))
