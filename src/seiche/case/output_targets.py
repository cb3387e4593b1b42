# SPDX-License-Identifier: BSD-3-Clause
"""Checks of output targets: outputs replace neither inputs of the case nor files of other programs."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from seiche.case.output import OutputTarget
from seiche.errors import CaseError
from seiche.io.cell_files import is_file_of_series, list_path
from seiche.io.files import check_replaceable, real_path

#: First characters of a file of each kind, for `check_replaceable`.
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
    "extraction file": "hlb!",
    "STL file": re.compile(r"solid|.*[sS]eiche", re.DOTALL),
}
#: Kinds of files by suffix.
FILE_KINDS = {
    **dict.fromkeys((".vtkhdf", ".h5", ".hdf5"), "HDF5 file"),
    **{
        ".pos": ".pos file",
        ".xtr": "extraction file",
        ".off": "extraction file",
        ".gif": "GIF film",
        ".mp4": "MP4 film",
    },
    **{f".{name.lower()}": f"{name} picture" for name in ("PNG", "PDF", "SVG")},
}


def file_kind(target: OutputTarget) -> str:
    """Return the kind of the file of a target, "" if unknown."""
    return target.kind or FILE_KINDS.get(target.path.suffix.lower(), "")


def files_at(target: OutputTarget) -> dict[Path, str]:
    """Return the existing files of a target and their kinds; for a series also states, parts of states and the list."""
    path, kind = target.path, file_kind(target)
    kinds = {path: kind}
    if target.series:
        states = sorted(path.parent.glob(f"{glob.escape(path.stem)}.*{glob.escape(path.suffix)}"))
        kinds |= dict.fromkeys((state for state in states if is_file_of_series(path, state)), kind)
        kinds[list_path(path)] = "list of states"
    return {file: kind for file, kind in kinds.items() if file.is_file()}


def kind_at(target: OutputTarget, path: Path) -> str | None:
    """Return the kind of the file `path` of a target, which may be part of a series; None for another file."""
    if path == target.path:
        return file_kind(target)
    if not target.series or not is_file_of_series(target.path, path):
        return None
    return file_kind(target) if path.suffix == target.path.suffix else "list of states"


def check_replaceable_file(key: str, path: Path, kind: str) -> None:
    """Raise a CaseError if the file `path` of the key `key` exists and has another kind.

    Unknown kinds are not checked.
    """
    if kind in _SIGNATURES:
        message = f"{key}: {path} exists but is not a valid {kind}; choose another output name"
        check_replaceable(path, _SIGNATURES[kind], f"{key}: cannot replace {path}", message)


def check_targets(targets: Sequence[OutputTarget], inputs: Iterable[Path]) -> None:
    """Raise a CaseError if an output would replace an input or a foreign file, or if its folder is not writable."""
    for message in overwritten(targets, inputs):
        raise CaseError(message)
    for target in targets:
        key, path = target.key, target.path
        if path.is_dir():
            raise CaseError(f"{key}: {path} is a folder; choose another output name")
        for file, kind in files_at(target).items():
            check_replaceable_file(key, file, kind)
        parent = next(folder for folder in path.absolute().parents if folder.exists())
        if not parent.is_dir():
            raise CaseError(f"{key}: {parent} is not a folder")
        if not os.access(parent, os.W_OK | os.X_OK):
            raise CaseError(f"{key}: the folder {parent} is not writable")


def check_checkpoint_target(path: Path, inputs: Iterable[Path], targets: Iterable[OutputTarget]) -> None:
    """Raise a CaseError if `path` is an input, the file of one of the `targets`, or a file that is not a checkpoint."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise CaseError(f"checkpoint: {path} is not a regular file; choose another name")
    if not path.absolute().parent.is_dir():
        raise CaseError(f"checkpoint: the folder {path.absolute().parent} does not exist")
    target = OutputTarget("checkpoint", real_path(path), "checkpoint")
    check_distinct_targets([target], [replace(other, path=real_path(other.path)) for other in targets])
    check_targets([OutputTarget("checkpoint", path, "checkpoint")], inputs)


def check_distinct_targets(new: Iterable[OutputTarget], targets: Iterable[OutputTarget]) -> None:
    """Raise a CaseError if one of the `new` targets, or a state of its series, is the file of one of the `targets`."""
    targets = list(targets)
    for target in new:
        for other in targets:
            for series, path in ((target, other.path), (other, target.path)):
                if series.path == path or (series.series and is_file_of_series(series.path, path)):
                    raise CaseError(f"{target.key}: {target.path} is also the file of {other.key}; choose another name")


def overwritten(targets: Iterable[OutputTarget], inputs: Iterable[Path]) -> Iterator[str]:
    """Yield a message for each target that is, or has a state of its series that is, one of the `inputs`."""
    files = sorted({real_path(path) for path in inputs if path.exists()})
    for target in targets:
        path = real_path(target.path.parent) / target.path.name
        for file in files:
            if real_path(target.path) == file or (target.series and is_file_of_series(path, file)):
                yield f"{target.key}: would overwrite {file}, which the case reads; choose another name or folder"


def make_folders(source: str, folder: Path, targets: Sequence[OutputTarget]) -> None:
    """Create the folders of all outputs; CaseError if one cannot be created."""
    path = folder
    try:
        for path in dict.fromkeys((folder, *(target.path.parent for target in targets))):
            path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CaseError(f"{source}: output.folder: cannot create {path}: {error.strerror}") from None
