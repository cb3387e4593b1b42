# SPDX-License-Identifier: BSD-3-Clause
"""Arguments of a simulation: paths of checkpoints, intervals, and names that are reserved."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import seiche
from case_files import toml_of, tube_tables
from prediction_cases import case_file
from seiche.case.loading import prepare
from seiche.case.new import new_case
from seiche.case.output import OutputTarget
from seiche.case.output_targets import files_at
from seiche.cli import main
from seiche.errors import CaseError

KINDS = ("flow", "blood", "ultrasound", "waves")


def test_a_checkpoint_replaces_only_a_checkpoint(tmp_path: Path) -> None:
    case = case_file(tmp_path, "flow")
    notes, folder = tmp_path / "notes.txt", tmp_path / "folder"
    notes.write_text("mine")
    folder.mkdir()
    content = case.read_bytes()
    with seiche.load(case, output=tmp_path / "out") as sim:
        sim.run(steps=1, visible=False)
        for path, message in (
            (notes, "is not a valid checkpoint"),
            (case, "replace"),
            (folder, "is a folder"),
            (tmp_path / "missing" / "state", "does not exist"),
            (Path("/dev/null"), "is not a regular file"),
        ):
            with pytest.raises(CaseError, match=message):
                sim.checkpoint(path)
        for _ in range(2):
            assert sim.checkpoint(tmp_path / "state.seiche").is_file()
    with pytest.raises(CaseError, match="is closed"):
        sim.checkpoint(tmp_path / "later.seiche")
    assert notes.read_text() == "mine" and case.read_bytes() == content
    assert not (tmp_path / "later.seiche").exists()


def test_files_of_a_series_are_states_lists_and_walls_only(tmp_path: Path) -> None:
    own = [tmp_path / name for name in ("cells.000000010.vtkhdf", "cells.wall.vtkhdf")]
    for path in (*own, tmp_path / "cells.mean.vtkhdf"):
        h5py.File(path, "w").close()
    position = OutputTarget("output.cells", tmp_path / "cells.vtkhdf", series=True)
    assert sorted(files_at(position)) == sorted(own)


@pytest.mark.parametrize(
    "interval",
    [{}, {"steps": 1, "time": 1.0}, *({name: value} for name in ("steps", "time") for value in (0, -1, 1e999, "3"))],
)
def test_an_interval_is_one_positive_number(interval: dict[str, Any], tmp_path: Path) -> None:
    with seiche.load(case_file(tmp_path, "flow"), output=tmp_path / "out") as sim:
        for arguments in (interval, {"steps": 1.5}, {"time": float("nan")}):
            with pytest.raises(CaseError, match="every: expected a positive whole number of steps"):
                sim.every(print, **arguments)
        with pytest.raises(CaseError, match="every: 5 is not a function"):
            sim.every(5, steps=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_a_time_shorter_than_half_a_step_is_refused_for_every_kind(kind: str, tmp_path: Path) -> None:
    """Of callbacks, outputs and the whole run; a longer one that is shorter than a step is one step."""
    case, table = case_file(tmp_path, kind), "grid" if kind == "ultrasound" else "time"
    with seiche.load(case, output=tmp_path / "out") as sim:
        step, calls = sim.setup.dt, list[int]()
        with pytest.raises(CaseError, match=r"^every: time: is shorter than half a time step of .* s$"):
            sim.every(print, time=0.49 * step)
        sim.every(lambda sim: calls.append(sim.step), time=0.51 * step)
        sim.run(3, visible=False)
        assert calls == [1, 2, 3]
    outputs = {
        "flow": ('output.fields={ file = "a.vtkhdf", every = "%s" }', "output.record_every=%s"),
        "blood": (
            'output.cells={ file = "a.pos", every = "%s" }',
            'output.surface={ file = "w.vtkhdf", every = "%s" }',
        ),
        "ultrasound": (),
        "waves": ('output.snapshots={ file = "a.h5", every = "%s" }', "output.receivers.every=%s"),
    }[kind]
    for change in ("output.checkpoint.every=%s", *outputs):
        with pytest.raises(CaseError, match=r"every: is shorter than half a time step of .* s$") as error:
            prepare(case, [change % f"{0.49 * step} s"])
        assert "\n" not in str(error.value)
        prepare(case, [change % f"{0.51 * step} s"])
    lines = [line for line in case.read_text().splitlines() if not re.match(r"(time = \{)?(steps|cfl) ?=", line)]
    case.write_text("\n".join(lines))
    given = [] if kind in ("flow", "blood") else [f"{table}.{'time_step' if kind == 'ultrasound' else 'step'}={step} s"]
    with pytest.raises(CaseError, match=rf"{table}.*: .* s is (shorter than half a time step|0.49 steps)"):
        prepare(case, [*given, f"{table}.duration={0.49 * step} s"])
    assert prepare(case, [*given, f"{table}.duration={0.51 * step} s"]).steps >= 1


def test_names_of_the_record_of_a_run_are_reserved(tmp_path: Path) -> None:
    case = case_file(tmp_path, "flow")
    for name in (".seiche-run.json", ".seiche-run.lock"):
        with pytest.raises(CaseError, match="is reserved for the manifest of the run"):
            seiche.load(case, output=tmp_path / "out", overrides=[f"output.summary={name}"])


def test_an_output_folder_without_a_name_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = case_file(tmp_path, "flow")
    with pytest.raises(CaseError, match=r"^output: expected the name of a folder, not an empty string"):
        seiche.load(case, output="")
    for words in (["run", str(case)], ["sweep", str(case), "--set", "time.steps=5,6"]):
        for name in ("--output", "-o"):
            assert main([*words, name, ""]) == 2
            message = capsys.readouterr().err
            assert message.count("\n") == 1 and "expected the name of a folder, not an empty string" in message
    assert [path.name for path in tmp_path.iterdir()] == [case.name]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No measurement of the memory's speed after each of these small runs."""
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_goes_beyond_its_end_by_a_restart_with_more_steps(kind: str, tmp_path: Path) -> None:
    key = "grid.steps" if kind == "ultrasound" else "time.steps"
    series = ['output.fields=[{file="fields.vtkhdf", every=2}]'] if kind in ("flow", "blood") else []
    case = case_file(tmp_path, kind)

    def load(steps: int, folder: str, **options: Any) -> seiche.case.simulation.Simulation:
        return seiche.load(case, overrides=[f"{key}={steps}", *series], output=tmp_path / folder, **options)

    with load(7, "whole") as sim:
        full = [sim.run(visible=False), sim.fields()][1]
    with load(4, "parts") as sim:
        sim.run(visible=False)
        for _ in range(2):
            with pytest.raises(CaseError, match="run: 3 steps from step 4 go beyond the end of"):
                sim.run(steps=3, visible=False)
        assert sim.run(0, visible=False).step == sim.run(visible=False).step == 4
        checkpoint = sim.checkpoint()
    with load(7, "parts", restart=checkpoint) as sim:
        assert sim.run(3, visible=False).step == 7
        for name, values in sim.fields().items():
            np.testing.assert_array_equal(values, full[name])


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kind", KINDS)
def test_wrong_arguments_of_a_simulation_give_one_line(kind: str, tmp_path: Path) -> None:
    with seiche.load(case_file(tmp_path, kind), output=tmp_path / "out") as sim:
        name = next(iter(sim.steering))
        vector = isinstance(sim.steering[name], tuple)
        huge = (10**400, 0, 0) if vector else 10**400
        calls: list[tuple[Any, str]] = [
            *((lambda s=s: sim.run(s, visible=False), "run: steps: .* is not a whole number") for s in _NO_COUNTS),
            *((lambda s=s: sim.run(1, serve=s), "run: serve: .* is not a whole number") for s in ("80", 1.5, -1)),
            *(
                (lambda f=f: getattr(sim, f)(3), "fields: 3 is not a name")
                for f in ("fields", "device_fields", "result")
            ),
            (lambda: sim.fields(["pressure", 3]), "fields: .* is not a name"),
            (lambda: sim.fields(["pressure"], "none"), "'none' is not a field"),
            *(
                (lambda s=s: sim.result(shape=s), "result: shape")
                for s in (5, "5", (2, "a"), (np.nan,) * 3, (10**400,))
            ),
            *((lambda s=s: sim.result(spacing=s), "result: spacing") for s in ("1 m", [1.0], 0, np.nan, 10**400)),
            *((lambda p=p: sim.checkpoint(p), "checkpoint: .* is not a path") for p in (3, "", b"a", "a\0b")),
            (lambda: sim.add(3), "add: 3 is not an output"),  # type: ignore[arg-type]
            (lambda: sim.every(print, steps=10**400), "every: expected a positive whole number"),
            (lambda: sim.steering.__setitem__(name, huge), "is not a number"),
            (lambda: sim.steering.__setitem__(name, 10**5000), "is not a number"),
            (lambda: sim.steering.__setitem__(name, ("3",) * 3 if vector else "3"), "is not a number"),
            (lambda: sim.steering.__setitem__(name, (1e300,) * 3 if vector else 1e300), "is out of range"),
            (lambda: sim.steering.__setitem__([1], 1.0), "is not a name"),  # type: ignore[index]
        ]
        for call, message in calls:
            with pytest.raises(CaseError, match=message) as raised:
                call()
            assert "\n" not in str(raised.value)
        assert sim.step == 0 and not sim.steering.changed


