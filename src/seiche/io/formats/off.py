# SPDX-License-Identifier: BSD-3-Clause
"""Triangle meshes in the OFF format: `OFF`, numbers of vertices, faces and edges, vertices, then faces `3 i j k`."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from seiche.domain.surface import Surface
from seiche.errors import FormatError


def read_off(path: str | os.PathLike[str]) -> Surface:
    """Read the triangles of an OFF file, in the unit of the file; data after the corners of a face are ignored.

    Raises FormatError for another format, other polygons or a truncated file, OSError if it cannot be read.
    """
    lines = content_lines(path)
    if not lines or not lines[0][1].upper().startswith("OFF"):
        raise FormatError(path, "line 1", 'an OFF file begins with "OFF"')
    counts = lines[0][1].split()[1:]
    if len(counts) < 2:
        lines = lines[1:]
        counts = lines[0][1].split() if lines else []
    number = lines[0][0] if lines else 1
    try:
        vertices, faces = int(counts[0]), int(counts[1])
    except (IndexError, ValueError):
        raise FormatError(path, f"line {number}", "expected the numbers of vertices and faces") from None
    declared = f"{vertices} vertices and {faces} faces are declared"
    if vertices < 4 or faces < 4:
        raise FormatError(path, f"line {number}", f"{declared}; a closed surface has at least 4 of each")
    if len(lines) - 1 < vertices + faces:
        raise FormatError(path, f"line {number}", f"{declared}, but {len(lines) - 1} lines follow")
    points = np.array([read_numbers(path, *line, 3) for line in lines[1 : 1 + vertices]])
    rows = np.array([read_numbers(path, *line, 4) for line in lines[1 + vertices : 1 + vertices + faces]])
    for (line_number, _), row in zip(lines[1 + vertices :], rows, strict=False):
        if row[0] != 3 or not all(float(k).is_integer() and 0 <= k < vertices for k in row[1:]):
            raise FormatError(
                path, f"line {line_number}", "expected a triangle: 3 and three vertex numbers, counted from 0"
            )
    return Surface(points, rows[:, 1:].astype(np.int32))


def content_lines(path: str | os.PathLike[str]) -> list[tuple[int, str]]:
    """Return the lines that are neither empty nor comments (#), with their numbers from 1."""
    text = Path(path).read_bytes().decode("ascii", "replace")
    stripped = ((number, line.partition("#")[0].strip()) for number, line in enumerate(text.splitlines(), start=1))
    return [(number, line) for number, line in stripped if line]


def read_numbers(path: str | os.PathLike[str], number: int, line: str, count: int) -> list[float]:
    """Return the first `count` numbers of a line; FormatError if there are fewer or one is not finite."""
    try:
        values = [float(word) for word in line.split()[:count]]
    except ValueError:
        values = []
    if len(values) < count or not np.isfinite(values).all():
        raise FormatError(path, f"line {number}", f"expected {count} numbers")
    return values
