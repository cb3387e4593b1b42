# SPDX-License-Identifier: BSD-3-Clause
"""Damaged geometry files give one clear line, and never more memory than their size can justify."""

import struct
import tracemalloc
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from seiche.domain.shapes import tube
from seiche.domain.surface import Surface
from seiche.errors import FormatError
from seiche.io.formats.gmy import read_gmy, write_gmy
from seiche.io.formats.stl import read_stl, write_stl

#: Bytes that reading may take for a byte of the file (deflate alone unpacks up to 1032 for one) and in any case.
BYTES_PER_BYTE, BYTES_ALWAYS = 4000, 2_000_000
many = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def gmy(tmp_path_factory):
    path = tmp_path_factory.mktemp("gmy") / "good.gmy"
    write_gmy(path, tube(4.0, 11.0, 1.0))
    return path.read_bytes()


@pytest.fixture(scope="module")
def stl(tmp_path_factory):
    path = tmp_path_factory.mktemp("stl") / "good.stl"
    vertices = np.random.default_rng(3).random((30, 3))
    write_stl(path, Surface(vertices, np.arange(30, dtype=np.int32).reshape(10, 3)))
    return path.read_bytes()


def check_damaged(read, path, data):
    """Read `data`: either it works or FormatError names the file; memory stays in proportion. Return the error."""
    path.write_bytes(data)
    tracemalloc.start()
    try:
        read(path)
        error = None
    except FormatError as raised:
        error = raised
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= BYTES_ALWAYS + BYTES_PER_BYTE * len(data)
    if error is not None:
        assert str(error).startswith(str(path))
        assert "\n" not in str(error)
    return error


def words(*values):
    return struct.pack(f">{len(values)}I", *values)


def gmy_file(blocks, edge, records, body=b"", magic=0x686C6221, version=4):
    return words(magic, 0x676D7904, version, *blocks, edge, 0) + b"".join(words(*record) for record in records) + body


def one_block(block_words, fluid, edge=1):
    raw = b"".join(word if isinstance(word, bytes) else words(word) for word in block_words)
    packed = zlib.compress(raw)
    return gmy_file((1, 1, 1), edge, [(fluid, len(packed), len(raw))], packed)


def single_site(q=0.5, kind=1, iolet=(), flag=1, normal=(0.0, 0.0, 1.0)):
    links = [kind, *iolet, struct.pack(">f", q)] * 26
    return one_block([1, *links, flag, *(struct.pack(">f", value) for value in normal)], 1)


def test_the_hand_made_site_is_good(tmp_path):
    assert check_damaged(read_gmy, tmp_path / "x.gmy", single_site()) is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "byte 0: the file ends inside its 32-byte preamble"),
        (gmy_file((1, 1, 1), 8, [(1, 1, 2160)], b"x", magic=0x12345678), "byte 0: it does not begin with the magic"),
        (gmy_file((1, 1, 1), 8, [(1, 1, 2160)], b"x", version=5), "byte 8: version 5 is not supported"),
        (gmy_file((0, 1, 1), 8, []), "byte 12: 0 x 1 x 1 blocks"),
        (gmy_file((2**31, 2**31, 2**31), 8, [(1, 1, 1)]), "byte 12: a table of"),
        (gmy_file((1, 1, 1), 2**32 - 1, [(1, 10, 4000)], bytes(10)), "byte 12: .* too large"),
        (gmy_file((1, 1, 1), 8, [(1, 100, 2160)], b"x"), "byte 32: .* truncated or damaged"),
        (gmy_file((1, 1, 1), 8, [(600, 1, 60000)], b"x"), r"block 0 \(byte 32\): .* contradict each other"),
        (gmy_file((1, 1, 1), 64, [(262144, 4, 29360128)], b"abcd"), r"block 0 \(byte 32\): .* contradict each other"),
        (gmy_file((1, 1, 1), 8, [(0, 0, 0)]), "no block contains a fluid site"),
        (gmy_file((1, 1, 1), 8, [(1, 4, 2160)], b"abcd"), r"block 0 \(byte 44\): its zlib stream is damaged"),
        (one_block([0] * 28, 1), r"block 0 \(byte 44\): its records do not fill it exactly"),
        (one_block([1, 9] + [0] * 26, 1), "its records do not fill it exactly"),
        (one_block([1] + [0] * 27 + [0] * 7, 2, edge=2), r"block 0 \(byte 32\)"),
        (one_block([1] + [0] * 27, 1), r"sites: site \(0, 0, 0\) has a link that meets no fluid site and is not cut"),
        (single_site(q=0.0), r"fraction is not in \(0, 1\]"),
        (single_site(q=float("nan")), r"fraction is not in \(0, 1\]"),
        (single_site(normal=(float("inf"), 0.0, 0.0)), "wall normal that is not finite"),
        (single_site(flag=0, normal=()), "a normal but no wall link, or a wall link but no normal"),
        (single_site(kind=2, iolet=(5,), flag=0, normal=()), "no link cuts inlet 0, but one cuts 5"),
        (single_site(kind=3, iolet=(2**32 - 1,), flag=0, normal=()), "no link cuts outlet 0, but one cuts 4294967295"),
    ],
)
def test_damaged_gmy_is_named_by_location_and_reason(tmp_path, data, message):
    error = check_damaged(read_gmy, tmp_path / "x.gmy", data)
    assert error is not None
    with pytest.raises(FormatError, match=message):
        raise error


def test_stream_that_unpacks_to_more_than_announced_is_not_unpacked(tmp_path):
    packed = zlib.compress(bytes(50_000_000))
    data = gmy_file((1, 1, 1), 8, [(1, len(packed), 2160)], packed)
    error = check_damaged(read_gmy, tmp_path / "x.gmy", data)
    assert "does not contain exactly the 2160 bytes" in str(error)


