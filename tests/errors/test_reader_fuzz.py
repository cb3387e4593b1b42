# SPDX-License-Identifier: BSD-3-Clause
"""Damaged files: every reader reads them or refuses them in one line, within ten seconds.

Truncation, flipped bits, changed and inserted bytes in small valid files, from a fixed seed. `SEICHE_FUZZ` is the
number of inputs of each reader; the test marked `nightly` takes 100,000 over all readers.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from case_files import toml_of, tube_tables
from gmy_files import four_cube
from hemelb_files import xml
from kwave_files import write_input
from seiche.case.load import read_source
from seiche.case.waves.media import read_grid
from seiche.case.waves.pulses import read_pulse
from seiche.cells.mesh import icosphere
from seiche.domain.world import World
from seiche.errors import SeicheError
from seiche.io.arrays import read_npy, read_npz
from seiche.io.cell_files import CellSurfaces, read_list, read_surfaces, write_surfaces
from seiche.io.checkpoint import ALL, read_checkpoint, write_checkpoint
from seiche.io.formats.columns import read_time_table, read_weights
from seiche.io.formats.extraction import encode_offsets, read_offsets
from seiche.io.formats.gmy import read_gmy
from seiche.io.formats.kwave import read_input
from seiche.io.formats.off import read_off
from seiche.io.formats.pos import read_pos
from seiche.io.formats.stl import read_stl, write_stl
from seiche.machine.laws.file import read_machine
from seiche.report.waves_figures import read_motion
from seiche.solver import RowSet, State

BALL = icosphere(12)
MACHINE = Path(read_machine.__code__.co_filename).parents[1] / "known" / "lassen.json"
NUMBER = int(os.environ.get("SEICHE_FUZZ", "60"))


def grid_file(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["x"], file["y"] = [0.0, 1.0, 2.0], [0.0, 1.0]
        for name, value in (("density", 1000.0), ("cp", 2000.0), ("cs", 1000.0)):
            file[name] = np.full((3, 2), value)


def motion_file(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.attrs.update({"medium": "elastic", "title": "t", "axes": ["x", "y"], "lower": [0.0, 0], "upper": [1.0, 1]})
        file["time"], file["velocity"] = [0.0, 1.0], np.ones((2, 3, 4, 2), "f4")


def kwave_file(path: Path) -> None:
    write_input(path, (1, 8, 8), p0_source_flag=1, p0_source_input=np.ones((1, 8, 8)))


def off_file(path: Path) -> None:
    rows = [f"{x!r} {y!r} {z!r}" for x, y, z in BALL.vertices.tolist()]
    rows += [f"3 {a} {b} {c}" for a, b, c in BALL.faces.tolist()]
    path.write_text("\n".join(["OFF", f"{len(BALL.vertices)} {len(BALL.faces)} 0", *rows, ""]))


def state_file(path: Path) -> None:
    rows = {"sites": RowSet(np.arange(4), 4, {"f": np.ones((4, 3))})}
    write_checkpoint(path, World.serial(), State(1, rows, {}, {"n": 1}), attributes={})


def words(text: str) -> Callable[[Path], Any]:
    return lambda path: path.write_text(text)


def binary(content: bytes) -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(content)


ASCII_STL = (
    "solid s\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid\n"
)
#: What writes a valid file and what reads it, by the name of the file.
READERS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any]]] = {
    "case.toml": (words(toml_of(tube_tables())), read_source),
    "case.xml": (words(xml()), read_source),
    "vessel.gmy": (binary(four_cube().file()), read_gmy),
    "binary.stl": (lambda path: write_stl(path, BALL), read_stl),
    "ascii.stl": (words(ASCII_STL), read_stl),
    "ball.off": (off_file, read_off),
    "cells.pos": (words("2\n1 2 3 0 90 0\n4 5 6 10 20 30\n"), read_pos),
    "table.txt": (words("0 1\n1 2\n2 0\n"), read_time_table),
    "weights.txt": (words("1 2 3 0.5\n1 2 4 0.25\n"), read_weights),
    "pulse.txt": (words("0 1\n1 2\n2 0\n"), read_pulse),
    "field.off": (binary(encode_offsets([100, 200])), read_offsets),
    "ct.npy": (lambda path: np.save(path, np.ones((4, 3))), lambda path: read_npy(path, (4, 3))),
    "medium.npz": (
        lambda path: np.savez_compressed(path, density=np.ones((4, 3))),
        lambda path: read_npz(path, ("density",), (4, 3)),
    ),
    "grid.h5": (grid_file, lambda path: read_grid(path, 2)),
    "waves.h5": (motion_file, read_motion),
    "input.h5": (
        lambda path: write_input(path, (1, 8, 8), p0_source_flag=1, p0_source_input=np.ones((1, 8, 8))),
        read_input,
    ),
    "cells.vtkhdf": (
        lambda path: write_surfaces(path, CellSurfaces(0.0, BALL.vertices, BALL.faces, {"velocity": BALL.vertices})),
        read_surfaces,
    ),
    "list.vtkhdf.series": (
        words('{"file-series-version": "1.0", "files": [{"name": "c.000000001.vtkhdf", "time": 0.5}]}'),
        lambda path: read_list(path.with_suffix("")),
    ),
    "state.seiche": (state_file, lambda path: read_checkpoint(path, World.serial(), {"sites": ALL})),
    "machine.json": (binary(MACHINE.read_bytes()), read_machine),
}


def damaged(content: bytes, random: np.random.Generator) -> bytes:
    """Return a content that is cut short, or that differs in one to four places."""
    data = bytearray(content)
    if random.integers(5) == 0:
        return bytes(data[: random.integers(len(data))])
    for _ in range(random.integers(1, 5)):
        at = int(random.integers(len(data)))
        match int(random.integers(4)):
            case 0:
                data[at] ^= 1 << int(random.integers(8))
            case 1:
                data[at] = int(random.integers(256))
            case 2:
                data[at:at] = random.bytes(int(random.integers(1, 9)))
            case _:
                data[at : at + 4] = random.choice([b"\xff" * 4, b"\0" * 4, b"nan ", b"1e99", b"-1  "])
    return bytes(data)


def fuzz(folder: Path, name: str, number: int, seed: int) -> None:
    """Read `number` damaged files of a reader."""
    write, read = READERS[name]
    path = folder / name
    write(path)
    read(path)
    content, random = path.read_bytes(), np.random.default_rng([seed, *name.encode()])
    for case in range(number):
        path.write_bytes(damaged(content, random))
        begin = time.monotonic()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                read(path)
            except (SeicheError, OSError) as error:
                assert str(error) and "\n" not in str(error), case
            except Exception as error:
                raise AssertionError(f"input {case} of {name}: {type(error).__name__}") from error
        assert time.monotonic() - begin < 10, case


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", READERS)
def test_damaged_files(name: str, tmp_path: Path) -> None:
    fuzz(tmp_path, name, NUMBER, 0)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", READERS)
def test_many_damaged_files(name: str, tmp_path: Path) -> None:
    fuzz(tmp_path, name, 100_000 // len(READERS), 1)
