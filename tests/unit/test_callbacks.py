# SPDX-License-Identifier: BSD-3-Clause
"""Callbacks of every kind of case: steering, stops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seiche
from case_files import changed, toml_of, tube_tables
from prediction_cases import case_file
from seiche.backend.cpu import CpuBackend, CpuGraph
from seiche.case.simulation import Simulation
from seiche.errors import CaseError

#: Of each kind: fields, a number that may be set, and values of it.
KINDS: dict[str, tuple[list[str], str, tuple[Any, Any]]] = {
    "flow": (["pressure", "velocity"], "iolets.inlet.velocity", (0.003, 0.001)),
    "blood": (["pressure", "velocity"], "body_force", ((1e5, 0.0, 2e4), (0.0, 3e4, 0.0))),
    "ultrasound": (["pressure", "velocity"], "sources.0.amplitude", (1.7, -0.4)),
    "waves": (["velocity", "pressure"], "sources.0.amplitude", (1.7, -0.4)),
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No measurement of the memory's speed after each of these small runs."""
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)


def written(folder: Path, tables: dict[str, Any]) -> Path:
    """Return a case file of these tables."""
    path = folder / "case.toml"
    path.write_text(toml_of(tables))
    return path


def final(sim: Simulation, names: list[str]) -> dict[str, np.ndarray]:
    return {name: values.copy() for name, values in sim.fields(names).items()}


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], same: bool = True) -> None:
    """Check that two sets of fields have the same bits, or that they differ."""
    equal = [np.array_equal(found[name], values) for name, values in expected.items()]
    assert all(equal) if same else not any(equal), equal


