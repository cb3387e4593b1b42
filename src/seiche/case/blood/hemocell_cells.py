# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of the cell types of a HemoCell case, NAME.xml and NAME.pos, to the [[cells]] tables of a case file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from seiche.case.blood.hemocell_membrane import AREA_RATIO, SpringCoefficients, continuum_moduli
from seiche.case.blood.hemocell_values import (
    nonnegative,
    number,
    optional_number,
    positive,
    read_root,
    unknown,
    unknown_note,
    whole_number,
)
from seiche.cells.mesh import biconcave, ellipsoid
from seiche.errors import CaseError, FormatError
from seiche.io.files import cause_of
from seiche.io.formats.pos import read_pos
from seiche.io.formats.xml_tree import Element

Tables = dict[str, Any]

#: Maximum number of cell types, and size of a .pos file (bytes): about five million cells.
MAX_TYPES, MAX_POS_BYTES = 16, 2**28
#: Shape of HemoCell's red cell, z = R sqrt(1 - x^2)(C0 + C2 x^2 + C4 x^4); Seiche has R/2 in front.
BICONCAVE = (2 * 0.054322, 2 * 1.001279, 2 * -0.561381)
#: Thickness of a platelet divided by its diameter, without <aspectRatio>.
ASPECT_RATIO = 0.4347826
#: Triangles of the polyhedra that are refined: an icosahedron for red cells, an octahedron for platelets.
ICOSAHEDRON, OCTAHEDRON = 20, 8
#: Numbers of triangles and vertices of Seiche's meshes.
MESHES = {80: 42, 320: 162, 1280: 642, 5120: 2562}
MAX_TRIANGLES = max(MESHES)
#: Elements with a meaning, with none for the result, and those that the note names with a reason.
USED = (
    *("kBend", "kVolume", "kArea", "kLink", "eta_m", "minNumTriangles", "radius", "aspectRatio"),
    *("enableInteriorViscosity", "viscosityRatio"),
)
SILENT = ("name", "comment", "Volume")
LEFT_OUT = {
    "eta_v": "Seiche computes the viscosity of the fluid inside cells instead",
    "InnerEdges": "without these springs inside the cell it is softer than in HemoCell; raise its shear_modulus",
    "kInnerLink": "there are no springs inside the cell",
    "StlFile": "the mesh is that of the name of the type; for another one set shape to a mesh",
}


class PlasmaFluid(NamedTuple):
    """Spacing (m), thermal energy (J), density (kg/m^3) and dynamic viscosity (Pa s)."""

    spacing: float
    energy: float
    density: float
    viscosity: float


def cell_tables(folder: Path, names: Path, fluid: PlasmaFluid, ibm: Element | None, notes: list[str]) -> list[Tables]:
    """Return the tables of all types with a .pos file in `folder`, red cells first; append to `notes`.

    `names` is the path of `folder` in the case file. `ibm` is the element of an old config.xml with `minNumOfTriangles`
    and `radius`. Types without cells are left out.
    """
    files = sorted(folder.glob("*.pos"), key=lambda path: (not path.stem.startswith("RBC"), path.name))
    if len(files) > MAX_TYPES:
        raise CaseError(f"{folder}: {len(files)} .pos files; a case has at most {MAX_TYPES} types of cells")
    tables = []
    for positions in files:
        xml = positions.with_suffix(".xml")
        if not xml.is_file():
            notes.append(f"{positions.name}: not converted, since there is no {xml.name}")
            continue
        if not _count(positions):
            notes.append(f"{positions.name}: contains no cell; the type is left out")
            continue
        tables.append({**_cell_table(xml, fluid, ibm, notes), **_positions(names / positions.name)})
    return tables


def _positions(file: Path) -> Tables:
    return {"positions": file.as_posix(), "positions_from": "box", "positions_outside": "drop"}


def _count(path: Path) -> int:
    try:
        if path.stat().st_size > MAX_POS_BYTES:
            raise FormatError(path, f"byte {MAX_POS_BYTES}", "a .pos file has at most 256 MiB")
        return len(read_pos(path, thin="y")[0])
    except OSError as error:
        raise CaseError(f"{path}: cannot be read: {cause_of(error)}") from None


