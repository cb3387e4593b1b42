# SPDX-License-Identifier: BSD-3-Clause
"""Ranks compress a file together; the result does not depend on their number, and a kill leaves a complete file."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from launch import environment, rank_command, run_ranks

from seiche.domain.world import World
from seiche.io.compression import Compression, ErrorBound
from seiche.io.fields import FieldSeries, VoxelCells

SHAPE = (60, 50, 40)
N_SITES = 60 * 50 * 40
STEPS = 3


def _values(step: int) -> np.ndarray:
    return np.cumsum(np.random.default_rng(step).standard_normal((N_SITES, 3)), axis=0).astype("f4")


def _series(path: str, world: World, compression: Compression) -> tuple[FieldSeries, np.ndarray]:
    coords = np.stack(np.unravel_index(np.arange(N_SITES), SHAPE), axis=1).astype(np.int32)
    owned = np.arange(N_SITES * world.rank // world.size, N_SITES * (world.rank + 1) // world.size)
    cells = VoxelCells(SHAPE, coords, owned=owned)
    return FieldSeries(path, world, cells, {"u": 3}, STEPS + 2, compression=compression), owned


def write_compressed(path: str, error: str) -> None:
    world, bound = World.from_mpi(), float(error)
    series, owned = _series(path, world, Compression({"u": ErrorBound(absolute=bound)} if bound else {}))
    with series:
        for step in range(STEPS - 1):
            series.write(float(step), {"u": _values(step)[owned]})
        series.compress(2)
        series.reopen()
        series.write(STEPS - 1.0, {"u": _values(STEPS - 1)[owned]})
        series.compress(1)


def compress_forever(folder: str) -> None:
    world = World.from_mpi()
    series, owned = _series(f"{folder}/u.vtkhdf", world, Compression())
    with series:
        for step in range(STEPS):
            series.write(float(step), {"u": _values(step)[owned]})
        (Path(folder) / f"started-{world.rank}").touch()
        for _ in range(1000):
            series.compress(1)
            series.reopen()


def fail_on_a_full_disk(folder: str) -> None:
    from seiche.io import deflate

    world = World.from_mpi()
    series, owned = _series(f"{folder}/u.vtkhdf", world, Compression())
    with series:
        series.write(0.0, {"u": _values(0)[owned]})
        if world.rank == world.size - 1:

            def fail(*arguments: object) -> bytes:
                raise OSError(28, "No space left on device")

            deflate._stream = fail
        try:
            series.compress(1)
        except OSError as error:
            print(f"rank {world.rank} {error.strerror}\n", end="", flush=True)


def _contents(path: Path) -> dict[str, np.ndarray]:
    with h5py.File(path, "r") as file:
        names: list[str] = []
        file["VTKHDF"].visit(names.append)
        return {name: file["VTKHDF"][name][()] for name in names if isinstance(file["VTKHDF"][name], h5py.Dataset)}


@pytest.mark.parametrize("error", [0.0, 0.02])
def test_any_number_of_ranks_writes_the_same_compressed_file(tmp_path: Path, error: float) -> None:
    files = {ranks: tmp_path / f"{ranks}.vtkhdf" for ranks in (1, 3)}
    for ranks, path in files.items():
        run_ranks(ranks, write_compressed, path, error)
    one, three = (_contents(path) for path in files.values())
    assert one.keys() == three.keys()
    for name, values in one.items():
        assert values.tobytes() == three[name].tobytes(), name
    exact = np.concatenate([_values(step) for step in range(STEPS)])
    assert np.abs(three["CellData/u"] - exact).max() <= error
    assert files[3].stat().st_size < 0.25 * sum(values.nbytes for values in three.values())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.vtkhdf", "3.vtkhdf"]


def test_a_failure_of_one_rank_is_raised_on_all(tmp_path: Path) -> None:
    output = run_ranks(3, fail_on_a_full_disk, tmp_path, new_processes=True)
    assert all(f"rank {rank} No space left on device" in output for rank in range(3))
    assert [path.name for path in tmp_path.iterdir()] == ["u.vtkhdf"]
    np.testing.assert_array_equal(_contents(tmp_path / "u.vtkhdf")["CellData/u"][:N_SITES], _values(0))


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_kill_during_compression_leaves_a_complete_file(tmp_path: Path, ranks: int) -> None:
    expected, parts = np.concatenate([_values(step) for step in range(STEPS)]), 0
    for attempt in range(6):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        group = subprocess.Popen(
            rank_command(ranks, compress_forever, folder),
            env=environment(),
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while not (folder / "started-0").exists():
            assert time.monotonic() < deadline
            assert group.poll() is None
            time.sleep(0.002)
        time.sleep(0.15 * attempt)
        os.killpg(group.pid, signal.SIGKILL)
        group.wait(timeout=20)
        time.sleep(0.2)  # ranks without their launcher end by themselves
        parts += (folder / "u.vtkhdf.part").exists()
        contents = _contents(folder / "u.vtkhdf")
        np.testing.assert_array_equal(contents["CellData/u"][: len(expected)], expected)
        with h5py.File(folder / "u.vtkhdf") as file:
            assert file["VTKHDF/Steps"].attrs["NSteps"] == STEPS
    assert parts > 0
