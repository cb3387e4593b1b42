# SPDX-License-Identifier: BSD-3-Clause
"""Decaying flows in a periodic box: Taylor-Green vortices and a shear wave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from seiche.domain import shapes
from seiche.flow.model import FlowModel, Newtonian
from seiche.flow.state import site_state
from seiche.flow.velocity_set import D3Q19, VELOCITY_SETS, VelocitySet
from seiche.report.figures import convergence_figure, observed_order
from seiche.validate.check import Check, Floats, Setting, positions, post_collision_state, relative_error

_TAYLOR = "Taylor, Green 1937, doi:10.1098/rspa.1937.0036"
_KRUGER = "Krueger et al. 2017, doi:10.1007/978-3-319-44649-3, appendix A.3"


def vortices(size: int, speed: float, points: Floats) -> tuple[Floats, Floats, Floats]:
    """Return density excess, velocity and velocity gradient at `points` (n, 3)."""
    k = 2 * np.pi / size
    x, y = k * points[:, 0], k * points[:, 1]
    velocity = speed * np.stack([np.cos(x) * np.sin(y), -np.sin(x) * np.cos(y), 0 * x], axis=1)
    gradient = np.zeros((len(points), 3, 3))
    gradient[:, 0, 0], gradient[:, 1, 1] = -np.sin(x) * np.sin(y), np.sin(x) * np.sin(y)
    gradient[:, 1, 0], gradient[:, 0, 1] = np.cos(x) * np.cos(y), -np.cos(x) * np.cos(y)
    excess = -0.75 * speed**2 * (np.cos(2 * x) + np.cos(2 * y))
    return excess, velocity, speed * k * gradient


def taylor_green_errors(
    setting: Setting, model: Callable[[float], FlowModel], sizes: Sequence[int], *, width: int = 1, **options: Any
) -> list[float]:
    """Return the errors for Taylor-Green vortices of several `sizes`; other arguments are those of `shear_wave_error`.

    The scaling is diffusive: tau and the Reynolds number are constant, the speed is proportional to 1/n and the number
        of
    steps to n^2. The initial state includes the stress.
    """
    tau, errors = 0.8, []
    viscosity = (tau - 0.5) / 3
    for size in sizes:
        speed, steps = 0.6 / size, int(0.25 * size**2)
        sites, flow = shapes.box((size, size, width)), model(viscosity)
        solver = setting.solver(sites, flow, **options)
        start = post_collision_state(*vortices(size, speed, positions(sites)), tau, VELOCITY_SETS[flow.velocity_set])
        solver.set_state(site_state(solver, {"populations": start}))
        solver.advance(steps)
        # Observed fields include one more streaming step than collision steps.
        decay = np.exp(-2 * viscosity * (2 * np.pi / size) ** 2 * (steps + 1))
        exact = decay * vortices(size, speed, positions(sites))[1]
        errors.append(relative_error(solver.fields(["velocity"])["velocity"], exact))
    return errors


def _taylor_green(setting: Setting, velocity_set: VelocitySet, sizes: Sequence[int], name: str) -> list[Check]:
    options: Any = {"velocity_set": velocity_set.name}
    errors = taylor_green_errors(setting, lambda viscosity: FlowModel(Newtonian(viscosity), **options), sizes)
    plot = partial(convergence_figure, sizes=sizes, errors={"velocity": errors}, order=2.0)
    order = observed_order(sizes, errors)
    return [
        Check(f"{name}: order of convergence", order, 1.8, "above", reference=_TAYLOR, plot=plot),
        Check(f"{name}, {sizes[-1]} sites: velocity", errors[-1], 5e-3, reference=_TAYLOR),
    ]


def taylor_green(setting: Setting) -> list[Check]:
    """Check plane vortices with the default velocity set, up to fine lattices."""
    sizes = (16, 24, 36) if setting.quick else (16, 32, 64, 128)
    return _taylor_green(setting, D3Q19, sizes, "Taylor-Green vortices")


def taylor_green_of_each_set(setting: Setting) -> list[Check]:
    """Check the same vortices with the other velocity sets."""
    checks: list[Check] = []
    for name, velocity_set in VELOCITY_SETS.items():
        if velocity_set is not D3Q19:
            checks += _taylor_green(setting, velocity_set, (16, 24, 36), f"Taylor-Green vortices, {name}")
    return checks


def shear_wave_error(setting: Setting, model: Callable[[float], FlowModel], *, width: int = 1, **options: Any) -> float:
    """Return the maximum relative error of the viscosity for several tau, from the decay rate nu k^2 of u_y = sin(k x).

    `model` returns the flow model for a viscosity, `width` is the number of sites along y and z, and `options` are
    passed to the solver.
    """
    size, max_error = (64 if setting.quick else 128), 0.0
    for tau in (0.55, 0.8, 1.0) if setting.quick else (0.51, 0.55, 0.8, 1.0, 1.5):
        viscosity, k = (tau - 0.5) / 3, 2 * np.pi / size
        sites, flow = shapes.box((size, width, width)), model(viscosity)
        x = k * positions(sites)[:, 0]
        wave, gradient = np.zeros((len(sites), 3)), np.zeros((len(sites), 3, 3))
        wave[:, 1], gradient[:, 0, 1] = 1e-3 * np.sin(x), 1e-3 * k * np.cos(x)
        solver = setting.solver(sites, flow, **options)
        start = post_collision_state(np.zeros(len(sites)), wave, gradient, tau, VELOCITY_SETS[flow.velocity_set])
        solver.set_state(site_state(solver, {"populations": start}))
        amplitudes, interval = [], int((0.1 if setting.quick and width > 1 else 0.5) / (viscosity * k**2))
        for _ in range(2):
            solver.advance(interval)
            amplitudes.append(float(solver.fields(["velocity"])["velocity"][:, 1] @ np.sin(x)))
        max_error = max(max_error, abs(np.log(amplitudes[0] / amplitudes[1]) / (interval * k**2) / viscosity - 1))
    return max_error


def shear_wave(setting: Setting) -> list[Check]:
    """Check the effective viscosity of the lattice, given by the decay rate nu k^2 of u_y = sin(k x)."""
    max_error = shear_wave_error(setting, lambda viscosity: FlowModel(Newtonian(viscosity)))
    return [Check("shear wave: error of the viscosity, worst tau", max_error, 1e-3, reference=_KRUGER)]
