# SPDX-License-Identifier: BSD-3-Clause
"""Arrays from untrusted HDF5, .npy and .npz files: links are not followed, and declared sizes are checked."""

from __future__ import annotations

import math
import os
import resource
import struct
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.backend.cpu import available_memory
from seiche.errors import FormatError
from seiche.io.files import cause_of

if TYPE_CHECKING:
    import h5py

Array = npt.NDArray[Any]
#: Exceptions that h5py raises for damaged files.
HDF5_ERRORS = (
    *(OSError, KeyError, IndexError, RuntimeError, ValueError, TypeError, AttributeError, OverflowError),
    *(NotImplementedError, MemoryError),
)
#: Maximum compression ratio; deflate reaches 1032.
_MAX_COMPRESSION_RATIO = 1100
#: Maximum bytes of memory for the headers, links and attributes of an HDF5 file.
_MAX_STRUCTURE_BYTES = 1 << 30
#: Maximum bytes of memory for texts of variable length, beside twice the size of the file.
_MAX_TEXT_BYTES = 1 << 25
#: Maximum size, in bytes, of the reference to a text of variable length: its length, an address and an index.
_MAX_DESCRIPTOR_BYTES = 16
#: Maximum size, in bytes, of files whose global heaps are checked.
_MAX_CHECKED_BYTES = 1 << 28


def one_line(error: BaseException) -> str:
    """Return the text of an error as one short line."""
    return " ".join(str(error).split())[:80] or type(error).__name__


def check_declared_size(path: object, where: str, declared: int, stored: int | None) -> None:
    """Raise FormatError if `declared` bytes of an array exceed those that `stored` bytes can encode, or free memory.

    With None, as for an unknown compression, only the free memory is compared.
    """
    if stored is not None and declared > (1 << 20) + _MAX_COMPRESSION_RATIO * stored:
        raise FormatError(path, where, f"declares {declared} bytes: more than the file can contain")
    free_bytes = available_memory()
    if free_bytes and declared > free_bytes:
        raise FormatError(path, where, f"has {declared} bytes: only {free_bytes} bytes of memory are free")


@contextmanager
def _memory_limit(extra_bytes: int) -> Iterator[None]:
    """Limit further allocations of this process to `extra_bytes` bytes (Linux); larger ones raise an error."""
    try:
        used_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = used_bytes + extra_bytes if soft == resource.RLIM_INFINITY else min(soft, used_bytes + extra_bytes)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def hdf5_file(path: object, problem: str) -> Iterator[h5py.File]:
    """Open an HDF5 file for reading; FileNotFoundError if it does not exist.

    All errors of h5py while it is open become a FormatError with `problem` and the reason.
    """
    import h5py

    try:
        with h5py.File(path, "r", locking=False) as file:
            check_structure(file)
            yield file
    except (FormatError, FileNotFoundError):
        raise
    except HDF5_ERRORS as error:
        raise FormatError(path, "whole file", f"{problem}: {one_line(error)}") from None


def check_structure(file: h5py.File) -> None:
    """Open every object and attribute of a file once, read all texts, and reject links to other files.

    The HDF5 library allocates any size that a damaged header declares. Memory is therefore limited during the check;
    otherwise such a file could end the process.

    Raises:
        FormatError: a link to another file, or an attribute larger than the file.
        OSError, RuntimeError, MemoryError, ...: a damaged file (`HDF5_ERRORS`).
    """
    import h5py

    stored, texts = Path(file.filename).stat().st_size, dict[str, list[Callable[[], Any]]]()

    def external_link(name: bytes, link: Any) -> str | None:
        is_internal = link.type in (h5py.h5l.TYPE_HARD, h5py.h5l.TYPE_SOFT)
        return None if is_internal else name.decode(errors="replace")

    def check_attributes(name: str, item: Any) -> None:
        for key in item.attrs:
            space = item.attrs.get_id(key)
            size = math.prod(space.shape) * space.dtype.itemsize
            check_declared_size(file.filename, f"attribute {key} of {name}", size, stored)
            if space.dtype.kind == "O":
                texts.setdefault(key, []).append(partial(item.attrs.__getitem__, key))
        if isinstance(item, h5py.Dataset) and item.dtype.kind == "O":
            texts.setdefault("", [])

    with _memory_limit(_MAX_STRUCTURE_BYTES):
        link = file.id.links.visit(external_link, info=True)
        if link is not None:
            raise FormatError(file.filename, link, "is a link to another file, which is not followed")
        check_attributes("/", file)
        file.visititems(check_attributes)
    if texts and stored <= _MAX_CHECKED_BYTES:
        _check_heaps(Path(file.filename))
        _check_text_types(Path(file.filename), texts)
        with _memory_limit(_MAX_TEXT_BYTES + 2 * stored):  # a damaged length of a text would be allocated
            for read_text in chain.from_iterable(texts.values()):
                read_text()


