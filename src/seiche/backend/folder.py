# SPDX-License-Identifier: BSD-3-Clause
"""The folder in which compiled kernels and plans of transforms are kept between runs.

What lies in it is executed. So it must belong to the user and be writable by nobody else, and a file counts only with
its digest beside it: a file that was cut off, damaged or put there by something else is made again.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from seiche.errors import BackendUnavailable


def cache_folder() -> Path:
    """Return where compiled kernels are kept: SEICHE_CACHE, else the user's cache folder."""
    base = os.environ.get("SEICHE_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "seiche"
    )
    return Path(base)


def kept(path: Path, make: Callable[[Path], object]) -> Path:
    """Return `path`, a file of the cache, which `make` writes unless it is there and whole.

    Raises:
        BackendUnavailable: the folder belongs to another user or can be written by others.
        OSError: the folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    refuse_shared(path.parent)
    digest = path.with_name(path.name + ".sha256")
    if not _whole(path, digest):
        write_whole(path, make)
        text = _digest(path)
        write_whole(digest, lambda part: part.write_text(text))
    return path


def refuse_shared(folder: Path) -> None:
    """Refuse a folder in which another user could place a library that this one would run.

    Raises:
        BackendUnavailable: whose it is, or who may write there.
    """
    found = folder.stat()
    if found.st_uid != os.geteuid():
        reason = f"belongs to user {found.st_uid}"
    elif found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        reason = "can be written by other users (chmod go-w)"
    else:
        return
    raise BackendUnavailable(
        f"{folder}: {reason}, so compiled kernels in it cannot be trusted; set SEICHE_CACHE to a folder of your own"
    )


def _whole(path: Path, digest: Path) -> bool:
    try:
        return digest.read_text() == _digest(path)
    except (OSError, UnicodeDecodeError):
        return False


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_whole(path: Path, make: Callable[[Path], object]) -> None:
    """Have `make` write a file under a temporary name, then rename it: several ranks may fill the cache at once.

    Its content is on the disk before its name is, so that a crash of the machine leaves no file that is cut off.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
        part = Path(file.name)
    try:
        make(part)
        with part.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
