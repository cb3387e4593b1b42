# SPDX-License-Identifier: BSD-3-Clause
"""Files that several ranks write together are those that one rank would have written."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from launch import run_ranks

from seiche.solver import RowSet, State

N_SITES = 5000
SHAPE = (17, 18, 19)


def _owned(ranks: int, rank: int, seed: int = 0) -> np.ndarray:
    return np.flatnonzero(np.random.default_rng([seed, ranks]).integers(0, ranks, N_SITES) == rank)


N_SENSORS = 7


def _state(sites: np.ndarray, sensors: np.ndarray) -> State:
    """Return these rows of a state with two row sets, one without items and numbers that all ranks have."""
    generator = np.random.default_rng(1)
    arrays = {
        "populations": generator.standard_normal((N_SITES, 19))[sites],
        "relaxation": generator.random(N_SITES).astype(np.float32)[sites],
    }
    series = {"p": generator.random((N_SENSORS, 5000))[sensors]}
    rows = {
        "sites": RowSet(sites, N_SITES, arrays),
        "cells/red": RowSet(np.zeros(0, np.int64), 0, {"vertices": np.zeros((0, 12, 3))}),
        "sensors": RowSet(sensors, N_SENSORS, series),
    }
    return State(12, rows, {"largest": generator.random((3, 4))}, {"iolets.a": 3})


def _coords() -> np.ndarray:
    cells = np.random.default_rng(2).permutation(np.prod(SHAPE))[:N_SITES]
    return np.stack(np.unravel_index(np.sort(cells), SHAPE), axis=1).astype(np.int32)


def write_state(path: str) -> None:
    from seiche.domain.world import World
    from seiche.io.checkpoint import write_checkpoint

    world = World.from_mpi()
    # The last rank has no sensor unless it is alone.
    sensors = np.flatnonzero(np.arange(N_SENSORS) % max(1, world.size - 1) == world.rank)
    state = _state(_owned(world.size, world.rank), sensors)
    write_checkpoint(path, world, state, attributes={"model": "abc", "tau": 0.1})


def read_state(path: str) -> None:
    from seiche.domain.world import World
    from seiche.io.checkpoint import ALL, read_checkpoint

    world = World.from_mpi()
    owned = _owned(world.size, world.rank, seed=7)
    state = read_checkpoint(path, world, {"sites": owned, "sensors": ALL, "cells/red": ALL})
    expected = _state(owned, np.arange(N_SENSORS))
    assert state.step == expected.step
    assert state.attributes == {"iolets.a": 3, "model": "abc", "tau": 0.1}
    for name in ("populations", "relaxation", "p", "vertices", "largest"):
        assert (state[name].dtype, state[name].shape) == (expected[name].dtype, expected[name].shape)
        assert state[name].tobytes() == expected[name].tobytes()
    print("same")


def write_different(path: str) -> None:
    from seiche.domain.world import World
    from seiche.io.checkpoint import write_checkpoint

    world = World.from_mpi()
    rows = RowSet(np.array([world.rank]), world.size, {f"of rank {world.rank}": np.zeros(1)})
    try:
        write_checkpoint(path, world, State(0, {"sites": rows}), attributes={})
    except ValueError as error:
        print(f"rejected: {error}")


def read_damaged(path: str) -> None:
    from seiche.domain.world import World
    from seiche.errors import FormatError
    from seiche.io.checkpoint import read_checkpoint

    world = World.from_mpi()
    # Only the last rank requests the damaged rows; all must raise the error.
    owned = np.arange(N_SITES) if world.rank == world.size - 1 else np.zeros(0, np.int64)
    try:
        read_checkpoint(path, world, {"sites": owned})
    except FormatError as error:
        print(f"rejected: {error}")


def write_series(path: str) -> None:
    from seiche.domain.world import World
    from seiche.io.fields import FieldSeries, VoxelCells

    world = World.from_mpi()
    owned = _owned(world.size, world.rank)
    coords = _coords()
    cells = VoxelCells(SHAPE, coords, 0.5, (1.0, 2.0, 3.0), owned)
    with FieldSeries(path, world, cells, {"u": 3, "site": 1}, 4) as series:
        for step in range(3):
            series.write(0.25 * step, {"u": coords[owned] * (step + 1.0), "site": owned})


def write_surface(path: str) -> None:
    from seiche.domain.world import World
    from seiche.io.fields import FieldSeries, Triangles

    world = World.from_mpi()
    # Rank r holds r triangles: rank 0 holds none.
    count = world.rank
    vertices = np.arange(9.0 * count).reshape(-1, 3) + 1000 * world.rank
    with FieldSeries(path, world, Triangles(vertices, np.arange(3 * count).reshape(-1, 3)), {"tau": 1}, 1) as series:
        series.write(0.0, {"tau": np.full(count, world.rank)})


def full_disk(path: str) -> None:
    from seiche.domain.world import World
    from seiche.io.parallel import raise_on_all_ranks

    world = World.from_mpi()
    try:
        with raise_on_all_ranks(world):
            if world.rank == world.size - 1:
                raise OSError(28, "No space left on device", path)
    except OSError as error:
        print(f"rank {world.rank} heard {error.errno} {error.filename}")


@pytest.mark.parametrize("writers", [1, 2, 3])
def test_checkpoint_of_any_ranks_is_read_by_any_other_number(tmp_path: Path, writers: int) -> None:
    run_ranks(writers, write_state, tmp_path / "state")
    readers = writers % 3 + 1
    assert run_ranks(readers, read_state, tmp_path / "state").count("same") == readers
    assert [item.name for item in tmp_path.iterdir()] == ["state"]


def test_ranks_with_different_arrays_write_nothing(tmp_path: Path) -> None:
    output = run_ranks(2, write_different, tmp_path / "state")
    assert output.count("rejected: the arrays differ between ranks") == 2
    assert not list(tmp_path.iterdir())


def test_damage_seen_by_one_rank_is_rejected_by_all(tmp_path: Path) -> None:
    run_ranks(1, write_state, tmp_path / "state")
    data = bytearray((tmp_path / "state").read_bytes())
    data[len(data) // 2] ^= 4
    (tmp_path / "state").write_bytes(data)
    output = run_ranks(3, read_damaged, tmp_path / "state")
    assert output.count("rejected:") == 3
    assert output.count("populations") == 3


def test_voxels_of_three_ranks_share_corners_and_hold_every_value(tmp_path: Path) -> None:
    vtk_hdf = pytest.importorskip("vtkmodules.vtkIOHDF")
    from vtkmodules.util.numpy_support import vtk_to_numpy

    path = tmp_path / "u.vtkhdf"
    run_ranks(3, write_series, path)
    coords = _coords()
    reader = vtk_hdf.vtkHDFReader()
    reader.SetFileName(str(path))
    reader.UpdateInformation()
    assert reader.GetNumberOfSteps() == 3
    for step in range(3):
        reader.SetStep(step)
        reader.Update()
        grid = reader.GetOutputDataObject(0)
        site = vtk_to_numpy(grid.GetCellData().GetArray("site")).astype(int)
        np.testing.assert_array_equal(np.sort(site), np.arange(N_SITES))
        np.testing.assert_array_equal(vtk_to_numpy(grid.GetCellData().GetArray("u")), coords[site] * (step + 1.0))
    points = vtk_to_numpy(grid.GetPoints().GetData())
    assert len(np.unique(points, axis=0)) == len(points)
    corners = vtk_to_numpy(grid.GetCells().GetConnectivityArray()).reshape(-1, 8)
    np.testing.assert_allclose(points[corners].mean(axis=1), np.array([1, 2, 3]) + 0.5 * coords[site], atol=1e-12)


def test_surface_parts_of_ranks_are_joined(tmp_path: Path) -> None:
    vtk_hdf = pytest.importorskip("vtkmodules.vtkIOHDF")
    from vtkmodules.util.numpy_support import vtk_to_numpy

    run_ranks(3, write_surface, tmp_path / "wall.vtkhdf")
    reader = vtk_hdf.vtkHDFReader()
    reader.SetFileName(str(tmp_path / "wall.vtkhdf"))
    reader.Update()
    surface = reader.GetOutputDataObject(0)
    np.testing.assert_array_equal(vtk_to_numpy(surface.GetCellData().GetArray("tau")), [1, 2, 2])
    faces = vtk_to_numpy(surface.GetPolys().GetConnectivityArray())
    np.testing.assert_array_equal(faces, np.arange(9))
    first = vtk_to_numpy(surface.GetPoints().GetData())[:, 0]
    np.testing.assert_array_equal(first, [1000, 1003, 1006, 2000, 2003, 2006, 2009, 2012, 2015])


def test_failure_of_one_rank_is_raised_on_all(tmp_path: Path) -> None:
    output = run_ranks(3, full_disk, "there")
    assert all(output.count(f"rank {rank} heard 28 there") == 1 for rank in range(3))


def fail_alone(path: str) -> None:
    from seiche.domain.world import World
    from seiche.io.fields import FieldSeries, VoxelCells

    world = World.from_mpi()
    owned = _owned(world.size, world.rank)
    with FieldSeries(path, world, VoxelCells(SHAPE, _coords(), owned=owned), {"site": 1}, 4) as series:
        series.write(0.0, {"site": owned})
        if world.rank == 1:
            try:
                with series:
                    raise ZeroDivisionError
            except ZeroDivisionError:
                # A file, not a print: the launcher may drop the last words of a job that is aborted.
                Path(path).with_name("rank 1 left").touch()
            world.comm.Abort(3)
        series.write(1.0, {"site": owned})


def test_rank_that_fails_alone_can_leave_and_end_the_job(tmp_path: Path) -> None:
    run_ranks(2, fail_alone, tmp_path / "u.vtkhdf", expect=None, timeout=20)
    assert (tmp_path / "rank 1 left").exists()
    with h5py.File(tmp_path / "u.vtkhdf", "r") as file:
        assert file["VTKHDF/Steps"].attrs["NSteps"] == 1


def open_missing_file(path: str) -> None:
    from seiche.domain.world import World
    from seiche.io.parallel import ParallelFile

    world = World.from_mpi()
    try:
        ParallelFile(Path(path), world)
    except OSError as error:
        print(f"rank {world.rank}: {error}")


def test_file_that_is_not_there_is_an_error_on_every_rank(tmp_path: Path) -> None:
    output = run_ranks(2, open_missing_file, tmp_path / "none")
    assert output.count("cannot be opened for writing") == 2


def write_extraction(path: str) -> None:
    from seiche.domain.world import World
    from seiche.io.formats.extraction import ExtractionField
    from seiche.io.formats.extraction_series import ExtractionSeries

    world = World.from_mpi()
    # The last rank holds none of the sites.
    owned = _owned(world.size - 1, world.rank) if world.size > 1 else np.arange(N_SITES)
    owned = owned if world.rank < max(1, world.size - 1) else owned[:0]
    fields = [ExtractionField("u", 3), ExtractionField("rank", 1, 2), ExtractionField("site", 1, 1, (0.5,))]
    position = {"spacing": 0.5, "origin": (1.0, 2.0, 3.0), "coords": _coords()[owned]}
    with ExtractionSeries(path, world, **position, fields=fields) as series:
        for step in (10, 20):
            values = {"u": _coords()[owned] * step, "rank": np.full(len(owned), world.rank), "site": owned}
            series.write(step, values)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_extraction_of_several_ranks_has_one_part_for_each(tmp_path: Path, ranks: int) -> None:
    from seiche.io.formats.extraction import read_extraction, read_offsets

    run_ranks(ranks, write_extraction, tmp_path / "u.xtr")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["u.off", "u.xtr"]
    read, offsets = read_extraction(tmp_path / "u.xtr"), read_offsets(tmp_path / "u.off")
    assert read.steps.tolist() == [10, 20]
    site = read.values["site"][0, :, 0].astype(int)
    np.testing.assert_array_equal(np.sort(site), np.arange(N_SITES))
    np.testing.assert_array_equal(read.coords, _coords()[site])
    np.testing.assert_array_equal(read.values["u"][1], _coords()[site] * 20.0)
    # The parts lie one behind the other; the step number belongs to rank 0.
    rank = read.values["rank"][0, :, 0]
    assert np.all(np.diff(rank) >= 0)
    size = read.header.site_type.itemsize
    assert np.diff(offsets).tolist() == [np.sum(rank == r) * size + (8 if r == 0 else 0) for r in range(ranks)]
    header = (tmp_path / "u.xtr").read_bytes()[: offsets[0]]
    assert header == read.header.encode()
