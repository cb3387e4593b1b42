# SPDX-License-Identifier: BSD-3-Clause
"""A damaged checkpoint is rejected with a place and a reason; it never crashes the reader nor makes it allocate."""

from __future__ import annotations

import json
import os
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seiche.domain.world import World
from seiche.errors import FormatError
from seiche.io.checkpoint import ALL, inspect_checkpoint, read_checkpoint, write_checkpoint
from seiche.solver import RowSet, State

WORLD = World.serial()
N_SITES = 9
KEYS = {"sites": ALL, "cells/red": ALL, "sensors": ALL}
EARLIER = Path(__file__).resolve().parents[1] / "data"


def _state() -> State:
    generator = np.random.default_rng(0)
    rows = {
        "sites": RowSet(np.arange(N_SITES), N_SITES, {"f": generator.random((N_SITES, 3))}),
        "cells/red": RowSet(np.zeros(0, np.int64), 0, {"x": np.zeros((0, 3))}),
        "sensors": RowSet(np.array([1, 0]), 2, {"p": generator.random((2, 5)).astype(np.float32)}),
    }
    return State(5, rows, {"largest": generator.random((2, 2))}, {"n": 3})


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("state") / "state"
    write_checkpoint(path, WORLD, _state(), attributes={"a": 1})
    return path.read_bytes()


def _read(path: Path) -> State:
    return read_checkpoint(path, WORLD, KEYS)


def _overwrite(path: Path, at: int, byte: int) -> None:
    # In place: a file system may bring a file to the disk each time that it is truncated and written anew.
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes([byte]))


@pytest.fixture(scope="module", params=[1, 2, 3])
def either(request: pytest.FixtureRequest, content: bytes) -> bytes:
    """Return a file of each version."""
    return (EARLIER / f"version-{request.param}.seiche").read_bytes() if request.param < 3 else content


def test_every_flipped_bit_is_detected(tmp_path: Path, either: bytes) -> None:
    path = tmp_path / "state"
    path.write_bytes(either)
    _read(path)
    for bit in range(0, 8 * len(either), 1 if len(either) < 1000 else 3):
        _overwrite(path, bit // 8, either[bit // 8] ^ 1 << bit % 8)
        with pytest.raises(FormatError):
            _read(path)
        _overwrite(path, bit // 8, either[bit // 8])


def test_every_truncation_is_detected(tmp_path: Path, either: bytes) -> None:
    path = tmp_path / "state"
    path.write_bytes(either)
    for length in reversed(range(len(either))):
        os.truncate(path, length)
        with pytest.raises(FormatError):
            _read(path)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=st.integers(0, 1200), junk=st.binary(min_size=0, max_size=80), insert=st.booleans())
def test_other_bytes_anywhere_are_detected(
    tmp_path: Path, content: bytes, start: int, junk: bytes, insert: bool
) -> None:
    damaged = content[:start] + junk + content[start + (0 if insert else len(junk)) :]
    if damaged == content:
        return
    (tmp_path / "state").unlink(missing_ok=True)
    (tmp_path / "state").write_bytes(damaged)
    with pytest.raises(FormatError):
        _read(tmp_path / "state")


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=300))
def test_no_bytes_at_all_crash_the_reader(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "state").unlink(missing_ok=True)
    (tmp_path / "state").write_bytes(data)
    with pytest.raises(FormatError):
        _read(tmp_path / "state")


def _sealed(content: bytes, footer: bytes) -> bytes:
    """Return the file with another footer and checksums that fit it, as a malicious writer would make it."""
    version, _, offset = struct.unpack_from("<IIQ", content, 8)
    head = struct.pack("<8sIIQQ28x", content[:8], version, zlib.crc32(footer), offset, len(footer))
    return head + struct.pack("<I", zlib.crc32(head)) + content[64:offset] + footer


def _footer(content: bytes) -> bytes:
    (offset,) = struct.unpack_from("<Q", content, 16)
    return content[offset:]


