# SPDX-License-Identifier: BSD-3-Clause
"""Moment storage on several ranks: the bits of one rank, with every kind of iolet, and across a restart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from flow_cases import blood_in_a_tilted_tube
from flow_runs import assert_same, load_and_run, run_and_save
from launch import run_ranks
from test_iolet_ranks import circuits, full_case

from seiche.domain.sites import SiteSet
from seiche.domain.world import World
from seiche.flow import FlowModel, Regularised, Solver

STEPS = 41


def regularised(case: tuple[SiteSet, FlowModel]) -> tuple[SiteSet, FlowModel]:
    sites, model = case
    return sites, replace(model, collision=Regularised())


CASES = {
    "tube": lambda: regularised(blood_in_a_tilted_tube()),
    "everything": lambda: regularised(full_case()),
    "circuits": lambda: regularised(circuits()),
}


def run_on_one_rank(name: str, steps: int, layout: str = "list-aa") -> Solver:
    solver = Solver(*CASES[name](), layout=layout, threads=1)
    solver.advance(steps)
    return solver


@pytest.mark.ranks(1, 2, 3, 4)
def test_ranks_equal_one_rank_and_stored_populations():
    world = World.from_mpi()
    for name, make in CASES.items():
        solver = Solver(*make(), layout="moments", world=world, threads=1)
        solver.advance(STEPS)
        assert_same(solver, run_on_one_rank(name, STEPS))
        solver.close()


def half_way(path: str, name: str) -> None:
    world, (sites, model) = World.from_mpi(), CASES[name]()
    solver = Solver(sites, model, layout="moments", world=world, threads=1)
    run_and_save(path, solver, STEPS // 2 + 1)


def continue_run(path: str, name: str, layout: str) -> None:
    world, (sites, model) = World.from_mpi(), CASES[name]()
    solver = Solver(sites, model, layout=layout, world=world, threads=1)
    load_and_run(path, solver, STEPS, run_on_one_rank(name, STEPS))


@pytest.mark.parametrize(
    ("writers", "readers", "name", "layout"),
    [(1, 3, "circuits", "moments"), (3, 2, "everything", "moments"), (2, 2, "everything", "list-aa")],
)
def test_a_checkpoint_of_moments_continues_elsewhere_as_if_never_stopped(
    tmp_path: Path, writers: int, readers: int, name: str, layout: str
):
    path = str(tmp_path / "half-way.checkpoint")
    run_ranks(writers, half_way, path, name)
    assert run_ranks(readers, continue_run, path, name, layout).count("agrees") == readers


def test_threads_do_not_change_a_bit():
    solver = Solver(*CASES["tube"](), layout="moments", threads=2)
    solver.advance(9)
    assert_same(solver, run_on_one_rank("tube", 9, "moments"))


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_gpu_equals_cpu(device: str, name: str):
    for steps in (STEPS, 3 * STEPS + 1):
        solver = Solver(*CASES[name](), layout="moments", device=device)
        solver.advance(steps)
        assert_same(solver, run_on_one_rank(name, steps, "moments"))
