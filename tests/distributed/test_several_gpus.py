# SPDX-License-Identifier: BSD-3-Clause
"""Row sets on several GPUs, tried on ranks of a CPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.page.tree import tree_part
from benchmarks.several_gpus.row_sets import ROW_SETS, Plan, splits_of
from benchmarks.several_gpus.tree import case_text, with_efficiency
from launch import environment, launcher

from seiche.errors import FormatError

ROOT = Path(__file__).parents[2]


def small_plan(folder: Path, ranks: int) -> Plan:
    return Plan("cpu", ranks, 0.125, 0.1, folder, f"cpux{ranks}", transports=("peer", "host"))


def test_a_row_set_stores_one_rank_and_all_ranks(tmp_path: Path) -> None:
    words = ["-m", "benchmarks.several_gpus", "flow-weak", "blood-strong", "--ranks", "2", "--device", "cpu"]
    words += ["--scale", "0.06", "--seconds", "0", "--folder", tmp_path, "--label", "trial", "--launcher"]
    process = subprocess.run(
        [sys.executable, *map(str, words), launcher(2)[0]],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    for name, count in (("flow-weak", 5), ("blood-strong", 3)):
        stored = json.loads((tmp_path / f"{name}-trial.json").read_text())
        assert {"device", "date", "commit"} <= set(stored)
        assert [row["ranks"] for row in stored["rows"]] == [1] + [2] * (count - 1)
    assert "largest efficiency" in process.stdout


def test_every_row_set_stores_a_file_of_its_own(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, 8)
    targets = [words[words.index("--json") + 1] for make in ROW_SETS.values() for words in [make(plan)[-1].words]]
    assert targets == [str(plan.path(name)) for name in ROW_SETS]
    assert splits_of(8) == [(8, 1, 1), (4, 2, 1), (2, 2, 2)]
    assert splits_of(4) == [(4, 1, 1), (2, 2, 1)]
    assert splits_of(2) == [(2, 1, 1)]
    assert [command.ranks for command in ROW_SETS["collectives-4"](plan)] == [32]


def test_an_unknown_row_set_is_named(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "benchmarks.several_gpus", "flow", "--ranks", "2", "--folder", str(tmp_path)]
    process = subprocess.run(words, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=60)
    assert process.returncode == 2
    assert "'flow' is not all, or one of flow-weak," in process.stderr


def test_rows_of_a_tree_are_a_table(tmp_path: Path) -> None:
    run = {
        "sites": 100,
        "steps": 2,
        "pop": {"load_balance": 0.9, "parallel": 0.8},
        "set_up": {"link": 1.5, "model": 2.0},
    }
    rows = with_efficiency(
        [{**run, "ranks": 1, "output": False, "mlups": 10.0}, {**run, "ranks": 2, "output": True, "mlups": 15.0}]
    )
    assert [row["efficiency"] for row in rows] == pytest.approx([1.0, 0.75])
    document = {"device": "D", "date": "2026-11-28", "commit": "abc", "benchmark": "flow tree", "rows": rows}
    text = tree_part([(tmp_path / "tree.json", document)])
    assert "2|yes|100|15.0|0.750|0.900||||0.800|3.5" in text.replace(" ", "")
    with pytest.raises(FormatError, match="is missing"):
        tree_part([(tmp_path / "tree.json", {**document, "rows": [{"ranks": 1}]})])
    assert tree_part([]) == ""


def test_the_case_of_a_tree_has_about_the_requested_sites(tmp_path: Path) -> None:
    from tomllib import loads

    coarse, fine = (loads(case_text(sites, "cpu", "host", output=True)) for sites in (1e5, 8e5))
    spacings = [float(case["geometry"]["spacing"].split()[0]) for case in (coarse, fine)]
    assert spacings[0] / spacings[1] == pytest.approx(2.0, rel=1e-4)
    assert coarse["output"]["fields"][0]["every"] == 16
