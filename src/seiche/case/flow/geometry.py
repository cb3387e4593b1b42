# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of the [geometry] table to a `SiteSet` and to a surface, if there is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seiche.case.flow.fit import checked_planes
from seiche.case.flow.openings import match
from seiche.case.flow.rims import in_single_precision, planes_of, planes_of_solid, read_surface, surface_of_file
from seiche.case.flow.schema import FlowCase
from seiche.case.flow.schema_shapes import (
    GENERATED_SURFACES,
    ArteryTree,
    Bifurcation,
    Channel,
    Duct,
    PeriodicBox,
    TubeShape,
)
from seiche.case.solids import body_of
from seiche.domain.links import with_iolets
from seiche.domain.occupancy import SizedSites
from seiche.domain.passages import Passages
from seiche.domain.sites import IoletPlane, SiteSet
from seiche.domain.solids import SolidBody
from seiche.errors import CaseError
from seiche.io.files import cause_of
from seiche.set_up import set_up_stage

if TYPE_CHECKING:
    from seiche.domain.surface import Surface

#: Maximum number of lattice nodes of a built-in shape, most of which are sites.
MAX_NODES = 4_000_000_000


@dataclass(frozen=True)
class FlowVessel:
    """Fluid sites, the surface (None for `.gmy` and analytic shapes), and notes for the user.

    If the sites of the case are only counted, `coarse` contains the sites at a larger spacing.
    """

    sites: SiteSet
    surface: Surface | None = None
    notes: tuple[str, ...] = ()
    coarse: SiteSet | None = None

    @cached_property
    def passages(self) -> Passages | None:
        """Return the narrow passages of the vessel; None if no sites are generated."""
        sites = self.coarse if isinstance(self.sites, SizedSites) else self.sites
        return None if sites is None else Passages(sites)


def build(case: FlowCase, folder: Path, source: str) -> FlowVessel:
    """Return the geometry of `case`; its files are relative to `folder`, and messages begin with `source`.

    Raises CaseError for an invalid geometry and FormatError for an invalid file.
    """
    table = case.geometry
    try:
        if table.gmy is not None:
            vessel = vessel_from_file(folder / table.gmy, table.spacing, 1.0, table.origin or (0.0, 0.0, 0.0))
        elif table.solid is not None:
            vessel = _vessel_from_solid(case, folder)
        elif table.shape is None or isinstance(table.shape, GENERATED_SURFACES):
            surface, cuts = surface_and_openings(case, folder)
            axes, bodies = table.periodic_axes, obstacles_of(case, folder)
            vessel = _voxelise_surface(surface, table.spacing, cuts, table.origin, periodic=axes, obstacles=bodies)
        else:
            vessel = _vessel_from_shape(case, folder)
        if not len(vessel.sites):
            raise CaseError("geometry.spacing: no site is inside the vessel; choose a smaller spacing")
        planes = match(case, vessel.sites.iolets)
        if table.gmy is not None:  # a surface is cut at the planes of the case, and a shape defines its planes
            planes, notes = checked_planes(case, vessel.sites.iolets, planes, table.spacing)
            vessel = replace(vessel, notes=(*vessel.notes, *notes))
        return replace(vessel, sites=with_iolets(vessel.sites, planes))
    except CaseError as error:
        raise CaseError(f"{source}: {error}") from None
    except OSError as error:
        raise CaseError(f"{source}: geometry: {error.filename}: {cause_of(error)}") from None


def surface_and_openings(case: FlowCase, folder: Path) -> tuple[Surface, Sequence[IoletPlane]]:
    """Return the surface (metres) of an STL file, an image or a generated vessel, and the planes of its openings."""
    surface = surface_of_file(case, folder)
    if surface is not None:
        return surface, planes_of(case, surface.outward())
    shape = case.geometry.shape
    assert isinstance(shape, GENERATED_SURFACES)
    try:
        surface, planes = _generated(shape)
    except CaseError as error:
        raise CaseError(f"geometry.shape: {error}") from None
    return in_single_precision(surface), planes


@set_up_stage("voxelise")
def _generated(shape: Bifurcation | ArteryTree) -> tuple[Surface, tuple[IoletPlane, ...]]:
    """Return the surface of a shape and its openings."""
    if isinstance(shape, ArteryTree):
        from seiche.domain.tree_surface import tree_surface

        return tree_surface(shape.radius, shape.outlets, length_ratio=shape.length_ratio, seed=shape.seed)
    keys = ("parent_radius", "daughter_radii", "angles", "sac_radius", "parent_length", "daughter_length")
    return _bifurcation(**{key: value for key in keys if (value := getattr(shape, key)) is not None})


@lru_cache(maxsize=1)
def _bifurcation(**sizes: Any) -> tuple[Surface, tuple[IoletPlane, ...]]:
    """Return the surface and openings of a bifurcation; a check needs them twice, and each takes about a second."""
    from seiche.domain.bifurcation import bifurcation_surface

    return bifurcation_surface(**sizes)


def vessel_from_file(
    path: Path, spacing: float, unit: float, origin: tuple[float, float, float] | None = None
) -> FlowVessel:
    """Return the sites of a `.gmy` file, or of an STL file without openings whose coordinates are in `unit` metres."""
    if path.suffix.lower() == ".stl":
        return _voxelise_surface(read_surface(path, unit), spacing, (), origin)
    from seiche.io.formats.gmy import read_gmy

    return FlowVessel(read_gmy(path, spacing=spacing, origin=origin or (0.0, 0.0, 0.0)))


