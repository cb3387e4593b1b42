# SPDX-License-Identifier: BSD-3-Clause
"""Text of a case file from its tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def toml_text(tables: Mapping[str, Any]) -> str:
    """Return TOML text of nested tables of strings, numbers, flags and lists."""
    return "\n".join(_lines(tables, "")).strip() + "\n"


def _lines(table: Mapping[str, Any], prefix: str) -> Iterator[str]:
    """Yield the lines of a table: its values first, then its tables and lists of tables."""
    subtables = {key: value for key, value in table.items() if isinstance(value, Mapping) or _is_list_of_tables(value)}
    for key, value in table.items():
        if key not in subtables:
            yield f"{_key(key)} = {_value(value)}"
    for key, value in subtables.items():
        path = f"{prefix}{_key(key)}"
        for item in value if isinstance(value, list) else [value]:
            yield ""
            yield f"[[{path}]]" if isinstance(value, list) else f"[{path}]"
            yield from _lines(item, f"{path}.")


def _is_list_of_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + " }"
    return repr(value)
