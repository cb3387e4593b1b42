# SPDX-License-Identifier: BSD-3-Clause
"""STL surfaces, ASCII and binary.

Binary files are little-endian: a header of 80 bytes, the uint32 number of triangles, 50 bytes per triangle (normal,
three corners, 16 bits). The header may also begin with "solid", so first the size of the file decides, then the text.
Stored normals are ignored: the order of the corners determines the outer side.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seiche.domain.surface import Surface
from seiche.errors import FormatError
from seiche.io.files import replacing

_HEADER = 80
_RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
#: Maximum trailing bytes after the last triangle of a binary file; some programs write padding.
_TRAILING = 4096


def read_stl(path: str | os.PathLike[str]) -> Surface:
    """Read the triangles of an ASCII or binary STL file, in the unit of the file, with equal vertices merged.

    Raises FormatError for a truncated file, another format, no triangle or coordinates that are not finite, OSError if
    the file cannot be read.
    """
    data = Path(path).read_bytes()
    ascii_text = not _is_binary(data) and data.lstrip()[:5].lower() == b"solid"
    corners = _read_ascii(path, data) if ascii_text else _read_binary(path, data)
    if not len(corners):
        raise FormatError(path, "whole file", "contains no triangle")
    if np.abs(corners).max() > 1e30:
        raise FormatError(path, "whole file", "a coordinate exceeds 1e30")
    surface = Surface.from_triangles(corners)
    if not len(surface.faces):
        raise FormatError(path, "whole file", "all its triangles are degenerate (two corners coincide)")
    return surface


def write_stl(path: str | os.PathLike[str], surface: Surface) -> None:
    """Write `surface` as binary STL (float32 coordinates in the unit of the surface), atomically."""
    records = np.zeros(len(surface.faces), _RECORD)
    records["corners"] = surface.corners()
    areas = surface.vector_areas()
    length = np.linalg.norm(areas, axis=1, keepdims=True)
    records["normal"] = areas / np.where(length > 0.0, length, 1.0)
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(b"binary STL written by Seiche".ljust(_HEADER))
        file.write(np.array(len(records), "<u4").tobytes())
        file.write(records.tobytes())


def _is_binary(data: bytes) -> bool:
    """Return whether the number of triangles matches the size of the file, up to trailing padding."""
    if len(data) < _HEADER + 4:
        return False
    excess = len(data) - _HEADER - 4 - _RECORD.itemsize * _count(data)
    return excess == 0 or (0 < excess <= _TRAILING and b"\0" in data)


def _count(data: bytes) -> int:
    return int.from_bytes(data[_HEADER : _HEADER + 4], "little")


def _read_binary(path: str | os.PathLike[str], data: bytes) -> npt.NDArray[np.float64]:
    if len(data) < _HEADER + 4:
        raise FormatError(path, f"byte {len(data)}", 'neither "solid" nor the 84-byte header of a binary STL file')
    count, capacity = _count(data), (len(data) - _HEADER - 4) // _RECORD.itemsize
    if count > capacity:
        raise FormatError(path, f"byte {_HEADER}", f"declares {count} triangles, but the file has space for {capacity}")
    records = np.frombuffer(data, _RECORD, count, _HEADER + 4)
    corners: npt.NDArray[np.float64] = records["corners"].astype(np.float64)
    invalid = np.flatnonzero(~np.isfinite(corners).all(axis=(1, 2)))
    if len(invalid):
        byte = _HEADER + 4 + _RECORD.itemsize * int(invalid[0])
        raise FormatError(path, f"byte {byte}", f"triangle {int(invalid[0])} has a coordinate that is not finite")
    return corners


def _read_ascii(path: str | os.PathLike[str], data: bytes) -> npt.NDArray[np.float64]:
    """Read the numbers of every "vertex"; three of them between "outer loop" and "endloop" form a triangle."""
    values: list[float] = []
    in_loop = in_file = False
    for number, line in enumerate(data.splitlines(), start=1):
        words = line.split()
        if not words:
            continue
        keyword = words[0].lower()
        if keyword == b"vertex":
            if not in_loop:
                raise FormatError(path, f"line {number}", "a vertex outside of a loop")
            values.extend(_coordinates(path, number, words[1:]))
        elif keyword == b"outer":
            if in_loop:
                raise FormatError(path, f"line {number}", 'a loop begins before "endloop" of the one before')
            in_loop, start = True, len(values)
        elif keyword == b"endloop":
            if not in_loop or len(values) - start != 9:
                raise FormatError(path, f"line {number}", "a facet needs exactly three vertices")
            in_loop = False
        elif keyword in (b"solid", b"endsolid"):
            if in_loop:
                raise FormatError(path, f"line {number}", 'a loop ends with "endloop"')
            in_file = keyword == b"solid"
        elif keyword not in (b"facet", b"endfacet"):
            keyword_text = words[0][:20].decode("ascii", "replace")
            raise FormatError(path, f"line {number}", f'"{keyword_text}" is not a keyword of ASCII STL')
    if in_loop or in_file:
        raise FormatError(path, "end of file", 'the file ends before "endsolid": it is truncated')
    return np.array(values, np.float64).reshape(-1, 3, 3)


def _coordinates(path: str | os.PathLike[str], number: int, words: list[bytes]) -> tuple[float, float, float]:
    try:
        x, y, z = (float(word) for word in words)
    except ValueError:
        raise FormatError(path, f"line {number}", "a vertex needs three numbers") from None
    if not np.isfinite(x + y + z):
        raise FormatError(path, f"line {number}", "a coordinate is not finite")
    return x, y, z
