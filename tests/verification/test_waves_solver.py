# SPDX-License-Identifier: BSD-3-Clause
"""Waves: orders of accuracy, discrete energy, adjoint, reflection, sources and receivers against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.waves import Brick, Forest, Gaussian, Material, Mesh, PointSource, Ricker, Solver
from seiche.waves.energy import energy, inner_product
from seiche.waves.plane import PlaneWave


def periodic(dim: int, level: int, *, hanging: bool = False) -> Mesh:
    """Return a periodic unit box; with hanging faces one half is a level finer."""
    forest = Forest.uniform(Brick((1,) * dim, (True,) * dim), level)
    if hanging:
        forest = forest.refined(2 * forest.corner[:, 0] < 1 << forest.brick.depth).balanced()
    return Mesh.of_forest(forest)


def plane_wave_error(mesh: Mesh, kind: str, medium: str, flux: str, nodes: int, device: str) -> float:
    """Return the relative error of a diagonal plane wave of one period a side after a quarter of a unit of time."""
    wave = PlaneWave(kind, (1.0,) * mesh.dim, 1.5, 2.0, 1.0 if medium == "elastic" else 0.0)
    material = Material.uniform(mesh.count, wave.density, wave.cp, wave.cs)
    options = {"nodes": nodes, "flux": flux, "device": device}
    longest = Solver(mesh, material, **options).dt
    steps = int(np.ceil(0.25 / longest))
    solver = Solver(mesh, material, **options, dt=0.25 / steps)
    frequency = 2 * np.pi * np.sqrt(mesh.dim) * wave.speed

    def shape(t: np.ndarray) -> np.ndarray:
        return np.cos(frequency * t)

    solver.start_from(wave.state(solver.medium, solver.positions, 0.0, shape))
    solver.advance(steps)
    exact = wave.state(solver.medium, solver.positions, solver.time, shape)
    weights = solver.operator.weights[:, None]
    return float(np.sqrt(np.sum(weights * (solver.values() - exact) ** 2) / np.sum(weights * exact**2)))


@pytest.mark.parametrize(
    ("dim", "medium", "kind", "levels"),
    [
        (2, "acoustic", "p", (2, 3)),
        (2, "elastic", "p", (2, 3)),
        (2, "elastic", "s", (2, 3)),
        (3, "elastic", "s", (2, 3)),
    ],
)
def test_upwind_waves_converge_with_the_order_of_the_nodes(
    dim: int, medium: str, kind: str, levels: tuple[int, int], device: str
) -> None:
    coarse, fine = (plane_wave_error(periodic(dim, at), kind, medium, "upwind", 4, device) for at in levels)
    assert np.log2(coarse / fine) > 4 - 0.25
    assert fine < 1.5e-3


@pytest.mark.parametrize(
    ("medium", "kind", "order"), [("acoustic", "p", 3.9), ("elastic", "p", 3.85), ("elastic", "s", 3.7)]
)
def test_waves_cross_hanging_faces_with_at_least_the_order_of_the_degree(
    medium: str, kind: str, order: float, device: str
) -> None:
    coarse, fine = (
        plane_wave_error(periodic(2, level, hanging=True), kind, medium, "upwind", 4, device) for level in (2, 3)
    )
    assert np.log2(coarse / fine) > order
    assert fine < 1e-3


def test_with_many_nodes_the_order_at_the_default_step_is_that_of_the_time_scheme(device: str) -> None:
    """Four, although eight nodes are of order eight in space (theory/waves, eq. 15)."""
    coarse, fine = (plane_wave_error(periodic(2, level), "p", "acoustic", "upwind", 8, device) for level in (2, 3))
    assert 3.8 < np.log2(coarse / fine) < 4.4


def test_hanging_faces_have_errors_of_the_order_of_the_degree_in_one_layer_whatever_the_step(device: str) -> None:
    """theory/waves, section 4: the worst node next to a hanging face has order N, nodes elsewhere about N + 1."""
    wave, frequency = PlaneWave("s", (1.0, 1.0), 1.5, 2.0, 1.0), 2 * np.pi * np.sqrt(2.0)
    errors = []
    for level, share in ((3, 0.9), (4, 0.9), (4, 0.4)):
        mesh = periodic(2, level, hanging=True)
        material = Material.uniform(mesh.count, 1.5, 2.0, 1.0)
        longest = share * Solver(mesh, material, nodes=4, device=device).largest_step
        steps = int(np.ceil(0.25 / longest))
        solver = Solver(mesh, material, nodes=4, dt=0.25 / steps, device=device)
        solver.start_from(wave.state("elastic", solver.positions, 0.0, lambda t: np.cos(frequency * t)))
        solver.advance(steps)
        exact = wave.state("elastic", solver.positions, solver.time, lambda t: np.cos(frequency * t))
        x = solver.positions[..., 0]
        near = (np.minimum(np.abs(x - 0.5), np.minimum(x, 1 - x)) < 0.5**level).all(1)
        error = solver.values() - exact
        far = np.where(near[:, None, None], 0.0, error)
        errors.append((np.abs(error[near]).max(), np.sqrt(energy(far, solver.operator))))
    (worst, elsewhere), short = np.log2(np.divide(errors[0], errors[1])), np.divide(errors[2], errors[1])
    assert 2.8 < worst < 3.2 and 3.8 < elsewhere
    assert short == pytest.approx([1.0, 1.0], abs=0.01)


def random_solver(
    dim: int, medium: str, flux: str, by_node: bool, device: str, sides: tuple[str, ...] = ()
) -> tuple[Solver, np.ndarray, np.ndarray]:
    """Return a solver with hanging faces, random materials, some elements fluid, and two random states of it.

    Periodic unless the box has `sides`.
    """
    rng = np.random.default_rng(4)
    nodes = 4
    forest = Forest.uniform(Brick((1,) * dim, (not sides,) * dim), 1)
    mesh = Mesh.of_forest(forest.refined(np.arange(len(forest)) == 0).balanced())
    shape = (mesh.count, nodes**dim) if by_node else (mesh.count,)
    density, cp = 1 + rng.random(shape), 2 + rng.random(shape)
    cs = np.zeros(shape) if medium == "acoustic" else 1 + 0.5 * rng.random(shape)
    cs[::3] = 0
    options = {"nodes": nodes, "flux": flux, "medium": medium, "boundaries": sides or "free"}
    solver = Solver(mesh, Material(density, cp, cs), device=device, **options)  # type: ignore[arg-type]
    states = rng.standard_normal((2, *solver.values().shape))
    if medium == "elastic":
        fluid = cs.reshape(mesh.count, -1).max(1) == 0
        states[:, fluid, dim : 2 * dim] = states[:, fluid, dim : dim + 1]  # S = -p I
        states[:, fluid, 2 * dim :] = 0
    return solver, states[0], states[1]


RANDOM = [
    (2, "acoustic", "upwind", False),
    (2, "elastic", "central", True),
    (2, "elastic", "upwind", False),
    (3, "elastic", "upwind", False),
]


@pytest.mark.parametrize(("dim", "medium", "flux", "by_node"), RANDOM)
def test_energy_never_grows_and_the_adjoint_is_the_operator_with_flipped_velocities(
    dim: int, medium: str, flux: str, by_node: bool, device: str
) -> None:
    growth, difference = growth_and_asymmetry(*random_solver(dim, medium, flux, by_node, device))
    if flux == "central":
        assert abs(growth) < 1e-14
    else:
        assert growth < -1e-3
    assert abs(difference) < 1e-13


@pytest.mark.parametrize(("dim", "medium", "flux", "by_node"), RANDOM)
def test_sides_take_energy_or_keep_it_and_the_adjoint_stays_the_operator(
    dim: int, medium: str, flux: str, by_node: bool, device: str
) -> None:
    """Absorbing, free and rigid sides next to fluids, solids and hanging faces."""
    kinds = ("absorbing", "free", "absorbing", "rigid", "absorbing", "absorbing")[: 2 * dim]
    growth, difference = growth_and_asymmetry(*random_solver(dim, medium, flux, by_node, device, kinds))
    assert growth < -1e-3 and abs(difference) < 1e-13
    if flux == "central":
        retained, _ = growth_and_asymmetry(*random_solver(dim, medium, flux, by_node, device, kinds[1:2] * 2 * dim))
        assert abs(retained) < 1e-14


def growth_and_asymmetry(solver: Solver, first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Return how fast the energy grows and <L a, b> - <a, T L T b>, over the norms of a = `first` and L a."""
    dim, medium = solver.disc.dim, solver.disc.medium
    flip = np.ones((1, solver.disc.fields, 1))
    flip[:, 1:] *= -1 if medium == "acoustic" else 1
    flip[:, : dim if medium == "elastic" else 0] = -1
    solver.start_from(first)
    rate = solver.rhs()
    scale = np.sqrt(inner_product(rate, rate, solver.operator) * inner_product(first, first, solver.operator))
    growth = inner_product(first, rate, solver.operator) / scale
    solver.start_from(flip * second)
    adjoint = flip * solver.rhs()
    difference = inner_product(rate, second, solver.operator) - inner_product(first, adjoint, solver.operator)
    return growth, difference / scale


