# SPDX-License-Identifier: BSD-3-Clause
"""Cells in flow are the same, to the last bit, on any number of ranks: walls, contact, contrast, motion, restarts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from cell_cases import (
    BALL,
    BOX,
    PLACES,
    SOFT,
    assert_same,
    beside,
    blood,
    compare,
    fetched,
    gathered_cells,
    without_velocity,
)
from launch import run_ranks, run_ranks_on_gpus

from seiche.cells import Cells, CellType, Contact, Repulsion, biconcave
from seiche.couple import Blood, BloodCosts, Placement, measure_blood_costs, repartitioned
from seiche.couple.ranks import SharedBoundary
from seiche.domain import shapes
from seiche.domain.surface import Surface
from seiche.domain.world import World
from seiche.errors import CaseError, UnstableError
from seiche.flow import FlowModel, Newtonian, Regularised
from seiche.flow.balance import SiteCosts
from seiche.flow.state import site_state
from seiche.observe.movement import gather_movement
from seiche.observe.replay import ideal_seconds
from seiche.solver import RowSet, State


def owners(flow: Blood) -> npt.NDArray[np.int64]:
    """Return the owner of every cell of all ranks, by type and number."""
    assert isinstance(flow.boundary, SharedBoundary)
    table = flow.boundary.sharing.table
    own = table.owner == flow.solver.world.rank
    rows = np.concatenate(flow.solver.world.allgather(table.rows()[own]))
    return rows[np.lexsort((rows[:, 1], rows[:, 0])), 2]


@pytest.mark.ranks(1, 2, 3, 4)
def test_cells_in_a_periodic_box_are_those_of_one_rank():
    for layout, delta, scheme in (
        ("tiles-8", "peskin", "adams-bashforth"),
        ("list-aa", "roma", "euler"),
        ("tiles-4", "hat", "euler"),
        ("list-ab", "cosine", "adams-bashforth"),
    ):
        shared, _ = compare(11, BOX, PLACES, layout=layout, delta=delta, scheme=scheme)
        shared.solver.close()


@pytest.mark.ranks(1, 2, 3)
def test_cells_in_a_tube_of_moments_are_those_of_one_rank():
    places = [[[8.0, 9.0, 10.0], [24.0, 10.0, 12.0]], [[33.0, 4.5, 10.0]]]
    model = FlowModel(Newtonian(0.1), Regularised(), body_force=(1e-4, 0.0, 0.0))
    compare(30, TUBE, places, model, layout="moments", contact=in_contact)[0].solver.close()


@pytest.mark.ranks(3)
def test_cells_travel_through_all_ranks_and_around_the_box():
    """In 240 steps of 0.2 sites: three quarters of the box, so that each leaves its rank and some pass the end."""
    long = shapes.box((64, 24, 24))
    fast = FlowModel(Newtonian(0.1), initial_velocity=(0.2, 0.0, 0.0), body_force=(0.0, 1e-4, 0.0))
    world, retained = World.from_mpi(), []
    shared, single = blood(long, PLACES, fast, world=world, partition="slabs"), blood(long, PLACES, fast)
    for _ in range(6):
        shared.advance(40)
        retained.append(owners(shared))
    single.advance(240)
    assert_same(shared, single)
    assert all(len(np.unique(cell)) > 1 for cell in np.array(retained).T)
    assert len(np.unique(retained)) == 3
    assert shared.vertices()[:, :, 0].max() > 64.0


TUBE = shapes.tube(9.3, 40.0, 1.0, axis=(1.0, 0.0, 0.0), periodic=True)


def in_contact(cells: Cells) -> Contact:
    """Repel cells from each other and from the tube's wall."""
    middle = (np.array(TUBE.shape) - 1) / 2
    angle, along = np.meshgrid(np.linspace(0, 2 * np.pi, 120)[:-1], np.arange(0.0, 40.0, 0.5))
    wall = np.stack([along, middle[1] + 9.3 * np.cos(angle), middle[2] + 9.3 * np.sin(angle)], axis=-1)
    periods = (float(TUBE.shape[0]), 0.0, 0.0)
    law = Repulsion(1e-3, 1.5)
    return Contact(cells, law, wall=law, wall_points=wall.reshape(-1, 3), lengths=periods)


@pytest.mark.ranks(1, 2, 3, 4)
def test_cells_that_touch_each_other_and_a_wall_are_those_of_one_rank():
    """Also with another viscosity inside, found anew every second step."""
    middle = (TUBE.shape[1] - 1) / 2
    reds = [[8.0, middle - 1, middle], [15.0, middle + 2, middle + 1], [38.0, middle, middle]]
    places = [reds, [[26.0, 4.5, middle]]]
    model = FlowModel(Newtonian(0.1), body_force=(1e-4, 0.0, 0.0))
    shared, single = compare(
        60, TUBE, places, model, contact=in_contact, viscosity_contrast=3.0, mark_every=2, layout="list-aa"
    )
    relaxed = blood(TUBE, places, model, viscosity_contrast=3.0, mark_every=2)
    relaxed.advance(60)
    assert np.abs(relaxed.vertices() - single.vertices()).max() > 1e-6, "nothing touched"
    assert shared.hematocrit() == single.hematocrit()


