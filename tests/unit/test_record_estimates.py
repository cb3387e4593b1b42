# SPDX-License-Identifier: BSD-3-Clause
"""Estimates of what a run records: waves must be emitted, arrive, be sampled, and obey the equations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.special import jn_zeros

from case_files import box_tables, changed, toml_of, tube_tables
from seiche.case.flow.development import developed_fraction
from seiche.case.kinds import kind_of
from seiche.case.load import read_source
from seiche.case.ultrasound.amplitude_estimates import fewest_harmonics, harmonic
from seiche.case.ultrasound.estimates import temperature_estimate
from seiche.cli import main
from seiche.solver import Estimate
from ultrasound_cases import BASIC
from waves_cases import ROCK

BALL = """[[source]]
kind = "initial-ball"
center = ["0 mm", "0 mm"]
radius = "2 mm"
pressure = "1 kPa"
[record]
ring = { center = ["0 mm", "0 mm"], radius = "8 mm" }
[image]
"""
#: A pulse whose largest value is at 75 ms, and a receiver 10 m away, which waves reach after 5 ms.
PULSE = """
[[source]]
position = ["12 m", "9 m"]
force = ["0 N", "1 N"]
time = { kind = "ricker", frequency = "20 Hz", delay = "75 ms" }
[[receiver]]
name = "A"
position = ["22 m", "9 m"]
[time]
duration = "100 ms"
"""


def estimates_of(text: str, folder: Path) -> dict[str, Estimate]:
    """Return the estimates of a case file before a run, by name."""
    path = folder / "case.toml"
    path.write_text(text)
    source = read_source(path)
    kind = kind_of(source)
    return {estimate.name: estimate for estimate in kind.estimates(kind.prepare(source))}


def test_amplitudes_are_recorded_after_waves_have_crossed_the_grid(tmp_path: Path) -> None:
    """From (-8, 0) mm the farthest corner, at (11.5, -10) mm, is 21.9 mm or 14.6 us away; three cycles of ramp."""
    name = "time before the amplitudes are recorded, over the travel time across the grid"
    needed = np.hypot(19.5, 10.0) / 1.5 + 6.0
    for steps in (60, 300):
        estimate = estimates_of(BASIC.replace("steps = 60", f"steps = {steps}"), tmp_path)[name]
        assert estimate.value == pytest.approx((0.1 * steps - 2.0) / needed, rel=0.01)
        assert estimate.violated == (steps == 60)
    assert "grid.duration of at least 2.26e-05 s" in estimates_of(BASIC, tmp_path)[name].remedy
    assert name not in estimates_of(BASIC.replace('frequencies = ["500 kHz"]', ""), tmp_path)


def test_a_source_must_emit_during_the_run(tmp_path: Path) -> None:
    name = "delay over the duration of the run"
    assert name not in estimates_of(BASIC, tmp_path)
    for delay, violated in (("3 us", False), ("1 s", True)):
        text = BASIC.replace('amplitude = "60 kPa"', f'amplitude = "60 kPa"\ndelay = "{delay}"')
        assert estimates_of(text, tmp_path)[name].violated == violated
    name = "peak of the pulse over the duration of the run"
    assert estimates_of(ROCK + PULSE, tmp_path)[name].value == pytest.approx(0.75, rel=0.02)
    assert estimates_of(ROCK + PULSE.replace("75 ms", "100 s"), tmp_path)[name].violated


def test_images_need_the_records_of_all_sensors(tmp_path: Path) -> None:
    """The sound of the ball's far edge, 2 mm behind its centre, has 10 mm to the sensors: 6.7 us."""
    text = BASIC[: BASIC.index("[[source]]")] + BALL
    name = "duration over the travel time to the farthest sensor"
    estimate = estimates_of(text, tmp_path)[name]
    assert estimate.value == pytest.approx(6.0 / (10.0 / 1.5), rel=0.02) and estimate.violated
    assert not estimates_of(text.replace("steps = 60", "steps = 70"), tmp_path)[name].violated


