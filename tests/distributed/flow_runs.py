# SPDX-License-Identifier: BSD-3-Clause
"""Flows on ranks that are compared with a run that one process did alone, or go on from a checkpoint of it."""

from __future__ import annotations

import numpy as np
from flow_cases import FIELDS

from seiche.flow import Solver
from seiche.io.checkpoint import read_checkpoint, write_checkpoint


def assert_same(solver: Solver, reference: Solver) -> None:
    """Compare the rows that this rank owns with those of a run that one process did alone."""
    state, mine = solver.state(), solver.owned
    for name, values in reference.state().items():
        np.testing.assert_array_equal(state[name], values[mine], err_msg=name)
    fields, expected = solver.fields(FIELDS), reference.fields(FIELDS)
    for name in FIELDS:
        np.testing.assert_array_equal(fields[name], expected[name][mine], err_msg=name)
    assert solver.iolet_state() == reference.iolet_state()


def run_and_save(path: str, solver: Solver, steps: int) -> None:
    """Leave a checkpoint after `steps` steps."""
    solver.run(steps)
    write_checkpoint(
        path,
        solver.world,
        time_step=solver.time_step,
        owned=solver.owned,
        arrays=solver.state(),
        n_sites=len(solver.sites),
        attributes=solver.iolet_state(),
    )
    solver.close()


def load_and_run(path: str, solver: Solver, steps: int, reference: Solver) -> None:
    """Go on from the checkpoint to step `steps` and compare with a run that never stopped."""
    checkpoint = read_checkpoint(path, solver.world, solver.owned)
    assert 0 < checkpoint.time_step < steps
    solver.load_state(checkpoint.arrays, checkpoint.time_step, checkpoint.attributes)
    solver.run(steps - checkpoint.time_step)
    assert_same(solver, reference)
    print(f"rank {solver.world.rank} of {solver.world.size} agrees")
    solver.close()
