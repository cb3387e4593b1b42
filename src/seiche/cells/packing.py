# SPDX-License-Identifier: BSD-3-Clause
"""Dense random packings of undeformed cells: they grow from small ones and push each other apart (eq. 12).

A large vessel is filled with copies of a packed periodic tile; cells that meet the wall are left out, and others at
random until the hematocrit is the wanted one (Ames et al. 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend, open_backend
from seiche.backend.base import argument_dtype
from seiche.cells.neighbors import neighbor_pairs, spread_points
from seiche.cells.overlap import overlapping_pairs
from seiche.cells.vessels import Box, Vessel, refuse_tight, signed_distance
from seiche.domain.surface import Surface
from seiche.errors import CaseError
from seiche.kernels.registry.membrane import RIGID_KIND, pack_push

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: Random packings of bodies as flat as red cells end about here.
HIGHEST_HEMATOCRIT = 0.6
#: More cells than this are put in place as copies of a tile of about TILE_CELLS at TILE_HEMATOCRIT.
LARGEST_GROWN, TILE_CELLS, TILE_HEMATOCRIT = 2000, 216, 0.5
#: Points on a cell that feel others, and nodes of a distance lattice along the longest axis of a cell or a vessel.
_POINTS, _NODES, _WALL_NODES = 320, 48, 96
#: Most nodes of the distance lattice of a vessel.
_MOST_WALL_NODES = 2_000_000
#: Size at which cells begin to grow (so small that hardly any two are linked like the rings of a chain), and the
#: growth of a step.
_SMALLEST, _GROWTH = 0.05, 1.02
#: Pushes between growths, and at the full size before it is given up.
_PUSHES, _LAST_PUSHES = 30, 2000


@dataclass(frozen=True, eq=False)
class Packing:
    """Where cells are: `centers` (n, 3), `rotations` (n, 3, 3) from their own frames, `kinds` (n,) their types.

    A center is where the mean of the vertices of the type's mesh goes. `hematocrit` is what was reached, by the volumes
    of the meshes.
    """

    centers: Floats
    rotations: Floats
    kinds: Integers
    hematocrit: float

    def of_kind(self, kind: int) -> tuple[Floats, Floats]:
        """Return centers and rotations of the cells of one type."""
        chosen = self.kinds == kind
        return self.centers[chosen], self.rotations[chosen]

    def taken(self, chosen: npt.NDArray[Any], hematocrit: float) -> Packing:
        """Return the packing of some of the cells."""
        return Packing(self.centers[chosen], self.rotations[chosen], self.kinds[chosen], hematocrit)


def pack(
    vessel: Vessel,
    surfaces: Sequence[Surface],
    hematocrit: float,
    *,
    shares: Sequence[float] | None = None,
    gap: float | None = None,
    seed: int = 0,
    backend: Backend | None = None,
) -> Packing:
    """Pack undeformed cells, the shapes `surfaces` of their types, into a vessel up to a hematocrit.

    Args:
        vessel: the space.
        surfaces: closed meshes, one a type.
        hematocrit: the wanted volume of the cells over that of the vessel.
        shares: number of cells of each type over that of all; equal by default.
        gap: distance that cells keep from each other and from walls; 2 % of the largest radius by default.
        seed: of the random places.
        backend: where the pushing is computed; the CPU by default.

    Returns:
        A packing without any overlap.

    Raises:
        CaseError: a hematocrit that cannot be reached, a cell that is larger than the vessel, a broken mesh.
    """
    refuse_tight(vessel, surfaces)
    if not 0 < hematocrit <= HIGHEST_HEMATOCRIT:
        raise CaseError(f"hematocrit = {hematocrit:g}: a number above 0 and up to {HIGHEST_HEMATOCRIT:g} is expected")
    part = np.asarray(shares if shares is not None else np.ones(len(surfaces)), np.float64)
    if len(part) != len(surfaces) or not (np.isfinite(part) & (part >= 0)).all() or part.sum() <= 0:
        raise CaseError(f"shares {part.tolist()}: a share of the cells for each of {len(surfaces)} types is expected")
    part = part / part.sum()
    volumes = np.array([surface.volume for surface in surfaces])
    counts = cell_counts(vessel.volume, volumes, part, hematocrit)
    count = int(counts.sum())
    if count < 1:
        raise CaseError(f"hematocrit = {hematocrit:g}: less than one cell in a vessel of volume {vessel.volume:.4g}")
    radius = max(float(np.linalg.norm(_centered(surface), axis=1).max()) for surface in surfaces)
    keep = 0.02 * radius if gap is None else gap
    device = backend or open_backend("cpu")
    if count <= LARGEST_GROWN:
        kinds = np.repeat(np.arange(len(surfaces)), counts)
        return _Growth(vessel, surfaces, kinds, keep, seed, device).packed()
    edge = float((TILE_CELLS * (part @ volumes) / TILE_HEMATOCRIT) ** (1 / 3))
    extent = vessel.high - vessel.low
    fitting = extent / np.maximum(np.round(extent / edge), 1)
    tile = Box(tuple(np.where(vessel.periodic, fitting, edge).tolist()))
    packed = pack(tile, surfaces, TILE_HEMATOCRIT, shares=part.tolist(), gap=keep, seed=seed, backend=device)
    return fill(vessel, surfaces, tile, packed, hematocrit, gap=keep, seed=seed)


def fill(
    vessel: Vessel,
    surfaces: Sequence[Surface],
    tile: Box,
    packed: Packing,
    hematocrit: float,
    *,
    gap: float,
    seed: int = 0,
) -> Packing:
    """Fill a vessel with copies of a packed periodic tile and remove cells at random down to a hematocrit.

    Cells that come closer to a wall than `gap` are left out; where the vessel repeats itself after another length than
    a whole number of tiles, so are those that would overlap.

    Raises:
        CaseError: what is left is less than was wanted.
    """
    extent = vessel.high - vessel.low
    copies = np.ceil(extent / tile.high - 1e-9).astype(int)
    seam = np.array(vessel.periodic) & (np.abs(copies * tile.high - extent) > 1e-9 * extent)
    shifts = np.stack(np.meshgrid(*map(np.arange, copies), indexing="ij"), axis=-1).reshape(-1, 3) * tile.high
    centers = (packed.centers[None] + shifts[:, None] + vessel.low).reshape(-1, 3)
    every = Packing(
        centers,
        np.tile(packed.rotations, (len(shifts), 1, 1)),
        np.tile(packed.kinds, len(shifts)),
        packed.hematocrit,
    )
    keep = np.ones(len(centers), bool)
    for kind, surface in enumerate(surfaces):
        rows = np.flatnonzero(every.kinds == kind)
        points = _centered(surface)
        places = np.einsum("nij,pj->npi", every.rotations[rows], points) + centers[rows][:, None]
        nearest = vessel.distance(places.reshape(-1, 3)).reshape(len(rows), -1).max(axis=1)
        crosses = ((places > vessel.high) & seam).any(axis=(1, 2))
        keep[rows[(nearest > -gap) | crosses]] = False
    kept = every.taken(np.flatnonzero(keep), 0.0)
    clashes = overlapping_pairs(surfaces, kept, _lengths(vessel))
    chosen = np.setdiff1d(np.arange(len(kept.centers)), clashes[:, 0])
    volumes = np.array([surface.volume for surface in surfaces])[kept.kinds]
    order = np.random.default_rng(seed).permutation(chosen)
    total = np.cumsum(volumes[order]) / vessel.volume
    reached = float(total[-1]) if len(total) else 0.0
    wanted = int(np.searchsorted(total, hematocrit * (1 + 1e-9)))
    half = 0.5 * float(volumes.mean()) / vessel.volume if len(volumes) else 0.0
    if reached < hematocrit - half:
        raise CaseError(f"hematocrit = {hematocrit:g}: copies of a tile fill the vessel up to {reached:.3f} only")
    if wanted < len(total) and total[wanted] - hematocrit <= half:
        wanted += 1
    return kept.taken(np.sort(order[:wanted]), float(total[wanted - 1]) if wanted else 0.0)


def _lengths(vessel: Vessel) -> Floats:
    """Return the period along each axis, 0 where there is none."""
    return np.where(vessel.periodic, vessel.high - vessel.low, 0.0)


def _centered(surface: Surface) -> Floats:
    points: Floats = surface.vertices - surface.vertices.mean(axis=0)
    return points


def cell_counts(volume: float, volumes: Floats, part: Floats, hematocrit: float) -> Integers:
    """Return how many cells of each type, of the `volumes` (types,), a vessel of this `volume` gets.

    Their sum is that which comes closest to the hematocrit, their `part` (types,) of all as good as whole numbers can.
    """
    count = round(hematocrit * volume / float(part @ volumes))
    exact = part * count
    whole = np.floor(exact).astype(np.int64)
    whole[np.argsort(whole - exact, kind="stable")[: count - whole.sum()]] += 1
    return whole


def _wall_nodes(extent: Floats, radius: float) -> int:
    """Return the nodes along the longest side: some for each radius of a cell, in a long thin vessel, too."""
    spacing = min(max(float(extent.max()) / (_WALL_NODES - 1), 0.1 * radius), 0.2 * radius)
    spacing = max(spacing, float(np.prod(extent) / _MOST_WALL_NODES) ** (1 / 3))
    return max(int(np.ceil(float(extent.max()) / spacing)) + 1, 2)


class _Growth:
    """Cells that grow and push each other."""

    def __init__(
        self,
        vessel: Vessel,
        surfaces: Sequence[Surface],
        kinds: npt.NDArray[Any],
        gap: float,
        seed: int,
        backend: Backend,
    ) -> None:
        from scipy.spatial.transform import Rotation

        self.vessel, self.surfaces, self.gap, self.backend = vessel, surfaces, gap, backend
        self.random = np.random.default_rng(seed)
        self.kinds = self.random.permutation(np.asarray(kinds, np.int64))
        self.lengths = _lengths(vessel)
        self.centers = self._places(len(self.kinds))
        self.turns = Rotation.random(len(self.kinds), rng=self.random)
        self.radii = np.array([np.linalg.norm(_centered(surface), axis=1).max() for surface in surfaces])
        self._nodes: list[Floats] = []
        self._prepare()
        self.neighbors_at = self.centers
        self.neighbors_scale = 0.0
        self._lists: tuple[Array, Array, Array]

    def _places(self, count: int) -> Floats:
        """Return random places (count, 3) that lie inside, deep where the vessel is wide."""
        found: list[Floats] = []
        extent = self.vessel.high - self.vessel.low
        while sum(map(len, found)) < count:
            points = self.vessel.low + extent * self.random.random((4 * count + 64, 3))
            found.append(points[self.vessel.distance(points) < 0])
        return np.concatenate(found)[:count]

    def _grid(self, low: Floats, high: Floats, nodes: int, surface: Surface | None) -> dict[str, Any]:
        """Sample distances from a surface, or from the wall, and return the members of the grid."""
        spacing = float((high - low).max()) / (nodes - 1)
        shape = np.maximum(np.ceil((high - low) / spacing).astype(int) + 1, 2)
        lattice = low + spacing * np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1).reshape(-1, 3)
        values = self.vessel.distance(lattice) if surface is None else signed_distance(surface, lattice)
        first = sum(map(len, self._nodes))
        self._nodes.append(values)
        x, y, z = low.tolist()
        shown = (*shape.tolist(), 0)
        return {"origin": {"x": x, "y": y, "z": z}, "spacing": spacing, "first": first, "shape": shown}

    def _prepare(self) -> None:
        """Make the grids and points, and put them on the device."""
        rows = np.zeros(len(self.surfaces), argument_dtype(RIGID_KIND))
        points: list[Floats] = []
        margin = 3 * self.gap
        for row, surface in zip(rows, self.surfaces, strict=True):
            body = Surface(_centered(surface), surface.faces)
            grid = self._grid(body.vertices.min(axis=0) - margin, body.vertices.max(axis=0) + margin, _NODES, body)
            for name in ("spacing", "first", "shape"):
                row["grid"][name] = grid[name]
            row["grid"]["origin"] = tuple(grid["origin"].values())
            sample = spread_points(np.concatenate([body.vertices, body.corners()[:, :2].mean(axis=1)]), _POINTS)
            row["first_point"], row["points"] = sum(map(len, points)), len(sample)
            row["radius"] = np.linalg.norm(body.vertices, axis=1).max()
            points.append(sample)
        none = {"origin": {"x": 0.0, "y": 0.0, "z": 0.0}, "spacing": 0.0, "first": 0, "shape": (2, 2, 2, 0)}
        self.wall = none
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

    def packed(self) -> Packing:
        """Grow the cells to their full size and return where they then are.

        Raises:
            CaseError: they cannot get rid of their overlaps.
        """
        scale = _SMALLEST
        while scale < 1.0:
            for _ in range(_PUSHES):
                if self.push(scale) <= 0.5 * self.gap:
                    break
            scale = min(1.0, scale * _GROWTH)
        wanted = self.gap
        for _ in range(_LAST_PUSHES):
            depth = self.push(1.0)
            if depth <= 0.5 * self.gap:
                packing = self.packing()
                if not len(overlapping_pairs(self.surfaces, packing, self.lengths, 0.0)) and self._inside(packing):
                    return packing
                if self.gap > 3 * wanted:
                    break
                self.gap *= 1.2  # edges may touch between the points
        raise CaseError(
            f"hematocrit = {self.packing().hematocrit:.3f}: {len(self.kinds)} cells cannot be packed without overlaps"
            f" (cells still overlap by {max(depth - self.gap, 0.0):.3g}): a lower hematocrit or a smaller gap is needed"
        )

    def packing(self) -> Packing:
        """Return where the cells are now."""
        volumes = np.array([surface.volume for surface in self.surfaces])[self.kinds]
        return Packing(
            self.centers.copy(), self.turns.as_matrix(), self.kinds, float(volumes.sum()) / self.vessel.volume
        )

    def _inside(self, packing: Packing) -> bool:
        """Tell whether every vertex is inside the vessel."""
        for kind, surface in enumerate(self.surfaces):
            centers, rotations = packing.of_kind(kind)
            places = np.einsum("nij,pj->npi", rotations, _centered(surface)) + centers[:, None]
            if not (self.vessel.distance(places.reshape(-1, 3)) < 0).all():
                return False
        return True

    def push(self, scale: float) -> float:
        """Move and turn every cell away from what it meets at this size; return the greatest depth before."""
        from scipy.spatial.transform import Rotation

        first, neighbors, shifts = self._neighbors(scale)
        upload = self.backend.upload
        arrays = {
            "centers": upload(self.centers),
            "rotations": upload(self.turns.as_matrix().reshape(-1, 9)),
            "first": first,
            "neighbors": neighbors,
            "shifts": shifts,
        }
        fixed = {
            "kind": self.kind,
            "kinds": self.kind_rows,
            "points": self.points,
            "nodes": self.nodes,
            "out": self.out,
        }
        packed = self.backend.pack(self.kernel, **arrays, **fixed, wall=self.wall, scale=scale, gap=self.gap)
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
        """Return centers inside the vessel's box along the axes that repeat."""
        for axis in np.flatnonzero(self.lengths):
            centers[:, axis] = self.vessel.low[axis] + (centers[:, axis] - self.vessel.low[axis]) % self.lengths[axis]
        return centers

    def _neighbors(self, scale: float) -> tuple[Array, Array, Array]:
        """Return the lists of cells that may touch; they are made anew when cells have moved or grown."""
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
