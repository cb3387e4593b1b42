# SPDX-License-Identifier: BSD-3-Clause
"""Guides: numbers of the validation page are those of stored results, and the case for users of SPECFEM3D is valid."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from page_blocks import ROOT, blocks
from seiche.case.load import read_source
from seiche.case.waves.media import read_grid
from seiche.case.waves.setup import read_wave_case
from seiche.validate.suite import selected_families

VALIDATION = ROOT / "docs" / "howto" / "validation.md"
SPECFEM3D = ROOT / "docs" / "howto" / "specfem3d.md"
RESULTS = ROOT / "benchmarks" / "results"
#: The command of each section of the validation page.
COMMANDS = {"Flow": "flow", "Blood": "cells", "Ultrasound": "ultrasound", "Waves": "waves"}
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.])")


def rows() -> Iterator[tuple[str, str, list[str]]]:
    """Yield the section, the file of the results and the cells of each row of the page."""
    section = source = ""
    for line in VALIDATION.read_text().splitlines():
        if line.startswith("## "):
            section, source = line[3:], ""
        elif line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if cells[0] != "test" and set(cells[0]) != {"-"}:
                yield section, source, cells
        elif names := re.findall(r"`(validate-[a-z0-9-]+\.json)`", line):
            source = names[-1]


def numbers(cell: str) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a cell as text, with 100 for those in per cent and otherwise 1."""
    for part in cell.split(";"):
        for text in NUMBER.findall(part):
            yield text, 100.0 if "%" in part else 1.0


def rounds_to(value: float, text: str) -> bool:
    """Return whether a value, rounded to the digits of `text`, is the number in it."""
    mantissa, _, exponent = text.partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return abs(value - float(text)) <= (0.5 + 1e-9) * unit


def is_number(value: float, text: str) -> bool:
    """Return whether a value is the number in `text`, but for rounding errors."""
    return abs(value - float(text)) <= 1e-12 * abs(value)


@pytest.mark.parametrize(
    ("value", "text", "result"),
    [(0.0137, "1.4e-2", True), (0.0137, "1.3e-2", False), (1.996, "2.00", True), (5.84, "5.9", False)],
)
def test_values_are_rounded_to_the_digits_of_the_page(value: float, text: str, *, result: bool) -> None:
    assert rounds_to(value, text) == result


def test_results_and_bounds_of_the_validation_page_are_stored() -> None:
    count = 0
    for section, source, (test, _, result, bound, _) in rows():
        for key, cell in (("value", result), ("bound", bound)):
            for text, factor in numbers(cell):
                count += 1
                checks = json.loads((RESULTS / source).read_text())["checks"]
                known = [factor * check[key] for check in checks if check[key] is not None]
                equal = rounds_to if key == "value" else is_number
                assert any(equal(value, text) for value in known), f"{section}, {test}: {key} {text}"
    assert count > 200


def test_failed_checks_of_stored_results_are_marked_on_the_validation_page() -> None:
    """A check that a later file of the page repeats counts there only, as does a family that ended with an error."""
    names = {source for _, source, _ in rows()}
    stored = {name: json.loads((RESULTS / name).read_text()) for name in names}
    for name, results in stored.items():
        later = [other for other in stored.values() if other["date"] > results["date"]]
        repeated = {check["name"] for other in later for check in other["checks"]}
        families = {family["name"].partition(" ")[2] for other in later for family in other.get("families", ())}
        failed = [
            check["name"]
            for check in results["checks"]
            if not check["passed"] and check["name"] not in repeated and check["name"].partition(":")[0] not in families
        ]
        marked = [test for _, source, (test, *_) in rows() if source == name and "**failed**" in test]
        assert len(marked) == len(failed), name


@pytest.mark.parametrize("section", COMMANDS)
def test_texts_for_only_select_checks(section: str) -> None:
    families = import_module(f"seiche.validate.{COMMANDS[section]}").FAMILIES
    texts = {cells[-1] for of, _, cells in rows() if of == section}
    assert texts and all(selected_families(families, [text]) for text in texts)


def test_the_half_space_for_users_of_specfem3d_is_a_valid_case(tmp_path: Path) -> None:
    ((_, name, _, text),) = [block for block in blocks(SPECFEM3D) if block[0] == "file"]
    (tmp_path / name).write_text(text)
    case = read_wave_case(read_source(tmp_path / name))
    (source,) = case.source
    assert source.time.sigma == pytest.approx(5.0 / 1.628 / np.sqrt(2), rel=2e-4)  # type: ignore[attr-defined]
    assert (case.mesh.trees, case.mesh.size) == ((36, 36, 16), 3750.0)
    assert source.moment == 1e18
    assert source.tensor[0][1] == source.tensor[1][0] == 1.0


def test_a_tomographic_model_of_specfem3d_is_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    axes = np.arange(3) * 100.0, np.arange(4) * 50.0, np.arange(-4, 1) * 25.0
    lines = ["0 0 -100 200 150 0", "100 50 25", "3 4 5", "0 9000 0 9000 0 9000"]
    lines += [f"{x} {y} {z} {3000 + x} {1500 + y} {2000 - z}" for z in axes[2] for y in axes[1] for x in axes[0]]
    (tmp_path / "tomography_model.xyz").write_text("\n".join(lines))
    (script,) = [text for text in re.findall(r"```python\n(.*?)```", SPECFEM3D.read_text(), re.DOTALL) if "xyz" in text]
    exec(script, {})
    grid = read_grid(tmp_path / "model.h5", 3)
    assert grid.at(np.array([[200.0, 50.0, -75.0]]))[:, 0] == pytest.approx([2075.0, 3200.0, 1550.0])
