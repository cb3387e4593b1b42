# SPDX-License-Identifier: BSD-3-Clause
"""Steady force-driven flow along straight walls: plane channel, duct and pipe, and shear-thinning blood."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from seiche.domain import shapes
from seiche.domain.sites import SiteSet
from seiche.flow.model import Bgk, CarreauYasuda, Collision, FlowModel, Newtonian, ShearThinning, Trt
from seiche.report.figures import convergence_figure, observed_order, profile_figure
from seiche.validate.check import Check, Floats, Setting, positions, relative_error, velocity

#: Function that plots errors against the tube radius.
convergence_by_radius = partial(convergence_figure, x_label="radius (sites)")
_TRT = "Ginzburg, Verhaeghe, d'Humieres 2008, Commun. Comput. Phys. 3 427"
_GUO = "Guo, Zheng, Shi 2002, doi:10.1103/PhysRevE.65.046308"
_WHITE = "White, Viscous Fluid Flow, section 3-3.3"
_CARREAU = "Yasuda, Armstrong, Cohen 1981, doi:10.1007/BF01513059"
#: Body force: small enough for compressibility to be negligible, large compared with rounding of the populations.
_FORCE = 1e-6


def settled(setting: Setting, sites: SiteSet, model: FlowModel, decay_rate: float) -> Floats:
    """Return the steady velocity, after the slowest mode, exp(-slowest t), has decayed by 17 decades."""
    solver = setting.solver(sites, model)
    solver.advance(int(np.log(1e17) / decay_rate) + 20)
    return velocity(solver)


def plane_channel(setting: Setting) -> list[Check]:
    """Check half-way walls: no slip for TRT at 3/16 and every tau; slip (g/2 nu)(4/3 (tau - 1/2)^2 - 1/4) for BGK."""
    height = 9 if setting.quick else 32
    sites = shapes.channel(float(height), 1.0, 1.0, 1.0)
    z = positions(sites)[:, 2]
    exact_error, slip_error = 0.0, 0.0
    measured = {}
    for tau in (0.6, 1.0, 3.0):
        viscosity = (tau - 0.5) / 3
        parabola = 0.5 * _FORCE / viscosity * z * (height - z)
        for collision in (Trt(), Bgk()):
            model = FlowModel(Newtonian(viscosity), collision, body_force=(_FORCE, 0.0, 0.0))
            u = settled(setting, sites, model, np.pi**2 * viscosity / height**2)
            if isinstance(collision, Trt):
                exact_error = max(exact_error, relative_error(u, parabola))
                measured[f"tau = {tau:g}"] = (z, u / parabola.max())
            else:
                slip = 0.5 * _FORCE / viscosity * (4 / 3 * (tau - 0.5) ** 2 - 0.25)
                slip_error = max(slip_error, relative_error(u, parabola + slip))
    line = np.linspace(0.0, height, 200)
    plot = partial(
        profile_figure,
        exact=(line, 4 * line * (height - line) / height**2),
        measured=measured,
        x_label="distance from the wall (sites)",
        y_label="velocity over its maximum",
    )
    return [
        Check("plane channel, TRT 3/16: parabola", exact_error, 1e-12, reference=_TRT, plot=plot),
        Check("plane channel, BGK: slip of theory", slip_error, 1e-12, reference=_TRT),
    ]


def square_duct_ratio() -> float:
    """Return u_max/u_mean of a square duct from its Fourier series (2.0962)."""
    k = np.arange(1, 400, 2)
    sign = (-1.0) ** ((k - 1) // 2)
    maximum = np.sum(sign / k**3 * (1 - 1 / np.cosh(np.minimum(0.5 * k * np.pi, 700))))
    mean = np.pi**3 / 48 * (1 - 192 / np.pi**5 * np.sum(np.tanh(0.5 * k * np.pi) / k**5))
    return float(maximum / mean)


def square_duct(setting: Setting) -> list[Check]:
    """Check half-way walls: second order, and a ratio of maximum to mean velocity of 2.0962."""
    edges = (9, 15, 25) if setting.quick else (9, 17, 33, 65)
    exact, errors, ratio = square_duct_ratio(), [], 0.0
    for edge in edges:
        model = FlowModel(Newtonian(0.5), body_force=(_FORCE, 0.0, 0.0))
        sites = shapes.duct(float(edge), float(edge), 1.0, 1.0)
        u = settled(setting, sites, model, 2 * np.pi**2 * 0.5 / edge**2)
        ratio = float(u.max() / u.mean())
        errors.append(abs(ratio / exact - 1))
    order = observed_order(edges, errors)
    plot = partial(
        convergence_figure, sizes=edges, errors={"square duct": errors}, order=2.0, x_label="sites along the edge"
    )
    bound = 5e-3 if setting.quick else 1e-3
    return [
        Check("square duct: error of u_max/u_mean = 2.0962", errors[-1], bound, reference=_WHITE),
        Check("square duct: order of convergence", order, 1.8, "above", reference=_WHITE, plot=plot),
    ]


def shifted_pipe(radius: float, y: float, z: float, length: float = 1.0) -> SiteSet:
    """Return a periodic segment of a pipe along x with its axis through (y, z)."""

    def distance(points: Floats) -> Floats:
        return np.asarray(np.hypot(points[:, 1] - y, points[:, 2] - z) - radius)

    low, high = (0.0, y - radius, z - radius), (length, y + radius, z + radius)
    return shapes.sites_from_distance(distance, low, high, 1.0, periodic=(True, False, False))


def round_pipe(setting: Setting) -> list[Check]:
    """Check first-order accuracy in a staircase pipe, averaging errors over axis positions because of their scatter."""
    radii = (4.3, 6.2, 8.7, 12.4, 17.6) if setting.quick else (4.3, 6.2, 8.7, 12.4, 17.6, 24.8, 35.1, 49.6)
    random = np.random.default_rng(1)
    profile, flow = [], []
    for radius in radii:
        model = FlowModel(Newtonian(1.0), body_force=(_FORCE, 0.0, 0.0))
        errors = []
        for y, z in random.uniform(0, 1, (6 if setting.quick else 12, 2)):
            sites = shifted_pipe(radius, y, z)
            u = settled(setting, sites, model, 5.783 / radius**2)
            x = positions(sites)
            exact = 0.25 * _FORCE * (radius**2 - (x[:, 1] - y) ** 2 - (x[:, 2] - z) ** 2)
            rate = u.sum() / (np.pi * radius**4 * _FORCE / 8)
            errors.append((relative_error(u, exact), abs(rate - 1)))
        profile.append(float(np.mean([error for error, _ in errors])))
        flow.append(float(np.mean([error for _, error in errors])))
    plot = partial(convergence_by_radius, sizes=radii, errors={"velocity": profile, "flow rate": flow}, order=1.0)
    reference = "Hagen-Poiseuille; " + _TRT
    order = observed_order(radii, profile)
    return [
        Check("pipe, bounce-back: order of the velocity", order, 0.9, "above", reference=reference, plot=plot),
        Check("pipe, bounce-back: order of the flow rate", observed_order(radii, flow), sense="recorded"),
        Check(f"pipe, radius {radii[-1]:g}: error of the velocity", profile[-1], 0.03, reference=reference),
    ]


def reynolds_only(setting: Setting) -> list[Check]:
    """Check that, for a fixed magic number, flow in a staircase pipe depends only on the Reynolds number, not on tau.

    The forces give the same u/nu for every tau, and velocities for which compressibility is negligible.
    """
    sites = shifted_pipe(6.2 if setting.quick else 12.4, 0.3, 0.1)
    size = 0.5 * sites.shape[1]
    taus = (0.6, 1.1, 3.0)

    def scaled(collision: Collision) -> list[Floats]:
        flows = []
        for tau in taus:
            viscosity = (tau - 0.5) / 3
            model = FlowModel(Newtonian(viscosity), collision, body_force=(1e-8 * viscosity**2, 0.0, 0.0))
            flows.append(settled(setting, sites, model, 5.783 * viscosity / size**2) / viscosity)
        return flows

    trt, bgk = scaled(Trt()), scaled(Bgk())
    spread = max(relative_error(u, trt[0]) for u in trt)
    bgk_change = max(relative_error(u, bgk[0]) for u in bgk)
    return [
        Check("staircase pipe, TRT: change with tau", spread, 1e-11, reference=_TRT),
        Check("staircase pipe, BGK: change with tau", bgk_change, sense="recorded", reference=_TRT),
    ]


def plates_profile(fluid: ShearThinning, force: float, height: float, z: Floats) -> Floats:
    """Return the velocity of a shear-thinning fluid between plates at 0 and `height`, by quadrature."""
    from scipy.integrate import cumulative_simpson
    from scipy.optimize import brentq

    def shear(stress: float) -> float:
        max_rate = 1.01 * stress / fluid.limits[0] + 1e-30
        return float(brentq(lambda g: fluid.viscosity(g) * g - stress, 0.0, max_rate, xtol=1e-20, rtol=1e-14))

    fine = np.linspace(0.0, 0.5 * height, 4001)
    rates = np.array([shear(force * (0.5 * height - distance)) for distance in fine])
    profile = cumulative_simpson(rates, x=fine, initial=0.0)
    return np.asarray(np.interp(np.minimum(z, height - z), fine, profile))


def plates_plot(
    fluid: ShearThinning, force: float, height: int, measured: tuple[Floats, Floats]
) -> Callable[[Path], None]:
    """Return a function that plots a `measured` profile (positions, velocities) and the one obtained by quadrature."""
    line = np.linspace(0.0, height, 200)
    return partial(
        profile_figure,
        exact=(line, plates_profile(fluid, force, float(height), line)),
        measured={f"{height} sites": measured},
        x_label="distance from the wall (sites)",
        y_label="velocity (sites/step)",
        exact_label="quadrature",
    )


def blood_channel(setting: Setting) -> list[Check]:
    """Check human blood between plates at shear rates at which its viscosity decreases by a factor of ten."""
    heights = (8, 16) if setting.quick else (8, 16, 32, 64)
    errors, viscosity_error = [], 0.0
    for height in heights:
        # Diffusive scaling gives the same flow on every lattice; lambda times the wall shear rate is about 90.
        scale = 16 / height
        fluid = CarreauYasuda(1.6, 0.035, 5e4 / scale**2, 0.64, 0.2128)
        force = 7.5e-5 * scale**3
        sites = shapes.channel(float(height), 1.0, 1.0, 1.0)
        solver = setting.solver(sites, FlowModel(fluid, body_force=(force, 0.0, 0.0)))
        solver.advance(int(80 * height**2))
        z, u = positions(sites)[:, 2], velocity(solver)
        exact = plates_profile(fluid, force, float(height), z)
        errors.append(relative_error(u, exact))
        fields = solver.fields(["shear_rate", "viscosity"])
        formula = np.array([fluid.viscosity(float(rate)) for rate in fields["shear_rate"]])
        viscosity_error = max(viscosity_error, float(np.abs(fields["viscosity"] / formula - 1).max()))
    plot, bound = plates_plot(fluid, force, heights[-1], (z, u)), 1e-2 if setting.quick else 1e-3
    name, reference = f"blood between plates, {heights[-1]} sites: velocity", _CARREAU + "; quadrature"
    return [
        Check(name, errors[-1], bound, reference=reference, plot=plot),
        Check("blood between plates: viscosity for the local shear rate", viscosity_error, 1e-9, reference=_CARREAU),
        Check("blood between plates: order", observed_order(heights, errors), 1.6, "above", reference=_CARREAU),
    ]
