# SPDX-License-Identifier: BSD-3-Clause
"""Reader of case files. Each error is reported in one line: file, key, value, expected value."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from seiche.case.arguments import path_of
from seiche.case.kinds import kind_of
from seiche.case.messages import nearest
from seiche.case.overrides import apply_overrides, overrides_of
from seiche.case.plausible import implausible
from seiche.case.quantities import shorten
from seiche.case.schema_tables import fields_of, table_of, tags_of
from seiche.case.source import CaseFile
from seiche.errors import CaseError, FormatError
from seiche.io.files import cause_of
from seiche.set_up import set_up_stage

Root = TypeVar("Root", bound=BaseModel)

#: Translators of case files of other programs, by suffix; a translator returns tables and notes.
TRANSLATORS = {".xml": "seiche.case.flow.hemelb:read_hemelb"}
#: Maximum size of a case file, bytes.
MAX_FILE_BYTES = 4 * 1024 * 1024
#: For each error type of pydantic: the key of the limit in the error context and its sign, or the expected type.
_LIMITS = {
    "greater_than": ("gt", ">"),
    "greater_than_equal": ("ge", ">="),
    "less_than": ("lt", "<"),
    "less_than_equal": ("le", "<="),
}
#: The same for errors of the number of entries or characters.
_SIZES = {
    "too_long": ("max_length", "at most"),
    "too_short": ("min_length", "at least"),
    "string_too_long": ("max_length", "at most"),
    "string_too_short": ("min_length", "at least"),
}
_TYPES = {
    "string_type": "a string",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "finite_number": "a finite number",
    **dict.fromkeys(("int_type", "int_from_float"), "a whole number"),
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), "a table"),
}


@set_up_stage("read")
def read_source(
    path: Path | str, overrides: Sequence[str] | Mapping[str, Any] = (), device: str | None = None
) -> CaseFile:
    """Return the unchecked tables of the case file `path` after the changes `overrides`, such as "run.device=cuda".

    Files of other programs are translated (`TRANSLATORS`). Raises FormatError if the file is not valid, CaseError if a
    key in `overrides` cannot be set.
    """
    notes: tuple[str, ...] = ()
    path = path_of("case file", path)
    suffix = path.suffix.lower()
    changes = overrides_of(overrides)
    if suffix in TRANSLATORS:
        module, _, name = TRANSLATORS[suffix].partition(":")
        data, notes = getattr(import_module(module), name)(path)
    else:
        data = _read_toml(path)
    if device:
        changes += overrides_of({"run.device": device})
    if changes:
        apply_overrides(data, changes, lambda: kind_of(CaseFile(path, data)).schema)
    return CaseFile(path, data, notes)


@set_up_stage("check")
def check_tables(data: dict[str, Any], source: str, root: type[Root]) -> Root:
    """Validate the tables `data` by the schema `root`; CaseError with a message that begins with `source`.

    Values that are wrong by orders of magnitude also raise a CaseError.
    """
    try:
        case = root.model_validate(data)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=True)
        # The error of a table is often a consequence of an error inside the table.
        details = [outer for outer in errors if not any(_within(inner["loc"], outer["loc"]) for inner in errors)]
        # The solver determines which keys are valid, so its error comes first. A misspelt key often causes an error of
        # a missing key, too: the misspelling is reported.
        first = min(details, key=lambda detail: (detail["loc"] != ("solver",), detail["type"] != "extra_forbidden"))
        more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
        raise CaseError(f"{source}: {_describe(first, data, root)}{more}") from None
    for problem in implausible(case):
        raise CaseError(f"{source}: {problem}")
    return case


def _within(location: tuple[int | str, ...], table: tuple[int | str, ...]) -> bool:
    return len(location) > len(table) and location[: len(table)] == table


def _read_toml(path: Path) -> dict[str, Any]:
    if path.is_dir():
        raise CaseError(f"{path}: is a folder, not a case file{_case_in(path)}")
    if path.suffix == ".py" and path.is_file():
        raise CaseError(f"{path}: is a Python script, not a case file{_case_in(path.parent)}")
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise CaseError(f"{path}: cannot read the case file: {cause_of(error)}") from None
    if len(content) > MAX_FILE_BYTES:
        raise FormatError(path, f"byte {MAX_FILE_BYTES}", "exceeds the limit of 4 MiB of a case file")
    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise FormatError(path, f"byte {error.start}", "not UTF-8 text") from None
    except RecursionError:
        raise FormatError(path, "whole file", "tables or lists are nested too deeply") from None
    except ValueError as error:
        reason, _, position = " ".join(str(error).split()).partition(" (at ")
        printable = "".join(c if c.isprintable() else "?" for c in reason)
        raise FormatError(path, position.rstrip(")") or "whole file", f"not TOML: {printable}") from None


def _case_in(folder: Path) -> str:
    """Return a hint if a folder contains a case file."""
    cases = sorted(folder.glob("*.toml"))
    return f"; did you mean {cases[0]}?" if len(cases) == 1 else ""


def _describe(detail: ErrorDetails, data: dict[str, Any], root: type[BaseModel]) -> str:
    """Return "key.path: reason" for a pydantic error in tables of the schema `root`."""
    path, value, model = _locate(detail["loc"], data, root)
    context = detail.get("ctx", {})
    kind = detail["type"]
    if kind == "extra_forbidden":
        return f"{path}: unknown key{nearest(path.rpartition('.')[2], list(fields_of(model)))}"
    if kind == "missing":
        return f"{path}: is missing; expected {_description(model, path)}"
    if kind == "value_error":
        message = str(context.get("error", detail["msg"]))
        return f"{path}: {message}" if path else message
    if kind == "string_pattern_mismatch":
        return f"{path}: {shorten(value)} is not known; expected {_description(model, path)}"
    if kind == "literal_error":
        choices = str(context["expected"]).replace("'", '"')
        hint = nearest(value, _quoted(choices), listing=False)
        return f"{path}: {shorten(value)} is not known; expected {choices}{hint}"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        choices = str(context.get("expected_tags", "")).replace("'", '"')
        if not isinstance(value, dict):
            return f"{path}: {shorten(value)} is not a table with the key kind"
        if kind == "union_tag_not_found":
            return f"{path}: kind is missing; expected a table with the key kind"
        tag = value.get("kind")
        hint = nearest(tag, _quoted(choices), listing=False)
        return f"{path}.kind: {shorten(tag)} is not known; expected {choices}{hint}"
    if kind in _LIMITS:
        name, sign = _LIMITS[kind]
        return f"{path}: {shorten(value)} is out of range; expected {sign} {context[name]:g}"
    if kind in _SIZES:
        name, bound = _SIZES[kind]
        unit = "characters" if isinstance(value, str) else "entries"
        count = f"has {len(value)} {unit}" if hasattr(value, "__len__") else shorten(value)
        return f"{path}: {count}; expected {bound} {context[name]}"
    if kind in _TYPES:
        return f"{path}: {shorten(value)} is not {_TYPES[kind]}"
    return f"{path}: {shorten(value)}: {detail['msg'][:1].lower()}{detail['msg'][1:]}"


def _locate(
    location: tuple[int | str, ...], data: Any, root: type[BaseModel]
) -> tuple[str, Any, type[BaseModel] | None]:
    """Follow `location` through `data`; return the key path, the value, and the model of the table that contains it.

    Pydantic inserts tags of unions into the location; they are skipped unless they are keys of the data.
    """
    path, value, entered = "", data, False
    annotations: tuple[Any, ...] = (root,)
    owner: type[BaseModel] | None = root
    for item in location:
        if isinstance(item, int):
            value = value[item] if isinstance(value, list | tuple) and item < len(value) else None
            name = value.get("name") if isinstance(value, dict) else None
            path, entered = f"{path}[{shorten(name) if isinstance(name, str) else item}]", True
        elif isinstance(value, dict) and not (entered and item in tags_of(annotations)):
            owner = table_of(annotations, value)
            key = "".join(c if c.isprintable() else "?" for c in item)[:60]
            path = f"{path}.{key}" if path else key
            value, entered = value.get(item), True
            field = fields_of(owner).get(item)
            annotations = (field.annotation, *field.metadata) if field is not None else ()
        else:
            entered = False
    return path, value, owner


def _description(model: type[BaseModel] | None, path: str) -> str:
    """Return the description of the last key of `path` in the schema."""
    return getattr(fields_of(model).get(path.rpartition(".")[2]), "description", None) or "a value"


def _quoted(choices: str) -> list[str]:
    return choices.split('"')[1::2]
