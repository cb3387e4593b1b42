# SPDX-License-Identifier: BSD-3-Clause
"""Parallel files: each rank writes the rows that it owns at a separate byte offset."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.errors import SeicheError
from seiche.io.files import Closing

#: Errors of file systems without locks. Parallel file systems without locks (Lustre without `flock`) need none.
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP)
#: Maximum bytes of one write call; the limit of Linux is 2**31 - 4096.
_MAX_WRITE = 1 << 30


def rows_before(world: World, rows: int) -> tuple[int, int]:
    """Return (rows of all lower ranks, rows of all ranks)."""
    counts = world.allgather(rows)
    return sum(counts[: world.rank]), sum(counts)


@contextmanager
def raise_on_all_ranks(world: World) -> Iterator[None]:
    """Raise an error of one rank on all ranks, which avoids deadlocks (collective).

    The block must not call collectives. After it every rank raises the error of the lowest rank that failed: a
    SeicheError, OSError or ValueError.
    """
    error: Exception | None = None
    try:
        yield
    except (SeicheError, OSError, ValueError) as raised:
        error = raised
    if world.comm is None:
        if error is not None:
            raise error
        return
    first = next((item for item in world.allgather(_serialised(error)) if item is not None), None)
    if first is not None:
        raise _restored(*first) from error


def _serialised(error: Exception | None) -> tuple[type[Exception], tuple[Any, ...], dict[str, Any]] | None:
    if error is None:
        return None
    # Unlike `args`, the arguments of `__reduce__` include the file of an OSError.
    kind, arguments, *_ = cast(tuple[Any, ...], error.__reduce__())
    return kind, arguments, dict(vars(error))


def _restored(kind: type[Exception], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> Exception:
    # Exceptions with their own __init__ cannot be pickled directly.
    error = kind.__new__(kind, *arguments)
    vars(error).update(attributes)
    return error


class ParallelFile(Closing):
    """An existing file that all ranks of `world` write; only opening is collective.

    Writing does not use MPI, so any thread may write. Ranks on several hosts lock the bytes that they write. Otherwise
    a host with a cached page of the file (NFS) could overwrite neighbouring bytes. Messages use the `name`, by default
    `path`.

    Raises:
        OSError: on every rank, if any cannot open or write the file.
    """

    def __init__(self, path: Path, world: World, name: Path | None = None) -> None:
        """Open `path` for writing without truncating it."""
        self.name = name or path
        self._descriptor = -1
        self._needs_locks = world.local_size < world.size
        with raise_on_all_ranks(world):
            try:
                # Each rank opens separately and can close without the others.
                self._descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
            except OSError as error:
                raise OSError(f"{self.name}: cannot be opened for writing: {error.strerror}") from error

    def write(self, offset: int, array: npt.NDArray[Any]) -> None:
        """Write the bytes of `array` (C order) at byte `offset`; OSError if that fails."""
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        try:
            with self._lock(offset, len(data)):
                written = 0
                while written < len(data):
                    written += os.pwrite(self._descriptor, data[written : written + _MAX_WRITE], offset + written)
        except OSError as error:
            raise OSError(f"{self.name}: write of {len(data)} bytes at {offset} failed: {error.strerror}") from error

    @contextmanager
    def _lock(self, offset: int, size: int) -> Iterator[None]:
        if not self._needs_locks or not size:
            yield
            return
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX, size, offset)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            self._needs_locks = False
        try:
            yield
        finally:
            if self._needs_locks:
                fcntl.lockf(self._descriptor, fcntl.LOCK_UN, size, offset)

    def sync(self) -> None:
        """Sync the writes of this rank to the disk; OSError if that fails."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise OSError(f"{self.name}: cannot be synced to the disk: {error.strerror}") from error

    def close(self) -> None:
        """Close the file on this rank; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
