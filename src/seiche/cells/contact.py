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
from seiche.cells.contact_lists import (
    INVALID,
    NO_OTHER_LISTS,
    ContactLists,
    ContactPoints,
    OtherLists,
    SharedLists,
    longest_skin,
)
from seiche.errors import CaseError
from seiche.kernels.registry import KernelSpec, grouped
from seiche.kernels.registry.membrane import (
    POINT_GROUP,
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
#: Share of a period below which the difference of two coordinates is the shortest one, whatever the rounding.
_WITHIN = 0.4999


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
        for law in self._laws:
            self._skin_of(law)
        self._calls: list[Callable[[], None]] | None = None
        self._arrays: list[Array] = []
        self._states: list[Array] = []

    def for_cells(self, cells: Cells) -> Contact:
        """Return the same forces for other cells."""
        wall = self._points.T if self._wall is not None else None
        return Contact(cells, self._between, wall=self._wall, wall_points=wall, lengths=self._lengths, skin=self._skin)

    @property
    def reach(self) -> float:
        """Return the distance beyond which there is no force between cells."""
        return self._between.cutoff if self._between is not None else 0.0

    @property
    def _laws(self) -> list[Repulsion]:
        """Return the laws, each of which has lists."""
        return [law for law in (self._between, self._wall) if law is not None]

    def bind(self, other: OtherLists = NO_OTHER_LISTS) -> SharedLists | None:
        """Bind the kernels to the present arrays of the cells; by default, the first call of the forces does so.

        `other` lists of the same vertices may be as long as the contact lists leave memory, and always as their maximum
        number of entries. Return their memory, or None without contact.
        """
        cells = self.cells
        self._calls, self._arrays, self._states = [], [], []
        lists: list[ContactLists] = []
        if self._between is not None:
            places = self._places(cells.stride)
            vertices = ContactPoints(cells.positions, places, cells.stride, cells.vertex_count, at_rest=False)
            lists.append(self._allocate(self._between, vertices, places, other))
            displacement_check, bins, forces = self._launches(self._between, vertices, lists[-1])
            self._calls += [displacement_check, *bins, *forces]
        if self._wall is not None:
            count = self._points.shape[1]
            positions = cells.backend.upload(self._points)
            self._arrays.append(positions)
            points = ContactPoints(positions, self._places(count), count, count, at_rest=True)
            other = NO_OTHER_LISTS if lists else other
            lists.append(self._allocate(self._wall, points, self._places(cells.stride), other))
            displacement_check, bins, forces = self._launches(self._wall, points, lists[-1])
            for call in bins:  # only once, since the wall points do not move
                call()
            self._calls += [displacement_check, *forces]
        return lists[0].shared if lists else None

    def compute_forces(self) -> None:
        """Add the contact forces to `cells.force`."""
        for call in self._bound_calls():
            call()

    def _bound_calls(self) -> list[Callable[[], None]]:
        if self._calls is None:
            self.bind()
        assert self._calls is not None
        return self._calls

    def invalidate(self) -> None:
        """Mark all lists to be rebuilt at the next call, after the arrays of the cells have been rearranged."""
        for state in self._states:
            self.cells.backend.assign(state[: len(INVALID)], INVALID)

    def memory(self) -> int:
        """Return the size of integer coordinates, bins and lists in bytes, with those of bricks that share memory."""
        self._bound_calls()
        return sum(int(array.nbytes) for array in self._arrays)

    def stage(self) -> Stage:
        """Return the forces as a stage of a step, after those of the membranes."""
        return Stage("contact forces", self.compute_forces, after=("membrane forces",))

    def _places(self, count: int) -> Array:
        """Allocate the integer coordinates of points (count,), which the device sets."""
        self._arrays.append(self.cells.backend.zeros(count, np.uint64))
        return self._arrays[-1]

    def _allocate(self, law: Repulsion, points: ContactPoints, places: Array, other: OtherLists) -> ContactLists:
        """Allocate the lists of a law; `places` (stride,) are the integer coordinates of the vertices."""
        geometry: dict[str, Any] = {"lengths": self._lengths, "cutoff": law.cutoff, "skin": self._skin_of(law)[1]}
        lists = ContactLists(self.cells, points, places, **geometry, other=other)
        self._states.append(lists.state)
        self._arrays += lists.arrays
        return lists

    def _launches(
        self, law: Repulsion, points: ContactPoints, lists: ContactLists
    ) -> tuple[Launch, list[Launch], list[Launch]]:
        """Return the launches for the displacement check, for the bins, and for the lists with their forces."""
        cells, resident, vertices = self.cells, self.cells.resident, self.cells.vertex_count
        state, skins, places = lists.state, lists.skins, lists.members["places"]
        common = {"state": state, "units": lists.units}
        vertex_members = {"positions": cells.positions, "stride": cells.stride}
        displacement_check = self._over_vertices(
            contact_moved(), **common, **vertex_members, places=places, reference=lists.reference, skins=skins
        )

        bin_members = {**common, "points": points.places, "bins": lists.bins}
        launch = partial(self._by_group, number=points.count) if points.at_rest else self._over_vertices
        count = launch(contact_count(), **bin_members, positions=points.positions, stride=points.stride)
        fill = launch(contact_fill(), **bin_members)
        place_bins = self._bound(contact_place(), lists.slot_groups, bins=lists.bins, state=state)

        groups = -(-vertices // VERTEX_GROUP)
        list_members: dict[str, Any] = {"lists": lists.members, "count": vertices}
        search = self._bound(contact_search(), groups, **list_members, skins=skins)
        force_members = {**list_members, **vertex_members, "force": cells.force, "law": law.members()}
        force_members |= {"other": points.positions, "other_stride": points.stride, "periods": self._skin_of(law)[0]}
        if resident is None:
            forces = [self._bound(contact_force(cells.precision), groups, **force_members)]
        else:
            spec = contact_force_resident(cells.precision)
            forces = [
                resident.over_groups(spec, VERTEX_GROUP, inner=force_members),
                self._bound(contact_reset(), 1, memory=lists.shared.memory),
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
        skin = min(law.cutoff if self._skin is None else self._skin, longest_skin(min_period, law.cutoff))
        inverses = np.where(lengths > 0, 1 / np.maximum(lengths, min_period), 0.0)
        within = np.where(lengths > 0, _WITHIN * lengths, np.inf)
        return {"lengths": lengths, "inverses": inverses, "within": within}, max(skin, 0.0)

    def _over_vertices(self, spec: KernelSpec, **members: Any) -> Launch:
        if self.cells.resident is not None:
            return self.cells.resident.over_grouped_vertices(spec, POINT_GROUP, **members)
        return self._by_group(spec, self.cells.vertex_count, **members)

    def _by_group(self, spec: KernelSpec, number: int, **members: Any) -> Launch:
        return self._bound(grouped(spec, POINT_GROUP), -(-number // POINT_GROUP), item=members, count=number)

    def _bound(self, spec: KernelSpec, items: int, **members: Any) -> Launch:
        kernel = self.cells.backend.load(spec)
        return kernel.bind(self.cells.backend.pack(kernel, **members), 0, items)
