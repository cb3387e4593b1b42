# SPDX-License-Identifier: BSD-3-Clause
"""Changes of the tables of a case, from `--set KEY=VALUE` and from `overrides` in Python.

A changed key replaces the keys of its table that are not allowed beside it, such as `duration` where `steps` is set.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import BaseModel

from seiche.case.arguments import names_of
from seiche.case.quantities import shorten
from seiche.case.schema_tables import fields_of, table_of
from seiche.case.tables import Table
from seiche.errors import CaseError


@dataclass(frozen=True)
class Override:
    """A new `value` of a key, such as "lattice.tau", with the `text` of the change for messages."""

    key: str
    value: Any
    text: str

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the tables and of the key."""
        return tuple(self.key.split("."))


def overrides_of(overrides: Sequence[str] | Mapping[str, Any]) -> list[Override]:
    """Return changes from texts such as "lattice.tau=0.8", or from values by key such as {"lattice.tau": 0.8}.

    Raises:
        CaseError: something else, or a value that a case file cannot have.
    """
    if isinstance(overrides, Mapping):
        return [_of_value(key, value) for key, value in overrides.items()]
    if isinstance(overrides, str) or not isinstance(overrides, Iterable):
        raise CaseError(
            f'overrides: {shorten(overrides)} is not a list such as ["run.device=cuda"] or a dict such as '
            '{"run.device": "cuda"}'
        )
    return [_of_text(text) for text in names_of("overrides", overrides)]


def _of_text(text: str) -> Override:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise CaseError(f'override {shorten(text)}: expected key=value, such as "run.device=cuda"')
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        parsed = value.strip()
    return Override(key.strip(), parsed, text)


def _of_value(key: object, value: object) -> Override:
    if not isinstance(key, str) or not key.strip():
        raise CaseError(f'overrides: {shorten(key)} is not a key such as "run.device"')
    return Override(key.strip(), _plain(key, value), f"{key.strip()}={value}")


def _plain(key: str, value: Any) -> Any:
    """Return a value of a case file; NumPy numbers and arrays, paths and tuples are converted."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(f"{key}.{name}", item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(key, item) for item in value]
    raise CaseError(f"overrides: {key}: {shorten(value)} is not a number, a text, a list or a table")


def apply_overrides(data: dict[str, Any], overrides: Sequence[Override], schema: Callable[[], type[BaseModel]]) -> None:
    """Change the tables `data`, whose schema `schema` returns.

    A changed key replaces the keys of the file that are not allowed beside it. Of several changes of one key, the last
    is used; changes of two keys that are not allowed together are both made, and the check of the tables names them.

    Raises:
        CaseError: a key is not inside a table, a list has no such entry, or the change is that of `solver`.
    """
    changed = {override.names for override in overrides}
    for override in overrides:
        *parents, last = override.names
        table: Any = data
        for name in parents:
            table = _child(table, name, override.text)
        if isinstance(table, list) or not isinstance(table, dict):
            raise CaseError(f"override {shorten(override.text)}: {shorten('.'.join(parents))} is not a table")
        if not parents and last == "solver" and data.get(last) not in (None, override.value):
            raise CaseError(
                f"override {shorten(override.text)}: the other keys belong to solver {shorten(data[last])}; write a "
                f"case file for {shorten(override.value)}"
            )
        if last not in table and table:
            model = _table_at(data, parents, schema())
            for other in _excluded_by(last, model):
                if (*parents, other) not in changed:
                    table.pop(other, None)
        table[last] = override.value


def _excluded_by(key: str, model: type[BaseModel] | None) -> set[str]:
    """Return the keys of a table that are not allowed beside `key`."""
    groups = (*model.exactly_one, *model.at_most_one) if model is not None and issubclass(model, Table) else ()
    return {other for group in groups if key in group for other in group} - {key}


def _table_at(data: Any, names: Sequence[str], root: type[BaseModel]) -> type[BaseModel] | None:
    """Return the schema of the table at `names` in `data`, or None for an unknown key."""
    model: type[BaseModel] | None = root
    annotations: tuple[Any, ...] = (root,)
    value = data
    for name in names:
        if isinstance(value, dict):
            field = fields_of(model).get(name)
            annotations = (field.annotation, *field.metadata) if field is not None else ()
        value = _child(value, name, name)
        model = table_of(annotations, value) if isinstance(value, dict) else None
    return model


def _child(table: Any, name: str, text: str) -> Any:
    if isinstance(table, list):
        for position, item in enumerate(table):
            if name == str(position) or (isinstance(item, dict) and item.get("name") == name):
                return item
        raise CaseError(f"override {shorten(text)}: no entry {shorten(name)} in the list")
    if not isinstance(table, dict):
        raise CaseError(f"override {shorten(text)}: {shorten(name)} is not inside a table")
    return table.setdefault(name, {})
