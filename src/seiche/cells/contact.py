# SPDX-License-Identifier: BSD-3-Clause
"""Short-range forces between cells, and between cells and walls (theory/cells, eqs. 13 and 14)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.cells.cells import Cells
from seiche.errors import CaseError
from seiche.kernels.registry.membrane import contact_clear, contact_force, contact_insert
from seiche.observe.stage import Stage

Floats = npt.NDArray[np.float64]

#: Sums are kept in this share of the greatest of the law's forces.
_UNIT = 2.0**-40


@dataclass(frozen=True)
class Morse:
    """Adhesion between cells: energy `depth` (e^{2b(r - d)} - 2 e^{b(r - d)}), b the `steepness`, r the `rest`."""

    depth: float
    steepness: float
    rest: float
    reach: float


@dataclass(frozen=True)
class Repulsion:
    """Force `strength` ((reach/d)^exponent - 1) between points at a distance d < `reach`; with or without adhesion."""

    strength: float
    reach: float
    exponent: float = 2.0
    morse: Morse | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that make no law.

        Raises:
            CaseError: a number that is not positive or not finite, an exponent below 1 or above 12.
        """
        numbers = {"strength": self.strength, "reach": self.reach}
        if self.morse is not None:
            numbers |= dict(zip(("depth", "steepness", "rest", "morse reach"), astuple(self.morse), strict=True))
        for name, value in numbers.items():
            if not (math.isfinite(value) and value > 0):
                raise CaseError(f"contact: {name} = {value:g}: a positive number is expected")
        if not 1 <= self.exponent <= 12:
            raise CaseError(f"contact: exponent = {self.exponent:g}: a number from 1 to 12 is expected")

    @property
    def farthest(self) -> float:
        """Return the distance beyond which there is no force."""
        return max(self.reach, self.morse.reach if self.morse is not None else 0.0)

    def members(self) -> dict[str, float]:
        """Return the members of the kernel's law."""
        morse = self.morse or Morse(0.0, 0.0, 0.0, 0.0)
        greatest = max(self.strength, 2 * morse.depth * morse.steepness)
        return {
            "strength": self.strength,
            "reach": self.reach,
            "exponent": self.exponent,
            "depth": morse.depth,
            "steepness": morse.steepness,
            "rest": morse.rest,
            "morse_reach": morse.reach,
            "whole": 1 / (_UNIT * greatest),
        }


class Contact:
    """Contact forces of cells, added to the forces of their membranes.

    Points that are near each other are found through bins of the size of the law's reach, made anew at every call.
    """

    def __init__(
        self,
        cells: Cells,
        between: Repulsion | None = None,
        *,
        wall: Repulsion | None = None,
        wall_points: npt.ArrayLike | None = None,
        lengths: npt.ArrayLike = (0.0, 0.0, 0.0),
    ) -> None:
        """Prepare the forces `between` cells, and of a `wall` given by points (n, 3) on it.

        Args:
            cells: whose `force` is added to.
            between: law between vertices of different cells.
            wall: law between vertices and points of the wall.
            wall_points: points of the wall, no farther apart than half the reach of its law.
            lengths: period of the space along each axis, 0 where it does not repeat.

        Raises:
            CaseError: a period of less than three reaches, or a wall without points.
        """
        self.cells, self._lengths = cells, np.asarray(lengths, np.float64)
        self._between, self._wall = between, wall
        if wall is not None:
            points = np.asarray(wall_points if wall_points is not None else (), np.float64).reshape(-1, 3)
            if not len(points) or not np.isfinite(points).all():
                raise CaseError("contact: a wall needs points, with finite coordinates")
            self._points = np.ascontiguousarray(points.T)
        self.bind()

    def of(self, cells: Cells) -> Contact:
        """Return the same forces for other cells."""
        wall = self._points.T if self._wall is not None else None
        return Contact(cells, self._between, wall=self._wall, wall_points=wall, lengths=self._lengths)

    @property
    def reach(self) -> float:
        """Return the distance beyond which cells do not feel each other."""
        return self._between.farthest if self._between is not None else 0.0

    def bind(self) -> None:
        """Prepare the launches for the present arrays of the cells."""
        cells = self.cells
        counts = np.concatenate([np.full(block.cells, block.vertices) for block in cells.blocks]).astype(np.int64)
        owners = np.full(cells.stride, -2, np.int32)
        owners[: cells.vertex_count] = np.repeat(np.arange(cells.count), counts)
        self._owners = cells.backend.upload(owners)
        self._calls: list[Callable[[], None]] = []
        self._kept: list[Any] = []
        if self._between is not None:
            self._calls += self._table(self._between, cells.place, self._owners, cells.stride, cells.vertex_count)
        if self._wall is not None:
            count = self._points.shape[1]
            place = cells.backend.upload(self._points)
            owner = cells.backend.upload(np.full(count, -1, np.int32))
            clear, insert, force = self._table(self._wall, place, owner, count, count, moving=False)
            clear()
            insert()
            self._calls.append(force)

    def forces(self) -> None:
        """Add the contact forces to `cells.force`."""
        for call in self._calls:
            call()

    def stage(self) -> Stage:
        """Return the forces as a stage of a step, after those of the membranes."""
        return Stage("contact forces", self.forces, after=("membrane forces",))

    def _table(
        self, law: Repulsion, place: Array, owner: Array, stride: int, count: int, *, moving: bool = True
    ) -> tuple[Callable[[], None], Callable[[], None], Callable[[], None]]:
        """Return the launches that empty the bins of points, fill them, and add the points' forces on the cells."""
        backend, cells = self.cells.backend, self.cells
        bins = np.floor(self._lengths / law.farthest).astype(np.int64)
        tight = np.flatnonzero((self._lengths > 0) & (bins < 3))
        if len(tight):
            raise CaseError(
                f"contact: reach {law.farthest:g} in a space that repeats after {self._lengths[tight[0]]:g}:"
                " at most a third of it is possible"
            )
        size = np.where(bins > 0, self._lengths / np.maximum(bins, 1), law.farthest)
        slots = 1 << max(int(2 * count - 1).bit_length(), 6)
        head, following = backend.zeros(slots, np.int32), backend.zeros(max(count, 1), np.int32)
        table = {
            "head": head,
            "next": following,
            "per_length": 1 / size,
            "lengths": self._lengths,
            "count": bins,
            "mask": slots - 1,
        }
        self._kept += [head, following, place, owner]
        clear, insert = backend.load(contact_clear()), backend.load(contact_insert())
        force = contact_force(cells.precision)
        points = dict(place=place, stride=stride, bins=table)
        forces = dict(
            place=cells.place,
            force=cells.force,
            owner=self._owners,
            stride=cells.stride,
            other=place,
            other_owner=owner,
            other_stride=stride,
            bins=table,
            law=law.members(),
        )
        inserted = insert.bind(backend.pack(insert, **points), 0, count)
        if cells.held is not None:
            if moving:
                inserted = cells.held.over_vertices(contact_insert(), **points)
            gather = cells.held.over_vertices(force, **forces)
        else:
            kernel = backend.load(force)
            gather = kernel.bind(backend.pack(kernel, **forces), 0, cells.vertex_count)
        return clear.bind(backend.pack(clear, head=head), 0, slots), inserted, gather
