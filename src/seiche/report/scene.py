# SPDX-License-Identifier: BSD-3-Clause
"""Smoothly shaded surfaces, rendered off screen by PyVista where it is installed and can render."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.surface import Loop, Surface

Floats = npt.NDArray[np.floating[Any]]

#: VTK's variable for the kind of window, and the kinds that need no display.
_WINDOW, _WITHOUT_DISPLAY = "VTK_DEFAULT_OPENGL_WINDOW", ("vtkEGLRenderWindow", "vtkOSOpenGLRenderWindow")
#: Renders a sphere: a driver that fails may end the process, so the attempt is made in another one.
_PROBE = """
import pyvista
plotter = pyvista.Plotter(off_screen=True, window_size=(64, 64))
plotter.add_mesh(pyvista.Sphere())
picture = plotter.screenshot(None, return_img=True)
print(type(plotter.render_window).__name__)
raise SystemExit(0 if picture.std() > 1 else 3)
"""
#: Packages with which EGL renders without a GPU.
_REMEDY = "for EGL, Debian and Ubuntu need the packages libegl1 and libgl1-mesa-dri"
_PROBE_SECONDS = 120.0
#: Colours of VTK's messages.
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
#: Closed surfaces of up to this number of triangles are refined by butterfly subdivision, which keeps their vertices.
_REFINED_FACES = 60_000
#: Distance of the vertices of a plane rim from its plane, and 1 - cosine between two such planes, at most.
_FLATNESS = 1e-3
#: Pixels per pixel of the result along each side, against jagged edges.
_OVERSAMPLING = 2


@dataclass(frozen=True, eq=False)
class SceneSurface:
    """Triangles `faces` (f, 3) between `vertices` (v, 3) with `colors` (v, 3) of 0..1, and how they are drawn.

    `side` selects the faces seen from their front (normals towards the viewer), from their back, or both. `ambient` is
    the fraction of light that does not depend on the normals.
    """

    vertices: Floats
    faces: npt.NDArray[np.integer[Any]]
    colors: Floats
    opacity: float = 1.0
    side: str = "both"
    is_refined: bool = False
    ambient: float = 0.3


@dataclass(frozen=True, eq=False)
class ParallelView:
    """A parallel projection: `frame` (3, 3) with rows right, up, towards the viewer; `low` and `high` are corners."""

    frame: Floats
    low: tuple[float, float]
    high: tuple[float, float]


@cache
def can_render() -> bool:
    """Return whether PyVista is installed and renders here; if it is installed but cannot, a line says so, once."""
    from importlib.util import find_spec

    if sys.modules.get("pyvista", ...) is None or find_spec("pyvista") is None:
        return False
    reason = ""
    windows = [None] if os.environ.get("DISPLAY") or os.environ.get(_WINDOW) else []
    for window in [*windows, *_WITHOUT_DISPLAY]:
        used, reason = _try_window({**os.environ, **({_WINDOW: window} if window is not None else {})})
        if used:
            if window is not None:
                os.environ[_WINDOW] = used
            return True
    print(f"note: PyVista cannot render here ({reason}); Matplotlib draws instead; {_REMEDY}", file=sys.stderr)
    return False


def _try_window(environment: dict[str, str]) -> tuple[str, str]:
    """Return the kind of window in which another process renders with this environment, or "" and why it cannot."""
    command = [sys.executable, "-c", _PROBE]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", str(error)
    if done.returncode == 0:
        return done.stdout.split()[-1], ""
    lines = _ESCAPES.sub("", done.stderr).strip().splitlines()
    # VTK's lines have the form "time (uptime) [thread] file:line LEVEL| text".
    return "", lines[-1].rpartition("| ")[2].strip()[:120] if lines else f"status {done.returncode}"


def render_scene(surfaces: Sequence[SceneSurface], view: ParallelView, width: int) -> npt.NDArray[np.uint8]:
    """Return the picture (rows, columns, 3) of surfaces, `width` pixels wide, on white, with normals at the vertices.

    Coordinates are of order one to a thousand, such as micrometres. Colours and light do not depend on the view
    otherwise than through the normals.
    """
    import pyvista
    from PIL import Image

    sides = np.subtract(view.high, view.low)
    height = max(1, round(width * float(sides[1] / sides[0])))
    plotter = pyvista.Plotter(
        off_screen=True, window_size=(_OVERSAMPLING * width, _OVERSAMPLING * height), lighting="none"
    )
    try:
        plotter.set_background("white")
        light = pyvista.Light(light_type="camera light", position=(-0.45, 0.55, 1.2), intensity=0.95)
        plotter.add_light(light)
        for surface in surfaces:
            if len(surface.faces):
                _add(plotter, pyvista, surface)
        plotter.render_window.SetMultiSamples(0)  # with several samples, depth peeling draws nothing transparent
        plotter.enable_depth_peeling(8)
        camera, center = plotter.camera, np.mean([view.low, view.high], axis=0)
        focus = center @ view.frame[:2]
        depth = 10.0 * float(max(np.abs(s.vertices).max() for s in surfaces if len(s.vertices)) + sides.max())
        camera.focal_point, camera.up = tuple(focus), tuple(view.frame[1])
        camera.position = tuple(focus + depth * view.frame[2])
        camera.parallel_projection, camera.parallel_scale = True, float(sides[1]) / 2
        plotter.reset_camera_clipping_range()
        pixels = plotter.screenshot(None, return_img=True)
    finally:
        plotter.close()
    picture = Image.fromarray(np.ascontiguousarray(pixels[..., :3]))
    return np.asarray(picture.resize((width, height), Image.Resampling.LANCZOS))


def _add(plotter: Any, pyvista: Any, surface: SceneSurface) -> None:
    mesh = pyvista.PolyData.from_regular_faces(
        np.asarray(surface.vertices, np.float64), np.asarray(surface.faces, np.int64)
    )
    mesh.point_data["colors"] = np.asarray(surface.colors, np.float64)
    if surface.is_refined and len(surface.faces) <= _REFINED_FACES and mesh.n_open_edges == 0 and mesh.is_manifold:
        mesh = mesh.subdivide(1, "butterfly")
    mesh = mesh.compute_normals(
        cell_normals=False,
        point_normals=True,
        split_vertices=False,
        consistent_normals=False,
        auto_orient_normals=False,
    )
    colors = np.clip(mesh.point_data["colors"], 0.0, 1.0)
    mesh.point_data["rgb"] = np.rint(255 * colors).astype(np.uint8)
    culling = {"both": None, "front": "back", "back": "front"}[surface.side]
    plotter.add_mesh(
        mesh,
        scalars="rgb",
        rgb=True,
        smooth_shading=True,
        opacity=surface.opacity,
        culling=culling,
        ambient=surface.ambient,
        diffuse=1.05 - surface.ambient,
        specular=0.15 if surface.is_refined else 0.0,
        specular_power=30.0,
        show_scalar_bar=False,
    )


def plane_caps(vertices: Floats, faces: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
    """Return triangles (n, 3) that close the plane rims of a surface, oriented as its faces; others stay open.

    Rims in one plane are closed together, so that the cap of an annulus has a hole. The rim of a plane sheet is not
    an opening.
    """
    loops = Surface(np.asarray(vertices, np.float64), np.asarray(faces, np.int32)).boundary_loops()
    openings = [loop for loop in loops if any(loop.normal) and _is_opening(loop, vertices, faces)]
    caps = [np.zeros((0, 3), np.int64)]
    while openings:
        first = openings[0]
        others: list[Loop] = []
        ends: list[Loop] = []
        for loop in openings:
            offset = np.subtract(loop.center, first.center) @ np.asarray(first.normal)
            is_alike = (
                abs(offset) <= _FLATNESS * first.radius and abs(np.dot(loop.normal, first.normal)) > 1 - _FLATNESS
            )
            (ends if is_alike else others).append(loop)
        caps.append(_triangulated(vertices, [loop.vertices for loop in ends]))
        openings = others
    return np.concatenate(caps)


def _is_opening(loop: Loop, vertices: Floats, faces: npt.NDArray[np.integer[Any]]) -> bool:
    """Return whether a rim is plane and the triangles next to it are not in its plane."""
    heights = np.abs((vertices - np.asarray(loop.center)) @ np.asarray(loop.normal))
    next_to_rim = faces[np.isin(faces, loop.vertices).any(axis=1)]
    tolerance = _FLATNESS * loop.radius
    return float(heights[loop.vertices].max()) <= tolerance < float(heights[next_to_rim].max())


def _triangulated(vertices: Floats, loops: Sequence[npt.NDArray[np.integer[Any]]]) -> npt.NDArray[np.int64]:
    """Return triangles (n, 3) inside loops of vertices in one plane; inner loops run in the opposite direction."""
    import pyvista
    from vtkmodules.vtkFiltersGeneral import vtkContourTriangulator

    used, renumbered = np.unique(np.concatenate(loops), return_inverse=True)
    ends, lines = np.cumsum([len(loop) for loop in loops]), []
    for part in np.split(renumbered.reshape(-1), ends[:-1]):
        lines.append(np.stack([np.full(len(part), 2), part, np.roll(part, -1)], axis=1))
    triangulator = vtkContourTriangulator()
    triangulator.SetInputData(pyvista.PolyData(vertices[used], lines=np.concatenate(lines).reshape(-1)))
    triangulator.TriangulationErrorDisplayOff()
    triangulator.Update()
    triangles = pyvista.wrap(triangulator.GetOutput()).regular_faces
    return np.asarray(used[triangles], np.int64)
