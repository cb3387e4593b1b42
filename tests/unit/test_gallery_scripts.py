# SPDX-License-Identifier: BSD-3-Clause
"""The scripts of the gallery: four or more for each solver, with titles, figures and known numbers; three run."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from test_docs import run_script

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
SCRIPTS = sorted(GALLERY.glob("*/plot_*.py"))
#: Scripts that run in tests, one or more of the fastest of three solvers; `make docs` runs all.
QUICK = ("flow/plot_windkessel.py", "ultrasound/plot_bowl.py", "waves/plot_layer.py")


def test_each_solver_has_at_least_four_scripts() -> None:
    for solver in ("flow", "blood", "ultrasound", "waves"):
        assert len([path for path in SCRIPTS if path.parent.name == solver]) >= 4, solver
        assert (GALLERY / solver / "README.rst").is_file()
    assert len(SCRIPTS) >= 16


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_has_a_title_a_figure_and_a_comparison(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    module = ast.parse(text)
    title, line, *rest = (ast.get_docstring(module) or "").splitlines()
    assert set(line) == {"="} and len(line) >= len(title) and len(" ".join(rest)) > 80
    assert any(isinstance(node, ast.Assert) for node in ast.walk(module))
    assert text.count("plt.show()") == 1 and text.rstrip().endswith("plt.show()")
    assert re.search(r"^# %%$", text, re.MULTILINE)


@pytest.mark.parametrize("name", QUICK)
def test_quick_scripts_reach_their_known_numbers(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    run_script((GALLERY / name).read_text(encoding="utf-8"), tmp_path, timeout=250)
