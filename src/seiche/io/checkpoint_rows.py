# SPDX-License-Identifier: BSD-3-Clause
"""Rows and arrays of an open checkpoint file, with verification; `checkpoint.py` describes the layout."""

from __future__ import annotations

import zlib
from enum import Enum
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import FormatError
from seiche.io.checkpoint_format import CheckpointMetadata, Chunk, RowSetLayout
from seiche.io.state import RowSet


class RowSelection(Enum):
    """Alternative to a list of keys: all rows, in the order of their keys."""

    ALL = "all rows"


ALL = RowSelection.ALL
_DAMAGED = "damaged (checksum does not match)"
Keys = npt.NDArray[np.int64] | RowSelection


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


def read_rows(path: Path, file: BufferedReader, layout: RowSetLayout, keys: Keys) -> RowSet:
    """Return the rows `keys` of one row set, in that order; only chunks that may contain them are read.

    Raises:
        FormatError: the file is damaged where it is read, or a row is not stored.
        ValueError: a row is requested twice.
    """
    if isinstance(keys, RowSelection):
        keys = order = requested = np.arange(layout.total)
    else:
        keys = np.asarray(keys, np.int64)
        order = np.argsort(keys, kind="stable")
        requested = keys[order]
        _check_keys(path, layout, requested)
    # `read_metadata` has compared the declared sizes with the length of the file: these arrays are not larger.
    arrays = {item.name: np.zeros((len(keys), *item.shape), item.dtype) for item in layout.arrays}
    complete = np.zeros(len(keys), bool)
    for chunk in layout.chunks:
        begin, end = np.searchsorted(requested, [chunk.first_key, chunk.last_key + 1])
        if begin == end:
            continue
        stored = read_chunk(path, file, layout, chunk, 0)
        positions = np.minimum(np.searchsorted(requested, stored), len(requested) - 1)
        matches = np.flatnonzero(requested[positions] == stored)
        rows = order[positions[matches]]
        if complete[rows].any() or len(np.unique(rows)) != len(rows):
            raise FormatError(path, _location(layout, chunk), "a row is stored twice")
        complete[rows] = True
        for array_index, item in enumerate(layout.arrays if len(rows) else (), start=1):
            if chunk.rows == 1:  # it may be large: read it without a copy
                read_chunk(path, file, layout, chunk, array_index, target=arrays[item.name][rows[0] : rows[0] + 1])
            else:
                arrays[item.name][rows] = read_chunk(path, file, layout, chunk, array_index)[matches]
    if not complete.all():
        raise FormatError(path, f"{layout.name} {keys[~complete].min()}", "not stored")
    return RowSet(keys, layout.total, {name: _native(array) for name, array in arrays.items()})


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
    """Fill `values` (C order) from byte `offset`; return whether they are complete and have this checksum."""
    data = values.reshape(-1).view(np.uint8).data
    file.seek(offset)
    return file.readinto(data) == len(data) and zlib.crc32(data) == checksum


def _native(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _location(layout: RowSetLayout, chunk: Chunk) -> str:
    return f"{layout.name}, rows {chunk.first}..{chunk.first + chunk.rows - 1}"
