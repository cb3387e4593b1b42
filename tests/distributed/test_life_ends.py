# SPDX-License-Identifier: BSD-3-Clause
"""How runs of every kind end: in their last chunk of steps, while files are completed, and after a kill there."""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import seiche
from life_cases import (
    LIVES,
    arrays_of,
    assert_same_arrays,
    assert_same_checkpoint,
    changes_of,
    checkpoint_of,
    life_file,
    summary_in,
)
from seiche.case.simulation import Simulation
from seiche.cli import main
from seiche.domain.world import World

SERIAL = World.serial()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure no bandwidth after these small runs."""
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)


@pytest.fixture
def lost() -> Any:
    """Return the signals that arrive while no run waits for them."""
    found: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        found.append(number)

    before = signal.signal(signal.SIGTERM, note)
    yield found
    signal.signal(signal.SIGTERM, before)


class KilledError(Exception):
    """The end of a run before its last files."""


@pytest.mark.parametrize("kind", LIVES)
def test_a_restart_from_the_last_step_completes_the_files(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    case, parts, life = life_file(tmp_path, kind), tmp_path / "parts", LIVES[kind]
    with seiche.load(case, overrides=changes_of(kind), output=tmp_path / "whole", world=SERIAL) as whole:
        whole.run(visible=False)

    def fail(self: Simulation, stopped: str | None) -> None:
        raise KilledError

    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(Simulation, "_finish", fail)
        main(["run", str(case), "--output", str(parts), "--set", *changes_of(kind)])
    checkpoint = parts / "checkpoint.seiche"
    assert checkpoint_of(checkpoint)[0] == life.steps
    assert not (parts / "summary.json").exists()
    capsys.readouterr()
    command = ["run", str(case), "--output", str(parts), "--set", *changes_of(kind), "--restart", str(checkpoint)]
    assert main(command) == 0
    assert f"seiche: done: step {life.steps} (" in capsys.readouterr().out
    summary = summary_in(parts)
    assert summary["finished"] is True and summary["steps"] == 0
    found, expected = arrays_of(parts), arrays_of(tmp_path / "whole")
    assert found.keys() == expected.keys()
    for name in {"result.h5", "receivers.h5", "peak.h5", "plane.h5"} & expected.keys():
        assert_same_arrays(found[name], expected[name], name)
    assert_same_checkpoint(checkpoint, tmp_path / "whole" / "checkpoint.seiche")
