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
#: Kinds that outputs write only at the end of a run, and report then.
_FINAL_KINDS = ("PNG picture", "PDF picture", "SVG picture", "GIF film", "MP4 film")
#: Keys that every summary has.
_SUMMARY_KEYS = {"case", "device", "sites", "steps", "seconds"}
#: Maximum size of a file with a digest, bytes.
_MAX_DIGEST_BYTES = 1 << 28


def is_own(path: Path, kind: str, digests: Mapping[str, Any] | None, name: str) -> bool:
    """Return whether a run wrote the file `path`, which the record of its folder lists as `name` of `kind`.

    A file with a mark of Seiche is its own, any other one only if it has its digest in `digests`. Without a digest
    (None: the record of an earlier version; otherwise the run was interrupted) the first characters decide, but not for
    kinds that have a mark in this version.
    """
    try:
        check_replaceable_file("", path, kind)
    except CaseError:
        return False
    if digests is None or _has_mark(path, kind):
        return True
    if name in digests:
        return bool(digest_of(path) == digests[name])
    return kind not in _MARKED_KINDS


def may_be_new(path: Path, kind: str) -> bool:
    """Return whether a run may have written the file `path` at a target although no output has reported it."""
    return kind not in _FINAL_KINDS and (kind not in _MARKED_KINDS or _has_mark(path, kind))


def _has_mark(path: Path, kind: str) -> bool:
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


def digest_of(path: Path) -> str | None:
    """Return the digest of a file, None for a very large one."""
    if path.stat().st_size > _MAX_DIGEST_BYTES:
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def needs_digest(path: Path, kind: str) -> bool:
    """Return whether the file `path` of `kind` has no mark by which it is recognised."""
    return not _has_mark(path, kind)
