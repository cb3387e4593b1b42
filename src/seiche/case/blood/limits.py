# SPDX-License-Identifier: BSD-3-Clause
"""Limits of a case with cells: errors for invalid values, one line each."""

from __future__ import annotations

from collections.abc import Iterator

from seiche.case.blood.cells import repulsions
from seiche.case.blood.setup import BloodSetup, open_vessel
from seiche.case.blood.tubes import check_tubes
from seiche.couple.open.vessel import inlets_of, velocity_range
from seiche.domain.occupancy import SizedSites
from seiche.errors import CaseError
from seiche.flow.model import VelocityIolet
from seiche.kernels.registry.ibm import BRICK, SUPPORT

#: Maximum distance (spacings) between wall points; the reach of the wall force must be at least as large.
WALL_POINTS = 1.0
#: Maximum displacement (sites) of cells between two exchanges at the openings; minimum number of exchanges per pulse.
_MAX_DISPLACEMENT, _EXCHANGES_PER_PULSE = 8.0, 4


def check_cell_limits(setup: BloodSetup) -> None:
    """Raise a CaseError for the first reason why a blood case cannot run, before cells are created."""
    if not isinstance(setup.vessel.sites, SizedSites):
        check_reservoir(setup)
        check_tubes(setup)
    for message in _reasons(setup):
        raise CaseError(f"{setup.source}: {message}")


def _reasons(setup: BloodSetup) -> Iterator[str]:
    case, sites, delta = setup.case, setup.vessel.sites, setup.case.coupling.delta
    for axis, name in enumerate("xyz"):
        if sites.periodic[axis] and sites.shape[axis] < BRICK:
            yield (
                f"coupling.delta: the support of {SUPPORT[delta]} sites ({delta}) does not fit the periodic extent of "
                f"{sites.shape[axis]} sites along {name}; at least {BRICK} sites are needed"
            )
    between, wall = repulsions(case, setup.units)
    for axis, name in enumerate("xyz"):
        for key, law in (("reach", between), *((("wall_reach", wall),) if len(sites.boundary) else ())):
            if sites.periodic[axis] and sites.shape[axis] < 3 * law.cutoff:
                yield (
                    f"contact.{key}: {law.cutoff * setup.units.spacing:.3g} m is more than a third of the periodic "
                    f"extent along {name}; use a shorter reach or a longer vessel"
                )
    if len(sites.boundary) and wall.reach < WALL_POINTS * (1 - 1e-9):
        yield (
            f"contact.wall_reach: {wall.reach * setup.units.spacing:.3g} m is below one spacing, "
            f"{setup.units.spacing:.3g} m; cells could pass between the points of the wall"
        )
    if sites.iolets and case.reservoir is None:
        yield f'reservoir: is missing; cells leave through iolet["{sites.iolets[0].name}"] and none enter'


def check_reservoir(setup: BloodSetup) -> None:
    """Raise a CaseError for the first reason why cells cannot be exchanged through openings."""
    if setup.case.reservoir is not None:
        for message in _opening_reasons(setup):
            raise CaseError(f"{setup.source}: {message}")


def _opening_reasons(setup: BloodSetup) -> Iterator[str]:
    if not inlets_of(setup.vessel.sites):
        yield 'reservoir: the vessel has no inlet; set role = "inlet" for the iolet through which cells enter'
    yield from _unclear_roles(setup)
    if setup.case.packing is None:
        yield "reservoir: [packing] is missing; it sets the hematocrit of the reservoir"
        return
    vessel, key = open_vessel(setup), "reservoir.every"
    interval, pulse, displacement = vessel.interval, vessel.pulse, vessel.displacement
    if displacement > _MAX_DISPLACEMENT:
        yield (
            f"{key}: cells move {displacement:.3g} sites between two exchanges at the openings and could cross them "
            f"undetected; use at most {max(1, int(interval * _MAX_DISPLACEMENT / displacement))} steps"
        )
    if pulse is not None and interval > pulse / _EXCHANGES_PER_PULSE:
        yield (
            f"{key}: the period of the flow is {pulse:.3g} steps, too short for this interval; use at most "
            f"{max(1, int(pulse / _EXCHANGES_PER_PULSE))} steps"
            if vessel.every is not None
            else f"reservoir: the period of the flow is {pulse:.3g} steps, but cells are exchanged every {interval:g} "
            f"steps; at least {_EXCHANGES_PER_PULSE * interval:g} steps per period are needed: use a smaller time step"
        )


def _unclear_roles(setup: BloodSetup) -> Iterator[str]:
    """Yield a message for each outlet of the geometry through which blood may enter."""
    roles = {opening.name: opening.role for opening in setup.case.iolet}
    for plane, iolet in zip(setup.vessel.sites.iolets, setup.model.iolets, strict=True):
        enters = isinstance(iolet, VelocityIolet) and velocity_range(iolet)[1] > 0
        if plane.role == "outlet" and enters and roles[plane.name] is None:
            yield (
                f'iolet["{plane.name}"].role: is missing; blood may enter through it, but the geometry calls it an '
                'outlet, where no cells enter; set role = "inlet" or "outlet"'
            )
