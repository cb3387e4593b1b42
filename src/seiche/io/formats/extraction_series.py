# SPDX-License-Identifier: BSD-3-Clause
"""HemeLB extraction files written by all ranks in parallel, each a contiguous part of every record."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.io.background import Job, write_now
from seiche.io.files import part_path
from seiche.io.formats.extraction import ExtractionField, ExtractionHeader, encode_offsets
from seiche.io.growing_file import GrowingFile
from seiche.io.parallel import ParallelFile, raise_on_all_ranks, rows_before


def offsets_path(path: Path) -> Path:
    """Return the name of the offset file of the extraction file `path`."""
    return path.with_suffix(".off")


class ExtractionSeries(GrowingFile):
    """An `.xtr` file of version 5, with its `.off`, of fields at fixed sites.

    Both have the suffix ".part" until the first record is complete and on the disk. The step number of a record is
    written last, so an unfinished record of a killed run has step 0. The constructor, `write` and `reopen` are
    collective over `world`.

    Args:
        path: name of the file; the offset file has the suffix `.off` instead.
        world: the ranks that write.
        spacing: distance between sites in metres.
        origin: position of the site (0, 0, 0) in metres.
        coords: this rank's sites (n, 3).
        fields: the fields, in order.

    Raises:
        OSError: the files cannot be written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        world: World,
        *,
        spacing: float,
        origin: tuple[float, float, float],
        coords: npt.NDArray[np.integer[Any]],
        fields: Sequence[ExtractionField],
    ) -> None:
        """Create the files under their temporary names and write the headers."""
        super().__init__(path, world)
        counts = world.allgather(len(coords))
        self._first, total = rows_before(world, len(coords))
        self._header = ExtractionHeader(spacing, origin, total, tuple(fields))
        head = self._header.encode()
        self._start = len(head)
        size = self._header.site_type.itemsize
        self._sites = np.zeros(len(coords), self._header.site_type)
        self._sites["place"] = coords
        # The step number at the start of a record is in the part of rank 0.
        ends = self._start + 8 + size * np.cumsum(counts)
        with raise_on_all_ranks(world):
            if world.rank == 0:
                part_path(self.path).write_bytes(head)
                part_path(offsets_path(self.path)).write_bytes(encode_offsets([self._start, *ends.tolist()]))
        self._file = ParallelFile(part_path(self.path), world, self.path)

    def write(self, step: int, values: Mapping[str, npt.ArrayLike]) -> None:
        """Add the record of `step`; `values` are this rank's rows (n,) or (n, components) of every field.

        Raises ValueError for wrong fields or shapes, OSError if writing fails; earlier records stay valid.
        """
        write_now(self.record_job(step, lambda: values), self._world)

    def record_job(self, step: int, values: Callable[[], Mapping[str, npt.ArrayLike]]) -> Job:
        """Return the job that adds the record of `step`, for a `BackgroundWriter`; its thread evaluates the `values`.

        All jobs must be done, in the order of their creation.
        """
        return self._job(lambda number: self._store(number, values()), lambda number: self._commit_record(number, step))

    @property
    def associated_paths(self) -> Sequence[Path]:
        """Return the name of the offset file."""
        return (offsets_path(self.path),)

    @property
    def size_after_first_record(self) -> int:
        """Return the size of the header and the first record, in bytes.

        The first record may be committed after the second one has been written, so the size of the file is larger.
        """
        return self._offset_of(1)

    def _store(self, number: int, values: Mapping[str, npt.ArrayLike]) -> None:
        """Write this rank's part of record `number` and sync it to the disk, without committing the record."""
        self._fill(values)
        self._file.write(self._offset_of(number) + 8 + self._first * self._sites.itemsize, self._sites)
        self._file.sync()

    def _commit_record(self, number: int, step: int) -> None:
        """Write the step of record `number` (rank 0, after all ranks have stored it)."""
        self._file.write(self._offset_of(number), np.array([step], ">u8"))
        self._file.sync()

    def _offset_of(self, number: int) -> int:
        return self._start + number * self._header.record_bytes

    def _fill(self, values: Mapping[str, npt.ArrayLike]) -> None:
        names = [field.name for field in self._header.fields]
        if set(values) != set(names):
            raise ValueError(f"fields {sorted(values)} differ from the declared fields {sorted(names)}")
        for k, field in enumerate(self._header.fields):
            array = np.asarray(values[field.name])
            shape = (len(self._sites), field.components)
            if array.shape != shape and not (field.components == 1 and array.shape == shape[:1]):
                raise ValueError(f"field {field.name!r}: shape {array.shape}; expected {shape}")
            # The difference is computed in double precision and stored in single precision.
            offsets = np.asarray(field.offsets) if field.offsets else 0
            self._sites[f"f{k}"] = array.reshape(shape) - offsets
