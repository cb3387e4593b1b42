# SPDX-License-Identifier: BSD-3-Clause
"""The scripts of the repository import only what the package has."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = [path for folder in ("benchmarks", "tools", "examples") for path in sorted((ROOT / folder).rglob("*.py"))]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_that_a_script_imports_exist(script: Path) -> None:
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "seiche":
            module = import_module(str(node.module))
            for name in node.names:
                if not hasattr(module, name.name):
                    import_module(f"{node.module}.{name.name}")


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) > 15
