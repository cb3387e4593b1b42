# SPDX-License-Identifier: BSD-3-Clause
"""A checkpoint returns every bit of a state, whatever the order and the type of its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from seiche.domain.world import World
from seiche.io import checkpoint as module
from seiche.io import checkpoint_format, checkpoint_rows
from seiche.io.checkpoint import ALL, inspect_checkpoint, read_checkpoint, write_checkpoint
from seiche.solver import RowSet, State

WORLD = World.serial()
VERSION_1 = Path(__file__).resolve().parents[1] / "data" / "version-1.seiche"


def _write(path: Path, owned: np.ndarray, **arrays: np.ndarray) -> None:
    write_checkpoint(path, WORLD, State(3, {"sites": RowSet(owned, len(owned), arrays)}), attributes={})


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), n=st.integers(0, 20))
def test_rows_come_back_bitwise(tmp_path: Path, data: st.DataObject, n: int) -> None:
    dtypes = st.sampled_from(["f2", "f4", "f8", "i1", "u2", "i4", "i8", "?", ">f8"]).map(np.dtype)
    columns = data.draw(arrays_of.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=4))
    array = data.draw(arrays_of.arrays(data.draw(dtypes), (n, *columns)))
    written = np.array(data.draw(st.permutations(range(n))), np.int64)
    expected = np.array(data.draw(st.permutations(range(n))), np.int64)
    _write(tmp_path / "state", written, a=array[written])
    for keys, order in ((expected, expected), (ALL, np.arange(n))):
        rows = read_checkpoint(tmp_path / "state", WORLD, {"sites": keys}).rows["sites"]
        back = rows.arrays["a"][:]
        assert rows.total == n
        np.testing.assert_array_equal(rows.keys, order)
        assert back.dtype == array.dtype.newbyteorder("=")
        assert back.astype(array.dtype).tobytes() == array[order].tobytes()


def _several() -> State:
    generator = np.random.default_rng(4)
    sets = {
        "sites": RowSet(
            generator.permutation(40), 40, {"f": generator.random((40, 19)), "inside": np.arange(40) % 2 > 0}
        ),
        "points": RowSet(generator.permutation(12), 12, {"f": generator.random((12, 2, 3), np.float32)}),
        "cells/red": RowSet(np.zeros(0, np.int64), 0, {"vertices": np.zeros((0, 642, 3))}),
        "planes": RowSet(np.arange(2), 2, {}),
    }
    numbers = {
        "largest": generator.random((3, 5)),
        "order": np.arange(7, dtype=">i4"),
        "none": np.zeros((0, 4)),
        "one": np.array(0.3),
    }
    return State(8, sets, numbers, {"iolets.a": 7, "samples": 0.1 + 0.2})


def test_several_row_sets_numbers_and_attributes_come_back(tmp_path: Path) -> None:
    state = _several()
    write_checkpoint(tmp_path / "state", WORLD, state, attributes={"model": "abc"})
    keys = {"cells/red": ALL, "sites": np.array([39, 0, 7]), "points": ALL, "planes": np.array([1]), "sensors": ALL}
    back = read_checkpoint(tmp_path / "state", WORLD, keys)
    assert back.step == 8
    assert back.attributes == {"iolets.a": 7, "samples": 0.1 + 0.2, "model": "abc"}
    assert list(back.rows) == ["cells/red", "sites", "points", "planes"]
    for name, rows in back.rows.items():
        inputs = state.rows[name]
        at = np.argsort(inputs.keys)[rows.keys]
        assert rows.total == inputs.total
        assert rows.arrays.keys() == inputs.arrays.keys()
        for item, values in rows.arrays.items():
            assert values.dtype == inputs.arrays[item].dtype
            assert values[:].tobytes() == inputs.arrays[item][:][at].tobytes()
    for name, values in back.replicated.items():
        assert values.shape == state.replicated[name].shape
        np.testing.assert_array_equal(values, state.replicated[name])


def test_row_sets_that_are_not_requested_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_checkpoint(tmp_path / "state", WORLD, _several(), attributes={})
    read = _chunks_read(monkeypatch)
    assert list(read_checkpoint(tmp_path / "state", WORLD, {"points": np.array([3])}).rows) == ["points"]
    assert {name for name, _ in read} == {"points"}


def test_the_header_describes_every_array_without_reading_one(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "state", WORLD, _several(), attributes={"geometry": "å1\n"})
    header = inspect_checkpoint(tmp_path / "state")
    assert (header.step, header.attributes["geometry"]) == (8, "å1\n")
    described = {
        name: (rows.total, {item.name: (item.dtype.str, item.shape) for item in rows.arrays})
        for name, rows in header.rows.items()
    }
    assert described == {
        "sites": (40, {"f": ("<f8", (19,)), "inside": ("|b1", ())}),
        "points": (12, {"f": ("<f4", (2, 3))}),
        "cells/red": (0, {"vertices": ("<f8", (642, 3))}),
        "planes": (2, {}),
    }
    assert {name: (item.dtype.str, item.shape) for name, item in header.replicated.items()} == {
        "largest": ("<f8", (3, 5)),
        "order": ("<i4", (7,)),
        "none": ("<f8", (0, 4)),
        "one": ("<f8", ()),
    }


def test_chunks_join_without_seam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_format, "CHUNK_ROWS", 7)
    owned = np.random.default_rng(0).permutation(50)
    _write(tmp_path / "state", owned, a=owned * 2.0)
    assert len(inspect_checkpoint(tmp_path / "state").rows["sites"].chunks) == 8
    state = read_checkpoint(tmp_path / "state", WORLD, {"sites": np.arange(50)})
    np.testing.assert_array_equal(state["a"], np.arange(50) * 2)


@pytest.mark.parametrize("span", [0, 1 << 22], ids=["search", "table"])
@pytest.mark.parametrize("threads", [1, 3])
def test_any_rows_of_overlapping_chunks_are_read_by_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, span: int
) -> None:
    """Rows in order, reversed, interleaved and at random; requests of ranges, of every third row, and at random."""
    monkeypatch.setattr(checkpoint_format, "CHUNK_ROWS", 16)
    monkeypatch.setattr(checkpoint_rows, "_TABLE_SPAN", span)
    monkeypatch.setattr(World, "threads", lambda world, requested=None: threads)
    generator, n = np.random.default_rng(6), 200
    values = generator.random((n, 3), np.float32)
    orders = [np.arange(n), np.arange(n)[::-1], np.r_[np.arange(0, n, 2), np.arange(1, n, 2)], generator.permutation(n)]
    requests = [
        np.arange(n),
        np.arange(40, 97),
        np.arange(199, 3, -1),
        np.arange(1, n, 3),
        generator.permutation(n)[:50],
    ]
    for written in orders:
        _write(tmp_path / "state", written, a=values[written])
        for keys in requests:
            rows = read_checkpoint(tmp_path / "state", WORLD, {"sites": keys}).rows["sites"]
            np.testing.assert_array_equal(rows.arrays["a"][:], values[keys])


def _chunks_read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Return a list to which the row set and the first row of every chunk are added that is read."""
    read: list[tuple[str, int]] = []
    original = checkpoint_rows.read_chunk

    def counted(path: Path, file: Any, layout: Any, chunk: Any, *rest: Any, **more: Any) -> Any:
        read.append((layout.name, chunk.first))
        return original(path, file, layout, chunk, *rest, **more)

    monkeypatch.setattr(checkpoint_rows, "read_chunk", counted)
    return read


