# SPDX-License-Identifier: BSD-3-Clause
"""Snapshots of ultrasound: values, planes, restarts, pictures and films, arrays with coordinates, messages."""

from __future__ import annotations

import base64
import io
import re
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from PIL import Image

import seiche
from seiche.case.loading import load, prepare
from seiche.case.render import render
from seiche.cli import main
from seiche.errors import CaseError, FormatError
from seiche.report.motion import read_motion
from ultrasound_cases import BASIC, case

PULSE = """solver = "ultrasound"
title = "a pulse"
[grid]
shape = {shape}
spacing = "0.5 mm"
cfl = 0.3
steps = 24
[layer]
points = 4
[medium]
material = "water"
[[source]]
kind = "initial-ball"
pressure = "2 kPa"
center = {center}
radius = "2 mm"
[record]
maps = ["p_final"]
"""
FILM = '[[output.snapshots]]\nfile = "film.h5"\nevery = {every}\n'
CUBE = PULSE.format(shape="[20, 16, 18]", center='["0 mm", "0 mm", "1 mm"]')


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure no bandwidth after these small runs."""
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)


def contents(path: Path) -> dict[str, Any]:
    """Return the arrays and attributes of a file of snapshots."""
    with h5py.File(path) as file:
        return {name: values[()] for name, values in file.items()} | {
            f"attribute {name}": np.asarray(value) for name, value in file.attrs.items()
        }


def assert_same(one: Path, other: Path) -> None:
    first, second = contents(one), contents(other)
    assert first.keys() == second.keys()
    for name, values in first.items():
        np.testing.assert_array_equal(second[name], values, err_msg=name)


def run(path: Path, *changes: str, output: Path | None = None, **options: Any) -> dict[str, Any]:
    """Run a case and return its results; `film` are the snapshots."""
    with load(path, overrides=list(changes), output=output, **options) as simulation:
        simulation.run(visible=False)
        folder = output or path.parent / "out"
        with h5py.File(folder / "result.h5") as file:
            return {name: np.asarray(values) for name, values in file.items()}


def test_snapshots_are_the_pressure_at_the_times_of_the_records(tmp_path: Path) -> None:
    """The state after the first step is that at time zero; the samples of a sensor begin with it."""
    path = case(tmp_path, BASIC + FILM.format(every=1))
    results = run(path, "record.maps=['p_max_all', 'p_final']")
    film = contents(tmp_path / "out" / "film.h5")
    dt = prepare(path).dt
    np.testing.assert_allclose(film["time"], dt * np.arange(60), rtol=1e-14)
    assert film["pressure"].shape == (60, 40, 48) and list(film["attribute axes"]) == ["x", "y"]
    np.testing.assert_array_equal(film["pressure"][-1].T, results["p_final"])
    np.testing.assert_array_equal(film["pressure"].max(0).T, np.maximum(results["p_max_all"], 0))
    row, column = (int(np.argmin(abs(results[axis] - at))) for axis, at in (("y", 1e-3), ("x", 0.0)))
    np.testing.assert_array_equal(film["pressure"][:, row, column], results["p"][0])
    for number, axis in enumerate("xy"):
        count = film["pressure"].shape[2 - number]
        positions = np.linspace(film["attribute lower"][number], film["attribute upper"][number], count)
        np.testing.assert_allclose(positions, results[axis], atol=1e-12)


def test_of_many_points_every_nth_is_stored(tmp_path: Path) -> None:
    results = run(case(tmp_path, BASIC + FILM.format(every=30) + "points = 16\n"), "record.maps=['p_final']")
    film = contents(tmp_path / "out" / "film.h5")
    np.testing.assert_array_equal(film["pressure"][-1], results["p_final"][::3, ::3].T)
    np.testing.assert_allclose(film["attribute upper"], [results["x"][45], results["y"][39]])


def test_lines_planes_and_volumes_are_stored(tmp_path: Path) -> None:
    """By default the plane is the middle one across the axis with the fewest points."""
    path = case(tmp_path, CUBE + FILM.format(every=8))
    whole = run(path)["p_final"]
    for change, expected, axes in (
        ("picture='a.png'", whole[:, 8, :].T, "xz"),
        ("normal='z'", whole[:, :, 9].T, "xy"),
        ("normal='x',at='-2 mm'", whole[6].T, "yz"),
        ("volume=true", whole.T, "xyz"),
    ):
        output = tmp_path / axes
        run(path, f"output.snapshots=[{{file='film.h5',every=8,{change}}}]", output=output, replace=True)
        film = contents(output / "film.h5")
        assert list(film["attribute axes"]) == list(axes) and film["pressure"].shape == (3, *expected.shape)
        np.testing.assert_array_equal(film["pressure"][-1], expected)
    volume = read_motion(tmp_path / "xyz" / "film.h5")
    np.testing.assert_array_equal(volume.values[-1], whole[:, 8, :].T)
    assert volume.axes == ("x", "z") and volume.title == "a pulse, y = 0 m"
    assert render(tmp_path / "xyz", moving=True).read_bytes()[:4] == b"GIF8"
    line = case(tmp_path, PULSE.format(shape="[40]", center='["0 mm"]') + FILM.format(every=8))
    whole = run(line, output=tmp_path / "line")["p_final"]
    np.testing.assert_array_equal(contents(tmp_path / "line" / "film.h5")["pressure"][-1], whole)
    assert Image.open(render(tmp_path / "line", moving=False)).size[0] > 1000


def test_axisymmetric_pressure_is_stored_over_axis_and_radius(tmp_path: Path) -> None:
    text = PULSE.format(shape="[32, 16]", center='["0 mm", "0 mm"]').replace(
        "cfl = 0.3\n", 'cfl = 0.3\nsymmetry = "axisymmetric"\n'
    )
    for end in ("rigid", "pressure-release"):
        path, output = case(tmp_path, text + FILM.format(every=12)), tmp_path / end
        results = run(path, f"grid.outer_end={end}", output=output)
        film = contents(output / "film.h5")
        np.testing.assert_array_equal(film["pressure"][-1].T, results["p_final"])
        assert film["attribute lower"][1] == 0.0


@pytest.mark.parametrize(("stop", "pictures"), [(12, ""), (15, 'picture = "film.png"\nfilm = "film.gif"\n')])
def test_a_restarted_run_leaves_the_same_file_as_one_without_a_stop(tmp_path: Path, stop: int, pictures: str) -> None:
    path = case(tmp_path, CUBE + FILM.format(every=4) + pictures)
    run(path, output=tmp_path / "whole")
    parts = tmp_path / "parts"
    with load(path, output=parts) as simulation:
        simulation.run(steps=stop, visible=False)
        simulation.checkpoint()
    for _ in range(2):  # the second time after states later than the checkpoint
        with load(path, output=parts, restart=parts / "checkpoint.seiche") as simulation:
            names = {file.name for file in simulation.run(visible=False).files}
        assert {"film.h5", "film.png", "film.gif"} <= names if pictures else "film.h5" in names
        assert_same(parts / "film.h5", tmp_path / "whole" / "film.h5")
        if pictures:
            assert (parts / "film.gif").read_bytes() == (tmp_path / "whole" / "film.gif").read_bytes()
    assert not list(parts.glob("*.part")) and not list(parts.glob("*.from-*"))


def test_states_of_a_killed_run_are_continued(tmp_path: Path) -> None:
    """The unfinished file has states beyond the checkpoint, which are computed again."""
    path, parts, found = case(tmp_path, CUBE + FILM.format(every=2)), tmp_path / "parts", tmp_path / "found"
    run(path, output=tmp_path / "whole")
    with load(path, output=parts) as simulation:
        simulation.run(steps=9, visible=False)
        simulation.checkpoint()
        simulation.run(steps=8, visible=False)
        shutil.copytree(parts, found)  # what a kill leaves
    assert (found / "film.h5.part").exists() and not (found / "film.h5").exists()
    with load(path, output=found, restart=found / "checkpoint.seiche") as simulation:
        simulation.run(visible=False)
    assert_same(found / "film.h5", tmp_path / "whole" / "film.h5")
    assert not list(found.glob("*.part"))


def test_a_checkpoint_of_the_last_step_completes_the_file_of_a_killed_run(tmp_path: Path) -> None:
    path, parts, found = case(tmp_path, CUBE + FILM.format(every=2)), tmp_path / "parts", tmp_path / "found"
    run(path, output=tmp_path / "whole")
    with load(path, output=parts) as simulation:
        simulation.run(steps=23, visible=False)
        simulation.checkpoint()
        shutil.copytree(parts, found)
    run(path, "grid.steps=23", output=found, restart=found / "checkpoint.seiche")
    result, whole = (contents(folder / "film.h5") for folder in (found, tmp_path / "whole"))
    np.testing.assert_array_equal(result["pressure"], whole["pressure"][:-1])
    np.testing.assert_array_equal(result["time"], whole["time"][:-1])


def test_a_file_of_another_plane_is_not_continued(tmp_path: Path) -> None:
    path, out = case(tmp_path, CUBE + FILM.format(every=4)), tmp_path / "out"
    with load(path) as simulation:
        simulation.run(steps=12, visible=False)
        simulation.checkpoint()
    before = (out / "film.h5").read_bytes()
    with load(path, overrides=["output.snapshots.0.normal=z"], restart=out / "checkpoint.seiche") as simulation:
        with pytest.raises(CaseError, match=r"film\.h5 has snapshots of another plane, grid or case"):
            simulation.run(visible=False)
    assert (out / "film.h5").read_bytes() == before


def test_snapshots_have_coordinates_and_units(tmp_path: Path) -> None:
    path = case(tmp_path, BASIC + FILM.format(every=20).replace("film.h5", "the film.h5"))
    with load(path) as simulation:
        simulation.run(visible=False)
        result = simulation.result()
    data = result.to_xarray()
    series = data["the_film_pressure"]
    assert series.dims == ("the_film_time", "the_film_y", "the_film_x") and series.units == "Pa"
    np.testing.assert_allclose(data["the_film_x"], data["x"], atol=1e-12)
    np.testing.assert_array_equal(series[-1].T, data["pressure"])
    assert data["the_film_time"].units == "s"


def test_commands_draw_pictures_and_films(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["run", str(case(tmp_path, BASIC + FILM.format(every=20)))]) == 0
    assert main(["render", str(out), "--dpi", "100", "--size", "80x60"]) == 0
    assert Image.open(out / "film.png").size == (314, 236)
    assert main(["render", str(out), "--film", "--every", "2"]) == 0
    assert Image.open(out / "film.gif").n_frames == 2
    assert main(["report", str(out)]) == 0
    page = (out / "report.html").read_text()
    assert "film.h5: 3 states from 1.9 µs to 5.9 µs, largest pressure " in page
    picture = re.search(r'src="data:image/png;base64,([^"]+)"', page)
    assert picture is not None and Image.open(io.BytesIO(base64.b64decode(picture[1]))).size[0] > 700
    capsys.readouterr()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("normal = 'z'", "normal, at and volume need a grid of three axes; it has 2"),
        ("volume = true\nnormal = 'z'", "volume: stores the whole grid; omit normal and at"),
        ("every = '1 ns'", "is shorter than half a time step"),
        ("film = 'film.mp4'", "film"),
    ],
)
def test_impossible_snapshots_are_rejected_in_one_line(
    tmp_path: Path, change: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = BASIC + FILM.format(every=5)
    text = text.replace("every = 5", change) if change.startswith("every") else f"{text}{change}\n"
    assert main(["run", str(case(tmp_path, text))]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_a_plane_outside_the_grid_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = case(tmp_path, CUBE + FILM.format(every=5) + "normal = 'x'\nat = '9 mm'\n")
    assert main(["check", str(path)]) == 2
    assert 'output.snapshots["film.h5"].at: 0.009 m is outside the grid' in capsys.readouterr().err


def test_damaged_volumes_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "film.h5"
    with h5py.File(path, "w") as file:
        file.attrs.update({"medium": "acoustic", "axes": ["x", "y", "z"], "title": "", "lower": [0.0] * 3})
        file.attrs["upper"] = [1.0] * 3
        file["time"], file["pressure"] = [0.0], np.zeros((1, 4, 4), "f4")
    with pytest.raises(FormatError, match="is no series of volumes"):
        read_motion(path)


def test_a_restarted_run_in_python_continues_its_film(tmp_path: Path) -> None:
    path = case(tmp_path, BASIC + FILM.format(every=7))
    with seiche.load(path, output=tmp_path / "a") as simulation:
        while simulation.step < 60:
            simulation.run(steps=20, visible=False)
    run(path, output=tmp_path / "b")
    assert_same(tmp_path / "a" / "film.h5", tmp_path / "b" / "film.h5")
