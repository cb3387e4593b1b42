# SPDX-License-Identifier: BSD-3-Clause
"""Totals of a state and what flows through its openings, brought to the host beside the steps that follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Backend
from seiche.domain.world import World
from seiche.errors import UnstableError
from seiche.flow.iolets import Iolets
from seiche.flow.observation import Observation
from seiche.flow.velocity_set import CS2


@dataclass(frozen=True)
class Monitor:
    """What is watched: total mass (in sites of density 1), greatest Mach number, mass a step into each iolet."""

    step: int
    mass: float
    mach: float
    flow: npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Room:
    """Pinned memory for what one look brings to the host: the words of the sum, and the inflow by group."""

    totals: npt.NDArray[Any]
    inflow: list[npt.NDArray[Any]]


class Watcher:
    """Takes totals and inflow of states of a rank."""

    def __init__(self, backend: Backend, world: World, observation: Observation, iolets: Iolets) -> None:
        """Watch what `observation` sees and the openings `iolets`; memory is got at the first look."""
        self.backend, self.world, self.observation, self.iolets = backend, world, observation, iolets
        self.sites = observation.region.sites
        self._free: list[_Room] = []

    def take(self, phase: int, step: int, *, totals: bool = True) -> Watch:
        """Return the look at the state before a step of this phase; its halo must be current. Waits for nothing.

        Args:
            phase: kind of the step to come.
            step: number of the state.
            totals: False looks at the openings only.
        """
        room = self._free.pop() if self._free else self._room()
        if totals:
            self.observation.start_totals(phase, room.totals)
        for group, host in zip(self.iolets.groups, room.inflow, strict=True):
            self.backend.copy_to_host(group.inflow, host)
        return Watch(self, room, step, self.backend.current().record())

    def give_back(self, room: _Room) -> None:
        """Take the memory of a look that is over."""
        self._free.append(room)

    def _room(self) -> _Room:
        real = self.observation.real
        inflow = [self.backend.pinned(group.inflow.size, real) for group in self.iolets.groups]
        return _Room(self.observation.totals_memory(), inflow)


class Watch:
    """A look at a state that is on its way to the host; `monitor` or `flow` may be called once, on all ranks."""

    def __init__(self, watcher: Watcher, room: _Room, step: int, arrival: Any) -> None:
        """Remember where it arrives, and the event after which it is there."""
        self._watcher, self._room, self.step, self._arrival = watcher, room, step, arrival

    def flow(self) -> npt.NDArray[np.float64]:
        """Return the mass that entered through each iolet in the step before (collective)."""
        room = self._arrived()
        return self._watcher.world.allreduce_sum(self._inflow(room))

    def monitor(self) -> Monitor:
        """Return what the state was like (collective); the mass is the same to the last bit on any number of ranks.

        Raises:
            UnstableError: a population is not finite; on every rank, with the place of the first such site.
        """
        watcher = self._watcher
        room = self._arrived()
        coarse, fine, square, row = watcher.observation.totals_of(room.totals)
        place = [int(x) for x in watcher.observation.region.coords[row]] if row is not None else None
        parts = watcher.world.allgather((coarse, fine, square, place, self._inflow(room)))
        for rank, (*_, worst, _) in enumerate(parts):
            if worst is not None:
                raise UnstableError(f"populations are not finite at site {worst}, rank {rank}, step {self.step}")
        # Whole numbers of 2^-60, exact until the end.
        mass = sum((part[0] << 36) + part[1] for part in parts) + (len(watcher.sites) << 60)
        fastest = max(part[2] for part in parts)
        flow = np.sum([part[4] for part in parts], axis=0)
        return Monitor(self.step, mass / (1 << 60), float(np.sqrt(fastest / CS2)), flow)

    def _arrived(self) -> _Room:
        """Wait for the device; the memory may be filled again once the next look is taken."""
        self._watcher.backend.await_event(self._arrival)
        self._watcher.give_back(self._room)
        return self._room

    def _inflow(self, room: _Room) -> npt.NDArray[np.float64]:
        return self._watcher.iolets.inflow(len(self._watcher.sites.iolets), room.inflow)
