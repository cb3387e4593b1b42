# SPDX-License-Identifier: BSD-3-Clause
"""A writer killed at any moment leaves complete states under the final names, or what was there before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from launch import environment, rank_command

from seiche.solver import RowSet, State

N_SITES = 20_000
KILLS = 6


def _state(step: int, owned: np.ndarray) -> State:
    """Return a state of two row sets, the second on the ranks that have even sites, and of replicated numbers."""
    even = owned[owned % 2 == 0]
    return State(
        step,
        {
            "sites": RowSet(owned, N_SITES, {"f": np.full((len(owned), 4), float(step))}),
            "sensors": RowSet(even // 2, N_SITES // 2, {"p": np.full(len(even), step)}),
        },
        {"largest": np.full(1000, step)},
    )


def write_forever(folder: str) -> None:
    from seiche.domain.world import World
    from seiche.io.checkpoint import write_checkpoint
    from seiche.io.fields import FieldSeries, VoxelCells

    world = World.from_mpi()
    coords = np.stack(np.unravel_index(np.arange(N_SITES), (20, 25, 40)), axis=1).astype(np.int32)
    owned = np.arange(world.rank, N_SITES, world.size)
    (Path(folder) / f"started-{world.rank}").touch()
    cells = VoxelCells((20, 25, 40), coords, owned=owned)
    with FieldSeries(f"{folder}/u.vtkhdf", world, cells, {"u": 1}, 400) as series:
        for step in range(1, 400):
            series.write(float(step), {"u": np.full(len(owned), step)})
            write_checkpoint(f"{folder}/state", world, _state(step, owned), attributes={})


def write_beside_steps_forever(folder: str) -> None:
    from seiche.domain.world import World
    from seiche.io.background import BackgroundWriter
    from seiche.io.checkpoint import create_checkpoint_job
    from seiche.io.fields import FieldSeries, VoxelCells

    world = World.from_mpi()
    coords = np.stack(np.unravel_index(np.arange(N_SITES), (20, 25, 40)), axis=1).astype(np.int32)
    owned = np.arange(world.rank, N_SITES, world.size)
    (Path(folder) / f"started-{world.rank}").touch()
    cells, writer = VoxelCells((20, 25, 40), coords, owned=owned), BackgroundWriter(world, 3)
    with FieldSeries(f"{folder}/u.vtkhdf", world, cells, {"u": 1}, 400) as series:
        for step in range(1, 400):
            writer.submit(series.step(float(step), lambda value=step: {"u": np.full(len(owned), value)}))
            if step % 5 == 0:
                writer.drain()
                writer.submit(create_checkpoint_job(f"{folder}/state", world, _state(step, owned), attributes={}))
            writer.poll()
        writer.stop()


def _kill(group: subprocess.Popen[bytes]) -> None:
    os.killpg(group.pid, signal.SIGKILL)
    group.wait(timeout=20)


def _check_series(path: Path, before: bytes) -> int:
    if path.read_bytes()[: len(before)] == before:
        return 0
    with h5py.File(path, "r") as file:
        steps = file["VTKHDF/Steps"]
        count = int(steps.attrs["NSteps"])
        assert count >= 1
        np.testing.assert_array_equal(steps["Values"], np.arange(1, count + 1))
        for step, offset in enumerate(steps["CellDataOffsets/u"][:count], start=1):
            assert np.all(file["VTKHDF/CellData/u"][offset : offset + N_SITES] == step)
    return count


def _check_state(path: Path, before: bytes) -> None:
    from seiche.domain.world import World
    from seiche.io.checkpoint import ALL, read_checkpoint

    if path.read_bytes() != before:
        state = read_checkpoint(path, World.serial(), {"sites": ALL, "sensors": ALL})
        assert all(np.all(state[name] == state.step) for name in ("f", "p", "largest"))


@pytest.mark.parametrize(("ranks", "work"), [(1, write_forever), (2, write_forever), (2, write_beside_steps_forever)])
def test_killed_writer_leaves_complete_states_or_the_old_files(
    tmp_path: Path, ranks: int, work: Callable[[str], None]
) -> None:
    seen = []
    for attempt in range(KILLS):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        before = b"what an earlier run left"
        (folder / "u.vtkhdf").write_bytes(before)
        (folder / "state").write_bytes(before)
        command = rank_command(ranks, work, folder)
        if ranks == 1:
            command = command[command.index(sys.executable) :]
        group = subprocess.Popen(
            command, env=environment(), start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 30
        while not (folder / "started-0").exists():
            assert time.monotonic() < deadline
            assert group.poll() is None
            time.sleep(0.002)
        # Half of the writers die at their first file, the others somewhere among their steps.
        stepping = attempt % 2 == 1
        while stepping and (folder / "u.vtkhdf").read_bytes()[: len(before)] == before:
            assert time.monotonic() < deadline
            time.sleep(0.002)
        time.sleep((0.1 if stepping else 0.3) * attempt / KILLS)
        _kill(group)
        # The ranks live in process groups of their own; without their launcher they end by themselves.
        time.sleep(0.2 if ranks > 1 else 0.0)
        seen.append(_check_series(folder / "u.vtkhdf", before))
        _check_state(folder / "state", before)
    assert min(seen[1::2]) >= 1
