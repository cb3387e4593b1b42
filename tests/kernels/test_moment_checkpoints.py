# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints of moment storage: few bytes per site, and every layout continues from them with the same bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from flow_cases import BLOOD, iolet_model, tilted_tube

from seiche.domain.shapes import tube
from seiche.domain.world import World
from seiche.flow import FlowModel, Newtonian, Precision, PressureIolet, Regularised, Solver
from seiche.flow.state import OPENINGS, SITES
from seiche.io.checkpoint import inspect_checkpoint, read_checkpoint, write_checkpoint

PRECISIONS = [("float64", "float64"), ("float32", "float32"), ("float32", "float16"), ("float64", "float32")]


@pytest.mark.parametrize(("compute", "storage"), PRECISIONS)
def test_a_checkpoint_without_populations_continues_exactly(compute: str, storage: str, device: str, tmp_path: Path):
    sites, model = tilted_tube(), iolet_model(BLOOD, Regularised())
    precision, world = Precision(compute, storage), World.serial()  # type: ignore[arg-type]

    def make(layout: str) -> Solver:
        return Solver(sites, model, device=device, layout=layout, precision=precision, threads=1)

    stopped = make("moments")
    stopped.advance(21)
    path, state = tmp_path / "state", stopped.state()
    write_checkpoint(path, world, state, attributes={})
    stored = inspect_checkpoint(path).rows
    assert "populations" not in [array.name for array in stored[SITES].arrays]
    assert 0 < stored[OPENINGS].total < len(sites) // 4
    for layout in ("moments", "list-aa", "tiles-8"):
        resumed = make(layout)
        resumed.set_state(read_checkpoint(path, world, resumed.keys))
        if layout == "moments" or storage == compute:
            np.testing.assert_array_equal(resumed.state()["populations"], state["populations"])
        if layout == "moments":
            np.testing.assert_array_equal(resumed.state()["moments"], state["moments"])
            stopped.advance(20)
            resumed.advance(20)
            np.testing.assert_array_equal(resumed.state()["populations"], stopped.state()["populations"])


@pytest.mark.parametrize(("storage", "layout", "most"), [("float32", "moments", 45.0), ("float32", "list-aa", 81.0)])
def test_a_checkpoint_has_few_bytes_per_site(storage: str, layout: str, most: float, tmp_path: Path):
    sites = tube(20.0, 300.0, 1.0)
    model = FlowModel(Newtonian(0.1), Regularised(), iolets=(PressureIolet(1.001), PressureIolet(0.999)))
    solver = Solver(sites, model, layout=layout, precision=Precision("float32", storage), threads=1)  # type: ignore[arg-type]
    write_checkpoint(tmp_path / "state", World.serial(), solver.state(), attributes={})
    assert (tmp_path / "state").stat().st_size <= most * len(sites)
