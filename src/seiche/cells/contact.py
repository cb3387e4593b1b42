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
    CONTACT_STATE_WORDS,
    LIST_BLOCK,
    POINT_GROUP,
    SKINS,
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
from seiche.kernels.registry.resident import contact_force_resident
from seiche.observe.stage import Stage

Floats = npt.NDArray[np.float64]
Launch = Callable[[], None]

#: Unit of the fixed-point sums, relative to the largest force of the law.
_UNIT = 2.0**-40
#: Average number of list entries per vertex. If the lists do not fit, the next ones have a shorter skin; until then
#: the vertices without a list search the bins.
_ENTRIES_PER_VERTEX = 6
#: Skins from which the device chooses, relative to the longest.
_SKINS = 0.5 ** (np.arange(SKINS) / 2)
#: Number of units of a bin along axes that are not periodic, and of a period.
_UNITS_PER_BIN, _UNITS_PER_PERIOD = 2.0**16, 2.0**32
#: Maximum number of bins along an axis.
_MAX_BINS = (1 << 16) - 1
#: Factor by which lists extend beyond their radius, since coordinates are rounded to units.
_ROUNDING = 1 + 2.0**-10
#: Share of a period below which the difference of two coordinates is the shortest one, whatever the rounding.
_WITHIN = 0.4999
#: First words of the state, which cause the lists to be rebuilt; the last two are the numbers of skins.
_INVALID = np.array([1] + [0] * (CONTACT_STATE_WORDS - 3), np.uint32)


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
    bins = 4 * vertices + 12 * _slots(vertices) if points is None else (24 + 16 + 4) * points + 12 * _slots(points)
    groups = -(-max(vertices, 1) // VERTEX_GROUP)
    return (2 * 16 + 2 + 4 * _ENTRIES_PER_VERTEX) * vertices + 4 * groups + bins


def _slots(count: int) -> int:
    """Return the number of bins for this number of points."""
    return max(1 << (count // 4).bit_length(), SLOT_GROUP)


@dataclass(frozen=True, eq=False)
class _ContactPoints:
    """Points that exert forces on vertices, which are vertices or fixed wall points.

    `positions` (3, stride) has `count` points; `places` (stride, 4) are their integer coordinates and cells.
    """

    positions: Array
    places: Array
    stride: int
    count: int
    at_rest: bool


class Contact:
    """Contact forces of cells, added to the forces of their membranes.

    Each vertex has a list of the points within the reach of the law plus a `skin` (Verlet lists). The device rebuilds
    the lists from bins when a vertex has moved by half the skin. It shortens the skin if the lists do not fit.
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
        self._calls: list[Callable[[], None]] = []
        self._arrays: list[Array] = []
        self._states: list[Array] = []
        if self._between is not None:
            places = self._places(owners)
            vertices = _ContactPoints(cells.positions, places, cells.stride, cells.vertex_count, at_rest=False)
            displacement_check, bins, forces = self._lists(self._between, vertices, places, self._places(owners))
            self._calls += [displacement_check, *bins, *forces]
        if self._wall is not None:
            count = self._points.shape[1]
            positions = cells.backend.upload(self._points)
            self._arrays.append(positions)
            points = _ContactPoints(positions, self._places(np.full(count, -1, np.int32)), count, count, at_rest=True)
            displacement_check, bins, forces = self._lists(
                self._wall, points, self._places(owners), self._places(owners)
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
            self.cells.backend.assign(state[: len(_INVALID)], _INVALID)

    def memory(self) -> int:
        """Return the size of bins, lists and owners in bytes."""
        return sum(int(array.nbytes) for array in self._arrays)

    def stage(self) -> Stage:
        """Return the forces as a stage of a step, after those of the membranes."""
        return Stage("contact forces", self.compute_forces, after=("membrane forces",))

    def _places(self, owners: npt.NDArray[np.int32]) -> Array:
        """Allocate the integer coordinates and cells of points (points, 4), of which the device sets the former."""
        host_array = np.zeros((len(owners), 4), np.int32)
        host_array[:, 3] = owners
        self._arrays.append(self.cells.backend.upload(host_array))
        return self._arrays[-1]

    def _lists(
        self, law: Repulsion, points: _ContactPoints, places: Array, reference: Array
    ) -> tuple[Launch, list[Launch], list[Launch]]:
        """Return the launches for the displacement check, for the bins, and for the lists with their forces.

        `places` (stride, 4) are the integer coordinates and cells of the vertices, `reference` (stride, 4) those for
        which the lists were built.
        """
        cells, resident, vertices = self.cells, self.cells.resident, self.cells.vertex_count
        periods, skin = self._skin_of(law)
        reaches = (law.cutoff + skin * _SKINS) * _ROUNDING
        lists = {**self._reserve(points, reaches), "places": places, "touching": (law.cutoff * _ROUNDING) ** 2}
        state = cells.backend.upload(np.append(_INVALID, np.zeros(2, np.uint32)))
        self._states.append(state)
        self._arrays.append(state)
        skins = {"moved": (0.5 * skin * _SKINS) ** 2, "reach": reaches**2}
        common = {"state": state, "units": lists["units"]}
        vertex_members = {"positions": cells.positions, "stride": cells.stride}
        displacement_check = self._over_vertices(
            contact_moved(), **common, **vertex_members, places=places, reference=reference, skins=skins
        )

        bin_members = {**common, "points": points.places, "bins": lists["bins"]}
        launch = partial(self._by_group, number=points.count) if points.at_rest else self._over_vertices
        count = launch(contact_count(), **bin_members, positions=points.positions, stride=points.stride)
        fill = launch(contact_fill(), **bin_members)
        place_bins = self._bound(contact_place(), _slots(points.count) // SLOT_GROUP, bins=lists["bins"], state=state)

        groups = -(-vertices // VERTEX_GROUP)
        list_members: dict[str, Any] = {"lists": lists, "count": vertices}
        search = self._bound(contact_search(), groups, **list_members, skins=skins, reference=reference, state=state)
        reset = {"state": state, "blocks": lists["blocks"]}
        force_members = {**list_members, **vertex_members, "force": cells.force, "law": law.members()}
        force_members |= {"other": points.positions, "other_stride": points.stride, "periods": periods, "reset": reset}
        if resident is None:
            forces = [self._bound(contact_force(cells.precision), groups, **force_members)]
        else:
            spec = contact_force_resident(cells.precision)
            forces = [
                resident.over_groups(spec, VERTEX_GROUP, inner=force_members),
                self._bound(contact_reset(), 1, **reset),
            ]
        return displacement_check, [count, place_bins, fill], [search, *forces]

    def _skin_of(self, law: Repulsion) -> tuple[dict[str, Floats], float]:
        """Return the kernel members of the periods of the space, and the longest skin of the lists.

        Raises:
            CaseError: a period is below three times the reach.
        """
        lengths = self._lengths
        min_period = float(lengths[lengths > 0].min()) if (lengths > 0).any() else math.inf
        if min_period < 3 * law.cutoff:
            raise CaseError(
                f"contact: reach = {law.cutoff:g} is more than a third of the period {min_period:g} of the domain; "
                "use a shorter reach"
            )
        skin = min(law.cutoff if self._skin is None else self._skin, min_period / 3 / _ROUNDING - law.cutoff)
        inverses = np.where(lengths > 0, 1 / np.maximum(lengths, min_period), 0.0)
        within = np.where(lengths > 0, _WITHIN * lengths, np.inf)
        return {"lengths": lengths, "inverses": inverses, "within": within}, max(skin, 0.0)

    def _reserve(self, points: _ContactPoints, reaches: Floats) -> dict[str, Any]:
        """Return the kernel members of the lists of points near each vertex, and of their bins.

        `reaches` are the distances within which points are listed, for each skin.
        """
        cells, zeros, slots = self.cells, self.cells.backend.zeros, _slots(points.count)
        periodic = self._lengths > 0
        lengths = np.where(periodic, self._lengths, _UNITS_PER_PERIOD / _UNITS_PER_BIN * reaches[0])
        per_length = _UNITS_PER_PERIOD / lengths
        # On a GPU, few wide bins are faster than more narrow ones for a shorter skin. Those of points at rest are
        # filled once, for all skins.
        is_rebuilt = cells.backend.host_memory and not points.at_rest
        widths = reaches if is_rebuilt else np.full_like(reaches, reaches[0])
        numbers = np.clip(np.floor(lengths / widths[:, None]), 3, np.where(periodic, _MAX_BINS, 4 * _MAX_BINS))
        bins: dict[str, Any] = {
            **{name: zeros(slots, np.uint32) for name in ("first", "count", "tally")},
            "entries": zeros(max(points.count, 1), np.uint32),
            "mask": slots - 1,
        }
        blocks = -(-_ENTRIES_PER_VERTEX * cells.vertex_count // LIST_BLOCK)
        lists: dict[str, Any] = {
            "groups": zeros(-(-max(cells.vertex_count, 1) // VERTEX_GROUP), np.uint32),
            "ends": zeros(cells.stride, np.uint16),
            "pairs": zeros(max(blocks, 1) * LIST_BLOCK, np.uint32),
            "other": points.places,
            "units": {
                "per_length": per_length,
                "length": (1 / per_length).astype(np.float32),
                "bins": numbers.astype(np.uint32).reshape(-1),
            },
            "bins": bins,
            "blocks": blocks,
        }
        self._arrays += [bins[name] for name in ("first", "count", "tally", "entries")]
        self._arrays += [lists[name] for name in ("groups", "ends", "pairs")]
        return lists

    def _over_vertices(self, spec: KernelSpec, **members: Any) -> Launch:
        if self.cells.resident is not None:
            return self.cells.resident.over_grouped_vertices(spec, POINT_GROUP, **members)
        return self._by_group(spec, self.cells.vertex_count, **members)

    def _by_group(self, spec: KernelSpec, number: int, **members: Any) -> Launch:
        return self._bound(grouped(spec, POINT_GROUP), -(-number // POINT_GROUP), item=members, count=number)

    def _bound(self, spec: KernelSpec, items: int, **members: Any) -> Launch:
        kernel = self.cells.backend.load(spec)
        return kernel.bind(self.cells.backend.pack(kernel, **members), 0, items)
