# SPDX-License-Identifier: BSD-3-Clause
"""Signals at any moment of a run of every kind, from its start to its checkpoint, and stops by callbacks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from launch import environment, launcher

import life_cases as runs
import seiche
from seiche.case.folder import LOCK, RunFolder
from seiche.case.outputs import Outputs
from seiche.case.simulation import Simulation
from seiche.case.stop_signals import StopRequest, stop_signals
from seiche.cli import main
from seiche.domain.world import World
from seiche.errors import CaseError

KINDS = pytest.mark.parametrize("kind", runs.KINDS)
SIGNALS = pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
#: Sends a signal to ranks (all, or one) when the module `seiche.cli` is imported, or before the end of the set-up.
SENDER = """
import os, signal, sys
number, rank, moment = signal.Signals[sys.argv[1]], sys.argv[2], sys.argv[3]
sys.argv = ["seiche", *sys.argv[4:]]

def send(*_):
    if rank in ("all", os.environ.get("PMI_RANK", "0")):
        os.kill(os.getpid(), number)

class Finder:
    def find_spec(self, name, *_):
        if name == "seiche.cli" and moment == "import":
            send()

sys.meta_path.insert(0, Finder())
if moment == "set-up":
    import seiche.case.loading
    seiche.case.loading.check_inputs_preserved = send
