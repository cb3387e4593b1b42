# SPDX-License-Identifier: BSD-3-Clause
"""`seiche convert`: convert a case (TOML, HemeLB XML), `.gmy`, `.gmy+` or STL file to another geometry file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from seiche.case.flow.geometry import FlowVessel, build, vessel_from_file
from seiche.case.flow.rims import read_surface
from seiche.case.flow.schema import FlowCase
from seiche.case.flow.wall import wall_surface
from seiche.case.kinds import kind_of
from seiche.case.load import check_tables, read_source
from seiche.case.quantities import parse_quantity, shorten
from seiche.domain.sites import SiteSet
from seiche.errors import CaseError

if TYPE_CHECKING:
    from seiche.domain.surface import Surface

READABLE = (".toml", ".xml", ".gmy", ".gmy+", ".stl")
WRITABLE = (".gmy", ".gmy+", ".vtkhdf", ".stl")
GMY = (".gmy", ".gmy+")
CASES = (".toml", ".xml")


def convert(
    source: Path, target: Path, *, spacing: str | None = None, unit: str | None = None, force: bool = False
) -> str:
    """Convert the file `source` to `target`, by their suffixes, and return a line that describes the result.

    `spacing` ("0.1 mm") is required to voxelise an STL file and sets the scale of a `.gmy` file (1 m by default).
    `unit` is the length of one unit of an STL file. Raises CaseError for an unsupported conversion and, without
    `force`, if `target` exists; FormatError for an invalid file.
    """
    if source.suffix.lower() not in READABLE:
        raise CaseError(f"{source}: cannot convert from {shorten(source.suffix)}; expected {', '.join(READABLE)}")
    if target.suffix.lower() not in WRITABLE:
        raise CaseError(f"{target}: cannot convert to {shorten(target.suffix)}; expected {', '.join(WRITABLE)}")
    if target.exists() and not force:
        raise CaseError(f"{target}: exists already; add --force to replace it")
    ending = target.suffix.lower()
    try:
        if source.suffix.lower() in GMY and ending in GMY:
            return _copy_gmy(source, target, spacing)
        if source.suffix.lower() == ".stl" and ending == ".stl":
            return _write_surface(target, read_surface(source, _length("--unit", unit) if unit else 1.0))
        if source.suffix.lower() in CASES and ending in GMY:
            table = _case(source).geometry
            if table.gmy is not None:
                return _copy_gmy(source.parent / table.gmy, target, spacing)
        vessel = _read(source, spacing, unit)
        if ending == ".stl":
            return _write_surface(target, vessel.surface if vessel.surface is not None else wall_surface(vessel.sites))
        if ending in GMY:
            from seiche.io.formats.gmy import write_gmy

            write_gmy(target, vessel.sites, weights="sites" if ending == ".gmy+" else None)
        else:
            _write_sites(target, vessel.sites)
    except OSError as error:
        name = str(error.filename or target)  # the target has a temporary name until it is complete
        name = str(target) if name.startswith(str(target)) else name
        raise CaseError(f"{name}: {error.strerror or error}") from None
    return f"{target}: {len(vessel.sites):,} sites"


def _case(path: Path) -> FlowCase:
    source = read_source(path)
    case = check_tables(source.tables, str(path), kind_of(source).schema)
    if not isinstance(case, FlowCase):
        raise CaseError(f'{path}: the case has no vessel to convert; expected a case with solver = "flow" or "blood"')
    return case


def _read(source: Path, spacing: str | None, unit: str | None) -> FlowVessel:
    if source.suffix.lower() in CASES:
        return build(_case(source), source.parent, str(source))
    if source.suffix.lower() in GMY:
        return vessel_from_file(source, _length("--spacing", spacing or "1 m"), 1.0)
    if spacing is None:
        raise CaseError(f'{source}: voxelising an STL file requires --spacing, such as "0.1 mm"')
    distance = _length("--spacing", spacing)
    if unit is None:
        raise CaseError(f'{source}: the length unit of an STL file is unknown; add --unit, such as "1 mm"')
    return vessel_from_file(source, distance, _length("--unit", unit))


def _copy_gmy(source: Path, target: Path, spacing: str | None) -> str:
    """Copy sites, blocks, normals and weights unchanged; a copy in the same format is identical to the file."""
    from seiche.io.formats.gmy import read_gmy, read_gmy_header, write_gmy

    header = read_gmy_header(source)
    sites = read_gmy(source, spacing=_length("--spacing", spacing or "1 m"), orient=False)
    weights = header.weights if header.weights is not None else "sites"
    with_weights = target.suffix.lower() == ".gmy+"
    write_gmy(target, sites, header.block, level=header.level, weights=weights if with_weights else None)
    return f"{target}: {len(sites):,} sites"


def _length(option: str, text: str) -> float:
    try:
        value = parse_quantity(text, dimension="length")
    except ValueError as error:
        raise CaseError(f"{option}: {error}") from None
    if value <= 0:
        raise CaseError(f"{option}: {shorten(text)} is out of range; expected > 0")
    return value


def _write_surface(target: Path, surface: Surface) -> str:
    from seiche.io.formats.stl import write_stl

    write_stl(target, surface)
    return f"{target}: {len(surface.faces):,} triangles"


def _write_sites(target: Path, sites: SiteSet) -> None:
    """Write one voxel per site with the field `kind`, the highest of its links: 0 inside, 1 wall, 2 inlet, 3 outlet."""
    from seiche.domain.world import World
    from seiche.io.fields import FieldSeries, VoxelCells

    kind = np.zeros(len(sites))
    kind[sites.boundary] = sites.link_kind.max(axis=1)
    cells = VoxelCells(sites.shape, sites.coords, sites.spacing, sites.origin)
    with FieldSeries(target, World.serial(), cells, {"kind": 1}, 1) as series:
        series.write(0.0, {"kind": kind})
