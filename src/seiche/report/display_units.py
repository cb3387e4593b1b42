# SPDX-License-Identifier: BSD-3-Clause
"""Units in which people read values: kPa instead of 1.2e5 Pa, mL/s instead of 1e-6 m^3/s."""

from __future__ import annotations

import math

#: Units by SI unit, with their size in it, largest first.
_UNITS: dict[str, tuple[tuple[float, str], ...]] = {
    "m": ((1e3, "km"), (1.0, "m"), (1e-3, "mm"), (1e-6, "µm")),
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "Pa": ((1e9, "GPa"), (1e6, "MPa"), (1e3, "kPa"), (1.0, "Pa"), (1e-3, "mPa"), (1e-6, "µPa")),
    "m/s": ((1.0, "m/s"), (1e-3, "mm/s"), (1e-6, "µm/s"), (1e-9, "nm/s")),
    "m^3/s": ((1e-3, "L/s"), (1e-6, "mL/s"), (1e-9, "µL/s"), (1e-12, "nL/s"), (1e-15, "pL/s")),
}


def display_unit(magnitude: float, unit: str) -> tuple[float, str]:
    """Return the factor for values in the SI `unit`, and the name of the unit in which `magnitude` is at least 1.

    An unknown unit, and values that are zero or not finite, are not changed.
    """
    units = _UNITS.get(unit, ())
    if not units or not math.isfinite(magnitude) or magnitude == 0.0:
        return 1.0, unit
    size, name = next((entry for entry in units if abs(magnitude) >= entry[0] * (1 - 1e-9)), units[-1])
    return 1.0 / size, name


def length_scale(extent: float) -> tuple[float, str]:
    """Return the unit of the axes of a picture of `extent` (m), as its size in m and its name: at least 2 of it fit."""
    units = _UNITS["m"]
    return next((entry for entry in units if extent >= 2.0 * entry[0]), units[-1])


def display(value: float, unit: str, digits: int = 3) -> str:
    """Return a value in a readable unit as text."""
    factor, name = display_unit(value, unit)
    return f"{value * factor:.{digits}g} {name}".rstrip()