@pytest.fixture(scope="module")
def gmy_plus(tmp_path_factory):
    path = tmp_path_factory.mktemp("gmy") / "good.gmy+"
    write_gmy(path, tube(4.0, 11.0, 1.0), weights="sites")
    return path.read_bytes()


@many
@given(st.data(), st.booleans())
def test_cut_gmy_is_rejected(tmp_path, gmy, gmy_plus, data, plus):
    gmy = gmy_plus if plus else gmy
    length = data.draw(st.integers(0, len(gmy) - 1))
    assert check_damaged(read_gmy, tmp_path / "x.gmy", gmy[:length]) is not None


@many
@given(st.data(), st.booleans())
def test_flipped_bits_in_gmy_never_crash(tmp_path, gmy, gmy_plus, data, plus):
    gmy = gmy_plus if plus else gmy
    damaged = bytearray(gmy)
    for bit in data.draw(st.lists(st.integers(0, 8 * len(gmy) - 1), min_size=1, max_size=4)):
        damaged[bit // 8] ^= 1 << bit % 8
    check_damaged(read_gmy, tmp_path / "x.gmy", bytes(damaged))


@many
@given(
    st.lists(st.one_of(st.integers(0, 70), st.integers(0, 2**32 - 1)), min_size=5, max_size=40), st.binary(max_size=80)
)
def test_absurd_headers_of_gmy_never_allocate(tmp_path, numbers, body):
    data = words(0x686C6221, 0x676D7904, 4, *numbers) + body
    check_damaged(read_gmy, tmp_path / "x.gmy", data)


@many
@given(st.integers(1, 5), st.data(), st.booleans())
def test_any_words_in_a_block_never_crash(tmp_path, edge, data, plus):
    cells = edge**3
    fluid = data.draw(st.integers(1, cells))
    size = data.draw(st.integers(cells + 27 * fluid, cells + 82 * fluid))
    seed, top = data.draw(st.integers(0, 2**32 - 1)), data.draw(st.sampled_from([2, 3, 5, 2**32]))
    values = np.random.default_rng(seed).integers(0, top, size, np.uint64).astype(">u4").tobytes()
    packed = zlib.compress(values)
    record = (fluid, *([data.draw(st.integers(0, 2**32 - 1))] if plus else []), len(packed), len(values))
    check_damaged(read_gmy, tmp_path / "x.gmy", gmy_file((1, 1, 1), edge, [record], packed))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", 'byte 0: neither "solid" nor the 84-byte header'),
        (b"hello", 'byte 5: neither "solid"'),
        (
            bytes(80) + struct.pack("<I", 2**32 - 1) + bytes(100),
            "byte 80: declares 4294967295 triangles, .* space for 2",
        ),
        (bytes(84), "contains no triangle"),
        (bytes(80) + struct.pack("<I", 1) + bytes(50), "all its triangles are degenerate"),
        (
            bytes(80) + struct.pack("<I12fH", 1, *[0.0] * 5, float("nan"), *[0.0] * 6, 0),
            "byte 84: triangle 0 has a coordinate",
        ),
        (bytes(80) + struct.pack("<I12fH", 1, *[0.0] * 5, 3e38, *range(6), 0), "a coordinate exceeds 1e30"),
        (b"solid x\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\n", "end of file: .* truncated"),
        (b"solid x\n", "end of file: .* truncated"),
        (b"solid x\nendsolid x\n", "contains no triangle"),
        (b"solid x\nouter loop\nvertex 0 0 zero\n", "line 3: a vertex needs three numbers"),
        (b"solid x\nouter loop\nvertex 0 0\n", "line 3: a vertex needs three numbers"),
        (b"solid x\nouter loop\nvertex 0 0 nan\n", "line 3: a coordinate is not finite"),
        (b"solid x\nvertex 0 0 0\n", "line 2: a vertex outside of a loop"),
        (b"solid x\nouter loop\nvertex 0 0 0\nendloop\n", "line 4: a facet needs exactly three vertices"),
        (
            b"solid x\nouter loop\nvertex 0 0 0\nouter loop\n",
            "line 4: a loop begins before",
        ),
        (b"solid x\nhello world\n", 'line 2: "hello" is not a keyword'),
    ],
)
def test_damaged_stl_is_named_by_location_and_reason(tmp_path, data, message):
    error = check_damaged(read_stl, tmp_path / "x.stl", data)
    assert error is not None
    with pytest.raises(FormatError, match=message):
        raise error


@many
@given(st.data())
def test_cut_binary_stl_is_rejected(tmp_path, stl, data):
    length = data.draw(st.integers(0, len(stl) - 1))
    assert check_damaged(read_stl, tmp_path / "x.stl", stl[:length]) is not None


@many
@given(st.data())
def test_flipped_bits_in_stl_never_crash(tmp_path, stl, data):
    damaged = bytearray(stl)
    for bit in data.draw(st.lists(st.integers(0, 8 * len(stl) - 1), min_size=1, max_size=8)):
        damaged[bit // 8] ^= 1 << bit % 8
    check_damaged(read_stl, tmp_path / "x.stl", bytes(damaged))


@many
@given(st.one_of(st.binary(max_size=400), st.text(max_size=200).map(str.encode)))
@example(b"solid" + bytes(100))
@example(b"SOLID\r\nvertex")
def test_any_bytes_as_stl_never_crash(tmp_path, data):
    check_damaged(read_stl, tmp_path / "x.stl", data)
    check_damaged(read_stl, tmp_path / "x.stl", b"solid x\nouter loop\nvertex " + data)
