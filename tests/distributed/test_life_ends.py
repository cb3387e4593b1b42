# SPDX-License-Identifier: BSD-3-Clause
"""How runs of every kind end: in their last chunk of steps, while files are completed, and after a kill there."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from launch import environment

import life_cases as runs
import seiche
from seiche.case.outputs import Outputs
from seiche.case.simulation import Simulation
from seiche.cli import main
from seiche.domain.world import World
from seiche.report.page_size import PageSize

SERIAL = World.serial()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure no bandwidth after these small runs."""
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)


@pytest.fixture
def lost() -> Any:
    """Return the signals that arrive while no run waits for them."""
    result: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        result.append(number)

    before = signal.signal(signal.SIGTERM, note)
    yield result
    signal.signal(signal.SIGTERM, before)


class KilledError(Exception):
    """The end of a run before its last files."""


@pytest.mark.parametrize("kind", runs.LIVES)
def test_a_restart_from_the_last_step_completes_the_files(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    case, parts, life = runs.life_file(tmp_path, kind), tmp_path / "parts", runs.LIVES[kind]
    with seiche.load(case, overrides=runs.changes_of(kind), output=tmp_path / "whole", world=SERIAL) as full:
        full.run(visible=False)

    def fail(self: Simulation, stopped: str | None) -> None:
        raise KilledError

    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(Simulation, "_finish", fail)
        main(["run", str(case), "--output", str(parts), "--set", *runs.changes_of(kind)])
    checkpoint = parts / "checkpoint.seiche"
    assert runs.checkpoint_of(checkpoint)[0] == life.steps
    assert not (parts / "summary.json").exists()
    capsys.readouterr()
    command = ["run", str(case), "--output", str(parts), "--set", *runs.changes_of(kind), "--restart", str(checkpoint)]
    assert main(command) == 0
    assert f"seiche: done: step {life.steps} (" in capsys.readouterr().out
    summary = runs.summary_in(parts)
    assert summary["finished"] is True and summary["steps"] == 0
    result, expected = runs.arrays_of(parts), runs.arrays_of(tmp_path / "whole")
    assert result.keys() == expected.keys()
    for name in {"result.h5", "receivers.h5", "peak.h5", "plane.h5"} & expected.keys():
        runs.assert_same_arrays(result[name], expected[name], name)
    runs.assert_same_checkpoint(checkpoint, tmp_path / "whole" / "checkpoint.seiche")


@pytest.mark.parametrize("kind", runs.KINDS)
def test_a_restart_of_a_complete_run_says_so_and_changes_no_file(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case, out, steps = runs.life_file(tmp_path, kind), tmp_path / "out", runs.LIVES[kind].steps
    changes = runs.changes_of(kind)
    with seiche.load(case, overrides=changes, output=out, world=SERIAL) as simulation:
        summary = simulation.run(visible=False).summary
        checkpoint = simulation.checkpoint()
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and path.name[0] != "."}
    message = f"nothing to do: the run in {out} is complete at its last step, {steps}"
    command = ["run", str(case), "--output", str(out), "--set", *changes, "--restart", str(checkpoint)]
    for _ in range(2):
        capsys.readouterr()
        assert main(command) == 0
        assert capsys.readouterr().out == f"seiche: {case}: {message}\n"
    with seiche.load(case, overrides=changes, output=out, restart=checkpoint, world=SERIAL) as simulation:
        outcome = simulation.run(visible=False)
    assert outcome.step == steps and outcome.lines == (f"{case}: {message}",) and not outcome.files
    assert outcome.summary["steps"] == summary["steps"] == steps
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and path.name[0] != "."} == before
    (out / "summary.json").unlink()  # what is missing is written again
    assert main(command) == 0
    assert runs.summary_in(out)["finished"] is True


@pytest.mark.parametrize("kind", runs.KINDS)
def test_a_run_that_was_stopped_continues_in_the_same_simulation(kind: str, tmp_path: Path) -> None:
    case, half = runs.life_file(tmp_path, kind), runs.LIVES[kind].steps // 2 + 3
    with seiche.load(case, overrides=runs.changes_of(kind), output=tmp_path / "whole", world=SERIAL) as full:
        full.run(visible=False)
    with seiche.load(case, overrides=runs.changes_of(kind), output=tmp_path / "parts", world=SERIAL) as parts:
        parts.every(lambda sim: sim.stop() if sim.step == half else None, steps=half)
        assert parts.run(visible=False).stopped == "a callback"
        assert parts.run(visible=False).stopped is None
    result, expected = runs.arrays_of(tmp_path / "parts"), runs.arrays_of(tmp_path / "whole")
    assert result.keys() == expected.keys()
    for name, arrays in expected.items():
        runs.assert_same_arrays(result[name], arrays, name)


