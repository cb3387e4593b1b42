# SPDX-License-Identifier: BSD-3-Clause
"""A foreign file that is put at a target while a run lasts is kept, and the run writes its own file beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import pytest

import seiche
from case_files import toml_of, tube_tables
from prediction_cases import case_file
from seiche.case.folder import RECORD
from seiche.case.output import Final, OutputTarget
from seiche.case.simulation import Simulation
from seiche.errors import CaseError
from seiche.io.files import publishing, replacing
from seiche.io.mark import mark_file

#: Of each kind: a small case with all kinds of files.
CHANGES = {
    "flow": (
        *("time.steps=4", "output.trace=trace.json", "output.picture=p.png"),
        'output.fields=[{ file = "u.vtkhdf", every = 2 }]',
        'output.surface=[{ file = "wall.vtkhdf", every = 2, fields = ["wall_shear_stress"] }]',
        'output.extraction=[{ file = "a.xtr", every = 2 }]',
        'output.averages={ file = "means.vtkhdf", window = 2, every = 1 }',
    ),
    "blood": (
        *("time.steps=4", "packing.hematocrit=0.05", "cells.red.shape.vertices=42", "output.picture=p.svg"),
        'output.cells=[{ file = "c.vtkhdf", every = 2 }, { file = "c.pos", every = 2 }]',
    ),
    "ultrasound": ("grid.steps=4", "grid.shape=[40, 32, 32]", "output.picture=p.pdf"),
    "waves": (
        *("time.steps=4", 'output.peak={ file = "peak.h5", picture = "peak.png" }'),
        'output.snapshots=[{ file = "u.h5", every = 2, points = 8, picture = "u.png", film = "u.gif" }]',
        'receiver=[{ name = "R", position = ["2 m", "2 m", "2 m"] }]',
        'output.receivers={ sac = true, picture = "s.png" }',
    ),
}
#: States of series, whose names are not those of targets.
STATES = {"blood": ("c.000000004.vtkhdf", "c.000000004.pos", "c.vtkhdf.series")}
KINDS = pytest.mark.parametrize("kind", CHANGES)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure no bandwidth after these small runs."""
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)


def loaded(folder: Path, kind: str, **options: Any) -> Simulation:
    return seiche.load(case_file(folder, kind), overrides=CHANGES[kind], output=folder / "out", **options)


def ran(folder: Path, kind: str, **options: Any) -> Path:
    with loaded(folder, kind, **options) as simulation:
        simulation.run(visible=False)
        simulation.checkpoint()
    return folder / "out"


def names_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.name[0] != "."}


def marked_file(path: Path) -> bytes:
    """Write an HDF5 file of another run and return its content."""
    with h5py.File(path, "w") as file:
        mark_file(file)
        file["another"] = [1.0]
    return path.read_bytes()


@KINDS
def test_every_foreign_file_is_kept_and_every_result_is_written(kind: str, tmp_path: Path) -> None:
    """A file of every target appears before the first output, some of them with the mark of Seiche."""
    expected = names_in(ran(tmp_path, kind))
    out, foreign = tmp_path / "out", dict[Path, bytes]()

    def put(simulation: Simulation) -> None:
        paths = [target.path for target in simulation.targets if not target.series or target.path.name in expected]
        for path in {*paths, *(out / name for name in STATES.get(kind, ()))}:
            is_hdf5 = path.suffix in (".h5", ".vtkhdf")
            if not is_hdf5:
                path.write_bytes(b"mine")
            foreign[path] = marked_file(path) if is_hdf5 else b"mine"

    with loaded(tmp_path, kind, replace=True) as simulation:
        simulation.every(put, steps=1)
        simulation.run(1, visible=False)
        simulation.outputs.items = [item for item in simulation.outputs.items if item.label != "callbacks"]
        with pytest.raises(CaseError, match="put there by another program during the run, so not replaced") as raised:
            simulation.run(visible=False)
        for _ in range(2):
            with pytest.raises(CaseError, match=r"checkpoint\.seiche: put there .* wrote .*checkpoint\.new\.seiche"):
                simulation.checkpoint()
    assert {path: path.read_bytes() for path in foreign} == foreign
    retained = {str(path.relative_to(out)) for path in foreign}
    assert retained >= expected - {f"c.{step:09d}.{suffix}" for step in (2,) for suffix in ("vtkhdf", "pos")}
    beside = {str(Path(name).with_stem(f"{Path(name).stem}.new")) for name in retained}
    assert names_in(out) == expected | beside
    for name in retained - {"checkpoint.seiche"}:
        assert str(out / name) in str(raised.value)
        assert str(out / Path(name).with_stem(f"{Path(name).stem}.new")) in str(raised.value)
    with pytest.raises(CaseError, match="exists"):
        loaded(tmp_path, kind, replace=True)
    for path in foreign:
        path.unlink()
    with loaded(tmp_path, kind, replace=True):
        assert not names_in(out)


