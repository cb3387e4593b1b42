# SPDX-License-Identifier: BSD-3-Clause
"""Picture of a run: velocity in a plane and wall shear stress at one time, flow rates over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
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
from seiche.report.display_units import display_unit
from seiche.report.plane_panel import SliceEnd

#: Ratio of the sides of a slice above which its longer side is drawn to the right.
_ELONGATED = 1.8
#: Fraction of the wall that is seen from the front, below which it is drawn rotated.
_EDGE_ON = 0.1
#: Smallest component in the plane of the normal of an opening that is drawn.
_IN_PLANE = 0.5


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
    plane = plane_slice(data.coords, data.velocity, sites.spacing, normal=axis, index=index)
    first = np.asarray(sites.origin)[[plane.column_axis, plane.row_axis]]
    plane = replace(
        plane,
        origin=(float(first[0]) + plane.origin[0], float(first[1]) + plane.origin[1]),
        ends=_slice_ends(sites, plane.column_axis, plane.row_axis, sites.origin[axis] + sites.spacing * index),
    )
    if plane.values.shape[0] > _ELONGATED * plane.values.shape[1]:
        plane = plane.transposed()
    scale, unit = display_unit(float(np.nanmax(plane.values)), "m/s")
    vectors = None if plane.vectors is None else scale * plane.vectors
    plane = replace(plane, values=scale * plane.values, vectors=vectors, label=f"speed ({unit})")
    stress = np.linalg.norm(data.stress, axis=1) if data.stress.ndim == 2 else data.stress
    scale, unit = display_unit(float(np.percentile(stress, 99)), "Pa")
    label, (view, up) = f"wall shear stress ({unit})", plane.front()
    corners = data.vertices[data.faces]
    areas = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    if np.abs(areas @ np.asarray(view)).sum() < _EDGE_ON * np.linalg.norm(areas, axis=1).sum():
        view, up = plane.view()
    surface = DrawnSurface(data.vertices, data.faces, scale * stress, label, view=view, up=up)
    flow = None
    if record.times and len(sites.iolets):
        rates = np.stack(record.flows)
        flow = FlowHistory(np.asarray(record.times), {p.name: rates[:, k] for k, p in enumerate(sites.iolets)})
    vessel_figure(path, plane=plane, surface=surface, flow=flow, time=data.time)
    return True


def _slice_ends(sites: SiteSet, column_axis: int, row_axis: int, height: float) -> list[SliceEnd]:
    """Return the openings and periodic ends that meet the plane at `height` (m) along the third axis."""
    axes, normal_axis, ends = [column_axis, row_axis], 3 - column_axis - row_axis, []
    for plane in sites.iolets:
        normal, center = np.asarray(plane.normal), np.asarray(plane.center)
        inside = normal[axes]
        length = float(np.linalg.norm(inside))
        radius = np.inf if plane.radius is None else plane.radius
        # The line in which the planes meet, at the point nearest to the center of the opening.
        shift = height - center[normal_axis]
        if length > _IN_PLANE and abs(shift) / length < radius:
            point = center[axes] - shift * normal[normal_axis] / length**2 * inside
            x, y = inside / length
            ends.append(SliceEnd((float(point[0]), float(point[1])), (float(x), float(y)), float(radius)))
    for number, axis in enumerate(axes):
        if sites.periodic[axis]:
            for end, sign in ((-0.5, 1.0), (sites.shape[axis] - 0.5, -1.0)):
                center, normal = np.zeros(2), np.zeros(2)
                center[number], normal[number] = sites.origin[axis] + sites.spacing * end, sign
                ends.append(SliceEnd((float(center[0]), float(center[1])), (float(normal[0]), float(normal[1]))))
    return ends
