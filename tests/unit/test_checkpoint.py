# SPDX-License-Identifier: BSD-3-Clause
"""A checkpoint gives back every bit, whatever the order and the type of the rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from seiche.domain.world import World
from seiche.io import checkpoint as module
from seiche.io.checkpoint import inspect_checkpoint, read_checkpoint, write_checkpoint

WORLD = World.serial()


def _write(path: Path, owned: np.ndarray, **arrays: np.ndarray) -> None:
    write_checkpoint(path, WORLD, time_step=3, owned=owned, arrays=arrays, n_sites=len(owned), attributes={})


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), n=st.integers(0, 20))
def test_rows_come_back_bit_for_bit(tmp_path: Path, data: st.DataObject, n: int) -> None:
    dtypes = st.sampled_from(["f2", "f4", "f8", "i1", "u2", "i4", "i8", "?", ">f8"]).map(np.dtype)
    columns = data.draw(arrays_of.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=4))
    array = data.draw(arrays_of.arrays(data.draw(dtypes), (n, *columns)))
    written = np.array(data.draw(st.permutations(range(n))), np.int64)
    wanted = np.array(data.draw(st.permutations(range(n))), np.int64)
    _write(tmp_path / "state", written, a=array[written])
    back = read_checkpoint(tmp_path / "state", WORLD, wanted).arrays["a"]
    assert back.dtype == array.dtype.newbyteorder("=")
    assert back.astype(array.dtype).tobytes() == array[wanted].tobytes()


def test_chunks_join_without_seam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_ROWS", 7)
    owned = np.random.default_rng(0).permutation(50)
    _write(tmp_path / "state", owned, a=owned * 2.0)
    assert len(inspect_checkpoint(tmp_path / "state").chunks) == 8
    state = read_checkpoint(tmp_path / "state", WORLD, np.arange(50))
    np.testing.assert_array_equal(state.arrays["a"], np.arange(50) * 2)


def test_only_chunks_with_a_wanted_site_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_ROWS", 10)
    read: list[int] = []
    original = module._read_chunk

    def counted(path: Path, file: object, header: object, chunk: module.Chunk, number: int) -> object:
        read.append(chunk.first)
        return original(path, file, header, chunk, number)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_read_chunk", counted)
    _write(tmp_path / "state", np.arange(100), a=np.arange(100.0))
    state = read_checkpoint(tmp_path / "state", WORLD, np.array([35, 31]))
    np.testing.assert_array_equal(state.arrays["a"], [35, 31])
    assert set(read) == {30}


def test_attributes_keep_type_and_every_bit_of_a_float(tmp_path: Path) -> None:
    attributes = {"geometry": "å1\n", "tau": 0.1 + 0.2, "cycles": 2**60}
    write_checkpoint(
        tmp_path / "state", WORLD, time_step=0, owned=np.arange(1), arrays={}, n_sites=1, attributes=attributes
    )
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
