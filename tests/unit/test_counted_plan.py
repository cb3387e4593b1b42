# SPDX-License-Identifier: BSD-3-Clause
"""Plans that are counted from the tiles of the whole vessel are those of ranks that are constructed one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seiche.case.flow.counted_plan import can_count, chosen_layout, counted_ranks
from seiche.case.flow.kind import FlowPlan
from seiche.case.flow.run import open_solver
from seiche.case.kind import PlannedCase
from seiche.case.plans import planned_case
from seiche.domain.emulation import emulate_ranks
from seiche.flow.tile_counts import SiteTiles, tile_counts
from seiche.flow.tile_layout import TileLayout
from seiche.flow.velocity_set import D3Q19

TREE = """
solver = "flow"
[geometry]
spacing = "0.25 mm"
shape = { kind = "tree", radius = "1.5 mm", outlets = 5, seed = 1 }
[fluid]
density = "1060 kg/m^3"
FLUID
[lattice]
step = "25 us"
layout = "tiles-4"
[time]
steps = 10
[run]
device = "cuda"
precision = { storage = "float32", compute = "float32" }
[[iolet]]
name = "inlet"
kind = "velocity"
flow_rate = "0.3 mL/s"
[[iolet]]
name = "outlet*"
kind = "pressure"
pressure = "0 mmHg"
"""
NEWTONIAN, SHEAR_THINNING = 'viscosity = "3.5 mPa s"', 'rheology = { kind = "carreau-yasuda", preset = "human" }'


def _planned(folder: Path, fluid: str = NEWTONIAN, *overrides: str) -> Any:
    path = folder / "tree.toml"
    path.write_text(TREE.replace("FLUID", fluid))
    return planned_case(path, overrides).planned


@pytest.mark.parametrize(
    ("fluid", "overrides", "ranks"),
    [
        (NEWTONIAN, (), (2, 3, 5, 8, 40)),
        (SHEAR_THINNING, ('lattice.layout="tiles-8"', 'run.partition="curve"'), (2, 7)),
        (NEWTONIAN, ('run.device="cpu"', 'run.precision={storage="float64",compute="float64"}'), (4,)),
    ],
)
def test_counted_ranks_are_those_constructed_one_by_one(
    tmp_path: Path, fluid: str, overrides: tuple[str, ...], ranks: tuple[int, ...]
) -> None:
    """Sites, stages, bytes, messages by neighbour and memory of every rank are equal."""
    planned = _planned(tmp_path, fluid, *overrides)
    device = "cpu:planned" if 'run.device="cpu"' in overrides else "cuda:planned"
    layout = chosen_layout(planned.setup, device)
    assert isinstance(planned, FlowPlan)
    assert can_count(planned.setup, layout)
    for count in ranks:
        expected, name = PlannedCase.all_ranks(planned, count, device)
        assert counted_ranks(planned.setup, count, device, layout) == expected
        assert planned.all_ranks(count, device) == (expected, name)


def test_counts_of_tiles_are_those_of_the_layouts(tmp_path: Path) -> None:
    setup = _planned(tmp_path).setup
    sites, ranks = setup.vessel.sites, 6
    solvers = emulate_ranks(ranks, lambda world: open_solver(setup, world, device="cuda:planned"))
    counts = tile_counts(sites, SiteTiles.of(sites, solvers[0].region.owner, 4), D3Q19, ranks)
    for solver, own in zip(solvers, counts, strict=True):
        layout = solver.populations
        assert isinstance(layout, TileLayout)
        assert own.tiles == len(layout.tile_coordinates)
        assert own.interior_tiles == layout.interior // layout.volume
        assert own.sites == len(solver.owned)
        plan = layout.plan
        sizes = zip(plan.peers, map(len, plan.owned), map(len, plan.ghosts), strict=True)
        assert own.messages == tuple(sizes)
    assert sum(own.sites for own in counts) == len(sites)


@pytest.mark.parametrize(
    "override",
    ['lattice.layout="list-aa"', 'walls.kind="bouzidi"', 'lattice.velocity_set="D3Q27"'],
)
def test_other_cases_are_constructed_rank_by_rank(tmp_path: Path, override: str) -> None:
    planned = _planned(tmp_path, NEWTONIAN, override)
    assert not can_count(planned.setup, chosen_layout(planned.setup, "cuda:planned"))
    assert len(planned.all_ranks(2, "cuda:planned")[0]) == 2
