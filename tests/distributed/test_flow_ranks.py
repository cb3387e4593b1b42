# SPDX-License-Identifier: BSD-3-Clause
"""The flow is the same, to the last bit, on any number of ranks, in any layout, and across a restart."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from flow_cases import BLOOD, WATER, blood_in_a_tilted_tube, iolet_model, tilted_tube
from flow_runs import assert_same, load_and_run, run_and_save
from launch import run_ranks

from seiche.domain import shapes
from seiche.domain.sites import SiteSet
from seiche.domain.world import World
from seiche.flow import FlowModel, Solver
from seiche.flow.balance import measure_costs
from seiche.flow.choice import LAYOUT_NAMES

STEPS = 40


def run_on_one_rank(sites: SiteSet, model: FlowModel, steps: int) -> Solver:
    solver = Solver(sites, model, threads=1)
    solver.advance(steps)
    return solver


@pytest.mark.ranks(1, 2, 3, 4)
def test_ranks_equal_one_rank_in_every_layout():
    world = World.from_mpi()
    sites, model = blood_in_a_tilted_tube()
    assert world.size == int(os.environ["SEICHE_TEST_RANKS"])
    for steps in (STEPS, STEPS + 1):
        reference = run_on_one_rank(sites, model, steps)
        for layout in LAYOUT_NAMES:
            solver = Solver(sites, model, layout=layout, world=world, threads=1)
            solver.advance(steps)
            assert_same(solver, reference)
            assert solver.monitor().mach == reference.monitor().mach
            np.testing.assert_allclose(
                solver.measures.mean_velocity(), reference.measures.mean_velocity(), rtol=1e-9, atol=1e-15
            )
            np.testing.assert_allclose(solver.measures.iolet_flow(), reference.measures.iolet_flow(), rtol=1e-12)
            assert solver.monitor().mass == reference.monitor().mass
            solver.close()


@pytest.mark.ranks(3)
def test_ranks_equal_one_rank_where_the_vessel_is_periodic():
    world = World.from_mpi()
    sites, model = shapes.duct(7.0, 6.0, 24.0, 1.0), FlowModel(WATER, body_force=(1e-5, 2e-6, 0.0))
    reference = run_on_one_rank(sites, model, STEPS)
    for partition in ("metis", "slabs"):
        for layout in LAYOUT_NAMES:
            solver = Solver(sites, model, layout=layout, world=world, threads=1, partition=partition)
            solver.advance(STEPS)
            assert_same(solver, reference)
            assert solver.monitor().mass == reference.monitor().mass
            solver.close()


@pytest.mark.ranks(2, 3)
def test_measured_costs_give_other_parts_and_the_same_bits():
    world = World.from_mpi()
    sites, model = blood_in_a_tilted_tube()
    reference = run_on_one_rank(sites, model, STEPS)
    for layout in ("list-aa", "tiles-4"):
        first = Solver(sites, model, layout=layout, world=world, threads=1)
        costs = measure_costs(first, steps=12)
        first.close()
        assert min(costs.fluid, costs.wall, costs.iolet) >= 0.0 and costs.iolet > 0.0
        weights = world.bcast(costs.weights(sites))
        assert weights.min() >= 1.0
        solver = Solver(sites, model, layout=layout, world=world, threads=1, weights=weights)
        solver.advance(STEPS)
        assert_same(solver, reference)
        solver.close()


@pytest.mark.ranks(2, 3)
def test_partition_along_a_curve_equals_one_rank():
    world = World.from_mpi()
    sites, model = blood_in_a_tilted_tube()
    reference = run_on_one_rank(sites, model, STEPS + 1)
    for layout in ("list-aa", "tiles-4"):
        solver = Solver(sites, model, layout=layout, world=world, partition="curve", threads=1)
        solver.advance(STEPS + 1)
        assert_same(solver, reference)
        solver.close()


def half_way(path: str, layout: str) -> None:
    """Leave a checkpoint after an odd number of steps."""
    world, (sites, model) = World.from_mpi(), blood_in_a_tilted_tube()
    solver = Solver(sites, model, layout=layout, world=world, threads=1)
    run_and_save(path, solver, STEPS // 2 + 1)


def continue_run(path: str, layout: str) -> None:
    """Go on from the checkpoint and compare with a run that never stopped."""
    world, (sites, model) = World.from_mpi(), blood_in_a_tilted_tube()
    solver = Solver(sites, model, layout=layout, world=world, threads=1)
    load_and_run(path, solver, STEPS, run_on_one_rank(sites, model, STEPS))


@pytest.mark.parametrize(
    ("writers", "readers", "before", "after"),
    [(1, 3, "list-aa", "tiles-4"), (3, 2, "tiles-8", "list-aa"), (2, 1, "list-ab", "list-aa")],
)
def test_checkpoint_on_other_ranks_and_layout_continues_as_if_uninterrupted(
    tmp_path: Path, writers: int, readers: int, before: str, after: str
):
    path = tmp_path / "half-way.checkpoint"
    run_ranks(writers, half_way, path, before)
    assert run_ranks(readers, continue_run, path, after).count("agrees") == readers


@pytest.mark.parametrize("layout", LAYOUT_NAMES)
def test_state_put_into_a_new_solver_continues_as_if_uninterrupted(layout: str):
    sites, model = blood_in_a_tilted_tube()
    for steps in (STEPS // 2, STEPS // 2 + 1):
        stopped = Solver(sites, model, layout=layout, threads=1)
        stopped.advance(steps)
        resumed = Solver(sites, model, layout=layout, threads=1)
        resumed.set_state(stopped.state())
        resumed.advance(STEPS - steps)
        assert_same(resumed, run_on_one_rank(sites, model, STEPS))


def test_threads_do_not_change_a_bit():
    sites, model = blood_in_a_tilted_tube()
    reference = run_on_one_rank(sites, model, 9)
    for layout in ("list-aa", "tiles-4"):
        solver = Solver(sites, model, layout=layout, threads=2)
        solver.advance(9)
        assert_same(solver, reference)


@pytest.mark.gpu
@pytest.mark.parametrize("rheology", [WATER, BLOOD], ids=["water", "blood"])
@pytest.mark.parametrize("layout", LAYOUT_NAMES)
def test_gpu_equals_cpu(device: str, layout: str, rheology: object):
    sites, model = tilted_tube(), iolet_model(rheology)
    for steps in (STEPS, 3 * STEPS + 1):
        solver = Solver(sites, model, layout=layout, device=device)
        solver.advance(steps)
        assert_same(solver, run_on_one_rank(sites, model, steps))
