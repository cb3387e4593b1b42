# SPDX-License-Identifier: BSD-3-Clause
"""Shaded surfaces in parallel projection: triangles drawn from the farthest to the nearest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.report.style import color_bar, scale_bar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.floating[Any]]
Direction = tuple[float, float, float]

#: Direction of the light on the screen (right, up, towards the viewer), ambient light and gloss.
_LIGHT = np.array([-0.45, 0.55, 0.70])
_AMBIENT = 0.55
_GLOSS = 0.16
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


def draw_surface(axes: Axes, surface: DrawnSurface) -> None:
    """Draw the surface into `axes` with a colour bar and a scale bar."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import Normalize

    frame = screen_axes(surface.view or (0.0, -1.0, 0.0), surface.up or (0.0, 0.0, 1.0))
    corners = (np.asarray(surface.vertices, np.float64) * 1e3 @ frame.T)[surface.faces]
    crosses = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    areas = np.linalg.norm(crosses, axis=1)
    values = face_values(surface)
    norm = Normalize(0.0 if values.min() >= 0 else None, _percentile(values, areas, surface.top))
    colors = ScalarMappable(norm, "plasma")
    diffuse, gloss = shade(crosses / np.maximum(areas, 1e-300)[:, None])
    rgb = colors.to_rgba(values)[:, :3] * diffuse[:, None]
    rgb += (1 - rgb) * gloss[:, None]
    # Back to front by the nearest corner, which is more robust than the centre for thin triangles.
    order = np.argsort(corners[:, :, 2].max(axis=1), kind="stable")
    style: dict[str, Any] = {"facecolors": rgb[order], "edgecolors": rgb[order], "linewidths": 0.15}
    axes.add_collection(PolyCollection(corners[order, :, :2], **style, rasterized=True))
    low, high = corners[:, :, :2].min(axis=(0, 1)), corners[:, :, :2].max(axis=(0, 1))
    margin = 0.03 * (high - low).max()
    axes.set_xlim(low[0] - margin, high[0] + margin)
    axes.set_ylim(low[1] - margin, high[1] + margin)
    axes.set_aspect("equal")
    axes.set_axis_off()
    extend = "max" if values.max() > float(norm.vmax or 0.0) else "neither"
    color_bar(axes, colors, surface.label, extend)
    scale_bar(axes, float(high[0] - low[0]))


def _percentile(values: Floats, weights: Floats, percent: float) -> float:
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order])
    index = min(int(np.searchsorted(cumulative, cumulative[-1] * percent / 100)), len(order) - 1)
    return float(values[order[index]]) or 1.0
