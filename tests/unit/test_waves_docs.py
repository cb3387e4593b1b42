# SPDX-License-Identifier: BSD-3-Clause
"""The theory page of waves: what headers and modules cite exists."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import seiche
from seiche.waves.fluxes import FLUXES
from seiche.waves.limits import _LEAPFROG
from seiche.waves.sizes import ELEMENTS_PER_WAVELENGTH

PACKAGE = Path(seiche.__file__).parent
THEORY = (Path(__file__).parents[2] / "docs" / "theory" / "waves.md").read_text()


def cited(text: str, what: str) -> set[int]:
    """Return the numbers after `eq.` or `section` in citations of the page; ranges and lists count in full."""
    numbers: set[int] = set()
    flat = re.sub(r"\n\s*(///|#)?\s*", " ", text)
    for citation in re.findall(r"theory/waves,([^)]*?)\)", flat):
        for part in re.findall(rf"{what}s?\.? (\d+(?:(?:,| to| and) \d+)*)", citation):
            ends = [int(number) for number in re.findall(r"\d+", part)]
            numbers |= set(range(min(ends), max(ends) + 1)) if " to " in part else set(ends)
    return numbers


def test_cited_equations_sections_and_tables_exist() -> None:
    result = {
        "eq": [int(number) for number in re.findall(r"\\tag\{(\d+)\}", THEORY)],
        "section": [int(number) for number in re.findall(r"^## (\d+)\.", THEORY, re.MULTILINE)],
        "table": [int(number) for number in re.findall(r"^Table (\d+)\.", THEORY, re.MULTILINE)],
    }
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in result.values())
    paths = [*(PACKAGE / "kernels" / "dg").glob("*.hpp"), *(PACKAGE / "waves").glob("*.py")]
    for what, numbers in result.items():
        union: set[int] = set()
        for path in paths:
            union |= cited(path.read_text(), what)
        assert union
        assert union <= set(numbers), what
    assert set().union(*(cited(path.read_text(), "eq") for path in paths)) == set(result["eq"])


def test_tables_of_the_page_are_those_of_the_code() -> None:
    limits = {name: flux.courant_limits for name, flux in FLUXES.items()} | {"leapfrog": _LEAPFROG}
    for word, row in limits.items():
        line = next(line for line in THEORY.splitlines() if line.startswith(f"| {word} | ."))
        assert [float(number) for number in re.findall(r"\.\d+", line)] == list(row.values())
    for column, limit in enumerate(("1e-2", "1e-3", "1e-4")):
        line = next(line for line in THEORY.splitlines() if line.startswith(f"| {limit} |"))
        numbers = [float(number) for number in re.findall(r"\d+\.\d+", line)]
        assert numbers == [row[column] for row in ELEMENTS_PER_WAVELENGTH.values()]


def test_the_example_of_the_how_to_runs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "howto" / "simulate-waves.md").read_text()
    code = re.search(r"<!-- waves -->\n```python\n(.*?)```", text, re.DOTALL)
    assert code is not None
    names: dict[str, object] = {}
    exec(code[1], names)
    velocity = np.asarray(names["velocity"])
    assert velocity.shape == (50, 2, 2)
    assert np.abs(velocity).max() > 0
