# SPDX-License-Identifier: BSD-3-Clause
"""Compression of the arrays of an HDF5 file by all ranks and threads, without parallel HDF5.

Ranks compress chunks and report their sizes. The HDF5 library on rank 0 allocates chunks of these sizes and writes
their index, but not their content: it believes that it writes them from a buffer of zeros. Every rank then writes its
chunks at their positions in the file. See docs/decisions/0043-compression.md.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seiche.domain.world import World
from seiche.errors import FormatError
from seiche.io.arrays import one_line
from seiche.io.compression import CHUNK_BYTES, LEVEL
from seiche.io.files import Closing
from seiche.io.mark import mark_file
from seiche.io.parallel import ParallelFile, raise_on_all_ranks

if TYPE_CHECKING:
    import h5py

#: Largest number of chunks that a rank compresses before the ranks exchange sizes and positions.
_CHUNKS_IN_ROUND = 64
#: Most bytes that deflate makes of a chunk.
_MAX_STREAM = CHUNK_BYTES + CHUNK_BYTES // 8


@dataclass(frozen=True)
class StoredArray:
    """The first `rows` rows of an array that is contiguous in one file and has chunks in another.

    `position` is the byte offset of the former. A row has `row_bytes` bytes, a number `item_bytes`, a chunk `chunk`
    rows; `axes` is the number of axes.
    """

    name: str
    position: int
    rows: int
    row_bytes: int
    item_bytes: int
    chunk: int
    axes: int

    @property
    def chunks(self) -> int:
        """Return the number of chunks."""
        return -(-self.rows // self.chunk)


class _FileOfLibrary:
    """A file object for the HDF5 library; data that it writes from `blank` only have their positions recorded."""

    def __init__(self, descriptor: int, file: ParallelFile) -> None:
        """Read through the `descriptor` and write through `file`."""
        self._descriptor, self._file, self._offset = descriptor, file, 0
        self.blank = np.zeros(_MAX_STREAM, np.uint8)
        self.positions: list[int] = []

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a position and return it."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._offset, os.SEEK_END: os.fstat(self._descriptor).st_size}[whence]
        self._offset = start + offset
        return self._offset

    def tell(self) -> int:
        """Return the position."""
        return self._offset

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes."""
        content = os.pread(self._descriptor, size, self._offset)
        self._offset += len(content)
        return content

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer; return the number of bytes."""
        content = self.read(len(buffer))
        buffer[: len(content)] = np.frombuffer(content, np.uint8)
        return len(content)

    def write(self, content: Any) -> int:
        """Write bytes, or record the position of a chunk; return the number of bytes."""
        data = np.frombuffer(content, np.uint8)
        if data.ctypes.data == self.blank.ctypes.data:
            self.positions.append(self._offset)
        else:
            self._file.write(self._offset, data)
        self._offset += len(data)
        return len(data)

    def truncate(self, size: int) -> int:
        """Set the size of the file."""
        os.ftruncate(self._descriptor, size)
        return size

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""


class _ChunkIndex(Closing):
    """A new HDF5 file, open on rank 0, in which chunks are allocated, but not written."""

    def __init__(self, path: Path, file: ParallelFile) -> None:
        """Open the empty file `path`, which `file` writes."""
        import h5py

        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        self._object = _FileOfLibrary(self._descriptor, file)
        # The earliest format is readable by old readers.
        self.file = h5py.File(self._object, "w", libver="earliest")
        mark_file(self.file)

    def allocate(self, array: StoredArray, number: int, size: int) -> int:
        """Return the position in the file of chunk `number`, of `size` bytes, of an array.

        Raises FormatError if the HDF5 library does not write chunks directly from a buffer.
        """
        positions, blank = self._object.positions, self._object.blank
        positions.clear()
        first = (number * array.chunk,) + (0,) * (array.axes - 1)
        self.file[array.name].id.write_direct_chunk(first, blank[:size])
        if len(positions) != 1:
            raise FormatError(self._path, array.name, "the HDF5 library does not write chunks directly")
        return positions[0]

    def close(self) -> None:
        """Write the index and close the file; a second call does nothing."""
        if self._descriptor >= 0:
            try:
                self.file.close()
            finally:
                os.close(self._descriptor)
                self._descriptor = -1


def compress(
    source: Path,
    target: Path,
    world: World,
    threads: int,
    structure: Callable[[Path, h5py.File], list[StoredArray]],
) -> None:
    """Write the arrays of the file `source` to the new file `target` in compressed chunks (collective).

    Args:
        source: a complete file, which is not changed.
        target: name of the new file, which is on the disk at the end.
        world: the ranks, each of which compresses an equal share of the chunks.
        threads: threads of this rank.
        structure: function that creates everything but the values of these arrays in the second file, on rank 0, and
            returns them.

    Raises:
        OSError, FormatError: on every rank, if any cannot read or write; the new file is then incomplete.
    """
    with ExitStack() as stack:
        index: _ChunkIndex | None = None
        arrays: list[StoredArray] | None = None
        with raise_on_all_ranks(world):
            if world.rank == 0:
                target.write_bytes(b"")
        written = stack.enter_context(ParallelFile(target, world))
        with raise_on_all_ranks(world), library_errors(source):
            if world.rank == 0:
                index = _ChunkIndex(target, written)
                stack.callback(_abandon, index)
                arrays = structure(source, index.file)
        reader = -1
        with raise_on_all_ranks(world):
            reader = os.open(source, os.O_RDONLY | os.O_NOFOLLOW)
        stack.callback(os.close, reader)
        pool = stack.enter_context(ThreadPoolExecutor(threads))
        _compress_chunks(world.bcast(arrays), index, (reader, written), world, pool)
        with raise_on_all_ranks(world):
            written.sync()
        with raise_on_all_ranks(world), library_errors(target):
            if index is not None:
                index.close()
                written.sync()


def _compress_chunks(
    arrays: Sequence[StoredArray],
    index: _ChunkIndex | None,
    files: tuple[int, ParallelFile],
    world: World,
    pool: ThreadPoolExecutor,
) -> None:
    """Compress all chunks in rounds, in each of which the ranks exchange sizes and positions (collective)."""
    (reader, written), total = files, sum(array.chunks for array in arrays)
    share = min(_CHUNKS_IN_ROUND, -(-total // world.size))
    for begin in range(0, total, max(1, share * world.size)):
        streams: list[bytes] = []
        with raise_on_all_ranks(world):
            streams = list(pool.map(partial(_stream, reader), _tasks(arrays, begin + share * world.rank, share)))
        sizes = world.gather([len(stream) for stream in streams])
        positions: list[list[int]] = []
        with raise_on_all_ranks(world), library_errors("the compressed file"):
            if index is not None and sizes is not None:
                for rank, counts in enumerate(sizes):
                    chunks = zip(_tasks(arrays, begin + share * rank, share), counts, strict=True)
                    positions.append([index.allocate(*task, size) for task, size in chunks])
        positions = world.bcast(positions)
        with raise_on_all_ranks(world):
            for position, stream in zip(positions[world.rank], streams, strict=True):
                written.write(position, np.frombuffer(stream, np.uint8))


@contextmanager
def library_errors(path: object) -> Iterator[None]:
    """Convert other errors of the HDF5 library to FormatError."""
    try:
        yield
    except (RuntimeError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(path, "whole file", f"cannot be compressed: {one_line(error)}") from None


def _abandon(index: _ChunkIndex) -> None:
    with suppress(OSError, RuntimeError):  # after an error, which this one must not hide
        index.close()


def _tasks(arrays: Sequence[StoredArray], begin: int, count: int) -> Iterator[tuple[StoredArray, int]]:
    """Yield (array, its chunk) of `count` chunks from the chunk `begin` of all arrays in their order."""
    first = 0
    for array in arrays:
        for number in range(max(begin - first, 0), min(begin + count - first, array.chunks)):
            yield array, number
        first += array.chunks


def _stream(reader: int, task: tuple[StoredArray, int]) -> bytes:
    """Return a chunk as HDF5 stores it: filled up with zeros, its bytes shuffled, then compressed."""
    array, number = task
    begin = number * array.chunk
    rows = min(array.chunk, array.rows - begin)
    chunk = np.zeros(array.chunk * array.row_bytes, np.uint8)
    _read_fully(reader, chunk[: rows * array.row_bytes], array.position + begin * array.row_bytes)
    return zlib.compress(np.ascontiguousarray(chunk.reshape(-1, array.item_bytes).T).data, LEVEL)


def _read_fully(reader: int, buffer: np.ndarray[Any, Any], position: int) -> None:
    done = 0
    while done < len(buffer):
        count = os.preadv(reader, [buffer.data[done:]], position + done)
        if not count:
            raise OSError(f"the file ends at byte {position + done}, within an array")
        done += count


def expand(source: Path, target: Path, world: World, arrays: Sequence[StoredArray]) -> None:
    """Write the values of compressed arrays to their positions in the existing contiguous file `target` (collective).

    Raises OSError on every rank if any cannot read or write.
    """
    import h5py

    with ParallelFile(target, world) as file, raise_on_all_ranks(world):
        with h5py.File(source, "r", locking=False) as compressed:
            count = sum(array.chunks for array in arrays)
            first, end = count * world.rank // world.size, count * (world.rank + 1) // world.size
            for array, number in _tasks(arrays, first, end - first):
                begin = number * array.chunk
                values = compressed[array.name][begin : min(begin + array.chunk, array.rows)]
                file.write(array.position + begin * array.row_bytes, values)
        file.sync()


def stored_array(dataset: h5py.Dataset, rows: int, chunk: int) -> StoredArray:
    """Return the description of the first `rows` rows of a contiguous dataset, in chunks of `chunk` rows."""
    item = dataset.dtype.itemsize
    row_bytes = item * math.prod(dataset.shape[1:])
    return StoredArray(dataset.name, int(dataset.id.get_offset()), rows, row_bytes, item, chunk, dataset.ndim)
