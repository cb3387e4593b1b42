# SPDX-License-Identifier: BSD-3-Clause
"""The flow on several GPUs is the same, to the last bit, as on one CPU, whatever carries the messages."""

from __future__ import annotations

import numpy as np
import pytest
from flow_cases import FIELDS, blood_in_a_tilted_tube
from launch import run_ranks

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
    expected, fields = reference.state(), reference.fields(FIELDS)
    for layout in LAYOUT_NAMES:
        solver = Solver(sites, model, layout=layout, world=world, device="cuda", transport=transport)
        for steps in (70, 1, 68):  # fields in between move the slots of the transport on
            solver.advance(steps)
            solver.fields(FIELDS)
        for name, values in expected.items():
            np.testing.assert_array_equal(solver.state()[name], values[solver.owned], err_msg=name)
        for name, values in solver.fields(FIELDS).items():
            np.testing.assert_array_equal(values, fields[name][solver.owned], err_msg=name)
        assert solver.transport == transport
        solver.close()


@pytest.mark.gpu
@pytest.mark.parametrize("transport", ["host", "peer", "nccl"])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_ranks_on_gpus_equal_one_cpu(transport: str, ranks: int) -> None:
    cupy = pytest.importorskip("cupy")
    if transport == "nccl" and cupy.cuda.runtime.getDeviceCount() < ranks:
        pytest.skip("NCCL needs a GPU a rank")
    run_ranks(ranks, ranks_equal_the_cpu, transport, timeout=400)
