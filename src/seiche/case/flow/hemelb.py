# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of HemeLB XML, version 5 (HemeLB) or 3 (HemePure), to the tables of a TOML case file.

Elements that concern only pictures or the execution of HemeLB are skipped with a note. Unsupported elements are errors
that state the file, the element and the supported values. Conventions: docs/howto/hemelb.md.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, get_args

from seiche.case.flow.hemelb_iolets import SPONGE, HemelbFluid, translate_iolets
from seiche.case.flow.hemelb_values import file_name, number, number_in, point, positive, text_of, vector, whole_number
from seiche.case.flow.schema_extraction import SELECTION_KEYS, ExtractedField, SiteChoice
from seiche.case.quantities import shorten
from seiche.errors import CaseError
from seiche.io.files import cause_of
from seiche.io.formats.xml_tree import Element, read_xml

Tables = dict[str, Any]
VERSIONS = ("3", "5")
#: Defaults of HemeLB (kg/m^3, Pa s, mmHg).
DENSITY, VISCOSITY, REFERENCE = 1000.0, 0.004, 0.0


class HemelbCase(NamedTuple):
    """The tables of a case, and notes on the conversion, one line each."""

    tables: Tables
    notes: tuple[str, ...]


def read_hemelb(path: Path | str) -> HemelbCase:
    """Return the case in the HemeLB XML file `path`; files named in it are relative to its folder.

    Raises CaseError if the file cannot be opened, and FormatError, with line and element, for invalid or unsupported
    elements.
    """
    try:
        root = read_xml(path)
    except OSError as error:
        raise CaseError(f"{path}: cannot read the case file: {cause_of(error)}") from None
    if root.name == "hemocell":
        raise root.error("this is a case of HemoCell; convert it first: seiche convert config.xml case.toml")
    if root.name != "hemelbsettings":
        raise root.error("this is not a HemeLB case; its first element must be <hemelbsettings>")
    version = root.attribute("version").strip()
    if version not in VERSIONS:
        raise root.error(f"version {shorten(version)} is not supported; expected {' or '.join(VERSIONS)}")
    names = ("simulation", "geometry", "initialconditions", "inlets", "outlets", "properties", "monitoring")
    root.only((*names, "visualisation"))
    sections = {name: root.optional(name) for name in (*names, "visualisation")}
    notes = list(root.ignored_text)
    if (pictures := sections["visualisation"]) is not None:
        notes.append(f"{pictures.path}: ignored; it affects only pictures")
    fluid, tables = _simulation(root.child("simulation"), notes)
    tables["geometry"] |= _geometry(root.child("geometry"), notes)
    if (monitoring := sections["monitoring"]) is not None:
        tables["time"] |= _monitoring(monitoring, notes)
    tables["fluid"] |= _initial(sections["initialconditions"])
    fluid = _first_step(sections["initialconditions"], fluid, tables, notes)
    tables["iolet"] = translate_iolets(root, fluid, notes)
    properties = sections["properties"]
    tables["output"] = _outputs(properties, notes) if properties is not None else {}
    return HemelbCase(tables, tuple(notes))


def _monitoring(element: Element, notes: list[str]) -> Tables:
    """Return the keys of [time] that stop a run when the flow is steady."""
    element.only(("incompressibility", "steady_flow_convergence"))
    if element.all("incompressibility"):
        notes.append(f"{element.path}/incompressibility: ignored; Mach number, mass and NaN are always checked")
    steady = element.optional("steady_flow_convergence")
    if steady is None:
        return {}
    if steady.attributes.get("terminate", "false").strip() != "true":
        notes.append(f"{steady.path}: ignored; the run computes all steps")
        return {}
    tolerance = number_in(steady, "tolerance")
    if not 0.0 < tolerance < 1.0:
        raise steady.error(f"tolerance {tolerance:g} is out of range; expected > 0 and < 1")
    notes.append(
        f"{steady.path}: the run stops when the relative change of the velocity in 1000 steps falls below "
        f"{tolerance:g} (time.steady, time.steady_interval); HemeLB uses the change in one step"
    )
    return {"steady": tolerance, "steady_interval": 1000}


