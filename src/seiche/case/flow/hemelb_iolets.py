# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of inlets and outlets in HemeLB XML to [[iolet]] tables, with the conventions of HemeLB.

HemeLB's Womersley profile is u = -n Re{(G/(rho omega)) (1 - J0(L r/a)/J0(L)) exp(i omega t)}, L = i^(3/2) alpha. The
exact solution has the additional factor 1/i, so HemeLB is ahead of it by a quarter of a period. A harmonic in Seiche is
defined by its mean over the opening, -(G/(rho omega)) (1 - 2 J1(L)/(L J0(L))); with its modulus and angle, the
amplitude and phase are those of HemeLB.
"""

from __future__ import annotations

import cmath
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from seiche.case.flow.hemelb_values import file_name, number, positive, quantity, text_of, vector
from seiche.case.flow.waveforms import WOMERSLEY_RANGE, womersley_number
from seiche.case.quantities import parse_quantity, shorten
from seiche.flow.profiles import womersley_mean
from seiche.io.formats.xml_tree import Element

Tables = dict[str, Any]
#: Reason for omitting a layer of higher viscosity at the outlets.
SPONGE = (
    "the viscosity is the same everywhere; the rules of pressure openings need no layer of higher viscosity, whose "
    "additional pressure drop is missing"
)
#: Relative difference between Womersley numbers above which a note is written.
SAME_NUMBER = 0.01


class HemelbFluid(NamedTuple):
    """Fluid and lattice of a file, for its iolets, in SI units; `elapsed` is the time at the first step."""

    density: float
    viscosity: float
    reference_mmhg: float
    warmup: int
    spacing: float
    origin: tuple[float, float, float]
    step: float
    elapsed: float = 0.0


class Translated(NamedTuple):
    """An [[iolet]] table, the lowest pressure (mmHg) that HemeLB assigns to it, and notes for the user."""

    table: Tables
    lowest_mmhg: float | None
    notes: list[str]


def translate_iolets(root: Element, fluid: HemelbFluid, notes: list[str]) -> list[Tables]:
    """Return the [[iolet]] tables of the inlets, then of the outlets, named as in `.gmy` files; appends to `notes`."""
    iolets: list[Translated] = []
    for role in ("inlet", "outlet"):
        group = root.optional(f"{role}s")
        if group is None:
            continue
        group.only((role,))
        iolets += [_translate(element, f"{role}{k}", fluid) for k, element in enumerate(group.all(role))]
    notes += [note for iolet in iolets for note in iolet.notes]
    minima = [iolet.lowest_mmhg for iolet in iolets if iolet.lowest_mmhg is not None]
    if fluid.warmup and minima:
        for iolet in iolets:
            if "pressure" in iolet.table:
                iolet.table["ramp_from"] = text_of(min(minima), "mmHg")
    return [iolet.table for iolet in iolets]


def _translate(element: Element, name: str, fluid: HemelbFluid) -> Translated:
    element.only(("condition", "normal", "position", "radius", "area", *_IGNORED))
    condition = element.child("condition")
    kind = f"{condition.attribute('type')}/{condition.attribute('subtype')}"
    kind = _SYNONYMS.get(kind, kind)
    if kind not in _CONDITIONS:
        supported = ", ".join(sorted(_CONDITIONS))
        attributes = f'type="{condition.attribute("type")}" subtype="{condition.attribute("subtype")}"'
        raise condition.error(f"{shorten(attributes)[1:-1]} is not supported; expected one of {supported}")
    position = element.child("position")
    x, y, z = vector(position, "m", "lattice")
    if position.attribute("units") == "lattice":
        x, y, z = (first + fluid.spacing * c for first, c in zip(fluid.origin, (x, y, z), strict=True))
    table: Tables = {
        "name": name,
        "center": [text_of(c, "m") for c in (x, y, z)],
        "normal": list(vector(element.child("normal"), "dimensionless")),
    }
    result = _CONDITIONS[kind](condition, table, fluid)
    result.notes.extend(f"{item.path}: ignored, {_IGNORED[name]}" for name in _IGNORED for item in element.all(name))
    if "yangpressure" in condition.attributes.values():
        result.notes.append(f"{condition.path}: imposed by the rule of `scheme`, not by Yang's rule")
    return result


def _cosine(condition: Element, table: Tables, fluid: HemelbFluid) -> Translated:
    condition.only(("amplitude", "mean", "phase", "period", "radius", "area"))
    mean, amplitude = (number(condition.child(key), "mmHg") for key in ("mean", "amplitude"))
    table |= {"kind": "pressure", "pressure": text_of(mean, "mmHg")}
    phase, period = number(condition.child("phase"), "rad"), condition.child("period")
    number(period, "s")
    if amplitude != 0.0:
        phase = _phase_at_first_step(phase, positive(period, "s"), fluid)
        table |= {"amplitude": text_of(amplitude, "mmHg"), "phase": text_of(phase, "rad")}
        table["period"] = quantity(period, "s")
    _ramp(table, fluid)
    return Translated(table, mean - abs(amplitude), [])


def _pressure_file(condition: Element, table: Tables, fluid: HemelbFluid) -> Translated:
    _check_no_elapsed_time(condition, fluid)
    condition.only(("path", "radius", "area"))
    name = file_name(condition.child("path"), "value")
    table |= {"kind": "pressure", "table": name, "repeat": False}
    note = (
        f"{condition.path}: HemeLB scales the times of {shorten(name)} to the whole run; Seiche takes them in "
        "seconds, and the last value applies after the last time"
    )
    return Translated(table, None, [note])


def _windkessel(condition: Element, table: Tables, fluid: HemelbFluid) -> Translated:
    three_elements = condition.attributes["subtype"] == "WK3"
    keys = {"Rp": "resistance", "Rc": "proximal_resistance"} if three_elements else {"R": "resistance"}
    keys |= {"Cp" if three_elements else "C": "compliance"}
    condition.only((*keys, "radius", "area"))
    table["kind"] = "windkessel"
    if not three_elements and condition.optional("C") is None:
        raise condition.error(
            'the element <C> is missing; it has no default, expected <C value="..." units="m^4*s^2/kg"/>, the '
            "compliance: the relaxation time of the outlet divided by its resistance R"
        )
    for name, key in keys.items():
        unit = "m^4*s^2/kg" if key == "compliance" else "kg/m^4*s"
        table[key] = text_of(positive(condition.child(name), unit), unit)
    return Translated(table, fluid.reference_mmhg, [])


def _parabolic(condition: Element, table: Tables, fluid: HemelbFluid) -> Translated:
    condition.only(("radius", "maximum", "area"))
    mean = 0.5 * number(condition.child("maximum"), "m/s")
    table |= {"kind": "velocity", "velocity": text_of(mean, "m/s"), "profile": "parabolic"}
    table["radius"] = text_of(positive(condition.child("radius"), "m"), "m")
    _ramp(table, fluid)
    return Translated(table, fluid.reference_mmhg, [])


def _womersley(condition: Element, table: Tables, fluid: HemelbFluid) -> Translated:
    condition.only(("radius", "pressure_gradient_amplitude", "period", "womersley_number", "area"))
    radius, period = positive(condition.child("radius"), "m"), positive(condition.child("period"), "s")
    alpha = number(condition.child("womersley_number"), "dimensionless")
    if not WOMERSLEY_RANGE[0] <= alpha <= WOMERSLEY_RANGE[1]:
        low, high = WOMERSLEY_RANGE
        raise condition.child("womersley_number").error(f"value {alpha:g} is out of range ({low:g} to {high:g})")
    gradient = number(condition.child("pressure_gradient_amplitude"), "mmHg/m")
    gradient *= parse_quantity("1 mmHg", dimension="pressure")
    try:
        mean = -gradient * period / (2.0 * math.pi * fluid.density) * womersley_mean(alpha)
        expected = womersley_number(radius, period, fluid.viscosity / fluid.density)
    except (OverflowError, ZeroDivisionError):
        mean = complex(math.nan)
    amplitude, phase = cmath.polar(mean)
    if not math.isfinite(amplitude):
        raise condition.error("the combination of its values overflows; check their units")
    table |= {
        "kind": "velocity",
        "velocity": text_of(0.0, "m/s"),
        "profile": "womersley",
        "period": text_of(period, "s"),
        "radius": text_of(radius, "m"),
        "harmonics": [
            {
                "amplitude": text_of(amplitude, "m/s"),
                "phase": text_of(_phase_at_first_step(phase, period, fluid), "rad"),
            }
        ],
    }
    notes = [f"{condition.path}: amplitude and phase follow HemeLB's definition, without the factor 1/i (90 degrees)"]
    if abs(alpha - expected) > SAME_NUMBER * expected:
        notes.append(
            f"{condition.path}: womersley_number {alpha:g} differs from radius*sqrt(omega/nu) = {expected:.4g}; the "
            "shape of the profile uses the latter, its mean velocity the value in the file"
        )
    return Translated(table, fluid.reference_mmhg, notes)


def _velocity_file(condition: Element, table: Tables, fluid: HemelbFluid) -> Translated:
    _check_no_elapsed_time(condition, fluid)
    condition.only(("path", "radius", "area", "maximum"))
    name = file_name(condition.child("path"), "value")
    weights = f"{name}.weights.txt"
    if not os.path.isfile(Path(condition.source).parent / weights):
        # The table of a case contains means over the opening, which are half the maximum of a parabola.
        table |= {"kind": "velocity", "table": name, "repeat": True, "table_scale": 0.5, "profile": "parabolic"}
        notes = [
            (
                f"{condition.path}: {shorten(weights)} is missing, so {shorten(name)} is taken as the maximum of a "
                "parabola"
            )
        ]
    else:
        table |= {"kind": "velocity", "table": name, "repeat": True, "weights": weights}
        notes = []
    table["radius"] = text_of(positive(condition.child("radius"), "m"), "m")
    table["equal_times"] = "last"
    return Translated(table, fluid.reference_mmhg, notes)


def _ramp(table: Tables, fluid: HemelbFluid) -> None:
    if fluid.warmup:
        table["ramp"] = fluid.warmup


def _phase_at_first_step(phase: float, period: float, fluid: HemelbFluid) -> float:
    """Return the phase (rad) at the first step of an oscillation whose phase at time 0 is `phase`."""
    return phase + 2.0 * math.pi * math.fmod(fluid.elapsed / period, 1.0) if fluid.elapsed else phase


def _check_no_elapsed_time(condition: Element, fluid: HemelbFluid) -> None:
    if fluid.elapsed:
        raise condition.error(
            f"initialconditions starts the run at {fluid.elapsed:g} s, but a table starts at its first row; "
            "subtract this time from the times of the table, and remove the first step"
        )


_CONDITIONS: dict[str, Callable[[Element, Tables, HemelbFluid], Translated]] = {
    "pressure/cosine": _cosine,
    "pressure/file": _pressure_file,
    "windkessel/WK": _windkessel,
    "windkessel/WK3": _windkessel,
    "velocity/parabolic": _parabolic,
    "velocity/womersley": _womersley,
    "velocity/file": _velocity_file,
}
#: Ignored elements of an iolet, and the reason.
_IGNORED = {
    "flowextension": "red cells enter through it in HemeLB; the flow does not use it",
    "sponge_layer": SPONGE,
}
#: Other names in versions of HemePure; "GKmodel" is the RC circuit of Grinberg and Karniadakis.
_TYPES = ("pressure", "yangpressure", "windkessel")
_SYNONYMS = {f"{kind}/{name}": "windkessel/WK" for kind in _TYPES for name in ("WK", "WK2", "GKmodel")}
_SYNONYMS |= {f"{kind}/WK3": "windkessel/WK3" for kind in _TYPES}
_SYNONYMS |= {f"yangpressure/{name}": f"pressure/{name}" for name in ("cosine", "file")}
_SYNONYMS["pressure/yangpressure"] = "pressure/cosine"
