# SPDX-License-Identifier: BSD-3-Clause
"""VTKHDF files (PolyData) of triangles at one time, of which each rank writes a part in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.io.background import Job, write_now
from seiche.io.compression import Compression, compressed_copy
from seiche.io.files import part_path, publish, replacing
from seiche.io.mark import new_hdf5
from seiche.io.parallel import ParallelFile, raise_on_all_ranks
from seiche.io.vtkhdf import reserve

_TOPOLOGIES = ("Vertices", "Lines", "Polygons", "Strips")
_POINTS, _CORNERS, _OFFSETS = "Points", "Polygons/Connectivity", "Polygons/Offsets"
#: Attribute of a file with the ends of its periodic axes (m).
BOX = "periodic_box"
#: Type and shape of a value of a field.
FieldType = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class CellSurfaces:
    """Triangles at one time: `vertices` (v, 3) in metres, `faces` (f, 3), fields of vertices and of faces by name.

    `periodic_box` (2, 3) has the ends (m) of the periodic axes, infinite along the others; None without periodic axes.
    """

    time: float
    vertices: npt.NDArray[np.floating[Any]]
    faces: npt.NDArray[np.integer[Any]]
    on_vertices: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    on_faces: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    periodic_box: npt.NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class SurfacePart:
    """Consecutive vertices and faces of a file, from numbers `first_vertex` and `first_face`.

    The faces of the `surfaces` are indices into the vertices of the whole file.
    """

    first_vertex: int
    first_face: int
    surfaces: CellSurfaces


@dataclass(frozen=True, eq=False)
class SurfaceExtent:
    """Numbers of `vertices` and `faces` of a whole file, its `time` (s), its fields, and the `periodic_box` (m)."""

    time: float
    vertices: int
    faces: int
    on_vertices: Mapping[str, FieldType] = field(default_factory=dict)
    on_faces: Mapping[str, FieldType] = field(default_factory=dict)
    periodic_box: npt.NDArray[np.float64] | None = None


class SurfacesJob(Job):
    """The job that writes the file `path`: all ranks store their parts under its temporary name, rank 0 renames it.

    Args:
        path: name of the file.
        world: the ranks.
        extent: the size of the file.
        parts: function that returns the parts of this rank, called when they are stored.
        units: units of the fields by name.
        compression: compression of the file; the field "position" of its bounds is that of the vertices.

    Raises:
        OSError: the file cannot be created, on all ranks.
    """

    def __init__(
        self,
        path: Path,
        world: World,
        extent: SurfaceExtent,
        parts: Callable[[], Sequence[SurfacePart]],
        *,
        units: Mapping[str, str] | None = None,
        compression: Compression | None = None,
    ) -> None:
        """Create the file without values (collective)."""
        self._path, self._world, self._parts, self._compression = path, world, parts, compression
        self._part, positions = path.with_name(f"{path.name}.part"), dict[str, int]()
        try:
            with raise_on_all_ranks(world):
                if world.rank == 0:
                    positions = _create(part_path(path), extent, units or {}, compression)
            self._positions = world.bcast(positions)
            self._file = ParallelFile(self._part, world, path)
        except OSError:
            self._remove()
            raise

    def store(self) -> None:
        """Write and sync the parts of this rank."""
        for part in self._parts():
            surfaces, file = part.surfaces, self._file
            points = np.asarray(surfaces.vertices, np.float32).reshape(-1, 3)
            self._write(_POINTS, part.first_vertex, points, field="position")
            faces = np.asarray(surfaces.faces, "<i8").reshape(-1, 3)
            self._write(_CORNERS, part.first_face, faces)
            if len(faces):  # entry 0 is in the file
                ends = 3 * np.arange(part.first_face + 1, part.first_face + 1 + len(faces), dtype="<i8")
                file.write(self._positions[_OFFSETS] + 8 * (part.first_face + 1), ends)
            for name, values in surfaces.on_vertices.items():
                self._write(f"PointData/{name}", part.first_vertex, _stored(values), field=name)
            for name, values in surfaces.on_faces.items():
                self._write(f"CellData/{name}", part.first_face, _stored(values), field=name)
        self._file.sync()

    def _write(self, name: str, first: int, values: npt.NDArray[Any], *, field: str = "") -> None:
        if len(values):
            if self._compression is not None:
                values = self._compression.rounded(field, values)
            self._file.write(self._positions[name] + first * values[:1].nbytes, values)

    def commit(self, stored: list[Any]) -> None:
        """Rename the file, compressed if requested."""
        del stored
        if self._compression is not None:
            with replacing(self._part) as temporary:
                compressed_copy(self._part, temporary)
        publish(self._part, self._path)

    def finish(self, complete: bool) -> None:
        """Close the file; remove it if it is not complete."""
        self._file.close()
        if not complete:
            self._remove()

    def _remove(self) -> None:
        """Remove the file under its temporary name; a symbolic link remains."""
        if self._world.rank == 0 and not self._part.is_symlink():
            with suppress(OSError):
                self._part.unlink()


def surfaces_job(
    path: Path,
    surfaces: CellSurfaces,
    units: Mapping[str, str] | None = None,
    compression: Compression | None = None,
) -> SurfacesJob:
    """Return the job of one process that writes whole `surfaces`."""
    extent = SurfaceExtent(
        surfaces.time,
        len(surfaces.vertices),
        len(surfaces.faces),
        {name: _type_of(values) for name, values in surfaces.on_vertices.items()},
        {name: _type_of(values) for name, values in surfaces.on_faces.items()},
        surfaces.periodic_box,
    )
    parts = [SurfacePart(0, 0, surfaces)]
    return SurfacesJob(path, World.serial(), extent, lambda: parts, units=units, compression=compression)


def write_surfaces(
    path: Path,
    surfaces: CellSurfaces,
    units: Mapping[str, str] | None = None,
    compression: Compression | None = None,
) -> None:
    """Write a VTKHDF file (PolyData of one time step) atomically, by one process; OSError if that fails.

    The field "position" of the `compression` is that of the vertices.
    """
    write_now(surfaces_job(path, surfaces, units, compression), World.serial())


def _create(
    path: Path, extent: SurfaceExtent, units: Mapping[str, str], compression: Compression | None
) -> dict[str, int]:
    """Create the file without values; return the byte position of each array that the ranks write, 0 if it is empty."""
    import h5py

    positions = {}
    with new_hdf5(path) as file:
        root = file.create_group("VTKHDF")
        root.attrs["Version"] = np.array([2, 2], np.int64)
        root.attrs.create("Type", b"PolyData", dtype=h5py.string_dtype("ascii", 8))
        if extent.periodic_box is not None:
            file.attrs[BOX] = np.asarray(extent.periodic_box, np.float64)
        root["NumberOfPoints"] = np.array([extent.vertices], np.int64)
        positions[_POINTS] = reserve(root, _POINTS, (extent.vertices, 3), np.dtype("<f4"))
        if compression is not None:
            root[_POINTS].attrs.update(compression.attributes("position"))
        for name in _TOPOLOGIES:
            count = extent.faces if name == "Polygons" else 0
            group = root.create_group(name)
            group["NumberOfCells"] = np.array([count], np.int64)
            group["NumberOfConnectivityIds"] = np.array([3 * count], np.int64)
            positions[f"{name}/Offsets"] = reserve(group, "Offsets", (count + 1,), np.dtype("<i8"))
            positions[f"{name}/Connectivity"] = reserve(group, "Connectivity", (3 * count,), np.dtype("<i8"))
            group["Offsets"][:1] = 0
        _create_steps(root, extent)
        for data, rows, fields in (
            ("PointData", extent.vertices, extent.on_vertices),
            ("CellData", extent.faces, extent.on_faces),
        ):
            group = root.create_group(data)
            for name, (kind, shape) in fields.items():
                positions[f"{data}/{name}"] = reserve(group, name, (rows, *shape), np.dtype(kind))
                if compression is not None:
                    group[name].attrs.update(compression.attributes(name))
                if name in units:
                    group[name].attrs["Units"] = units[name]
    return positions


def _create_steps(root: Any, extent: SurfaceExtent) -> None:
    steps = root.create_group("Steps")
    steps.attrs["NSteps"] = np.int64(1)
    steps["Values"] = np.array([extent.time])
    for name in ("PartOffsets", "PointOffsets"):
        steps[name] = np.zeros(1, np.int64)
    steps["NumberOfParts"] = np.ones(1, np.int64)
    for name in ("CellOffsets", "ConnectivityIdOffsets"):
        steps[name] = np.zeros((1, len(_TOPOLOGIES)), np.int64)
    for data, fields in (("PointData", extent.on_vertices), ("CellData", extent.on_faces)):
        offsets = steps.create_group(f"{data}Offsets")
        for name in fields:
            offsets[name] = np.zeros(1, np.int64)


def _stored(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return values as they are stored: real numbers in single precision."""
    return values.astype("<f4") if values.dtype.kind == "f" else values


def _type_of(values: npt.NDArray[Any]) -> FieldType:
    return _stored(values[:0]).dtype.str, values.shape[1:]
