# SPDX-License-Identifier: BSD-3-Clause
"""Read the public job outputs of the BenchPress suite (Bienz, Olson, Gropp, Lockhart, arXiv:2010.10378).

Text of tab-separated columns in sections; one word is 4 bytes, all times are seconds. The log of a batch system follows
the last section.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from seiche.errors import FormatError

Floats = npt.NDArray[np.float64]

WORD = 4
#: Message sizes of a row of ping-pongs and copies, bytes.
SIZES = WORD * 2 ** np.arange(18)

LocalityName: TypeAlias = Literal["on-socket", "on-node", "off-node"]

_PAIR = re.compile(r"(CPU|GPU)(?: on rank)? (\d+) and \1(?: on rank)? (\d+):$")
_COPY = re.compile(r"CPU (\d+), GPU (\d+)(?: <-> GPU (\d+))?:$")
_ROW = re.compile(r"Size (\d+)$")


@dataclass(frozen=True)
class Minima:
    """The smallest time of every size over the pairs of a class: `sizes` (n,) bytes, `seconds` (n,)."""

    sizes: npt.NDArray[np.int64]
    seconds: Floats


@dataclass(frozen=True)
class Injection:
    """Ping-pongs of several senders of a node at once; arrays (n,).

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
    for line, label, times in _lines(Path(path)):
        match = _PAIR.match(label)
        if match is None:
            raise FormatError(path, f"line {line}", f"{label!r} is not a pair of ranks")
        first, second = int(match[2]), int(match[3])
        rows.setdefault((match[1].lower(), locality(first, second, gpus, sockets)), []).append(
            _whole(Path(path), line, times)
        )
    return {key: Minima(SIZES, np.min(values, axis=0)) for key, values in rows.items()}


def read_copies(path: str | os.PathLike[str], gpus: int = 6, sockets: int = 2) -> dict[tuple[str, str], Minima]:
    """Return minima by ("h2d", "d2h" or "d2d", "on-socket" or "off-socket") of a `memcpy` file.

    The class of a copy between two GPUs is that of the GPUs.

    Raises:
        FormatError: the text is not in this format.
    """
    rows: dict[tuple[str, str], list[Floats]] = {}
    kind = ""
    for line, label, times in _lines(Path(path)):
        if label.startswith("Memcpy"):
            kind = {"Host To Device:": "h2d", "Device To Host:": "d2h", "Device To Device:": "d2d"}.get(label[7:], "")
            continue
        match = _COPY.match(label)
        if match is None or not kind:
            raise FormatError(path, f"line {line}", f"{label!r} is not a copy")
        first, second = int(match[1]), int(match[2])
        if match[3] is not None:
            first, second = second, int(match[3])
        near = locality(first, second, gpus, sockets) == "on-socket"
        rows.setdefault((kind, "on-socket" if near else "off-socket"), []).append(_whole(Path(path), line, times))
    return {key: Minima(SIZES, np.min(values, axis=0)) for key, values in rows.items()}


def read_injection(path: str | os.PathLike[str], *, shared: bool) -> dict[str, Injection]:
    """Return the rows of a `node_pong` (`shared`: N words in all) or `maxrate` (N words each) file, "cpu" and "gpu".

    Raises:
        FormatError: the text is not in this format.
    """
    rows: dict[str, list[tuple[int, int, int, float]]] = {}
    kind = ""
    for line, label, times in _lines(Path(path)):
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
        numbers = [np.array(column, np.int64) for column in (senders_of, sizes, totals)]
        result[kind] = Injection(numbers[0], numbers[1], numbers[2], np.array(seconds_of))
    return result


def locality(first: int, second: int, ranks: int, sockets: int) -> LocalityName:
    """Return the class of two ranks that fill nodes of `ranks` one after the other, socket by socket."""
    if first // ranks != second // ranks:
        return "off-node"
    return "on-socket" if first * sockets // ranks == second * sockets // ranks else "on-node"


def _lines(path: Path) -> list[tuple[int, str, list[float]]]:
    """Return (line number, label, numbers) of every line before the batch log; headers have no numbers."""
    found: list[tuple[int, str, list[float]]] = []
    try:
        text = path.read_text(encoding="ascii")
    except UnicodeDecodeError as error:
        raise FormatError(path, f"byte {error.start}", "not plain text") from error
    for number, line in enumerate(text.splitlines(), start=1):
        label, *columns = line.rstrip("\t ").split("\t")
        if label.startswith(("app 0:", "----")):
            break
        label = label.strip()
        if not label or label.startswith("Profiling"):
            continue
        try:
            times = [float(column) for column in columns]
        except ValueError as error:
            raise FormatError(path, f"line {number}", "a column is not a number") from error
        if not all(math.isfinite(value) and value > 0 for value in times):
            raise FormatError(path, f"line {number}", "a time is not positive")
        if _ROW.match(label) is None or times:
            found.append((number, label, times))
    if not any(times for _, _, times in found):
        raise FormatError(path, "line 1", "no times in this file")
    return found


def _whole(path: Path, line: int, times: list[float]) -> Floats:
    if len(times) != len(SIZES):
        raise FormatError(path, f"line {line}", f"{len(times)} times, expected {len(SIZES)}")
    return np.array(times)
