# SPDX-License-Identifier: BSD-3-Clause
"""Membranes with surface viscosity on several ranks: their memory follows the cells, and restarts go on with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cell_cases import DRIVEN, PLATELET, SOFT, assert_same, beside, blood, gathered_cells

from seiche.cells import CellType, biconcave
from seiche.domain import shapes
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.flow import FlowModel, Newtonian
from seiche.solver import RowSet, State

VISCOUS = CellType("red", biconcave(162, radius=5.0), replace(SOFT, viscosity=0.05, relaxation=20.0))
TYPES = (VISCOUS, PLATELET)
LONG = shapes.box((64, 24, 24))
PLACES = [[[1.0, 12.0, 12.0], [14.0, 3.0, 6.0], [22.0, 14.0, 22.5], [33.0, 20.0, 9.0]], [[25.5, 4.0, 12.0]]]


@pytest.mark.ranks(1, 2, 3)
def test_memory_travels_with_the_cells_and_is_bitwise_preserved():
    """Cells meet, deform each other and change their ranks; the memory is no longer that of cells at rest."""
    fast = FlowModel(Newtonian(0.1), initial_velocity=(0.2, 0.0, 0.0), body_force=(0.0, 1e-4, 0.0))
    options = {"contact": beside, "types": TYPES}
    shared = blood(LONG, PLACES, fast, world=World.from_mpi(), partition="slabs", **options)
    single = blood(LONG, PLACES, fast, **options)
    start = single.memory_metric()
    assert start is not None and single.memory_metric(1) is None
    for flow in (shared, single):
        flow.advance(90)
    assert_same(shared, single)
    remembered = single.memory_metric()
    assert remembered is not None
    assert np.abs(remembered - start).max() > 1e-5


@pytest.mark.ranks(2, 3)
def test_a_state_with_memory_continues_on_other_ranks():
    world = World.from_mpi()
    shared = blood(LONG, PLACES, DRIVEN, world=world, types=TYPES)
    single = blood(LONG, PLACES, DRIVEN, types=TYPES)
    for flow in (shared, single):
        flow.advance(20)
    state = single.state()
    keys = shared.keys
    rows = {
        name: RowSet(keys[name], item.total, {key: array[:][keys[name]] for key, array in item.arrays.items()})
        for name, item in state.rows.items()
    }
    flow_state = shared.solver.state()
    second = blood(LONG, PLACES, DRIVEN, world=world, types=TYPES)
    second.solver.set_state(flow_state)
    second.set_state(State(20, rows))
    for flow in (second, single):
        flow.advance(20)
    for kind in range(2):
        for name, values in gathered_cells(second, kind).items():
            np.testing.assert_array_equal(values, gathered_cells(single, kind)[name], err_msg=name)
    del rows["cells/0"].arrays["relaxed"]
    with pytest.raises(CaseError, match="the array 'relaxed' of the cells/0 is missing"):
        second.set_state(State(20, rows))