def steered(sim: Simulation, name: str, values: tuple[Any, Any]) -> None:
    """Let a callback change a number every five steps, to and fro."""

    @sim.every(steps=5)
    def steer(sim: Simulation) -> None:
        sim.steering[name] = values[sim.step // 5 % 2]


@pytest.mark.parametrize("kind", KINDS)
def test_a_steered_run_that_stops_continues_with_bitwise_equal_results(kind: str, device: str, tmp_path: Path) -> None:
    """Steps 0 to 23 at once, and with a stop at step 12 that the callback asks for, between two of its changes."""
    names, number, values = KINDS[kind]
    case = case_file(tmp_path, kind)
    options: dict[str, Any] = {
        "device": device,
        "overrides": [f"{'grid' if kind == 'ultrasound' else 'time'}.steps=23"],
    }
    with seiche.load(case, output=tmp_path / "plain", **options) as sim:
        sim.run()
        plain = final(sim, names)
    with seiche.load(case, output=tmp_path / "whole", **options) as sim:
        steered(sim, number, values)
        outcome = sim.run()
        assert outcome.summary["details"]["steering"] == {number: pytest.approx(values[0])}
        full = final(sim, names)
    assert_same(full, plain, same=False)
    with seiche.load(case, output=tmp_path / "first", **options) as sim:
        steered(sim, number, values)
        sim.every(lambda sim: sim.stop("enough"), steps=12)
        outcome = sim.run()
        assert (outcome.step, outcome.stopped) == (12, "enough")
    checkpoint = tmp_path / "first" / "checkpoint.seiche"
    with seiche.load(case, output=tmp_path / "second", restart=checkpoint, **options) as sim:
        assert sim.steering[number] == values[0]  # of step 10
        steered(sim, number, values)
        sim.run()
        assert_same(final(sim, names), full)


@pytest.mark.parametrize("kind", KINDS)
def test_the_value_of_the_case_changes_no_bit(kind: str, tmp_path: Path) -> None:
    names, number, _ = KINDS[kind]
    result = []
    for k in range(2):
        with seiche.load(case_file(tmp_path, kind), output=tmp_path / str(k)) as sim:
            if k:
                value = sim.steering[number]
                sim.steering[number] = [-1.0, 0.5, 3.0] if kind == "blood" else -3.0
                sim.steering[number] = value
            sim.run(steps=8)
            result.append(final(sim, names))
    assert_same(*result)


SINE = {"name": "inlet", "kind": "pressure", "pressure": "4 Pa", "amplitude": "1 Pa", "period": "5 ms"}
CIRCUIT = {
    **{"name": "outlet", "kind": "windkessel", "resistance": "1e9 Pa s/m^3", "compliance": "1e-11 m^3/Pa"},
    "scheme": "nash",  # else the rule depends on the resistance of the case
}
FLOW_RATE = {"name": "inlet", "kind": "velocity", "flow_rate": "6 mm^3/s", "ramp": 20}


@pytest.mark.parametrize(
    ("iolet", "key", "value", "text"),
    [
        (None, "velocity", 0.001, "1 mm/s"),
        (FLOW_RATE, "flow_rate", 2e-9, "2 mm^3/s"),
        (SINE, "pressure", 2.0, "2 Pa"),
        (SINE, "amplitude", 3.0, "3 Pa"),
        (CIRCUIT, "resistance", 5e8, "5e8 Pa s/m^3"),
        (CIRCUIT, "proximal_resistance", 2e8, "2e8 Pa s/m^3"),
        (CIRCUIT, "distal_pressure", 3.0, "3 Pa"),
        (CIRCUIT, "compliance", 4e-11, "4e-11 m^3/Pa"),
    ],
)
def test_a_value_that_is_set_at_the_start_is_that_of_the_case(
    iolet: dict[str, Any] | None, key: str, value: float, text: str, tmp_path: Path
) -> None:
    tables = tube_tables()
    tables["lattice"] = {"step": "0.2 ms"}  # whatever the velocities
    number = 1 if iolet is CIRCUIT else 0
    if iolet is not None:
        tables["iolet"][number] = iolet
    name = tables["iolet"][number]["name"]
    result = []
    for overrides in ([], [f"iolet.{name}.{key}={text}"]):
        with seiche.load(written(tmp_path, tables), overrides=overrides, output=tmp_path / str(len(overrides))) as sim:
            if not overrides:
                sim.steering[f"iolets.{name}.{key}"] = value
            sim.run(steps=30)
            result.append(final(sim, ["pressure", "velocity"]))
    assert_same(*result)


def test_a_value_replaces_a_table(tmp_path: Path) -> None:
    (tmp_path / "course.txt").write_text("0 0.001\n0.001 0.003\n0.1 0.003\n")
    tables, result = tube_tables(), []
    tables["lattice"] = {"step": "0.2 ms"}
    for k in range(2):
        if k == 0:
            tables["iolet"][0] = {"name": "inlet", "kind": "velocity", "table": "course.txt"}
        else:
            tables["iolet"][0] = {"name": "inlet", "kind": "velocity", "velocity": "2 mm/s"}
        with seiche.load(written(tmp_path, tables), output=tmp_path / str(k)) as sim:
            assert sim.steering["iolets.inlet.velocity"] == (None if k == 0 else 0.002)
            sim.steering["iolets.inlet.velocity"] = 0.002
            sim.run(steps=10)
            result.append(final(sim, ["velocity"]))
    assert_same(*result)


def test_a_body_force_may_be_set_in_any_layout(tmp_path: Path) -> None:
    result = []
    for layout in ("tiles-8", "list-aa", "list-ab"):
        with seiche.load(
            written(tmp_path, tube_tables()), overrides=[f"lattice.layout={layout}"], output=tmp_path / layout
        ) as sim:
            sim.run(steps=5)
            sim.steering["body_force"] = (20.0, 0.0, -5.0)
            sim.run(steps=5)
            result.append(final(sim, ["velocity"])["velocity"])
    np.testing.assert_allclose(result[1], result[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(result[2], result[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["ultrasound", "waves"])
def test_the_amplitude_of_a_source_is_a_factor(kind: str, tmp_path: Path) -> None:
    """A factor of two is exact in binary numbers: linear waves that begin at rest double, bit by bit."""
    result = []
    for factor in (1.0, 2.0):
        with seiche.load(case_file(tmp_path, kind), output=tmp_path / str(factor)) as sim:
            sim.steering["sources.0.amplitude"] = factor
            sim.run(steps=8)
            result.append(final(sim, ["pressure"])["pressure"])
    assert np.abs(result[0]).max() > 0
    np.testing.assert_array_equal(result[1], 2 * result[0])


def test_sources_with_delays_and_of_two_signals_have_factors(tmp_path: Path) -> None:
    """Sources 0 and 2 send one signal, with delays, and have one factor; source 1 has its own."""
    path = case_file(tmp_path, "ultrasound")
    disc = path.read_text().partition("[[source]]")[2].partition("[record]")[0]
    more = disc.replace("0.5 MHz", "0.4 MHz") + "[[source]]" + disc + 'delay = "0.3 us"\n'
    path.write_text(path.read_text().replace("[record]", f"[[source]]{more}[record]"))
    result = []
    for factors in ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0)):
        with seiche.load(path, overrides=["run.precision=float64"], output=tmp_path / str(factors)) as sim:
            assert list(sim.steering) == ["sources.0.amplitude", "sources.1.amplitude"]
            for name, factor in zip(sim.steering, factors, strict=True):
                sim.steering[name] = factor
            sim.run(steps=12)
            result.append(final(sim, ["pressure"])["pressure"])
    scale = np.abs(result[2]).max()
    assert min(np.abs(item).max() for item in result) > 0.1 * scale
    np.testing.assert_allclose(result[0] + result[1], result[2], rtol=0, atol=1e-12 * scale)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("iolets.inlet.velocty", 1.0, 'steering: "iolets.inlet.velocty" is unknown; did you mean "iolets.inlet.vel'),
        ("iolets.inlet.velocity", float("nan"), "steering['iolets.inlet.velocity']: nan is not finite"),
        ("iolets.inlet.velocity", None, "steering['iolets.inlet.velocity']: None is not a number"),
        ("iolets.inlet.velocity", "fast", "steering['iolets.inlet.velocity']: \"fast\" is not a number"),
        ("iolets.inlet.velocity", (1.0, 2.0), "has shape (2,); expected ()"),
        ("body_force", 1.0, "steering['body_force']: 1.0 has shape (); expected (3,)"),
        ("body_force", (0.0, float("inf"), 0.0), "is not finite"),
    ],
)
def test_a_value_that_is_invalid_is_rejected(name: str, value: Any, message: str, tmp_path: Path) -> None:
    with seiche.load(written(tmp_path, tube_tables()), output=tmp_path / "out") as sim:
        before = dict(sim.steering)
        with pytest.raises(CaseError) as error:
            sim.steering[name] = value
        assert message in str(error.value) and "\n" not in str(error.value)
        assert dict(sim.steering) == before and not sim.steering.changed
        assert "iolets.outlet.pressure" in sim.steering and name + "s" not in sim.steering


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_key_of_steering_gives_one_line(kind: str, tmp_path: Path) -> None:
    """Also one that is no text; no value can be removed, and none is set without its check."""
    with seiche.load(case_file(tmp_path, kind), output=tmp_path / "out") as sim:
        before = dict(sim.steering)
        for key in ([1], {}, 3, None, ("a", [2]), b"a", "a" * 10_000):
            for use in (sim.steering.__getitem__, lambda key: sim.steering.__setitem__(key, 1.0)):
                with pytest.raises(CaseError, match=r"^steering: .* is (not a name|unknown)") as error:
                    use(key)
                assert "\n" not in str(error.value) and len(str(error.value)) < 200
            assert key not in sim.steering and sim.steering.get(key, 7.0) == 7.0
        for name in before:
            with pytest.raises(CaseError, match=r"steering: .* cannot be removed; set another value"):
                del sim.steering[name]
            with pytest.raises(CaseError, match="is not finite"):
                sim.steering.update({name: float("nan") if not isinstance(before[name], tuple) else [float("nan")] * 3})
        assert dict(sim.steering) == before and not sim.steering.changed


