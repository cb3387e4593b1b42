# SPDX-License-Identifier: BSD-3-Clause
"""Waves: orders of accuracy, energy and adjoint of the right-hand side, interfaces and interface waves."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from seiche.kernels.registry.dg import Medium
from seiche.report.figures import convergence_figure
from seiche.validate.check import Check, Floats, Setting
from seiche.validate.waves.interface_waves import InterfaceWave
from seiche.validate.waves.plane_layers import Solid
from seiche.waves import Brick, Forest, Material, Mesh, Solver
from seiche.waves.boundary import Boundary
from seiche.waves.energy import energy, inner_product
from seiche.waves.plane import PlaneWave
from seiche.waves.solver import SAFETY

_WILCOX = "Wilcox, Stadler, Burstedde, Ghattas 2010, doi:10.1016/j.jcp.2010.09.008"
#: Refinement levels of the two meshes for each number of nodes.
_LEVELS = {2: (4, 5), 3: (3, 4), 4: (2, 3), 5: (2, 3), 6: (1, 2), 7: (1, 2), 8: (1, 2)}
#: Fraction of the largest time step for which the temporal error does not limit the order.
_SHORT = {2: 0.9, 3: 0.9, 4: 0.9, 5: 0.4, 6: 0.3, 7: 0.2, 8: 0.1}


def periodic(dim: int, level: int, *, hanging: bool = False) -> Mesh:
    """Return a periodic unit box; with hanging faces, one half is finer by one level."""
    forest = Forest.uniform(Brick((1,) * dim, (True,) * dim), level)
    if hanging:
        forest = forest.refined(2 * forest.corner[:, 0] < 1 << forest.brick.depth).balanced()
    return Mesh.of_forest(forest)


def plane_wave_error(
    setting: Setting, mesh: Mesh, kind: str, medium: Medium, *, flux: str, nodes: int, default_step: bool = False
) -> float:
    """Return the relative error, at time 0.25, of a diagonal plane wave with one period per side.

    The time step is the default one, or short enough for its error not to limit the order.
    """
    wave = PlaneWave(kind, (1.0,) * mesh.dim, 1.5, 2.0, 1.0 if medium == "elastic" else 0.0)  # type: ignore[arg-type]
    material = Material.uniform(mesh.count, wave.density, wave.cp, wave.cs)
    options: dict[str, Any] = {"nodes": nodes, "flux": flux, "device": setting.device, "threads": setting.threads or 1}
    time_step = Solver(mesh, material, **options).largest_step * (SAFETY if default_step else _SHORT[nodes])
    steps = int(np.ceil(0.25 / time_step))
    solver = Solver(mesh, material, **options, dt=0.25 / steps)
    frequency = 2 * np.pi * np.sqrt(mesh.dim) * wave.speed

    def shape(t: Floats) -> Floats:
        return np.asarray(np.cos(frequency * t))

    solver.start_from(wave.state(solver.medium, solver.positions, 0.0, shape))
    solver.advance(steps)
    exact = wave.state(solver.medium, solver.positions, solver.time, shape)
    return float(np.sqrt(energy(solver.values() - exact, solver.operator) / energy(exact, solver.operator)))


def orders(setting: Setting) -> list[Check]:
    """Check plane-wave orders: the number of nodes for the upwind flux, about one less for averages at odd degree."""
    checks = []
    node_counts = (3, 4, 5) if setting.quick else tuple(_LEVELS)
    kinds: tuple[tuple[Medium, str], ...] = (("acoustic", "p"), ("elastic", "p"), ("elastic", "s"))
    for (medium, kind), nodes in product(kinds, node_counts):
        errors = {
            flux: [
                plane_wave_error(setting, periodic(2, level), kind, medium, flux=flux, nodes=nodes)
                for level in _LEVELS[nodes]
            ]
            for flux in ("upwind", "central")
        }
        sizes = [2.0**level for level in _LEVELS[nodes]]
        name = f"{medium} {kind} wave, {nodes} nodes"
        plot = partial(convergence_figure, sizes=sizes, errors=errors, order=nodes, x_label="elements across")
        upwind, central = (float(np.log2(coarse / fine)) for coarse, fine in errors.values())
        checks.append(Check(f"{name}: order, upwind", upwind, nodes - 0.25, "above", plot=plot))
        checks.append(Check(f"{name}: order, central", central, sense="recorded"))
        if _SHORT[nodes] < SAFETY:
            coarse, fine = (
                plane_wave_error(setting, mesh, kind, medium, flux="upwind", nodes=nodes, default_step=True)
                for mesh in (periodic(2, level) for level in _LEVELS[nodes])
            )
            order = float(np.log2(coarse / fine))
            checks.append(Check(f"{name}: order at the default step", order, 3.75, "above"))
    return checks


def hanging_orders(setting: Setting) -> list[Check]:
    """Check the orders of plane waves across hanging faces."""
    checks = []
    kinds: tuple[tuple[Medium, str, float], ...]
    kinds = ("acoustic", "p", 3.8), ("elastic", "p", 3.7), ("elastic", "s", 3.7)
    for medium, kind, bound in kinds:
        levels = (2, 3) if setting.quick else (2, 3, 4)
        errors = [
            plane_wave_error(setting, periodic(2, level, hanging=True), kind, medium, flux="upwind", nodes=4)
            for level in levels
        ]
        order = float(np.log2(errors[-2] / errors[-1]))
        name = f"{medium} {kind} wave across hanging faces, 4 nodes: order"
        sizes = [2.0**level for level in levels]
        plot = partial(convergence_figure, sizes=sizes, errors={name[:20]: errors}, order=4, x_label="elements across")
        checks.append(Check(name, order, bound, "above", reference="theory/waves, section 4", plot=plot))
    return checks


def spectrum(setting: Setting) -> list[Check]:
    """Check, in random media, that energy never grows and that the adjoint is the operator with reversed velocities."""
    checks = []
    cases: tuple[tuple[int, Medium, str, bool], ...] = (
        (2, "acoustic", "upwind", False),
        (2, "elastic", "central", True),
        (2, "elastic", "upwind", False),
        (3, "elastic", "upwind", False),
    )
    for dim, medium, flux, by_node in cases[: 3 if setting.quick else 4]:
        random = np.random.default_rng(4)
        forest = Forest.uniform(Brick((1,) * dim, (True,) * dim), 1)
        mesh = Mesh.of_forest(forest.refined(np.arange(len(forest)) == 0).balanced())
        shape = (mesh.count, 4**dim) if by_node else (mesh.count,)
        density, cp = 1 + random.random(shape), 2 + random.random(shape)
        cs = np.zeros(shape) if medium == "acoustic" else 1 + 0.5 * random.random(shape)
        cs[::3] = 0
        material, device = Material(density, cp, cs), setting.device
        solver = Solver(mesh, material, nodes=4, flux=flux, medium=medium, device=device, threads=1)
        first, second = random.standard_normal((2, mesh.count, solver.disc.fields, 4**dim))
        if medium == "elastic":  # S = -p I in a fluid
            fluid = cs.reshape(mesh.count, -1).max(1) == 0
            for state in (first, second):
                state[fluid, dim : 2 * dim] = state[fluid, dim : dim + 1]
                state[fluid, 2 * dim :] = 0
        flip = np.ones((1, solver.disc.fields, 1))
        flip[:, 1:] *= -1 if medium == "acoustic" else 1
        flip[:, : dim if medium == "elastic" else 0] = -1
        operator = solver.operator
        solver.start_from(first)
        rate = solver.rhs()
        scale = float(np.sqrt(inner_product(rate, rate, operator) * inner_product(first, first, operator)))
        growth = inner_product(first, rate, operator) / scale
        solver.start_from(flip * second)
        difference = inner_product(rate, second, operator) - inner_product(first, flip * solver.rhs(), operator)
        name = f"random media and hanging faces, {dim}D {medium} {flux}"
        bound = 1e-13 if flux == "central" else 0.0
        checks.append(Check(f"{name}: growth of the energy", growth, bound))
        checks.append(Check(f"{name}: adjoint identity", abs(difference) / scale, 1e-13))
    return checks


def interfaces(setting: Setting) -> list[Check]:
    """Check a pulse at normal incidence on an interface of water and rock, with R and T from the impedances."""
    mesh = Mesh.of_forest(Forest.uniform(Brick((16, 1), (False, True)), 0))
    right = mesh.lower[:, 0] >= 8
    density, cp = np.where(right, 2.5, 1.0), np.where(right, 3400.0 / 1500.0, 1.0)
    solver = Solver(mesh, Material(density, cp, 0 * cp), nodes=6, device=setting.device, threads=1)

    def pulse(t: Floats) -> Floats:
        return np.asarray(np.exp(-((t - 5.0) ** 2) / 0.5))

    state = PlaneWave("p", (1.0, 0.0), 1.0, 1.0).state("acoustic", solver.positions, 0.0, pulse)
    state[right] = 0
    solver.start_from(state)
    solver.advance(round(5.0 / solver.dt))
    pressure, x = solver.values()[:, 0], solver.positions[..., 0]
    z = 2.5 * 3400 / 1500
    reflection = (z - 1) / (z + 1)
    reflected = reflection * pulse(16.0 - x - solver.time)
    transmitted = (1 + reflection) * pulse(8.0 + (x - 8.0) * 1500 / 3400 - solver.time)
    error = float(np.abs(pressure - np.where(right[:, None], transmitted, reflected)).max())
    name = f"pulse on an interface, R = {reflection:.2f}: largest error of the pressure"
    return [Check(name, error, 6e-3, reference="R = (Z2 - Z1)/(Z2 + Z1)")]


def two_layers(setting: Setting) -> list[Check]:
    """Check incident, reflected and refracted waves at 30 degrees between two fluids against Snell's law."""
    fluids, angle = ((1.0, 1.0), (1.2, 2500.0 / 1500.0)), np.radians(30.0)
    sines = [np.sin(angle) * speed for _, speed in fluids]
    cosines = [np.sqrt(1 - sine**2) for sine in sines]
    first, second = (density * speed / cosine for (density, speed), cosine in zip(fluids, cosines, strict=True))
    reflection = (second - first) / (second + first)
    waves = ((sines[0], cosines[0], 0), (sines[0], -cosines[0], 0), (sines[1], cosines[1], 1))
    amplitudes = (1.0, reflection, (1 + reflection) * first * cosines[0] / (second * cosines[1]))
    frequency, errors, levels = 2 * np.pi / sines[0], [], (2, 3)
    for level in levels:
        # Periodic along the interface y = 0; reflections from the sides do not reach the middle.
        mesh = Mesh.of_forest(Forest.uniform(Brick((1, 4), (True, False)), level), origin=(0.0, -2.0))
        is_upper = mesh.lower[:, 1] >= 0
        density, cp = (np.where(is_upper, fluids[1][k], fluids[0][k]) for k in (0, 1))
        solver = Solver(mesh, Material(density, cp, 0 * cp), nodes=6, device=setting.device, threads=1)
        positions = solver.positions

        def exact(time: float, positions: Floats = positions, is_upper: Any = is_upper) -> Floats:
            result = np.zeros((len(positions), 3, positions.shape[1]))
            for (sine, cosine, layer), amplitude in zip(waves, amplitudes, strict=True):
                wave = PlaneWave("p", (sine, cosine), *fluids[layer])
                is_in_layer = is_upper == bool(layer)
                state = wave.state(
                    "acoustic", positions[is_in_layer], time, lambda t: np.asarray(np.sin(frequency * t))
                )
                result[is_in_layer] += amplitude * state
            return result

        solver.start_from(exact(0.0))
        solver.advance(round(0.25 / solver.dt))
        middle = (abs(mesh.lower[:, 1] + mesh.sizes[:, 1] / 2) < 1)[:, None, None]
        final = exact(solver.time)
        error = energy(middle * (solver.values() - final), solver.operator)
        errors.append(float(np.sqrt(error / energy(middle * final, solver.operator))))
    name = f"two fluids at 30 degrees, R = {reflection:.4f}"
    sizes = [2.0**level for level in levels]
    plot = partial(convergence_figure, sizes=sizes, errors={name: errors}, order=6, x_label="elements")
    return [
        Check(f"{name}: relative error", errors[1], 2e-5, reference="Snell's law, continuity", plot=plot),
        Check(f"{name}: order, 6 nodes", float(np.log2(errors[0] / errors[1])), 5.6, "above"),
    ]


