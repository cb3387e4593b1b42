# SPDX-License-Identifier: BSD-3-Clause
"""The reference: made from the code where it can be, and complete: names, commands, variables, folders."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
from tools import case_pages, docstrings, reference

import seiche
from seiche.domain import launchers
from seiche.machine.laws.binding import THREAD_BINDING

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "seiche"
PACKAGES = ("flow", "cells", "couple", "ultrasound", "waves", "solver")


@pytest.mark.parametrize("page", reference.PAGES, ids=[page.stem for page in reference.PAGES])
def test_the_page_is_what_the_code_says(page: Path) -> None:
    text = page.read_text()
    assert text == reference.written(text), f"{page.name}: run python -m tools.reference"


def test_the_pages_of_case_files_are_made_from_the_schemas() -> None:
    pages = case_pages.pages()
    assert len(pages) == 4
    for name, text in pages.items():
        assert (ROOT / "docs" / "reference" / name).read_text() == text, f"{name}: run python -m tools.reference"


def test_the_reference_has_every_public_name() -> None:
    text = (ROOT / "docs" / "reference" / "api.md").read_text()
    shown = set(reference.names(text))
    for package in PACKAGES:
        public = import_module(f"seiche.{package}").__all__
        assert {f"seiche.{package}.{name}" for name in public} <= shown
    parts = [name for name in dir(seiche) if name in (*seiche._PARTS, "load")]
    assert "load" in parts and len(parts) > len(PACKAGES)
    assert all(f"| `seiche.{part}`" in text or f", `seiche.{part}`" in text for part in parts)


def test_the_reference_has_every_command_and_option() -> None:
    text = (ROOT / "docs" / "reference" / "commands.md").read_text()
    commands = dict(reference.commands())
    assert {"seiche run", "seiche check", "seiche predict", "seiche bench machine"} <= set(commands)
    for path, made in commands.items():
        section = text.partition(f"## `{path}`\n")[2].partition("\n## ")[0]
        assert (made.help or "").split("\n")[0] in section, path
        for parameter in made.params:
            for name in (word for word in parameter.opts if word.startswith("--")):
                assert re.search(rf"`{name}[ `,]|, {name}[ `]", section), (path, name)


def test_a_docstring_becomes_markdown() -> None:
    text = """Return a * b, `c * d`.

    More.

    Args:
        a, b: two
            lines.
        *rest: others | more.

    Returns:
        A number.

    Raises:
        CaseError: too large.
        KeyError: unknown.
    """
    assert docstrings.markdown("\n".join(line.removeprefix("    ") for line in text.splitlines())) == (
        "Return a \\* b, `c * d`.\n\nMore.\n\n| argument | meaning |\n|---|---|\n| `a`, `b` | two lines. |\n"
        "| `*rest` | others \\| more. |\n\nReturns: A number.\n\nRaises `CaseError`: too large; `KeyError`: unknown."
    )


def read_variables() -> set[str]:
    """Return the names of environment variables in the sources: those read directly, and those stored in constants."""
    constants = re.findall(r'"(SEICHE_[A-Z_]+)"', code_in(SOURCE))
    lists = launchers.LAUNCHER_VARIABLES, launchers.SIZE_VARIABLES, THREAD_BINDING
    return {*read_directly(SOURCE), *constants, *(name for names in lists for name in names)}


def code_in(folder: Path) -> str:
    return "\n".join(path.read_text() for path in folder.rglob("*.py"))


def read_directly(folder: Path) -> set[str]:
    pattern = r'environ(?:\.get\(|\.setdefault\(|\.pop\(|\[|.*getenv\()"(\w+)"'
    return set(re.findall(pattern, code_in(folder)))


def test_the_table_of_variables_is_that_of_the_code() -> None:
    text = (ROOT / "docs" / "reference" / "environment.md").read_text()
    _, running, building, testing = text.split("\n## ")

    def named(section: str) -> set[str]:
        cells = re.findall(r"^\| (`[A-Z].*?) \|", section, re.MULTILINE)
        return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}

    assert named(running) == read_variables()
    cmake = (ROOT / "CMakeLists.txt").read_text()
    assert named(testing) == (read_directly(ROOT / "tests") | read_directly(ROOT / "tools")) - read_variables()
    assert named(building) == set(re.findall(r"set\((SEICHE_\w+) \S+ CACHE", cmake))


def test_the_architecture_names_every_folder() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    code = [path.parent for kind in ("*.py", "*.hpp", "*.json") for path in SOURCE.rglob(kind)]
    inside = {folder.relative_to(SOURCE).as_posix() for folder in code} - {"."}
    ignored = {line.strip("/") for line in (ROOT / ".gitignore").read_text().split()}
    top = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")} - ignored
    assert len(inside) > 30 and {"src", "tests", "docs"} <= top
    missing = [name for name in sorted(inside | top) if f"`{name}`" not in text and f"`{name}/`" not in text]
    assert not missing
