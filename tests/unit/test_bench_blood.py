# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark of cells in flow: what it measures, stores and draws."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.page.blood import blood_part, compared, draw_compared, ranks_part
from benchmarks.page.stored import read_results

from seiche.bench.blood import FEM, BloodRow
from seiche.bench.blood_ranks import BloodRanksRow
from seiche.bench.results import read_rows
from seiche.cli import main
from seiche.errors import FormatError


def test_bench_of_blood_stores_and_draws_the_stages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, figure = tmp_path / "blood.json", tmp_path / "shares.png"
    arguments = ["--size", "32", "--spacing", "0.5", "--vertices", "162", "--steps", "2", "--support", "4"]
    arguments += ["--hematocrit", "0.1", "--hematocrit", "0.3", "--json", str(target), "--figure", str(figure)]
    assert main(["bench", "blood", *arguments]) == 0
    rows = json.loads(target.read_text())["rows"]
    assert [row["cells"] for row in rows] == [5, 14]
    for row in rows:
        assert row["ratio"] == pytest.approx(row["step_microseconds"] / row["flow_microseconds"])
        assert min(row["stages"].values()) > 0
        rate = row["vertices_per_second"]["spread"] * row["stages"]["spread force"] * 1e-6
        assert rate == pytest.approx(162 * row["cells"])
    # two copies of 19 populations, force and velocity of a site; places, forces and lists of 162 vertices
    assert rows[0]["bytes_per_site"] == pytest.approx(38 * 4 + 28, rel=0.01)
    assert 162 * 150 < rows[1]["bytes_per_cell"] < 162 * 400
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert "0.31" in capsys.readouterr().out
    assert [row.cells for row in read_rows(target, BloodRow, "a blood benchmark")] == [5, 14]
    assert main(["bench", "blood", "--support", "5"]) == 2
    assert main(["bench", "blood", "--size", "32", "--points", "2"]) == 2
    assert "points = 2: expected 1 or 3 integration points per element" in capsys.readouterr().err
    target.unlink()
    assert main(["bench", "blood", *arguments[:-1], str(tmp_path / "shares.foo")]) == 2
    assert "'foo' is not a picture format" in capsys.readouterr().err
    assert not target.exists()  # nothing was measured
    target.write_text('{"rows": [{"cells": 1}]}')
    with pytest.raises(FormatError, match="not a blood benchmark"):
        read_rows(target, BloodRow, "a blood benchmark")


def stored(folder: Path, name: str, device: str, scale: float, boxes: int = 1, layout: str = "moments") -> None:
    """Write a result of some boxes of 9 cells in which every stage takes `scale` microseconds times its number."""
    stages = {"stream-collide interior": 8.0, "interpolate velocity": 2.0, "membrane forces": 4.0}
    stages |= {"contact forces": 1.0, "list vertices": 0.5, "spread force": 3.0}
    row = {
        **{"hematocrit": 0.4, "delta": "peskin", "support": 4, "precision": "float32", "layout": layout},
        **{"sites": 32768 * boxes, "cells": 9 * boxes, "vertices": 642, "points": 3, "steps": 10},
        **{"flow_microseconds": 10.0 * scale, "step_microseconds": 20.0 * scale, "ratio": 2.0},
        **{"stages": {key: value * scale for key, value in stages.items()}, "vertices_per_second": {}},
        **{"bytes_per_cell": 1.0, "bytes_per_site": 1.0},
    }
    document = {"benchmark": "blood", "device": device, "date": "2026-11-21", "commit": "abc", "rows": [row]}
    (folder / f"{name}.json").write_text(json.dumps(document))


def test_the_performance_page_compares_a_gpu_and_a_cpu_at_equal_physics(tmp_path: Path) -> None:
    stored(tmp_path, "gpu", "A GPU (cuda:0)", 2.0, boxes=8)
    stored(tmp_path, "cpu", "A processor, 2 threads", 100.0)
    stored(tmp_path, "other", "Another processor, 2 threads", 100.0, layout="tiles-8")
    results = read_results(tmp_path, "blood", BloodRow)
    pairs = [(gpu.path.stem, cpu.path.stem) for gpu, cpu, _ in compared(results)]
    assert pairs == [("gpu", "cpu")]  # the other one has another collision
    text = blood_part(results)
    # 9 cells of 642 vertices in 400 us of membranes, 32768 sites in 800 us
    assert "| moments | 0.40 | 4 | 3 | 32,768 | 9 | 2 | 2.00 | 41.0 | 14.4 | 28.9 | 19.3 | 57.8 |" in text
    assert "## A GPU (cuda:0) over A processor, 2 threads" in text
    # a fiftieth of the time for eight times as much
    assert "| 0.40 | 4 | 3 | 400 | 400 | 400 | 400 | 400 | 400 |" in text
    assert "The boxes differ (262,144 and 32,768 sites" in text
    assert draw_compared(results, tmp_path / "shares.png")
    assert (tmp_path / "shares.png").read_bytes().startswith(b"\x89PNG")
    assert not draw_compared(results[:1], tmp_path / "none.png")
    assert blood_part([]) == ""


def test_the_performance_page_has_the_stages_of_a_coarse_mesh(tmp_path: Path) -> None:
    stored(tmp_path, "coarse", "A GPU (cuda:0)", 2.0)
    path = tmp_path / "coarse.json"
    path.write_text(path.read_text().replace('"vertices": 642', '"vertices": 162'))
    (result,) = read_results(tmp_path, "blood", BloodRow)
    text, total = blood_part([result]), sum(result.rows[0].stages.values())
    membranes = result.rows[0].stages[FEM]
    assert f"{membranes / 1e3:.2f} ({membranes / total:.0%})" in text
    assert "kB per cell" in text


def test_the_performance_page_tells_what_several_ranks_reach(tmp_path: Path) -> None:
    inputs = {"load": "resolved", "transport": "peer", "hematocrit": 0.4, "delta": "roma", "support": 3}
    inputs |= {
        "precision": "float32",
        "layout": "moments",
        "spacing": 0.25,
        "sites": 32,
        "cells": 2248,
        "vertices": 642,
    }
    inputs |= {"points": 3, "steps": 512, "copies": 0.133, "flow_microseconds": 506.2, "step_microseconds": 1306.4}
    inputs |= {"compute_microseconds": 1283.0, "exposed": 0.018, "efficiency": 0.905, "message_bytes": 21_000_000}
    row = inputs | {"ranks": 2, "packing_seconds": 1.0, "setup_seconds": 1.0}
    document = {
        "benchmark": "blood-ranks",
        "device": "A GPU (cuda:0)",
        "date": "2026-11-22",
        "commit": "abc",
        "rows": [row],
    }
    (tmp_path / "several.json").write_text(json.dumps(document | {"rows": [row]}))
    text = ranks_part(read_results(tmp_path, "blood-ranks", BloodRanksRow))
    assert "### A GPU (cuda:0): several" in text
    assert "| resolved | slabs | 2 | peer | 3 | 2,248 | 13.3% | 21.0 | 506 | 1,306 | 1,283 | 1.8% | 0.905 |" in text
    assert ranks_part([]) == ""