@KINDS
def test_a_run_goes_on_in_its_own_files_after_a_foreign_one_was_kept(kind: str, tmp_path: Path) -> None:
    """The results are those of a run without a foreign file."""
    name = {"flow": "u.vtkhdf", "blood": "c.vtkhdf.series", "ultrasound": "result.h5", "waves": "u.h5"}[kind]
    out, beside = tmp_path / "out", Path(name).with_stem(f"{Path(name).stem}.new").name
    path = out / name
    with loaded(tmp_path, kind) as simulation:
        path.write_bytes(b"mine")
        simulation.every(lambda sim: sim.stop() if sim.step == 2 else None, steps=1)
        for _ in range(2):
            try:
                simulation.run(visible=False)
            except CaseError as error:
                assert str(path) in str(error) and str(out / beside) in str(error)
    assert path.read_bytes() == b"mine"
    clean = tmp_path / "clean"
    clean.mkdir()
    reference = ran(clean, kind) / name
    if name.endswith((".h5", ".vtkhdf")):
        assert datasets(out / beside) == datasets(reference)
    else:
        assert (out / beside).read_bytes() == reference.read_bytes()


def datasets(path: Path) -> dict[str, bytes]:
    result: dict[str, bytes] = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: result.update({name: item[()].tobytes()} if hasattr(item, "dtype") else {}))
    return result


def killed(folder: Path, kind: str) -> Path:
    """Return the folder of a run that was killed when it had written all files but its summary."""
    script = (
        "import os, sys, seiche\n"
        "import seiche.case.simulation as module\n"
        "module.copy_bandwidth = lambda *_: 1e10\n"
        "module.write_summary = lambda *_: os.kill(os.getpid(), 9)\n"
        "sim = seiche.load(sys.argv[1], overrides=sys.argv[3:], output=sys.argv[2])\n"
        "sim.run(visible=False)\n"
    )
    path, out = case_file(folder, kind), folder / "out"
    process = subprocess.run([sys.executable, "-c", script, str(path), str(out), *CHANGES[kind]], check=False)
    assert process.returncode == -9 and json.loads((out / RECORD).read_text())["state"] == "running"
    return out


