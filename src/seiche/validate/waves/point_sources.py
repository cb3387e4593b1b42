# SPDX-License-Identifier: BSD-3-Clause
"""Waves of point sources: a monopole in a fluid, a force in a solid, Lamb's problem on the surface of a solid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from seiche.io.files import replacing
from seiche.report.style import COLORS, DOUBLE_COLUMN, new_figure, paper_style, save
from seiche.validate.check import Check, Floats, Setting
from seiche.waves import Brick, Forest, Gaussian, Material, Mesh, PointSource, Solver

_AKI = "Aki and Richards 2002, eq. 4.23"
_PEKERIS = "Pekeris 1955, doi:10.1073/pnas.41.7.469"


def draw_traces(path: Path, times: Floats, computed: Floats, exact: Floats, label: str) -> None:
    """Plot computed and exact values (times, traces)."""
    with paper_style(), replacing(path) as temporary:
        figure = new_figure(DOUBLE_COLUMN, 2.6)
        axes = figure.add_subplot()
        for number in range(computed.shape[1]):
            color = COLORS[number % len(COLORS)]
            axes.plot(times, exact[:, number], color=color, linewidth=2.5, alpha=0.35)
            axes.plot(times, computed[:, number], color=color, linewidth=0.8)
        axes.set_xlabel("time")
        axes.set_ylabel(f"{label} (wide: exact)")
        save(figure, temporary, path.name)


def stokes_velocity(
    position: Floats, force: Floats, times: Floats, medium: tuple[float, float, float], pulse: Any
) -> Floats:
    """Return the velocity (times, 3) at `position` of a point force `force` times pulse(t) at the origin.

    `medium` is (density, cp, cs). The displacement is that of Aki and Richards (2002), eq. 4.23, differentiated by
    central differences.
    """
    density, cp, cs = medium
    r = float(np.linalg.norm(position))
    gamma = position / r
    longitudinal, transverse = gamma * (gamma @ force), force - gamma * (gamma @ force)

    def displacement(t: Floats) -> Floats:
        tau = np.linspace(r / cp, r / cs, 400)
        near_field = np.trapezoid(tau * pulse(t[:, None] - tau), tau, axis=1)[:, None]
        far_field = longitudinal * pulse(t - r / cp)[:, None] / cp**2 + transverse * pulse(t - r / cs)[:, None] / cs**2
        return np.asarray(((3 * longitudinal - force) * near_field / r**3 + far_field / r) / (4 * np.pi * density))

    step = 1e-4
    return (displacement(times + step) - displacement(times - step)) / (2 * step)


def monopole(setting: Setting) -> list[Check]:
    """Check the pressure rho s'(t - r/c)/(4 pi r) of a volume source."""
    mesh = Mesh.of_forest(Forest.uniform(Brick((6, 6, 6), (False,) * 3), 0), origin=-3.0)
    pulse, receivers = Gaussian(0.5, 2.6), [(1.5, 1.5, 0.5), (-1.4, 1.3, 1.1)]
    solver = Solver(
        mesh,
        Material.uniform(mesh.count, 2.0, 1.0),
        nodes=5,
        device=setting.device,
        threads=setting.threads,
        sources=[PointSource((0.0, 0.0, 0.0), pulse, volume=3.0)],
        receivers=receivers,
        sample_every=2,
    )
    solver.advance(2 * int(4.1 / (2 * solver.dt)))
    computed = solver.samples()[..., 0]
    times: Floats = 2 * solver.dt * np.arange(1, len(computed) + 1, dtype=np.float64)
    r = np.linalg.norm(receivers, axis=1)
    retarded = times[:, None] - r
    exact = 2.0 * 3.0 * -(retarded - pulse.delay) / pulse.sigma**2 * pulse(retarded) / (4 * np.pi * r)
    error = float((np.abs(computed - exact).max(0) / np.abs(exact).max(0)).max())
    plot = partial(draw_traces, times=times, computed=computed, exact=exact, label="pressure")
    return [Check("volume source in a fluid: largest error of the pressure", error, 0.015, plot=plot)]


def force(setting: Setting) -> list[Check]:
    """Check the near and far fields of a point force in a full space."""
    half = 4
    mesh = Mesh.of_forest(Forest.uniform(Brick((2 * half,) * 3, (False,) * 3), 0), origin=-float(half))
    medium, pulse = (2.0, 1.75, 1.0), Gaussian(0.5, 3.0)
    receivers = [(1.4, 0.6, 0.8), (-0.5, 1.7, 0.3)]
    strength = np.array([0.7, -0.4, 1.0])
    solver = Solver(
        mesh,
        Material.uniform(mesh.count, *medium),
        nodes=6 if setting.quick else 7,
        device=setting.device,
        threads=setting.threads,
        sources=[PointSource((0.1, -0.05, 0.15), pulse, force=strength.tolist())],
        receivers=receivers,
        sample_every=2,
    )
    solver.advance(2 * int(5.6 / (2 * solver.dt)))
    computed = solver.samples()[..., :3]
    times: Floats = 2 * solver.dt * np.arange(1, len(computed) + 1, dtype=np.float64)
    source = np.array([0.1, -0.05, 0.15])
    exact = np.stack(
        [stokes_velocity(np.array(receiver) - source, strength, times, medium, pulse) for receiver in receivers], 1
    )
    error = float((np.linalg.norm(computed - exact, axis=(0, 2)) / np.linalg.norm(exact, axis=(0, 2))).max())
    traces, exact_traces = (values.reshape(len(times), -1) for values in (computed, exact))
    plot = partial(draw_traces, times=times, computed=traces, exact=exact_traces, label="velocity")
    return [Check("point force in a solid: relative error of the velocities", error, 0.03, reference=_AKI, plot=plot)]


