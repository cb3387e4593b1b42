# SPDX-License-Identifier: BSD-3-Clause
"""Interpolated and moving walls: pipes, plane and round Couette flow, a driven cavity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain import shapes
from seiche.domain.sites import LinkKind, SiteSet
from seiche.flow.model import Bgk, FlowModel, MovingWall, Newtonian, PressureIolet, Regularised, Trt, WallKind, Walls
from seiche.flow.solver import FlowSolver
from seiche.flow.velocity_set import CS2
from seiche.kernels.registry.flow import MOMENT_EDGE
from seiche.report.figures import convergence_figure, observed_order, profile_figure
from seiche.validate.check import Check, Floats, Setting, positions, relative_error
from seiche.validate.flow.steady import convergence_by_radius, shifted_pipe

_BOUZIDI = "Bouzidi, Firdaouss and Lallemand 2001, doi:10.1063/1.1399290"
_GINZBURG = "after Ginzburg, Verhaeghe and d'Humieres 2008, Commun. Comput. Phys. 3, 427"
_GHIA = "Ghia, Ghia and Shin 1982, doi:10.1016/0021-9991(82)90058-4"
_LADD = "Ladd 1994, doi:10.1017/S0022112094001771"
_FORCE = 1e-7
_TILT = np.array([2.0, 1.0, 0.0]) / 5**0.5

#: Velocity relative to that of the lid at Re = 100 (Ghia et al. 1982, tables I and II): u, parallel to the lid, on the
#: vertical centre line at heights y, and v, normal to it, on the horizontal centre line at positions x.
GHIA_Y = (0.9766, 0.9688, 0.9609, 0.9531, 0.8516, 0.7344, 0.6172, 0.5, 0.4531, 0.2813, 0.1719, 0.1016, 0.0703, 0.0625)
GHIA_U = np.array((
    0.84123, 0.78871, 0.73722, 0.68717, 0.23151, 0.00332, -0.13641,
    -0.20581, -0.21090, -0.15662, -0.10150, -0.06434, -0.04775, -0.04192,
))  # fmt: skip
GHIA_X = (0.9688, 0.9609, 0.9531, 0.9453, 0.9063, 0.8594, 0.8047, 0.5, 0.2344, 0.2266, 0.1563, 0.0938, 0.0781, 0.0703)
GHIA_V = np.array((
    -0.05906, -0.07391, -0.08864, -0.10313, -0.16914, -0.22445, -0.24533,
    0.05454, 0.17527, 0.17507, 0.16077, 0.12317, 0.10890, 0.10091,
))  # fmt: skip


def _solver(setting: Setting, sites: SiteSet, model: FlowModel, tile: int) -> FlowSolver:
    """Return a solver of the model; for `tile` > 1 with the regularised collision in moment storage."""
    options: dict[str, Any] = {"layout": "moments"} if tile > 1 else {}
    return setting.solver(sites, replace(model, collision=Regularised()) if tile > 1 else model, **options)


def tilted_pipe(radius: float, y: float, z: float, tile: int = 1) -> tuple[SiteSet, Floats]:
    """Return a pipe along (2, 1, 0) whose axis passes through (0, y, z), and the distance of each site from the axis.

    Its periods are multiples of `tile`.
    """
    edge = -(-int(np.ceil(0.5 * 5**0.5 * (2 * radius + 3))) // tile) * tile
    image_distance = 2 * edge / 5**0.5  # between the axis and its images

    def from_axis(points: Floats) -> Floats:
        lateral = (points[:, 0] - 2 * (points[:, 1] - y)) / 5**0.5
        return np.asarray(np.hypot(lateral - image_distance * np.round(lateral / image_distance), points[:, 2] - z))

    def distance(points: Floats) -> Floats:
        return from_axis(points) - radius

    low, high = (0.0, 0.0, z - radius), (2.0 * edge, float(edge), z + radius)
    sites = shapes.sites_from_distance(distance, low, high, 1.0, periodic=(True, True, False))
    return sites, from_axis(positions(sites))


def _pipe_errors(
    setting: Setting, sites: SiteSet, r: Floats, axis: Floats, radius: float, *, tile: int = 1
) -> tuple[float, float, float]:
    """Return errors of the velocity (L2), of the mean wall shear stress, and of its values at the wall sites (L2)."""
    viscosity = 1 / 6
    force = _FORCE * axis
    model = FlowModel(Newtonian(viscosity), body_force=(force[0], force[1], force[2]), walls=Walls("bouzidi"))
    solver = _solver(setting, sites, model, tile)
    solver.advance(int(np.log(1e8) * radius**2 / (5.783 * viscosity)) + 20)
    fields, rows = solver.fields(["velocity", "wall_shear_stress"]), solver.measures.wall_rows()
    exact = 0.25 * _FORCE / viscosity * (radius**2 - r**2)
    stress = -fields["wall_shear_stress"][rows] @ axis
    at_site = 0.5 * _FORCE * r[rows]
    mean = abs(float(stress.mean() / at_site.mean()) - 1)
    return relative_error(fields["velocity"] @ axis, exact), mean, relative_error(stress, at_site)


def pipes(setting: Setting) -> list[Check]:
    """Check second-order accuracy in lattice-aligned and tilted force-driven pipes, averaged over axis positions.

    The wall shear stress at the wall sites is compared with the exact stress at their positions.
    """
    random, axial = np.random.default_rng(2), np.array([1.0, 0.0, 0.0])
    checks = []
    for name, tilted in (("along the lattice", False), ("tilted", True)):
        radii = (4.3, 6.2, 8.7, 12.4, 17.6)[: 3 + (not tilted) if setting.quick else 5]
        errors = []
        for radius in radii:
            samples = []
            for y, z in random.uniform(0, 1, (1 if tilted else 4, 2)):
                if tilted:
                    sites, r = tilted_pipe(radius, y, z)
                else:
                    sites = shifted_pipe(radius, y, z)
                    r = np.hypot(positions(sites)[:, 1] - y, positions(sites)[:, 2] - z)
                samples.append(_pipe_errors(setting, sites, r, _TILT if tilted else axial, radius))
            errors.append(np.mean(samples, axis=0))
        profile, mean, single = (list(map(float, column)) for column in np.transpose(errors))
        plot = partial(
            convergence_by_radius, sizes=radii, errors={"velocity": profile, "wall shear stress": single}, order=2.0
        )
        pipe, order, stress_order = (
            f"Bouzidi pipe, {name}",
            observed_order(radii, profile),
            observed_order(radii, single),
        )
        checks += [
            Check(f"{pipe}: order of the velocity", order, 1.8, "above", reference=_BOUZIDI, plot=plot),
            Check(f"{pipe}: mean wall shear stress", mean[-1], 0.01, reference=_BOUZIDI),
            Check(f"{pipe}: wall shear stress, each site", single[-1], 0.02, reference=_BOUZIDI),
            Check(f"{pipe}: order of the wall shear stress", stress_order, 0.9, "above", reference=_BOUZIDI),
        ]
    return checks


def _lid(height: float, points: Floats) -> npt.NDArray[np.bool_]:
    return np.asarray(points[:, 2] > height - 0.25)


def plane_couette(setting: Setting) -> list[Check]:
    """Check the linear profile between half-way plates, one moving: exact to rounding for any tau and collision."""
    height = 8.0
    sites = shapes.channel(height, 1.0, 1.0, 1.0)
    z, max_error = positions(sites)[:, 2], 0.0
    lid = MovingWall("lid", (0.02, 0.01, 0.0), patch=partial(_lid, height))
    for walls in (Walls("bounce-back", (lid,)), Walls("bouzidi", (lid,))):
        for viscosity, collision in ((0.05, Trt()), (0.5, Bgk())):
            solver = setting.solver(sites, FlowModel(Newtonian(viscosity), collision, walls=walls))
            solver.advance(int(np.log(1e17) * height**2 / (np.pi**2 * viscosity)))
            exact = np.outer(z / height, lid.velocity)
            max_error = max(max_error, relative_error(solver.fields(["velocity"])["velocity"], exact))
    return [Check("plane Couette flow: straight line", max_error, 1e-12, reference=_LADD)]


def _within(radius: float, points: Floats) -> npt.NDArray[np.bool_]:
    return np.asarray(np.hypot(points[:, 0], points[:, 1]) < radius)


def ring(inner: float, outer: float, length: int = 1) -> SiteSet:
    """Return the gap between two cylinders along z around the point (0, 0), `length` sites long."""

    def distance(points: Floats) -> Floats:
        r = np.hypot(points[:, 0] - 0.3, points[:, 1] - 0.1)
        return np.asarray(np.maximum(inner - r, r - outer))

    low, high = (0.3 - outer, 0.1 - outer, 0.0), (0.3 + outer, 0.1 + outer, float(length))
    return shapes.sites_from_distance(distance, low, high, 1.0, periodic=(False, False, True))


def _ring_error(setting: Setting, inner: float, kind: WallKind, tile: int = 1) -> float:
    """Return the error (L2) of the velocity between cylinders of radii `inner` (rotating) and 2 `inner`."""
    outer, speed, viscosity = 2 * inner, 0.01, 1 / 6
    sites = ring(inner, outer, tile)
    x, y = positions(sites)[:, 0] - 0.3, positions(sites)[:, 1] - 0.1
    r = np.hypot(x, y)
    exact = speed * inner / (outer**2 - inner**2) * (outer**2 / r - r)
    patch, rotation = partial(_within, 1.5 * inner), (0.0, 0.0, speed / inner)
    rotor = MovingWall("inner", rotation=rotation, center=(0.3, 0.1, 0.0), patch=patch)
    solver = _solver(setting, sites, FlowModel(Newtonian(viscosity), walls=Walls(kind, (rotor,))), tile)
    solver.advance(int(np.log(1e8) * inner**2 / (9.0 * viscosity)) + 20)
    u = solver.fields(["velocity"])["velocity"]
    return relative_error((x * u[:, 1] - y * u[:, 0]) / r, exact)


def round_couette(setting: Setting) -> list[Check]:
    """Check u = a r + b/r, to second order, between a rotating cylinder and an outer one of twice its radius."""
    radii = (4.2, 6.1, 8.6, 12.3) if setting.quick else (4.2, 6.1, 8.6, 12.3, 17.4, 24.6)
    kinds: tuple[WallKind, ...] = ("bounce-back", "bouzidi")
    errors = {str(kind): [_ring_error(setting, inner, kind) for inner in radii] for kind in kinds}
    plot = partial(convergence_figure, sizes=radii, errors=errors, order=2.0, x_label="inner radius (sites)")
    half, bouzidi = (observed_order(radii, series) for series in errors.values())
    return [
        Check("round Couette flow, Bouzidi: order", bouzidi, 1.8, "above", reference=_BOUZIDI, plot=plot),
        Check("round Couette flow, Bouzidi: error", errors["bouzidi"][-1], 5e-3, reference=_BOUZIDI),
        Check("round Couette flow, bounce-back: order", half, sense="recorded", reference=_LADD),
    ]


def _centre_line(values: Floats, edge: int, coordinates: Sequence[float]) -> Floats:
    return np.asarray(np.interp(np.array(coordinates) * edge - 0.5, np.arange(edge), values))


def driven_cavity(setting: Setting) -> list[Check]:
    """Compare a lid-driven square cavity at Re = 100 with published velocities on its centre lines."""
    edge, speed = (33 if setting.quick else 65), 0.1
    sites = shapes.duct(float(edge), float(edge), 1.0, 1.0)
    lid = MovingWall("lid", (0.0, speed, 0.0), patch=partial(_lid, float(edge)))
    viscosity = speed * edge / 100
    solver = setting.solver(sites, FlowModel(Newtonian(viscosity), walls=Walls(moving=(lid,))))
    solver.advance(int(30 * edge / speed))
    u = solver.fields(["velocity"])["velocity"].reshape(edge, edge, 3) / speed
    vertical = _centre_line(u[edge // 2, :, 1], edge, GHIA_Y)
    horizontal = _centre_line(u[:, edge // 2, 2], edge, GHIA_X)
    error = max(float(np.abs(vertical - GHIA_U).max()), float(np.abs(horizontal - GHIA_V).max()))
    plot = partial(
        profile_figure,
        exact=(np.array(GHIA_Y), GHIA_U),
        measured={f"{edge} sites": ((np.arange(edge) + 0.5) / edge, u[edge // 2, :, 1])},
        x_label="height over the edge",
        y_label="velocity over the lid's",
        exact_label="Ghia et al. 1982",
    )
    bound = 0.015 if setting.quick else 0.006
    return [Check("driven cavity, Re = 100: centre lines", error, bound, unit="lid", reference=_GHIA, plot=plot)]


def _pressure_errors(
    setting: Setting, axis: tuple[float, float, float], radius: float, tile: int = 1
) -> tuple[float, float, float]:
    """Return errors (L2) of velocity and of pressure away from the wall, and of the gradient in the middle half."""
    viscosity, length, excess = 1 / 6, 4 * radius, 4e-3 / radius**2
    sites = shapes.tube(radius, length, 1.0, axis=axis)
    ends = (PressureIolet(1 + excess, scheme="plane"), PressureIolet(scheme="plane"))
    solver = _solver(setting, sites, FlowModel(Newtonian(viscosity), iolets=ends, walls=Walls("bouzidi")), tile)
    solver.advance(int(12 * radius**2 / (5.783 * viscosity)) + 30 * round(length))
    direction = np.array(axis) / np.linalg.norm(axis)
    points = positions(sites)
    z = points @ direction
    r = np.linalg.norm(points - z[:, None] * direction, axis=1)
    fields = solver.fields(["velocity", "density"])
    speed = CS2 * excess / length / (4 * viscosity) * (radius**2 - r**2)
    exact = excess * (1 - z / length)
    off_wall = np.ones(len(sites), bool)
    off_wall[sites.boundary[(sites.link_kind == LinkKind.WALL).any(axis=1)]] = False
    is_middle = (z > length / 4) & (z < 3 * length / 4)
    slope = np.polyfit(z[is_middle], fields["density"][is_middle], 1)[0]
    return (
        relative_error(fields["velocity"], speed[:, None] * direction),
        relative_error(fields["density"][off_wall] - 1, exact[off_wall]),
        abs(float(slope) * length / excess + 1),
    )


def pressure_tubes(setting: Setting) -> list[Check]:
    """Check second-order accuracy of pressures imposed in iolet planes with interpolated walls, in every direction.

    The errors include the ends of the tubes.
    """
    radii = (4.3, 6.2, 8.7) if setting.quick else (4.3, 6.2, 8.7, 12.4)
    checks = []
    for name, axis in (("along the lattice", (1.0, 0.0, 0.0)), ("tilted", (1.0, 0.3, 0.2))):
        errors = [_pressure_errors(setting, axis, radius) for radius in radii]
        velocity, pressure, gradient = (list(map(float, column)) for column in zip(*errors, strict=True))
        plot = partial(
            convergence_by_radius, sizes=radii, errors={"velocity": velocity, "pressure": pressure}, order=2.0
        )
        rule, order = f"pressure in the plane, {name}", observed_order(radii, velocity)
        checks.append(Check(f"{rule}: order of the velocity", order, 1.8, "above", reference=_GINZBURG, plot=plot))
        if name == "tilted":
            checks.append(Check(f"{rule}: order of the pressure", observed_order(radii, pressure), 1.8, "above"))
        else:
            checks.append(Check(f"{rule}: pressure", max(pressure), 1e-4))
        checks.append(Check(f"{rule}: gradient", gradient[-1], 1e-3))
    return checks


def in_moments(setting: Setting) -> list[Check]:
    """Check the same walls and pressures in moment storage: second order, and a linear profile between plates."""
    tile, radii = MOMENT_EDGE, (4.3, 6.2, 8.7) if setting.quick else (4.3, 6.2, 8.7, 12.4, 17.6)
    random, errors = np.random.default_rng(2), dict[str, list[float]](along=[], tilted=[], turning=[])
    for radius in radii:
        samples = []
        for y, z in random.uniform(0, 1, (2 if setting.quick else 4, 2)):
            sites = shifted_pipe(radius, y, z, float(tile))
            r = np.hypot(positions(sites)[:, 1] - y, positions(sites)[:, 2] - z)
            axis = np.array([1.0, 0.0, 0.0])
            samples.append(_pipe_errors(setting, sites, r, axis, radius, tile=tile)[0])
        errors["along"].append(float(np.mean(samples)))
        y, z = random.uniform(0, 1, 2)
        sites, r = tilted_pipe(radius, y, z, tile)
        errors["tilted"].append(_pipe_errors(setting, sites, r, _TILT, radius, tile=tile)[0])
        errors["turning"].append(_ring_error(setting, radius, "bouzidi", tile))
    order = {name: observed_order(radii, series) for name, series in errors.items()}
    plot = partial(convergence_by_radius, sizes=radii, errors=errors, order=2.0)
    tubes = [_pressure_errors(setting, (1.0, 0.3, 0.2), radius, tile) for radius in radii[:4]]
    speed, pressure, _ = (observed_order(radii[:4], list(column)) for column in zip(*tubes, strict=True))
    height = 8.0
    sites = shapes.channel(height, float(tile), float(tile), 1.0)
    lid = MovingWall("lid", (0.02, 0.01, 0.0), patch=partial(_lid, height))
    model = FlowModel(Newtonian(0.3), walls=Walls("bouzidi", (lid,)))
    solver = _solver(setting, sites, model, tile)
    solver.advance(int(np.log(1e17) * height**2 / (np.pi**2 * 0.3)))
    linear_profile = np.outer(positions(sites)[:, 2] / height, lid.velocity)
    line = relative_error(solver.fields(["velocity"])["velocity"], linear_profile)
    name = "moments, Bouzidi pipe"
    return [
        Check(f"{name}, along the lattice: order", order["along"], 1.8, "above", reference=_BOUZIDI, plot=plot),
        Check(f"{name}, tilted: order", order["tilted"], 1.8, "above", reference=_BOUZIDI),
        Check("moments, round Couette flow: order", order["turning"], 1.8, "above", reference=_BOUZIDI),
        Check("moments, plane Couette flow: straight line", line, 1e-12, reference=_LADD),
        Check("moments, pressure in the plane: order of the velocity", speed, 1.8, "above", reference=_GINZBURG),
        Check("moments, pressure in the plane: order of the pressure", pressure, 1.8, "above", reference=_GINZBURG),
    ]


def mass_drift(setting: Setting) -> list[Check]:
    """Check that interpolated walls conserve the mass of a closed pipe in steady flow."""
    sites = shifted_pipe(6.3, 0.3, 0.1)
    solver = setting.solver(sites, FlowModel(Newtonian(0.05), body_force=(1e-5, 0.0, 0.0), walls=Walls("bouzidi")))
    initial_mass = solver.monitor().mass
    solver.advance(6000)
    drift = abs(solver.monitor().mass / initial_mass - 1)
    return [Check("Bouzidi pipe: mass drift in 6000 steps", drift, 1e-6, reference=_BOUZIDI)]
