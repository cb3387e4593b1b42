# SPDX-License-Identifier: BSD-3-Clause
"""What every table of a case file shares: no unknown keys, no silent conversion, no change after reading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Annotated, Any, Protocol

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticKnownError

from seiche.case.quantities import shorten


class Table(BaseModel):
    """A table of a case file."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, protected_namespaces=())

    def exactly_one_of(self, names: Iterable[str]) -> str:
        """Return the name of the one key among `names` that is given; ValueError when it is none or several."""
        names = tuple(names)
        given = [name for name in names if getattr(self, name) is not None]
        if len(given) != 1:
            found = "none is given" if not given else f"{' and '.join(given)} are given"
            raise ValueError(f"give exactly one of {', '.join(names)}; {found}")
        return given[0]

    def at_most_one_of(self, one: str, other: str) -> None:
        """Raise a ValueError if both of two keys are given."""
        if getattr(self, one) is not None and getattr(self, other) is not None:
            raise ValueError(f"give at most one of {one} and {other}; both are given")


class Named(Protocol):
    """A table with a name."""

    @property
    def name(self) -> str:
        """Return the name."""


def refuse_twins(start: str, tables: Sequence[Named]) -> None:
    """Raise a ValueError, which begins with `start`, if two tables have one name."""
    names = [table.name for table in tables]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise ValueError(f'{start} the name "{twice}"')


def refuse_null(key: str, vector: Sequence[float] | None, expected: str) -> None:
    """Raise a ValueError if a direction is given that has no length."""
    if vector is not None and sum(c * c for c in vector) < 1e-24:
        raise ValueError(f"{key}: its length is zero; expected {expected}")


def _a_file_name(value: str) -> str:
    if not value or len(value) > 1000 or not value.isprintable():
        raise ValueError(f"{shorten(value)} is not a usable file name")
    return value


def _inside_the_folder(value: str) -> str:
    path = PurePath(value)
    if path.is_absolute() or ".." in path.parts or path == PurePath("."):
        raise ValueError(f"{shorten(value)} is not a name inside output.folder")
    return value


def _a_picture(value: str) -> str:
    if PurePath(value).suffix.lower() not in PICTURES:
        raise ValueError(f"{shorten(value)} ends with none of {', '.join(PICTURES)}")
    return value


def _a_plain_name(value: str) -> str:
    if not value.replace("-", "").replace("_", "").replace(" ", "").isalnum():
        raise ValueError(f"{shorten(value)} is no plain name; use letters, digits, spaces, - and _")
    return value


def _a_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _an_entry(value: Any, *, table: Mapping[str, Any]) -> Any:
    if value not in list(table):
        *names, last = map(repr, table)
        raise PydanticKnownError("literal_error", {"expected": f"{', '.join(names)} or {last}" if names else last})
    return value


def one_of(table: Mapping[str, Any]) -> BeforeValidator:
    """Return the validator of a name that `table` has when a case is read, also one that was entered later."""
    return BeforeValidator(partial(_an_entry, table=table))


#: Endings of the pictures that can be drawn.
PICTURES = (".png", ".pdf", ".svg")

FileName = Annotated[str, AfterValidator(_a_file_name)]
#: What a run writes: it may not leave the folder of its outputs.
OutputName = Annotated[FileName, AfterValidator(_inside_the_folder)]
#: A name that may become a part of a file's.
PlainName = Annotated[str, AfterValidator(_a_plain_name)]
#: Where a time line goes, the same in the cases of all solvers.
TraceName = Annotated[
    FileName | None, Field(description="time line of stages and messages for ui.perfetto.dev, a .json")
]
PictureName = Annotated[OutputName, AfterValidator(_a_picture)]
#: Turns a TOML list into the tuple that a strict field asks for.
FromList = BeforeValidator(_a_tuple)
#: The same for tables, of which one may stand alone: `fields = { every = 10, file = "a.vtkhdf" }`.
OneOrMore = BeforeValidator(lambda value: (value,) if isinstance(value, dict) else _a_tuple(value))
