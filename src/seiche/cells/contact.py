# SPDX-License-Identifier: BSD-3-Clause
"""Short-range forces between cells, and between cells and walls (theory/cells, eqs. 13 and 14)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.cells.cells import Cells
from seiche.errors import CaseError
from seiche.kernels.registry import KernelSpec, grouped
from seiche.kernels.registry.membrane import (
    BIN_ENTRY_BYTES,
    CONTACT_STATE_WORDS,
    POINT_GROUP,
    SLOT_GROUP,
    VERTEX_GROUP,
    contact_count,
    contact_fill,
    contact_force,
    contact_moved,
    contact_place,
    contact_reset,
    contact_search,
)
from seiche.observe.stage import Stage

Floats = npt.NDArray[np.float64]
Launch = Callable[[], None]

#: Unit of the fixed-point sums, relative to the largest force of the law.
_UNIT = 2.0**-40
#: Average number of list entries per vertex; vertices for which the lists have no space search the bins.
_ENTRIES_PER_VERTEX = 8
#: Factor by which lists extend beyond their radius, since positions in bins are rounded to 2^-16 of a bin.
_ROUNDING = 1 + 2.0**-12
#: State that causes the lists to be rebuilt.
_INVALID = np.array([1] + [0] * (CONTACT_STATE_WORDS - 1), np.uint32)


@dataclass(frozen=True)
class Morse:
    """Adhesion between cells with energy `depth` (e^{2b(r - d)} - 2 e^{b(r - d)}), where b is `steepness`, r `rest`."""

    depth: float
    steepness: float
    rest: float
    reach: float

    @property
    def stiffness(self) -> float:
        """Return the derivative of the force at rest."""
        return 2 * self.depth * self.steepness**2


@dataclass(frozen=True)
class Repulsion:
    """Repulsion `strength` ((reach/d)^exponent - 1) between points at a distance d < `reach`, and optional adhesion."""

    strength: float
    reach: float
    exponent: float = 2.0
    morse: Morse | None = None

    def __post_init__(self) -> None:
        """Check the parameters.

        Raises:
            CaseError: a number is not positive or not finite, the exponent is below 1 or above 12, or the adhesion does
                not attract.
        """
        parameters = {"strength": self.strength, "reach": self.reach}
        if self.morse is not None:
            parameters |= dict(zip(("depth", "steepness", "rest", "morse reach"), astuple(self.morse), strict=True))
        for name, value in parameters.items():
            if not (math.isfinite(value) and value > 0):
                raise CaseError(f"contact: {name} = {value:g}: expected a positive number")
        if self.morse is not None and self.morse.rest >= self.morse.reach:
            raise CaseError(
                f"contact: adhesion: rest = {self.morse.rest:g} must be below reach = {self.morse.reach:g}, "
                "otherwise there is no attraction"
            )
        if not 1 <= self.exponent <= 12:
            raise CaseError(f"contact: exponent = {self.exponent:g}: expected a number from 1 to 12")

    @property
    def cutoff(self) -> float:
        """Return the distance beyond which there is no force."""
        return max(self.reach, self.morse.reach if self.morse is not None else 0.0)

    def stiffness(self, distance: float) -> float:
        """Return minus the derivative of the repulsion with respect to the distance."""
        return float(self.strength * self.exponent * (self.reach / distance) ** self.exponent / distance)

    def members(self) -> dict[str, float]:
        """Return the kernel members of the law."""
        morse = self.morse or Morse(0.0, 0.0, 0.0, 0.0)
        max_force = max(self.strength, 2 * morse.depth * morse.steepness)
        return {
            "strength": self.strength,
            "reach": self.reach,
            "exponent": self.exponent,
            "depth": morse.depth,
            "steepness": morse.steepness,
            "rest": morse.rest,
            "morse_reach": morse.reach,
            "units": 1 / (_UNIT * max_force),
        }


def contact_memory(vertices: int, points: int | None = None) -> int:
    """Return the size in bytes of the lists of `vertices` and of the bins of wall `points` or, if None, of vertices."""
    count = vertices if points is None else points
    at_rest = 0 if points is None else 28 * points
    return (24 + 8 + 4 * _ENTRIES_PER_VERTEX) * vertices + BIN_ENTRY_BYTES * count + 12 * _slots(count) + at_rest


def _slots(count: int) -> int:
    """Return the number of bins for this number of points."""
    return max(1 << (count // 2).bit_length(), SLOT_GROUP)


@dataclass(frozen=True, eq=False)
class _ContactPoints:
    """Points that exert forces on vertices, which are vertices or fixed wall points.

    `positions` (3, stride) has `count` points; `owner` are their cells.
    """

    positions: Array
    owner: Array
    stride: int
    count: int
    at_rest: bool


class Contact:
    """Contact forces of cells, added to the forces of their membranes.

    Each vertex has a list of the points within the reach of the law plus a `skin` (Verlet lists). The device rebuilds
    the lists from bins when a vertex has moved by half the skin.
    """

    def __init__(
        self,
        cells: Cells,
        between: Repulsion | None = None,
        *,
        wall: Repulsion | None = None,
        wall_points: npt.ArrayLike | None = None,
        lengths: npt.ArrayLike = (0.0, 0.0, 0.0),
        skin: float | None = None,
    ) -> None:
        """Set up the forces `between` cells, and those of a `wall` represented by points (n, 3).

        Args:
            cells: the cells, to whose `force` the contact forces are added.
            between: law between vertices of different cells.
            wall: law between vertices and points of the wall.
            wall_points: points of the wall, whose distances are at most half the reach of its law.
            lengths: period of the space along each axis; 0 along axes that are not periodic.
            skin: range of the lists beyond that of the law; by default the reach, or less if a period is short.

        Raises:
            CaseError: a period is below three times the reach, the skin is negative, or the wall has no points.
        """
        if skin is not None and not (math.isfinite(skin) and skin >= 0):
            raise CaseError(f"contact: skin = {skin:g}: expected a length of zero or more")
        self.cells, self._lengths, self._skin = cells, np.asarray(lengths, np.float64), skin
        self._between, self._wall = between, wall
        if wall is not None:
            points = np.asarray(wall_points if wall_points is not None else (), np.float64).reshape(-1, 3)
            if not len(points) or not np.isfinite(points).all():
                raise CaseError("contact: a wall requires points with finite coordinates")
            self._points = np.ascontiguousarray(points.T)
        self.bind()

    def for_cells(self, cells: Cells) -> Contact:
        """Return the same forces for other cells."""
        wall = self._points.T if self._wall is not None else None
        return Contact(cells, self._between, wall=self._wall, wall_points=wall, lengths=self._lengths, skin=self._skin)

    @property
    def reach(self) -> float:
        """Return the distance beyond which there is no force between cells."""
        return self._between.cutoff if self._between is not None else 0.0

    def bind(self) -> None:
        """Bind the kernels to the present arrays of the cells."""
        cells = self.cells
        counts = np.concatenate([np.full(block.cells, block.vertices) for block in cells.blocks]).astype(np.int64)
        owners = np.full(cells.stride, -2, np.int32)
        owners[: cells.vertex_count] = np.repeat(np.arange(cells.count), counts)
        self._owners = cells.backend.upload(owners)
        self._calls: list[Callable[[], None]] = []
        self._arrays: list[Array] = [self._owners]
        self._states: list[Array] = []
        if self._between is not None:
            vertices = _ContactPoints(cells.positions, self._owners, cells.stride, cells.vertex_count, at_rest=False)
            displacement_check, bins, forces = self._lists(self._between, vertices)
            self._calls += [displacement_check, *bins, *forces]
        if self._wall is not None:
            count = self._points.shape[1]
            positions = cells.backend.upload(self._points)
            owner = cells.backend.upload(np.full(count, -1, np.int32))
            displacement_check, bins, forces = self._lists(
                self._wall, _ContactPoints(positions, owner, count, count, at_rest=True)
            )
            for call in bins:  # only once, since the wall points do not move
                call()
            self._calls += [displacement_check, *forces]

    def compute_forces(self) -> None:
        """Add the contact forces to `cells.force`."""
        for call in self._calls:
            call()

    def invalidate(self) -> None:
        """Mark all lists to be rebuilt at the next call, after the arrays of the cells have been rearranged."""
        for state in self._states:
            self.cells.backend.assign(state, _INVALID)

    def memory(self) -> int:
        """Return the size of bins, lists and owners in bytes."""
        return sum(int(array.nbytes) for array in self._arrays)

    def stage(self) -> Stage:
        """Return the forces as a stage of a step, after those of the membranes."""
        return Stage("contact forces", self.compute_forces, after=("membrane forces",))

    def _lists(self, law: Repulsion, points: _ContactPoints) -> tuple[Launch, list[Launch], list[Launch]]:
        """Return the launches for the displacement check, for the bins, and for the lists with their forces."""
        cells, resident, vertices = self.cells, self.cells.resident, self.cells.vertex_count
        min_period, skin = self._skin_of(law)
        bins, lists = self._reserve(points, (law.cutoff + skin) * _ROUNDING, min_period)
        state = cells.backend.upload(_INVALID)
        self._states.append(state)
        self._arrays += [state, *([points.positions, points.owner] if points.at_rest else [])]
        check_members = {
            "positions": cells.positions,
            "reference": lists["reference"],
            "stride": cells.stride,
            "state": state,
        }
        displacement_check = self._over_vertices(contact_moved(), **check_members, limit=(0.5 * skin) ** 2)

        bin_members = {"positions": points.positions, "stride": points.stride, "bins": bins, "state": state}
        launch = partial(self._by_group, number=points.count) if points.at_rest else self._over_vertices
        count, fill = (launch(spec, **bin_members) for spec in (contact_count(), contact_fill()))
        place_bins = self._bound(contact_place(), _slots(points.count) // SLOT_GROUP, bins=bins, state=state)

        search = self._bound(contact_search(), -(-vertices // VERTEX_GROUP), lists=lists, state=state, count=vertices)
        force_members: dict[str, Any] = {"force": cells.force, "other": points.positions, "other_stride": points.stride}
        force_members |= {"law": law.members(), "lists": lists, "state": state}
        gather = contact_force(cells.precision)
        if resident is None:
            return (
                displacement_check,
                [count, place_bins, fill],
                [search, self._bound(gather, vertices, **force_members)],
            )
        reset = self._bound(contact_reset(), 1, state=state)
        return (
            displacement_check,
            [count, place_bins, fill],
            [search, resident.over_vertices(gather, **force_members), reset],
        )

    def _skin_of(self, law: Repulsion) -> tuple[float, float]:
        """Return the shortest period of the space, infinity if there is none, and the skin of the lists.

        Raises:
            CaseError: a period is below three times the reach.
        """
        periods = self._lengths[self._lengths > 0]
        min_period = float(periods.min()) if len(periods) else math.inf
        if min_period < 3 * law.cutoff:
            raise CaseError(
                f"contact: reach = {law.cutoff:g} is more than a third of the period {min_period:g} of the space; "
                "use a shorter reach"
            )
        skin = min(law.cutoff if self._skin is None else self._skin, min_period / 3 / _ROUNDING - law.cutoff)
        return min_period, max(skin, 0.0)

    def _reserve(
        self, points: _ContactPoints, reach: float, min_period: float
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the kernel members of the bins, and of the lists of points within `reach` of each vertex."""
        cells, zeros, slots = self.cells, self.cells.backend.zeros, _slots(points.count)
        counts = np.clip(np.floor(self._lengths / reach), np.where(self._lengths > 0, 3, 0), (1 << 16) - 1)
        size = np.where(counts > 0, self._lengths / np.maximum(counts, 1), reach)
        bins: dict[str, Any] = {
            **{name: zeros(slots, np.uint32) for name in ("first", "count", "tally")},
            "entries": zeros(max(points.count, 1) * BIN_ENTRY_BYTES, np.uint8),
            "per_length": 1 / size,
            "lengths": self._lengths,
            "inverse_lengths": np.where(self._lengths > 0, 1 / np.maximum(self._lengths, min_period), 0.0),
            "counts": counts.astype(np.int32),
            "mask": slots - 1,
        }
        capacity = max(_ENTRIES_PER_VERTEX * cells.vertex_count, 1)
        lists: dict[str, Any] = {
            "positions": cells.positions,
            "reference": cells.backend.upload(np.full((3, cells.stride), np.inf)),
            "owner": self._owners,
            **{name: zeros(cells.stride, np.uint32) for name in ("first", "pair_counts")},
            "pairs": zeros(capacity, np.uint32),
            "other_owner": points.owner,
            "bins": bins,
            "stride": cells.stride,
            "bin_unit": (size / 65535).astype(np.float32),
            "reach": reach**2,
            "capacity": capacity,
        }
        self._arrays += [bins[name] for name in ("first", "count", "tally", "entries")]
        self._arrays += [lists[name] for name in ("reference", "first", "pair_counts", "pairs")]
        return bins, lists

    def _over_vertices(self, spec: KernelSpec, **members: Any) -> Launch:
        if self.cells.resident is not None:
            return self.cells.resident.over_grouped_vertices(spec, POINT_GROUP, **members)
        return self._by_group(spec, self.cells.vertex_count, **members)

    def _by_group(self, spec: KernelSpec, number: int, **members: Any) -> Launch:
        return self._bound(grouped(spec, POINT_GROUP), -(-number // POINT_GROUP), item=members, count=number)

    def _bound(self, spec: KernelSpec, items: int, **members: Any) -> Launch:
        kernel = self.cells.backend.load(spec)
        return kernel.bind(self.cells.backend.pack(kernel, **members), 0, items)
