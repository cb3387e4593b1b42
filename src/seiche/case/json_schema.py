# SPDX-License-Identifier: BSD-3-Clause
"""JSON schema of case files, generated from their tables, with which editors complete and check keys.

A quantity is a string with a unit. The schema does not express which keys exclude each other; `seiche check` tests it.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from seiche.case import quantities
from seiche.case.kinds import KINDS, kind_named
from seiche.case.quantities import DIMENSIONS
from seiche.case.tables import FromList, OneKindOf, OneOrMore
from seiche.errors import CaseError
from seiche.io.files import check_output_folder, check_replaceable, replacing

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?\s*"
#: A number followed by a unit.
QUANTITY = _NUMBER + r"[^0-9\s].*$"
#: Smallest numbers of steps by parser of a time or a number of steps.
_MIN_STEPS = {quantities.parse_steps_or_time: 0, quantities.parse_interval: 1}
#: Description and examples of strings with other grammars, by their parser.
_STRINGS = {
    quantities.parse_period: ("a time or a rate", ["0.8 s", "72 bpm"]),
    quantities.parse_steps_or_time: ("a time", ["0.5 ms"]),
    quantities.parse_interval: ("a time", ["0.5 ms"]),
    quantities.parse_velocity_or_flow_rate: ("a velocity or a flow rate", ["0.3 m/s", "4 mL/s"]),
}


class CaseSchema(GenerateJsonSchema):
    """Generator of the schema for the text of a case file, before its conversion to SI units."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        #: Open sets whose tables are being generated.
        self._open: list[OneKindOf] = []

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        """Return the schema of the values that the validator accepts."""
        function: Any = schema["function"]["function"]
        if function == FromList.func:
            return self.generate_inner(schema["schema"])
        if function == OneOrMore.func:
            array = self.generate_inner(schema["schema"])
            return {"anyOf": [array["items"], array]}
        if isinstance(function, partial):
            if (table := function.keywords.get("table")) is not None:
                return {"type": "string", "enum": list(table)}
            return _quantity(function)
        if function in _STRINGS:
            text = _text(*_STRINGS[function])
            steps = {"type": "integer", "minimum": _MIN_STEPS.get(function), "description": "number of time steps"}
            return {"anyOf": [text, steps]} if function in _MIN_STEPS else text
        return self.generate_inner(schema["schema"])  # a validator of a whole table

    def function_plain_schema(self, schema: core_schema.PlainValidatorFunctionSchema) -> JsonSchemaValue:
        """Return the alternatives of an open set of tables."""
        owner = getattr(schema["function"]["function"], "__self__", None)
        if not isinstance(owner, OneKindOf):
            return super().function_plain_schema(schema)
        if owner in self._open:  # a part of a combination, which may again be a combination
            return {"type": "object", "required": ["kind"], "properties": {"kind": {"enum": list(owner.tables)}}}
        self._open.append(owner)
        tables = dict.fromkeys(owner.tables.values())
        alternatives = [self.generate_inner(table.__pydantic_core_schema__) for table in tables]
        self._open.remove(owner)
        return {"oneOf": alternatives}

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """Return the schema without null, which does not exist in TOML."""
        return self.generate_inner(schema["schema"])

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Omit titles of keys, which would repeat their names."""
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Return the schema with its default as it is written in a case file; defaults of tables are omitted."""
        result = self.generate_inner(schema["schema"])
        default = schema.get("default")
        dimension = _dimension(schema["schema"])
        if isinstance(default, BaseModel) or default is None or default == () or "default_factory" in schema:
            return result
        if dimension is not None:
            if not isinstance(default, float):
                return result
            unit = DIMENSIONS[dimension][0]
            default = f"{default:g} {unit}"
        if isinstance(default, tuple):
            if any(isinstance(item, BaseModel) for item in default):
                return result
            default = list(default)
        return {**result, "default": default} if "$ref" not in result else result


