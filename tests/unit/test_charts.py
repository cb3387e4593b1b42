# SPDX-License-Identifier: BSD-3-Clause
"""Charts of the page of a run: the roofline and the matrix of messages."""

from __future__ import annotations

import re

import pytest

from seiche.report.charts import message_matrix, roofline_plot


def test_points_lie_under_the_roof_that_they_reach() -> None:
    plot = roofline_plot([("a", 1e6, 1e9), ("b", 1e8, 2e10)], 2e10)
    heights = [float(y) for y in re.findall(r'cy="([\d.]+)"', plot)]
    roof = float(re.findall(r'class="roof" d="M[\d.]+ ([\d.]+)L', plot)[0])
    assert heights[1] == pytest.approx(roof, abs=0.2)
    assert heights[0] > roof
    assert "5% of memory bandwidth" in plot and "100% of memory bandwidth" in plot
    bent = roofline_plot([("a", 1e4, 1e9)], 2e10, launch_time=1e-6)
    assert len(set(re.findall(r"[\d.]+ ([\d.]+)", bent.partition('class="roof" d="')[2].partition('"')[0]))) > 10
    assert roofline_plot([], 1e9) == roofline_plot([("a", 0.0, 1.0)], 1e9) == ""


def test_the_matrix_keeps_all_bytes_when_ranks_are_combined() -> None:
    rows = [[source, (source + 1) % 100, 1.0, 1000.0] for source in range(100)]
    written = message_matrix(rows, 100)
    assert "95–99" in written
    result = [float(v) * 1000 for v in re.findall(r">([\d.]+) kB<", written)]
    assert sum(result) == pytest.approx(100_000)
