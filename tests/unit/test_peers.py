# SPDX-License-Identifier: BSD-3-Clause
"""The comparison with other programs: works, processes that take turns, statistics, errors."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.peers import __main__ as peers  # noqa: E402
from benchmarks.peers import waves  # noqa: E402
from benchmarks.peers.program import UnavailableError  # noqa: E402
from benchmarks.peers.works import MODULES, Work, works_of  # noqa: E402


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_work_has_a_module_and_seiche_as_its_first_program(device: str) -> None:
    works = works_of(device)
    assert len({work.name for work in works}) == len(works)
    assert {work.kind for work in works} == set(MODULES)
    assert all(work.programs[0] == "seiche" and len(work.programs) > 1 for work in works)
    assert Work(**json.loads(json.dumps(works[0].as_dict()))).name == works[0].name


def test_programs_take_turns_and_a_missing_one_is_a_row_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLUIDX3D", raising=False)
    work = Work("small", "lattice", "", "MLUPS", True, ("seiche", "fluidx3d"), {"edge": 16, "precision": "float32"})
    rows = peers.compare(work, Namespace(device="cpu", threads=1, seconds=0.01, rounds=3))
    assert [row.program for row in rows] == ["seiche", "fluidx3d"]
    own, other = rows
    assert len(own.figures) == 3 and own.least == min(own.figures) and own.median == sorted(own.figures)[1]
    assert own.least > 0.05 and own.greatest == max(own.figures) and own.details["layout"]
    assert other.median is None and other.reason == "set FLUIDX3D to a build of its benchmark"
    lines = peers.as_table([work], rows)
    assert lines.row_count == 2


def test_a_program_that_fails_is_a_row_with_its_last_line() -> None:
    work = Work("bad", "lattice", "", "MLUPS", True, ("seiche",), {"edge": -1, "precision": "float32"})
    (row,) = peers.compare(work, Namespace(device="cpu", threads=1, seconds=0.01, rounds=1))
    assert row.median is None and "Error" in row.reason


def test_the_exact_wave_has_no_error_and_a_shifted_one_has() -> None:
    setting = waves.Setting.of(14.0)
    receivers = setting.reach * np.array(waves.DIRECTIONS)
    times = np.linspace(0.0, setting.duration, 4001)
    r = np.linalg.norm(receivers, axis=1)
    exact = waves.source(times[:, None] - r) / (4 * np.pi * r)
    assert waves.largest_error(times, exact, receivers) < 1e-12
    assert waves.largest_error(times, np.roll(exact, 20, axis=0), receivers) > 0.01
    # The whole direct wave is recorded, and the reflection of the nearest side has a longer path.
    assert np.abs(exact[-1] / np.abs(exact).max(axis=0)).max() < 2e-3
    assert r.max() + 4.5 * waves.SIGMA < setting.half + (setting.half - setting.reach) + 4.5 * waves.SIGMA


def test_the_coarsest_grid_within_the_bound_is_measured() -> None:
    runs = [lambda e=e: (10 * e, e, {"grid": e}) for e in (0.05, 0.02, 0.008, 0.001)]
    measure = waves.coarsest(iter(runs), 0.01)
    assert measure() == (0.08, {"error": 0.008, "grid": 0.008})
    with pytest.raises(UnavailableError, match=r"no grid has an error below 0\.0001"):
        waves.coarsest(iter(runs), 1e-4)
