# SPDX-License-Identifier: BSD-3-Clause
"""Smooth surface around fluid sites: the contour of their smoothed indicator function, slab by slab."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from seiche.domain.sites import SiteSet
from seiche.errors import CaseError

if TYPE_CHECKING:
    from seiche.domain.surface import Surface

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: Maximum number of lattice points in the box in which a surface is computed.
MAX_POINTS = 2_000_000_000
#: Sites around the box of the fluid, at least the reach of the smoothing.
_PADDING = 3
#: Standard deviation of the smoothing in spacings, and its reach: four deviations, rounded.
_WIDTH, _REACH = 0.8, 3
#: Number of lattice points of a slab, which take about 50 B each; a slab has at least one layer of cubes.
_SLAB_POINTS = 1 << 20


def fluid_contour(sites: SiteSet) -> Surface:
    """Return the contour at one half of the smoothed indicator function of the fluid, in metres.

    Its normals point out of the fluid. It is closed, except at the ends of periodic axes, beyond which it continues.

    Raises:
        CaseError: the box around the sites is too large.
    """
    from seiche.domain.surface import Surface

    periodic = np.asarray(sites.periodic)
    low = np.where(periodic, 0, sites.coords.min(0))
    high = np.where(periodic, sites.shape, sites.coords.max(0) + 1)
    shape = tuple(int(n) + 2 * _PADDING for n in high - low)
    if np.prod(shape, dtype=np.float64) > MAX_POINTS:
        raise CaseError(f"the box of {shape} points around the sites is too large for a wall; use an STL geometry")
    fluid = np.zeros(high - low, bool)
    fluid[tuple((sites.coords - low).T)] = True
    for axis in range(2):
        width = [(_PADDING, _PADDING) if k == axis else (0, 0) for k in range(3)]
        fluid = np.pad(fluid, width, mode="wrap" if periodic[axis] else "constant")
    thickness = max(1, _SLAB_POINTS // (shape[0] * shape[1]))
    bounds = [*range(0, shape[2] - 1, thickness), shape[2] - 1]
    vertices, faces, slope = [np.zeros((0, 3))], [np.zeros((0, 3), np.int64)], 0.0
    count, seam = 0, (np.zeros(0, np.int64), np.zeros(0, np.int64))
    for first, last in pairwise(bounds):
        smooth, begin = _smoothed(fluid, first, last, bool(periodic[2]))
        corners, triangles = _contour(smooth[:, :, first - begin : last + 1 - begin], first)
        slope += _outward_slope(smooth, begin, corners, triangles)
        numbers = _numbers(corners, first, shape, seam, count)
        is_new = numbers >= count
        vertices.append(corners[is_new])
        faces.append(numbers[triangles])
        count += int(is_new.sum())
        seam = _seam(corners, numbers, last, shape)
    ordered = np.concatenate(faces).astype(np.int32)
    points = np.asarray(sites.origin) + sites.spacing * (np.concatenate(vertices) + low - _PADDING)
    return Surface(points, np.ascontiguousarray(ordered[:, ::-1] if slope > 0.0 else ordered))


def _smoothed(
    fluid: npt.NDArray[np.bool_], first: int, last: int, periodic: bool
) -> tuple[npt.NDArray[np.float32], int]:
    """Return smoothed layers `first` to `last` of the padded box, and one more on each side where it has them.

    The second value is the number of the lowest layer.
    """
    from scipy.ndimage import gaussian_filter

    layers = fluid.shape[2] + 2 * _PADDING
    begin, end = max(0, first - 1 - _REACH), min(layers, last + 2 + _REACH)
    sources = np.arange(begin, end) - _PADDING
    values = np.zeros((*fluid.shape[:2], end - begin), np.float32)
    if periodic:
        values[...] = fluid[:, :, sources % fluid.shape[2]]
    else:
        inside = (sources >= 0) & (sources < fluid.shape[2])
        values[:, :, inside] = fluid[:, :, sources[inside]]
    kept_first, kept_last = max(0, first - 1), min(layers, last + 2)
    return gaussian_filter(values, _WIDTH)[:, :, kept_first - begin : kept_last - begin], kept_first


def _contour(values: npt.NDArray[np.float32], first: int) -> tuple[Floats, Integers]:
    """Return vertices (v, 3), in layers from `first`, and triangles (f, 3) of the contour at one half."""
    import igl

    shape = values.shape
    axes = (
        np.arange(shape[0], dtype=np.float64),
        np.arange(shape[1], dtype=np.float64),
        np.arange(shape[2]) + float(first),
    )
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).transpose(2, 1, 0, 3)  # x must vary fastest
    field = values.T.reshape(-1).astype(np.float64)
    vertices, faces = igl.marching_cubes(field, points.reshape(-1, 3), *shape, 0.5)[:2]
    return np.asarray(vertices, np.float64).reshape(-1, 3), np.asarray(faces, np.int64).reshape(-1, 3)


def _outward_slope(smooth: npt.NDArray[np.float32], begin: int, vertices: Floats, faces: Integers) -> float:
    """Return the sum over the triangles of the difference of the function one site along and against their normals."""
    from scipy.ndimage import map_coordinates

    from seiche.domain.surface import Surface

    if not len(faces):
        return 0.0
    surface = Surface(vertices - [0.0, 0.0, begin], faces.astype(np.int32))
    areas = surface.vector_areas()
    steps = areas / np.linalg.norm(areas, axis=1, keepdims=True).clip(1e-300)
    centers = surface.corners().mean(axis=1)
    ahead, behind = (map_coordinates(smooth, (centers + sign * steps).T, order=1) for sign in (1, -1))
    return float(np.sum(ahead - behind, dtype=np.float64))


def _keys(vertices: Floats, shape: tuple[int, ...]) -> Integers:
    """Return, for vertices in a layer, a number of the edge of the lattice on which each lies."""
    x, y = vertices[:, 0], vertices[:, 1]
    i, j = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
    return ((i * shape[1] + j) * 2 + (x > i)) * 2 + (y > j)


def _seam(vertices: Floats, numbers: Integers, layer: int, shape: tuple[int, ...]) -> tuple[Integers, Integers]:
    """Return the sorted keys and the numbers of the vertices in a layer."""
    rows = np.flatnonzero(vertices[:, 2] == layer)
    keys = _keys(vertices[rows], shape)
    order = np.argsort(keys, kind="stable")
    return keys[order], numbers[rows[order]]


def _numbers(
    vertices: Floats, layer: int, shape: tuple[int, ...], seam: tuple[Integers, Integers], count: int
) -> Integers:
    """Return the numbers of vertices: those of the `seam` if they are in its layer, otherwise new ones from `count`."""
    numbers, (keys, known) = np.full(len(vertices), -1, np.int64), seam
    rows = np.flatnonzero(vertices[:, 2] == layer) if len(keys) else np.zeros(0, np.int64)
    wanted = _keys(vertices[rows], shape)
    found = np.searchsorted(keys, wanted).clip(max=max(0, len(keys) - 1))
    matches = keys[found] == wanted if len(keys) else np.zeros(0, bool)
    numbers[rows[matches]] = known[found[matches]]
    is_new = numbers < 0
    numbers[is_new] = count + np.arange(int(is_new.sum()))
    return numbers
