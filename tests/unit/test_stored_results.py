# SPDX-License-Identifier: BSD-3-Clause
"""Stored results of benchmarks: the files that are read, columns added later, and the errors of damaged files."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from benchmarks.page.movement import movement_page
from benchmarks.page.stored import read_results

from seiche.errors import FormatError


@dataclass(frozen=True)
class Row:
    """A benchmark whose last two columns came later."""

    case: str
    seconds: float
    ranks: int = 1
    stages: dict[str, float] = field(default_factory=dict)


def result(**change: object) -> dict[str, object]:
    """Return what a benchmark stores."""
    document: dict[str, object] = {"benchmark": "made up", "device": "a GPU (cuda:0)", "date": "2026-11-21"}
    return {**document, "commit": "abc", "rows": [{"case": "a", "seconds": 2.0}], **change}


def test_results_of_one_benchmark_are_read_by_file_name(tmp_path: Path) -> None:
    later = {"case": "b", "seconds": 1.0, "ranks": 2, "stages": {"halo": 0.5}, "unknown": 1}
    (tmp_path / "b.json").write_text(json.dumps(result(rows=[later], device="a processor", copy_bytes_per_second=3e12)))
    (tmp_path / "a.json").write_text(json.dumps(result()))
    (tmp_path / "c.json").write_text(json.dumps(result(benchmark="another", rows=[{}])))
    (tmp_path / "d.json").write_text("[1]")
    one, two = read_results(tmp_path, "made up", Row)
    assert one.rows == (Row("a", 2.0),) and two.rows == (Row("b", 1.0, 2, {"halo": 0.5}),)
    assert one.on_gpu and not two.on_gpu
    where = "2026-11-21, commit abc, data in `benchmarks/results/a.json`."
    assert one.head == f"## a GPU (cuda:0): a\n\n{where}\n\n"
    assert "commit abc, copy 3000.0 GB/s, data in" in two.head


def test_former_names_of_columns_are_read(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Renamed:
        predicted_bytes: float
        exposed: float = 0.0

    rows = [{"bytes_told": 3.0, "not_hidden": 0.1}, {"predicted_bytes": 4.0}]
    (tmp_path / "a.json").write_text(json.dumps(result(rows=rows)))
    assert read_results(tmp_path, "made up", Renamed)[0].rows == (Renamed(3.0, 0.1), Renamed(4.0))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "whole file: not JSON"),
        (json.dumps(result(rows=[{"seconds": 1.0}])), "rows: not a result of the benchmark made up: 'case' is missing"),
        (json.dumps(result(rows=3)), "rows: not a result of the benchmark made up: 'int' object is not iterable"),
        (json.dumps(result(copy_bytes_per_second="x")), "rows: not a result of the benchmark made up: could not"),
        ('{"benchmark": "made up", "rows": []}', "rows: not a result of the benchmark made up: 'device' is missing"),
    ],
)
def test_a_broken_result_is_named(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(FormatError, match=rf"bad\.json: {re.escape(words)}"):
        read_results(tmp_path, "made up", Row)


def test_the_page_about_movement_names_a_broken_result(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(json.dumps(result(benchmark="choice", rows=[{"cost": 1.0}])))
    words = r"bad\.json: rows: not a result of the benchmark choice: 'pattern' is missing"
    with pytest.raises(FormatError, match=words):
        movement_page(tmp_path / "none", tmp_path)