@pytest.mark.parametrize("kind", ["free", "rigid", "absorbing"])
def test_boundaries_reflect_or_absorb_a_pulse_at_normal_incidence(kind: str, device: str) -> None:
    forest = Forest.uniform(Brick((8, 1), (False, True)), 0)
    mesh = Mesh.of_forest(forest, tree_size=1.0)
    wave = PlaneWave("p", (1.0, 0.0), 2.0, 1.0)
    solver = Solver(mesh, Material.uniform(mesh.count, 2.0, 1.0), nodes=6, boundaries=kind, device=device)

    def pulse(t: np.ndarray) -> np.ndarray:
        return np.exp(-((t - 5.0) ** 2) / 0.5)

    solver.start_from(wave.state("acoustic", solver.positions, 0.0, pulse))
    solver.advance(round(6.0 / solver.dt))  # to the far side at x = 8 and back to x = 5
    pressure = solver.values()[:, 0]
    mirrored = pulse(16.0 - solver.positions[..., 0] - solver.time) * 2.0
    expected = {"free": -mirrored, "rigid": mirrored, "absorbing": 0 * mirrored}[kind]
    assert np.abs(pressure - expected).max() < 5e-3 * 2.0


def test_an_interface_of_two_fluids_reflects_by_their_impedances(device: str) -> None:
    mesh = Mesh.of_forest(Forest.uniform(Brick((16, 1), (False, True)), 0))
    right = mesh.lower[:, 0] >= 8
    density, cp = np.where(right, 2.5, 1.0), np.where(right, 2.0, 1.0)
    solver = Solver(mesh, Material(density, cp, 0 * cp), nodes=6, device=device)
    wave = PlaneWave("p", (1.0, 0.0), 1.0, 1.0)

    def pulse(t: np.ndarray) -> np.ndarray:
        return np.exp(-((t - 5.0) ** 2) / 0.5)

    state = wave.state("acoustic", solver.positions, 0.0, pulse)
    state[right] = 0
    solver.start_from(state)
    solver.advance(round(5.5 / solver.dt))
    reflection = (5.0 - 1.0) / (5.0 + 1.0)
    x = solver.positions[..., 0]
    back = reflection * pulse(16.0 - x - solver.time)
    on = (1 + reflection) * pulse(8.0 + (x - 8.0) / 2 - solver.time)
    assert np.abs(solver.values()[:, 0] - np.where(right[:, None], on, back)).max() < 4e-3


