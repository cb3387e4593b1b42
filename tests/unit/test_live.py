# SPDX-License-Identifier: BSD-3-Clause
"""While a case runs it shows its physics; at the end the physics comes before the stages."""

from __future__ import annotations

import http.client
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from live_checks import CHANGES, check_view
from seiche.case import live, new
from seiche.case.kind import LiveParts
from seiche.case.loading import load
from seiche.case.output import History
from seiche.case.simulation import Simulation
from seiche.cli import main
from seiche.report.live_page import LiveCurves, LiveSlice, curves_svg, figures_html, slice_svg

PHYSICS = {
    "flow": ["Mach", "inflow - outflow"],
    "blood": ["Mach", "mass drift", "cells", "hematocrit"],
    "ultrasound": ["peak pressure"],
    "waves": ["peak velocity", "energy beyond the sources"],
}
#: First line of the results.
RESULTS = {
    "flow": "Reynolds number",
    "blood": "Reynolds number",
    "ultrasound": "largest pressure",
    "waves": "energy of the waves",
}


@pytest.mark.parametrize("kind", CHANGES)
def test_the_progress_line_has_the_physics_and_the_end_of_a_run_begins_with_it(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [word for change in CHANGES[kind] for word in ("--set", change)]
    assert main(["run", str(new.TEMPLATES / f"{kind}.toml"), "--output", str(tmp_path / "out"), *options]) == 0
    captured = capsys.readouterr()
    progress = captured.err.splitlines()[-1]
    places = [progress.index(f"  {name} ") for name in PHYSICS[kind]]
    assert places == sorted(places)
    lines = captured.out.splitlines()
    assert lines[0].startswith(f"seiche: {RESULTS[kind]}")
    table = next(number for number, line in enumerate(lines) if line.split()[:1] == ["stage"])
    assert all(line.startswith("seiche: ") for line in lines[:table] if line)
    names = [line.split("  ")[1].strip() for line in lines[table:] if line.startswith("  ")]
    stages = [name for name in names if not name.startswith("set-up")]
    assert stages[-2:] == ["other", "run"]
    assert {"first step", "prepare steps", "open files", "run control"} <= set(names)


@pytest.mark.parametrize("kind", CHANGES)
def test_physics_is_that_of_the_state(kind: str, tmp_path: Path) -> None:
    with load(new.TEMPLATES / f"{kind}.toml", overrides=CHANGES[kind], output=tmp_path / "out") as simulation:
        simulation.run(visible=False)
        physics = simulation.case_run.physics()
        fields = simulation.fields("velocity", "pressure")
    if kind in ("flow", "blood"):
        assert float(physics["Mach"]) == pytest.approx(simulation.case_run.monitor.record.largest_mach, rel=0.5)
    elif kind == "ultrasound":
        number, unit = physics["peak pressure"].split()
        assert float(number) * {"Pa": 1.0, "mPa": 1e-3, "µPa": 1e-6, "kPa": 1e3}[unit] == pytest.approx(
            fields["pressure"].max(), rel=0.01
        )
    else:
        number, unit = physics["peak velocity"].split()
        assert float(number) * {"m/s": 1.0, "mm/s": 1e-3, "µm/s": 1e-6, "nm/s": 1e-9}[unit] == pytest.approx(
            abs(fields["velocity"]).max(), rel=0.01
        )


def test_a_history_is_thinned_out_to_its_limit() -> None:
    history = History(limit=8)
    for step in range(100):
        history.add(float(step), {"value": 2.0 * step})
    assert 4 <= len(history.times) < 8
    assert history.values["value"] == [2.0 * time for time in history.times]
    assert history.times == sorted(set(history.times))
    assert history.times[-1] >= 80.0


@pytest.mark.parametrize("kind", CHANGES)
def test_the_view_has_the_values_of_the_state(kind: str, tmp_path: Path) -> None:
    with load(new.TEMPLATES / f"{kind}.toml", overrides=CHANGES[kind], output=tmp_path / "out") as simulation:
        simulation.run(visible=False)
        check_view(kind, simulation)


class Browser:
    """Requests to a status page during a run."""

    def __init__(self, port: int) -> None:
        self._port = port

    def get(self, path: str) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        assert answer.status == 200
        return text


@pytest.mark.parametrize("kind", CHANGES)
def test_the_served_page_shows_a_plane_curves_and_stages_and_follows_the_run(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(live, "_INTERVAL", 0.0)
    monkeypatch.setattr(live, "_TIME_SHARE", np.inf)
    numbers, texts = [], []

    def look(simulation: Simulation) -> None:
        found = re.search(r"http://127.0.0.1:(\d+)/", capsys.readouterr().err)
        ports.extend([int(found[1])] if found else [])
        browser = Browser(ports[0])
        numbers.append(int(re.search(r'data-figures="(\d+)"', browser.get("/live"))[1]))  # type: ignore[index]
        texts.append(browser.get("/figures"))
        assert json.loads(browser.get("/status.json"))["step"].endswith(f" of {simulation.setup.steps}")

    ports: list[int] = []
    with load(new.TEMPLATES / f"{kind}.toml", overrides=CHANGES[kind], output=tmp_path / "out") as simulation:
        simulation.every(look, steps=max(1, simulation.setup.steps // 4))
        simulation.run(serve=0, visible=False)
    assert numbers[0] == 0 and numbers[-1] >= 2  # no view before a browser asks for one
    shown = ElementTree.fromstring(f"<body>{texts[-1]}</body>")
    labels = [svg.get("aria-label", "") for svg in shown.iter("svg")]
    assert any("largest magnitude" in label for label in labels)
    assert len(labels) >= 2
    assert "stages of a step" in texts[-1]
    if kind == "flow":
        assert any(label.startswith("pressure at openings (") for label in labels)


def test_nobody_watching_costs_no_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object) -> None:
        raise AssertionError("a view was taken")

    monkeypatch.setattr(live.LiveView, "take", fail)
    with load(new.TEMPLATES / "flow.toml", overrides=CHANGES["flow"], output=tmp_path / "out") as simulation:
        simulation.run(serve=0, visible=False)


def test_views_take_a_small_part_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with load(new.TEMPLATES / "flow.toml", overrides=CHANGES["flow"], output=tmp_path / "out") as simulation:
        view = live.LiveView(simulation.case_run, simulation.setup.dt, simulation.outputs)
        now = [100.0]
        monkeypatch.setattr(live.time, "monotonic", lambda: now[0])
        assert not view.is_due()
        view.unwatched_seconds = lambda: 1.0
        assert view.is_due()
        parts = simulation.case_run.live_parts()

        def slice_in_a_second(points: int) -> LiveSlice | None:
            now[0] += 1.0
            return parts.slice(points)

        monkeypatch.setattr(view, "_parts", LiveParts(slice_in_a_second, parts.curves))
        view.take()
        now[0] += 98.0
        assert not view.is_due()
        now[0] += 3.0
        assert view.is_due()


def test_a_slice_states_its_units_its_scale_and_its_largest_value() -> None:
    values = np.linspace(-1.0, 1.0, 400).reshape(20, 20) * 1e4
    values[3, 4], values[0, 0] = 9e6, np.nan
    text = slice_svg(LiveSlice("pressure <p>", "Pa", values, ("x", "y"), (0.0, 0.02, -0.01, 0.01)))
    ElementTree.fromstring(f"<b>{text}</b>")
    assert "x (mm)" in text and "y (mm)" in text and ">kPa<" in text
    assert "largest magnitude 9 MPa" in text  # clipped by the colour scale
    assert "pressure &lt;p&gt;" in text
    for empty in (np.full((3, 3), np.nan), np.zeros((3, 3))):
        ElementTree.fromstring(
            f"<b>{slice_svg(LiveSlice('speed', 'm/s', empty, ('x', 'y'), (0.0, 1.0, 0.0, 1.0)))}</b>"
        )


def test_curves_have_units_a_legend_and_gaps() -> None:
    curves = LiveCurves(
        "flow rate", "m^3/s", [0.0, 1e-3, 2e-3], {"in": [1e-6, None, 2e-6], "out": [0.0, float("nan"), 0.0]}
    )
    text = curves_svg(curves)
    ElementTree.fromstring(f"<b>{text}</b>")
    assert "flow rate (mL/s)" in text and "time (ms)" in text and ">in<" in text
    assert curves_svg(LiveCurves("empty", "Pa", [0.0], {"a": [1.0]})) == ""
    assert "stages" not in figures_html(0.0, None, [curves], {})