def _cell_table(path: Path, fluid: PlasmaFluid, ibm: Element | None, notes: list[str]) -> Tables:
    """Return the table of the type in `path`, without positions."""
    root, name = read_root(path), path.stem
    if not name.startswith(("RBC", "PLT")):
        raise root.error(
            f'the mechanics of cells called "{name}" are set in the program of the case; expected a name that '
            "begin with RBC (red cell) or PLT (platelet)"
        )
    model = root.child("MaterialModel")
    platelet = name.startswith("PLT")
    triangles = _triangles(model, ibm, OCTAHEDRON if platelet else ICOSAHEDRON)
    count = min((size for size in MESHES if size >= triangles), default=MAX_TRIANGLES)
    if count != triangles:
        notes.append(f"{path.name}: the mesh has {count} triangles; HemoCell uses {triangles}")
    shape, area = _shape(model, ibm, MESHES[count], platelet=platelet)
    table: Tables = {"name": name, "shape": shape, "model": "triangles", "law": "skalak"}
    table |= _membrane(model, area, triangles, fluid, platelet=platelet)
    table |= _inner_viscosity(model, fluid)
    paths = unknown(root, ("MaterialModel",)) + unknown(model, (*USED, *SILENT, *LEFT_OUT))
    notes += [f"{path.name}: {child.path}: not converted; {reason}" for child, reason in _left_out(model)]
    notes += unknown_note(path.name, paths)
    return table


def _left_out(model: Element) -> list[tuple[Element, str]]:
    """Return the elements that are not converted, with reasons; a coefficient of zero needs no note."""
    children = [child for child in model.children if child.name in LEFT_OUT]
    return [
        (child, LEFT_OUT[child.name])
        for child in children
        if not (child.name in ("eta_v", "kInnerLink") and number(child) == 0.0)
    ]


def _triangles(model: Element, ibm: Element | None, coarsest: int) -> int:
    """Return the number of triangles of HemoCell's mesh: a polyhedron is refined until there are enough."""
    minimum = model.optional("minNumTriangles")
    if minimum is None and ibm is not None:
        minimum = ibm.optional("minNumOfTriangles")
    if minimum is None:
        minimum = model.child("minNumTriangles")
    required, triangles = whole_number(minimum, 1), coarsest
    while triangles < required:
        triangles *= 4
        if triangles > 4 * MAX_TRIANGLES:
            raise minimum.error(f"value {required} is out of range; expected at most {MAX_TRIANGLES} triangles")
    return triangles


def _shape(model: Element, ibm: Element | None, vertices: int, *, platelet: bool) -> tuple[Tables, float]:
    """Return the table of the shape, and its area in m^2."""
    element = model.optional("radius")
    if element is None and ibm is not None and not platelet:
        element = ibm.optional("radius")
    radius = positive(element if element is not None else model.child("radius"))
    if not 1e-8 <= radius <= 1e-3:
        raise (element or model).error(f"value {radius:g} m is not the radius of a cell; expected 1e-8 to 1e-3")
    if not platelet:
        text = {"kind": "biconcave", "diameter": f"{2e6 * radius:.12g} um", "coefficients": list(BICONCAVE)}
        return {**text, "vertices": vertices}, biconcave(vertices, radius, BICONCAVE).area
    thin = optional_number(model, "aspectRatio", ASPECT_RATIO) * radius
    if not 1e-9 <= thin <= 1e-3:
        raise model.child("aspectRatio").error(f"value {thin / radius:g} is out of range; expected 0.1 to 10")
    axes = (radius, radius, thin)
    text = {"kind": "ellipsoid", "half_axes": [f"{1e6 * axis:.12g} um" for axis in axes]}
    return {**text, "vertices": vertices}, ellipsoid(axes, vertices).area


def _membrane(model: Element, area: float, triangles: int, fluid: PlasmaFluid, *, platelet: bool) -> Tables:
    springs = SpringCoefficients(
        link=positive(model.child("kLink")),
        area=optional_number(model, "kArea"),
        bend=nonnegative(model.child("kBend")),
        volume=nonnegative(model.child("kVolume")),
        viscosity=optional_number(model, "eta_m"),
    )
    moduli = continuum_moduli(springs, area, triangles, spacing=fluid.spacing, energy=fluid.energy, hinges=platelet)
    table: Tables = {
        "shear_modulus": f"{moduli.shear:.6g} N/m",
        "area_ratio": AREA_RATIO,
        "local_area": f"{moduli.local_area:.6g} N/m",
        "area": "0 N/m",
        "bending": f"{moduli.bending:.6g} J",
        "volume": f"{moduli.volume:.6g} Pa",
    }
    return {**table, "surface_viscosity": f"{moduli.viscosity:.6g} N s/m"} if moduli.viscosity > 0 else table


def _inner_viscosity(model: Element, fluid: PlasmaFluid) -> Tables:
    enabled = model.optional("enableInteriorViscosity")
    if enabled is None or not whole_number(enabled):
        return {}
    return {"inner_viscosity": f"{positive(model.child('viscosityRatio')) * fluid.viscosity:.12g} Pa s"}
