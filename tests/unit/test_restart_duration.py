# SPDX-License-Identifier: BSD-3-Clause
"""A restart with a longer or shorter duration has the results of a run that had it from the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import seiche
from case_files import blood_tables, toml_of, tube_tables
from prediction_cases import ULTRASOUND, WAVES
from seiche.case.simulation import Simulation
from seiche.errors import CaseError

#: Tables of each kind without a duration, and changes that make the cells of blood few.
TABLES = {"flow": toml_of({**tube_tables(), "time": {}}), "blood": toml_of({**blood_tables(), "time": {}})}
TABLES["ultrasound"] = ULTRASOUND.replace("steps = 40\n", "") + 'points = [["0 mm", "0 mm", "0 mm"]]\n'
TABLES["waves"] = WAVES.partition("[time]")[0] + '[[receiver]]\nname = "A"\nposition = ["3 m", "2 m", "2 m"]\n'
SMALL = ("packing.hematocrit=0.05", "cells.red.shape.vertices=42")
TONE = ('record.frequencies=["0.5 MHz"]', "record.periods=1")
#: Kind, changes that determine the step in each possible way, and a duration that is not a multiple of it, in s.
CASES = [
    ("flow", (), 31.3e-3),
    ("flow", ("lattice={ mach = 0.05 }",), 0.31),
    ("flow", ("lattice={ step = '1 ms' }",), 20.3e-3),
    ("blood", (), 0.4e-6),
    ("ultrasound", (), 1.63e-6),
    ("ultrasound", ("grid.cfl=0.2",), 1.03e-6),
    ("ultrasound", ("grid.time_step=70 ns",), 1.43e-6),
    ("ultrasound", TONE, 4.05e-6),
    ("waves", (), 3.03e-3),
    ("waves", ("time.step=0.15 ms",), 3.03e-3),
    ("waves", ("time.integrator=leapfrog", "mesh.flux=central"), 3.03e-3),
]


def loaded(folder: Path, kind: str, changes: tuple[str, ...], duration: float, **options: Any) -> Simulation:
    """Return a simulation of `duration` (s)."""
    path = folder / f"{kind}.toml"
    path.write_text(TABLES[kind])
    key = "grid.duration" if kind == "ultrasound" else "time.duration"
    few = SMALL if kind == "blood" else ()
    return seiche.load(path, overrides=[*few, *changes, f"{key}={duration} s"], **options)


def results_of(simulation: Simulation) -> dict[str, Any]:
    """Run to the end; return the complete state: fields, cells, records."""
    outcome = simulation.run(visible=False)
    assert outcome.stopped is None and simulation.step == simulation.setup.steps
    state = simulation.case_run.state()
    arrays = {f"{rows} {name}": values[:] for rows in state.rows for name, values in state.rows[rows].arrays.items()}
    return {"step": simulation.step, **arrays, **state.replicated, **simulation.case_run.arrays()}


def assert_equal(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)


@pytest.mark.parametrize(("kind", "changes", "duration"), CASES)
def test_another_duration_at_a_restart_has_the_results_of_an_uninterrupted_run(
    kind: str, changes: tuple[str, ...], duration: float, tmp_path: Path
) -> None:
    """One run is continued beyond its end, and one that was to be longer ends earlier."""
    with loaded(tmp_path, kind, changes, duration, output=tmp_path / "first") as first:
        middle = first.setup.steps // 4
        first.run(steps=middle, visible=False)
        early = first.checkpoint(tmp_path / "early.seiche")
        first.run(visible=False)
        end, dt = first.checkpoint(tmp_path / "end.seiche"), first.setup.dt
    # The default step of waves divides the duration; that of the checkpoint is kept.
    pinned = (*changes, *((f"time.step={dt!r} s",) if kind == "waves" else ()))
    for checkpoint, factor, name in ((end, 1.71, "longer"), (early, 0.79, "shorter")):
        with loaded(tmp_path, kind, pinned, factor * duration, output=tmp_path / f"{name} whole") as whole:
            expected = results_of(whole)
        with loaded(
            tmp_path, kind, changes, factor * duration, output=tmp_path / name, restart=checkpoint
        ) as restarted:
            assert restarted.setup.dt == dt and restarted.step > 0
            assert_equal(results_of(restarted), expected)


def test_amplitudes_whose_steps_have_passed_are_not_continued(tmp_path: Path) -> None:
    """They are from the last period of a run: that of a slightly longer run begins before the end of the shorter."""
    with loaded(tmp_path, "ultrasound", TONE, 4e-6, output=tmp_path / "first") as first:
        first.run(visible=False)
        end = first.checkpoint(tmp_path / "end.seiche")
    message = "different window of record.frequencies .* began at step 26, but now at step 31, before the checkpoint"
    with pytest.raises(CaseError, match=message):
        loaded(tmp_path, "ultrasound", TONE, 4.4e-6, output=tmp_path / "longer", restart=end)


def test_averages_begin_anew_if_a_restart_changes_their_windows(tmp_path: Path) -> None:
    """Without a period, the only window is the whole run: a longer run has samples after the checkpoint only."""
    averages = ('output.averages={ file = "mean.vtkhdf", every = 1 }',)
    with loaded(tmp_path, "flow", averages, 0.02, output=tmp_path / "first") as first:
        first.run(visible=False)
        end, middle = first.checkpoint(tmp_path / "end.seiche"), first.setup.steps
    results = []
    for name, start, restart in (("restarted", 0, end), ("whole", middle, None)):
        changes = (*averages, f"output.averages.start={start}")
        with loaded(tmp_path, "flow", changes, 0.05, output=tmp_path / name, restart=restart) as simulation:
            simulation.run(visible=False)
        (path,) = (tmp_path / name).glob("mean*.vtkhdf")
        with h5py.File(path) as file:
            results.append(file["VTKHDF/CellData/time_averaged_wall_shear_stress"][:])
    np.testing.assert_array_equal(*results)
