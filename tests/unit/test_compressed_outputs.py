# SPDX-License-Identifier: BSD-3-Clause
"""Every kind of case can compress the fields that it writes; the values are the same, or within the stated error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import seiche
from case_files import blood_tables, toml_of, tube_tables
from prediction_cases import WAVES
from seiche.case.simulation import Simulation
from seiche.cli import main
from ultrasound_cases import BASIC

DEFLATE = 'compression = "deflate"\n'
FLOW = (
    toml_of({**tube_tables(), "time": {"steps": 60}})
    + """
[[output.fields]]
file = "sites.vtkhdf"
every = 20
{0}
[[output.surface]]
file = "wall.vtkhdf"
every = 20
{0}
[output.averages]
file = "means.vtkhdf"
window = 20
{0}
"""
)
BLOOD = (
    toml_of({**blood_tables(), "time": {"steps": 8}})
    + """
[[output.fields]]
file = "sites.vtkhdf"
every = 4
{0}
[[output.cells]]
file = "cells.vtkhdf"
every = 4
{0}
"""
)
ULTRASOUND = (
    BASIC
    + """
[output]
{0}
[[output.snapshots]]
file = "film.h5"
every = 20
{0}
"""
)
WAVE = (
    WAVES
    + """
[[output.snapshots]]
file = "film.h5"
every = 5
points = 60
{0}
"""
)
CASES = {"flow": FLOW, "blood": BLOOD, "ultrasound": ULTRASOUND, "waves": WAVE}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure no bandwidth after these small runs."""
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)


def loaded(folder: Path, text: str, keys: str, **options: Any) -> Simulation:
    folder.mkdir(exist_ok=True)
    (folder / "case.toml").write_text(text.replace("{0}", keys))
    return seiche.load(folder / "case.toml", **options)


def written(folder: Path, text: str, keys: str = "") -> Path:
    with loaded(folder, text, keys) as simulation:
        simulation.run(visible=False)
    return folder / "out"


def arrays_of(path: Path) -> dict[str, np.ndarray]:
    """Return all datasets of a file, of a series of fields those of the complete steps."""
    arrays: dict[str, np.ndarray] = {}

    def add(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and not name.startswith(("committed", "VTKHDF/Steps")):
            arrays[name] = item[()]

    with h5py.File(path) as file:
        file.visititems(add)
        if "VTKHDF" in file:
            steps = file["VTKHDF/Steps"]
            arrays["times"] = steps["Values"][: steps.attrs["NSteps"]]
            for group in ("CellData", "PointData"):
                for name in file["VTKHDF"].get(group, ()):
                    rows = steps[f"{group}Offsets/{name}"][: steps.attrs["NSteps"]]
                    size = rows[-1] + (rows[1] if len(rows) > 1 else len(arrays[f"VTKHDF/{group}/{name}"]))
                    arrays[f"VTKHDF/{group}/{name}"] = arrays[f"VTKHDF/{group}/{name}"][:size]
    return arrays


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix in (".vtkhdf", ".h5"))


@pytest.mark.parametrize("kind", CASES)
def test_compressed_files_of_every_kind_have_the_same_values(tmp_path: Path, kind: str) -> None:
    plain = written(tmp_path / "plain", CASES[kind])
    small = written(tmp_path / "small", CASES[kind], DEFLATE)
    assert files_in(small) == files_in(plain)
    filters = 0
    for name in files_in(small):
        expected, arrays = arrays_of(plain / name), arrays_of(small / name)
        assert arrays.keys() == expected.keys()
        for key, values in arrays.items():
            assert values.tobytes() == expected[key].tobytes(), (name, key)
        with h5py.File(small / name) as file:
            filters += bool(file.visititems(lambda _, item: getattr(item, "compression", None)))
    assert filters >= {"flow": 3, "blood": 3, "ultrasound": 2, "waves": 1}[kind]


