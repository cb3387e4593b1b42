# SPDX-License-Identifier: BSD-3-Clause
"""Runs of every kind in unusual circumstances: odd checkpoints, disks that fail when files are closed."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

import seiche
from prediction_cases import case_file
from seiche.case.folder import LOCK
from seiche.case.simulation import Simulation
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.io.background import BackgroundWriter, FunctionJob
from seiche.io.mark import new_hdf5

CHANGES = {
    "flow": ("time.steps=4", 'output.fields=[{ file = "u.vtkhdf", every = 2 }]', "output.trace=trace.json"),
    "blood": ("time.steps=4", "packing.hematocrit=0.05", "cells.red.shape.vertices=42", "output.picture=p.png"),
    "ultrasound": ("grid.steps=4", "grid.shape=[40, 32, 32]", "output.picture=p.png"),
    "waves": ("time.steps=4", 'output.snapshots=[{ file = "u.h5", every = 2, points = 8 }]'),
}
KINDS = pytest.mark.parametrize("kind", CHANGES)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure no bandwidth after these small runs."""
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)


def loaded(folder: Path, kind: str, **options: Any) -> Simulation:
    return seiche.load(case_file(folder, kind), overrides=CHANGES[kind], output=folder / "out", **options)


@KINDS
def test_a_checkpoint_is_not_written_to_the_file_of_another_output(kind: str, tmp_path: Path) -> None:
    """Its own name is that of the run's checkpoint, however it is spelled."""
    out = tmp_path / "out"
    with loaded(tmp_path, kind) as simulation:
        simulation.run(1, visible=False)
        (tmp_path / "link").symlink_to(out)
        others = [target for target in simulation.targets if target.path.name != "checkpoint.seiche"]
        assert len(others) >= 2 or kind == "flow"
        for target in others:
            for path in (target.path, tmp_path / "link" / target.path.name):
                with pytest.raises(CaseError, match=rf"checkpoint: .*{target.path.name} is also the file of output\."):
                    simulation.checkpoint(path)
        assert simulation.checkpoint(tmp_path / "link" / "checkpoint.seiche") == out / "checkpoint.seiche"
        assert simulation.run(visible=False).step == 4


@KINDS
def test_a_restart_from_a_pipe_or_a_loop_of_links_gives_one_line(kind: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name, reason in (("pipe", "is not a regular file"), ("loop", "Too many levels of symbolic links")):
        with pytest.raises(CaseError, match=rf"^--restart .*{name}: .*{reason}$"):
            loaded(tmp_path, kind, restart=tmp_path / name)


@KINDS
def test_a_file_that_cannot_be_closed_hides_no_error_and_keeps_no_lock(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulation, closed = loaded(tmp_path, kind), []
    simulation.every(lambda sim: None, steps=1)
    outputs = simulation.outputs.items

    def fail() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def fail_in_run(sim: Simulation) -> None:
        raise ValueError("of the callback")

    monkeypatch.setattr(outputs[0], "close", fail)
    monkeypatch.setattr(outputs[-1], "close", lambda: closed.append(True))
    simulation.every(fail_in_run, steps=1)
    with pytest.raises(ValueError, match="of the callback"):
        simulation.run(visible=False)
    assert not (tmp_path / "out" / LOCK).exists() and closed == [True]
    with pytest.raises(OSError, match="No space left"):
        simulation.close()
    simulation.close()
    assert not (tmp_path / "out" / LOCK).exists()


def test_errors_of_the_hdf5_library_become_those_of_the_disk(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left on device") as raised, new_hdf5(tmp_path / "a.h5"):
        raise RuntimeError("Can't decrement id ref count (file write failed: errno = 28, error message = 'No space')")
    assert raised.value.errno == errno.ENOSPC and raised.value.filename == str(tmp_path / "a.h5")
    with pytest.raises(OSError) as raised, new_hdf5(tmp_path / "a.h5"):
        raise RuntimeError("unknown")
    assert raised.value.errno == errno.EIO


@KINDS
def test_a_run_writes_to_its_folder_wherever_the_working_directory_is(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A callback changes it, and a notebook between two cells."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    case = case_file(tmp_path, kind).name
    with seiche.load(case, overrides=CHANGES[kind], output="out") as simulation:
        simulation.every(lambda sim: monkeypatch.chdir(tmp_path / "elsewhere"), steps=3)
        outcome = simulation.run(visible=False)
        assert simulation.checkpoint() == tmp_path / "out" / "checkpoint.seiche"
    assert outcome.step == 4 and not list((tmp_path / "elsewhere").iterdir())
    assert (tmp_path / "out" / "summary.json").is_file() and not (tmp_path / "out" / LOCK).exists()
    monkeypatch.chdir(tmp_path)
    with seiche.load(case, overrides=CHANGES[kind], output="out", replace=True):
        assert not [path.name for path in (tmp_path / "out").iterdir() if path.name[0] != "."]


@KINDS
def test_files_are_recorded_if_the_lock_is_deleted_during_the_run(kind: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with loaded(tmp_path, kind) as simulation:
        (out / LOCK).unlink()
        simulation.run(visible=False)
    assert (out / "summary.json").is_file()
    with loaded(tmp_path, kind, replace=True):
        assert not [path.name for path in out.iterdir() if path.name[0] != "."]


@KINDS
def test_a_run_that_a_callback_has_ended_continues_to_its_end(kind: str, tmp_path: Path) -> None:
    """States that were not complete are abandoned, and no part of their jobs is executed later."""

    def fail_once(sim: Simulation) -> None:
        if sim.step == 3 and not failed:
            failed.append(True)
            raise ValueError("of the callback")

    failed: list[bool] = []
    with loaded(tmp_path, kind) as simulation:
        simulation.every(fail_once, steps=1)
        with pytest.raises(ValueError, match="of the callback"):
            simulation.run(visible=False)
        assert simulation.run(visible=False).step == 4
        assert simulation.checkpoint().is_file()
    assert (tmp_path / "out" / "summary.json").is_file()


def test_a_stopped_writer_executes_no_task_of_abandoned_jobs() -> None:
    """The first job is stored but not committed when the writer is stopped."""
    notes: list[str] = []

    def job(name: str) -> FunctionJob:
        return FunctionJob(
            lambda: notes.append(f"store {name}"),
            lambda stored: notes.append(f"commit {name}"),
            lambda complete: notes.append(f"{'finish' if complete else 'drop'} {name}"),
        )

    writer, gate = BackgroundWriter(World.serial(), 3), threading.Event()
    writer.submit(FunctionJob(gate.wait, lambda stored: None, lambda complete: None))
    writer.submit(job("a"))
    threading.Timer(0.2, gate.set).start()
    writer.stop()
    writer.submit(job("b"))
    writer.drain()
    writer.stop()
    assert notes == ["drop a", "store b", "commit b", "finish b"]
