# SPDX-License-Identifier: BSD-3-Clause
"""The regularised collision in moment storage: exact solutions, conservation, and equality with stored populations."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from seiche.backend import parse_device
from seiche.domain import shapes
from seiche.flow.model import CarreauYasuda, FlowModel, Newtonian, PressureIolet, Regularised, VelocityIolet
from seiche.flow.solver import FlowSolver
from seiche.report.figures import convergence_figure, observed_order
from seiche.validate.check import Check, Setting, positions, relative_error, velocity
from seiche.validate.flow.conservation import imbalance, mass_drifts
from seiche.validate.flow.decay import shear_wave_error, taylor_green_errors
from seiche.validate.flow.equality import combined_case, different
from seiche.validate.flow.steady import convergence_by_radius, plates_plot, plates_profile, shifted_pipe

_LATT = "Latt, Chopard 2006, doi:10.1016/j.matcom.2006.05.017"
_TAYLOR = "Taylor, Green 1937, doi:10.1098/rspa.1937.0036"
_TRT = "Ginzburg, Verhaeghe, d'Humieres 2008, Commun. Comput. Phys. 3 427"
_CARREAU = "Yasuda, Armstrong, Cohen 1981, doi:10.1007/BF01513059"
#: Tile edge, of which the periods are multiples.
_TILE = 8
_FORCE = 1e-6


def _solver(setting: Setting, *arguments: object, **options: object) -> FlowSolver:
    return setting.solver(*arguments, layout="moments", **options)  # type: ignore[arg-type]


def decay(setting: Setting) -> list[Check]:
    """Check the viscosity of a shear wave and the order of accuracy for Taylor-Green vortices."""
    options: Any = {"width": _TILE, "layout": "moments"}
    max_error = shear_wave_error(setting, lambda nu: FlowModel(Newtonian(nu), Regularised()), **options)
    sizes = (16, 24, 40) if setting.quick else (16, 32, 64, 128)
    errors = taylor_green_errors(setting, lambda nu: FlowModel(Newtonian(nu), Regularised()), sizes, **options)
    plot = partial(convergence_figure, sizes=sizes, errors={"velocity": errors}, order=2.0)
    order = observed_order(sizes, errors)
    return [
        Check("moments, shear wave: error of the viscosity, worst tau", max_error, 1e-3, reference=_LATT),
        Check("moments, Taylor-Green vortices: order", order, 1.8, "above", reference=_TAYLOR, plot=plot),
        Check(f"moments, Taylor-Green, {sizes[-1]} sites: velocity", errors[-1], 5e-3, reference=_TAYLOR),
    ]


def walls(setting: Setting) -> list[Check]:
    """Check half-way walls: slip of the magic number (tau - 1/2)/2, zero at tau = 7/8.

    First order in a staircase pipe.
    """
    height, error = (9 if setting.quick else 32), 0.0
    sites = shapes.channel(float(height), float(_TILE), float(_TILE), 1.0)
    z = positions(sites)[:, 2]
    for tau in (0.6, 0.875, 1.5):
        viscosity = (tau - 0.5) / 3
        model = FlowModel(Newtonian(viscosity), Regularised(), body_force=(_FORCE, 0.0, 0.0))
        solver = _solver(setting, sites, model)
        solver.advance(int(np.log(1e17) / (np.pi**2 * viscosity / height**2)) + 20)
        parabola = 0.5 * _FORCE / viscosity * (z * (height - z) + 4 / 3 * (tau - 0.5) / 2 - 0.25)
        error = max(error, relative_error(velocity(solver), parabola))
    radii = (4.3, 6.2, 8.7, 12.4) if setting.quick else (4.3, 6.2, 8.7, 12.4, 17.6, 24.8)
    random, errors = np.random.default_rng(1), []
    for radius in radii:
        viscosity, samples = 0.125, []  # tau = 7/8
        for y, z0 in random.uniform(0, 1, (4 if setting.quick else 12, 2)):
            pipe = shifted_pipe(radius, y, z0, length=float(_TILE))
            model = FlowModel(Newtonian(viscosity), Regularised(), body_force=(_FORCE, 0.0, 0.0))
            solver = _solver(setting, pipe, model)
            solver.advance(int(np.log(1e5) / (5.783 * viscosity / radius**2)))
            points = positions(pipe)
            exact = 0.25 * _FORCE / viscosity * (radius**2 - (points[:, 1] - y) ** 2 - (points[:, 2] - z0) ** 2)
            samples.append(relative_error(velocity(solver), exact))
        errors.append(float(np.mean(samples)))
    plot = partial(convergence_by_radius, sizes=radii, errors={"velocity": errors}, order=1.0)
    return [
        Check("moments, plane channel: slip of theory", error, 1e-12, reference=_TRT),
        Check("moments, pipe: order of the velocity", observed_order(radii, errors), 0.9, "above", plot=plot),
    ]


def blood(setting: Setting) -> list[Check]:
    """Check human blood between plates at shear rates at which its viscosity decreases by a factor of ten."""
    heights = (8, 16) if setting.quick else (8, 16, 32)
    errors = []
    for height in heights:
        scale = 16 / height
        fluid = CarreauYasuda(1.6, 0.035, 5e4 / scale**2, 0.64, 0.2128)
        force = 7.5e-5 * scale**3
        sites = shapes.channel(float(height), float(_TILE), float(_TILE), 1.0)
        solver = _solver(setting, sites, FlowModel(fluid, Regularised(), body_force=(force, 0.0, 0.0)))
        solver.advance(int(80 * height**2))
        z, u = positions(sites)[:, 2], velocity(solver)
        errors.append(relative_error(u, plates_profile(fluid, force, float(height), z)))
    plot = plates_plot(fluid, force, heights[-1], (z, u))
    bound = 2e-2 if setting.quick else 5e-3
    name = f"moments, blood between plates, {heights[-1]} sites: velocity"
    return [Check(name, errors[-1], bound, reference=_CARREAU + "; quadrature", plot=plot)]


def balance(setting: Setting) -> list[Check]:
    """Check the mass between walls, and the mass balance with the flow through iolets."""
    closed = FlowModel(Newtonian(0.05), Regularised())
    checks = mass_drifts(setting, closed, 500 if setting.quick else 10_000, "moments, ", layout="moments")
    sites = shapes.tube(5.3, 16.0, 1.0, axis=(1.0, 0.2, 0.1))
    iolets = (VelocityIolet(0.01, (0.01 + 0.002j,), 40.0, 0.05), PressureIolet(1.0, 0.002, 25.0))
    model = FlowModel(Newtonian(0.05), Regularised(), iolets=iolets, body_force=(1e-6, 0.0, 2e-6))
    max_error, _ = imbalance(_solver(setting, sites, model))
    return [*checks, Check("moments, iolets: change of mass per step minus inflow, over the mass", max_error, 1e-14)]


def equality(setting: Setting) -> list[Check]:
    """Check that moments and stored populations agree bitwise with this collision, also after a restart."""
    sites, model = combined_case(setting.quick)
    model = FlowModel(model.rheology, Regularised(), model.iolets, model.body_force)
    solvers = [setting.solver(sites, model, layout=layout) for layout in ("list-ab", "moments", "moments", "list-ab")]
    populations, moments, restarted, as_populations = solvers
    for solver in (populations, moments):
        solver.advance(21)
    restarted.set_state(moments.state())
    as_populations.set_state(moments.state())
    for solver in solvers:
        solver.advance(20)
    reference, device_checks = populations.state(), []
    if parse_device(setting.device).is_gpu:
        cpu = FlowSolver(sites, model, layout="moments")
        cpu.advance(41)
        name = f"moments, cpu and {setting.device}: values that differ"
        device_checks = [Check(name, different(moments, cpu.state()), 0, unit="numbers")]
    return [
        *device_checks,
        Check("moments and populations: values that differ after 41 steps", different(moments, reference), 0),
        Check("moments, restart: values that differ", different(restarted, reference), 0),
        Check("moments, restart as populations: values that differ", different(as_populations, reference), 0),
    ]
