# SPDX-License-Identifier: BSD-3-Clause
"""Elements and attributes of small, untrusted XML files: document types, and so entities, are rejected.

Size, depth and number of elements are bounded. Files of HemoCell have values in the text of elements. In those of
HemeLB text has no meaning (often it is part of a comment); its position is recorded. Every error names the file, the
line and the path of the element.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from seiche.errors import FormatError

#: Limits of files that are written by hand or by a tool for one case.
MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_ELEMENTS = 100_000
MAX_DEPTH = 40
#: Maximum number of texts between elements that are recorded.
MAX_IGNORED_TEXTS = 10
#: Number of characters of the text of an element that are kept.
MAX_TEXT = 1200


@dataclass(eq=False)
class Element:
    """One element of the file `source`; `path` as "inlets/inlet[2]/condition", counted among siblings of its name.

    `text` is the text of the element itself, cut after `MAX_TEXT` characters. `ignored_text` of the root lists the text
    between elements, one line each for the user.
    """

    source: str
    name: str
    path: str
    line: int
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    ignored_text: list[str] = field(default_factory=list)
    text: str = ""

    def error(self, reason: str) -> FormatError:
        """Return the error that this element is wrong because of `reason`."""
        return FormatError(self.source, f"line {self.line}, {self.path}", reason)

    def attribute(self, name: str) -> str:
        """Return an attribute; FormatError when it is missing."""
        value = self.attributes.get(name)
        if value is None:
            present = f"it has {_name_list(self.attributes)}" if self.attributes else "it has none"
            raise self.error(f'the attribute "{name}" is missing; {present}')
        return value

    def all(self, name: str) -> list[Element]:
        """Return the children called `name`, in the order of the file."""
        return [child for child in self.children if child.name == name]

    def optional(self, name: str) -> Element | None:
        """Return the one child called `name`, or None; FormatError when it is given twice."""
        children = self.all(name)
        if len(children) > 1:
            raise children[1].error("is given twice")
        return children[0] if children else None

    def child(self, name: str) -> Element:
        """Return the one child called `name`; FormatError when it is missing or given twice."""
        element = self.optional(name)
        if element is None:
            present = f"it has {_name_list(child.name for child in self.children)}" if self.children else "it is empty"
            raise self.error(f"the element <{name}> is missing; {present}")
        return element

    def only(self, supported: Iterable[str]) -> None:
        """Reject, by its path, the first child that is not called one of `supported`."""
        names = tuple(supported)
        for child in self.children:
            if child.name not in names:
                supported_names = f"supported here are {', '.join(names)}" if names else "nothing is supported here"
                raise child.error(f"this element is not supported; {supported_names}")


def read_xml(path: str | Path) -> Element:
    """Return the root element of the file `path`; FormatError for an invalid file, OSError if it cannot be read."""
    with open(path, "rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise FormatError(path, f"byte {MAX_FILE_BYTES}", "an XML case has at most 4 MiB; this is not a case file")
    return _Builder(str(path)).build(content)


class _Builder:
    """Builds elements from the events of the parser."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._open: list[Element] = []
        self._root: Element | None = None
        self._count = 0
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.StartDoctypeDeclHandler = self._doctype

    def build(self, content: bytes) -> Element:
        try:
            self._parser.Parse(content, True)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise FormatError(self._source, f"line {error.lineno}", f"not XML: {reason}") from None
        except (ValueError, LookupError) as error:  # an unknown encoding
            raise FormatError(self._source, "line 1", f"cannot be read: {_printable(str(error))}") from None
        if self._root is None:
            raise FormatError(self._source, "line 1", "not XML: it has no element")
        return self._root

    def _fail(self, reason: str) -> FormatError:
        return FormatError(self._source, f"line {self._parser.CurrentLineNumber}", reason)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if self._count > MAX_ELEMENTS:
            raise self._fail(f"more than {MAX_ELEMENTS} elements; this is not a case file")
        if len(self._open) >= MAX_DEPTH:
            raise self._fail(f"elements are nested more than {MAX_DEPTH} deep")
        printable_name = _printable(name)
        path = printable_name
        if self._open:
            parent = self._open[-1]
            number = len(parent.all(name)) if len(parent.children) < 1000 else 0
            prefix = "" if parent is self._root else parent.path + "/"
            path = f"{prefix}{printable_name}" + (f"[{number + 1}]" if number else "")
        element = Element(self._source, name, path, self._parser.CurrentLineNumber, dict(attributes))
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        self._open.append(element)

    def _end(self, name: str) -> None:
        del name
        self._open.pop()

    def _text(self, text: str) -> None:
        if self._open and (space := MAX_TEXT - len(self._open[-1].text)) > 0:
            self._open[-1].text += text[:space]
        if text.strip() and self._root is not None and len(self._root.ignored_text) < MAX_IGNORED_TEXTS:
            line = self._parser.CurrentLineNumber
            self._root.ignored_text.append(
                f'line {line}: text "{_printable(text.strip())}" between elements is ignored'
            )

    def _doctype(self, *details: object) -> None:
        del details
        raise self._fail("it declares a document type, which could define entities; remove the line <!DOCTYPE ...>")


def _printable(text: str) -> str:
    """Return `text` for a one-line message."""
    printable = "".join(c if c.isprintable() else "?" for c in text)
    return printable if len(printable) <= 60 else printable[:57] + "..."


def _name_list(names: Iterable[str]) -> str:
    """Return the distinct `names`, at most 12 of them."""
    distinct = list(dict.fromkeys(_printable(name) for name in names))
    return ", ".join(distinct[:12]) + (" ..." if len(distinct) > 12 else "")
