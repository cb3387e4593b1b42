# SPDX-License-Identifier: BSD-3-Clause
"""No circle of imports among modules or packages; lazy imports and those for type checkers count."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest

import seiche

Graph = Mapping[str, set[str]]


def imported_names(source: str, module: str, *, package: bool) -> Iterator[tuple[str, ...]]:
    """Yield what a module imports anywhere in its text; `from a import b` yields a.b and a, of which one is meant."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.name,)
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".")
            base = parts[: len(parts) - node.level + package] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield f"{name}.{alias.name}", name


def import_graph(root: Path) -> dict[str, set[str]]:
    """Return for each module of the package in folder `root` which others it imports, the root's own left out."""
    files = {}
    for path in sorted(root.rglob("*.py")):
        parts = [root.name, *path.relative_to(root).with_suffix("").parts]
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    graph: dict[str, set[str]] = {module: set() for module in files}
    for module, path in files.items():
        for names in imported_names(path.read_text(), module, package=path.stem == "__init__"):
            imported = next((name for name in names if name in files), root.name)
            if imported not in (module, root.name):
                graph[module].add(imported)
    return graph


def package_graph(graph: Graph) -> dict[str, set[str]]:
    """Return which folders import which: a folder imports what its own modules do, not those of folders in it."""
    packages = {module.rpartition(".")[0] for module in graph}
    folder = {module: module if module in packages else module.rpartition(".")[0] for module in graph}
    result: dict[str, set[str]] = {name: set() for name in folder.values()}
    for module, imported in graph.items():
        result[folder[module]] |= {folder[item] for item in imported} - {folder[module]}
    return result


def circles(graph: Graph, knotted: Collection[str] = ()) -> list[str]:
    """Return the shortest circle through each knot as "a -> b -> a", imports inside of `knotted` packages left out."""

    def inside(name: str) -> set[str]:
        return {package for package in knotted if f"{name}.".startswith(f"{package}.")}

    retained = {
        name: sorted(item for item in others if not inside(name) & inside(item)) for name, others in graph.items()
    }
    ways = [way for name in sorted(retained) if (way := _way_back(retained, name)) is not None]
    result: list[list[str]] = []
    for way in sorted(ways, key=len):
        if not any(set(way) & set(other) for other in result):
            result.append(way)
    return [" -> ".join(way) for way in result]


def _way_back(graph: Mapping[str, list[str]], start: str) -> list[str] | None:
    """Return the shortest way from `start` to itself."""
    ways, seen = [[start]], set()
    for way in ways:
        for other in graph[way[-1]]:
            if other == start:
                return [*way, start]
            if other not in seen:
                seen.add(other)
                ways.append([*way, other])
    return None


@pytest.fixture(scope="module")
def graph() -> Graph:
    return import_graph(Path(seiche.__file__).parent)


def test_modules_do_not_import_each_other_in_circles(graph: Graph) -> None:
    assert len(graph) > 300
    assert circles(graph) == []


def test_packages_do_not_import_each_other_in_circles(graph: Graph) -> None:
    # The root's modules are the commands, and the errors that everything may raise.
    packages = {name: others - {"seiche"} for name, others in package_graph(graph).items() if name != "seiche"}
    assert {"seiche.halo", "seiche.machine.laws", "seiche.machine.measure"} <= packages.keys()
    assert "seiche.machine.laws" not in packages["seiche.machine.laws"]
    assert circles(packages) == []


@pytest.mark.parametrize(
    "back",
    [
        "from one.a import x",
        "import one.a",
        "def f():\n    from one import a",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..a import x",
    ],
)
def test_every_kind_of_import_closes_a_circle_and_is_named(back: str, tmp_path: Path) -> None:
    root = tmp_path / "one"
    (root / "deep").mkdir(parents=True)
    for name, text in {"__init__": "", "a": "from one.deep import c\nx = 1", "b": "import one.a"}.items():
        (root / f"{name}.py").write_text(text)
    (root / "deep" / "__init__.py").write_text("")
    (root / "deep" / "c.py").write_text("from . import d")
    (root / "deep" / "d.py").write_text(back)
    result = import_graph(root)
    assert circles(result) == ["one.a -> one.deep.c -> one.deep.d -> one.a"]
    assert circles(result, ("one.deep",)) == []
    assert circles(package_graph(result)) == ["one -> one.deep -> one"]


def test_only_the_headers_at_the_top_ask_which_compiler_is_running() -> None:
    top = Path(seiche.__file__).parent / "kernels"
    below = sorted(top.glob("*/*.hpp"))
    assert len(below) > 50
    asking = [
        f"{path.relative_to(top)}:{number}: {line}"
        for path in below
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.match(r"\s*#\s*(if|ifdef|ifndef|elif|else)\b", line)
        or re.search(r"__CUDA|__NVCC__|__GNUC__|__clang", line)
    ]
    assert asking == []


def test_only_the_backend_asks_what_a_device_is() -> None:
    root = Path(seiche.__file__).parent
    asking = [
        f"{path.relative_to(root)}:{number}: {line}"
        for path in sorted(root.rglob("*.py"))
        if path.relative_to(root).parts[0] != "backend"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"""startswith\(\(?["'](cuda|cpu)|\.asynchronous\b|device\.partition""", line)
    ]
    assert asking == []
