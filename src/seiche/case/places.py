# SPDX-License-Identifier: BSD-3-Clause
"""Where outputs may go: they replace neither what the case reads nor files of other programs."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from seiche.case.output import Place
from seiche.errors import CaseError
from seiche.io.cell_files import is_made_by, list_path
from seiche.io.files import refuse_foreign

#: How files of a kind begin, as `refuse_foreign` reads them.
_BEGINNINGS: dict[str, str | re.Pattern[str]] = {
    "HDF5 file": "\ufffdHDF",
    "summary": "{",
    "trace": "{",
    "list of states": "{",
    "checkpoint": "\ufffdSEICHE",
    "PNG picture": "\ufffdPNG",
    "PDF picture": "%PDF",
    "SVG picture": "<?xml",
    "GIF film": "GIF8",
    "MP4 film": re.compile("....ftyp", re.DOTALL),
    ".pos file": re.compile(r"\d+\s*$"),
    "STL file": re.compile(r"solid|.*[sS]eiche", re.DOTALL),
}
#: Kinds of files by their endings.
KINDS = {
    ".vtkhdf": "HDF5 file",
    ".h5": "HDF5 file",
    ".hdf5": "HDF5 file",
    ".pos": ".pos file",
    ".png": "PNG picture",
    ".pdf": "PDF picture",
    ".svg": "SVG picture",
    ".gif": "GIF film",
    ".mp4": "MP4 film",
}


def kind_of(place: Place) -> str:
    """Return the kind of the file at a place, "" if it is unknown."""
    return place.kind or KINDS.get(place.path.suffix.lower(), "")


def files_at(place: Place) -> dict[Path, str]:
    """Return the kinds of the files at a place: it and, of a series, its states, their parts and their list."""
    path, kind = place.path, kind_of(place)
    found = {path: kind}
    if place.series:
        found |= dict.fromkeys(sorted(path.parent.glob(f"{glob.escape(path.stem)}.*{glob.escape(path.suffix)}")), kind)
        found[list_path(path)] = "list of states"
    return {one: kind for one, kind in found.items() if one.is_file()}


def refuse_foreign_file(key: str, path: Path, kind: str) -> None:
    """Refuse to replace a file at `path`, which `key` names, that is of another kind; an unknown kind is not checked.

    Raises:
        CaseError: it is there and begins otherwise, or cannot be read.
    """
    if kind in _BEGINNINGS:
        present = f"{key}: {path} is there and is no {kind}; give the output another name"
        refuse_foreign(path, _BEGINNINGS[kind], f"{key}: cannot replace {path}", present)


def refuse_places(places: Sequence[Place], inputs: Iterable[Path]) -> None:
    """Refuse places of outputs where no file may or can be written.

    Raises:
        CaseError: an output would replace one of the `inputs` or a file of another kind, or its folder cannot be made
            or written to.
    """
    for message in overwritten(places, inputs):
        raise CaseError(message)
    for place in places:
        key, path = place.key, place.path
        if path.is_dir():
            raise CaseError(f"{key}: {path} is a folder; give the output another name")
        for one, kind in files_at(place).items():
            refuse_foreign_file(key, one, kind)
        _refuse_folder(key, path)


def overwritten(places: Iterable[Place], inputs: Iterable[Path]) -> Iterator[str]:
    """Yield a message for each place, or state of a series there, that is one of the `inputs`."""
    read = sorted({one.resolve() for one in inputs if one.exists()})
    for place in places:
        path = place.path.parent.resolve() / place.path.name
        for one in read:
            if place.path.resolve() == one or (place.series and is_made_by(path, one)):
                yield f"{place.key}: would overwrite {one}, which the case reads; give it another name or folder"


def _refuse_folder(key: str, path: Path) -> None:
    above = next(one for one in path.absolute().parents if one.exists())
    if not above.is_dir():
        raise CaseError(f"{key}: {above} is no folder")
    if not os.access(above, os.W_OK | os.X_OK):
        raise CaseError(f"{key}: the folder {above} cannot be written to")


def make_folders(source: str, folder: Path, places: Sequence[Place]) -> None:
    """Make the folders of all outputs.

    Raises:
        CaseError: one cannot be made.
    """
    made = folder
    try:
        for made in dict.fromkeys((folder, *(place.path.parent for place in places))):
            made.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CaseError(f"{source}: output.folder: cannot make {made}: {error.strerror}") from None
