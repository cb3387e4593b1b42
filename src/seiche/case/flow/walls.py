# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of the [walls] table to lattice units: patches of the wall in spacings, velocities in sites per step."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from seiche.case.flow.schema import FlowCase
from seiche.case.flow.schema_shapes import (
    MovingWallTable,
    PatchTable,
    WallInBox,
    WallInCylinder,
    WallInSphere,
    WallOnPlane,
)
from seiche.case.flow.units import LatticeUnits
from seiche.case.flow.where import in_brackets
from seiche.domain.occupancy import SizedSites
from seiche.domain.sites import LinkKind, SiteSet
from seiche.errors import CaseError
from seiche.flow.model import Body, MovingWall, Patch, Walls
from seiche.flow.velocity_set import VELOCITY_SETS
from seiche.flow.wall_links import ROUNDING, patches_of, velocity_at, wall_points

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

#: Maximum distance (spacings) of wall points from the plane of a patch; adjacent half-way walls are half a spacing
#: away.
ON_PLANE = 0.25


def walls_of(case: FlowCase, units: LatticeUnits) -> Walls:
    """Return the walls of `case` in lattice units."""
    moving = tuple(_moving(table, units.spacing, units.scale("velocity"), units.step) for table in case.walls.moving)
    spacing = units.spacing
    bodies = []
    for table in case.output.force:
        a, b, c = (coordinate / spacing for coordinate in table.center)
        bodies.append(Body(table.name, (a, b, c), None if table.where is None else patch_of(table.where, spacing)))
    return Walls(case.walls.kind, moving, tuple(bodies))


def wall_speeds(case: FlowCase, sites: SiteSet, source: str) -> dict[str, float]:
    """Return the maximum speed (m/s) of each moving wall, by name.

    Raises CaseError for a moving wall or a body of [[output.force]] without links, and for two moving walls that share
    a link.
    """
    if not case.walls.moving and not case.output.force:
        return {}
    spacing = case.geometry.spacing
    columns = VELOCITY_SETS[case.lattice.velocity_set].link_rows
    moving = [_moving(table, spacing, spacing, 1.0) for table in case.walls.moving]
    if isinstance(sites, SizedSites):  # an upper bound: the corners of the box
        corners = np.array(list(np.ndindex(2, 2, 2))) * sites.shape + np.asarray(sites.origin) / spacing
        return {wall.name: spacing * float(np.linalg.norm(velocity_at(wall, corners), axis=1).max()) for wall in moving}
    row, column = np.nonzero(sites.link_kind[:, columns] == LinkKind.WALL)
    positions = wall_points(sites, row, columns[column])
    patches = [(f'walls.moving["{table.name}"]', table.where) for table in case.walls.moving]
    patches += [(f'output.force["{table.name}"]', table.where) for table in case.output.force]
    for key, where in patches:
        if not len(positions):
            raise CaseError(f"{source}: {key}: the geometry has no wall")
        if where is not None and not patch_of(where, spacing)(positions).any():
            low, high = in_brackets(spacing * positions.min(axis=0)), in_brackets(spacing * positions.max(axis=0))
            raise CaseError(
                f"{source}: {key}.where: contains no part of the wall; the wall lies between {low} and {high} m"
            )
    try:
        number = patches_of(moving, positions)
    except CaseError as error:
        raise CaseError(f"{source}: walls.moving: {error}") from None
    speeds = {}
    for k, wall in enumerate(moving):
        velocity = velocity_at(wall, positions[number == k])
        speeds[wall.name] = spacing * float(np.sqrt(np.sum(velocity**2, axis=1)).max())
    return speeds


def _moving(table: MovingWallTable, spacing: float, velocity: float, time: float) -> MovingWall:
    """Return a wall in units of `spacing` (m), `velocity` (m/s) and `time` (s)."""
    x, y, z = (component / velocity for component in table.velocity or (0.0, 0.0, 0.0))
    angular_velocity = np.zeros(3)
    if table.rotation is not None and table.axis is not None:
        angular_velocity = table.rotation * time * np.array(table.axis) / np.linalg.norm(table.axis)
    a, b, c = (coordinate / spacing for coordinate in table.center or (0.0, 0.0, 0.0))
    rotation = (float(angular_velocity[0]), float(angular_velocity[1]), float(angular_velocity[2]))
    patch = None if table.where is None else patch_of(table.where, spacing)
    return MovingWall(table.name, (x, y, z), rotation, (a, b, c), patch)


def patch_of(where: PatchTable, spacing: float) -> Patch:
    """Return the patch that `where` defines, as a function of positions in units of `spacing` (m)."""

    def scaled(point: tuple[float, float, float]) -> Floats:
        return np.array(point) / spacing

    if isinstance(where, WallOnPlane):
        normal = np.array(where.normal) / np.linalg.norm(where.normal)
        return partial(_on_plane, scaled(where.point), normal)
    if isinstance(where, WallInSphere):
        return partial(_in_sphere, scaled(where.center), where.radius / spacing)
    if isinstance(where, WallInCylinder):
        return partial(_in_cylinder, scaled(where.start), scaled(where.end), where.radius / spacing)
    assert isinstance(where, WallInBox)
    return partial(_in_box, scaled(where.low), scaled(where.high))


def _on_plane(point: Floats, normal: Floats, positions: Floats) -> Flags:
    return np.asarray(np.abs((positions - point) @ normal) <= ON_PLANE)


def _in_sphere(center: Floats, radius: float, positions: Floats) -> Flags:
    return np.asarray(np.linalg.norm(positions - center, axis=1) <= radius + ROUNDING)


def _in_cylinder(start: Floats, end: Floats, radius: float, positions: Floats) -> Flags:
    length = float(np.linalg.norm(end - start))
    axis = (end - start) / length
    axial_position = (positions - start) @ axis
    radial_distance = np.linalg.norm(positions - start - axial_position[:, None] * axis, axis=1)
    within = (axial_position >= -ROUNDING) & (axial_position <= length + ROUNDING)
    return np.asarray(within & (radial_distance <= radius + ROUNDING))


def _in_box(low: Floats, high: Floats, positions: Floats) -> Flags:
    return np.asarray(np.all((positions >= low - ROUNDING) & (positions <= high + ROUNDING), axis=1))
