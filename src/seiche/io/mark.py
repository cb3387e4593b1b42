# SPDX-License-Identifier: BSD-3-Clause
"""The mark of Seiche in its HDF5 files: the attribute `program` of the root group, such as "Seiche 0.2.0"."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seiche import __version__

_PROGRAM = "Seiche"


def mark_file(file: Any) -> None:
    """Add the mark to an open HDF5 file."""
    file.attrs["program"] = f"{_PROGRAM} {__version__}"


@contextmanager
def new_hdf5(path: Path, *, libver: str | None = None) -> Iterator[Any]:
    """Create an HDF5 file with the mark.

    Raises:
        OSError: the file cannot be written, also where the HDF5 library reports a full disk in another way.
    """
    import h5py

    try:
        with h5py.File(path, "w", libver=libver, locking=False) as file:
            mark_file(file)
            yield file
    except RuntimeError as error:
        match = re.search(r"errno = (\d+)", str(error))
        number = int(match[1]) if match else errno.EIO
        raise OSError(number, os.strerror(number), str(path)) from None


def is_marked(path: Path) -> bool:
    """Return whether an HDF5 file has the mark; False for a file that cannot be read."""
    import h5py

    try:
        with h5py.File(path, "r", locking=False) as file:
            return str(file.attrs.get("program", "")).startswith(_PROGRAM)
    except OSError:
        return False