RESULTS = ("pressure", "p", "p_amplitude", "p_phase", "p_max_all")
BOUNDS: list[tuple[str, str, dict[str, float], dict[str, float]]] = [
    (
        "flow",
        'absolute_error = { velocity = "0.01 mm/s" }\nrelative_error = 1e-3',
        {"velocity": 1e-5},
        {"pressure": 1e-3},
    ),
    ("ultrasound", 'absolute_error = { pressure = "20 Pa" }', dict.fromkeys(set(RESULTS) - {"p_phase"}, 20.0), {}),
    ("ultrasound", "relative_error = 1e-4", {}, dict.fromkeys(RESULTS, 1e-4)),
    ("waves", 'absolute_error = { velocity = "1e-12 m/s" }', {"velocity": 1e-12}, {}),
    ("blood", 'absolute_error = { velocity = "10 um/s" }', {"velocity": 1e-5}, {}),
]


@pytest.mark.parametrize(("kind", "keys", "absolute", "relative"), BOUNDS)
def test_errors_are_within_their_bounds(
    tmp_path: Path, kind: str, keys: str, absolute: dict[str, float], relative: dict[str, float]
) -> None:
    text = CASES[kind]
    if kind == "flow":  # the fields and errors of the sites only
        text = text.partition("[[output.surface]]")[0]
    plain = written(tmp_path / "plain", text)
    small = written(tmp_path / "small", text, DEFLATE + keys)
    checked, differ = set(), False
    for name in files_in(small):
        expected, arrays = arrays_of(plain / name), arrays_of(small / name)
        for key, values in arrays.items():
            field = key.rpartition("/")[2]
            error = np.abs(values.astype(float) - expected[key]) if values.dtype.kind == "f" else 0.0
            limit = relative.get(field, 0.0) * np.abs(expected[key]) if field in relative else absolute.get(field, 0.0)
            assert np.all(error <= limit), (name, key)
            differ |= bool(np.any(error > 0))
            checked.add(field)
    assert differ
    assert checked >= absolute.keys() | relative.keys()


def test_cells_are_stored_within_the_error_of_positions(tmp_path: Path) -> None:
    text = BLOOD.partition("[[output.fields]]")[0] + '[[output.cells]]\nfile = "cells.vtkhdf"\nevery = 4\n{0}'
    plain = written(tmp_path / "plain", text)
    small = written(
        tmp_path / "small", text, DEFLATE + 'absolute_error = { position = "10 nm" }\nrelative_error = 0.01'
    )
    for name in files_in(small):
        expected, arrays = arrays_of(plain / name), arrays_of(small / name)
        assert 0 < np.abs(arrays["VTKHDF/Points"] - expected["VTKHDF/Points"]).max() <= 1e-8
        velocity = expected["VTKHDF/PointData/velocity"]
        assert np.all(np.abs(arrays["VTKHDF/PointData/velocity"] - velocity) <= 0.01 * np.abs(velocity))
        assert (small / name).stat().st_size < 0.7 * (plain / name).stat().st_size


def test_a_run_continues_after_its_files_were_compressed(tmp_path: Path) -> None:
    """In the same process the file is continued; a restart writes a file of its own."""
    whole = written(tmp_path / "whole", FLOW, DEFLATE)
    with loaded(tmp_path / "parts", FLOW, DEFLATE) as simulation:
        simulation.every(lambda run: run.stop("test") if run.step == 30 else None, steps=30)
        assert simulation.run(visible=False).stopped
        with h5py.File(tmp_path / "parts/out/sites.vtkhdf") as file:
            assert file["VTKHDF/CellData/velocity"].compression == "gzip"
            assert file["VTKHDF/Steps"].attrs["NSteps"] == 1
        simulation.run(visible=False)
    assert files_in(tmp_path / "parts/out") == files_in(whole)
    for name in files_in(whole):
        expected, arrays = arrays_of(whole / name), arrays_of(tmp_path / "parts/out" / name)
        assert arrays.keys() == expected.keys()
        for key, values in arrays.items():
            assert values.tobytes() == expected[key].tobytes(), (name, key)


