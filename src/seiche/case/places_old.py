# SPDX-License-Identifier: BSD-3-Clause
"""Where outputs may go, looked at before a run begins: they replace neither inputs nor files of others."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from seiche.errors import CaseError
from seiche.io.files import refuse_foreign

#: How files of a kind begin, as `refuse_foreign` reads them.
_BEGINNINGS: dict[str, str | re.Pattern[str]] = {
    "HDF5 file": "\ufffdHDF",
    "summary": "{",
    "checkpoint": "\ufffdSEICHE",
    "PNG picture": "\ufffdPNG",
    "GIF film": "GIF8",
    "MP4 film": re.compile("....ftyp", re.DOTALL),
    ".pos file": re.compile(r"\d+\s*$"),
}
#: Kinds of files by their endings.
KINDS = {
    ".vtkhdf": "HDF5 file",
    ".pos": ".pos file",
    ".png": "PNG picture",
    ".gif": "GIF film",
    ".mp4": "MP4 film",
}


def refuse_stranger(key: str, path: Path, kind: str) -> None:
    """Refuse to replace a file at `path`, which `key` names, that is none of its kind, where kinds can be told.

    Raises:
        CaseError: it is there and begins otherwise, or cannot be read.
    """
    if kind in _BEGINNINGS:
        present = f"{key}: {path} is there and is no {kind}; give the output another name"
        refuse_foreign(path, _BEGINNINGS[kind], f"{key}: cannot replace {path}", present)


def refuse_places(places: Mapping[str, tuple[Path, str]], inputs: Iterable[Path]) -> None:
    """Refuse places of outputs, by the keys that name them, where no file of its kind may or can be written.

    Raises:
        CaseError: an output would replace one of the `inputs` or a file of another kind, or its folder cannot be made
            or written to.
    """
    read = [one for one in inputs if one.exists()]
    for key, (path, kind) in places.items():
        if path.is_dir():
            raise CaseError(f"{key}: {path} is a folder")
        if path.exists() and any(path.samefile(one) for one in read):
            raise CaseError(f"{key}: {path} is read by this case; give the output another name")
        refuse_stranger(key, path, kind)
        above = next(one for one in path.absolute().parents if one.exists())
        if not above.is_dir():
            raise CaseError(f"{key}: {above} is no folder")
        if not os.access(above, os.W_OK | os.X_OK):
            raise CaseError(f"{key}: the folder {above} cannot be written to")
