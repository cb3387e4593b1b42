# SPDX-License-Identifier: BSD-3-Clause
"""A blood case on several ranks: the same bits and the same files as on one."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from case_files import blood_tables, cell_state, toml_of
from seiche.case.loading import load
from seiche.case.simulation import Simulation
from seiche.domain.world import World
from seiche.io.cell_files import read_list, read_surfaces
from seiche.io.checkpoint import SHARE, inspect_checkpoint, read_checkpoint


def written(tables: dict[str, Any], world: World) -> Path:
    """Return a folder of all ranks in which `case.toml` has these tables (collective)."""
    folder = Path(world.bcast(tempfile.mkdtemp() if world.rank == 0 else None))
    if world.rank == 0:
        (folder / "case.toml").write_text(toml_of(tables))
    world.barrier()
    return folder


def run_both(folder: Path, world: World) -> tuple[Simulation, Simulation]:
    """Return the case after its run on all ranks, and after one on each alone (collective)."""
    both = load(folder / "case.toml", output=folder / "both", world=world)
    both.run()
    single = load(folder / "case.toml", output=folder / f"alone{world.rank}", world=World.serial())
    single.run()
    return both, single


@pytest.mark.ranks(2)
def test_a_blood_case_is_bitwise_equal_on_two_ranks() -> None:
    world = World.from_mpi()
    tables = blood_tables()
    tables["geometry"]["shape"] = {"kind": "tube", "radius": "6 um", "length": "12 um", "periodic": True}
    tables["packing"]["hematocrit"] = 0.15
    tables["time"]["steps"] = 6
    tables["run"] = {"threads": 1}
    tables["body_force"] = {"force": ["1e6 N/m^3", "0 N/m^3", "0 N/m^3"]}
    tables["output"] = {"cells": {"file": "cells.vtkhdf", "every": 3}, "checkpoint": {"every": 3}, "picture": "a.png"}
    folder = written(tables, world)
    both, single = run_both(folder, world)
    assert both.blood is not None and single.blood is not None
    assert np.array_equal(cell_state(both.blood)[0], cell_state(single.blood)[0])
    if world.rank == 0:
        first, second = (read_list(folder / name / "cells.vtkhdf") for name in ("both", "alone0"))
        assert [path.name for path, _ in first] == [path.name for path, _ in second]
        one, two = (read_surfaces(states[-1][0]) for states in (first, second))
        assert np.array_equal(one.vertices, two.vertices)
        assert (folder / "both" / "a.png").exists()
        result = json.loads((folder / "both" / "summary.json").read_text())["details"]["cells"]
        assert result["hematocrit"] == pytest.approx(0.15, rel=0.2)


@pytest.mark.ranks(1, 2, 3)
def test_cells_are_stored_by_their_ranks_and_continue_on_any_number_of_ranks() -> None:
    """At most 50 B a vertex; each rank writes its cells and reads a share. One rank continues with equal results."""
    world = World.from_mpi()
    tables = blood_tables()
    tables["packing"]["hematocrit"] = 0.2
    tables["time"]["steps"] = 8
    tables["run"] = {"threads": 1}
    tables["body_force"] = {"force": ["1e6 N/m^3", "0 N/m^3", "0 N/m^3"]}
    tables["output"] = {"checkpoint": {"every": 4}}
    folder = written(tables, world)
    first = load(folder / "case.toml", output=folder / "first", world=world)
    first.run(steps=4)
    first.outputs.drain()
    world.barrier()
    path = folder / "first/checkpoint.seiche"
    cells = inspect_checkpoint(path).rows["cells/0"]
    vertices = cells.arrays[0].shape[0]
    assert sum(array.row_bytes for array in (cells.keys, *cells.arrays)) <= 50 * vertices
    assert first.blood is not None
    owned = world.allgather(len(first.blood.state().rows["cells/0"].keys))
    assert [chunk.rows for chunk in cells.chunks] == [count for count in owned if count]
    own = read_checkpoint(path, world, {"cells/0": SHARE}).rows["cells/0"]
    assert sum(world.allgather(len(own.keys))) == cells.total
    assert max(world.allgather(len(own.keys))) <= -(-cells.total // world.size)
    continued = load(folder / "case.toml", output=folder / f"alone{world.rank}", world=World.serial(), restart=path)
    assert continued.solver.step == 4
    again = load(folder / "case.toml", output=folder / "again", world=world, restart=path)
    for item in (first, continued, again):
        item.run()
    assert first.blood is not None and continued.blood is not None and again.blood is not None
    expected = cell_state(first.blood)[0]
    assert np.array_equal(expected, cell_state(continued.blood)[0])
    assert np.array_equal(expected, cell_state(again.blood)[0])
    positions = continued.blood.populations()[0].vertices
    start = load(folder / "case.toml", output=folder / f"start{world.rank}", world=World.serial())
    assert start.blood is not None
    assert np.abs(positions - start.blood.populations()[0].vertices).max() > 1e-6


@pytest.mark.ranks(2)
def test_an_open_vessel_is_bitwise_equal_on_two_ranks() -> None:
    """Balls flow through a short tube; cells leave and enter, so that ranks share others than at the start."""
    world = World.from_mpi()
    tables = blood_tables()
    tables["geometry"]["shape"] = {"kind": "tube", "radius": "4 um", "length": "18 um"}
    tables["iolet"] = [
        {"name": "inlet", "kind": "velocity", "velocity": "50 mm/s"},
        {"name": "outlet", "kind": "pressure", "pressure": "0 Pa"},
    ]
    tables["lattice"] = {"tau": 3.0, "velocity_scale": "100 mm/s"}
    ball = {"kind": "sphere", "diameter": "2.8 um", "vertices": 42}
    tables["cells"] = [{"name": "ball", "shape": ball, "model": "triangles", "shear_modulus": "200 uN/m"}]
    tables |= {"packing": {"hematocrit": 0.1}, "reservoir": {"every": 16, "length": "6 um"}, "time": {"steps": 288}}
    tables["run"] = {"threads": 1}
    folder = written(tables, world)
    both, single = run_both(folder, world)
    assert both.blood is not None and single.blood is not None
    assert sum(single.blood.statistics.removed.values()) > 0
    assert sum(single.blood.statistics.entered.values()) > 0
    one, two = cell_state(both.blood), cell_state(single.blood)
    assert one[1] == two[1]
    assert np.array_equal(one[0], two[0])


@pytest.mark.ranks(2)
def test_ranks_share_by_measured_costs_from_the_start_or_a_checkpoint_with_bitwise_equal_results() -> None:
    """`run.balance = "measured"` of a case, and of a restart: the state continues on another partition."""
    world = World.from_mpi()
    tables = blood_tables()
    tables["packing"]["hematocrit"] = 0.1
    tables["time"]["steps"] = 8
    tables["run"] = {"threads": 1}
    tables["body_force"] = {"force": ["1e6 N/m^3", "0 N/m^3", "0 N/m^3"]}
    tables["output"] = {"checkpoint": {"every": 4}}
    folder = written(tables, world)
    case, measured = folder / "case.toml", ["run.balance=measured"]
    even = load(case, output=folder / "even", world=world)
    even.run(steps=4)
    even.outputs.drain()
    world.barrier()
    second = load(
        case, output=folder / "again", world=world, overrides=measured, restart=folder / "even/checkpoint.seiche"
    )
    assert second.solver.step == 4
    weighed = load(case, output=folder / "weighed", world=world, overrides=measured)
    result = []
    for item in (even, second, weighed):
        item.run()
        assert item.blood is not None
        assert item.solver.step == 8
        result.append(cell_state(item.blood)[0])
    assert np.array_equal(result[0], result[1])
    assert np.array_equal(result[0], result[2])
