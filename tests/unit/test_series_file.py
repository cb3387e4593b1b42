# SPDX-License-Identifier: BSD-3-Clause
"""Time series of states survive a power cut at any moment, and continue after a stop."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from seiche.errors import FormatError
from seiche.io.files import part_path
from seiche.io.series_file import SeriesFile, complete_series

SHAPES = {"velocity": (5, 4, 2), "pressure": (5, 4)}
SECTOR = 512


def state(number: int) -> dict[str, np.ndarray]:
    """Return the data of a state."""
    return {name: np.full(shape, number + 1, np.float32) for name, shape in SHAPES.items()}


def checked(path: Path, count: int) -> None:
    """Check that a file has exactly the first `count` states."""
    with h5py.File(path, "r") as file:
        assert file.attrs["title"] == "a test" and file["time"].dtype == np.float64
        np.testing.assert_array_equal(file["time"], 0.5 * np.arange(1, count + 1))
        for name in SHAPES:
            np.testing.assert_array_equal(file[name], [state(k)[name] for k in range(count)])


def write(path: Path, count: int, capacity: int) -> SeriesFile:
    """Return an open file with states."""
    file = SeriesFile(path, SHAPES, {"title": "a test"}, capacity)
    for number in range(count):
        file.append(0.5 * (number + 1), state(number))
    return file


@pytest.mark.parametrize(("count", "capacity"), [(3, 3), (2, 5), (7, 2)])
def test_a_closed_file_has_its_states_whatever_was_planned(count: int, capacity: int, tmp_path: Path) -> None:
    path = tmp_path / "plane.h5"
    file = write(path, count, capacity)
    file.close()
    checked(path, count)
    file.reopen(capacity)
    assert path.exists()  # until the longer file is complete
    for number in range(count, count + 3):
        file.append(0.5 * (number + 1), state(number))
    file.close()
    checked(path, count + 3)
    assert not part_path(path).exists()


def test_a_power_cut_at_any_moment_loses_no_state_that_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk has what was synced, and of later writes any sectors in any order."""
    path, disk, later = tmp_path / "plane.h5", bytearray(), list[tuple[int, bytes]]()
    sync, write_at, random = os.fsync, os.pwrite, np.random.default_rng(1)
    done, cuts = 0, 0

    def after_a_cut() -> None:
        nonlocal cuts
        for _ in range(4):
            content = bytearray(disk)
            for offset, piece in later:
                if random.random() < 0.5:
                    content[offset : offset + len(piece)] = piece
            result = tmp_path / "found" / "plane.h5"
            shutil.rmtree(result.parent, ignore_errors=True)
            result.parent.mkdir()
            part_path(result).write_bytes(content)
            retained, _ = complete_series(result, np.inf)
            assert retained >= done
            if retained:
                checked(result, retained)
            cuts += 1

    def synced(descriptor: int) -> None:
        sync(descriptor)
        if os.readlink(f"/proc/self/fd/{descriptor}") == str(part_path(path)):
            disk[:], later[:] = part_path(path).read_bytes(), []

    def written(descriptor: int, data: Any, offset: int) -> int:
        count = write_at(descriptor, data, offset)
        raw, begin = bytes(data[:count]), 0
        while begin < count:
            end = min(count, begin + SECTOR - (offset + begin) % SECTOR)
            later.append((offset + begin, raw[begin:end]))
            begin = end
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", sync)
            patch.setattr(os, "pwrite", write_at)
            after_a_cut()
        return count

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "pwrite", written)
    file = SeriesFile(path, SHAPES, {"title": "a test"}, 4)
    for number in range(4):
        file.append(0.5 * (number + 1), state(number))
        done = number + 1
    assert cuts == 4 * 3 * 4 and not later
    file.close()
    checked(path, 4)


def test_states_after_the_end_are_not_kept_and_a_file_without_states_stays(tmp_path: Path) -> None:
    path = tmp_path / "plane.h5"
    write(path, 3, 5)
    assert complete_series(path, 0.4) == (0, path) and part_path(path).exists()
    assert complete_series(path, 1.1) == (2, path)
    checked(path, 2)
    with pytest.raises(OSError, match=r"plane\.h5\.part"):
        complete_series(path, 1.1)


@pytest.mark.parametrize("kind", ["external", "virtual"])
def test_a_part_with_data_in_another_file_is_not_followed(kind: str, tmp_path: Path) -> None:
    """A file that anybody may have placed there could otherwise copy any file into the result."""
    path, secret = tmp_path / "a.h5", tmp_path / "secret"
    with h5py.File(secret, "w") as file:
        file["data"] = np.ones((2, 4), "f4")
    with h5py.File(part_path(path), "w", libver="latest") as file:
        file["time"] = [0.5, 1.0]
        if kind == "external":
            file.create_dataset("velocity", (2, 4), "f4", external=[(str(secret), 0, 32)])
        else:
            layout = h5py.VirtualLayout((2, 4), "f4")
            layout[:] = h5py.VirtualSource(str(secret), "data", (2, 4))
            file.create_virtual_dataset("velocity", layout)
    with pytest.raises(FormatError, match="velocity: is stored in other files, which are not read"):
        complete_series(path, 2.0)
    assert not path.exists()
