# SPDX-License-Identifier: BSD-3-Clause
"""Convert the [geometry] table to a `SiteSet` and, if there is one, its surface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from seiche.case.flow.fit import fitted
from seiche.case.flow.openings import match
from seiche.case.flow.rims import planes_of, read_surface
from seiche.case.flow.schema import FlowCase
from seiche.case.flow.schema_shapes import Bifurcation, Channel, Duct, PeriodicBox, TubeShape
from seiche.domain.links import with_iolets
from seiche.domain.sites import IoletPlane, SiteSet
from seiche.errors import CaseError

if TYPE_CHECKING:
    from seiche.domain.surface import Surface

#: Largest number of lattice nodes of a built-in shape or of the box around a surface.
MOST_SITES = 4_000_000_000


@dataclass(frozen=True)
class FlowVessel:
    """Fluid sites, their surface (None for `.gmy` and analytic shapes), and notes for the user."""

    sites: SiteSet
    surface: Surface | None = None
    notes: tuple[str, ...] = ()


def build(case: FlowCase, folder: Path, source: str) -> FlowVessel:
    """Return the geometry of `case`, whose files are relative to `folder`; `source` begins every message.

    Raises CaseError for an impossible geometry and FormatError for a broken file.
    """
    table = case.geometry
    try:
        if table.gmy is not None:
            vessel = build_from_file(folder / table.gmy, table.spacing, 1.0, table.origin or (0.0, 0.0, 0.0))
        elif table.stl is not None:
            surface = read_surface(folder / table.stl, table.unit or 1.0)
            periodic = ("x" in table.periodic, "y" in table.periodic, "z" in table.periodic)
            planes = planes_of(case, surface.outward())
            vessel = _voxelised(surface, table.spacing, planes, table.origin, periodic)
        else:
            vessel = _from_shape(case)
        if not len(vessel.sites):
            raise CaseError("geometry.spacing: no site is inside the vessel; choose a smaller spacing")
        planes = match(case, vessel.sites.iolets)
        if table.gmy is not None:  # an STL is cut at the planes of the case, and a shape defines its own
            planes, notes = fitted(case, vessel.sites.iolets, planes, table.spacing)
            vessel = replace(vessel, notes=(*vessel.notes, *notes))
        return replace(vessel, sites=with_iolets(vessel.sites, planes))
    except CaseError as error:
        raise CaseError(f"{source}: {error}") from None
    except OSError as error:
        raise CaseError(f"{source}: geometry: {error.filename}: {error.strerror}") from None


def build_from_file(
    path: Path, spacing: float, unit: float, origin: tuple[float, float, float] | None = None
) -> FlowVessel:
    """Return the sites of a `.gmy` file, or of an STL file without openings with coordinates in `unit` metres."""
    if path.suffix.lower() == ".stl":
        return _voxelised(read_surface(path, unit), spacing, (), origin)
    from seiche.io.formats.gmy import read_gmy

    return FlowVessel(read_gmy(path, spacing=spacing, origin=origin or (0.0, 0.0, 0.0)))


def _from_shape(case: FlowCase) -> FlowVessel:
    from seiche.domain import shapes
    from seiche.domain.bifurcation import bifurcation_surface
    from seiche.domain.surface import Surface

    shape, spacing = case.geometry.shape, case.geometry.spacing
    if shape is None:
        raise CaseError("geometry.shape: is missing")
    _refuse_misfit(shape, spacing)
    try:
        if isinstance(shape, TubeShape):
            return FlowVessel(shapes.tube(shape.radius, shape.length, spacing, shape.axis, periodic=shape.periodic))
        if isinstance(shape, Duct):
            return FlowVessel(shapes.duct(shape.width, shape.height, shape.length, spacing, periodic=shape.periodic))
        if isinstance(shape, Channel):
            return FlowVessel(shapes.channel(shape.height, shape.length, shape.width, spacing))
        if isinstance(shape, PeriodicBox):
            nx, ny, nz = (round(size / spacing) for size in shape.size)
            return FlowVessel(shapes.box((nx, ny, nz), spacing))
        keys = ("parent_radius", "daughter_radii", "angles", "sac_radius", "parent_length", "daughter_length")
        sizes = {key: getattr(shape, key) for key in keys if getattr(shape, key) is not None}
        surface, planes = bifurcation_surface(**sizes)
    except CaseError as error:
        raise CaseError(f"geometry.shape: {error}") from None
    # Round to the single precision of STL files, so the written file gives the same sites.
    stored = Surface(surface.vertices.astype(np.float32).astype(np.float64), surface.faces)
    return _voxelised(stored, spacing, planes, None)


def _voxelised(
    surface: Surface,
    spacing: float,
    planes: Sequence[IoletPlane],
    origin: tuple[float, float, float] | None,
    periodic: tuple[bool, bool, bool] = (False, False, False),
) -> FlowVessel:
    from seiche.domain.voxelise import voxelise

    if len(surface.vertices):
        _refuse(float(np.prod(np.maximum(np.ptp(surface.vertices, axis=0) / spacing, 1.0))))
    try:
        sites, report = voxelise(surface, spacing, planes, origin=origin, periodic=periodic)
    except CaseError as error:
        raise CaseError(f"geometry: {error}") from None
    return FlowVessel(sites, surface.outward() if report.turned else surface, tuple(report.lines()))


def _refuse_misfit(shape: TubeShape | Duct | Channel | PeriodicBox | Bifurcation, spacing: float) -> None:
    """Refuse a spacing that is wider than the shape, or too small for the sites to be stored."""
    if isinstance(shape, TubeShape):
        size: tuple[float, ...] = (2.0 * shape.radius, 2.0 * shape.radius, shape.length)
    elif isinstance(shape, Duct | Channel):
        size = (shape.width, shape.height, shape.length)
    elif isinstance(shape, PeriodicBox):
        size = shape.size
    else:
        return
    if spacing > min(size):
        raise CaseError(f"geometry.spacing: {spacing:g} m is wider than the shape, {min(size):g} m")
    _refuse(float(np.prod(size)) / spacing**3)


def _refuse(nodes: float) -> None:
    if not nodes <= MOST_SITES:
        raise CaseError(
            f"geometry.spacing: gives about {nodes:.2g} lattice nodes, more than {MOST_SITES:.0e}; "
            "choose a larger spacing"
        )