@pytest.mark.parametrize("kind", ["flow", "ultrasound", "waves"])
def test_a_restart_continues_compressed_series(tmp_path: Path, kind: str) -> None:
    whole = written(tmp_path / "whole", CASES[kind], DEFLATE)
    with loaded(tmp_path / "parts", CASES[kind], DEFLATE) as simulation:
        stop = {"flow": 30, "ultrasound": 30, "waves": 7}[kind]
        simulation.every(lambda run: run.stop("test") if run.step == stop else None, steps=stop)
        simulation.run(visible=False)
    folder = tmp_path / "parts/out"
    with loaded(tmp_path / "parts", CASES[kind], DEFLATE, restart=folder / "checkpoint.seiche") as simulation:
        simulation.run(visible=False)
    name, field = {"flow": ("sites.vtkhdf", "VTKHDF/CellData/velocity")}.get(kind, ("film.h5", "pressure"))
    stem, _, suffix = name.partition(".")
    parts = [folder / name, *sorted(folder.glob(f"{stem}.from-*.{suffix}"))]
    joined = np.concatenate([arrays_of(path)[field] for path in parts])
    np.testing.assert_array_equal(joined, arrays_of(whole / name)[field])


@pytest.mark.parametrize("kind", CASES)
def test_pictures_and_reports_read_compressed_files(tmp_path: Path, kind: str) -> None:
    folder = written(tmp_path / kind, CASES[kind], DEFLATE)
    assert main(["render", str(folder), "-o", str(tmp_path / "a.png")]) == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert main(["report", str(folder)]) == 0


def test_a_full_disk_leaves_the_file_uncompressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("seiche.io.fields.compress", full)
    text = FLOW.partition("[[output.surface]]")[0]
    plain = written(tmp_path / "plain", text)
    with pytest.warns(UserWarning, match=r"sites\.vtkhdf: remains uncompressed: .*No space left"):
        folder = written(tmp_path / "full", text, DEFLATE)
    assert arrays_of(folder / "sites.vtkhdf").keys() == arrays_of(plain / "sites.vtkhdf").keys()
    assert (folder / "summary.json").exists()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("relative_error = 1e-4", 'relative_error: is only allowed with compression = "deflate"'),
        ('absolute_error = { velocity = "1 mm/s" }', 'absolute_error: is only allowed with compression = "deflate"'),
        ('compression = "zip"', 'compression: "zip" is not known; expected "none" or "deflate"'),
        (DEFLATE + "relative_error = -0.1", "relative_error: -0.1 is out of range; expected >= 1e-07"),
        (DEFLATE + "relative_error = 0.5", "relative_error: 0.5 is out of range; expected <= 0.1"),
        (DEFLATE + 'absolute_error = { velocity = "-1 m/s" }', 'velocity: "-1 m/s" is out of range; expected > 0'),
        (DEFLATE + 'absolute_error = { velocity = "1 Pa" }', 'velocity: "1 Pa" is a pressure; expected a velocity'),
        (DEFLATE + 'absolute_error = { speed = "1 m/s" }', "absolute_error.speed: unknown key; choose from"),
        (DEFLATE + 'absolute_error = { density = "1 g/L" }', "density: the file does not contain this field"),
        (DEFLATE + 'absolute_error = { velocity = "1 m/s" }', "1 m/s is above the peak velocity of 0.004 m/s"),
        (DEFLATE + 'absolute_error = { pressure = "1e14 Pa" }', "1e+14 Pa is above 1e+13 Pa; check its unit"),
    ],
)
def test_meaningless_bounds_are_named_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], keys: str, message: str
) -> None:
    text = FLOW.partition("[[output.surface]]")[0].replace("{0}", keys)
    (tmp_path / "case.toml").write_text(text)
    assert main(["check", str(tmp_path / "case.toml")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
