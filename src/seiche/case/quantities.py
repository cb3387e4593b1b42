# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of physical values such as "0.1 mm" or "120 mmHg" to SI floats.

A quantity is a number followed by unit names with small integer powers. This grammar is narrower than that of pint,
which evaluates arithmetic expressions, such as 9**9**9.
"""

from __future__ import annotations

import re
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field

if TYPE_CHECKING:
    import pint

#: Dimensions: SI unit, description for messages, example.
DIMENSIONS: dict[str, tuple[str, str, str]] = {
    "length": ("m", "a length", "0.1 mm"),
    "time": ("s", "a time", "0.5 ms"),
    "rate": ("1/s", "a rate", "72 bpm"),
    "angular_velocity": ("rad/s", "an angular velocity", "60 rpm"),
    "velocity": ("m/s", "a velocity", "0.3 m/s"),
    "flow_rate": ("m^3/s", "a flow rate", "4 mL/s"),
    "pressure": ("Pa", "a pressure", "120 mmHg"),
    "density": ("kg/m^3", "a density", "1060 kg/m^3"),
    "dynamic_viscosity": ("Pa s", "a dynamic viscosity", "4 mPa s"),
    "force_density": ("N/m^3", "a force density", "10 N/m^3"),
    "resistance": ("Pa s/m^3", "a resistance", "1.2 mmHg s/mL"),
    "compliance": ("m^3/Pa", "a compliance", "1.5 mL/mmHg"),
    "angle": ("rad", "an angle", "90 deg"),
    "surface_modulus": ("N/m", "a surface modulus", "2.8 uN/m"),
    "surface_viscosity": ("N s/m", "a surface viscosity", "0.3 uN s/m"),
    "energy": ("J", "an energy", "2e-19 J"),
    "force": ("N", "a force", "1 pN"),
    "area": ("m^2", "an area", "1 mm^2"),
    "volume": ("m^3", "a volume", "1 mL"),
    "wave_number": ("1/m", "an inverse length", "10 1/um"),
    "frequency": ("1/s", "a frequency", "500 kHz"),
    "heat_capacity": ("J/kg/K", "a heat capacity", "3600 J/kg/K"),
    "conductivity": ("W/m/K", "a thermal conductivity", "0.5 W/m/K"),
}

#: Factors of the most common units to the SI unit of a dimension, those of pint to the last bit. They save its import
#: and the reading of its definitions at the start of a run.
COMMON_FACTORS: dict[str, dict[str, float]] = {
    "length": {"km": 1000.0, "m": 1.0, "mm": 0.001, "um": 1e-06},
    "time": {"s": 1.0, "ms": 0.001, "us": 1e-06},
    "rate": {"1/s": 1.0, "Hz": 1.0, "kHz": 1000.0, "bpm": 0.016666666666666666},
    "velocity": {"km/s": 1000.0, "m/s": 1.0, "mm/s": 0.001},
    "flow_rate": {"mL/s": 1.0000000000000002e-06},
    "pressure": {"MPa": 1000000.0, "kPa": 1000.0, "Pa": 1.0, "mmHg": 133.322387415},
    "density": {"kg/m^3": 1.0},
    "dynamic_viscosity": {"Pa s": 1.0, "mPa s": 0.001},
    "force_density": {"N/m^3": 1.0},
    "resistance": {"Pa s/m^3": 1.0, "mmHg s/mL": 133322387.41499999},
    "compliance": {"m^3/Pa": 1.0, "mL/mmHg": 7.500615758456565e-09},
    "angle": {"deg": 0.017453292519943295},
    "surface_modulus": {"N/m": 1.0, "uN/m": 1e-06},
    "surface_viscosity": {"N s/m": 1.0, "uN s/m": 1e-06},
    "energy": {"J": 1.0, "N m": 1.0},
    "force": {"N": 1.0, "pN": 1e-12},
    "frequency": {"Hz": 1.0, "kHz": 1000.0, "MHz": 1000000.0},
}

_QUANTITY = re.compile(r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?)\s*(.*?)\s*", re.DOTALL)
_FACTOR = r"[^\W\d_]+(?:\s*(?:\^|\*\*)\s*-?[0-9]{1,2})?"
_UNIT = re.compile(rf"(?:1\s*/\s*)?{_FACTOR}(?:\s*[*/·]\s*{_FACTOR}|\s+{_FACTOR})*")
_MAX_CHARACTERS = 80
#: Maximum value in SI units, so that products of a few values remain finite.
MAX_VALUE = 1e30


@cache
def _registry() -> pint.UnitRegistry[float]:
    import pint

    registry: pint.UnitRegistry[float] = pint.UnitRegistry()
    registry.define("beat_per_minute = 1 / minute = bpm")
    return registry


def shorten(value: object) -> str:
    """Return `value` as it appears in a one-line message: quoted, printable, at most 60 characters."""
    try:
        text = f'"{value}"' if isinstance(value, str) else repr(value)
    except (ValueError, RecursionError):  # Python refuses to print integers of thousands of digits
        return "a value too long to print"
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= 60 else text[:57] + "..."


def _number_and_unit(value: str) -> re.Match[str] | None:
    return _QUANTITY.fullmatch(value) if len(value) <= _MAX_CHARACTERS else None


def _has_common_unit(value: Any, dimension: str) -> bool:
    """Return whether `value` is a number with one of `COMMON_FACTORS`."""
    match = _number_and_unit(value) if isinstance(value, str) else None
    return match is not None and match[2] in COMMON_FACTORS[dimension]


def parse_quantity(value: Any, *, dimension: str) -> float:
    """Return `value`, a number with a unit, in the SI unit of `dimension`, a key of `DIMENSIONS`.

    May raise ValueError.
    """
    _, description, example = DIMENSIONS[dimension]
    expected = f'expected {description} such as "{example}"'
    if not isinstance(value, str):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        raise ValueError(f"{shorten(value)} {'has no unit' if is_number else 'is not a quantity'}; {expected}")
    match = _number_and_unit(value)
    if match is None:
        raise ValueError(f"{shorten(value)} is not a number and a unit; {expected}")
    number, unit = float(match[1]), match[2]
    if not unit:
        raise ValueError(f"{shorten(value)} has no unit; {expected}")
    if _UNIT.fullmatch(unit) is None:
        raise ValueError(f"{shorten(value)}: cannot read the unit {shorten(unit)}; {expected}")
    known = COMMON_FACTORS.get(dimension, {}).get(unit)
    result = number * (_factor(value, unit, dimension, expected) if known is None else known)
    if result != 0.0 and not 1.0 / MAX_VALUE < abs(result) < MAX_VALUE:
        raise ValueError(f"{shorten(value)} is out of range (1e-30 to 1e30 in SI units); {expected}")
    return result


def _factor(value: str, unit: str, dimension: str, expected: str) -> float:
    import pint

    registry, target = _registry(), DIMENSIONS[dimension][0]
    try:
        parsed = registry.parse_units(unit.replace("·", "*"))
        if parsed.dimensionality == registry.parse_units(target).dimensionality:
            return float(registry.Quantity(1.0, parsed).to(target).magnitude)
    except pint.UndefinedUnitError as error:
        names = error.unit_names if isinstance(error.unit_names, str) else ", ".join(error.unit_names)
        raise ValueError(f"{shorten(value)}: unknown unit {shorten(names)}; {expected}") from None
    except (pint.PintError, ValueError, ArithmeticError):
        raise ValueError(f"{shorten(value)}: cannot use the unit {shorten(unit)}; {expected}") from None
    for known_dimension, (si, description, _) in DIMENSIONS.items():
        if known_dimension != "angle" and parsed.dimensionality == registry.parse_units(si).dimensionality:
            raise ValueError(f"{shorten(value)} is {description}; {expected}")
    raise ValueError(f"{shorten(value)} has the wrong dimension; {expected}")


def parse_period(value: Any) -> float:
    """Return a period in seconds from a time ("0.8 s") or a rate ("72 bpm", "1.2 Hz")."""
    if _has_common_unit(value, "rate"):
        rate = parse_quantity(value, dimension="rate")
    else:
        try:
            return parse_quantity(value, dimension="time")
        except ValueError as error:
            try:
                rate = parse_quantity(value, dimension="rate")
            except ValueError:
                raise error from None
    if rate <= 0:
        raise ValueError(f'{shorten(value)} is not a positive rate; expected a time such as "0.8 s" or a rate "72 bpm"')
    return 1.0 / rate


def parse_steps_or_time(value: Any) -> int | float:
    """Return a number of steps as int, or a time in s as float."""
    if isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value < 2**53:
            raise ValueError(f"{shorten(value)} is not a number of steps between 0 and 2^53")
        return value
    try:
        seconds = parse_quantity(value, dimension="time")
    except ValueError as error:
        raise ValueError(f"{error}, or a whole number of steps") from None
    if seconds < 0:
        raise ValueError(f'{shorten(value)} is negative; expected a time such as "0.5 ms", or a number of steps')
    return seconds


def parse_interval(value: Any) -> int | float:
    """Return an interval, which is not zero, as `parse_steps_or_time`."""
    interval = parse_steps_or_time(value)
    if interval == 0:
        raise ValueError(f'{shorten(value)} is not an interval; expected a time such as "0.5 ms", or at least one step')
    return interval


def parse_vector(value: Any, *, dimension: str | None) -> tuple[float, float, float]:
    """Return three quantities in SI units, or three plain numbers if `dimension` is None."""
    example = f'"{DIMENSIONS[dimension][2]}"' if dimension else "0.0"
    if not isinstance(value, list | tuple) or len(value) != 3:
        raise ValueError(f"{shorten(value)} is not a vector; expected a list of three such as [{example}, ...]")
    if dimension:
        x, y, z = (parse_quantity(item, dimension=dimension) for item in value)
        return x, y, z
    for item in value:
        if isinstance(item, bool) or not isinstance(item, int | float) or not abs(item) < 1e100:
            raise ValueError(f"{shorten(item)} is not a number; expected three plain numbers such as [1.0, 0.0, 0.0]")
    x, y, z = (float(item) for item in value)
    return x, y, z


def parse_position(value: Any, *, dimension: str) -> tuple[float, ...]:
    """Return one to three quantities in SI units, one per axis of a grid."""
    example = f'"{DIMENSIONS[dimension][2]}"'
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= 3:
        raise ValueError(
            f"{shorten(value)} is not a position; expected a list with one value per axis such as [{example}]"
        )
    return tuple(parse_quantity(item, dimension=dimension) for item in value)


def parse_velocity_or_flow_rate(value: Any) -> tuple[str, float]:
    """Return ("velocity", m/s) or ("flow_rate", m^3/s)."""
    try:
        return "velocity", parse_quantity(value, dimension="velocity")
    except ValueError as error:
        try:
            return "flow_rate", parse_quantity(value, dimension="flow_rate")
        except ValueError:
            raise ValueError(f'{error} or a flow rate such as "4 mL/s"') from None


def _scalar(dimension: str) -> BeforeValidator:
    return BeforeValidator(partial(parse_quantity, dimension=dimension))


def _vector(dimension: str | None) -> BeforeValidator:
    return BeforeValidator(partial(parse_vector, dimension=dimension))


Length = Annotated[float, _scalar("length")]
PositiveLength = Annotated[float, _scalar("length"), Field(gt=0)]
PositiveTime = Annotated[float, _scalar("time"), Field(gt=0)]
PositiveRate = Annotated[float, _scalar("rate"), Field(gt=0)]
AngularVelocity = Annotated[float, _scalar("angular_velocity")]
Velocity = Annotated[float, _scalar("velocity")]
PositiveVelocity = Annotated[float, _scalar("velocity"), Field(gt=0)]
FlowRate = Annotated[float, _scalar("flow_rate")]
VelocityOrFlowRate = Annotated[tuple[str, float], BeforeValidator(parse_velocity_or_flow_rate)]
Pressure = Annotated[float, _scalar("pressure")]
Density = Annotated[float, _scalar("density"), Field(gt=0)]
Viscosity = Annotated[float, _scalar("dynamic_viscosity"), Field(gt=0)]
Resistance = Annotated[float, _scalar("resistance"), Field(ge=0)]
PositiveResistance = Annotated[float, _scalar("resistance"), Field(gt=0)]
PositiveCompliance = Annotated[float, _scalar("compliance"), Field(gt=0)]
PositiveModulus = Annotated[float, _scalar("surface_modulus"), Field(gt=0)]
Modulus = Annotated[float, _scalar("surface_modulus"), Field(ge=0)]
SurfaceViscosity = Annotated[float, _scalar("surface_viscosity"), Field(ge=0)]
VolumeModulus = Annotated[float, _scalar("pressure"), Field(ge=0)]
BendingModulus = Annotated[float, _scalar("energy"), Field(ge=0)]
PositiveEnergy = Annotated[float, _scalar("energy"), Field(gt=0)]
PositiveForce = Annotated[float, _scalar("force"), Field(gt=0)]
PositiveWaveNumber = Annotated[float, _scalar("wave_number"), Field(gt=0)]
Angle = Annotated[float, _scalar("angle")]
Period = Annotated[float, BeforeValidator(parse_period), Field(gt=0)]
StepsOrTime = Annotated[int | float, BeforeValidator(parse_steps_or_time)]
Interval = Annotated[int | float, BeforeValidator(parse_interval)]
Point = Annotated[tuple[float, float, float], _vector("length")]
VelocityVector = Annotated[tuple[float, float, float], _vector("velocity")]
ForceDensity = Annotated[tuple[float, float, float], _vector("force_density")]
ForceVector = Annotated[tuple[float, ...], BeforeValidator(partial(parse_position, dimension="force"))]
Energy = Annotated[float, _scalar("energy")]
PositiveArea = Annotated[float, _scalar("area"), Field(gt=0)]
Volume = Annotated[float, _scalar("volume")]
Direction = Annotated[tuple[float, float, float], _vector(None)]
Position = Annotated[tuple[float, ...], BeforeValidator(partial(parse_position, dimension="length"))]
PositiveFrequency = Annotated[float, _scalar("frequency"), Field(gt=0)]
PositivePressure = Annotated[float, _scalar("pressure"), Field(gt=0)]
PositiveHeatCapacity = Annotated[float, _scalar("heat_capacity"), Field(gt=0)]
Conductivity = Annotated[float, _scalar("conductivity"), Field(ge=0)]
Perfusion = Annotated[float, _scalar("rate"), Field(ge=0)]
Delay = Annotated[float, _scalar("time"), Field(ge=0)]


def si_value(text: str) -> tuple[float, str] | None:
    """Return the number in `text`, in SI base units if it has a unit, and this unit; None for anything else."""
    import pint

    match = _QUANTITY.fullmatch(text) if len(text) <= _MAX_CHARACTERS else None
    if match is None or (match[2] and _UNIT.fullmatch(match[2]) is None):
        return None
    if not match[2]:
        return float(match[1]), ""
    try:
        base = _registry().Quantity(1.0, match[2].replace("·", "*")).to_base_units()
        return float(match[1]) * float(base.magnitude), f"{base.units:~C}".replace("**", "^")
    except (pint.PintError, ValueError, ArithmeticError):
        return None