def test_a_circuit_without_resistance_is_rejected_and_the_run_continues(tmp_path: Path) -> None:
    tables = tube_tables()
    tables["iolet"][1] = CIRCUIT
    with seiche.load(written(tmp_path, tables), output=tmp_path / "out") as sim:
        with pytest.raises(CaseError, match="is out of range; expected > 0"):
            sim.steering["iolets.outlet.resistance"] = 0.0
        assert sim.steering["iolets.outlet.resistance"] == 1e9
        sim.run(steps=3)


def test_a_restart_without_what_was_set_is_rejected(tmp_path: Path) -> None:
    case = written(tmp_path, tube_tables())
    with seiche.load(case, output=tmp_path / "out") as sim:
        sim.steering["iolets.inlet.velocity"] = 0.001
        sim.run(steps=3)
        checkpoint = sim.checkpoint(tmp_path / "one.seiche")
    tables = tube_tables()
    tables["iolet"][0] = {"name": "inlet", "kind": "pressure", "pressure": "1 Pa"}
    case = written(tmp_path, changed(tables, "lattice", {"tau": 0.8}))
    with pytest.raises(
        CaseError, match=r"--restart .*one.seiche: the checkpoint contains a changed 'iolets.inlet.velocity', but"
    ):
        seiche.load(case, output=tmp_path / "other", restart=checkpoint)


