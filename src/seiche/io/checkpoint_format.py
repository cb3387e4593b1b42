# SPDX-License-Identifier: BSD-3-Clause
"""The metadata and the array layouts of a checkpoint file; `checkpoint.py` describes the format."""

from __future__ import annotations

import json
import math
import os
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from reprlib import repr
from typing import Any, BinaryIO

import numpy as np

from seiche.errors import FormatError
from seiche.io.state import Attribute

MAGIC = b"\x89SEICHE\n"
VERSION = 3
PREAMBLE = struct.Struct("<8sIIQQ28x")
PREAMBLE_BYTES = 64
#: Maximum rows of a chunk, and maximum bytes of one array in a chunk, except for a single larger row.
CHUNK_ROWS, CHUNK_BYTES = 1 << 16, 1 << 24
#: Types of stored arrays, in NumPy's notation.
TYPES = frozenset("|b1 |i1 <i2 <i4 <i8 |u1 <u2 <u4 <u8 <f2 <f4 <f8".split())
#: Maximum number of dimensions of a row.
MAX_DIMENSIONS = 8
#: Maximum bytes of an array whose zero extents count as one; NumPy cannot represent larger shapes.
_MAX_BYTES = 1 << 60
#: Name of the only row set of a file of version 1.
VERSION_1_ROWS = "site"


@dataclass(frozen=True)
class ArrayLayout:
    """Type and offset of one array; `shape` is that of a row, or of a whole replicated array."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int = 0

    @property
    def row_bytes(self) -> int:
        """Return the bytes of one row, or of a whole replicated array."""
        return math.prod(self.shape) * self.dtype.itemsize

    def description(self) -> dict[str, Any]:
        """Return name, type and shape for the footer."""
        return {"name": self.name, "dtype": self.dtype.str, "shape": list(self.shape)}


#: Keys of files of versions 1 and 2.
KEYS = ArrayLayout("keys", np.dtype("<i8"), ())


def keys_layout(total: int) -> ArrayLayout:
    """Return the layout of the keys of a set of `total` rows: unsigned numbers of 32 bits if they suffice."""
    return replace(KEYS, dtype=np.dtype("<u4")) if total <= 1 << 32 else KEYS


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows with one checksum for the keys and for each array; `first_key` and `last_key` bound the keys."""

    first: int
    rows: int
    first_key: int
    last_key: int
    checksums: tuple[int, ...]