def test_waves_reach_the_sensors_during_the_run(tmp_path: Path) -> None:
    """The edge of the ball is 4 mm from the point at (6, 0) mm, and 9 mm from the far side of a ring around (3, 0)."""
    name = "duration over the travel time from the nearest source at the highest speed"
    head, ball = BASIC.partition("[[source]]")[0], BALL.partition("[record]")[0]
    point = f'{head}{ball}[record]\npoints = [["6 mm", "0 mm"], ["0 mm", "1 mm"]]\n'
    ring = f'{head}{ball}[record]\nring = {{ center = ["3 mm", "0 mm"], radius = "8 mm" }}\n'
    line = (
        f'{head}{ball}[record]\n[[record.element]]\nkind = "line"\nstart = ["6 mm", "0 mm"]\nend = ["8 mm", "0 mm"]\n'
    )
    for text, where, distance, effect in (
        (point, "record.points[0]", 4e-3, "no wave reaches this sensor"),
        (line, "record.element[0]", 4e-3, "no wave reaches this sensor"),
        (ring, "record.ring", 9e-3, "no wave reaches all of the ring"),
    ):
        for steps in (4, 400):
            estimate = estimates_of(text.replace("steps = 60", f"steps = {steps}"), tmp_path)[name]
            dt = 0.3 * 0.5e-3 / 1500
            assert estimate.value == pytest.approx(steps * dt * 1500 / distance, rel=0.05) and estimate.where == where
            assert estimate.violated == (steps == 4)
        warning = estimates_of(text.replace("steps = 60", "steps = 4"), tmp_path)[name].warning
        assert warning is not None and f"{effect}; use grid.duration of more than" in warning


def test_rings_in_the_absorbing_layer_are_named(tmp_path: Path) -> None:
    """The layer of six points begins 7 and 6.75 mm from the middle; the ring around it has a radius of 8 mm."""
    text = BASIC[: BASIC.index("[[source]]")] + BALL
    name = "distance from the absorbing layer"
    estimate = estimates_of(text, tmp_path)[name]
    assert estimate.where == "record.ring" and estimate.violated
    assert estimate.value == pytest.approx((6.5 - 8.0) / 0.5, abs=1.01)
    assert not estimates_of(text.replace('radius = "8 mm"', 'radius = "6 mm"'), tmp_path)[name].violated
    assert not estimates_of(text.replace("points = 6", "points = 3\ninside = false"), tmp_path)[name].violated


def test_harmonics_that_the_grid_cannot_represent_are_named(tmp_path: Path) -> None:
    """Six points per wavelength represent three harmonics; a linear medium has no such estimate."""
    name = "relative amplitude of harmonic 4, which the grid cannot represent"
    assert name not in estimates_of(BASIC, tmp_path)
    for amplitude, violated in (("60 kPa", False), ("20 MPa", True)):
        text = BASIC.replace("[[source]]", "BonA = 5.0\n[[source]]").replace("60 kPa", amplitude)
        assert estimates_of(text, tmp_path)[name].violated == violated


def test_harmonics_of_plane_waves_follow_fubini_and_fay() -> None:
    assert harmonic(1, 1e-6) == pytest.approx(1.0) and harmonic(2, 0.01) == pytest.approx(0.005, rel=1e-3)
    assert harmonic(3, 1.0) == pytest.approx(0.2060, abs=1e-4)  # 2 J_3(3)/3, J_3(3) = 0.30906
    assert harmonic(1, 1e3) == pytest.approx(harmonic(1, 1.0))
    assert harmonic(50, 4.0) == pytest.approx(2 / 250)
    counts = [fewest_harmonics(s) for s in (0.01, 0.2, 0.5, 1.0, 3.0)]
    assert counts == sorted(counts) and counts[0] == 1
    for count, s in zip(counts, (0.01, 0.2, 0.5, 1.0, 3.0), strict=True):
        assert harmonic(count + 1, s) <= 0.01 and (count == 1 or harmonic(count, s) > 0.01)


