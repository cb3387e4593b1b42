# SPDX-License-Identifier: BSD-3-Clause
"""Docstrings in Google's style as Markdown, for docs/reference/api.md."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Literal, get_args, get_origin

#: Sections of a docstring that list names, and the headings of their tables.
TABLES = {"Args": "argument", "Attributes": "attribute"}
#: Methods that authors of a solver override; listed with the base class only.
HOOKS = {"before", "before_launch", "after_launch", "after", "collect", "may_replay", "upcoming"}
_SECTION = re.compile(r"^(Args|Attributes|Raises|Returns|Yields):$", re.MULTILINE)
_ITEM = re.compile(r"^(?P<names>\*{0,2}\w[\w.]*(?:, \*{0,2}\w[\w.]*)*): (?P<text>.*)$", re.DOTALL)


def resolve(path: str) -> Any:
    """Return the object of a dotted name: a member of a module, or of a class in a module."""
    parts = path.split(".")
    for count in range(len(parts) - 1, 0, -1):
        try:
            value: Any = import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            value = getattr(value, part)
        return value
    raise AttributeError(path)


def signature(value: Any) -> str:
    """Return the names of the parameters of a function or class, with `*` before those that are keyword-only."""
    names: list[str] = []
    for parameter in inspect.signature(value).parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not any(name.startswith("*") for name in names):
            names.append("*")
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        names.append(star + parameter.name)
    return ", ".join(names)


def entry(path: str) -> str:
    """Return the Markdown of a public name: a function, or a class with its own public methods and properties."""
    value = resolve(path)
    lines = [heading(path, value)]
    parent, _, name = path.rpartition(".")
    if name != value.__name__ and hasattr(sys.modules.get(parent), value.__name__):
        return "\n\n".join([*lines, f"Another name of `{value.__name__}`."])
    lines.append(markdown(own_docstring(value)))
    if inspect.isclass(value):
        lines += [*constructor(value), inherited(value)]
        for name, member in public_members(value):
            if inspect.isfunction(member) and (name not in HOOKS or inspect.isabstract(value)):
                lines += [heading(f"{path}.{name}", getattr(value, name)), markdown(inspect.getdoc(member) or "")]
    return "\n\n".join(line for line in lines if line)


def constructor(kind: type) -> Iterator[str]:
    """Yield the docstring of `__init__` or the fields of a dataclass, then the properties of a class."""
    initialiser = vars(kind).get("__init__")
    if dataclasses.is_dataclass(kind):
        if dataclasses.fields(kind) and "Attributes:" not in own_docstring(kind):
            yield fields(kind)
    elif initialiser is not None and initialiser.__doc__:
        yield markdown(inspect.getdoc(initialiser) or "")
    properties = [(name, member) for name, member in public_members(kind) if not inspect.isfunction(member)]
    if properties:
        yield table("property", [(name, inspect.getdoc(member) or "") for name, member in properties])


def fields(kind: Any) -> str:
    """Return a table of the fields of a dataclass, their types and defaults."""
    lines = ["| field | type | default |", "|---|---|---|"]
    for field in dataclasses.fields(kind):
        if not field.init:
            continue
        alias = getattr(import_module(kind.__module__), str(field.type), None)
        annotation = " | ".join(map(repr, get_args(alias))) if get_origin(alias) is Literal else str(field.type)
        default = f"`{field.default!r}`" if field.default is not dataclasses.MISSING else ""
        if field.default_factory is not dataclasses.MISSING:
            default = f"`{getattr(field.default_factory, '__name__', 'made')}()`"
        lines.append(f"| `{field.name}` | `{annotation.replace('|', chr(92) + '|')}` | {default} |")
    return "\n".join(lines)


def heading(path: str, value: Any) -> str:
    """Return the heading of a callable."""
    return f"### `{path}({signature(value)})`"


def own_docstring(value: Any) -> str:
    """Return the docstring, or nothing for the one that Python generates for a dataclass."""
    text = inspect.getdoc(value) or ""
    is_generated = dataclasses.is_dataclass(value) and text.startswith(f"{getattr(value, '__name__', '')}(")
    return "" if is_generated else text


def public_members(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield public methods and properties that the class itself defines, in the order of its source."""
    for name, member in vars(kind).items():
        if isinstance(member, classmethod | staticmethod):
            member = member.__func__
        is_listed = inspect.isfunction(member) or isinstance(member, property | functools.cached_property)
        if is_listed and not name.startswith("_"):
            yield name, member


def inherited(kind: type) -> str:
    """Return a sentence that names the methods of the bases of a class in this package."""
    bases = [base for base in kind.__mro__[1:] if base.__module__.startswith("seiche.")]
    overridden = set(vars(kind))
    sentences = []
    for base in bases:
        names = [f"`{name}`" for name, _ in public_members(base) if name not in overridden and name not in HOOKS]
        overridden |= set(vars(base))
        sentences += [f"From `{base.__name__}`: {', '.join(names)}."] if names else []
    return " ".join(sentences)


def markdown(text: str) -> str:
    """Return a docstring as Markdown: paragraphs, a table for each list of names, one sentence about exceptions."""
    pieces = _SECTION.split(text)
    parts = [paragraphs(pieces[0])]
    for title, body in zip(pieces[1::2], pieces[2::2], strict=True):
        listed, _, after = textwrap.dedent(body.strip("\n")).partition("\n\n")
        if title in TABLES:
            parts.append(table(TABLES[title], list(items(listed))))
        elif title == "Raises":
            raised = (f"`{names}`: {escape(condition).rstrip('.')}" for names, condition in items(listed))
            parts.append(f"Raises {'; '.join(raised)}.")
        else:
            parts.append(f"{title}: {escape(' '.join(listed.split()))}")
        parts.append(paragraphs(after))
    return "\n\n".join(part for part in parts if part)


def items(body: str) -> Iterator[tuple[str, str]]:
    """Yield (names, text) of the items of a section, whose continued lines are indented."""
    for block in re.split(r"\n(?=\S)", textwrap.dedent(body.strip("\n"))):
        match = _ITEM.match(block)
        if match is None:
            raise ValueError(f"not an item of a docstring: {block!r}")
        yield match["names"], " ".join(match["text"].split())


def table(title: str, rows: list[tuple[str, str]]) -> str:
    """Return a Markdown table of names and their meaning."""
    lines = [f"| {title} | meaning |", "|---|---|"]
    for names, text in rows:
        codes = ", ".join(f"`{name}`" for name in names.split(", "))
        lines.append(f"| {codes} | {escape(' '.join(text.split())).replace('|', chr(92) + '|')} |")
    return "\n".join(lines)


def paragraphs(text: str) -> str:
    """Return text with the special characters of Markdown escaped; code blocks are unchanged."""
    parts = []
    for part in text.strip().split("\n\n"):
        block = textwrap.dedent(part)
        code = part.startswith("    ")
        parts.append(f"```python\n{block}\n```" if code else escape(part))
    return "\n\n".join(parts)


def escape(text: str) -> str:
    """Return text with `*`, `<`, `$` and `~` escaped outside code spans."""
    pieces = re.split(r"(``?[^`]+``?)", text)
    return "".join(
        re.sub(r"``([^`]+)``", r"`\1`", piece) if piece.startswith("`") else re.sub(r"([*<$~])", r"\\\1", piece)
        for piece in pieces
    )
