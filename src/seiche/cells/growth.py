# SPDX-License-Identifier: BSD-3-Clause
"""Packing of rigid cells that grow from a small size and push each other apart (theory/cells, eq. 12)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.backend.arrays import argument_dtype
from seiche.cells.neighbors import neighbor_pairs, spread_points
from seiche.cells.overlap import Packing, overlapping_pairs, placed
from seiche.cells.vessels import Vessel, signed_distance
from seiche.domain.surface import Surface
from seiche.errors import CaseError
from seiche.kernels.registry.membrane import RIGID_KIND, pack_push

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: Number of contact points on a cell, and of nodes of the distance lattice along the longest axis of a cell or a
#: vessel.
_POINTS, _NODES, _WALL_NODES = 320, 48, 96
#: Maximum number of nodes of the distance lattice of a vessel.
_MAX_WALL_NODES = 2_000_000
#: Initial size, at which cells are rarely interlocked, and growth factor.
_INITIAL_SCALE, _GROWTH = 0.05, 1.02
#: Maximum number of pushes between two growths, and at full size.
_PUSHES, _LAST_PUSHES = 30, 2000
#: Random moves of cells at full size: interval in pushes, displacement in smallest radii, and rotation in radians.
_SHAKE_INTERVAL, _SHAKE_DISTANCE, _SHAKE_ANGLE = 250, 0.05, 0.1


def lengths_of(vessel: Vessel) -> Floats:
    """Return the period along each axis; 0 along axes that are not periodic."""
    return np.where(vessel.periodic, vessel.high - vessel.low, 0.0)


def centered(surface: Surface) -> Floats:
    """Return the vertices relative to their mean."""
    points: Floats = surface.vertices - surface.vertices.mean(axis=0)
    return points


def radius_of(surface: Surface) -> float:
    """Return the maximum distance of a vertex from the mean of the vertices."""
    return float(np.linalg.norm(centered(surface), axis=1).max())


def _wall_nodes(extent: Floats, radius: float) -> int:
    """Return the number of nodes along the longest side, which resolve the radius of a cell also in a long vessel."""
    spacing = min(max(float(extent.max()) / (_WALL_NODES - 1), 0.1 * radius), 0.2 * radius)
    spacing = max(spacing, float(np.prod(extent) / _MAX_WALL_NODES) ** (1 / 3))
    return max(int(np.ceil(float(extent.max()) / spacing)) + 1, 2)


class Growth:
    """Cells that grow and push each other."""

    def __init__(
        self,
        vessel: Vessel,
        surfaces: Sequence[Surface],
        kinds: npt.NDArray[Any],
        gap: float,
        *,
        seed: int | Sequence[int],
        backend: Backend,
        start: Packing | None = None,
    ) -> None:
        """Place cells of the `kinds` at random in the vessel, or as in `start`."""
        from scipy.spatial.transform import Rotation

        self.vessel, self.surfaces, self.gap, self.backend = vessel, surfaces, gap, backend
        self.random = np.random.default_rng(seed)
        self.lengths = lengths_of(vessel)
        if start is None:
            self.kinds = self.random.permutation(np.asarray(kinds, np.int64))
            self.centers = self._random_points(len(self.kinds))
            self.turns = Rotation.random(len(self.kinds), rng=self.random)
        else:
            self.kinds, self.centers, self.turns = start.kinds, start.centers, Rotation.from_matrix(start.rotations)
        self.radii = np.array([np.linalg.norm(centered(surface), axis=1).max() for surface in surfaces])
        self._nodes: list[Floats] = []
        self._prepare()
        self.neighbors_at = self.centers
        self.neighbors_scale = 0.0
        self._lists: tuple[Array, Array, Array]

    def _random_points(self, count: int) -> Floats:
        """Return random points (count, 3) inside the vessel."""
        inside: list[Floats] = []
        extent = self.vessel.high - self.vessel.low
        while sum(map(len, inside)) < count:
            points = self.vessel.low + extent * self.random.random((4 * count + 64, 3))
            inside.append(points[self.vessel.distance(points) < 0])
        return np.concatenate(inside)[:count]

    def _grid(self, low: Floats, high: Floats, nodes: int, surface: Surface | None) -> dict[str, Any]:
        """Sample distances from a surface or from the wall; return the members of the grid."""
        spacing = float((high - low).max()) / (nodes - 1)
        shape = np.maximum(np.ceil((high - low) / spacing).astype(int) + 1, 2)
        lattice = low + spacing * np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1).reshape(-1, 3)
        values = self.vessel.distance(lattice) if surface is None else signed_distance(surface, lattice)
        first = sum(map(len, self._nodes))
        self._nodes.append(values)
        x, y, z = low.tolist()
        return {"origin": {"x": x, "y": y, "z": z}, "spacing": spacing, "first": first, "shape": (*shape.tolist(), 0)}

    def _prepare(self) -> None:
        """Create the grids and points on the device."""
        rows = np.zeros(len(self.surfaces), argument_dtype(RIGID_KIND))
        points: list[Floats] = []
        margin = 3 * self.gap
        for row, surface in zip(rows, self.surfaces, strict=True):
            body = Surface(centered(surface), surface.faces)
            grid = self._grid(body.vertices.min(axis=0) - margin, body.vertices.max(axis=0) + margin, _NODES, body)
            for name in ("spacing", "first", "shape"):
                row["grid"][name] = grid[name]
            row["grid"]["origin"] = tuple(grid["origin"].values())
            sample = spread_points(np.concatenate([body.vertices, body.corners()[:, :2].mean(axis=1)]), _POINTS)
            row["first_point"], row["points"] = sum(map(len, points)), len(sample)
            row["radius"] = np.linalg.norm(body.vertices, axis=1).max()
            points.append(sample)
        self.wall: dict[str, Any] = {
            "origin": {"x": 0.0, "y": 0.0, "z": 0.0},
            "spacing": 0.0,
            "first": 0,
            "shape": (2, 2, 2, 0),
        }
        if not all(self.vessel.periodic):
            margin = float(self.radii.max())
            low, high = self.vessel.low - margin, self.vessel.high + margin
            self.wall = self._grid(low, high, _wall_nodes(high - low, float(self.radii.min())), None)
        upload = self.backend.upload
        self.kind_rows = upload(rows.view(np.uint8))
        self.points, self.nodes = upload(np.concatenate(points)), upload(np.concatenate(self._nodes))
        self.kind = upload(self.kinds.astype(np.uint16))
        self.out = self.backend.zeros((len(self.kinds), 10), np.float64)
        self.kernel = self.backend.load(pack_push())

    def packed(self, initial_scale: float = _INITIAL_SCALE) -> Packing:
        """Grow the cells from a fraction of their size to full size and return their packing.

        Raises:
            CaseError: overlaps remain.
        """
        scale = initial_scale
        while scale < 1.0:
            for _ in range(_PUSHES):
                if self.push(scale) <= 0.5 * self.gap:
                    break
            scale = min(1.0, scale * _GROWTH)
        gap = self.gap
        for number in range(_LAST_PUSHES):
            if number % _SHAKE_INTERVAL == _SHAKE_INTERVAL - 1:
                self._shake()
            depth = self.push(1.0)
            if depth <= 0.5 * self.gap:
                packing = self.packing()
                if self._lift_wall(packing):
                    continue
                if not len(overlapping_pairs(self.surfaces, packing, self.lengths, 0.0)):
                    return packing
                if self.gap > 3 * gap:
                    break
                self.gap *= 1.2  # edges may intersect between the contact points
        overlap = max(depth - self.gap, 0.0) / float(self.radii.min())
        raise CaseError(
            f"hematocrit = {self.packing().hematocrit:.3f}: {len(self.kinds)} cells cannot be packed without "
            f"overlaps (some still overlap by {overlap:.0%} of their radius); use a lower hematocrit or a smaller "
            "gap"
        )

    def _shake(self) -> None:
        """Move and rotate all cells slightly at random, to free jammed cells."""
        from scipy.spatial.transform import Rotation

        kicks = self.random.normal(size=(2, len(self.centers), 3))
        self.centers = self._wrapped(self.centers + _SHAKE_DISTANCE * self.radii.min() * kicks[0])
        self.turns = Rotation.from_rotvec(_SHAKE_ANGLE * kicks[1]) * self.turns

    def packing(self) -> Packing:
        """Return the present packing."""
        volumes = np.array([surface.volume for surface in self.surfaces])[self.kinds]
        hematocrit = float(volumes.sum()) / self.vessel.volume
        return Packing(self.centers.copy(), self.turns.as_matrix(), self.kinds, hematocrit)

    def _lift_wall(self, packing: Packing) -> bool:
        """Return whether a vertex is outside; increase the distances on the wall lattice around such vertices.

        Vertices may be outside since interpolation smooths the ridge between two branches, and only some vertices are
        contact points.
        """
        vertices = [np.zeros((0, 3))]
        for kind, surface in enumerate(self.surfaces):
            centers, rotations = packing.of_kind(kind)
            points = placed(centered(surface), centers, rotations)
            vertices.append(points.reshape(-1, 3))
        wall_points = np.concatenate(vertices)
        distance = self.vessel.distance(wall_points)
        if (distance < 0).all():
            return False
        if self.wall["spacing"]:
            near_wall = distance > -self.wall["spacing"]
            self._lift(wall_points[near_wall], distance[near_wall])
        return True

    def _lift(self, points: Floats, distance: Floats) -> None:
        """Increase the distances at wall nodes around points (n, 3) to the exact distances (n,), and more outside."""
        from scipy.ndimage import map_coordinates

        values = self._nodes[-1].reshape(self.wall["shape"][:3])
        node_coordinates = (points - list(self.wall["origin"].values())) / self.wall["spacing"]
        error = distance - map_coordinates(values, node_coordinates.T, order=1, mode="nearest")
        error = np.where(distance >= 0, np.maximum(error, distance + 0.1 * self.gap), error)
        low = np.clip(np.floor(node_coordinates).astype(np.int64), 0, np.array(values.shape) - 2)
        increase = np.zeros_like(values)
        for corner in np.ndindex(2, 2, 2):
            np.maximum.at(increase, tuple((low + corner).T), error)
        self._nodes[-1] = (values + increase).reshape(-1)
        self.nodes = self.backend.upload(np.concatenate(self._nodes))

    def push(self, scale: float) -> float:
        """Move and rotate each cell away from its overlaps at size `scale`; return the largest previous overlap."""
        from scipy.spatial.transform import Rotation

        first, neighbors, shifts = self._neighbors(scale)
        upload = self.backend.upload
        arrays = {"centers": upload(self.centers), "rotations": upload(self.turns.as_matrix().reshape(-1, 9))}
        arrays |= {"first": first, "neighbors": neighbors, "shifts": shifts, "kind": self.kind, "out": self.out}
        arrays |= {"kinds": self.kind_rows, "points": self.points, "nodes": self.nodes}
        packed = self.backend.pack(self.kernel, **arrays, wall=self.wall, scale=scale, gap=self.gap)
        self.kernel.bind(packed, 0, len(self.centers))()
        out = self.backend.download(self.out)
        contacts, levers = np.maximum(out[:, 6:7], 1.0), np.maximum(out[:, 7:8], 1e-300)
        step = out[:, :3] / contacts * np.minimum(contacts, 3.0)
        limit = 0.1 * self.radii.min()
        step *= np.minimum(1.0, limit / np.maximum(np.linalg.norm(step, axis=1, keepdims=True), 1e-300))
        turn = 1.5 * out[:, 3:6] / levers
        turn *= np.minimum(1.0, 0.2 / np.maximum(np.linalg.norm(turn, axis=1, keepdims=True), 1e-300))
        self.centers = self._wrapped(self.centers + step)
        self.turns = Rotation.from_rotvec(turn) * self.turns
        return float(out[:, 8].max())

    def _wrapped(self, centers: Floats) -> Floats:
        """Return the centers moved into the box of the vessel along periodic axes."""
        for axis in np.flatnonzero(self.lengths):
            centers[:, axis] = self.vessel.low[axis] + (centers[:, axis] - self.vessel.low[axis]) % self.lengths[axis]
        return centers

    def _neighbors(self, scale: float) -> tuple[Array, Array, Array]:
        """Return the lists of cells that may touch, which are rebuilt when cells have moved or grown."""
        skin = 0.15 * float(self.radii.max())
        moved = self.centers - self.neighbors_at
        moved -= np.where(self.lengths > 0, self.lengths * np.round(moved / np.maximum(self.lengths, 1e-300)), 0.0)
        wrapped = self.neighbors_scale > 0 and np.abs(self.centers - self.neighbors_at - moved).max() > 0
        if scale == self.neighbors_scale and not wrapped and np.linalg.norm(moved, axis=1).max() < 0.5 * skin:
            return self._lists
        reach = 2 * (scale * float(self.radii.max())) + self.gap + skin
        pairs, shift = neighbor_pairs(self.centers - self.vessel.low, self.lengths, reach)
        order = np.argsort(pairs[:, 0], kind="stable")
        first = np.searchsorted(pairs[order, 0], np.arange(len(self.centers) + 1))
        upload = self.backend.upload
        self._lists = (
            upload(first.astype(np.int32)),
            upload(np.append(pairs[order, 1], 0).astype(np.int32)),
            upload(np.concatenate([shift[order], np.zeros((1, 3))])),
        )
        self.neighbors_at, self.neighbors_scale = self.centers.copy(), scale
        return self._lists
