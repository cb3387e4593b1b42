# SPDX-License-Identifier: BSD-3-Clause
"""What ranks tell of a run: the same messages seen from both ends, efficiencies that fit together."""

from __future__ import annotations

import time

import pytest
from flow_cases import WATER, iolet_model, tilted_tube

from seiche.domain.world import World
from seiche.flow import Solver
from seiche.observe.movement import gather_movement
from seiche.observe.replay import ideal_seconds


@pytest.mark.ranks(1, 3)
def test_ranks_tell_of_messages_and_time_that_fit_together():
    world = World.from_mpi()
    sites = tilted_tube()
    solver = Solver(sites, iolet_model(WATER), world=world, threads=1)
    begin = time.monotonic()
    solver.run(40)
    elapsed = time.monotonic() - begin
    found = gather_movement(
        solver.timers,
        solver.phases,
        world,
        elapsed=elapsed,
        on_device=False,
        beside={"monitor": 0.0},
        transport=solver.halo.transport_name,
        sites=len(solver.owned),
    )
    received = world.gather([m.received for phase in solver.phases for s in phase if (m := s.messages)])
    solver.close()
    assert (found is None) == (world.rank != 0)
    if found is None or received is None:
        return
    assert sum(record.sites for record in found.ranks) == len(sites)
    arriving = {}
    for rank, parts in enumerate(received):
        for peer, size in (pair for part in parts for pair in part):
            arriving[peer, rank] = arriving.get((peer, rank), 0) + size / 2
    assert {(r, p): size for r, record in enumerate(found.ranks) for p, _, size in record.sent} == arriving
    assert bool(arriving) == (world.size > 1)
    taken, ideal = ideal_seconds([record.samples for record in found.ranks])
    assert 0 < ideal <= taken
    values = found.efficiencies()
    assert values["elements"] == world.size
    assert values["parallel"] == pytest.approx(values["load_balance"] * values["communication"])
    assert values["communication"] == pytest.approx(values["serialisation"] * values["transfer"])
    for name in ("load_balance", "serialisation", "transfer", "device", "orchestration"):
        assert 0 < values[name] <= 1
    assert values["device"] == 1.0 or world.size > 1
    table = found.as_dict()
    assert len(table["useful_s"]) == len(table["memory_B"]) == world.size
    assert min(table["memory_B"]) > 10e6
    assert ("receive halo" in table["not_useful"]) == (world.size > 1)


def test_a_run_without_a_timed_step_has_no_efficiency():
    sites = tilted_tube()
    solver = Solver(sites, iolet_model(WATER), threads=1)
    solver.run(1)
    found = gather_movement(
        solver.timers,
        solver.phases,
        World.serial(),
        elapsed=1.0,
        on_device=True,
        beside={},
        transport="none",
        sites=len(sites),
    )
    assert found is not None
    assert found.efficiencies() == {}
    assert found.host() is not None
