# SPDX-License-Identifier: BSD-3-Clause
"""Foreign files at the targets of a run on ranks: every rank reports them, and the run goes on in its own files."""

from __future__ import annotations

import tempfile
from pathlib import Path

import h5py
import pytest

import seiche
from prediction_cases import case_file
from seiche.case.simulation import Simulation
from seiche.domain.world import World
from seiche.errors import CaseError

CHANGES = {
    "flow": ("time.steps=6", 'output.fields=[{ file = "u.vtkhdf", every = 1 }]', "output.picture=p.png"),
    "blood": (
        *("time.steps=6", "packing.hematocrit=0.05", "cells.red.shape.vertices=42", "output.picture=p.png"),
        'output.fields=[{ file = "u.vtkhdf", every = 1 }]',
    ),
    "ultrasound": ("grid.steps=6", "output.file=u.h5", "output.picture=p.png"),
    "waves": (
        *("time.steps=6", 'output.snapshots=[{ file = "u.h5", every = 1, points = 8 }]'),
        'output.peak={ file = "peak.h5", picture = "p.png" }',
    ),
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure no bandwidth after these small runs."""
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)


def stop_once(simulation: Simulation) -> None:
    if simulation.step == 3:
        simulation.stop()


@pytest.mark.ranks(2)
@pytest.mark.parametrize("kind", CHANGES)
def test_every_rank_reports_a_foreign_file_and_the_run_goes_on_beside_it(kind: str, ranks: int) -> None:
    world = World.from_mpi()
    assert world.size == ranks
    folder = Path(world.bcast(tempfile.mkdtemp() if world.rank == 0 else None))
    if world.rank == 0:
        case_file(folder, kind)
    world.barrier()
    out, reported = folder / "out", []
    with seiche.load(folder / f"{kind}.toml", overrides=CHANGES[kind], output=out) as simulation:
        series = out / ("u.vtkhdf" if kind in ("flow", "blood") else "u.h5")
        foreign = (series, out / "p.png", out / "summary.json", out / "checkpoint.seiche")
        if world.rank == 0:
            for path in foreign:
                path.write_text("mine")
        world.barrier()
        simulation.every(stop_once, steps=1)
        while simulation.step < 6 or not reported:
            with pytest.raises(CaseError, match="put there by another program during the run") as raised:
                simulation.run(visible=False)
            reported.append(str(raised.value))
    assert len(reported) == 2 and all(len(set(world.allgather(line))) == 1 for line in reported)
    assert "checkpoint.new.seiche" in reported[0] and all("summary.new.json" in line for line in reported)
    assert [path.read_text() for path in foreign] == ["mine"] * 4
    beside = series.with_stem("u.new")
    with h5py.File(beside, locking=False) as file:
        count = {"flow": 6, "blood": 6, "waves": 6}.get(kind)
        times = file["VTKHDF/Steps/Values"] if series.suffix == ".vtkhdf" else file.get("time")
        assert count is None or (len(times[:]) >= count and int((times[:count] > 0).sum()) == count)
    world.barrier()
    with seiche.load(
        folder / f"{kind}.toml", overrides=CHANGES[kind], output=folder / "on", restart=out / "checkpoint.new.seiche"
    ) as simulation:
        assert simulation.step == 3


@pytest.mark.ranks(2)
@pytest.mark.parametrize("kind", CHANGES)
def test_a_callback_that_fails_on_one_rank_ends_the_run_on_all(kind: str, ranks: int) -> None:
    world = World.from_mpi()
    assert world.size == ranks
    folder = Path(world.bcast(tempfile.mkdtemp() if world.rank == 0 else None))
    if world.rank == 0:
        case_file(folder, kind)
    world.barrier()

    def fail(simulation: Simulation) -> None:
        if world.rank == 1 and simulation.step == 3:
            raise ZeroDivisionError("of rank one")

    with seiche.load(folder / f"{kind}.toml", overrides=CHANGES[kind], output=folder / "out") as simulation:
        simulation.every(fail, steps=1)
        expected = ZeroDivisionError if world.rank == 1 else CaseError
        with pytest.raises(expected, match=r"of rank one"):
            simulation.run(visible=False)
        assert simulation.step == 3
