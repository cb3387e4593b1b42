# SPDX-License-Identifier: BSD-3-Clause
"""Checks of the ranks that need cells: their validity in steps, their cost and their errors."""

from __future__ import annotations

import pytest
from cell_cases import BOX, PLACES, blood, fetched

from seiche.couple.ranks import SharedBoundary
from seiche.domain import shapes
from seiche.domain.world import World
from seiche.errors import UnstableError
from seiche.flow import FlowModel, Newtonian


@pytest.mark.ranks(2)
def test_slow_cells_may_continue_for_a_graph_of_steps_wherever_a_run_ended():
    flow = blood(BOX, PLACES, FlowModel(Newtonian(0.1)), world=World.from_mpi())
    boundary = flow.boundary
    assert isinstance(boundary, SharedBoundary)
    for wait in (1, 2, 4, 8, 16):
        assert boundary.prepare(100) == wait
        flow.solver.step += wait
    assert boundary.prepare(100) == 32
    flow.solver.step += 5
    assert boundary.prepare(1) == 27
    assert boundary.prepare(100) == 64
    for _ in range(3):  # each launches a query and processes the reply to that of 32 steps before
        flow.solver.step += 32
        assert boundary.prepare(100) == 64 - 32


@pytest.mark.ranks(2)
def test_a_cell_that_outruns_the_ranks_that_hold_it_is_reported():
    flow = blood(shapes.box((96, 24, 24)), PLACES, world=World.from_mpi(), partition="slabs")
    boundary = flow.boundary
    assert isinstance(boundary, SharedBoundary)
    flow.advance(10)
    backend, position = flow.solver.backend, flow.cells.positions
    backend.assign(position, backend.download(position) + 24.0)  # as if they had moved since the last check
    with pytest.raises(
        UnstableError, match=r"a cell moved too far in \d+ steps \(step 10, velocity .* sites per step\)"
    ):
        flow.check()
    boundary.schedule.until = flow.solver.step
    with pytest.raises(
        UnstableError, match=r"a cell moved too far in \d+ steps \(step 10, velocity .* sites per step\)"
    ):
        flow.advance(1)


@pytest.mark.ranks(2)
def test_between_checks_nothing_but_messages_comes_to_the_host_and_a_check_is_a_few_words():
    """Where the host carries messages, it carries these; else nothing."""
    flow = blood(BOX, PLACES, FlowModel(Newtonian(0.1)), world=World.from_mpi())
    boundary = flow.boundary
    assert isinstance(boundary, SharedBoundary)
    flow.advance(40)
    messages = boundary.sharing.messages
    sent = [item.bytes for item in (flow.solver.halo, boundary.fluid, messages.velocities, messages.positions)]
    sizes = fetched(flow.solver.backend)
    flow.solver.start(32)
    flow.solver.finish()
    few = 12 + 4 * (1 + boundary.sharing.territory.words) * flow.cells.count
    assert sum(size for size in sizes if size not in sent) <= 4 * few
    assert 12 in sizes
