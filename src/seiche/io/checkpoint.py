# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints: states that any number of ranks can continue with bitwise identical results.

Layout of the file (little-endian; reasons in docs/decisions/0011-checkpoint-format.md):

    0                64 bytes: magic, version, CRC-32 of the footer, its offset and length, zeros, CRC-32 of the above.
    64               for each row set: the keys of all rows in the order of writing, uint32, or int64 for more than 2^32
                     rows. The arrays follow one after the other, with rows in the same order and without gaps.
    ...              replicated arrays, one after the other.
    footer offset    JSON: step, attributes, the row sets with their arrays, the replicated arrays with their CRC-32.
                     Each chunk of rows has one CRC-32 for the keys and one for every array.

Checksums cover every byte, and every size is checked against the length of the file before memory is allocated.
Version 2 has int64 keys. Version 1 has, in addition, one row set and no replicated arrays. Both can still be read.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.io.background import Job, write_now
from seiche.io.checkpoint_format import (
    MAGIC,
    PREAMBLE,
    VERSION,
    ArrayLayout,
    CheckpointMetadata,
    RowSetLayout,
    assign_offsets,
    check_array,
    footer_of,
    keys_layout,
    read_metadata,
)
from seiche.io.checkpoint_rows import ALL as ALL
from seiche.io.checkpoint_rows import SHARE as SHARE
from seiche.io.checkpoint_rows import Keys, keys_of, read_replicated_arrays, read_rows
from seiche.io.files import part_path, publish
from seiche.io.parallel import ParallelFile, raise_on_all_ranks
from seiche.io.state import Attribute, Rows, RowSet, State


def write_checkpoint(
    path: str | os.PathLike[str], world: World, state: State, *, attributes: Mapping[str, Attribute]
) -> None:
    """Write a state (collective); an existing file is replaced only by a complete and synced one.

    Args:
        path: name of the checkpoint.
        world: the ranks that write.
        state: real numbers or booleans; every rank has its owned rows, all else is the same on every rank.
        attributes: further attributes (fingerprints of geometry and model) in addition to those of `state`.

    Raises:
        ValueError: rows that do not match their keys or total, ranks with different arrays, a type that cannot be
            stored, or an attribute that `state` also has.
        OSError: writing failed; an earlier checkpoint is unchanged.
    """
    write_now(create_checkpoint_job(path, world, state, attributes=attributes), world)


def create_checkpoint_job(
    path: str | os.PathLike[str],
    world: World,
    state: State,
    *,
    attributes: Mapping[str, Attribute],
    on_finish: Callable[[bool], None] = lambda complete: None,
) -> Job:
    """Return the job that writes a checkpoint, for a `BackgroundWriter` (collective).

    Arguments and errors are those of `write_checkpoint`. The job's thread evaluates the arrays of `state`. At the end
    `on_finish` is called; its argument states whether the checkpoint is complete. Only one job per path may be active.
    """
    with raise_on_all_ranks(world):
        merged = _attributes_of(state, attributes)
        sets = [_set_layout(name, rows) for name, rows in state.rows.items()]
        replicated = [_layout(name, values, values.shape, 1) for name, values in state.replicated.items()]
        counts = [len(rows.keys) for rows in state.rows.values()]
    declared = world.allgather((counts, sets, replicated))
    with raise_on_all_ranks(world):
        if any(entry[1:] != declared[0][1:] for entry in declared):
            raise ValueError("the arrays differ between ranks")
        for layout, rows in zip(sets, zip(*(entry[0] for entry in declared), strict=True), strict=True):
            if sum(rows) != layout.total:
                raise ValueError(f"the ranks have {sum(rows)} {layout.name} together; expected {layout.total}")
        if world.rank == 0:
            part_path(Path(path)).write_bytes(b"")
    file = ParallelFile(part_path(Path(path)), world, Path(path))
    first = [sum(entry[0][k] for entry in declared[: world.rank]) for k in range(len(sets))]
    layout_of_file = assign_offsets(sets, replicated)
    return _CheckpointJob(Path(path), world, file, int(state.step), merged, *layout_of_file, first, state, on_finish)


@dataclass(eq=False)
class _CheckpointJob(Job):
    """Writes a checkpoint; `first` are the rows of lower ranks in each of the row sets."""

    path: Path
    world: World
    file: ParallelFile
    step: int
    attributes: dict[str, Attribute]
    sets: tuple[RowSetLayout, ...]
    replicated: tuple[ArrayLayout, ...]
    end: int
    first: list[int]
    state: State | None
    on_finish: Callable[[bool], None]

    def store(self) -> tuple[list[list[tuple[int, ...]]], list[int]]:
        """Return the chunks of each row set and, on rank 0, which writes them, the checksums of replicated arrays."""
        assert self.state is not None
        layouts, rows = zip(self.sets, self.first, strict=True), self.state.rows
        tables = [_write_rows(self.file, layout, rows[layout.name], first) for layout, first in layouts]
        arrays = self.state.replicated
        stored_arrays = self.replicated if self.world.rank == 0 else ()
        checksums = [_write(self.file, layout, layout.offset, arrays[layout.name]) for layout in stored_arrays]
        self.file.sync()
        self.state = None
        return tables, checksums

    def commit(self, stored: list[tuple[list[list[tuple[int, ...]]], list[int]]]) -> None:
        by_set = zip(*(tables for tables, _ in stored), strict=True)
        sets = list(zip(self.sets, ([*chain.from_iterable(tables)] for tables in by_set), strict=True))
        footer = footer_of(self.step, self.attributes, sets, list(zip(self.replicated, stored[0][1], strict=True)))
        self.file.write(self.end, np.frombuffer(footer, np.uint8))
        head = PREAMBLE.pack(MAGIC, VERSION, zlib.crc32(footer), self.end, len(footer))
        head += struct.pack("<I", zlib.crc32(head))
        self.file.write(0, np.frombuffer(head, np.uint8))
        self.file.sync()
        publish(part_path(self.path), self.path)

    def finish(self, complete: bool) -> None:
        self.file.close()
        if not complete and self.world.rank == 0:
            with suppress(OSError):
                part_path(self.path).unlink()
        self.on_finish(complete)