@dataclass(frozen=True)
class RowSetLayout:
    """The arrays of one row set of `total` rows, and the chunks of their rows."""

    name: str
    total: int
    arrays: tuple[ArrayLayout, ...]
    keys: ArrayLayout = KEYS
    chunks: tuple[Chunk, ...] = ()

    @property
    def chunk_rows(self) -> int:
        """Return the largest number of rows in a chunk."""
        widest = max(layout.row_bytes for layout in (self.keys, *self.arrays))
        return min(CHUNK_ROWS, max(1, CHUNK_BYTES // widest))


@dataclass(frozen=True)
class CheckpointMetadata:
    """A checkpoint without its arrays.

    Attributes:
        step: number of steps done.
        attributes: scalars and strings, by name.
        rows: row sets by name.
        replicated: layouts of the replicated arrays, by name.
        checksums: CRC-32 of each replicated array, by name.
        version: version of the format; in version 1 the name of the only row set is meaningless.
    """

    step: int
    attributes: dict[str, Attribute]
    rows: dict[str, RowSetLayout]
    replicated: dict[str, ArrayLayout]
    checksums: dict[str, int]
    version: int = VERSION


def assign_offsets(
    sets: Iterable[RowSetLayout], replicated: Iterable[ArrayLayout]
) -> tuple[tuple[RowSetLayout, ...], tuple[ArrayLayout, ...], int]:
    """Assign consecutive offsets to the arrays and return their end; offsets are never read from a file."""
    offset = PREAMBLE_BYTES

    def with_offset(layout: ArrayLayout, count: int) -> ArrayLayout:
        nonlocal offset
        positioned = replace(layout, offset=offset)
        offset += count * layout.row_bytes
        return positioned

    rows = tuple(
        replace(
            item, keys=with_offset(item.keys, item.total), arrays=tuple(with_offset(a, item.total) for a in item.arrays)
        )
        for item in sets
    )
    return rows, tuple(with_offset(array, 1) for array in replicated), offset


def check_array(layout: ArrayLayout, count: int) -> None:
    """Raise ValueError if the type or shape of an array of `count` rows cannot be stored."""
    if layout.dtype.str not in TYPES:
        raise ValueError(f"array {layout.name!r} has type {layout.dtype}; only real numbers and booleans are stored")
    values = max(1, count) * math.prod(max(1, extent) for extent in layout.shape)
    if len(layout.shape) > MAX_DIMENSIONS or values * layout.dtype.itemsize > _MAX_BYTES:
        raise ValueError(f"array {layout.name!r} has {count} rows of shape {layout.shape}, which is too large")


def read_metadata(path: Path, file: BinaryIO) -> CheckpointMetadata:
    """Return the verified metadata of the open `file`; `path` is used in messages.

    Raises FormatError for a file that is not a checkpoint, damaged, truncated, or of another version.
    """
    size = os.fstat(file.fileno()).st_size
    preamble = file.read(PREAMBLE_BYTES)
    if preamble[: len(MAGIC)] != MAGIC:
        raise FormatError(path, "byte 0", "not a Seiche checkpoint (wrong magic number)")
    if len(preamble) < PREAMBLE_BYTES:
        raise FormatError(path, "preamble", f"truncated: {len(preamble)} of {PREAMBLE_BYTES} bytes")
    if struct.unpack("<I", preamble[-4:])[0] != zlib.crc32(preamble[:-4]):
        raise FormatError(path, "preamble", "damaged (checksum does not match)")
    _, version, checksum, offset, length = PREAMBLE.unpack(preamble[:-4])
    if not 1 <= version <= VERSION:
        raise FormatError(path, "byte 8", f"version {version}; this program reads versions 1 to {VERSION}")
    if offset < PREAMBLE_BYTES:
        raise FormatError(path, "footer", f"begins at byte {offset}, inside the preamble")
    if offset + length > size:
        end = offset + length
        raise FormatError(path, "footer", f"truncated: the footer ends at byte {end}, but the file has {size} bytes")
    if offset + length < size:
        excess = size - offset - length
        raise FormatError(path, "end of file", f"{excess} bytes follow the end of the checkpoint; remove them")
    file.seek(offset)
    footer = file.read(length)
    if len(footer) != length or zlib.crc32(footer) != checksum:
        raise FormatError(path, "footer", "damaged (checksum does not match)")
    try:
        return _parse_footer(json.loads(footer), version, offset)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FormatError(path, "footer", f"invalid: {error}") from error


def _parse_footer(content: Any, version: int, offset: int) -> CheckpointMetadata:
    if version == 1:
        content = _from_version_1(content)
    sets = [(item, _count(item["total"])) for item in content["sets"]]
    row_sets = [
        RowSetLayout(
            _text(item["name"]), total, _layouts(item["arrays"], total), keys_layout(total) if version > 2 else KEYS
        )
        for item, total in sets
    ]
    rows, replicated, end = assign_offsets(row_sets, _layouts(content["numbers"], 1))
    if end != offset:
        raise ValueError(f"the arrays end at byte {end}, the footer begins at {offset}")
    tables = [
        _chunks(item["chunks"], layout, CHUNK_ROWS if version == 1 else layout.chunk_rows)
        for (item, _), layout in zip(sets, rows, strict=True)
    ]
    by_name = {layout.name: replace(layout, chunks=chunks) for layout, chunks in zip(rows, tables, strict=True)}
    if len(by_name) != len(rows):
        raise ValueError("a row set appears twice")
    attributes = dict(content["attributes"].items())
    if not all(isinstance(value, str | float | int) for value in attributes.values()):
        raise ValueError("an attribute is neither text nor number")
    checksums = {item["name"]: _count(item["checksum"]) for item in content["numbers"]}
    arrays = {layout.name: layout for layout in replicated}
    return CheckpointMetadata(_count(content["step"]), attributes, by_name, arrays, checksums, version)


def _from_version_1(content: Any) -> dict[str, Any]:
    """Return the footer of a file of version 1, converted to version 2; the bytes before the footer are the same."""
    keys, *arrays = content["arrays"] or [None]
    if keys != {**KEYS.description(), "name": VERSION_1_ROWS}:
        raise ValueError(f"the first array must be {VERSION_1_ROWS!r}, int64")
    rows = {"name": VERSION_1_ROWS, "total": content["sites"], "arrays": arrays, "chunks": content["chunks"]}
    return {"step": content["time_step"], "attributes": content["attributes"], "sets": [rows], "numbers": []}


def _layouts(items: Any, count: int) -> tuple[ArrayLayout, ...]:
    layouts = []
    for item in items:
        name, dtype = _text(item["name"]), item["dtype"]
        if dtype not in TYPES:
            raise ValueError(f"array {name!r} has the unsupported type {repr(dtype)}")
        layouts.append(ArrayLayout(name, np.dtype(dtype), tuple(_count(extent) for extent in item["shape"])))
        check_array(layouts[-1], count)
    if len({layout.name for layout in layouts}) != len(layouts):
        raise ValueError("an array appears twice")
    return tuple(layouts)


def _chunks(table: Any, layout: RowSetLayout, max_rows: int) -> tuple[Chunk, ...]:
    chunks, next_row = [], 0
    for entry in table:
        begin, rows, first_key, last_key, *checksums = (_count(number) for number in entry)
        if begin != next_row or not 1 <= rows <= max_rows or not first_key <= last_key < layout.total:
            raise ValueError(
                f"chunk of {rows} rows at row {begin} of {layout.name!r} (keys {first_key} to {last_key}): "
                "invalid range of rows or keys"
            )
        if len(checksums) != 1 + len(layout.arrays):
            raise ValueError(f"chunk at row {begin} has {len(checksums)} checksums for {1 + len(layout.arrays)} arrays")
        chunks.append(Chunk(begin, rows, first_key, last_key, tuple(checksums)))
        next_row += rows
    if next_row != layout.total:
        raise ValueError(f"the chunks of {layout.name!r} contain {next_row} rows; expected {layout.total}")
    return tuple(chunks)


def footer_of(
    step: int,
    attributes: dict[str, Attribute],
    sets: Sequence[tuple[RowSetLayout, list[tuple[int, ...]]]],
    replicated: Sequence[tuple[ArrayLayout, int]],
) -> bytes:
    """Return the footer: `sets` with the table of their chunks, the `replicated` arrays with their checksums."""
    rows = []
    for layout, table in sets:
        arrays = [array.description() for array in layout.arrays]
        rows.append({"name": layout.name, "total": layout.total, "arrays": arrays, "chunks": table})
    entries = [{**layout.description(), "checksum": checksum} for layout, checksum in replicated]
    return json.dumps({"step": step, "attributes": attributes, "sets": rows, "numbers": entries}).encode()


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"{repr(value)} is not a count")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{repr(value)} is not a name")
    return value
