# SPDX-License-Identifier: BSD-3-Clause
"""Shaded surfaces in parallel projection: triangles drawn from the farthest to the nearest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.report.style import color_bar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.floating[Any]]
Direction = tuple[float, float, float]

#: Direction of the light on the screen (right, up, towards the viewer), ambient light and gloss.
_LIGHT = np.array([-0.45, 0.55, 0.70])
_AMBIENT = 0.55
_GLOSS = 0.16
#: Faces are divided into about this number of triangles, at most so many times along an edge, for smooth colours.
_SMALL_TRIANGLES, _MAX_DIVISIONS = 100_000, 12
#: Scales faces towards the viewer to the brightness of the colour bar.
_EXPOSURE = 1.14


@dataclass(frozen=True, eq=False)
class DrawnSurface:
    """A triangulated surface with values and a direction of view.

    `vertices` (v, 3) in metres, `faces` (f, 3), `values` (f,) or (v,), or vectors, drawn as magnitudes. `view` points
    to the viewer, `up` upwards in the picture; None is the default of the figure. The colour scale ends at the `top`-th
    percentile of the values (by area), so that isolated peaks do not dominate.
    """

    vertices: Floats
    faces: npt.NDArray[np.integer[Any]]
    values: Floats
    label: str = "wall shear stress (Pa)"
    view: Direction | None = None
    up: Direction | None = None
    top: float = 99.0


def face_values(surface: DrawnSurface) -> Floats:
    """Return one value per face, (f,): magnitudes of vectors, means of vertex values.

    Raises:
        ValueError: the number of values is neither that of faces nor of vertices.
    """
    values = np.asarray(surface.values, np.float64)
    values = np.linalg.norm(values, axis=1) if values.ndim == 2 else values
    if len(values) == len(surface.faces):
        return values
    if len(values) == len(surface.vertices):
        return np.asarray(values[surface.faces].mean(axis=1))
    raise ValueError(f"{len(values)} values for {len(surface.faces)} faces and {len(surface.vertices)} vertices")


@dataclass(frozen=True, eq=False)
class ShadedTriangles:
    """Small triangles: `corners` (t, 3, 3) in metres, `values` (t,) and unit `normals` (t, 3) at their centres."""

    corners: Floats
    values: Floats
    normals: Floats


def vertex_values(vertices: Floats, faces: npt.NDArray[np.integer[Any]], values: Floats) -> tuple[Floats, Floats]:
    """Return values (v,) and unit normals (v, 3) at vertices: means over their faces, weighted with the areas."""
    crosses = np.cross(vertices[faces[:, 1]] - vertices[faces[:, 0]], vertices[faces[:, 2]] - vertices[faces[:, 0]])
    areas = np.maximum(np.linalg.norm(crosses, axis=1), 1e-300)
    weights, sums, normals = np.zeros(len(vertices)), np.zeros(len(vertices)), np.zeros((len(vertices), 3))
    for corner in range(3):
        np.add.at(weights, faces[:, corner], areas)
        np.add.at(sums, faces[:, corner], areas * values)
        np.add.at(normals, faces[:, corner], crosses)
    lengths = np.maximum(np.linalg.norm(normals, axis=1), 1e-300)
    return sums / np.maximum(weights, 1e-300), normals / lengths[:, None]


def shaded_triangles(surface: DrawnSurface) -> ShadedTriangles:
    """Return the faces, divided into small triangles with linearly interpolated values and normals.

    Vertices at the same position are joined. Values of faces are first averaged at the vertices.
    """
    vertices, joined = np.unique(np.asarray(surface.vertices, np.float64), axis=0, return_inverse=True)
    faces = joined.reshape(-1)[surface.faces]
    at_vertices, normals = vertex_values(vertices, faces, face_values(surface))
    if len(surface.values) == len(surface.vertices) != len(surface.faces):
        surface_values = np.asarray(surface.values, np.float64)
        at_vertices[joined.reshape(-1)] = (
            np.linalg.norm(surface_values, axis=1) if surface_values.ndim == 2 else surface_values
        )
    count = int(np.clip(np.sqrt(_SMALL_TRIANGLES / max(len(faces), 1)), 1, _MAX_DIVISIONS))
    weights = _divisions(count)  # (count^2, 3 corners, 3 weights of the corners of the face)
    centers = weights.mean(axis=1)
    rotated = np.einsum("sw,fwi->fsi", centers, normals[faces]).reshape(-1, 3)
    return ShadedTriangles(
        np.einsum("scw,fwi->fsci", weights, vertices[faces]).reshape(-1, 3, 3),
        np.einsum("sw,fw->fs", centers, at_vertices[faces]).reshape(-1),
        rotated / np.maximum(np.linalg.norm(rotated, axis=1), 1e-300)[:, None],
    )


def _divisions(count: int) -> Floats:
    """Return the barycentric coordinates (count^2, 3, 3) of the corners of the parts of a triangle."""
    i, j = (index.reshape(-1) for index in np.meshgrid(np.arange(count), np.arange(count), indexing="ij"))
    up, down = i + j < count, i + j < count - 1
    upright = np.stack([np.stack([i, j], 1), np.stack([i + 1, j], 1), np.stack([i, j + 1], 1)], 1)[up]
    inverted = np.stack([np.stack([i + 1, j], 1), np.stack([i + 1, j + 1], 1), np.stack([i, j + 1], 1)], 1)[down]
    first = np.concatenate([upright, inverted]) / count
    return np.concatenate([1.0 - first.sum(axis=2, keepdims=True), first], axis=2)


def screen_axes(view: Direction, up: Direction) -> Floats:
    """Return the orthonormal right-handed frame (3, 3) with rows right, up, towards the viewer.

    Raises:
        ValueError: `view` and `up` are parallel or zero.
    """
    view_direction, upwards = np.asarray(view, np.float64), np.asarray(up, np.float64)
    right = np.cross(upwards, view_direction)
    if np.linalg.norm(right) <= 1e-9 * np.linalg.norm(upwards) * np.linalg.norm(view_direction):
        raise ValueError(f"view {view} and up {up} must not be parallel")
    right /= np.linalg.norm(right)
    view_direction = view_direction / np.linalg.norm(view_direction)
    return np.stack([right, np.cross(view_direction, right), view_direction])


def shade(normals: Floats) -> tuple[Floats, Floats]:
    """Return diffuse light (f,) and gloss (f,), each 0..1, for unit normals (f, 3) in the frame of the screen."""
    light_direction = _LIGHT / np.linalg.norm(_LIGHT)
    # Both sides are lit; back faces, the inside of the vessel, are slightly darker.
    facing = np.where(normals[:, 2:] < 0, -normals, normals)
    diffuse = np.minimum(1.0, _EXPOSURE * (_AMBIENT + (1 - _AMBIENT) * np.clip(facing @ light_direction, 0, 1)))
    half_vector = light_direction + np.array([0.0, 0.0, 1.0])
    gloss = _GLOSS * np.clip(facing @ (half_vector / np.linalg.norm(half_vector)), 0, 1) ** 30
    return diffuse * np.where(normals[:, 2] < 0, 0.8, 1.0), gloss


def surface_limits(surface: DrawnSurface) -> Floats:
    """Return the ends (2, 2) of the drawn surface to the right and upwards, in metres."""
    frame = screen_axes(surface.view or (0.0, -1.0, 0.0), surface.up or (0.0, 0.0, 1.0))
    projected = np.asarray(surface.vertices, np.float64)[np.unique(surface.faces)] @ frame[:2].T
    return np.stack([projected.min(axis=0), projected.max(axis=0)])


def draw_surface(axes: Axes, surface: DrawnSurface) -> None:
    """Draw the surface into `axes`, whose units are millimetres, with a colour bar."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import Normalize

    frame = screen_axes(surface.view or (0.0, -1.0, 0.0), surface.up or (0.0, 0.0, 1.0))
    triangles = shaded_triangles(surface)
    corners: Any = triangles.corners * 1e3 @ frame.T
    values = triangles.values
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    norm = Normalize(0.0 if values.min() >= 0 else None, _percentile(values, areas, surface.top))
    colors = ScalarMappable(norm, "plasma")
    diffuse, gloss = shade(triangles.normals @ frame.T)
    rgb = colors.to_rgba(values)[:, :3] * diffuse[:, None]
    rgb += (1 - rgb) * gloss[:, None]
    # Back to front by the nearest corner, which is more robust than the centre for thin triangles.
    order = np.argsort(corners[:, :, 2].max(axis=1), kind="stable")
    style: dict[str, Any] = {"facecolors": rgb[order], "edgecolors": rgb[order], "linewidths": 0.15}
    axes.add_collection(PolyCollection(corners[order, :, :2], **style, rasterized=True))
    axes.set_axis_off()
    extend = "max" if values.max() > float(norm.vmax or 0.0) else "neither"
    color_bar(axes, colors, surface.label, extend)


def _percentile(values: Floats, weights: Floats, percent: float) -> float:
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order])
    index = min(int(np.searchsorted(cumulative, cumulative[-1] * percent / 100)), len(order) - 1)
    return float(values[order[index]]) or 1.0
