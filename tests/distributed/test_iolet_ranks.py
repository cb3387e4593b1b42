# SPDX-License-Identifier: BSD-3-Clause
"""Every condition of iolets, all in one run: the same bits on any number of ranks, in any layout, after a restart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from flow_cases import BLOOD, site_arrays
from flow_runs import assert_same, load_and_run, run_and_save
from launch import run_ranks

from seiche.domain import shapes
from seiche.domain.sites import IoletPlane, SiteSet
from seiche.domain.world import World
from seiche.flow import (
    FlowModel,
    Newtonian,
    PressureIolet,
    Solver,
    TimeTable,
    VelocityIolet,
    WindkesselIolet,
)
from seiche.flow.choice import LAYOUT_NAMES
from seiche.flow.model import Iolet
from seiche.flow.section import developed_profile
from seiche.flow.state import site_state

STEPS = 40
PULSE = TimeTable(np.array([0.0, 10.0, 30.0]), np.array([0.01, 0.02, 0.01]), repeat=True)
RISE = TimeTable(np.array([5.0, 20.0]), np.array([1.0, 1.002]))
CIRCUIT = WindkesselIolet(0.02, 2000.0, 0.01, distal_density=0.999, scheme="anti-bounce-back", ramp=15.0)


def branched() -> SiteSet:
    """Return a tube along x with a branch along y: an inlet and two outlets."""

    def distance(points: np.ndarray) -> np.ndarray:
        main = np.hypot(points[:, 1], points[:, 2]) - 4.6
        branch = np.maximum(np.hypot(points[:, 0] - 10.0, points[:, 2]) - 3.4, -points[:, 1])
        return np.minimum(main, branch)

    def ends(points: np.ndarray) -> np.ndarray:
        return np.max([-points[:, 0], points[:, 0] - 20.0, points[:, 1] - 12.0], axis=0)

    planes = (
        IoletPlane("inlet", "inlet", (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), 4.6),
        IoletPlane("straight", "outlet", (20.0, 0.0, 0.0), (-1.0, 0.0, 0.0), 4.6),
        IoletPlane("branch", "outlet", (10.0, 12.0, 0.0), (0.0, -1.0, 0.0), 3.4),
    )
    return shapes.sites_from_distance(distance, (0, -5, -5), (20, 12, 5), 1.0, planes, region=ends)


def mixture(outlets: tuple[Iolet, ...]) -> tuple[SiteSet, FlowModel]:
    sites = branched()
    inlet = VelocityIolet(0.0, table=PULSE, profile=developed_profile(sites, 0), ramp=8.0)
    force = (1e-6, 0.0, 2e-6)
    return sites, FlowModel(BLOOD, iolets=(inlet, *outlets), body_force=force)


def full_case() -> tuple[SiteSet, FlowModel]:
    return mixture((CIRCUIT, PressureIolet(table=RISE, scheme="anti-bounce-back", ramp=12.0)))


def circuits() -> tuple[SiteSet, FlowModel]:
    return mixture((CIRCUIT, WindkesselIolet(0.03, 1000.0)))


MIXTURES = {"everything": full_case, "circuits": circuits}


def run_on_one_rank(model: tuple[SiteSet, FlowModel], steps: int) -> Solver:
    solver = Solver(*model, threads=1)
    solver.advance(steps)
    return solver


@pytest.mark.ranks(1, 2, 3, 4)
def test_ranks_equal_one_rank_with_every_condition():
    world = World.from_mpi()
    for model, layouts in ((full_case(), LAYOUT_NAMES), (circuits(), ("list-aa",))):
        reference = run_on_one_rank(model, STEPS + 1)
        assert np.abs(reference.measures.iolet_flow()).min() > 1e-3
        for layout in layouts:
            solver = Solver(*model, layout=layout, world=world, threads=1)
            solver.advance(STEPS + 1)
            assert_same(solver, reference)
            solver.close()


def half_way(path: str, name: str) -> None:
    world, (sites, model) = World.from_mpi(), MIXTURES[name]()
    solver = Solver(sites, model, world=world, threads=1)
    run_and_save(path, solver, STEPS // 2 + 1)


def continue_run(path: str, name: str) -> None:
    world, (sites, model) = World.from_mpi(), MIXTURES[name]()
    solver = Solver(sites, model, layout="tiles-4", world=world, threads=1)
    load_and_run(path, solver, STEPS, run_on_one_rank((sites, model), STEPS))


@pytest.mark.parametrize(("writers", "readers", "name"), [(1, 3, "circuits"), (3, 2, "everything")])
def test_a_circuit_continues_from_a_checkpoint_on_other_ranks(tmp_path: Path, writers: int, readers: int, name: str):
    path = str(tmp_path / "half-way.checkpoint")
    run_ranks(writers, half_way, path, name)
    assert run_ranks(readers, continue_run, path, name).count("agrees") == readers


@pytest.mark.gpu
def test_gpu_equals_cpu_with_every_condition(device: str):
    for model in (full_case(), circuits()):
        for layout in LAYOUT_NAMES:
            solver = Solver(*model, layout=layout, device=device)
            solver.advance(3 * STEPS + 1)
            assert_same(solver, run_on_one_rank(model, 3 * STEPS + 1))


def test_a_circuit_without_its_numbers_starts_again():
    sites = shapes.tube(3.3, 8.0, 1.0)
    model = FlowModel(Newtonian(0.1), iolets=(VelocityIolet(0.01), WindkesselIolet(0.02, 100.0, initial_density=1.01)))
    solver = Solver(sites, model, threads=1)
    before = solver.state().attributes
    solver.advance(9)
    assert solver.state().attributes != before
    solver.set_state(site_state(solver, site_arrays(solver), solver.step))
    assert (
        solver.state().attributes
        == before
        == {"iolets.outlet.capacitor": 1.01 - 1, "iolets.outlet.imposed": 1.01 - 1, "iolets.outlet.inflow": 0}
    )
