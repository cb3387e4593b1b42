# SPDX-License-Identifier: BSD-3-Clause
"""The part of the performance page about ultrasound: rows of this solver and of another."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.page.stored import read_results
from benchmarks.page.ultrasound import ultrasound_part

from seiche.bench.results import document
from seiche.bench.ultrasound import UltrasoundRow
from seiche.bench.ultrasound_ranks import UltrasoundRanksRow


def result() -> dict[str, object]:
    """Return what `seiche bench ultrasound --peer` stores."""
    row: dict[str, object] = {"program": "seiche", "size": 100, "scheme": "exact", "physics": "full", "steps": 9}
    row |= {"precision": "float32", "threads": 0, "transforms": "lines", "milliseconds": 2.5, "min_milliseconds": 2.4}
    own = {**row, "predicted_bytes": 58.1, "measured_bytes": 58.2, "stages": {"gradient": 0.4}}
    return {
        "benchmark": "ultrasound",
        "device": "GPU (cuda:0)",
        "date": "2026-11-21",
        "commit": "abc",
        "copy_bytes_per_second": 3e12,
        "rows": [own, {**row, "program": "k-wave-python", "transforms": "numpy", "milliseconds": 250.0}],
    }


def test_rows_say_what_a_step_and_a_point_take(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(result()))
    (tmp_path / "flow.json").write_text('{"benchmark": "flow"}')
    text = ultrasound_part(read_results(tmp_path, "ultrasound", UltrasoundRow))
    assert "| seiche | exact | full | float32 | lines | 100^3 | 2.50 | 2.500 | 58.1, 58.2 |" in text
    assert "| k-wave-python | exact | full | float32 | numpy | 100^3 | 250.00 | 250.000 |  |" in text
    assert "copy 3000.0 GB/s" in text and ultrasound_part([]) == ""


def test_rows_of_ranks_say_what_they_lose_and_to_what(tmp_path: Path) -> None:
    stages = {"gradient": 1.5, "send halo": 0.2, "receive halo": 0.3}
    shared = UltrasoundRanksRow(
        256, "full", "exact", "float32", "local", "peer", "lines", 8, 12, 4, 1.5, 2.0, 1.1, stages
    )
    assert (shared.efficiency, shared.share_of_messages) == (0.75, 0.25)
    (tmp_path / "a.json").write_text(json.dumps(document("ultrasound-ranks", "GPU (cuda:0)", [shared])))
    text = ultrasound_part([], read_results(tmp_path, "ultrasound-ranks", UltrasoundRanksRow))
    row = "| full | float32 | local | peer | lines | 256^3 | 4 | 4x1x1 | 12 | 1.50 | 2.00 | 0.75 | 0.83 | 25.0% |"
    assert row.replace("0.83", f"{0.75 * 1.1:.2f}") in text
