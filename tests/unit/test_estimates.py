# SPDX-License-Identifier: BSD-3-Clause
"""Estimates of all kinds of case: in the check, before the run, at its end and in the summary, each with its source."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from case_files import blood_tables, box_tables, changed, setup_of, toml_of, tube_tables
from page_blocks import ROOT
from seiche.case.blood.estimates import drift_estimates
from seiche.case.flow.estimates import flow_estimates
from seiche.case.kinds import KINDS, kind_of
from seiche.case.load import read_source
from seiche.case.loading import load
from seiche.cli import main
from seiche.solver import Estimate
from ultrasound_cases import BASIC
from waves_cases import ROCK

PULSE = """
[[source]]
position = ["12 m", "9 m"]
force = ["0 N", "1 N"]
time = { kind = "ricker", frequency = "20 Hz" }
[time]
steps = 2
"""


def coarse_case(kind: str) -> str:
    """Return a small case of a kind with one violated bound."""
    if kind == "flow":
        return toml_of(changed(changed(tube_tables(), "lattice.tau", 0.505), "time.steps", 2))
    if kind == "blood":
        tables = changed(blood_tables(), "time.steps", 2)
        return toml_of(changed(tables, "coupling", {"delta": "roma"}))
    if kind == "ultrasound":
        return BASIC.replace("500 kHz", "1 MHz")
    return ROCK + PULSE


EXPECTED = {
    "flow": ("tau", "is below 0.51"),
    "blood": ('cells["red"]: mean edge', "is above 1.6"),
    "ultrasound": ("points per wavelength", "is below 4"),
    "waves": ("nodes per shortest wavelength", "is below"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_violated_bound_is_one_line_before_the_run_and_one_in_the_summary(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "case.toml"
    path.write_text(coarse_case(kind))
    words = EXPECTED[kind]

    def told(text: str, mark: str) -> str:
        (line,) = [line for line in text.splitlines() if line.startswith(mark) and all(word in line for word in words)]
        return line.removeprefix(mark)

    assert main(["check", str(path)]) == 0
    warning = told(capsys.readouterr().out, "advice: ")
    assert "; use " in warning
    assert main(["run", str(path), "--output", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr()
    assert told(printed.err, "seiche: note: ") == warning
    assert told(printed.out, "seiche: note: ") == warning
    estimates = json.loads((tmp_path / "out" / "summary.json").read_text())["estimates"]
    (entry,) = [entry for entry in estimates if entry["warning"] == warning]
    bound = entry["least"] if "below" in words[1] else entry["greatest"]
    assert f"{bound:.4g}" in warning
    assert entry["source"]


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/*/case*.toml")), ids=lambda path: path.parent.name)
def test_estimates_of_examples_name_the_source_of_each_bound(path: Path) -> None:
    source = read_source(path)
    kind = kind_of(source)
    if kind.name == "blood":
        pytest.skip("packing takes long; the small case of blood stands for it")
    estimates = kind.estimates(kind.prepare(source))
    for estimate in estimates:
        assert math.isfinite(estimate.value), estimate
        check_source(estimate)


def test_estimates_of_blood_name_the_source_of_each_bound(tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    path.write_text(coarse_case("blood"))
    source = read_source(path)
    for estimate in kind_of(source).estimates(kind_of(source).prepare(source)):
        check_source(estimate)


def test_cells_that_lose_volume_are_named_with_a_remedy() -> None:
    volume, area = drift_estimates(0.025, 0.06)
    assert volume.warning is not None
    assert volume.warning.startswith("largest change of the volume of a cell so far 0.025 is above 0.01: fluid leaks")
    assert "use more vertices" in volume.warning
    assert area.warning is None
    assert not any(estimate.violated for estimate in drift_estimates(0.01, 0.0))
    check_source(volume)


def check_source(estimate: Estimate) -> None:
    """Check that the heading exists from which the bounds of an estimate come."""
    if estimate.lower_bound is None and estimate.upper_bound is None:
        return
    page, _, heading = estimate.source.partition("#")
    headings = re.findall(r"^#+ (.*)$", (ROOT / "docs" / page).read_text(), re.MULTILINE)
    anchors = [re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings]
    assert heading in anchors, estimate


def test_openings_vessels_and_pulses_are_measured_in_sites_and_radii() -> None:
    """A tube of radius 1 mm and length 4 mm at a spacing of 0.25 mm, with a peak velocity of 4 mm/s."""
    result = {estimate.name: estimate for estimate in flow_estimates(setup_of(tube_tables()))}
    assert result["radius"].value == pytest.approx(4.0)
    assert result["radius"].violated
    assert result["distance over radius"].value == pytest.approx(4.0)
    assert not result["distance over radius"].violated
    # 2 r (1 - e): the sites of the tube have less volume than the tube.
    assert result["hydraulic diameter, 4 volume/area"].value == pytest.approx(8.0, rel=0.1)
    entrance = result["entrance length 0.05 Re D over distance between openings"]
    assert entrance.value == pytest.approx(0.05 * (4e-3 * 2e-3 / 4e-6) * 2e-3 / 4e-3)
    fine = {item.name: item for item in flow_estimates(setup_of(changed(tube_tables(), "geometry.spacing", "0.1 mm")))}
    assert not any(item.violated for item in fine.values())
    pulse = {"kind": "pressure", "name": "outlet", "pressure": "0 Pa", "amplitude": "1 mPa", "period": "1 s"}
    tables = changed(tube_tables(), "iolet.1", pulse)
    setup = setup_of(tables)
    result = {estimate.name: estimate for estimate in flow_estimates(setup)}
    layer = math.sqrt(4e-6 / (2 * math.pi)) / 0.25e-3
    assert result["thickness of the oscillating boundary layer"].value == pytest.approx(layer)
    phase = 2 * math.pi * 16 * setup.dt * math.sqrt(3)
    assert result["phase of the pulse along the vessel at the lattice speed of sound"].value == pytest.approx(phase)


@pytest.mark.parametrize(("collision", "stated"), [("trt", True), ("mrt", True), ("regularised", False)])
def test_the_reynolds_number_of_a_spacing_limits_the_velocity_at_openings(collision: str, stated: bool) -> None:
    """The tube has a peak velocity of 4 mm/s, a spacing of 0.25 mm and a viscosity of 4 mm^2/s."""
    name = "grid Reynolds number u dx/nu, with openings"
    tables = changed(tube_tables(), "lattice.collision", collision)
    result = {item.name: item for item in flow_estimates(setup_of(tables))}
    assert (name in result) == stated
    if stated:
        assert result[name].value == pytest.approx(4e-3 * 0.25e-3 / 4e-6)
        assert not result[name].violated
        fast = {i.name: i for i in flow_estimates(setup_of(changed(tables, "fluid.viscosity", "0.1 mPa s")))}
        assert fast[name].violated
        assert "the run may become unstable where fluid enters; use a spacing below" in fast[name].warning
    assert name not in {item.name for item in flow_estimates(setup_of(box_tables()))}


def test_the_run_states_its_mach_number_and_the_drift_of_mass(tmp_path: Path) -> None:
    tables: dict[str, Any] = changed(box_tables(), "fluid.initial_velocity", ["1 mm/s", "0 m/s", "0 m/s"])
    (tmp_path / "case.toml").write_text(toml_of(changed(tables, "run.monitor_every", 2)))
    with load(tmp_path / "case.toml", output=tmp_path / "out") as simulation:
        outcome = simulation.run(visible=False)
        result = {estimate.name: estimate for estimate in simulation.estimates()}
        mach = 1e-3 * simulation.setup.dt / 1e-3 * math.sqrt(3)
    assert result["largest Mach number so far"].value == pytest.approx(mach, rel=1e-6)
    assert result["relative drift of mass so far"].value < 1e-14
    assert not result["relative drift of mass so far"].violated
    assert {entry["name"] for entry in outcome.summary["estimates"]} == set(result)


def test_a_force_a_thousand_times_too_large_is_seen_in_spite_of_velocity_scale(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Between plates 0.1 N/m^3 drives 0.2 mm/s; in a short run the acceleration limits the velocity."""
    shape = {"kind": "channel", "height": "8 mm", "length": "4 mm", "width": "2 mm"}
    tables = changed(changed(box_tables(), "geometry.shape", shape), "lattice.velocity_scale", "0.2 mm/s")
    tables = changed(tables, "time", {"duration": "100 s"})
    small = changed(tables, "body_force", {"force": ["0.1 N/m^3", "0 N/m^3", "0 N/m^3"]})
    (tmp_path / "case.toml").write_text(toml_of(small))
    assert main(["check", str(tmp_path / "case.toml")]) == 0
    assert "advice: Mach number of developed flow" not in capsys.readouterr().out
    tables = changed(tables, "body_force", {"force": ["100 N/m^3", "0 N/m^3", "0 N/m^3"]})
    (tmp_path / "case.toml").write_text(toml_of(tables))
    assert main(["check", str(tmp_path / "case.toml")]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"advice: Mach number of developed flow .* is above 0.1: they may drive 0.2 m/s, not", printed)
    (tmp_path / "case.toml").write_text(toml_of(changed(tables, "time", {"steps": 2})))
    with load(tmp_path / "case.toml", output=tmp_path / "out") as simulation:
        result = {estimate.name: estimate for estimate in simulation.estimates()}
        driven = result["Mach number of developed flow driven by forces and pressures"]
        units = simulation.setup.units
        velocity = 100 / units.density * 2 * units.step
        assert driven.value == pytest.approx(velocity * units.step / units.spacing * math.sqrt(3), rel=1e-9)
        simulation.run(visible=False)
        estimates = {estimate.name: estimate for estimate in simulation.estimates()}
        assert estimates["largest velocity so far, relative to that of the check"].violated


