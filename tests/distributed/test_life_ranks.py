# SPDX-License-Identifier: BSD-3-Clause
"""The life of a run is the same for every kind of case: one script, stops by signals and limits, restarts."""

from __future__ import annotations

import os
import shlex
import signal
from pathlib import Path

import numpy as np
import pytest

import life_cases as runs
import seiche
from seiche.case import loop as loop_module
from seiche.case.simulation import Simulation
from seiche.case.ultrasound.setup import error_of_ranks, local_parts
from seiche.cli import main
from seiche.domain.world import World
from seiche.io.checkpoint import inspect_checkpoint
from seiche.ultrasound.plan import OVERLAP

#: Outputs that are complete only at the end of a case: those of a restarted run have all that a whole run has.
FINAL = ("result.h5", "receivers.h5", "peak.h5")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure no bandwidth after these small runs, and decide after every step whether to go on."""
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)
    monkeypatch.setattr(loop_module, "CHUNK_SECONDS", 0.0)


def shared_case(kind: str, world: World) -> Path:
    """Return a case file that all ranks see (collective)."""
    folder = runs.shared_life_folder(world, kind)
    return folder / "case.toml"


@pytest.mark.ranks(1, 2)
@pytest.mark.parametrize("kind", runs.KINDS)
def test_one_script_runs_every_kind(kind: str, device: str) -> None:
    world = World.from_mpi()
    case = shared_case(kind, world)
    with seiche.load(case, world=world, device=device) as simulation:
        simulation.run(steps=5, visible=False)
        assert simulation.step == simulation.solver.step == 5
        assert simulation.time == pytest.approx(5 * simulation.setup.dt)
        fields = simulation.fields(["pressure", "velocity"])
        assert fields["pressure"].size == simulation.solver.items
        assert all(np.isfinite(values).all() for values in fields.values())
        assert "share" in simulation.report()
        path = simulation.checkpoint(case.parent / "five.seiche")
        assert simulation.checkpoint().name == "checkpoint.seiche"
    assert inspect_checkpoint(path).step == 5
    with seiche.load(case, world=world, device=device, restart=path, output=case.parent / "again") as simulation:
        for name, values in simulation.fields(["pressure", "velocity"]).items():
            np.testing.assert_array_equal(values, fields[name], err_msg=name)


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "wall-clock limit"])
@pytest.mark.parametrize("kind", runs.KINDS)
def test_a_stopped_run_says_how_to_continue_and_ends_with_bitwise_equal_results(
    kind: str, how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    case, half, begin = runs.life_file(tmp_path, kind), runs.LIVES[kind].steps // 2, Simulation._show

    def show(simulation: Simulation, bar: object, done: int) -> None:
        if half <= done < half + 5:
            os.kill(os.getpid(), getattr(signal, how))
            monkeypatch.setattr(Simulation, "_show", begin)
        begin(simulation, bar, done)

    options = ["--output", str(tmp_path / "parts")]
    if how in ("SIGTERM", "SIGINT"):
        monkeypatch.setattr(Simulation, "_show", show)
    else:
        options += ["--set", "run.wall_clock=1 ms"]
    options += [word for change in runs.changes_of(kind) for word in ("--set", change)]
    assert main(["run", str(case), *options]) == 0
    message = capsys.readouterr().out
    assert f"seiche: stopped by {'signal ' if how.startswith('SIG') else ''}{how}" in message
    summary = runs.summary_in(tmp_path / "parts")
    assert summary["finished"] is False and how in summary["stopped"]
    step, _ = runs.checkpoint_of(tmp_path / "parts" / "checkpoint.seiche")
    assert step == summary["steps"] < runs.LIVES[kind].steps
    command = shlex.split(message.partition("continue with: ")[2])
    assert command[:2] == ["seiche", "run"] and main([*command[1:], "--set", "run.wall_clock=1 h"]) == 0
    assert runs.summary_in(tmp_path / "parts")["finished"] is True
    with seiche.load(case, overrides=runs.changes_of(kind), output=tmp_path / "whole", world=World.serial()) as full:
        full.run(visible=False)
    assert_same_files(tmp_path / "parts", tmp_path / "whole")


def assert_same_files(found: Path, expected: Path) -> None:
    """Compare the last checkpoints and the files of the end of two runs, bit for bit."""
    runs.assert_same_checkpoint(found / "checkpoint.seiche", expected / "checkpoint.seiche")
    own, others = runs.arrays_of(found), runs.arrays_of(expected)
    for name in set(FINAL) & others.keys():
        runs.assert_same_arrays(own[name], others[name], name)


@pytest.mark.ranks(2, nodes=("1+1",))
@pytest.mark.parametrize("kind", runs.LIVES)
def test_a_run_stopped_on_two_ranks_continues_on_two_and_on_one(kind: str) -> None:
    """A signal to one rank stops all of them after the same step."""
    world = World.from_mpi()
    case, changes = shared_case(kind, world), runs.changes_of(kind)
    parts, full, single = (case.parent / name for name in ("parts", "whole", "alone"))
    with seiche.load(case, overrides=changes, output=parts, world=world) as first:
        first.every(lambda _: os.kill(os.getpid(), signal.SIGTERM) if world.rank == 1 else None, steps=25)
        outcome = first.run(visible=False)
        assert outcome.stopped == "signal SIGTERM" and 25 <= outcome.step < 30
        assert outcome.summary["finished"] is False and first.checkpoints.last == outcome.step
    restart = world.bcast(str(case.parent / "kept.seiche"))
    if world.rank == 0:
        Path(restart).write_bytes((parts / "checkpoint.seiche").read_bytes())
    world.barrier()
    with seiche.load(case, overrides=changes, output=full, world=world) as simulation:
        assert simulation.run(visible=False).summary["finished"] is True
    with seiche.load(case, overrides=changes, output=parts, restart=restart, replace=True, world=world) as second:
        second.run(visible=False)
    if world.rank == 0:
        assert_same_files(parts, full)
        with seiche.load(case, overrides=changes, output=single, restart=restart, world=World.serial()) as third:
            third.run(visible=False)
        if kind in ("ultrasound", "time reversal"):
            assert_close_results(single, full, error_of(third, world.size))
        else:
            assert_same_files(single, full)


def error_of(simulation: Simulation, ranks: int) -> float:
    """Return by how much results of ultrasound on ranks may differ from those on one: what `seiche check` predicts."""
    setup = simulation.setup
    if setup.case.run.basis == "global":
        return 1e-5  # single precision
    return error_of_ranks(setup.problem, local_parts(setup, ranks, None, OVERLAP), setup.case.source[0].frequency)


def assert_close_results(found: Path, expected: Path, error: float) -> None:
    """Compare results of ultrasound on different numbers of ranks."""
    own, others = runs.arrays_of(found)["result.h5"], runs.arrays_of(expected)["result.h5"]
    assert own.keys() == others.keys()
    for name in {"p", "p_max_all", "image"} & own.keys():
        assert np.linalg.norm(own[name] - others[name]) <= error * np.linalg.norm(others[name]), name
