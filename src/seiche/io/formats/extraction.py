# SPDX-License-Identifier: BSD-3-Clause
"""HemeLB extraction files: `.xtr` version 5 (HemeLB) and `.dat` version 4 (HemePure), and the offset files `.off`.

All numbers are big-endian. The header describes the fields. Each written step has one record: the step (u64) and, for
every site, its lattice coordinates (three u32) and the values of the fields minus a constant offset. The number of
records follows from the size of the file.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import FormatError

PathLike = str | os.PathLike[str]
HEMELB, EXTRACTION, OFFSETS = 0x686C6221, 0x78747204, 0x6F666604
VERSION = 5
#: Types of values by their number in the file.
TYPES = (">f4", ">f8", ">i4", ">u4", ">i8", ">u8")
_HEADER = struct.Struct(">IIIddddQII")
#: Maximum numbers of fields and of components; they bound the memory for a damaged header.
_MAX_FIELDS, _MAX_COMPONENTS = 1000, 1000


@dataclass(frozen=True)
class ExtractionField:
    """A field: name, number of components, type (index into `TYPES`), subtracted offsets (none, one, or all)."""

    name: str
    components: int
    kind: int = 0
    offsets: tuple[float, ...] = ()


@dataclass(frozen=True)
class ExtractionHeader:
    """The header of a file; `spacing` and `origin` in metres, as in `SiteSet`."""

    spacing: float
    origin: tuple[float, float, float]
    sites: int
    fields: tuple[ExtractionField, ...]

    def encode(self) -> bytes:
        """Return the header of a version 5 file."""
        body = b"".join(_encode_field(field) for field in self.fields)
        sizes = self.sites, len(self.fields), len(body)
        return _HEADER.pack(HEMELB, EXTRACTION, VERSION, self.spacing, *self.origin, *sizes) + body

    @property
    def site_type(self) -> np.dtype[Any]:
        """Return the record of one site: `place` (3,) and the fields f0, f1 ... with their components."""
        columns: list[Any] = [("place", ">u4", (3,))]
        columns += [(f"f{k}", TYPES[field.kind], (field.components,)) for k, field in enumerate(self.fields)]
        return np.dtype(columns)

    @property
    def record_bytes(self) -> int:
        """Return the bytes of one time step."""
        return 8 + self.sites * self.site_type.itemsize


@dataclass(frozen=True, eq=False)
class ExtractionData:
    """The content of a file: `steps` (k,) int64, `coords` (n, 3) uint32, `values` by field (k, n, components).

    Floating-point values are float64 with the offset added; integers have the type of the file. Without records there
    are no sites.
    """

    version: int
    header: ExtractionHeader
    steps: npt.NDArray[np.int64]
    coords: npt.NDArray[np.uint32]
    values: dict[str, npt.NDArray[Any]]


def read_extraction(path: PathLike) -> ExtractionData:
    """Read an `.xtr` file of version 5 or a `.dat` file of version 4.

    Raises FormatError, with byte or record, for an invalid file or an incomplete last record. The memory is
    proportional to the size of the file.
    """
    data = Path(path).read_bytes()
    version, header, start = _parse_header(path, data)
    size = header.record_bytes
    count, excess = divmod(len(data) - start, size)
    if excess:
        location = f"record {count} (byte {start + count * size})"
        raise FormatError(path, location, f"it has {excess} bytes, not {size}: the file is truncated or damaged")
    if count == 0:
        no_values = {field.name: np.zeros((0, 0, field.components)) for field in header.fields}
        return ExtractionData(version, header, np.zeros(0, np.int64), np.zeros((0, 3), np.uint32), no_values)
    record = np.dtype([("step", ">u8"), ("sites", header.site_type, (header.sites,))])
    records = np.frombuffer(data, record, count, start)
    steps = records["step"].astype(np.int64)
    not_ascending = np.flatnonzero(np.diff(steps, prepend=-1) <= 0)
    if len(not_ascending):
        k = int(not_ascending[0])
        location = f"record {k} (byte {start + k * size})"
        raise FormatError(
            path, location, f"its step {steps[k]} is not greater than the previous step: an unfinished record"
        )
    record_coords = records["sites"]["place"]
    if np.any(record_coords != record_coords[0]):
        raise FormatError(path, "records", "their sites differ; every step must have the same sites")
    values = {}
    for k, field in enumerate(header.fields):
        stored = records["sites"][f"f{k}"]
        if field.kind < 2:
            values[field.name] = stored.astype(np.float64) + np.asarray(field.offsets or (0.0,), np.float64)
        else:
            values[field.name] = stored.astype(stored.dtype.newbyteorder("="))
    coords = record_coords[0].astype(np.uint32)
    return ExtractionData(version, header, steps, coords, values)


def encode_offsets(offsets: Sequence[int]) -> bytes:
    """Return an offset file: for each rank the first byte of its part of the first record, then the end."""
    head = struct.pack(">IIIi", HEMELB, OFFSETS, 1, len(offsets) - 1)
    return head + np.asarray(offsets, ">u8").tobytes()


def read_offsets(path: PathLike) -> npt.NDArray[np.int64]:
    """Return the offsets (ranks + 1,) of an `.off` file; FormatError if it is not one."""
    data = Path(path).read_bytes()
    if len(data) < 16:
        raise FormatError(path, f"byte {len(data)}", "the file ends inside its 16-byte header")
    first, second, version, ranks = struct.unpack_from(">IIIi", data)
    if (first, second, version) != (HEMELB, OFFSETS, 1):
        raise FormatError(path, "byte 0", "it does not begin as a HemeLB offset file of version 1")
    if ranks < 1 or len(data) != 16 + 8 * (ranks + 1):
        raise FormatError(path, "byte 12", f"{ranks} ranks do not fit its {len(data)} bytes")
    offsets = np.frombuffer(data, ">u8", ranks + 1, 16)
    if np.any(offsets[1:] < offsets[:-1]) or offsets[-1] >= 2**63:
        raise FormatError(path, "byte 16", "its offsets do not ascend")
    return offsets.astype(np.int64)


def _encode_field(field: ExtractionField) -> bytes:
    name = field.name.encode()
    head = struct.pack(">I", len(name)) + name.ljust(-(-len(name) // 4) * 4, b"\0")
    head += struct.pack(">III", field.components, field.kind, len(field.offsets))
    return head + np.asarray(field.offsets, TYPES[field.kind]).tobytes()


def _parse_header(path: PathLike, data: bytes) -> tuple[int, ExtractionHeader, int]:
    """Return version, header and the byte at which the records start."""
    if len(data) < _HEADER.size:
        raise FormatError(path, f"byte {len(data)}", f"the file ends inside its {_HEADER.size}-byte header")
    first, second, version, spacing, x, y, z, sites, count, length = _HEADER.unpack_from(data)
    if (first, second) != (HEMELB, EXTRACTION):
        raise FormatError(path, "byte 0", "it does not begin with the magic numbers of a HemeLB extraction file")
    if version not in (4, 5):
        raise FormatError(path, "byte 8", f"version {version} is not supported, only versions 4 and 5")
    if not (math.isfinite(spacing) and spacing > 0.0 and all(map(math.isfinite, (x, y, z)))):
        raise FormatError(path, "byte 12", "voxel size and origin must be finite numbers, the size positive")
    if count > _MAX_FIELDS or _HEADER.size + length > len(data):
        raise FormatError(path, "byte 52", f"{count} fields in {length} bytes do not fit in {len(data)} bytes")
    reader = _FieldReader(path, data, _HEADER.size, _HEADER.size + length)
    fields = tuple(reader.field(version) for _ in range(count))
    if reader.position != reader.end:
        raise FormatError(
            path, f"byte {reader.position}", f"the field header ends here, not at the declared byte {reader.end}"
        )
    names = [field.name for field in fields]
    if len(set(names)) < len(names):
        raise FormatError(path, f"byte {_HEADER.size}", "two fields have the same name")
    if 12 * sites > len(data) and reader.end < len(data):
        raise FormatError(path, "byte 44", f"{sites} sites do not fit in {len(data)} bytes")
    return version, ExtractionHeader(spacing, (x, y, z), sites, fields), reader.end


class _FieldReader:
    """Reads the field header from byte `position` to `end`."""

    def __init__(self, path: PathLike, data: bytes, position: int, end: int) -> None:
        self.path, self.data, self.position, self.end = path, data, position, end

    def take(self, size: int) -> bytes:
        if self.position + size > self.end:
            raise FormatError(
                self.path, f"byte {self.position}", f"the field header ends at byte {self.end} inside a field"
            )
        self.position += size
        return self.data[self.position - size : self.position]

    def word(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def field(self, version: int) -> ExtractionField:
        start = self.position
        length = self.word()
        raw = self.take(-(-length // 4) * 4)[:length]
        try:
            name = raw.decode()
        except UnicodeDecodeError:
            raise FormatError(self.path, f"byte {start}", "the name of a field is not UTF-8 text") from None
        components = self.word()
        kind, count = (self.word(), self.word()) if version == 5 else (0, 1)
        if not 1 <= components <= _MAX_COMPONENTS or kind >= len(TYPES) or count not in (0, 1, components):
            reason = f"a field of {components} components, type {kind} and {count} offsets is not possible"
            raise FormatError(self.path, f"byte {start}", reason)
        stored = np.dtype(TYPES[kind] if version == 5 else ">f8")
        offsets = np.frombuffer(self.take(count * stored.itemsize), stored)
        return ExtractionField(name, components, kind, tuple(float(value) for value in offsets))
