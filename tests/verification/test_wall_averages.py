# SPDX-License-Identifier: BSD-3-Clause
"""Wall shear stress averaged over windows of time, against quadrature of exact unsteady flows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from seiche.domain import shapes
from seiche.errors import CaseError
from seiche.flow import FlowModel, Newtonian, PressureIolet, Solver, VelocityIolet
from seiche.flow.averages import WallAverages, oscillatory_shear_index, relative_residence_time
from seiche.flow.profiles import womersley
from seiche.flow.state import site_state
from seiche.validate.check import post_collision_state

Floats = npt.NDArray[np.float64]


def quadrature(stress: Floats) -> tuple[Floats, Floats]:
    """Return time-averaged magnitude and oscillatory shear index of `stress` (n, times) by the rectangle rule."""
    magnitude = np.abs(stress).mean(axis=1)
    return magnitude, 0.5 * (1 - np.abs(stress.mean(axis=1)) / magnitude)


def test_shear_that_reverses_between_plates_is_that_of_the_exact_decay(device: str):
    """Two sine modes with opposite shear at the wall decay at nine-fold different rates, so the shear turns over."""
    height, viscosity, amplitudes = 40, 0.1, {1: 1e-3, 3: -0.9e-3}
    sites = shapes.channel(float(height), 4.0, 4.0, 1.0)
    z = sites.coords[:, 2] + 0.5
    speed, slope = np.zeros((len(sites), 3)), np.zeros((len(sites), 3, 3))
    for k, amplitude in amplitudes.items():
        speed[:, 0] += amplitude * np.sin(k * np.pi * z / height)
        slope[:, 2, 0] += amplitude * k * np.pi / height * np.cos(k * np.pi * z / height)
    solver = Solver(sites, FlowModel(Newtonian(viscosity)), device=device, threads=1)
    state = post_collision_state(np.zeros(len(sites)), speed, slope, 0.5 + 3 * viscosity)
    solver.set_state(site_state(solver, {"populations": state}))
    averages, interval, samples = WallAverages(solver), 4, 300
    for _ in range(samples):
        averages.sample()
        solver.advance(interval)
    magnitude, vector = averages.means()
    # What is observed at step t has streamed once more than it has collided.
    times = 1.0 + interval * np.arange(samples)
    wall, exact = solver.measures.wall_rows(), np.zeros((len(sites), samples))
    for k, amplitude in amplitudes.items():
        decay = np.exp(-viscosity * (k * np.pi / height) ** 2 * times)
        gradient = amplitude * k * np.pi / height * np.cos(k * np.pi * z / height)
        exact += viscosity * gradient[:, None] * decay
    mean, index = quadrature(exact[wall])
    assert 0.1 < index.min() < index.max() < 0.5
    np.testing.assert_allclose(magnitude[wall], mean, rtol=5e-3)
    np.testing.assert_allclose(oscillatory_shear_index(magnitude, vector)[wall], index, atol=5e-3)
    np.testing.assert_allclose(relative_residence_time(vector)[wall], 1 / ((1 - 2 * index) * mean), rtol=0.02)
    off = np.setdiff1d(np.arange(len(sites)), wall)
    assert not magnitude[off].any()
    assert not vector[off].any()


def test_womersley_flow_in_a_tube_of_cubes_has_nearly_the_exact_averages():
    radius, viscosity, alpha, mean, swing, samples = 12.0, 0.1, 4.0, 1e-3, 3e-3, 50
    period = samples * round(2 * np.pi * radius**2 / (alpha**2 * viscosity) / samples)
    alpha = radius * (2 * np.pi / period / viscosity) ** 0.5
    sites = shapes.tube(radius, 12.0, 1.0)
    iolets = (VelocityIolet(mean, (swing,), period, viscosity), PressureIolet(scheme="anti-bounce-back"))
    solver = Solver(sites, FlowModel(Newtonian(viscosity), iolets=iolets), threads=1)
    solver.advance(3 * period)
    averages = WallAverages(solver)
    for _ in range(samples):
        averages.sample()
        solver.advance(period // samples)
    magnitude, vector = averages.means()
    wall = solver.measures.wall_rows()
    rows = wall[sites.coords[wall, 0] == 6]
    r = np.hypot(*(np.array(sites.origin) + sites.coords[rows])[:, 1:].T) / radius
    step = 1e-5
    slope = (womersley(r + step, alpha) - womersley(r - step, alpha)) / (2 * step * radius)
    turn = np.exp(2j * np.pi * np.linspace(0, 1, 2000, endpoint=False))
    exact, index = quadrature(
        4 * viscosity * mean * r[:, None] / radius - viscosity * (swing * slope[:, None] * turn).real
    )
    assert magnitude[rows].mean() == pytest.approx(exact.mean(), rel=0.05)
    assert oscillatory_shear_index(magnitude, vector)[rows].mean() == pytest.approx(index.mean(), abs=0.03)


def test_averages_are_the_sums_of_the_fields_and_continue_from_their_state():
    sites = shapes.tube(4.3, 8.0, 1.0, axis=(1.0, 0.2, 0.1))
    iolets = (VelocityIolet(0.01, (0.02,), 40.0, 0.1), PressureIolet())
    solver = Solver(sites, FlowModel(Newtonian(0.1), iolets=iolets), threads=1)
    full, first, second = WallAverages(solver), WallAverages(solver), WallAverages(solver)
    with pytest.raises(ValueError, match="no sample of the wall shear stress: call sample"):
        full.means()
    length, vector = np.zeros(len(sites)), np.zeros((len(sites), 3))
    for k in range(20):
        solver.advance(3)
        stress = solver.fields(["wall_shear_stress"])["wall_shear_stress"]
        length, vector = length + np.linalg.norm(stress, axis=1), vector + stress
        full.sample()
        if k == 9:
            second.load_state(first.state(), first.samples)
        (first if k < 9 else second).sample()
    np.testing.assert_allclose(full.means()[0], length / 20, rtol=1e-13, atol=1e-20)
    np.testing.assert_allclose(full.means()[1], vector / 20, rtol=1e-13, atol=1e-18)
    np.testing.assert_array_equal(second.state()["wall_averages"], full.state()["wall_averages"])
    assert second.samples == full.samples == 20
    full.clear()
    assert full.samples == 0
    assert not full.state()["wall_averages"].any()
    message = r"state 'wall_averages': expected an array of shape \(\d+, 4\), found nothing"
    with pytest.raises(CaseError, match=message):
        full.load_state({}, 3)


def test_traction_is_wall_shear_and_normal_stress_less_pressure(device: str):
    from seiche.domain.links import outward_normals

    sites = shapes.tube(4.3, 8.0, 1.0, axis=(1.0, 0.2, 0.1))
    iolets = (PressureIolet(1.02), PressureIolet())
    solver = Solver(sites, FlowModel(Newtonian(0.1), iolets=iolets), device=device, threads=1)
    solver.advance(50)
    fields = solver.fields(["traction", "wall_shear_stress", "stress", "density"])
    normal = np.zeros((len(sites), 3))
    normal[sites.boundary] = outward_normals(sites)
    xx, yy, zz, xy, xz, yz = fields["stress"].T
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - np.eye(3)[:, :, None] * (fields["density"] - 1) / 3
    np.testing.assert_allclose(fields["traction"], np.einsum("abn,nb->na", tensor, normal), atol=1e-15)
    across = fields["traction"] - np.sum(fields["traction"] * normal, axis=1)[:, None] * normal
    np.testing.assert_allclose(across, fields["wall_shear_stress"], atol=1e-9)


def test_a_flow_comes_to_rest_in_its_change_of_velocity(device: str):
    sites = shapes.channel(8.0, 4.0, 4.0, 1.0)
    solver = Solver(sites, FlowModel(Newtonian(0.2), body_force=(1e-5, 0.0, 0.0)), device=device, threads=1)
    assert solver.measures.velocity_change() == np.inf
    before = solver.fields(["velocity"])["velocity"]
    solver.advance(20)
    now = solver.fields(["velocity"])["velocity"]
    assert solver.measures.velocity_change() == pytest.approx(
        np.linalg.norm(now - before) / np.linalg.norm(now), rel=1e-12
    )
    np.testing.assert_allclose(solver.measures.mean_velocity(), now.mean(axis=0), rtol=1e-12, atol=1e-18)
    solver.advance(3000)
    solver.measures.velocity_change()
    solver.advance(10)
    assert solver.measures.velocity_change() < 1e-12
