# SPDX-License-Identifier: BSD-3-Clause
"""The flow on several GPUs is the same, to the last bit, as on one CPU, whatever carries the messages."""

from __future__ import annotations

import pytest
from flow_cases import FIELDS, blood_in_a_tilted_tube
from flow_runs import assert_same
from launch import run_ranks_on_gpus

from seiche.flow.choice import LAYOUT_NAMES

#: Enough for graphs of 32 steps, plain steps between them, and an odd number at the end.
STEPS = 139


def ranks_equal_the_cpu(transport: str) -> None:
    from seiche.domain.world import World
    from seiche.flow import Solver

    world = World.from_mpi()
    sites, model = blood_in_a_tilted_tube()
    reference = Solver(sites, model, threads=2)
    reference.advance(STEPS)
    for layout in LAYOUT_NAMES:
        solver = Solver(sites, model, layout=layout, world=world, device="cuda", transport=transport)
        for steps in (70, 1, 68):  # fields in between move the slots of the transport on
            solver.advance(steps)
            solver.fields(FIELDS)
        assert_same(solver, reference)
        assert solver.transport == transport
        solver.close()


@pytest.mark.gpu
@pytest.mark.parametrize("transport", ["host", "peer", "nccl"])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_ranks_on_gpus_equal_one_cpu(transport: str, ranks: int) -> None:
    run_ranks_on_gpus(ranks, ranks_equal_the_cpu, transport)
