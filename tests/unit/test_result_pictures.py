# SPDX-License-Identifier: BSD-3-Clause
"""Pictures and meshes of labelled results: the right values at the right places."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from seiche.case import new
from seiche.case.labels import Labelled, LabelledArrays
from seiche.case.loading import load
from seiche.cells.mesh import icosphere
from seiche.errors import BackendUnavailable, CaseError
from seiche.report.field_panel import cuts, to_decibels
from seiche.report.result_meshes import boxes_between_nodes

CHANGES = {
    "flow": ("time={ steps = 20 }", "iolet.inlet.ramp=5", "output.record_every=5"),
    "blood": ("time={ steps = 4 }",),
    "ultrasound": ("grid={ shape = [64, 64], spacing = '0.2 mm', steps = 20 }",),
    "waves": ("time={ steps = 20 }", "output.receivers.every=2"),
}


def result_of(kind: str, folder: Path, **grid: float) -> LabelledArrays:
    with load(new.TEMPLATES / f"{kind}.toml", overrides=CHANGES[kind], output=folder) as simulation:
        simulation.run(visible=False)
        return simulation.result("velocity", "pressure", **grid)


def on_grid(shape: tuple[int, ...], unit: float = 1e-3) -> LabelledArrays:
    """Return f = x + 10 y + 100 z (in the unit of length) on a grid."""
    ticks = [unit * np.arange(count) for count in shape]
    places = np.meshgrid(*ticks, indexing="ij")
    values = sum(10.0**k * position for k, position in enumerate(places)) / unit
    axes = "xyz"[: len(shape)]
    coordinates = {axis: Labelled(values, (axis,), "m") for axis, values in zip(axes, ticks, strict=True)}
    vector = Labelled(np.stack(places, axis=-1), (*axes, "component"), "m/s")
    return LabelledArrays("grid", 1.0, {"f": Labelled(values, tuple(axes), "Pa"), "velocity": vector}, coordinates)


@pytest.mark.parametrize("kind", CHANGES)
def test_every_kind_has_a_default_picture(kind: str, tmp_path: Path) -> None:
    picture = result_of(kind, tmp_path).plot()
    panels = [axes for axes in picture.figure.axes if axes.get_xlabel()]
    assert len(panels) == (1 if kind == "blood" else 2)
    assert panels[0].get_xlabel().startswith("x (")
    assert all(axes.get_xlabel() in ("time (ms)", "time (µs)") for axes in panels[1:])
    labels = [axes.get_ylabel() for axes in picture.figure.axes]
    assert any(label.startswith("p max all (" if kind == "ultrasound" else "speed (") for label in labels)
    picture.save(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5000
    assert picture._repr_png_().startswith(b"\x89PNG")


def test_the_plane_lies_across_the_shortest_axis(tmp_path: Path) -> None:
    picture = on_grid((5, 4, 3)).plot("f")
    panel = picture.figure.axes[0]
    assert panel.get_title() == "z = 1 mm" and (panel.get_xlabel(), panel.get_ylabel()) == ("x (mm)", "y (mm)")
    drawn = panel.collections[0].get_array()
    np.testing.assert_allclose(np.reshape(drawn, (4, 5)), np.add.outer(10.0 * np.arange(4), np.arange(5)) + 100.0)
    panel = on_grid((3, 5, 4)).plot("f").figure.axes[0]
    assert panel.get_title() == "x = 1 mm" and (panel.get_xlabel(), panel.get_ylabel()) == ("y (mm)", "z (mm)")
    with pytest.raises(CaseError, match="'g' is not a field of this result; it has f, velocity"):
        on_grid((5, 4)).plot("g")
    assert on_grid((6,)).plot("f").figure.axes[0].get_ylabel() == "f (Pa)"


def test_the_section_of_a_sphere_is_a_circle() -> None:
    sphere = icosphere(642)
    lines = cuts(sphere.vertices[sphere.faces], 1, 0.6)
    np.testing.assert_allclose(np.linalg.norm(lines, axis=-1), 0.8, rtol=0.02)
    lengths = np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1)
    assert lengths.sum() == pytest.approx(2 * np.pi * 0.8, rel=0.02)  # each part once


@pytest.mark.parametrize("dim", [2, 3])
def test_boxes_between_nodes_fill_the_element(dim: int) -> None:
    ticks = np.array([-1.0, -0.3, 0.3, 1.0])
    places = np.stack(np.meshgrid(*[ticks] * dim, indexing="ij")[::-1], axis=-1).reshape(-1, dim)  # x counts first
    corners = places[boxes_between_nodes(4, dim)]
    assert corners.shape == (3**dim, 2**dim, dim)
    sides = corners.max(axis=1) - corners.min(axis=1)
    assert sides.prod(axis=1).sum() == pytest.approx(2.0**dim)
    square = corners[:, :4]
    right, up = square[:, 1] - square[:, 0], square[:, 3] - square[:, 0]
    assert (right[:, 0] * up[:, 1] - right[:, 1] * up[:, 0] > 0).all()  # counter-clockwise


def test_without_pyvista_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyvista", None)
    with pytest.raises(BackendUnavailable, match=r"pip install 'seiche\[viz\]'"):
        on_grid((5, 4)).to_pyvista()


@pytest.mark.parametrize("shape", [(5, 4, 3), (5, 4), (5,)])
def test_a_grid_becomes_image_data_with_values_at_its_points(shape: tuple[int, ...]) -> None:
    pytest.importorskip("pyvista")
    mesh = on_grid(shape).to_pyvista()
    assert mesh.user_dict["units"]["f"] == "Pa" and mesh.user_dict["time"] == 1.0
    assert mesh.dimensions == (*shape, *(1,) * (3 - len(shape)))
    np.testing.assert_allclose(mesh["f"], mesh.points @ [1e3, 1e4, 1e5], rtol=1e-6, atol=1e-9)
    if len(shape) > 1:
        np.testing.assert_allclose(mesh["velocity"], mesh.points, rtol=1e-6, atol=1e-12)


def test_a_vessel_becomes_its_voxels(tmp_path: Path) -> None:
    pytest.importorskip("pyvista")
    result = result_of("flow", tmp_path)
    mesh = result.to_pyvista()
    pressure = result["pressure"].values
    assert mesh.n_cells == np.isfinite(pressure).sum()
    places = mesh.cell_centers().points
    rows = [
        np.abs(result.coordinates[axis].values[:, None] - places[:, k]).argmin(axis=0) for k, axis in enumerate("xyz")
    ]
    np.testing.assert_array_equal(mesh["pressure"], pressure[tuple(rows)])
    np.testing.assert_array_equal(mesh["velocity"], result["velocity"].values[tuple(rows)])


def test_cells_become_surfaces_with_the_values_of_each(tmp_path: Path) -> None:
    pytest.importorskip("pyvista")
    result = result_of("blood", tmp_path)
    blocks = result.to_pyvista()
    cells = blocks["cells"]
    assert list(blocks.keys()) == ["fluid", "cells"] and cells.is_manifold
    assert cells.volume == pytest.approx(result["cell_volume"].values.sum(), rel=0.05)  # flat triangles, 162 vertices
    assert set(cells["cell_volume"]) == set(result["cell_volume"].values)
    assert cells.user_dict["units"]["cell_volume"] == "m^3"


def test_elements_become_boxes_between_nodes(tmp_path: Path) -> None:
    pytest.importorskip("pyvista")
    result = result_of("waves", tmp_path)
    mesh = result.to_pyvista()
    assert mesh.area == pytest.approx(3200.0 * 1600.0)  # with the absorbing layers of 600 m
    np.testing.assert_array_equal(mesh["pressure"], result["pressure"].values.reshape(-1))
    np.testing.assert_array_equal(mesh["velocity"][:, 1], result["velocity"].values[:, 1].reshape(-1))


def test_decibels_are_relative_to_the_maximum_and_end_at_the_range() -> None:
    values = np.array([[1.0, -10.0, 100.0], [0.0, np.nan, 0.05]])
    np.testing.assert_allclose(to_decibels(values, 40.0), [[-40.0, -20.0, 0.0], [-40.0, np.nan, -40.0]])
    np.testing.assert_array_equal(to_decibels(np.zeros(3), 30.0), np.full(3, -30.0))
    panel = on_grid((5, 4)).plot("f", decibels=20.0).figure.axes[0]
    mesh = panel.collections[0]
    assert mesh.get_clim() == (-20.0, 0.0)
    expected = 20 * np.log10(np.maximum(np.add.outer(10.0 * np.arange(4), np.arange(5)) / 34.0, 0.1))
    np.testing.assert_allclose(mesh.get_array(), expected)


@pytest.mark.parametrize("decibels", [0.0, -3.0, np.nan, np.inf, "40"])
def test_a_range_that_is_not_positive_is_rejected(decibels: float) -> None:
    with pytest.raises(CaseError, match=r"decibels = .*: expected a positive number, the range below the maximum"):
        on_grid((5, 4)).plot("f", decibels=decibels)


def test_lines_separate_media_of_different_sound_speed() -> None:
    result = on_grid((6, 5, 3))
    speed = np.full((6, 5, 3), 1500.0)
    speed[3:] = 3000.0
    arrays = {**result.arrays, "sound_speed": Labelled(speed, ("x", "y", "z"), "m/s")}
    with_media = LabelledArrays(result.title, result.time, arrays, result.coordinates)
    lines = with_media.plot("f").figure.axes[0].collections[1]
    places = np.concatenate([path.vertices for path in lines.get_paths() if len(path.vertices)])
    assert len(places) and (places[:, 0] > 2.0).all() and (places[:, 0] < 3.0).all()
    assert len(with_media.plot("sound_speed").figure.axes[0].collections) == 1
    assert len(result.plot("f").figure.axes[0].collections) == 1
