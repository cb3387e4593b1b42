# SPDX-License-Identifier: BSD-3-Clause
"""Recognition of files that runs have written: by their content, or by a digest in the record of the folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seiche.case.output_targets import check_replaceable_file
from seiche.errors import CaseError
from seiche.io.mark import is_marked
from seiche.observe.trace import SCHEMA as TRACE

#: Kinds of files with content that only Seiche writes.
_MARKED_KINDS = ("HDF5 file", "summary", "trace", "checkpoint")
#: Kinds without a mark to which a run appends after it has published the file.
_GROWING_KINDS = ("extraction file",)
#: Keys that every summary has.
_SUMMARY_KEYS = {"case", "device", "sites", "steps", "seconds"}
#: Number of bytes at the beginning of a file from which its digest is computed.
_DIGEST_BYTES = 1 << 28


def is_own(path: Path, kind: str, digests: Mapping[str, Any] | None, name: str) -> bool:
    """Return whether a run wrote the file `path`, which the record of its folder lists as `name` of `kind`.

    A file with a mark of Seiche is its own, any other one only if it has one of its digests in `digests`. Without a
    digest (in the record of an earlier version) the first characters decide, but not for kinds that have a mark in this
    version unless `digests` is None.
    """
    try:
        check_replaceable_file("", path, kind)
    except CaseError:
        return False
    if digests is None or has_mark(path, kind):
        return True
    if name in digests:
        return any(_matches(path, kind, digest) for digest in texts_of(digests[name]))
    return kind not in _MARKED_KINDS


def texts_of(digests: Any) -> list[str]:
    """Return the digests of a file in a record; earlier versions stored a single one."""
    entries = digests if isinstance(digests, list) else [digests]
    return [entry for entry in entries if isinstance(entry, str)]


def _matches(path: Path, kind: str, digest: str) -> bool:
    """Return whether a file has a digest; one to which runs append begins with the bytes of the digest."""
    size = digest.rpartition(":")[0]
    length = int(size) if size.isdecimal() and kind in _GROWING_KINDS else None
    computed = digest_of(path, length)
    return computed == digest or computed.endswith(f":{digest}")  # earlier versions stored no size


def has_mark(path: Path, kind: str) -> bool:
    """Return whether a file of a kind contains a mark of Seiche."""
    if kind == "HDF5 file":
        return is_marked(path)
    if kind == "summary":
        try:
            content = json.loads(path.read_bytes())
        except (OSError, ValueError):
            return False
        return isinstance(content, dict) and _SUMMARY_KEYS.issubset(content)
    if kind == "trace":
        with path.open("rb") as file:
            return file.read(200).startswith(f'{{"schema": "{TRACE}"'.encode())
    return kind == "checkpoint"  # its first characters are a mark


def digest_of(path: Path, size: int | None = None) -> str:
    """Return "size:digest" of the first `size` bytes of a file, by default of all."""
    size = path.stat().st_size if size is None else size
    digest, remaining = hashlib.sha256(), min(size, _DIGEST_BYTES)
    with path.open("rb") as file:
        while chunk := file.read(min(remaining, 1 << 20)):
            digest.update(chunk)
            remaining -= len(chunk)
    return f"{size}:{digest.hexdigest()}"
