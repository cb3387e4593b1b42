# SPDX-License-Identifier: BSD-3-Clause
"""The view of blood in progress: outlines of the cells in a plane, hematocrits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.case.blood.run import BloodRun, CellStatistics
from seiche.case.blood.series import on_surface, periodic_box
from seiche.case.flow.live import FlowView
from seiche.cells.loop import limit_matrix
from seiche.cells.mesh import rings_of
from seiche.domain.sites import SiteSet
from seiche.report.field_panel import cuts
from seiche.report.live_page import LiveCurves, LiveSlice
from seiche.report.periodic_images import image_shifts

Floats = npt.NDArray[np.float64]

#: Largest number of lines that a rank sends.
_MAX_LINES = 20_000


def cell_slice(run: BloodRun, view: FlowView, points: int) -> LiveSlice | None:
    """Return the speed in a plane with the outlines of the cells; each rank sends those of its cells (collective)."""
    sites, own_lines = run.setup.vessel.sites, []
    box = periodic_box(sites)
    for kind, vertices in zip(run.cells.types, run.blood.own_vertices(), strict=True):
        faces = kind.mesh.faces
        matrix = limit_matrix(rings_of(faces)) if kind.model.shell == "loop" else None
        cells = _in_box(sites, on_surface(matrix, vertices)) * sites.spacing + np.asarray(sites.origin)
        if box is not None and len(cells):
            bodies, shifts = image_shifts(cells.min(axis=1), cells.max(axis=1), box)
            cells = cells[bodies] + shifts[:, None]
        height = cells[:, :, view.normal] - view.height
        crossing = cells[(height.min(axis=1, initial=0.0) < 0) & (height.max(axis=1, initial=0.0) > 0)]
        corners = crossing[:, faces].reshape(-1, 3, 3)
        lines = cuts(corners, view.normal, view.height)
        own_lines.append(lines if view.axes[0] < view.axes[1] else lines[:, :, ::-1])
    gathered = run.solver.world.gather(np.concatenate(own_lines)[:_MAX_LINES].astype(np.float32))
    return view.slice(points, None if gathered is None else np.concatenate(gathered))


def _in_box(sites: SiteSet, vertices: Floats) -> Floats:
    """Return cells (n, v, 3) of a periodic lattice, in lattice units, moved into its box."""
    lengths = np.where(sites.periodic, sites.shape, 0)
    center = vertices.mean(axis=1, keepdims=True)
    return np.asarray(vertices - lengths * np.floor(center / np.where(lengths > 0, lengths, np.inf)))


def hematocrit_curves(statistics: CellStatistics) -> list[LiveCurves]:
    """Return the hematocrit of the vessel and those of the reservoirs."""
    series: dict[str, list[float | None]] = {"vessel": list(statistics.hematocrits)}
    series |= {name: list(values) for name, values in statistics.open_series.items() if "hematocrit" in name}
    times = statistics.times
    for values in series.values():  # series of an opening may begin later
        values[:0] = [None] * (len(times) - len(values))
    return [LiveCurves("hematocrit", "1", list(times), series)]
