# SPDX-License-Identifier: BSD-3-Clause
"""Resolution and size of pictures and films, and smooth surfaces rendered by PyVista."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seiche.case import new
from seiche.case.loading import load
from seiche.cells import icosphere
from seiche.cli import main
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.io.background import write_now
from seiche.io.cell_files import SurfaceFiles, state_path, wall_path
from seiche.io.surface_file import CellSurfaces, surfaces_job, write_surfaces
from seiche.report import scene
from seiche.report.page_size import PageSize, page, page_of, parse_size
from seiche.report.style import new_figure, save

BALL = icosphere(162)


def tube(radius: float, length: float, count: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Return an open tube along x with normals outwards."""
    angle, x = 2 * np.pi * np.arange(count) / count, np.linspace(-0.5, 0.5, 9) * length
    ring = np.stack([np.zeros(count), radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    vertices = np.concatenate([np.add(ring, [position, 0, 0]) for position in x])
    a = (np.arange(len(x) - 1)[:, None] * count + np.arange(count)).reshape(-1)
    b = (np.arange(len(x) - 1)[:, None] * count + (np.arange(count) + 1) % count).reshape(-1)
    return vertices, np.concatenate([np.stack([a, b, a + count], 1), np.stack([b, b + count, a + count], 1)])


def run_with_cells(folder: Path) -> Path:
    files = SurfaceFiles(folder / "cells.vtkhdf", [])
    for step in range(3):
        vertices = 2e-6 * BALL.vertices + [1e-6 * step, 0, 0]
        velocity = np.tile([2e-3, 0.0, 0.0], (len(vertices), 1))
        state = CellSurfaces(1e-6 * step, vertices, BALL.faces, {"velocity": velocity})
        job = surfaces_job(state_path(files.path, step), state)
        write_now(files.state(step, 1e-6 * step, job), World.serial())
    vertices, faces = tube(6e-6, 40e-6)
    write_surfaces(wall_path(folder / "cells.vtkhdf"), CellSurfaces(0.0, vertices, faces))
    return folder


@pytest.fixture
def without_pyvista(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seiche.report.cells_figure.can_render", lambda: False)


@pytest.mark.usefixtures("without_pyvista")
def test_a_picture_has_the_requested_pixels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_with_cells(tmp_path)
    assert main(["render", str(run), "--dpi", "254", "--size", "100x50"]) == 0
    with Image.open(run / "cells.png") as picture:
        assert picture.size == (1000, 500)
        assert picture.info["dpi"] == pytest.approx((254, 254), abs=0.1)
    assert main(["render", str(run), "--film", "--dpi", "127", "--size", "100x60"]) == 0
    with Image.open(run / "cells.gif") as film:
        assert film.size == (500, 300) and film.n_frames == 3
    assert main(["render", str(run), "--film", "--size", "100x50"]) == 0
    with Image.open(run / "cells.gif") as film:
        assert film.size == (900, 450)  # the width of every film without a resolution
    capsys.readouterr()
    assert main(["render", str(run), "--film", "--dpi", "1200"]) == 2
    assert "pixels: at most 4096 per side" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--size", "100"], 'expected width x height in mm, such as "180x100"'),
        (["--size", "10x50"], "size 10x50: each side must be 20 to 1000 mm"),
        (["--size", "1000x1000", "--dpi", "1200"], "pixels are too many; at most 100,000,000"),
        (["--dpi", "10"], "dpi 10: must be 30 to 1200 dots per inch"),
    ],
)
def test_sizes_outside_the_limits_are_refused_in_one_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["render", str(run_with_cells(tmp_path)), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "cells.png").exists()


def test_the_page_ends_with_its_block(tmp_path: Path) -> None:
    assert parse_size(" 88.5 x 60 mm") == (88.5, 60.0)
    with page(page_of(100, "50.8x25.4")):
        save(new_figure(7.0, 3.0), tmp_path / "a.png", "a.png", limit=0)  # the limit does not reduce the colours
    save(new_figure(2.0, 1.0), tmp_path / "b.png", "b.png")
    with Image.open(tmp_path / "a.png") as first, Image.open(tmp_path / "b.png") as second:
        assert first.size == (200, 100) and first.mode != "P"
        assert second.size == (600, 300)
    with pytest.raises(CaseError, match="dpi 1201: must be"):
        PageSize(1201)


#: Changes that make the cases of `seiche new` short.
CHANGES = {
    "flow": ("time={ steps = 20 }", "iolet.inlet.ramp=5", "output.record_every=5"),
    "ultrasound": ("grid={ shape = [64, 64], spacing = '0.2 mm', steps = 20 }", 'record.maps=["p_max_all"]'),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_keys_of_a_case_set_the_size_of_its_picture(kind: str, tmp_path: Path) -> None:
    template = new.TEMPLATES / f"{kind}.toml"
    keys = ["output.picture=a.png", "output.picture_dpi=100", "output.picture_size=127x76.2"]
    with load(template, overrides=[*CHANGES[kind], *keys], output=tmp_path) as simulation:
        simulation.run()
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.size == (500, 300)
    with pytest.raises(CaseError, match=r"output.picture_size.*each side must be 20 to 1000 mm"):
        load(template, overrides=["output.picture_size=5x5"])


def test_rims_are_closed_with_the_orientation_of_the_wall() -> None:
    pytest.importorskip("pyvista")
    vertices, faces = tube(6.0, 40.0)
    closed = np.concatenate([faces, scene.plane_caps(vertices, faces)])
    corners = vertices[closed]
    volume = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])).sum() / 6
    area = 0.5 * 40 * 6.0**2 * np.sin(2 * np.pi / 40)
    assert volume == pytest.approx(40.0 * area, rel=1e-12)
    assert len(scene.plane_caps(vertices, closed)) == 0


