# SPDX-License-Identifier: BSD-3-Clause
"""Surfaces from files, and their open rims: their assignment to iolets, and a list of them for `seiche check`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from seiche.case.flow.openings import role_of, with_position
from seiche.case.flow.schema import FlowCase
from seiche.case.flow.schema_iolet import Opening
from seiche.case.flow.where import in_brackets
from seiche.case.load import check_tables
from seiche.case.quantities import shorten
from seiche.case.source import CaseFile
from seiche.domain.sharing import shared_surface
from seiche.domain.sites import IoletPlane
from seiche.errors import CaseError, SeicheError
from seiche.set_up import set_up_stage

if TYPE_CHECKING:
    from seiche.domain.surface import Loop, Surface

#: Relative difference between radii below which rims count as equal in size and are ordered by position.
SAME_SIZE = 1e-3


@set_up_stage("read")
def read_surface(path: Path, unit: float) -> Surface:
    """Return the surface in an STL file whose coordinates are in `unit` metres."""
    from seiche.domain.surface import Surface
    from seiche.io.formats.stl import read_stl

    raw = read_stl(path)
    return Surface(np.asarray(raw.vertices) * unit, raw.faces)


def in_single_precision(surface: Surface) -> Surface:
    """Return the surface in the precision of STL files, so that the file written by `convert` has the same sites."""
    from seiche.domain.surface import Surface

    return Surface(surface.vertices.astype(np.float32).astype(np.float64), surface.faces)


def surface_of_file(case: FlowCase, folder: Path) -> Surface | None:
    """Return the surface (metres) of the STL file or the image of a case; None if it has neither."""
    table = case.geometry
    if table.stl is not None:
        return read_surface(folder / table.stl, table.unit or 1.0)
    if table.image is None:
        return None
    image = table.image
    return shared_surface(lambda: in_single_precision(image.surface(folder, table.periodic_axes)))


def rims_of(surface: Surface) -> list[Loop]:
    """Return the open rims, the largest first; rims of equal size are ordered by x, y and z of their centers."""
    loops = [loop for loop in surface.boundary_loops() if any(loop.normal)]
    ordered: list[Loop] = []
    while loops:
        equal = [loop for loop in loops if loop.radius >= loops[0].radius * (1.0 - SAME_SIZE)]
        ordered += sorted(equal, key=lambda loop: loop.center)
        loops = loops[len(equal) :]
    return ordered


def planes_of(case: FlowCase, surface: Surface) -> tuple[IoletPlane, ...]:
    """Return the planes that cut `surface` (metres) open, in the order of the case's iolets.

    An iolet without a center is assigned to an open rim that no other iolet covers: the rim of its name ("rim0",
    "rim1" ... in the order of `rims_of`) or, otherwise, the next rim. Raises CaseError if a position is incomplete or
    the numbers of rims and iolets differ.
    """
    from seiche.domain.voxelise import iolet_of_rim

    planes = {opening.name: _plane(opening) for opening in case.iolet if opening.center is not None}
    without_center = [opening for opening in case.iolet if opening.center is None]
    for opening in without_center:
        if opening.normal is not None:
            raise CaseError(f'iolet["{opening.name}"].center: is missing; a normal requires a center')
    rims = {f"rim{k}": rim for k, rim in enumerate(rims_of(surface))} if without_center else {}
    positioned = list(planes.values())
    free = {name: rim for name, rim in rims.items() if iolet_of_rim(rim, positioned, case.geometry.spacing) < 0}
    by_name = [opening for opening in without_center if opening.name in free]
    planes |= {opening.name: _on_rim(opening, free.pop(opening.name)) for opening in by_name}
    in_order = [opening for opening in without_center if opening.name not in planes]
    if in_order and not rims:
        raise CaseError(
            f'iolet["{in_order[0].name}"].center: is missing; the surface has no open rim, so center, normal and '
            "radius are required"
        )
    for opening in in_order:
        if re.fullmatch(r"rim[0-9]+", opening.name):
            names = _shortened(", ".join(free) or "none")
            raise CaseError(
                f'iolet["{opening.name}"].name: no unassigned open rim has this name; unassigned are {names}'
            )
    if in_order and len(in_order) != len(free):
        listed = ", ".join(f"{name} of radius {rim.radius:.3g} m at {_center(rim)} m" for name, rim in free.items())
        raise CaseError(
            f"iolet: {_count(len(in_order), 'iolet')} ({', '.join(shorten(o.name)[1:-1] for o in in_order[:5])}) "
            f"without a center, but {_count(len(free), 'unassigned open rim')} ({_shortened(listed) or 'none'}); set "
            "the center of each iolet, or use the name of its rim"
        )
    planes |= {opening.name: _on_rim(opening, rim) for opening, rim in zip(in_order, free.values(), strict=False)}
    return tuple(planes[opening.name] for opening in case.iolet)


def rim_lines(source: CaseFile, schema: type[FlowCase]) -> list[str]:
    """Return one line for each open rim of the surface of a case, and tables for rims without an iolet.

    The list is empty for a case without open rims, and for a case with errors, which are reported elsewhere.
    """
    from seiche.domain.voxelise import iolet_of_rim

    try:
        case = check_tables(source.tables, str(source.path), schema)
        surface = surface_of_file(case, source.folder)
        if surface is None:
            return []
        surface = surface.outward()
    except (SeicheError, OSError):
        return []
    rims = rims_of(surface)
    try:
        planes = planes_of(case, surface)
        owners = [iolet_of_rim(rim, planes, case.geometry.spacing) for rim in rims]
    except CaseError:
        owners = [-1] * len(rims)
    lines, proposals = [], []
    for k, (rim, index) in enumerate(zip(rims, owners, strict=True)):
        normal = in_brackets(round(-value, 6) for value in rim.normal)
        owner = f'iolet "{planes[index].name}"' if index >= 0 else "no iolet"
        lines.append(f"rim{k}: center {_center(rim)} m, normal {normal} inwards, radius {rim.radius:.4g} m, {owner}")
        if index < 0:
            proposals += ["", "[[iolet]]", f'name = "rim{k}"', 'kind = "pressure"', 'pressure = "0 mmHg"']
    return [*lines, *(["tables for the rims without an iolet:", *proposals, ""] if proposals else [])]


def planes_of_solid(case: FlowCase) -> tuple[IoletPlane, ...]:
    """Return the planes that cut the body of a case; CaseError if a position is incomplete."""
    return tuple(_plane(opening) for opening in case.iolet)


def _plane(opening: Opening) -> IoletPlane:
    for key in ("center", "normal", "radius"):
        if getattr(opening, key) is None:
            raise CaseError(
                f'iolet["{opening.name}"].{key}: is missing; a closed surface requires center, normal and radius'
            )
    return with_position(IoletPlane(opening.name, role_of(opening), (0, 0, 0), (0, 0, 0)), opening)


def _on_rim(opening: Opening, rim: Loop) -> IoletPlane:
    x, y, z = (-value for value in rim.normal)
    plane = IoletPlane(opening.name, role_of(opening), rim.center, (x, y, z), rim.radius)
    return plane if opening.radius is None else replace(plane, radius=opening.radius)


def _center(rim: Loop) -> str:
    resolution = (
        1e-5 * rim.radius
    )  # smaller values are rounding errors of single precision, which would be printed as 1e-19
    return in_brackets(round(value / resolution) * resolution for value in rim.center)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _shortened(text: str) -> str:
    return text if len(text) <= 400 else text[:397] + "..."
