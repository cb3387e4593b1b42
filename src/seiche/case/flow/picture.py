# SPDX-License-Identifier: BSD-3-Clause
"""Picture of a run: velocity in a plane and wall shear stress at one time, flow rates over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.case.flow.monitor import Record
from seiche.case.flow.setup import FlowSetup
from seiche.case.flow.values import si_fields
from seiche.case.flow.wall import Wall
from seiche.domain.sites import LinkKind, SiteSet
from seiche.flow.model import VelocityIolet
from seiche.flow.solver import FlowSolver


@dataclass(frozen=True, eq=False)
class PictureData:
    """Data of the picture at `time` (s), on rank 0: velocity at the sites of a plane, and stress on the wall."""

    time: float
    coords: npt.NDArray[np.int32]
    velocity: npt.NDArray[np.float64]
    vertices: npt.NDArray[np.float64] | None
    faces: npt.NDArray[np.int64] | None
    stress: npt.NDArray[np.float64] | None


def picture_step(setup: FlowSetup, last: int) -> int:
    """Return the step to draw: that of the largest inflow in the last period before `last`, or `last` itself."""
    inlets = [iolet for iolet in setup.model.iolets if isinstance(iolet, VelocityIolet) and iolet.harmonics]
    if not inlets:
        return last
    period, ramp = inlets[0].period, inlets[0].ramp
    steps = np.arange(max(1, int(last - period) + 1), last + 1)
    flow = np.full(len(steps), inlets[0].mean)
    for k, harmonic in enumerate(inlets[0].harmonics, start=1):
        flow += np.real(harmonic * np.exp(2j * np.pi * k * steps / period))
    return int(steps[np.argmax(flow * np.minimum(1.0, steps / max(ramp, 1.0)))])


def middle_plane(sites: SiteSet) -> tuple[int, int]:
    """Return (axis, index) of the lattice plane through the middle of the shortest side of the vessel."""
    low, high = sites.coords.min(axis=0), sites.coords.max(axis=0)
    axis = int(np.argmin(high - low))
    return axis, int(low[axis] + high[axis] + 1) // 2


def capture(setup: FlowSetup, solver: FlowSolver, wall_of: Callable[[], Wall]) -> PictureData | None:
    """Return the data of the current step on rank 0; None on other ranks (collective)."""
    world, sites = solver.world, setup.vessel.sites
    has_wall = bool((sites.link_kind == LinkKind.WALL).any())
    values = si_fields(solver, setup.units, ("velocity", "wall_shear_stress") if has_wall else ("velocity",))
    axis, index = middle_plane(sites)
    owned = sites.coords[solver.owned]
    inside = owned[:, axis] == index
    planes = world.gather((owned[inside], values["velocity"][inside]))
    walls: list[Any] | None = None
    if has_wall:
        wall = wall_of()
        walls = world.gather((wall.vertices, wall.faces, wall.sample(world, values["wall_shear_stress"])))
    if planes is None:
        return None
    coords, velocity = (np.concatenate(parts) for parts in zip(*planes, strict=True))
    time = solver.step * setup.dt
    if walls is None:
        return PictureData(time, coords, velocity, None, None, None)
    starts = np.cumsum([0] + [len(vertices) for vertices, _, _ in walls])
    triangles = [faces.astype(np.int64) + first for (_, faces, _), first in zip(walls, starts, strict=False)]
    vertices, stress = np.concatenate([wall[0] for wall in walls]), np.concatenate([wall[2] for wall in walls])
    return PictureData(time, coords, velocity, vertices, np.concatenate(triangles), stress)


def draw(path: Path, sites: SiteSet, data: PictureData, record: Record) -> bool:
    """Draw `data` and the flow rates of `record` to `path`; return False for a vessel without a wall.

    Raises OSError if the file cannot be written.
    """
    from seiche.report.figures import DrawnSurface, FlowHistory, plane_slice, vessel_figure

    if data.vertices is None or data.faces is None or data.stress is None:
        return False
    axis, index = middle_plane(sites)
    column_axis, row_axis = (a for a in range(3) if a != axis)
    extent = np.ptp(data.coords, axis=0)
    if extent[column_axis] > extent[row_axis]:
        column_axis, row_axis = row_axis, column_axis
    unit = np.eye(3)
    # The surface is shown like the slice: the axis `column_axis` to the right, the axis `row_axis` upwards.
    view = unit[axis] * np.sign(np.cross(unit[row_axis], unit[axis]) @ unit[column_axis])
    flow = None
    if record.times and len(sites.iolets):
        rates = np.stack(record.flows)
        flow = FlowHistory(np.asarray(record.times), {p.name: rates[:, k] for k, p in enumerate(sites.iolets)})
    x, y, z = (float(c) for c in view)
    right, up, front = (float(c) for c in unit[row_axis])
    vessel_figure(
        path,
        plane=plane_slice(data.coords, data.velocity, sites.spacing, normal=axis, index=index),
        surface=DrawnSurface(data.vertices, data.faces, data.stress, view=(x, y, z), up=(right, up, front)),
        flow=flow,
        time=data.time,
    )
    return True
