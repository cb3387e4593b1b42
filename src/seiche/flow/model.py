# SPDX-License-Identifier: BSD-3-Clause
"""What a flow solver is asked to compute, in lattice units (dx = dt = 1, cs^2 = 1/3, reference density 1).

Nothing here knows SI units (that is `case/`) or devices (that is `backend/`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

#: The rule of pressures that name none: accurate and stable at the relaxation times of ordinary cases.
DEFAULT_SCHEME = "plane"

#: How a wall sends populations back: half way along each link, or at the link's own fraction.
WallKind = Literal["bounce-back", "bouzidi"]


@dataclass(frozen=True)
class Newtonian:
    """A fluid of constant kinematic viscosity `viscosity` = (tau - 1/2)/3."""

    viscosity: float

    @property
    def limits(self) -> tuple[float, float]:
        """Return the lowest and the highest viscosity."""
        return self.viscosity, self.viscosity


@dataclass(frozen=True)
class CarreauYasuda:
    """Shear-thinning blood, nu(g) = nu_inf + (nu_0 - nu_inf)(1 + (lam g)^a)^((n - 1)/a), g the shear rate (1/step)."""

    viscosity_zero: float
    viscosity_infinity: float
    relaxation_time: float
    a: float
    n: float

    def viscosity(self, shear_rate: float) -> float:
        """Return the kinematic viscosity at `shear_rate` (1/step)."""
        thinning: float = (1.0 + (self.relaxation_time * shear_rate) ** self.a) ** ((self.n - 1.0) / self.a)
        return self.viscosity_infinity + (self.viscosity_zero - self.viscosity_infinity) * thinning

    @property
    def limits(self) -> tuple[float, float]:
        """Return the viscosities at high shear rate and at rest."""
        return self.viscosity_infinity, self.viscosity_zero


@dataclass(frozen=True)
class Casson:
    """Blood with a yield stress (over the density), nu(g) = (sqrt(yield_stress) + sqrt(nu_inf g))^2/g, at most nu_0."""

    yield_stress: float
    viscosity_infinity: float
    viscosity_zero: float

    def viscosity(self, shear_rate: float) -> float:
        """Return the kinematic viscosity at `shear_rate` (1/step)."""
        root = math.sqrt(self.yield_stress) + math.sqrt(self.viscosity_infinity * shear_rate)
        return min(root**2 / shear_rate, self.viscosity_zero) if shear_rate > 0 else self.viscosity_zero

    @property
    def limits(self) -> tuple[float, float]:
        """Return the viscosities at high shear rate and at rest."""
        return self.viscosity_infinity, self.viscosity_zero


@dataclass(frozen=True)
class PowerLaw:
    """A truncated power law, nu(g) = consistency g^(n - 1), g taken between `shear_lowest` and `shear_highest`."""

    consistency: float
    n: float
    shear_lowest: float
    shear_highest: float

    def viscosity(self, shear_rate: float) -> float:
        """Return the kinematic viscosity at `shear_rate` (1/step)."""
        within = min(max(shear_rate, self.shear_lowest), self.shear_highest)
        return float(self.consistency * within ** (self.n - 1.0))

    @property
    def limits(self) -> tuple[float, float]:
        """Return the lowest and the highest viscosity."""
        ends = self.viscosity(self.shear_lowest), self.viscosity(self.shear_highest)
        return min(ends), max(ends)


ShearThinning = CarreauYasuda | Casson | PowerLaw
Rheology = Newtonian | ShearThinning


@dataclass(frozen=True)
class Bgk:
    """Single relaxation time (the wall of bounce-back then moves with tau)."""


@dataclass(frozen=True)
class Trt:
    """Two relaxation times, (tau+ - 1/2)(tau- - 1/2) = `magic`; 3/16 puts a half-way wall exactly in place."""

    magic: float = 3.0 / 16.0


@dataclass(frozen=True)
class Mrt:
    """Many relaxation times: rates of the trace of the stress (`bulk`) and of the other even moments (`even`).

    Rates lie between 0 and 2, None is the rate of the shear stress; with both None this is `Trt`. The bulk viscosity is
    (2/9)(1/bulk - 1/2). The odd moments have the rate that `magic` gives, as in `Trt`.
    """

    bulk: float | None = 1.0
    even: float | None = 1.0
    magic: float = 3.0 / 16.0


@dataclass(frozen=True)
class Regularised:
    """One relaxation time for the stress; all that is beyond the stress is forgotten in every step.

    The only collision of moment storage (layout "moments"): what leaves a site is known by ten numbers. A half-way wall
    is exactly in place at tau = 7/8, where (tau - 1/2)/2 = 3/16 (theory/flow, eq. 42).
    """


Collision = Bgk | Trt | Mrt | Regularised


@dataclass(frozen=True, eq=False)
class TimeTable:
    """A function of time: `values` at `times` (steps, ascending), both (n,), on straight lines in between.

    With `repeat` the time from the first row to the last one is a period, else the first and the last value hold
    before and after.
    """

    times: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]
    repeat: bool = False

    def at(self, time: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the values at `time` (steps), of the same shape."""
        first, last = float(self.times[0]), float(self.times[-1])
        place = first + np.mod(time - first, last - first) if self.repeat and last > first else time
        return np.asarray(np.interp(place, self.times, self.values))


