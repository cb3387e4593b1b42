# SPDX-License-Identifier: BSD-3-Clause
"""Time series of fields in one VTKHDF file for ParaView, written by all ranks in parallel."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.errors import FormatError
from seiche.io.background import Job, write_now
from seiche.io.cells import CellGeometry, MeshRows, Triangles, VoxelCells
from seiche.io.compression import Compression
from seiche.io.deflate import StoredArray, compress, expand
from seiche.io.files import part_path, publish
from seiche.io.growing_file import GrowingFile
from seiche.io.parallel import ParallelFile, raise_on_all_ranks, rows_before
from seiche.io.vtkhdf import CAPACITY_LIMIT, Extent, FileLayout, create_layout
from seiche.io.vtkhdf_compressed import arrays_of, compressed_structure

__all__ = ["FieldSeries", "Triangles", "VoxelCells"]

#: Points or cells that are written at once.
_BLOCK = 1 << 18


class FieldSeries(GrowingFile):
    """A VTKHDF time series of fields on fixed cells.

    The file has the name `path` + ".part" until its first step is complete and on the disk; only then does it replace a
    file called `path`. Later steps become valid once they are on the disk. A run killed at any moment therefore leaves
    complete steps or nothing. The constructor, `write` and `reopen` are collective over `world`.

    ```python
    cells = VoxelCells(sites.shape, sites.coords, sites.spacing)
    with FieldSeries("tube.vtkhdf", world, cells, {"velocity": 3}, capacity=100) as series:
        series.write(0.5, {"velocity": velocity})
    ```

    Args:
        path: name of the file, usually ending in `.vtkhdf`.
        world: the ranks that write, each its owned rows.
        cells: this rank's cells, `VoxelCells` or `Triangles`.
        fields: number of components of each field, by name.
        capacity: largest number of steps; disk space is allocated only when a step is written.
        dtype: type of the fields in the file.
        on: whether the rows of the fields belong to cells or, for a surface, to its vertices.
        units: unit of a field by name, stored as an attribute of its dataset.
        compression: bounds within which fields are rounded when they are written; `compress` then compresses the file.

    Raises:
        ValueError: an impossible capacity, number of components or field name.
        OSError: the file cannot be written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        world: World,
        cells: CellGeometry,
        fields: Mapping[str, int],
        capacity: int,
        *,
        dtype: npt.DTypeLike = "float32",
        on: Literal["cells", "points"] = "cells",
        units: Mapping[str, str] | None = None,
        compression: Compression | None = None,
    ) -> None:
        """Create the file under its temporary name and write the geometry."""
        _check_fields(fields, capacity)
        super().__init__(path, world)
        self._fields, self._capacity = dict(fields), capacity
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self._rows = cells.rows(on)
        self._first, self._all_rows = rows_before(world, self._rows)
        self._times = np.zeros(capacity, "<f8")
        mesh = cells.mesh(world)
        first_cell, all_cells = rows_before(world, mesh.cells)
        _, all_points = rows_before(world, mesh.points)
        extent = Extent(all_points, all_cells, mesh.corners, mesh.cell_type)
        self._compression, self._is_compressed = compression, False
        attributes: dict[str, dict[str, Any]] = {name: {"Units": unit} for name, unit in (units or {}).items()}
        if compression is not None:
            attributes = {name: {**attributes.get(name, {}), **compression.attributes(name)} for name in fields}
        self._create = partial(
            create_layout,
            extent=extent,
            fields=self._fields,
            on=on,
            capacity=capacity,
            dtype=self.dtype,
            attributes=attributes,
        )
        self._layout, self._file = self._created(part_path(self.path))
        self._write_mesh(mesh, first_cell, is_last=first_cell + mesh.cells == all_cells)

    def _created(self, path: Path) -> tuple[FileLayout, ParallelFile]:
        """Create the file `path` and open it on all ranks (collective)."""
        layout: FileLayout | None = None
        with raise_on_all_ranks(self._world):
            if self._world.rank == 0:
                layout = self._create(path)
        return self._world.bcast(layout), ParallelFile(path, self._world, self.path)

    def _write_mesh(self, mesh: MeshRows, first_cell: int, *, is_last: bool) -> None:
        """Write the geometry of this rank in blocks; the offset after the last cell belongs to the last cells."""
        file, layout, corners = self._file, self._layout, mesh.corners
        with raise_on_all_ranks(self._world):
            for begin in range(0, mesh.points, _BLOCK):
                points = mesh.points_of(slice(begin, begin + _BLOCK))
                file.write(layout.points + 24 * (mesh.first_point + begin), points.astype("<f8"))
            for begin in range(0, mesh.cells, _BLOCK):
                connectivity = mesh.connectivity_of(slice(begin, begin + _BLOCK))
                first = first_cell + begin
                file.write(layout.connectivity + 8 * corners * first, connectivity.astype("<i8"))
                offsets = corners * np.arange(first, first + len(connectivity), dtype="<i8")
                file.write(layout.offsets + 8 * first, offsets)
                if mesh.cell_type is not None:
                    file.write(layout.types + first, np.full(len(connectivity), mesh.cell_type, np.uint8))
            if is_last:
                end = first_cell + mesh.cells
                file.write(layout.offsets + 8 * end, np.array([corners * end], "<i8"))

    def write(self, time: float, values: Mapping[str, npt.ArrayLike]) -> None:
        """Add one step at `time`; `values` are this rank's rows of every field, (n,) or (n, components).

        Raises FormatError if the file is full, ValueError for wrong fields or shapes, OSError if writing fails.
        """
        write_now(self.step(time, lambda: values), self._world)

    def step(self, time: float, values: Callable[[], Mapping[str, npt.ArrayLike]]) -> Job:
        """Return the job that adds one step at `time`, for a `BackgroundWriter`; its thread evaluates the `values`.

        All jobs must be executed in the order of their creation. Raises FormatError if the file is full.
        """
        if self._planned == self._capacity:
            reason = f"the file was created for {self._capacity} states; use a larger capacity"
            raise FormatError(self.path, f"step {self._planned + 1}", reason)
        self._times[self._planned] = time
        return self._job(lambda number: self._store(number, values()), self._commit_record)

    def _store(self, number: int, values: Mapping[str, npt.ArrayLike]) -> None:
        """Write this rank's rows of step `number` and sync them to the disk, without committing the step."""
        for name, array in self._validated(values).items():
            row_bytes = self._fields[name] * self.dtype.itemsize
            offset = self._layout.fields[name] + row_bytes * (number * self._all_rows + self._first)
            if self._compression is None or name not in self._compression.bounds:
                self._file.write(offset, array)
                continue
            for begin in range(0, self._rows, _BLOCK):
                block = self._compression.rounded(name, array[begin : begin + _BLOCK])
                self._file.write(offset + begin * row_bytes, block)
        self._file.sync()

    def _commit_record(self, number: int) -> None:
        """Make step `number` valid (rank 0, after all ranks have stored it)."""
        self._file.write(self._layout.times[number], self._times[: number + 1])
        self._file.sync()
        # All data of the step are on the disk; these six bytes commit it.
        self._file.write(self._layout.link, FileLayout.digits(number + 1))
        self._file.sync()

    def compress(self, threads: int = 1) -> None:
        """Close the file and, with a `compression`, replace it by a compressed one (collective).

        The file is replaced at the end, atomically. `threads` are those of this rank.

        Raises:
            OSError, FormatError: on every rank, if any cannot read or write; the file remains as it was.
        """
        self.close()
        if self._compression is None or self._is_compressed or not self.steps:
            return
        path = self.path = self._world.bcast(self.path)
        with self._replacing() as temporary:
            structure = partial(compressed_structure, steps=self.steps, rows=self._all_rows)
            compress(path, temporary, self._world, threads, structure)
        self._is_compressed = True

    def reopen(self) -> None:
        """Open the closed file for further states (collective); a compressed one is expanded.

        OSError or FormatError on every rank if any cannot read or write.
        """
        if self._is_compressed:
            with self._replacing() as temporary:
                self._expand(temporary)
            self._is_compressed = False
        super().reopen()

    def _expand(self, temporary: Path) -> None:
        self._layout, self._file = self._created(temporary)
        arrays: list[StoredArray] | None = None
        with raise_on_all_ranks(self._world):
            if self._world.rank == 0:
                arrays = arrays_of(temporary, self.steps * self._all_rows)
        with self._file:
            expand(self.path, temporary, self._world, self._world.bcast(arrays))
            with raise_on_all_ranks(self._world):
                if self._world.rank == 0:
                    self._commit_record(self.steps - 1)

    @contextmanager
    def _replacing(self) -> Iterator[Path]:
        """Yield the temporary name of a file that replaces this one if the block succeeds on all ranks (collective)."""
        temporary = part_path(self.path)
        try:
            yield temporary
            with raise_on_all_ranks(self._world):
                if self._world.rank == 0:
                    self.path = publish(temporary, self.path)
        except (OSError, FormatError):
            if self._world.rank == 0:
                with suppress(OSError):
                    temporary.unlink()
            raise
        self.path = self._world.bcast(self.path)

    def _validated(self, values: Mapping[str, npt.ArrayLike]) -> dict[str, npt.NDArray[Any]]:
        if set(values) != set(self._fields):
            raise ValueError(f"fields {sorted(values)} differ from the declared fields {sorted(self._fields)}")
        arrays = {}
        for name, components in self._fields.items():
            array = np.asarray(values[name])
            shapes = [(self._rows, components)] + ([(self._rows,)] if components == 1 else [])
            if array.shape not in shapes:
                raise ValueError(f"field {name!r}: shape {array.shape}; expected {shapes[-1]}")
            arrays[name] = array.astype(self.dtype, copy=False)
        return arrays


def _check_fields(fields: Mapping[str, int], capacity: int) -> None:
    if not 1 <= capacity <= CAPACITY_LIMIT:
        raise ValueError(f"capacity = {capacity} steps: expected 1 to {CAPACITY_LIMIT}")
    for name, components in fields.items():
        if not name or "/" in name or "." in name or components < 1:
            raise ValueError(
                f"field {name!r} with {components} components: expected a name without / or . and at least one "
                "component"
            )
