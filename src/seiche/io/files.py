# SPDX-License-Identifier: BSD-3-Clause
"""Atomic replacement of files: write a temporary file, sync it to the disk, then rename it."""

from __future__ import annotations

import errno
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from seiche.errors import CaseError

#: Maximum number of characters of a first line that are read.
_MAX_LINE = 200


class Closing(ABC):
    """A context manager that is closed at the end of its `with` block."""

    @abstractmethod
    def close(self) -> None:
        """Close it; a second call does nothing."""

    def __enter__(self) -> Self:
        """Return this object."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


def part_path(path: Path) -> Path:
    """Return the temporary name for `path`, in the same folder; OSError if it is a symbolic link."""
    part = path.with_name(path.name + ".part")
    if part.is_symlink():
        raise OSError(errno.ELOOP, "is a symbolic link, which is not followed: remove it", str(part))
    return part


def real_path(path: Path) -> Path:
    """Return the absolute path without symbolic links; unlike `Path.resolve`, a loop of links is not an error."""
    return Path(os.path.realpath(path))


def sync_folder(folder: Path) -> None:
    """Sync the entries of `folder` to the disk; a rename then survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename(part: Path, path: Path, size: int | None = None) -> Path:
    """Rename the complete and synced file `part` to `path`, replacing an existing file; return `path`."""
    del size
    part.replace(path)
    sync_folder(path.parent)
    return path


class Publisher(Protocol):
    """A function that renames a complete and synced file to its final name, or to another one."""

    def __call__(self, part: Path, path: Path, size: int | None = None) -> Path:
        """Rename `part` and return its final name; later writes may change the bytes beyond the first `size`."""
        ...


_PUBLISHER: ContextVar[Publisher] = ContextVar("_PUBLISHER", default=rename)


def publish(part: Path, path: Path, size: int | None = None) -> Path:
    """Rename the complete and synced file `part` to `path` and return its final name.

    An existing file is replaced, unless the publisher of a run keeps it (`publishing`). Later writes may change the
    bytes beyond the first `size`, by default none.
    """
    return _PUBLISHER.get()(part, path, size)


def publisher() -> Publisher:
    """Return the publisher of this thread, by default `rename`."""
    return _PUBLISHER.get()


@contextmanager
def publishing(function: Publisher) -> Iterator[None]:
    """Publish all files in the block, and in threads with a copy of its context, through `function`."""
    token = _PUBLISHER.set(function)
    try:
        yield
    finally:
        _PUBLISHER.reset(token)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary name in the folder of `path`; publish it if the block succeeds, else remove it.

    ```python
    with replacing("summary.json") as part:
        part.write_text(text)
    ```

    Raises:
        OSError: the folder does not exist or is not writable.
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


def check_replaceable(
    path: str | os.PathLike[str], first_characters: str | re.Pattern[str], read_error: str, message: str
) -> None:
    """Raise CaseError if there is a file at `path` that does not begin with `first_characters`.

    These are a text, or a pattern for the first line.

    Raises CaseError: `read_error` if the file cannot be read, `message` if it begins differently.
    """
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            start = file.read(len(first_characters)) if isinstance(first_characters, str) else file.readline(_MAX_LINE)
    except FileNotFoundError:
        return
    except OSError as error:
        raise CaseError(f"{read_error}: {error.strerror}") from None
    if not (start == first_characters if isinstance(first_characters, str) else first_characters.match(start)):
        raise CaseError(message)


def cause_of(error: OSError) -> str:
    """Return why a file cannot be opened; for a file in a missing folder this is the name of the folder."""
    folder = Path(os.fsdecode(error.filename)).parent if isinstance(error.filename, str | bytes) else Path()
    if isinstance(error, FileNotFoundError) and not folder.is_dir():
        return f"there is no folder {folder}"
    return error.strerror or str(error)


def check_output_folder(path: str | os.PathLike[str]) -> None:
    """Raise CaseError if the folder of `path` does not exist or is not writable."""
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise CaseError(f"{path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise CaseError(f"{path}: the folder {folder} is not writable")
