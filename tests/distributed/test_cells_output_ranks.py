# SPDX-License-Identifier: BSD-3-Clause
"""Surfaces and positions of cells written by several ranks: the same contents as those written by one."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest
from launch import run_ranks

from case_files import blood_tables, toml_of
from seiche.case.blood.series import surface_parts
from seiche.case.loading import load
from seiche.cells import icosphere
from seiche.domain.world import World
from seiche.io import surface_file
from seiche.io.background import write_now
from seiche.io.cell_files import read_surfaces
from seiche.io.compression import Compression, ErrorBound
from seiche.io.surface_file import CellSurfaces, SurfaceExtent, SurfacePart, SurfacesJob, write_surfaces

BALL = icosphere(162)
CELLS = 40
COMPRESSIONS = {"none": None, "deflate": Compression({"position": ErrorBound(absolute=1e-8)})}


def _surfaces(first: int, last: int) -> CellSurfaces:
    """Return the cells of these numbers, with indices of vertices in the file of all."""
    numbers = np.arange(first, last)
    vertices = 2e-6 * (BALL.vertices + 3.0 * numbers[:, None, None])
    faces = BALL.faces + 162 * numbers[:, None, None]
    return CellSurfaces(
        1e-3,
        vertices.reshape(-1, 3),
        faces.reshape(-1, 3),
        {"velocity": 1e3 * vertices.reshape(-1, 3)},
        {"cell": np.repeat(numbers, len(BALL.faces))},
    )


def write_parts(path: str, compression: str, failing: str) -> None:
    """Write a file of which the middle rank has no cells; the parts of rank `failing` raise an error."""
    world = World.from_mpi()
    bounds = [0, 15, 15, CELLS]
    first, last = bounds[world.rank : world.rank + 2]

    def parts() -> list[SurfacePart]:
        if str(world.rank) == failing:
            raise OSError(28, "No space left on device")
        return [SurfacePart(162 * first, len(BALL.faces) * first, _surfaces(first, last))]

    extent = SurfaceExtent(
        1e-3, 162 * CELLS, len(BALL.faces) * CELLS, {"velocity": ("<f4", (3,))}, {"cell": ("<i8", ())}
    )
    units, bounds_of_errors = {"velocity": "m/s"}, COMPRESSIONS[compression]
    job = SurfacesJob(Path(path), world, extent, parts, units=units, compression=bounds_of_errors)
    try:
        write_now(job, world)
    except OSError as error:
        print(f"rank {world.rank}: {error.strerror}\n", end="", flush=True)


def _contents(path: Path) -> dict[str, object]:
    """Return all values and attributes of a file by name."""
    contents: dict[str, object] = {}

    def add(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if isinstance(item, h5py.Dataset):
            contents[name] = (item.dtype.str, item.shape, item[()].tobytes(), item.compression)
        contents.update({f"{name}:{key}": np.asarray(value).tobytes() for key, value in item.attrs.items()})

    with h5py.File(path, "r") as file:
        add("", file)
        file.visititems(add)
    return contents


@pytest.mark.parametrize("compression", list(COMPRESSIONS))
def test_ranks_write_the_contents_of_one(compression: str, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("three.vtkhdf", "one.vtkhdf")]
    run_ranks(3, write_parts, str(files[0]), compression, "none")
    write_surfaces(files[1], _surfaces(0, CELLS), {"velocity": "m/s"}, COMPRESSIONS[compression])
    assert _contents(files[0]) == _contents(files[1])
    stored, exact = read_surfaces(files[0]), _surfaces(0, CELLS)
    assert np.array_equal(stored.faces, exact.faces)
    error = np.abs(stored.vertices - exact.vertices).max()
    assert 1e-10 < error < 1.01e-8 if compression == "deflate" else error < 1e-11
    assert np.array_equal(stored.on_faces["cell"], exact.on_faces["cell"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.vtkhdf", "three.vtkhdf"]


def test_a_failure_of_one_rank_is_raised_on_all_and_keeps_the_earlier_file(tmp_path: Path) -> None:
    path = tmp_path / "cells.vtkhdf"
    path.write_text("earlier")
    output = run_ranks(3, write_parts, str(path), "none", "2", new_processes=True)
    assert all(f"rank {rank}: No space left on device" in output for rank in range(3))
    assert [entry.name for entry in tmp_path.iterdir()] == ["cells.vtkhdf"]
    assert path.read_text() == "earlier"


def test_a_file_that_cannot_be_opened_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(13, "Permission denied")

    monkeypatch.setattr(surface_file, "ParallelFile", fail)
    with pytest.raises(OSError, match="Permission denied"):
        write_surfaces(tmp_path / "cells.vtkhdf", _surfaces(0, 2))
    assert not list(tmp_path.iterdir())


def test_parts_are_those_of_the_time_at_which_they_were_taken(tmp_path: Path) -> None:
    """In an open vessel, cells enter and leave before a thread of the output computes the surfaces."""
    tables = blood_tables()
    tables["packing"]["hematocrit"] = 0.1
    tables["cells"] = [{**tables["cells"][0], "name": name} for name in ("a", "b")]
    tables["time"]["steps"] = 1
    (tmp_path / "case.toml").write_text(toml_of(tables))
    with load(tmp_path / "case.toml") as simulation:
        run = simulation.blood
        assert run is not None
        populations = run.own_populations()
        expected = surface_parts(run, populations, 0.0)
        assert expected[1].first_vertex == 162 * len(run.ids[0]) > 0
        run.ids = [ids[1:] for ids in run.ids]
        parts = surface_parts(run, populations, 0.0)
    assert [(part.first_vertex, part.first_face) for part in parts] == [
        (part.first_vertex, part.first_face) for part in expected
    ]
    assert np.array_equal(parts[1].surfaces.faces, expected[1].surfaces.faces)


def run_case(folder: str, name: str) -> None:
    """Run the case of the test below on all ranks."""
    load(Path(folder) / "case.toml", output=Path(folder) / name, world=World.from_mpi()).run()


def test_a_case_writes_the_same_cells_on_any_number_of_ranks(tmp_path: Path) -> None:
    tables = blood_tables()
    tables["geometry"]["shape"] = {"kind": "tube", "radius": "6 um", "length": "12 um", "periodic": True}
    tables["packing"]["hematocrit"] = 0.15
    tables["time"]["steps"] = 4
    tables["run"] = {"threads": 1}
    tables["body_force"] = {"force": ["1e6 N/m^3", "0 N/m^3", "0 N/m^3"]}
    packed = {"compression": "deflate", "absolute_error": {"position": "1 nm"}}
    tables["output"] = {
        "cells": [
            {"file": "cells.vtkhdf", "every": 2},
            {"file": "packed.vtkhdf", "every": 2, **packed},
            {"file": "cells.pos", "every": 2},
        ]
    }
    (tmp_path / "case.toml").write_text(toml_of(tables))
    for ranks in (1, 3):
        run_ranks(ranks, run_case, str(tmp_path), f"out{ranks}")
    names = sorted(path.name for path in (tmp_path / "out1").iterdir() if path.name.startswith(("cells.", "packed.")))
    assert len(names) >= 3 * 2
    one, three = (partial(Path, tmp_path / f"out{ranks}") for ranks in (1, 3))
    for name in names:
        if name.endswith((".pos", ".series")):
            assert one(name).read_text() == three(name).read_text(), name
        else:
            assert _contents(one(name)) == _contents(three(name)), name
    assert len(read_surfaces(one("cells.000000004.vtkhdf")).vertices) > 0
