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
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.errors import FormatError
from seiche.io.background import Job, write_now
from seiche.io.checkpoint_format import (
    CHUNK_ROWS,
    MAGIC,
    PREAMBLE,
    ROW_LIMIT,
    VERSION,
    ArrayLayout,
    Attribute,
    CheckpointHeader,
    Chunk,
    Rows,
    layouts_of,
    read_header,
)
from seiche.io.checkpoint_format import Checkpoint as Checkpoint
from seiche.io.files import part_path, publish
from seiche.io.parallel import ParallelFile, all_or_none, rows_before


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
    job = checkpoint_job(
        path, world, time_step=time_step, owned=owned, arrays=arrays, n_sites=n_sites, attributes=attributes
    )
    write_now(job, world)


def checkpoint_job(
    path: str | os.PathLike[str],
    world: World,
    *,
    time_step: int,
    owned: npt.NDArray[np.int64],
    arrays: Mapping[str, Rows],
    n_sites: int,
    attributes: Mapping[str, Attribute],
    finished: Callable[[bool], None] = lambda complete: None,
) -> Job:
    """Return the job that writes a checkpoint, for a `BackgroundWriter` (collective).

    Arguments and errors are those of `write_checkpoint`; the job's thread asks the `arrays` for their rows.
    `finished` is called in the end with whether the checkpoint is complete. One job a path at a time.
    """
    part = part_path(Path(path))
    first, total = rows_before(world, len(owned))
    everything = {"site": np.asarray(owned, np.int64), **arrays}
    with all_or_none(world):
        _check(everything, arrays, n_sites, total, attributes)
        layouts = layouts_of([(name, _stored(array), array.shape[1:]) for name, array in everything.items()], n_sites)
        if world.rank == 0:
            part.write_bytes(b"")
    world.barrier()
    file = ParallelFile(part, world, Path(path))
    header = CheckpointHeader(time_step, n_sites, dict(attributes), layouts, ())
    return _Writing(Path(path), file, world, header, arrays=everything, first=first, finished=finished)


class _Writing(Job):
    """A checkpoint on its way to the disk."""

    def __init__(
        self,
        path: Path,
        file: ParallelFile,
        world: World,
        header: CheckpointHeader,
        *,
        arrays: Mapping[str, Rows],
        first: int,
        finished: Callable[[bool], None],
    ) -> None:
        self._path, self._file, self._world, self._header = path, file, world, header
        self._arrays, self._first, self._finished = arrays, first, finished

    def store(self) -> list[tuple[int, ...]]:
        arrays, layouts = list(self._arrays.values()), self._header.layouts
        begins = range(0, len(arrays[0]), CHUNK_ROWS)
        chunks = [_write_chunk(self._file, layouts, arrays, self._first, begin) for begin in begins]
        self._file.force()
        self._arrays = {}
        return chunks

    def commit(self, stored: list[list[tuple[int, ...]]]) -> None:
        header, last = self._header, self._header.layouts[-1]
        footer = _footer(header, [chunk for rank in stored for chunk in rank])
        end = last.offset + header.n_sites * last.row_bytes
        self._file.write(end, np.frombuffer(footer, np.uint8))
        head = PREAMBLE.pack(MAGIC, VERSION, zlib.crc32(footer), end, len(footer))
        head += struct.pack("<I", zlib.crc32(head))
        self._file.write(0, np.frombuffer(head, np.uint8))
        self._file.force()
        publish(part_path(self._path), self._path)

    def finish(self, complete: bool) -> None:
        self._file.close()
        if not complete and self._world.rank == 0:
            with suppress(OSError):
                part_path(self._path).unlink()
        self._finished(complete)


def inspect_checkpoint(path: str | os.PathLike[str]) -> CheckpointHeader:
    """Return the header of a checkpoint after checking it; reads no array.

    Raises:
        FormatError: not a checkpoint, damaged, truncated, or of another version.
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        return read_header(Path(path), file)


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
        header = read_header(source, file)
        arrays = _read_rows(source, file, header, np.asarray(owned, np.int64))
        result = Checkpoint(header.time_step, arrays, header.attributes)
    return result


def _stored(array: Rows) -> np.dtype[Any]:
    return array.dtype.newbyteorder("<")


def _check(
    all_arrays: Mapping[str, Rows],
    arrays: Mapping[str, Rows],
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
        if len(array.shape) < 1 or len(array) != rows or array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
            raise ValueError(f"array {name!r}: {array.dtype} {array.shape}, need {rows} rows of numbers <= 8 bytes")
        if math.prod(array.shape[1:]) > ROW_LIMIT:
            raise ValueError(f"array {name!r}: rows of shape {array.shape[1:]}, need at most {ROW_LIMIT} numbers")
    for name, value in attributes.items():
        if not isinstance(value, str | float | int):
            raise ValueError(f"attribute {name!r} is a {type(value).__name__}, need str, float or int")


def _write_chunk(
    file: ParallelFile, layouts: tuple[ArrayLayout, ...], arrays: list[Rows], first: int, begin: int
) -> tuple[int, ...]:
    sites = arrays[0][begin : begin + CHUNK_ROWS]
    entry = [first + begin, len(sites), int(sites.min()), int(sites.max())]
    for layout, array in zip(layouts, arrays, strict=True):
        rows = np.ascontiguousarray(array[begin : begin + CHUNK_ROWS], dtype=layout.dtype)
        file.write(layout.offset + (first + begin) * layout.row_bytes, rows)
        entry.append(zlib.crc32(rows.reshape(-1).view(np.uint8).data))
    return tuple(entry)


def _footer(header: CheckpointHeader, chunks: list[tuple[int, ...]]) -> bytes:
    arrays = [{"name": item.name, "dtype": item.dtype.str, "shape": list(item.shape)} for item in header.layouts]
    content = {
        "time_step": int(header.time_step),
        "sites": header.n_sites,
        "attributes": header.attributes,
        "arrays": arrays,
        "chunks": chunks,
    }
    return json.dumps(content).encode()


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
