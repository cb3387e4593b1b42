# SPDX-License-Identifier: BSD-3-Clause
"""The folder in which compiled kernels and plans of transforms are kept between runs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def cache_folder() -> Path:
    """Return where compiled kernels are kept: SEICHE_CACHE, else the user's cache folder."""
    base = os.environ.get("SEICHE_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "seiche"
    )
    return Path(base)


def write_whole(path: Path, make: Callable[[Path], object]) -> None:
    """Have `make` write a file under a temporary name, then rename it: several ranks may fill the cache at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
        part = Path(file.name)
    try:
        make(part)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
