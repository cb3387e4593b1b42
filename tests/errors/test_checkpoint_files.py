# SPDX-License-Identifier: BSD-3-Clause
"""A damaged checkpoint is refused with a place and a reason; it never crashes the reader nor makes it allocate."""

from __future__ import annotations

import json
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seiche.domain.world import World
from seiche.errors import FormatError
from seiche.io.checkpoint import read_checkpoint, write_checkpoint

WORLD = World.serial()
N_SITES = 9


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("state") / "state"
    arrays = {"f": np.random.default_rng(0).random((N_SITES, 3))}
    write_checkpoint(
        path, WORLD, time_step=5, owned=np.arange(N_SITES), arrays=arrays, n_sites=N_SITES, attributes={"a": 1}
    )
    return path.read_bytes()


def _read(path: Path) -> None:
    read_checkpoint(path, WORLD, np.arange(N_SITES))


def test_every_flipped_bit_is_noticed(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state"
    path.write_bytes(content)
    _read(path)
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(FormatError):
            _read(path)


def test_every_truncation_is_noticed(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state"
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(FormatError):
            _read(path)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=st.integers(0, 600), junk=st.binary(min_size=0, max_size=80), insert=st.booleans())
def test_other_bytes_anywhere_are_noticed(
    tmp_path: Path, content: bytes, start: int, junk: bytes, insert: bool
) -> None:
    damaged = content[:start] + junk + content[start + (0 if insert else len(junk)) :]
    if damaged == content:
        return
    (tmp_path / "state").write_bytes(damaged)
    with pytest.raises(FormatError):
        _read(tmp_path / "state")


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=300))
def test_no_bytes_at_all_crash_the_reader(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "state").write_bytes(data)
    with pytest.raises(FormatError):
        _read(tmp_path / "state")


def _forge(content: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """Return the file with another footer and checksums that fit it, as a malicious writer would make it."""
    (offset,) = struct.unpack_from("<Q", content, 16)
    footer = json.loads(content[offset:])
    change(footer)
    text = json.dumps(footer).encode()
    head = struct.pack("<8sIIQQ28x", content[:8], 1, zlib.crc32(text), offset, len(text))
    return head + struct.pack("<I", zlib.crc32(head)) + content[64:offset] + text


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda f: f.update(sites=10**15), "chunks of 9 rows"),
        (lambda f: f.update(sites=-1), "not a count"),
        (lambda f: f["arrays"][1].update(shape=[10**12]), "rows of shape"),
        (lambda f: f["arrays"][1].update(shape=[4]), "do not fill"),
        (lambda f: f["arrays"][1].update(dtype="O"), "has type object"),
        (lambda f: f["arrays"][1].update(dtype="(1000,)f8"), "has type"),
        (lambda f: f["arrays"].clear(), "first array must be 'site'"),
        (lambda f: f["chunks"][0].__setitem__(1, 10**9), "chunk of 1000000000 rows"),
        (lambda f: f["chunks"][0].__setitem__(3, 10**9), "sites 0..1000000000"),
        (lambda f: f["chunks"][0].pop(), "1 checksums for 2 arrays"),
        (lambda f: f.pop("attributes"), "attributes"),
        (lambda f: f["attributes"].update(a=[1]), "neither text nor number"),
    ],
)
def test_absurd_header_is_refused_without_allocating(
    tmp_path: Path, content: bytes, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    (tmp_path / "state").write_bytes(_forge(content, change))
    tracemalloc.start()
    with pytest.raises(FormatError, match=reason):
        _read(tmp_path / "state")
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_messages_name_file_place_and_reason(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state"
    damaged = bytearray(content)
    damaged[64 + 8 * N_SITES] ^= 1
    for data, message in [
        (b"solid vessel", f"{path}: byte 0: not a Seiche checkpoint (wrong magic)"),
        (content[:40], f"{path}: preamble: truncated: 40 of 64 bytes"),
        (content[:-3], f"the file at {len(content) - 3} (truncated?)"),
        (bytes(damaged), f"{path}: array 'f', rows 0..8: damaged (checksum does not match)"),
    ]:
        path.write_bytes(data)
        with pytest.raises(FormatError) as caught:
            _read(path)
        assert message in str(caught.value)


def test_site_that_is_not_stored_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state").write_bytes(content)
    with pytest.raises(FormatError, match="site 9: not in this checkpoint of 9 sites"):
        read_checkpoint(tmp_path / "state", WORLD, np.array([9]))


def test_rows_that_do_not_match_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    for arrays, n_sites, message in [
        ({"f": np.zeros(3)}, 4, "array 'f'"),
        ({"f": np.zeros(4)}, 5, "own 4 sites together, need 5"),
        ({"site": np.zeros(4)}, 4, "may not be called 'site'"),
        ({"f": np.zeros(4, complex)}, 4, "complex128"),
    ]:
        with pytest.raises(ValueError, match=message):
            write_checkpoint(
                tmp_path / "s", WORLD, time_step=0, owned=np.arange(4), arrays=arrays, n_sites=n_sites, attributes={}
            )
    assert not list(tmp_path.iterdir())
