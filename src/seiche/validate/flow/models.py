# SPDX-License-Identifier: BSD-3-Clause
"""Velocity sets, collisions, viscosity laws and site forces other than the defaults, against exact solutions."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from seiche.domain import shapes
from seiche.flow.model import Casson, Collision, FlowModel, Mrt, Newtonian, PowerLaw, ShearThinning, Trt
from seiche.flow.state import site_state
from seiche.flow.velocity_set import VELOCITY_SETS
from seiche.report.figures import convergence_figure, observed_order
from seiche.validate.check import Check, Setting, positions, relative_error, velocity
from seiche.validate.flow.decay import shear_wave_error
from seiche.validate.flow.steady import convergence_by_radius, plates_plot, plates_profile, settled, shifted_pipe

_TRT = "Ginzburg, Verhaeghe, d'Humieres 2008, Commun. Comput. Phys. 3 427"
_MRT = "d'Humieres et al. 2002, doi:10.1098/rsta.2001.0955"
_SOUND = "Landau, Lifshitz, Fluid Mechanics, section 79"
_CASSON = "Casson fluid; quadrature"
_KOLMOGOROV = "Meshalkin, Sinai 1961, J. Appl. Math. Mech. 25 1700"

#: Names and collision operators of the checks.
_COLLISIONS: tuple[tuple[str, Collision], ...] = (("TRT", Trt()), ("MRT", Mrt(bulk=1.2, even=1.4)))


def _newtonian(viscosity: float, collision: Collision, **options: Any) -> FlowModel:
    return FlowModel(Newtonian(viscosity), collision, **options)


def shear_waves(setting: Setting) -> list[Check]:
    """Check the effective viscosity of each velocity set and collision, from the decay of u_y = sin(k x)."""
    checks = []
    for name, (collision_name, collision) in product(VELOCITY_SETS, _COLLISIONS):
        max_error = shear_wave_error(setting, partial(_newtonian, collision=collision, velocity_set=name))
        checks.append(
            Check(f"{name}, {collision_name}: error of the viscosity, worst tau", max_error, 1e-3, reference=_MRT)
        )
    return checks


def sound_waves(setting: Setting) -> list[Check]:
    """Check the decay exp(-k^2 (4/3 nu + nu_bulk) t/2) of a sound wave, with nu_bulk = (2/9)(1/omega_b - 1/2)."""
    size, viscosity, max_error = (64 if setting.quick else 128), 0.02, 0.0
    k = 2 * np.pi / size
    sites = shapes.box((size, 1, 1))
    wave = np.exp(1j * k * positions(sites)[:, 0])
    for bulk in (0.6, 1.0, 1.6):
        model = FlowModel(Newtonian(viscosity), Mrt(bulk=bulk, even=1.0))
        solver = setting.solver(sites, model)
        speed = np.zeros((size, 3))
        speed[:, 0] = 1e-6 * wave.real
        start = VELOCITY_SETS["D3Q19"].equilibrium(np.sqrt(3.0) * speed[:, 0], speed)
        solver.set_state(site_state(solver, {"populations": start}))
        period = size * np.sqrt(3.0)  # not an integer: use several periods
        steps, amplitudes = round(4 * period), []
        for _ in range(2):
            solver.advance(steps)
            amplitudes.append(abs(solver.fields(["velocity"])["velocity"][:, 0] @ wave.conj()))
        decay = np.log(amplitudes[0] / amplitudes[1]) / steps
        exact = 0.5 * k**2 * (4 / 3 * viscosity + 2 / 9 * (1 / bulk - 0.5))
        max_error = max(max_error, abs(decay / exact - 1))
    return [Check("sound, MRT: error of its decay, worst bulk rate", max_error, 1e-2, reference=_SOUND)]


def plane_channels(setting: Setting) -> list[Check]:
    """Check that half-way walls have no slip at 3/16 for every velocity set and collision, in slow flow."""
    height, force, checks = (9 if setting.quick else 32), 1e-10, []
    sites = shapes.channel(float(height), 1.0, 1.0, 1.0)
    z = positions(sites)[:, 2]
    for name, (collision_name, collision) in product(VELOCITY_SETS, _COLLISIONS):
        error = 0.0
        for tau in (0.6, 3.0):
            viscosity = (tau - 0.5) / 3
            model = _newtonian(viscosity, collision, body_force=(force, 0.0, 0.0), velocity_set=name)
            u = settled(setting, sites, model, np.pi**2 * viscosity / height**2)
            error = max(error, relative_error(u, 0.5 * force / viscosity * z * (height - z)))
        checks.append(Check(f"plane channel, {name}, {collision_name} 3/16: parabola", error, 1e-12, reference=_TRT))
    return checks


def _between_plates(
    setting: Setting, name: str, fluid_of: dict[int, tuple[ShearThinning, float]], reference: str, bound: float
) -> list[Check]:
    """Compare fluids between plates with the quadrature of their law; `fluid_of` maps heights to fluid and force."""
    errors = []
    for height, (fluid, force) in fluid_of.items():
        sites = shapes.channel(float(height), 1.0, 1.0, 1.0)
        solver = setting.solver(sites, FlowModel(fluid, body_force=(force, 0.0, 0.0)))
        solver.advance(int(40 * height**2))
        z, u = positions(sites)[:, 2], velocity(solver)
        errors.append(relative_error(u, plates_profile(fluid, force, float(height), z)))
    heights = list(fluid_of)
    fluid, force = fluid_of[heights[-1]]
    plot, finest = plates_plot(fluid, force, heights[-1], (z, u)), f"{name} between plates, {heights[-1]} sites"
    return [
        Check(f"{finest}: velocity", errors[-1], bound, reference=reference, plot=plot),
        Check(f"{name} between plates: order", observed_order(heights, errors), 1.6, "above", reference=reference),
    ]


def casson_channel(setting: Setting) -> list[Check]:
    """Check human blood with a yield stress: an almost rigid core, and shear at the walls."""
    fluids: dict[int, tuple[ShearThinning, float]] = {}
    for height in (8, 16, 32) if setting.quick else (8, 16, 32, 64):
        scale = 16 / height  # diffusive scaling gives the same flow on every lattice
        fluids[height] = Casson(1e-4 * scale**2, 0.035, 1.6), 1e-4 * scale**3
    return _between_plates(setting, "Casson blood", fluids, _CASSON, 5e-3 if setting.quick else 2e-3)


def power_law_channel(setting: Setting) -> list[Check]:
    """Check the profile u ~ 1 - |2 z/H - 1|^(1 + 1/n) at shear rates within the limits of the law."""
    fluids: dict[int, tuple[ShearThinning, float]] = {}
    n = 0.5
    for height in (8, 16, 32) if setting.quick else (8, 16, 32, 64):
        scale = 16 / height
        shear = 1e-3 * scale**2  # at the wall
        consistency = 0.1 * shear ** (1 - n)
        force = 2 * consistency * shear**n / height
        fluids[height] = PowerLaw(consistency, n, 1e-2 * shear, 1e2 * shear), force
    checks = _between_plates(setting, "power law", fluids, "quadrature", 5e-3 if setting.quick else 2e-3)
    height, (fluid, force) = height, fluids[height]
    z = np.linspace(0.0, height, 101)
    shape = 1 - np.abs(2 * z / height - 1) ** (1 + 1 / n)
    profile = plates_profile(fluid, force, float(height), z)
    error = relative_error(profile / profile.max(), shape)
    return [*checks, Check("power law: quadrature and closed form", error, 1e-3, reference="closed form")]


def power_law_pipe(setting: Setting) -> list[Check]:
    """Check u = n/(n + 1) (g/2K)^(1/n) (R^(1 + 1/n) - r^(1 + 1/n)) in a pipe, averaging errors over axis positions."""
    n, errors, random = 0.5, [], np.random.default_rng(1)
    radii = (4.3, 6.2, 8.7, 12.4) if setting.quick else (4.3, 6.2, 8.7, 12.4, 17.6, 24.8)
    for radius in radii:
        shear = 0.05 / radius**2  # at the wall
        consistency = 0.1 * shear ** (1 - n)
        force = 2 * consistency * shear**n / radius
        fluid = PowerLaw(consistency, n, 1e-2 * shear, 1e2 * shear)
        model, samples = FlowModel(fluid, body_force=(force, 0.0, 0.0)), []
        for y, z in random.uniform(0, 1, (4 if setting.quick else 8, 2)):
            sites = shifted_pipe(radius, y, z)
            solver = setting.solver(sites, model)
            solver.advance(int(40 * radius**2))
            points = positions(sites)
            r = np.hypot(points[:, 1] - y, points[:, 2] - z)
            scale = n / (n + 1) * (0.5 * force / consistency) ** (1 / n)
            exact = scale * (radius ** (1 + 1 / n) - np.minimum(r, radius) ** (1 + 1 / n))
            samples.append(relative_error(velocity(solver), exact))
        errors.append(float(np.mean(samples)))
    plot = partial(convergence_by_radius, sizes=radii, errors={"velocity": errors}, order=1.0)
    order = observed_order(radii, errors)
    bound, reference = (0.05 if setting.quick else 0.03), "closed form"
    return [
        Check("power-law pipe: order of the velocity", order, 0.9, "above", reference=reference, plot=plot),
        Check(f"power-law pipe, radius {radii[-1]:g}: error of the velocity", errors[-1], bound, reference=reference),
    ]


def kolmogorov_flow(setting: Setting) -> list[Check]:
    """Check the flow u = g/(nu k^2) sin(k z) that a site force g sin(k z) drives."""
    sizes, errors = (8, 16, 32) if setting.quick else (16, 32, 64, 128), []
    viscosity = 0.1
    for size in sizes:
        k = 2 * np.pi / size
        sites = shapes.box((1, 1, size))
        solver = setting.solver(sites, FlowModel(Newtonian(viscosity)))
        wave = np.sin(k * positions(sites)[:, 2])
        force = np.zeros((size, 3))
        force[:, 0] = 1e-3 * viscosity * k**2 * wave
        solver.set_force(force[solver.owned])
        solver.advance(int(30 / (viscosity * k**2)))
        errors.append(relative_error(velocity(solver), 1e-3 * wave))
    plot = partial(convergence_figure, sizes=sizes, errors={"velocity": errors}, order=2.0)
    order = observed_order(sizes, errors)
    return [
        Check("Kolmogorov flow: order", order, 1.9, "above", reference=_KOLMOGOROV, plot=plot),
        Check(f"Kolmogorov flow, {sizes[-1]} sites: velocity", errors[-1], 5e-3, reference=_KOLMOGOROV),
    ]
