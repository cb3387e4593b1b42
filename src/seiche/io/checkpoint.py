# SPDX-License-Identifier: BSD-3-Clause
"""Save the state of a run so that any number of ranks can go on from it, bit for bit.

Layout of the file (little-endian; reasons in docs/decisions/0011-checkpoint-format.md):

    0                64 bytes: magic, version, CRC-32 of the footer, its offset and length, zeros, CRC-32 of the above
    64               site index of every row, int64, in the order in which the ranks wrote them
    ...              one array after the other, rows in that same order, without gaps
    footer offset    JSON: time step, attributes, the arrays, and for each chunk of rows its CRC-32 in every array

Every byte is under a checksum, and every size is checked against the length of the file before memory is asked for.
"""

from __future__ import annotations

import json
import math
import os
import struct
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.errors import FormatError
from seiche.io.files import part_path, publish
from seiche.io.parallel import ParallelFile, all_or_none, rows_before

Attribute = str | float | int

_MAGIC = b"\x89SEICHE\n"
_VERSION = 1
_PREAMBLE = struct.Struct("<8sIIQQ28x")
_PREAMBLE_BYTES = 64
#: Rows under one checksum: a reader never holds more than this many rows that it does not need.
_CHUNK_ROWS = 1 << 16
#: Most numbers in one row; a site of no lattice has as many.
_ROW_LIMIT = 4096


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


def write_checkpoint(
    path: str | os.PathLike[str],
    world: World,
    *,
    time_step: int,
    owned: npt.NDArray[np.int64],
    arrays: Mapping[str, npt.NDArray[Any]],
    n_sites: int,
    attributes: Mapping[str, Attribute],
) -> None:
    """Write the rows of all ranks (collective); `path` keeps what it had until the new file is complete and synced.

    Args:
        path: name of the checkpoint.
        world: the ranks that write.
        time_step: steps done.
        owned: global site indices of this rank's rows, (n_owned,).
        arrays: state by name, each with n_owned rows of booleans, integers or floating-point numbers.
        n_sites: number of sites of all ranks.
        attributes: what else to remember (fingerprints of geometry and model); the same on every rank.

    Raises:
        ValueError: rows that do not match `owned` or `n_sites`, or a type that cannot be stored.
        OSError: the disk refused; the checkpoint that was there is still there.
    """
    final = Path(path)
    part = part_path(final)
    all_arrays = {"site": np.asarray(owned, np.int64), **arrays}
    first, total = rows_before(world, len(owned))
    try:
        with all_or_none(world):
            _check(all_arrays, arrays, n_sites, total, attributes)
            layouts = _layouts([(name, _stored(array), array.shape[1:]) for name, array in all_arrays.items()], n_sites)
            if world.rank == 0:
                part.write_bytes(b"")
        world.barrier()
        with ParallelFile(part, world) as file:
            chunks: list[tuple[int, ...]] = []
            with all_or_none(world):
                for begin in range(0, len(owned), _CHUNK_ROWS):
                    chunks.append(_write_chunk(file, layouts, list(all_arrays.values()), first, begin))
            table = [chunk for rank in world.allgather(chunks) for chunk in rank]
            with all_or_none(world):
                if world.rank == 0:
                    footer = _footer(time_step, n_sites, attributes, layouts, table)
                    end = layouts[-1].offset + n_sites * layouts[-1].row_bytes
                    file.write(end, np.frombuffer(footer, np.uint8))
                    head = _PREAMBLE.pack(_MAGIC, _VERSION, zlib.crc32(footer), end, len(footer))
                    head += struct.pack("<I", zlib.crc32(head))
                    file.write(0, np.frombuffer(head, np.uint8))
            file.sync()
        with all_or_none(world):
            if world.rank == 0:
                publish(part, final)
    except BaseException:
        if world.rank == 0:
            with suppress(OSError):
                part.unlink()
        raise