def _forge(content: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    footer = json.loads(_footer(content))
    change(footer)
    return _sealed(content, json.dumps(footer).encode())


def _check_rejected(path: Path, content: bytes, reason: str) -> None:
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match=reason) as caught:
            _read(path)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
        assert len(str(caught.value)) < 400 + len(str(path))
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda f: f["sets"][0].update(total=10**15), "the arrays end at byte"),
        (lambda f: f["sets"][0].update(total=-1), "not a count"),
        (lambda f: f["sets"][0].update(total=True), "not a count"),
        (lambda f: f["sets"][0].update(total=10**4000), "not a count"),
        (lambda f: f["sets"][0]["chunks"].clear(), "contain 0 rows; expected 9"),
        (lambda f: f["sets"][1].update(total=1), "the arrays end at byte"),
        (lambda f: f["sets"][2].update(name="sites"), "a row set appears twice"),
        (lambda f: f["sets"][2].update(name=["sites"]), "not a name"),
        (lambda f: f["sets"].pop(), "the arrays end at byte"),
        (lambda f: f["sets"].append([]), "invalid"),
        (lambda f: f["sets"][0]["arrays"][0].update(shape=[10**12]), "the arrays end at byte"),
        (lambda f: f["sets"][0]["arrays"][0].update(shape=[10**4000]), "not a count"),
        (lambda f: f["sets"][0]["arrays"][0].update(shape=[1] * 40 + [3]), "too large"),
        (lambda f: f["sets"][0]["arrays"][0].update(shape=[4]), "the arrays end at byte"),
        (lambda f: f["sets"][0]["arrays"].append({"name": "g", "dtype": "<f8", "shape": [0, 2**62]}), "too large"),
        (lambda f: f["sets"][1]["arrays"][0].update(shape=[2**40, 2**40]), "too large"),
        (lambda f: f["sets"][0]["arrays"].append(f["sets"][0]["arrays"][0]), "an array appears twice"),
        (lambda f: f["sets"][0]["arrays"][0].update(dtype="O"), "has the unsupported type 'O'"),
        (lambda f: f["sets"][0]["arrays"][0].update(dtype="(1000,)f8"), "has the unsupported type"),
        (lambda f: f["sets"][0]["arrays"][0].update(dtype=["<f8"]), "invalid"),
        (lambda f: f["sets"][0]["chunks"][0].__setitem__(1, 10**9), "chunk of 1000000000 rows"),
        (lambda f: f["sets"][0]["chunks"][0].__setitem__(3, 10**9), "keys 0 to 1000000000"),
        (lambda f: f["sets"][0]["chunks"][0].pop(), "1 checksums for 2 arrays"),
        (lambda f: f["sets"][0]["chunks"].append([9, 0, 0, 0, 0, 0]), "chunk of 0 rows at row 9"),
        (lambda f: f["numbers"][0].update(shape=[10**12]), "the arrays end at byte"),
        (lambda f: f["numbers"][0].pop("checksum"), "checksum"),
        (lambda f: f["numbers"][0].update(name=None), "not a name"),
        (lambda f: f.pop("attributes"), "attributes"),
        (lambda f: f.update(attributes=[[1, 2]]), "invalid"),
        (lambda f: f["attributes"].update(a=[1]), "neither text nor number"),
        (lambda f: f.update(step=1.5), "1.5 is not a count"),
    ],
)
def test_absurd_header_is_rejected_without_allocating(
    tmp_path: Path, content: bytes, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    _check_rejected(tmp_path / "state", _forge(content, change), reason)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda f: f.update(sites=10**15), "the arrays end at byte"),
        (lambda f: f["arrays"].clear(), "first array must be 'site'"),
        (lambda f: f["arrays"][0].update(dtype="<f8"), "first array must be 'site'"),
        (lambda f: f["arrays"][1].update(shape=[4]), "the arrays end at byte"),
        (lambda f: f["chunks"][0].pop(), "3 checksums for 4 arrays"),
        (lambda f: f.pop("time_step"), "time_step"),
    ],
)
def test_absurd_header_of_version_1_is_rejected(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    _check_rejected(tmp_path / "state", _forge((EARLIER / "version-1.seiche").read_bytes(), change), reason)


def test_header_nested_without_end_is_rejected(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state").write_bytes(_sealed(content, b"[" * 100_000))
    with pytest.raises(FormatError, match="footer: invalid"):
        _read(tmp_path / "state")


#: What a mutation puts in the place of a value of the footer.
_ODD: list[Any] = [0, 1, 2, 9, -1, 7.5, True, None, "", "<f4", "|b1", "O", [], [0], {}, 2**31, 2**62, 2**64, 10**400]


def _mutated(value: Any, generator: np.random.Generator) -> Any:
    """Return the JSON value with one change somewhere in it."""
    inner = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    if not inner or generator.random() < 0.1:
        return deepcopy(_ODD[generator.integers(len(_ODD))])
    key = inner[generator.integers(len(inner))]
    action = generator.random()
    if action < 0.1:
        value.pop(key)
    elif action < 0.2 and isinstance(value, list):
        value.insert(key, deepcopy(value[generator.integers(len(value))]))
    else:
        value[key] = _mutated(value[key], generator)
    return value


@pytest.mark.parametrize("seed", range(4))
def test_random_damage_and_forgery_give_nothing_but_a_format_error(
    tmp_path: Path, content: bytes, either: bytes, seed: int
) -> None:
    """A footer that is still valid gives a state of at most the bytes of the file; none makes the reader need more."""
    generator, path = np.random.default_rng(seed), tmp_path / "state"
    accepted, trials = 0, 1000
    tracemalloc.start()
    for _ in range(trials):
        if generator.random() < 0.3:
            data = bytearray(either)
            for at in generator.integers(0, len(data), generator.integers(1, 4)):
                data[at] = generator.integers(256)
            data = data[: generator.integers(len(data))] if generator.random() < 0.3 else data
        elif generator.random() < 0.3:
            footer = bytearray(_footer(either))
            footer[generator.integers(len(footer))] = generator.integers(256)
            data = bytearray(_sealed(either, bytes(footer)))
        else:
            footer_value = json.loads(_footer(either))
            for _ in range(generator.integers(1, 3)):
                footer_value = _mutated(footer_value, generator)
            data = bytearray(_sealed(either, json.dumps(footer_value).encode()))
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        try:
            state = _read(path)
        except FormatError:
            continue
        accepted += 1
        arrays = [
            *state.replicated.values(),
            *(item[:] for rows in state.rows.values() for item in rows.arrays.values()),
        ]
        assert sum(item.nbytes for item in arrays) <= len(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert accepted < trials // 2
    assert peak < len(either) + (64 << 20)


def test_rows_declared_in_two_chunks_are_rejected(tmp_path: Path, content: bytes) -> None:
    """A forged table that has one row twice, with checksums that fit."""
    data = bytearray(content)
    data[64:68] = data[68:72]
    keys = zlib.crc32(bytes(data[64 : 64 + 4 * N_SITES]))
    forged = _forge(bytes(data), lambda f: f["sets"][0]["chunks"][0].__setitem__(4, keys))
    _check_rejected(tmp_path / "state", forged, "sites, rows 0..8: a row is stored twice")


def test_messages_name_file_location_and_reason(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state"
    sites, sensors = 64 + 4 * N_SITES, 64 + 28 * N_SITES
    places = {
        sites: "array 'f' of the sites, rows 0..8",
        sensors: "array 'keys' of the sensors, rows 0..1",
        sensors + 8: "array 'p' of the sensors, rows 0..1",
        sensors + 48: "array 'largest'",
    }
    assert _footer_begin(content) == sensors + 48 + 32
    cases = [
        (b"solid vessel", f"{path}: byte 0: not a Seiche checkpoint (wrong magic number)"),
        (content[:40], f"{path}: preamble: truncated: 40 of 64 bytes"),
        (
            content[:-3],
            f"{path}: footer: truncated: the footer ends at byte {len(content)}, "
            f"but the file has {len(content) - 3} bytes",
        ),
        (content + b"abc", f"{path}: end of file: 3 bytes follow the end of the checkpoint; remove them"),
    ]
    for at, position in places.items():
        damaged = bytearray(content)
        damaged[at] ^= 1
        cases.append((bytes(damaged), f"{path}: {position}: damaged (checksum does not match)"))
    for data, message in cases:
        path.write_bytes(data)
        with pytest.raises(FormatError) as caught:
            _read(path)
        assert message in str(caught.value)


def _footer_begin(content: bytes) -> int:
    """Return where the footer begins."""
    return int(struct.unpack_from("<Q", content, 16)[0])


def test_a_later_version_is_rejected(tmp_path: Path, content: bytes) -> None:
    head = content[:8] + struct.pack("<I", 4) + content[12:60]
    (tmp_path / "state").write_bytes(head + struct.pack("<I", zlib.crc32(head)) + content[64:])
    for read in (_read, inspect_checkpoint):
        with pytest.raises(FormatError, match="byte 8: version 4; this program reads versions 1 to 3"):
            read(tmp_path / "state")


def test_a_file_of_version_2_has_the_present_state(content: bytes, tmp_path: Path) -> None:
    """The file was written by the program as it was before version 3."""
    (tmp_path / "state").write_bytes(content)
    earlier, present = _read(EARLIER / "version-2.seiche"), _read(tmp_path / "state")
    assert inspect_checkpoint(EARLIER / "version-2.seiche").version == 2
    of_version_2 = _footer_begin((EARLIER / "version-2.seiche").read_bytes())
    assert _footer_begin(content) == of_version_2 - 4 * (N_SITES + 2)  # 32-bit keys
    assert (earlier.step, earlier.attributes) == (present.step, present.attributes)
    for name, rows in present.rows.items():
        for label, values in rows.arrays.items():
            np.testing.assert_array_equal(earlier.rows[name].arrays[label][:], values[:])
    np.testing.assert_array_equal(earlier["largest"], present["largest"])


def test_rows_that_are_not_stored_are_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state").write_bytes(content)
    for expected, message in [([9], "sites 9: not in this checkpoint of 9 sites"), ([0, -2], "sites -2: not in")]:
        with pytest.raises(FormatError, match=message):
            read_checkpoint(tmp_path / "state", WORLD, {"sites": np.array(expected)})
    with pytest.raises(ValueError, match="one of the sites is requested twice"):
        read_checkpoint(tmp_path / "state", WORLD, {"sites": np.array([1, 2, 1])})


def test_states_of_the_wrong_shape_are_rejected_before_anything_is_written(tmp_path: Path) -> None:
    def rows(total: int, keys: np.ndarray, **arrays: np.ndarray) -> State:
        return State(0, {"sites": RowSet(keys, total, arrays)}, {}, {"n": 1})

    four = np.arange(4)
    for state, attributes, message in [
        (rows(4, four, f=np.zeros(3)), {}, "array 'f' of the sites has shape"),
        (rows(4, four, f=np.array(1.0)), {}, "array 'f' of the sites has shape"),
        (rows(5, four, f=np.zeros(4)), {}, "the ranks have 4 sites together; expected 5"),
        (rows(4, four + 1, f=np.zeros(4)), {}, "keys 1 to 4; expected 0 to 3"),
        (rows(4, four, f=np.zeros(4, complex)), {}, "complex128"),
        (rows(4, four, f=np.zeros((4, *[1] * 9))), {}, "too large"),
        (State(0, {}, {"names": np.array(["a"])}), {}, "array 'names' has type <U1"),
        (rows(4, four), {"a": [1]}, "attribute 'a' is a list"),
        (rows(4, four), {"n": 1}, "attribute 'n' is set twice"),
    ]:
        with pytest.raises(ValueError, match=message):
            write_checkpoint(tmp_path / "s", WORLD, state, attributes=attributes)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
