# SPDX-License-Identifier: BSD-3-Clause
"""Small cases for tests, as tables that can be changed and as files."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seiche.case.flow.check import describe
from seiche.case.flow.geometry import FlowVessel, build
from seiche.case.flow.limits import check_limits
from seiche.case.flow.setup import FlowSetup, build_setup
from seiche.case.kinds import kind_of
from seiche.case.load import check_tables, read_source
from seiche.case.loading import prepare
from seiche.case.source import CaseFile
from seiche.errors import CaseError, FormatError

SOURCE = "case.toml"


def cell_state(run: Any) -> tuple[np.ndarray, str]:
    """Return vertices, velocities, identifiers and memory of all cells with the state of openings, and the description.

    The argument is a `BloodRun`; the function is collective.
    """
    arrays = [
        array.ravel()
        for cells in run.populations()
        for array in (cells.vertices, cells.velocity, cells.ids, cells.relaxed)
        if array is not None
    ]
    state = run.state()
    return np.concatenate([*arrays, state.replicated["cells"]]), str(state.attributes["cells"])


def check_case(tables: dict[str, Any], source: str) -> Any:
    """Return the checked tables of a case that was read from `source`."""
    return check_tables(tables, source, kind_of(CaseFile(Path(source), tables)).schema)


def read_case(path: Path | str, overrides: Sequence[str] = ()) -> Any:
    """Return the checked tables of a case file of any kind, after changes such as "run.device=cuda"."""
    return read_case_and_notes(path, overrides)[0]


def read_case_and_notes(path: Path | str, overrides: Sequence[str] = ()) -> tuple[Any, tuple[str, ...]]:
    """Return the tables like `read_case`, and the notes of a translation."""
    source = read_source(path, overrides)
    return check_case(source.tables, str(path)), source.notes


def tube_tables() -> dict[str, Any]:
    """Return a tube of 8 by 8 by 16 sites with a velocity inlet and a pressure outlet."""
    return {
        "solver": "flow",
        "geometry": {
            "spacing": "0.25 mm",
            "shape": {"kind": "tube", "radius": "1 mm", "length": "4 mm"},
        },
        "fluid": {"viscosity": "4 mPa s", "density": "1000 kg/m^3"},
        "lattice": {"tau": 0.8},
        "time": {"steps": 100},
        "iolet": [
            {"name": "inlet", "kind": "velocity", "velocity": "2 mm/s"},
            {"name": "outlet", "kind": "pressure", "pressure": "0 mmHg"},
        ],
    }


def box_tables() -> dict[str, Any]:
    """Return a periodic box of 4 by 4 by 4 sites."""
    return {
        "solver": "flow",
        "geometry": {"spacing": "1 mm", "shape": {"kind": "box", "size": ["4 mm", "4 mm", "4 mm"]}},
        "fluid": {"viscosity": "4 mPa s"},
        "lattice": {"tau": 0.8},
        "time": {"steps": 10},
    }


def blood_tables() -> dict[str, Any]:
    """Return a periodic box of 24 by 24 by 24 sites, 12 um long, with four red cells of 162 vertices."""
    return {
        "solver": "blood",
        "geometry": {"spacing": "0.5 um", "shape": {"kind": "box", "size": ["12 um", "12 um", "12 um"]}},
        "fluid": {"viscosity": "1.2 mPa s", "density": "1025 kg/m^3"},
        "lattice": {"tau": 1.0},
        "time": {"steps": 40},
        "cells": [
            {
                "name": "red",
                "shape": {"kind": "biconcave", "diameter": "7.82 um", "vertices": 162},
                "shear_modulus": "5.3 uN/m",
                "area_ratio": 10.0,
            }
        ],
        "packing": {"hematocrit": 0.22, "seed": 1},
    }


def open_blood_tables(radius: float, length: float, steps: int) -> dict[str, Any]:
    """Return a tube of `radius` and `length` (um) with stiff spheres of 2.8 um in a fast flow."""
    ball = {
        "name": "ball",
        "shape": {"kind": "sphere", "diameter": "2.8 um", "vertices": 42},
        "model": "triangles",
        "law": "neo-hookean",
        "shear_modulus": "500 uN/m",
        "bending": "2e-18 J",
        "volume": "10 kPa",
    }
    tube = {"kind": "tube", "radius": f"{radius:g} um", "length": f"{length:g} um"}
    return {
        "solver": "blood",
        "geometry": {"spacing": "0.5 um", "shape": tube},
        "fluid": {"viscosity": "1.2 mPa s", "density": "1025 kg/m^3"},
        "lattice": {"tau": 3.0, "velocity_scale": "100 mm/s"},
        "time": {"steps": steps},
        "iolet": [
            {"name": "inlet", "kind": "velocity", "velocity": "50 mm/s", "ramp": 50},
            {"name": "outlet", "kind": "pressure", "pressure": "0 Pa"},
        ],
        "cells": [ball],
        "packing": {"hematocrit": 0.1, "seed": 1},
        "reservoir": {"length": "8 um"},
        "run": {"monitor_every": 50, "threads": 1},
        "output": {"checkpoint": {"every": 60}},
    }


def changed(tables: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return `tables` with the entry at the dotted `path` set to `value`, or removed when `value` is None."""
    result: dict[str, Any] = json.loads(json.dumps(tables))
    *parents, last = path.split(".")
    table: Any = result
    for name in parents:
        table = table[int(name)] if isinstance(table, list) else table.setdefault(name, {})
    key = int(last) if isinstance(table, list) else last
    if value is None:
        del table[key]
    else:
        table[key] = value
    return result


