# SPDX-License-Identifier: BSD-3-Clause
"""Files, functions and classes of the package are small, and no two classes have the same name."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import seiche

PACKAGE = Path(seiche.__file__).parent
FILE_LINES, FUNCTION_LINES, POSITIONAL, PUBLIC_METHODS = 400, 60, 5, 20
#: The interface of a device and its implementations have one method for each thing that a device does.
WIDE_CLASSES = "backend"
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(source: str) -> set[int]:
    """Return the numbers of the lines of code: without docstrings, comments and blank lines."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | Function) and ast.get_docstring(node, clean=False) is not None:
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return lines


def long_functions(source: str) -> Iterator[str]:
    """Yield a complaint for each function with too many lines of code; decorators do not count."""
    lines = code_lines(source)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Function):
            count = len(lines.intersection(range(node.lineno, (node.end_lineno or 0) + 1)))
            if count > FUNCTION_LINES:
                yield f"{node.lineno}: {node.name} has {count} lines of code, more than {FUNCTION_LINES}; divide it"


def many_arguments(source: str) -> Iterator[str]:
    """Yield a complaint for each function with too many positional arguments; `self` and `cls` do not count."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Function):
            names = [item.arg for item in node.args.posonlyargs + node.args.args]
            count = len(names) - (names[:1] in (["self"], ["cls"]))
            if count > POSITIONAL:
                yield (
                    f"{node.lineno}: {node.name} has {count} positional arguments, more than {POSITIONAL}; "
                    "make some of them keyword-only, or one object of several"
                )


def wide_classes(source: str) -> Iterator[str]:
    """Yield a complaint for each class that itself defines too many public methods and properties."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            public = {item.name for item in node.body if isinstance(item, Function) and not item.name.startswith("_")}
            if len(public) > PUBLIC_METHODS:
                yield f"{node.lineno}: {node.name} has {len(public)} public methods, over {PUBLIC_METHODS}; divide it"


def class_names(source: str) -> Iterator[tuple[str, int]]:
    """Yield name and line of each class."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            yield node.name, node.lineno


def sources(*endings: str) -> Iterator[tuple[str, str]]:
    """Yield name (relative to the package) and text of its files with these endings, without installed examples."""
    for path in sorted(PACKAGE.rglob("*")):
        name = path.relative_to(PACKAGE)
        if path.suffix in endings and name.parts[0] != "examples":
            yield name.as_posix(), path.read_text(encoding="utf-8")


def test_files_of_the_package_are_short():
    counts = {name: len(text.splitlines()) for name, text in sources(".py", ".hpp", ".cpp")}
    long = [f"{name} has {count} lines, more than {FILE_LINES}; divide it" for name, count in counts.items()]
    assert not [text for text, count in zip(long, counts.values(), strict=True) if count > FILE_LINES]


def test_functions_of_the_package_are_short():
    assert not [f"{name}:{item}" for name, text in sources(".py") for item in long_functions(text)]


def test_functions_of_the_package_have_few_positional_arguments():
    assert not [f"{name}:{item}" for name, text in sources(".py") for item in many_arguments(text)]


def test_classes_of_the_package_have_few_public_methods_save_devices():
    files = [(name, text) for name, text in sources(".py") if name.split("/")[0] != WIDE_CLASSES]
    assert not [f"{name}:{item}" for name, text in files for item in wide_classes(text)]


def test_no_two_classes_of_the_package_have_the_same_name():
    places: dict[str, list[str]] = defaultdict(list)
    for name, text in sources(".py"):
        for item, line in class_names(text):
            places[item].append(f"{name}:{line}")
    duplicates = {name: locations for name, locations in places.items() if len(locations) > 1}
    assert not [f"{name} is at {' and '.join(paths)}; the names must differ" for name, paths in duplicates.items()]


LONG_TEXT = '''
def long():
    """A docstring does not count,

    however long it is.
    """
    # Nor does a comment

    text = """but other
    strings do"""
{body}


class Wide:
    """Too many methods."""

    def many(self, a, b, c, d, e, f, *, g=1):
        return a

{methods}
'''


@pytest.mark.parametrize("excess", [0, 1])
def test_the_bounds_count_code_arguments_and_methods(excess: int):
    body = "\n".join("    text += text" for _ in range(FUNCTION_LINES - 3 + excess))
    methods = "\n".join(f"    def method_{k}(self): ..." for k in range(PUBLIC_METHODS - 1 + excess))
    text = LONG_TEXT.format(body=body, methods=methods)
    assert len(list(long_functions(text))) == excess
    assert len(list(wide_classes(text))) == excess
    assert [item.split(";")[0] for item in many_arguments(text)] == [
        f"{text.splitlines().index('    def many(self, a, b, c, d, e, f, *, g=1):') + 1}: many has 6 positional "
        f"arguments, more than {POSITIONAL}"
    ]
    assert [name for name, _ in class_names(text)] == ["Wide"]
