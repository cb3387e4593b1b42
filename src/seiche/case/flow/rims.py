# SPDX-License-Identifier: BSD-3-Clause
"""Iolets of an STL surface found as its open rims, and what `seiche check` says of the rims."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from seiche.case.flow.openings import placed, role_of
from seiche.case.flow.schema import FlowCase
from seiche.case.flow.schema_iolet import Opening
from seiche.case.flow.surfaces import read_surface
from seiche.case.load import check_tables
from seiche.case.quantities import shorten
from seiche.case.source import CaseFile
from seiche.domain.sites import IoletPlane
from seiche.errors import CaseError, FormatError

if TYPE_CHECKING:
    from seiche.domain.surface import Loop, Surface

#: Rims whose radii differ by less than this share are of one size: their place decides which comes first.
SAME_SIZE = 1e-3


def rims_of(surface: Surface) -> list[Loop]:
    """Return the open rims, the largest first and those of one size by x, y and z of their centers."""
    loops = [loop for loop in surface.boundary_loops() if any(loop.normal)]
    ordered: list[Loop] = []
    while loops:
        equal = [loop for loop in loops if loop.radius >= loops[0].radius * (1.0 - SAME_SIZE)]
        ordered += sorted(equal, key=lambda loop: loop.center)
        loops = loops[len(equal) :]
    return ordered


def planes_of(case: FlowCase, surface: Surface) -> tuple[IoletPlane, ...]:
    """Return the planes that cut `surface` (metres) open, as the case orders its iolets.

    An iolet without a center takes an open rim that no other covers: the rim of its name ("rim0", "rim1" ... as
    `rims_of` orders them), or else the iolets take the rims in order. Raises CaseError when a place is incomplete or
    the numbers of rims and iolets differ.
    """
    from seiche.domain.voxelise import iolet_of_rim

    given = {opening.name: _given(opening) for opening in case.iolet if opening.center is not None}
    lost = [opening for opening in case.iolet if opening.center is None]
    if not lost:
        return tuple(given[opening.name] for opening in case.iolet)
    for opening in lost:
        if opening.normal is not None:
            raise CaseError(f'iolet["{opening.name}"].center: is missing; a normal is given without its place')
    rims = {f"rim{k}": rim for k, rim in enumerate(rims_of(surface))}
    planes = list(given.values())
    free = {name: rim for name, rim in rims.items() if iolet_of_rim(rim, planes, case.geometry.spacing) < 0}
    found = {opening.name: _on_rim(opening, free.pop(opening.name)) for opening in lost if opening.name in free}
    rest = [opening for opening in lost if opening.name not in found]
    if not rims:
        raise CaseError(
            f'iolet["{rest[0].name}"].center: is missing; the STL surface has no open rim, so center, normal and '
            "radius are needed"
        )
    for opening in rest:
        if re.fullmatch(r"rim[0-9]+", opening.name):
            known = ", ".join(free) or "none"
            raise CaseError(f'iolet["{opening.name}"].name: no open rim of this name is free; there are {_cut(known)}')
    if len(rest) != len(free) and rest:
        listed = ", ".join(f"{name} of radius {rim.radius:.3g} m at {_place(rim)} m" for name, rim in free.items())
        raise CaseError(
            f"iolet: {_count(len(rest), 'iolet')} ({', '.join(shorten(o.name)[1:-1] for o in rest[:5])}) without a "
            f"center for {_count(len(free), 'open rim')} ({_cut(listed) or 'all are taken'}); give each its center, "
            "or the name of its rim"
        )
    found |= {opening.name: _on_rim(opening, rim) for opening, rim in zip(rest, free.values(), strict=False)}
    return tuple((given | found)[opening.name] for opening in case.iolet)


def rim_lines(source: CaseFile, schema: type[FlowCase]) -> list[str]:
    """Return what the open rims of the STL surface of a case are, and tables for those without an iolet.

    Nothing for a case without open rims, or one that cannot be read: what is wrong with it is said elsewhere.
    """
    from seiche.domain.voxelise import iolet_of_rim

    try:
        case = check_tables(source.tables, str(source.path), schema)
        if case.geometry.stl is None:
            return []
        surface = read_surface(source.folder / case.geometry.stl, case.geometry.unit or 1.0)
    except (CaseError, FormatError, OSError):
        return []
    try:
        planes: tuple[IoletPlane, ...] = planes_of(case, surface)
        taken = [iolet_of_rim(rim, planes, case.geometry.spacing) for rim in rims_of(surface)]
    except CaseError:
        planes = ()
        taken = [-1] * len(rims_of(surface))
    lines, proposals = [], []
    for k, (rim, index) in enumerate(zip(rims_of(surface), taken, strict=True)):
        x, y, z = (round(-value, 6) + 0.0 for value in rim.normal)
        owner = f'iolet "{planes[index].name}"' if index >= 0 else "no iolet"
        lines.append(f"rim{k}: center {_place(rim)} m, normal ({x:.4g}, {y:.4g}, {z:.4g}) into the fluid, ")
        lines[-1] += f"radius {rim.radius:.4g} m, {owner}"
        if index < 0:
            proposals += ["", "[[iolet]]", f'name = "rim{k}"', 'kind = "pressure"', 'pressure = "0 mmHg"']
    return [*lines, *(["tables for the rims without an iolet:", *proposals, ""] if proposals else [])]


def _given(opening: Opening) -> IoletPlane:
    for key in ("normal", "radius"):
        if getattr(opening, key) is None:
            raise CaseError(
                f'iolet["{opening.name}"].{key}: is missing; an STL surface does not say which way and how wide a '
                "center opens it, so center, normal and radius are needed together"
            )
    return placed(IoletPlane(opening.name, role_of(opening), (0, 0, 0), (0, 0, 0)), opening)


def _on_rim(opening: Opening, rim: Loop) -> IoletPlane:
    x, y, z = (-value for value in rim.normal)
    plane = IoletPlane(opening.name, role_of(opening), rim.center, (x, y, z), rim.radius)
    return plane if opening.radius is None else replace(plane, radius=opening.radius)


def _place(rim: Loop) -> str:
    grain = 1e-5 * rim.radius  # below it is noise of single precision, which would print as 1e-19
    return "(" + ", ".join(f"{round(value / grain) * grain:.4g}" for value in rim.center) + ")"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _cut(text: str) -> str:
    return text if len(text) <= 400 else text[:397] + "..."
