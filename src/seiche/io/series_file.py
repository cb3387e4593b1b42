# SPDX-License-Identifier: BSD-3-Clause
"""HDF5 time series that one process writes in place, so that a kill or a power cut loses no complete state.

The file has space for its states from the start; later only numbers are written, never the structure of the file. The
data of a state are written and synced to the disk, then its time, which is NaN before and thereby marks the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.errors import FormatError
from seiche.io.arrays import check_structure, checked_dataset, values_of
from seiche.io.compression import Compression, create_compressed
from seiche.io.files import part_path, publish, replacing, sync_folder
from seiche.io.mark import new_hdf5
from seiche.io.parallel import ParallelFile
from seiche.io.vtkhdf import reserve

_DATA_TYPE = np.dtype("<f4")


class SeriesFile:
    """The file `path`: `time` (states,) in s and FP32 data (states, ...); its name has the suffix .part until `close`.

    After `close`, `path` is the final name, which a run may change (`seiche.io.files.publishing`). Times ascend, the
    first of them may be zero.

    Raises:
        OSError: the file cannot be written; also by all methods.
    """

    def __init__(
        self,
        path: Path,
        shapes: Mapping[str, tuple[int, ...]],
        attributes: Mapping[str, Any],
        capacity: int,
        *,
        earlier: Path | None = None,
        end: float = np.inf,
        compression: Compression | None = None,
    ) -> None:
        """Create the file for `capacity` states, each with data of these `shapes`; more states are possible.

        It begins with the states of the file `earlier` up to the time `end` (s). With a `compression`, data are rounded
        when they are added, and `close` compresses the file.

        Raises:
            FormatError: the file `earlier` is invalid, or its data have other shapes.
        """
        self.path, self._shapes, self._attributes, self._compression = path, shapes, attributes, compression
        if earlier is None:
            self._open(capacity, part_path(path))
        else:
            self._continue(earlier, capacity, end)

    def _open(self, capacity: int, part: Path) -> None:
        self._count, self._capacity = 0, capacity
        with new_hdf5(part, libver="earliest") as file:
            file.attrs.update(self._attributes)
            times = file.create_dataset("time", data=np.full(capacity, np.nan))
            self._offsets = {"time": int(times.id.get_offset())}
            for name, shape in self._shapes.items():
                self._offsets[name] = reserve(file, name, (capacity, *shape), _DATA_TYPE)
                if self._compression is not None:
                    file[name].attrs.update(self._compression.attributes(name))
        self._file = ParallelFile(part, World.serial(), self.path)
        self._file.sync()
        sync_folder(part.parent)

    def append(self, time: float, data: Mapping[str, npt.NDArray[Any]]) -> None:
        """Add the state at `time`, after that of the state before; when this returns it is on the disk."""
        if self._count == self._capacity:
            self.close()
            self.reopen(2 * self._capacity)
        for name, values in data.items():
            values = np.asarray(values, _DATA_TYPE)
            if self._compression is not None:
                values = self._compression.rounded(name, values)
            self._file.write(self._offsets[name] + self._count * values.nbytes, values)
        self._file.sync()
        self._file.write(self._offsets["time"] + 8 * self._count, np.array([time], "<f8"))
        self._file.sync()
        self._count += 1

    def reopen(self, capacity: int) -> None:
        """Continue the closed file, with space for `capacity` states in total."""
        self._continue(self.path, capacity, np.inf)

    def _continue(self, earlier: Path, capacity: int, end: float) -> None:
        """Begin with the states of `earlier`, which may be the unfinished file itself: the new one replaces it."""
        part = part_path(self.path)
        with h5py.File(earlier, "r", locking=False) as file:
            check_structure(file)
            times = values_of(file, "time")
            count = states_until(times, end)
            series_data = {name: checked_dataset(file, name) for name in self._shapes}
            for name, rows in series_data.items():
                if rows.shape != (len(times), *self._shapes[name]):
                    raise FormatError(earlier, name, f"has states of shape {rows.shape[1:]}, not {self._shapes[name]}")
            self._open(max(capacity, count), part_path(part))
            for number in range(count):
                self.append(float(times[number]), {name: rows[number] for name, rows in series_data.items()})
        part_path(part).replace(part)
        sync_folder(part.parent)

    def close(self) -> None:
        """Rename the file to its final name, without the space for states that were not written."""
        self._file.close()
        if self._count == self._capacity and self._compression is None:
            self.path = publish(part_path(self.path), self.path)
        else:
            _, self.path = complete_series(self.path, np.inf, compressed=self._compression is not None)


def states_until(times: npt.NDArray[Any], end: float) -> int:
    """Return the number of complete states up to the time `end` (s): their times are not NaN and ascend from zero."""
    if times.ndim != 1:
        return 0
    is_complete = (times >= 0.0) & (times <= end)
    is_complete[1:] &= np.diff(times) > 0.0
    return int(np.argmin([*is_complete, False]))


def complete_series(path: Path, end: float, *, compressed: bool = False) -> tuple[int, Path]:
    """Rename the unfinished file of `path`, with the states up to the time `end` (s), perhaps `compressed`.

    Returns the number of states and the final name.

    A file without such states remains as it is.

    Raises:
        OSError, KeyError, FormatError or another error of `seiche.io.arrays.HDF5_ERRORS`: not a file of this kind.
    """
    part = part_path(path)
    with h5py.File(part, "r", locking=False) as file:
        check_structure(file)
        times = values_of(file, "time")
        series_data = {name: checked_dataset(file, name) for name in file}
        count = states_until(times, end)
        if count:
            with replacing(part) as temporary, new_hdf5(temporary, libver="earliest") as copy:
                copy.attrs.update(file.attrs)
                for name, rows in series_data.items():
                    create = create_compressed if compressed else h5py.Group.create_dataset
                    series = create(copy, name, (count, *rows.shape[1:]), rows.dtype)
                    series.attrs.update(rows.attrs)
                    for number in range(count):
                        series[number] = rows[number]
    return count, publish(part, path) if count else path
