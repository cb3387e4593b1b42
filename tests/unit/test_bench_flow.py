# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark of flow: rows of each layout in a JSON file, one line for a wrong shape."""

from __future__ import annotations

from pathlib import Path

import pytest

from seiche.cli import main


def test_bench_stores_what_it_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "bench.json"
    arguments = ["--shape", "box", "--size", "16", "--seconds", "0.01", "--layout", "list-aa", "--json", str(target)]
    assert main(["bench", "flow", *arguments]) == 0
    assert '"list-aa"' in target.read_text()
    arguments[7] = "moments"
    assert main(["bench", "flow", *arguments]) == 0
    assert '"moments"' in target.read_text()
    assert main(["bench", "flow", "--shape", "ball"]) == 2
    assert "'ball' is not one of 'tube', 'box'" in capsys.readouterr().err
