# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a checkpoint file and its header; `checkpoint.py` has the layout in words."""

from __future__ import annotations

import json
import math
import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt

from seiche.errors import FormatError

Attribute = str | float | int

MAGIC = b"\x89SEICHE\n"
VERSION = 1
PREAMBLE = struct.Struct("<8sIIQQ28x")
PREAMBLE_BYTES = 64
#: Rows under one checksum: a reader never holds more than this many rows that it does not need.
CHUNK_ROWS = 1 << 16
#: Most numbers in one row; a site of no lattice has as many.
ROW_LIMIT = 4096


class Rows(Protocol):
    """An array of rows that need not exist before they are asked for."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows, and shape of a row."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def __getitem__(self, rows: slice, /) -> npt.NDArray[Any]:
        """Return some rows."""


@dataclass(frozen=True)
class Checkpoint:
    """What `read_checkpoint` returns: `arrays` hold one row for each entry of `owned`, in its order."""

    time_step: int
    arrays: dict[str, npt.NDArray[Any]]
    attributes: dict[str, Attribute]


@dataclass(frozen=True)
class ArrayLayout:
    """Type, shape of a row and place in the file of one array."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int

    @property
    def row_bytes(self) -> int:
        """Return the bytes of one row."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows under one checksum an array; `lowest` and `highest` bound their site indices."""

    first: int
    rows: int
    lowest: int
    highest: int
    checksums: tuple[int, ...]


@dataclass(frozen=True)
class CheckpointHeader:
    """All of a checkpoint but the arrays; `layouts[0]` is the site index."""

    time_step: int
    n_sites: int
    attributes: dict[str, Attribute]
    layouts: tuple[ArrayLayout, ...]
    chunks: tuple[Chunk, ...]


def layouts_of(kinds: list[tuple[str, np.dtype[Any], tuple[int, ...]]], n_sites: int) -> tuple[ArrayLayout, ...]:
    """Place the arrays one after the other: offsets are computed, never read from a file."""
    layouts, offset = [], PREAMBLE_BYTES
    for name, dtype, shape in kinds:
        layouts.append(ArrayLayout(name, dtype, shape, offset))
        offset += n_sites * layouts[-1].row_bytes
    return tuple(layouts)


def read_header(path: Path, file: BinaryIO) -> CheckpointHeader:
    """Return the header of the open `file`, called `path`, after checking it.

    Raises:
        FormatError: not a checkpoint, damaged, truncated, or of another version.
    """
    size = os.fstat(file.fileno()).st_size
    head = file.read(PREAMBLE_BYTES)
    if head[: len(MAGIC)] != MAGIC:
        raise FormatError(path, "byte 0", "not a Seiche checkpoint (wrong magic)")
    if len(head) < PREAMBLE_BYTES:
        raise FormatError(path, "preamble", f"truncated: {len(head)} of {PREAMBLE_BYTES} bytes")
    if struct.unpack("<I", head[-4:])[0] != zlib.crc32(head[:-4]):
        raise FormatError(path, "preamble", "damaged (checksum does not match)")
    _, version, checksum, offset, length = PREAMBLE.unpack(head[:-4])
    if version != VERSION:
        raise FormatError(path, "byte 8", f"version {version}, this program reads version {VERSION}")
    if offset < PREAMBLE_BYTES or offset + length != size:
        raise FormatError(path, "footer", f"ends at byte {offset + length}, the file at {size} (truncated?)")
    file.seek(offset)
    footer = file.read(length)
    if len(footer) != length or zlib.crc32(footer) != checksum:
        raise FormatError(path, "footer", "damaged (checksum does not match)")
    try:
        header = _parse_footer(json.loads(footer))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(path, "footer", f"not understood: {error}") from error
    last = header.layouts[-1]
    if last.offset + header.n_sites * last.row_bytes != offset:
        raise FormatError(path, "footer", f"{header.n_sites} sites do not fill the {offset} bytes before it")
    return header


def _parse_footer(content: Any) -> CheckpointHeader:
    n_sites, time_step = _count(content["sites"]), _count(content["time_step"])
    kinds = []
    for item in content["arrays"]:
        dtype = np.dtype(str(item["dtype"]))
        if dtype.kind not in "biuf" or not 1 <= dtype.itemsize <= 8:
            raise ValueError(f"array {item['name']!r} has type {dtype}")
        shape = tuple(_count(extent) for extent in item["shape"])
        if math.prod(shape) > ROW_LIMIT:
            raise ValueError(f"array {item['name']!r} has rows of shape {shape}")
        kinds.append((str(item["name"]), dtype, shape))
    if not kinds or kinds[0] != ("site", np.dtype("<i8"), ()) or len({name for name, _, _ in kinds}) != len(kinds):
        raise ValueError("the first array must be 'site', int64, and no name may come twice")
    chunks, first = [], 0
    for entry in content["chunks"]:
        begin, rows, lowest, highest, *checksums = (_count(number) for number in entry)
        if begin != first or not 1 <= rows <= CHUNK_ROWS or not lowest <= highest < n_sites:
            raise ValueError(f"chunk of {rows} rows at {begin} for sites {lowest}..{highest}")
        if len(checksums) != len(kinds):
            raise ValueError(f"chunk at row {begin} has {len(checksums)} checksums for {len(kinds)} arrays")
        chunks.append(Chunk(begin, rows, lowest, highest, tuple(checksums)))
        first += rows
    if first != n_sites:
        raise ValueError(f"chunks of {first} rows for {n_sites} sites")
    attributes = dict(content["attributes"])
    if not all(isinstance(value, str | float | int) for value in attributes.values()):
        raise ValueError("an attribute is neither text nor number")
    return CheckpointHeader(time_step, n_sites, attributes, layouts_of(kinds, n_sites), tuple(chunks))


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a count")
    return value
