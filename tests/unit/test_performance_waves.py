# SPDX-License-Identifier: BSD-3-Clause
"""The part of the performance page about waves: rows of a GPU and a CPU, and their ratio."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.page.stored import read_results
from benchmarks.page.waves import waves_part

from seiche.bench.waves import WavesRow


def result(device: str, time: float, ranks: int = 1) -> dict[str, object]:
    """Return what `seiche bench waves` stores, for a stage of `time` ps a node."""
    row = {"medium": "elastic", "flux": "upwind", "precision": "float32", "nodes": 8, "elements": 64, "ranks": ranks}
    row |= {"variant": "fused", "ghosts": "traces", "transport": "peer", "steps": 3, "picoseconds_per_node_stage": time}
    row |= {"time_over_fused": 1.0, "words_per_node": 40.5, "share_of_copy": 0.8, "message_bytes": 2000, "error": 0.0}
    return {
        "benchmark": "waves",
        "device": device,
        "date": "2026-11-21",
        "commit": "abc",
        "copy_bytes_per_second": 3e12,
        "rows": [row, {**row, "variant": "separate", "picoseconds_per_node_stage": 2 * time, "time_over_fused": 2.0}],
    }


def test_a_gpu_is_compared_with_a_cpu_and_ranks_with_one(tmp_path: Path) -> None:
    files = {"a": result("GPU (cuda:0)", 60.0), "b": result("CPU, 2 threads", 9000.0), "c": result("G (cuda)", 61.0, 2)}
    for name, document in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    (tmp_path / "flow.json").write_text('{"benchmark": "flow"}')
    text = waves_part(read_results(tmp_path, "waves", WavesRow))
    assert "| elastic | upwind | float32 | 8 | 150 | 80% | 80% |" in text and text.count("times faster |") == 1
    assert "| separate | 8 | 64 | 40.5 | 120.0 | 2.00 | 80% |" in text
    assert "| traces | peer | 2 | 2.0 | 0.0e+00 | 1.000 |" in text
    assert waves_part([]) == ""
