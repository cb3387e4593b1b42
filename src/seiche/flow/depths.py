# SPDX-License-Identifier: BSD-3-Clause
"""Populations at interior neighbours of opening sites, for pressures imposed in the plane (theory/flow, eq. 40)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend, Kernel
from seiche.domain.sites import LINK_VECTORS, IoletPlane, LinkKind, SiteSet
from seiche.domain.world import World, raise_together
from seiche.errors import CaseError
from seiche.flow.layout import Layout, Use
from seiche.flow.region import Region, is_among
from seiche.halo.exchange import HaloExchange
from seiche.halo.plan import build_plan
from seiche.kernels.registry import KernelSpec
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
    is_iolet_link = sites.link_kind[boundary][:, columns] > LinkKind.WALL
    normals = np.array([plane.normal for plane in planes])[iolet]
    distances = -normals @ lattice.vectors[1:].T * sites.link_fraction[boundary][:, columns]
    mean = np.where(is_iolet_link, distances, 0.0).sum(axis=1) / np.maximum(is_iolet_link.sum(axis=1), 1)
    return np.asarray(np.maximum(mean, 0.0), np.float64)


def inner_sites(
    sites: SiteSet, coords: npt.NDArray[np.integer[Any]], iolet: Rows, planes: Sequence[IoletPlane]
) -> tuple[Rows, Floats]:
    """Return the interior neighbours (m,) of the sites at `coords` (m, 3) and their additional depths (m,).

    An interior neighbour lies along the lattice vector closest to the normal and is adjacent to no opening. Its number
    is -1 if there is none.
    """
    neighbour, added_depth, find = np.full(len(coords), -1, np.int64), np.ones(len(coords)), sites.finder()
    at_opening = sites.boundary[sites.opening_rows]
    for number in np.unique(iolet):
        rise = LINK_VECTORS @ np.array(planes[number].normal)
        alignment = rise / np.linalg.norm(LINK_VECTORS, axis=1)
        for vector in np.argsort(-alignment, kind="stable")[: np.count_nonzero(alignment > 0.5)]:
            for multiple in range(1, MAX_VECTORS + 1):
                pending = np.flatnonzero((iolet == number) & (neighbour < 0))
                if not len(pending):
                    break
                inside = find(coords[pending] + multiple * LINK_VECTORS[vector].astype(np.int64))
                suitable = (inside >= 0) & ~is_among(inside, at_opening)
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
        site, added_depth = inner_sites(region.sites, region.coords_of(rows), iolet, planes)
        isolated = np.flatnonzero(site < 0)
        problem = None
        if len(isolated):
            coordinates = region.coords_of(rows[isolated[:1]])[0].tolist()
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
        """Return the indices in `values` of `keys` (site Q + direction, 0 for the density) and plan their exchange.

        Copies of values of other ranks come first, then one record per site of this rank: values[direction][record].
        """
        region, Q = self._region, self._region.velocity_set.Q
        owner = region.owner[keys // Q]
        remote = owner != region.rank
        copies = int(np.count_nonzero(remote))
        peers = np.unique(owner[remote])
        slots = np.cumsum(remote) - 1
        requests = {int(peer): (keys[owner == peer], slots[owner == peer].astype(np.uint32)) for peer in peers}
        sites = [keys[~remote] // Q]

        def note_sites(requested: Rows) -> Rows:
            sites.append(requested // Q)
            return np.arange(len(requested))  # slots of this plan are not used

        build_plan(world, requests, note_sites)
        self._choose_records(np.asarray(region.rows_of(np.unique(np.concatenate(sites))), np.int64))
        record_of_row = np.argsort(self._rows)

        def locate(requested: Rows) -> Rows:
            row = region.rows_of(requested // Q)
            record = record_of_row[np.searchsorted(self._rows, row, sorter=record_of_row)]
            return np.asarray(copies + requested % Q * len(self._rows) + record)

        plan = build_plan(world, requests, locate)
        slots[~remote] = locate(keys[~remote])
        self._first = copies
        self.values: Array = self._backend.zeros(copies + len(self._rows) * Q, self._precision[0])
        self.exchange: HaloExchange | None = None
        if world.allreduce_sum(np.array([len(plan.peers)]))[0]:
            real = self._precision[0]
            self.exchange = HaloExchange(self._backend, world, plan, real, transport, predict=predicted_transport_times)  # type: ignore[arg-type]
            self.exchange.prepare(self.values)
        return slots.astype(np.uint32)

    def _choose_records(self, rows: Rows) -> None:
        """Order the sites `rows` of the region (m,), those at rank boundaries last, and reserve their slots."""
        layout, lattice = self._layout, self._region.velocity_set
        item = layout.item[rows]
        edge = item >= layout.interior
        order = np.lexsort((item, edge))
        self._rows, self._interior = rows[order], int(np.count_nonzero(~edge))
        #: Layout items of the sites and the number of those that need no data from other ranks.
        self.observed_sites = (item[order], self._interior)
        layout.reserve(Use.OUTGOING, self._rows, np.zeros(len(rows), np.int64))
        self._has_neighbour = {q: self._region.neighbour(q, self._rows) >= 0 for q in range(1, lattice.Q)}
        for q, has_neighbour in self._has_neighbour.items():
            fluid = self._rows[has_neighbour]
            layout.reserve(Use.INCOMING, fluid, np.full(len(fluid), lattice.opposite[q]))

    def outgoing(self, phase: int, *, walls_return: bool) -> Action | None:
        """Return the call that samples outgoing populations that are overwritten before `incoming`, or None.

        The sweep of the interior overwrites those at rank boundaries; wall stages (`walls_return`) overwrite others.
        """
        records = self._overwritten(walls_return)
        if not len(records):
            return None
        rows = self._rows[records]
        members = {"slots": self._upload(self._outgoing_slots(phase, rows)), "record": self._upload(records)}
        kernel, shared = self._kernel(registry.outgoing_depth, phase)
        arguments = self._backend.pack(kernel, **shared, **members, stride=len(rows))
        return kernel.bind(arguments, 0, len(rows))

    def incoming(self, phase: int, observed: Mapping[str, Any], *, edge: bool, walls_return: bool) -> Action | None:
        """Return the call that samples the sites after the wall stages and `outgoing`, or None.

        With `edge` it covers the sites at rank boundaries, otherwise all other sites. `observed` are the members of
        the observation of the sites.
        """
        begin, end = (self._interior, len(self._rows)) if edge else (0, self._interior)
        if begin == end:
            return None
        layout, lattice = self._layout, self._layout.velocity_set
        columns = [np.zeros(len(self._rows), np.uint32)]
        for q in range(1, lattice.Q):
            slots = layout.outgoing_slots(phase, q, self._rows)  # at a wall, the returning population
            fluid = self._has_neighbour[q]
            slots[fluid] = layout.incoming_slots(phase, int(lattice.opposite[q]), self._rows[fluid])
            columns.append(slots)
        sampled = np.zeros(len(self._rows), np.uint8)
        sampled[self._overwritten(walls_return)] = 1
        members = {
            "outgoing_slots": self._upload(self._outgoing_slots(phase, self._rows)),
            "incoming_slots": self._upload(np.stack(columns)),
            "sampled": self._upload(sampled),
        }
        kernel, shared = self._kernel(registry.incoming_depth, phase)
        return kernel.bind(self._backend.pack(kernel, **shared, **members, **observed), begin, end)

    def _overwritten(self, walls_return: bool) -> npt.NDArray[np.uint32]:
        """Return the records whose outgoing populations are overwritten before the incoming ones are available."""
        overwritten = np.arange(len(self._rows)) >= self._interior
        if walls_return:
            overwritten |= ~np.all(list(self._has_neighbour.values()), axis=0)
        return np.flatnonzero(overwritten).astype(np.uint32)

    def _outgoing_slots(self, phase: int, rows: Rows) -> npt.NDArray[np.uint32]:
        return np.stack([self._layout.outgoing_slots(phase, q, rows) for q in range(self._layout.velocity_set.Q)])

    def _upload(self, array: npt.NDArray[Any]) -> Array:
        self._arrays.append(self._backend.upload(array))
        return self._arrays[-1]

    def _kernel(self, family: Callable[..., KernelSpec], phase: int) -> tuple[Kernel, dict[str, Any]]:
        """Return a kernel and its arguments that all kernels of depths have."""
        kernel = self._backend.load(family(*self._precision, velocity_set=self._layout.velocity_set.name))
        values = self._backend.pointer(self.values) + self._first * np.dtype(self._precision[0]).itemsize
        return kernel, {"f": self._layout.boundary(phase), "values": values, "records": len(self._rows)}
