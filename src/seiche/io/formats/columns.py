# SPDX-License-Identifier: BSD-3-Clause
"""Text files of columns: values over time, and weights at sites.

One row per line, numbers separated by blanks; empty lines and those that begin with # are ignored.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seiche.errors import FormatError

#: Limits of a table, checked before memory is allocated.
MAX_BYTES, MAX_ROWS, MAX_LINE_LENGTH = 64 * 1024 * 1024, 1_000_000, 1000
#: Maximum magnitude of a number and of a coordinate; products of a few stay finite.
_MAX_NUMBER, _MAX_COORDINATE = 1e30, 2**31 - 1
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_WHOLE = re.compile(r"[+-]?[0-9]{1,10}")


class TimeTableRows(NamedTuple):
    """Times and values, both (n,), and the number of rows that a row of equal time followed."""

    times: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]
    dropped: int


def read_time_table(path: str | os.PathLike[str], *, last_of_equal: bool = False) -> TimeTableRows:
    """Return times and values (n,) from a file of two columns; times ascend strictly.

    Of several rows with one time the last is returned if `last_of_equal`; otherwise they are rejected. Raises
    FormatError with file, line and reason, OSError if the file cannot be read.
    """
    rows: list[tuple[float, float]] = []
    dropped = 0
    for line, words in _rows(path):
        if len(words) != 2:
            raise FormatError(path, f"line {line}", f"{len(words)} columns; expected two, time and value")
        time, value = (_number(path, line, word) for word in words)
        if rows and last_of_equal and time == rows[-1][0]:
            rows.pop()
            dropped += 1
        if rows and not time > rows[-1][0]:
            raise FormatError(path, f"line {line}", f"time {time:g} is not after {rows[-1][0]:g}; times must ascend")
        rows.append((time, value))
    if not rows:
        raise FormatError(path, "whole file", "no row; expected two columns, time and value")
    columns = np.array(rows, np.float64)
    return TimeTableRows(columns[:, 0].copy(), columns[:, 1].copy(), dropped)


def read_weights(path: str | os.PathLike[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return site coordinates (n, 3) and weights (n,) from a file of lines x y z weight; no site appears twice.

    Raises FormatError with file, line and reason, OSError if the file cannot be read.
    """
    weights: dict[tuple[int, int, int], float] = {}
    for line, words in _rows(path):
        if len(words) != 4:
            raise FormatError(path, f"line {line}", f"{len(words)} columns; expected four, x y z weight")
        x, y, z = (_coordinate(path, line, word) for word in words[:3])
        if (x, y, z) in weights:
            raise FormatError(path, f"line {line}", f"the site {x} {y} {z} appears twice")
        weights[x, y, z] = _number(path, line, words[3])
    if not weights:
        raise FormatError(path, "whole file", "no row; expected four columns, x y z weight")
    return np.array(list(weights), np.int64), np.array(list(weights.values()), np.float64)


def _rows(path: str | os.PathLike[str]) -> list[tuple[int, list[str]]]:
    with open(path, "rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise FormatError(path, f"byte {MAX_BYTES}", f"a table has at most {MAX_BYTES >> 20} MiB")
    rows: list[tuple[int, list[str]]] = []
    for number, raw in enumerate(content.split(b"\n"), start=1):
        if len(raw) > MAX_LINE_LENGTH:
            raise FormatError(path, f"line {number}", f"longer than {MAX_LINE_LENGTH} characters")
        if not raw.isascii():
            raise FormatError(path, f"line {number}", "not ASCII text")
        words = raw.decode("ascii").split()
        if not words or words[0].startswith("#"):
            continue
        if len(rows) == MAX_ROWS:
            raise FormatError(path, f"line {number}", f"more than {MAX_ROWS} rows")
        rows.append((number, words))
    return rows


def _number(path: str | os.PathLike[str], line: int, word: str) -> float:
    value = float(word) if _NUMBER.fullmatch(word) else np.inf
    if not abs(value) < _MAX_NUMBER:
        raise FormatError(path, f"line {line}", f"{_quoted(word)} is not a number below {_MAX_NUMBER:g}")
    return value


def _coordinate(path: str | os.PathLike[str], line: int, word: str) -> int:
    if not _WHOLE.fullmatch(word) or abs(int(word)) > _MAX_COORDINATE:
        raise FormatError(path, f"line {line}", f"{_quoted(word)} is not a whole number, the coordinate of a site")
    return int(word)


def _quoted(word: str) -> str:
    text = "".join(c if c.isprintable() else "?" for c in word)
    return f'"{text[:40]}"'
