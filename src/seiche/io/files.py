# SPDX-License-Identifier: BSD-3-Clause
"""Replace a file only by a complete one: write beside it, force it to the disk, then rename."""

from __future__ import annotations

import errno
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from seiche.errors import CaseError

#: Characters of a first line that are looked at.
_LINE = 200


class Closing(ABC):
    """What is closed at the end of a `with` block."""

    @abstractmethod
    def close(self) -> None:
        """Close it; a second call does nothing."""

    def __enter__(self) -> Self:
        """Return what is open."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


def part_path(path: Path) -> Path:
    """Return the name under which the next `path` is written: same folder, so that the rename is atomic.

    Raises:
        OSError: a symbolic link has that name, which might lead to any other file.
    """
    part = path.with_name(path.name + ".part")
    if part.is_symlink():
        raise OSError(errno.ELOOP, "is a symbolic link, which is not followed: remove it", str(part))
    return part


def sync_folder(folder: Path) -> None:
    """Force the names in `folder` to the disk, so that a rename survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def publish(part: Path, path: Path) -> None:
    """Give the complete and synced file `part` the name `path`, replacing what had it."""
    part.replace(path)
    sync_folder(path.parent)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary name beside `path`; publish it if the block succeeds, remove it if not.

    ```python
    with replacing("summary.json") as part:
        part.write_text(text)
    ```

    Raises:
        OSError: the folder is not there or not writable.
    """
    final = Path(path)
    part = part_path(final)
    try:
        yield part
        with part.open("rb+") as stream:
            os.fsync(stream.fileno())
        publish(part, final)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def refuse_foreign(path: str | os.PathLike[str], begin: str | re.Pattern[str], reading: str, present: str) -> None:
    """Refuse to replace a file at `path` that does not begin with `begin`, as those that are written there do.

    A pattern is one for the first line.

    Raises:
        CaseError: `reading` if the file cannot be read, `present` if it is another one.
    """
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            found = file.read(len(begin)) if isinstance(begin, str) else file.readline(_LINE)
    except FileNotFoundError:
        return
    except OSError as error:
        raise CaseError(f"{reading}: {error.strerror}") from None
    if not (found == begin if isinstance(begin, str) else begin.match(found)):
        raise CaseError(present)


def refuse_folder(path: str | os.PathLike[str]) -> None:
    """Refuse a file that cannot be written because its folder is not there, or nobody may write in it.

    Raises:
        CaseError: so it is.
    """
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise CaseError(f"{path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise CaseError(f"{path}: nothing can be written in the folder {folder}")