_NO_COUNTS = (-3, float("nan"), float("inf"), 1.5, "3", [3], True)


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_arguments_of_load_give_one_line(kind: str, tmp_path: Path) -> None:
    case = case_file(tmp_path, kind)
    for arguments, message in (
        ({"world": "x"}, 'world: "x" is not a World'),
        ({"replace": "no"}, 'replace: "no" is not True or False'),
        ({"overrides": "run.device=cpu"}, "overrides: .* is not a list"),
        ({"overrides": [3]}, "overrides: .* is not a name"),
        ({"overrides": 3}, "overrides: 3 is not a list"),
        *(({key: value}, f"{key}: .* is not a path") for key in ("output", "restart") for value in (3, b"a")),
    ):
        with pytest.raises(CaseError, match=message):
            seiche.load(case, **arguments)  # type: ignore[arg-type]
    for path in (3, None, b"a", "a\0b"):
        with pytest.raises(CaseError, match=r"case file: .* is not a path"):
            seiche.load(path)  # type: ignore[arg-type]
        with pytest.raises(CaseError, match=r"case file: .* is not a path"):
            prepare(path)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["0", '"0 s"', "-1"])
@pytest.mark.parametrize(
    ("kind", "key"),
    [
        *((kind, "output.checkpoint.every={}") for kind in KINDS),
        ("flow", "time.steady_interval={}"),
        ("flow", "output.record_every={}"),
        ("flow", 'output.fields=[{{file="a.vtkhdf", every={}}}]'),
        ("flow", 'output.surface=[{{file="a.vtkhdf", every={}}}]'),
        ("flow", 'output.averages={{file="a.vtkhdf", window={}}}'),
        ("blood", 'output.cells=[{{file="a.vtkhdf", every={}}}]'),
        ("waves", 'output.snapshots=[{{file="a.h5", every={}}}]'),
        ("waves", "output.receivers.every={}"),
    ],
)
def test_an_interval_of_a_case_is_positive(kind: str, key: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=r"is not an interval; expected a time|is not a number of steps"):
        prepare(case_file(tmp_path, kind), [key.format(value)])


