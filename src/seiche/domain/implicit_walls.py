# SPDX-License-Identifier: BSD-3-Clause
"""Walls given by distance functions: built-in shapes, evaluated by kernels, and any other function of points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from seiche.domain.candidates import TOUCH_TOLERANCE, CandidateNodes, Floats, WallHits
from seiche.domain.host_passes import offsets, run_pass
from seiche.domain.set_up_ranks import own_share
from seiche.domain.site_rows import Indices, SiteRows, Triple, joined_rows, rows_of
from seiche.domain.sites import LINK_VECTORS
from seiche.kernels.registry import sites as registry

#: Distance (p,) in metres of points (p, 3) from the wall, negative in the fluid; only its zero level must be exact.
Distance = Callable[[Floats], Floats]
#: Links per evaluation of a distance; bounds the memory.
CHUNK = 1 << 19
_ROOT_STEPS = 60


@dataclass(frozen=True)
class ShapeEnds:
    """The region between the ends of a vessel: `axis` (3,) is a unit vector, `length` in metres; a `Distance`."""

    axis: Floats
    length: float

    def __call__(self, points: Floats) -> Floats:
        """Return by how much points (p, 3) are beyond the ends, negative between them."""
        x, y, z = self.axis
        axial = points[:, 0] * x + points[:, 1] * y + points[:, 2] * z
        return np.asarray(np.maximum(-axial, axial - self.length))


@dataclass(frozen=True)
class ShapeWall:
    """The wall of a built-in shape (`kernels/sites/shapes.hpp`): name and members of its kernel; a `Distance`."""

    name: registry.WallName
    members: dict[str, Any]

    @staticmethod
    def round_tube(axis: Floats, radius: float) -> ShapeWall:
        """Return the wall of a round tube about an `axis` (unit vector) through the origin."""
        return ShapeWall("RoundTube", {"axis": tuple(axis.tolist()), "radius": radius})

    @staticmethod
    def plates(center: tuple[float, float], half: tuple[float, float]) -> ShapeWall:
        """Return plates normal to y and to z, at `half` from `center`; an infinite half omits a pair."""
        return ShapeWall("Plates", {"center": center, "half": half})

    def __call__(self, points: Floats) -> Floats:
        """Return the distances (p,) of points (p, 3)."""
        out, spec = np.empty(len(points)), registry.wall_distance(self.name)
        run_pass(spec, len(points), wall=self.members, points=np.ascontiguousarray(points), out=out)
        return out

    def fluid_rows(
        self,
        shape: Triple,
        periodic: tuple[bool, bool, bool],
        origin: tuple[float, float, float],
        spacing: float,
        ends: ShapeEnds | None,
    ) -> SiteRows:
        """Return the nodes of the box inside the wall and between the ends (collective)."""
        region: dict[str, Any] = {"axis": (0.0, 0.0, 0.0), "length": 0.0, "bounded": 0}
        if ends is not None:
            region = {"axis": tuple(ends.axis.tolist()), "length": ends.length, "bounded": 1}
        common = {
            "grid": {"origin": origin, "spacing": spacing, "shape": shape},
            **{"wall": self.members, "ends": region, "tolerance": TOUCH_TOLERANCE * spacing},
        }
        layers = own_share(shape[0])
        rows = range(layers.start * shape[1], layers.stop * shape[1])
        counts, none = np.zeros(shape[0] * shape[1], np.int32), {"begin": None, "end": None}
        run_pass(registry.fluid_runs(self.name, fill=False), rows, first=None, counts=counts, **none, **common)
        first = offsets(counts)
        begin, end = np.empty(first[-1], np.int32), np.empty(first[-1], np.int32)
        spec = registry.fluid_runs(self.name, fill=True)
        run_pass(spec, rows, first=first, counts=None, begin=begin, end=end, **common)
        return joined_rows(rows_of(shape, periodic, first, begin, end))

    def roots(self, lattice: CandidateNodes, node: Indices, direction: Indices) -> tuple[Floats, Floats]:
        """Return fractions (p,) and normals (p, 3) of the links from the ascending `node` (p,) along `direction`."""
        fraction, normal = np.empty(len(node)), np.empty((len(node), 3))
        coords, row = lattice.coords_at(node)
        run_pass(
            registry.wall_roots(self.name), len(node), wall=self.members, origin=lattice.origin,
            spacing=lattice.spacing, coords=coords, node=row, direction=direction, fraction=fraction, normal=normal,
        )  # fmt: skip
        return fraction, normal


@dataclass(frozen=True)
class ImplicitWall:
    """The zero surface of a distance function, as a wall for `assemble`."""

    distance: Distance
    spacing: float

    def find(self, lattice: CandidateNodes, node: Indices, direction: Indices) -> WallHits:
        """Return the wall hits of the links from the ascending nodes `node` (p,) along `direction` (p,)."""
        iolet = np.full(len(node), -1, np.int16)
        if isinstance(self.distance, ShapeWall):
            return WallHits(*self.distance.roots(lattice, node, direction), iolet)
        fraction = np.empty(len(node))
        normal = np.empty((len(node), 3))
        coords, row = lattice.coords_at(node)
        for begin in range(0, len(node), CHUNK):
            rows = slice(begin, begin + CHUNK)
            starts = lattice.positions_of(coords[row[rows]])
            vectors = self.spacing * LINK_VECTORS[direction[rows]].astype(np.float64)
            fraction[rows] = self._roots(starts, vectors)
            normal[rows] = self._gradient(starts + np.nan_to_num(fraction[rows])[:, None] * vectors)
        return WallHits(fraction, normal, iolet)

    def _roots(self, starts: Floats, vectors: Floats) -> Floats:
        """Find the root of the distance on each segment by the Illinois method (regula falsi); NaN without a root."""
        lower, upper = np.zeros(len(starts)), np.ones(len(starts))
        below, above = self.distance(starts), self.distance(starts + vectors)
        fraction = np.full(len(starts), np.nan)
        active = np.flatnonzero(above >= 0.0)
        lower, upper, below, above = lower[active], upper[active], below[active], above[active]
        for _ in range(_ROOT_STEPS):
            if not len(active):
                break
            guess = np.clip(lower - below * (upper - lower) / np.where(above > below, above - below, 1.0), lower, upper)
            value = self.distance(starts[active] + guess[:, None] * vectors[active])
            fraction[active] = guess
            inside = value < 0.0
            above = np.where(inside, above * np.where(lower > 0.0, 0.5, 1.0), value)
            below = np.where(inside, value, below * np.where(upper < 1.0, 0.5, 1.0))
            lower, upper = np.where(inside, guess, lower), np.where(inside, upper, guess)
            pending = (np.abs(value) > 1e-10 * self.spacing) & (upper - lower > 1e-10)
            active, lower, upper = active[pending], lower[pending], upper[pending]
            below, above = below[pending], above[pending]
        return fraction

    def _gradient(self, points: Floats) -> Floats:
        """Return the unit gradient of the distance at `points` (p, 3), by central differences."""
        shifts = 1e-3 * self.spacing * np.eye(3)
        gradient = np.stack([self.distance(points + s) - self.distance(points - s) for s in shifts], axis=1)
        length = np.linalg.norm(gradient, axis=1, keepdims=True)
        return np.asarray(gradient / np.where(length > 0.0, length, 1.0))
