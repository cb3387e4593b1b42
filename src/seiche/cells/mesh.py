# SPDX-License-Identifier: BSD-3-Clause
"""Closed triangle meshes of cells: refined icosahedra in the shapes of cells, meshes from files, and checks of meshes.

Lengths are in any consistent unit. A mesh is a `seiche.domain.surface.Surface` whose triangles face outwards.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seiche.domain.surface import Surface
from seiche.errors import CaseError, FormatError

Floats = npt.NDArray[np.float64]

#: Half thickness of a red cell, divided by R/2 sqrt(1 - x^2), in powers of x^2 with x = r/R (Evans, Fung 1972).
EVANS_FUNG = (0.207161, 2.002558, -1.122762)
#: Radius of that cell in micrometres: area 134.1 um^2, volume 94.1 um^3.
EVANS_FUNG_RADIUS = 3.91
#: Coordinate beyond which volumes overflow; minimum height of a triangle, divided by its longest edge.
MAX_COORDINATE, MIN_HEIGHT_RATIO = 1e60, 1e-6


def icosphere(vertices: int = 642) -> Surface:
    """Return a refined icosahedron on the unit sphere with 12, 42, 162, 642, 2562 or 10242 vertices.

    Consecutive vertices are mostly neighbours, for memory locality.

    Raises:
        CaseError: another number of vertices.
    """
    sizes = [10 * 4**level + 2 for level in range(6)]
    if vertices not in sizes:
        raise CaseError(f"mesh: {vertices} vertices: expected one of {', '.join(map(str, sizes))}")
    golden = (1 + 5**0.5) / 2
    points = np.array(
        [[s, t * golden, 0.0] for s in (-1, 1) for t in (-1, 1)]
        + [[0.0, s, t * golden] for s in (-1, 1) for t in (-1, 1)]
        + [[t * golden, 0.0, s] for s in (-1, 1) for t in (-1, 1)]
    )
    from scipy.spatial import ConvexHull

    faces = np.sort(ConvexHull(points).simplices.astype(np.int64), axis=1)
    faces = faces[np.lexsort(faces.T[::-1])]
    a, b, c = points[faces.T]
    flip = np.einsum("ij,ij->i", np.cross(b - a, c - a), a) < 0
    faces[flip] = faces[flip][:, [0, 2, 1]]
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    while len(points) < vertices:
        points, faces = _subdivided(points, faces)
        points /= np.linalg.norm(points, axis=1, keepdims=True)
    order = along_curve(points)
    return Surface(points[order], np.argsort(order)[faces].astype(np.int32))


def _subdivided(points: Floats, faces: npt.NDArray[np.int64]) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return the mesh with each triangle divided into four."""
    edges = np.sort(np.stack([faces, np.roll(faces, -1, axis=1)], axis=2).reshape(-1, 2), axis=1)
    unique, inverse = np.unique(edges, axis=0, return_inverse=True)
    middle = len(points) + inverse.reshape(-1, 3)
    a, b, c = faces.T
    ab, bc, ca = middle.T
    finer = np.stack([a, ab, ca, ab, b, bc, ca, bc, c, ab, bc, ca], axis=1).reshape(-1, 3)
    return np.concatenate([points, 0.5 * points[unique].sum(axis=1)]), finer


def biconcave(
    vertices: int = 642, radius: float = EVANS_FUNG_RADIUS, coefficients: Sequence[float] = EVANS_FUNG
) -> Surface:
    """Return a red cell around the z axis: z = +-(R/2) sqrt(1 - x^2)(c0 + c1 x^2 + c2 x^4), x = r/R.

    Raises:
        CaseError: a radius that is not positive, or a thickness that is not positive somewhere.
    """
    _check_positive("radius", [radius])
    squared = np.linspace(0, 1, 201)
    if len(coefficients) != 3 or min(np.polyval(coefficients[::-1], squared)) <= 0:
        raise CaseError(
            f"shape coefficients {tuple(coefficients)}: expected three numbers that give a positive thickness"
        )
    unit = icosphere(vertices)
    x, y, z = unit.vertices.T
    squared = x**2 + y**2
    thickness = np.polyval(list(coefficients)[::-1], squared)
    return Surface(radius * np.stack([x, y, 0.5 * z * thickness], axis=1), unit.faces)


def ellipsoid(half_axes: Sequence[float], vertices: int = 642) -> Surface:
    """Return an ellipsoid with three half axes; a sphere if they are equal."""
    _check_positive("half axes", half_axes)
    unit = icosphere(vertices)
    return Surface(unit.vertices * np.asarray(half_axes, float), unit.faces)


def _check_positive(name: str, values: Sequence[float]) -> None:
    if not all(np.isfinite(value) and value > 0 for value in values):
        raise CaseError(f"mesh: {name} {', '.join(f'{value:g}' for value in values)}: expected positive lengths")


def read_mesh(path: str | os.PathLike[str]) -> Surface:
    """Read the closed mesh of a cell from an .off, .stl or Gmsh 2 .msh file, in the unit of the file.

    Raises:
        CaseError: the mesh is open, inverted or not a single closed surface, or the suffix is unknown.
        FormatError: the file is invalid.
    """
    from seiche.io.formats.gmsh import read_gmsh
    from seiche.io.formats.off import read_off
    from seiche.io.formats.stl import read_stl

    readers = {".off": read_off, ".stl": read_stl, ".msh": read_gmsh}
    suffix = Path(path).suffix.lower()
    if suffix not in readers:
        raise CaseError(f"{path}: unknown format of a cell mesh; expected one of {', '.join(readers)}")
    surface = readers[suffix](path)
    if not np.isfinite(surface.vertices).all():
        raise FormatError(path, "whole file", "a coordinate is not finite")
    return checked(surface.outward(), str(path))