def test_a_volume_source_radiates_the_pressure_of_a_monopole(device: str) -> None:
    """The pressure is rho s'(t - r/c)/(4 pi r); the source lies on a corner of eight elements, the receivers do not."""
    mesh = Mesh.of_forest(Forest.uniform(Brick((6, 6, 6), (False,) * 3), 0), origin=-3.0)
    pulse = Gaussian(0.5, 2.6)
    receivers = [(1.5, 1.5, 0.5), (-1.4, 1.3, 1.1)]
    solver = Solver(
        mesh,
        Material.uniform(mesh.count, 2.0, 1.0),
        nodes=5,
        device=device,
        sources=[PointSource((0.0, 0.0, 0.0), pulse, volume=3.0)],
        receivers=receivers,
        sample_every=2,
    )
    solver.advance(2 * int(4.1 / (2 * solver.dt)))
    samples = solver.samples()[..., 0]
    times = 2 * solver.dt * np.arange(1, len(samples) + 1)
    for number, receiver in enumerate(receivers):
        r = np.linalg.norm(receiver)
        late = times - r
        slope = -(late - pulse.delay) / pulse.sigma**2 * pulse(late)
        exact = 2.0 * 3.0 * slope / (4 * np.pi * r)
        assert np.abs(samples[:, number] - exact).max() < 0.015 * np.abs(exact).max()


