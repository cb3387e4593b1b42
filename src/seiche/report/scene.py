# SPDX-License-Identifier: BSD-3-Clause
"""Smoothly shaded surfaces, rendered off screen by PyVista where it is installed and can render."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]

#: VTK's variable for the kind of window, and the kinds that need no display.
_WINDOW, _WITHOUT_DISPLAY = "VTK_DEFAULT_OPENGL_WINDOW", ("vtkEGLRenderWindow", "vtkOSOpenGLRenderWindow")
#: Renders a sphere: a driver that fails may end the process, so the attempt is made in another one.
_PROBE = """
import pyvista
plotter = pyvista.Plotter(off_screen=True, window_size=(64, 64))
plotter.add_mesh(pyvista.Sphere())
raise SystemExit(0 if plotter.screenshot(None, return_img=True).std() > 1 else 3)
"""
_PROBE_SECONDS = 120.0
#: Closed surfaces of up to this number of triangles are refined by butterfly subdivision, which keeps their vertices.
_REFINED_FACES = 60_000
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
        environment = {**os.environ, **({_WINDOW: window} if window is not None else {})}
        reason = _failure(environment)
        if not reason:
            if window is not None:
                os.environ[_WINDOW] = window
            return True
    print(f"note: PyVista cannot render here ({reason}); Matplotlib draws instead", file=sys.stderr)
    return False


def _failure(environment: dict[str, str]) -> str:
    """Return why another process cannot render with this environment, "" if it can."""
    command = [sys.executable, "-c", _PROBE]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = done.stderr.strip().splitlines()
    return "" if done.returncode == 0 else lines[-1][:120] if lines else f"status {done.returncode}"


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


def closed_holes(vertices: Floats, faces: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
    """Return triangles (n, 3) that close the open rims of a surface, oriented as its faces.

    Each rim of r edges is closed by r - 2 triangles of a fan; rims of openings are convex and nearly plane.
    """
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]).astype(np.int64)
    count = len(vertices)
    keys, opposite = edges[:, 0] * count + edges[:, 1], edges[:, 1] * count + edges[:, 0]
    rim = edges[~np.isin(keys, opposite)]
    following = {int(a): int(b) for a, b in rim}
    caps = []
    while following:
        start, vertex = next(iter(following.items()))
        del following[start]
        loop = [start]
        while vertex != start and vertex in following:
            loop.append(vertex)
            vertex = following.pop(vertex)
        caps += [(loop[0], loop[k + 1], loop[k]) for k in range(1, len(loop) - 1)]
    return np.array(caps, np.int64).reshape(-1, 3)
