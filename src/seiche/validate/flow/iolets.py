# SPDX-License-Identifier: BSD-3-Clause
"""Iolet conditions: effective position of two pressure rules, computed duct profiles, Windkessel outlets."""

from __future__ import annotations

import math

import numpy as np

from seiche.domain import shapes
from seiche.domain.sites import SiteSet
from seiche.flow.model import FlowModel, Newtonian, PressureIolet, TimeTable, VelocityIolet, WindkesselIolet
from seiche.flow.section import developed_profile
from seiche.flow.velocity_set import CS2
from seiche.report.figures import observed_order
from seiche.validate.check import Check, Floats, Setting, positions, relative_error, velocity
from seiche.validate.flow.conservation import imbalance
from seiche.validate.flow.steady import square_duct_ratio

_NASH = "Nash et al. 2014, doi:10.1103/PhysRevE.89.023303"
_GINZBURG = "Ginzburg, Verhaeghe and d'Humieres 2008, Commun. Comput. Phys. 3, 427"
_WESTERHOF = "Westerhof, Lankhaar and Westerhof 2009, doi:10.1007/s11517-008-0359-2"
_WHITE = "White 2006, Viscous Fluid Flow, section 3-3"
_TILTED = (1.0, 0.3, 0.2)


def _gradient(setting: Setting, sites: SiteSet, axis: tuple[float, ...], length: float, scheme: str) -> float:
    """Return the density gradient in the middle half of a tube divided by that between its end planes, minus 1."""
    viscosity, excess = 0.5, 1e-4
    ends = (PressureIolet(1 + excess, scheme=scheme), PressureIolet(scheme=scheme))
    solver = setting.solver(sites, FlowModel(Newtonian(viscosity), iolets=ends))
    solver.advance(int(12 * (length / 4) ** 2 / (5.783 * viscosity)) + 4 * round(length))
    axial_position = positions(sites) @ (np.array(axis) / np.linalg.norm(axis))
    middle_sites = (axial_position > length / 4) & (axial_position < 3 * length / 4)
    slope = np.polyfit(axial_position[middle_sites], solver.fields(["density"])["density"][middle_sites], 1)[0]
    return float(-slope * length / excess - 1)


def _distance_beyond(sites: SiteSet, axis: tuple[float, ...]) -> float:
    """Return the mean distance (sites) of the sites of an opening from its plane, summed over both ends."""
    direction, total = np.array(axis) / np.linalg.norm(axis), 0.0
    for number, plane in enumerate(sites.iolets):
        opening = sites.boundary[(sites.link_iolet == number).any(axis=1)]
        total += float(np.abs((positions(sites)[opening] - np.array(plane.center)) @ direction).mean())
    return total


def pressure_schemes(setting: Setting) -> list[Check]:
    """Compare the gradient between two pressures with the imposed one, in lattice-aligned and tilted tubes.

    Nash's rule imposes no shear stress: the ends disturb the flow over a length proportional to the radius, so the
    error hardly decreases. Anti-bounce-back with the stress imposes the pressure (exactly for developed flow) at the
    sites of the opening, half a spacing inside its plane. The error of the gradient is thus of first order, or of
    second order if the length is measured between those sites.
    """
    radii = (6.0, 12.0) if setting.quick else (6.0, 12.0, 24.0)
    checks = []
    for name, axis, min_order, bound in (
        ("along the lattice", (1.0, 0.0, 0.0), 1.0, 1e-3),
        ("tilted", _TILTED, 0.8, 0.02),
    ):
        errors: dict[str, list[float]] = {"nash": [], "anti-bounce-back": []}
        between = 0.0
        for radius in radii:
            length = 4 * radius
            sites = shapes.tube(radius, length, 1.0, axis=axis)
            for scheme, series in errors.items():
                series.append(abs(_gradient(setting, sites, axis, length, scheme)))
            between = abs((1 + errors["anti-bounce-back"][-1]) * (1 - _distance_beyond(sites, axis) / length) - 1)
        nash, anti_bounce_back = (observed_order(radii, errors[scheme]) for scheme in errors)
        checks += [
            Check(f"Nash pressure, {name}: order of the gradient", nash, 0.6, reference=_NASH),
            Check(
                f"anti-bounce-back, {name}: order of the gradient",
                anti_bounce_back,
                min_order,
                "above",
                reference=_GINZBURG,
            ),
            Check(f"anti-bounce-back, {name}: gradient between the end sites", between, bound, reference=_GINZBURG),
        ]
    return checks


