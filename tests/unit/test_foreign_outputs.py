# SPDX-License-Identifier: BSD-3-Clause
"""Files of other programs are neither replaced nor removed, even where the record of a run lists their names."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import pytest

import seiche
from prediction_cases import case_file
from seiche.case.folder import RECORD
from seiche.case.simulation import Simulation
from seiche.errors import CaseError
from seiche.io.mark import is_marked

#: Of each kind: small cases with all their HDF5 outputs.
CHANGES = {
    "flow": ("time.steps=4", 'output.fields=[{ file = "u.vtkhdf", every = 2 }]'),
    "blood": (
        *("time.steps=4", "packing.hematocrit=0.05", "cells.red.shape.vertices=42"),
        'output.cells=[{ file = "u.vtkhdf", every = 2 }]',
    ),
    "ultrasound": ("grid.steps=4", "grid.shape=[40, 32, 32]", "output.picture=p.png"),
    "waves": (
        *("time.steps=4", 'output.snapshots=[{ file = "u.h5", every = 2, points = 8 }]', "output.peak.file=peak.h5"),
        'receiver=[{ name = "R", position = ["2 m", "2 m", "2 m"] }]',
    ),
}
KINDS = pytest.mark.parametrize("kind", CHANGES)
PNG = b"\x89PNG\r\n\x1a\n of somebody"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure no bandwidth after these small runs."""
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)


def loaded(folder: Path, kind: str, **options: Any) -> Simulation:
    return seiche.load(case_file(folder, kind), overrides=CHANGES[kind], output=folder / "out", **options)


def run_case(folder: Path, kind: str, **options: Any) -> Path:
    with loaded(folder, kind, **options) as simulation:
        simulation.run(visible=False)
        simulation.checkpoint()
    return folder / "out"


def hdf5_files(out: Path) -> list[Path]:
    return sorted([*out.glob("*.h5"), *out.glob("*.vtkhdf")])


def write_own(path: Path) -> bytes:
    """Write a file of the user and return its content."""
    with h5py.File(path, "w") as file:
        file["measured"] = [1.0, 2.0]
    return path.read_bytes()


def edited_record(out: Path, change: Callable[[dict[str, Any]], object]) -> None:
    record = json.loads((out / RECORD).read_text())
    change(record)
    (out / RECORD).write_text(json.dumps(record))


@KINDS
def test_no_foreign_hdf5_file_at_a_listed_name_is_replaced(kind: str, tmp_path: Path) -> None:
    out = run_case(tmp_path, kind)
    files = hdf5_files(out)
    assert len(files) >= (3 if kind == "waves" else 1) and all(is_marked(path) for path in files)
    for path in files:
        saved, own = path.read_bytes(), write_own(path)
        with pytest.raises(CaseError, match=rf"{path.name} exists, but no run wrote it, so it is not replaced"):
            loaded(tmp_path, kind, replace=True)
        assert path.read_bytes() == own
        path.write_bytes(saved)
    run_case(tmp_path, kind, replace=True)
    contents = {path: write_own(path) for path in files}
    with suppress(CaseError):  # rejected where the restart does not use other names
        run_case(tmp_path, kind, restart=out / "checkpoint.seiche")
    assert {path: path.read_bytes() for path in files} == contents


@KINDS
def test_a_foreign_file_that_is_added_while_a_run_lasts_is_kept(kind: str, tmp_path: Path) -> None:
    """The run is killed before its record lists a file."""
    out = run_case(tmp_path, kind)
    names = [path.name for path in hdf5_files(out)]
    with loaded(tmp_path, kind, replace=True):
        running = (out / RECORD).read_text()
    assert json.loads(running)["state"] == "running" and not json.loads(running)["files"]
    (out / RECORD).write_text(running)
    own = write_own(out / names[0])
    with pytest.raises(CaseError, match=rf"{names[0]} exists, but .* does not list it"):
        loaded(tmp_path, kind, replace=True)
    assert (out / names[0]).read_bytes() == own


@KINDS
def test_a_foreign_file_that_is_added_before_a_run_stops_is_kept(kind: str, tmp_path: Path) -> None:
    """The record of the stopped run must not list it."""
    name = hdf5_files(run_case(tmp_path, kind))[0].name
    out = tmp_path / "out"
    for file in (name, "p.png"):
        with loaded(tmp_path, kind, replace=True):
            own = write_own(out / file) if file == name else PNG
            (out / file).write_bytes(own)
        if file == name or kind == "ultrasound":
            with pytest.raises(CaseError, match=rf"{file} exists, but"):
                loaded(tmp_path, kind, replace=True)
        assert (out / file).read_bytes() == own
        (out / file).unlink()


def test_a_foreign_picture_at_a_listed_name_is_kept(tmp_path: Path) -> None:
    """A picture has no mark; the record has its digest."""
    out = run_case(tmp_path, "ultrasound")
    (out / "p.png").write_bytes(PNG)
    with pytest.raises(CaseError, match=r"p\.png exists, but no run wrote it"):
        loaded(tmp_path, "ultrasound", replace=True)
    (out / "summary.json").write_text('{"case": "of somebody"}')
    other = (*CHANGES["ultrasound"][:2], "output.summary=s.json")
    case = case_file(tmp_path, "ultrasound")
    with seiche.load(case, overrides=other, output=out, replace=True):
        retained = {path.name for path in out.iterdir() if path.name[0] != "."}
    assert retained == {"p.png", "summary.json"} and (out / "p.png").read_bytes() == PNG


@KINDS
def test_files_of_a_run_are_known_after_they_are_copied(kind: str, tmp_path: Path) -> None:
    out = run_case(tmp_path, kind)
    for path in [path for path in out.iterdir() if path.name[0] != "."]:
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content)
    with loaded(tmp_path, kind, replace=True):
        assert not [path.name for path in out.iterdir() if path.name[0] != "."]


@KINDS
def test_files_of_earlier_versions_are_replaced(kind: str, tmp_path: Path) -> None:
    """They have no mark, and their record no digests; a restart adds digests of those that remain."""
    out = run_case(tmp_path, kind)
    for path in hdf5_files(out):
        with h5py.File(path, "r+") as file:
            del file.attrs["program"]
    edited_record(out, lambda record: record.pop("digests"))
    with loaded(tmp_path, kind, restart=out / "checkpoint.seiche"):
        pass
    assert not any(is_marked(path) for path in hdf5_files(out))
    with loaded(tmp_path, kind, replace=True):
        assert not hdf5_files(out)