def test_nan_is_beyond_every_bound_and_rounding_beyond_none() -> None:
    assert Estimate(name="x", value=math.nan, upper_bound=1.0).violated
    assert not Estimate(name="x", value=math.nan).violated
    assert not Estimate(name="x", value=0.1 + 0.2, upper_bound=0.3).violated
    assert Estimate(name="x", value=0.31, unit="m", upper_bound=0.3, remedy="use less").warning == (
        "x 0.31 m is above 0.3; use less"
    )
    assert (
        Estimate(name="x", value=0.2, where="here", lower_bound=0.3, effect="bad").warning
        == "here: x 0.2 is below 0.3: bad"
    )


def test_a_flow_that_is_not_steady_yet_is_named_with_a_duration_at_which_it_is(tmp_path: Path) -> None:
    """A tube with an imposed velocity, whose flow rate oscillates at first: the remedy is used until none is given."""
    path, name = tmp_path / "case.toml", "change of a flow rate in the last"
    path.write_text(toml_of(tube_tables()))

    def estimate_after(duration: str) -> Estimate:
        with load(path, overrides=[f"time.duration={duration}"], output=tmp_path / "out", replace=True) as simulation:
            outcome = simulation.run(visible=False)
            (estimate,) = [estimate for estimate in simulation.estimates() if estimate.name.startswith(name)]
        assert any("(not steady yet)" in line for line in outcome.lines) == estimate.violated
        assert any(line.startswith(f"note: {name}") for line in outcome.lines) == estimate.violated
        check_source(estimate)
        return estimate

    durations = ["80 ms"]
    while len(durations) < 6 and (warning := estimate_after(durations[-1]).warning) is not None:
        needed = re.search(
            r"the flow is not steady yet; use time\.duration of about (\S+ s) for a steady flow$", warning
        )
        assert needed is not None
        durations.append(needed[1])
    # Waves of the flow rate decay by 4.5 in 0.1 s, from 28 % at 0.125 s: they are below 1 % after 0.35 s.
    assert 1 < len(durations) <= 4 and 0.3 < float(durations[-1].split()[0]) < 0.5, durations


@pytest.mark.parametrize(
    "change",
    [
        ("iolet.1", {"name": "outlet", "kind": "pressure", "pressure": "0 Pa", "amplitude": "1 mPa", "period": "1 s"}),
        ("iolet.0", {"name": "inlet", "kind": "pressure", "pressure": "1 Pa"}),
    ],
)
def test_a_pulse_or_a_flow_known_to_accelerate_has_no_second_note(change: tuple[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    path.write_text(toml_of(changed(changed(tube_tables(), "time.steps", 40), *change)))
    with load(path, output=tmp_path / "out") as simulation:
        simulation.run(visible=False)
        notes = [line for estimate in simulation.estimates() if (line := estimate.warning) is not None]
    assert not any("steady yet" in line for line in notes)
    assert any("still accelerating" in line for line in notes) == ("1 Pa" in change[1].values())
