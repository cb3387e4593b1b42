# SPDX-License-Identifier: BSD-3-Clause
"""Which GPU of which host each rank uses: what decides how ranks can reach each other.

Two machines, or two containers, may have one name, and processes of both one number. A host is therefore its name, the
boot of its kernel and its space of process numbers. That ranks are of one host makes it worth trying to reach each
other's memory; whether they do is shown by the memory itself (`halo/transports/memory.py`).
"""

from __future__ import annotations

import contextlib
import os
import platform
from pathlib import Path
from typing import NamedTuple

from seiche.backend import Backend
from seiche.domain.world import World

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PROCESSES = Path("/proc/self/ns/pid")
#: Between the name of a host, which cannot have it, and what tells it from others of that name.
_MARK = "@"


class Seat(NamedTuple):
    """A rank's host and the PCI address of its GPU; None without a GPU."""

    host: str
    gpu: str | None


def boot_id() -> str:
    """Return a number that the kernel draws when it starts, "" where there is none."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""


def process_space() -> str:
    """Return the number of the namespace of this process's number, "" where there is none."""
    with contextlib.suppress(OSError):
        return os.readlink(_PROCESSES).strip("pid:[]")
    return ""


def host_identity(name: str) -> str:
    """Return this host, called `name`, as "name@boot/process space"; the name alone where the system has neither."""
    rest = f"{boot_id()}/{process_space()}"
    return name if rest == "/" else f"{name}{_MARK}{rest}"


def host_name(host: str) -> str:
    """Return the name of a host."""
    return host.partition(_MARK)[0]


def on_different_hosts(first: str, second: str) -> str:
    """Return in words that two hosts are not one."""
    name = host_name(first)
    return "on different hosts" + (f" or containers called {name}" if name == host_name(second) else "")


def hosts_of(world: World) -> list[str]:
    """Return the hosts of all ranks (collective)."""
    return world.allgather(_host(world))


def seats(backend: Backend, world: World) -> list[Seat]:
    """Return the seats of all ranks (collective)."""
    return world.allgather(Seat(_host(world), backend.pci_address))


def _host(world: World) -> str:
    if world.comm is None:
        return host_identity(platform.node())
    from mpi4py import MPI

    return host_identity(str(MPI.Get_processor_name()))
