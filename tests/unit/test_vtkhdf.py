# SPDX-License-Identifier: BSD-3-Clause
"""VTK reads back what was written; a series never claims a step that it does not hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from seiche.domain.world import World
from seiche.errors import FormatError
from seiche.io.fields import FieldSeries, Triangles, VoxelCells

WORLD = World.serial()
COORDS = np.array([(0, 0, 0), (0, 0, 1), (2, 1, 1)], np.int32)
VOXELS = VoxelCells((3, 2, 2), COORDS, 0.5, (1.0, 2.0, 3.0))


def _read(path: Path) -> tuple[list[float], list[Any]]:
    """Return the times and the data set of every step, as ParaView would see them."""
    vtk_hdf = pytest.importorskip("vtkmodules.vtkIOHDF")
    from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline

    reader = vtk_hdf.vtkHDFReader()
    reader.SetFileName(str(path))
    reader.UpdateInformation()
    times = reader.GetOutputInformation(0).Get(vtkStreamingDemandDrivenPipeline.TIME_STEPS())
    states = []
    for step in range(reader.GetNumberOfSteps()):
        reader.SetStep(step)
        reader.Update()
        state = reader.GetOutputDataObject(0)
        copy = state.NewInstance()
        copy.DeepCopy(state)
        states.append(copy)
    return list(times or []), states


def _array(data: Any, name: str) -> np.ndarray:
    from vtkmodules.util.numpy_support import vtk_to_numpy

    return vtk_to_numpy(data.GetArray(name))


def test_sites_times_and_values_read_back_exactly(tmp_path: Path) -> None:
    values = np.random.default_rng(0).random((4, 3, 3))
    with FieldSeries(tmp_path / "u.vtkhdf", WORLD, VOXELS, {"u": 3, "p": 1}, 6, dtype="float64") as series:
        for step, u in enumerate(values):
            series.write(0.1 * step, {"u": u, "p": u[:, 0]})
    times, states = _read(tmp_path / "u.vtkhdf")
    assert times == [0.1 * step for step in range(4)]
    for state, u in zip(states, values, strict=True):
        assert state.GetClassName() == "vtkUnstructuredGrid"
        np.testing.assert_array_equal(_array(state.GetCellData(), "u"), u)
        np.testing.assert_array_equal(_array(state.GetCellData(), "p"), u[:, 0])
    bounds = np.array([states[-1].GetCell(i).GetBounds() for i in range(3)])
    sites = np.array([1.0, 2.0, 3.0]) + 0.5 * COORDS
    np.testing.assert_allclose(bounds[:, ::2], sites - 0.25)
    np.testing.assert_allclose(bounds[:, 1::2], sites + 0.25)
    # Two voxels share a face, the third one only touches nothing: 8 + 4 + 8 corners.
    assert states[-1].GetNumberOfPoints() == 20


@pytest.mark.parametrize("on", ["cells", "points"])
def test_surface_values_read_back_exactly(tmp_path: Path, on: Any) -> None:
    vertices = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0.5)])
    surface = Triangles(vertices, np.array([(0, 1, 2), (1, 3, 2)], np.int32))
    rows = surface.rows(on)
    with FieldSeries(tmp_path / "wall.vtkhdf", WORLD, surface, {"tau": 3}, 2, on=on) as series:
        series.write(0.0, {"tau": np.arange(3.0 * rows).reshape(rows, 3)})
        series.write(2.0, {"tau": np.full((rows, 3), 7)})
    times, states = _read(tmp_path / "wall.vtkhdf")
    assert times == [0.0, 2.0]
    assert states[0].GetClassName() == "vtkPolyData"
    assert states[0].GetNumberOfPolys() == 2
    data = [state.GetCellData() if on == "cells" else state.GetPointData() for state in states]
    np.testing.assert_array_equal(_array(data[0], "tau"), np.arange(3.0 * rows).reshape(rows, 3))
    np.testing.assert_array_equal(_array(data[1], "tau"), np.full((rows, 3), 7))
    np.testing.assert_array_equal(states[1].GetPoint(3), (1, 1, 0.5))
    assert [states[1].GetCell(1).GetPointId(i) for i in range(3)] == [1, 3, 2]


def test_file_is_readable_and_true_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "u.vtkhdf"
    with FieldSeries(path, WORLD, VOXELS, {"p": 1}, 40, units={"p": "Pa"}) as series:
        assert not path.exists()
        for step in range(30):
            series.write(step, {"p": np.full(3, step)})
            with h5py.File(path, "r") as file:
                assert file["VTKHDF/Steps"].attrs["NSteps"] == step + 1
                np.testing.assert_array_equal(file["VTKHDF/Steps/Values"], np.arange(step + 1))
                assert file["VTKHDF/CellData/p"].attrs["Units"] == "Pa"
    assert len(_read(path)[1]) == 30


def test_old_file_stays_until_the_first_step_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "u.vtkhdf"
    path.write_text("old")
    FieldSeries(path, WORLD, VOXELS, {"p": 1}, 4).close()
    assert path.read_text() == "old"
    with pytest.raises(ZeroDivisionError), FieldSeries(path, WORLD, VOXELS, {"p": 1}, 4):
        raise ZeroDivisionError
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["u.vtkhdf"]


def test_full_file_says_so_and_keeps_its_steps(tmp_path: Path) -> None:
    path = tmp_path / "u.vtkhdf"
    with FieldSeries(path, WORLD, VOXELS, {"p": 1}, 1) as series:
        series.write(0.0, {"p": np.zeros(3)})
        with pytest.raises(FormatError, match="step 2: the file was created for 1 states; use a larger capacity"):
            series.write(1.0, {"p": np.zeros(3)})
    assert len(_read(path)[1]) == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"p": np.zeros(2)}, r"field 'p': shape \(2,\); expected \(3,\)"),
        ({"p": np.zeros((3, 2))}, "expected"),
        ({}, "differ from the declared"),
        ({"p": np.zeros(3), "q": np.zeros(3)}, "declared"),
    ],
)
def test_wrong_rows_are_rejected_and_leave_the_series_as_it_was(tmp_path: Path, values: Any, message: str) -> None:
    with FieldSeries(tmp_path / "u.vtkhdf", WORLD, VOXELS, {"p": 1}, 4) as series:
        series.write(0.0, {"p": np.ones(3)})
        with pytest.raises(ValueError, match=message):
            series.write(1.0, values)
        series.write(2.0, {"p": np.ones((3, 1))})
    assert _read(tmp_path / "u.vtkhdf")[0] == [0.0, 2.0]


def test_impossible_series_are_rejected(tmp_path: Path) -> None:
    for fields, capacity, on in [
        ({"p": 1}, 0, "cells"),
        ({"p": 1}, 10**9, "cells"),
        ({"a/b": 1}, 1, "cells"),
        ({"p": 0}, 1, "cells"),
        ({"p": 1}, 1, "points"),
    ]:
        with pytest.raises(ValueError, match=r"expected|use on"):
            FieldSeries(tmp_path / "u.vtkhdf", WORLD, VOXELS, fields, capacity, on=on)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_unwritten_steps_take_no_room_on_the_disk(tmp_path: Path) -> None:
    coords = np.stack(np.unravel_index(np.arange(8000), (20, 20, 20)), axis=1).astype(np.int32)
    path = tmp_path / "u.vtkhdf"
    with FieldSeries(path, WORLD, VoxelCells((20, 20, 20), coords), {"u": 3}, 500) as series:
        series.write(0.0, {"u": coords})
    status = path.stat()
    assert status.st_size > 500 * 8000 * 12
    assert 512 * status.st_blocks < 4_000_000