def test_a_checkpoint_of_a_run_that_was_not_steered_records_nothing(tmp_path: Path) -> None:
    from seiche.io.checkpoint import inspect_checkpoint

    with seiche.load(case_file(tmp_path, "waves"), output=tmp_path / "out") as sim:
        sim.run(steps=2)
        assert "steering" not in inspect_checkpoint(sim.checkpoint()).attributes
        sim.steering["sources.0.amplitude"] = 3.0
        assert inspect_checkpoint(sim.checkpoint()).attributes["steering"] == '{"sources.0.amplitude": 3.0}'


def test_a_callback_never_sees_a_state_that_is_not_finite(tmp_path: Path) -> None:
    seen: list[bool] = []
    case = written(tmp_path, tube_tables())
    with seiche.load(case, output=tmp_path / "out") as sim:
        sim.every(lambda sim: seen.append(bool(np.isfinite(sim.fields("velocity")["velocity"]).all())), steps=1)
        sim.steering["iolets.inlet.velocity"] = 1e8
        with pytest.raises(seiche.errors.UnstableError):
            sim.run()
    assert all(seen) and len(seen) < 50


@pytest.mark.parametrize(
    ("kind", "number"), [*((kind, KINDS[kind][1]) for kind in KINDS), ("flow", "body_force"), ("flow", "circuit")]
)
def test_steps_from_graphs_take_values_that_are_set_between_them(
    kind: str, number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph on the CPU does the captured calls again, with the arguments that they had then."""
    values = ((20.0, 0.0, 5.0), (0.0, 10.0, 0.0)) if (kind, number) == ("flow", "body_force") else KINDS[kind][2]
    case, result, launched = case_file(tmp_path, kind), [], [0]
    if number == "circuit":
        tables = tube_tables()
        tables["iolet"][1] = CIRCUIT
        case, number, values = written(tmp_path, tables), "iolets.outlet.resistance", (3e9, 2e8)
    launch = CpuGraph.launch

    def counted(graph: CpuGraph) -> None:
        launched[0] += 1
        launch(graph)

    monkeypatch.setattr(CpuGraph, "launch", counted)
    monkeypatch.setattr("seiche.case.loop.CHUNK_SECONDS", 1e3)
    for graphs in (False, True):
        monkeypatch.setattr(CpuBackend, "has_graphs", graphs)
        overrides = [f"{'grid' if kind == 'ultrasound' else 'time'}.steps=141"]
        overrides += ["run.monitor_every=70", "output.record_every=70"] if kind in ("flow", "blood") else []
        with seiche.load(case, overrides=overrides, output=tmp_path / str(graphs)) as sim:
            sim.every(lambda sim: sim.steering.__setitem__(number, values[sim.step // 70 % 2]), steps=70)
            sim.solver.timers.every = 1000  # steps that are timed stage by stage do not come from graphs
            sim.run()
            result.append(final(sim, KINDS[kind][0]))
        assert bool(launched[0]) == graphs
    assert_same(*result)