@pytest.mark.parametrize(("medium", "flux"), [("acoustic", "upwind"), ("elastic", "upwind"), ("elastic", "central")])
def test_threads_give_results_bitwise_equal_to_one(medium: str, flux: str) -> None:
    mesh = periodic(2, 2, hanging=True)
    states = []
    for threads in (1, 2, 3):
        material = Material.uniform(mesh.count, 1.0, 2.0, 1.1 if medium == "elastic" else 0.0)
        solver = Solver(mesh, material, nodes=4, flux=flux, threads=threads)
        solver.start_from(np.random.default_rng(1).standard_normal(solver.values().shape))
        solver.advance(5)
        states.append(solver.values())
    assert np.abs(states[0]).max() > 0.1
    np.testing.assert_array_equal(states[1], states[0])
    np.testing.assert_array_equal(states[2], states[0])


def test_single_precision_follows_double(device: str) -> None:
    mesh = periodic(2, 2)
    wave = PlaneWave("p", (1.0, 1.0), 1.0, 1.0)
    states = []
    for precision in ("float64", "float32"):
        solver = Solver(mesh, Material.uniform(mesh.count, 1.0, 1.0), nodes=4, precision=precision, device=device)
        frequency = 2 * np.pi * np.sqrt(2)
        solver.start_from(wave.state("acoustic", solver.positions, 0.0, lambda t: np.sin(frequency * t)))  # noqa: B023
        solver.advance(40)
        states.append(solver.values().astype(np.float64))
    assert 0 < np.abs(states[0] - states[1]).max() < 1e-5


def interface_mode(speed: float, fluid: bool) -> tuple[np.ndarray, list[tuple[float, bool, np.ndarray]]]:
    """Return amplitudes and parts (decay, above, v and S) of the wave along the surface of a solid with rho = cs = 1.

    The solid (cp^2 = 3) lies below y = 0, above it nothing or a fluid with rho = c = 1; wave number 1.
    """

    def part(decay: float, ux: complex, uy: complex, lam: float, mu: float) -> np.ndarray:
        spread = lam * (1j * ux + decay * uy)
        stress = [spread + 2j * mu * ux, spread + 2 * mu * decay * uy, mu * (decay * ux + 1j * uy)]
        return np.array([-1j * speed * ux, -1j * speed * uy, *stress])

    qp, qs = np.sqrt(1 - speed**2 / 3), np.sqrt(1 - speed**2)
    parts = [(qp, False, part(qp, 1j, qp, 1.0, 1.0)), (qs, False, part(qs, qs, -1j, 1.0, 1.0))]
    rows = [[one[3] for _, _, one in parts], [one[4] for _, _, one in parts]]
    if fluid:
        parts.append((-qs, True, part(-qs, 1j, -qs, 1.0, 0.0)))
        above = parts[2][2]
        rows = [[*rows[0], -above[3]], [*rows[1], 0], [parts[0][2][1], parts[1][2][1], -above[1]]]
    amplitudes = np.linalg.svd(np.array(rows))[2][-1].conj()
    return amplitudes, parts


@pytest.mark.parametrize(
    ("speed", "fluid"), [(np.sqrt(2 - 2 / np.sqrt(3)), False), (0.711001723019, True)], ids=["Rayleigh", "Scholte"]
)
def test_interface_waves_travel_at_their_speeds(speed: float, fluid: bool, device: str) -> None:
    """Rayleigh waves of a Poisson solid; Scholte waves of doi:10.1016/j.jcp.2010.09.008; wavelength 1, depth 3 or 2."""
    low, high = (-2, 2) if fluid else (-3, 0)
    mesh = Mesh.of_forest(Forest.uniform(Brick((1, high - low), (True, False)), 2), origin=(0.0, float(low)))
    above = mesh.lower[:, 1] >= 0
    cp, cs = np.where(above, 1.0, np.sqrt(3.0)), np.where(above, 0.0, 1.0)
    sides = ("free", "free", "absorbing", "absorbing" if fluid else "free")
    solver = Solver(mesh, Material(np.ones(mesh.count), cp, cs), nodes=4, boundaries=sides, device=device)
    amplitudes, parts = interface_mode(speed, fluid)
    x, y = 2 * np.pi * np.moveaxis(solver.positions, -1, 0)

    def exact(time: float) -> np.ndarray:
        total = np.zeros(solver.values().shape)
        for amplitude, (decay, side, one) in zip(amplitudes, parts, strict=True):
            wave = amplitude * np.exp(1j * (x - 2 * np.pi * speed * time) + decay * y) * (above == side)[:, None]
            total += (one[:, None] * wave[:, None]).real
        return total

    solver.start_from(exact(0.0))
    solver.advance(round(0.5 / solver.dt))
    error = energy(solver.values() - exact(solver.time), solver.operator)
    assert np.sqrt(error / energy(exact(solver.time), solver.operator)) < 0.015


