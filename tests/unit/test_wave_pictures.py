# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of runs of waves and ultrasound: several states, records of sensors, seismograms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from seiche.case import new
from seiche.case.loading import load
from seiche.case.render import render
from seiche.report import motion, ultrasound_figure, waves_figures
from seiche.report.motion import Motion, states_figure
from seiche.report.ultrasound_figure import Panel, Traces, UltrasoundPicture
from seiche.report.waves_figures import seismogram_figure


class Stored:
    """The figures that a module stores, instead of files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
        self.figures: list[Figure] = []
        monkeypatch.setattr(module, name, lambda figure, *arguments: self.figures.append(figure))

    @property
    def last(self) -> Figure:
        return self.figures[-1]


def travelling(count: int, dim: int = 2) -> Motion:
    """Return a front that moves along x at 1 mm/us."""
    times, x = 1e-6 * np.arange(count), np.linspace(0.0, 20e-3, 41)
    values = np.exp(-(((x - 1e3 * times[:, None]) / 1e-3) ** 2))
    values = values[:, None] * np.ones((11, 1)) if dim == 2 else values
    axes, lower, upper = ("x", "y")[:dim], np.zeros(dim), np.array([20e-3, 5e-3])[:dim]
    return Motion("front", times, values.astype(np.float32), "pressure", "Pa", axes, lower, upper)


def test_a_picture_shows_four_states_at_equal_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = Stored(monkeypatch, motion, "store")
    states_figure(Path("a.png"), travelling(17))
    panels = [axes for axes in stored.last.axes if axes.images and axes.get_title("right")]
    assert [axes.get_title("right") for axes in panels] == ["4 µs", "8 µs", "12 µs", "16 µs"]
    fronts = [int(np.argmax(axes.images[0].get_array()[5])) for axes in panels]
    assert fronts == [8, 16, 24, 32]  # of 41 points, each half a millimetre apart
    assert len({axes.images[0].get_clim() for axes in panels}) == 1
    states_figure(Path("a.png"), travelling(3))
    assert len([axes for axes in stored.last.axes if axes.get_title("right")]) == 3
    states_figure(Path("a.png"), travelling(1))
    assert len([axes for axes in stored.last.axes if axes.get_title("right")]) == 1
    states_figure(Path("a.png"), travelling(17, dim=1))
    lines = stored.last.axes[0].lines
    assert [line.get_label() for line in lines] == ["4 µs", "8 µs", "12 µs", "16 µs"]
    assert [float(line.get_xdata()[np.argmax(line.get_ydata())]) for line in lines] == pytest.approx([4, 8, 12, 16])


@pytest.mark.parametrize("sensors", [3, 40])
def test_the_picture_of_an_ultrasound_run_has_its_records(sensors: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = Stored(monkeypatch, ultrasound_figure, "save")
    x = np.linspace(-5e-3, 5e-3, 21)
    angle = np.arange(sensors) * 2 * np.pi / sensors
    places = 4e-3 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    times = np.linspace(0.0, 5e-6, 51)
    traces = Traces(times, 2.0 * np.sin(np.add.outer(angle, 1e6 * times)), places)
    panel = Panel("maximum pressure", "Pa", np.ones((21, 21)))
    picture = UltrasoundPicture([x, x], [panel, panel], None, traces, "run")
    ultrasound_figure.ultrasound_figure(Path("a.png"), "a.png", picture)
    titles = [axes.get_title() for axes in stored.last.axes if axes.get_title()]
    assert titles == ["maximum pressure", "maximum pressure", "pressure at the sensors"]
    records = next(axes for axes in stored.last.axes if axes.get_title() == "pressure at the sensors")
    assert records.get_xlabel() == "time (µs)" and len(records.lines) == (sensors if sensors <= 8 else 0)
    assert records.get_ylabel() == ("pressure (Pa)" if sensors <= 8 else "angle on the ring (degrees)")


def test_seismograms_have_a_scale_in_readable_units(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = Stored(monkeypatch, waves_figures, "store")
    times = np.linspace(0.0, 0.5, 101)
    velocity = 2e-3 * np.sin(20 * times)[:, None, None] * np.array([1.0, 0.5, -0.7])[:, None] * np.array([1.0, -1.0])
    seismogram_figure(Path("a.png"), times, velocity[:, :1], ["A"], ("vx", "vy"))
    panel = stored.last.axes[0]
    assert panel.get_ylabel() == "velocity at A (mm/s)" and panel.get_xlabel() == "time (ms)"
    np.testing.assert_allclose(panel.lines[0].get_ydata(), 1e3 * velocity[:, 0, 0])
    seismogram_figure(Path("a.png"), times, velocity, ["A", "B", "C"], ("vx", "vy"))
    last = stored.last.axes[1]
    bar, label = last.lines[-1], last.texts[0].get_text()
    peak = np.abs(velocity).max()
    assert label == f"{1e3 * peak:.3g} mm/s"
    # The bar is as long as the largest deviation of a trace from its line.
    deviation = np.abs(stored.last.axes[0].lines[0].get_ydata()).max()
    assert np.ptp(bar.get_ydata()) == pytest.approx(deviation)


@pytest.mark.parametrize("kind", ["ultrasound", "waves"])
def test_render_draws_a_new_case(kind: str, tmp_path: Path) -> None:
    with load(new.TEMPLATES / f"{kind}.toml", output=tmp_path) as simulation:
        simulation.run(visible=False)
        records = simulation.result()["p" if kind == "ultrasound" else "receiver_vy"].values
    amplitude = np.abs(records).max(axis=1 if kind == "ultrasound" else 0)
    last = np.abs(records[:, -1] if kind == "ultrasound" else records[-1])
    assert (last < 0.15 * amplitude).all()  # the pulse has passed all sensors
    assert render(tmp_path, moving=False).stat().st_size > 20_000
