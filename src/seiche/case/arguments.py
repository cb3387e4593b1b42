# SPDX-License-Identifier: BSD-3-Clause
"""Checks of arguments of the Python interface: a wrong one raises a CaseError of one line."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from pathlib import Path
from typing import TypeVar

from seiche.case.quantities import shorten
from seiche.errors import CaseError

Selected = TypeVar("Selected")

#: Maximum length of the reason for the end of a run.
MAX_LINE = 400
#: ASCII control characters.
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def number_of(value: object) -> float | None:
    """Return a finite real number as float; None for anything else, for example a bool or text."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def whole_number(key: str, value: object, minimum: int = 0) -> int:
    """Return `value` as int; CaseError, with the argument's name `key`, unless it is whole and at least `minimum`."""
    number = number_of(value)
    if number is None or number != math.floor(number) or number < minimum:
        raise CaseError(f"{key}: {shorten(value)} is not a whole number of at least {minimum}")
    return int(number)


def step_after(steps: object, step: int, last: int, source: str) -> int:
    """Return the step at which `run(steps)` from `step` returns.

    Raises CaseError if it is after step `last`, the end of `source`.
    """
    end = last if steps is None else step + whole_number("run: steps", steps)
    if end > last:
        raise CaseError(
            f"run: {steps} steps from step {step} go beyond the end of {source} at step {last}; use at most"
            f" {last - step}, or load the case with more steps (overrides) and a checkpoint of this run (restart)"
        )
    return end


def one_line(text: str) -> str:
    """Return `text` as one line of at most `MAX_LINE` characters, without control characters."""
    line = " ".join(_CONTROL.sub(" ", text).split())
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - 3] + "..."


def path_of(key: str, value: object) -> Path:
    """Return `value` as a path; CaseError, with the argument's name `key`, unless it is text or a path."""
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str) or not text or _CONTROL.search(text):
        raise CaseError(f"{key}: {shorten(value)} is not a path")
    return Path(text)


def names_of(key: str, names: object, additional_names: Iterable[object] = ()) -> tuple[str, ...]:
    """Return names passed as one list or as separate arguments.

    Raises a CaseError that begins with `key` for anything else.
    """
    first = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, Iterable) else None
    all_names = (*first, *additional_names) if first is not None else ()
    if first is None or not all(isinstance(name, str) for name in all_names):
        raise CaseError(f"{key}: {shorten(names if first is None else all_names)} is not a name or a list of names")
    return tuple(str(name) for name in all_names)


def selected(
    read_fields: Callable[[Sequence[str]], Selected],
    names: object,
    additional_names: Iterable[object],
    case_kind: object,
) -> Selected:
    """Return what `read_fields` returns for the field names.

    Raises CaseError for anything that is not a name, and for a field that this kind of case does not have.
    """
    try:
        return read_fields(names_of("fields", names, additional_names))
    except KeyError as error:
        raise CaseError(f"fields: {error.args[0]!r} is not a field of solver = {case_kind!r}") from None


def check_type(key: str, value: object, expected_type: type, description: str) -> None:
    """Raise a CaseError, with the argument's name `key`, unless `value` has `expected_type`."""
    if not isinstance(value, expected_type):
        raise CaseError(f"{key}: {shorten(value)} is not {description}")
