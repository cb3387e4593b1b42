# SPDX-License-Identifier: BSD-3-Clause
"""`seiche render`: pictures and films of cells, waves or fields of a completed run."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from seiche.case.output_targets import FILE_KINDS, check_replaceable_file
from seiche.errors import CaseError, FormatError
from seiche.io.arrays import hdf5_file, values_of
from seiche.io.cell_files import read_list, read_surfaces, wall_path
from seiche.io.surface_file import CellSurfaces

if TYPE_CHECKING:
    from seiche.report.section_figure import SectionStyle

_FIELDS, _CELLS = "[[output.fields]], file = flow.vtkhdf", "[[output.cells]], file = cells.vtkhdf"
_SNAPSHOTS = "[[output.snapshots]], file = waves.h5"
#: What is drawn of each kind of run, and the outputs that contain it; of an unknown kind.
_DRAWN = {
    "flow": ("fields", _FIELDS),
    "blood": ("cells or fields", f"{_CELLS}, or {_FIELDS}"),
    "ultrasound": ("snapshots of the pressure", _SNAPSHOTS),
    "waves": ("snapshots of waves", _SNAPSHOTS),
}
_ANY = "cells, waves or fields", f"{_CELLS}, {_SNAPSHOTS}, or {_FIELDS}"
#: Upper limit of vertex velocities, m/s.
_MAX_SPEED = 1e30


def render(
    run: Path,
    *,
    moving: bool,
    output: Path | None = None,
    every: int = 1,
    series: str | None = None,
    field: str | None = None,
) -> Path:
    """Draw the last state of the cells or fields in the folder `run`, or four of waves, or every `every`-th as a film.

    Cells are drawn if the run has any, then waves, then fields at sites; with `field`, this field. Return the file.

    Raises:
        CaseError: there are no cells, waves or fields, no such field, or `output` has an unknown suffix or would
            replace another file.
        FormatError: a file is not valid.
    """
    from seiche.report.cells_figure import cells_figure, film
    from seiche.report.motion import is_motion, render_motion

    snapshots = [path for path in sorted(run.glob("*.h5")) if series in (None, path.name) and is_motion(path)]
    has_cells = any(run.rglob("*.vtkhdf.series"))
    if snapshots and not has_cells and field is None:
        target = output or snapshots[0].with_suffix(".gif" if moving else ".png")
        _check_name(target, moving)
        render_motion(target, snapshots[0], as_film=moving, frame_interval=every)
        return target
    if (fields := None if has_cells and field is None else _field_series(run, series)) is not None:
        return _render_fields(fields, field, moving=moving, output=output, every=every)
    if field is not None:
        raise CaseError(f"{run}: contains no fields; write them with [[output.fields]], file = flow.vtkhdf")
    source = _series(run, series)
    states = read_list(source)
    if not states:
        raise CaseError(f"{source}: the series contains no states")
    wall: CellSurfaces | None = read_surfaces(wall_path(source)) if wall_path(source).exists() else None
    target = output or source.with_suffix(".gif" if moving else ".png")
    _check_name(target, moving)
    if moving:
        film(target, [partial(_state, path) for path, _ in states[::every]], wall)
    else:
        cells_figure(target, _state(states[-1][0]), wall)
    return target


def _field_series(run: Path, series: str | None) -> Path | None:
    """Return the time series of fields at sites that was written last, or the one with the name `series`."""
    from seiche.report.field_section import is_field_series

    paths = [path for path in run.rglob("*.vtkhdf") if series in (None, path.name)]
    newest_first = sorted(paths, key=lambda path: path.stat().st_mtime_ns, reverse=True)
    return next((path for path in newest_first if is_field_series(path)), None)


def _render_fields(source: Path, field: str | None, *, moving: bool, output: Path | None, every: int) -> Path:
    from seiche.report.field_section import read_field_section, section_film, section_picture

    if output is not None:
        _check_name(output, moving)
    section = read_field_section(source, field, interval=every if moving else 1)
    target = output or source.with_name(f"{source.stem}.{section.name}{'.gif' if moving else '.png'}")
    _check_name(target, moving)
    (section_film if moving else section_picture)(target, section)
    return target


def render_section(
    run: Path, unknown: str, style: SectionStyle, *, output: Path | None = None, moving: bool = False
) -> Path:
    """Draw the record section of an unknown of the receivers in the folder `run`; return the file.

    Raises:
        CaseError: there are no receivers on a line, no such unknown, or `output` has an unknown suffix.
        FormatError: the file is not valid.
    """
    from seiche.report.section_figure import section_figure, section_of

    if moving:
        raise CaseError("--section: a record section is a picture; omit --film")
    sources = [
        path for path in sorted(run.glob("*.h5"), key=lambda path: path.stat().st_mtime_ns) if _has_samples(path)
    ]
    if not sources:
        raise CaseError(f"{run}: contains no seismograms; write them with [output.receivers]")
    source = sources[-1]
    with hdf5_file(source, "no seismograms") as file:
        fields = [name.decode() if isinstance(name, bytes) else str(name) for name in file["field"][:]]
        if unknown not in fields:
            raise CaseError(f"--section {unknown}: the receivers have {', '.join(fields)}")
        times, positions, samples = (values_of(file, name) for name in ("time", "position", "samples"))
    if (
        samples.ndim != 3
        or samples.shape != (len(positions), len(times), len(fields))
        or not np.isfinite(samples).all()
    ):
        raise FormatError(source, "samples", f"of shape {samples.shape} do not match receivers, times and fields")
    traces, unit = samples[:, :, fields.index(unknown)], "m/s" if unknown.startswith("v") else "Pa"
    section = section_of(np.asarray(positions, np.float64), np.asarray(times, np.float64), traces, (unknown, unit))
    if section is None:
        raise CaseError(f"{source}: no record section: the receivers are not on a line, or two are at one position")
    target = output or source.with_name(f"{source.stem}.{unknown}.png")
    _check_name(target, False)
    section_figure(target, section, style)
    return target


def _has_samples(path: Path) -> bool:
    try:
        with hdf5_file(path, "no seismograms") as file:
            return {"samples", "field", "position", "time"} <= set(file)
    except (OSError, FormatError):
        return False


def _state(path: Path) -> CellSurfaces:
    """Return surfaces with vertex velocities; FormatError if the velocities are missing."""
    state = read_surfaces(path)
    velocity = state.on_vertices.get("velocity")
    if velocity is None or velocity.shape != state.vertices.shape or not (np.abs(velocity) < _MAX_SPEED).all():
        raise FormatError(path, "VTKHDF/PointData/velocity", "expected a finite velocity per vertex")
    return state


def _check_name(target: Path, moving: bool) -> None:
    from seiche.report.film import SUFFIXES, ffmpeg

    suffixes = SUFFIXES if moving else (".png", ".pdf", ".svg", ".jpg")
    if target.suffix.lower() not in suffixes:
        product = "film" if moving else "picture"
        raise CaseError(f"--output {target}: expected a {product} with suffix {' or '.join(suffixes)}")
    check_replaceable_file("--output", target, FILE_KINDS.get(target.suffix.lower(), ""))
    if target.suffix.lower() == ".mp4":
        ffmpeg(target)


def _kind_of_run(run: Path) -> str:
    """Return the kind of the run in a folder by its summary, "" if that is unknown."""
    try:
        return str(json.loads((run / "summary.json").read_text(encoding="utf-8"))["solver"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""


def _series(run: Path, name: str | None) -> Path:
    """Return the path of the series to draw: `name`, or the last one written."""
    if not run.is_dir():
        raise CaseError(f"{run}: is not a folder; expected the output folder of a run")
    lists = sorted(run.rglob("*.vtkhdf.series"), key=lambda path: path.stat().st_mtime_ns)
    paths = [path.with_suffix("") for path in lists if name in (None, path.stem)]
    if not paths:
        contents, outputs = _DRAWN.get(_kind_of_run(run), _ANY)
        raise CaseError(
            f"{run}: contains no {f'series {name}' if name is not None else contents}; write them with {outputs}"
        )
    return paths[-1]
