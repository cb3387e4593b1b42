# SPDX-License-Identifier: BSD-3-Clause
"""The pages of the case files in docs/reference, made from the schemas; `python -m tools.reference` writes them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from seiche.case import quantities
from seiche.case.blood.schema import BloodCase
from seiche.case.flow.waveforms import WAVEFORMS
from seiche.case.quantities import DIMENSIONS
from seiche.case.schema_tables import fields_of, models_in
from seiche.case.solids import SOLIDS
from seiche.case.ultrasound.schema import UltrasoundCase
from seiche.case.waves.schema import WaveCase

_FLOW = f"""# The case file

A case is one TOML file. Every physical value is a string with a unit, such as `"0.1 mm"`, `"120 mmHg"`, `"4 mPa s"`,
`"1060 kg/m^3"` or `"72 bpm"`. Plain numbers are dimensionless. A key that is not listed here is an error. A value
described as *time or steps* is a string with a unit or a whole number of time steps. Input files are relative to the
folder of the case file. Outputs are relative to `output.folder`, which is itself relative to that folder.

Any key can be changed on the command line: `seiche run case.toml --set lattice.tau=0.8 --set "iolet.inlet.ramp=20 ms"`.
It replaces keys of the file that are not allowed beside it: `--set time.steps=100` replaces `time.duration`.

An output folder belongs to one run. A second run stops before its first step, unless `--replace` removes the files of
the first. Files of other programs are never replaced. A restart (`--restart`) writes its time series to new files named
after the step of the checkpoint, such as `flow.from-12000.vtkhdf`. After SIGTERM, SIGINT (Ctrl-C) or the wall-clock
limit the run finishes its step, writes the checkpoint and ends with status 0. A second Ctrl-C ends it immediately.

The built-in waveforms ({", ".join(f"`{name}`" for name in WAVEFORMS)}) are illustrations of typical curves, not
measured data. Use your own `samples` for a study.

This page is generated from the schema by `python -m tools.reference`.
"""

_ULTRASOUND = """# The case file of ultrasound

A case with `solver = "ultrasound"` follows the rules of [all cases](case.md): values have units, unknown keys are
errors, and `--set` changes keys. A position is a list with one length per axis of the grid, relative to its point
n // 2.

`seiche check CASE` prints resolution, stability, temporal phase error and memory. `seiche run CASE` runs the
case and then writes `output.file`, the summary and the picture. `--restart` continues from a checkpoint. Sources with
equal frequency, `cycles` and `ramp` form one array, in which each has its own delay.

The file of `[[output.snapshots]]` contains `time` (s) and `pressure` (Pa) of shape times, z, y, x, without the axis
across a plane. Its attributes `axes`, `lower` and `upper` are the axes in space and the positions (m) of the first and
last points. Times are those of the records: the first step computes the state at time zero. A restarted run completes
the file in its output folder, which is then the same as that of an uninterrupted run.

This page is generated from the schema by `python -m tools.reference`.
"""

_WAVES = """# The case file of waves

