# SPDX-License-Identifier: BSD-3-Clause
"""`seiche render`: pictures and films of the cells or waves that a run has written."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from seiche.case.places import KINDS, refuse_foreign_file
from seiche.errors import CaseError, FormatError
from seiche.io.cell_files import CellSurfaces, read_list, read_surfaces, wall_path

#: No vertex is as fast (m/s).
_FASTEST = 1e30


def render(run: Path, *, moving: bool, output: Path | None = None, every: int = 1, series: str | None = None) -> Path:
    """Draw the last state of the cells or waves in the folder `run`, or a film of every `every`-th; return the file.

    Raises:
        CaseError: neither there, a name with an ending that is none of a picture or a film, or that of another file.
        FormatError: a broken file.
    """
    from seiche.report.cells_figure import cells_figure, film
    from seiche.report.waves_figures import is_motion, render_motion

    snapshots = [path for path in sorted(run.glob("*.h5")) if series in (None, path.name) and is_motion(path)]
    if snapshots and not any(run.rglob("*.vtkhdf.series")):
        target = output or snapshots[0].with_suffix(".gif" if moving else ".png")
        _check_name(target, moving)
        render_motion(target, snapshots[0], moving=moving, every=every)
        return target
    source = _series(run, series)
    states = read_list(source)
    if not states:
        raise CaseError(f"{source}: no state of the cells is there")
    wall: CellSurfaces | None = read_surfaces(wall_path(source)) if wall_path(source).exists() else None
    target = output or source.with_suffix(".gif" if moving else ".png")
    _check_name(target, moving)
    if moving:
        film(target, [partial(_state, path) for path, _ in states[::every]], wall)
    else:
        cells_figure(target, _state(states[-1][0]), wall)
    return target


def _state(path: Path) -> CellSurfaces:
    """Return surfaces whose vertices have velocities; FormatError if they have none."""
    state = read_surfaces(path)
    velocity = state.on_vertices.get("velocity")
    if velocity is None or velocity.shape != state.vertices.shape or not (np.abs(velocity) < _FASTEST).all():
        raise FormatError(path, "VTKHDF/PointData/velocity", "not the velocity of each vertex")
    return state


def _check_name(target: Path, moving: bool) -> None:
    from seiche.report.film import ENDINGS, ffmpeg

    endings = ENDINGS if moving else (".png", ".pdf", ".svg", ".jpg")
    if target.suffix.lower() not in endings:
        what = "a film" if moving else "a picture"
        raise CaseError(f"--output {target}: {what} ends with {' or '.join(endings)}")
    refuse_foreign_file("--output", target, KINDS.get(target.suffix.lower(), ""))
    if target.suffix.lower() == ".mp4":
        ffmpeg(target)


def _series(run: Path, name: str | None) -> Path:
    """Return the name of the series to draw, the one written last where there are several."""
    if not run.is_dir():
        raise CaseError(f"{run}: is not the folder of a run")
    lists = sorted(run.rglob("*.vtkhdf.series"), key=lambda path: path.stat().st_mtime_ns)
    found = [path.with_suffix("") for path in lists]
    if name is not None:
        found = [path for path in found if path.name == name]
    if not found:
        wanted = f"series {name}" if name is not None else "cells or waves"
        raise CaseError(
            f"{run}: holds no {wanted}; a case writes them with [[output.cells]], file = cells.vtkhdf, or with"
            " [[output.snapshots]], file = waves.h5"
        )
    return found[-1]