def test_a_value_outside_the_limits_of_its_key_cannot_be_set(tmp_path: Path) -> None:
    tables, case = tube_tables(), tmp_path / "case.toml"
    tables["iolet"][1] = {
        **{"name": "outlet", "kind": "windkessel", "resistance": "1e9 Pa s/m^3", "compliance": "1e-11 m^3/Pa"},
        "scheme": "nash",
    }
    tables["lattice"] = {"step": "0.2 ms"}
    case.write_text(toml_of(tables))
    with seiche.load(case, output=tmp_path / "out") as sim:
        for key in ("compliance", "resistance"):
            with pytest.raises(CaseError, match=r"0\.0 is out of range; expected > 0"):
                sim.steering[f"iolets.outlet.{key}"] = 0.0
        with pytest.raises(CaseError, match=r"-1\.0 is out of range; expected >= 0"):
            sim.steering["iolets.outlet.proximal_resistance"] = -1.0


def test_a_missing_folder_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "missing"
    message = f"there is no folder {missing}"
    case = case_file(tmp_path, "flow")
    with pytest.raises(CaseError, match=message):
        seiche.load(missing / "case.toml")
    with pytest.raises(CaseError, match=message):
        seiche.load(case, output=tmp_path / "out", restart=missing / "checkpoint.seiche")
    with seiche.load(case, output=tmp_path / "out") as sim, pytest.raises(CaseError, match=message):
        sim.result().plot().save(missing / "flow.png")
    vessel = 'geometry={stl="missing/vessel.stl", unit="1 mm", spacing="0.1 mm"}'
    assert main(["check", str(case), "--set", vessel]) == 2
    assert message in capsys.readouterr().err
    waves = case_file(tmp_path, "waves")
    pulse = 'source=[{position=["1 m", "1 m", "1 m"], volume="1 m^3", time={kind="file", file="missing/pulse.txt"}}]'
    assert main(["check", str(waves), "--set", pulse]) == 2
    assert message in capsys.readouterr().err
    ultrasound = case_file(tmp_path, "ultrasound")
    assert main(["check", str(ultrasound), "--set", 'medium={file="missing/medium.npz"}']) == 2
    assert message in capsys.readouterr().err


def test_comments_of_templates_name_keys(tmp_path: Path) -> None:
    new_case("ultrasound", tmp_path / "disc")
    assert "# or steps\n" in (tmp_path / "disc" / "case.toml").read_text()