from seiche.__main__ import main
sys.exit(main())
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure no bandwidth after these small runs, and decide after every step whether to go on."""
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)
    monkeypatch.setattr("seiche.case.loop.CHUNK_SECONDS", 0.0)


def sending(function: Callable[..., Any], *names: str, after: bool = False) -> Callable[..., Any]:
    """Return the function, which first sends signals to this process (or last, with `after`)."""

    def send(*given: Any, **options: Any) -> Any:
        result = function(*given, **options) if after else None
        for name in names:
            os.kill(os.getpid(), getattr(signal, name))
        return result if after else function(*given, **options)

    return send


def test_only_a_second_sigint_ends_a_run_without_a_checkpoint() -> None:
    for names in (("SIGTERM", "SIGINT"), ("SIGINT", "SIGTERM", "SIGTERM"), ("SIGTERM", "SIGTERM")):
        with stop_signals() as request:
            for name in names:
                os.kill(os.getpid(), getattr(signal, name))
        assert request.number == getattr(signal, names[0])
    request = StopRequest()
    request.receive(signal.SIGINT)
    request.receive(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        request.receive(signal.SIGINT)
    request.clear()
    request.receive(signal.SIGINT)
    assert request.number == signal.SIGINT


@KINDS
def test_sigterm_followed_by_sigint_still_writes_the_checkpoint(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Outputs, "take_scheduled", sending(Outputs.take_scheduled, "SIGTERM"))
    monkeypatch.setattr(Simulation, "checkpoint", sending(Simulation.checkpoint, "SIGINT"))
    assert main(["run", str(runs.life_file(tmp_path, kind))]) == 0
    assert "seiche: stopped by signal SIGTERM at step 1 (" in capsys.readouterr().out
    assert runs.checkpoint_of(tmp_path / "out" / "checkpoint.seiche")[0] == 1


@KINDS
def test_a_second_sigint_ends_the_run_with_one_line(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Outputs, "take_scheduled", sending(Outputs.take_scheduled, "SIGINT", "SIGINT"))
    assert main(["run", str(runs.life_file(tmp_path, kind))]) == 130
    output = (
        "seiche: ended by a second SIGINT after step 1, without a checkpoint of this step; no checkpoint was written"
    )
    assert capsys.readouterr().err.splitlines()[-1] == output
    assert not (tmp_path / "out" / LOCK).exists()


@SIGNALS
@KINDS
def test_a_signal_during_the_set_up_ends_it_with_one_line_and_no_file(
    kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    monkeypatch.setattr("seiche.case.loading.check_inputs_preserved", sending(lambda *_: None, name))
    assert main(["run", str(runs.life_file(tmp_path, kind))]) == 128 + getattr(signal, name)
    output = capsys.readouterr()
    assert output.err == f"seiche: stopped by signal {name} before the first step; nothing was written\n"
    assert output.out == "" and not (tmp_path / "out").exists()
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


@SIGNALS
@KINDS
def test_a_signal_after_the_folder_is_locked_requests_a_checkpoint(
    kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunFolder, "claim", sending(RunFolder.claim, name, after=True))
    assert main(["run", str(runs.life_file(tmp_path, kind))]) == 0
    assert runs.summary_in(tmp_path / "out")["stopped"] == f"signal {name}"
    assert runs.checkpoint_of(tmp_path / "out" / "checkpoint.seiche")[0] == 1
    assert not (tmp_path / "out" / LOCK).exists()


def test_a_signal_during_another_command_ends_it_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("seiche.case.load.read_source", sending(lambda *_: None, "SIGINT"))
    assert main(["check", str(runs.life_file(tmp_path, "flow"))]) == 130
    assert capsys.readouterr().err == "seiche: interrupted by signal SIGINT\n"


@SIGNALS
@pytest.mark.parametrize("moment", ["import", "set-up"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_processes_that_a_signal_reaches_before_the_first_step_all_end(
    ranks: int, moment: str, name: str, tmp_path: Path
) -> None:
    """On two ranks the signal reaches the second one only during the set-up, and both during imports."""
    prefix = launcher(ranks) if ranks > 1 else []
    target = "1" if (ranks, moment) == (2, "set-up") else "all"
    words = [name, target, moment, "run", str(runs.life_file(tmp_path, "waves"))]
    command = [*prefix, sys.executable, "-c", SENDER, *words]
    ended = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60)
    when = "during start-up" if moment == "import" else "before the first step"
    line = f"seiche: stopped by signal {name} {when}; nothing was written"
    assert (ended.stdout + ended.stderr).count("seiche:") == 1 and line in ended.stderr
    assert ended.returncode != 0 and "Traceback" not in ended.stderr and not (tmp_path / "out").exists()
    if (ranks, moment) != (2, "import"):  # a launcher has its own status for processes that a signal ends
        assert ended.returncode == 128 + getattr(signal, name)


@pytest.mark.ranks(2)
@KINDS
def test_the_reason_of_a_stop_on_any_rank_is_that_of_all(kind: str) -> None:
    world = World.from_mpi()
    folder = runs.shared_life_folder(world, kind)
    with seiche.load(folder / "case.toml", world=world) as simulation:
        simulation.every(lambda sim: sim.stop("the second\nrank is enough") if world.rank == 1 else None, steps=2)
        outcome = simulation.run(visible=False)
    assert outcome.stopped == outcome.summary["stopped"] == "the second rank is enough"


@KINDS
def test_a_stop_needs_a_run_in_progress_and_a_reason(kind: str, tmp_path: Path) -> None:
    with seiche.load(runs.life_file(tmp_path, kind), world=World.serial()) as simulation:
        with pytest.raises(CaseError, match=r"^stop: no run is in progress"):
            simulation.stop("early")
        rejected = []

        @simulation.every(steps=2)
        def ask(sim: Simulation) -> None:
            for reason in (None, "", " \n", 5):
                with pytest.raises(CaseError, match=r"^stop: expected a reason as text, not"):
                    sim.stop(reason)  # type: ignore[arg-type]
                rejected.append(reason)

        assert simulation.run(steps=3, visible=False).stopped is None and len(rejected) == 4
        with pytest.raises(CaseError, match=r"^stop: no run is in progress"):
            simulation.stop()


@KINDS
def test_a_callback_neither_runs_nor_closes_its_simulation(kind: str, tmp_path: Path) -> None:
    case, seen = runs.life_file(tmp_path, kind), []
    with seiche.load(case, world=World.serial()) as simulation:

        @simulation.every(steps=2)
        def ask(sim: Simulation) -> None:
            for name, call in (("run", sim.run), ("run", lambda: sim.run(steps=1)), ("close", sim.close)):
                with pytest.raises(CaseError, match=f"^{name}: not allowed in a callback"):
                    call()
            with pytest.raises(CaseError, match=r"^close: not allowed in a callback"):
                seiche.load(case, replace=True, world=World.serial())
            seen.append(sim.step)

        assert simulation.run(steps=5, visible=False).step == 5
        assert seen == [2, 4] and simulation.run(steps=1, visible=False).step == 6
