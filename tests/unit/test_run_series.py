# SPDX-License-Identifier: BSD-3-Clause
"""Comparison of many runs: speed-up, scaling and efficiencies of a published series and of runs with known times."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_efficiency import TABLES, TOLERANCE
from test_run_report import check_page

from seiche.cli import main
from seiche.errors import CaseError
from seiche.observe.efficiency import Efficiency
from seiche.report import compare_report
from seiche.report.series import RunSeries, series_of
from seiche.report.summary import Summary, content_of, write_summary


def run_of(ranks: int, seconds: float, sites: int = 8000, **changes: Any) -> Summary:
    """Return a run of 100 steps whose ranks compute 0.8 of the time of the busiest, which computes 0.9 of it."""
    tree = Efficiency(ranks, seconds, 0.8, 0.9, 0.95, 0.9 / 0.95, 0.96, 0.9 / 0.96)
    movement = {"device": "cpu", "host_overhead": {"snapshots": [0.1] * ranks}, "messages": []}
    arguments = {"case": "box", "device": "a processor", "ranks": ranks, "efficiency": tree.as_dict()}
    arguments |= {"movement": movement, "set_up": {"partition": 0.5}, "sites": sites, "steps": 100, "seconds": seconds}
    return Summary(**{**arguments, **changes})


def compared(*runs: Summary) -> RunSeries:
    return series_of([content_of(run) for run in runs], [f"run {k}" for k in range(len(runs))])


def on_gpu(run: Summary, **changes: Any) -> Summary:
    return Summary(**{**vars(run), "device": "a GPU", "movement": {**run.movement, "device": "gpu"}, **changes})


@pytest.mark.parametrize("name", ["GPU with writing", "GPU without"])
def test_a_published_series_is_reproduced(name: str) -> None:
    """Speed-up and efficiencies of HemeLB_GPU on JUWELS follow from summaries of its runs."""
    balance, communication, _, scaling, total, times, gpus = TABLES[name]
    runs = []
    for k, count in enumerate(gpus.astype(int).tolist()):
        tree = Efficiency(count, times[k], balance[k], communication[k])
        run = run_of(count, times[k], sites=66_401_494, steps=2000, efficiency=tree.as_dict())
        runs.append(on_gpu(run))
    series = compared(*runs)
    assert series.kind == "strong"
    np.testing.assert_allclose([entry.speedup for entry in series.entries], times[0] / times)
    if name == "GPU without":  # printed: 1.00 1.67 3.06 6.56 12.67 20.68, efficiency .65 at 32 nodes
        speedups = (1.00, 1.67, 3.06, 6.56, 12.67, 20.68)
        np.testing.assert_allclose([entry.speedup for entry in series.entries], speedups, atol=0.006)
        assert series.entries[-1].scaling == pytest.approx(0.65, abs=0.005)
        rates = [entry.rate * 1e-6 for entry in series.entries]
        np.testing.assert_allclose(rates, (964, 1613, 2952, 6324, 12217, 19940), rtol=1e-3)
    trees = [entry.tree for entry in series.entries]
    assert all(tree is not None for tree in trees)
    np.testing.assert_allclose([tree.overall for tree in trees if tree], total, atol=TOLERANCE)
    np.testing.assert_allclose([tree.computation_scaling for tree in trees if tree], scaling, atol=0.04)
    page = check_page(compare_report.text([content_of(run) for run in runs], [f"{n} GPUs" for n in gpus]))
    assert "Strong scaling: all runs update the same number of sites." in page.prose
    assert "speed-up over execution units" in compare_report.text([content_of(run) for run in runs], list("abcdef"))


def test_weak_scaling_is_recognised_and_compares_time_per_unit() -> None:
    """Twice the sites on twice the ranks take 1.25 times as long."""
    series = compared(run_of(1, 4.0), run_of(2, 5.0, 16000), run_of(4, 5.0, 32600))
    assert series.kind == "weak"
    assert [entry.scaling for entry in series.entries] == pytest.approx([1.0, 0.8, 0.8 * 32600 / 32000])
    assert [entry.speedup for entry in series.entries] == pytest.approx([1.0, 1.6, 3.2 * 32600 / 32000])
    tree = series.entries[1].tree
    assert tree is not None
    # Useful seconds per site: 0.72 * 4 / 8000 on one rank, 0.72 * 2 * 5 / 16000 on two.
    assert tree.computation_scaling == pytest.approx(0.8)
    assert tree.overall == pytest.approx(0.72 * 0.8)


def test_threads_count_as_execution_units() -> None:
    series = compared(run_of(1, 4.0), run_of(1, 2.5, threads=2), run_of(2, 2.0))
    assert [entry.units for entry in series.entries] == [1, 2, 2]
    assert [entry.scaling for entry in series.entries] == pytest.approx([1.0, 0.8, 1.0])
    trees = [entry.tree.computation_scaling for entry in series.entries if entry.tree]
    assert trees == pytest.approx([1.0, 0.8, 1.0])


def test_runs_on_cpus_and_gpus_scale_relative_to_their_own_device() -> None:
    series = compared(run_of(1, 8.0), run_of(2, 5.0), on_gpu(run_of(1, 0.5)), on_gpu(run_of(4, 0.25)))
    assert series.kind == "strong"
    assert [entry.unit for entry in series.entries] == ["core", "core", "GPU", "GPU"]
    assert [entry.speedup for entry in series.entries] == pytest.approx([1.0, 1.6, 16.0, 32.0])
    assert [entry.scaling for entry in series.entries] == pytest.approx([1.0, 0.8, 1.0, 0.5])
    scalings = [entry.tree.computation_scaling for entry in series.entries if entry.tree]
    assert scalings == pytest.approx([1.0, 0.8, 1.0, 0.5])


def test_other_series_are_named() -> None:
    assert compared(run_of(2, 4.0), run_of(2, 3.0)).kind == "same"
    assert compared(run_of(1, 4.0), run_of(2, 4.0, 12000)).kind == "mixed"
    cells = [{"cells": {"hematocrit": value}} for value in (0.2, 0.4)]
    few, many = (run_of(ranks, 4.0, solver="blood", details=cells[ranks - 1]) for ranks in (1, 2))
    assert compared(few, many).kind == "mixed"
    assert compared(few, run_of(2, 3.0, solver="blood", details=cells[0])).kind == "strong"


def test_runs_that_cannot_be_compared_are_refused() -> None:
    waves = run_of(1, 1.0, solver="waves", item="nodes")
    with pytest.raises(CaseError, match="run 0 is a run of flow, run 2 one of waves; runs of different kinds cannot"):
        compared(run_of(1, 1.0), run_of(2, 1.0), waves)
    with pytest.raises(CaseError, match="run 1 has no completed step"):
        compared(run_of(1, 1.0), run_of(1, 1.0, steps=0))


def test_the_page_of_many_runs_has_tables_and_plots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [run_of(ranks, 8.0 / ranks**0.8) for ranks in (1, 2, 4, 8, 16)]
    runs[3] = run_of(8, 8.0 / 8**0.8, efficiency={}, stopped="signal SIGTERM")
    folders = []
    for run in runs:
        folder = tmp_path / f"r{run.ranks}"
        folder.mkdir()
        write_summary(folder / "summary.json", run)
        folders.append(str(folder))
    assert main(["report", "--compare", *folders, "--output", str(tmp_path / "all.html")]) == 0
    assert capsys.readouterr().out == f"seiche: wrote {tmp_path / 'all.html'}\n"
    text = (tmp_path / "all.html").read_text()
    page = check_page(text)
    headings = re.findall(r"<h2>(.*?)</h2>", text)
    assert headings == [
        "Scaling",
        "Efficiencies, the first run as reference",
        "Stages, µs per step",
        "Set-up, output and checkpoints, s",
        "Settings",
    ]
    assert text.count("<svg") == 2
    # The points of the speed-up lie where the axis, with a mark for every power of two, has 2^(0.8 k).
    speedup = text.partition("<svg")[2].partition("</svg>")[0]
    heights = np.array([float(y) for y in re.findall(r'cy="([\d.]+)"', speedup)])
    marks = sorted({float(y) for y in re.findall(r'class="axis" d="M44 ([\d.]+)H', speedup)}, reverse=True)
    assert len(marks) == 5
    octave = (marks[0] - marks[-1]) / 4
    np.testing.assert_allclose((marks[0] - heights) / octave, 0.8 * np.arange(5), atol=2e-3)
    assert f"No step was timed in {folders[3]}." in page.prose
    assert "set-up: partition 0.5 0.5 0.5 0.5 0.5" in page.prose and "snapshots 0.1 0.1" in page.prose
    assert f"{16**0.8:.2f} {16**-0.2:.3f}" in page.prose


def test_a_wrong_kind_gives_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, run in (("a", run_of(1, 1.0)), ("b", run_of(1, 1.0, solver="ultrasound", item="points"))):
        (tmp_path / name).mkdir()
        write_summary(tmp_path / name / "summary.json", run)
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    assert main(["report", "--compare", a, b]) == 2
    message = f"report: {a} is a run of flow, {b} one of ultrasound; runs of different kinds cannot be compared"
    assert capsys.readouterr().err == f"seiche: error: {message}\n"
    assert not (tmp_path / "b" / "compare.html").exists()
