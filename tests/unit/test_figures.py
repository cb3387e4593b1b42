# SPDX-License-Identifier: BSD-3-Clause
"""Figures show what they are given, at the promised size, and never replace a good picture by half of one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seiche.report.figures import (
    DrawnSurface,
    FlowHistory,
    PlaneSlice,
    convergence_figure,
    observed_order,
    plane_slice,
    profile_figure,
    vessel_figure,
)
from seiche.report.style import nice_length
from seiche.report.surface import face_values, screen_axes, shade


def _torus(n: int = 60) -> DrawnSurface:
    angle = np.arange(n) * 2 * np.pi / n
    around, tube = np.meshgrid(angle, angle, indexing="ij")
    ring = 8e-3 + 2e-3 * np.cos(tube)
    vertices = np.stack([ring * np.cos(around), 2e-3 * np.sin(tube), ring * np.sin(around)], axis=-1).reshape(-1, 3)
    i, j = np.divmod(np.arange(n * n), n)
    a, b, c, d = i * n + j, (i + 1) % n * n + j, (i + 1) % n * n + (j + 1) % n, i * n + (j + 1) % n
    faces = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    return DrawnSurface(vertices, faces, 2 + np.cos(3 * around).ravel())


def _disk() -> PlaneSlice:
    y, x = np.mgrid[-20:21, -15:16]
    radius = np.hypot(x / 15, y / 20)
    return PlaneSlice(np.where(radius < 1, 0.4 * (1 - radius**2), np.nan), 1e-4)


def test_vessel_figure_has_paper_size_and_colours_of_both_panels(tmp_path: Path) -> None:
    times = np.linspace(0, 1, 50)
    flow = FlowHistory(times, {"inlet": 1e-6 * np.sin(times), "outlet": -1e-6 * np.sin(times)})
    path = tmp_path / "vessel.png"
    vessel_figure(path, plane=_disk(), surface=_torus(), flow=flow, time=0.5)
    picture = Image.open(path).convert("RGB")
    assert picture.width == int(7.09 * 300)
    assert path.stat().st_size < 900 * 1024
    pixels = np.asarray(picture, np.int32)
    # The fastest site is drawn in the last colour of viridis, and that within the left half.
    yellow = np.abs(pixels - (253, 231, 36)).sum(axis=2) < 12
    assert yellow[:, : picture.width // 2].sum() > 500
    # White at the rim, and no more than half the page covered.
    assert (pixels[:5] == 255).all()
    assert 0.5 < (pixels == 255).all(axis=2).mean() < 0.97


def test_picture_over_the_limit_is_stored_with_fewer_colours(tmp_path: Path) -> None:
    for name, limit in (("full.png", 10**9), ("small.png", 1000)):
        vessel_figure(tmp_path / name, plane=_disk(), surface=_torus(20), limit=limit)
    assert Image.open(tmp_path / "full.png").mode == "RGBA"
    small = Image.open(tmp_path / "small.png")
    assert small.mode == "P"
    assert small.size == Image.open(tmp_path / "full.png").size
    assert (tmp_path / "small.png").stat().st_size < (tmp_path / "full.png").stat().st_size


def test_failed_figure_keeps_the_picture_before(tmp_path: Path) -> None:
    path = tmp_path / "vessel.png"
    path.write_text("old")
    torus = _torus(20)
    wrong = DrawnSurface(torus.vertices, torus.faces, np.ones(5))
    with pytest.raises(ValueError, match="5 values for 800 faces and 400 vertices"):
        vessel_figure(path, plane=_disk(), surface=wrong)
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["vessel.png"]


def test_slice_puts_every_site_of_the_plane_in_its_place() -> None:
    coords = np.array([(x, y, z) for x in range(2, 5) for y in range(2) for z in range(6)])
    plane = plane_slice(coords, coords * 1.0, 1e-3, normal=1, index=1)
    assert plane.values.shape == (6, 3)
    assert plane.values[5, 2] == pytest.approx(np.sqrt(4**2 + 1 + 5**2))
    lying = plane_slice(coords, coords[:, 0] * 1.0, 1e-3, normal=2, index=0)
    assert lying.values.shape == (3, 2)
    np.testing.assert_array_equal(lying.values, [[2, 2], [3, 3], [4, 4]])
    with pytest.raises(ValueError, match="no site has coordinate 9 along axis 2"):
        plane_slice(coords, coords[:, 0], 1e-3, normal=2, index=9)


def test_surface_is_seen_from_the_side_of_its_slice() -> None:
    view, up = PlaneSlice(np.ones((2, 2)), 1.0, column_axis=0, row_axis=2).view()
    frame = screen_axes(view, up)
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-15)
    assert np.linalg.det(frame) == pytest.approx(1.0)
    assert frame[0, 0] > 0.8  # across points to the right
    assert frame[1, 2] > 0.9  # along points upwards
    with pytest.raises(ValueError, match="parallel"):
        screen_axes((0, 0, 2), (0, 0, 1))


def test_vertex_values_and_vectors_become_one_number_a_face() -> None:
    vertices, faces = np.zeros((3, 3)), np.array([(0, 1, 2)])
    assert face_values(DrawnSurface(vertices, faces, np.array([1.0, 2.0, 6.0]))) == pytest.approx([3.0])
    assert face_values(DrawnSurface(vertices, faces, np.array([[3.0, 4.0, 0.0]]))) == pytest.approx([5.0])


def test_light_is_brightest_towards_the_lamp_and_the_inside_is_darker() -> None:
    normals = np.array([(0, 0, 1.0), (0.8, -0.6, 0.0), (0, 0, -1.0)])
    diffuse, gloss = shade(normals)
    assert diffuse[0] > diffuse[2] > 0
    assert diffuse[0] > diffuse[1] > 0.5
    assert (diffuse <= 1).all()
    assert (gloss >= 0).all()


@pytest.mark.parametrize(("longest", "length"), [(1.0, 1.0), (4.9, 2.0), (9.99, 5.0), (0.03, 0.02), (70, 50)])
def test_scale_bar_has_a_round_length(longest: float, length: float) -> None:
    assert nice_length(longest) == pytest.approx(length)


def test_order_is_fitted_through_all_points() -> None:
    sizes = np.array([8, 16, 32])
    assert observed_order(sizes, 3.0 / sizes**2) == pytest.approx(2.0)


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_validation_plots_are_written_in_the_format_of_their_name(tmp_path: Path, suffix: str) -> None:
    sizes = np.array([8, 16, 32])
    convergence_figure(tmp_path / f"order.{suffix}", sizes=sizes, errors={"TRT": 1 / sizes**2}, order=2)
    x = np.linspace(-1, 1, 9)
    profile_figure(
        tmp_path / f"profile.{suffix}", exact=(x, 1 - x**2), measured={"here": (x, 1 - x**2)}, x_label="r", y_label="u"
    )
    magic = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[suffix]
    for name in ("order", "profile"):
        assert (tmp_path / f"{name}.{suffix}").read_bytes().startswith(magic)