_KILLED = """
import os, signal, sys, seiche
with seiche.load(sys.argv[1], overrides=sys.argv[3:], output=sys.argv[2]) as simulation:
    simulation.run(steps=45, visible=False)
    simulation.outputs.drain()
    simulation.run(steps=1, visible=False)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_snapshots_of_a_killed_run_are_kept_up_to_its_checkpoint(tmp_path: Path) -> None:
    case, parts = runs.life_file(tmp_path, "waves"), tmp_path / "parts"
    changes = [
        *runs.changes_of("waves"),
        'output.snapshots=[{file="plane.h5", every=2, points=8, picture="plane.png"}]',
    ]
    with seiche.load(case, overrides=changes, output=tmp_path / "whole", world=SERIAL) as simulation:
        simulation.run(visible=False)
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, str(case), str(parts), *changes], env=environment(), timeout=120
    )
    assert killed.returncode == -signal.SIGKILL and not (parts / "plane.h5").exists()
    options = {"overrides": changes, "output": parts, "world": SERIAL}
    with seiche.load(case, restart=parts / "checkpoint.seiche", **options) as simulation:
        assert simulation.step == 40
        files = {path.name for path in simulation.run(visible=False).files}
    assert {"plane.h5", "plane.png", "plane.from-40.h5", "plane.from-40.png"} <= files
    result, expected = runs.arrays_of(parts), runs.arrays_of(tmp_path / "whole")["plane.h5"]
    assert len(result["plane.h5"]["time"]) == 20
    for name, values in expected.items():
        both = np.concatenate([result["plane.h5"][name], result["plane.from-40.h5"][name]])
        np.testing.assert_array_equal(both, values, err_msg=name)
    with seiche.load(case, replace=True, **options) as simulation:
        assert simulation.run(visible=False).stopped is None
    assert not list(parts.glob("plane.from-*")) and not list(parts.glob("*.part"))


def test_cells_continue_with_bitwise_equal_results_next_to_later_states_of_a_killed_run(tmp_path: Path) -> None:
    """The run was killed after the states of step 20, before the checkpoint of that step."""
    case, parts, changes = runs.life_file(tmp_path, "blood"), tmp_path / "parts", runs.changes_of("blood")
    with seiche.load(case, overrides=changes, output=tmp_path / "whole", world=SERIAL) as simulation:
        simulation.run(visible=False)
    checkpoint = parts / "checkpoint.seiche"
    with seiche.load(case, overrides=changes, output=parts, world=SERIAL) as simulation:
        simulation.run(steps=15, visible=False)
        simulation.outputs.drain()
        earlier = checkpoint.read_bytes()
        simulation.run(steps=6, visible=False)
        simulation.outputs.drain()
    checkpoint.write_bytes(earlier)
    assert (parts / "cells.000000020.vtkhdf").exists()
    with seiche.load(case, overrides=changes, output=parts, world=SERIAL, restart=checkpoint) as simulation:
        assert simulation.step == 15
        simulation.run(visible=False)
    result, expected = runs.arrays_of(parts), runs.arrays_of(tmp_path / "whole")
    for step in (20, 40):
        name = f"cells.from-15.{step:09}.vtkhdf"
        runs.assert_same_arrays(result[name], expected[f"cells.{step:09}.vtkhdf"], name)
    runs.assert_same_checkpoint(checkpoint, tmp_path / "whole" / "checkpoint.seiche")


@pytest.mark.parametrize("how", ["SIGTERM", "stop", "wall-clock limit"])
@pytest.mark.parametrize("kind", runs.KINDS)
def test_a_run_by_single_steps_stops(kind: str, how: str, tmp_path: Path, lost: list[int]) -> None:
    case = runs.life_file(tmp_path, kind)
    changes = ["run.wall_clock=1 ms"] if how == "wall-clock limit" else []
    with seiche.load(case, overrides=changes, output=tmp_path / "out", world=SERIAL) as simulation:

        @simulation.every(steps=3)
        def ask(sim: Simulation) -> None:
            if how == "SIGTERM":
                os.kill(os.getpid(), signal.SIGTERM)
            elif how == "stop":
                sim.stop("a test")

        for expected in range(1, 10):
            outcome = simulation.run(steps=1, visible=False)
            assert outcome.step == expected
            if outcome.stopped is not None:
                break
        reason = {"SIGTERM": "signal SIGTERM", "stop": "a test", "wall-clock limit": "wall-clock limit of 0.001 s"}[how]
        assert outcome.stopped == reason
        assert outcome.step == (1 if how == "wall-clock limit" else 3)
        assert outcome.summary["finished"] is False and simulation.checkpoints.last == outcome.step
        assert runs.checkpoint_of(simulation.checkpoints.path)[0] == outcome.step
        if how != "wall-clock limit":
            assert simulation.run(steps=1, visible=False).stopped is None  # the request was served
    assert lost == []


@pytest.mark.ranks(2)
@pytest.mark.parametrize("kind", runs.KINDS)
def test_a_signal_to_one_rank_stops_single_steps_of_all(kind: str) -> None:
    world = World.from_mpi()
    folder = runs.shared_life_folder(world, kind)
    with seiche.load(folder / "case.toml", world=world) as simulation:
        simulation.every(lambda _: os.kill(os.getpid(), signal.SIGTERM) if world.rank == 1 else None, steps=3)
        outcomes = [simulation.run(steps=1, visible=False) for _ in range(4)]
        assert [outcome.stopped for outcome in outcomes] == [None, None, "signal SIGTERM", None]
        assert simulation.checkpoints.last == 3


@pytest.mark.parametrize("kind", runs.KINDS)
def test_a_signal_while_the_files_are_completed_does_not_stop_that(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    finish = Outputs.finish

    def signalled(outputs: Outputs, page: PageSize) -> list[Path]:
        os.kill(os.getpid(), signal.SIGTERM)
        return finish(outputs, page)

    monkeypatch.setattr(Outputs, "finish", signalled)
    assert main(["run", str(runs.life_file(tmp_path, kind))]) == 0
    assert "seiche: done:" in capsys.readouterr().out
    assert runs.summary_in(tmp_path / "out")["finished"] is True
    assert lost == []


def test_a_signal_between_the_last_decision_and_the_end_stops_the_next_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: list[int]
) -> None:
    check = Outputs.check

    def signalled(outputs: Outputs) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        check(outputs)

    with seiche.load(runs.life_file(tmp_path, "flow"), world=SERIAL) as simulation:
        monkeypatch.setattr(Outputs, "check", signalled)
        assert simulation.run(steps=5, visible=False).stopped is None
        monkeypatch.setattr(Outputs, "check", check)
        assert simulation.run(visible=False).stopped == "signal SIGTERM"
        assert simulation.step == 6
    assert lost == []


def test_the_command_that_continues_has_each_key_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = runs.life_file(tmp_path, "flow")
    words = ["time.steps=90", "run.wall_clock=1 h", "time.steps=80", "run.wall_clock=1 us"]
    assert main(["run", str(case), *(word for change in words for word in ("--set", change))]) == 0
    line = capsys.readouterr().out.strip().splitlines()[-1]
    stopped, _, command = line.partition("; continue with: ")
    assert "wall-clock limit of 1e-06 s, which includes the set-up, after only one step, at step 1 (" in stopped
    inputs = shlex.split(command)
    assert inputs[-4:] == ["--set", "time.steps=80", "--set", "run.wall_clock=1 us"] and inputs.count("--set") == 2


@pytest.mark.ranks(2)
def test_the_command_that_continues_starts_as_many_ranks() -> None:
    world = World.from_mpi()
    folder = runs.shared_life_folder(world, "ultrasound")
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert main(["run", str(folder / "case.toml"), "--set", "run.wall_clock=1 us"]) == 0
    if world.rank == 0:
        command = shlex.split(output.getvalue().partition("; continue with: ")[2])
        assert command[:5] == ["mpiexec", "-n", "2", "seiche", "run"]
