# SPDX-License-Identifier: BSD-3-Clause
"""Limits of a case with cells: errors for impossible values and warnings for inaccurate ones, one line each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from seiche.case.blood.cells import repulsions
from seiche.case.blood.setup import BloodSetup, open_vessel
from seiche.case.blood.tubes import refuse_tubes
from seiche.case.flow.limits import TAU_LARGEST_TRT
from seiche.case.flow.openings import steps_of
from seiche.cells.mesh import mean_edge
from seiche.couple.limits import Mobility
from seiche.couple.open.vessel import inlets_of, speeds
from seiche.errors import CaseError
from seiche.flow.model import VelocityIolet
from seiche.kernels.registry.ibm import BRICK, SUPPORT

#: Longest edges (spacings) without leakage, by support of the delta function; 2.1 admits red cells of 162 vertices at
#: 0.5 um.
EDGE_ADVISED = {2: 1.3, 3: 1.6, 4: 2.1}
#: Largest distance (spacings) of the points of a wall; the force of the wall must reach at least as far.
WALL_POINTS = 1.0
#: Validated range of inner over outer viscosity.
CONTRAST_CHECKED = (1.0, 10.0)
#: Advised margin of the time step below its limit. The limit is that of one undeformed cell with little sound, and
#: deformed membranes are stiffer.
LIMIT_ADVISED = 2.0
#: Largest advised product of mobility and contact stiffness of two vertices at half the reach; a vertex has several.
CONTACT_ADVISED = 0.25
#: Largest displacement (sites) of cells between two exchanges at the openings, and the least exchanges per pulse.
_FARTHEST, _PER_PULSE = 8.0, 4


def refuse_impossible_cells(setup: BloodSetup) -> None:
    """Raise a CaseError for the first reason why a blood case is impossible, before cells are made."""
    refuse_reservoir(setup)
    refuse_tubes(setup)
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
            if sites.periodic[axis] and sites.shape[axis] < 3 * law.farthest:
                yield (
                    f"contact.{key}: {law.farthest * setup.units.spacing:.3g} m is more than a third of the periodic "
                    f"extent along {name}; use a shorter one or a longer vessel"
                )
    if len(sites.boundary) and wall.reach < WALL_POINTS * (1 - 1e-9):
        yield (
            f"contact.wall_reach: {wall.reach * setup.units.spacing:.3g} m is below one spacing, "
            f"{setup.units.spacing:.3g} m; cells could pass between the points of the wall"
        )
    if sites.iolets and case.reservoir is None:
        yield f'reservoir: is missing; cells leave through iolet["{sites.iolets[0].name}"] and none enter'
    for table in case.output.cells:
        if steps_of(table.every, setup.units) < 0.5:
            yield f'output.cells["{table.file}"].every: is shorter than half a time step of {setup.units.step:.3g} s'


def advice_cells(setup: BloodSetup) -> Iterator[str]:
    """Yield warnings about cells, one line each."""
    cells = setup.cells
    if cells is None:
        return
    if cells.contrast != 1:
        yield from _inner_viscosity(setup, cells.contrast)
    yield from _stiff_contact(setup)
    delta = setup.case.coupling.delta
    longest = EDGE_ADVISED[SUPPORT[delta]]
    for kind, limit in zip(cells.types, cells.limits, strict=True):
        edge = mean_edge(kind.mesh)
        if edge > longest:
            yield (
                f'cells["{kind.name}"].shape.vertices: fluid leaks through edges of {edge:.3g} spacings; at most '
                f"{longest} is advised for {delta}"
            )
        if limit.ratio < LIMIT_ADVISED:
            yield (
                f'the time step is {1 / limit.ratio:.0%} of the limit set by the {limit.modulus} of "{kind.name}"; '
                f"above {1 / LIMIT_ADVISED:.0%} strongly deformed or crowded cells may become unstable"
            )


def _stiff_contact(setup: BloodSetup) -> Iterator[str]:
    """Yield warnings about contact forces whose stiffness times mobility of two vertices is too large."""
    assert setup.cells is not None
    table, between, wall = setup.case.contact, setup.cells.between, setup.cells.wall
    viscosity = (setup.invariants.tau[0] - 0.5) / 3
    mobility = Mobility(np.full((1, 3), 0.25), setup.case.coupling.delta, viscosity, setup.model.collision)
    moved = float(mobility(np.array([[1.0, 0.0, 0.0]]))[0, 0])
    laws = [("strength", between)]
    if len(setup.vessel.sites.boundary):
        laws.append(("wall_strength" if table.wall_strength is not None else "strength", wall))
    strongest: dict[str, float] = {}
    for key, law in laws:
        product = law.stiffness(0.5 * law.reach) * moved
        if product > CONTACT_ADVISED:
            strongest[key] = min(strongest.get(key, np.inf), law.strength * CONTACT_ADVISED / product)
    for key, strength in strongest.items():
        advised = setup.units.to_si("force", strength)
        yield (
            f"contact.{key}: is so stiff for this time step that cells in contact may become unstable; at most "
            f"{advised:.2g} N is advised"
        )
    if between.morse is not None and (product := between.morse.stiffness * moved) > CONTACT_ADVISED:
        advised = setup.units.to_si("energy", between.morse.depth * CONTACT_ADVISED / product)
        yield (
            "contact.adhesion.depth: is so large for this time step that cells in contact may become unstable; at most "
            f"{advised:.2g} J is advised"
        )


def tau_inside(setup: BloodSetup, contrast: float) -> float:
    """Return the relaxation time inside cells; viscosity is proportional to tau - 1/2 (theory/coupling)."""
    return 0.5 + contrast * (setup.invariants.tau[1] - 0.5)


def _inner_viscosity(setup: BloodSetup, contrast: float) -> Iterator[str]:
    low, high = CONTRAST_CHECKED
    if not low <= contrast <= high:
        yield f"the inner viscosity is {contrast:.3g} times that of the fluid; {low:g} to {high:g} times are validated"
    inside = tau_inside(setup, contrast)
    if inside > TAU_LARGEST_TRT:
        yield (
            f"tau inside cells is {inside:.3g}, above {TAU_LARGEST_TRT:g}: flow inside cells lags by about as many"
            " steps; use a smaller time step"
        )


def refuse_reservoir(setup: BloodSetup) -> None:
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
    vessel, every = open_vessel(setup), "reservoir.every"
    interval, pulse, travel = vessel.interval, vessel.pulse, vessel.travel
    if travel > _FARTHEST:
        yield (
            f"{every}: cells move {travel:.3g} sites between two exchanges at the openings and could pass them "
            f"unnoticed; use at most {max(1, int(interval * _FARTHEST / travel))} steps"
        )
    if pulse is not None and interval > pulse / _PER_PULSE:
        yield (
            f"{every}: the period of the flow is {pulse:.3g} steps, too short for this interval; use at most "
            f"{max(1, int(pulse / _PER_PULSE))} steps"
            if vessel.every is not None
            else f"reservoir: the period of the flow is {pulse:.3g} steps, but cells are exchanged every {interval:g} "
            f"steps; at least {_PER_PULSE * interval:g} steps a period are needed: use a smaller time step"
        )


def _unclear_roles(setup: BloodSetup) -> Iterator[str]:
    """Yield a message for each outlet of the geometry through which blood may enter."""
    roles = {opening.name: opening.role for opening in setup.case.iolet}
    for plane, iolet in zip(setup.vessel.sites.iolets, setup.model.iolets, strict=True):
        enters = isinstance(iolet, VelocityIolet) and speeds(iolet)[1] > 0
        if plane.role == "outlet" and enters and roles[plane.name] is None:
            yield (
                f'iolet["{plane.name}"].role: is missing; blood may enter through it, but the geometry calls it an '
                'outlet, where no cells enter; set role = "inlet" or "outlet"'
            )
