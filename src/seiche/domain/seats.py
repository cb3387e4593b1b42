# SPDX-License-Identifier: BSD-3-Clause
"""Which GPU of which host each rank uses: what decides how ranks can reach each other."""

from __future__ import annotations

import platform
from typing import NamedTuple

from seiche.backend import Backend
from seiche.domain.world import World


class Seat(NamedTuple):
    """A rank's host and the PCI address of its GPU; None without a GPU."""

    host: str
    gpu: str | None


def host_names(world: World) -> list[str]:
    """Return the hosts of all ranks (collective)."""
    return world.allgather(_host(world))


def seats(backend: Backend, world: World) -> list[Seat]:
    """Return the seats of all ranks (collective)."""
    return world.allgather(Seat(_host(world), backend.pci_address))


def _host(world: World) -> str:
    if world.comm is None:
        return platform.node()
    from mpi4py import MPI

    return str(MPI.Get_processor_name())