def interface_waves(setting: Setting) -> list[Check]:
    """Check Rayleigh, Scholte and Stoneley waves of wavelength 1 after they have travelled half a wavelength."""
    rock = Solid(1.0, np.sqrt(3.0), 1.0)
    tungsten, aluminium = Solid(19.25, 5.22, 2.89), Solid(2.7, 6.42, 3.04)
    cases = (
        ("Rayleigh wave", InterfaceWave(rock, None, np.sqrt(2 - 2 / np.sqrt(3))), 5, 0, "Poisson solid"),
        ("Scholte wave", InterfaceWave(rock, Solid(1.0, 1.0, 0.0), 0.711001723019), 3, 3, _WILCOX),
        ("Stoneley wave", InterfaceWave(tungsten, aluminium, 2.785153782), 6, 6, "aluminium on tungsten"),
    )
    checks = []
    for name, wave, below, above, reference in cases:
        levels, errors = (1, 2) if setting.quick else (1, 2, 3), []
        for level in levels:
            forest = Forest.uniform(Brick((1, below + above), (True, False)), level)
            mesh = Mesh.of_forest(forest, origin=(0.0, float(-below)))
            sides: tuple[Boundary, ...] = ("free", "free", "absorbing", "absorbing" if above else "free")
            material, device = wave.material(mesh), setting.device
            solver = Solver(mesh, material, nodes=5, boundaries=sides, device=device, threads=1)
            solver.start_from(wave.state(solver.positions, 0.0))
            solver.advance(round(0.5 / wave.speed / solver.dt))
            exact = wave.state(solver.positions, solver.time)
            error = energy(solver.values() - exact, solver.operator)
            errors.append(float(np.sqrt(error / energy(exact, solver.operator))))
        sizes = [2.0**level for level in levels]
        plot = partial(
            convergence_figure, sizes=sizes, errors={name: errors}, order=5, x_label="elements per wavelength"
        )
        checks.append(Check(f"{name}: conditions at the interface", wave.misfit, 1e-9, reference=reference))
        checks.append(Check(f"{name}, 4 elements per wavelength: error", errors[1], 3e-3, plot=plot))
        checks.append(Check(f"{name}: order, 5 nodes", float(np.log2(errors[0] / errors[1])), 3.8, "above"))
    return checks