@pytest.mark.ranks(3)
def test_a_rank_may_have_no_cells_at_first_and_too_many_for_its_room_later():
    """All cells begin on one side; the flow brings them to the ranks that have room for none."""
    long = shapes.box((96, 16, 16))
    places = [[[x, y, z] for x in (5.0, 12.0, 19.0) for y in (4.0, 12.0) for z in (4.0, 12.0)]]
    small = CellType("small", Surface(BALL.vertices * 3.0, BALL.faces), SOFT)
    model = FlowModel(Newtonian(0.1), initial_velocity=(0.2, 0.0, 0.0))
    world = World.from_mpi()
    shared = blood(long, places, model, world=world, partition="slabs", types=(small,))
    single = blood(long, places, model, types=(small,))
    first = owners(shared)
    assert len(np.unique(first)) == 1
    shared.advance(200)
    single.advance(200)
    assert_same(shared, single)
    assert len(set(owners(shared)) - set(first)) > 0


@pytest.mark.ranks(4)
def test_a_cell_larger_than_a_rank_is_held_by_all():
    """Cells bent by a shear, in a box whose sides are no multiple of a brick."""
    box = shapes.box((22, 19, 18))
    large = CellType("large", biconcave(162, radius=7.5), SOFT)
    world = World.from_mpi()
    model = FlowModel(Newtonian(0.1), initial_velocity=(0.08, -0.05, 0.02), body_force=(2e-4, 0.0, 0.0))
    shared, single = (blood(box, [[[11.0, 9.0, 9.0]]], model, world=w, types=(large,)) for w in (world, None))
    for flow in (shared, single):
        position = flow.vertices()[0].T.copy()
        position[2] += 3.0 * np.sin(position[0] / 3.0)
        flow.boundary.place_all(Placement(position))
        flow.advance(40)
    assert_same(shared, single)
    assert isinstance(shared.boundary, SharedBoundary)
    assert len(shared.boundary.sharing.table.kind) == 1


def written(folder: str) -> None:
    """Write the state of a run on three ranks half way, by rank 0."""
    world = World.from_mpi()
    flow = blood(BOX, PLACES, world=world, scheme="adams-bashforth")
    flow.advance(12)
    populations = np.zeros((len(BOX), 19))
    populations[flow.solver.owned] = flow.solver.state()["populations"]
    populations = world.allreduce_sum(populations)
    cells = {f"{name}{kind}": values for kind in (0, 1) for name, values in gathered_cells(flow, kind).items()}
    if world.rank == 0:
        np.savez(Path(folder) / "state.npz", populations=populations, **cells)


def restarted(folder: str) -> None:
    """Go on from that state, and compare with a run that was never interrupted."""
    world, saved = World.from_mpi(), np.load(Path(folder) / "state.npz")
    flow = blood(BOX, PLACES, world=world, scheme="adams-bashforth")
    flow.solver.set_state(site_state(flow.solver, {"populations": saved["populations"][flow.solver.owned]}, 12))
    rows = {
        name: RowSet(own, len(PLACES[kind]), {item: saved[f"{item}{kind}"][own] for item in ("place", "velocity")})
        for kind, (name, own) in enumerate(flow.keys.items())
    }
    flow.set_state(State(12, rows))
    flow.advance(9)
    single = blood(BOX, PLACES, scheme="adams-bashforth")
    single.advance(21)
    assert_same(flow, single)


def test_a_restart_on_another_number_of_ranks_continues_with_bitwise_equal_results(tmp_path: Path) -> None:
    run_ranks(3, written, tmp_path, timeout=120.0)
    for ranks in (1, 2, 4):
        run_ranks(ranks, restarted, tmp_path, timeout=120.0)


@pytest.mark.ranks(2)
def test_other_cells_replace_those_that_were():
    """One of the cells has left; the flow and the others go on as on one rank."""
    result = []
    for world in (World.from_mpi(), None):
        first = blood(BOX, PLACES, world=world)
        first.advance(6)
        retained = [first.vertices(0)[1:], first.vertices(1)]
        cells = Cells(first.solver.backend, first.cells.types, [item.mean(axis=1) for item in retained])
        for kind, item in enumerate(retained):
            cells.set_vertices(item, kind)
        second = Blood(first.solver, cells, previous=first)
        second.advance(6)
        result.append(second)
    assert_same(*result)
    assert len(result[0].areas_and_volumes()) == 4