def vessel_of(tables: dict[str, Any]) -> FlowVessel:
    """Return the geometry of `tables`."""
    return build(check_case(tables, SOURCE), Path(), SOURCE)


def setup_of(tables: dict[str, Any]) -> FlowSetup:
    """Return the set-up of `tables`, not yet checked for impossible values."""
    return build_setup(check_case(tables, SOURCE), vessel_of(tables), SOURCE)


def advice(setup: FlowSetup) -> list[str]:
    """Return the advice of `seiche check` on a case of flow."""
    lines = describe(setup, measure=False)
    return [line.removeprefix("advice: ") for line in lines if line.startswith("advice: ")]


def toml_of(tables: dict[str, Any]) -> str:
    """Return `tables` as TOML text."""
    return "".join(f"{name} = {_value(value)}\n" for name, value in tables.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_value(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)


def tube_file(folder: Path, changes: dict[str, Any]) -> Path:
    """Return the case file of the tube, with `changes` (values by dotted path), that was written into `folder`."""
    tables = tube_tables()
    for path, value in changes.items():
        tables = changed(tables, path, value)
    target = folder / "case.toml"
    target.write_text(toml_of(tables))
    return target


def message_of(tables: dict[str, Any], ranks: int = 1) -> str:
    """Return the message with which `tables` are rejected, without the name of the file."""
    with pytest.raises(CaseError) as caught:
        check_limits(setup_of(tables), ranks)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(f"{SOURCE}: ")
    return text.removeprefix(f"{SOURCE}: ")


def table_of(text: str) -> list[list[str]]:
    """Return rows of cells separated by " | "; an indented line continues its row, backslash n is a new line."""
    rows = text.strip("\n").replace("\n    ", " ").split("\n")
    return [[cell.replace("\\n", "\n") for cell in row.split(" | ")] for row in rows]


def case_error(folder: Path, tables: dict[str, Any]) -> str:
    """Return the line with which `tables` are rejected, without the name of the file."""
    path = folder / "case.toml"
    path.write_text(toml_of(tables))
    with pytest.raises(CaseError) as caught:
        prepare(path)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(f"{path}: ")
    return text.removeprefix(f"{path}: ")


def check_read_or_rejected(content: bytes, name: str, longest: int) -> None:
    """Read `content` as the case file `name`: an error is one line of at most `longest` characters behind the path."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            read_case(path)
        except (CaseError, FormatError) as error:
            assert str(error).startswith(str(path))
            assert "\n" not in str(error)
            assert len(str(error)) < longest + len(str(path))
