# SPDX-License-Identifier: BSD-3-Clause
"""Exact temperatures in uniform tissue, and the thermal dose of given temperatures (theory/ultrasound, section 9)."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.medium import on_grid
from seiche.ultrasound.numbers import one_number, positive_number, real_numbers
from seiche.ultrasound.thermal import Tissue

Floats = npt.NDArray[np.float64]
Border = Literal["insulated", "fixed", "periodic"]


def uniform_temperature(
    temperature: npt.ArrayLike,
    seconds: float,
    spacing: npt.ArrayLike,
    tissue: Tissue,
    *,
    heat: npt.ArrayLike = 0.0,
    border: Border = "insulated",
) -> Floats:
    """Return the temperature after a time in uniform tissue, in one step (eq. 59); one to three dimensions.

    Args:
        temperature: at the start, degrees Celsius, an array in the shape of the grid.
        seconds: duration, s.
        spacing: m, one number or one for each axis.
        tissue: with one number for each property.
        heat: constant heat source, W/m3, one number or an array in the shape of the grid.
        border: "insulated" as of `Bioheat`, "fixed" (at the temperature of the blood) or "periodic".

    Raises:
        CaseError: an impossible value; names the argument.
    """
    start = real_numbers("temperature", temperature)
    if not 1 <= start.ndim <= 3 or not start.size or not np.isfinite(start).all():
        raise CaseError(f"temperature: shape {start.shape} is not one to three axes of finite numbers")
    source = np.broadcast_to(np.asarray(on_grid("heat", heat, start.shape), np.float64), start.shape)
    if not np.isfinite(source).all():
        raise CaseError("heat: not every value is a finite number")
    distances = np.atleast_1d(real_numbers("spacing", spacing))
    if distances.shape not in ((1,), (start.ndim,)) or not (np.isfinite(distances) & (distances > 0)).all():
        raise CaseError(f"spacing: {distances.tolist()} is not one positive number, or one for each axis")
    if border not in ("insulated", "fixed", "periodic"):
        raise CaseError(f"border: {border!r} is not insulated, fixed or periodic")
    duration, capacity, conductivity, cooling = positive_number("seconds", seconds), *_uniform(tissue)
    squares = [
        (np.pi * _orders(n, border) / (n * d)) ** 2
        for n, d in zip(start.shape, np.broadcast_to(distances, start.ndim), strict=True)
    ]
    rate = (conductivity * np.asarray(sum(np.ix_(*squares)), np.float64) + cooling) / capacity
    decay = np.exp(-rate * duration)
    gained = np.divide(-np.expm1(-rate * duration), rate, out=np.full(rate.shape, duration), where=rate > 0)
    blood = float(tissue.blood_temperature)
    modes = _modes(start - blood, border) * decay + _modes(source / capacity, border) * gained
    return np.asarray(blood + _values(modes, border), np.float64)


def thermal_dose(temperatures: npt.ArrayLike, dt: float, *, axis: int = -1) -> Floats:
    """Return the thermal dose (eq. 30) of temperatures in equivalent minutes at 43 degrees, by the trapezoidal rule.

    Args:
        temperatures: degrees Celsius, at times `dt` apart along one axis.
        dt: s.
        axis: of the times.

    Raises:
        CaseError: not finite numbers at two times or more, or a time step that is not positive.
    """
    values = real_numbers("temperatures", temperatures)
    if not -values.ndim <= axis < values.ndim or values.shape[axis] < 2 or not np.isfinite(values).all():
        raise CaseError(f"temperatures: shape {values.shape} is not finite numbers at two or more times")
    excess = np.minimum(values, 100.0) - 43.0
    rates = np.where(values >= 39.0, np.exp2(np.where(excess >= 0, excess, 2 * excess)), 0.0)
    return np.asarray(np.trapezoid(rates, dx=positive_number("dt", dt) / 60.0, axis=axis))


def _uniform(tissue: Tissue) -> tuple[float, float, float]:
    """Return the heat capacity per volume, the conductivity, and the cooling by blood, of uniform tissue."""
    numbers = {name: one_number(f"tissue.{name}", getattr(tissue, name)) for name in Tissue.__dataclass_fields__}
    for name, value in numbers.items():
        lowest = name in ("density", "heat_capacity")
        if not np.isfinite(value) or (name != "blood_temperature" and (value < 0 or (lowest and value == 0))):
            raise CaseError(f"tissue.{name}: {value:g} is not a finite number {'>' if lowest else '>='} 0")
    cooling = numbers["perfusion"] * numbers["blood_density"] * numbers["blood_heat_capacity"]
    return numbers["density"] * numbers["heat_capacity"], numbers["conductivity"], cooling


def _orders(points: int, border: Border) -> Floats:
    """Return wave numbers along an axis in units of pi over its length."""
    if border == "periodic":
        return np.asarray(2 * points * np.fft.fftfreq(points))
    return np.arange(points, dtype=np.float64) + (border == "fixed")


def _modes(values: Floats, border: Border) -> npt.NDArray[np.complex128] | Floats:
    from scipy.fft import dctn, dstn, fftn

    return np.asarray({"insulated": dctn, "fixed": dstn, "periodic": fftn}[border](values))


def _values(modes: npt.NDArray[np.complex128] | Floats, border: Border) -> Floats:
    from scipy.fft import idctn, idstn, ifftn

    return np.asarray({"insulated": idctn, "fixed": idstn, "periodic": ifftn}[border](modes).real)
