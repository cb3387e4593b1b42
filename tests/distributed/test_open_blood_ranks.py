# SPDX-License-Identifier: BSD-3-Clause
"""An open vessel on several ranks: the same cells leave and enter, and all have the same bits as on one."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from case_files import toml_of
from seiche.case.simulation import load
from seiche.domain.world import World


def open_tables(steps: int) -> dict[str, Any]:
    """Return a tube of 8 um, 14 um long, with stiff balls of 2.8 um that a fast flow takes through it."""
    ball = {
        "name": "ball",
        "shape": {"kind": "sphere", "diameter": "2.8 um", "vertices": 42},
        "model": "triangles",
        "law": "neo-hookean",
        "shear_modulus": "500 uN/m",
        "bending": "2e-18 J",
        "volume": "10 kPa",
    }
    return {
        "solver": "blood",
        "geometry": {"spacing": "0.5 um", "shape": {"kind": "tube", "radius": "4 um", "length": "14 um"}},
        "fluid": {"viscosity": "1.2 mPa s", "density": "1025 kg/m^3"},
        "lattice": {"tau": 3.0, "velocity_scale": "100 mm/s"},
        "time": {"steps": steps},
        "iolet": [
            {"name": "inlet", "kind": "velocity", "velocity": "50 mm/s", "ramp": 20},
            {"name": "outlet", "kind": "pressure", "pressure": "0 Pa"},
        ],
        "cells": [ball],
        "packing": {"hematocrit": 0.1, "seed": 1},
        "reservoir": {"length": "8 um"},
        "run": {"monitor_every": 50, "threads": 1},
    }


@pytest.mark.ranks(2)
def test_cells_that_come_and_go_are_those_of_one_rank() -> None:
    world = World.from_mpi()
    folder = Path(world.bcast(tempfile.mkdtemp() if world.rank == 0 else None))
    if world.rank == 0:
        (folder / "case.toml").write_text(toml_of(open_tables(100)))
    world.barrier()
    both = load(folder / "case.toml", output=folder / "both", world=world)
    both.run()
    assert both.blood is not None
    mine, note = both.blood.state()
    populations = np.zeros((len(both.solver.sites), 19))
    populations[both.solver.owned] = both.solver.state()["populations"]
    populations = world.allreduce_sum(populations)
    watch = both.blood.watch
    assert sum(watch.entered.values()) > 0
    assert sum(watch.left.values()) > 0
    if world.rank == 0:
        alone = load(folder / "case.toml", output=folder / "alone", world=World.serial())
        alone.run()
        assert alone.blood is not None
        expected, other = alone.blood.state()
        assert note == other
        assert np.array_equal(mine, expected)
        assert np.array_equal(populations, alone.solver.state()["populations"])
