# SPDX-License-Identifier: BSD-3-Clause
"""The overlaps of a rank's part: what it exchanges, and its bell (theory/ultrasound, section 12).

Before a transform the overlaps get the neighbours' values and the field is tapered to zero over them.
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
from seiche.machine.in_use import predict_transports
from seiche.ultrasound.local_basis import Part, bell, points_in
from seiche.ultrasound.state import Bound, Carried, DeviceState


class LocalBasis:
    """The part of a rank, whose transforms are its own: what it exchanges, and its bell.

    Args:
        world: the ranks.
        parts: all parts, one a rank.
        slope: of the bell; the one that suits the overlap by default.
        transport: how messages travel.
    """

    def __init__(
        self, world: World, parts: Sequence[Part], slope: float | None = None, transport: str = "auto"
    ) -> None:
        """Keep the parts; `attach` binds them to fields."""
        self.world, self.parts, self.part = world, parts, parts[world.rank]
        self._slope, self._transport = slope, transport
        #: Those that were made so far.
        self.exchanges: list[HaloExchange] = []
        self._plans: dict[bool, HaloPlan] = {}
        self.overlaps = self

    def attach(self, state: DeviceState) -> None:
        """Upload the bell and make the plans."""
        self._state = state
        tables = [np.ones(1)] * (3 - state.problem.dimensions)
        tables += [bell(window, self._slope) for window in self.part.windows]
        self._bell = state.upload(np.concatenate(tables))

    @property
    def bell(self) -> Array:
        """Return the bell along the axes one after another."""
        return self._bell

    @property
    def reach(self) -> int:
        """Return how many own points behind a cut of the first axis neighbours have in their overlaps, at most."""
        return max(part.windows[0].overlap + part.windows[0].more for part in self.parts)

    def exchange(self, array: Array, *, padded: bool = False) -> tuple[Bound, Bound]:
        """Return what starts to fill the overlaps of a field, and what ends it; collective."""
        if padded not in self._plans:
            self._plans[padded] = self._plan(padded)
        exchange = HaloExchange(
            self._state.backend,
            self.world,
            self._plans[padded],
            self._state.real.name,  # type: ignore[arg-type]
            self._transport,  # type: ignore[arg-type]
            predict=predict_transports,
        )
        exchange.replayed = False  # steps on several ranks are no graphs
        self.exchanges.append(exchange)
        return (
            Carried("send halo", lambda: exchange.start(array), exchange.sent("overlaps")),
            Carried("receive halo", lambda: exchange.finish(array), exchange.received("overlaps")),
        )

    def taper(self, field: Array | None, spectra: Array, components: int) -> Bound:
        """Return the product of fields and bell in padded rows of spectra; without field of what these rows hold."""
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
        """Return those of the part."""
        return state.backend.transforms(state.extents, state.real.name)

    def _slots(self, local: npt.NDArray[np.int64], padded: bool) -> npt.NDArray[np.int64]:
        """Return where points of the part lie in a field."""
        rows = self._state.rows
        length, room = rows["length"], 2 * rows["half"]
        return local // length * room + local % length if padded else local

    def _plan(self, padded: bool) -> HaloPlan:
        shape = tuple(window.total for window in self.part.windows)
        inside = np.zeros(self.part.shape, bool)
        inside[self.part.core] = True
        overlap = np.flatnonzero(~inside)
        places = [
            window.indices(clipped=False)[place]
            for window, place in zip(self.part.windows, np.unravel_index(overlap, self.part.shape), strict=True)
        ]
        owner = np.full(len(overlap), -1)
        for part in self.parts:
            mine = np.ones(len(overlap), bool)
            for window, place in zip(part.windows, places, strict=True):
                mine &= (place >= window.start) & (place < window.start + window.core)
            owner[mine] = part.rank
        points = np.ravel_multi_index(tuple(places), shape).astype(np.int64)
        wanted = {}
        for peer in np.unique(owner):
            chosen = owner == peer
            wanted[int(peer)] = (points[chosen], self._slots(overlap[chosen], padded).astype(np.uint32))

        def locate(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
            found = np.full(len(keys), -1, np.int64)
            chosen, local = points_in(keys, shape, self.part, core=True)
            found[chosen] = self._slots(local, padded)
            return found

        return build_plan(self.world, wanted, locate)
