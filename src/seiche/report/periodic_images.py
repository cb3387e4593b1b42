# SPDX-License-Identifier: BSD-3-Clause
"""Images of bodies that extend beyond the ends of a periodic box, for pictures."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.io.surface_file import CellSurfaces

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer[Any]]

#: Distance of a point from the end plane in which it lies, at most, as a fraction of the period.
_END = 1e-5


def image_shifts(lower: Floats, upper: Floats, box: Floats) -> tuple[Integers, Floats]:
    """Return the bodies (m,) and shifts (m, 3) of all images that overlap a box, the bodies themselves first.

    `lower` and `upper` (n, 3) bound each body; `box` (2, 3) has infinite sides along axes that are not periodic.
    """
    sides = box[1] - box[0]
    periodic = np.isfinite(sides)
    period = np.where(periodic, sides, 0.0)
    bodies, shifts = [np.arange(len(lower))], [np.zeros((len(lower), 3))]
    for step in product(*((0, -1, 1) if along else (0,) for along in periodic)):
        if any(step):
            shift = np.array(step) * period
            inside = ((lower + shift < box[1]) & (upper + shift > box[0])).all(axis=1)
            bodies.append(np.flatnonzero(inside))
            shifts.append(np.tile(shift, (int(inside.sum()), 1)))
    return np.concatenate(bodies), np.concatenate(shifts)


def in_an_end(corners: Floats, box: Floats) -> npt.NDArray[np.bool_]:
    """Return flags of the polygons (n, k, 3) that lie in an end plane of a box (2, 3)."""
    sides = box[1] - box[0]
    tolerance = _END * np.where(np.isfinite(sides), sides, 0.0)
    near = np.abs(corners[:, :, None, :] - box) <= tolerance
    return np.asarray(near.all(axis=1).reshape(len(corners), -1).any(axis=1))


def with_images(state: CellSurfaces) -> CellSurfaces:
    """Return cells with those of their images that extend into the periodic box of the state."""
    box = state.periodic_box
    if box is None or not len(state.faces):
        return state
    vertices, faces = np.asarray(state.vertices, np.float64), np.asarray(state.faces, np.int64)
    count, cell = _connected(len(vertices), faces)
    lower, upper = np.full((count, 3), np.inf), np.full((count, 3), -np.inf)
    np.minimum.at(lower, cell, vertices)
    np.maximum.at(upper, cell, vertices)
    bodies, shifts = image_shifts(lower, upper, np.asarray(box, np.float64))
    points, corners, point_rows, face_rows = [vertices], [faces], [np.arange(len(vertices))], [np.arange(len(faces))]
    first = len(vertices)
    for shift in np.unique(shifts[count:], axis=0):
        chosen = np.zeros(count, bool)
        chosen[bodies[count:][(shifts[count:] == shift).all(axis=1)]] = True
        rows, triangles = np.flatnonzero(chosen[cell]), np.flatnonzero(chosen[cell[faces[:, 0]]])
        number = np.zeros(len(vertices), np.int64)
        number[rows] = first + np.arange(len(rows))
        points.append(vertices[rows] + shift)
        corners.append(number[faces[triangles]])
        point_rows.append(rows)
        face_rows.append(triangles)
        first += len(rows)
    of_points, of_faces = np.concatenate(point_rows), np.concatenate(face_rows)
    return CellSurfaces(
        state.time,
        np.concatenate(points),
        np.concatenate(corners),
        {name: values[of_points] for name, values in state.on_vertices.items()},
        {name: values[of_faces] for name, values in state.on_faces.items()},
        box,
    )


def _connected(count: int, faces: Integers) -> tuple[int, Integers]:
    """Return the number of connected surfaces, and the surface (count,) of each vertex."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    starts, ends = faces.ravel(), np.roll(faces, -1, axis=1).ravel()
    graph = coo_array((np.ones(len(starts), np.int8), (starts, ends)), shape=(count, count))
    number, labels = connected_components(graph, directed=False)
    return int(number), np.asarray(labels)
