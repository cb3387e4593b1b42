# SPDX-License-Identifier: BSD-3-Clause
"""The kernels of every default are in the table of a wheel, which needs no compiler."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from seiche.backend.cpu import CpuBackend
from seiche.backend.planned import PlannedBackend
from seiche.case.plans import planned_case
from seiche.cli import main
from seiche.kernels import registry
from seiche.kernels.registry import KernelSpec, flow
from seiche.native.make_table import TABLES, rows_of

TEMPLATES = Path(registry.__file__).parents[2] / "case" / "templates"
IN_WHEELS = {spec.type for spec in rows_of(registry, "defaults")}  # type: ignore[arg-type]


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the kernels that are loaded after this."""
    types: set[str] = set()
    for backend in (CpuBackend, PlannedBackend):

        def load(self: Any, spec: KernelSpec, original: Any = backend.load) -> Any:
            types.add(spec.type)
            return original(self, spec)

        monkeypatch.setattr(backend, "load", load)
    return types


@pytest.mark.parametrize("kind", ["flow", "blood", "ultrasound", "waves"])
def test_new_cases_need_no_compiler(kind: str, loaded: set[str], tmp_path: Path) -> None:
    assert main(["new", kind, str(tmp_path / "new")]) == 0
    case = tmp_path / "new" / "case.toml"
    duration = {"ultrasound": "grid.duration=1us", "waves": "time.duration=20ms"}.get(kind)
    changes = ["--set", duration] if duration is not None else []
    assert main(["run", str(case), *changes]) == 0
    assert len(loaded) > 5 and loaded <= IN_WHEELS
    planned_case(case, changes[1:], "cpu").plan(2)
    assert loaded <= IN_WHEELS


EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["cylinder", "gmy_cylinder", "photoacoustic", "poiseuille_box", "tube"])
def test_examples_with_default_options_need_no_compiler(name: str, loaded: set[str]) -> None:
    case = planned_case(EXAMPLES / name / "case.toml", [], "cpu")
    for ranks in (1, 2):
        case.plan(ranks)
    assert loaded and loaded <= IN_WHEELS


def test_platelets_of_flat_triangles_are_in_wheels() -> None:
    assert {f"MembraneForce<FlatShell<{real},NeoHookean>,162>" for real in ("float", "double")} <= IN_WHEELS


def test_iolets_of_flow_with_cells_are_in_wheels() -> None:
    for layout, slots in (("list-aa-even", "table"), ("list-aa-odd", "table"), ("tiles-8", "own")):
        for rule in (flow.nash_pressure, flow.ladd_velocity):
            assert rule(layout, "float32", "float32", f"immersed-{slots}").type in IN_WHEELS


WAVES = """solver = "waves"
[mesh]
lower = {lower}
upper = {upper}
size = "100 m"
[[material]]
name = "rock"
density = "2000 kg/m^3"
cp = "3 km/s"
{shear}
[boundary]
lower = {sides}
upper = {sides}
sponge = "100 m"
[[source]]
position = {source}
force = {force}
time = {{ kind = "ricker", frequency = "5 Hz" }}
[[receiver]]
name = "A"
position = {source}
[time]
duration = "20 ms"
[output.receivers]
every = 2
"""


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("shear", ["", 'cs = "1.5 km/s"'], ids=["acoustic", "elastic"])
def test_default_waves_need_no_compiler(dimensions: int, shear: str, loaded: set[str], tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    values = {"lower": "0 m", "upper": "400 m", "source": "210 m", "force": "1 N", "sides": "absorbing"}
    lists = {name: json.dumps([value] * dimensions) for name, value in values.items()}
    path.write_text(WAVES.format(**lists, shear=shear))
    assert main(["run", str(path)]) == 0
    assert loaded <= IN_WHEELS


def test_a_table_has_every_kernel_once_and_the_larger_one_contains_the_smaller() -> None:
    common, defaults, frequent = (Counter(spec.type for spec in rows_of(registry, table)) for table in TABLES)  # type: ignore[arg-type]
    assert max(common.values()) == max(defaults.values()) == max(frequent.values()) == 1
    assert common.keys() < defaults.keys()
    assert frequent.keys() < defaults.keys()


def test_sweeps_of_default_runs_have_every_instruction_set() -> None:
    frequent = {spec.type for spec in rows_of(registry, "frequent")}  # type: ignore[arg-type]
    for layout in ("list-aa-even", "list-aa-odd"):
        assert flow.stream_collide(layout, "float32", "float32", "constant", "none").type in frequent
    assert flow.stream_collide("tiles-8", "float32", "float32", "constant", "immersed-own").type in frequent
    assert flow.observe("list-aa-even", "float32", "float32", "constant").type not in frequent


def test_every_rare_functor_is_in_the_table_of_wheels() -> None:
    assert {kernel.partition("<")[0] for kernel in IN_WHEELS} >= registry.rare.FEW_ITEMS
