# SPDX-License-Identifier: BSD-3-Clause
"""A run of any kind killed at any moment leaves no file that opens and is wrong; a restart has the same bits."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from launch import environment, launcher

import life_cases as runs
import seiche
from seiche.domain.world import World

#: Kills of each kind in the nightly suite (all six of the ordinary suite are in `FEW`).
MANY = int(os.environ.get("SEICHE_TEST_KILLS", "60"))
FEW = {"flow": 1, "blood": 1, "ultrasound": 2, "waves": 2}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure no bandwidth after these small runs."""
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)


def started(case: Path, kind: str, out: Path, ranks: int) -> tuple[subprocess.Popen[bytes], int]:
    """Return a run that has locked its folder, and the process that did; it continues if there is a checkpoint."""
    prefix = launcher(ranks) if ranks > 1 else []
    words = ["run", str(case), "--output", str(out), "--set", *runs.changes_of(kind)]
    checkpoint, lock = out / "checkpoint.seiche", out / ".seiche-run.lock"
    words += ["--restart", str(checkpoint)] if checkpoint.exists() else ["--replace"]
    before = lock.read_bytes() if lock.exists() else b""
    command = [*prefix, sys.executable, "-m", "seiche", *words]
    with out.with_suffix(".txt").open("wb") as output:
        run = subprocess.Popen(command, env=environment(), start_new_session=True, stdout=output, stderr=output)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with_lock = lock.read_bytes() if lock.exists() else b""
        if with_lock not in (b"", before):
            return run, int(json.loads(with_lock)["pid"])
        if run.poll() is not None:
            break
        time.sleep(0.002)
    pytest.fail(f"the run did not start:\n{out.with_suffix('.txt').read_text()}")


def kill(run: subprocess.Popen[bytes], writer: int) -> None:
    """Kill all processes of a run at once, and wait until they are gone."""
    with suppress(ProcessLookupError):  # it has ended
        os.killpg(run.pid, signal.SIGKILL)
    run.wait(timeout=20)
    while Path(f"/proc/{writer}").exists():  # ranks are in groups of their own; they end without their launcher
        time.sleep(0.01)


def check_files(out: Path, whole: Path, checkpoints: Sequence[int]) -> None:
    """Compare whatever opens in the folder of a killed run with what a whole run wrote, bit for bit."""
    if (out / "checkpoint.seiche").exists():
        step, _ = runs.checkpoint_of(out / "checkpoint.seiche")
        assert step in checkpoints
    if (out / "summary.json").exists():
        assert runs.summary_in(out)["finished"] is True
    expected = runs.arrays_of(whole)
    for name, arrays in runs.arrays_of(out).items():
        begun = re.sub(r"\.from-\d+", "", name)
        cut = name.startswith("plane.") or ".from-" in name or "VTKHDF/Steps/Values" in arrays
        if cut and begun.count(".") == 1:  # states of cells have files of their own
            check_series(name, arrays, expected)
        else:
            runs.assert_same_arrays(arrays, expected[begun], name)


def check_series(name: str, found: dict[str, np.ndarray], whole: dict[str, dict[str, np.ndarray]]) -> None:
    """Check that the states of a series, which may continue another, are states of the whole one."""
    stem, ending = name.partition(".")[0], name.rpartition(".")[2]
    expected = whole[f"{stem}.{ending}"]
    if "VTKHDF/Steps/Values" not in found:  # waves: one row a time
        rows = np.searchsorted(expected["time"], found["time"])
        for item in ("time", "velocity", "pressure"):
            np.testing.assert_array_equal(found[item], expected[item][rows], err_msg=f"{name}: {item}")
        return
    times, all_times = found["VTKHDF/Steps/Values"], expected["VTKHDF/Steps/Values"]
    assert len(times) and (times > 0.0).all()
    np.testing.assert_array_equal(corners_of(found), corners_of(expected), err_msg=name)
    offsets = [key for key in expected if key.startswith("VTKHDF/Steps/CellDataOffsets/")]
    assert offsets
    for key in offsets:
        values, others = (item[f"VTKHDF/CellData/{key.rpartition('/')[2]}"] for item in (found, expected))
        cells = len(others) // len(all_times)
        for at, time_of in enumerate(times):
            other = int(np.flatnonzero(all_times == time_of)[0])
            first, second = int(found[key][at]), int(expected[key][other])
            np.testing.assert_array_equal(
                values[first : first + cells], others[second : second + cells], err_msg=f"{name}: {key} {time_of}"
            )


