# SPDX-License-Identifier: BSD-3-Clause
"""Overrides of the keys of a case: as texts and as values, and keys that are not allowed beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seiche
from case_files import blood_tables, read_case, toml_of, tube_tables
from prediction_cases import ULTRASOUND, WAVES
from seiche.case.kinds import KINDS, kind_named
from seiche.case.load import read_source
from seiche.case.loading import prepare
from seiche.case.schema_tables import fields_of, models_in
from seiche.case.sweep import grid_of, plan_sweep
from seiche.case.tables import Table
from seiche.errors import CaseError

TEXTS = {"flow": toml_of(tube_tables()), "blood": toml_of(blood_tables()), "ultrasound": ULTRASOUND, "waves": WAVES}
#: Kind, an override, and the keys of its table afterwards that it replaces.
REPLACED = [
    ("flow", "time.duration=20 ms", "time", {"duration"}),
    ("flow", "lattice.mach=0.05", "lattice", {"mach"}),
    ("flow", "iolet.inlet.flow_rate=1 ml/min", "iolet.0", {"name", "kind", "flow_rate"}),
    ("flow", "fluid.rheology={ kind = 'carreau-yasuda', preset = 'human' }", "fluid", {"density", "rheology"}),
    ("flow", "geometry.gmy=vessel.gmy", "geometry", {"spacing", "gmy"}),
    ("blood", "lattice.step=1 us", "lattice", {"step"}),
    ("ultrasound", "grid.duration=1 us", "grid", {"shape", "spacing", "duration"}),
    ("waves", "time.duration=2 ms", "time", {"duration"}),
    ("waves", "mesh.frequency=500 Hz", "mesh", {"lower", "upper", "trees", "frequency", "nodes"}),
    ("waves", 'source.0.force=["1 N", "0 N", "0 N"]', "source.0", {"position", "time", "force"}),
    ("waves", "material.water.file=soil.h5", "material.0", {"name", "file", "cp"}),
]


def case_of(folder: Path, kind: str) -> Path:
    path = folder / f"{kind}.toml"
    path.write_text(TEXTS[kind])
    return path


def table_at(data: Any, path: str) -> Any:
    for name in path.split("."):
        data = data[int(name)] if isinstance(data, list) else data[name]
    return data


@pytest.mark.parametrize(("kind", "change", "path", "keys"), REPLACED)
def test_an_override_replaces_keys_that_are_not_allowed_beside_it(
    kind: str, change: str, path: str, keys: set[str], tmp_path: Path
) -> None:
    source = read_source(case_of(tmp_path, kind), [change])
    assert set(table_at(source.tables, path)) == keys


def test_two_overrides_that_are_not_allowed_together_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="time: give exactly one of duration, steps, cycles; duration and steps are"):
        read_case(case_of(tmp_path, "flow"), ["time.duration=1 s", "time.steps=20"])
    assert read_case(case_of(tmp_path, "flow"), ["time.steps=20", "time.steps=30"]).time.steps == 30


def test_a_new_key_inside_a_table_keeps_the_other_keys(tmp_path: Path) -> None:
    """A misspelt table is reported, and a table that an override only enters replaces nothing."""
    assert read_case(case_of(tmp_path, "flow"), ["fluid.initial_pressure=1 Pa"]).fluid.viscosity == pytest.approx(4e-3)
    with pytest.raises(CaseError, match=r"lattice\.taau: unknown key"):
        read_case(case_of(tmp_path, "flow"), ["lattice.taau=0.7"])
    with pytest.raises(CaseError, match="geometry: give exactly one of"):
        read_case(case_of(tmp_path, "flow"), ["geometry.image.file=a.nii"])


def test_overrides_are_values_by_key(tmp_path: Path) -> None:
    case = case_of(tmp_path, "flow")
    changes = {
        "time.duration": "20 ms",
        "lattice": {"mach": np.float64(0.05)},
        "fluid.initial_velocity": ("1 um/s", "0 m/s", "0 m/s"),
        "output.folder": Path("elsewhere"),
        "title": "a = b",
        "run.monitor_every": np.int64(7),
    }
    read = read_case(case, changes)
    assert (read.time.duration, read.time.steps, read.lattice.mach) == (0.02, None, 0.05)
    assert read.fluid.initial_velocity == (1e-6, 0.0, 0.0) and read.output.folder == "elsewhere"
    assert (read.title, read.run.monitor_every) == ("a = b", 7)
    as_text = ["time.duration=20 ms", "lattice={ mach = 0.05 }", 'title="a = b"', "run.monitor_every=7"]
    as_text += ['fluid.initial_velocity=["1 um/s", "0 m/s", "0 m/s"]', "output.folder=elsewhere"]
    assert read == read_case(case, as_text)
    assert prepare(case, {"time.steps": 8}).steps == 8
    with seiche.load(case, overrides={"time.steps": 3}, output=tmp_path / "out") as simulation:
        assert simulation.run(visible=False).step == 3


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"lattice.tau": None}, "overrides: lattice.tau: None is not a number, a text, a list or a table"),
        ({"lattice.tau": 1j}, "overrides: lattice.tau: 1j is not a number"),
        ({3: 4}, 'overrides: 3 is not a key such as "run.device"'),
        ({"iolet.exit.kind": 1}, 'override "iolet.exit.kind=1": no entry "exit" in the list'),
        (5, 'overrides: 5 is not a list such as ["run.device=cuda"] or a dict such as {"run.device": "cuda"}'),
        ("time.steps=3", 'overrides: "time.steps=3" is not a list'),
    ],
)
def test_overrides_that_no_case_file_can_have_are_named(overrides: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(CaseError) as caught:
        read_case(case_of(tmp_path, "flow"), overrides)
    assert str(caught.value).startswith(message)


def test_a_sweep_replaces_keys_as_well(tmp_path: Path) -> None:
    case = tmp_path / "case.toml"
    case.write_text(TEXTS["flow"].replace("steps = 100", 'duration = "1 s"'))
    runs = plan_sweep(case, grid_of(["time.steps=5,6"]), tmp_path / "sweep")
    assert [run.values for run in runs] == [{"time.steps": "5"}, {"time.steps": "6"}]


def tables_of(model: type[Table], seen: set[type[Table]]) -> set[type[Table]]:
    """Return `model` and all tables inside it."""
    if model not in seen:
        seen.add(model)
        for field in fields_of(model).values():
            for inner in models_in(field.annotation, *field.metadata):
                tables_of(inner, seen)  # type: ignore[arg-type]
    return seen


def test_groups_of_exclusive_keys_exist_and_may_be_omitted() -> None:
    groups = 0
    for name in KINDS:
        for model in tables_of(kind_named(name).schema, set()):
            fields = fields_of(model)
            for group in (*model.exactly_one, *model.at_most_one):
                groups += 1
                assert all(not fields[key].is_required() for key in group), (model, group)
    assert groups > 20
