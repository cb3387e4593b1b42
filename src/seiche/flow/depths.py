# SPDX-License-Identifier: BSD-3-Clause
"""Populations at interior neighbours of opening sites, for pressures imposed in the plane (theory/flow, eq. 40)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.domain.sites import LINK_VECTORS, IoletPlane, LinkKind, SiteSet
from seiche.domain.world import World, raise_together
from seiche.errors import CaseError
from seiche.flow.layout import Layout, Use
from seiche.flow.region import Region
from seiche.halo.exchange import HaloExchange
from seiche.halo.plan import build_plan
from seiche.kernels.registry import flow as registry
from seiche.machine.in_use import predicted_transport_times

#: Maximum distance of an interior neighbour, in multiples of a lattice vector.
MAX_VECTORS = 4

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
Action = Callable[[], None]


def depths_of(region: Region, rows: Rows, iolet: Rows, planes: Sequence[IoletPlane]) -> Floats:
    """Return the mean distance (m,) of the sites `rows` (m,) from the planes of their iolets, along their cut links.

    `iolet` (m,) are the numbers of the iolets.
    """
    sites, lattice = region.sites, region.velocity_set
    boundary = region.boundary_rows[np.searchsorted(region.boundary_sites, rows)]
    columns = lattice.link_rows
    through = sites.link_kind[boundary][:, columns] > LinkKind.WALL
    normals = np.array([plane.normal for plane in planes])[iolet]
    distances = -normals @ lattice.vectors[1:].T * sites.link_fraction[boundary][:, columns]
    mean = np.where(through, distances, 0.0).sum(axis=1) / np.maximum(through.sum(axis=1), 1)
    return np.asarray(np.maximum(mean, 0.0), np.float64)


def inner_sites(
    sites: SiteSet, coords: npt.NDArray[np.integer[Any]], iolet: Rows, planes: Sequence[IoletPlane]
) -> tuple[Rows, Floats]:
    """Return the interior neighbours (m,) of the sites at `coords` (m, 3) and their additional depths (m,).

    An interior neighbour lies along the lattice vector closest to the normal and is adjacent to no opening. Its number
    is -1 if there is none.
    """
    neighbour, added_depth, find = np.full(len(coords), -1, np.int64), np.ones(len(coords)), sites.finder()
    at_opening = np.zeros(len(sites), bool)
    at_opening[sites.boundary] = (sites.link_iolet >= 0).any(axis=1)
    for number in np.unique(iolet):
        rise = LINK_VECTORS @ np.array(planes[number].normal)
        alignment = rise / np.linalg.norm(LINK_VECTORS, axis=1)
        for vector in np.argsort(-alignment, kind="stable")[: np.count_nonzero(alignment > 0.5)]:
            for multiple in range(1, MAX_VECTORS + 1):
                pending = np.flatnonzero((iolet == number) & (neighbour < 0))
                if not len(pending):
                    break
                inside = find(coords[pending] + multiple * LINK_VECTORS[vector].astype(np.int64))
                suitable = (inside >= 0) & ~at_opening[inside]
                neighbour[pending[suitable]] = inside[suitable]
                added_depth[pending[suitable]] = multiple * rise[vector]
    return neighbour, added_depth


class Depths:
    """Outgoing and incoming populations of interior neighbours before each step, also of those on other ranks.

    Opening site k uses the density excess `values[density[k]]` and, for link j, the pair sum `values[pairs[j]]`.
    `plane_weight[k]` is the weight of the opening plane in the interpolation between it and the interior neighbour.
    Links are ordered by site, then by direction; those of site k begin at `first_link[k]`.
    """

    def __init__(
        self,
        backend: Backend,
        layout: Layout,
        region: Region,
        openings: tuple[Rows, Rows, npt.NDArray[np.uint32]],
        *,
        precision: tuple[Any, Any],
        world: World,
        transport: str,
    ) -> None:
        """Find the interior neighbours of the sites `openings` (row in the region, iolet, link mask; each (m,)).

        Collective.

        Raises CaseError if a site has no interior neighbour.
        """
        self._backend, self._layout, self._region, self._precision = backend, layout, region, precision
        rows, iolet, masks = openings
        planes, Q = region.sites.iolets, region.velocity_set.Q
        site, added_depth = inner_sites(region.sites, region.coords[rows], iolet, planes)
        isolated = np.flatnonzero(site < 0)
        problem = None
        if len(isolated):
            coordinates = region.coords[rows[isolated[0]]].tolist()
            problem = (
                f"iolet {planes[iolet[isolated[0]]].name!r}: no interior site within {MAX_VECTORS} spacings of its "
                f'site at {coordinates}, which scheme = "plane" needs; use scheme = "anti-bounce-back"'
            )
        raise_together(world, problem, CaseError)
        depth = depths_of(region, rows, iolet, planes)
        self.plane_weight: Floats = added_depth / (depth + added_depth)
        flags = (masks[:, None] >> np.arange(1, Q, dtype=np.uint32)) & 1
        site_of_link, direction = np.nonzero(flags)
        self.first_link = np.searchsorted(site_of_link, np.arange(len(rows))).astype(np.int32)
        keys = np.concatenate([site * Q, site[site_of_link] * Q + direction + 1])
        distinct, number = np.unique(keys, return_inverse=True)
        value_index = self._connect(distinct, world, transport)[number]
        self.density, self.pairs = value_index[: len(rows)], value_index[len(rows) :]
        self._arrays: list[Any] = []  # referenced by bound kernels

    def _connect(self, keys: Rows, world: World, transport: str) -> npt.NDArray[np.uint32]:
        """Return the indices in `values` of `keys` (site Q + direction, 0 for the density) and plan their exchange."""
        region, Q = self._region, self._region.velocity_set.Q
        owner = region.owner[keys // Q]
        remote = owner != region.rank
        copies = int(np.count_nonzero(remote))
        records: dict[int, int] = {}

        def locate(requests: Rows) -> Rows:
            record = [records.setdefault(int(row), len(records)) for row in region.rows_of(requests // Q)]
            return np.asarray(copies + np.array(record, np.int64) * Q + requests % Q)

        value_index = np.cumsum(remote) - 1
        value_index[~remote] = locate(keys[~remote])
        peers = np.unique(owner[remote])
        requests = {int(peer): (keys[owner == peer], value_index[owner == peer].astype(np.uint32)) for peer in peers}
        plan = build_plan(world, requests, locate)
        rows, record = (np.array(list(column), np.int64) for column in (records, records.values()))
        edge = self._layout.item[rows] >= self._layout.interior
        order = np.argsort(edge, kind="stable")
        self._rows, self._first, self._interior = rows[order], copies, int(np.count_nonzero(~edge))
        self._record = self._backend.upload(record[order].astype(np.uint32))
        self._layout.reserve(Use.LEAVING, self._rows, np.zeros(len(rows), np.int64))
        self._has_neighbour = {q: region.neighbour(q, self._rows) >= 0 for q in range(1, Q)}
        for q, has_neighbour in self._has_neighbour.items():
            fluid = self._rows[has_neighbour]
            self._layout.reserve(Use.ARRIVING, fluid, np.full(len(fluid), region.velocity_set.opposite[q]))
        self.items = self._backend.upload(self._layout.item[self._rows])
        self.observed: Array = self._backend.zeros(11 * len(rows), self._precision[0])
        self.values: Array = self._backend.zeros(copies + len(records) * Q, self._precision[0])
        self.exchange: HaloExchange | None = None
        if world.allreduce_sum(np.array([len(plan.peers)]))[0]:
            real = self._precision[0]
            self.exchange = HaloExchange(self._backend, world, plan, real, transport, predict=predicted_transport_times)  # type: ignore[arg-type]
            self.exchange.prepare(self.values)
        return value_index.astype(np.uint32)

    def outgoing(self, phase: int) -> Action | None:
        """Return the call that samples the outgoing populations of this rank's sites before all sweeps, or None."""
        columns = [self._layout.leaving_slots(phase, q, self._rows) for q in range(self._layout.velocity_set.Q)]
        return self._sampling(phase, registry.outgoing_depth, columns, self.span(edge=None))

    def incoming(self, phase: int, *, edge: bool) -> Action | None:
        """Return the call that adds the incoming populations after the wall stages, or None.

        With `edge` it covers the sites at rank boundaries, otherwise all other sites.
        """
        layout, lattice = self._layout, self._layout.velocity_set
        columns = [np.zeros(len(self._rows), np.uint32)]
        for q in range(1, lattice.Q):
            slots = layout.leaving_slots(phase, q, self._rows)  # at a wall, the returning population
            fluid = self._has_neighbour[q]
            slots[fluid] = layout.arriving_slots(phase, int(lattice.opposite[q]), self._rows[fluid])
            columns.append(slots)
        return self._sampling(phase, registry.incoming_depth, columns, self.span(edge=edge), observed=self.observed)

    def span(self, *, edge: bool | None) -> tuple[int, int]:
        """Return the range of the sites at rank boundaries (`edge` True), of the others (False) or of all (None)."""
        return (self._interior if edge else 0, self._interior if edge is False else len(self._rows))

    def _sampling(
        self,
        phase: int,
        family: Callable[..., Any],
        columns: Sequence[npt.NDArray[Any]],
        span: tuple[int, int],
        **further: Any,
    ) -> Action | None:
        begin, end = span
        if begin == end:
            return None
        kernel = self._backend.load(family(*self._precision, velocity_set=self._layout.velocity_set.name))
        self._arrays.append(self._backend.upload(np.stack(columns)))
        values = self._backend.pointer(self.values) + self._first * np.dtype(self._precision[0]).itemsize
        members = {"slots": self._arrays[-1], "row": self._record, "values": values, "stride": len(self._rows)}
        arguments = self._backend.pack(kernel, f=self._layout.boundary(phase), **members, **further)
        return kernel.bind(arguments, begin, end)
