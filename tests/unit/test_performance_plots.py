# SPDX-License-Identifier: BSD-3-Clause
"""The page of benchmark plots: series, history and charts."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from benchmarks.page.headlines import SERIES, Point, current_history, history_text, merged, points_of, read_history
from benchmarks.page.plots import plots
from benchmarks.page.svg import Bar, Line, bars, curves, number

ROOT = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def flow_document(commit: str, date: str, mlups: float) -> dict[str, object]:
    row = {"case": "box 384^3", "layout": "tiles-8", "compute": "float32", "storage": "float32", "ranks": 1}
    rows = [{**row, "rheology": "newtonian", "mlups": mlups}, {**row, "layout": "list-aa", "mlups": 1.0}]
    return {"benchmark": "flow", "device": SERIES[0].device, "date": date, "commit": commit, "rows": rows}


def test_a_series_has_the_rows_of_its_device_and_layout_of_clean_commits() -> None:
    documents = [
        flow_document("0123456789ab", "2026-01-01 10:00 UTC", 10.0),
        flow_document("1123456789ab-dirty", "2026-01-02 10:00 UTC", 20.0),
        {**flow_document("2123456789ab", "2026-01-03 10:00 UTC", 30.0), "device": "another"},
    ]
    assert points_of(documents)[SERIES[0].name] == [Point("2026-01-01 10:00", "0123456789ab", 10.0)]


def test_the_history_keeps_earlier_points_and_adds_new_ones_once(tmp_path: Path) -> None:
    first = points_of([flow_document("0123456789ab", "2026-01-01 10:00 UTC", 10.0)])
    second = points_of([flow_document("1123456789ab", "2026-01-02 10:00 UTC", 11.0)])
    path = tmp_path / "history.json"
    path.write_text(history_text(merged(first)))
    both = merged(read_history(path), second, second)
    assert [point.value for point in both[SERIES[0].name]] == [10.0, 11.0]
    assert read_history(tmp_path / "none.json") == {}


def test_every_series_has_stored_results() -> None:
    history = current_history(ROOT)
    assert all(history[series.name] for series in SERIES)
    assert {series.benchmark for series in SERIES} == {"flow", "blood", "ultrasound", "waves"}


def test_published_values_have_sources_and_name_series() -> None:
    names = {series.name for series in SERIES}
    for entry in json.loads((ROOT / "benchmarks" / "published.json").read_text())["comparisons"]:
        assert {"title", "solver", "unit", "higher_is_better", "note"} <= set(entry)
        assert any("series" in row for row in entry["rows"]) and any("source" in row for row in entry["rows"])
        for row in entry["rows"]:
            assert row["series"] in names if "series" in row else {"value", "device", "source"} <= set(row)


def test_charts_are_small_valid_svg() -> None:
    charts = {path: text for path, text in plots(ROOT).items() if path.suffix == ".svg"}
    assert len(charts) >= 3
    for path, text in charts.items():
        assert ElementTree.fromstring(text).tag == f"{SVG}svg", path
        assert len(text) < 20_000


def test_bars_have_lengths_in_proportion() -> None:
    tree = ElementTree.fromstring(bars("a & b", [Bar("one", 1.0), Bar("two", 2.0, own=False)]))
    _, one, two = tree.findall(f"{SVG}rect")
    assert float(two.attrib["width"]) == pytest.approx(2 * float(one.attrib["width"]), rel=1e-3)
    assert one.attrib["fill"] != two.attrib["fill"]
    assert [text.text for text in tree.findall(f"{SVG}text")] == ["a & b", "one", "1", "two", "2"]


def test_curves_are_drawn_between_their_ticks_and_levels() -> None:
    text = curves("t", [Line("l", ((0.0, 1.0), (1.0, 2.0)))], [(0.0, "a"), (1.0, "b")], [1.0, 2.0])
    first, last = ElementTree.fromstring(text).findall(f"{SVG}circle")
    assert float(first.attrib["cx"]) < float(last.attrib["cx"])
    assert float(first.attrib["cy"]) > float(last.attrib["cy"])


@pytest.mark.parametrize(("value", "text"), [(19050.6, "19,051"), (2.585, "2.58"), (0.1234, "0.123"), (49.7, "49.7")])
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text
