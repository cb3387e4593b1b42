# SPDX-License-Identifier: BSD-3-Clause
"""Monitor of a state: its totals and the flow through its openings, copied to the host during the next steps."""

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
    """Total mass (in sites of density 1), maximum Mach number, and inflow of mass per step through each iolet."""

    step: int
    mass: float
    mach: float
    flow: npt.NDArray[np.float64]


@dataclass(frozen=True)
class _HostBuffers:
    """Pinned memory of one monitor: the words of the totals, and the inflows of each iolet group."""

    totals: npt.NDArray[Any]
    inflow: list[npt.NDArray[Any]]


class MonitorReader:
    """Reader of the totals and inflows of a rank."""

    def __init__(self, backend: Backend, world: World, observation: Observation, iolets: Iolets) -> None:
        self.backend, self.world, self.observation, self.iolets = backend, world, observation, iolets
        self.sites = observation.region.sites
        self._free: list[_HostBuffers] = []

    def take(self, phase: int, step: int, *, totals: bool = True) -> PendingMonitor:
        """Start the reduction of the state after `step` steps, without waiting for it; halos must be current.

        `phase` is that of the next step. Without `totals`, only the flow through the openings is read.
        """
        buffers = self._free.pop() if self._free else self._allocate()
        if totals:
            self.observation.start_totals(phase, buffers.totals)
        for group, host in zip(self.iolets.groups, buffers.inflow, strict=True):
            self.backend.copy_to_host(group.inflow, host)
        return PendingMonitor(self, buffers, step, self.backend.current().record())

    def release(self, buffers: _HostBuffers) -> None:
        """Make the memory of a completed monitor available again."""
        self._free.append(buffers)

    def _allocate(self) -> _HostBuffers:
        real = self.observation.real
        inflow = [self.backend.pinned(group.inflow.size, real) for group in self.iolets.groups]
        return _HostBuffers(self.observation.totals_memory(), inflow)


class PendingMonitor:
    """A monitor in transfer to `buffers`, complete after `event`; call `monitor` or `flow` once, on all ranks."""

    def __init__(self, reader: MonitorReader, buffers: _HostBuffers, step: int, event: Any) -> None:
        self._reader, self._buffers, self.step, self._event = reader, buffers, step, event

    def flow(self) -> npt.NDArray[np.float64]:
        """Return the mass that entered through each iolet in the previous step (collective)."""
        buffers = self._wait()
        return self._reader.world.allreduce_sum(self._inflow(buffers))

    def monitor(self) -> Monitor:
        """Return the monitor (collective); the mass does not depend on the number of ranks.

        If a population is not finite, raises UnstableError on every rank, with the coordinates of the first such site.
        """
        reader = self._reader
        buffers = self._wait()
        coarse, fine, square, row = reader.observation.totals_of(buffers.totals)
        coordinates = (
            [int(x) for x in reader.observation.region.coords_of(np.array([row]))[0]] if row is not None else None
        )
        gathered = reader.world.allgather((coarse, fine, square, coordinates, self._inflow(buffers)))
        for rank, (*_, bad_site, _) in enumerate(gathered):
            if bad_site is not None:
                raise UnstableError(f"populations are not finite at site {bad_site}, rank {rank}, step {self.step}")
        # The sum in integer multiples of 2^-60 is exact.
        mass = sum((values[0] << 36) + values[1] for values in gathered) + (len(reader.sites) << 60)
        max_speed_squared = max(values[2] for values in gathered)
        flow = np.sum([values[4] for values in gathered], axis=0)
        return Monitor(self.step, mass / (1 << 60), float(np.sqrt(max_speed_squared / CS2)), flow)

    def _wait(self) -> _HostBuffers:
        """Wait for the copy and return the buffers, which are valid until the next monitor is taken."""
        self._reader.backend.await_event(self._event)
        self._reader.release(self._buffers)
        return self._buffers

    def _inflow(self, buffers: _HostBuffers) -> npt.NDArray[np.float64]:
        return self._reader.iolets.inflow(len(self._reader.sites.iolets), buffers.inflow)
