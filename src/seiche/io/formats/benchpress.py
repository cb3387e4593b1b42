# SPDX-License-Identifier: BSD-3-Clause
"""Read the public job outputs of the BenchPress suite (Bienz, Olson, Gropp, Lockhart, arXiv:2010.10378).

Text of tab-separated columns in sections; one word is 4 bytes, all times are seconds. Rows of ping-pongs and copies
have a time for each of 1, 2, 4 ... words. Lines without a time, such as warnings of the MPI library, are ignored. The
log of a batch system may follow the last section.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from seiche.errors import FormatError

Floats = npt.NDArray[np.float64]

WORD = 4
#: Minimum and maximum number of times in a row of ping-pongs and copies.
_MIN_TIMES, _MAX_TIMES = 2, 40

LocalityName: TypeAlias = Literal["on-socket", "on-node", "off-node"]

_PAIR = re.compile(r"(CPU|GPU)(?: on rank)? (\d{1,9}) and \1(?: on rank)? (\d{1,9}):$")
_COPY = re.compile(r"CPU (\d{1,9}), GPU (\d{1,9})(?: <-> GPU (\d{1,9}))?:$")
_ROW = re.compile(r"Size (\d{1,12})$")
_STRATEGY = re.compile(r"(Cuda-Aware|3-Step) Alltoallv?((?:, Extra Message|, Duplicate DevPtr)?):$")
_HEADERS = ("Memcpy", "Timing")
#: Names of strategies in the files and in `machine.laws.strategies`.
_STRATEGIES = {
    "Cuda-Aware": "device",
    "3-Step": "three-step",
    "3-Step, Extra Message": "extra-message",
    "3-Step, Duplicate DevPtr": "duplicate-pointer",
}


@dataclass(frozen=True)
class Minima:
    """The smallest time of every size over the pairs of a class: `sizes` (n,) bytes, `seconds` (n,)."""

    sizes: npt.NDArray[np.int64]
    seconds: Floats


@dataclass(frozen=True)
class Injection:
    """Simultaneous ping-pongs of several senders of a node; arrays (n,).

    `senders` on the node, `size` bytes of one sender's message, `total` bytes of all, `seconds`.
    """

    senders: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    total: npt.NDArray[np.int64]
    seconds: Floats


def read_ping_pongs(path: str | os.PathLike[str], gpus: int = 6, sockets: int = 2) -> dict[tuple[str, str], Minima]:
    """Return minima by ("cpu" or "gpu", locality class) of a `ping_pong` file with `gpus` ranks a node.

    Raises:
        FormatError: the text is not in this format.
    """
    rows: dict[tuple[str, str], list[Floats]] = {}
    for line, label, times in _labelled_times(Path(path)):
        match = _PAIR.match(label)
        if match is None:
            raise FormatError(path, f"line {line}", f"{label!r} is not a pair of ranks")
        first, second = int(match[2]), int(match[3])
        rows.setdefault((match[1].lower(), locality(first, second, gpus, sockets)), []).append(
            _complete_row(Path(path), line, times, rows)
        )
    return _minima(rows)


def read_copies(path: str | os.PathLike[str], gpus: int = 6, sockets: int = 2) -> dict[tuple[str, str], Minima]:
    """Return minima by ("h2d", "d2h" or "d2d", "on-socket" or "off-socket") of a `memcpy` file.

    The class of a copy between two GPUs is that of the GPUs.

    Raises:
        FormatError: the text is not in this format.
    """
    rows: dict[tuple[str, str], list[Floats]] = {}
    kind = ""
    for line, label, times in _labelled_times(Path(path)):
        if label.startswith("Memcpy"):
            kind = {"Host To Device:": "h2d", "Device To Host:": "d2h", "Device To Device:": "d2d"}.get(label[7:], "")
            continue
        match = _COPY.match(label)
        if match is None or not kind:
            raise FormatError(path, f"line {line}", f"{label!r} is not the name of a memory copy benchmark")
        first, second = int(match[1]), int(match[2])
        if match[3] is not None:
            first, second = second, int(match[3])
        same_socket = locality(first, second, gpus, sockets) == "on-socket"
        rows.setdefault((kind, "on-socket" if same_socket else "off-socket"), []).append(
            _complete_row(Path(path), line, times, rows)
        )
    return _minima(rows)


def read_injection(path: str | os.PathLike[str], *, shared: bool) -> dict[str, Injection]:
    """Return the rows of a `node_pong` (`shared`: N words in all) or `maxrate` (N words each) file, "cpu" and "gpu".

    Raises:
        FormatError: the text is not in this format.
    """
    rows: dict[str, list[tuple[int, int, int, float]]] = {}
    kind = ""
    for line, label, times in _labelled_times(Path(path)):
        if label.startswith("Timing"):
            kind = "gpu" if "GPU" in label else "cpu"
            continue
        match = _ROW.match(label)
        if match is None or not kind:
            raise FormatError(path, f"line {line}", f"{label!r} is not a size")
        words = int(match[1])
        for senders, seconds in enumerate(times, start=1):
            size = WORD * (words // senders if shared else words)
            total = WORD * (words if shared else words * senders)
            rows.setdefault(kind, []).append((senders, size, total, seconds))
    result = {}
    for kind, values in rows.items():
        senders_of, sizes, totals, seconds_of = zip(*values, strict=True)
        columns = [np.array(column, np.int64) for column in (senders_of, sizes, totals)]
        result[kind] = Injection(columns[0], columns[1], columns[2], np.array(seconds_of))
    return result


def read_collectives(path: str | os.PathLike[str]) -> list[dict[str, Floats]]:
    """Return the sections of an `all_to_all` or `all_to_all_v` file: seconds (n,) by strategy for 1, 2, 4 ... words.

    Times that were not measured (-1 in the file) are NaN. The second section of an `all_to_all_v` file is an exchange
    by one message for each pair, the first by a call of the library.

    Raises:
        FormatError: the text is not in this format.
    """
    sections: list[dict[str, Floats]] = []
    name = ""
    for number, line in enumerate(_text(Path(path)).splitlines(), start=1):
        if match := _STRATEGY.match(line.strip()):
            name = _STRATEGIES[match[1] + match[2]]
            if not sections or name in sections[-1]:
                sections.append({})
        elif name and name not in sections[-1] and line.strip() and _are_numbers(line.split()):
            times = np.array([float(column) for column in line.split()])
            if not ((times > 0) | (times == -1)).all():
                raise FormatError(path, f"line {number}", "a time is not positive")
            sections[-1][name] = np.where(times > 0, times, np.nan)
    lengths = {len(times) for section in sections for times in section.values()}
    if len(lengths) != 1 or any(len(section) != len(_STRATEGIES) for section in sections):
        raise FormatError(path, "whole file", "expected one row of equal length for each of four strategies")
    return sections


def locality(first: int, second: int, ranks: int, sockets: int) -> LocalityName:
    """Return the class of two ranks that fill nodes of `ranks` one after the other, socket by socket."""
    if first // ranks != second // ranks:
        return "off-node"
    return "on-socket" if first * sockets // ranks == second * sockets // ranks else "on-node"


def _minima(rows: Mapping[tuple[str, str], Sequence[Floats]]) -> dict[tuple[str, str], Minima]:
    """Return the smallest times of the rows of every class."""
    minima = {}
    for key, values in rows.items():
        sizes = WORD * 2 ** np.arange(len(values[0]), dtype=np.int64)
        minima[key] = Minima(sizes, np.min(values, axis=0))
    return minima


def _labelled_times(path: Path) -> list[tuple[int, str, list[float]]]:
    """Return (line number, label, numbers) of headers and rows before the batch log; headers have no numbers."""
    entries: list[tuple[int, str, list[float]]] = []
    for number, line in enumerate(_text(path).splitlines(), start=1):
        label, *columns = line.rstrip("\t ").split("\t")
        if label.startswith(("app 0:", "----")):
            break
        label = label.strip()
        is_data = any(pattern.match(label) for pattern in (_PAIR, _COPY, _ROW))
        times = [_seconds(path, number, column) for column in columns] if is_data or _are_numbers(columns) else []
        if times or label.startswith(_HEADERS):
            entries.append((number, label, times))
    if not any(times for _, _, times in entries):
        raise FormatError(path, "line 1", "no times in this file")
    return entries


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except UnicodeDecodeError as error:
        raise FormatError(path, f"byte {error.start}", "not plain text") from error


def _are_numbers(columns: Sequence[str]) -> bool:
    try:
        return all(math.isfinite(float(column)) for column in columns)
    except ValueError:
        return False


def _seconds(path: Path, line: int, column: str) -> float:
    try:
        value = float(column)
    except ValueError:
        raise FormatError(path, f"line {line}", "a column is not a number") from None
    if not (math.isfinite(value) and value > 0):
        raise FormatError(path, f"line {line}", "a time is not positive")
    return value


def _complete_row(
    path: Path, line: int, times: list[float], rows: Mapping[tuple[str, str], Sequence[Floats]]
) -> Floats:
    """Return the times of a row, which must have as many as the earlier `rows`."""
    expected = next((len(values[0]) for values in rows.values() if values), len(times))
    if not _MIN_TIMES <= len(times) <= _MAX_TIMES:
        raise FormatError(path, f"line {line}", f"{len(times)} times; a row has {_MIN_TIMES} to {_MAX_TIMES}")
    if len(times) != expected:
        raise FormatError(path, f"line {line}", f"{len(times)} times, but earlier rows have {expected}")
    return np.array(times)
