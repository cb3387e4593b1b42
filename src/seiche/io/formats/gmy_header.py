# SPDX-License-Identifier: BSD-3-Clause
"""Preamble and block table of `.gmy` and `.gmy+` files.

A file does not declare its form: it is the one whose table and blocks add up to the size of the file.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seiche.errors import FormatError

PathLike = str | os.PathLike[str]
MAGIC = (0x686C6221, 0x676D7904)
VERSION = 4
#: Words of a fluid site without links, and with 26 iolet links and a normal; a solid site has one word.
MIN_SITE_WORDS, MAX_SITE_WORDS = 28, 83
#: Maximum compression ratio of deflate; a block that declares more is invalid.
DEFLATE_LIMIT = 1032
#: Maximum block edge that is read (files have 8); it bounds the memory for one damaged block.
MAX_EDGE = 64
#: zlib levels by the two bits for them in the header of a stream.
_LEVELS = (1, 5, 6, 9)


@dataclass(frozen=True)
class GmyHeader:
    """Header and block table of a file.

    `blocks` are along x, y, z; `block` is the number of sites along the edge of one. `level` is that of zlib as stored
    in the streams (1, 5, 6 or 9). `plus` is the form with a weight for each block. The blocks begin at the byte `body`.
    `records` (blocks, 3) int64 are fluid sites, compressed and uncompressed bytes. `weights` (blocks,) are int64, None
    in a `.gmy`.
    """

    blocks: tuple[int, int, int]
    block: int
    level: int
    plus: bool
    body: int
    records: npt.NDArray[np.int64]
    weights: npt.NDArray[np.int64] | None = None


def read_gmy_header(path: PathLike) -> GmyHeader:
    """Read the preamble and block table of `path`; raises FormatError when they contradict the file's size."""
    with Path(path).open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        preamble = file.read(32)
        blocks = math.prod(np.frombuffer(preamble, ">u4")[3:6].tolist()) if size >= 32 else 0
        return _parsed(path, preamble + file.read(min(16 * blocks + 2, size)), size)


def _parsed(path: PathLike, data: bytes, size: int) -> GmyHeader:
    """Return the header at the beginning `data` of the file `path` of `size` bytes; raises FormatError."""
    if size < 32:
        raise FormatError(path, f"byte {size}", "the file ends inside its 32-byte preamble")
    preamble = np.frombuffer(data, ">u4", 8).astype(np.int64)
    if (int(preamble[0]), int(preamble[1])) != MAGIC:
        raise FormatError(path, "byte 0", "it does not begin with the magic numbers of a HemeLB geometry file")
    if preamble[2] != VERSION:
        raise FormatError(path, "byte 8", f"version {preamble[2]} is not supported, only version {VERSION}")
    nx, ny, nz, edge = (int(value) for value in preamble[3:7])
    blocks = nx * ny * nz
    if blocks == 0 or edge == 0:
        raise FormatError(path, "byte 12", f"{nx} x {ny} x {nz} blocks of {edge}^3 sites are empty")
    if 32 + 12 * blocks > size:
        raise FormatError(path, "byte 12", f"a table of {blocks} blocks does not fit in {size} bytes")
    limit = f"the geometry is too large; the block size may be at most {MAX_EDGE}^3"
    if edge > MAX_EDGE or max(nx, ny, nz) * edge >= 2**31 or blocks * edge**3 >= 2**60:
        raise FormatError(path, "byte 12", f"{nx} x {ny} x {nz} blocks of {edge}^3 sites: {limit}")
    for width in (3, 4):
        if 32 + 4 * width * blocks > size:
            continue
        table = np.frombuffer(data, ">u4", width * blocks, 32).reshape(blocks, width)
        columns = [0, width - 2, width - 1]
        records: npt.NDArray[np.int64] = table[:, columns].astype(np.int64)
        if 32 + 4 * width * blocks + int(records[:, 1].sum()) == size:
            _check_records(path, records, edge, 4 * width)
            start = 32 + 4 * width * blocks
            level = _LEVELS[data[start + 1] >> 6] if len(data) > start + 1 else 9
            weights = table[:, 1].astype(np.int64) if width == 4 else None
            return GmyHeader((nx, ny, nz), edge, level, width == 4, start, records, weights)
    reason = f"the blocks of neither .gmy nor .gmy+ add up to the {size} bytes of the file: truncated or damaged"
    raise FormatError(path, "byte 32", reason)


def _check_records(path: PathLike, records: npt.NDArray[np.int64], edge: int, width: int) -> None:
    fluid, packed, unpacked = records.T
    cells = edge**3
    smallest_size = 4 * (cells + (MIN_SITE_WORDS - 1) * fluid)
    largest_size = 4 * (cells + (MAX_SITE_WORDS - 1) * fluid)
    invalid = (fluid > 0) & (
        (fluid > cells) | (unpacked < smallest_size) | (unpacked > largest_size) | (unpacked % 4 != 0)
    )
    invalid |= (fluid > 0) & (unpacked > DEFLATE_LIMIT * packed)
    invalid |= (fluid == 0) & (packed > 0)
    if invalid.any():
        block_number = int(np.flatnonzero(invalid)[0])
        sizes = ", ".join(str(int(value)) for value in records[block_number])
        reason = f"fluid sites, packed and unpacked bytes ({sizes}) contradict each other for {edge}^3 sites"
        raise FormatError(path, f"block {block_number} (byte {32 + width * block_number})", reason)
    if not fluid.any():
        raise FormatError(path, "byte 32", "no block contains a fluid site")
