# SPDX-License-Identifier: BSD-3-Clause
"""SAC, a format of seismograms: one evenly sampled series per file, a header of 632 bytes (version 6, little-endian).

The header has 70 single-precision numbers, 40 integers (the last five of them logical) and 24 texts of 8 bytes, of
which the second has 16. Undefined values are -12345 (SAC manual, "SAC data file format").
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seiche.io.files import replacing

_UNKNOWN = -12345
#: Indices of the numbers, integers and texts that are set.
_DELTA, _DEPMIN, _DEPMAX, _B, _E, _DEPMEN = 0, 1, 2, 5, 6, 56
_NVHDR, _NPTS, _IFTYPE, _LEVEN, _LPSPOL, _LOVROK, _LCALDA = 6, 9, 15, 35, 36, 37, 38
_TIME_SERIES, _VERSION = 1, 6
_STATION, _EVENT, _COMPONENT = 0, 8, 160
_USER = 40


def write_sac(
    path: str | os.PathLike[str],
    values: npt.ArrayLike,
    *,
    step: float,
    begin: float,
    station: str,
    component: str,
    position: tuple[float, ...] = (),
) -> None:
    """Write an evenly sampled series; an existing file is replaced only by a complete one.

    Args:
        path: name of the file.
        values: the samples.
        step: sampling interval, s.
        begin: time of the first sample, s.
        station: at most 8 characters.
        component: at most 8 characters.
        position: position, stored as USER0, USER1, USER2 (m).

    Raises:
        ValueError: names that are too long.
        OSError: the file cannot be written.
    """
    data = np.asarray(values, "<f4")
    if max(len(station), len(component)) > 8:
        raise ValueError(f"{station}, {component}: SAC names have at most 8 characters")
    floats = np.full(70, _UNKNOWN, "<f4")
    floats[[_DELTA, _B, _E]] = step, begin, begin + step * (len(data) - 1)
    if len(data):
        floats[[_DEPMIN, _DEPMAX, _DEPMEN]] = data.min(), data.max(), data.mean()
    floats[_USER : _USER + len(position)] = position
    integers = np.full(40, _UNKNOWN, "<i4")
    integers[[_NVHDR, _NPTS, _IFTYPE]] = _VERSION, len(data), _TIME_SERIES
    integers[[_LEVEN, _LPSPOL, _LOVROK, _LCALDA, 39]] = 1, 1, 1, 0, 0
    texts = bytearray(f"{_UNKNOWN:<8d}".encode() * 24)
    texts[_EVENT : _EVENT + 16] = f"{_UNKNOWN:<16d}".encode()
    texts[_STATION : _STATION + 8] = f"{station:<8}".encode("ascii")
    texts[_COMPONENT : _COMPONENT + 8] = f"{component:<8}".encode("ascii")
    with replacing(path) as temporary:
        Path(temporary).write_bytes(floats.tobytes() + integers.tobytes() + bytes(texts) + data.tobytes())