def corners_of(series: dict[str, np.ndarray]) -> np.ndarray:
    """Return the places of the corners of all cells, in order; each rank lists the corners of its cells anew."""
    surface = "VTKHDF/Polygons/Connectivity"
    return series["VTKHDF/Points"][series[surface if surface in series else "VTKHDF/Connectivity"]]


def kills(tmp_path: Path, kind: str, number: int) -> None:
    """Kill `number` runs, every third of them on two ranks; every second one is a restart of one that was killed.

    More runs are started if these end before half of them are killed, as where the one that was timed was slow.
    """
    case, draw, life = runs.life_file(tmp_path, kind), random.Random(f"{kind} {number}"), runs.LIVES[kind]
    full, timed = tmp_path / "whole", tmp_path / "timed"
    with seiche.load(case, overrides=runs.changes_of(kind), output=full, world=World.serial()) as simulation:
        simulation.run(visible=False)
    run, _ = started(case, kind, timed, 1)
    begin = time.monotonic()
    assert run.wait(timeout=120) == 0
    duration, killed, folders, out = time.monotonic() - begin, 0, 0, None
    for attempt in range(4 * number):
        if attempt >= number and killed >= number // 2:
            break
        restarted = out is not None
        if out is None:
            out, folders = tmp_path / f"killed-{folders}", folders + 1
        # Parts of ultrasound on two ranks round otherwise than the whole grid.
        run, writer = started(case, kind, out, 2 if attempt % 3 == 2 and kind != "ultrasound" else 1)
        time.sleep(draw.uniform(0.0, duration))
        alive = run.poll() is None
        killed, duration = killed + alive, duration if alive else 0.7 * duration
        kill(run, writer)
        check_files(out, full, range(life.every, life.steps + 1, life.every))
        if restarted or attempt + 1 >= number or step_in(out) == life.steps:
            complete(case, kind, out, full)
            out = None
    assert killed >= number // 2


def step_in(out: Path) -> int:
    """Return the step of the checkpoint in a folder of outputs, 0 without one."""
    return runs.checkpoint_of(out / "checkpoint.seiche")[0] if (out / "checkpoint.seiche").exists() else 0


def complete(case: Path, kind: str, out: Path, whole: Path) -> None:
    """Continue what was killed to the end, on one rank, and compare it with a whole run."""
    step, checkpoint = step_in(out), out / "checkpoint.seiche"
    options = {"restart": checkpoint} if step else {"replace": True}
    with seiche.load(case, overrides=runs.changes_of(kind), output=out, world=World.serial(), **options) as simulation:
        simulation.run(visible=False)
    assert runs.summary_in(out)["finished"] is True
    result, expected = runs.arrays_of(out), runs.arrays_of(whole)
    for name in {"result.h5", "receivers.h5", "peak.h5"} & expected.keys():
        runs.assert_same_arrays(result[name], expected[name], name)
    if kind == "waves":  # snapshots before and after each restart: none is lost
        times = [arrays["time"] for name, arrays in result.items() if name.startswith("plane.")]
        np.testing.assert_array_equal(np.unique(np.concatenate(times)), expected["plane.h5"]["time"])
    runs.assert_same_checkpoint(checkpoint, whole / "checkpoint.seiche")


@pytest.mark.parametrize("kind", runs.KINDS)
def test_a_killed_run_leaves_nothing_wrong_and_continues_with_bitwise_equal_results(kind: str, tmp_path: Path) -> None:
    kills(tmp_path, kind, FEW[kind])


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", runs.KINDS)
def test_many_killed_runs_leave_nothing_wrong_and_continue_with_bitwise_equal_results(
    kind: str, tmp_path: Path
) -> None:
    kills(tmp_path, kind, MANY)
