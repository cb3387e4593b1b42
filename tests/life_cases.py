# SPDX-License-Identifier: BSD-3-Clause
"""A small case of each kind with time series and checkpoints, and the content of the files of its runs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from case_files import blood_tables, changed, toml_of, tube_tables
from seiche.domain.world import World
from seiche.io.checkpoint import ALL, inspect_checkpoint, read_checkpoint
from ultrasound_cases import BASIC
from waves_cases import BLOCK, FORCE, SOIL

WAVES = f"""{BLOCK}trees = [3, 3, 2]
size = "8 m"
{SOIL}{FORCE}[time]
steps = 60
[[output.snapshots]]
file = "plane.h5"
every = 10
points = 8
[output.peak]
"""
RING = """[record]
ring = { center = ["0 mm", "0 mm"], radius = "6 mm" }
"""
RECORDS = """quantities = ["p", "p_max", "p_rms"]
frequencies = ["500 kHz"]
periods = 1
maps = ["p_max_all", "p_final"]
"""


@dataclass(frozen=True)
class Life:
    """The length of the run of a case, and its interval of checkpoints, in steps."""

    steps: int
    every: int


#: The kinds of case, and one more of ultrasound whose last step is followed by a time reversal.
LIVES = {
    "flow": Life(100, 10),
    "blood": Life(40, 5),
    "ultrasound": Life(60, 10),
    "waves": Life(60, 10),
    "time reversal": Life(60, 10),
}
KINDS = ("flow", "blood", "ultrasound", "waves")


def life_file(folder: Path, kind: str) -> Path:
    """Return a case file of this kind."""
    flow = tube_tables()
    flow["output"] = {
        "fields": [{"file": "flow.vtkhdf", "every": 20}],
        "averages": {"file": "means.vtkhdf", "window": 40, "every": 4},
    }
    blood = changed(blood_tables(), "geometry.shape.size", ["6 um", "6 um", "6 um"])
    ball = {"kind": "sphere", "diameter": "2.8 um", "vertices": 42}
    blood["cells"] = [{"name": "ball", "shape": ball, "model": "triangles", "shear_modulus": "200 uN/m"}]
    blood |= {"packing": {"hematocrit": 0.1}, "output": {"cells": {"file": "cells.vtkhdf", "every": 20}}}
    blood["body_force"] = {"force": ["1e6 N/m^3", "0 N/m^3", "0 N/m^3"]}
    texts = {
        "flow": toml_of(flow),
        "blood": toml_of(blood),
        "ultrasound": BASIC.partition("[record]")[0] + RING + RECORDS,
        "waves": WAVES,
        "time reversal": BASIC.partition("[record]")[0] + RING + '[image]\n[run]\nbasis = "global"\n',
    }
    path = folder / "case.toml"
    path.write_text(texts[kind])
    return path


def shared_life_folder(world: World, kind: str) -> Path:
    """Return a new folder, the same on all ranks, with the case file of `kind` (collective)."""
    folder = Path(world.bcast(tempfile.mkdtemp() if world.rank == 0 else None))
    if world.rank == 0:
        life_file(folder, kind)
    world.barrier()
    return folder


def changes_of(kind: str) -> list[str]:
    """Return the change of the case that enables checkpoints, the last one at its end."""
    return [f"output.checkpoint.every={LIVES[kind].every}"]


def arrays_of(folder: Path) -> dict[str, dict[str, np.ndarray]]:
    """Return every array of the HDF5 files in a folder of outputs, by file and name."""
    content = {}
    for path in sorted([*folder.glob("*.h5"), *folder.glob("*.vtkhdf")]):
        arrays: dict[str, np.ndarray] = {}
        with h5py.File(path) as file:
            _read(file, "", arrays)
        content[path.name] = arrays
    return content


def _read(group: h5py.Group, name: str, arrays: dict[str, np.ndarray]) -> None:
    for key in set(group) - {"committed"}:  # links to committed data
        if isinstance(item := group[key], h5py.Dataset):
            arrays[name + key] = np.asarray(item[()])
        else:
            _read(item, f"{name}{key}/", arrays)


def assert_same_arrays(actual: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], where: object) -> None:
    """Compare arrays bit for bit."""
    assert actual.keys() == expected.keys(), where
    for name, values in expected.items():
        np.testing.assert_array_equal(actual[name], values, err_msg=f"{where}: {name}")


def checkpoint_of(path: Path) -> tuple[int, dict[str, Any]]:
    """Return the step and the complete, verified content of a checkpoint."""
    header = inspect_checkpoint(path)
    state = read_checkpoint(path, World.serial(), dict.fromkeys(header.rows, ALL))
    content = {f"{name}.{array}": rows.arrays[array][:] for name, rows in state.rows.items() for array in rows.arrays}
    return state.step, {**content, **state.replicated, **state.attributes}


def assert_same_checkpoint(actual: Path, expected: Path) -> None:
    """Compare two checkpoints, written on any ranks, bit for bit."""
    (step, actual_content), (other_step, expected_content) = checkpoint_of(actual), checkpoint_of(expected)
    assert step == other_step
    for content in (actual_content, expected_content):
        if "cells" in content:  # the names of their files depend on those left by a killed run
            content["cells"] = {**json.loads(content["cells"]), "series": None}
    assert_same_arrays(actual_content, expected_content, actual)


def summary_in(folder: Path) -> dict[str, Any]:
    """Return the summary in a folder of outputs."""
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return summary
