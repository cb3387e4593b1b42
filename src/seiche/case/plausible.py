# SPDX-License-Identifier: BSD-3-Clause
"""Detection of values in a case file that are wrong by orders of magnitude, mostly because of a wrong unit.

The ranges include the extremes of nature and technology with a margin, so a value outside its range is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel

from seiche.case.quantities import (
    DIMENSIONS,
    parse_interval,
    parse_period,
    parse_steps_or_time,
    parse_velocity_or_flow_rate,
)


class Range(NamedTuple):
    """Lowest and highest magnitude in SI units, and a remark on them. Zero is allowed if the schema allows it."""

    low: float
    high: float
    remark: str = ""


_MEDIA = "which include all known media"
#: Ranges by dimension. The lower limit applies only to positive scalars, since a coordinate may be tiny by rounding.
RANGES = {
    "length": Range(1e-10, 1e10),
    "time": Range(1e-15, 1e12),
    "rate": Range(1e-12, 1e15),
    "frequency": Range(1e-6, 1e13),
    "angular_velocity": Range(0.0, 1e8),
    "velocity": Range(0.0, 1e5),
    "flow_rate": Range(0.0, 1e8),
    "pressure": Range(0.0, 1e13),
    "density": Range(1e-3, 1e5, _MEDIA),
    "dynamic_viscosity": Range(1e-7, 1e6, "from gases to bitumen"),
    "force_density": Range(0.0, 1e15),
    "surface_modulus": Range(1e-10, 1e4),
    "surface_viscosity": Range(1e-12, 1.0),
    "force": Range(1e-20, 1e22),
    "heat_capacity": Range(10.0, 1e5, _MEDIA),
    "conductivity": Range(1e-4, 1e5, _MEDIA),
}
#: Narrower ranges, by the name of the key or the names of table and key.
OF_KEYS = {
    "spacing": Range(1e-10, 1e4, "from molecules to the atmosphere"),
    "sound_speed": Range(10.0, 1e5, _MEDIA),
    "reference_speed": Range(10.0, 1e5, _MEDIA),
    "cp": Range(10.0, 1e5, _MEDIA),
    "cs": Range(1e-2, 1e5, "which include gels and all rocks"),
    "alpha_coeff": Range(0.0, 1e4),
    "shear_modulus": Range(1e-9, 10.0, "which include all cells and capsules"),
    "strain_modulus": Range(1e-9, 30.0, "which include all cells and capsules"),
    "bending": Range(1e-23, 1e-11, "which include all cells and capsules"),
    "depth": Range(1e-26, 1e-9),
    "moment": Range(1e-15, 1e26, "up to the strongest impacts"),
    "ContactTable.strength": Range(1e-18, 1e-3),
    "ContactTable.wall_strength": Range(1e-18, 1e-3),
    "Biconcave.diameter": Range(1e-8, 1e-2, "which include all cells and capsules"),
    "SphereShape.diameter": Range(1e-8, 1e-2, "which include all cells and capsules"),
    **dict.fromkeys(("SiteErrors.density", "SiteErrors.viscosity"), Range(0.0, 1e6)),
    "CellErrors.position": Range(1e-12, 1e-3),
    "EllipsoidShape.half_axes": Range(1e-8, 1e-2, "which include all cells and capsules"),
}


def implausible(table: BaseModel, key: str = "") -> Iterator[str]:
    """Yield one line for each value of a table and its inner tables that is wrong by orders of magnitude."""
    for name, (dimension, positive) in _quantities(type(table)).items():
        value = getattr(table, name)
        inner_key = type(table).model_fields[name].alias or name
        path = f"{key}.{inner_key}" if key else inner_key
        narrow = OF_KEYS.get(f"{type(table).__name__}.{name}") or OF_KEYS.get(name)
        for full_key, number, unit in _numbers(value, path, dimension):
            limits = narrow or RANGES.get(unit)
            if limits is None or not number:
                continue
            if not (narrow or (positive and isinstance(value, float))):
                limits = limits._replace(low=0.0)
            if not limits.low <= abs(number) <= limits.high:
                yield f"{full_key}: {number:g}{_text(limits, DIMENSIONS[unit][0] if unit else '')}; check its unit"
        yield from _within(value, path)


def _text(limits: Range, unit: str) -> str:
    unit = f" {unit}" if unit else ""
    remark = f", {limits.remark}" if limits.remark else ""
    if not limits.low:
        return f"{unit} is above {limits.high:g}{unit}{remark}"
    return f"{unit} is not between {limits.low:g} and {limits.high:g}{unit}{remark}"


def _within(value: Any, path: str) -> Iterator[str]:
    """Yield the lines of the tables in a value, which are identified by their `name` or number."""
    if isinstance(value, BaseModel):
        yield from implausible(value, path)
    elif isinstance(value, tuple | list):
        for number, item in enumerate(value):
            if isinstance(item, BaseModel):
                label = getattr(item, "name", None) or getattr(item, "file", None)
                yield from implausible(item, f'{path}["{label}"]' if label else f"{path}[{number}]")


def _numbers(value: Any, path: str, dimension: str | None) -> Iterator[tuple[str, float, str]]:
    """Yield key, number and dimension of a value or of each component of a vector; whole numbers are steps."""
    if dimension is None or value is None:
        return
    if dimension == "velocity or flow rate" and isinstance(value, tuple):
        yield path, value[1], value[0]
    elif isinstance(value, float):
        yield path, value, dimension
    elif isinstance(value, tuple):
        for number, item in enumerate(value):
            yield from _numbers(item, f"{path}[{number}]", dimension)


@cache
def _quantities(model: type[BaseModel]) -> dict[str, tuple[str | None, bool]]:
    """Return the dimension of each field of a schema and whether it must be positive.

    The dimension is "" for a dimensionless number that has a range, and None for other values.
    """
    result = {}
    for name, field in model.model_fields.items():
        marks = list(_marks(field.annotation, field.metadata))
        dimension = next((mark for mark in marks if isinstance(mark, str)), None)
        if dimension is None and (name in OF_KEYS or f"{model.__name__}.{name}" in OF_KEYS):
            dimension = ""
        result[name] = dimension, True in marks
    return result


def _marks(annotation: Any, metadata: Any) -> Iterator[str | bool]:
    """Yield the dimensions of the quantities in an annotation, and True for those that must be positive."""
    for entry in metadata:
        function = getattr(entry, "func", None)
        if isinstance(function, partial) and function.keywords.get("dimension") is not None:
            yield str(function.keywords["dimension"])
        elif function in (parse_interval, parse_period, parse_steps_or_time):
            yield "time"
        elif function is parse_velocity_or_flow_rate:
            yield "velocity or flow rate"
        yield from (True for bound in (entry, *getattr(entry, "metadata", ())) if getattr(bound, "gt", None) == 0)
    for part in get_args(annotation):
        yield from _marks(part, getattr(part, "__metadata__", ()))
