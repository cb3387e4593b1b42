# SPDX-License-Identifier: BSD-3-Clause
"""Picture of an ultrasound case before it runs: sound speed in planes, sources, sensors and the absorbing layer."""

from __future__ import annotations

import numpy as np

from seiche.case.ultrasound.places import inner_box
from seiche.case.ultrasound.points import Floats
from seiche.case.ultrasound.setup import UltrasoundSetup
from seiche.report.case_figure import CasePicture, Group, PicturePanel, planes_of


def ultrasound_picture(setup: UltrasoundSetup) -> CasePicture:
    """Return the picture of a case; panels are planes through the middle of the sources."""
    grid, problem = setup.grid, setup.problem
    positions = [grid.positions(axis) for axis in grid.axes]
    groups = [
        Group(f"source {number}", _points(setup, source.points), ".") for number, source in enumerate(problem.sources)
    ]
    if problem.initial_pressure is not None:
        strong = np.flatnonzero(np.abs(problem.initial_pressure) > 0.1 * float(np.abs(problem.initial_pressure).max()))
        groups.append(Group("initial pressure", _points(setup, strong), "."))
    center = np.concatenate([group.points for group in groups]).mean(axis=0) if groups else np.zeros(len(positions))
    if setup.sensor.positions is not None:
        groups.append(Group("sensors", np.asarray(setup.sensor.positions, np.float64), "x"))
    elif setup.request.nodes is not None:
        groups.append(Group("sensors", _points(setup, np.unique(setup.request.nodes)), "."))
    elif setup.sensor.mask is not None:
        numbers = np.nonzero(np.asarray(setup.sensor.mask))
        groups.append(Group("sensors", np.stack([x[k] for x, k in zip(positions, numbers, strict=True)], 1), "."))
    speed = np.broadcast_to(np.asarray(setup.medium.sound_speed, np.float64), grid.shape)
    panels = []
    for across, along in planes_of(len(grid.shape)):
        index: list[slice | int] = [int(np.argmin(np.abs(x - m))) for x, m in zip(positions, center, strict=True)]
        index[across] = index[along] = slice(None)
        values = np.atleast_2d(speed[tuple(index)].T)
        extent = (positions[across][0], positions[across][-1], positions[along][0], positions[along][-1])
        hidden = [axis for axis in range(len(grid.shape)) if axis not in (across, along)]
        title = ", ".join(f"{grid.axes[a]} = {positions[a][index[a]] * 1e3:.4g} mm" for a in hidden)
        panels.append(PicturePanel(values, across, along, extent, title))
    return CasePicture(setup.title, "sound speed", "m/s", panels, groups, [("absorbing layer", inner_box(setup))])


def _points(setup: UltrasoundSetup, flat: Floats | np.ndarray) -> Floats:
    """Return the positions (n, dim) in metres of points of the problem, which includes layers outside the grid."""
    numbers = np.unravel_index(np.asarray(flat, np.int64), setup.problem.shape)
    grid = setup.grid
    starts = [grid.positions(axis)[0] for axis in grid.axes]
    before = [added[0] for added in setup.layers.outside]
    columns = [
        start + (number - first) * step
        for start, number, first, step in zip(starts, numbers, before, grid.spacings, strict=True)
    ]
    return np.stack(columns, axis=1)
