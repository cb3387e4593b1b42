# SPDX-License-Identifier: BSD-3-Clause
"""SEG-Y files for tests, written word by word from the standard."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np


def ibm_word(value: float) -> int:
    """Return the bits of a positive number in IBM's hexadecimal form, from its definition."""
    power = 64
    while value >= 1:
        value, power = value / 16, power + 1
    return power << 24 | round(value * 2**24)


def write_segy(path: Path, positions: np.ndarray, values: np.ndarray, kind: int = 5, divisor: int = 10) -> Path:
    """Write a file according to the standard, with coordinates in fractions of a metre."""
    head = bytearray(3600)
    struct.pack_into(">h", head, 3220, values.shape[1])
    struct.pack_into(">h", head, 3224, kind)
    parts = [bytes(head)]
    for (x, y), row in zip(positions, values, strict=True):
        trace = bytearray(240)
        struct.pack_into(">h", trace, 70, -divisor)
        struct.pack_into(">ii", trace, 180, round(x * divisor), round(y * divisor))
        struct.pack_into(">H", trace, 114, len(row))
        words = [ibm_word(value) for value in row] if kind == 1 else np.asarray(row, ">f4").view(">u4").tolist()
        parts += [bytes(trace), struct.pack(f">{len(row)}I", *words)]
    path.write_bytes(b"".join(parts))
    return path
