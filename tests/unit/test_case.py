# SPDX-License-Identifier: BSD-3-Clause
"""From a case file to a flow model in lattice units."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from case_files import box_tables, changed, check_case, read_case, setup_of, toml_of, tube_tables
from seiche.case.flow.setup import FlowSetup
from seiche.case.flow.waveforms import WAVEFORMS, harmonics_of, peak_velocity
from seiche.case.schedule import Schedule
from seiche.flow.model import (
    Bgk,
    CarreauYasuda,
    Casson,
    Mrt,
    Newtonian,
    PowerLaw,
    Precision,
    PressureIolet,
    Trt,
    VelocityIolet,
)


def test_a_case_file_becomes_a_model(tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    path.write_text(toml_of(tube_tables()))
    case = read_case(path, ["lattice.tau=0.9", "iolet.inlet.velocity=3 mm/s", "title=a tube"])
    assert (case.lattice.tau, case.title, case.geometry.spacing) == (0.9, "a tube", 0.25e-3)
    setup = setup_of(tube_tables())
    assert isinstance(setup.model.rheology, Newtonian)
    assert setup.model.rheology.viscosity == pytest.approx(0.1)
    assert setup.model.collision == Trt(3.0 / 16.0)
    assert setup.precision == Precision("float64", "float64")
    inlet, outlet = setup.model.iolets
    assert isinstance(inlet, VelocityIolet)
    assert isinstance(outlet, PressureIolet)
    assert inlet.mean == pytest.approx(2e-3 * setup.units.step / 0.25e-3)
    assert outlet.mean == 1.0
    assert setup.steps == 100


def test_precision_collision_and_magic_are_passed_on() -> None:
    tables = changed(tube_tables(), "run.precision", {"compute": "float32", "storage": "float16"})
    setup = setup_of(changed(tables, "lattice.magic", 0.25))
    assert setup.precision == Precision("float32", "float16")
    assert setup.model.collision == Trt(0.25)
    assert setup_of(changed(tube_tables(), "lattice.collision", "bgk")).model.collision == Bgk()


def test_a_flow_rate_is_the_velocity_times_the_area_of_the_opening() -> None:
    tables = changed(tube_tables(), "iolet.0", {"name": "inlet", "kind": "velocity", "flow_rate": "1 mL/min"})
    inlet = setup_of(tables).model.iolets[0]
    assert isinstance(inlet, VelocityIolet)
    mean = 1e-6 / 60 / (math.pi * 1e-6)
    assert inlet.mean == pytest.approx(setup_of(tables).units.to_lattice("velocity", mean), rel=1e-12)


def has_viscosities(rheology: dict[str, Any], kind: type, expected: dict[float, float]) -> FlowSetup:
    """Check the viscosities (mPa s) of a fluid at shear rates (1/s); return its set-up."""
    tables = changed(changed(tube_tables(), "fluid.viscosity", None), "fluid.rheology", rheology)
    setup = setup_of(changed(tables, "lattice.tau", 0.55))
    law = setup.model.rheology
    assert isinstance(law, kind)
    for rate, eta in expected.items():
        nu = law.viscosity(setup.units.to_lattice("rate", rate))
        assert setup.units.to_si("viscosity", nu) * 1000 * 1000 == pytest.approx(eta, rel=3e-5)
    return setup


def test_carreau_yasuda_presets_have_their_published_values() -> None:
    """Viscosities at shear rates 0.1 to 1000 1/s, flow.md section 7."""
    values = {
        "human": {0.1: 75.460, 1.0: 25.973, 10.0: 8.0399, 100.0: 4.2826, 1000.0: 3.6294},
        "mouse": {0.1: 14.490, 1.0: 14.466, 10.0: 10.845, 100.0: 5.3067, 1000.0: 3.7942},
    }
    for preset, expected in values.items():
        has_viscosities({"kind": "carreau-yasuda", "preset": preset}, CarreauYasuda, expected)


@pytest.mark.parametrize(
    ("rheology", "kind", "expected"),
    [
        ({"kind": "casson", "preset": "human"}, Casson, {1.0: 61.852, 10.0: 13.515, 100.0: 5.5309, 1000.0: 3.7363}),
        (
            {"kind": "casson", "yield_stress": "37.51969 mPa", "eta_inf": "3.025 mPa s", "eta_0": "0.16 Pa s"},
            Casson,
            {1e-3: 160.0, 1.0: 61.852, 100.0: 5.5309},
        ),
        ({"kind": "power-law", "preset": "human"}, PowerLaw, {1e-4: 160.0, 0.25: 8.0, 1.0: 4.0, 100.0: 3.5}),
        (
            {
                "kind": "power-law",
                "consistency": "4 mPa s",
                "n": 0.8,
                "shear_rate_min": "6 1/min",
                "shear_rate_max": "100 1/s",
            },
            PowerLaw,
            {0.01: 4.0 * 0.1**-0.2, 1.0: 4.0, 32.0: 2.0, 1e4: 4.0 * 100.0**-0.2},
        ),
    ],
)
def test_casson_and_power_law_keep_their_viscosities_in_lattice_units(
    rheology: dict[str, Any], kind: type, expected: dict[float, float]
) -> None:
    setup = has_viscosities(rheology, kind, expected)
    law = setup.model.rheology
    assert isinstance(law, kind)
    assert setup.invariants.tau[0] == pytest.approx(0.55)
    assert setup.invariants.tau == pytest.approx([0.5 + 3 * nu for nu in law.limits])


def test_velocity_set_and_many_rates_are_passed_on() -> None:
    lattice = {"tau": 0.8, "velocity_set": "D3Q27", "collision": "mrt", "bulk_rate": 1.2, "magic": 0.25}
    model = setup_of(changed(tube_tables(), "lattice", lattice)).model
    assert (model.velocity_set, model.collision) == ("D3Q27", Mrt(1.2, 1.0, 0.25))


def test_pressures_become_densities_about_the_reference() -> None:
    tables = changed(tube_tables(), "fluid.reference_pressure", "80 mmHg")
    outlet = {
        "name": "outlet",
        "kind": "pressure",
        "pressure": "80 mmHg",
        "amplitude": "0.01 mmHg",
        "period": "60 bpm",
        "phase": "90 deg",
        "ramp": 20,
    }
    setup = setup_of(changed(tables, "iolet.1", outlet))
    iolet = setup.model.iolets[1]
    assert isinstance(iolet, PressureIolet)
    assert iolet.mean == pytest.approx(1.0, abs=1e-12)
    assert iolet.amplitude == pytest.approx(3 * setup.units.to_lattice("stress", 1.33322387415), rel=1e-6)
    assert iolet.period * setup.units.step == pytest.approx(1.0)
    assert (iolet.phase, iolet.ramp, iolet.ramp_from) == (pytest.approx(math.pi / 2), 20.0, 1.0)


def test_the_time_step_comes_from_mach_tau_or_itself() -> None:
    """Peak of a parabola of mean 2 mm/s: 4 mm/s."""
    lattice: dict[str, Any] = {"mach": 0.05}
    setup = setup_of(changed(tube_tables(), "lattice", lattice))
    assert setup.invariants.mach == pytest.approx(0.05, rel=1e-12)
    assert setup.units.step == pytest.approx(0.05 / 3**0.5 * 0.25e-3 / 4e-3, rel=1e-12)
    assert setup_of(changed(tube_tables(), "lattice", {"step": "1 ms"})).units.step == 1e-3


def test_duration_and_cycles_become_steps() -> None:
    tables = changed(tube_tables(), "lattice", {"step": "1 ms"})
    assert setup_of(changed(tables, "time", {"duration": "0.5 s"})).steps == 500
    inlet = {
        "name": "inlet",
        "kind": "velocity",
        "velocity": "2 mm/s",
        "profile": "womersley",
        "period": "0.2 s",
        "waveform": {"preset": "internal-carotid"},
    }
    tables = changed(tables, "iolet.0", inlet)
    assert setup_of(changed(tables, "time", {"cycles": 2.5})).steps == 500


def test_harmonics_of_samples_rebuild_the_samples() -> None:
    samples = WAVEFORMS["internal-carotid"]
    harmonics = harmonics_of(samples, 15)
    times = np.arange(len(samples)) / len(samples)
    rebuilt = 1.0 + sum(np.real(c * np.exp(2j * np.pi * k * times)) for k, c in enumerate(harmonics, start=1))
    # Only the highest (alternating) frequency is left out.
    assert np.abs(rebuilt * np.mean(samples) - samples).max() < 0.01


def test_harmonics_of_a_case_have_their_amplitude_and_phase() -> None:
    inlet = {
        "name": "inlet",
        "kind": "velocity",
        "velocity": "2 mm/s",
        "profile": "womersley",
        "period": "1 s",
        "harmonics": [{"amplitude": "1 mm/s", "phase": "90 deg"}, {"amplitude": "0.5 mm/s"}],
    }
    setup = setup_of(changed(tube_tables(), "iolet.0", inlet))
    iolet = setup.model.iolets[0]
    assert isinstance(iolet, VelocityIolet)
    scale = setup.units.scale("velocity")
    assert np.asarray(iolet.harmonics) * scale == pytest.approx(np.array([1e-3j, 0.5e-3]), abs=1e-15)
    assert iolet.period * setup.units.step == pytest.approx(1.0)
    assert iolet.viscosity == pytest.approx(0.1)


def test_peak_velocity_of_a_parabola_is_twice_the_mean() -> None:
    assert peak_velocity(0.3, (), 0.0) == pytest.approx(0.6, rel=1e-12)
    assert peak_velocity(0.3, (0.1,), 1e-3) == pytest.approx(0.8, rel=1e-5)


@pytest.mark.parametrize("interval", [1.0, 3.0, 2.5, 0.7, 10.3])
def test_a_schedule_is_due_at_rounded_multiples(interval: float) -> None:
    schedule = Schedule(interval)
    due = sorted({math.floor(k * interval + 0.5) for k in range(1, 200)} & set(range(1, 100)))
    assert [step for step in range(1, 100) if schedule.due(step)] == due
    assert schedule.count(0, 99) == len(due)
    assert schedule.count(20, 60) == sum(20 < step <= 60 for step in due)
    step, seen = 0, []
    while (step := schedule.next_after(step)) < 100:
        seen.append(step)
    assert seen == due


def test_a_body_force_is_turned_into_lattice_units() -> None:
    setup = setup_of(changed(box_tables(), "body_force", {"force": ["1 N/m^3", "0 N/m^3", "-2 Pa/m"]}))
    scale = 1060 * 1e-3 / setup.units.step**2
    assert setup.model.body_force == pytest.approx((1 / scale, 0.0, -2 / scale), rel=1e-12)


def test_a_single_output_may_stand_without_a_list() -> None:
    one = {"every": 10, "file": "a.vtkhdf"}
    single = check_case(changed(tube_tables(), "output", {"fields": one}), "case.toml")
    assert single.output == check_case(changed(tube_tables(), "output", {"fields": [one]}), "case.toml").output
