# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of a HemoCell case (config.xml, cell types and STL surface) to the tables of a TOML case file.

The format is that of HemoCell's documentation (hemocell.eu, Configuration Files). What a HemoCell case sets in its C++
program cannot be read; it is assumed to be that of the example `pipeflow`: a vessel that is periodic along x, driven by
a uniform force. Conventions: docs/howto/hemocell.md.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from seiche.case.blood.hemocell_cells import PlasmaFluid, cell_tables
from seiche.case.blood.hemocell_values import (
    file_name,
    nonnegative,
    number,
    positive,
    read_root,
    unknown,
    unknown_note,
    whole_number,
)
from seiche.case.flow.rims import read_surface
from seiche.domain.periodic_ends import END_TOLERANCE
from seiche.domain.surface import Surface
from seiche.errors import CaseError
from seiche.io.files import cause_of
from seiche.io.formats.xml_tree import Element

Tables = dict[str, Any]

#: Thermal energy (J) at 300 K, without <kBT>.
THERMAL_ENERGY = 4.1419e-21
#: Elements by section: those with a meaning, and those that concern only the execution of HemoCell.
SECTIONS = {
    "domain": (
        ("geometry", "rhoP", "nuP", "dx", "dt", "refDir", "refDirN", "kBT", "Re"),
        ("fluidEnvelope", "particleEnvelope", "blockSize"),
    ),
    "sim": (("tmax", "tmeas", "tcheckpoint"), ("tbalance",)),
    "ibm": (("minNumOfTriangles", "radius"), ()),
    "parameters": ((), ("maxPackIter", "maxFlin", "checkpointDirectory", "logDirectory", "logFile")),
    "verbose": ((), ("cellsDeletedInfo",)),
}
#: Elements without an equivalent, each with a note.
LEFT_OUT = {
    "stepMaterialEvery": "forces of membranes are computed in every step",
    "stepParticleEvery": "membranes move in every step",
    "stepInteractionEvery": "forces between cells are computed in every step",
    "kRep": "forces between cells are those of [contact]",
    "RepCutoff": "forces between cells are those of [contact]",
    "BRepCutoff": "forces between cells and walls are those of [contact]",
    "warmup": "cells and flow start together, from rest",
    "outputDirectory": "results go to the folder out",
    "tcsv": "the run stores its time series in the folder out",
}
PRE_INLET = (
    "a pre-inlet is not converted, because its direction and the outlets are set in the program of the case; remove "
    "it, and add [[iolet]] and [reservoir] tables to the case file"
)


class ConvertedCase(NamedTuple):
    """Tables of a case, notes of one line each, its STL file, and the stretched surface (m) that the tables name.

    `surface` is None if the STL file is used as it is. In the tables the unit of a stretched surface is 1 um.
    """

    tables: Tables
    notes: tuple[str, ...]
    stl: Path
    surface: Surface | None


class ScaledVessel(NamedTuple):
    """The STL file `name` with the `unit` (m) of its coordinates, and its surface in metres, perhaps stretched."""

    name: str
    unit: float
    surface: Surface
    stretched: bool


def read_hemocell(path: Path, folder: Path, surface_name: str) -> ConvertedCase:
    """Return the case in the config.xml `path`, for a case file in `folder`.

    The cell types are those of the files NAME.pos and NAME.xml in the folder of `path`. If the length of the vessel is
    not a whole number of spacings, the case names a stretched surface `surface_name`. Raises CaseError for a file that
    cannot be read, and FormatError, with line and element, for invalid or unsupported elements.
    """
    root = read_root(path)
    for element in root.all("preInlet"):
        raise element.error(PRE_INLET)
    domain, sim, ibm = root.child("domain"), root.child("sim"), root.optional("ibm")
    notes: list[str] = []
    tables, fluid = _fluid(domain, notes)
    tables["time"] = {"steps": whole_number(sim.child("tmax"), 1)}
    vessel = _vessel(domain, path, fluid.spacing, notes)
    inputs = Path(os.path.relpath(path.parent.absolute(), folder.absolute()))
    tables["geometry"] = {
        "spacing": f"{fluid.spacing!r} m",
        "stl": surface_name if vessel.stretched else (inputs / vessel.name).as_posix(),
        "unit": "1 um" if vessel.stretched else f"{vessel.unit:.12g} m",
        "periodic": ["x"],
    }
    notes.append("the vessel is periodic along x, as in HemoCell's example pipeflow; config.xml does not state it")
    tables |= _driving(domain, tables["lattice"], vessel.surface, fluid, notes)
    cells = cell_tables(path.parent, inputs, fluid, ibm, notes)
    tables["output"] = _outputs(sim, bool(cells))
    tables["solver"] = "blood" if cells else "flow"
    if cells:
        tables["cells"] = cells
    else:
        notes.append("there are no cells; the result is a flow case")
    _remarks(root, notes)
    order = ("solver", "geometry", "fluid", "lattice", "time", "body_force", "cells", "output")
    tables = {key: tables[key] for key in order if key in tables}
    return ConvertedCase(tables, tuple(notes), path.parent / vessel.name, vessel.surface if vessel.stretched else None)


def _fluid(domain: Element, notes: list[str]) -> tuple[Tables, PlasmaFluid]:
    """Return the tables fluid and lattice, and what the cells need of them."""
    density, kinematic = positive(domain.child("rhoP")), positive(domain.child("nuP"))
    spacing, step = positive(domain.child("dx")), number(domain.child("dt"))
    if step == 0.0:
        raise domain.child("dt").error(
            "value 0 is out of range; expected a time step, or a negative value, which sets tau = 1"
        )
    energy = domain.optional("kBT")
    thermal = positive(energy) if energy is not None else THERMAL_ENERGY
    if step < 0.0:
        notes.append("domain/dt: negative; the time step follows from tau = 1, as in HemoCell")
    lattice: Tables = {"step": f"{step!r} s"} if step > 0.0 else {"tau": 1.0}
    viscosity = density * kinematic
    fluid = {"density": f"{density!r} kg/m^3", "viscosity": f"{viscosity:.12g} Pa s"}
    return {"fluid": fluid, "lattice": lattice}, PlasmaFluid(spacing, thermal, density, viscosity)


