# SPDX-License-Identifier: BSD-3-Clause
"""Flow through a tube driven by iolets: pressures (Nash), parabolic and pulsating inflow (Ladd)."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from seiche.domain import shapes
from seiche.domain.sites import SiteSet
from seiche.flow.model import FlowModel, Newtonian, PressureIolet, VelocityIolet
from seiche.flow.profiles import womersley
from seiche.flow.state import site_state
from seiche.flow.velocity_set import CS2, D3Q19
from seiche.report.figures import profile_figure
from seiche.validate.check import Check, Floats, Setting, positions, relative_error, velocity

Complexes = npt.NDArray[np.complex128]

_NASH = "Nash et al. 2014, doi:10.1103/PhysRevE.89.023303"
_LADD = "Ladd 1994, doi:10.1017/S0022112094001771"
_WOMERSLEY = "Womersley 1955, doi:10.1113/jphysiol.1955.sp005276"
#: Samples per period.
_SAMPLES = 40


def _from_axis(sites: SiteSet) -> Floats:
    """Return the distance from the x axis in sites."""
    points = positions(sites)
    return np.asarray(np.hypot(points[:, 1], points[:, 2]))


def pressure_tube(setting: Setting) -> list[Check]:
    """Check Poiseuille's flow rate between two pressures.

    The flow rate of a staircase tube differs from that of a round one. It is therefore compared with a periodic tube of
    the same sites, under a force equal to the pressure gradient in the middle half of the tube: bound 1 %. The
    populations that Nash's rule imposes carry no shear stress, which disturbs the flow near an iolet. Two effects are
    recorded: the length, in sites, by which each end shortens the tube, and the difference from a round tube of the
    nominal radius, due to staircase and ends.
    """
    radius, viscosity, excess = (8.4 if setting.quick else 16.4), 0.5, 1e-5
    length = 4 * round(radius)
    steps = int(20 * radius**2 / (5.783 * viscosity)) + 4 * length
    iolets = (PressureIolet(1 + excess, scheme="nash"), PressureIolet(1.0, scheme="nash"))
    sites = shapes.tube(radius, float(length), 1.0)
    solver = setting.solver(sites, FlowModel(Newtonian(viscosity), iolets=iolets))
    solver.advance(steps)
    flow_rates, density = solver.measures.iolet_flow(), solver.fields(["density"])["density"]
    x = sites.coords[:, 0]
    middle_planes = np.arange(length // 4, length - length // 4)
    gradient = -CS2 * float(np.polyfit(middle_planes, [density[x == plane].mean() for plane in middle_planes], 1)[0])
    imposed = CS2 * excess / length
    model = FlowModel(Newtonian(viscosity), body_force=(imposed, 0.0, 0.0))
    periodic = setting.solver(shapes.tube(radius, 1.0, 1.0, periodic=True), model)
    periodic.advance(steps)
    staircase_flow = float(velocity(periodic).sum())
    round_flow = np.pi * radius**4 * imposed / (8 * viscosity)
    shortening = 0.5 * length * (1 - imposed / gradient)
    error, excess_flow = abs(flow_rates[0] / staircase_flow * imposed / gradient - 1), flow_rates[0] / round_flow - 1
    return [
        Check("pressure iolets: flow rate for the gradient at half length", error, 0.01, reference=_NASH),
        Check(
            "pressure iolets: inflow relative to outflow", abs(flow_rates.sum() / flow_rates[0]), 1e-6, reference=_NASH
        ),
        Check("pressure iolets: effective shortening of the tube per end", shortening, sense="recorded", unit="sites"),
        Check("pressure iolets: flow rate relative to the round tube, minus 1", excess_flow, sense="recorded"),
    ]


def parabolic_tube(setting: Setting) -> list[Check]:
    """Check that the flow behind a parabolic inlet is parabolic everywhere: mass flow, and profile at half length."""
    radius, viscosity, mean = (8.4 if setting.quick else 16.4), 1 / 6, 1e-4
    length = 3 * round(radius)
    sites = shapes.tube(radius, float(length), 1.0)
    iolets = (VelocityIolet(mean), PressureIolet())
    solver = setting.solver(sites, FlowModel(Newtonian(viscosity), iolets=iolets))
    solver.advance(int(40 * radius**2 / (5.783 * viscosity)))
    flow = solver.measures.iolet_flow()[0] / (np.pi * radius**2 * mean)
    middle_sites = sites.coords[:, 0] == length // 2
    r = _from_axis(sites)[middle_sites]
    u, exact = velocity(solver)[middle_sites], 2 * mean * (1 - (r / radius) ** 2)
    line = np.linspace(0, 1, 100)
    plot = partial(
        profile_figure,
        exact=(line, 2 * (1 - line**2)),
        measured={f"radius {radius:g} sites": (r / radius, u / mean)},
        x_label="distance from the axis over the radius",
        y_label="velocity over its mean",
    )
    return [
        Check("velocity iolet: mass flow of the parabola", abs(flow - 1), 0.01, reference=_LADD),
        Check("velocity iolet: parabola at half length", relative_error(u, exact), 0.06, reference=_LADD, plot=plot),
    ]


def _pulse(setting: Setting, alpha: float, viscosity: float) -> tuple[Floats, Complexes, Complexes]:
    """Return r/a, and the measured and exact complex velocities at half length, relative to the imposed mean."""
    radius, length, mean = 20.0, 20, 1e-4
    period = _SAMPLES * round(2 * np.pi * radius**2 / (alpha**2 * viscosity) / _SAMPLES)
    viscosity = 2 * np.pi / period * radius**2 / alpha**2
    sites = shapes.tube(radius, float(length), 1.0)
    r = _from_axis(sites) / radius
    shape = womersley(r, alpha)
    iolets = (VelocityIolet(0.0, (mean,), float(period), viscosity), PressureIolet())
    solver = setting.solver(sites, FlowModel(Newtonian(viscosity), iolets=iolets))
    initial = np.zeros((len(sites), 3))
    initial[:, 0] = mean * shape.real
    solver.set_state(site_state(solver, {"populations": D3Q19.equilibrium(np.zeros(len(sites)), initial)}))
    solver.advance(period if setting.quick else 3 * period)
    middle_sites = sites.coords[:, 0] == length // 2
    measured = np.zeros(np.count_nonzero(middle_sites), np.complex128)
    for _ in range(_SAMPLES):
        # Observed fields include one more streaming step than collision steps.
        phasor = np.exp(-2j * np.pi * (solver.step + 1) / period)
        measured += 2 / _SAMPLES * phasor * velocity(solver)[middle_sites]
        solver.advance(period // _SAMPLES)
    return r[middle_sites], measured / mean, shape[middle_sites]


def pulsating_tube(setting: Setting) -> list[Check]:
    """Check Womersley flow at half length, with a radius of 20 sites, inlet velocity and outlet pressure.

    Amplitude and phase are those of the complex velocity in the section projected onto the exact profile. The L2
    difference between the profiles, which includes the effect of the staircase walls, is recorded.
    """
    checks = []
    for alpha, viscosity in ((1.0, 0.35), (4.0, 0.06), (12.0, 0.006)):
        r, measured, exact = _pulse(setting, alpha, viscosity)
        gain = complex(np.vdot(exact, measured) / np.vdot(exact, exact))
        line = np.linspace(0, 1, 100)
        plot = partial(
            profile_figure,
            exact=(line, np.abs(womersley(line, alpha))),
            measured={f"alpha = {alpha:g}": (r, np.abs(measured))},
            x_label="distance from the axis over the radius",
            y_label="amplitude over the mean flow's",
        )
        name = f"Womersley, alpha = {alpha:g}"
        difference = float(np.linalg.norm(measured - exact) / np.linalg.norm(exact))
        checks += [
            Check(f"{name}: amplitude", abs(abs(gain) - 1), 0.01, reference=_WOMERSLEY, plot=plot),
            Check(f"{name}: phase", abs(float(np.angle(gain))), 0.01, unit="rad", reference=_WOMERSLEY),
            Check(f"{name}: profile", difference, sense="recorded"),
        ]
    return checks
