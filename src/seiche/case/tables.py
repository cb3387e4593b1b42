# SPDX-License-Identifier: BSD-3-Clause
"""Base class of the tables of a case file, which are immutable and reject unknown keys and type conversions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Annotated, Any, ClassVar, Protocol, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

from seiche.case.quantities import shorten


class Table(BaseModel):
    """A table of a case file."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, protected_namespaces=())
    #: Groups of keys of which exactly one, or at most one, may be given; an override replaces the others of its group.
    exactly_one: ClassVar[tuple[tuple[str, ...], ...]] = ()
    at_most_one: ClassVar[tuple[tuple[str, ...], ...]] = ()

    @model_validator(mode="after")
    def _groups_are_exclusive(self) -> Self:
        for names in self.exactly_one:
            self.only_key_of(names)
        for names in self.at_most_one:
            if len(present := self.present(names)) > 1:
                reason = "both" if len(names) == 2 else " and ".join(present)
                *others, last = names
                raise ValueError(f"give at most one of {', '.join(others)} and {last}; {reason} are given")
        return self

    def present(self, names: Iterable[str]) -> list[str]:
        """Return the keys of `names` that have a value."""
        return [name for name in names if getattr(self, name) not in (None, ())]

    def only_key_of(self, names: Sequence[str]) -> str:
        """Return the only key of `names` that has a value; ValueError if none or several have one."""
        present = self.present(names)
        if len(present) != 1:
            reason = "none is given" if not present else f"{' and '.join(present)} are given"
            raise ValueError(f"give exactly one of {', '.join(names)}; {reason}")
        return present[0]


class SourceTable(Table):
    """A source of a case: one table of an open set (`OneKindOf`)."""

    @property
    def files(self) -> tuple[str, ...]:
        """Return the names of input files: that of the key `file`, if the table has one."""
        name = getattr(self, "file", None)
        return () if name is None else (name,)


class OneKindOf:
    """Validator of a table by its key `kind`; more kinds may be added to `tables` until a case is read."""

    def __init__(self, tables: Mapping[str, type[Table]]) -> None:
        """Accept the `tables`, whose keys are the kinds."""
        self.tables = tables

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        """Return the schema for pydantic."""
        return core_schema.no_info_plain_validator_function(self._validated)

    def _validated(self, value: Any) -> Table:
        if isinstance(value, Table):
            return value
        if not isinstance(value, dict):
            raise PydanticKnownError("model_type", {"class_name": "table"})
        kind, key = value.get("kind"), {"discriminator": "'kind'"}
        if kind is None:
            raise PydanticKnownError("union_tag_not_found", key)
        if not isinstance(kind, str) or kind not in self.tables:
            expected = ", ".join(map(repr, self.tables))
            raise PydanticKnownError("union_tag_invalid", {**key, "tag": str(kind), "expected_tags": expected})
        return self.tables[kind].model_validate(value)


def ordered(lower: str, upper: str, message: str) -> Any:
    """Return a validator of a table that requires `lower` to be below `upper`, for positions along every axis.

    `message` may contain the names of the keys in braces, which are replaced by their values.
    """

    def check(table: Any) -> Any:
        low, high = getattr(table, lower), getattr(table, upper)
        pairs = zip(low, high, strict=False) if isinstance(low, tuple) else [(low, high)]
        if any(a >= b for a, b in pairs):
            raise ValueError(message.format_map(dict(table)))
        return table

    return model_validator(mode="after")(check)


class Named(Protocol):
    """A table with a name."""

    @property
    def name(self) -> str:
        """Return the name."""


def check_unique_names(start: str, tables: Sequence[Named]) -> None:
    """Raise a ValueError, with a message that begins with `start`, if two tables have the same name."""
    if duplicate := first_duplicate([table.name for table in tables]):
        raise ValueError(f'{start} the name "{duplicate}"')


def first_duplicate(names: Sequence[str]) -> str | None:
    """Return the first name that occurs more than once."""
    return next((name for name in names if names.count(name) > 1), None)


def check_nonzero_vector(key: str, vector: Sequence[float] | None, expected: str) -> None:
    """Raise a ValueError if `vector` is (nearly) zero."""
    if vector is not None and sum(c * c for c in vector) < 1e-24:
        raise ValueError(f"{key}: its length is zero; expected {expected}")


def _file_name(value: str) -> str:
    if not value or len(value) > 1000 or not value.isprintable():
        raise ValueError(f"{shorten(value)} is not a usable file name")
    return value


def _inside_folder(value: str) -> str:
    path = PurePath(value)
    if path.is_absolute() or ".." in path.parts or path == PurePath("."):
        raise ValueError(f"{shorten(value)} is not a path inside output.folder")
    if path.name.startswith(".seiche-run"):
        raise ValueError(f"{shorten(value)} is reserved for the manifest of the run; choose another name")
    return value


def _picture_name(value: str) -> str:
    if PurePath(value).suffix.lower() not in PICTURES:
        raise ValueError(f"{shorten(value)} has no known suffix; expected {', '.join(PICTURES)}")
    return value


def _plain_name(value: str) -> str:
    if not value.replace("-", "").replace("_", "").replace(" ", "").isalnum():
        raise ValueError(f"{shorten(value)} is not a valid name; use letters, digits, spaces, - and _")
    return value


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _key_of(value: Any, *, table: Mapping[str, Any]) -> Any:
    if value not in list(table):
        *names, last = map(repr, table)
        raise PydanticKnownError("literal_error", {"expected": f"{', '.join(names)} or {last}" if names else last})
    return value


def one_of(table: Mapping[str, Any]) -> BeforeValidator:
    """Return a validator for the keys of `table`, including keys that are added before a case is read."""
    return BeforeValidator(partial(_key_of, table=table))


#: Suffixes of pictures.
PICTURES = (".png", ".pdf", ".svg")

FileName = Annotated[str, AfterValidator(_file_name)]
#: A name inside the output folder.
OutputName = Annotated[FileName, AfterValidator(_inside_folder)]
#: A name that is allowed inside file names.
PlainName = Annotated[str, AfterValidator(_plain_name)]
TraceName = Annotated[
    FileName | None, Field(description="timeline of stages and messages for ui.perfetto.dev, a .json file")
]
PictureName = Annotated[OutputName, AfterValidator(_picture_name)]
#: Converts a TOML list into a tuple, as strict fields require.
FromList = BeforeValidator(_as_tuple)
#: The same for tables; a single table need not be in a list: `fields = { every = 10, file = "a.vtkhdf" }`.
OneOrMore = BeforeValidator(lambda value: (value,) if isinstance(value, dict) else _as_tuple(value))
