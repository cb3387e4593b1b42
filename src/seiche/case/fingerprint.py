# SPDX-License-Identifier: BSD-3-Clause
"""Fingerprints of tables that a restart must not change, because a checkpoint replaces what they define."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel


def values_of(table: BaseModel | None, *keys: str) -> dict[str, Any] | None:
    """Return the values of a table that are not defaults as JSON, all or those of `keys`; None without a table."""
    if table is None:
        return None
    return table.model_dump(mode="json", exclude_defaults=True, include=set(keys) or None)


def fingerprint_of(values: Any, files: Iterable[Path] = ()) -> str:
    """Return a hash of `values` (JSON) and of the content of `files`; a missing file counts as empty."""
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode())
    for path in files:
        digest.update(hashlib.sha256(path.read_bytes() if path.is_file() else b"").digest())
    return digest.hexdigest()
