# SPDX-License-Identifier: BSD-3-Clause
"""Waves that lose energy: Q and speed of plane waves by the complex moduli, energy, ranks of parts, rejected input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from seiche.errors import CaseError
from seiche.waves import Brick, Forest, Material, Mesh, Solver
from seiche.waves.attenuation import Attenuation, attenuated, fitted_shares, relaxation


@pytest.mark.parametrize(
    ("quality", "shares", "unrelaxed"),
    [
        (40.0, (0.038683, 0.033318, 0.042043), 1.051986),
        (120.0, (0.013802, 0.011568, 0.014191), 1.017157),
        (69.3, (0.023313, 0.019735, 0.024461), 1.029818),
    ],
)
def test_bodies_keep_q_over_the_band_of_loh3(quality: float, shares: tuple[float, ...], unrelaxed: float) -> None:
    """Shares and unrelaxed moduli computed independently for the three bodies of LOH.3; Q within 5.1 %."""
    frequencies = 2 * np.pi * np.array([0.15, 1.5, 15.0])
    result = fitted_shares(quality, frequencies, (0.15, 15.0))
    assert result == pytest.approx(shares, abs=2e-6)
    omega = 2 * np.pi * np.geomspace(0.15, 15.0, 50)
    modulus = np.array([relaxation(result, frequencies, w) for w in omega])
    assert np.abs(modulus.imag / modulus.real * quality - 1).max() < 0.051
    slow = Material.uniform(1, 2.6, 2.0 * 0.999, 0.0) if quality == 120 else Material.uniform(1, 2.6, 4.0, 2.0)
    fast, _ = attenuated(slow, quality if quality == 120 else None, quality, dim=3, band=(0.15, 15.0), reference=2.5)
    ratio = (fast.cp / slow.cp) ** 2 if quality == 120 else (fast.cs / slow.cs) ** 2
    assert ratio[0] == pytest.approx(unrelaxed, abs=2e-6)


def test_speeds_and_qualities_are_those_requested_at_the_reference() -> None:
    """LOH.3: the whole loss of the layer is one of shear, which the bulk must allow."""
    slow = Material(np.array([2.6, 2.7]), np.array([4.0, 6.0]), np.array([2.0, 3.464]))
    qp, qs = np.array([120.0, 155.9]), np.array([40.0, 69.3])
    fast, of = attenuated(slow, qp, qs, dim=3, band=(0.15, 15.0), reference=2.5)
    omega = 2 * np.pi * 2.5
    mu = fast.mu * relaxation(of.shear, of.frequencies, omega)
    full = (fast.longitudinal - 4 / 3 * fast.mu) * relaxation(of.bulk, of.frequencies, omega) + 4 / 3 * mu
    for modulus, speed, quality in ((mu, slow.cs, qs), (full, slow.cp, qp)):
        assert 1 / np.real(np.sqrt(slow.density / modulus)) == pytest.approx(speed, rel=1e-12)
        assert modulus.imag / modulus.real * quality == pytest.approx(1.0, abs=0.051)


def damped_wave(kind: str, dim: int, medium: Material, of: Attenuation, k: float, x: np.ndarray) -> Any:
    """Return a function of time with unknowns and bodies of a plane wave along the diagonal, and its frequency.

    Its wave number is real, so its frequency is not: rho omega^2 = M(omega) k^2.
    """
    bulk, shear, w, rho = of.bulk[0], of.shear[0], of.frequencies, medium.density[0]
    mu_u, part = medium.mu[0], 2 - 2 / dim
    bulk_u = medium.longitudinal[0] - part * mu_u

    def modulus(omega: complex) -> complex:
        mu = mu_u * (1 - np.sum(shear * w / (w + 1j * omega)))
        return mu if kind == "s" else bulk_u * (1 - np.sum(bulk * w / (w + 1j * omega))) + part * mu

    omega: complex = k * np.sqrt(medium.cp[0] ** 2 if kind == "p" else medium.cs[0] ** 2)
    for _ in range(200):
        omega = k * np.sqrt(modulus(omega) / rho)
    e = np.ones(dim) / np.sqrt(dim)
    a = e if kind == "p" else np.array([1.0, -1.0, 0.0][:dim]) / np.sqrt(2)
    rate = -0.5j * k * (np.outer(a, e) + np.outer(e, a))  # of strain, for velocities a exp(i (omega t - k e.x))
    even = bulk_u * np.trace(rate) * np.eye(dim)
    odd = 2 * mu_u * (rate - np.trace(rate) / dim * np.eye(dim))
    bodies = [(bulk[b] * even + shear[b] * odd) / (1j * omega + w[b]) for b in range(len(w))]
    stress = (even + odd - sum(w[b] * bodies[b] for b in range(len(w)))) / (1j * omega)
    order = [(0, 0), (1, 1), (0, 1)] if dim == 2 else [(0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)]

    def at(time: float) -> tuple[np.ndarray, np.ndarray]:
        phase = np.exp(1j * (omega * time - k * x @ e))[:, None]
        if medium.cs[0] == 0:
            unknowns = np.array([-stress[0, 0], *a])
            held = np.array([-body[0, 0] for body in bodies])
        else:
            unknowns = np.array([*a, *(stress[position] for position in order)])
            held = np.array([body[position] for body in bodies for position in order])
        return (unknowns[:, None] * phase).real, (held[:, None] * phase).real

    return at, omega


@pytest.mark.parametrize(
    ("kind", "dim", "cs", "by_node"), [("p", 2, 0.0, False), ("p", 2, 1.1, False), ("s", 2, 1.1, True)]
)
def test_plane_waves_decay_and_disperse_by_the_complex_modulus(
    kind: str, dim: int, cs: float, by_node: bool, device: str
) -> None:
    nodes = 10
    mesh = Mesh.of_forest(Forest.uniform(Brick((1,) * dim, (True,) * dim), 1))
    shape = (mesh.count, nodes**dim) if by_node else (mesh.count,)
    slow = Material(*(np.full(shape, value) for value in (1.5, 2.0, cs)))
    fast, of = attenuated(slow, 30.0, 12.0, dim=dim, band=(0.5, 20.0), reference=2.0)
    one = (fast, of)
    if by_node:
        one = (
            Material(*(x[:, 0] for x in (fast.density, fast.cp, fast.cs))),
            Attenuation(of.frequencies, of.bulk[..., 0], of.shear[..., 0]),
        )
    step = 0.3 * Solver(mesh, fast, nodes=nodes, device=device).largest_step
    solver = Solver(mesh, fast, nodes=nodes, attenuation=of, device=device, dt=step)
    places = solver.positions
    at, omega = damped_wave(kind, dim, *one, 2 * np.pi * np.sqrt(dim), places)
    state, memory = at(0.0)
    solver.start_from(state)
    solver.memory.set_state(memory)
    solver.advance(round(1.5 * 2 * np.pi / omega.real / solver.dt))
    state, memory = at(solver.time)
    quality = 30.0 if kind == "p" else 12.0
    assert omega.imag / omega.real * 2 * quality == pytest.approx(1.0, abs=0.06)
    scale = np.abs(at(0.0)[0]).max((0, 2))
    assert np.all(np.abs(solver.values() - state).max((0, 2)) < 1e-6 * scale.max())
    assert solver.memory is not None
    assert np.abs(solver.memory.state() - memory).max() < 1e-6 * np.abs(memory).max()
    elastic = Solver(mesh, fast, nodes=nodes, device=device, dt=step)
    elastic.start_from(at(0.0)[0])
    elastic.advance(solver.step)
    assert np.abs(elastic.values() - state).max() > 0.1 * scale.max()  # without bodies it is another wave


@pytest.mark.parametrize("flux", ["upwind", "central"])
def test_attenuation_never_adds_energy(flux: str, device: str) -> None:
    """Random media, solid and fluid, hanging faces, a layer: the energy of springs and bodies, eq. 32."""
    random = np.random.default_rng(5)
    forest = Forest.uniform(Brick((2, 2), (False, True)), 1)
    mesh = Mesh.of_forest(forest.refined(np.arange(len(forest)) == 0).balanced())
    cs = np.where(np.arange(mesh.count) % 3 == 0, 0.0, 1 + 0.3 * random.random(mesh.count))
    slow = Material(1 + random.random(mesh.count), 2 + random.random(mesh.count), cs)
    fast, of = attenuated(slow, 20 + 10 * random.random(mesh.count), 12.0, dim=2, band=(0.3, 30.0))
    options: dict[str, Any] = {"flux": flux, "attenuation": of, "sponge": 0.4, "device": device}
    solver = Solver(mesh, fast, nodes=4, boundaries=("absorbing", "free", "free", "free"), **options)
    state = random.standard_normal(solver.values().shape)
    state[cs == 0, 2:4] = state[cs == 0, 2:3]
    state[cs == 0, 4:] = 0
    solver.start_from(state)
    energies = [solver.energy()]
    for _ in range(25):
        solver.advance(4)
        energies.append(solver.energy())
    assert np.all(np.diff(energies) < 0) and energies[-1] < 0.9 * energies[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"qp": 0.5}, r"attenuation: qp = 0.5 in element 0: must be at least 3"),
        ({"qp": 200.0}, r"qp = 200 with qs = 40 in element 0, but qp must be at most 120; otherwise"),
        ({"band": (3.0, 1.0)}, r"attenuation: band 3 to 1: must be two positive frequencies in ascending order"),
        ({"reference": -1.0}, r"attenuation: reference = -1: must be a positive frequency"),
        ({"mechanisms": 9}, r"attenuation: mechanisms = 9: must be 1 to 6"),
        (
            {"qp": 3.0, "qs": np.inf, "cs": 3.4},
            r"the quality factors imply Q = 0.11 for the bulk or the shear modulus; at this value its relaxed",
        ),
    ],
)
def test_attenuation_that_is_invalid_is_rejected(options: dict[str, Any], message: str) -> None:
    options = {"qp": 100.0, "qs": 40.0, "band": (0.1, 10.0), **options}
    with pytest.raises(CaseError, match=message):
        attenuated(Material.uniform(2, 2.6, 4.0, options.pop("cs", 2.0)), dim=3, **options)


def test_attenuation_of_another_mesh_or_integrator_is_rejected() -> None:
    mesh = Mesh.of_forest(Forest.uniform(Brick((1, 1), (True, True)), 1))
    fast, of = attenuated(Material.uniform(4, 1.0, 2.0), 30.0, np.inf, dim=2, band=(0.1, 10.0))
    with pytest.raises(CaseError, match='attenuation: requires integrator = "runge-kutta"'):
        Solver(mesh, fast, attenuation=of, flux="central", integrator="leapfrog")
    with pytest.raises(CaseError, match=r"attenuation: shares of shape \(3, 3\), but the material requires \(4, 3\)"):
        Solver(mesh, fast, attenuation=Attenuation(of.frequencies, of.bulk[:3], of.shear[:3]))
    solver = Solver(mesh, fast, nodes=2, attenuation=of)
    with pytest.raises(CaseError, match=r"memory of shape \(1,\); the solver requires \(4, 3, 4\)"):
        solver.memory.set_state(np.zeros(1))
