# SPDX-License-Identifier: BSD-3-Clause
"""Streaming, collision, iolets and observation of every layout and precision against the oracle, from random states."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from flow_cases import BLOOD, FIELDS, WATER, iolet_model
from oracle import LATTICES, Oracle, compare_with_oracle, from_solver, random_state, to_solver

from seiche.domain import shapes
from seiche.domain.links import outward_normals
from seiche.flow import Bgk, CarreauYasuda, FlowModel, Newtonian, Precision, PressureIolet, Solver, Trt
from seiche.flow.choice import LAYOUT_NAMES
from seiche.flow.state import site_state
from seiche.flow.velocity_set import D3Q19, VELOCITY_SETS
from seiche.kernels.registry.flow import PRECISIONS

Floats = npt.NDArray[np.float64]

#: Error of one step of populations of order 0.01, in units of the arithmetic's last place at 1 (two steps: twice).
ROUNDING = {"float64": 2e-16, "float32": 1.2e-7}

MODELS = {
    "bgk": FlowModel(Newtonian(0.03), Bgk()),
    "bgk with force": FlowModel(Newtonian(0.03), Bgk(), body_force=(1e-3, -2e-3, 5e-4)),
    "trt": FlowModel(Newtonian(0.03), Trt(0.25)),
    "trt with force": FlowModel(Newtonian(0.4), Trt(), body_force=(1e-3, -2e-3, 5e-4)),
    "blood": FlowModel(CarreauYasuda(0.3, 0.02, 30.0, 0.64, 0.2128)),
    "blood with force": FlowModel(CarreauYasuda(0.3, 0.02, 30.0, 2.707, 0.4136), body_force=(1e-3, -2e-3, 5e-4)),
    "blood, bgk": FlowModel(CarreauYasuda(0.3, 0.02, 30.0, 0.64, 0.2128), Bgk()),
}


def as_stored(state: Floats, storage: str) -> Floats:
    """Return the nearest state that the storage can hold."""
    if storage == "float16":
        return (state * 32768).astype(np.float16).astype(np.float64) / 32768
    return state.astype(storage).astype(np.float64)


def storage_rounding(state: Floats, storage: str) -> Floats:
    """Return the greatest error of storing `state` once (halves: 11 bits, and 2^-24/2^15 below the normal ones)."""
    ulp = {"float64": 0.0, "float32": 2.0**-24, "float16": 2.0**-11}[storage]
    return ulp * np.abs(state) + (2.0**-40 if storage == "float16" else 0.0)


BOX = shapes.box((8, 8, 8))
TUBE = shapes.tube(3.3, 8.0, 1.0, axis=(1.0, 0.2, 0.1))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("layout", LAYOUT_NAMES)
def test_two_steps_in_a_periodic_box_are_those_of_the_equations(device: str, layout: str, name: str):
    solver = Solver(BOX, MODELS[name], device=device, layout=layout, threads=1)
    compare_with_oracle(solver, Oracle(BOX, MODELS[name]), 2, 10 * ROUNDING["float64"])


@pytest.mark.parametrize("rheology", [WATER, BLOOD], ids=["water", "blood"])
@pytest.mark.parametrize("layout", LAYOUT_NAMES)
def test_steps_with_walls_and_both_kinds_of_iolets_are_those_of_the_equations(
    device: str, layout: str, rheology: Newtonian | CarreauYasuda
):
    model = iolet_model(rheology)
    solver = Solver(TUBE, model, device=device, layout=layout, threads=1)
    compare_with_oracle(solver, Oracle(TUBE, model), 3, 20 * ROUNDING["float64"], flow=1e-14)


@pytest.mark.parametrize("rheology", [WATER, BLOOD], ids=["water", "blood"])
@pytest.mark.parametrize("layout", LAYOUT_NAMES)
def test_steps_with_pressures_of_second_order_are_those_of_the_equations(
    device: str, layout: str, rheology: Newtonian | CarreauYasuda
):
    iolets = tuple(PressureIolet(mean, scheme="anti-bounce-back") for mean in (1.01, 0.997))
    model = FlowModel(rheology, iolets=iolets, body_force=(1e-3, -2e-3, 5e-4))
    solver = Solver(TUBE, model, device=device, layout=layout, threads=1)
    compare_with_oracle(solver, Oracle(TUBE, model), 3, 20 * ROUNDING["float64"], flow=1e-14)


@pytest.mark.parametrize(("compute", "storage"), PRECISIONS)
@pytest.mark.parametrize("layout", LAYOUT_NAMES)
def test_one_step_is_as_exact_as_arithmetic_and_storage(device: str, layout: str, compute: str, storage: str):
    for rheology in (WATER, BLOOD):
        model = iolet_model(rheology)
        oracle = Oracle(TUBE, model)
        state = as_stored(random_state(TUBE), storage)
        solver = Solver(TUBE, model, device=device, layout=layout, precision=Precision(compute, storage), threads=1)
        solver.set_state(site_state(solver, {"populations": state, "relaxation": oracle.relaxation}))
        solver.advance()
        expected = to_solver(oracle.step(from_solver(state), 0))
        once = storage_rounding(expected, storage)
        # What comes back through an iolet is made from all populations of the site as they were stored.
        bound = 1.01 * once + 20 * ROUNDING[compute]
        for site in {site for site, _, _ in oracle.iolet_links}:
            bound[site] += once[site].sum()
        error = np.abs(solver.state()["populations"] - expected)
        assert np.all(error <= bound)
        if (compute, storage) == ("float64", "float32"):
            assert error.max() > 1e-10  # the storage is really that narrow


@pytest.mark.parametrize("rheology", [WATER, BLOOD], ids=["water", "blood"])
@pytest.mark.parametrize("layout", LAYOUT_NAMES)
@pytest.mark.parametrize("steps", [0, 1])
def test_fields_are_the_moments_of_what_arrives(
    device: str, layout: str, rheology: Newtonian | CarreauYasuda, steps: int
):
    model = iolet_model(rheology)
    oracle = Oracle(TUBE, model)
    solver = Solver(TUBE, model, device=device, layout=layout, threads=1)
    populations = compare_with_oracle(solver, oracle, steps, 20 * ROUNDING["float64"])
    fields, arrived = solver.fields(FIELDS), oracle.arriving(populations)
    rho, u = oracle.moments(arrived)
    stress = -(1 - 0.5 * oracle.relaxation)[:, None, None] * oracle.momentum_flux(arrived)
    pairs = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]
    normal = np.zeros((len(TUBE), 3))
    normal[TUBE.boundary] = outward_normals(TUBE)
    traction = np.einsum("nab,nb->na", stress, normal)
    wall = traction - np.sum(traction * normal, axis=1)[:, None] * normal
    expected = {
        "density": rho,
        "velocity": u,
        "stress": np.stack([stress[:, a, b] for a, b in pairs], axis=1),
        "shear_rate": oracle.shear_rate(arrived),
        "wall_shear_stress": wall,
        "viscosity": (1 / oracle.relaxation - 0.5) / 3,
    }
    for name, values in expected.items():
        np.testing.assert_allclose(fields[name], values, rtol=0, atol=2e-14, err_msg=name)
    assert np.any(wall != 0)
    monitor = solver.monitor()
    np.testing.assert_allclose(monitor.mass, rho.sum(), rtol=1e-15)
    np.testing.assert_allclose(monitor.mach, np.sqrt(3 * np.max(np.sum(u**2, axis=1))), rtol=1e-13)


@pytest.mark.parametrize("layout", LAYOUT_NAMES)
def test_each_population_moves_along_its_own_vector(device: str, layout: str):
    sites = shapes.box((8, 8, 8))
    start = int(sites.find(np.array([0, 7, 3])))
    for q in range(19):
        solver = Solver(sites, FlowModel(Newtonian(1 / 6)), device=device, layout=layout, threads=1)
        state = np.zeros((len(sites), 19))
        state[start, q] = 1e-3
        solver.set_state(site_state(solver, {"populations": state}))
        density = solver.fields(["density"])["density"]
        assert np.flatnonzero(np.abs(density - 1) > 5e-4).tolist() == [
            int(sites.find(np.array([0, 7, 3]) + D3Q19.vectors[q]))
        ]
        solver.advance()
        # The collision at the end of the way gives this population to direction q of that site, and to no other site.
        assert np.flatnonzero(solver.state()["populations"].any(axis=1)).tolist() == [
            int(sites.find(np.array([0, 7, 3]) + D3Q19.vectors[q]))
        ]


@pytest.mark.parametrize("name", VELOCITY_SETS)
def test_velocity_set_has_the_moments_of_a_maxwell_distribution(name: str):
    velocity_set = VELOCITY_SETS[name]
    C, W = velocity_set.vectors, velocity_set.weights
    assert {tuple(c) for c in C.tolist()} == {tuple(c) for c in LATTICES[name].vectors.tolist()}
    np.testing.assert_array_equal(C[velocity_set.opposite], -C)
    delta = np.eye(3)
    np.testing.assert_allclose(W.sum(), 1, rtol=1e-15)
    np.testing.assert_allclose(W @ C, 0, atol=1e-16)
    np.testing.assert_allclose(np.einsum("q,qa,qb->ab", W, C, C), delta / 3, atol=1e-16)
    np.testing.assert_allclose(np.einsum("q,qa,qb,qc->abc", W, C, C, C), 0, atol=1e-16)
    fourth = (
        np.einsum("ab,cd->abcd", delta, delta)
        + np.einsum("ac,bd->abcd", delta, delta)
        + np.einsum("ad,bc->abcd", delta, delta)
    )
    np.testing.assert_allclose(np.einsum("q,qa,qb,qc,qd->abcd", W, C, C, C, C), fourth / 9, atol=1e-16)
