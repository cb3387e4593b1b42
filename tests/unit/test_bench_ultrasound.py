# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark of the ultrasound solver: what it measures and stores; the prediction of errors at cuts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from seiche.bench import lfb as bench_lfb
from seiche.bench.ultrasound import problem_of
from seiche.cli import main
from seiche.ultrasound.crossing import crossing_error, cuts_along_diagonal
from seiche.ultrasound.local_basis import parts_of


def test_bench_of_ultrasound_stores_times_stages_and_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "sound.json"
    arguments = [
        "--size",
        "24",
        "--seconds",
        "0",
        "--scheme",
        "exact",
        "--scheme",
        "separable",
        "--physics",
        "lossless",
    ]
    assert main(["bench", "ultrasound", *arguments, "--threads", "1", "--json", str(target)]) == 0
    stored = json.loads(target.read_text())
    assert stored["benchmark"] == "ultrasound"
    assert [(row["scheme"], row["physics"], row["size"]) for row in stored["rows"]] == [
        ("exact", "lossless", 24),
        ("separable", "lossless", 24),
    ]
    for row in stored["rows"]:
        assert row["min_milliseconds"] <= row["milliseconds"]
        assert {"velocity", "velocity sources"} < set(row["stages"])
        assert row["threads"] == 1
    assert "ms/step" in capsys.readouterr().out
    assert main(["bench", "ultrasound", "--size", "20"]) == 2
    assert "--size: 20 points per edge are too few: use at least 24" in capsys.readouterr().err


def test_a_peer_that_is_not_installed_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "kwave", None)  # so that it is not found where it is installed
    assert main(["bench", "ultrasound", "--size", "24", "--peer"]) == 2
    assert "--peer requires k-wave-python: pip install k-wave-python" in capsys.readouterr().err


#: In a process of its own: in an old one memory may come from what was freed before, and is there already.
ALLOCATE = """
import sys
from seiche.backend import open_backend
backend = open_backend(sys.argv[1])
before = backend.used_memory()
array = backend.zeros(1 << 24, "float32")
array += 1  # pages count once they are touched
print(backend.used_memory() - before)
"""


def test_used_memory_grows_with_what_is_allocated(device: str) -> None:
    command = [sys.executable, "-c", ALLOCATE, device]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert int(result.stdout) == pytest.approx(1 << 26, rel=0.05)


def test_physics_of_the_benchmark_are_what_they_are_called() -> None:
    water, layers, full = (problem_of(24, name) for name in ("homogeneous", "lossless", "full"))
    assert water.absorption is None and not hasattr(water.sound_speed, "shape")
    assert layers.absorption is None and layers.BonA is None and layers.reference_speed == 1600.0
    assert full.absorption is not None and full.BonA is not None


@pytest.mark.parametrize(
    ("points", "overlap", "known"),
    [(4, 8, 1.1e-3), (4, 12, 1.2e-4), (4, 16, 4.8e-5), (6, 8, 3.0e-4), (6, 12, 4.0e-5), (6, 16, 1.9e-5)],
)
def test_error_of_a_crossing_is_near_that_of_runs(points: float, overlap: int, known: float) -> None:
    """Known: relative differences of runs in two dimensions, 2 x 2 parts, with the best slope of the bell."""
    assert known / 2 < crossing_error(points, overlap) < 7 * known


def test_error_of_a_crossing_falls_with_the_overlap_and_the_resolution() -> None:
    errors = [crossing_error(4, overlap) for overlap in (4, 8, 12, 16, 24)]
    assert errors == sorted(errors, reverse=True)
    assert crossing_error(6, 8) < crossing_error(4, 8) < crossing_error(3, 8)


def test_cuts_are_counted_along_the_way_from_corner_to_corner() -> None:
    assert cuts_along_diagonal(parts_of((64, 64), (2, 1), 8)) == 1
    assert cuts_along_diagonal(parts_of((96, 64, 64), (3, 2, 2), 8)) == 4


def test_bench_of_overlaps_predicts_and_draws_on_one_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, figure = tmp_path / "lfb.json", tmp_path / "lfb.png"
    arguments = ["--overlap", "4", "--overlap", "8", "--resolution", "4", "--json", str(target)]
    options = ["--figure", str(figure), "--dpi", "127", "--figure-size", "100x60"]
    assert main(["bench", "lfb", *arguments, *options]) == 0
    rows = json.loads(target.read_text())["rows"]
    assert [row["overlap"] for row in rows] == [4, 8]
    assert [row["measured"] for row in rows] == [None, None]
    assert rows[1]["predicted"] == pytest.approx(crossing_error(4, 8))
    with Image.open(figure) as picture:
        assert picture.format == "PNG" and picture.size == (500, 300)
    assert "for measurements run mpiexec -n 2 seiche bench lfb" in capsys.readouterr().out
    assert main(["bench", "lfb", "--overlap", "3"]) == 2
    assert "--overlap: 3 points is not between 4 and 32" in capsys.readouterr().err


@pytest.mark.parametrize(("ranks", "split"), [(2, (2, 1)), (4, (2, 2)), (6, (3, 2)), (7, (7, 1))])
def test_ranks_of_the_bench_are_cut_into_pieces_as_equal_as_can_be(ranks: int, split: tuple[int, int]) -> None:
    assert bench_lfb._split(ranks, 2) == split
