# SPDX-License-Identifier: BSD-3-Clause
"""Benchmarks on several ranks."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.bench.without_messages import seconds_without_messages
from seiche.domain import shapes
from seiche.domain.world import World
from seiche.flow import FlowModel, Newtonian, PressureIolet, Solver


@pytest.mark.ranks(1, 2)
@pytest.mark.parametrize("layout", ["list-ab", "tiles-8"])
def test_a_step_without_messages_is_timed_and_messages_work_afterwards(device: str, layout: str) -> None:
    """The halo of two copies overlaps the interior on its own stream; openings have an exchange of their own."""
    sites = shapes.tube(6.0, 40.0, 1.0)
    iolets = (PressureIolet(1.001), PressureIolet(0.999))
    solver = Solver(
        sites, FlowModel(Newtonian(0.1), iolets=iolets), device=device, layout=layout, world=World.from_mpi()
    )
    solver.advance(64)
    state = solver.state()
    solver.iolets.prepare(0, 64)
    seconds = seconds_without_messages(solver, solver.exchanges, 64)
    assert 0.0 < seconds < 60.0
    assert not any(exchange.disabled for exchange in solver.exchanges)
    solver.set_state(state)  # steps without messages made the present one invalid
    solver.advance(2)
    assert np.isfinite(solver.fields(["density"])["density"]).all()
    solver.close()