def solid_of(case: FlowCase, folder: Path) -> SolidBody:
    """Return the body of `geometry.solid`; CaseError if it is infinite or its lattice has too many nodes."""
    table = case.geometry.solid
    assert table is not None
    solid = body_of(table, 3, folder, "geometry.solid")
    low, high = solid.bounds()
    if not np.isfinite(high - low).all():
        raise CaseError("geometry.solid: is infinite; take its intersection with a box or a cylinder")
    check_node_count(float(np.prod(np.maximum((high - low) / case.geometry.spacing, 1.0))))
    return solid


def _vessel_from_solid(case: FlowCase, folder: Path) -> FlowVessel:
    from seiche.domain.shapes import sites_from_distance

    solid, spacing, planes = solid_of(case, folder), case.geometry.spacing, planes_of_solid(case)
    for plane in planes:
        inner, outer = (np.array([plane.center]) + s * 2.0 * spacing * np.array([plane.normal]) for s in (1.0, -1.0))
        if solid.depth(inner)[0] < 0.0 < solid.depth(outer)[0]:
            raise CaseError(f'iolet["{plane.name}"].normal: points out of the fluid; reverse it')
    low, high = solid.bounds()
    obstacles = obstacles_of(case, folder)
    try:
        return FlowVessel(
            sites_from_distance(lambda points: -solid.depth(points), low, high, spacing, planes, obstacles=obstacles)
        )
    except CaseError as error:
        raise CaseError(f"geometry: {error}") from None


def _vessel_from_shape(case: FlowCase, folder: Path) -> FlowVessel:
    from seiche.domain import shapes

    shape, spacing = case.geometry.shape, case.geometry.spacing
    if shape is None:
        raise CaseError("geometry.shape: is missing")
    assert not isinstance(shape, GENERATED_SURFACES)
    check_spacing(shape, spacing)
    options: dict[str, Any] = {"obstacles": obstacles_of(case, folder)}
    if isinstance(shape, TubeShape | Duct):
        options["periodic"] = shape.periodic
    try:
        if isinstance(shape, TubeShape):
            return FlowVessel(shapes.tube(shape.radius, shape.length, spacing, shape.axis, **options))
        if isinstance(shape, Duct):
            size = (shape.width, shape.height, shape.length)
            return FlowVessel(shapes.duct(*size, spacing, plates=shape.plates, **options))
        if isinstance(shape, Channel):
            return FlowVessel(shapes.channel(shape.height, shape.length, shape.width, spacing, **options))
        nx, ny, nz = (round(size / spacing) for size in shape.size)
        return FlowVessel(shapes.box((nx, ny, nz), spacing, **options))
    except CaseError as error:
        key = "geometry" if str(error).startswith("obstacle") else "geometry.shape"
        raise CaseError(f"{key}: {error}") from None


def obstacles_of(case: FlowCase, folder: Path) -> tuple[SolidBody, ...]:
    """Return the solid bodies in the vessel, in metres."""
    tables = enumerate(case.geometry.obstacle)
    return tuple(body_of(table, 3, folder, f"geometry.obstacle[{number}]") for number, table in tables)


def _voxelise_surface(
    surface: Surface,
    spacing: float,
    planes: Sequence[IoletPlane],
    origin: tuple[float, float, float] | None,
    *,
    periodic: tuple[bool, bool, bool] = (False, False, False),
    obstacles: Sequence[SolidBody] = (),
) -> FlowVessel:
    from seiche.domain.voxelise import MAX_NODES as MAX_BOX_NODES
    from seiche.domain.voxelise import voxelise

    if len(surface.vertices):
        nodes = float(np.prod(np.maximum(np.ptp(surface.vertices, axis=0) / spacing, 1.0)))
        check_node_count(nodes, MAX_BOX_NODES)
    try:
        sites, report = voxelise(surface, spacing, planes, origin=origin, periodic=periodic, obstacles=obstacles)
    except CaseError as error:
        raise CaseError(f"geometry: {error}") from None
    if obstacles:  # the wall is that of the sites, since the surface does not include the obstacles
        return FlowVessel(sites, None, tuple(report.lines()))
    return FlowVessel(sites, surface.outward() if report.is_reversed else surface, tuple(report.lines()))


def box_size(shape: TubeShape | Duct | Channel | PeriodicBox) -> tuple[float, float, float]:
    """Return the side lengths (m) of the bounding box of a shape: along its axis, then perpendicular to it."""
    if isinstance(shape, TubeShape):
        return shape.length, 2.0 * shape.radius, 2.0 * shape.radius
    return shape.size if isinstance(shape, PeriodicBox) else (shape.length, shape.width, shape.height)


def check_spacing(shape: TubeShape | Duct | Channel | PeriodicBox, spacing: float) -> None:
    """Raise a CaseError if the spacing exceeds a side of the shape, or requires too many lattice nodes."""
    size = box_size(shape)
    if spacing > min(size):
        raise CaseError(f"geometry.spacing: {spacing:g} m is wider than the shape, {min(size):g} m")
    check_node_count(float(np.prod(size)) / spacing**3)


def check_node_count(nodes: float, limit: int = MAX_NODES) -> None:
    """Raise a CaseError for a lattice with more than `limit` nodes."""
    if not nodes <= limit:
        raise CaseError(
            f"geometry.spacing: gives about {nodes:.2g} lattice nodes, more than {limit:.0e}; choose a larger spacing"
        )
