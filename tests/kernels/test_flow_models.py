# SPDX-License-Identifier: BSD-3-Clause
"""Velocity sets, collisions of many rates, viscosity laws and forces of sites, against the oracle and each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from flow_cases import FIELDS, WATER, iolet_model, site_arrays
from oracle import Oracle, compare_with_oracle, random_state

from seiche.domain import shapes
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.flow import Bgk, CarreauYasuda, Casson, FlowModel, Mrt, Newtonian, PowerLaw, Precision, Solver, Trt
from seiche.flow.choice import LAYOUT_NAMES
from seiche.flow.state import site_state
from seiche.flow.velocity_set import VELOCITY_SETS

Floats = npt.NDArray[np.float64]

#: Error of one step of populations of order 0.01.
ROUNDING = 2e-16
PUSH = (1e-3, -2e-3, 5e-4)
#: Shear rates of the random states are about 0.05 and spread around the ends of both laws.
CASSON = Casson(1e-4, 0.02, 0.3)
POWER = PowerLaw(0.02, 0.5, 0.02, 0.06)

MODELS = {
    "D3Q15": FlowModel(WATER, body_force=PUSH, velocity_set="D3Q15"),
    "D3Q27": FlowModel(WATER, body_force=PUSH, velocity_set="D3Q27"),
    "D3Q27, bgk": FlowModel(WATER, Bgk(), velocity_set="D3Q27"),
    "mrt": FlowModel(WATER, Mrt()),
    "mrt with force": FlowModel(WATER, Mrt(1.3, 0.8, 0.25), body_force=PUSH),
    "mrt, shear rate of the rest": FlowModel(WATER, Mrt(1.7, None), body_force=PUSH),
    "mrt, D3Q15": FlowModel(WATER, Mrt(1.3, 0.8), body_force=PUSH, velocity_set="D3Q15"),
    "mrt, D3Q27": FlowModel(WATER, Mrt(None, 1.9), body_force=PUSH, velocity_set="D3Q27"),
    "casson": FlowModel(CASSON),
    "power law": FlowModel(POWER, body_force=PUSH),
    "casson, mrt, D3Q27": FlowModel(CASSON, Mrt(1.3, 0.8), body_force=PUSH, velocity_set="D3Q27"),
}

BOX = shapes.box((8, 8, 8))
TUBE = shapes.tube(3.3, 8.0, 1.0, axis=(1.0, 0.2, 0.1))


def compare(solver: Solver, oracle: Oracle, steps: int) -> None:
    """Compare populations after each step and fields after the last one."""
    populations = compare_with_oracle(solver, oracle, steps, 20 * ROUNDING)
    arrived = oracle.arriving(populations)
    fields = solver.fields(["shear_rate", "velocity"])
    np.testing.assert_allclose(fields["shear_rate"], oracle.shear_rate(arrived), rtol=0, atol=2e-14)
    np.testing.assert_allclose(fields["velocity"], oracle.moments(arrived)[1], rtol=0, atol=2e-14)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("layout", ["list-aa", "tiles-4"])
def test_steps_in_a_periodic_box_are_those_of_the_equations(device: str, layout: str, name: str):
    compare(Solver(BOX, MODELS[name], device=device, layout=layout, threads=1), Oracle(BOX, MODELS[name]), 2)


@pytest.mark.parametrize("velocity_set", ["D3Q15", "D3Q27"])
@pytest.mark.parametrize("layout", ["list-aa", "tiles-4"])
def test_steps_with_walls_and_both_kinds_of_iolets_are_those_of_the_equations(
    device: str, layout: str, velocity_set: str
):
    model = replace(iolet_model(WATER), velocity_set=velocity_set)
    oracle = Oracle(TUBE, model)
    solver = Solver(TUBE, model, device=device, layout=layout, threads=1)
    compare(solver, oracle, 3)
    np.testing.assert_allclose(solver.measures.iolet_flow(), oracle.inflow, rtol=0, atol=1e-14)


@pytest.mark.parametrize("rheology", [WATER, CASSON], ids=["water", "casson"])
def test_a_force_of_every_site_enters_the_collision_as_in_the_equations(device: str, rheology: Newtonian | Casson):
    model = FlowModel(rheology, body_force=PUSH)
    oracle = Oracle(BOX, model)
    solver = Solver(BOX, model, device=device, layout="tiles-8", threads=1)
    field = np.random.default_rng(5).uniform(-2e-3, 2e-3, (len(BOX), 3))
    solver.set_force(field)
    oracle.force = oracle.force + field
    compare(solver, oracle, 2)


def full_model(velocity_set: str) -> FlowModel:
    model = iolet_model(WATER, Mrt(1.2, 1.4))
    return replace(model, rheology=Casson(4e-5, 0.02, 0.3), velocity_set=velocity_set)


@pytest.mark.parametrize("velocity_set", VELOCITY_SETS)
def test_layouts_give_bitwise_equal_results(device: str, velocity_set: str):
    states = []
    for layout in LAYOUT_NAMES:
        solver = Solver(TUBE, full_model(velocity_set), device=device, layout=layout, threads=1)
        solver.advance(41)
        states.append({**site_arrays(solver), **solver.fields(FIELDS)})
    for other in states[1:]:
        for name, values in states[0].items():
            np.testing.assert_array_equal(other[name], values)
    assert np.ptp(states[0]["relaxation"]) > 0.1


@pytest.mark.gpu
@pytest.mark.parametrize("velocity_set", VELOCITY_SETS)
@pytest.mark.parametrize("layout", LAYOUT_NAMES)
def test_gpu_gives_results_bitwise_equal_to_the_cpu(device: str, layout: str, velocity_set: str):
    states = []
    for where in ("cpu", device):
        solver = Solver(TUBE, full_model(velocity_set), device=where, layout=layout)
        solver.set_force(np.random.default_rng(5).uniform(-2e-6, 2e-6, (len(TUBE), 3)))
        solver.advance(97)
        states.append(site_arrays(solver))
    for name, values in states[0].items():
        np.testing.assert_array_equal(states[1][name], values)


@pytest.mark.ranks(1, 2, 3)
@pytest.mark.parametrize("velocity_set", ["D3Q15", "D3Q27"])
def test_ranks_give_bitwise_equal_results(velocity_set: str):
    for layout in ("list-aa", "tiles-4"):
        single = Solver(TUBE, full_model(velocity_set), layout=layout, threads=1)
        shared = Solver(TUBE, full_model(velocity_set), layout=layout, world=World.from_mpi(), threads=1)
        field = np.random.default_rng(5).uniform(-2e-6, 2e-6, (len(TUBE), 3))
        for solver in (single, shared):
            solver.advance(5)
            solver.set_force(field[solver.owned])
            solver.advance(5)
        for name, values in site_arrays(single).items():
            np.testing.assert_array_equal(shared.state()[name], values[shared.owned])
        shared.close()


@pytest.mark.parametrize("rheology", [WATER, CarreauYasuda(0.3, 0.02, 2000.0, 0.64, 0.2128)], ids=["water", "blood"])
def test_many_equal_rates_are_two_rates(device: str, rheology: Newtonian | CarreauYasuda):
    states = []
    for collision in (Trt(0.2), Mrt(None, None, 0.2)):
        solver = Solver(TUBE, iolet_model(rheology, collision), device=device, layout="list-aa", threads=1)
        solver.advance(41)
        states.append({**site_arrays(solver), **solver.fields(FIELDS)})
    for name, values in states[0].items():
        np.testing.assert_allclose(states[1][name], values, rtol=0, atol=1e-15, err_msg=name)


def test_many_rates_equal_to_omega_are_bgk(device: str):
    """Omega = 1 for every moment: magic = 1/4."""
    states = []
    for collision in (Bgk(), Mrt(1.0, 1.0, 0.25)):
        solver = Solver(TUBE, iolet_model(Newtonian(1 / 6), collision), device=device, layout="list-aa", threads=1)
        solver.advance(41)
        states.append(solver.state()["populations"])
    np.testing.assert_allclose(states[1], states[0], rtol=0, atol=1e-15)


@pytest.mark.parametrize("compute", ["float64", "float32"])
@pytest.mark.parametrize("layout", LAYOUT_NAMES)
def test_a_uniform_force_field_is_the_uniform_force_to_the_last_bit(device: str, layout: str, compute: str):
    model = iolet_model(CarreauYasuda(0.3, 0.02, 2000.0, 0.64, 0.2128))
    uniform = Solver(TUBE, model, device=device, layout=layout, precision=Precision(compute, compute), threads=1)
    field = Solver(
        TUBE,
        replace(model, body_force=(0.0, 0.0, 0.0)),
        device=device,
        layout=layout,
        precision=Precision(compute, compute),
        threads=1,
    )
    field.set_force(np.tile(model.body_force, (len(TUBE), 1)))
    for solver in (uniform, field):
        solver.advance(41)
    for name, values in {**site_arrays(uniform), **uniform.fields(FIELDS)}.items():
        other = {**site_arrays(field), **field.fields(FIELDS)}[name]
        np.testing.assert_array_equal(other, values, err_msg=name)
    np.testing.assert_array_equal(field.measures.iolet_flow(), uniform.measures.iolet_flow())


def test_a_force_field_can_change_between_steps(device: str):
    """In a box the momentum grows by the sum of the forces, whatever they are."""
    solver = Solver(BOX, FlowModel(WATER, Mrt()), device=device, layout="tiles-8", threads=1)
    random, expected = np.random.default_rng(3), np.zeros(3)
    for _ in range(3):
        field = random.uniform(-1e-4, 1e-4, (len(BOX), 3))
        solver.set_force(field)
        solver.advance(2)
        expected += 2 * field.sum(axis=0)
    populations = solver.state()["populations"]
    np.testing.assert_allclose((populations @ VELOCITY_SETS["D3Q19"].vectors).sum(axis=0), expected, atol=1e-15)
    assert abs(populations.sum()) < 1e-13


@pytest.mark.parametrize("first", [(0.0, 0.0, 0.0), PUSH])
def test_another_body_force_is_that_of_another_model(device: str, first: tuple[float, float, float]):
    """From a step on, also within graphs: a flow that receives the force then continues like one that has it."""
    other = (-3e-5, 2e-5, 1e-5)
    arguments, made = (
        Solver(BOX, FlowModel(WATER, body_force=force), device=device, layout="tiles-8", threads=1)
        for force in (first, other)
    )
    arguments.advance(50)
    made.set_state(arguments.state())
    arguments.set_body_force(other)
    for solver in (arguments, made):
        solver.advance(70)
    for name, values in {**site_arrays(made), **made.fields(FIELDS)}.items():
        np.testing.assert_array_equal(
            {**site_arrays(arguments), **arguments.fields(FIELDS)}[name], values, err_msg=name
        )
    arguments.set_force(np.zeros((len(BOX), 3)))
    with pytest.raises(CaseError, match="body force: not supported together with a force field"):
        arguments.set_body_force(first)


@pytest.mark.parametrize("name", [name for name in MODELS if MODELS[name].body_force == PUSH])
def test_collision_conserves_mass_and_gives_the_momentum_of_the_force(device: str, name: str):
    model = MODELS[name]
    solver = Solver(BOX, model, device=device, layout="list-ab", threads=1)
    state = random_state(BOX, model.velocity_set)
    solver.set_state(site_state(solver, {"populations": state, "relaxation": np.ones(len(BOX))}))
    solver.advance(10)
    after, vectors = solver.state()["populations"], VELOCITY_SETS[model.velocity_set].vectors
    assert abs(after.sum() - state.sum()) < 1e-12
    gained = (after @ vectors).sum(axis=0) - (state @ vectors).sum(axis=0)
    np.testing.assert_allclose(gained, 10 * len(BOX) * np.array(PUSH), rtol=1e-12)


@pytest.mark.parametrize("velocity_set", VELOCITY_SETS)
def test_each_population_of_a_set_moves_along_its_own_vector(device: str, velocity_set: str):
    vectors, start = VELOCITY_SETS[velocity_set].vectors, np.array([0, 7, 3])
    for layout in LAYOUT_NAMES:
        model = FlowModel(Newtonian(1 / 6), velocity_set=velocity_set)
        solver = Solver(BOX, model, device=device, layout=layout, threads=1)
        for q, vector in enumerate(vectors):
            state = np.zeros((len(BOX), len(vectors)))
            state[int(BOX.find(start)), q] = 1e-3
            solver.set_state(site_state(solver, {"populations": state}))
            density = solver.fields(["density"])["density"]
            assert np.flatnonzero(np.abs(density - 1) > 5e-4).tolist() == [int(BOX.find(start + vector))]