def test_pressures_beyond_the_equations_are_named(tmp_path: Path) -> None:
    """A tenth of rho c^2 is 225 MPa; an initial pressure radiates half of its value."""
    name = "pressure over density times sound speed squared"
    assert not estimates_of(BASIC, tmp_path)[name].violated
    assert estimates_of(BASIC.replace("60 kPa", "300 MPa"), tmp_path)[name].value == pytest.approx(300 / 2250)
    ball = BASIC[: BASIC.index("[[source]]")] + BALL
    steepening = "length of the grid over the shock formation distance"
    assert not estimates_of(ball, tmp_path)[steepening].violated
    loud = estimates_of(ball.replace("1 kPa", "500 MPa"), tmp_path)
    assert loud[name].value == pytest.approx(250 / 2250, rel=0.01) and loud[name].violated
    assert loud[steepening].violated


def test_temperatures_above_boiling_are_named() -> None:
    assert list(temperature_estimate(None)) == []
    for temperature, violated in ((60.0, False), (15_773.0, True)):
        (estimate,) = temperature_estimate(np.array([37.0, temperature]))
        assert estimate.violated == violated


def test_seismograms_are_sampled_and_reached_by_waves(tmp_path: Path) -> None:
    """Waves need 5 ms for 10 m; a Ricker pulse of 20 Hz has frequencies up to 50 Hz or more, 20 ms a period."""
    samples, travel = (
        "samples of the receivers per shortest period",
        "duration over the travel time from the nearest source at the highest speed",
    )
    fine = estimates_of(ROCK + PULSE, tmp_path)
    assert not fine[samples].violated
    assert fine[travel].value == pytest.approx(20.0, rel=0.02) and not fine[travel].violated
    coarse = estimates_of(ROCK + PULSE + '[output]\nreceivers = { every = "50 ms" }\n', tmp_path)
    assert coarse[samples].violated and "seismograms alias" in (coarse[samples].warning or "")
    assert estimates_of(ROCK + PULSE.replace("100 ms", "4 ms"), tmp_path)[travel].violated
    assert travel not in estimates_of(ROCK + PULSE.replace('["22 m", "9 m"]', '["12 m", "9 m"]'), tmp_path)


def pressure_tube(duration: str) -> str:
    """Return a tube with constant pressures."""
    pressures = {"inlet": "0.01 mmHg", "outlet": "0 mmHg"}
    openings = [{"name": name, "kind": "pressure", "pressure": value} for name, value in pressures.items()]
    return toml_of(changed(changed(tube_tables(), "iolet", openings), "time", {"duration": duration}))


def test_flows_that_are_still_accelerating_are_named(tmp_path: Path) -> None:
    """A tube of radius 1 mm with 4 mm2/s needs 0.99 s^-1 of R^2/nu = 0.25 s: 0.197 s."""
    name = "flow rate at the end, relative to the developed flow"
    for duration, violated in (("20 ms", True), ("0.3 s", False)):
        estimate = estimates_of(pressure_tube(duration), tmp_path)[name]
        assert estimate.violated == violated
    assert name not in estimates_of(toml_of(tube_tables()), tmp_path)  # a velocity drives it
    assert name not in estimates_of(toml_of(box_tables()), tmp_path)  # nothing does


def test_the_slowest_mode_is_that_of_a_tube() -> None:
    """Against the series of all modes: 1 - sum of 32/j^4 exp(-j^2 t)."""
    zeros = jn_zeros(0, 200)
    for time in (0.1, 0.2, 0.5, 0.8):
        series = 1 - float((32 / zeros**4 * np.exp(-(zeros**2) * time)).sum())
        assert developed_fraction(time) == pytest.approx(series, abs=0.02 if time == 0.1 else 1e-3)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (BASIC + '[[output.snapshots]]\nfile = "p.h5"\nevery = "1 ps"\n', 'output.snapshots["p.h5"].every'),
        (ROCK + PULSE + '[output]\nreceivers = { every = "1 ns" }\n', "output.receivers.every"),
    ],
)
def test_the_check_refuses_intervals_below_half_a_step(
    text: str, key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "case.toml"
    path.write_text(text)
    assert main(["check", str(path)]) == 2
    error = capsys.readouterr().err
    assert f"{path}: {key}: is shorter than half a time step of " in error and error.count("\n") == 1