def duct_inlet(setting: Setting) -> list[Check]:
    """Check a square inlet with a computed profile: maximum over mean (2.0962), flow rate, profile at half length."""
    edges = (9, 15, 25) if setting.quick else (9, 17, 33, 65)
    errors = []
    for edge in edges:
        sites = shapes.duct(float(edge), float(edge), 2.0, 1.0, periodic=False)
        values = developed_profile(sites, 0).values
        errors.append(abs(float(values.max() / values.mean()) / square_duct_ratio() - 1))
    edge, mean, viscosity = (11 if setting.quick else 21), 1e-5, 0.3
    sites = shapes.duct(float(edge), float(edge), float(edge), 1.0, periodic=False)
    iolets = (VelocityIolet(mean, profile=developed_profile(sites, 0)), PressureIolet(scheme="anti-bounce-back"))
    solver = setting.solver(sites, FlowModel(Newtonian(viscosity), iolets=iolets))
    solver.advance(int(15 * edge**2 / (2 * math.pi**2 * viscosity)) + 20 * edge)
    middle_sites = sites.coords[:, 0] == edge // 2
    along, section = velocity(solver)[middle_sites], developed_profile(sites, 0).values
    first = solver.fields(["density"])["density"][sites.coords[:, 0] == 0].mean()
    imposed = mean * edge**2 * first
    inflow = solver.measures.iolet_flow()[0]
    return [
        Check("duct inlet: error of u_max/u_mean = 2.0962", errors[-1], 5e-3, reference=_WHITE),
        Check("duct inlet: order of the computed profile", observed_order(edges, errors), 1.8, "above"),
        Check("duct inlet: flow rate relative to the prescribed one", abs(inflow / imposed - 1), 2e-6),
        Check("duct inlet: profile at half length", relative_error(along / along.mean(), section), 0.02),
    ]


def circuit_pressure(outlet: WindkesselIolet, flow: Floats) -> Floats:
    """Return the circuit pressure of `outlet` minus cs^2 at the times of `flow` (outflow per step), by RK4.

    The flow is interpolated linearly.
    """
    distal = CS2 * (outlet.distal_density - 1)
    stored, result = CS2 * (outlet.initial_density - 1), np.empty(len(flow))

    def rate(pressure: float, outflow: float) -> float:
        return (outflow - (pressure - distal) / outlet.resistance) / outlet.compliance

    previous = 0.0
    for k, current in enumerate(flow):
        half = 0.5 * (previous + current)
        a = rate(stored, previous)
        b = rate(stored + 0.5 * a, half)
        c = rate(stored + 0.5 * b, half)
        d = rate(stored + c, current)
        stored += (a + 2 * b + 2 * c + d) / 6
        result[k], previous = stored + outlet.proximal_resistance * current, current
    return result


def windkessel(setting: Setting) -> list[Check]:
    """Compare the pressure at a Windkessel outlet with the solution of its ODE, driven by the outflow of the tube.

    The flow is constant for five times the time constant, or oscillates; both pressure rules are used.
    """
    sites = shapes.tube(4.0, 12.0, 1.0)
    steps, checks = (2500 if setting.quick else 6000), []
    inlets = {"step": VelocityIolet(0.002), "swing": VelocityIolet(0.002, (0.0015,), 800.0, 0.3)}
    schemes: tuple[str, ...] = ("nash", "anti-bounce-back")
    for scheme in schemes:
        for name, inlet in inlets.items():
            outlet = WindkesselIolet(0.01, 5e4, 0.002, 0.999, 0.9995, scheme=scheme)
            solver = setting.solver(sites, FlowModel(Newtonian(0.3), iolets=(inlet, outlet)))
            flow, pressure = np.empty(steps), np.empty(steps)
            circuits = solver.iolets.windkessels
            assert circuits is not None
            for k in range(steps):
                solver.start(1)
                flow[k] = -solver.measures.iolet_flow()[1]
                pressure[k] = CS2 * float(circuits.state()["outlet.imposed"])
            expected = circuit_pressure(outlet, flow)
            scale = float(np.ptp(expected))
            settled = slice(steps // 10, None)  # the circuit, updated once per step, cannot follow initial sound waves
            error = float(np.abs(pressure - expected)[settled].max()) / scale
            checks.append(
                Check(
                    f"Windkessel, {scheme}, {name}: pressure relative to the solution of the ODE",
                    error,
                    0.005,
                    reference=_WESTERHOF,
                )
            )
    return checks


def mixed_balance(setting: Setting) -> list[Check]:
    """Check that the change of mass in every step equals the iolet flow, with tables, circuits and both rules."""
    sites = shapes.tube(5.3, 16.0, 1.0, axis=(1.0, 0.2, 0.1))
    pulse = TimeTable(np.array([0.0, 10.0, 40.0]), np.array([0.01, 0.03, 0.01]), repeat=True)
    inlet, max_error = VelocityIolet(0.0, table=pulse, profile=developed_profile(sites, 0), ramp=10.0), 0.0
    for outlet in (
        PressureIolet(table=TimeTable(pulse.times, 1 + 0.1 * pulse.values), scheme="anti-bounce-back"),
        WindkesselIolet(0.01, 1e3, 0.01, scheme="anti-bounce-back"),
    ):
        solver = setting.solver(sites, FlowModel(Newtonian(0.05), iolets=(inlet, outlet)))
        max_error = max(max_error, imbalance(solver)[0])
    return [
        Check("iolets from tables and circuits: change of mass per step minus inflow, over the mass", max_error, 1e-14)
    ]
