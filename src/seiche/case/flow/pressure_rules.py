# SPDX-License-Identifier: BSD-3-Clause
"""Default pressure rules of openings, and warnings about inaccurate rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from seiche.case.flow.schema import FlowCase
from seiche.case.flow.schema_iolet import VelocityOpening
from seiche.domain.sites import SiteSet
from seiche.flow.depths import inner_sites
from seiche.flow.model import DEFAULT_PRESSURE_RULE, Iolet, VelocityIolet

#: Range of relaxation times, with a margin, in which `plane` was stable in tubes, both along a lattice axis and
#: tilted. Below this range, `anti-bounce-back` is stable; above it, only `nash` is stable.
PLANE_TAU = {"trt": (0.5, 10.0), "bgk": (0.56, 2.0), "mrt": (0.5, 6.0), "regularised": (0.5, 5.0)}
#: Upper limit with the velocity set D3Q15, for any collision.
MAX_TAU_D3Q15 = 5.0
#: Limits of tau for the accuracy of "nash", and the lower one of "anti-bounce-back".
MIN_TAU_NASH, MAX_TAU_NASH, MIN_TAU_ANTI_BOUNCE_BACK = 0.7, 1.5, 0.53


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
            key, reason, remedy = f'iolet["{iolet_plane.name}"].scheme', "", 'omit scheme, or use "plane"'
            rule = iolet_table.scheme
            if not rule:
                rule, reason, remedy = _default(case, sites, number, tau)
            iolet = replace(iolet, scheme=rule)
            if reason:
                notes.append(f'{key}: "{rule}" is used: {reason}')
            notes += _accuracy_notes(key, rule, tau, remedy)
        result.append(iolet)
    return tuple(result), tuple(notes)


def _default(case: FlowCase, sites: SiteSet, number: int, tau: tuple[float, float]) -> tuple[str, str, str]:
    """Return the default rule of an opening and, if it is not `DEFAULT_PRESSURE_RULE`, the reason and the remedy."""
    collision = case.lattice.collision
    low, high = PLANE_TAU[collision]
    if tau[1] > high:
        return "nash", f'"plane" is not stable above tau {high:g} with {collision}', "use a smaller tau"
    if tau[1] > MAX_TAU_D3Q15 and case.lattice.velocity_set == "D3Q15":
        return "nash", f'"plane" is not stable above tau {MAX_TAU_D3Q15:g} with D3Q15', "use a smaller tau, or D3Q19"
    if tau[0] < low:
        reason = f'"plane" is not stable below tau {low:g} with {collision}'
        return "anti-bounce-back", reason, 'use lattice.collision = "trt", or a larger tau'
    boundary = sites.opening_rows[(sites.link_iolet[sites.opening_rows] == number).any(axis=1)]
    coords = sites.coords[sites.boundary[boundary]]
    inner_rows, _ = inner_sites(sites, coords, np.full(len(coords), number), sites.iolets)
    if (inner_rows < 0).any():
        return (
            "anti-bounce-back",
            '"plane" needs an interior neighbour of each site of the opening; some sites have none',
            "use a smaller spacing, or a vessel that extends further inside the opening",
        )
    return DEFAULT_PRESSURE_RULE, "", ""


def _accuracy_notes(key: str, rule: str, tau: tuple[float, float], remedy: str) -> Iterator[str]:
    lowest, highest = tau
    if rule == "nash" and lowest < MIN_TAU_NASH:
        yield (
            f'{key}: with "nash", the flow rate has an error of several per cent below tau {MIN_TAU_NASH:g}; below 0.6 '
            f"the rule is unstable; tau is {lowest:.4g}: {remedy}"
        )
    elif rule == "nash" and highest > MAX_TAU_NASH:
        yield (
            f'{key}: with "nash", the flow rate has an error of up to 12 % above tau {MAX_TAU_NASH:g}; tau is '
            f"{highest:.4g}: {remedy}"
        )
    elif rule == "anti-bounce-back" and lowest < MIN_TAU_ANTI_BOUNCE_BACK:
        yield (
            f'{key}: with "anti-bounce-back", the flow rate has an error of up to 10 % below tau '
            f"{MIN_TAU_ANTI_BOUNCE_BACK:g}; tau is {lowest:.4g}: {remedy}"
        )
