# SPDX-License-Identifier: BSD-3-Clause
"""Plans of all ranks of a flow case, from counts of tiles and messages of the whole vessel (decision 44).

The ranks at openings are constructed from the sites near the openings, and one rank represents all others; sweeps,
halo and memory follow from the counts of each rank. The result is that of constructing every rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from seiche.backend.base import Kernel
from seiche.backend.planned import PlannedBackend
from seiche.case.flow.run import solver_options
from seiche.case.flow.setup import FlowSetup
from seiche.domain.emulation import emulate_ranks
from seiche.domain.partition import owners_of
from seiche.domain.world import World
from seiche.flow.choice import LayoutName, choose_layout, tile_edge
from seiche.flow.model import WindkesselIolet
from seiche.flow.observation import buffer_bytes
from seiche.flow.opening_ranks import OpeningSites, OpeningSolver, OpeningTiles
from seiche.flow.physics import check_model
from seiche.flow.region import check_parts
from seiche.flow.steps import swept_bytes
from seiche.flow.tile_counts import SiteTiles, TileCounts, tile_counts
from seiche.flow.velocity_set import VELOCITY_SETS
from seiche.halo.exchange import exchange_memory
from seiche.halo.launches import Action, packed_bytes
from seiche.observe.plan import PlannedExchange, PlannedRank, PlannedStage, planned_rank


def chosen_layout(setup: FlowSetup, device: str) -> LayoutName:
    """Return the layout of the populations on a device."""
    lattice, layout = VELOCITY_SETS[setup.model.velocity_set], setup.case.lattice.layout
    return choose_layout(
        setup.vessel.sites, layout, setup.precision.storage, device, lattice, model=setup.model, immersed=setup.immersed
    )


def can_count(setup: FlowSetup, layout: LayoutName) -> bool:
    """Return whether ranks can be counted: tiles of populations, half-way walls at rest, and no host work."""
    model, walls = setup.model, setup.model.walls
    return (
        layout in ("tiles-4", "tiles-8")
        and model.velocity_set == "D3Q19"
        and walls.kind == "bounce-back"
        and not (walls.moving or walls.bodies or setup.immersed)
        and bool(setup.vessel.sites.iolets)
        and not any(isinstance(condition, WindkesselIolet) for condition in model.iolets)
    )


def counted_ranks(setup: FlowSetup, ranks: int, device: str, layout: LayoutName) -> list[PlannedRank]:
    """Return the plans of `ranks` ranks; CaseError as for `FlowSolver`."""
    sites, edge = setup.vessel.sites, tile_edge(layout)
    check_model(sites, setup.model, setup.precision, ranks)
    owner = owners_of(sites, ranks, method=setup.case.run.partition, block=edge)
    check_parts(owner)
    tiles = SiteTiles.of(sites, owner, edge)
    near = OpeningSites.of(sites, tiles, ranks)
    counts = tile_counts(sites, tiles, VELOCITY_SETS[setup.model.velocity_set], ranks)
    options = {**solver_options(setup), "device": device, "layout": layout}

    def work(world: World) -> _Constructed:
        return _Constructed.of(OpeningSolver(near, setup.model, world=world, **options))

    constructed = emulate_ranks(len(near.ranks) + near.others, work)
    index = np.full(ranks, len(near.ranks), np.int64)
    index[near.ranks] = np.arange(len(near.ranks))
    return [constructed[index[rank]].completed(own, near.ranks) for rank, own in enumerate(counts)]


@dataclass(frozen=True)
class _Constructed:
    """A rank that was constructed from the sites near openings.

    Attributes:
        plan: its plan.
        backend: its device.
        sweeps: kernel of the sweep in each kind of step.
        layout: its layout.
        rate_bytes: size of the relaxation rate of a lattice point.
        real: precision of the arithmetic.
    """

    plan: PlannedRank
    backend: PlannedBackend
    sweeps: Sequence[Kernel]
    layout: OpeningTiles
    rate_bytes: int
    real: str

    @staticmethod
    def of(solver: OpeningSolver) -> _Constructed:
        """Return the rank of a solver, whose stages are counted (collective)."""
        backend, layout = solver.backend, solver.populations
        assert isinstance(backend, PlannedBackend) and isinstance(layout, OpeningTiles)
        plan = planned_rank(backend, [(1.0, stages) for stages in solver.phases], 0)
        sweeps = [solver.sweep_kernel(phase) for phase in range(layout.phases)]
        return _Constructed(plan, backend, sweeps, layout, solver.rate_bytes, solver.precision.compute)

    def completed(self, counts: TileCounts, ranks: npt.NDArray[np.int64]) -> PlannedRank:
        """Return the plan of a rank with `counts`; `ranks` are the numbers of the constructed ranks."""
        steps = tuple(
            (weight, tuple(self._stages(phase, stages, counts, ranks)))
            for phase, (weight, stages) in enumerate(self.plan.steps)
        )
        layout = self.layout
        constructed = TileCounts(layout.own_tiles, 0, 0, layout.walled, len(layout.item), 0, ((0, 1, 1),))
        own = self._memory(counts, counts.tiles + counts.copies, counts.tiles * layout.volume)
        memory = self.plan.memory + own - self._memory(constructed, layout.stored_tiles, layout.items)
        return PlannedRank(steps, memory, counts.sites)

    def _memory(self, counts: TileCounts, stored: int, points: int) -> int:
        """Return the bytes of `stored` tiles, tables, rates of `points` points, messages and observation of a rank."""
        layout = self.layout
        populations = layout.phases * stored * layout.volume * layout.values_per_site * self._value_bytes
        messages = exchange_memory(counts.messages, self._value_bytes)
        tables = layout.table_bytes(counts.tiles, counts.walled)
        return populations + tables + self.rate_bytes * points + messages + buffer_bytes(counts.sites, self.real)

    def _stages(
        self, phase: int, stages: Sequence[PlannedStage], counts: TileCounts, ranks: npt.NDArray[np.int64]
    ) -> Iterator[PlannedStage]:
        """Yield the stages of a step with the sites, tables and messages of `counts`."""
        parts = {
            "stream-collide interior": (counts.interior_sites, counts.interior_tiles),
            "stream-collide edge": (counts.sites - counts.interior_sites, counts.tiles - counts.interior_tiles),
        }
        size, table = self._value_bytes, self.layout.table_bytes(counts.tiles, counts.walled)
        points = counts.tiles * self.layout.volume
        for stage in stages:
            if stage.name in parts:
                sites, tiles = parts[stage.name]
                traffic = swept_bytes(self.sweeps[phase], sites, table / points * (tiles * self.layout.volume))
                if tiles:
                    yield replace(stage, bytes=traffic)
            elif stage.name == "send halo":
                exchange = tuple((peer, size * sent, size * received) for peer, sent, received in counts.messages)
                packed = self._packed("Pack", sum(sent for _, sent, _ in counts.messages))
                yield replace(stage, exchanges=(exchange,), packed=packed)
            elif stage.name == "receive halo":
                yield replace(stage, packed=self._packed("Unpack", sum(into for _, _, into in counts.messages)))
            else:
                yield replace(stage, exchanges=tuple(_renumbered(exchange, ranks) for exchange in stage.exchanges))

    @property
    def _value_bytes(self) -> int:
        return np.dtype(self.layout.store).itemsize

    def _packed(self, action: Action, count: int) -> int:
        return packed_bytes(self.backend, action, self.layout.store, count)  # type: ignore[arg-type]


def _renumbered(exchange: PlannedExchange, ranks: npt.NDArray[np.int64]) -> PlannedExchange:
    return tuple((int(ranks[peer]), sent, received) for peer, sent, received in exchange)
