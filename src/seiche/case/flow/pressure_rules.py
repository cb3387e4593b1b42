# SPDX-License-Identifier: BSD-3-Clause
"""Default pressure rules of openings, and warnings about inaccurate rules."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from seiche.case.flow.schema import FlowCase
from seiche.case.flow.schema_iolet import VelocityOpening
from seiche.domain.sites import SiteSet
from seiche.flow.depths import inner_sites
from seiche.flow.model import DEFAULT_PRESSURE_RULE, Iolet, PressureIolet, VelocityIolet, WindkesselIolet

#: Range of relaxation times, with a margin, in which `plane` was stable in tubes, both along a lattice axis and
#: tilted. Below this range, `anti-bounce-back` is stable; above it, only `nash` is stable.
PLANE_TAU = {"trt": (0.5, 10.0), "bgk": (0.56, 2.0), "mrt": (0.5, 1.5), "regularised": (0.5, 5.0)}
#: Maximum stable instantaneous resistance of a circuit with `plane`, in units of (tau - 1/2) times the acoustic
#: impedance of the opening, 1/(sqrt(3) area). At 1.5 times this value `plane` was unstable at tau 0.536,
#: and at 0.6 times this value for an opening normal to a lattice diagonal.
MAX_RESISTANCE = 20.0
#: Lower limits of tau for the accuracy of "nash" and "anti-bounce-back".
MIN_TAU_NASH, MIN_TAU_ANTI_BOUNCE_BACK = 0.7, 0.53


def with_pressure_rules(
    case: FlowCase, sites: SiteSet, iolets: Sequence[Iolet], tau: tuple[float, float]
) -> tuple[tuple[Iolet, ...], tuple[str, ...]]:
    """Return `iolets` (in the order of the planes of `sites`) with their rules, and advice on the rules.

    `tau` contains the lowest and the highest relaxation time. The default rule is "plane" if it is stable and all sites
    of the opening have interior neighbours.
    """
    iolet_tables = {iolet_table.name: iolet_table for iolet_table in case.iolet}
    result: list[Iolet] = []
    notes: list[str] = []
    for number, (iolet_plane, iolet) in enumerate(zip(sites.iolets, iolets, strict=True)):
        iolet_table = iolet_tables[iolet_plane.name]
        if not isinstance(iolet, VelocityIolet) and not isinstance(iolet_table, VelocityOpening):
            rule, reason = (iolet_table.scheme, "") if iolet_table.scheme else _default(case, sites, number, iolet, tau)
            iolet = replace(iolet, scheme=rule)
            if reason:
                notes.append(f'iolet["{iolet_plane.name}"].scheme: "{rule}" is used: {reason}')
            else:
                notes += _accuracy_notes(f'iolet["{iolet_plane.name}"].scheme', rule, tau[0])
        result.append(iolet)
    return tuple(result), tuple(notes)


def _default(
    case: FlowCase, sites: SiteSet, number: int, iolet: PressureIolet | WindkesselIolet, tau: tuple[float, float]
) -> tuple[str, str]:
    """Return the default rule of an opening and, if it is not `DEFAULT_PRESSURE_RULE`, the reason."""
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
        instantaneous = iolet.proximal_resistance + min(iolet.resistance, 1.0 / iolet.compliance)
        ratio, limit = math.sqrt(3.0) * area * instantaneous, MAX_RESISTANCE * (tau[0] - 0.5)
        if ratio > limit:
            return "nash", (
                f'"plane" is not stable with a proximal resistance of {ratio:.3g} times the acoustic impedance of '
                f"the opening; the limit at this tau is {limit:.3g}"
            )
    coords = sites.coords[sites.boundary[boundary]]
    inner, _ = inner_sites(sites, coords, np.full(len(coords), number), sites.iolets)
    if (inner < 0).any():
        return (
            "anti-bounce-back",
            '"plane" needs an interior neighbour of each site of the opening; some sites have none',
        )
    return DEFAULT_PRESSURE_RULE, ""


def _accuracy_notes(key: str, rule: str, tau: float) -> Iterator[str]:
    if rule == "nash" and tau < MIN_TAU_NASH:
        yield (
            f'{key}: with "nash", the flow rate has an error of several per cent below tau {MIN_TAU_NASH:g}; below 0.6 '
            f'the rule is unstable; tau is {tau:.4g}: omit scheme, or use "plane"'
        )
    elif rule == "anti-bounce-back" and tau < MIN_TAU_ANTI_BOUNCE_BACK:
        yield (
            f'{key}: with "anti-bounce-back", the flow rate has an error of up to 10 % below tau '
            f'{MIN_TAU_ANTI_BOUNCE_BACK:g}; tau is {tau:.4g}: omit scheme, or use "plane"'
        )
