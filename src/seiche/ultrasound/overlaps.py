# SPDX-License-Identifier: BSD-3-Clause
"""Overlaps of a rank's subdomain: their exchange, and the bell function (theory/ultrasound, section 12).

Before a transform the overlaps are filled with the neighbours' values and the field is tapered to zero over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.backend.transforms import Transforms
from seiche.domain.world import World
from seiche.halo import HaloExchange, HaloPlan
from seiche.halo.plan import build_plan
from seiche.kernels.registry import kspace_ranks as registry
from seiche.ultrasound.local_basis import Part, bell, points_in
from seiche.ultrasound.state import Bound, DeviceState, MessageAction


class LocalBasis:
    """The subdomain of a rank with its local transforms: exchange of overlaps, and bell function (taper).

    Args:
        world: the ranks.
        parts: all subdomains, one per rank.
        slope: slope of the bell function; by default the best one for the overlap.
        transport: transport of the messages.
    """

    def __init__(
        self, world: World, parts: Sequence[Part], slope: float | None = None, transport: str = "auto"
    ) -> None:
        self.world, self.parts, self.part = world, parts, parts[world.rank]
        self._slope, self._transport = slope, transport
        #: All exchanges of this rank.
        self.exchanges: list[HaloExchange] = []
        self._plans: dict[tuple[int, int | None], HaloPlan] = {}
        #: The object that fills and tapers overlaps; None for a basis without overlaps.
        self.overlaps = self

    def attach(self, state: DeviceState) -> None:
        """Upload the bell function."""
        self._state = state
        tables = [np.ones(1)] * (3 - state.problem.dimensions)
        tables += [bell(window, self._slope) for window in self.part.windows]
        self._bell = state.upload(np.concatenate(tables))

    @property
    def bell(self) -> Array:
        """Return the bell functions of all axes, concatenated."""
        return self._bell

    @property
    def max_overlap(self) -> int:
        """Return the largest width (points) of an overlap along the first axis."""
        return max(part.windows[0].overlap + part.windows[0].extra_points for part in self.parts)

    def exchange(self, array: Array, row_length: int, axis: int | None = None) -> tuple[Bound, Bound]:
        """Return the start and the end of the exchange that fills the overlaps of a field; collective.

        `row_length` is the distance of its rows, in numbers. With an `axis` only the overlaps beyond the ends of the
        owned lines along this axis are filled.
        """
        from seiche.machine.in_use import predicted_transport_times

        if (row_length, axis) not in self._plans:
            self._plans[row_length, axis] = self._plan(row_length, axis)
        exchange = HaloExchange(
            self._state.backend,
            self.world,
            self._plans[row_length, axis],
            self._state.real.name,  # type: ignore[arg-type]
            self._transport,  # type: ignore[arg-type]
            predict=predicted_transport_times,
        )
        exchange.use_graphs = False  # steps on several ranks are not replayed as graphs
        self.exchanges.append(exchange)
        return (
            MessageAction("send halo", lambda: exchange.start(array), exchange.sent("overlaps")),
            MessageAction("receive halo", lambda: exchange.finish(array), exchange.received("overlaps")),
        )

    def taper(self, field: Array | None, spectra: Array, components: int) -> Bound:
        """Multiply components of a field by the bell function and store them in padded rows of `spectra`.

        Without a field, these rows are multiplied in place.
        """
        real: Any = self._state.real.name
        return self._state.bind(
            registry.taper(real),
            field=field,
            work=spectra,
            bell=self._bell,
            rows=self._state.rows,
            fields=components,
            padded=int(field is None),
        )

    def transforms(self, state: DeviceState) -> Transforms:
        """Return the transforms of the subdomain."""
        return state.backend.transforms(state.extents, state.real.name)

    def _slots(self, local: npt.NDArray[np.int64], row_length: int) -> npt.NDArray[np.int64]:
        """Return the positions of points of the subdomain in a field."""
        length = self._state.rows["length"]
        return local if row_length == length else local // length * row_length + local % length

    def _plan(self, row_length: int, axis: int | None) -> HaloPlan:
        shape = tuple(window.total for window in self.part.windows)
        lines = list(self.part.core)
        if axis is not None:
            lines[axis] = slice(None)
        filled = np.full(self.part.shape, axis is None)
        filled[tuple(lines)] = True
        filled[self.part.core] = False
        overlap = np.flatnonzero(filled)
        coordinates = [
            window.indices(clipped=False)[coordinate]
            for window, coordinate in zip(self.part.windows, np.unravel_index(overlap, self.part.shape), strict=True)
        ]
        owner = np.full(len(overlap), -1)
        for part in self.parts:
            inside_part = np.ones(len(overlap), bool)
            for window, coordinate in zip(part.windows, coordinates, strict=True):
                inside_part &= (coordinate >= window.start) & (coordinate < window.start + window.core)
            owner[inside_part] = part.rank
        points = np.ravel_multi_index(tuple(coordinates), shape).astype(np.int64)
        requested = {}
        for peer in np.unique(owner):
            chosen = owner == peer
            requested[int(peer)] = (points[chosen], self._slots(overlap[chosen], row_length).astype(np.uint32))

        def locate(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
            slots = np.full(len(keys), -1, np.int64)
            chosen, local = points_in(keys, shape, self.part, core=True)
            slots[chosen] = self._slots(local, row_length)
            return slots

        return build_plan(self.world, requested, locate)
