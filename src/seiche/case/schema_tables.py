# SPDX-License-Identifier: BSD-3-Clause
"""The tables of a schema: their keys, and the table that a value with the key `kind` belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from seiche.case.tables import OneKindOf


def fields_of(model: type[BaseModel] | None) -> dict[str, FieldInfo]:
    """Return the fields of a table by their keys in a case file."""
    return {field.alias or name: field for name, field in model.model_fields.items()} if model else {}


def models_in(*annotations: Any) -> Iterator[type[BaseModel]]:
    """Yield all tables in the `annotations` of a field; an open set yields its tables, not their base class."""
    for annotation in [candidate for candidate in annotations if isinstance(candidate, OneKindOf)] or annotations:
        if isinstance(annotation, OneKindOf):
            yield from annotation.tables.values()
        elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield annotation
        else:
            yield from models_in(*get_args(annotation))


def is_open(*annotations: Any) -> bool:
    """Return whether the annotations of a field are those of an open set of tables."""
    return any(isinstance(item, OneKindOf) or is_open(*get_args(item)) for item in annotations)


def tags_of(annotations: Sequence[Any]) -> set[str]:
    """Return the values of `kind` in a union; empty for a single table and for an open set."""
    models = [] if is_open(*annotations) else list(models_in(*annotations))
    return {name for model in models for name in tag_of(model)} if len(models) > 1 else set()


def tag_of(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the values of `kind` of a table."""
    field = fields_of(model).get("kind")
    return tuple(get_args(field.annotation)) if field is not None else ()


def table_of(annotations: Sequence[Any], value: dict[str, Any]) -> type[BaseModel] | None:
    """Return the table with the `kind` of `value`, otherwise the first one."""
    models = list(models_in(*annotations))
    return next((model for model in models if value.get("kind") in tag_of(model)), next(iter(models), None))
