# SPDX-License-Identifier: BSD-3-Clause
"""The examples of the page on callbacks work as described there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No measurement of the memory's speed after each of these small runs."""
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the scripts of the page about callbacks, shortened, next to the case that they read."""
    shutil.copytree(ROOT / "examples" / "tube", tmp_path / "examples" / "tube", ignore=shutil.ignore_patterns("out"))
    monkeypatch.chdir(tmp_path)
    scripts = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "howto" / "callbacks.md").read_text(), re.DOTALL)
    changes = {"sim.run()": "sim.run(steps=120)", "steps=100": "steps=20", "0.05": "0.005", "< 0.01": "< 1.1"}
    for before, after in changes.items():
        scripts = [script.replace(before, after) for script in scripts]
    return scripts


def test_the_examples_of_the_page_do_what_it_says(examples: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    result: list[dict[str, Any]] = [{} for _ in examples]
    for script, scope in zip(examples, result, strict=True):
        capsys.readouterr()
        exec(script, scope)
    diagnostic, steering, stop, device = result
    times, speeds = zip(*diagnostic["history"], strict=True)
    assert times == pytest.approx(0.005 * np.arange(1, 9), abs=2e-4)
    assert 0 < speeds[0] < speeds[-1] < 0.01
    outflow = -steering["sim"].flow_rates()["outlet"]
    assert steering["sim"].steering.changed == {"iolets.outlet.pressure": 1e7 * outflow} and outflow > 0
    outcome = stop["outcome"]
    assert (outcome.step, outcome.stopped) == (20, "inflow and outflow are equal")
    shown = capsys.readouterr().out.split()
    assert shown[::2] == ["20", "40", "60", "80", "100", "120"] and all(
        np.isfinite(float(value)) for value in shown[1::2]
    )
    assert device["sim"].step == 120