@KINDS
def test_files_of_a_killed_run_are_known_by_their_digests(kind: str, tmp_path: Path) -> None:
    """A foreign file with the same first bytes is kept; all files of the run are replaced."""
    out = killed(tmp_path, kind)
    unmarked = [out / name for name in names_in(out) if Path(name).suffix not in (".h5", ".vtkhdf", ".part")]
    assert {path.suffix for path in unmarked} >= {
        "flow": {".png", ".xtr", ".off"},
        "blood": {".svg", ".pos", ".series"},
        "ultrasound": {".pdf"},
        "waves": {".png", ".gif", ".sac"},
    }[kind]
    for path in unmarked:
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2] + b"\n1 2 3" + content[len(content) // 2 + 6 :])
        own = path.read_bytes()
        with pytest.raises(CaseError, match="exists, but no run wrote it"):
            loaded(tmp_path, kind, replace=True)
        assert path.read_bytes() == own
        path.write_bytes(content)
    with loaded(tmp_path, kind, replace=True):
        assert not {name for name in names_in(out) if not name.endswith(".part")}


def test_the_surface_of_a_shape_is_kept_if_it_is_foreign(tmp_path: Path) -> None:
    """The surface is written before the first step, and known after the run was killed."""
    tables = tube_tables()
    tables["geometry"] = {"spacing": "0.5 mm", "shape": {"kind": "bifurcation", "stl": "vessel.stl"}}
    tables["iolet"] = [
        {"name": "inlet", "kind": "velocity", "velocity": "2 mm/s"},
        *({"name": name, "kind": "pressure", "pressure": "0 mmHg"} for name in ("outlet1", "outlet2")),
    ]
    case, out = tmp_path / "case.toml", tmp_path / "out"
    case.write_text(toml_of(tables))
    with seiche.load(case, output=out) as simulation:
        (out / "vessel.stl").write_bytes(b"solid mine")
        with pytest.raises(CaseError, match=r"vessel\.stl: put there .*vessel\.new\.stl instead"):
            simulation.run(2, visible=False)
        running = (out / RECORD).read_text()
    assert (out / "vessel.stl").read_bytes() == b"solid mine"
    (out / "vessel.stl").unlink()
    (out / RECORD).write_text(running)
    own = (out / "vessel.new.stl").read_bytes()[:-1] + b"\1"
    (out / "vessel.new.stl").write_bytes(own)
    with seiche.load(case, output=out, replace=True):
        assert (out / "vessel.new.stl").read_bytes() == own


def test_a_file_that_is_replaced_between_two_parts_of_a_run_is_not_written_to(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with loaded(tmp_path, "flow") as simulation:
        simulation.every(lambda sim: sim.stop(), steps=2)
        simulation.run(visible=False)
        (out / "u.vtkhdf").unlink()
        with h5py.File(out / "u.vtkhdf", "w") as file:
            file["mine"] = [1.0]
        own = (out / "u.vtkhdf").read_bytes()
        with pytest.raises(CaseError, match=r"u\.vtkhdf: was replaced by another program after the run; move it"):
            simulation.run(visible=False)
        assert (out / "u.vtkhdf").read_bytes() == own
        (out / "u.vtkhdf").unlink()


def test_a_file_that_is_replaced_during_a_run_is_reported(tmp_path: Path) -> None:
    """The series is open, and its next states go to the file that has lost its name."""
    out = tmp_path / "out"

    def swap(simulation: Simulation) -> None:
        if simulation.step == 3:
            with h5py.File(out / "mine.h5", "w") as file:
                file["mine"] = [1.0]
            os.replace(out / "mine.h5", out / "u.vtkhdf")

    with loaded(tmp_path, "flow") as simulation:
        simulation.every(swap, steps=1)
        with pytest.raises(CaseError, match=r"u\.vtkhdf: put there .*results that the run wrote to .*u\.vtkhdf before"):
            simulation.run(visible=False)
    with h5py.File(out / "u.vtkhdf") as file:
        assert list(file) == ["mine"]
    with pytest.raises(CaseError, match=r"u\.vtkhdf exists, but no run wrote it"):
        loaded(tmp_path, "flow", replace=True)


class Note(Final):
    """An output at the end: one text file."""

    def __init__(self, path: Path, write: Callable[[Path], None]) -> None:
        self.path, self._write = path, write

    @property
    def targets(self) -> tuple[OutputTarget, ...]:
        return (OutputTarget("note", self.path),)

    def finish(self) -> list[Path]:
        self._write(self.path)
        return [self.path]


def write_note(path: Path) -> None:
    with replacing(path) as part:
        part.write_text("a note")


def test_files_of_an_added_output_are_protected_too(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with loaded(tmp_path, "waves") as simulation:
        simulation.add(Note(out / "note.txt", write_note))
        (out / "note.txt").write_text("mine")
        (out / "other.txt").write_text("mine")
        simulation.every(lambda sim: write_note(out / "other.txt"), steps=2)  # a callback may replace its own files
        with pytest.raises(CaseError, match=r"note\.txt: put there"):
            simulation.run(visible=False)
    assert (out / "note.txt").read_text() == "mine"
    assert (out / "note.new.txt").read_text() == (out / "other.txt").read_text() == "a note"


def test_closing_warns_of_a_foreign_file(tmp_path: Path) -> None:
    """Snapshots of waves get their final name when the simulation is closed."""
    out = tmp_path / "out"
    simulation = loaded(tmp_path, "waves")
    simulation.run(2, visible=False)
    (out / "u.h5").write_bytes(b"mine")
    with pytest.warns(UserWarning, match=r"u\.h5: put there by another program"):
        simulation.close()
    assert (out / "u.h5").read_bytes() == b"mine" and (out / "u.new.h5").is_file()


def test_a_publisher_ends_with_its_block(tmp_path: Path) -> None:
    with publishing(lambda part, path, size=None: part.replace(tmp_path / "elsewhere")):
        write_note(tmp_path / "a")
    write_note(tmp_path / "b")
    assert names_in(tmp_path) == {"elsewhere", "b"}
