# SPDX-License-Identifier: BSD-3-Clause
"""Surfaces that move and change in number, such as cells: one VTKHDF file for each state, and a list of them.

The list is ParaView's `.series` (JSON). It contains complete files only.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from seiche.errors import FormatError
from seiche.io.arrays import hdf5_file, values_of
from seiche.io.background import FunctionJob, Job
from seiche.io.files import replacing
from seiche.io.surface_file import BOX, CellSurfaces

_LIST_VERSION = "1.0"
#: Bound of the coordinates of a vertex (m).
_MAX_COORDINATE = 1e30


def read_surfaces(path: str | os.PathLike[str]) -> CellSurfaces:
    """Read a file of `write_surfaces`; FormatError for a file of another kind, OSError for one that cannot be read."""
    with hdf5_file(path, "no surfaces of cells") as file:
        groups = [f"VTKHDF/{name}" for name in ("PointData", "CellData")]
        points, triangles = ({name: values_of(file, f"{group}/{name}") for name in file[group]} for group in groups)
        vertices = np.asarray(values_of(file, "VTKHDF/Points"), np.float64)
        faces = values_of(file, "VTKHDF/Polygons/Connectivity").reshape(-1, 3)
        time = float(values_of(file, "VTKHDF/Steps/Values")[0])
        box = np.asarray(file.attrs[BOX]) if BOX in file.attrs else None
    if vertices.ndim != 2 or vertices.shape[1] != 3 or not (np.abs(vertices) < _MAX_COORDINATE).all():
        raise FormatError(path, "VTKHDF/Points", f"not three coordinates below {_MAX_COORDINATE:g} m for each vertex")
    if faces.dtype.kind not in "iu" or (len(faces) and not 0 <= faces.min() <= faces.max() < len(vertices)):
        raise FormatError(path, "VTKHDF/Polygons/Connectivity", "a triangle has a vertex that does not exist")
    for group, arrays, rows in zip(groups, (points, triangles), (len(vertices), len(faces)), strict=True):
        for name, values in arrays.items():
            if values.ndim == 0 or len(values) != rows or values.dtype.kind not in "fiu":
                raise FormatError(path, f"{group}/{name}", f"not numbers in {rows} rows")
    if box is not None and (box.shape != (2, 3) or box.dtype.kind != "f" or not (box[0] < box[1]).all()):
        raise FormatError(path, BOX, "not the lower and upper end of three axes")
    return CellSurfaces(time, vertices, faces, points, triangles, box)


def list_path(path: Path) -> Path:
    """Return the name of the list of the states of `path`."""
    return path.with_name(f"{path.name}.series")


def wall_path(path: Path) -> Path:
    """Return the name of the file with the vessel wall of the states of `path`."""
    return path.with_name(f"{path.stem}.wall{path.suffix}")


def state_path(path: Path, step: int) -> Path:
    """Return the name of the file with the state of `path` at a step."""
    return path.with_name(f"{path.stem}.{step:09d}{path.suffix}")


def continued(path: Path, step: int) -> Path:
    """Return the name of the series of a run continued from a step; 0 is the beginning."""
    return path.with_stem(f"{path.stem}.from-{step}") if step else path


def step_of(path: PurePath, file: PurePath) -> int | None:
    """Return the step in the name `file` of a state of `path`, of all types or of one; None for another file."""
    match = re.fullmatch(rf"{re.escape(path.stem)}\.(\d{{9,}})(\..+)?{re.escape(path.suffix)}", file.name)
    return int(match[1]) if match and file.parent == path.parent else None


def is_file_of_series(path: PurePath, file: PurePath) -> bool:
    """Return whether `file` is a file name of the series `path`: a state, its list or the vessel wall.

    The `.from-STEP` names of continued runs are included.
    """
    names = [file]
    if base_name := re.sub(r"\.from-\d+(?=\.)", "", file.name):
        names.append(file.with_name(base_name))
    has_list = path.suffix.lower() != ".pos"
    other_files = (f"{path.name}.series", f"{path.stem}.wall{path.suffix}") if has_list else ()
    return file.parent == path.parent and any(
        step_of(path, candidate) is not None or candidate.name in other_files for candidate in names
    )


def read_list(path: Path) -> list[tuple[Path, float]]:
    """Return (file, time) of the states of `path`, in the order of the list.

    Raises FormatError for a file of another kind or an entry outside its folder, OSError if it cannot be read.
    """
    source = list_path(path)
    try:
        entries = json.loads(source.read_text(encoding="utf-8"))["files"]
        states = [(str(entry["name"]), float(entry["time"])) for entry in entries]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise FormatError(source, "whole file", "not a list of states") from None
    for name, _ in states:
        if not name or Path(name).name != name:
            raise FormatError(source, name or "an empty name", "is outside the folder")
    return [(path.with_name(name), time) for name, time in states]


class SurfaceFiles:
    """The states of surfaces over time.

    Args:
        path: name of the series; a state is stored as `NAME.STEP.ENDING` in the same folder.
        earlier_states: names and times of states of the run that this one continues; None: no list is written.
    """

    def __init__(self, path: Path, earlier_states: list[tuple[Path, float]] | None = None) -> None:
        """Prepare the series; nothing is written."""
        self.path, self.steps = path, 0
        self._entries = earlier_states

    def state(self, step: int, time: float, job: Job) -> Job:
        """Return the job that writes `state_path(path, step)` by `job`, then adds the state to the list."""
        path = state_path(self.path, step)

        def commit(stored: list[Any]) -> None:
            job.commit(stored)
            self._add_to_list(path, time)

        def finish(complete: bool) -> None:
            job.finish(complete)
            self.steps += complete

        return FunctionJob(job.store, commit, finish)

    def _add_to_list(self, path: Path, time: float) -> None:
        """Add a complete state to the list."""
        if self._entries is None:
            return
        self._entries = [(file, entry_time) for file, entry_time in self._entries if file != path] + [(path, time)]
        entries = [{"name": file.name, "time": entry_time} for file, entry_time in self._entries]
        with replacing(list_path(self.path)) as temporary:
            temporary.write_text(json.dumps({"file-series-version": _LIST_VERSION, "files": entries}), encoding="utf-8")

    def close(self) -> None:
        """Do nothing: every file is closed when it is complete."""

    reopen = close