def spectral_radius(solver: Solver) -> float:
    """Return about the largest magnitude of an eigenvalue of the right-hand side, by power iteration."""
    state = np.random.default_rng(3).standard_normal(solver.values().shape)
    for _ in range(60):
        solver.start_from(state)
        rate = solver.rhs()
        growth = np.sqrt(energy(rate, solver.operator) / energy(state, solver.operator))
        state = rate / np.abs(rate).max()
    return float(growth)


@pytest.mark.parametrize("flux", ["upwind", "central"])
@pytest.mark.parametrize("cs", [0.0, 1.0], ids=["fluid", "solid"])
@pytest.mark.parametrize("dim", [2, 3])
def test_the_limit_of_the_step_holds_between_contrasting_media_at_hanging_faces(
    dim: int, cs: float, flux: str, device: str
) -> None:
    """Small elements twice as slow limit the step no more than large ones; the scheme is stable to 3.34 i and -4.66."""
    forest = Forest.uniform(Brick((3,) * dim, (False,) * dim), 0)
    mesh = Mesh.of_forest(forest.refined(np.arange(3**dim) % 5 == 0))
    small = mesh.level == 1
    bound = {"upwind": 4.66, "central": 3.34}[flux]
    for density in (0.05, 1.0, 20.0):
        speed = np.where(small, 0.5, 1.0)
        material = Material(np.where(small, density, 1.0), 1.75 * speed, cs * speed)
        solver = Solver(mesh, material, nodes=4, flux=flux, boundaries="free", device=device)
        assert 0.25 * bound < spectral_radius(solver) * solver.dt < bound


def test_the_central_step_is_stable_in_the_plane(device: str) -> None:
    """Frequencies of the axes add up in squares."""
    mesh = periodic(2, 2)
    solver = Solver(mesh, Material.uniform(mesh.count, 1.0, 1.0), nodes=4, flux="central", device=device)
    assert 3.0 < spectral_radius(solver) * solver.largest_step < 3.4


def test_an_absorbing_layer_takes_away_what_an_absorbing_side_reflects(device: str) -> None:
    """A point source's pulse near two sides, against the same in a box so large that nothing comes back."""
    samples = {}
    for name, half, sponge in (("large", 7, 0.0), ("sides", 2, 0.0), ("layer", 4, 2.0)):
        mesh = Mesh.of_forest(Forest.uniform(Brick((2 * half,) * 2, (False,) * 2), 0), origin=-float(half))
        solver = Solver(
            mesh,
            Material.uniform(mesh.count, 1.0, 1.0),
            nodes=5,
            device=device,
            dt=0.05,
            sources=[PointSource((0.3, 0.4), Ricker(0.5, 2.4), volume=1.0)],
            receivers=[(1.5, 1.5), (1.5, -1.0)],
            sponge=sponge,
        )
        solver.advance(220)
        samples[name] = solver.samples()[..., 0]
    error = {name: np.abs(samples[name] - samples["large"]).max(0) for name in ("sides", "layer")}
    largest = np.abs(samples["large"]).max(0)
    assert np.all(error["sides"] > 0.04 * largest)
    assert np.all(error["layer"] < 0.015 * largest)


def test_the_layer_never_adds_energy(device: str) -> None:
    mesh = Mesh.of_forest(Forest.uniform(Brick((4, 3), (False, True)), 0))
    solver = Solver(mesh, Material.uniform(mesh.count, 1.0, 2.0, 1.0), nodes=4, sponge=1.5, device=device)
    solver.start_from(np.random.default_rng(1).standard_normal(solver.values().shape))
    energies = [solver.energy()]
    for _ in range(12):
        solver.advance(5)
        energies.append(solver.energy())
    assert np.all(np.diff(energies) < 0)