def checked(surface: Surface, name: str = "mesh") -> Surface:
    """Return `surface` if it is one closed surface whose triangles face outwards.

    Raises:
        CaseError: the surface is open or inverted, has several parts or touches itself, a vertex has too few
            neighbours, a triangle has no area, or a coordinate is too large.
    """
    faces = surface.faces.astype(np.int64)
    if not len(faces):
        raise CaseError(f"{name}: the mesh has no triangles")
    farthest = float(np.abs(surface.vertices).max())
    if not farthest < MAX_COORDINATE:
        raise CaseError(f"{name}: a coordinate is {farthest:.3g}; expected less than {MAX_COORDINATE:g}")
    edges = np.stack([faces, np.roll(faces, -1, axis=1)], axis=2).reshape(-1, 2)
    _, uses = np.unique(np.sort(edges, axis=1), axis=0, return_counts=True)
    if (uses != 2).any():
        count = int((uses == 1).sum()) or int((uses > 2).sum())
        defect = "the mesh is open" if (uses == 1).any() else "the mesh is not manifold"
        membership = "one triangle only" if (uses == 1).any() else "more than two triangles"
        raise CaseError(f"{name}: {defect}: {count} edges belong to {membership}")
    if len(np.unique(edges, axis=0)) != len(edges):
        raise CaseError(
            f"{name}: at {len(surface.orientation_conflicts())} edges the adjacent triangles have opposite orientations"
        )
    used_vertices, valence = np.unique(faces, return_counts=True)
    if len(used_vertices) != len(surface.vertices):
        raise CaseError(f"{name}: {len(surface.vertices) - len(used_vertices)} vertices belong to no triangle")
    if valence.min() < 3:
        raise CaseError(
            f"{name}: vertex {int(used_vertices[valence.argmin()])} has {valence.min()} neighbours; expected at least 3"
        )
    euler = len(surface.vertices) - len(uses) + len(faces)
    if euler != 2 or not _connected(edges, len(surface.vertices)):
        raise CaseError(
            f"{name}: the mesh is not one closed surface without holes (Euler characteristic {euler}, not 2)"
        )
    if surface.volume == 0:
        raise CaseError(f"{name}: the mesh is flat: it encloses no volume")
    if surface.volume <= 0:
        raise CaseError(f"{name}: the mesh is inside out (volume {surface.volume:.4g}); reverse its triangles")
    corners = surface.corners()
    max_squared_edge = ((corners - np.roll(corners, -1, axis=1)) ** 2).sum(axis=2).max(axis=1)
    is_thin = 2 * np.linalg.norm(surface.vector_areas(), axis=1) <= MIN_HEIGHT_RATIO * max_squared_edge
    if is_thin.any():
        raise CaseError(f"{name}: triangle {int(is_thin.argmax())} has zero area: its corners lie on a line")
    return surface


def _connected(edges: npt.NDArray[np.int64], count: int) -> bool:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(edges)), edges.T), (count, count))
    return int(connected_components(graph, directed=False, return_labels=False)) == 1


def mean_edge(surface: Surface) -> float:
    """Return the mean length of the edges."""
    corners = surface.corners()
    return float(np.linalg.norm(corners - np.roll(corners, -1, axis=1), axis=2).mean())


def reduced_volume(surface: Surface) -> float:
    """Return the volume relative to that of the sphere with the same area: 1 for a sphere, 0.644 for a red cell."""
    return float(6 * np.sqrt(np.pi) * surface.volume / surface.area**1.5)


def rings_of(faces: npt.NDArray[np.integer]) -> list[list[int]]:
    """Return the neighbours of each vertex of a closed mesh, counter-clockwise as seen from outside.

    Each list begins with the neighbour with the smallest index.
    """
    successors: list[dict[int, int]] = [{} for _ in range(int(faces.max()) + 1)]
    for a, b, c in faces.tolist():
        successors[a][b], successors[b][c], successors[c][a] = c, a, b
    rings = []
    for vertex, next_neighbour in enumerate(successors):
        ring = [min(next_neighbour)]
        while (following := next_neighbour[ring[-1]]) != ring[0] and len(ring) <= len(next_neighbour):
            ring.append(following)
        if len(ring) != len(next_neighbour):
            raise CaseError(f"mesh: the surface touches itself at vertex {vertex}")
        rings.append(ring)
    return rings


def along_curve(points: Floats) -> npt.NDArray[np.int64]:
    """Return the order of points (n, 3) along a Morton curve with 1024 boxes per axis."""
    extent = points.max(axis=0) - points.min(axis=0)
    boxes = ((points - points.min(axis=0)) / extent.max() * 1023).astype(np.int64)
    code = np.zeros(len(points), np.int64)
    for bit in range(10):
        for axis in range(3):
            code |= ((boxes[:, axis] >> bit) & 1) << (3 * bit + axis)
    return np.argsort(code, kind="stable")
