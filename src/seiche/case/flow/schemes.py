# SPDX-License-Identifier: BSD-3-Clause
"""By which rule openings impose their pressure where the case does not say, and where a rule fails."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from seiche.case.flow.schema import FlowCase
from seiche.case.flow.schema_iolet import VelocityOpening
from seiche.domain.sites import SiteSet
from seiche.flow.depths import inner_sites
from seiche.flow.model import DEFAULT_SCHEME, Iolet, PressureIolet, VelocityIolet, WindkesselIolet

#: Relaxation times between which `plane` was stable in tubes along the lattice and tilted, with some room. Below,
#: `anti-bounce-back` is; above, only `nash`.
PLANE_TAU = {"trt": (0.5, 10.0), "bgk": (0.56, 2.0), "mrt": (0.5, 1.5), "regularised": (0.5, 5.0)}
#: What a circuit answers at once to a flow, over the impedance of sound of its opening, 1/(sqrt(3) area), up to which
#: `plane` was stable, over tau - 1/2; half as much again was not at tau 0.536 and 0.6 across a diagonal of the lattice.
WINDKESSEL = 20.0
#: Below these relaxation times Nash's rule fails, and no rule is accurate.
NASH_TAU, LEAST_TAU = 0.7, 0.53


def with_schemes(
    case: FlowCase, sites: SiteSet, iolets: Sequence[Iolet], tau: tuple[float, float]
) -> tuple[tuple[Iolet, ...], tuple[str, ...]]:
    """Return `iolets` (in the order of the planes of `sites`) with their rules, and advice about those.

    `tau` are the lowest and the highest relaxation time. A pressure whose rule is not given holds in its plane if that
    is stable and there are sites behind the opening.
    """
    given = {opening.name: opening for opening in case.iolet}
    found: list[Iolet] = []
    notes: list[str] = []
    for number, (plane, iolet) in enumerate(zip(sites.iolets, iolets, strict=True)):
        opening = given[plane.name]
        if not isinstance(iolet, VelocityIolet) and not isinstance(opening, VelocityOpening):
            chosen, reason = (opening.scheme, "") if opening.scheme else _default(case, sites, number, iolet, tau)
            iolet = replace(iolet, scheme=chosen)
            if reason:
                notes.append(f'iolet["{plane.name}"].scheme: is "{chosen}": {reason}')
            else:
                notes += _failing(f'iolet["{plane.name}"].scheme', chosen, tau[0])
        found.append(iolet)
    return tuple(found), tuple(notes)


def _default(
    case: FlowCase, sites: SiteSet, number: int, iolet: PressureIolet | WindkesselIolet, tau: tuple[float, float]
) -> tuple[str, str]:
    """Return the rule of an opening that names none, and why it is not the default if so."""
    collision = case.lattice.collision
    low, high = PLANE_TAU[collision]
    if tau[1] > high:
        return "nash", f'"plane" is not stable above tau {high:g} with {collision}'
    if tau[0] < low:
        return "anti-bounce-back", f'"plane" is not stable below tau {low:g} with {collision}'
    boundary = np.flatnonzero((sites.link_iolet == number).any(axis=1))
    if isinstance(iolet, WindkesselIolet):
        radius = sites.iolets[number].radius
        area = math.pi * (radius / sites.spacing) ** 2 if radius is not None else float(len(boundary))
        at_once = iolet.proximal_resistance + min(iolet.resistance, 1.0 / iolet.compliance)
        ratio, most = math.sqrt(3.0) * area * at_once, WINDKESSEL * (tau[0] - 0.5)
        if ratio > most:
            return "nash", (
                f'"plane" is not stable with a proximal resistance {ratio:.3g} times the impedance of sound of the '
                f"opening; up to {most:.3g} at this tau"
            )
    coords = sites.coords[sites.boundary[boundary]]
    behind, _ = inner_sites(sites, coords, np.full(len(coords), number), sites.iolets)
    if (behind < 0).any():
        return "anti-bounce-back", '"plane" needs a site behind each of the opening\'s, and there are some without'
    return DEFAULT_SCHEME, ""


def _failing(key: str, scheme: str, tau: float) -> Iterator[str]:
    if scheme == "nash" and tau < NASH_TAU:
        yield (
            f'{key}: "nash" errs by several per cent of the flow rate below tau {NASH_TAU:g} and fails below 0.6; here '
            f'tau is {tau:.4g}: leave scheme out, or use "plane"'
        )
    elif tau < LEAST_TAU:
        yield f"{key}: below tau {LEAST_TAU:g} pressures are inaccurate and may be unstable; here tau is {tau:.4g}"
