# SPDX-License-Identifier: BSD-3-Clause
"""Pictures and films of fields at sites: plane, values, colours, files."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

from seiche.case.render import render
from seiche.cli import main
from seiche.domain.world import World
from seiche.errors import CaseError, FormatError
from seiche.io.fields import FieldSeries, VoxelCells
from seiche.report.field_section import read_field_section

SHAPE, SPACING = (12, 6, 5), 0.5e-3


def sites() -> np.ndarray:
    """Return the sites of a box without one corner and, in the plane z = 2, all of them."""
    coords = np.stack(np.meshgrid(*map(np.arange, SHAPE), indexing="ij"), axis=-1).reshape(-1, 3)
    return coords[(coords[:, 2] == 2) | (coords[:, 0] + coords[:, 1] > 0)]


def example_run(folder: Path) -> Path:
    """Write three states: a velocity of 1, 2, 3 m/s times (x + 1) along y, and a pressure of both signs."""
    coords = sites()
    cells = VoxelCells(SHAPE, coords, SPACING)
    fields, units = {"velocity": 3, "pressure": 1}, {"velocity": "m/s", "pressure": "Pa"}
    with FieldSeries(folder / "flow.vtkhdf", World.serial(), cells, fields, 5, units=units) as series:
        for number in range(3):
            velocity = np.zeros((len(coords), 3))
            velocity[:, 1] = -(number + 1.0) * (coords[:, 0] + 1)
            series.write(0.1 * number, {"velocity": velocity, "pressure": coords[:, 1] - 2.5 + 0.0 * velocity[:, 0]})
    return folder


def test_the_plane_with_most_sites_across_the_shortest_axis_is_drawn(tmp_path: Path) -> None:
    section = read_field_section(example_run(tmp_path) / "flow.vtkhdf")
    assert (section.name, section.label, section.unit, section.plane[0]) == ("velocity", "speed", "m/s", "z")
    assert section.plane[1] == pytest.approx(2 * SPACING)
    assert [name for name, _ in section.axes] == ["x", "y"]
    np.testing.assert_allclose(section.axes[0][1], np.arange(12) * SPACING, atol=1e-12)
    np.testing.assert_allclose(section.times, [0.0, 0.1, 0.2])
    expected = np.arange(1, 4)[:, None, None] * np.arange(1, 13)[None, :, None] * np.ones((1, 1, 6))
    np.testing.assert_allclose(section.values, expected)
    every_second = read_field_section(tmp_path / "flow.vtkhdf", "pressure", interval=2)
    assert (every_second.label, every_second.unit) == ("pressure", "Pa")
    np.testing.assert_allclose(every_second.times, [0.0, 0.2])
    np.testing.assert_allclose(every_second.values[1, 4], np.arange(6) - 2.5)


def test_places_without_fluid_stay_empty(tmp_path: Path) -> None:
    coords = sites()[:, [0, 2, 1]]
    coords = coords[coords[:, 0] != 3]
    with FieldSeries(tmp_path / "f.vtkhdf", World.serial(), VoxelCells((12, 5, 6), coords, 1.0), {"p": 1}, 1) as series:
        series.write(0.0, {"p": np.ones(len(coords))})
    section = read_field_section(tmp_path / "f.vtkhdf")
    assert (section.name, section.plane[0]) == ("p", "y")
    assert np.isnan(section.values[0, 3]).all() and (section.values[0, 4] == 1).all()


def test_render_draws_fields_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = example_run(tmp_path)
    (run / "flow.png").write_text("mine")  # such as the picture of the case, which has another name
    assert main(["render", str(run)]) == 0
    assert main(["render", str(run), "--film", "--field", "pressure", "--every", "2"]) == 0
    assert capsys.readouterr().out.split() == [str(run / "flow.velocity.png"), str(run / "flow.pressure.gif")]
    assert (run / "flow.png").read_text() == "mine"
    with Image.open(run / "flow.pressure.gif") as film:
        assert film.n_frames == 2
    with Image.open(run / "flow.velocity.png") as picture:
        assert np.asarray(picture.convert("RGB")).std() > 10


def test_all_frames_of_a_film_have_the_same_colours(tmp_path: Path) -> None:
    """The speed at the same place doubles, so its colour changes although each frame has the same relative values."""
    run = example_run(tmp_path)
    render(run, moving=True)
    with Image.open(run / "flow.velocity.gif") as film:
        frames = []
        for number in range(2):
            film.seek(number)
            frames.append(np.asarray(film.convert("RGB")).astype(int))
    center = tuple(size // 2 for size in frames[0].shape[:2])
    assert np.abs(frames[0][center] - frames[1][center]).max() > 20


def test_what_cannot_be_drawn_gives_a_one_line_error(tmp_path: Path) -> None:
    run = example_run(tmp_path)
    with pytest.raises(CaseError, match=r"--field x: .*flow\.vtkhdf has pressure, velocity"):
        render(run, moving=False, field="x")
    with pytest.raises(CaseError, match=r"--output a\.gif: expected a picture"):
        render(run, moving=False, output=Path("a.gif"))
    with h5py.File(run / "flow.vtkhdf", "a") as file:
        file["VTKHDF/Connectivity"][...] = 10**6
    with pytest.raises(FormatError, match="refers to points that do not exist"):
        render(run, moving=False)
    (run / "flow.vtkhdf").unlink()
    with pytest.raises(CaseError, match="contains no cells, waves or fields; write them with"):
        render(run, moving=False)
    with pytest.raises(CaseError, match=r"contains no fields; write them with \[\[output\.fields\]\]"):
        render(run, moving=False, field="pressure")
