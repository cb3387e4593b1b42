# SPDX-License-Identifier: BSD-3-Clause
"""Write HemeLB extraction files from all ranks at once: each its own contiguous part of every record."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.io.background import Job, write_now
from seiche.io.files import Closing, part_path, publish
from seiche.io.formats.extraction import ExtractionField, ExtractionHeader, encode_offsets
from seiche.io.parallel import ParallelFile, all_or_none, rows_before


def offsets_path(path: Path) -> Path:
    """Return the name of the offset file that goes with the extraction file `path`."""
    return path.with_suffix(".off")


class ExtractionSeries(Closing):
    """An `.xtr` file of version 5, with its `.off`, of fields at sites that never change.

    Both carry their name + ".part" until the first record is complete and on the disk. The step number of a record is
    written last: a record that a killed run left unfinished says step 0 and is told from a complete one. Making the
    series and `write` are collective over `world`, the rest is not.

    Args:
        path: name of the file; the offset file has the ending `.off` in place of its own.
        world: the ranks that write.
        spacing: distance of sites in metres.
        origin: position of the site (0, 0, 0) in metres.
        coords: this rank's sites (n, 3).
        fields: what is written, in order.

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
        """Make the files under their temporary names and write the headers."""
        self.path, self.records = Path(path), 0
        self._planned = 0
        self._world = world
        counts = world.allgather(len(coords))
        self._first, total = rows_before(world, len(coords))
        self._header = ExtractionHeader(spacing, origin, total, tuple(fields))
        head = self._header.encode()
        self._start = len(head)
        size = self._header.site_type.itemsize
        self._sites = np.zeros(len(coords), self._header.site_type)
        self._sites["place"] = coords
        # The step number that begins a record is in the part of rank 0.
        ends = self._start + 8 + size * np.cumsum(counts)
        with all_or_none(world):
            if world.rank == 0:
                part_path(self.path).write_bytes(head)
                part_path(offsets_path(self.path)).write_bytes(encode_offsets([self._start, *ends.tolist()]))
        self._file = ParallelFile(part_path(self.path), world, self.path)

    def write(self, step: int, values: Mapping[str, npt.ArrayLike]) -> None:
        """Add the record of time step `step`; `values` holds this rank's rows (n,) or (n, components) of every field.

        Raises:
            ValueError: a field is missing, unknown or of another shape.
            OSError: the disk refused; the records before stay valid.
        """
        write_now(self.record(step, lambda: values), self._world)

    def record(self, step: int, values: Callable[[], Mapping[str, npt.ArrayLike]]) -> Job:
        """Return the job that adds the record of time step `step`, for a `BackgroundWriter`.

        Its thread asks for the `values`. Jobs must be done in the order in which they were made, and all of them.
        """
        self._planned += 1
        return _Record(self, self._planned - 1, step, values)

    def store(self, number: int, values: Mapping[str, npt.ArrayLike]) -> None:
        """Write this rank's part of record `number` and force it to the disk; the record does not count yet."""
        self._fill(values)
        self._file.write(self._at(number) + 8 + self._first * self._sites.itemsize, self._sites)
        self._file.force()

    def commit(self, number: int, step: int) -> None:
        """Make record `number` count (rank 0, after all ranks have stored it)."""
        self._file.write(self._at(number), np.array([step], ">u8"))
        self._file.force()
        if number == 0:
            publish(part_path(offsets_path(self.path)), offsets_path(self.path))
            publish(part_path(self.path), self.path)

    def settle(self, number: int, complete: bool) -> None:
        """Note that record `number` counts, or that it and those after it never will: the next one takes its place."""
        if complete:
            self.records = number + 1
        else:
            self._planned = min(self._planned, number)

    def _at(self, number: int) -> int:
        return self._start + number * self._header.record_bytes

    def _fill(self, values: Mapping[str, npt.ArrayLike]) -> None:
        names = [field.name for field in self._header.fields]
        if set(values) != set(names):
            raise ValueError(f"fields {sorted(values)} given, {sorted(names)} promised")
        for k, field in enumerate(self._header.fields):
            array = np.asarray(values[field.name])
            shape = (len(self._sites), field.components)
            if array.shape != shape and not (field.components == 1 and array.shape == shape[:1]):
                raise ValueError(f"field {field.name!r}: shape {array.shape}, need {shape}")
            # The difference is taken in double precision: only what is left is stored in single.
            less = np.asarray(field.offsets) if field.offsets else 0
            self._sites[f"f{k}"] = array.reshape(shape) - less

    def reopen(self) -> None:
        """Open the file, which has been closed with a state or more in it, for further ones (collective).

        Raises:
            OSError: on every rank, if any cannot open it.
        """
        self._file = ParallelFile(self.path, self._world)

    def close(self) -> None:
        """Close the file; without a single record nothing is left behind. A second call does nothing."""
        self._file.close()
        if self.records == 0 and self._world.rank == 0:
            for path in (self.path, offsets_path(self.path)):
                with suppress(OSError):
                    part_path(path).unlink()


class _Record(Job):
    """A record of a series on its way to the disk."""

    def __init__(
        self, series: ExtractionSeries, number: int, step: int, values: Callable[[], Mapping[str, npt.ArrayLike]]
    ) -> None:
        self._series, self._number, self._step, self._values = series, number, step, values

    def store(self) -> None:
        self._series.store(self._number, self._values())

    def commit(self, stored: list[Any]) -> None:
        self._series.commit(self._number, self._step)

    def finish(self, complete: bool) -> None:
        self._series.settle(self._number, complete)
