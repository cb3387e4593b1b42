# SPDX-License-Identifier: BSD-3-Clause
"""Parts of the flow solver that need no step: profiles, iolets in time, the choice of a layout, relaxation rates."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.domain import shapes
from seiche.errors import CaseError
from seiche.flow import (
    Bgk,
    CarreauYasuda,
    Casson,
    FlowModel,
    Newtonian,
    PowerLaw,
    PressureIolet,
    Solver,
    Trt,
    VelocityIolet,
    Walls,
)
from seiche.flow.choice import LAYOUT_NAMES, choose_layout, recommendation, step_bytes
from seiche.flow.iolets import density_excess, mode_profiles, mode_values
from seiche.flow.list_layout import padded_stride
from seiche.flow.observation import in_memory_order
from seiche.flow.physics import relaxation_rates
from seiche.flow.profiles import parabola, womersley
from seiche.flow.velocity_set import D3Q15, D3Q27

TIME = np.linspace(0.0, 300.0, 61)


def disk_mean(values: np.ndarray, r: np.ndarray) -> complex:
    """Return the mean over the unit disk by the trapezoidal rule in r^2."""
    return complex(np.trapezoid(values, r**2))


@pytest.mark.parametrize("alpha", [0.01, 1.0, 4.0, 12.0, 200.0])
def test_profiles_have_mean_one_over_the_opening(alpha: float):
    r = np.sqrt(np.linspace(0.0, 1.0, 400_001))
    assert disk_mean(parabola(r), r) == pytest.approx(1.0, abs=1e-5)
    assert disk_mean(womersley(r, alpha), r) == pytest.approx(1.0, abs=1e-4)


def test_womersley_at_low_frequency_is_the_parabola():
    r = np.linspace(0.0, 1.2, 50)
    np.testing.assert_allclose(womersley(r, 0.05), parabola(r), atol=1e-3)


def test_womersley_at_high_frequency_is_a_plug_with_a_thin_layer():
    r = np.linspace(0.0, 0.9, 10)
    np.testing.assert_allclose(womersley(r, 1000.0), 1.0, atol=0.01)
    assert np.all(np.isfinite(womersley(np.array([0.0, 0.999, 1.0, 2.0]), 1e5)))


@pytest.mark.parametrize("alpha", [1.0, 4.0, 12.0])
def test_womersley_solves_the_momentum_equation(alpha: float):
    """I alpha^2 u = G + (1/r) d/dr (r du/dr) with G the same at every r (a = nu = 1)."""
    r = np.linspace(0.2, 0.8, 2001)
    h, u = r[1] - r[0], womersley(r, alpha)
    slope = (u[1:] - u[:-1]) / h
    half = 0.5 * (r[1:] + r[:-1])
    viscous = (half[1:] * slope[1:] - half[:-1] * slope[:-1]) / (h * r[1:-1])
    gradient = 1j * alpha**2 * u[1:-1] - viscous
    np.testing.assert_allclose(gradient, gradient[0], rtol=1e-4)


def test_profiles_vanish_outside_the_opening():
    outside = np.array([1.0, 1.5, 40.0])
    np.testing.assert_array_equal(parabola(outside), 0)
    np.testing.assert_array_equal(womersley(outside, 4.0), 0)


def test_pressure_iolet_follows_cosine_and_ramp():
    iolet = PressureIolet(1.02, 0.01, 100.0, 0.3)
    np.testing.assert_allclose(1 + density_excess(iolet, TIME), 1.02 + 0.01 * np.cos(2 * np.pi * TIME / 100 + 0.3))
    ramped = density_excess(PressureIolet(1.02, ramp=100.0, ramp_from=1.005), TIME)
    assert ramped[0] == pytest.approx(0.005)
    assert ramped[10] == pytest.approx(0.0125)
    np.testing.assert_allclose(ramped[20:], 0.02)


def test_modes_of_a_velocity_iolet_add_up_to_its_mean_velocity():
    iolet = VelocityIolet(0.01, (0.003 - 0.004j, 0.002j), 120.0, 0.02)
    values, r = mode_values(iolet, TIME), np.sqrt(np.linspace(0.0, 1.0, 20_001)) * 9.0
    profiles = mode_profiles(iolet, 9.0, r)
    assert values.shape == (len(TIME), 5)
    assert profiles.shape == (len(r), 5)
    mean = np.trapezoid(profiles @ values.T, (r / 9.0) ** 2, axis=0)
    turn = 2j * np.pi * TIME / 120
    expected = 0.01 + ((0.003 - 0.004j) * np.exp(turn) + 0.002j * np.exp(2 * turn)).real
    np.testing.assert_allclose(mean, expected, atol=1e-5)


def test_ramp_of_a_velocity_iolet_raises_everything_from_zero():
    iolet = VelocityIolet(0.01, (0.003,), 120.0, 0.02, ramp=50.0)
    steady = VelocityIolet(0.01, (0.003,), 120.0, 0.02)
    values, full = mode_values(iolet, TIME), mode_values(steady, TIME)
    np.testing.assert_allclose(values, full * np.clip(TIME / 50, 0, 1)[:, None])
    assert not values[0].any()


def test_relaxation_rates_keep_viscosity_and_magic():
    for viscosity in (0.01, 1 / 6, 2.0):
        even, odd = relaxation_rates(viscosity, FlowModel(Newtonian(viscosity), Trt(0.2)))
        assert (1 / even - 0.5) / 3 == pytest.approx(viscosity, rel=1e-12)
        assert (1 / even - 0.5) * (1 / odd - 0.5) == pytest.approx(0.2, rel=1e-12)
        even, odd = relaxation_rates(viscosity, FlowModel(Newtonian(viscosity), Bgk()))
        assert even == odd


def test_casson_and_power_law_have_their_published_viscosities():
    """In mPa s; Casson with roots 0.1937 Pa^0.5 and 0.055 (Pa s)^0.5, capped at 160 mPa s."""
    casson = Casson(0.1937**2, 0.055**2, 0.160)
    for shear, value in ((1.0, 61.852), (10.0, 13.515), (100.0, 5.5309), (1000.0, 3.7363)):
        assert 1e3 * casson.viscosity(shear) == pytest.approx(value, rel=2e-5)
    assert casson.viscosity(0.0) == casson.viscosity(1e-3) == 0.160
    law = PowerLaw(0.004, 0.5, 6.25e-4, 1.3061)
    assert law.limits == pytest.approx((0.0035, 0.160), rel=1e-5)
    assert law.viscosity(0.0) == law.limits[1]
    assert law.viscosity(1e3) == law.limits[0]
    assert law.viscosity(0.25) == pytest.approx(0.008)


def test_viscosity_of_blood_falls_from_one_end_to_the_other():
    blood = CarreauYasuda(160.0, 3.5, 8.2, 0.64, 0.2128)
    rates = [blood.viscosity(shear) for shear in np.logspace(-6, 6, 40)]
    assert blood.viscosity(0.0) == 160.0
    assert np.all(np.diff(rates) < 0)
    assert rates[-1] == pytest.approx(3.5, rel=1e-2)


def test_predicted_bytes_are_those_of_the_schemes():
    box = shapes.box((16, 16, 16))
    assert step_bytes(box, "list-ab", "float32") == 38 * 4 + 72
    assert step_bytes(box, "list-aa", "float64") == 38 * 8 + 36
    assert step_bytes(box, "list-ab", "float32", D3Q27) == 54 * 4 + 104
    assert step_bytes(box, "list-aa", "float16", D3Q15) == 30 * 2 + 28
    assert step_bytes(box, "tiles-8", "float32", D3Q27) == pytest.approx(54 * 4 + 112 / 512)
    assert step_bytes(box, "tiles-4", "float32") == pytest.approx(152 + 1.75)
    assert step_bytes(box, "tiles-8", "float32") == pytest.approx(152 + 112 / 512)
    assert step_bytes(shapes.box((12, 12, 12)), "tiles-8", "float32") == float("inf")


def test_layout_is_chosen_by_bytes_on_a_gpu_and_by_memory_on_a_cpu():
    box = shapes.box((16, 16, 16))
    assert choose_layout(box, "auto", "float32", "cpu") == "list-aa"
    assert choose_layout(box, "auto", "float32", "cuda") == "tiles-8"
    assert choose_layout(shapes.box((12, 12, 12)), "auto", "float32", "cuda:1") == "tiles-4"
    assert choose_layout(shapes.box((3, 3, 3)), "auto", "float32", "cuda") == "list-aa"
    for name in LAYOUT_NAMES:
        assert choose_layout(box, name, "float64", "cpu") == name
    with pytest.raises(CaseError, match="layout 'tile' is not one of auto, list-ab"):
        choose_layout(box, "tile", "float64", "cpu")


def test_the_layout_with_cells_on_a_processor_is_the_measured_one() -> None:
    """Tiles in a box and, in FP64, a wide tube; lists in narrow tubes, and where tiles do not fit."""
    wide, medium, narrow = (shapes.tube(r, 48.0, 1.0, axis=(1.0, 0.0, 0.0), periodic=True) for r in (32.0, 20.0, 10.3))
    for storage, in_wide_tube in (("float64", "tiles-8"), ("float32", "list-aa")):
        chosen = [
            choose_layout(sites, "auto", storage, "cpu", immersed=True)
            for sites in (shapes.box((16, 16, 16)), wide, medium, narrow, shapes.box((20, 20, 20)))
        ]
        assert chosen == ["tiles-8", in_wide_tube, "list-aa", "list-aa", "list-aa"]
    assert choose_layout(wide, "auto", "float32", "cpu") == "list-aa"
    assert recommendation(narrow, "float32", "cpu", immersed=True).startswith(
        "list-aa: the fastest layout on a CPU with cells"
    )


@pytest.mark.parametrize("count", [1, 7, 64, 1000, 4096, 123_457])
@pytest.mark.parametrize("size", [2, 4, 8])
def test_directions_start_on_cache_lines_and_not_on_the_same_sets(count: int, size: int):
    stride = padded_stride(count, size)
    assert count <= stride < count + (4096 + 128) // size
    assert stride * size % 64 == 0
    # 19 directions over the 64 sets of a cache of 4096-byte ways: no set gets more than two of them.
    sets = np.arange(19) * stride * size // 64 % 64
    assert np.bincount(sets).max() <= 2


def test_initial_state_is_the_equilibrium_that_was_requested():
    sites = shapes.box((4, 4, 4))
    model = FlowModel(Newtonian(0.1), initial_density=1.01, initial_velocity=(0.02, -0.01, 0.005))
    for layout in ("list-ab", "list-aa", "tiles-4"):
        solver = Solver(sites, model, layout=layout, threads=1)
        fields = solver.fields(["density", "velocity", "stress"])
        np.testing.assert_allclose(fields["density"], 1.01, rtol=1e-14)
        np.testing.assert_allclose(fields["velocity"], [[0.02, -0.01, 0.005]] * 64, rtol=1e-13)
        np.testing.assert_allclose(fields["stress"], 0, atol=1e-16)
        solver.advance(3)
        np.testing.assert_allclose(solver.fields(["velocity"])["velocity"], fields["velocity"], rtol=1e-12)


def test_stages_of_a_step_are_named_in_order():
    iolets = (VelocityIolet(0.01), PressureIolet())
    solver = Solver(shapes.tube(3.3, 8.0, 1.0), FlowModel(Newtonian(0.1), iolets=iolets), threads=1)
    names = ["stream-collide interior", "pressure iolets", "velocity iolets", "advance clock"]
    # The pressure rule in the plane of the opening needs the populations of sites behind it.
    before = ["iolet stress interior", "incoming depths interior"]
    assert [stage.name for stage in solver.stages] == before + names
    assert all(stage.bytes > 0 for stage in solver.stages[2:5])


def test_outgoing_populations_are_sampled_before_interpolated_walls_replace_them():
    model = FlowModel(Newtonian(0.1), walls=Walls("bouzidi"), iolets=(PressureIolet(), PressureIolet()))
    solver = Solver(shapes.tube(3.3, 8.0, 1.0), model, threads=1)
    names = [stage.name for stage in solver.stages]
    expected = ["outgoing depths", "walls interior", "iolet stress interior", "incoming depths interior"]
    assert [name for name in names if name in expected] == expected


@pytest.mark.parametrize("spread", [1, 3, 40])
def test_sites_are_put_in_memory_order(spread: int) -> None:
    """The items are in ascending, mixed and widely spread order."""
    random = np.random.default_rng(spread)
    item = random.permutation(spread * 500)[:500].astype(np.int64)
    order, items = in_memory_order(item)
    np.testing.assert_array_equal(items, np.sort(item))
    np.testing.assert_array_equal(item[order], items)
    ascending = np.arange(0, 50, 7)
    np.testing.assert_array_equal(in_memory_order(ascending)[0], np.arange(len(ascending)))
