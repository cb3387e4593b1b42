# SPDX-License-Identifier: BSD-3-Clause
"""A folder of outputs holds one run of any kind: second runs, foreign files, restarts from elsewhere, locks."""

from __future__ import annotations

import errno
import fcntl
import gc
import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NoReturn

import h5py
import pytest

import seiche
from prediction_cases import case_file
from seiche.case.folder import LOCK, RECORD
from seiche.case.output import Final, OutputTarget
from seiche.case.simulation import Simulation
from seiche.errors import CaseError
from seiche.io.lock import STALE, Owner

#: A file of states of each kind, and the number of steps.
SERIES = {
    "flow": ("time.steps=6", 'output.fields=[{ file = "u.vtkhdf", every = 2 }]'),
    "blood": (
        "time.steps=6",
        "packing.hematocrit=0.05",
        "cells.red.shape.vertices=42",
        'output.cells=[{ file = "u.vtkhdf", every = 2 }]',
    ),
    "ultrasound": ("grid.steps=6", "grid.shape=[40, 32, 32]"),
    "waves": ("time.steps=6", 'output.snapshots=[{ file = "u.h5", every = 2, points = 8 }]'),
}
KINDS = pytest.mark.parametrize("kind", SERIES)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No measurement of the memory's speed after each of these small runs."""
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)


def loaded(folder: Path, kind: str, **options: Any) -> Simulation:
    """Return a small case of a kind, with its outputs in the folder `out`."""
    changes = (*SERIES[kind], *options.pop("overrides", ()))
    output = options.pop("output", folder / "out")
    return seiche.load(case_file(folder, kind), overrides=changes, output=output, **options)


def run_case(folder: Path, kind: str, **options: Any) -> None:
    with loaded(folder, kind, **options) as simulation:
        simulation.run(visible=False)
        simulation.checkpoint()


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder but those that every run renews."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in (RECORD, LOCK)}


