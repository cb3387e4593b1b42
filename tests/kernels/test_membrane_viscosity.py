# SPDX-License-Identifier: BSD-3-Clause
"""Surface viscosity of membranes against a NumPy oracle: stress, dissipation, conservation, relaxation, equal bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from seiche.backend import open_backend
from seiche.cells import Cells, CellType, MembraneModel, Skalak, biconcave, ellipsoid
from seiche.cells.energy import RestState
from seiche.domain.surface import Surface
from seiche.errors import CaseError
from seiche.kernels.registry import Real

#: Shear modulus, surface viscosity and relaxation time (steps).
SHEAR, VISCOSITY, TIME = 1.3, 2.0, 5.0
LOOP = MembraneModel(Skalak(SHEAR, 2.0), bending=0.1, viscosity=VISCOSITY, relaxation=TIME)
MODELS = {"loop": LOOP, "flat": replace(LOOP, shell="flat"), "one point": replace(LOOP, points=1)}


def metrics(rest: RestState, x: np.ndarray) -> np.ndarray:
    """Return the metric (..., elements, 2, 2) of the mean tangents of each element."""
    tangents = rest.elements.derivatives(x)[..., 1:3, :].mean(axis=-3)
    return np.einsum("...ai,...bi->...ab", tangents, tangents)


def areas(rest: RestState) -> np.ndarray:
    """Return the stress-free area of each element."""
    return rest.metric[..., 3].sum(axis=-1)


def spring_energy(rest: RestState, x: np.ndarray, relaxed: np.ndarray) -> float:
    """Return the energy of all springs (theory/cells, eq. 18)."""
    now = metrics(rest, x)
    ratio = np.trace(np.linalg.inv(relaxed) @ now, axis1=-2, axis2=-1)
    ratio /= np.sqrt(np.linalg.det(now) / np.linalg.det(relaxed))
    return float((0.5 * rest.cell.model.spring * (ratio - 2) * areas(rest)).sum())


def dissipation(rest: RestState, x: np.ndarray, velocity: np.ndarray) -> float:
    """Return 2 mu_s (d : d - (tr d)^2 / 2), integrated over the stress-free surface."""
    now, step = metrics(rest, x), 1e-5
    rate = (metrics(rest, x + step * velocity) - metrics(rest, x - step * velocity)) / (4 * step)
    mixed = np.linalg.inv(now) @ rate
    trace = np.trace(mixed, axis1=-2, axis2=-1)
    squared = np.trace(mixed @ mixed, axis1=-2, axis2=-1)
    return float((2 * rest.cell.model.viscosity * (squared - 0.5 * trace**2) * areas(rest)).sum())


def packed(relaxed: np.ndarray) -> np.ndarray:
    """Return metrics (..., 2, 2) as numbers vv, vw, ww."""
    return np.stack([relaxed[..., 0, 0], relaxed[..., 0, 1], relaxed[..., 1, 1]], axis=-1)


def memory(cells: Cells) -> np.ndarray:
    """Return the memory (elements, 3) of the first cell."""
    assert cells.relaxed is not None
    block = cells.blocks[0]
    planes = cells.backend.download(cells.relaxed)[:, :, : block.vertices]
    return np.asarray(planes.transpose(0, 2, 1).reshape(-1, 3)[: block.elements])


class Pair:
    """A cell with surface viscosity and its elastic twin."""

    def __init__(
        self, model: MembraneModel, device: str, mesh: Surface | None = None, precision: Real = "float64"
    ) -> None:
        mesh = mesh or biconcave(162, 4.0)
        backend = open_backend(device)
        self.cells, self.elastic = (
            Cells(backend, [CellType("red", mesh, kind)], [np.zeros((2, 3))], precision=precision)
            for kind in (model, replace(model, viscosity=0.0, relaxation=0.0))
        )
        self.rest, self.x = self.cells.blocks[0].rest, self.cells.vertices()[0]

    def move(self, x: np.ndarray, *, advance: bool = True) -> None:
        """Put both cells of each type at `x` and compute all forces."""
        self.x = x
        for cells in (self.cells, self.elastic):
            cells.set_vertices(np.stack([x, x]), relax=False)
        self.cells.compute_forces(advance=advance)
        self.elastic.compute_forces()

    def viscous(self) -> np.ndarray:
        """Return the forces (n, 3) of surface viscosity."""
        return np.asarray(self.cells.vertex_forces()[0] - self.elastic.vertex_forces()[0])


def motion(pair: Pair, size: float) -> np.ndarray:
    """Return random displacements."""
    return np.asarray(size * np.random.default_rng(4).standard_normal(pair.x.shape))


@pytest.mark.parametrize("name", MODELS)
def test_forces_are_those_of_springs_with_a_relaxed_metric(name: str, device: str) -> None:
    pair = Pair(MODELS[name], device)
    pair.move(pair.x)
    assert np.abs(pair.viscous()).max() == 0
    relaxed, way = metrics(pair.rest, pair.x), motion(pair, 0.02)
    for _ in range(4):
        pair.move(pair.x + way)
        relaxed = (relaxed * TIME + metrics(pair.rest, pair.x)) / (1 + TIME)
    assert np.abs(memory(pair.cells) - packed(relaxed)).max() < 1e-13
    force, random, h = pair.viscous(), np.random.default_rng(5), 1e-5
    for _ in range(4):
        way = random.standard_normal(force.shape)
        ends = (spring_energy(pair.rest, pair.x + sign * h * way, relaxed) for sign in (1, -1))
        assert -(force * way).sum() == pytest.approx((next(ends) - next(ends)) / (2 * h), rel=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_the_power_of_slow_motion_is_what_the_surface_viscosity_dissipates(name: str, device: str) -> None:
    pair = Pair(MODELS[name], device)
    way = motion(pair, 2e-5)
    for _ in range(30 * int(TIME)):  # until the springs carry the stress of the dashpots
        pair.move(pair.x + way)
    power = float((pair.viscous() * way).sum())
    assert power == pytest.approx(-dissipation(pair.rest, pair.x, way), rel=1e-3)


@pytest.mark.parametrize("precision, bound", [("float64", 1e-13), ("float32", 2e-6)])
@pytest.mark.parametrize("name", ["loop", "flat"])
def test_momentum_and_angular_momentum_are_conserved(name: str, precision: Real, bound: float, device: str) -> None:
    pair = Pair(MODELS[name], device, precision=precision)
    for _ in range(3):
        pair.move(pair.x + motion(pair, 0.02))
    force = pair.cells.vertex_forces()[0]
    size = np.abs(pair.viscous()).sum()
    assert np.abs(force.sum(axis=0)).max() < bound * size
    assert np.abs(np.cross(pair.x, force).sum(axis=0)).max() < bound * size * np.abs(pair.x).max()


@pytest.mark.parametrize("precision, bound", [("float64", 1e-13), ("float32", 1e-5)])
@pytest.mark.parametrize("name", ["loop", "flat"])
def test_a_rigid_turn_meets_no_resistance(name: str, precision: Real, bound: float, device: str) -> None:
    pair = Pair(MODELS[name], device, precision=precision)
    before = memory(pair.cells)
    turn = Rotation.from_rotvec([0.3, 1.2, -0.8]).as_matrix()
    pair.move(pair.x @ turn.T)
    assert np.abs(memory(pair.cells) - before).max() < bound * np.abs(before).max()
    assert np.abs(pair.viscous()).max() < 20 * bound * VISCOSITY


def test_dilation_meets_no_shear_viscosity(device: str) -> None:
    pair = Pair(MODELS["loop"], device)
    pair.move(1.1 * pair.x)
    assert np.abs(pair.viscous()).max() < 1e-13


@pytest.mark.parametrize("shell, bounds", [("flat", (0.02, 0.005)), ("loop", (0.001, 0.0002))])
def test_dissipation_of_straining_on_a_sphere(
    shell: Literal["loop", "flat"], bounds: tuple[float, float], device: str
) -> None:
    """The flow (x, y, -2 z) on a sphere of radius one dissipates 60.3186 mu_s."""
    errors = []
    for vertices in (162, 642):
        pair = Pair(replace(LOOP, shell=shell), device, mesh=ellipsoid([1.0, 1.0, 1.0], vertices))
        way = 1e-6 * pair.x * [1.0, 1.0, -2.0]
        for _ in range(20 * int(TIME)):
            pair.move(pair.x + way)
        errors.append(-float((pair.viscous() * way).sum()) / (60.3186 * VISCOSITY * 1e-12) - 1)
    assert abs(errors[0]) < bounds[0] and abs(errors[1]) < bounds[1]
    assert np.log2(errors[0] / errors[1]) > 1.8


@pytest.mark.parametrize("frequency", [0.3, 1.0, 3.0])
def test_an_oscillating_strain_meets_the_modulus_of_the_standard_linear_solid(frequency: float, device: str) -> None:
    """At w the spring and the dashpot have the modulus k' i w t / (1 + i w t), in place of k' for a sudden strain."""
    time = 100.0
    pair = Pair(replace(LOOP, relaxation=time), device, mesh=ellipsoid([3.0, 3.0, 3.0], 162))
    start, size = pair.x.copy(), 1e-4
    shape = start * [1.0, -1.0, 0.0]
    pair.move(start + size * shape, advance=False)
    sudden = float((pair.viscous() * shape).sum())
    step = frequency / time
    steps, values = round(2 * np.pi / step), []
    for number in range(1, steps + round(6 * time)):
        pair.move(start + size * np.sin(step * number) * shape)
        values.append((pair.viscous() * shape).sum() / sudden)
    phases = step * np.arange(len(values) - steps + 1, len(values) + 1)
    result = 2 / steps * (np.array(values[-steps:]) * np.exp(-1j * (phases - np.pi / 2))).sum()
    assert abs(result - 1j * frequency / (1 + 1j * frequency)) < 0.01 * abs(result)


def test_forces_are_bitwise_equal_when_they_are_evaluated_again(device: str) -> None:
    pair = Pair(LOOP, device, precision="float32")
    pair.move(pair.x + motion(pair, 0.05))
    force, remembered = pair.cells.vertex_forces(), memory(pair.cells)
    pair.cells.compute_forces()
    assert np.array_equal(pair.cells.vertex_forces(), force)
    assert np.array_equal(memory(pair.cells), remembered)


def test_without_viscosity_the_kernel_is_that_of_the_elastic_law(device: str) -> None:
    """Types with and without viscosity stand side by side; the elastic one keeps its bits and needs no memory."""
    elastic = replace(LOOP, viscosity=0.0, relaxation=0.0)
    types = [CellType(name, biconcave(162, 4.0), model) for name, model in (("plain", elastic), ("viscous", LOOP))]
    backend = open_backend(device)
    both = Cells(backend, types, [np.zeros((1, 3))] * 2, precision="float32")
    single = Cells(backend, types[:1], [np.zeros((1, 3))], precision="float32")
    assert single.relaxed is None
    assert both.stage().bytes - 48 * both.blocks[1].elements == both.vertex_count * 3 * 12
    moved = single.vertices() + 0.05 * np.random.default_rng(1).standard_normal((1, 162, 3))
    for cells in (both, single):
        cells.set_vertices(moved, relax=False)
        cells.compute_forces(advance=True)
    assert np.array_equal(both.vertex_forces(0), single.vertex_forces(0))


def test_a_viscosity_needs_a_relaxation_time() -> None:
    with pytest.raises(CaseError, match="relaxation = 0"):
        MembraneModel(Skalak(1.0), viscosity=1.0)
    with pytest.raises(CaseError, match="viscosity = -1"):
        MembraneModel(Skalak(1.0), viscosity=-1.0, relaxation=1.0)