@dataclass(frozen=True)
class Bump:
    """51480 x^7 (1 - x)^7 for x = rate t in [0, 1]."""

    rate: float = 1.0

    def __call__(self, t: Floats) -> Floats:
        """Return the amplitudes."""
        x = np.clip(self.rate * t, 0.0, 1.0)
        return np.asarray(51480 * x**7 * (1 - x) ** 7)

    def slope(self, t: Floats) -> Floats:
        """Return their derivatives."""
        x = np.clip(self.rate * t, 0.0, 1.0)
        return np.asarray(self.rate * 51480 * 7 * x**6 * (1 - x) ** 6 * (1 - 2 * x))


def pekeris(t: Floats, r: float) -> Floats:
    """Return the vertical displacement of the surface at distance `r` from a vertical unit step force on it.

    It is positive along the force, and singular at the arrival of the Rayleigh wave; cs = rho = 1 and cp = sqrt(3)
    (Pekeris 1955).
    """
    tau, root = np.asarray(t, np.float64) / r, np.sqrt(3.0)
    g = np.sqrt(3 + root) / 2
    result = np.where(tau > g, 3 / 8, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        first = root / np.sqrt(tau**2 - 0.25)
        second = np.sqrt(3 * root + 5) / np.sqrt(g**2 - tau**2)
        third = np.sqrt(3 * root - 5) / np.sqrt(tau**2 - (3 - root) / 4)
        result = np.where((tau > 1 / root) & (tau < 1), (6 - first - second + third) / 32, result)
        result = np.where((tau >= 1) & (tau < g), (6 - second) / 16, result)
    return np.asarray(result / (np.pi * r))


def lamb_displacement(times: Floats, r: float, bump: Bump) -> Floats:
    """Return the vertical displacement of the surface at distance `r` for the force `bump`, along the force.

    It is the integral of the step response times the slope of the bump. Before the arrival of the Rayleigh wave, the
    variable of integration is the square root of the time remaining, which removes the singularity.
    """
    rayleigh, count = r * np.sqrt(3 + np.sqrt(3.0)) / 2, 6000
    max_root = np.sqrt(rayleigh - r / np.sqrt(3.0))
    root = (np.arange(count) + 0.5) * max_root / count
    times_before = rayleigh - root**2
    integral_before = (
        (pekeris(times_before, r) * 2 * root * bump.slope(times[:, None] - times_before)).sum(1) * max_root / count
    )
    remaining = max(1e-9, float(times.max()) - rayleigh)
    times_after = rayleigh + (np.arange(count) + 0.5) * remaining / count
    integral_after = (pekeris(times_after, r) * bump.slope(times[:, None] - times_after)).sum(1) * remaining / count
    return np.asarray(integral_before + integral_after)


def lamb(setting: Setting) -> list[Check]:
    """Check Lamb's problem, a vertical force on the surface of a half space: P, S and Rayleigh waves 4 units away."""
    if setting.quick:
        return []
    # The sides are far enough away that reflected shear and Rayleigh waves arrive after the end.
    bump = Bump(1 / 3)
    sizes, lower = (20, 14, 7), (-4.0, -4.2, -4.2)
    mesh = Mesh.of_forest(Forest.uniform(Brick(sizes, (False,) * 3), 0), tree_size=0.6, origin=lower)
    solver = Solver(
        mesh,
        Material.uniform(mesh.count, 1.0, np.sqrt(3.0), 1.0),
        nodes=6,
        boundaries=("absorbing", "absorbing", "absorbing", "absorbing", "absorbing", "free"),
        device=setting.device,
        threads=setting.threads,
        sources=[PointSource((0.0, 0.0, 0.0), bump, force=(0.0, 0.0, -1.0))],
        receivers=[(4.0, 0.0, 0.0)],
    )
    solver.advance(int(7.2 / solver.dt))
    computed = -solver.samples()[:, :, 2]
    times: Floats = solver.dt * np.arange(1, len(computed) + 1, dtype=np.float64)
    step = 1e-3
    difference = lamb_displacement(times + step, 4.0, bump) - lamb_displacement(times - step, 4.0, bump)
    exact = difference[:, None] / (2 * step)
    error = float(np.linalg.norm(computed - exact) / np.linalg.norm(exact))
    plot = partial(draw_traces, times=times, computed=computed, exact=exact, label="vertical velocity")
    name = "Lamb's problem: relative error of the vertical velocity"
    return [Check(name, error, 0.015, reference=_PEKERIS, plot=plot)]