def inspect_checkpoint(path: str | os.PathLike[str]) -> CheckpointHeader:
    """Return the header of a checkpoint after checking it; reads no array.

    Raises:
        FormatError: not a checkpoint, damaged, truncated, or of another version.
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        return _read_header(Path(path), file)


def read_checkpoint(path: str | os.PathLike[str], world: World, owned: npt.NDArray[np.int64]) -> Checkpoint:
    """Return the rows of the sites `owned` (n_owned,), whoever wrote them (collective).

    Only chunks with a wanted site are read, one at a time; when the ranks want all sites, every byte is checked.

    Raises:
        FormatError: on every rank, if the file is damaged where any rank reads it, or lacks a wanted site.
        OSError: the file cannot be read.
        ValueError: a site is wanted twice.
    """
    source = Path(path)
    with all_or_none(world), source.open("rb") as file:
        header = _read_header(source, file)
        arrays = _read_rows(source, file, header, np.asarray(owned, np.int64))
        result = Checkpoint(header.time_step, arrays, header.attributes)
    return result


def _stored(array: npt.NDArray[Any]) -> np.dtype[Any]:
    return array.dtype.newbyteorder("<")


def _check(
    all_arrays: Mapping[str, npt.NDArray[Any]],
    arrays: Mapping[str, npt.NDArray[Any]],
    n_sites: int,
    total: int,
    attributes: Mapping[str, Attribute],
) -> None:
    if total != n_sites:
        raise ValueError(f"the ranks own {total} sites together, need {n_sites}")
    if "site" in arrays:
        raise ValueError("an array may not be called 'site': that is the site index of the rows")
    rows = len(all_arrays["site"])
    for name, array in all_arrays.items():
        if array.ndim < 1 or len(array) != rows or array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
            raise ValueError(f"array {name!r}: {array.dtype} {array.shape}, need {rows} rows of numbers <= 8 bytes")
        if math.prod(array.shape[1:]) > _ROW_LIMIT:
            raise ValueError(f"array {name!r}: rows of shape {array.shape[1:]}, need at most {_ROW_LIMIT} numbers")
    for name, value in attributes.items():
        if not isinstance(value, str | float | int):
            raise ValueError(f"attribute {name!r} is a {type(value).__name__}, need str, float or int")


def _layouts(kinds: list[tuple[str, np.dtype[Any], tuple[int, ...]]], n_sites: int) -> tuple[ArrayLayout, ...]:
    """Place the arrays one after the other: offsets are computed, never read from a file."""
    layouts, offset = [], _PREAMBLE_BYTES
    for name, dtype, shape in kinds:
        layouts.append(ArrayLayout(name, dtype, shape, offset))
        offset += n_sites * layouts[-1].row_bytes
    return tuple(layouts)


def _write_chunk(
    file: ParallelFile, layouts: tuple[ArrayLayout, ...], arrays: list[npt.NDArray[Any]], first: int, begin: int
) -> tuple[int, ...]:
    sites = arrays[0][begin : begin + _CHUNK_ROWS]
    entry = [first + begin, len(sites), int(sites.min()), int(sites.max())]
    for layout, array in zip(layouts, arrays, strict=True):
        rows = np.ascontiguousarray(array[begin : begin + _CHUNK_ROWS], dtype=layout.dtype)
        file.write(layout.offset + (first + begin) * layout.row_bytes, rows)
        entry.append(zlib.crc32(rows.reshape(-1).view(np.uint8).data))
    return tuple(entry)


def _footer(
    time_step: int,
    n_sites: int,
    attributes: Mapping[str, Attribute],
    layouts: tuple[ArrayLayout, ...],
    table: list[tuple[int, ...]],
) -> bytes:
    arrays = [{"name": item.name, "dtype": item.dtype.str, "shape": list(item.shape)} for item in layouts]
    content = {
        "time_step": int(time_step),
        "sites": n_sites,
        "attributes": dict(attributes),
        "arrays": arrays,
        "chunks": table,
    }
    return json.dumps(content).encode()


def _read_header(path: Path, file: BinaryIO) -> CheckpointHeader:
    size = os.fstat(file.fileno()).st_size
    head = file.read(_PREAMBLE_BYTES)
    if head[: len(_MAGIC)] != _MAGIC:
        raise FormatError(path, "byte 0", "not a Seiche checkpoint (wrong magic)")
    if len(head) < _PREAMBLE_BYTES:
        raise FormatError(path, "preamble", f"truncated: {len(head)} of {_PREAMBLE_BYTES} bytes")
    if struct.unpack("<I", head[-4:])[0] != zlib.crc32(head[:-4]):
        raise FormatError(path, "preamble", "damaged (checksum does not match)")
    _, version, checksum, offset, length = _PREAMBLE.unpack(head[:-4])
    if version != _VERSION:
        raise FormatError(path, "byte 8", f"version {version}, this program reads version {_VERSION}")
    if offset < _PREAMBLE_BYTES or offset + length != size:
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
        if math.prod(shape) > _ROW_LIMIT:
            raise ValueError(f"array {item['name']!r} has rows of shape {shape}")
        kinds.append((str(item["name"]), dtype, shape))
    if not kinds or kinds[0] != ("site", np.dtype("<i8"), ()) or len({name for name, _, _ in kinds}) != len(kinds):
        raise ValueError("the first array must be 'site', int64, and no name may come twice")
    chunks, first = [], 0
    for entry in content["chunks"]:
        begin, rows, lowest, highest, *checksums = (_count(number) for number in entry)
        if begin != first or not 1 <= rows <= _CHUNK_ROWS or not lowest <= highest < n_sites:
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
    return CheckpointHeader(time_step, n_sites, attributes, _layouts(kinds, n_sites), tuple(chunks))


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a count")
    return value


def _read_rows(
    path: Path, file: BinaryIO, header: CheckpointHeader, owned: npt.NDArray[np.int64]
) -> dict[str, npt.NDArray[Any]]:
    order = np.argsort(owned, kind="stable")
    wanted = owned[order]
    if np.any(wanted[1:] == wanted[:-1]):
        raise ValueError("a site is wanted twice")
    if len(wanted) and (wanted[0] < 0 or wanted[-1] >= header.n_sites):
        place = f"site {wanted[-1] if wanted[-1] >= header.n_sites else wanted[0]}"
        raise FormatError(path, place, f"not in this checkpoint of {header.n_sites} sites")
    arrays = {item.name: np.zeros((len(owned), *item.shape), item.dtype) for item in header.layouts[1:]}
    found = np.zeros(len(owned), bool)
    for chunk in header.chunks:
        begin, end = np.searchsorted(wanted, [chunk.lowest, chunk.highest + 1])
        if begin == end:
            continue
        sites = _read_chunk(path, file, header, chunk, 0)
        at = np.minimum(np.searchsorted(wanted, sites), len(wanted) - 1)
        mine = np.flatnonzero(wanted[at] == sites)
        rows = order[at[mine]]
        if found[rows].any() or len(np.unique(rows)) != len(rows):
            raise FormatError(path, f"rows {chunk.first}..{chunk.first + chunk.rows - 1}", "a site is stored twice")
        found[rows] = True
        if len(rows):
            for number, item in enumerate(header.layouts[1:], start=1):
                arrays[item.name][rows] = _read_chunk(path, file, header, chunk, number)[mine]
    if not found.all():
        raise FormatError(path, f"site {owned[~found].min()}", "not stored")
    return {name: array.astype(array.dtype.newbyteorder("="), copy=False) for name, array in arrays.items()}


def _read_chunk(path: Path, file: BinaryIO, header: CheckpointHeader, chunk: Chunk, number: int) -> npt.NDArray[Any]:
    """Return the rows of `chunk` in array `number` after checking them."""
    layout = header.layouts[number]
    file.seek(layout.offset + chunk.first * layout.row_bytes)
    data = file.read(chunk.rows * layout.row_bytes)
    if len(data) != chunk.rows * layout.row_bytes or zlib.crc32(data) != chunk.checksums[number]:
        place = f"array {layout.name!r}, rows {chunk.first}..{chunk.first + chunk.rows - 1}"
        raise FormatError(path, place, "damaged (checksum does not match)")
    return np.frombuffer(data, layout.dtype).reshape(chunk.rows, *layout.shape)
