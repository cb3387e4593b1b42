# SPDX-License-Identifier: BSD-3-Clause
"""Cells in their vessel, coloured by velocity: a picture of one state, or a film of many (SI units)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.io.surface_file import CellSurfaces
from seiche.report.film import film_frame, write_film
from seiche.report.page_size import current_page
from seiche.report.periodic_images import in_an_end, with_images
from seiche.report.scene import ParallelView, SceneSurface, can_render, plane_caps, render_scene
from seiche.report.style import DOTS_PER_INCH, DOUBLE_COLUMN, color_bar, new_figure, nice_length, paper_style, store
from seiche.report.surface import Direction, screen_axes, shade

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure
    from PIL.Image import Image

Floats = npt.NDArray[np.floating[Any]]

#: Grey level of the back wall, opacity of the front wall, and fraction of white in the shades of the back wall.
_BACK_GREY, _FRONT_OPACITY, _BACK_WHITE = 0.8, 0.07, 0.6
#: Opacity of the front wall where PyVista renders, and the maximum width of its picture in pixels.
_SCENE_OPACITY, _MAX_SCENE_WIDTH = 0.15, 6000
#: Percentile of the speeds at the end of the colour scale.
_TOP_PERCENTILE = 99.5
#: Width of a film in pixels, and duration of a frame (ms).
FILM_WIDTH, FRAME_TIME = 900, 80


@dataclass(frozen=True)
class Camera:
    """Direction of view: `view` points to the viewer, `up` upwards; `low` and `high` bound the picture (um)."""

    view: Direction
    up: Direction
    low: tuple[float, float]
    high: tuple[float, float]


def camera_for(points: Floats) -> Camera:
    """Return the camera for points (n, 3) in metres: longest side to the right, view along the shortest."""
    extent = np.ptp(points, axis=0)
    order = np.argsort(extent, kind="stable")
    right, up = np.eye(3)[order[2]], np.eye(3)[order[1]]
    view_vector = np.cross(right, up) + 0.22 * right + 0.18 * up
    view, upwards = (_direction(vector) for vector in (view_vector, up))
    projected = points @ screen_axes(view, upwards)[:2].T * 1e6
    margin = 0.03 * float(np.ptp(projected, axis=0).max()) or 1.0
    low, high = projected.min(axis=0) - margin, projected.max(axis=0) + margin
    return Camera(view, upwards, (float(low[0]), float(low[1])), (float(high[0]), float(high[1])))


def _direction(vector: Floats) -> Direction:
    x, y, z = (float(c) for c in vector)
    return x, y, z


def color_limit(states: Iterable[CellSurfaces]) -> float:
    """Return the speed (m/s) at the end of the colour scale for all states."""
    speeds = [np.linalg.norm(state.on_vertices["velocity"], axis=1) for state in states]
    all_speeds = np.concatenate(speeds) if speeds else np.zeros(0)
    return (float(np.percentile(all_speeds, _TOP_PERCENTILE)) if len(all_speeds) else 0.0) or 1.0


@paper_style()
def cells_figure(
    path: str | os.PathLike[str], state: CellSurfaces, wall: CellSurfaces | None, limit: int = 900 * 1024
) -> None:
    """Draw one state; the picture replaces an existing file when it is complete.

    Args:
        path: picture to write, in any format of matplotlib.
        state: the cells, with vertex velocities.
        wall: the wall of the vessel, or None.
        limit: size in bytes above which a PNG is stored with 256 colours.

    Raises:
        OSError: the picture cannot be written.
    """
    state = with_images(state)
    camera = camera_for(_all_points([state], wall))
    store(_draw_cells(state, wall, camera, color_limit([state]), DOUBLE_COLUMN), path, limit)


@paper_style()
def film(
    path: str | os.PathLike[str],
    states: list[Callable[[], CellSurfaces]],
    wall: CellSurfaces | None,
    on_frame: Callable[[int], None] = lambda number: None,
) -> None:
    """Draw all states as an animated GIF or an MP4 with common view and colours.

    Args:
        path: film to write; it replaces an existing file when it is complete.
        states: functions that read one state each.
        wall: the wall of the vessel, or None.
        on_frame: called with the number of frames drawn so far.

    Raises:
        CaseError: the program for an MP4 is not installed.
        OSError: the film cannot be written.
        ValueError: there is no state.
    """
    if not states:
        raise ValueError("a film requires at least one state")
    samples = [with_images(states[number]()) for number in (0, len(states) // 2, -1)]
    max_speed = color_limit(samples)
    camera = camera_for(_all_points(samples, wall))

    def frames() -> Iterator[Image]:
        for number, read in enumerate(states, start=1):
            yield film_frame(_draw_cells(with_images(read()), wall, camera, max_speed, DOUBLE_COLUMN), FILM_WIDTH)
            on_frame(number)

    write_film(path, frames(), FRAME_TIME)


def _all_points(states: list[CellSurfaces], wall: CellSurfaces | None) -> Floats:
    points = np.concatenate([surfaces.vertices for surfaces in (*states, *([wall] if wall is not None else []))])
    if not len(points):
        raise CaseError("nothing to draw: there are no cells and no wall")
    return points


def _draw_cells(
    state: CellSurfaces, wall: CellSurfaces | None, camera: Camera, max_speed: float, width: float
) -> Figure:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    sides = np.subtract(camera.high, camera.low)
    figure = new_figure(width, min(max(0.84 * width * sides[1] / sides[0] + 0.4, 1.2), 1.3 * width))
    figure.patch.set_facecolor("white")
    axes = figure.add_subplot()
    colors = ScalarMappable(Normalize(0.0, max_speed * 1e3), "viridis")
    if can_render():
        _add_scene(axes, state, wall, camera, colors)
    else:
        _add_triangles(axes, state, wall, camera, colors)
    axes.set_xlim(camera.low[0], camera.high[0])
    axes.set_ylim(camera.low[1], camera.high[1])
    axes.set_aspect("equal")
    axes.set_axis_off()
    color_bar(axes, colors, "velocity of the membrane (mm/s)", "max")
    _scale_bar(axes, float(sides[0]))
    axes.set_title(f"{state.time * 1e3:.3g} ms", loc="right", fontsize=7)
    return figure


def _speeds(state: CellSurfaces) -> Floats:
    """Return the speed of each vertex, mm/s."""
    return np.asarray(np.linalg.norm(state.on_vertices["velocity"], axis=1) * 1e3)


def _add_scene(
    axes: Axes, state: CellSurfaces, wall: CellSurfaces | None, camera: Camera, colors: ScalarMappable
) -> None:
    """Draw smooth cells in a closed vessel: the wall behind them opaque, before them transparent."""
    surfaces = []
    if wall is not None and len(wall.faces):
        vertices = np.asarray(wall.vertices, np.float64) * 1e6
        caps = plane_caps(vertices, wall.faces)
        if state.periodic_box is not None:  # periodic ends stay open, because cells extend through them
            caps = caps[~in_an_end(vertices[caps], 1e6 * state.periodic_box)]
        grey = np.full((len(vertices), 3), _BACK_GREY)
        for faces in (wall.faces, caps):  # apart, so that the edges between them stay sharp
            surfaces.append(SceneSurface(vertices, faces, grey, side="back", ambient=0.6))
        surfaces.append(
            SceneSurface(vertices, wall.faces, 0.6 * grey, opacity=_SCENE_OPACITY, side="front", ambient=0.6)
        )
    rgb = np.asarray(colors.to_rgba(_speeds(state)))[:, :3]
    vertices = np.asarray(state.vertices, np.float64) * 1e6
    surfaces.append(SceneSurface(vertices, state.faces, rgb, is_refined=True))
    figure = axes.get_figure(root=True)
    assert figure is not None
    width = figure.get_size_inches()[0] * (current_page().dpi or DOTS_PER_INCH)
    view = ParallelView(screen_axes(camera.view, camera.up), camera.low, camera.high)
    image = render_scene(surfaces, view, min(max(64, round(0.85 * width)), _MAX_SCENE_WIDTH))
    extent = (camera.low[0], camera.high[0], camera.low[1], camera.high[1])
    axes.imshow(image, extent=extent, origin="upper", interpolation="antialiased")


def _add_triangles(
    axes: Axes, state: CellSurfaces, wall: CellSurfaces | None, camera: Camera, colors: ScalarMappable
) -> None:
    """Draw flat triangles with Matplotlib."""
    frame = screen_axes(camera.view, camera.up)
    if wall is not None and len(wall.faces):
        _add_faces(axes, wall, frame, lambda faces: np.full((len(faces), 3), _BACK_GREY), back=True, alpha=1.0)
    speeds = _speeds(state)

    def color_of_faces(faces: npt.NDArray[np.integer[Any]]) -> Floats:
        return np.asarray(colors.to_rgba(speeds[faces].mean(axis=1))[:, :3])

    _add_faces(axes, state, frame, color_of_faces, back=False, alpha=1.0)
    if wall is not None and len(wall.faces):
        _add_faces(axes, wall, frame, lambda faces: np.full((len(faces), 3), 0.45), back=False, alpha=_FRONT_OPACITY)


def _add_faces(
    axes: Axes,
    surfaces: CellSurfaces,
    frame: Floats,
    color_of_faces: Callable[[npt.NDArray[np.integer[Any]]], Floats],
    *,
    back: bool,
    alpha: float,
) -> None:
    """Draw the front faces, or the back faces, from the farthest to the nearest."""
    from matplotlib.collections import PolyCollection

    projected = np.asarray(surfaces.vertices, np.float64) @ frame.T * 1e6
    corners = projected[surfaces.faces]
    crosses = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    visible = np.flatnonzero(crosses[:, 2] < 0 if back else crosses[:, 2] > 0)
    visible = visible[np.argsort(corners[visible, :, 2].mean(axis=1), kind="stable")]
    if not len(visible):
        return
    lengths = np.maximum(np.linalg.norm(crosses[visible], axis=1), 1e-300)[:, None]
    diffuse, gloss = shade(crosses[visible] / lengths)
    colors = color_of_faces(surfaces.faces[visible]) * diffuse[:, None]
    colors += (1 - colors) * (gloss[:, None] if not back else _BACK_WHITE)
    edges: Any = "none" if alpha < 1 else colors
    style: dict[str, Any] = {"facecolors": colors, "edgecolors": edges, "linewidths": 0.2, "alpha": alpha}
    axes.add_collection(PolyCollection(corners[visible, :, :2], **style, rasterized=True))


def _scale_bar(axes: Axes, width: float) -> None:
    """Draw a bar of a round number of micrometres in the lower left corner."""
    length = nice_length(0.2 * width)
    left, low = axes.get_xlim()[0], axes.get_ylim()[0]
    axes.plot([left, left + length], [low, low], color="0.1", linewidth=1.6, solid_capstyle="butt", clip_on=False)
    axes.text(left + 0.5 * length, low - 0.012 * width, f"{length:g} µm", ha="center", va="top", fontsize=7)
