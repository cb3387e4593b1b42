# SPDX-License-Identifier: BSD-3-Clause
"""Input files of the k-Wave simulation codes: HDF5, format 1.0 to 1.2 (k-Wave manual, appendix B).

All datasets are in the root group and three-dimensional with x fastest: an array over the grid has the HDF5 shape
(Nz, Ny, Nx) in C order. Numbers are 32-bit floats or 64-bit unsigned integers. Indices count from 1.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from seiche.errors import FormatError
from seiche.io.arrays import HDF5_ERRORS, Array, check_structure, one_line, values_of
from seiche.io.files import Closing

FLOAT, LONG = np.dtype("<f4"), np.dtype("<u8")
#: Maximum extent of a grid.
_MAX_EXTENT = 1 << 31


@dataclass
class TimeSource:
    """A time-varying source: scaled `samples`, (t, 1) or (t, n), and the number of `steps` in which it is active."""

    samples: Array
    steps: int


@dataclass
class KWaveInput:
    """An input file; arrays over the grid have shape (Nz, Ny, Nx), indices count from 0.

    `scalars` contains the numbers, by name, that are copied to an output file.
    """

    path: str
    description: str
    shape: tuple[int, int, int]
    scalars: dict[str, float | int] = field(default_factory=dict)
    medium: dict[str, Array | float] = field(default_factory=dict)
    sensor_points: Array | None = None
    sensor_corners: Array | None = None
    initial_pressure: Array | None = None
    sources: dict[str, TimeSource] = field(default_factory=dict)
    source_points: dict[str, Array] = field(default_factory=dict)
    transducer_delays: Array | None = None

    @property
    def axes(self) -> str:
        """Return the names of the axes of the grid."""
        return "xyz" if self.shape[0] > 1 else "xy"

    @property
    def axisymmetric(self) -> bool:
        """Return whether x is the axis of symmetry and y the distance from it."""
        return bool(self.scalars.get("axisymmetric_flag", 0))

    def fail(self, location: str, reason: str) -> FormatError:
        """Return an error that names this file and a dataset."""
        return FormatError(self.path, location, reason)

    def digest(self) -> str:
        """Return a hash of all numbers of the simulation, independent of path and description."""
        digest = hashlib.blake2b(digest_size=16)

        def add(value: object) -> None:
            if isinstance(value, np.ndarray):
                digest.update(f"{value.dtype.str}{value.shape}".encode())
                digest.update(np.ascontiguousarray(value).view(np.uint8).data)
            elif isinstance(value, dict):
                for name, item in sorted(value.items()):
                    digest.update(name.encode())
                    add(item)
            elif is_dataclass(value) and not isinstance(value, type):
                for member in fields(value):
                    add(getattr(value, member.name))
            else:
                digest.update(f"{value!r};".encode())

        for member in fields(self):
            if member.name not in ("path", "description"):
                add(getattr(self, member.name))
        return digest.hexdigest()


def text_of(value: object) -> str:
    """Return a string attribute of any HDF5 type."""
    if isinstance(value, np.ndarray):
        value = value.ravel()[0] if value.size else ""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


class DatasetReader(Closing):
    """Reads and checks datasets of one file; every error is a FormatError."""

    def __init__(self, path: Path | str, file_type: str) -> None:
        """Open the file and check its root attributes."""
        self.path = str(path)
        try:
            self.file = h5py.File(path, "r", locking=False)
        except HDF5_ERRORS as error:
            if not Path(path).exists():
                raise FormatError(self.path, "file", "does not exist") from error
            if Path(path).is_dir():
                raise FormatError(self.path, "file", "is a folder") from error
            raise FormatError(self.path, "file", f"cannot be read as HDF5 ({one_line(error)})") from error
        try:
            check_structure(self.file)
            self._check_root(file_type)
        except BaseException as error:
            self.file.close()
            if isinstance(error, HDF5_ERRORS):
                raise FormatError(self.path, "file", f"cannot be read as HDF5 ({one_line(error)})") from error
            raise

    def _check_root(self, file_type: str) -> None:
        stored = self.attribute("file_type")
        if stored != file_type:
            raise FormatError(self.path, "attribute file_type", f"is {stored!r}, not {file_type!r}")
        major, minor = self.attribute("major_version"), self.attribute("minor_version")
        if major != "1" or minor not in ("0", "1", "2"):
            raise FormatError(self.path, "attribute major_version", f"version {major}.{minor} is not 1.0, 1.1 or 1.2")

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def attribute(self, name: str, default: str | None = None) -> str:
        """Return a root attribute as text."""
        try:
            if name in self.file.attrs:
                return text_of(self.file.attrs[name]).strip("\0 ")
        except HDF5_ERRORS as error:
            raise FormatError(self.path, f"attribute {name}", one_line(error)) from error
        if default is None:
            raise FormatError(self.path, f"attribute {name}", "is missing")
        return default

    def has(self, name: str) -> bool:
        """Return whether there is a dataset of this name."""
        try:
            return name in self.file
        except HDF5_ERRORS as error:
            raise FormatError(self.path, name, one_line(error)) from error

    def read(self, name: str, kind: np.dtype[Any], sizes: tuple[int, ...] | None = None) -> Array:
        """Return a dataset with its HDF5 shape; its total size must be one of `sizes`, if specified."""
        try:
            if name not in self.file:
                raise FormatError(self.path, name, "is missing")
            dataset = self.file[name]
            if not isinstance(dataset, h5py.Dataset):
                raise FormatError(self.path, name, "is not a dataset")
            type_name = "float" if kind == FLOAT else "long"
            stored = {key: text_of(dataset.attrs.get(key, "missing")) for key in ("data_type", "domain_type")}
            if dataset.dtype != kind or stored["data_type"] != type_name:
                reason = f"contains {dataset.dtype} (data_type {stored['data_type']}), not {type_name} numbers"
                raise FormatError(self.path, name, reason)
            if stored["domain_type"] != "real":
                raise FormatError(self.path, name, f"attribute domain_type is {stored['domain_type']!r}, not 'real'")
            if sizes is not None and dataset.size not in sizes:
                expected = " or ".join(str(size) for size in sizes)
                raise FormatError(self.path, name, f"has {dataset.size} numbers, not {expected}")
            return values_of(self.file, name)
        except FormatError:
            raise
        except HDF5_ERRORS as error:
            raise FormatError(self.path, name, f"cannot be read ({one_line(error)})") from error

    def integer(self, name: str, *, maximum: int, default: int | None = None) -> int:
        """Return a scalar integer between 0 and `maximum`."""
        if default is not None and not self.has(name):
            return default
        value = int(self.read(name, LONG, (1,)).ravel()[0])
        if value > maximum:
            raise FormatError(self.path, name, f"{value} is not between 0 and {maximum}")
        return value

    def number(self, name: str, *, positive: bool = False) -> float:
        """Return a finite scalar."""
        value = float(self.read(name, FLOAT, (1,)).ravel()[0])
        if not np.isfinite(value) or (positive and value <= 0):
            raise FormatError(self.path, name, f"{value} is not a {'positive ' if positive else ''}finite number")
        return value

    def indices(self, name: str, points: int, size: int | None = None) -> Array:
        """Return indices (n,) counted from 0; the file counts from 1."""
        indices = self.read(name, LONG, None if size is None else (size,)).ravel()
        if not indices.size:
            raise FormatError(self.path, name, "has no point")
        if indices.min() < 1 or indices.max() > points:
            invalid = indices[(indices < 1) | (indices > points)][0]
            raise FormatError(self.path, name, f"index {invalid} is not between 1 and {points}, the points of the grid")
        return indices.astype(np.int64) - 1

    def field(self, name: str, shape: tuple[int, int, int], *, full_grid: bool = False) -> Array | float:
        """Return the finite values of an array over the grid; a single value is permitted unless `full_grid`."""
        points = int(np.prod(shape))
        values = self.read(name, FLOAT, (points,) if full_grid else (1, points))
        if values.size > 1 and values.shape != shape:
            raise FormatError(self.path, name, f"has shape {values.shape}, not {shape}")
        self.check_finite(name, values)
        return values if values.size > 1 else float(values.ravel()[0])

    def check_finite(self, name: str, values: Array) -> None:
        """Raise FormatError for values of the dataset `name` that are not finite."""
        if not np.isfinite(values).all():
            raise FormatError(self.path, name, "not every value is a finite number")


def read_input(path: Path | str) -> KWaveInput:
    """Read and check an input file; FormatError, with the dataset, for a missing, damaged or invalid one."""
    with DatasetReader(path, "input") as reader:
        shape = tuple(reader.integer(f"N{axis}", maximum=_MAX_EXTENT) for axis in "zyx")
        for axis, extent in zip("zyx", shape, strict=True):
            if extent < (1 if axis == "z" else 2):
                raise FormatError(reader.path, f"N{axis}", f"{extent} points are too few")
        problem = KWaveInput(reader.path, reader.attribute("file_description", ""), (shape[0], shape[1], shape[2]))
        if int(np.prod([int(n) for n in shape])) >= 1 << 32:
            raise FormatError(reader.path, "Nx", f"{shape[2]} x {shape[1]} x {shape[0]} points are too many")
        _read_grid(reader, problem)
        _read_medium(reader, problem)
        _read_sources(reader, problem)
        _read_sensor(reader, problem)
    return problem


def _read_grid(reader: DatasetReader, problem: KWaveInput) -> None:
    scalars = problem.scalars
    for axis, extent in zip("zyx", problem.shape, strict=True):
        scalars[f"N{axis}"] = extent
    scalars["axisymmetric_flag"] = reader.integer("axisymmetric_flag", maximum=1, default=0)
    if problem.axisymmetric and problem.shape[0] > 1:
        raise FormatError(
            reader.path, "axisymmetric_flag", f"1 on a grid with Nz = {problem.shape[0]}; expected Nz = 1"
        )
    scalars["Nt"] = reader.integer("Nt", maximum=_MAX_EXTENT)
    if not scalars["Nt"]:
        raise FormatError(reader.path, "Nt", "0 time steps are too few")
    for name in ("dt", "c_ref", *(f"d{axis}" for axis in problem.axes)):
        scalars[name] = reader.number(name, positive=True)
    for axis in problem.axes:
        extent = problem.shape[2 - "xyz".index(axis)]
        size = scalars[f"pml_{axis}_size"] = reader.integer(f"pml_{axis}_size", maximum=_MAX_EXTENT)
        ends = 1 if problem.axisymmetric and axis == "y" else 2
        if ends * size > extent:
            most = f"half of {extent}" if ends == 2 else f"the {extent}"
            raise FormatError(reader.path, f"pml_{axis}_size", f"{size} is more than {most} points")
        alpha = scalars[f"pml_{axis}_alpha"] = reader.number(f"pml_{axis}_alpha")
        if alpha < 0:
            raise FormatError(reader.path, f"pml_{axis}_alpha", f"{alpha} must be >= 0")
    if len(problem.axes) == 2:
        scalars["pml_z_size"] = reader.integer("pml_z_size", maximum=_MAX_EXTENT, default=0)
        scalars["pml_z_alpha"] = reader.number("pml_z_alpha") if reader.has("pml_z_alpha") else 0.0
    for name, maximum in (("nonuniform_grid_flag", 0), ("elastic_flag", 0)):
        value = reader.integer(name, maximum=_MAX_EXTENT, default=0)
        if value > maximum:
            raise FormatError(reader.path, name, f"{value}: this kind of simulation is not supported")
        if name != "elastic_flag":
            scalars[name] = value
    scalars["nonlinear_flag"] = reader.integer("nonlinear_flag", maximum=1)
    scalars["absorbing_flag"] = reader.integer("absorbing_flag", maximum=2)
    if problem.axisymmetric and scalars["absorbing_flag"] == 1:
        raise FormatError(
            reader.path, "absorbing_flag", "1 on an axisymmetric grid; expected 0 or 2 (Stokes absorption)"
        )


def _read_medium(reader: DatasetReader, problem: KWaveInput) -> None:
    names = ["c0", "rho0", *(f"rho0_sg{axis}" for axis in problem.axes)]
    if problem.scalars["nonlinear_flag"]:
        names.append("BonA")
    if problem.scalars["absorbing_flag"]:
        names.append("alpha_coeff")
        problem.medium["alpha_power"] = reader.number("alpha_power")
    for name in names:
        value = problem.medium[name] = reader.field(name, problem.shape)
        if name not in ("BonA", "alpha_coeff") and not np.min(value) > 0:
            raise FormatError(reader.path, name, f"{np.min(value):g} is not a positive number")


def _read_sources(reader: DatasetReader, problem: KWaveInput) -> None:
    scalars, points = problem.scalars, int(np.prod(problem.shape))
    scalars["p0_source_flag"] = reader.integer("p0_source_flag", maximum=1, default=0)
    if scalars["p0_source_flag"]:
        problem.initial_pressure = np.asarray(reader.field("p0_source_input", problem.shape, full_grid=True))
    for kind, names in (("p", ("p",)), ("u", tuple(f"u{axis}" for axis in "xyz"))):
        lengths = {name: reader.integer(f"{name}_source_flag", maximum=_MAX_EXTENT, default=0) for name in names}
        transducer = reader.integer("transducer_source_flag", maximum=_MAX_EXTENT, default=0) if kind == "u" else 0
        for name, length in lengths.items():
            scalars[f"{name}_source_flag"] = length
        if kind == "u":
            scalars["transducer_source_flag"] = transducer
        if not any(lengths.values()) and not transducer:
            continue
        problem.source_points[kind] = reader.indices(f"{kind}_source_index", points)
        count = problem.source_points[kind].size
        if any(lengths.values()):
            per_point = scalars[f"{kind}_source_many"] = reader.integer(f"{kind}_source_many", maximum=1)
            scalars[f"{kind}_source_mode"] = reader.integer(f"{kind}_source_mode", maximum=2)
            for name, length in lengths.items():
                if length and name != "p" and name[1] not in problem.axes:
                    raise FormatError(reader.path, f"{name}_source_flag", f"{length}: the grid has no axis {name[1]}")
                if length:
                    width = count if per_point else 1
                    problem.sources[name] = _samples(reader, f"{name}_source_input", length, width)
        if transducer and problem.axisymmetric:
            reason = f"{transducer}: transducers are not supported on axisymmetric grids"
            raise FormatError(reader.path, "transducer_source_flag", reason)
        if transducer:
            _read_transducer(reader, problem, transducer, count)


def _samples(reader: DatasetReader, name: str, length: int, width: int) -> TimeSource:
    values = reader.read(name, FLOAT, (length * width,))
    reader.check_finite(name, values)
    return TimeSource(values.reshape(length, width), length)


def _read_transducer(reader: DatasetReader, problem: KWaveInput, steps: int, count: int) -> None:
    signal = reader.read("transducer_source_input", FLOAT).ravel()
    delays = reader.indices("delay_mask", max(1, signal.size), count)
    if steps + int(delays.max()) > signal.size:
        reason = f"{steps} steps with delays up to {delays.max()} need more samples than the {signal.size}"
        raise FormatError(reader.path, "transducer_source_flag", f"{reason} of transducer_source_input")
    reader.check_finite("transducer_source_input", signal)
    problem.sources["transducer"] = TimeSource(signal.reshape(-1, 1), steps)
    problem.transducer_delays = delays


def _read_sensor(reader: DatasetReader, problem: KWaveInput) -> None:
    kind = problem.scalars["sensor_mask_type"] = reader.integer("sensor_mask_type", maximum=1, default=0)
    if kind == 0:
        problem.sensor_points = reader.indices("sensor_mask_index", int(np.prod(problem.shape)))
        return
    values = reader.read("sensor_mask_corners", LONG)
    if not values.size or values.size % 6:
        raise FormatError(reader.path, "sensor_mask_corners", f"has {values.size} numbers, not six per cuboid")
    corners = values.reshape(-1, 6)
    extents = np.array([*problem.shape[::-1]] * 2, np.uint64)
    if corners.min() < 1 or (corners > extents).any() or (corners[:, :3] > corners[:, 3:]).any():
        reason = f"a cuboid is not inside the grid of {problem.shape[::-1]} points"
        raise FormatError(reader.path, "sensor_mask_corners", reason)
    problem.sensor_corners = corners.astype(np.int64) - 1
