# SPDX-License-Identifier: BSD-3-Clause
"""What a run would do on several ranks, planned in one process, is what the ranks of a run have before their steps."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

import seiche
from prediction_cases import case_file
from seiche.case.loading import load
from seiche.case.plans import planned_case
from seiche.domain.world import World
from seiche.observe.plan import RunPlan, base_name


@pytest.mark.ranks(2, 3, one_host=True)
@pytest.mark.parametrize("name", ["flow", "blood"])
def test_stages_and_messages_of_a_plan_are_those_of_the_run(name: str) -> None:
    world = World.from_mpi()
    with TemporaryDirectory() as folder:
        path = case_file(Path(folder), name)
        run: Any = seiche.load(path, output=folder, world=world)
        plan = planned_case(path).plan(world.size)
    solver = run.solver
    own = [(stage.name, stage.useful, stage) for stages in solver.phases for stage in stages]
    planned = [stage for _, stages in plan.ranks[world.rank].steps for stage in stages]
    assert [stage.name for stage in planned] == [row[0] for row in own]
    for result, (_, useful, stage) in zip(planned, own, strict=True):
        assert result.useful == useful
        if useful and stage.bytes:
            assert result.bytes == stage.bytes
        if stage.messages is not None and stage.messages.sent:
            sent = tuple((peer, out) for item in result.exchanges for peer, out, _ in item)
            assert sent == stage.messages.sent
    assert plan.ranks[world.rank].items == len(solver.owned)
    assert plan.ranks[world.rank].memory > solver.populations.memory()
    assert plan.layout == solver.layout


@pytest.mark.ranks(1, 2)
def test_stages_of_planned_ultrasound_are_those_of_the_run() -> None:
    world = World.from_mpi()
    with TemporaryDirectory() as folder:
        path = case_file(Path(folder), "ultrasound")
        run: Any = load(path, output=folder, world=world)
        plan = planned_case(path).plan(world.size)
    solver = run.solver
    solver.advance(1)
    planned = plan.ranks[world.rank]
    assert [stage.name for stage in planned.steps[0][1]] == [stage.name for stage in solver.stages]
    assert planned.items == np.prod(solver.part.shape)
    run.close()


@pytest.mark.ranks(3)
def test_elements_and_messages_of_planned_waves_are_those_of_the_run() -> None:
    world = World.from_mpi()
    with TemporaryDirectory() as folder:
        path = case_file(Path(folder), "waves")
        run: Any = seiche.load(path, output=folder, world=world)
        plan = planned_case(path).plan(world.size)
    own = plan.ranks[world.rank]
    assert own.items == run.setup.mesh.count
    stages = [stage for kind in run.solver.phases for stage in kind]
    planned = [stage for _, kind in own.steps for stage in kind]
    for result, stage in zip(planned, stages, strict=True):
        assert result.name == stage.name
        if stage.bytes and stage.messages is None:
            assert result.bytes == stage.bytes
    exchange = run.solver.ghosts.exchanges[0]
    expected = tuple(
        (peer, out, into)
        for (peer, out), (_, into) in zip(exchange.sent("x").sent, exchange.received("x").received, strict=True)
    )
    for _, stages in own.steps:
        assert [item for stage in stages for item in stage.exchanges] == 5 * [expected]


def _moved(plan: RunPlan, name: str) -> list[int]:
    """Return the bytes of a stage on each rank, whatever part of the rank it is about."""
    return [
        sum(stage.bytes for _, stages in rank.steps for stage in stages if base_name(stage.name) == name)
        for rank in plan.ranks
    ]


def test_ranks_of_blood_share_the_work_of_cells(tmp_path: Path) -> None:
    """Velocities are interpolated once in all; forces of a cell are computed by the rank that owns it."""
    path = case_file(tmp_path, "blood")
    case = planned_case(path)
    one, two = case.plan(1), case.plan(2)
    # The roles of all slots of cells are compared too.
    looked = 2 * 2 * 4 * 8
    assert sum(_moved(two, "interpolate velocity")) == _moved(one, "interpolate velocity")[0] + looked
    assert sum(_moved(two, "membrane forces")) == _moved(one, "membrane forces")[0] + looked // 2
