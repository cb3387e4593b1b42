# SPDX-License-Identifier: BSD-3-Clause
"""Layout of VTKHDF 2.2 files that all ranks write in place, without the HDF5 library.

The file has space for every step from the start. Under `/committed` it has one description of the series for every
number of steps, and `/VTKHDF/Steps` is a soft link to the current one. Committing a step is one write of six digits.
See docs/decisions/0010-output-files.md; format: https://docs.vtk.org/en/latest/vtk_file_formats/.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from seiche.errors import FormatError
from seiche.io.mark import new_hdf5

if TYPE_CHECKING:
    import h5py

#: The size of the descriptions grows with the square of the capacity: 4 MB for 1000 steps, 400 MB for 10000.
CAPACITY_LIMIT = 10_000

_STEPS_GROUP = "/committed/{:06d}"
#: The link that is rewritten. Its group is separate and created first, so that its position in the file is fixed.
_LINK = "/current/steps"
_HEAD_BYTES = 65536
_SURFACE_PARTS = ("Vertices", "Lines", "Polygons", "Strips")


@dataclass(frozen=True)
class Extent:
    """Sizes of the whole geometry: points, cells, corners per cell; `cell_type` None means triangles of a surface."""

    points: int
    cells: int
    corners: int
    cell_type: int | None


@dataclass(frozen=True)
class FileLayout:
    """Byte offsets in the file; a dataset without bytes is at 0.

    `offsets` and `types` are those of the cells; the latter is 0 for a surface. `fields` are by field name, each of
    `capacity` consecutive steps. `times[k]` is that of the k+1 time values that are
    valid once step k is committed. `link` is that of the six digits of the number of committed steps.
    """

    points: int
    connectivity: int
    offsets: int
    types: int
    fields: Mapping[str, int]
    times: tuple[int, ...]
    link: int

    @staticmethod
    def digits(steps: int) -> npt.NDArray[np.uint8]:
        """Return the six bytes that commit `steps` steps."""
        return np.frombuffer(f"{steps:06d}".encode(), np.uint8)


def create_layout(
    path: Path,
    extent: Extent,
    fields: Mapping[str, int],
    *,
    on: Literal["cells", "points"],
    capacity: int,
    dtype: np.dtype[Any],
    attributes: Mapping[str, Mapping[str, Any]],
) -> FileLayout:
    """Create the file `path` without committed steps and return its layout.

    Args:
        path: name of the file; an existing one is overwritten.
        extent: sizes of the geometry, over all ranks.
        fields: number of components of each field.
        on: whether the rows of a field are cells or points.
        capacity: largest number of steps.
        dtype: type of the fields.
        attributes: attributes of the dataset of a field, such as its `Units`.

    Raises:
        OSError: the file cannot be created.
        FormatError: the HDF5 library wrote the file in a way that prevents commits in place.
    """
    import h5py

    rows = extent.cells if on == "cells" else extent.points
    # The earliest format is readable by old readers and has no checksum of the link that is rewritten.
    with new_hdf5(path, libver="earliest") as file:
        file[_LINK] = h5py.SoftLink(_STEPS_GROUP.format(0))
        root = file.create_group("VTKHDF")
        root.attrs["Version"] = np.array([2, 2], np.int64)
        kind = b"PolyData" if extent.cell_type is None else b"UnstructuredGrid"
        root.attrs.create("Type", kind, dtype=h5py.string_dtype("ascii", len(kind)))
        points = reserve(root, "Points", (extent.points, 3), np.dtype("<f8"))
        root["NumberOfPoints"] = np.array([extent.points], np.int64)
        connectivity, offsets, types = _create_cells(root, extent)
        data_name = "CellData" if on == "cells" else "PointData"
        group = root.create_group(data_name)
        field_offsets = {}
        for name, components in fields.items():
            shape = (capacity * rows, components) if components > 1 else (capacity * rows,)
            field_offsets[name] = reserve(group, name, shape, dtype)
            group[name].attrs.update(attributes.get(name, {}))
        times = _create_steps(file, extent, fields, data_name, rows=rows, capacity=capacity)
        root["Steps"] = h5py.SoftLink(_LINK)
    return FileLayout(points, connectivity, offsets, types, field_offsets, times, _find_link(path))


def _create_cells(root: h5py.Group, extent: Extent) -> tuple[int, int, int]:
    """Reserve the cells, which the ranks write; return the positions of connectivity, offsets and types."""
    connectivity = offsets = types = 0
    for name in ("",) if extent.cell_type is not None else _SURFACE_PARTS:
        has_cells = name in ("", "Polygons")
        cells = extent.cells if has_cells else 0
        group = root.create_group(name) if name else root
        group["NumberOfCells"] = np.array([cells], np.int64)
        group["NumberOfConnectivityIds"] = np.array([cells * extent.corners], np.int64)
        if not has_cells:
            group["Offsets"] = np.zeros(1, np.int64)
            reserve(group, "Connectivity", (0,), np.dtype("<i8"))
            continue
        offsets = reserve(group, "Offsets", (cells + 1,), np.dtype("<i8"))
        connectivity = reserve(group, "Connectivity", (cells * extent.corners,), np.dtype("<i8"))
    if extent.cell_type is not None:
        types = reserve(root, "Types", (extent.cells,), np.dtype(np.uint8))
    return connectivity, offsets, types


def _create_steps(
    file: h5py.File, extent: Extent, fields: Mapping[str, int], data_name: str, *, rows: int, capacity: int
) -> tuple[int, ...]:
    zeros = np.zeros((capacity, 1 if extent.cell_type is not None else len(_SURFACE_PARTS)), np.int64)
    # The geometry is fixed: every step refers to its only part.
    shared: dict[str, Any] = {
        "PartOffsets": np.zeros(capacity, np.int64),
        "NumberOfParts": np.ones(capacity, np.int64),
        "PointOffsets": np.zeros(capacity, np.int64),
        "CellOffsets": zeros,
        "ConnectivityIdOffsets": zeros,
    }
    committed = file.create_group("committed")
    times = []
    for steps in range(1, capacity + 1):
        group = file.create_group(_STEPS_GROUP.format(steps))
        group.attrs["NSteps"] = np.int64(steps)
        # VTK ignores NSteps when it reads Values: each number of steps needs a dataset of that length.
        times.append(reserve(group, "Values", (steps,), np.dtype("<f8")))
        if steps == 1:
            for name, values in shared.items():
                group[name] = values
            offsets = group.create_group(data_name + "Offsets")
            for name in fields:
                offsets[name] = np.arange(capacity, dtype=np.int64) * rows
            continue
        first = committed[f"{1:06d}"]
        for name in (*shared, data_name + "Offsets"):
            group[name] = first[name]
    return tuple(times)


def reserve(group: h5py.Group, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Create and allocate a contiguous dataset without writing it; return its offset in the file, 0 if it is empty."""
    import h5py

    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_layout(h5py.h5d.CONTIGUOUS)
    properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    space = h5py.h5s.create_simple(shape)
    dataset = h5py.h5d.create(group.id, name.encode(), h5py.h5t.py_create(dtype), space, properties)
    return int(dataset.get_offset() or 0)


def _find_link(path: Path) -> int:
    """Return the offset of the digits of the soft link, after a test that writing there commits a step."""
    import h5py

    target = _STEPS_GROUP.format(0).encode()
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    if head.count(target) != 1:
        raise FormatError(path, _LINK, f"the HDF5 library stored it {head.count(target)} times; expected once")
    position = head.index(target) + len(target) - 6
    for steps in (1, 0):
        with path.open("rb+") as stream:
            stream.seek(position)
            stream.write(FileLayout.digits(steps).tobytes())
        with h5py.File(path, "r", locking=False) as file:
            read_steps = (
                int(file["VTKHDF/Steps"].attrs["NSteps"]) if steps else int(file.get(_LINK, getlink=True).path[-6:])
            )
        if read_steps != steps:
            raise FormatError(
                path, f"byte {position}", f"{steps} steps written, but {read_steps} read by this HDF5 library"
            )
    return position
