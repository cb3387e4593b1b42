# SPDX-License-Identifier: BSD-3-Clause
"""Values in the XML of HemoCell, which are the texts of elements, and notes on elements without an equivalent."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from seiche.case.flow.hemelb_values import parsed_file_name, parsed_number, parsed_whole_number
from seiche.errors import CaseError
from seiche.io.files import cause_of
from seiche.io.formats.xml_tree import Element, read_xml

#: Number of elements that a note names.
MAX_NAMED = 20


def read_root(path: Path) -> Element:
    """Return the element <hemocell> of the file `path`; CaseError if it is unreadable, FormatError for another file."""
    try:
        root = read_xml(path)
    except OSError as error:
        raise CaseError(f"{path}: cannot be read: {cause_of(error)}") from None
    if root.name != "hemocell":
        raise root.error("this is not a file of HemoCell; its first element must be <hemocell>")
    return root


def number(element: Element) -> float:
    """Return the finite number in the text of an element."""
    _no_children(element)
    return parsed_number(element, "value", element.text)


def nonnegative(element: Element) -> float:
    """Return the number in the text of an element, which must not be negative."""
    value = number(element)
    if value < 0.0:
        raise element.error(f"value {value:g} is out of range; expected >= 0")
    return value


def positive(element: Element) -> float:
    """Return the number in the text of an element, which must be positive."""
    value = number(element)
    if value <= 0.0:
        raise element.error(f"value {value:g} is out of range; expected > 0")
    return value


def whole_number(element: Element, minimum: int = 0) -> int:
    """Return the whole number in the text of an element."""
    _no_children(element)
    return parsed_whole_number(element, "value", element.text, minimum)


def optional_number(parent: Element, name: str, default: float = 0.0) -> float:
    """Return the number, zero or more, in the child called `name`, or `default` without it."""
    child = parent.optional(name)
    return nonnegative(child) if child is not None else default


def file_name(element: Element) -> str:
    """Return the file name in the text of an element, without spaces around it."""
    _no_children(element)
    return parsed_file_name(element, "value", element.text.strip())


def unknown(parent: Element, known: Iterable[str]) -> list[str]:
    """Return the paths of the children that are not called one of `known`."""
    names = set(known)
    return [child.path for child in parent.children if child.name not in names]


def unknown_note(source: str, paths: list[str]) -> list[str]:
    """Return the note that the elements `paths` of the file `source` were not converted; none without elements."""
    if not paths:
        return []
    more = f" and {len(paths) - MAX_NAMED} more" if len(paths) > MAX_NAMED else ""
    return [f"{source}: not converted, since their meaning is not known: {', '.join(paths[:MAX_NAMED])}{more}"]


def _no_children(element: Element) -> None:
    if element.children:
        raise element.error(f"contains <{element.children[0].name}>; expected a value")
