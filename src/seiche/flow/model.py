# SPDX-License-Identifier: BSD-3-Clause
"""Physical model of a flow, in lattice units (dx = dt = 1, cs^2 = 1/3, reference density 1).

The model does not depend on SI units (see `case/`) or devices (see `backend/`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

#: Default pressure rule: accurate and stable at common relaxation times.
DEFAULT_PRESSURE_RULE = "plane"

#: Position of the wall along its links: at half of each link, or at the wall fraction of the link.
WallKind = Literal["bounce-back", "bouzidi"]


@dataclass(frozen=True)
class Newtonian:
    """A fluid of constant kinematic viscosity `viscosity` = (tau - 1/2)/3."""

    viscosity: float

    @property
    def limits(self) -> tuple[float, float]:
        """Return the minimum and maximum viscosity."""
        return self.viscosity, self.viscosity


class _Thinning:
    """A fluid whose viscosity falls from `viscosity_zero` to `viscosity_infinity`."""

    viscosity_zero: float
    viscosity_infinity: float

    @property
    def limits(self) -> tuple[float, float]:
        """Return the viscosities at high shear rate and at rest."""
        return self.viscosity_infinity, self.viscosity_zero


@dataclass(frozen=True)
class CarreauYasuda(_Thinning):
    """Shear-thinning blood, nu(g) = nu_inf + (nu_0 - nu_inf)(1 + (lam g)^a)^((n - 1)/a) at shear rate g (1/step)."""

    viscosity_zero: float
    viscosity_infinity: float
    relaxation_time: float
    a: float
    n: float

    def viscosity(self, shear_rate: float) -> float:
        """Return the kinematic viscosity at `shear_rate` (1/step)."""
        thinning: float = (1.0 + (self.relaxation_time * shear_rate) ** self.a) ** ((self.n - 1.0) / self.a)
        return self.viscosity_infinity + (self.viscosity_zero - self.viscosity_infinity) * thinning


@dataclass(frozen=True)
class Casson(_Thinning):
    """Blood with a yield stress (divided by the density), nu(g) = (sqrt(yield_stress) + sqrt(nu_inf g))^2/g <= nu_0."""

    yield_stress: float
    viscosity_infinity: float
    viscosity_zero: float

    def viscosity(self, shear_rate: float) -> float:
        """Return the kinematic viscosity at `shear_rate` (1/step)."""
        root = math.sqrt(self.yield_stress) + math.sqrt(self.viscosity_infinity * shear_rate)
        return min(root**2 / shear_rate, self.viscosity_zero) if shear_rate > 0 else self.viscosity_zero


@dataclass(frozen=True)
class PowerLaw:
    """A power law, nu(g) = consistency g^(n - 1), with g limited to `min_shear_rate` to `max_shear_rate`."""

    consistency: float
    n: float
    min_shear_rate: float
    max_shear_rate: float

    def viscosity(self, shear_rate: float) -> float:
        """Return the kinematic viscosity at `shear_rate` (1/step)."""
        clamped = min(max(shear_rate, self.min_shear_rate), self.max_shear_rate)
        return float(self.consistency * clamped ** (self.n - 1.0))

    @property
    def limits(self) -> tuple[float, float]:
        """Return the minimum and maximum viscosity."""
        bounds = self.viscosity(self.min_shear_rate), self.viscosity(self.max_shear_rate)
        return min(bounds), max(bounds)


ShearThinning = CarreauYasuda | Casson | PowerLaw
Rheology = Newtonian | ShearThinning


@dataclass(frozen=True)
class Bgk:
    """A single relaxation time; the effective position of a bounce-back wall depends on tau."""


@dataclass(frozen=True)
class Trt:
    """Two relaxation times, (tau+ - 1/2)(tau- - 1/2) = `magic`; at 3/16, a half-way wall is at its exact position."""

    magic: float = 3.0 / 16.0


@dataclass(frozen=True)
class Mrt:
    """Multiple relaxation times: rates of the trace of the stress (`bulk`) and of the other even moments (`even`).

    Rates are between 0 and 2; None stands for the rate of the shear stress. If both are None, this is `Trt`. The bulk
    viscosity is (2/9)(1/bulk - 1/2). The rate of the odd moments follows from `magic`, as in `Trt`.
    """

    bulk: float | None = 1.0
    even: float | None = 1.0
    magic: float = 3.0 / 16.0


@dataclass(frozen=True)
class Regularised:
    """One relaxation time for the stress; higher moments are discarded in every step.

    It is required by moment storage (layout "moments"), since ten numbers then determine the outgoing populations of a
    site. A half-way wall is at its exact position at tau = 7/8, where (tau - 1/2)/2 = 3/16 (theory/flow, eq. 42).
    """


Collision = Bgk | Trt | Mrt | Regularised


@dataclass(frozen=True, eq=False)
class TimeTable:
    """A piecewise linear function of time: `values` at `times` (steps, ascending), both (n,).

    With `repeat` it is periodic; its period is the time between the first and the last row. Otherwise it is constant
    before the first and after the last row.
    """

    times: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]
    repeat: bool = False

    def at(self, time: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the values at `time` (steps), of the same shape."""
        first, last = float(self.times[0]), float(self.times[-1])
        wrapped = first + np.mod(time - first, last - first) if self.repeat and last > first else time
        return np.asarray(np.interp(wrapped, self.times, self.values))


