# SPDX-License-Identifier: BSD-3-Clause
"""Compressed files contain the same values, or values within their bound, and every HDF5 library reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from test_vtkhdf import _array, _read

from seiche.domain.world import World
from seiche.errors import FormatError
from seiche.io import deflate
from seiche.io.compression import Compression, ErrorBound, chunk_shape, store_array
from seiche.io.fields import FieldSeries, Triangles, VoxelCells

WORLD = World.serial()
SHAPE = (20, 30, 40)


def _special(dtype: str) -> np.ndarray:
    info = np.finfo(dtype)
    values = [0.0, -0.0, np.inf, -np.inf, np.nan, info.max, info.min, info.tiny, -info.tiny, 1.0, -1.0]
    return np.array([*values, info.smallest_subnormal, -3 * info.smallest_subnormal], dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "bound",
    [
        *(ErrorBound(relative=r) for r in (1e-12, 1e-7, 1e-4, 2.0**-10, 0.003, 0.1, 0.5)),
        *(ErrorBound(absolute=a) for a in (1e-300, 1e-45, 1e-30, 1e-3, 0.3, 1.0, 1e10, 1e30, 3e38)),
    ],
)
def test_error_is_within_the_bound_for_numbers_of_all_magnitudes(dtype: str, bound: ErrorBound) -> None:
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 256, 100_000 * np.dtype(dtype).itemsize, dtype=np.uint8).view(dtype)
    scale = (bound.absolute or 1.0) if dtype == "float64" or (bound.absolute or 1.0) > 1e-38 else 1e-38
    near = (scale * rng.standard_normal(10_000) * 10.0 ** rng.uniform(-3, 8, 10_000)).clip(-3e38, 3e38).astype(dtype)
    values = np.concatenate([bits, near, _special(dtype)])
    stored = bound.rounded(values)
    assert stored.dtype == values.dtype
    finite = np.isfinite(values)
    np.testing.assert_array_equal(stored[~finite], values[~finite])
    assert np.isfinite(stored[finite]).all()
    exact = values[finite].astype(np.longdouble)
    error = np.abs(stored[finite].astype(np.longdouble) - exact)
    limit = bound.absolute if bound.absolute is not None else bound.relative * np.abs(exact)
    assert (error <= limit).all()
    np.testing.assert_array_equal(bound.rounded(stored), stored)


def test_bound_must_be_one_positive_number() -> None:
    for arguments in ({}, {"absolute": 1.0, "relative": 0.1}, {"absolute": 0.0}, {"relative": -1.0}):
        with pytest.raises(ValueError, match="expected one positive bound"):
            ErrorBound(**arguments)
    with pytest.raises(ValueError, match="expected one positive bound"):
        ErrorBound(absolute=np.nan)


def test_chunks_have_at_most_a_mebibyte() -> None:
    assert chunk_shape((10**9, 3), 4) == (87381, 3)
    assert chunk_shape((50, 3), 4) == (50, 3)
    assert chunk_shape((7, 400, 600), 4) == (1, 400, 600)
    assert chunk_shape((7, 1000, 2000), 4) == (1, 131, 2000)


def _states(count: int) -> list[dict[str, np.ndarray]]:
    rng, n = np.random.default_rng(2), int(np.prod(SHAPE))
    return [
        {"u": np.cumsum(rng.standard_normal((n, 3)), axis=0).astype("f4"), "p": rng.random(n, "f4")}
        for _ in range(count)
    ]


def _voxels() -> VoxelCells:
    return VoxelCells(SHAPE, np.stack(np.unravel_index(np.arange(np.prod(SHAPE)), SHAPE), axis=1).astype(np.int32))


def _write(path: Path, states: list[dict[str, np.ndarray]], compression: Compression | None, **options: Any) -> None:
    with FieldSeries(path, WORLD, _voxels(), {"u": 3, "p": 1}, 8, compression=compression, **options) as series:
        for number, state in enumerate(states):
            series.write(0.5 * number, state)
        series.compress(2)


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """Return all datasets, and those of the series for the complete steps."""
    arrays = {}
    with h5py.File(path, "r") as file:
        steps, root = int(file["VTKHDF/Steps"].attrs["NSteps"]), file["VTKHDF"]
        rows = int(root["NumberOfCells"][0])
        names: list[str] = []
        root.visit(names.append)
        for name in (name for name in names if isinstance(root[name], h5py.Dataset) and not name.startswith("Steps")):
            arrays[name] = root[name][: steps * rows] if name.startswith("CellData/") else root[name][()]
        for name in ("Values", "PartOffsets", "NumberOfParts", "PointOffsets", "CellOffsets", "CellDataOffsets/u"):
            arrays[f"Steps/{name}"] = root["Steps"][name][:steps]
    return arrays


def test_lossless_file_has_the_same_bits_and_is_smaller(tmp_path: Path) -> None:
    states = _states(3)
    _write(tmp_path / "plain.vtkhdf", states, None, units={"u": "m/s"})
    _write(tmp_path / "small.vtkhdf", states, Compression(), units={"u": "m/s"})
    plain, small = _arrays(tmp_path / "plain.vtkhdf"), _arrays(tmp_path / "small.vtkhdf")
    for name, values in small.items():
        assert values.tobytes() == plain[name].tobytes(), name
    assert small["CellData/u"].tobytes() == np.concatenate([state["u"] for state in states]).tobytes()
    with h5py.File(tmp_path / "small.vtkhdf") as file:
        assert str(file.attrs["program"]).startswith("Seiche")
        field = file["VTKHDF/CellData/u"]
        assert (field.compression, field.shuffle, field.attrs["Units"]) == ("gzip", True, "m/s")
        assert file["VTKHDF/Connectivity"].compression == "gzip"
        assert field.shape == (3 * 24000, 3)
    assert (tmp_path / "small.vtkhdf").stat().st_size < 0.3 * sum(values.nbytes for values in plain.values())


def test_vtk_reads_compressed_states(tmp_path: Path) -> None:
    states = _states(3)
    _write(tmp_path / "u.vtkhdf", states, Compression())
    times, read = _read(tmp_path / "u.vtkhdf")
    assert times == [0.0, 0.5, 1.0]
    for data, state in zip(read, states, strict=True):
        np.testing.assert_array_equal(_array(data.GetCellData(), "u"), state["u"])
        np.testing.assert_array_equal(_array(data.GetCellData(), "p"), state["p"])
    np.testing.assert_allclose(read[0].GetCell(24000 - 1).GetBounds(), [18.5, 19.5, 28.5, 29.5, 38.5, 39.5])


def test_vtk_reads_a_compressed_surface(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    surface = Triangles(rng.random((3000, 3)), rng.integers(0, 3000, (5000, 3)))
    values = rng.random((2, 5000), "f4")
    with FieldSeries(tmp_path / "w.vtkhdf", WORLD, surface, {"tau": 1}, 5, compression=Compression()) as series:
        for number in range(2):
            series.write(number, {"tau": values[number]})
        series.compress()
    _, read = _read(tmp_path / "w.vtkhdf")
    for data, expected in zip(read, values, strict=True):
        assert data.GetNumberOfPolys() == 5000
        np.testing.assert_array_equal(_array(data.GetCellData(), "tau"), expected)


def test_rounded_fields_state_their_bounds_and_hold_them(tmp_path: Path) -> None:
    states, bounds = _states(2), {"u": ErrorBound(absolute=0.01), "p": ErrorBound(relative=1e-3)}
    _write(tmp_path / "exact.vtkhdf", states, Compression())
    _write(tmp_path / "rounded.vtkhdf", states, Compression(bounds))
    exact, rounded = _arrays(tmp_path / "exact.vtkhdf"), _arrays(tmp_path / "rounded.vtkhdf")
    assert 0.0 < np.abs(rounded["CellData/u"] - exact["CellData/u"]).max() <= 0.01
    assert 0.0 < np.abs(rounded["CellData/p"] / exact["CellData/p"] - 1).max() <= 1.001e-3
    assert rounded["Connectivity"].tobytes() == exact["Connectivity"].tobytes()
    with h5py.File(tmp_path / "rounded.vtkhdf") as file:
        assert dict(file["VTKHDF/CellData/u"].attrs) == {"AbsoluteError": 0.01}
        assert dict(file["VTKHDF/CellData/p"].attrs) == {"RelativeError": 1e-3}
    assert (tmp_path / "rounded.vtkhdf").stat().st_size < 0.7 * (tmp_path / "exact.vtkhdf").stat().st_size


def test_compressed_file_grows_again_and_is_compressed_again(tmp_path: Path) -> None:
    states = _states(4)
    _write(tmp_path / "once.vtkhdf", states, Compression())
    with FieldSeries(tmp_path / "u.vtkhdf", WORLD, _voxels(), {"u": 3, "p": 1}, 8, compression=Compression()) as series:
        for number in range(2):
            series.write(0.5 * number, states[number])
        series.compress()
        for number in range(2, 4):
            series.reopen()
            series.write(0.5 * number, states[number])
        with h5py.File(tmp_path / "u.vtkhdf") as file:
            assert file["VTKHDF/CellData/u"].chunks is None
            assert file["VTKHDF/Steps"].attrs["NSteps"] == 4
        series.compress()
    once, again = _arrays(tmp_path / "once.vtkhdf"), _arrays(tmp_path / "u.vtkhdf")
    assert once.keys() == again.keys()
    for name, values in once.items():
        assert values.tobytes() == again[name].tobytes(), name
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["once.vtkhdf", "u.vtkhdf"]


def test_a_failure_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> bytes:
        raise OSError(28, "No space left on device")

    path = tmp_path / "u.vtkhdf"
    with FieldSeries(path, WORLD, _voxels(), {"u": 3, "p": 1}, 8, compression=Compression()) as series:
        series.write(0.0, _states(1)[0])
        before = path.read_bytes()
        monkeypatch.setattr(deflate, "_stream", fail)
        with pytest.raises(OSError, match="No space left"):
            series.compress()
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]
        monkeypatch.undo()
        series.compress()
    assert path.stat().st_size < len(before)


def test_file_of_another_program_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "u.vtkhdf"
    with FieldSeries(path, WORLD, _voxels(), {"u": 3, "p": 1}, 8, compression=Compression()) as series:
        series.write(0.0, _states(1)[0])
        path.unlink()
        with h5py.File(path, "w") as file:
            file["mine"] = np.arange(3)
        with pytest.raises(FormatError, match="cannot be compressed"):
            series.compress()
    with h5py.File(path) as file:
        assert list(file) == ["mine"]


def test_arrays_are_stored_compressed_unless_they_are_small(tmp_path: Path) -> None:
    values = np.cumsum(np.random.default_rng(0).standard_normal((200, 300))).reshape(200, 300)
    bound = Compression({"x": ErrorBound(absolute=1e-3)})
    with h5py.File(tmp_path / "a.h5", "w") as file:
        store_array(file, "x", values, bound)
        store_array(file, "same", values, bound)
        store_array(file, "few", values[0, :5], bound)
        store_array(file, "plain", values, None)
        store_array(file, "ids", np.arange(5000), bound)
    with h5py.File(tmp_path / "a.h5") as file:
        assert 0 < np.abs(file["x"][()] - values).max() <= 1e-3
        assert file["x"].attrs["AbsoluteError"] == 1e-3
        np.testing.assert_array_equal(file["same"], values)
        np.testing.assert_array_equal(file["ids"], np.arange(5000))
        assert [file[name].compression for name in ("x", "same", "few", "plain")] == ["gzip", "gzip", None, None]
