# SPDX-License-Identifier: BSD-3-Clause
"""Cells in their vessel, coloured by velocity: a picture of one state, and a film of many (SI units)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.io.cell_files import CellSurfaces
from seiche.io.files import replacing
from seiche.report.film import write_film
from seiche.report.style import DOUBLE_COLUMN, color_bar, new_figure, nice_length, paper_style, save
from seiche.report.surface import Direction, screen_axes, shade

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from PIL.Image import Image

Floats = npt.NDArray[np.floating[Any]]

#: Grey of the wall behind the cells, and how much the wall before them covers.
_WALL, _FRONT = 0.8, 0.07
#: How far the shades of the wall are mixed with white.
_PALE = 0.6
#: Share of the speeds (by area) at which the colours end.
_TOP = 99.5
#: Width of a film in pixels, and the time for which a frame is shown (ms).
FILM_WIDTH, FRAME_TIME = 900, 80


@dataclass(frozen=True)
class Camera:
    """From where cells are seen: `view` points to the viewer, `up` upwards; `low` and `high` bound the picture (um)."""

    view: Direction
    up: Direction
    low: tuple[float, float]
    high: tuple[float, float]


def camera_for(points: Floats) -> Camera:
    """Return the camera for points (n, 3) in metres: the longest side to the right, seen across the shortest."""
    extent = np.ptp(points, axis=0)
    order = np.argsort(extent, kind="stable")
    right, up = np.eye(3)[order[2]], np.eye(3)[order[1]]
    towards = np.cross(right, up) + 0.22 * right + 0.18 * up
    view, upwards = (_direction(each) for each in (towards, up))
    flat = points @ screen_axes(view, upwards)[:2].T * 1e6
    margin = 0.03 * float(np.ptp(flat, axis=0).max()) or 1.0
    low, high = flat.min(axis=0) - margin, flat.max(axis=0) + margin
    return Camera(view, upwards, (float(low[0]), float(low[1])), (float(high[0]), float(high[1])))


def _direction(vector: Floats) -> Direction:
    x, y, z = (float(c) for c in vector)
    return x, y, z


def fastest(states: Iterable[CellSurfaces]) -> float:
    """Return the speed (m/s) at which the colours of all states end."""
    speeds = [np.linalg.norm(state.on_vertices["velocity"], axis=1) for state in states]
    together = np.concatenate(speeds) if speeds else np.zeros(0)
    return (float(np.percentile(together, _TOP)) if len(together) else 0.0) or 1.0


@paper_style()
def cells_figure(
    path: str | os.PathLike[str], state: CellSurfaces, wall: CellSurfaces | None, limit: int = 900 * 1024
) -> None:
    """Draw one state to `path`, replaced only by a complete picture.

    Args:
        path: picture to write, any format that matplotlib knows.
        state: the cells, with the velocities of their vertices.
        wall: the wall of the vessel, if there is one.
        limit: most bytes of a PNG; a larger one is stored with 256 colours.

    Raises:
        OSError: the picture cannot be written.
    """
    camera = camera_for(_all_points([state], wall))
    figure = _drawn(state, wall, camera, fastest([state]), DOUBLE_COLUMN)
    with replacing(path) as part:
        save(figure, part, os.fspath(path), limit)


@paper_style()
def film(
    path: str | os.PathLike[str],
    states: list[Callable[[], CellSurfaces]],
    wall: CellSurfaces | None,
    shown: Callable[[int], None] = lambda number: None,
) -> None:
    """Draw all states to an animated GIF or an MP4, with the same view and colours in all of them.

    Args:
        path: film to write; replaced only by a complete one.
        states: what reads each state.
        wall: the wall of the vessel, if there is one.
        shown: called with the number of frames drawn so far.

    Raises:
        CaseError: there is no program that makes an MP4.
        OSError: the film cannot be written.
        ValueError: there is no state.
    """
    if not states:
        raise ValueError("a film needs at least one state")
    some = [states[0](), states[len(states) // 2](), states[-1]()]
    top = fastest(some)
    camera = camera_for(_all_points(some, wall))

    def frames() -> Iterator[Image]:
        for number, read in enumerate(states, start=1):
            yield _pixels(_drawn(read(), wall, camera, top, DOUBLE_COLUMN))
            shown(number)

    write_film(path, frames(), FRAME_TIME)


def _all_points(states: list[CellSurfaces], wall: CellSurfaces | None) -> Floats:
    found = np.concatenate([each.vertices for each in (*states, *([wall] if wall is not None else []))])
    if not len(found):
        raise CaseError("there is no vertex of a cell or wall to draw")
    return found


def _pixels(figure: Figure) -> Image:
    from PIL import Image as Pillow

    figure.set_dpi(FILM_WIDTH / figure.get_size_inches()[0])
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())  # type: ignore[attr-defined]
    return Pillow.fromarray(pixels[..., :3].copy()).quantize(128, dither=Pillow.Dither.NONE)


def _drawn(state: CellSurfaces, wall: CellSurfaces | None, camera: Camera, top: float, width: float) -> Figure:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    sides = np.subtract(camera.high, camera.low)
    figure = new_figure(width, min(max(0.82 * width * sides[1] / sides[0], 1.2), 1.3 * width))
    figure.patch.set_facecolor("white")
    axes = figure.add_subplot()
    colors = ScalarMappable(Normalize(0.0, top * 1e3), "viridis")
    frame = screen_axes(camera.view, camera.up)
    if wall is not None and len(wall.faces):
        _add(axes, wall, frame, lambda faces: np.full((len(faces), 3), _WALL), back=True, alpha=1.0)
    speeds = np.linalg.norm(state.on_vertices["velocity"], axis=1) * 1e3

    def pigment(faces: npt.NDArray[np.integer[Any]]) -> Floats:
        return np.asarray(colors.to_rgba(speeds[faces].mean(axis=1))[:, :3])

    _add(axes, state, frame, pigment, back=False, alpha=1.0)
    if wall is not None and len(wall.faces):
        _add(axes, wall, frame, lambda faces: np.full((len(faces), 3), 0.45), back=False, alpha=_FRONT)
    axes.set_xlim(camera.low[0], camera.high[0])
    axes.set_ylim(camera.low[1], camera.high[1])
    axes.set_aspect("equal")
    axes.set_axis_off()
    color_bar(axes, colors, "velocity of the membrane (mm/s)", "max")
    _scale_bar(axes, float(sides[0]))
    axes.set_title(f"{state.time * 1e3:.3g} ms", loc="right", fontsize=7)
    return figure


def _add(
    axes: Axes,
    surfaces: CellSurfaces,
    frame: Floats,
    pigment: Callable[[npt.NDArray[np.integer[Any]]], Floats],
    *,
    back: bool,
    alpha: float,
) -> None:
    """Draw the faces that look at the viewer, or those that look away, from the farthest to the nearest."""
    from matplotlib.collections import PolyCollection

    places = np.asarray(surfaces.vertices, np.float64) @ frame.T * 1e6
    corners = places[surfaces.faces]
    crosses = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    seen = np.flatnonzero(crosses[:, 2] < 0 if back else crosses[:, 2] > 0)
    seen = seen[np.argsort(corners[seen, :, 2].mean(axis=1), kind="stable")]
    if not len(seen):
        return
    lengths = np.maximum(np.linalg.norm(crosses[seen], axis=1), 1e-300)[:, None]
    diffuse, gloss = shade(crosses[seen] / lengths)
    colors = pigment(surfaces.faces[seen]) * diffuse[:, None]
    colors += (1 - colors) * (gloss[:, None] if not back else _PALE)
    edges: Any = "none" if alpha < 1 else colors
    axes.add_collection(
        PolyCollection(
            corners[seen, :, :2], facecolors=colors, edgecolors=edges, linewidths=0.2, alpha=alpha, rasterized=True
        )
    )


def _scale_bar(axes: Axes, width: float) -> None:
    """Draw a bar of a round number of micrometres in the lower left corner."""
    length = nice_length(0.2 * width)
    left, low = axes.get_xlim()[0], axes.get_ylim()[0]
    axes.plot([left, left + length], [low, low], color="0.1", linewidth=1.6, solid_capstyle="butt", clip_on=False)
    axes.text(left + 0.5 * length, low - 0.012 * width, f"{length:g} µm", ha="center", va="top", fontsize=7)
