# SPDX-License-Identifier: BSD-3-Clause
"""Output, checkpoint and restart take no more memory on rank 0 than on other ranks."""

from __future__ import annotations

from pathlib import Path

import launch
import numpy as np
import pytest
from rank_memory import peak_memory, reset_peak_memory

from seiche.domain.set_up_ranks import set_up_on
from seiche.domain.shapes import tube
from seiche.domain.world import World
from seiche.flow import FlowModel, Newtonian, Precision, PressureIolet, Regularised, Solver
from seiche.io.checkpoint import read_checkpoint, write_checkpoint
from seiche.io.fields import FieldSeries, VoxelCells

FIELDS = {"velocity": 3, "density": 1}


def write_fields(solver: Solver, path: str) -> None:
    """Write one step of two fields at all sites."""
    cells = VoxelCells(solver.sites.shape, solver.sites.coords, owned=solver.owned)
    snapshots = solver.measures.snapshots(list(FIELDS))
    with FieldSeries(path, solver.world, cells, FIELDS, capacity=4) as series:
        series.write(0.0, solver.measures.snapshot(snapshots).fields())


def write_state(solver: Solver, path: str) -> None:
    """Write a checkpoint."""
    write_checkpoint(path, solver.world, solver.state(), attributes={})


def read_state(solver: Solver, path: str) -> None:
    """Continue from the checkpoint."""
    solver.set_state(read_checkpoint(path, solver.world, solver.keys))


def compare_memory_of_files(folder: str) -> None:
    """Compare the resident memory that each kind of file adds to that of the ranks."""
    world = World.from_mpi()
    model = FlowModel(Newtonian(0.1), Regularised(), iolets=(PressureIolet(1.001), PressureIolet(0.999)))
    options = {"layout": "moments", "precision": Precision("float32", "float32"), "world": world, "threads": 1}
    actions = {"fields": write_fields, "checkpoint": write_state, "restart": read_state}
    paths = {"fields": "fields.vtkhdf", "checkpoint": "state.seiche", "restart": "state.seiche"}
    world.alltoall([np.zeros(1 << 21)] * world.size)  # touches the buffers of the MPI library
    for radius, length in ((6.0, 40.0), (40.0, 600.0)):  # the first one imports and compiles
        with set_up_on(world):
            sites = tube(radius, length, 1.0)
        solver = Solver(sites, model, **options)
        solver.advance(1)
        for name, action in actions.items():
            before = reset_peak_memory()
            action(solver, f"{folder}/{paths[name]}")
            peaks = np.array(world.allgather(peak_memory() - before))
            if len(sites) > 3_000_000:
                if world.rank == 0:
                    print(name, *(f"{peak / 1e6:.0f} MB" for peak in peaks))
                assert peaks[0] <= 1.1 * np.median(peaks), f"{name}: {peaks / 1e6} MB"
                assert peaks.max() < 64e6 + 100 * len(sites) / world.size
    assert solver.step == 1


@pytest.mark.parametrize("ranks", [2, 4])
def test_rank_zero_needs_no_more_memory_than_others_for_files(ranks: int, tmp_path: Path) -> None:
    """In processes of their own, in which no earlier test has left memory in the heaps."""
    pytest.importorskip("pymetis")
    print(launch.run_ranks(ranks, compare_memory_of_files, str(tmp_path), timeout=200.0, new_processes=True))
