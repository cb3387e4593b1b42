# SPDX-License-Identifier: BSD-3-Clause
"""Estimates of cells: mesh edges, time step, viscosities, contact stiffness."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from seiche.case.blood.setup import BloodSetup
from seiche.case.flow.estimates import flow_estimates
from seiche.case.flow.limits import MAX_TAU_TRT
from seiche.case.flow.units import LatticeUnits
from seiche.cells.contact import Repulsion
from seiche.cells.mesh import mean_edge
from seiche.cells.model import CellType
from seiche.couple.limits import Mobility
from seiche.couple.suspension import CellsSetup
from seiche.kernels.registry.ibm import SUPPORT
from seiche.solver import Estimate

#: Longest edges (spacings) without leakage, by support of the delta function; 2.1 permits red cells with 162 vertices
#: at a spacing of 0.5 um.
ADVISED_EDGE_LENGTH = {2: 1.3, 3: 1.6, 4: 2.1}
#: Validated range of the ratio of inner to outer viscosity.
VALIDATED_CONTRASTS = (1.0, 10.0)
#: Advised ratio of the maximum time step to the time step. The maximum applies to a single undeformed cell in a fluid
#: with weak sound waves; deformed membranes are stiffer.
ADVISED_STEP_RATIO = 2.0
#: Maximum advised product of mobility and contact stiffness of two vertices at half the reach; a vertex may have
#: several contacts.
ADVISED_CONTACT = 0.25
#: Fraction of the surface viscosity that acts at the highest advised shear rate; frequency of the strain of a
#: tank-treading membrane, divided by the shear rate.
FULL_VISCOSITY, TREADING = 0.95, 0.44
#: Maximum advised relative delay of recovery, which is G divided by the modulus of the spring in series.
MAX_RECOVERY_DELAY = 0.1
#: Maximum relative change of the volume of a cell; three times that of long runs.
ADVISED_VOLUME = 0.01
_BOUNDS = "theory/coupling.md#automatic-checks"
_VISCOSITY = "theory/cells.md#8-surface-viscosity"
_INSIDE = "theory/coupling.md#4-viscosity-inside-cells"
_STEP = "theory/coupling.md#6-largest-stable-time-step"


def blood_estimates(setup: BloodSetup) -> list[Estimate]:
    """Return the estimates of flow and cells before a run."""
    cells = setup.cells
    of_cells = () if cells is None else (*_inside(setup, cells), *_contact(setup, cells), *_types(setup, cells))
    return [*flow_estimates(setup), *of_cells]


def drift_estimates(volume: float, area: float) -> Iterator[Estimate]:
    """Yield the largest relative changes so far of the volume and the area of a cell."""
    yield Estimate(
        name="largest change of the volume of a cell so far",
        value=volume,
        upper_bound=ADVISED_VOLUME,
        effect="fluid leaks through membranes, or their shape is not resolved",
        remedy="use more vertices, a larger penalty (cells.volume) or a smaller time step",
        source=_BOUNDS,
    )
    yield Estimate(name="largest change of the area of a cell so far", value=area)


def _types(setup: BloodSetup, cells: CellsSetup) -> Iterator[Estimate]:
    delta = setup.case.coupling.delta
    for kind, surface, limit in zip(cells.types, cells.surfaces, cells.limits, strict=True):
        extents = np.ptp(surface.vertices, axis=0)
        where = f'cells["{kind.name}"]'
        yield Estimate(name="diameter", value=float(extents.max()), unit="sites", where=where)
        yield Estimate(name="thickness", value=float(extents.min()), unit="sites", where=where)
        yield Estimate(
            name="mean edge",
            value=mean_edge(kind.mesh),
            unit="spacings",
            where=f'cells["{kind.name}"]',
            upper_bound=ADVISED_EDGE_LENGTH[SUPPORT[delta]],
            effect=f"fluid leaks through the membrane with {delta}",
            remedy="use more vertices or a larger spacing",
            source="theory/coupling.md#1-the-immersed-boundary",
        )
        yield from _surface_viscosity(setup, kind)
        yield Estimate(
            name="time step over the limit of the membrane",
            value=1.0 / limit.ratio,
            where=f'cells["{kind.name}"]',
            upper_bound=1.0 / ADVISED_STEP_RATIO,
            effect=f"strongly deformed or crowded cells may become unstable by the {limit.modulus}",
            remedy=f"use a time step below {setup.units.step * limit.ratio / ADVISED_STEP_RATIO:.2g} s",
            source=_STEP,
        )


def _contact(setup: BloodSetup, cells: CellsSetup) -> Iterator[Estimate]:
    """Yield the maximum stiffness of each contact force, times the mobility of two vertices."""
    table = setup.case.contact
    moved = max(_vertex_mobility(setup, contrast) for contrast in {1.0, *cells.contrasts})
    laws = [("strength", cells.between)]
    if len(setup.vessel.sites.boundary):
        laws.append(("wall_strength" if table.wall_strength is not None else "strength", cells.wall))
    stiffest: dict[str, tuple[float, Repulsion]] = {}
    for key, law in laws:
        product = law.stiffness(0.5 * law.reach) * moved
        stiffest[key] = max(stiffest.get(key, (0.0, law)), (product, law), key=lambda entry: entry[0])
    for key, (product, law) in stiffest.items():
        advised = setup.units.to_si("force", law.strength * ADVISED_CONTACT / product) if product else np.inf
        yield _stiffness(f"contact.{key}", product, f"use at most {advised:.2g} N")
    if (morse := cells.between.morse) is not None:
        product = morse.stiffness * moved
        advised = setup.units.to_si("energy", morse.depth * ADVISED_CONTACT / product)
        yield _stiffness("contact.adhesion.depth", product, f"use at most {advised:.2g} J")


def _vertex_mobility(setup: BloodSetup, contrast: float) -> float:
    """Return the mobility of one vertex in a fluid of `contrast` times the viscosity of that outside cells."""
    viscosity = contrast * (setup.invariants.tau[0] - 0.5) / 3
    mobility = Mobility(np.full((1, 3), 0.25), setup.case.coupling.delta, viscosity, setup.model.collision)
    return float(mobility(np.array([[1.0, 0.0, 0.0]]))[0, 0])


def _stiffness(where: str, product: float, remedy: str) -> Estimate:
    return Estimate(
        name="stiffness times mobility",
        value=product,
        where=where,
        upper_bound=ADVISED_CONTACT,
        effect="cells in contact may become unstable at this time step",
        remedy=remedy,
        source=_STEP,
    )


def tau_inside(setup: BloodSetup, contrast: float) -> float:
    """Return the relaxation time inside cells; viscosity is proportional to tau - 1/2 (theory/coupling)."""
    return 0.5 + contrast * (setup.invariants.tau[1] - 0.5)


def _inside(setup: BloodSetup, cells: CellsSetup) -> Iterator[Estimate]:
    low, high = VALIDATED_CONTRASTS
    for contrast in sorted(set(cells.contrasts) - {1.0}):
        names = ", ".join(k.name for k, value in zip(cells.types, cells.contrasts, strict=True) if value == contrast)
        yield Estimate(
            name="inner over outer viscosity",
            value=contrast,
            where=f'cells["{names}"]',
            lower_bound=low,
            upper_bound=high,
            effect="outside the validated range",
            source=_INSIDE,
        )
        yield Estimate(
            name="tau inside cells",
            value=tau_inside(setup, contrast),
            where=f'cells["{names}"]',
            upper_bound=MAX_TAU_TRT,
            effect="flow inside cells lags by about as many steps",
            remedy="use a smaller time step",
            source=_INSIDE,
        )


@dataclass(frozen=True)
class SurfaceViscosity:
    """A surface viscosity in SI units with its spring (theory/cells, section 8).

    `modulus` (N/m) and relaxation `time` (s) are those of the spring. `max_shear_rate` is the shear rate (1/s) up to
    which the fraction `FULL_VISCOSITY` of the viscosity acts. `delay` is the relative increase of the recovery time.
    """

    viscosity: float
    modulus: float
    time: float
    max_shear_rate: float
    delay: float


def viscosity_of_surface(kind: CellType, units: LatticeUnits) -> SurfaceViscosity:
    """Return the surface viscosity of a type in lattice units."""
    model = kind.model
    time = units.to_si("time", model.relaxation)
    return SurfaceViscosity(
        viscosity=units.to_si("surface_viscosity", model.viscosity),
        modulus=units.to_si("surface_modulus", model.spring),
        time=time,
        max_shear_rate=math.sqrt(1 / FULL_VISCOSITY - 1) / (TREADING * time),
        delay=model.law.shear / model.spring,
    )


def _surface_viscosity(setup: BloodSetup, kind: CellType) -> Iterator[Estimate]:
    """Yield the errors due to the surface viscosity of a type, at the highest shear rate and in recovery."""
    if not kind.model.viscosity > 0:
        return
    spring, invariants, where = viscosity_of_surface(kind, setup.units), setup.invariants, f'cells["{kind.name}"]'
    if invariants.velocity_scale:
        rate = 4 * invariants.velocity_scale / invariants.length_scale
        yield Estimate(
            name="surface viscosity lost at the wall",
            value=1 - 1 / (1 + (TREADING * rate * spring.time) ** 2),
            where=where,
            upper_bound=1 - FULL_VISCOSITY,
            effect=f"the spring in series relaxes in {spring.time:.2g} s, too slowly for {rate:.3g} 1/s of shear",
            remedy="use a smaller time step or a smaller relaxation_time",
            source=_VISCOSITY,
        )
    yield Estimate(
        name="relative delay of recovery due to the spring of surface viscosity",
        value=spring.delay,
        where=where,
        upper_bound=MAX_RECOVERY_DELAY,
        effect="cells recover from deformation too slowly",
        remedy="use a smaller time step or a smaller relaxation_time",
        source=_VISCOSITY,
    )
