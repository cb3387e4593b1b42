# SPDX-License-Identifier: BSD-3-Clause
"""Checks of output paths: outputs replace neither inputs of the case nor files of other programs."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from seiche.case.output import Place
from seiche.errors import CaseError
from seiche.io.cell_files import is_file_of_series, list_path
from seiche.io.files import check_replaceable

#: First characters of files by kind, for `check_replaceable`.
_SIGNATURES: dict[str, str | re.Pattern[str]] = {
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
#: Kinds of files by suffix.
FILE_KINDS = {
    **dict.fromkeys((".vtkhdf", ".h5", ".hdf5"), "HDF5 file"),
    **{".pos": ".pos file", ".gif": "GIF film", ".mp4": "MP4 film"},
    **{f".{name.lower()}": f"{name} picture" for name in ("PNG", "PDF", "SVG")},
}


def file_kind(place: Place) -> str:
    """Return the kind of the file at a place, "" if unknown."""
    return place.kind or FILE_KINDS.get(place.path.suffix.lower(), "")


def files_at(place: Place) -> dict[Path, str]:
    """Return the kinds of existing files at a place; for a series also its states, their parts and their list."""
    path, kind = place.path, file_kind(place)
    kinds = {path: kind}
    if place.series:
        states = sorted(path.parent.glob(f"{glob.escape(path.stem)}.*{glob.escape(path.suffix)}"))
        kinds |= dict.fromkeys((state for state in states if is_file_of_series(path, state)), kind)
        kinds[list_path(path)] = "list of states"
    return {file: kind for file, kind in kinds.items() if file.is_file()}


def check_replaceable_file(key: str, path: Path, kind: str) -> None:
    """Raise a CaseError if `path`, named by `key`, exists and has another kind; unknown kinds are not checked."""
    if kind in _SIGNATURES:
        message = f"{key}: {path} exists but is not a valid {kind}; choose another output name"
        check_replaceable(path, _SIGNATURES[kind], f"{key}: cannot replace {path}", message)


def refuse_places(places: Sequence[Place], inputs: Iterable[Path]) -> None:
    """Raise a CaseError if an output would replace an input or another file, or its folder is not writable."""
    for message in overwritten(places, inputs):
        raise CaseError(message)
    for place in places:
        key, path = place.key, place.path
        if path.is_dir():
            raise CaseError(f"{key}: {path} is a folder; choose another output name")
        for file, kind in files_at(place).items():
            check_replaceable_file(key, file, kind)
        parent = next(folder for folder in path.absolute().parents if folder.exists())
        if not parent.is_dir():
            raise CaseError(f"{key}: {parent} is not a folder")
        if not os.access(parent, os.W_OK | os.X_OK):
            raise CaseError(f"{key}: the folder {parent} is not writable")


def refuse_checkpoint(path: Path, inputs: Iterable[Path]) -> None:
    """Raise a CaseError if a checkpoint at `path` would replace an input or a file that is no checkpoint."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise CaseError(f"checkpoint: {path} is not a regular file; choose another name")
    if not path.absolute().parent.is_dir():
        raise CaseError(f"checkpoint: the folder {path.absolute().parent} does not exist")
    refuse_places([Place("checkpoint", path, "checkpoint")], inputs)


def refuse_shared(new: Iterable[Place], places: Iterable[Place]) -> None:
    """Raise a CaseError if one of the `new` places, or a state of a series there, is one of the `places`."""
    places = list(places)
    for place in new:
        for other in places:
            for series, path in ((place, other.path), (other, place.path)):
                if series.path == path or (series.series and is_file_of_series(series.path, path)):
                    raise CaseError(f"{place.key}: {place.path} is also the place of {other.key}; choose another name")


def overwritten(places: Iterable[Place], inputs: Iterable[Path]) -> Iterator[str]:
    """Yield a message for each place, or state of a series there, that is one of the `inputs`."""
    files = sorted({path.resolve() for path in inputs if path.exists()})
    for place in places:
        path = place.path.parent.resolve() / place.path.name
        for file in files:
            if place.path.resolve() == file or (place.series and is_file_of_series(path, file)):
                yield f"{place.key}: would overwrite {file}, which the case reads; choose another name or folder"


def make_folders(source: str, folder: Path, places: Sequence[Place]) -> None:
    """Create the folders of all outputs; CaseError if one cannot be created."""
    path = folder
    try:
        for path in dict.fromkeys((folder, *(place.path.parent for place in places))):
            path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CaseError(f"{source}: output.folder: cannot create {path}: {error.strerror}") from None