def test_where_pyvista_fails_a_line_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    failed = subprocess.CompletedProcess([], 1, "", "Traceback\nRuntimeError: no context\n")
    monkeypatch.setattr(subprocess, "run", lambda *arguments, **options: failed)
    probe = scene.can_render.__wrapped__
    assert not probe()
    remedy = "for EGL, Debian and Ubuntu need the packages libegl1 and libgl1-mesa-dri"
    text = f"note: PyVista cannot render here (RuntimeError: no context); Matplotlib draws instead; {remedy}\n"
    assert capsys.readouterr().err == text
    failed.stderr = (
        "\x1b[0m\x1b[33m2026-11-28 (1.4s) [7F63] vtkOSOpenGLRenderWindow:150   WARN| libOSMesa not found. \x1b[0m\n"
    )
    assert not probe()
    assert capsys.readouterr().err == text.replace("RuntimeError: no context", "libOSMesa not found.")
    monkeypatch.setitem(sys.modules, "pyvista", None)
    assert not probe()
    assert capsys.readouterr().err == ""  # it is not installed: as without the extra


def test_windows_are_of_the_kind_that_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without EGL, VTK renders with OSMesa although EGL was asked for, and warns each time."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    monkeypatch.setenv(scene._WINDOW, "")
    monkeypatch.delenv("DISPLAY", raising=False)
    done = subprocess.CompletedProcess([], 0, "vtkOSOpenGLRenderWindow\n", "Failed to initialize OpenGL functions!")
    monkeypatch.setattr(subprocess, "run", lambda *arguments, **options: done)
    assert scene.can_render.__wrapped__()
    assert os.environ[scene._WINDOW] == "vtkOSOpenGLRenderWindow"


def test_cells_are_smooth_in_a_closed_wall(tmp_path: Path) -> None:
    pytest.importorskip("pyvista")
    if not scene.can_render():
        pytest.skip("PyVista cannot render here")
    frame = np.eye(3)[[0, 2, 1]] * [[1], [1], [-1]]
    view = scene.ParallelView(frame, (-2.0, -1.5), (2.0, 1.5))
    red = np.tile([1.0, 0.1, 0.1], (len(BALL.vertices), 1))
    ball = scene.SceneSurface(BALL.vertices, BALL.faces, red, is_refined=True)
    image = scene.render_scene([ball], view, 400)
    assert image.shape == (300, 400, 3)
    assert (image[0, 0] == 255).all()  # the background
    filled = image[..., 1] < 200
    assert filled.sum() == pytest.approx(np.pi * 100**2, rel=0.02)  # a disc with a radius of 100 pixels
    # Brightness across the ball changes in small steps: no facets.
    row = image[150, 215:285, 0].astype(int)
    assert np.abs(np.diff(row)).max() <= 6
    vertices, faces = tube(1.2, 3.0)
    grey = np.full((len(vertices), 3), 0.8)
    behind = scene.SceneSurface(vertices, faces, grey, side="back", ambient=0.6)
    before = scene.SceneSurface(vertices, faces, 0.5 * grey, opacity=0.15, side="front", ambient=0.6)
    closed = scene.render_scene([ball, behind, before], view, 400)
    wall = closed[40:260, 60:340].reshape(-1, 3).astype(int)
    assert (wall.min(axis=1) < 250).all()  # no gap shows the background
    assert closed[150, 200, 0] > 1.5 * closed[150, 200, 1]  # the ball is seen through the front