@dataclass(frozen=True, eq=False)
class SiteProfile:
    """Velocity at each site of an opening, relative to the imposed velocity: `coords` (m, 3), `values` (m,)."""

    coords: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]


@dataclass(frozen=True)
class PressureIolet:
    """Imposed density: rho(t) = mean + amplitude cos(2 pi t/period + phase), or that of `table`.

    `scheme` is the name of a rule in `PRESSURE_RULES`; `period` is in steps. During the first `ramp` steps the density
    rises linearly from `ramp_from` to rho(t).
    """

    mean: float = 1.0
    amplitude: float = 0.0
    period: float = 1.0
    phase: float = 0.0
    ramp: float = 0.0
    ramp_from: float = 1.0
    scheme: str = DEFAULT_PRESSURE_RULE
    table: TimeTable | None = None


@dataclass(frozen=True)
class VelocityIolet:
    """Velocity along the inward normal, imposed by Ladd's rule at the midpoint of each link.

    The profile over the radius r/a of the opening is that of developed flow: a parabola for the mean and the Womersley
    profile for every harmonic k = 1, 2 ... of the period. The velocity averaged over the opening is `mean` + sum_k
    Re(harmonics[k-1] exp(2 pi i k t/period)), in sites/step, with `period` in steps. A `table` replaces `mean`. A
    `profile` by site replaces all these profiles and needs no radius. `viscosity` is used for the Womersley number (for
    a shear-thinning fluid, its value at high shear). In the first `ramp` steps all values rise linearly from zero.
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
    """Density from a circuit driven by the outflow Q (theory/flow, eq. 19).

    P = Pc + Rc Q with C dPc/dt + (Pc - Pd)/Rp = Q. The circuit has three elements, or two if Rc is zero. `resistance`
    Rp and `proximal_resistance` Rc are pressures divided by flows (cs^2 rho over sites^3/step); `compliance` C is a
    flow times a time, divided by a pressure. Pd and the initial Pc are given as densities. During the first `ramp`
    steps the density changes linearly from `initial_density` to that of the circuit.
    """

    resistance: float
    compliance: float
    proximal_resistance: float = 0.0
    distal_density: float = 1.0
    initial_density: float = 1.0
    ramp: float = 0.0
    scheme: str = DEFAULT_PRESSURE_RULE


#: A function of wall points (p, 3), in spacings from the coordinate origin of the geometry, that returns flags (p,) of
#: the points inside the patch.
Patch = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.bool_]]


@dataclass(frozen=True)
class MovingWall:
    """A wall that moves tangentially with velocity + rotation x (point - center) at each point of `patch`.

    `velocity` is in sites/step; `rotation` is in radians/step, about `center` (in spacings). Without a patch the whole
    wall moves. On several ranks the patch must be picklable: a module-level function, or a partial of one.
    """

    name: str
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    center: tuple[float, float, float] = (0.0, 0.0, 0.0)
    patch: Patch | None = None


@dataclass(frozen=True)
class Body:
    """A part of the wall on which force and torque are measured; without a patch, the whole wall.

    The torque is about `center` (in spacings). On several ranks the patch must be picklable, as for `MovingWall`.
    """

    name: str
    center: tuple[float, float, float] = (0.0, 0.0, 0.0)
    patch: Patch | None = None


@dataclass(frozen=True)
class Walls:
    """Position of walls along their links, moving walls, and bodies on which forces are measured."""

    kind: WallKind = "bounce-back"
    moving: Sequence[MovingWall] = ()
    bodies: Sequence[Body] = ()


Iolet = PressureIolet | VelocityIolet | WindkesselIolet


@dataclass(frozen=True)
class FlowModel:
    """The complete model of a flow on a given `SiteSet`; `iolets[k]` belongs to `sites.iolets[k]`."""

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
    """Precision of the arithmetic (`compute`) and of stored populations (`storage`).

    Values stored as float16 are scaled differences from the state at rest.
    """

    compute: Literal["float64", "float32"] = "float64"
    storage: Literal["float64", "float32", "float16"] = "float64"
