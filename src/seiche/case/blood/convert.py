# SPDX-License-Identifier: BSD-3-Clause
"""`seiche convert config.xml case.toml`: a HemoCell case becomes a case file."""

from __future__ import annotations

from pathlib import Path

from seiche.case.blood.cells import undeformed_mesh
from seiche.case.blood.hemocell import ConvertedCase, read_hemocell
from seiche.case.blood.positions import placed_cells
from seiche.case.blood.schema import BloodCase
from seiche.case.flow.geometry import build
from seiche.case.flow.schema import FlowCase
from seiche.case.load import check_tables
from seiche.case.toml_text import toml_text
from seiche.cells.space import FluidSpace
from seiche.domain.surface import Surface
from seiche.errors import CaseError, FormatError
from seiche.io.files import cause_of, replacing
from seiche.io.formats.stl import write_stl

_HEADER = "# Converted by seiche convert from {}. Check it before a run: seiche check {}\n"


def convert_hemocell(
    source: Path, target: Path, *, spacing: str | None = None, unit: str | None = None, force: bool = False
) -> str:
    """Write the case file `target` (.toml) of the HemoCell case `source` (config.xml); return lines that describe it.

    `spacing` and `unit` are rejected, since the case states its lengths. Raises CaseError for an unsupported
    conversion and, without `force`, if a file to be written exists; FormatError for an invalid file.
    """
    if source.suffix.lower() != ".xml":
        raise CaseError(f"{target}: {source.name}: only a HemoCell config.xml can be converted to a .toml file")
    for option, value in (("--spacing", spacing), ("--unit", unit)):
        if value is not None:
            raise CaseError(f"{option}: is not allowed for a HemoCell case, which contains its lengths")
    surface_file = target.with_name(f"{target.stem}-vessel.stl")
    case = read_hemocell(source, target.parent, surface_file.name)
    if case.surface is not None and surface_file.resolve() == case.stl.resolve():
        raise CaseError(f"{surface_file}: would replace the surface of the case; choose another name for {target}")
    written = [target, surface_file] if case.surface is not None else [target]
    for path in written:
        if path.exists() and not force:
            raise CaseError(f"{path}: exists already; add --force to replace it")
    schema = BloodCase if case.tables["solver"] == "blood" else FlowCase
    checked = check_tables(case.tables, str(source), schema)
    try:
        if case.surface is not None:
            write_stl(surface_file, Surface(1e6 * case.surface.vertices, case.surface.faces))
        notes = [_one_line(note) for note in (*case.notes, *_dropped(checked, target))]
        comments = "".join(f"#   {note}\n" for note in notes)
        with replacing(target) as temporary:
            header = _HEADER.format(_one_line(source.name), _one_line(target.name))
            temporary.write_text(f"{header}{comments}{toml_text(case.tables)}", encoding="utf-8")
    except OSError as error:
        raise CaseError(f"{target}: cannot be written: {cause_of(error)}") from None
    return "\n".join([_summary(target, case), *(f"note: {note}" for note in notes)])


def _summary(target: Path, case: ConvertedCase) -> str:
    names = ", ".join(table["name"] for table in case.tables.get("cells", ()))
    return f"{target}: a case of {case.tables['solver']}" + (f" with {names}" if names else "")


def _one_line(text: str) -> str:
    """Return `text` as it may be in a comment: names of files may contain any character."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _dropped(case: FlowCase, target: Path) -> list[str]:
    """Return notes on the cells outside the vessel, which a run drops as HemoCell does.

    A cell is dropped if a vertex is outside. HemoCell also drops cells with a vertex within
    `setMinimumDistanceFromSolid` of a wall.
    """
    if not isinstance(case, BloodCase):
        return []
    try:
        vessel = build(case, target.parent, str(target))
        space = FluidSpace(vessel.sites)
    except (CaseError, FormatError) as error:
        return [f"cells outside the vessel were not counted: {error}"]
    notes = []
    for table in case.cells:
        mesh = undeformed_mesh(table, target.parent)
        scaled = Surface(mesh.vertices / case.geometry.spacing, mesh.faces)
        inside = placed_cells(table, scaled, scaled, vessel, space, folder=target.parent).inside
        count = len(inside) - int(inside.sum())
        notes.append(f"{table.name}: {count} of {len(inside)} cells are not inside the vessel; a run drops them")
    return notes
