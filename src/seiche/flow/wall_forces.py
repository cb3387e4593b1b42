# SPDX-License-Identifier: BSD-3-Clause
"""Force and torque of the fluid on parts of the wall (theory/flow, eqs. 38b and 38c).

The device sums the momentum that the links transfer to the wall as integer multiples of 2^-44, so the result does not
depend on the layout, the number of ranks or threads, or the device. Steps without a measurement have no additional
cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.domain.sites import LinkKind
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.flow.layout import Layout, Use
from seiche.flow.model import Body
from seiche.flow.region import Region
from seiche.flow.wall_links import wall_points
from seiche.flow.wall_mass import blocks
from seiche.kernels.registry.halo import halo_move
from seiche.kernels.registry.walls import WALL_MASS_SCALE, wall_forces

#: Components of a force and a torque.
COMPONENTS = 6

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _BoundKernels:
    """Bound kernels of one phase: `pack` copies outgoing populations, `add` sums the momentum of all links."""

    pack: Callable[[], None]
    add: Callable[[], None]


class PendingForces:
    """Forces whose sums are being copied to the host; call `result` once, on all ranks."""

    def __init__(self, forces: WallForces, host_sums: npt.NDArray[np.int64], event: Any) -> None:
        self._forces, self._host_sums, self._event = forces, host_sums, event

    def result(self) -> dict[str, Floats]:
        """Return the force and torque (6,) on each body in lattice units (collective)."""
        return self._forces.finish(self._host_sums, self._event)


class WallForces:
    """Measurement of the forces on `bodies`.

    Torques are summed in units of 2^k, with k from the extent of the geometry.
    """

    def __init__(
        self,
        backend: Backend,
        layout: Layout,
        region: Region,
        bodies: Sequence[Body],
        *,
        precision: tuple[Any, Any],
        world: World,
    ) -> None:
        """Find the links of the bodies and reserve the storage of their populations (collective).

        The constructor must be called before `layout` first returns slots.

        Raises CaseError on all ranks if a body has no link.
        """
        self._backend, self._layout, self._precision, self._world = backend, layout, precision, world
        self.names = [body.name for body in bodies]
        sites, lattice = region.sites, region.velocity_set
        boundary_row, direction = np.nonzero(
            sites.link_kind[region.boundary_rows][:, lattice.link_rows] == LinkKind.WALL
        )
        boundary = region.boundary_rows[boundary_row]
        points = wall_points(sites, boundary, lattice.link_rows[direction])
        origin = np.asarray(sites.origin) / sites.spacing
        site_positions = origin + sites.coords[sites.boundary[boundary]]
        corners = [origin, origin + np.asarray(sites.shape)]
        distance = [np.abs(corner - np.array(body.center)).max() for body in bodies for corner in corners]
        self._unit = 2.0 ** float(np.ceil(np.log2(max([1.0, *distance]))))
        body_links, lever_arms, body_numbers = [np.zeros(0, np.int64)], [np.zeros((0, 3))], [np.zeros(0, np.int64)]
        for number, body in enumerate(bodies):
            inside = np.ones(len(points), bool) if body.patch is None else np.asarray(body.patch(points), bool)
            links = np.flatnonzero(inside)
            # Links are sorted by item, so that consecutive threads access adjacent populations.
            links = links[np.lexsort((layout.item[region.boundary_sites[boundary_row[links]]], direction[links]))]
            body_links.append(links)
            lever_arms.append((site_positions[links] - np.array(body.center)) / self._unit)
            body_numbers.append(np.full(len(links), number))
        links = np.concatenate(body_links)
        self._row, self._q = region.boundary_sites[boundary_row[links]], direction[links] + 1
        self._lever_arms, self._body = np.concatenate(lever_arms), np.concatenate(body_numbers)
        self._packed_direction = ((lattice.vectors[self._q] + 1) << np.array([0, 2, 4])).sum(axis=1).astype(np.uint32)
        counts = world.allreduce_sum(np.bincount(self._body, minlength=len(bodies)))
        for name, count in zip(self.names, counts, strict=True):
            if not count:
                raise CaseError(f"body {name!r}: its patch contains no wall link")
        layout.reserve(Use.OUTGOING, self._row, self._q)
        self._sums: Array = backend.zeros(COMPONENTS * len(bodies), np.int64)
        self._bound_kernels: dict[int, _BoundKernels] = {}
        self._arrays: list[Any] = []  # referenced by bound kernels
        self._free_host_buffers: list[npt.NDArray[np.int64]] = []

    def start(self, phase: int, replace_wall_populations: Callable[[Callable[[], None] | None], None]) -> PendingForces:
        """Start measuring the forces in the next step, whose phase is `phase`; halos must be current.

        The call does not wait for the result. `replace_wall_populations(callback)` must call `callback` and
        then replace the populations that the walls return.
        """
        backend = self._backend
        kernels = self._bound_kernels_of(phase) if len(self._row) else None
        replace_wall_populations(kernels.pack if kernels else None)
        backend.assign(self._sums, np.zeros(self._sums.shape, np.int64))
        if kernels:
            kernels.add()
        host_sums = (
            self._free_host_buffers.pop()
            if self._free_host_buffers
            else backend.pinned(COMPONENTS * len(self.names), np.int64)
        )
        backend.copy_to_host(self._sums, host_sums)
        return PendingForces(self, host_sums, backend.current().record())

    def finish(self, host_sums: npt.NDArray[np.int64], event: Any) -> dict[str, Floats]:
        """Wait until `host_sums` contains the sums of this rank, and return the forces (collective)."""
        self._backend.await_event(event)
        sums = np.asarray(self._world.allreduce_sum(host_sums.copy()), np.int64).reshape(-1, COMPONENTS)
        self._free_host_buffers.append(host_sums)
        scale = np.array([1.0] * 3 + [self._unit] * 3) / WALL_MASS_SCALE
        return dict(zip(self.names, sums * scale, strict=True))

    def _bound_kernels_of(self, phase: int) -> _BoundKernels:
        """Return the bound kernels of a phase; they are created at their first use."""
        if phase not in self._bound_kernels:
            backend, layout, upload = self._backend, self._layout, self._backend.upload
            outgoing_slots = np.zeros(len(self._row), np.uint32)
            for q in np.unique(self._q):
                same_direction = self._q == q
                outgoing_slots[same_direction] = layout.outgoing_slots(phase, int(q), self._row[same_direction])
            source, population_indices, count = layout.boundary(phase), upload(outgoing_slots), len(outgoing_slots)
            outgoing = backend.zeros(count, self._precision[1])
            first, body, _ = blocks(self._body, count)
            members = {
                "f": source,
                "slots": population_indices,
                "outgoing": outgoing,
                "code": upload(self._packed_direction),
                "lever": upload(np.ascontiguousarray(self._lever_arms.T)),
                "links": count,
                "first": upload(first),
                "body": upload(body),
                "sums": self._sums,
            }
            self._arrays.append(members)
            pack_kernel, sum_kernel = (
                backend.load(halo_move("Pack", self._precision[1])),
                backend.load(wall_forces(*self._precision)),
            )
            pack_arguments = backend.pack(pack_kernel, array=source, slots=population_indices, buffer=outgoing)
            sum_arguments = backend.pack(sum_kernel, **members)
            self._bound_kernels[phase] = _BoundKernels(
                pack_kernel.bind(pack_arguments, 0, count), sum_kernel.bind(sum_arguments, 0, len(first) - 1)
            )
        return self._bound_kernels[phase]
