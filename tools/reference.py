# SPDX-License-Identifier: BSD-3-Clause
"""Write the generated pages of docs/reference: docstrings of public names, options of commands, case files.

    python -m tools.reference

A page marks each such part by two comments: `<!-- api: NAME -->` or `<!-- commands -->` before it and `<!-- end -->`
after it. The text between them is replaced. A new public name needs one such pair. The pages are readable on a
repository host and in the built documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.case_pages import pages
from tools.docstrings import entry, table

ROOT = Path(__file__).resolve().parents[1]
PAGES = tuple(ROOT / "docs" / "reference" / name for name in ("api.md", "commands.md"))
_PART = re.compile(r"<!-- (?P<kind>api|commands|usage)(?:: (?P<name>\S+))? -->\n.*?<!-- end -->", re.DOTALL)


def written(text: str) -> str:
    """Return a page with every marked part replaced."""
    return _PART.sub(_part, text)


def names(text: str) -> list[str]:
    """Return the public names of the marked parts of a page."""
    return [part["name"] for part in _PART.finditer(text) if part["kind"] == "api"]


def _part(match: re.Match[str]) -> str:
    mark = match[0].partition("\n")[0]
    if match["kind"] == "api":
        body = entry(match["name"])
    elif match["kind"] == "commands":
        body = "\n\n".join(command(path, parser) for path, parser in commands())
    else:
        body = _usage(match["name"])
    return f"{mark}\n{body}\n<!-- end -->"


def _usage(program: str) -> str:
    from seiche.dropin.options import USAGE

    return f"```text\n{USAGE.format(program=program).rstrip()}\n```"


def commands() -> Iterator[tuple[str, Any]]:
    """Yield the words and the parser of every command of `seiche`, in the order of its help."""
    from typer.main import get_command

    from seiche.cli import app

    def below(words: str, group: Any) -> Iterator[tuple[str, Any]]:
        for name, parser in group.commands.items():
            path = f"{words} {name}"
            if hasattr(parser, "commands"):
                if parser.invoke_without_command:
                    yield path, parser
                yield from below(path, parser)
            else:
                yield path, parser

    yield from below("seiche", get_command(app))


def command(path: str, parser: Any) -> str:
    """Return the Markdown of one command: usage, description, arguments and options."""
    arguments = [parameter for parameter in parser.params if not parameter.opts[0].startswith("-")]
    options = [parameter for parameter in parser.params if parameter.opts[0].startswith("-")]
    words = [_metavar(item) if item.required else f"[{_metavar(item)}]" for item in arguments]
    usage = " ".join([path, *words, *(["[options]"] if options else [])])
    parts = [f"## `{path}`", f"```text\n{usage}\n```", " ".join((parser.help or "").split())]
    parts += [table("argument", [(_metavar(item), item.help or "") for item in arguments])] if arguments else []
    parts += [table("option", [_option(item) for item in options])] if options else []
    return "\n\n".join(parts)


def _metavar(parameter: Any) -> str:
    return parameter.metavar or parameter.name.upper()


def _option(parameter: Any) -> tuple[str, str]:
    """Return an option with its description and default."""
    value = "" if parameter.is_flag else f" {_metavar(parameter)}"
    plain = parameter.default not in (None, False, "", 0) and not isinstance(parameter.default, list | tuple)
    default = f" Default: {parameter.default}." if plain and "default" not in (parameter.help or "") else ""
    return ", ".join(f"{name}{value}" for name in parameter.opts), f"{parameter.help or ''}{default}"


def main() -> None:
    """Write the pages."""
    for page in PAGES:
        page.write_text(written(page.read_text()))
    for name, text in pages().items():
        (PAGES[0].parent / name).write_text(text)


if __name__ == "__main__":
    main()
