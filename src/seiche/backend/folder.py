# SPDX-License-Identifier: BSD-3-Clause
"""Cache folder of compiled kernels and plans of transforms.

Its files are executed. Therefore the folder must belong to the user and must not be writable by others, and each file
is accompanied by its digest. A truncated, damaged or unknown file is built again.
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
    """Return the cache folder: SEICHE_CACHE, otherwise `seiche` in the user's cache folder."""
    if override := os.environ.get("SEICHE_CACHE"):
        return Path(override)
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "seiche"


def cached_file(path: Path, write: Callable[[Path], object]) -> Path:
    """Return `path`, a file of the cache; `write` writes it unless it exists and matches its digest.

    Raises:
        BackendUnavailable: the folder belongs to another user or can be written by others.
        OSError: the folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    check_private(path.parent)
    digest = path.with_name(path.name + ".sha256")
    if not _matches(path, digest):
        write_atomically(path, write)
        text = _digest(path)
        write_atomically(digest, lambda path: path.write_text(text))
    return path


def check_private(folder: Path) -> None:
    """Reject a folder in which another user could place a library.

    Raises:
        BackendUnavailable: the folder belongs to another user, or others may write to it.
    """
    status = folder.stat()
    if status.st_uid != os.geteuid():
        reason = f"is owned by user {status.st_uid}"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        reason = "is writable by other users (chmod go-w)"
    else:
        return
    raise BackendUnavailable(
        f"{folder}: {reason}, so compiled kernels in it cannot be trusted; set SEICHE_CACHE to a folder of your own"
    )


def _matches(path: Path, digest: Path) -> bool:
    try:
        return digest.read_text() == _digest(path)
    except (OSError, UnicodeDecodeError):
        return False


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` write a file under a temporary name, then rename it, since several ranks may write it concurrently.

    The content is flushed to disk before the renaming, so a system crash leaves no truncated file.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
        temporary = Path(file.name)
    try:
        write(temporary)
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