@KINDS
def test_a_second_run_is_rejected_before_anything_is_made(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_case(tmp_path, kind)
    before = files_in(tmp_path / "out")

    def never(*_: object, **__: object) -> NoReturn:
        raise AssertionError("the case was prepared")

    with monkeypatch.context() as patched:
        patched.setattr(f"seiche.case.{kind}.kind.prepare", never)
        patched.setattr("seiche.case.loading.check_inputs_preserved", never)
        with pytest.raises(CaseError, match=r"the folder contains the results of an earlier run .*; use --replace"):
            loaded(tmp_path, kind)
    assert files_in(tmp_path / "out") == before
    run_case(tmp_path, kind, replace=True)
    assert set(files_in(tmp_path / "out")) == set(before)


@KINDS
def test_a_run_that_has_ended_writes_no_more_into_the_folder_of_a_later_one(kind: str, tmp_path: Path) -> None:
    first = loaded(tmp_path, kind)
    first.run(visible=False)
    first.checkpoint()  # of its own folder
    with pytest.raises(CaseError, match="use --replace"):
        loaded(tmp_path, kind)
    record = json.loads((tmp_path / "out" / RECORD).read_text())
    assert "checkpoint.seiche" in record["files"] and record["state"] == "done"
    (tmp_path / "out" / RECORD).write_text(json.dumps(record | {"run": "of another process"}))
    with pytest.raises(CaseError, match="cannot write more results"):
        first.checkpoint()
    first.close()


@KINDS
def test_replacing_removes_the_files_of_the_run_and_no_other(kind: str, tmp_path: Path) -> None:
    run_case(tmp_path, kind)
    out = tmp_path / "out"
    old = set(files_in(out))
    own = {"notes.txt": b"mine", "fields.vtkhdf": b"\x89HDF mine", "u.txt": b"mine", "summary.json.old": b"{}"}
    for name, content in own.items():
        (out / name).write_bytes(content)
    names = ("output.summary=other.json", "output.checkpoint.file=other.seiche")
    with loaded(tmp_path, kind, replace=True, overrides=names) as simulation:
        assert set(files_in(out)) == set(own)
        simulation.run(visible=False)
    assert not set(files_in(out)) & {"summary.json", "checkpoint.seiche"}
    assert {name: (out / name).read_bytes() for name in own} == own
    assert {"summary.json", "checkpoint.seiche"} <= old
    assert (kind == "ultrasound") or any(name.startswith("u.") for name in old)


def test_replacing_keeps_what_the_case_reads_and_what_somebody_has_put_there(tmp_path: Path) -> None:
    run_case(tmp_path, "flow")
    out = tmp_path / "out"
    (out / "checkpoint.seiche").write_text("mine")
    names = ("output.fields=[]", "output.summary=s.json", "output.checkpoint.file=c.seiche")
    with loaded(tmp_path, "flow", replace=True, overrides=(*names, "title=out/u.vtkhdf")):  # a text that names a file
        assert set(files_in(out)) == {"u.vtkhdf", "checkpoint.seiche"}
    with loaded(tmp_path, "flow", replace=True, overrides=names):
        assert files_in(out) == {"checkpoint.seiche": b"mine"}


@KINDS
def test_a_file_that_no_run_has_listed_is_not_replaced_even_if_it_is_of_its_kind(kind: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "summary.json").write_text('{"of": "somebody"}')
    for options in ({}, {"replace": True}):
        with pytest.raises(CaseError, match=r"summary\.json"):
            loaded(tmp_path, kind, **options)
    with pytest.raises(CaseError, match="of the folder does not list it, so it is not replaced"):
        loaded(tmp_path, kind, replace=True)
    assert files_in(out) == {"summary.json": b'{"of": "somebody"}'}


@KINDS
def test_a_restart_from_elsewhere_deletes_nothing(kind: str, tmp_path: Path) -> None:
    """Neither the states of the run that it continues, nor those of another one, nor the checkpoint that it reads."""
    with loaded(tmp_path, kind) as simulation:
        simulation.run(3, visible=False)
        elsewhere = simulation.checkpoint(tmp_path / "kept.seiche")
        simulation.run(visible=False)
        simulation.checkpoint()
    out = tmp_path / "out"
    before, saved = files_in(out), elsewhere.read_bytes()
    with pytest.raises(CaseError, match=r"--output to continue in another folder, or --replace to continue here"):
        loaded(tmp_path, kind, restart=elsewhere)
    with loaded(tmp_path, kind, restart=elsewhere, replace=True) as simulation:
        assert files_in(out) == before
        simulation.run(visible=False)
    assert elsewhere.read_bytes() == saved
    after = files_in(out)
    assert set(before) <= set(after)
    states = [name for name in before if name.startswith("u.") and not name.endswith(".series")]
    assert all(after[name] == before[name] for name in states)
    # All of them are files of this folder's run now, and a run that replaces it starts from nothing.
    with loaded(tmp_path, kind, replace=True):
        assert files_in(out) == {}


@KINDS
def test_a_restart_keeps_the_checkpoint_that_it_reads_where_names_lead_out_of_the_folder(
    kind: str, tmp_path: Path
) -> None:
    run_case(tmp_path, kind, overrides=("output.checkpoint.file=c.seiche",))
    out, real = tmp_path / "out", tmp_path / "real.seiche"
    with loaded(tmp_path, kind, replace=True) as simulation:
        simulation.run(3, visible=False)
        simulation.checkpoint(real)
    (out / "link.seiche").symlink_to(real)
    shutil.copy(real, out / "copy.seiche")
    before = files_in(out)
    for name in ("link.seiche", "copy.seiche"):  # both are in the folder
        with loaded(tmp_path, kind, restart=out / name, replace=True):
            assert files_in(out) == before
    assert (out / "link.seiche").is_symlink()


@KINDS
def test_files_of_a_killed_run_are_known_as_its_own(kind: str, tmp_path: Path) -> None:
    script = (
        "import os, sys, seiche\n"
        "sim = seiche.load(sys.argv[1], overrides=sys.argv[3:], output=sys.argv[2])\n"
        "sim.run(3, visible=False)\n"
        "sim.checkpoint()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    path, out = case_file(tmp_path, kind), tmp_path / "out"
    killed = subprocess.run([sys.executable, "-c", script, str(path), str(out), *SERIES[kind]], check=False)
    assert killed.returncode == -9
    assert (out / LOCK).exists() and json.loads((out / RECORD).read_text())["state"] == "running"
    with pytest.raises(CaseError, match=r"the folder contains the results of an earlier run .*; use --replace"):
        loaded(tmp_path, kind)
    with loaded(tmp_path, kind, restart=out / "checkpoint.seiche") as simulation:
        assert simulation.step == 3
    with loaded(tmp_path, kind, replace=True):
        assert not {name for name in files_in(out) if not name.endswith(".part")}


@KINDS
def test_two_runs_at_once_are_rejected_and_a_cell_of_a_notebook_runs_again(kind: str, tmp_path: Path) -> None:
    first = loaded(tmp_path, kind)
    first.run(3, visible=False)
    with pytest.raises(CaseError, match=r"another run writes into this folder \(.*, process \d+ on .*\)"):
        loaded(tmp_path, kind)
    # With replace=True the simulation of the earlier cell, never closed, is closed and replaced.
    second = loaded(tmp_path, kind, replace=True)
    with pytest.raises(CaseError, match="the simulation is closed; load the case again"):
        first.run(visible=False)
    first.close()
    del first
    gc.collect()
    second.run(visible=False)
    second.close()
    expected = files_in(tmp_path / "out")
    assert "summary.json" in expected and not any(name.endswith(".part") for name in expected)
    assert not (tmp_path / "out" / LOCK).exists()


class Note(Final):
    """An output at the end: one text file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def targets(self) -> tuple[OutputTarget, ...]:
        return (OutputTarget("note", self.path),)

    def finish(self) -> list[Path]:
        self.path.write_text("a note")
        return [self.path]


@KINDS
def test_an_output_that_is_added_takes_no_place_of_another(kind: str, tmp_path: Path) -> None:
    out, foreign = tmp_path / "out", tmp_path / "out" / "mine.txt"
    with loaded(tmp_path, kind) as simulation:
        foreign.write_text("mine")
        targets = [*simulation.targets, OutputTarget("the case", simulation.setup.inputs[0])]
        for path in (foreign, *(target.path for target in targets)):
            with pytest.raises(CaseError, match=r"^note: .*(is also the file of|would overwrite|does not list it)"):
                simulation.add(Note(path))
        with pytest.raises(CaseError, match=r"note: .* is a folder"):
            simulation.add(Note(tmp_path))
        simulation.add(Note(out / "deep" / "note.txt"))
        with pytest.raises(CaseError, match="is also the file of note"):
            simulation.add(Note(out / "deep" / "note.txt"))
        simulation.run(visible=False)
    assert foreign.read_text() == "mine"
    assert "deep/note.txt" in json.loads((out / RECORD).read_text())["files"]
    with loaded(tmp_path, kind, replace=True) as simulation:
        assert not (out / "deep" / "note.txt").exists()
        simulation.add(Note(out / "deep" / "note.txt"))
    with pytest.raises(CaseError, match="the simulation is closed"):
        simulation.add(Note(out / "other.txt"))


def start_process(path: Path) -> subprocess.Popen[str]:
    """Return a process that has taken the lock `path`."""
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom seiche.io.lock import FolderLock\n"
        "assert FolderLock(Path(sys.argv[1]), 'x').acquire() is None\nprint(1, flush=True)\ntime.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "1\n"
    return process


@KINDS
def test_a_run_of_another_process_has_the_folder_until_it_is_killed(kind: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    process = start_process(out / LOCK)
    try:
        for options in ({}, {"replace": True}):
            with pytest.raises(CaseError, match=rf"another run writes into this folder \(x, process {process.pid} on"):
                loaded(tmp_path, kind, **options)
    finally:
        process.kill()
        process.wait()
    assert (out / LOCK).exists()
    loaded(tmp_path, kind).close()
    assert not (out / LOCK).exists()


def write_far_lock(path: Path, age: float) -> None:
    """Write the lock of a process of another host, whose last heartbeat was `age` seconds ago."""
    far = replace(Owner.current("x"), host="far", boot="another", nonce="1")
    path.write_text(json.dumps(asdict(far)))
    now = path.stat().st_mtime
    os.utime(path, (now - age, now - age))


@KINDS
def test_a_lock_of_another_host_is_stale_long_after_its_last_heartbeat(kind: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    write_far_lock(out / LOCK, STALE - 60)
    with pytest.raises(CaseError, match=r"another run writes into this folder \(x, process \d+ on far\)"):
        loaded(tmp_path, kind, replace=True)
    write_far_lock(out / LOCK, STALE + 5)
    loaded(tmp_path, kind).close()
    assert not (out / LOCK).exists()


@KINDS
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS])
def test_no_file_needs_the_locks_of_the_file_system(
    kind: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lustre and NFS may lack flock, other file systems hard links."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    full = h5py.File

    def unlocked(*given: Any, locking: bool | None = None, **options: Any) -> h5py.File:
        assert locking is False, "HDF5 asks for flock"
        return full(*given, locking=locking, **options)

    monkeypatch.setattr(h5py, "File", unlocked)
    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr(fcntl, "lockf", refuse)
    monkeypatch.setattr(os, "link", refuse)
    simulation = loaded(tmp_path, kind)
    with pytest.raises(CaseError, match="another run writes into this folder"):
        loaded(tmp_path, kind)
    simulation.run(visible=False)
    simulation.close()
    with pytest.raises(CaseError, match="use --replace"):
        loaded(tmp_path, kind)
    assert not (tmp_path / "out" / LOCK).exists()
