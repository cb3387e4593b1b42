# SPDX-License-Identifier: BSD-3-Clause
"""A restart rejects other initial conditions than those of the run that wrote the checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seiche
from case_files import toml_of, tube_tables
from prediction_cases import case_file
from seiche.case.simulation import Simulation
from seiche.errors import CaseError
from seiche.io.checkpoint import inspect_checkpoint, write_checkpoint

BALL = """[[source]]
kind = "initial-ball"
center = ["0 mm", "0 mm", "0 mm"]
radius = "4 mm"
pressure = "1 kPa"
"""
PLANE_WAVE = """[plane_wave]
kind = "p"
direction = [1, 0, 0]
position = ["3 m", "2 m", "2 m"]
velocity = "1 m/s"
time = { kind = "ricker", frequency = "300 Hz" }
"""
WINDKESSEL = {
    **{"name": "outlet", "kind": "windkessel", "resistance": "1e9 Pa s/m^3", "compliance": "1e-11 m^3/Pa"},
    "initial_pressure": "2 Pa",
}
#: Of each kind: a change of its case that only affects the start, and what the message names.
CHANGES = [
    ("flow", "fluid.initial_velocity=['1 um/s', '0 m/s', '0 m/s']", "initial pressure or velocity"),
    ("flow", "fluid.initial_pressure=3 Pa", "initial pressure or velocity"),
    ("flow", "iolet.outlet.initial_pressure=1 Pa", r"iolet\.outlet\.initial_pressure"),
    ("blood", "packing.seed=5", "packing or positions of the cells"),
    ("blood", "packing.hematocrit=0.06", "packing or positions of the cells"),
    ("ultrasound", "source.0.pressure=2 kPa", "initial pressure"),
    ("ultrasound", "source.0.radius=5 mm", "initial pressure"),
    ("waves", "plane_wave.time.frequency=400 Hz", "initial plane wave"),
    ("waves", "plane_wave.velocity=2 m/s", "initial plane wave"),
]


def initial_case(folder: Path, kind: str) -> Path:
    """Return a case with an initial condition."""
    path = case_file(folder, kind)
    if kind == "flow":
        tables = tube_tables()
        tables["iolet"][1] = WINDKESSEL
        path.write_text(toml_of(tables))
    elif kind == "ultrasound":
        head, _, rest = path.read_text().partition("[[source]]")
        path.write_text(f"{head}{BALL}[record]{rest.partition('[record]')[2]}")
    elif kind == "waves":
        head, _, rest = path.read_text().partition("[[source]]")
        path.write_text(f"{head}{PLANE_WAVE}[time]{rest.partition('[time]')[2]}")
    return path


def loaded(case: Path, *changes: str, **options: Any) -> Simulation:
    small = ("packing.hematocrit=0.05", "cells.red.shape.vertices=42") if case.name == "blood.toml" else ()
    return seiche.load(case, overrides=[*small, *changes], **options)


@pytest.mark.parametrize(("kind", "change", "named"), CHANGES)
def test_a_restart_with_another_initial_condition_is_rejected(
    kind: str, change: str, named: str, tmp_path: Path
) -> None:
    case = initial_case(tmp_path, kind)
    with loaded(case, output=tmp_path / "out") as simulation:
        simulation.run(steps=2, visible=False)
        checkpoint = simulation.checkpoint(tmp_path / "two.seiche")
    with pytest.raises(CaseError, match=rf"with a different {named} than .*{case.name}") as error:
        loaded(case, change, output=tmp_path / "other", restart=checkpoint)
    assert "\n" not in str(error.value) and not (tmp_path / "other").exists()
    with loaded(case, output=tmp_path / "other", restart=checkpoint) as simulation:
        assert simulation.step == 2


def test_an_initial_pressure_that_a_file_defines_is_compared_by_its_values(tmp_path: Path) -> None:
    case, values = case_file(tmp_path, "ultrasound"), np.zeros((64, 48, 32))
    head, _, rest = case.read_text().partition("[[source]]")
    case.write_text(
        f'{head}[[source]]\nkind = "initial-file"\nfile = "p0.npy"\n[record]{rest.partition("[record]")[2]}'
    )
    values[30:34, 20:24, 14:18] = 1e3
    np.save(tmp_path / "p0.npy", values)
    with loaded(case, output=tmp_path / "out") as simulation:
        simulation.run(steps=1, visible=False)
        checkpoint = simulation.checkpoint(tmp_path / "one.seiche")
    np.save(tmp_path / "p0.npy", 2 * values)
    with pytest.raises(CaseError, match="with a different initial pressure than"):
        loaded(case, output=tmp_path / "other", restart=checkpoint)


@pytest.mark.parametrize("kind", ["flow", "blood", "ultrasound", "waves"])
def test_a_checkpoint_without_initial_conditions_is_still_read(kind: str, tmp_path: Path) -> None:
    """Those of earlier versions lack the attributes."""
    case = initial_case(tmp_path, kind)
    with loaded(case, output=tmp_path / "out") as simulation:
        simulation.run(steps=1, visible=False)
        attributes = dict(inspect_checkpoint(simulation.checkpoint(tmp_path / "new.seiche")).attributes)
        added = {name for name in attributes if name.startswith(("initial", "packing", "iolet."))}
        state, old = simulation.case_run.state(), tmp_path / "old.seiche"
        retained = {name: value for name, value in attributes.items() if name not in {*added, *state.attributes}}
        write_checkpoint(old, simulation.world, state, attributes=retained)
    assert added
    with loaded(case, output=tmp_path / "other", restart=old) as simulation:
        assert simulation.step == 1