def _simulation(element: Element, notes: list[str]) -> tuple[HemelbFluid, Tables]:
    """Return the fluid for the iolets, and the tables geometry (without the file), fluid, lattice and time."""
    used = ["step_length", "steps", "extra_warmup_steps", "voxel_size", "origin", "stresstype"]
    used += ["fluid_density", "fluid_viscosity", "reference_pressure"]
    ignored = {
        "sponge_layer": SPONGE,
        "relaxation_parameter": "the two relaxation times have the magic parameter 3/16 (lattice.magic)",
        "boundary_velocity_ratio": "walls are rigid",
    }
    for elastic in element.all("elastic_wall_stiffness"):
        raise elastic.error("elastic walls are not supported; without this element the walls are rigid")
    element.only((*used, *ignored))
    for name, reason in ignored.items():
        if element.all(name):
            notes.append(f"{element.path}/{name}: ignored, {reason}")
    stress = element.optional("stresstype")
    if stress is not None and stress.attribute("value").strip() not in ("-1", "0", "1", "2"):
        raise stress.error(f"value {shorten(stress.attribute('value'))} is not known; expected -1, 0, 1 or 2")
    step, spacing = positive(element.child("step_length"), "s"), positive(element.child("voxel_size"), "m")
    origin = vector(element.child("origin"), "m")
    steps, extra = element.child("steps"), element.optional("extra_warmup_steps")
    for count in (steps, extra):
        if count is not None and count.attribute("units") != "lattice":
            raise count.error(f'units {shorten(count.attribute("units"))} are not supported; expected "lattice"')
    warmup = whole_number(extra) if extra is not None else 0
    density = _optional(element, "fluid_density", "kg/m3", DENSITY)
    viscosity = _optional(element, "fluid_viscosity", "Pa.s", VISCOSITY)
    reference = element.optional("reference_pressure")
    reference_mmhg = number(reference, "mmHg") if reference is not None else REFERENCE
    tables: Tables = {
        "solver": "flow",
        "geometry": {"spacing": text_of(spacing, "m"), "origin": [text_of(c, "m") for c in origin]},
        "fluid": {
            "density": text_of(density, "kg/m3"),
            "viscosity": text_of(viscosity, "Pa.s"),
            "reference_pressure": text_of(reference_mmhg, "mmHg"),
        },
        "lattice": {"step": text_of(step, "s")},
        "time": {"steps": whole_number(steps) + warmup},
    }
    return HemelbFluid(density, viscosity, reference_mmhg, warmup, spacing, origin, step), tables


def _optional(element: Element, name: str, unit: str, default: float) -> float:
    child = element.optional(name)
    return positive(child, unit) if child is not None else default


def _geometry(element: Element, notes: list[str]) -> Tables:
    element.only(("datafile", "mapping"))
    notes += [
        f"{item.path}: ignored; it is the index of this vessel among coupled vessels, but a run has one vessel"
        for item in element.all("mapping")
    ]
    return {"gmy": file_name(element.child("datafile"), "path")}


def _initial(element: Element | None) -> Tables:
    if element is None:
        return {}
    for parent in (element, *element.all("pressure")):
        for checkpoint in parent.all("checkpoint"):
            raise checkpoint.error("a checkpoint of HemeLB cannot be read; expected pressure/uniform")
    element.only(("pressure", "time", "initial_time"))
    pressure = element.child("pressure")
    pressure.only(("uniform",))
    return {"initial_pressure": text_of(number(pressure.child("uniform"), "mmHg"), "mmHg")}


