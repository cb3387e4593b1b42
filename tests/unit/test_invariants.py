# SPDX-License-Identifier: BSD-3-Clause
"""Numbers that say which flow a case is: Reynolds, Womersley and Mach number, tau, density swing; and its cost."""

from __future__ import annotations

import math
import re

import pytest

from case_files import advice, box_tables, changed, setup_of, tube_tables
from seiche.case.flow.check import describe
from seiche.case.flow.memory import predict
from seiche.domain.occupancy import occupancy


def test_reynolds_and_mach_use_the_peak_velocity_and_the_diameter() -> None:
    numbers = setup_of(tube_tables()).invariants
    assert numbers.velocity_scale == pytest.approx(4e-3)
    assert numbers.length_scale == pytest.approx(2e-3)
    assert numbers.reynolds == pytest.approx(4e-3 * 2e-3 / 4e-6)
    assert numbers.mach == pytest.approx(4e-3 * 1.5625e-3 / 0.25e-3 * 3**0.5)
    assert numbers.womersley is None


def test_womersley_number_uses_the_radius_and_the_period() -> None:
    inlet = {
        "name": "inlet",
        "kind": "velocity",
        "velocity": "2 mm/s",
        "profile": "womersley",
        "period": "75 bpm",
        "waveform": {"preset": "internal-carotid"},
    }
    numbers = setup_of(changed(tube_tables(), "iolet.0", inlet)).invariants
    assert numbers.womersley == pytest.approx(1e-3 * math.sqrt(2 * math.pi / 0.8 / 4e-6), rel=1e-12)


def test_tau_of_shear_thinning_blood_is_a_range() -> None:
    tables = changed(tube_tables(), "fluid.viscosity", None)
    tables = changed(tables, "fluid.rheology", {"kind": "carreau-yasuda", "preset": "human"})
    low, high = setup_of(changed(tables, "lattice.tau", 0.52)).invariants.tau
    assert low == pytest.approx(0.52, rel=1e-12)
    assert high == pytest.approx(0.5 + 0.02 * 160 / 3.5, rel=1e-12)


def test_pressure_driven_flow_is_bounded_by_poiseuille_and_by_a_free_jet() -> None:
    def scale(pressure: str) -> float | None:
        inlet = {"name": "inlet", "kind": "pressure", "pressure": pressure}
        return setup_of(changed(tube_tables(), "iolet.0", inlet)).invariants.velocity_scale

    assert scale("1 Pa") == pytest.approx(1.0 / 4e-3 * 1e-6 / (4 * 4e-3), rel=1e-9)
    assert scale("1 kPa") == pytest.approx(math.sqrt(2 * 1000 / 1000), rel=1e-9)
    assert scale("0 Pa") is None


def test_body_force_drives_a_parabola_between_plates() -> None:
    shape = {"kind": "channel", "height": "8 mm", "length": "4 mm", "width": "2 mm"}
    tables = changed(box_tables(), "geometry.shape", shape)
    setup = setup_of(changed(tables, "body_force", {"force": ["0.1 N/m^3", "0 N/m^3", "0 N/m^3"]}))
    assert setup.invariants.velocity_scale == pytest.approx(0.1 * 8e-3**2 / (8 * 4e-3), rel=1e-9)


def test_density_range_covers_amplitude_and_reference() -> None:
    outlet = {"name": "outlet", "kind": "pressure", "pressure": "1 Pa", "amplitude": "2 Pa", "period": "1 s"}
    setup = setup_of(changed(tube_tables(), "iolet.1", outlet))
    per_pascal = 3.0 / setup.units.scale("stress")
    # Poiseuille drop of the inflow: 4 eta u_max L/a^2.
    drop = 4 * 4e-3 * 4e-3 * 4e-3 / 1e-6
    assert setup.invariants.density == pytest.approx((1 - per_pascal, 1 + (3 + drop) * per_pascal), rel=1e-12)


def test_predicted_bytes_follow_the_scheme() -> None:
    """Lists: 376, 340 B in FP64; 224, 188 B in FP32 (flow.md section 10, no flag); dense tiles: 304 B and table."""
    box = changed(box_tables(), "geometry.shape.size", ["16 mm", "8 mm", "8 mm"])
    double = {row.layout: row for row in predict(setup_of(box), 1e9)}
    assert [double[name].traffic for name in ("list-ab", "list-aa")] == [376.0, 340.0]
    assert double["tiles-4"].traffic == pytest.approx(304 + 112 / 64)
    assert double["tiles-8"].traffic == pytest.approx(304 + 112 / 512)
    assert double["list-aa"].seconds == pytest.approx(1024 * 340 * 10 / 1e9)
    single = {row.layout: row for row in predict(setup_of(changed(box, "run.precision", {"compute": "float32"})))}
    assert [single[name].traffic for name in ("list-ab", "list-aa")] == [224.0, 188.0]
    assert single["list-aa"].memory == 1024 * (19 * 4 + 72)
    assert single["list-ab"].memory == 1024 * (2 * 19 * 4 + 72)
    assert single["list-aa"].seconds is None


def test_shear_thinning_fluid_moves_its_relaxation_rates_too() -> None:
    tables = changed(changed(tube_tables(), "fluid.viscosity", None), "lattice.tau", 0.52)
    thinning = setup_of(changed(tables, "fluid.rheology", {"kind": "carreau-yasuda", "preset": "human"}))
    more, plain = predict(thinning)[0], predict(setup_of(tube_tables()))[0]
    assert more.traffic == plain.traffic + 16
    assert more.memory == plain.memory + 8 * len(thinning.vessel.sites)


def test_tiles_cost_the_sites_that_they_hold_in_vain() -> None:
    sites = setup_of(tube_tables()).vessel.sites
    assert occupancy(sites, 4).tiles == len({tuple(c) for c in (sites.coords // 4).tolist()})


def test_only_the_layout_that_is_requested_is_predicted() -> None:
    rows = predict(setup_of(changed(tube_tables(), "lattice.layout", "tiles-8")))
    assert [row.layout for row in rows] == ["tiles-8"]


def test_check_names_every_number_of_the_case() -> None:
    text = "\n".join(describe(setup_of(tube_tables()), 2, measure=False))
    for words in (
        "fluid sites",
        "time step",
        "tau",
        "Mach number",
        "Reynolds number",
        "MB per rank on 2 ranks",
        "outlet",
    ):
        assert words in text
    assert re.search(r"tau +0.8 ", text)


def test_check_does_not_allocate_the_fields() -> None:
    """The largest array of the check is bounded by the geometry, not by 19 populations a site."""
    import tracemalloc

    setup = setup_of(changed(box_tables(), "geometry.shape.size", ["80 mm", "80 mm", "80 mm"]))
    tracemalloc.start()
    describe(setup, measure=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 19 * 8 * len(setup.vessel.sites)


def test_advice_warns_of_high_mach_low_tau_and_large_density_swings() -> None:
    assert not advice(setup_of(changed(tube_tables(), "geometry.spacing", "0.1 mm")))
    fast = advice(setup_of(changed(tube_tables(), "iolet.0.velocity", "15 mm/s")))
    assert any("Mach number 0.3248 is above 0.1" in line for line in fast)
    slack = advice(setup_of(changed(tube_tables(), "lattice.tau", 0.505)))
    assert any("tau 0.505 is below 0.51" in line for line in slack)
    high = advice(setup_of(changed(tube_tables(), "iolet.1.pressure", "3 Pa")))
    assert any("pressures 0.3816 is above 0.1: the flow is not nearly incompressible" in line for line in high)