@dataclass(frozen=True, eq=False)
class SiteProfile:
    """The velocity at each site of an opening over the imposed one: `coords` (m, 3) of sites, `values` (m,)."""

    coords: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]


@dataclass(frozen=True)
class PressureIolet:
    """Density rho(t) = mean + amplitude cos(2 pi t/period + phase), or that of `table`, imposed by a rule.

    `scheme` is its name in `PRESSURE_RULES`, `period` is in steps; `ramp` steps at the start raise the density linearly
    from `ramp_from` to rho(t).
    """

    mean: float = 1.0
    amplitude: float = 0.0
    period: float = 1.0
    phase: float = 0.0
    ramp: float = 0.0
    ramp_from: float = 1.0
    scheme: str = DEFAULT_SCHEME
    table: TimeTable | None = None


@dataclass(frozen=True)
class VelocityIolet:
    """Velocity along the inward normal, imposed by Ladd's rule at the middle of each link.

    The profile over the radius r/a of the opening is that of developed flow: a parabola for the mean and the
    Womersley profile for every harmonic k = 1, 2 ... of the period. The mean over the opening of the velocity is
    `mean` + sum_k Re(harmonics[k-1] exp(2 pi i k t/period)); velocities in sites/step, `period` in steps. A `table`
    stands in place of `mean`, a `profile` site by site in place of all these profiles (and then no radius is needed).
    `viscosity` is the one that enters the Womersley number (for shear-thinning fluid: its high-shear value).
    `ramp` steps at the start raise everything linearly from zero.
    """

    mean: float
    harmonics: Sequence[complex] = ()
    period: float = 1.0
    viscosity: float = 1.0 / 6.0
    ramp: float = 0.0
    table: TimeTable | None = None
    profile: SiteProfile | None = None


@dataclass(frozen=True)
class WindkesselIolet:
    """Density from a circuit that the flow Q out of the vessel drives (theory/flow, eq. 19).

    P = Pc + Rc Q with C dPc/dt + (Pc - Pd)/Rp = Q: three elements, or two when Rc is zero.
    `resistance` Rp and `proximal_resistance` Rc are pressures over flows (cs^2 rho over sites^3/step), `compliance` C
    is a flow times a time over a pressure; Pd and the Pc of the start are given as densities. `ramp` steps at the start
    lead linearly from `initial_density` to what the circuit asks for.
    """

    resistance: float
    compliance: float
    proximal_resistance: float = 0.0
    distal_density: float = 1.0
    initial_density: float = 1.0
    ramp: float = 0.0
    scheme: str = DEFAULT_SCHEME


#: Which places (p, 3) on the wall, in spacings from the geometry's origin of coordinates, belong to a patch: (p,).
Patch = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.bool_]]


@dataclass(frozen=True)
class MovingWall:
    """A part of the wall that moves along itself: velocity + rotation x (place - center) at each place of `patch`.

    `velocity` in sites/step, `rotation` in radians/step about `center` (in spacings). Without a patch the whole wall
    moves. Runs on several ranks need a patch that can be pickled: a function of a module, or a partial of one.
    """

    name: str
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    center: tuple[float, float, float] = (0.0, 0.0, 0.0)
    patch: Patch | None = None


@dataclass(frozen=True)
class Walls:
    """Where walls lie on their links, half way or at the geometry's fractions, and which of them move."""

    kind: WallKind = "bounce-back"
    moving: Sequence[MovingWall] = ()


Iolet = PressureIolet | VelocityIolet | WindkesselIolet


@dataclass(frozen=True)
class FlowModel:
    """Everything that fixes the flow on a given `SiteSet`; `iolets[k]` belongs to `sites.iolets[k]`."""

    rheology: Rheology
    collision: Collision = Trt()
    iolets: Sequence[Iolet] = ()
    body_force: tuple[float, float, float] = (0.0, 0.0, 0.0)
    velocity_set: Literal["D3Q15", "D3Q19", "D3Q27"] = "D3Q19"
    initial_density: float = 1.0
    initial_velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    walls: Walls = Walls()


@dataclass(frozen=True)
class Precision:
    """Arithmetic in `compute`, populations kept in `storage` (float16 is scaled around the rest state)."""

    compute: Literal["float64", "float32"] = "float64"
    storage: Literal["float64", "float32", "float16"] = "float64"
