# SPDX-License-Identifier: BSD-3-Clause
"""One file written by all ranks at once: each rank puts its own rows at its own byte offset."""

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

#: What a file system without locks says; those with many hosts and no locks (Lustre without `flock`) need none.
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP)
#: Most bytes handed to one write call; Linux moves at most 2**31 - 4096 at a time.
_PIECE = 1 << 30


def rows_before(world: World, rows: int) -> tuple[int, int]:
    """Return (rows of all lower ranks, rows of all ranks)."""
    counts = world.allgather(rows)
    return sum(counts[: world.rank]), sum(counts)


@contextmanager
def all_or_none(world: World) -> Iterator[None]:
    """Make a failure of one rank a failure of all, so that no rank waits for one that has left.

    The block must not call anything collective; after it every rank raises the error of the lowest rank that failed.

    Raises:
        SeicheError: as raised by a rank.
        OSError: as raised by a rank.
        ValueError: as raised by a rank.
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
    first = next((item for item in world.allgather(_portable(error)) if item is not None), None)
    if first is not None:
        raise _rebuilt(*first) from error


def _portable(error: Exception | None) -> tuple[type[Exception], tuple[Any, ...], dict[str, Any]] | None:
    if error is None:
        return None
    # The arguments that `reduce` names include the file of an OSError, which `args` does not.
    kind, arguments, *_ = cast(tuple[Any, ...], error.__reduce__())
    return kind, arguments, dict(vars(error))


def _rebuilt(kind: type[Exception], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> Exception:
    # Exceptions with an __init__ of their own do not survive pickling by themselves.
    error = kind.__new__(kind, *arguments)
    vars(error).update(attributes)
    return error


class ParallelFile(Closing):
    """An existing file that all ranks of `world` write into; opening is collective, the rest is not.

    Nothing of it needs MPI but the agreement on errors, so that any thread may write. Ranks on several hosts lock the
    bytes that they write: a host that holds a copy of a page of the file (NFS) else writes old bytes beside them too.
    Messages call the file `name`, by default `path`.

    Raises:
        OSError: on every rank, if any cannot open or write the file.
    """

    def __init__(self, path: Path, world: World, name: Path | None = None) -> None:
        """Open `path` for writing without truncating it."""
        self.name = name or path
        self._descriptor = -1
        self._locked = world.local_size < world.size
        with all_or_none(world):
            try:
                # Each rank opens for itself: one that fails can close without the others.
                self._descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
            except OSError as error:
                raise OSError(f"{self.name}: cannot be opened for writing: {error.strerror}") from error

    def write(self, offset: int, array: npt.NDArray[Any]) -> None:
        """Write the bytes of `array` (C order) at byte `offset`.

        Raises:
            OSError: the disk refused.
        """
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        try:
            with self._lock(offset, len(data)):
                done = 0
                while done < len(data):
                    done += os.pwrite(self._descriptor, data[done : done + _PIECE], offset + done)
        except OSError as error:
            raise OSError(f"{self.name}: write of {len(data)} bytes at {offset} failed: {error.strerror}") from error

    @contextmanager
    def _lock(self, offset: int, size: int) -> Iterator[None]:
        if not self._locked or not size:
            yield
            return
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX, size, offset)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            self._locked = False
        try:
            yield
        finally:
            if self._locked:
                fcntl.lockf(self._descriptor, fcntl.LOCK_UN, size, offset)

    def force(self) -> None:
        """Return when what this rank wrote is on the disk.

        Raises:
            OSError: the disk refused.
        """
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise OSError(f"{self.name}: cannot be forced to the disk: {error.strerror}") from error

    def close(self) -> None:
        """Close the file on this rank; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