def test_only_chunks_with_a_requested_row_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_format, "CHUNK_ROWS", 10)
    read = _chunks_read(monkeypatch)
    _write(tmp_path / "state", np.arange(100), a=np.arange(100.0))
    state = read_checkpoint(tmp_path / "state", WORLD, {"sites": np.array([35, 31])})
    np.testing.assert_array_equal(state["a"], [35, 31])
    assert set(read) == {("sites", 30)}


class Series:
    """Rows of 3000 numbers that are made on request; stores the largest number requested at once."""

    dtype, shape, most = np.dtype(np.float64), (4, 3000), 0

    def __len__(self) -> int:
        """Return the number of rows."""
        return 4

    def __getitem__(self, rows: slice) -> np.ndarray:
        """Return some rows."""
        numbers = np.arange(4)[rows]
        self.most = max(self.most, len(numbers))
        return np.add.outer(numbers * 1e4, np.arange(3000.0))


def test_rows_longer_than_a_chunk_are_written_and_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_format, "CHUNK_BYTES", 10_000)
    series = Series()
    state = State(1, {"sensors": RowSet(np.array([2, 0, 3, 1]), 4, {"p": series, "number": np.arange(4)})})
    write_checkpoint(tmp_path / "state", WORLD, state, attributes={})
    assert series.most == 1
    read = _chunks_read(monkeypatch)
    back = read_checkpoint(tmp_path / "state", WORLD, {"sensors": np.array([3])})
    np.testing.assert_array_equal(back["p"], series[2:3])
    np.testing.assert_array_equal(back["number"], [2])
    assert set(read) == {("sensors", 2)}


def test_attributes_keep_type_and_every_bit_of_a_float(tmp_path: Path) -> None:
    attributes = {"geometry": "å1\n", "tau": 0.1 + 0.2, "cycles": 2**60}
    write_checkpoint(tmp_path / "state", WORLD, State(0, {}), attributes=attributes)
    back = inspect_checkpoint(tmp_path / "state").attributes
    assert back == attributes
    assert [type(value) for value in back.values()] == [str, float, int]


def test_failed_write_keeps_the_checkpoint_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path / "state", np.arange(4), a=np.ones(4))
    before = (tmp_path / "state").read_bytes()

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.ParallelFile, "write", full)
    with pytest.raises(OSError, match="No space left"):
        _write(tmp_path / "state", np.arange(4), a=np.zeros(4))
    assert (tmp_path / "state").read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["state"]


def test_a_file_of_version_1_has_one_row_set_of_the_requested_name() -> None:
    """The file was written by the program as it was before version 2."""
    assert inspect_checkpoint(VERSION_1).version == 1
    expected = np.array([8, 0, 3])
    for name in ("sites", "elements"):
        state = read_checkpoint(VERSION_1, WORLD, {name: expected, "sensors": ALL})
        assert (state.step, list(state.rows), dict(state.replicated)) == (21, [name], {})
        assert state.attributes == {"geometry": "å1\n", "seconds": 0.1 + 0.2, "iolets.a": 7}
        np.testing.assert_array_equal(state["populations"], np.arange(9 * 19.0).reshape(9, 19)[expected] / 7)
        np.testing.assert_array_equal(state["relaxation"], (expected / 3).astype(np.float32))
        np.testing.assert_array_equal(state["inside"], expected % 3 == 0)
    assert not read_checkpoint(VERSION_1, WORLD, {}).rows