def schema_of(name: str | None = None) -> dict[str, Any]:
    """Return the JSON schema of case files of the kind `name`, such as "flow"; by default of all kinds.

    Raises:
        CaseError: an unknown kind.
    """
    if name is not None and name not in KINDS:
        raise CaseError(f"schema: {quantities.shorten(name)} is not a kind of case; expected {', '.join(KINDS)}")
    if name is not None:
        schema = _of_kind(name)
    else:
        definitions: dict[str, Any] = {}
        for kind in KINDS:
            kind_schema = _of_kind(kind)
            # Different kinds have tables of the same name, such as RunTable of flow and of waves.
            definitions |= {f"{kind}.{key}": _prefixed(value, kind) for key, value in kind_schema.pop("$defs").items()}
            definitions[kind] = _prefixed(kind_schema, kind)
        schema = {"oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in KINDS], "$defs": definitions}
    heading = {"$schema": _DIALECT, "title": f"Seiche: case file of {name or 'any kind'}"}
    return {**heading, **schema, **heading}


def write_schema(path: Path, name: str | None = None) -> None:
    """Write the JSON schema of the kind `name`, by default of all kinds, to `path`.

    Raises:
        CaseError: an unknown kind, the folder does not exist, or `path` exists and is not such a schema.
    """
    text = schema_text(name)
    check_output_folder(path)
    heading = text.partition(",")[0]
    check_replaceable(
        path, heading, f"{path}: cannot read the file to replace", f"{path}: exists and is not a JSON schema of Seiche"
    )
    with replacing(path) as temporary:
        temporary.write_text(text)


def schema_text(name: str | None = None) -> str:
    """Return the text of the schema; CaseError as for `schema_of`."""
    return json.dumps(schema_of(name), indent=1) + "\n"


def _of_kind(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = _with_examples(kind_named(name).schema.model_json_schema(schema_generator=CaseSchema))
    return schema


def _with_examples(value: Any) -> Any:
    """Return the schema with examples of quantities in descriptions, without limits that do not apply to strings."""
    if isinstance(value, list):
        return [_with_examples(item) for item in value]
    if not isinstance(value, dict):
        return value
    schema = {key: _with_examples(item) for key, item in value.items()}
    if isinstance(kind := schema.get("properties", {}).get("kind"), dict):
        kind.setdefault("description", "kind of this table, which determines its other keys")
    if schema.get("pattern") == QUANTITY:
        schema = {key: item for key, item in schema.items() if key not in ("gt", "ge", "lt", "le")}
        if "such as" not in schema["description"]:
            schema["description"] += f", such as {_quoted(schema['examples'])}"
    return schema


def _prefixed(value: Any, kind: str) -> Any:
    """Return the schema with the prefix `kind` in all references to definitions."""
    if isinstance(value, list):
        return [_prefixed(item, kind) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: item.replace("#/$defs/", f"#/$defs/{kind}.") if _is_reference(key, item) else _prefixed(item, kind)
        for key, item in value.items()
    }


def _is_reference(key: str, value: Any) -> bool:
    return isinstance(value, str) and value.startswith("#/$defs/") and key != "description"


def _quantity(function: partial[Any]) -> JsonSchemaValue:
    dimension = function.keywords["dimension"]
    if dimension is None:
        item: JsonSchemaValue = {"type": "number"}
    else:
        _, description, example = DIMENSIONS[dimension]
        item = _text(description, [example])
    if function.func is quantities.parse_vector:
        return {"type": "array", "items": item, "minItems": 3, "maxItems": 3}
    if function.func is quantities.parse_position:
        return {"type": "array", "items": item, "minItems": 1, "maxItems": 3}
    return item


def _text(description: str, examples: list[str]) -> JsonSchemaValue:
    description += f", such as {_quoted(examples)}"
    return {"type": "string", "pattern": QUANTITY, "description": description, "examples": examples}


def _quoted(examples: list[str]) -> str:
    return " or ".join(f'"{example}"' for example in examples)


def _dimension(schema: CoreSchema) -> str | None:
    """Return the dimension of a schema for a quantity, which may be optional or repeated."""
    function = schema.get("function")
    call = function.get("function") if isinstance(function, dict) else None
    if isinstance(call, partial) and "dimension" in call.keywords:
        dimension: str | None = call.keywords["dimension"]
        return dimension
    inner_schema = schema.get("schema") or schema.get("items_schema")
    return _dimension(inner_schema) if isinstance(inner_schema, dict) else None