def inspect_checkpoint(path: str | os.PathLike[str]) -> CheckpointMetadata:
    """Return the verified header of a checkpoint without reading its arrays.

    Raises FormatError for a file that is not a checkpoint, damaged, truncated, or of another version.
    """
    with open(path, "rb") as file:
        return read_metadata(Path(path), file)


def read_checkpoint(path: str | os.PathLike[str], world: World, keys: Mapping[str, Keys]) -> State:
    """Return the state in a checkpoint with the rows `keys` of this rank (collective).

    Only chunks with a requested row are read, one at a time by each of `world.threads()` threads. If the ranks request
    all rows, every byte is verified.

    Args:
        path: name of the checkpoint.
        world: the ranks that read.
        keys: for each row set by name, the keys of the requested rows in the order of the result, or `ALL` rows or the
            rank's `SHARE` of them in the order of their keys. Row sets without keys or not in the file are left out.
            The row set of a file of version 1 has the first of these names.

    Raises:
        FormatError: on every rank, if the file is damaged where any rank reads it, or lacks a requested row.
        OSError: the file cannot be read.
        ValueError: a row is requested twice.
    """
    source = Path(path)
    with raise_on_all_ranks(world), source.open("rb") as file:
        metadata = read_metadata(source, file)
        stored = metadata.rows
        if metadata.version == 1:
            stored = dict(zip(keys, stored.values(), strict=False))
        names, threads = [name for name in keys if name in stored], world.threads()
        own = {name: keys_of(keys[name], stored[name].total, world.rank, world.size) for name in names}
        rows = {name: read_rows(source, file, stored[name], own[name], threads) for name in names}
        state = State(metadata.step, rows, read_replicated_arrays(source, file, metadata), metadata.attributes)
    return state


def _attributes_of(state: State, attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    for name, value in [*state.attributes.items(), *attributes.items()]:
        if not isinstance(value, str | float | int):
            raise ValueError(f"attribute {name!r} is a {type(value).__name__}; expected str, float or int")
        if name in state.attributes and name in attributes:
            raise ValueError(f"attribute {name!r} is set twice")
    return {**state.attributes, **attributes}


def _set_layout(name: str, rows: RowSet) -> RowSetLayout:
    keys = rows.keys
    if len(keys) and not 0 <= keys.min() <= keys.max() < rows.total:
        raise ValueError(f"{name}: keys {keys.min()} to {keys.max()}; expected 0 to {rows.total - 1}")
    stored = {label: array for label, array in rows.arrays.items() if label not in rows.derived}
    for label, array in stored.items():
        if len(array.shape) < 1 or len(array) != len(keys):
            raise ValueError(f"array {label!r} of the {name} has shape {array.shape}; expected {len(keys)} rows")
    layouts = [_layout(label, array, array.shape[1:], rows.total) for label, array in stored.items()]
    return RowSetLayout(name, int(rows.total), tuple(layouts), keys_layout(int(rows.total)))


def _layout(name: str, array: Rows, shape: tuple[int, ...], count: int) -> ArrayLayout:
    layout = ArrayLayout(name, array.dtype.newbyteorder("<"), tuple(int(extent) for extent in shape))
    check_array(layout, count)
    return layout


def _write_rows(file: ParallelFile, layout: RowSetLayout, rows: RowSet, first: int) -> list[tuple[int, ...]]:
    """Write this rank's rows after the `first` rows of lower ranks; return the table of their chunks."""
    table, size = [], layout.chunk_rows
    for begin in range(0, len(rows.keys), size):
        keys = rows.keys[begin : begin + size]
        entry = [first + begin, len(keys), int(keys.min()), int(keys.max())]
        for item in (layout.keys, *layout.arrays):
            values = keys if item is layout.keys else rows.arrays[item.name][begin : begin + size]
            entry.append(_write(file, item, item.offset + (first + begin) * item.row_bytes, values))
        table.append(tuple(entry))
    return table


def _write(file: ParallelFile, layout: ArrayLayout, offset: int, values: npt.NDArray[Any]) -> int:
    """Write values at byte `offset` and return their checksum."""
    data = np.ascontiguousarray(values, dtype=layout.dtype)
    file.write(offset, data)
    return zlib.crc32(data.reshape(-1).view(np.uint8).data)
