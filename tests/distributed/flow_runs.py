# SPDX-License-Identifier: BSD-3-Clause
"""Flows on ranks that are compared with a run that one process did alone, or go on from a checkpoint of it."""

from __future__ import annotations

import numpy as np
from flow_cases import FIELDS, site_arrays

from seiche.flow import Solver
from seiche.io.checkpoint import read_checkpoint, write_checkpoint


def assert_same(solver: Solver, reference: Solver) -> None:
    """Compare the rows that this rank owns with those of a run that one process did alone."""
    state, own = solver.state(), solver.owned
    for name, values in site_arrays(reference).items():
        np.testing.assert_array_equal(state[name], values[own], err_msg=name)
    fields, expected = solver.fields(FIELDS), reference.fields(FIELDS)
    for name in FIELDS:
        np.testing.assert_array_equal(fields[name], expected[name][own], err_msg=name)
    assert state.attributes == reference.state().attributes


def run_and_save(path: str, solver: Solver, steps: int) -> None:
    """Leave a checkpoint after `steps` steps."""
    solver.advance(steps)
    write_checkpoint(path, solver.world, solver.state(), attributes={})
    solver.close()


def load_and_run(path: str, solver: Solver, steps: int, reference: Solver) -> None:
    """Go on from the checkpoint to step `steps` and compare with a run that never stopped."""
    state = read_checkpoint(path, solver.world, solver.keys)
    assert 0 < state.step < steps
    solver.set_state(state)
    solver.advance(steps - state.step)
    assert_same(solver, reference)
    print(f"rank {solver.world.rank} of {solver.world.size} agrees")
    solver.close()
