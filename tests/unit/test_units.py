# SPDX-License-Identifier: BSD-3-Clause
"""Physical values with units, and the one place where SI meets lattice units."""

from __future__ import annotations

import math
import subprocess
import sys

import pint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seiche.case.flow.units import POWERS, LatticeUnits, step_of_mach, step_of_relaxation_time
from seiche.case.quantities import (
    COMMON_FACTORS,
    DIMENSIONS,
    parse_period,
    parse_quantity,
    parse_steps_or_time,
    parse_vector,
    parse_velocity_or_flow_rate,
)


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("0.1 mm", "length", 1e-4),
        ("1 µm", "length", 1e-6),
        ("2um", "length", 2e-6),
        ("120 mmHg", "pressure", 120 * 133.322387415),
        ("4 mPa s", "dynamic_viscosity", 4e-3),
        ("4 mPa*s", "dynamic_viscosity", 4e-3),
        ("1060 kg/m^3", "density", 1060.0),
        ("1.06 g/cm**3", "density", 1060.0),
        ("72 bpm", "rate", 1.2),
        ("3 1/s", "rate", 3.0),
        ("4 mL/s", "flow_rate", 4e-6),
        ("-1e3 Pa/m", "force_density", -1e3),
        ("90 deg", "angle", math.pi / 2),
    ],
)
def test_quantities_are_read_in_si_units(text: str, dimension: str, value: float) -> None:
    assert parse_quantity(text, dimension=dimension) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_example_of_every_dimension_is_valid(dimension: str) -> None:
    assert parse_quantity(DIMENSIONS[dimension][2], dimension=dimension) > 0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, '3 has no unit; expected a length such as "0.1 mm"'),
        ("3", '"3" has no unit; expected a length such as "0.1 mm"'),
        (True, 'True is not a quantity; expected a length such as "0.1 mm"'),
        ("0.1 s", '"0.1 s" is a time; expected a length such as "0.1 mm"'),
        ("0.1 mn", '"0.1 mn": unknown unit "mn"; expected a length such as "0.1 mm"'),
        ("9**9**9 m", '"9**9**9 m": cannot read the unit "**9**9 m"; expected a length such as "0.1 mm"'),
        ("1e999 m", '"1e999 m" is out of range (1e-30 to 1e30 in SI units); expected a length such as "0.1 mm"'),
        ("1 kg m", '"1 kg m" has the wrong dimension; expected a length such as "0.1 mm"'),
        ("ten mm", '"ten mm" is not a number and a unit; expected a length such as "0.1 mm"'),
    ],
)
def test_a_wrong_quantity_says_what_was_expected(value: object, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_quantity(value, dimension="length")
    assert str(caught.value) == message


@given(st.one_of(st.text(max_size=120), st.text("0123456789.eE+-*/^ mskgPa()µ°", max_size=40)))
def test_any_text_is_a_quantity_or_a_one_line_refusal(text: str) -> None:
    try:
        assert math.isfinite(parse_quantity(text, dimension="pressure"))
    except ValueError as error:
        assert "expected a pressure" in str(error)
        assert "\n" not in str(error)


def test_a_period_is_a_time_or_a_rate() -> None:
    assert parse_period("0.5 s") == 0.5
    assert parse_period("120 bpm") == pytest.approx(0.5, rel=1e-15)
    with pytest.raises(ValueError, match="is not a positive rate"):
        parse_period("0 Hz")


def test_steps_are_whole_and_times_have_a_unit() -> None:
    steps, seconds = parse_steps_or_time(20), parse_steps_or_time("20 ms")
    assert isinstance(steps, int) and steps == 20
    assert isinstance(seconds, float) and seconds == pytest.approx(0.02, rel=1e-15)
    for wrong in (-1, 2.5, "-1 s", "5 mm"):
        with pytest.raises(ValueError):
            parse_steps_or_time(wrong)


def test_vectors_and_alternatives() -> None:
    assert parse_vector(["1 mm", "2 mm", "-3 mm"], dimension="length") == pytest.approx((1e-3, 2e-3, -3e-3))
    assert parse_vector([0, 1, 0.5], dimension=None) == (0.0, 1.0, 0.5)
    assert parse_velocity_or_flow_rate("2 mL/s") == ("flow_rate", pytest.approx(2e-6))
    for wrong in ([1, 2], "x", [1, 2, "3"], [True, 0, 0]):
        with pytest.raises(ValueError):
            parse_vector(wrong, dimension=None)


positive = st.floats(1e-9, 1e3)
#: Numbers whose products with powers of the above keep all their digits.
ordinary = st.floats(-1e6, 1e6).filter(lambda value: value == 0.0 or abs(value) > 1e-200)


@given(positive, positive, positive, ordinary)
def test_conversion_forward_and_inverse_is_the_identity(
    spacing: float, step: float, density: float, value: float
) -> None:
    units = LatticeUnits(spacing, step, density, 80.0)
    for kind in POWERS:
        assert units.to_si(kind, units.to_lattice(kind, value)) == pytest.approx(value, rel=1e-12, abs=1e-300)


def test_lattice_units_follow_their_definitions() -> None:
    """Numbers of flow.md section 8: blood plasma, nu = 1.1e-6 m^2/s, at spacing 0.5 um."""
    assert step_of_relaxation_time(1.0, 0.5e-6, 1.1e-6) == pytest.approx(3.8e-8, rel=0.01)
    units = LatticeUnits(0.5e-6, 1e-7, 1000.0, 100.0)
    assert units.relaxation_time(1.1e-6) == pytest.approx(1.82, abs=1e-12)
    assert units.to_si("velocity", 0.1) == pytest.approx(0.5)
    assert units.scale("stress") == pytest.approx(1000 * 25.0)
    assert units.scale("force_density") == pytest.approx(1000 * 5e7)
    assert units.density_of_pressure(100.0) == 1.0
    assert units.density_of_pressure(100.0 + 25_000.0 / 3.0) == pytest.approx(2.0)
    assert units.pressure_of_density(units.density_of_pressure(123.0)) == pytest.approx(123.0, abs=1e-8)


def test_a_step_from_mach_gives_that_mach_number() -> None:
    step = step_of_mach(0.1, 1e-4, 0.5)
    assert LatticeUnits(1e-4, step, 1060.0).to_lattice("velocity", 0.5) * 3**0.5 == pytest.approx(0.1, rel=1e-12)


def test_factors_of_common_units_are_those_of_pint_to_the_last_bit():
    registry = pint.UnitRegistry()
    registry.define("beat_per_minute = 1 / minute = bpm")
    for dimension, factors in COMMON_FACTORS.items():
        for unit, factor in factors.items():
            assert registry.Quantity(1.0, registry.parse_units(unit)).to(DIMENSIONS[dimension][0]).magnitude == factor


def test_values_with_common_units_need_no_pint():
    program = """
import sys
from seiche.case.quantities import parse_quantity
assert parse_quantity("120 mmHg", dimension="pressure") == 120 * 133.322387415
assert "pint" not in sys.modules
assert parse_quantity("1.06 g/cm^3", dimension="density") == 1060.0
assert "pint" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