The case file is a TOML file as [for flow](case.md): physical values are strings with a unit, and plain numbers are
dimensionless. A key that is not listed here is an error. Any key can be changed with `--set`. See
[an example](../howto/simulate-waves.md#from-a-case-file). Boxes have two or three axes; the last one points upwards.

A run writes HDF5 files: seismograms (`samples` of shape receivers, times, fields; `time`, `name`, `position`, `field`),
snapshots (`velocity`, `pressure`, `time`) and peak velocities (`position`, `velocity`, `horizontal_velocity`). SAC
files store the position of the station in USER0 to USER2. A run continued from a checkpoint (`--restart`) writes the
seismograms and peak velocities of the whole run, under the same names.

This page is generated from the schema by `python -m tools.reference`.
"""


_SOLIDS = """# Solid bodies

Vessels (`geometry.solid`), obstacles (`[[geometry.obstacle]]`), regions of ultrasound media (`medium.region.where`) and
of the media of waves (`material.where`) are solid bodies. Each is a table with the key `kind`. The [how-to
page](../howto/geometry.md) shows examples.

This page is generated from the schema by `python -m tools.reference`.
"""


def pages() -> dict[str, str]:
    """Return the Markdown of each page by the name of its file; flow and blood share one."""
    return {
        "case.md": sections(BloodCase, _FLOW).replace('| `"blood"` |', '| `"flow"`, `"blood"` |', 1),
        "ultrasound-case.md": sections(UltrasoundCase, _ULTRASOUND),
        "waves-case.md": sections(WaveCase, _WAVES),
        "solids.md": "\n".join([_SOLIDS, *map(_solid_section, dict.fromkeys(SOLIDS.values()))]).rstrip() + "\n",
    }


def _solid_section(model: type[BaseModel]) -> str:
    kinds = " or ".join(f'"{kind}"' for kind in get_args(model.model_fields["kind"].annotation))
    return f"## kind = {kinds}\n\n{_sentences(model)}\n\n{_table(_leaves(model))}"


def sections(root: type[BaseModel], introduction: str) -> str:
    """Return a page with a section for every table of `root`."""
    top = [(name, root.model_fields[name]) for name in ("solver", "title")]
    tables = [text for name, field in root.model_fields.items() for text in _section(name, field)]
    return "\n".join([introduction, "## Top of the file\n\n" + _table(top), *tables]).rstrip() + "\n"


def _section(path: str, field: FieldInfo) -> Iterator[str]:
    models, repeated = list(_models(field)), get_origin(_plain(field.annotation)) is tuple
    for model in models:
        kind = fields_of(model).get("kind")
        tag = f', kind = "{get_args(kind.annotation)[0]}"' if kind is not None else ""
        yield f"## {f'[[{path}]]' if repeated else f'[{path}]'}{tag}\n\n{_sentences(model)}\n\n{_table(_leaves(model))}"
        for key, inner in fields_of(model).items():
            yield from _section(f"{path}.{key}", inner)


def _models(field: FieldInfo) -> Iterator[type[BaseModel]]:
    return iter(()) if _is_solid(field) else models_in(field.annotation, *field.metadata)


def _is_solid(field: FieldInfo) -> bool:
    """Return whether a field contains solid bodies, which have their own page."""
    return any(table in models_in(field.annotation, *field.metadata) for table in SOLIDS.values())


def _sentences(model: type[BaseModel]) -> str:
    text = " ".join((model.__doc__ or "").split())
    return text.replace("`seiche.domain.bifurcation.bifurcation_surface`", "the shape")


def _leaves(model: type[BaseModel]) -> list[tuple[str, FieldInfo]]:
    fields = sorted(fields_of(model).items(), key=lambda item: item[0] != "kind")
    return [(key, field) for key, field in fields if not any(_models(field)) or _choices(field)]


def _choices(field: FieldInfo) -> bool:
    return any(isinstance(value, str) for option in get_args(field.annotation) for value in get_args(option))


def _table(rows: list[tuple[str, FieldInfo]]) -> str:
    lines = ["| key | value | default | meaning |", "|---|---|---|---|"]
    lines += [f"| `{name}` | {_type(field)} | {_default(field)} | {field.description or ''} |" for name, field in rows]
    return "\n".join(lines) + "\n"


def _plain(annotation: Any) -> Any:
    """Return `annotation` without None and without pydantic's metadata."""
    if hasattr(annotation, "__metadata__"):
        return _plain(annotation.__origin__)
    options = [option for option in get_args(annotation) if option is not NoneType]
    return _plain(options[0]) if NoneType in get_args(annotation) and len(options) == 1 else annotation


def _validators(annotation: Any, metadata: Any) -> Iterator[Any]:
    for item in (*metadata, *getattr(annotation, "__metadata__", ())):
        yield getattr(item, "func", None)
    for argument in get_args(annotation):
        yield from _validators(argument, ())


def _type(field: FieldInfo) -> str:
    if _is_solid(field):
        is_list = get_origin(_plain(field.annotation)) is tuple
        return "list of [solids](solids.md)" if is_list else "a [solid](solids.md)"
    strings = {
        quantities.parse_period: 'a time or a rate, `"0.8 s"` or `"72 bpm"`',
        quantities.parse_steps_or_time: 'time or steps, `"0.5 ms"` or `100`',
        quantities.parse_interval: 'time or steps, `"0.5 ms"` or `100`',
        quantities.parse_velocity_or_flow_rate: 'a velocity or a flow rate, `"0.3 m/s"` or `"4 mL/s"`',
    }
    plain = _plain(field.annotation)
    repeated = get_origin(plain) is tuple
    for function in _validators(field.annotation, field.metadata):
        if isinstance(function, partial):
            if (entries := function.keywords.get("table")) is not None:
                return ", ".join(f'`"{name}"`' for name in entries)
            dimension = function.keywords["dimension"]
            if dimension is None:
                return "three numbers"
            _, kind, example = DIMENSIONS[dimension]
            if function.func is quantities.parse_position:
                return f'a list with {kind} for each axis, `"{example}"`'
            if function.func is quantities.parse_vector:
                return f'a list of three, each {kind}, `"{example}"`'
            if not repeated:
                return f'{kind}, `"{example}"`'
            is_pair = any(getattr(bound, "max_length", None) == 2 for bound in field.metadata)
            number = " of two" if is_pair or Ellipsis not in get_args(plain) else ""
            return f'a list{number}, each {kind}, `"{example}"`'
        if function in strings:
            return strings[function]
    if names := [f'`"{name}"`' for name in _literals(field.annotation)]:
        return ("list of " if repeated else "") + ", ".join(names)
    if get_origin(plain) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(plain))
    if repeated:
        kinds = {str: "list of strings", bool: "list of true or false"}
        return next((text for kind, text in kinds.items() if kind in get_args(plain)), "list of numbers")
    return {bool: "true or false", int: "whole number", float: "number", str: "string"}.get(plain, "string")


def _literals(annotation: Any) -> Iterator[str]:
    for argument in get_args(annotation):
        if isinstance(argument, str):
            yield argument
        elif not hasattr(argument, "func"):
            yield from _literals(argument)


def _default(field: FieldInfo) -> str:
    if field.default is PydanticUndefined:
        return "required"
    if field.default is None or field.default in ((), ""):
        return ""
    if isinstance(field.default, bool):
        return f"`{str(field.default).lower()}`"
    return f"`{list(field.default) if isinstance(field.default, tuple) else field.default}`"
