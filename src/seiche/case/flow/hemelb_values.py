# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of values in HemeLB XML, given by the attributes `value` and `units`, to strings of a case file.

The functions `parsed_...` also read the texts of elements in files of HemoCell.
"""

from __future__ import annotations

import math
import re

from seiche.case.quantities import shorten
from seiche.io.formats.xml_tree import Element

#: Units of HemeLB and their names in a case file.
UNITS = {unit: unit for unit in ("m", "s", "m/s", "rad", "mmHg")}
UNITS |= {"kg/m3": "kg/m^3", "Pa.s": "Pa s", "kg/m^4*s": "Pa s/m^3", "m^4*s^2/kg": "m^3/Pa"}
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?"
_VECTOR = re.compile(rf"\s*\(\s*({_NUMBER})\s*,\s*({_NUMBER})\s*,\s*({_NUMBER})\s*\)\s*")


def number(element: Element, *units: str) -> float:
    """Return the finite number in `value`; its `units` must be one of `units`."""
    check_units(element, units)
    return number_in(element, "value")


def number_in(element: Element, attribute: str) -> float:
    """Return the finite number in `attribute`, which has no units."""
    return parsed_number(element, attribute, element.attribute(attribute))


def parsed_number(element: Element, name: str, text: str) -> float:
    """Return the finite number in `text`, which is the `name` of an element."""
    text = text.strip()
    if len(text) > 60 or re.fullmatch(_NUMBER, text) is None or not math.isfinite(float(text)):
        raise element.error(f"{name} {shorten(text)} is not a number")
    return float(text)


def positive(element: Element, *units: str) -> float:
    """Return the number in `value`, which must be positive."""
    value = number(element, *units)
    if value <= 0.0:
        raise element.error(f"value {value:g} is out of range; expected > 0")
    return value


def quantity(element: Element, unit: str) -> str:
    """Return the value with its unit as in a case file, such as "0.1 mmHg"."""
    return text_of(number(element, unit), unit)


def text_of(value: float, unit: str) -> str:
    """Return `value`, in a unit of HemeLB, as in a case file."""
    return f"{value!r} {UNITS[unit]}"


def whole_number(element: Element, attribute: str = "value", minimum: int = 0) -> int:
    """Return a whole number of steps in `attribute`."""
    return parsed_whole_number(element, attribute, element.attribute(attribute), minimum)


def parsed_whole_number(element: Element, name: str, text: str, minimum: int) -> int:
    """Return the whole number in `text`, which is the `name` of an element."""
    text = text.strip()
    if re.fullmatch(r"\+?[0-9]{1,15}", text) is None or int(text) < minimum:
        raise element.error(f"{name} {shorten(text)} is not a whole number >= {minimum}")
    return int(text)


def vector(element: Element, *units: str) -> tuple[float, float, float]:
    """Return the three numbers of a `value` such as "(0.0,0.0,1.0)"."""
    check_units(element, units)
    text = element.attribute("value")
    match = _VECTOR.fullmatch(text) if len(text) < 200 else None
    x, y, z = map(float, match.groups()) if match is not None else (math.nan,) * 3
    if not all(map(math.isfinite, (x, y, z))):
        raise element.error(f"value {shorten(text)} is not a vector such as (0.0,0.0,1.0)")
    return x, y, z


def point(element: Element) -> list[str]:
    """Return a position in metres as in a case file."""
    return [text_of(c, "m") for c in vector(element, "m")]


def check_units(element: Element, units: tuple[str, ...]) -> None:
    """Raise a FormatError for units that are not one of `units`."""
    if element.attribute("units") not in units:
        expected = " or ".join(f'"{unit}"' for unit in units)
        raise element.error(f"units {shorten(element.attribute('units'))} are not supported; expected {expected}")


def file_name(element: Element, attribute: str) -> str:
    """Return the name of a file, relative to the folder of the XML file."""
    return parsed_file_name(element, attribute, element.attribute(attribute))


def parsed_file_name(element: Element, name: str, text: str) -> str:
    """Return the file name in `text`, which is the `name` of an element."""
    if not text.strip() or len(text) > 1000 or not text.isprintable():
        raise element.error(f"{name} {shorten(text)} is not a usable file name")
    return text