@pytest.mark.ranks(2)
def test_what_goes_wrong_with_a_cell_is_reported_on_every_rank():
    world, middle = World.from_mpi(), (TUBE.shape[1] - 1) / 2
    model = FlowModel(Newtonian(0.1))
    with pytest.raises(UnstableError, match=r"cell 1 of type 'red' has left the fluid at \(.*\), step 0"):
        blood(TUBE, [[[12.0, middle, middle], [30.0, -9.0, middle]], []], model, world=world)
    flow = blood(BOX, PLACES, world=world)
    with pytest.raises(CaseError, match=r"the array 'velocity' of the cells/0 is missing; expected \(\d, 162, 3\)"):
        flow.set_state(without_velocity(flow.state()))


@pytest.mark.ranks(3)
def test_a_new_partition_by_measured_costs_continues_with_bitwise_equal_results():
    """All cells are on one side: where a vertex costs as much as many sites, that side becomes the smaller part.

    Only the red ones have another viscosity inside.
    """
    long, world = shapes.box((80, 24, 24)), World.from_mpi()
    reds = [[x, y, z] for x in (6.0, 18.0) for y, z in ((6.0, 6.0), (18.0, 18.0))]
    arguments: dict[str, Any] = {"viscosity_contrast": (3.0, 1.0), "contact": beside}
    shared, single = (blood(long, [reds, [[30.0, 5.0, 12.0]]], world=w, **arguments) for w in (world, None))
    assert measure_blood_costs(shared, 16).vertex > 0.0
    costs = BloodCosts(SiteCosts(1.0, 0.0, 0.0), 50.0)
    weights = costs.weights(shared)
    assert weights.sum() == pytest.approx(len(long) + 50.0 * (4 * 162 + 162))
    moved = repartitioned(shared, weights, threads=1)
    sizes = world.allgather(len(moved.solver.owned))
    assert max(sizes) > 1.5 * min(sizes)
    moved.advance(20)
    single.advance(36)
    assert_same(moved, single)


@pytest.mark.ranks(3)
def test_messages_of_cells_are_seen_from_both_ends_and_efficiencies_fit_together():
    world = World.from_mpi()
    flow = blood(BOX, PLACES, world=world, contact=beside)
    solver = flow.solver
    solver.timers.every = 1
    begin = time.monotonic()
    flow.advance(12)
    result = gather_movement(
        solver.timers,
        solver.phases,
        world,
        elapsed=time.monotonic() - begin,
        on_device=False,
        host_overhead={},
        transport=solver.transport,
        sites=len(solver.owned),
    )
    channels = {"halo", "velocities", "speeds", "places", "forces"}
    assert {stage.messages.channel for stage in solver.stages if stage.messages} == channels
    assert all(not stage.useful for stage in solver.stages if stage.messages)
    assert next(stage for stage in solver.stages if stage.name == "membrane forces (shared)").useful
    if result is not None:
        taken, ideal = ideal_seconds([record.samples for record in result.ranks])
        assert 0 < ideal <= taken
        values = result.efficiencies()
        assert values["parallel"] == pytest.approx(values["load_balance"] * values["communication"])
        assert {"send positions", "receive vertex velocities", "join shared stream"} < set(
            result.as_dict()["message_stages"]
        )


def ranks_equal_the_cpu(transport: str) -> None:
    """Compare cells on GPUs with one CPU: graphs of 32 steps between sharings, and fields taken in between."""
    world = World.from_mpi()
    slow = FlowModel(Newtonian(0.1), initial_velocity=(0.02, 0.01, 0.0), body_force=(1e-5, 0.0, 0.0))
    long = shapes.box((80, 24, 24))
    cells: dict[str, Any] = {"contact": beside, "viscosity_contrast": 2.0, "mark_every": 8}
    single = blood(long, PLACES, slow, **cells)
    single.advance(201)
    for layout in ("tiles-8", "list-aa"):
        shared = blood(long, PLACES, slow, world=world, device="cuda", layout=layout, transport=transport, **cells)
        for steps in (100, 1, 100):
            sizes = fetched(shared.solver.backend)
            shared.solver.start(steps)
            shared.solver.finish()
            if transport != "host":  # checks and redistributions transfer a few words per cell, never a field
                words = 4 * (1 + shared.boundary.sharing.territory.words) * shared.cells.count
                assert max(sizes, default=0) <= max(12, words), sizes
            shared.state()
        assert_same(shared, single)
        assert isinstance(shared.boundary, SharedBoundary)
        assert shared.boundary.sharing.messages.positions.transport_name == transport
        shared.solver.close()


@pytest.mark.gpu
@pytest.mark.parametrize("transport", ["host", "peer", "nccl"])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_cells_on_gpus_are_those_of_one_cpu(transport: str, ranks: int) -> None:
    run_ranks_on_gpus(ranks, ranks_equal_the_cpu, transport)
