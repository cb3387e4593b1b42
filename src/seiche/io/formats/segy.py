# SPDX-License-Identifier: BSD-3-Clause
"""SEG-Y (revision 1), a format of seismic sections and of models of the ground: traces with their positions.

Files are big-endian: 3200 bytes of text, 400 bytes of numbers, optional texts of 3200 bytes each, then the traces. A
trace has 240 bytes of numbers and samples of four bytes, IBM or IEEE (SEG Technical Standards Committee 2002).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError, FormatError
from seiche.io.files import cause_of

Floats = npt.NDArray[np.float64]

_HEADER_BYTES, _TRACE_HEADER_BYTES = 3600, 240
_SAMPLES, _FORMAT, _TEXTS = 3220, 3224, 3504
#: Offsets in the header of a trace: scale of coordinates (negative: a divisor), common depth point, number of samples.
_SCALAR, _CDP_X, _CDP_Y, _COUNT = 70, 180, 184, 114
_IBM, _IEEE = 1, 5


def ibm_numbers(words: npt.NDArray[np.uint32]) -> Floats:
    """Return IBM hexadecimal numbers: a sign, an exponent of 16 of seven bits with bias 64, a fraction of 24 bits."""
    sign = np.where(words >> 31, -1.0, 1.0)
    power = (words >> 24 & 0x7F).astype(np.int64) - 64
    return np.asarray(sign * np.ldexp((words & 0xFFFFFF).astype(np.float64), 4 * power - 24))


def read_segy(path: Path) -> tuple[Floats, Floats]:
    """Return the positions (traces, 2) of the common depth points of a file, and its samples (traces, samples).

    Raises CaseError if the file cannot be read, FormatError unless it is a complete SEG-Y file of four-byte numbers.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise CaseError(f"material: cannot read {path}: no such file") from None
    except OSError as error:
        raise CaseError(f"material: cannot read {path}: {cause_of(error)}") from None
    if len(data) < _HEADER_BYTES:
        raise FormatError(
            path, "whole file", f"has {len(data)} bytes, fewer than the {_HEADER_BYTES} of the headers of SEG-Y"
        )

    def number(byte: int) -> int:
        return int.from_bytes(data[byte : byte + 2], "big", signed=True)

    samples, kind, texts = number(_SAMPLES) & 0xFFFF, number(_FORMAT), number(_TEXTS)
    if kind not in (_IBM, _IEEE):
        raise FormatError(path, f"byte {_FORMAT + 1}", f"format of samples {kind}: only 1 (IBM) and 5 (IEEE) are read")
    traces_start, trace_bytes = _HEADER_BYTES + 3200 * max(texts, 0), _TRACE_HEADER_BYTES + 4 * samples
    traces, excess = divmod(len(data) - traces_start, trace_bytes)
    if samples < 1 or traces < 1 or excess:
        reason = f"{len(data) - traces_start} bytes of traces are not a multiple of {samples} samples"
        raise FormatError(path, f"byte {traces_start + 1}", reason)
    rows = np.frombuffer(data, np.uint8, offset=traces_start).reshape(traces, trace_bytes)

    def column(byte: int, kind: str) -> Floats:
        return rows[:, byte : byte + int(kind[-1])].copy().view(kind)[:, 0].astype(np.float64)

    differs = (column(_COUNT, ">u2") != samples) & (column(_COUNT, ">u2") != 0)
    if differs.any():
        raise FormatError(
            path, f"trace {int(np.argmax(differs)) + 1}", f"does not have the {samples} samples of the file header"
        )
    scalar = column(_SCALAR, ">i2")
    factor = np.where(scalar < 0, 1 / np.maximum(-scalar, 1), np.maximum(scalar, 1))
    positions = np.stack([column(_CDP_X, ">i4"), column(_CDP_Y, ">i4")], 1) * factor[:, None]
    words = rows[:, _TRACE_HEADER_BYTES:].copy().view(">u4").astype(np.uint32)
    values = ibm_numbers(words) if kind == _IBM else words.view(np.float32).astype(np.float64)
    return positions, values