def _unit(domain: Element, surface: Surface, spacing: float) -> float:
    """Return the length (m) of one unit of the surface, whose extent along axis refDir is refDirN spacings."""
    axis = domain.child("refDir")
    direction, count = whole_number(axis), whole_number(domain.child("refDirN"), 1)
    if direction > 2:
        raise axis.error(f"value {direction} is out of range; expected 0, 1 or 2")
    extent = float(np.ptp(surface.vertices[:, direction]))
    if not extent > 0.0:
        raise axis.error(f"the surface has no extent along {'xyz'[direction]}")
    return count * spacing / extent


def _vessel(domain: Element, path: Path, spacing: float, notes: list[str]) -> ScaledVessel:
    """Return the vessel; its length along x is, or is stretched to, a whole number of spacings."""
    element = domain.optional("geometry")
    if element is None:
        raise domain.error(
            "the element <geometry> is missing: the vessel is built in the program of the case; add an STL file"
        )
    name = file_name(element)
    try:
        surface = read_surface(path.parent / name, 1.0)
    except OSError as error:
        raise element.error(f"{name}: cannot be read: {cause_of(error)}") from None
    unit = _unit(domain, surface, spacing)
    length = float(np.ptp(surface.vertices[:, 0])) * unit / spacing
    whole = max(1, round(length))
    if abs(length - whole) <= 0.5 * END_TOLERANCE:
        return ScaledVessel(name, unit, Surface(surface.vertices * unit, surface.faces), False)
    if not length > 0.5:
        raise element.error(f"{name}: the vessel is {length:.3g} spacings long; expected at least one")
    notes.append(
        f"{element.path}: the vessel is {length:.6g} lattice spacings long; because it is periodic, it was "
        f"stretched along x to {whole}, a whole number"
    )
    vertices = unit * (surface.vertices - surface.vertices.min(axis=0))
    vertices[:, 0] *= whole / length
    return ScaledVessel(name, unit, Surface(vertices, surface.faces), True)


def _driving(domain: Element, lattice: Tables, vessel: Surface, fluid: PlasmaFluid, notes: list[str]) -> Tables:
    """Return the body force of HemoCell's pipe with the Reynolds number <Re>, that of peak velocity and diameter.

    The peak velocity is added to the table `lattice`.
    """
    element = domain.optional("Re")
    if element is None:
        notes.append("domain: without the element <Re> nothing drives the flow; add a table [body_force]")
        return {}
    reynolds = nonnegative(element)
    if reynolds == 0.0:
        return {}
    radius = math.sqrt(_inlet_area(vessel, fluid.spacing) / math.pi)
    peak = reynolds * fluid.viscosity / fluid.density / (2 * radius)
    force = 4 * fluid.viscosity * peak / radius**2
    lattice["velocity_scale"] = f"{peak:.6g} m/s"
    notes.append(
        f"{element.path}: the force gives a peak velocity of {1e3 * peak:.4g} mm/s without cells in a tube of "
        f"radius {1e6 * radius:.4g} um, whose cross-section has the same area as the inlet"
    )
    return {"body_force": {"force": [f"{force:.6g} N/m^3", "0 N/m^3", "0 N/m^3"]}}


def _inlet_area(vessel: Surface, spacing: float) -> float:
    """Return the mean area of the sections of the vessel in the first spacing along x."""
    vessel = vessel.outward()
    low, high = vessel.vertices.min(axis=0), vessel.vertices.max(axis=0)
    center = np.array([low[0] + spacing, *(0.5 * (low + high))[1:]])
    slab = vessel.clipped(center.tolist(), (-1.0, 0.0, 0.0), 2.0 * float(np.linalg.norm(high - low)))
    used = slab.vertices[np.unique(slab.faces)]
    thickness = float(np.ptp(used[:, 0])) if len(used) else 0.0
    if not (thickness > 0.0 and slab.volume > 0.0):
        raise CaseError("domain/geometry: the surface encloses no volume at its low end along x")
    return slab.volume / thickness


def _outputs(sim: Element, cells: bool) -> Tables:
    """Return the outputs: fields and cells in the interval <tmeas>, checkpoints in that of <tcheckpoint>."""
    tables: Tables = {}
    interval, checkpoint = sim.optional("tmeas"), sim.optional("tcheckpoint")
    if interval is not None:
        every = whole_number(interval, 1)
        tables["fields"] = [{"file": "flow.vtkhdf", "every": every, "fields": ["velocity", "pressure"]}]
        if cells:
            tables["cells"] = [{"file": "cells.vtkhdf", "every": every}]
    if checkpoint is not None:
        tables["checkpoint"] = {"every": whole_number(checkpoint, 1)}
    return tables


def _remarks(root: Element, notes: list[str]) -> None:
    """Append notes on elements without an equivalent, and one on unknown elements."""
    paths = unknown(root, SECTIONS)
    for name, (used, silent) in SECTIONS.items():
        section = root.optional(name)
        if section is None:
            continue
        paths += unknown(section, (*used, *silent, *LEFT_OUT))
        notes += [
            f"{child.path}: not converted; {LEFT_OUT[child.name]}"
            for child in section.children
            if child.name in LEFT_OUT and child.text.strip() != "0"
        ]
    notes += unknown_note(root.source, paths)