def _first_step(element: Element | None, fluid: HemelbFluid, tables: Tables, notes: list[str]) -> HemelbFluid:
    """Return the fluid with the time of the first step; reduce the number of steps in `tables` to the remaining."""
    for item in (*element.all("time"), *element.all("initial_time")) if element is not None else ():
        done = whole_number(item) - 1  # HemeLB counts from 1
        if done <= 0:
            continue
        if fluid.warmup:
            raise item.error("a first step is not supported with extra_warmup_steps; remove one of the two")
        if done >= tables["time"]["steps"]:
            raise item.error(f"the first step {done + 1} is after the last one, {tables['time']['steps']}")
        tables["time"]["steps"] -= done
        notes.append(
            f"{item.path}: {tables['time']['steps']} steps are run, counted from 0; oscillations start at "
            f"the phase of step {done + 1}"
        )
        return fluid._replace(elapsed=done * fluid.step)
    return fluid


def _outputs(element: Element, notes: list[str]) -> Tables:
    element.only(("propertyoutput", "checkpoint"))
    outputs: list[Element] = []
    states = element.all("checkpoint")
    for item in element.all("propertyoutput"):
        types = [child.attributes.get("type") for child in (*item.all("geometry"), *item.all("field"))]
        (states if types == ["whole", "distributions"] else outputs).append(item)
    tables: Tables = {}
    if outputs:
        tables["extraction"] = [_extraction(item, notes) for item in outputs]
    if states:
        tables["checkpoint"] = {"every": min(whole_number(item, "period", 1) for item in states)}
        notes += [f"{item.path}: written in Seiche's own format, as checkpoint.seiche" for item in states]
    return tables


def _extraction(element: Element, notes: list[str]) -> Tables:
    """Return the [[output.extraction]] table of a property output, whose .xtr file is written to the output folder."""
    element.only(("geometry", "field"))
    mode = element.attributes.get("timestep_mode", "multi")
    if mode != "multi":
        raise element.error(f'timestep_mode {shorten(mode)} is not supported; expected "multi", with one file per run')
    for name in ("start", "stop"):
        if name in element.attributes:
            notes.append(f"{element.path}: {name} is ignored; records cover the whole run")
    file = PurePosixPath(file_name(element, "file").replace("\\", "/"))
    if file.name in ("", ".."):
        raise element.error(f"file {shorten(str(file))} is not a usable file name")
    table: Tables = {"file": file.with_suffix(".xtr").name, "every": whole_number(element, "period", 1)}
    fields = element.all("field")
    if not fields:
        raise element.error("the element <field> is missing; at least one is needed")
    table["fields"] = [_keyword(field, "type", get_args(ExtractedField)) for field in fields]
    names = [field.attributes.get("name", field.attributes["type"]) for field in fields]
    if names != table["fields"]:
        table["names"] = names
    return table | _sites(element.child("geometry"))


def _sites(element: Element) -> Tables:
    kind = _keyword(element, "type", get_args(SiteChoice))
    required, optional = SELECTION_KEYS.get(kind, ((), ()))
    allowed = dict.fromkeys("point" if key == "end" else key for key in (*required, *optional))
    element.only((*allowed, *(("normal",) if kind == "surfacepoint" else ())))  # as in an example of HemePure
    table: Tables = {"sites": kind}
    points = element.all("point")
    keys = [key for key in required if key in ("point", "end")]
    if len(points) != len(keys):
        raise element.error(f"{len(points)} points are given; {kind} needs {len(keys)}")
    table |= {key: point(item) for key, item in zip(keys, points, strict=True)}
    if "normal" in required:
        table["normal"] = list(vector(element.child("normal"), "dimensionless"))
    radius = element.child("radius") if "radius" in required else element.optional("radius")
    if radius is not None and not (kind == "plane" and number(radius, "m") == 0.0):  # 0 is unbounded
        table["radius"] = text_of(positive(radius, "m"), "m")
    return table


def _keyword(element: Element, attribute: str, supported: tuple[str, ...]) -> str:
    value = element.attribute(attribute)
    if value not in supported:
        raise element.error(f"{attribute} {shorten(value)} is not supported; expected one of {', '.join(supported)}")
    return value
