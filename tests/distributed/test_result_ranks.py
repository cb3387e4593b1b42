# SPDX-License-Identifier: BSD-3-Clause
"""Labelled results on ranks: every rank has those of one rank."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

import seiche
from prediction_cases import case_file
from seiche.case.labels import LabelledArrays
from seiche.domain.world import World

#: Of each kind: how far fields of ranks may be from those of one, of the largest number; slabs transform in one order.
KINDS = {"flow": 0.0, "blood": 0.0, "ultrasound": 1e-12, "waves": 0.0}


def result_of(kind: str, folder: Path, world: World, grid: bool) -> LabelledArrays:
    options = [f"{'grid' if kind == 'ultrasound' else 'time'}.steps=7"]
    options += ["run.basis=global", "run.precision=float64"] if kind == "ultrasound" else []
    if kind == "waves":
        options += ["receiver=[{ name = 'a', position = ['2.2 m', '1.7 m', '3.1 m'] }]", "output.receivers.every=2"]
    name = f"{world.size}-{World.from_mpi().rank if world.size == 1 else 0}"
    with seiche.load(folder / f"{kind}.toml", overrides=options, output=folder / name, world=world) as sim:
        sim.run(visible=False)
        return sim.result("pressure", "velocity", **({"spacing": 0.25} if grid else {}))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure no bandwidth after these small runs."""
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)


@pytest.mark.ranks(2, 3, nodes=("2+1",))
@pytest.mark.parametrize(("kind", "grid"), [*((kind, False) for kind in KINDS), ("waves", True)])
def test_every_rank_has_the_result_of_one_rank(kind: str, grid: bool) -> None:
    world = World.from_mpi()
    folder = Path(world.bcast(tempfile.mkdtemp() if world.rank == 0 else None))
    if world.rank == 0:
        case_file(folder, kind)
    world.barrier()
    result, single = result_of(kind, folder, world, grid), result_of(kind, folder, World.serial(), grid)
    assert set(result) == set(single) and set(result.coordinates) == set(single.coordinates)
    for name, item in {**single, **single.coordinates}.items():
        other = result[name] if name in result else result.coordinates[name]
        assert (other.dims, other.unit) == (item.dims, item.unit), name
        if item.values.dtype.kind == "U":
            assert list(other.values) == list(item.values)
            continue
        # Totals over ranks are sums in another order.
        summed = name in ("flow_rate", "mass", "hematocrit")
        limit = max(KINDS[kind], 1e-12 if summed else 0.0) * np.nanmax(np.abs(item.values), initial=0.0)
        np.testing.assert_allclose(other.values, item.values, rtol=0.0, atol=limit, err_msg=name)
