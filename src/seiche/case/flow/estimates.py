# SPDX-License-Identifier: BSD-3-Clause
"""Estimates of a flow: relaxation time, Mach number and compressibility."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from seiche.case.flow.development import development
from seiche.case.flow.flow_rate_errors import rounding_loss, wall_error
from seiche.case.flow.schema_shapes import GENERATED_SURFACES, Channel, Duct, TubeShape
from seiche.case.flow.setup import FlowSetup
from seiche.case.flow.units import CS2
from seiche.domain.occupancy import SizedSites
from seiche.domain.sites import LINK_VECTORS, LinkKind, SiteSet
from seiche.flow import Mrt, Trt
from seiche.solver import Estimate

#: Maximum advised Mach number; the equilibrium is a low-Mach expansion with an error of Mach^2.
ADVISED_MACH = 0.1
#: Minimum advised relaxation time; below it, short waves are hardly damped.
ADVISED_TAU = 0.51
#: Maximum advised relative change of the density due to the pressures of a case.
ADVISED_DENSITY_CHANGE = 0.1
#: Maximum advised relative drift of mass in 10^5 steps, by storage precision.
ADVISED_DRIFT = {"float64": 1e-6, "float32": 1e-6, "float16": 1e-4}
#: Maximum advised ratio of the actual to the expected maximum velocity; a sound wave at the start may double it.
ADVISED_VELOCITY_RATIO = 2.0
#: Minimum radius of openings (sites) for which pressure rules were validated.
ADVISED_RADIUS = 4.3
#: Length of the tubes, in radii, in which they were validated.
ADVISED_DISTANCE = 4.0
#: Grid Reynolds number at which waves with a length of two sites begin to grow where fluid enters.
ADVISED_GRID_REYNOLDS = 7.0
#: Entrance length of laminar flow, divided by Reynolds number and diameter.
ENTRANCE = 0.05
#: Minimum advised thickness (sites) of the boundary layer of a pulse: a parabola through three sites.
ADVISED_LAYER_THICKNESS = 2.0
#: Maximum advised phase (rad) of sound along the vessel; the relative error of a pressure is half its square.
ADVISED_PHASE = 0.3
#: Length, in radii, of the straight part behind an opening: half that of the tubes, which have two openings.
ADVISED_STRAIGHT_LENGTH = 2.0
_DRIFT_STEPS = 100_000
_BOUNDS = "theory/flow.md#automatic-checks"


def flow_estimates(setup: FlowSetup) -> list[Estimate]:
    """Return the estimates of a flow before a run."""
    return [
        *_lattice(setup),
        *_openings(setup),
        *_inflow(setup),
        *_narrowest(setup),
        *_vessel(setup),
        *_pulse(setup),
    ]


def _lattice(setup: FlowSetup) -> Iterator[Estimate]:
    invariants, step = setup.invariants, setup.units.step
    low, high = invariants.tau
    yield Estimate(
        name="tau" if low == high else "tau at high shear rate",
        value=low,
        lower_bound=ADVISED_TAU,
        effect="the run may become unstable",
        remedy="use a larger time step or a smaller spacing (tau = 1/2 + 3 nu dt/dx^2)",
        source=_BOUNDS,
    )
    if high > low:
        yield Estimate(name="tau at rest", value=high)
    if invariants.mach is not None:
        yield mach_estimate("Mach number", invariants.mach, step)
    if invariants.driven_velocity is not None:
        yield _driven(setup, invariants.driven_velocity)
    yield Estimate(
        name="relative density change due to pressures",
        value=invariants.density[1] - invariants.density[0],
        upper_bound=ADVISED_DENSITY_CHANGE,
        effect="the flow is not nearly incompressible",
        remedy="use a smaller time step",
        source=_BOUNDS,
    )


def _openings(setup: FlowSetup) -> Iterator[Estimate]:
    """Yield the radius of the narrowest opening and the smallest distance between two openings."""
    spacing, planes = setup.units.spacing, [plane for plane in setup.vessel.sites.iolets if plane.radius]
    radii = {f'iolet["{plane.name}"]': (plane.radius or 0.0) / spacing for plane in planes}
    if radii:
        yield Estimate.lowest(
            radii,
            name="radius",
            unit="sites",
            lower_bound=ADVISED_RADIUS,
            effect="pressures and flow rates are not validated for narrower openings",
            remedy=f"use a spacing below {min(radii.values()) * spacing / ADVISED_RADIUS:.2g} m",
            source=_BOUNDS,
        )
    ratios = {
        f'iolet["{b.name}"] and iolet["{a.name}"]': math.dist(a.center, b.center) / max(a.radius or 0, b.radius or 0)
        for k, a in enumerate(planes)
        for b in planes[:k]
    }
    if ratios:
        yield Estimate.lowest(
            ratios,
            name="distance over radius",
            lower_bound=ADVISED_DISTANCE,
            effect="each opening disturbs the flow at the other",
            remedy="extend the vessel at the openings",
            source=_BOUNDS,
        )


def _inflow(setup: FlowSetup) -> Iterator[Estimate]:
    """Yield the grid Reynolds number, which limits the velocity at openings if odd moments decay slowly."""
    invariants = setup.invariants
    if not setup.model.iolets or not isinstance(setup.model.collision, Trt | Mrt) or invariants.mach is None:
        return
    value = invariants.mach * CS2**0.5 / ((invariants.tau[0] - 0.5) * CS2)
    yield Estimate(
        name="grid Reynolds number u dx/nu, with openings",
        value=value,
        upper_bound=ADVISED_GRID_REYNOLDS,
        effect="the run may become unstable where fluid enters",
        remedy=f"use a spacing below {setup.units.spacing * ADVISED_GRID_REYNOLDS / value:.2g} m" if value > 0 else "",
        source=_BOUNDS,
    )


def _narrowest(setup: FlowSetup) -> Iterator[Estimate]:
    """Yield the number of sites across the narrowest part of a vessel, and the straight part behind its openings."""
    shape, spacing = setup.case.geometry.shape, setup.units.spacing
    if shape is None or isinstance(shape, GENERATED_SURFACES):
        yield from _passages(setup)
        return
    if isinstance(shape, TubeShape):
        width = 2.0 * shape.radius
    elif isinstance(shape, Duct):
        width = shape.width if shape.plates else min(shape.width, shape.height)
    elif isinstance(shape, Channel):
        width = shape.height
    else:
        return
    yield Estimate(
        name="narrowest width",
        value=width / spacing,
        unit="sites",
        lower_bound=2.0 * ADVISED_RADIUS if isinstance(shape, TubeShape) else None,
        effect="narrow parts of the vessel are not resolved",
        remedy=f"use a spacing below {width / (2.0 * ADVISED_RADIUS):.2g} m",
        source=_BOUNDS,
    )
    if isinstance(shape, TubeShape):
        yield wall_error(setup, 0.5 * width / spacing)


def _passages(setup: FlowSetup) -> Iterator[Estimate]:
    """Yield the narrowest passage between openings, and the straight part behind the opening with the shortest one."""
    passages = setup.vessel.passages
    if passages is None:
        return
    if (passage := passages.narrowest()) is not None:
        coordinates = ", ".join(f"{1e3 * c:.3g}" for c in passage.position)
        yield Estimate(
            name="narrowest width between openings",
            value=passage.width / setup.units.spacing,
            unit="sites",
            where=f"near ({coordinates}) mm",
            lower_bound=2.0 * ADVISED_RADIUS,
            effect="narrow parts of the vessel are not resolved",
            remedy=f"use a spacing below {passage.width / (2.0 * ADVISED_RADIUS):.2g} m",
            source=_BOUNDS,
        )
        yield wall_error(setup, 0.5 * passage.width / setup.units.spacing)
    planes = setup.vessel.sites.iolets
    lengths = {f'iolet["{plane.name}"]': passages.straight(number) for number, plane in enumerate(planes)}
    known = {where: length for where, length in lengths.items() if length is not None}
    if known:
        yield Estimate.lowest(
            known,
            name="radii to the next bend or branch",
            lower_bound=ADVISED_STRAIGHT_LENGTH,
            effect="it disturbs the pressure and the profile of the opening",
            remedy="extend the vessel straight at the opening",
            source=_BOUNDS,
        )


def _vessel(setup: FlowSetup) -> Iterator[Estimate]:
    """Yield the hydraulic diameter and the length over which a flow develops."""
    sites, invariants = setup.vessel.sites, setup.invariants
    area = sites.area if isinstance(sites, SizedSites) else _wall_area(sites)
    if area:
        yield Estimate(
            name="hydraulic diameter, 4 volume/area",
            value=4.0 * len(sites) / area,
            unit="sites",
            lower_bound=2.0 * ADVISED_RADIUS,
            effect="narrow parts of the vessel are not resolved",
            remedy="use a smaller spacing",
            source=_BOUNDS,
        )
        yield from rounding_loss(setup, 2.0 * len(sites) / area)
    yield from development(
        setup, 2.0 * len(sites) / area if area else 0.5 * invariants.length_scale / setup.units.spacing
    )
    if invariants.reynolds and len(sites.iolets) > 1:
        reach = max(math.dist(a.center, b.center) for a in sites.iolets for b in sites.iolets)
        if reach > 0.0:
            yield Estimate(
                name="entrance length 0.05 Re D over distance between openings",
                value=ENTRANCE * invariants.reynolds * invariants.length_scale / reach,
                upper_bound=1.0,
                effect="the flow does not reach a Poiseuille profile",
                remedy="extend the vessel or compare with a developing flow",
                source=_BOUNDS,
            )


def _wall_area(sites: SiteSet) -> float:
    """Return the wall area (spacings^2); a plane with normal n cuts |n_x| + |n_y| + |n_z| axial links per unit area."""
    axial = np.abs(LINK_VECTORS).sum(axis=1) == 1
    links = (sites.link_kind[:, axial] == LinkKind.WALL).sum(axis=1)
    cuts = np.abs(sites.wall_normal).sum(axis=1)
    return float((links / np.where(cuts >= 1.0, cuts, 1.5)).sum())  # without a normal, the mean over all directions


def _pulse(setup: FlowSetup) -> Iterator[Estimate]:
    """Yield the resolution of a pulsating flow in space and time."""
    invariants, units, period = setup.invariants, setup.units, setup.period
    if period is None or not invariants.womersley:
        return
    layer = 0.5 * invariants.length_scale / invariants.womersley / units.spacing
    yield Estimate(
        name="thickness of the oscillating boundary layer",
        value=layer,
        unit="sites",
        lower_bound=ADVISED_LAYER_THICKNESS,
        effect="the wall shear stress of the pulse is not resolved",
        remedy=f"use a spacing below {units.spacing * layer / ADVISED_LAYER_THICKNESS:.2g} m",
        source=_BOUNDS,
    )
    length = max(setup.vessel.sites.shape) * units.spacing
    phase = 2.0 * math.pi * length / period / (units.scale("velocity") * CS2**0.5)
    yield Estimate(
        name="phase of the pulse along the vessel at the lattice speed of sound",
        value=phase,
        unit="rad",
        upper_bound=ADVISED_PHASE,
        effect="the pulse arrives late, because the lattice fluid is compressible",
        remedy=f"use a time step below {units.step * ADVISED_PHASE / phase:.2g} s",
        source=_BOUNDS,
    )


def _driven(setup: FlowSetup, velocity: float) -> Estimate:
    """Return the estimate for the `velocity` (m/s) driven by forces and pressures, if velocity_scale is given."""
    step = setup.units.step
    mach = setup.units.to_lattice("velocity", velocity) / CS2**0.5
    smaller = f", or a time step below {step * ADVISED_MACH / mach:.2g} s" if mach > 0 else ""
    return Estimate(
        name="Mach number of developed flow driven by forces and pressures",
        value=mach,
        upper_bound=ADVISED_MACH,
        effect=f"they may drive {velocity:.3g} m/s, not lattice.velocity_scale, and end the run",
        remedy=f"check their units; use a smaller force or pressure difference{smaller}",
        source=_BOUNDS,
    )


def velocity_ratio_estimate(setup: FlowSetup, mach: float) -> Iterator[Estimate]:
    """Yield the ratio of the largest velocity of a run, with Mach number `mach`, to that of the check."""
    expected = setup.invariants.mach
    if expected:
        yield Estimate(
            name="largest velocity so far, relative to that of the check",
            value=mach / expected,
            upper_bound=ADVISED_VELOCITY_RATIO,
            effect="the Mach and Reynolds numbers of the check do not hold",
            remedy="check forces, pressures and their units, and set lattice.velocity_scale",
            source=_BOUNDS,
        )


def mach_estimate(name: str, mach: float, step: float) -> Estimate:
    """Return the estimate for a Mach number that occurs with a time step of `step` s."""
    return Estimate(
        name=name,
        value=mach,
        upper_bound=ADVISED_MACH,
        effect="errors are of order Mach^2",
        remedy=f"use a time step below {step * ADVISED_MACH / mach:.2g} s" if mach > 0 else "",
        source=_BOUNDS,
    )


def mass_estimate(setup: FlowSetup, masses: Sequence[float], steps: int) -> Iterator[Estimate]:
    """Yield the relative drift of the `masses` (kg) of a vessel without openings after a number of steps."""
    if setup.case.iolet or len(masses) < 2:
        return
    storage = setup.precision.storage
    yield Estimate(
        name="relative drift of mass so far",
        value=abs(masses[-1] / masses[0] - 1.0),
        upper_bound=ADVISED_DRIFT[storage] * max(1.0, steps / _DRIFT_STEPS),
        effect="mass is not conserved",
        remedy="use a wider storage precision" if storage != "float64" else "use a smaller time step",
        source=_BOUNDS,
    )
