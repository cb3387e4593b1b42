# SPDX-License-Identifier: BSD-3-Clause
"""Rows and arrays of an open checkpoint file, with verification; `checkpoint.py` describes the layout."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from seiche.errors import FormatError
from seiche.io.checkpoint_format import CheckpointMetadata, Chunk, RowSetLayout
from seiche.io.state import RowSet


class RowSelection(Enum):
    """Alternative to a list of keys: all rows, or an equal share for each rank, in the order of their keys."""

    ALL = "all rows"
    SHARE = "a share of the rows"


ALL, SHARE = RowSelection.ALL, RowSelection.SHARE
#: Maximum bytes of one read call; the limit of Linux is 2**31 - 4096.
_MAX_READ = 1 << 30
_DAMAGED = "damaged (checksum does not match)"
Positions = npt.NDArray[np.int64]
Keys = Positions | RowSelection
Item = TypeVar("Item")
Result = TypeVar("Result")
#: Largest range of keys in a chunk for which a table is faster than a search.
_TABLE_SPAN = 1 << 22


def read_replicated_arrays(
    path: Path, file: BufferedReader, metadata: CheckpointMetadata
) -> dict[str, npt.NDArray[Any]]:
    """Return the replicated arrays; FormatError for a damaged one."""
    arrays = {}
    for name, layout in metadata.replicated.items():
        arrays[name] = np.empty(layout.shape, layout.dtype)
        if not _read_into(arrays[name], file, layout.offset, metadata.checksums[name]):
            raise FormatError(path, f"array {name!r}", _DAMAGED)
    return {name: _native(array) for name, array in arrays.items()}


def keys_of(selection: Keys, total: int, rank: int, size: int) -> Keys:
    """Return the keys of the share of a rank; other selections are returned as they are."""
    if selection is not SHARE:
        return selection
    return np.arange(total * rank // size, total * (rank + 1) // size)


def read_rows(path: Path, file: BufferedReader, layout: RowSetLayout, keys: Keys, threads: int = 1) -> RowSet:
    """Return the rows `keys` of one row set, in that order; only chunks that may contain them are read.

    Each of the `threads` reads and verifies one chunk at a time.

    Raises:
        FormatError: the file is damaged where it is read, or a row is not stored.
        ValueError: a row is requested twice.
    """
    order: npt.NDArray[np.int64] | None = None
    if isinstance(keys, RowSelection):
        keys = requested = np.arange(layout.total)
    else:
        keys = requested = np.asarray(keys, np.int64)
        if np.any(keys[1:] < keys[:-1]):
            order = np.argsort(keys, kind="stable")
            requested = keys[order]
        _check_keys(path, layout, requested)
    # `read_metadata` has compared the declared sizes with the length of the file: these arrays are not larger.
    arrays = {item.name: np.zeros((len(keys), *item.shape), item.dtype) for item in layout.arrays}
    bounds = [np.searchsorted(requested, [chunk.first_key, chunk.last_key + 1]).tolist() for chunk in layout.chunks]
    required = [(chunk, begin, end) for chunk, (begin, end) in zip(layout.chunks, bounds, strict=True) if begin < end]

    def read(entry: tuple[Chunk, int, int]) -> slice | Positions:
        chunk, begin, end = entry
        stored = read_chunk(path, file, layout, chunk, 0).astype(np.int64)
        positions, matches = _find_keys(stored, requested, begin, end)
        rows = positions if order is None else order[positions]
        _read_values(path, file, layout, chunk, arrays, rows=rows, matches=matches)
        return positions

    complete = np.zeros(len(keys), bool)
    for (chunk, begin, end), positions in zip(required, _mapped(read, required, threads), strict=True):
        expected = np.count_nonzero(complete[begin:end])
        expected += end - begin if isinstance(positions, slice) else len(positions)
        complete[positions] = True
        if np.count_nonzero(complete[begin:end]) != expected:
            raise FormatError(path, _location(layout, chunk), "a row is stored twice")
    if not complete.all():
        raise FormatError(path, f"{layout.name} {requested[np.argmin(complete)]}", "not stored")
    return RowSet(keys, layout.total, {name: _native(array) for name, array in arrays.items()})


def _mapped(work: Callable[[Item], Result], items: Sequence[Item], threads: int) -> Iterator[Result]:
    """Yield the results of `work` in the order of `items`; the first error cancels the remaining ones."""
    if threads == 1 or len(items) < 2:
        yield from map(work, items)
        return
    pool = ThreadPoolExecutor(min(threads, len(items)))
    try:
        yield from pool.map(work, items)
    finally:
        pool.shutdown(cancel_futures=True)


def _find_keys(
    stored: Positions, requested: Positions, begin: int, end: int
) -> tuple[slice | Positions, slice | Positions]:
    """Return the positions of stored keys in the sorted keys `requested[begin:end]`, and which stored keys these are.

    Slices state that both sequences are equal.
    """
    window = requested[begin:end]
    if len(stored) == len(window) and np.array_equal(stored, window):
        return slice(begin, end), slice(None)
    first, span = window[0], int(window[-1] - window[0]) + 1
    if span == len(window):
        positions = stored - first
        matches = np.flatnonzero((positions >= 0) & (positions < span))
        return positions[matches] + begin, matches
    inside = np.flatnonzero((stored >= first) & (stored <= window[-1]))
    if span <= _TABLE_SPAN:
        table = np.full(span, -1, np.int32)
        table[window - first] = np.arange(len(window), dtype=np.int32)
        positions = table[stored[inside] - first].astype(np.int64)
        is_requested = positions >= 0
    else:
        positions = np.searchsorted(window, stored[inside])
        is_requested = window[positions] == stored[inside]
    return positions[is_requested] + begin, inside[is_requested]


def _read_values(
    path: Path,
    file: BufferedReader,
    layout: RowSetLayout,
    chunk: Chunk,
    arrays: dict[str, npt.NDArray[Any]],
    *,
    rows: slice | Positions,
    matches: slice | Positions,
) -> None:
    """Read the values of a chunk into `rows` of the arrays, from its rows `matches`."""
    if not isinstance(rows, slice) and not len(rows):
        return
    for array_index, item in enumerate(layout.arrays, start=1):
        values = arrays[item.name]
        if not isinstance(rows, slice) and chunk.rows == 1:  # it may be large: read it without a copy
            rows = slice(int(rows[0]), int(rows[0]) + 1)
        if isinstance(rows, slice):
            read_chunk(path, file, layout, chunk, array_index, target=values[rows])
        else:
            values[rows] = read_chunk(path, file, layout, chunk, array_index)[matches]


def read_chunk(
    path: Path,
    file: BufferedReader,
    layout: RowSetLayout,
    chunk: Chunk,
    array_index: int,
    *,
    target: npt.NDArray[Any] | None = None,
) -> npt.NDArray[Any]:
    """Return the keys (`array_index` 0) or the values of an array in `chunk` after verifying them."""
    array = (layout.keys, *layout.arrays)[array_index]
    values = np.empty((chunk.rows, *array.shape), array.dtype) if target is None else target
    if not _read_into(values, file, array.offset + chunk.first * array.row_bytes, chunk.checksums[array_index]):
        raise FormatError(path, f"array {array.name!r} of the {_location(layout, chunk)}", _DAMAGED)
    return values


def _check_keys(path: Path, layout: RowSetLayout, keys: npt.NDArray[np.int64]) -> None:
    if np.any(keys[1:] == keys[:-1]):
        raise ValueError(f"one of the {layout.name} is requested twice")
    if len(keys) and (keys[0] < 0 or keys[-1] >= layout.total):
        missing_key = keys[-1] if keys[-1] >= layout.total else keys[0]
        raise FormatError(
            path, f"{layout.name} {missing_key}", f"not in this checkpoint of {layout.total} {layout.name}"
        )


def _read_into(values: npt.NDArray[Any], file: BufferedReader, offset: int, checksum: int) -> bool:
    """Fill `values` (C order) from byte `offset`; return whether they are complete and have this checksum.

    The position of `file` is neither used nor changed, so that several threads can read.
    """
    data = values.reshape(-1).view(np.uint8).data
    done = 0
    while done < len(data):
        count = os.preadv(file.fileno(), [data[done : done + _MAX_READ]], offset + done)
        if not count:
            return False
        done += count
    return zlib.crc32(data) == checksum


def _native(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _location(layout: RowSetLayout, chunk: Chunk) -> str:
    return f"{layout.name}, rows {chunk.first}..{chunk.first + chunk.rows - 1}"