def _check_heaps(path: Path) -> None:
    """Reject global heaps (texts of variable length) in which the HDF5 library would loop endlessly.

    A collection is `GCOL`, a version, its size, and objects: 16 bytes (index, references, size) and their data, padded
    to 8 bytes. Index 0 is the free space. The library (2.0.0) advances by the size without checking that it is not 0.
    Source: HDF5 File Format Specification, section III.E.
    """
    content = path.read_bytes()
    start = content.find(b"GCOL")
    while start >= 0:
        position, end = start + 16, min(start + int.from_bytes(content[start + 8 : start + 16], "little"), len(content))
        while position + 16 <= end:
            index, size = struct.unpack_from("<H6xQ", content, position)
            length = (size if index == 0 else 16 + (size + 7) // 8 * 8) % (1 << 64)
            if not 0 < length < 1 << 63:
                raise FormatError(path, f"byte {position}", f"object {index} of a global heap declares {size} bytes")
            position += length
        start = content.find(b"GCOL", start + 4)


def _check_text_types(path: Path, keys: Iterable[str]) -> None:
    """Reject attributes of variable length whose type the HDF5 library (2.0.0) accepts and then crashes.

    The message of an attribute is a version, the sizes of name, type and space, the name, and the type: class 9 in the
    lower half of a byte, 0 (a sequence) or 1 (a text) in that of the next one, and four bytes later its size. In
    version 1, the name is padded to 8 bytes. Source: HDF5 File Format Specification, sections IV.A.2.d and m.
    """
    content = path.read_bytes()
    for name in (key.encode() + b"\0" for key in keys if key):
        start = content.find(name)
        while start >= 0:
            padded = start >= 8 and content[start - 8] == 1
            message = content[start + (-(-len(name) // 8) * 8 if padded else len(name)) :][:8]
            if len(message) == 8 and message[0] & 15 == 9 and message[0] >> 4 in (1, 2, 3):
                kind, size = message[1] & 15, int.from_bytes(message[4:], "little")
                if kind > 1 or size > _MAX_DESCRIPTOR_BYTES:
                    key = name[:-1].decode(errors="replace")
                    raise FormatError(path, f"attribute {key}", "its type of variable length is invalid")
            start = content.find(name, start + 1)


def values_of(file: h5py.File, name: str) -> Array:
    """Return the values of a data set of a file; may raise the errors of `checked_dataset`."""
    return np.asarray(checked_dataset(file, name)[()])


def checked_dataset(file: h5py.File, name: str) -> h5py.Dataset:
    """Return a data set of a file.

    Raises FormatError if it is missing, stored in other files, or larger than the file or the free memory.
    """
    import h5py

    dataset, path = file.get(name), file.filename
    if not isinstance(dataset, h5py.Dataset):
        raise FormatError(path, name, "is missing" if dataset is None else "is not a data set")
    properties = dataset.id.get_create_plist()
    if properties.get_external_count() or properties.get_layout() == h5py.h5d.VIRTUAL:
        raise FormatError(path, name, "is stored in other files, which are not read")
    check_declared_size(path, name, int(dataset.size or 0) * dataset.dtype.itemsize, Path(path).stat().st_size)
    return dataset


def read_npy(path: Path, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Return the array (`shape`) of a .npy file; FormatError if it is not one of finite numbers of that shape."""
    with _numpy_errors(path, "whole file"), path.open("rb") as stream:
        return _read_array(path, "array", stream, shape, stored=path.stat().st_size)


def read_npz(path: Path, names: Collection[str], shape: tuple[int, ...]) -> dict[str, npt.NDArray[np.float64]]:
    """Return the arrays (`shape`) of a .npz file, whose names must be among `names`.

    Raises FormatError if one is not an array of finite numbers of that shape.
    """
    arrays = {}
    with _numpy_errors(path, "whole file"), zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if name not in names:
                raise FormatError(path, repr(name[:80]), f"not one of {', '.join(names)}")
            with _numpy_errors(path, name), archive.open(member) as stream:
                arrays[name] = _read_array(path, name, stream, shape, stored=member.compress_size)
    return arrays


def read_image_array(path: Path) -> Array:
    """Return the array of two or three axes in a .npy file, or the only one in a .npz file, with its type.

    Raises FormatError if it is not an array of numbers or flags.
    """
    if path.suffix.lower() == ".npy":
        with _numpy_errors(path, "whole file"), path.open("rb") as stream:
            return _read_plain(path, "array", stream, stored=path.stat().st_size)
    with _numpy_errors(path, "whole file"), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if len(members) != 1:
            raise FormatError(path, "whole file", f"has {len(members)} arrays; expected one")
        with archive.open(members[0]) as stream:
            return _read_plain(path, members[0].filename, stream, stored=members[0].compress_size)


@contextmanager
def _numpy_errors(path: Path, where: str) -> Iterator[None]:
    try:
        yield
    except FormatError:
        raise
    except Exception as error:  # zipfile, zlib, tokenize and ast raise various errors
        text = f"not a NumPy file of numbers: {one_line(error)}"
        if isinstance(error, OSError) and error.strerror:
            text = f"cannot be read: {cause_of(error)}"
        raise FormatError(path, where, text) from None


def _read_array(
    path: Path, where: str, stream: IO[bytes], shape: tuple[int, ...], *, stored: int
) -> npt.NDArray[np.float64]:
    """Return the array at the beginning of `stream`, of `stored` bytes in the file."""
    array = _read_plain(path, where, stream, stored=stored, shape=shape)
    if not np.isfinite(array).all():
        raise FormatError(path, where, "not every value is a finite number")
    return np.asarray(array, np.float64)


def _read_plain(
    path: Path, where: str, stream: IO[bytes], *, stored: int, shape: tuple[int, ...] | None = None
) -> Array:
    """Return the array of numbers at the beginning of `stream`, of `stored` bytes; with `shape`, only of that shape.

    Without it, flags are accepted as well.
    """
    header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    version = np.lib.format.read_magic(stream)
    if version not in header:
        raise FormatError(path, where, f"version {version} of the format does not contain plain numbers")
    stored_shape, _, dtype = header[version](stream)
    if dtype.kind not in ("fiu" if shape is not None else "fiub"):
        raise FormatError(path, where, "not an array of numbers")
    if shape is not None and stored_shape != shape:
        raise FormatError(path, where, f"shape {stored_shape} is not the grid's {shape}")
    check_declared_size(path, where, dtype.itemsize * int(np.prod(stored_shape, dtype=object)), stored)
    stream.seek(0)
    return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
