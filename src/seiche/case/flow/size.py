# SPDX-License-Identifier: BSD-3-Clause
"""Size of a large vessel from formulas or from the volume enclosed by its surface, without creating its sites."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from seiche.case.flow.geometry import (
    FlowVessel,
    box_size,
    build,
    check_node_count,
    check_spacing,
    obstacles_of,
    solid_of,
    surface_and_openings,
)
from seiche.case.flow.openings import match
from seiche.case.flow.rims import planes_of_solid
from seiche.case.flow.schema import FlowCase
from seiche.case.flow.schema_shapes import GENERATED_SURFACES, Channel, Duct, PeriodicBox, TubeShape
from seiche.domain.occupancy import SizedSites
from seiche.domain.shapes import duct_ends, tube_ends
from seiche.domain.sites import IoletPlane, SiteSet
from seiche.errors import CaseError
from seiche.io.files import cause_of

#: Number of sites above which `seiche check` does not create them.
MAX_CREATED_SITES = 50_000
#: Number of sites of a vessel at a larger spacing, in which narrow passages are looked for.
_COARSE_SITES = 25_000


@dataclass(frozen=True)
class _Size:
    """Volume (m^3), area of walls and openings (m^2), sides of the box (m) and openings of a vessel."""

    volume: float
    area: float
    box: Sequence[float]
    periodic: tuple[bool, bool, bool] = (False, False, False)
    iolets: Sequence[IoletPlane] = ()


def sized_vessel(case: FlowCase, folder: Path, source: str) -> FlowVessel | None:
    """Return the vessel of a case without its sites; None if there are few sites or a file lists them.

    Raises CaseError for an invalid geometry and FormatError for an invalid file.
    """
    if case.geometry.gmy is not None:
        return None
    spacing = case.geometry.spacing
    try:
        size = _size(case, folder)
        bodies = [obstacle.measure() for obstacle in obstacles_of(case, folder)]
        volume = max(0.0, size.volume - sum(body for body, _ in bodies))
        count = volume / spacing**3
        if count <= MAX_CREATED_SITES:
            return None
        iolets = match(case, size.iolets)
    except CaseError as error:
        raise CaseError(f"{source}: {error}") from None
    except OSError as error:
        raise CaseError(f"{source}: geometry: {error.filename}: {cause_of(error)}") from None
    nx, ny, nz = (max(1, math.ceil(side / spacing - 1e-6)) for side in size.box)
    sites = SizedSites(
        (nx, ny, nz),
        np.zeros((0, 3), np.int32),
        spacing,
        periodic=size.periodic,
        iolets=iolets,
        count=round(count),
        area=(size.area + sum(surface for _, surface in bodies)) / spacing**2,
        fills=not bodies and isinstance(case.geometry.shape, Duct | Channel | PeriodicBox),
    )
    note = f"about {count:.3g} sites, estimated from the volume of the vessel"
    return FlowVessel(sites, notes=(note,), coarse=_coarse(case, folder, source, (count / _COARSE_SITES) ** (1 / 3)))


def _coarse(case: FlowCase, folder: Path, source: str, factor: float) -> SiteSet | None:
    """Return the sites of the vessel of a surface at `factor` times the spacing; None if they form no vessel."""
    if case.geometry.shape is not None and not isinstance(case.geometry.shape, GENERATED_SURFACES):
        return None
    geometry = case.geometry.model_copy(update={"spacing": factor * case.geometry.spacing})
    try:
        return build(case.model_copy(update={"geometry": geometry}), folder, source).sites
    except CaseError:  # its openings are too small for this spacing
        return None


def _size(case: FlowCase, folder: Path) -> _Size:
    shape, spacing = case.geometry.shape, case.geometry.spacing
    if case.geometry.solid is not None:
        solid = solid_of(case, folder)
        low, high = solid.bounds()
        return _Size(*solid.measure(), (high - low).tolist(), iolets=planes_of_solid(case))
    if shape is None or isinstance(shape, GENERATED_SURFACES):
        surface, planes = surface_and_openings(case, folder)
        loops = surface.boundary_loops()
        box = np.ptp(surface.vertices, axis=0).tolist() if len(surface.vertices) else [0.0, 0.0, 0.0]
        check_node_count(float(np.prod(np.maximum(np.array(box) / spacing, 1.0))))
        area = surface.capped(loops).area
        return _Size(abs(surface.volume), area, box, case.geometry.periodic_axes, planes)
    check_spacing(shape, spacing)
    box = box_size(shape)
    x, y, z = box
    if isinstance(shape, PeriodicBox):
        return _Size(x * y * z, 0.0, box, (True, True, True))
    if isinstance(shape, Channel):
        return _Size(x * y * z, 2.0 * x * y, box, (True, True, False))
    if isinstance(shape, TubeShape):
        section, rim = math.pi * shape.radius**2, 2.0 * math.pi * shape.radius
        ends = () if shape.periodic else tube_ends(shape.radius, shape.length, shape.axis)
        axis = np.abs(shape.axis) / np.linalg.norm(shape.axis)
        box = tuple(x * axis + 2.0 * shape.radius * np.sqrt(1.0 - axis**2))
    else:
        section, rim = y * z, 2.0 * (z if shape.plates else y + z)
        ends = () if shape.periodic else duct_ends(shape.width, shape.height, shape.length)
    axes = [False, False, False]
    axes[2] = isinstance(shape, Duct) and shape.plates
    axes[int(np.argmax(np.abs(shape.axis))) if isinstance(shape, TubeShape) else 0] = shape.periodic
    return _Size(section * x, rim * x + len(ends) * section, box, (axes[0], axes[1], axes[2]), ends)
