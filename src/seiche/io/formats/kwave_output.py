# SPDX-License-Identifier: BSD-3-Clause
"""Output and checkpoint files of the k-Wave simulation codes (HDF5, format 1.2)."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from seiche.errors import FormatError
from seiche.io.arrays import HDF5_ERRORS, check_structure, one_line, values_of
from seiche.io.files import part_path
from seiche.io.formats.kwave import FLOAT, LONG, DatasetReader, KWaveInput, text_of

#: Time steps of a series above `_MAX_STEP_BYTES` are divided into chunks of at most `_CHUNK_BYTES`.
_MAX_STEP_BYTES, _CHUNK_BYTES = 32 << 20, 8 << 20
#: Attribute of a checkpoint that describes the recorded quantities.
_RECORDS = "records"
#: Attribute of a checkpoint with the `KWaveInput.digest` of the simulation.
_DIGEST = "input_digest"
VERSION = {"major_version": "1", "minor_version": "2"}


def attributes(file_type: str, description: str, created_by: str) -> dict[str, str]:
    """Return the six root attributes that every file has."""
    return {
        "created_by": created_by,
        "creation_date": time.strftime("%d/%m/%y, %H:%M:%S"),
        "file_description": description,
        "file_type": file_type,
        **VERSION,
    }


def _write_attributes(file: h5py.File, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        file.attrs[name] = np.bytes_(text or " ")


def _write_type_attributes(dataset: h5py.Dataset) -> None:
    dataset.attrs["data_type"] = np.bytes_("long" if dataset.dtype == LONG else "float")
    dataset.attrs["domain_type"] = np.bytes_("real")


def _write_dataset(group: h5py.Group, name: str, values: npt.ArrayLike, **options: Any) -> None:
    array = np.asarray(values)
    kind = LONG if array.dtype.kind in "iu" else FLOAT
    if name in group:
        del group[name]
    _write_type_attributes(group.create_dataset(name, data=array.astype(kind), **options))


def check_replaceable_output(path: Path | str) -> None:
    """Raise FormatError if `path` is an existing file other than an output: not HDF5, or an input or checkpoint."""
    if not Path(path).is_file() or not Path(path).stat().st_size:
        return
    if not h5py.is_hdf5(path):
        raise FormatError(path, "file", "exists and is not an HDF5 file; give the output another name")
    try:
        with h5py.File(path, "r", locking=False) as file:
            kind = text_of(file.attrs.get("file_type", ""))
    except HDF5_ERRORS:
        return  # a remnant of a killed run
    if kind in ("input", "checkpoint"):
        raise FormatError(path, "file", f"is a file of type {kind}; give the output another name")


class KWaveOutput:
    """An output file that is written during the simulation.

    In the order of HDF5, a time series of an index mask has the shape (1, times, sensors). One of cuboids is a group of
    datasets (times, z, y, x), one per cuboid. Fields over the grid have the shape (Nz, Ny, Nx).
    """

    def __init__(self, path: Path | str, problem: KWaveInput, *, compression: int = 0, append: bool = False) -> None:
        """Create the file, or open that of an earlier run segment; FormatError if that fails."""
        self.path, self._problem = str(path), problem
        self._options = {"compression": compression} if compression else {}
        try:
            self.file = h5py.File(path, "r+" if append else "w", locking=False)
            if append:
                check_structure(self.file)
        except HDF5_ERRORS as error:
            action = "re-opened" if append else "written"
            raise FormatError(self.path, "file", f"cannot be {action} ({error})") from error

    def cuboid_shapes(self) -> list[tuple[int, int, int]]:
        """Return the shape (z, y, x) of each cuboid of the sensor, in the order of the file."""
        corners = self._problem.sensor_corners
        if corners is None:
            return []
        return [(int(box[5] - box[2] + 1), int(box[4] - box[1] + 1), int(box[3] - box[0] + 1)) for box in corners]

    def create_series(self, name: str, time_count: int, sensor_count: int) -> None:
        """Create a time series unless it exists."""
        if name in self.file:
            return
        if self._problem.sensor_corners is None:
            self._create(self.file, name, (1, time_count, sensor_count), (1, 1, sensor_count))
            return
        group = self.file.create_group(name)
        for k, extents in enumerate(self.cuboid_shapes()):
            self._create(group, str(k + 1), (time_count, *extents), (1, *extents))

    def _create(self, group: h5py.Group, name: str, shape: tuple[int, ...], chunks: tuple[int, ...]) -> None:
        if math.prod(chunks) * FLOAT.itemsize > _MAX_STEP_BYTES:
            sizes = [*chunks]
            for axis in range(len(chunks)):  # split the slowest axes first
                row_bytes = math.prod(sizes[axis + 1 :]) * FLOAT.itemsize
                sizes[axis] = max(1, min(sizes[axis], _CHUNK_BYTES // max(1, row_bytes)))
            chunks = tuple(sizes)
        _write_type_attributes(group.create_dataset(name, shape, FLOAT, chunks=chunks, **self._options))

    def write_rows(self, name: str, row: int, values: npt.NDArray[Any]) -> None:
        """Write rows (n, sensors) of a time series from `row` on; if the run is killed later, the file is readable."""
        end = row + len(values)
        if self._problem.sensor_corners is None:
            self.file[name][0, row:end] = values
        else:
            first = 0
            for k, extents in enumerate(self.cuboid_shapes()):
                count = int(np.prod(extents))
                self.file[name][str(k + 1)][row:end] = values[:, first : first + count].reshape(-1, *extents)
                first += count
        self.file.flush()

    def write_aggregate(self, name: str, values: npt.NDArray[Any]) -> None:
        """Write an aggregated quantity: values (sensors,), or a field over the grid."""
        if values.shape == self._problem.shape:
            _write_dataset(self.file, name, values, chunks=(1, *values.shape[1:]), **self._options)
        elif self._problem.sensor_corners is None:
            _write_dataset(self.file, name, values.reshape(1, 1, -1))
        else:
            group = self.file.require_group(name)
            first = 0
            for k, extents in enumerate(self.cuboid_shapes()):
                count = int(np.prod(extents))
                _write_dataset(group, str(k + 1), values[first : first + count].reshape(extents))
                first += count

    def read_aggregate(self, name: str) -> npt.NDArray[Any]:
        """Return the values written by `write_aggregate`, flattened; FormatError if they cannot be read."""
        try:
            is_group = isinstance(self.file[name], h5py.Group)
            names = [f"{name}/{k + 1}" for k in range(len(self.cuboid_shapes()))] if is_group else [name]
            return np.concatenate([values_of(self.file, dataset).ravel() for dataset in names])
        except HDF5_ERRORS as error:
            raise FormatError(self.path, name, f"cannot be read ({error})") from error

    def check_segment(self, t_index: int, checkpoint: str) -> None:
        """Raise FormatError unless the file is from the run segment whose checkpoint is at `t_index` steps."""
        stored = int(self.read_aggregate("t_index")[0])
        if stored != t_index:
            reason = f"is {stored}, but {t_index} in {checkpoint}: from another run segment"
            raise FormatError(self.path, "t_index", reason)

    def write_scalar(self, name: str, value: float) -> None:
        """Write one value; integers are stored as 64-bit unsigned integers."""
        kind = LONG if isinstance(value, (int, np.integer)) else FLOAT
        _write_dataset(self.file, name, np.full((1, 1, 1), value, kind))

    def write_sensor_mask(self) -> None:
        """Copy the sensor mask of the input file."""
        problem = self._problem
        self.write_scalar("sensor_mask_type", int(problem.sensor_points is None))
        if problem.sensor_points is not None:
            _write_dataset(self.file, "sensor_mask_index", (problem.sensor_points + 1).reshape(1, 1, -1))
        elif problem.sensor_corners is not None:
            _write_dataset(self.file, "sensor_mask_corners", (problem.sensor_corners + 1).reshape(1, -1, 6))

    def write_attributes(self, texts: Mapping[str, str]) -> None:
        """Write root attributes."""
        _write_attributes(self.file, texts)

    def stored_seconds(self, name: str) -> float:
        """Return the time in seconds that an earlier run segment stored in an attribute; 0 if there is none."""
        try:
            text = self.file.attrs.get(name, b"0s")
            return float((text.decode() if isinstance(text, bytes) else str(text)).strip().rstrip("s"))
        except HDF5_ERRORS:
            return 0.0

    def close(self) -> None:
        """Close the file.

        Raises:
            FormatError: the HDF5 library cannot close it because it is damaged.
        """
        try:
            self.file.close()
        except HDF5_ERRORS as error:
            raise FormatError(self.path, "file", f"cannot be closed ({one_line(error)})") from error


def write_checkpoint(
    path: Path | str,
    problem: KWaveInput,
    fields: Mapping[str, npt.NDArray[Any]],
    t_index: int,
    *,
    created_by: str,
    records: str,
) -> None:
    """Write the fields (Nz, Ny, Nx) after `t_index` steps, atomically.

    `records` describes the recorded quantities, which must be the same in later run segments.
    """
    temporary = part_path(Path(path))
    try:
        with h5py.File(temporary, "w", locking=False) as file:
            header = attributes("checkpoint", problem.description, created_by)
            _write_attributes(file, {**header, _RECORDS: records, _DIGEST: problem.digest()})
            for name, extent in (("Nx", problem.shape[2]), ("Ny", problem.shape[1]), ("Nz", problem.shape[0])):
                _write_dataset(file, name, np.full((1, 1, 1), extent, LONG))
            _write_dataset(file, "t_index", np.full((1, 1, 1), t_index, LONG))
            for name, values in fields.items():
                _write_dataset(file, name, values, chunks=(1, *values.shape[1:]))
        os.replace(temporary, path)
    except OSError as error:
        raise FormatError(path, "file", f"cannot be written ({error})") from error
    finally:
        temporary.unlink(missing_ok=True)


def read_checkpoint(
    path: Path | str, problem: KWaveInput, names: tuple[str, ...], records: str
) -> tuple[int, dict[str, npt.NDArray[Any]]]:
    """Return t_index and the fields of a checkpoint.

    Raises:
        FormatError: the file is damaged, or the checkpoint belongs to another simulation or other `records`.
    """
    with DatasetReader(path, "checkpoint") as reader:
        stored_records = reader.attribute(_RECORDS, records)  # other programs do not write it
        if stored_records != records:
            raise FormatError(
                reader.path, f"attribute {_RECORDS}", f"is {stored_records!r}, but now {records!r} is requested"
            )
        digest = reader.attribute(_DIGEST, "")
        if digest and digest != problem.digest():
            reason = f"the checkpoint is of another simulation than {problem.path}"
            raise FormatError(reader.path, f"attribute {_DIGEST}", reason)
        for axis, extent in zip("zyx", problem.shape, strict=True):
            stored = reader.integer(f"N{axis}", maximum=1 << 62)
            if stored != extent:
                raise FormatError(reader.path, f"N{axis}", f"is {stored}, but {extent} in {problem.path}")
        t_index = reader.integer("t_index", maximum=int(problem.scalars["Nt"]))
        return t_index, {name: np.asarray(reader.field(name, problem.shape, full_grid=True)) for name in names}
