# SPDX-License-Identifier: BSD-3-Clause
"""An open vessel on several ranks: the same cells leave and enter, and all have the same bits as on one."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from case_files import cell_state, changed, open_blood_tables, toml_of
from seiche.case.loading import load
from seiche.domain.world import World


@pytest.mark.ranks(2)
def test_cells_that_come_and_go_are_those_of_one_rank(device: str) -> None:
    world = World.from_mpi()
    folder = Path(world.bcast(tempfile.mkdtemp() if world.rank == 0 else None))
    if world.rank == 0:
        (folder / "case.toml").write_text(toml_of(changed(open_blood_tables(4, 18, 350), "run.device", device)))
    world.barrier()
    both = load(folder / "case.toml", output=folder / "both", world=world)
    both.run()
    assert both.blood is not None
    own, note = cell_state(both.blood)
    populations = np.zeros((len(both.solver.sites), 19))
    populations[both.solver.owned] = both.solver.state()["populations"]
    populations = world.allreduce_sum(populations)
    watch = both.blood.statistics
    assert sum(watch.entered.values()) > 0
    assert sum(watch.removed.values()) > 0
    if world.rank == 0:
        single = load(folder / "case.toml", output=folder / "alone", world=World.serial())
        single.run()
        assert single.blood is not None
        expected, other = cell_state(single.blood)
        assert note == other
        assert np.array_equal(own, expected)
        assert np.array_equal(populations, single.solver.state()["populations"])
