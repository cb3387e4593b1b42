# SPDX-License-Identifier: BSD-3-Clause
"""Waves are the same, to the last bit, on any number of ranks and across a restart on other ranks."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from launch import run_ranks, run_ranks_on_gpus
from wave_cases import (
    CASES,
    CASES_OF_GPUS,
    brick,
    material_of,
    mesh_of,
    shot_of,
    sizes,
    solver_of,
    solver_with_boxes,
    start,
    weight_of_small_leaves,
)

from seiche.bench import waves as bench_waves
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.waves import Material, Mesh, Solver
from seiche.waves.attenuation import attenuated
from seiche.waves.energy import exact_sum
from seiche.waves.ghosts import GhostKind
from seiche.waves.sizes import Generator
from waves_cases import BLOCK, FORCE, SOIL

STEPS = 5


def run_on_one_rank(case: str, steps: int) -> Solver:
    solver = solver_of(case, World.serial())
    start(solver)
    solver.advance(steps)
    return solver


def assert_same(solver: Solver, reference: Solver) -> None:
    """Compare the elements of this rank with those of a run that one process did alone."""
    assert solver.dt == reference.dt
    assert reference.mesh.interior == reference.mesh.count == solver.mesh.total
    np.testing.assert_array_equal(solver.values(), reference.values()[solver.mesh.number])
    assert solver.energy() == reference.energy()


@pytest.mark.ranks(1, 2, 3, 4)
def test_ranks_equal_one_rank() -> None:
    world = World.from_mpi()
    assert world.size == int(os.environ["SEICHE_TEST_RANKS"])
    for case in CASES:
        reference, solver = run_on_one_rank(case, STEPS), solver_of(case, world)
        start(solver)
        solver.advance(STEPS)
        assert_same(solver, reference)
        np.testing.assert_array_equal(solver.rhs(), reference.rhs()[solver.mesh.number])
        np.testing.assert_array_equal(solver.samples(), reference.samples())
        assert solver.peak is not None and reference.peak is not None
        peaks, expected = solver.peak.gather(), reference.peak.gather()
        for own, alone_ in zip(peaks or (), expected or (), strict=world.rank == 0):
            np.testing.assert_array_equal(own, alone_)
            assert np.abs(alone_).max() > 0
        assert len(solver.samples()) == STEPS // 2 and np.abs(solver.samples()).min() > 0
        solver.close()


@pytest.mark.ranks(1, 2, 3, 4)
def test_gradients_on_ranks_equal_those_on_one_rank() -> None:
    world = World.from_mpi()
    for case in CASES:
        check_gradient(case, world, "cpu")
    check_gradient("elastic central", world, "cpu", integrator="leapfrog")


def check_gradient(
    case: str, world: World, device: str, transport: str = "auto", integrator: str = "runge-kutta"
) -> None:
    """Compare media and sources of a gradient with those that one process computes on the same kind of device."""
    options = {"device": device, "integrator": integrator}
    shots, results = [shot_of(case, ranks) for ranks in (World.serial(), world)], []
    for shot, material in shots:
        shot = replace(shot, options={**shot.options, **options, "transport": transport})
        data = np.zeros((shot.steps, len(shot.receivers), len(shot.fields)))
        results.append(shot.gradient(material, data))
    expected, result = results
    number = shots[1][0].mesh.number
    assert result.misfit == expected.misfit > 0 and np.count_nonzero(expected.cp) > expected.cp.size // 2
    for name in ("density", "cp", "cs"):
        np.testing.assert_array_equal(getattr(result, name), getattr(expected, name)[number])
    np.testing.assert_array_equal(result.sources, expected.sources)


@pytest.mark.ranks(3)
def test_no_rank_holds_the_mesh_and_the_shares_have_equal_weight() -> None:
    world = World.from_mpi()
    for dim in (2, 3):
        mesh, full = mesh_of(dim, world), Generator(brick(dim), sizes(dim)).leaves()
        mirrors = [mesh.number[mesh.ghost_copies(peer)] for peer in range(world.size)]
        numbers, mirrored = zip(*world.allgather((mesh.number, mirrors)), strict=True)
        assert np.array_equal(np.sort(np.concatenate(numbers)), np.arange(len(full)))
        assert np.array_equal(mesh.corner[: mesh.count], full.corner[mesh.number])
        weights = weight_of_small_leaves(full)
        parts = [int(weights[part].sum()) for part in numbers]
        assert max(parts) - min(parts) <= 2 * weights.max()
        assert 0 <= mesh.interior < mesh.count < len(full)
        ghosts = full.key.searchsorted(mesh.keys[mesh.count :])
        for peer in range(world.size):
            assert np.array_equal(ghosts[mesh.ghost_owner == peer], mirrored[peer][world.rank])


@pytest.mark.ranks(3)
def test_whatever_the_ghosts_carry_gives_bitwise_equal_results_but_half_precision() -> None:
    world = World.from_mpi()
    for case in ("elastic by node", "acoustic"):
        sent = {}
        for kind in get_args(GhostKind):
            solver = solver_of(case, world, ghosts=kind)
            start(solver)
            solver.advance(STEPS)
            assert solver.ghosts is not None
            sent[kind] = solver.ghosts.bytes
            state = solver.values()
            if kind == "traces":
                expected = state
            elif kind == "half":
                error = world.allreduce_max(np.array([np.abs(state - expected).max(), np.abs(expected).max()]))
                assert 1e-7 < error[0] / error[1] < 5e-4
            else:
                np.testing.assert_array_equal(state, expected)
            solver.close()
        assert sent["half"] < sent["traces"] < sent["faces"] < sent["variables"] < sent["elements"]


@pytest.mark.ranks(2, 3)
def test_boxes_around_sources_give_the_same_on_any_number_of_ranks() -> None:
    """Also after a restart. The sources have boxes at hanging faces, at a free side and in varying media."""
    steps, world = 9, World.from_mpi()
    reference, solver = solver_with_boxes(World.serial()), solver_with_boxes(world)
    assert solver.sources is not None and not solver.sources.reasons
    reference.advance(steps)
    solver.advance(4)
    continued = solver_with_boxes(world)
    continued.set_state(solver.state())
    continued.advance(steps - 4)
    assert_same(continued, reference)
    np.testing.assert_array_equal(continued.samples(), reference.samples())
    fields = reference.fields(["velocity"])["velocity"]
    np.testing.assert_array_equal(continued.fields(["velocity"])["velocity"], fields[continued.mesh.number])
    assert continued.peak is not None and reference.peak is not None
    for own, alone_ in zip(continued.peak.gather() or (), reference.peak.gather() or (), strict=world.rank == 0):
        np.testing.assert_array_equal(own, alone_)
        assert np.abs(alone_).max() > 0
    for closed in (solver, continued):
        closed.close()


@pytest.mark.ranks(2)
def test_variants_of_the_kernels_give_the_same_on_two_ranks() -> None:
    world = World.from_mpi()
    for variant in ("fused-flux", "separate"):
        reference = solver_of("elastic by node", World.serial(), variant=variant)
        solver = solver_of("elastic by node", world, variant=variant)
        for one in (reference, solver):
            start(one)
            one.advance(STEPS)
        assert_same(solver, reference)
        solver.close()


@pytest.mark.ranks(3)
def test_leapfrog_gives_the_same_on_three_ranks() -> None:
    world = World.from_mpi()
    reference, solver = (
        solver_of("elastic central", where, integrator="leapfrog") for where in (World.serial(), world)
    )
    for one in (reference, solver):
        start(one)
        one.advance(STEPS)
    assert_same(solver, reference)
    np.testing.assert_array_equal(solver.samples(), reference.samples())
    solver.close()


@pytest.mark.ranks(2)
def test_attenuation_gives_the_same_on_two_ranks() -> None:
    world, ends = World.from_mpi(), []
    for where in (World.serial(), world):
        mesh = mesh_of(2, where)
        slow = material_of(mesh, "elastic", True)
        fast, loss = attenuated(slow, None, 20.0, dim=2, band=(1.0, 50.0))
        solver = Solver(mesh, fast, nodes=3, attenuation=loss, sponge=0.2, threads=1, world=where)
        start(solver)
        solver.advance(STEPS)
        ends.append(solver)
    assert_same(ends[1], ends[0])
    memory = ends[0].memory, ends[1].memory
    assert memory[0] is not None and memory[1] is not None
    np.testing.assert_array_equal(memory[1].state(), memory[0].state()[ends[1].mesh.number])
    ends[1].close()


@pytest.mark.ranks(2)
def test_the_benchmark_compares_the_ghosts() -> None:
    rows = bench_waves.main(ghosts="all", size=2, nodes=3, precisions=["float32"], seconds=0.0, threads=1)
    assert [row.ghosts for row in rows] == 3 * list(get_args(GhostKind))
    faces = 2 * 2 * 4  # of both ranks, on both sides of a periodic box
    for row in rows:
        assert (row.error == 0) == (row.ghosts != "half") and row.error < 1e-3
        words = {"acoustic": 1, "elastic": 3}[row.medium] * (2 if row.flux == "central" else 1)
        if row.ghosts == "traces":
            assert row.message_bytes == faces * 9 * words * 4
        if row.ghosts == "half":
            assert row.message_bytes == faces * (9 * words + 1) * 2


def half_way(path: str, case: str) -> None:
    """Leave the state of all elements after an odd number of steps."""
    world = World.from_mpi()
    solver = solver_of(case, world)
    start(solver)
    solver.advance(STEPS // 2)
    parts = world.allgather((solver.mesh.number, solver.values()))
    if world.rank == 0:
        order = np.argsort(np.concatenate([number for number, _ in parts]))
        np.save(path, np.concatenate([rows for _, rows in parts])[order])
    solver.close()


def continue_run(path: str, case: str) -> None:
    """Go on from it and compare with a run that never stopped."""
    world = World.from_mpi()
    solver = solver_of(case, world)
    solver.start_from(np.load(path)[solver.mesh.number], STEPS // 2)
    solver.advance(STEPS - STEPS // 2)
    assert_same(solver, run_on_one_rank(case, STEPS))
    print(f"rank {world.rank} of {world.size} agrees")
    solver.close()


@pytest.mark.parametrize(("writers", "readers"), [(1, 3), (3, 2)])
def test_a_state_continues_as_if_uninterrupted_on_other_ranks(tmp_path: Path, writers: int, readers: int) -> None:
    path = tmp_path / "state.npy"
    run_ranks(writers, half_way, path, "acoustic", timeout=120)
    assert run_ranks(readers, continue_run, path, "acoustic", timeout=120).count("agrees") == readers


@pytest.mark.ranks(3)
def test_what_cannot_be_shared_out_is_rejected_on_every_rank() -> None:
    world = World.from_mpi()
    with pytest.raises(CaseError, match=r"there are more ranks \(3\) than mesh elements \(2\)"):
        Mesh.generate(brick(2), sizes(2).uniform(1.0, 2), world=world)
    with pytest.raises(CaseError, match="with these weights one of 3 ranks has 0 elements"):
        Mesh.generate(brick(2), sizes(2), world=world, weights=lambda leaves: np.where(leaves.key == 0, 10**6, 1))
    with pytest.raises(CaseError, match="weights of elements must be positive integers"):
        Mesh.generate(brick(2), sizes(2), world=world, weights=lambda leaves: 0.5 * leaves.level)
    mesh = Mesh.generate(brick(2), sizes(2))
    with pytest.raises(CaseError, match=f"the 3 ranks have {3 * mesh.total} elements, but the mesh has {mesh.total}"):
        Solver(mesh, Material.uniform(mesh.count, 1.0, 1.0), nodes=3, world=world)
    with pytest.raises(CaseError, match="ghosts = 'all': must be one of traces, half, faces, variables, elements"):
        solver_of("acoustic", world, ghosts="all")
    mesh = mesh_of(2, world)
    count = mesh.count - (world.rank == 1)
    with pytest.raises(CaseError, match="material: arrays of shape"):
        Solver(mesh, Material.uniform(count, 1.0, 1.0), nodes=3, world=world)


@pytest.mark.ranks(2)
def test_sums_over_ranks_are_rounded_once() -> None:
    world = World.from_mpi()
    values = np.array([1.0, 1e-17, 3e16, -1.5]) if world.rank else np.array([-3e16, 2.0**-60])
    assert exact_sum(values, world) == -0.5 + 1e-17 + 2.0**-60
    assert np.isnan(exact_sum(np.full(1, np.inf if world.rank else 0.0), world))


@pytest.mark.gpu
@pytest.mark.parametrize("transport", ["host", "peer", "nccl"])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_ranks_on_gpus_equal_one_cpu(transport: str, ranks: int) -> None:
    run_ranks_on_gpus(ranks, ranks_equal_the_cpu, transport)


def ranks_equal_the_cpu(transport: str) -> None:
    """Enough steps for graphs of 32, plain ones between them, and an odd number at the end."""
    world = World.from_mpi()
    for case in CASES_OF_GPUS:
        solver = solver_of(case, world, device="cuda", transport=transport)
        start(solver)
        for steps in (70, 1, 68):
            solver.advance(steps)
        reference = run_on_one_rank(case, 139)
        assert_same(solver, reference)
        np.testing.assert_array_equal(solver.samples(), reference.samples())
        assert solver.ghosts is not None and solver.ghosts.exchanges[0].transport_name == transport
        solver.close()
        check_gradient(case, world, "cuda", transport)


CASE = f"""{BLOCK}trees = [2, 2, 1]
frequency = "60 Hz"
error = 0.05
[[material]]
name = "rock"
density = "2000 kg/m^3"
cp = "2400 m/s"
cs = "1300 m/s"
{SOIL}where = {{ kind = "ellipsoid", center = ["10 m", "10 m", "10 m"], radii = ["6 m", "6 m", "4 m"] }}
{FORCE}[time]
duration = "8 ms"
[[output.snapshots]]
file = "waves.h5"
every = "4 ms"
points = 24
[output.peak]
"""


@pytest.mark.ranks(2)
def test_a_case_writes_the_same_files_on_two_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import h5py

    from seiche.case.loading import load as load_waves

    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)
    world = World.from_mpi()
    folder = Path(world.bcast(str(tmp_path)))
    if world.rank == 0:
        (folder / "case.toml").write_text(CASE)
    world.barrier()
    simulation = load_waves(folder / "case.toml", output=folder / "two", world=world)
    assert simulation.setup.mesh.total > 30
    simulation.run(steps=simulation.setup.steps // 2)
    simulation.checkpoint()
    simulation.run()
    if world.rank:
        return
    second = load_waves(folder / "case.toml", output=folder / "one", world=World.serial())
    second.run()
    rest = load_waves(
        folder / "case.toml", output=folder / "rest", world=World.serial(), restart=folder / "two" / "checkpoint.seiche"
    )
    rest.run()
    np.testing.assert_array_equal(rest.solver.values(), second.solver.values())
    for name, fields in {
        "receivers.h5": ("time", "samples"),
        "waves.h5": ("time", "velocity", "pressure"),
        "peak.h5": ("position", "velocity"),
    }.items():
        with h5py.File(folder / "one" / name) as one, h5py.File(folder / "two" / name) as two:
            for field in fields:
                np.testing.assert_array_equal(one[field][:], two[field][:])
                assert np.abs(one[field][:]).max() > 0
