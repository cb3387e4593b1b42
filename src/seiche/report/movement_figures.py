# SPDX-License-Identifier: BSD-3-Clause
"""Figures of data movement: messages, copies, senders, staging, and exchange strategies; markers are measurements.

They correspond to Figures 2 to 6 of Bienz, Olson, Gropp and Lockhart (arXiv:2010.10378) for Summit and Lassen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from seiche.machine.laws.curve import Curve
from seiche.machine.laws.file import Machine, Measured, PathName
from seiche.machine.laws.models import LOCALITIES, crossover, direct_time, max_rate, three_step_time
from seiche.report.style import COLORS, SINGLE_COLUMN, new_figure, paper_style, store

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = "os^Dv<>"
_DASHES = ("-", "--", ":")


def draw_machine(folder: Path, machine: Machine) -> list[Path]:
    """Draw all figures with data in the machine file into `folder`; return their paths."""
    drawn = []
    figure_paths: dict[str, tuple[PathName, ...]] = {
        "messages": ("host", "device_mpi", "nccl", "peer_copy"),
        "copies": ("h2d", "d2h", "d2d", "peer_store"),
    }
    for name, paths in figure_paths.items():
        measured = [entry for entry in machine.paths if entry.path in paths]
        if measured:
            curves_figure(folder / f"{name}.png", measured)
            drawn.append(folder / f"{name}.png")
    senders = {entry.path: entry.rate for entry in machine.injection if entry.locality == "off-node"}
    if senders and machine.measured("host", "off-node"):
        senders_figure(folder / "senders.png", machine.curve("host", "off-node"), senders["host"])
        drawn.append(folder / "senders.png")
    copies = [machine.measured(path, "on-socket") for path in ("h2d", "d2h")]
    if all(copies) and machine.measured("device_mpi", "off-node"):
        staging_figure(folder / "staging.png", machine)
        drawn.append(folder / "staging.png")
    return drawn


@paper_style()
def curves_figure(path: Path, measured: Sequence[Measured]) -> None:
    """Draw times over sizes: one colour per path, one line style per locality class; lines are fits."""
    figure = new_figure(SINGLE_COLUMN, 0.85 * SINGLE_COLUMN)
    axes = figure.add_subplot()
    paths = list(dict.fromkeys(entry.path for entry in measured))
    for entry in measured:
        color, label = COLORS[paths.index(entry.path) % len(COLORS)], f"{entry.path} {entry.locality}"
        last = entry.sizes[-1] if entry.sizes else entry.pieces[-1].end
        sizes = np.geomspace(max(1, entry.pieces[0].begin), last, 200)
        style = _DASHES[LOCALITIES.index(entry.locality)]
        axes.plot(sizes, entry.curve.seconds(sizes), style, color=color, label=label, zorder=2)
        axes.plot(entry.sizes, entry.seconds, "o", color=color, markerfacecolor="white", markersize=2.5, zorder=3)
    _set_log_axes(axes, "bytes", "seconds")
    store(figure, path)


@paper_style()
def senders_figure(path: Path, curve: Curve, rate: float) -> None:
    """Draw the time of a message over its size while 1 to 32 processes of a node send, by the max-rate model."""
    figure = new_figure(SINGLE_COLUMN, 0.8 * SINGLE_COLUMN)
    axes = figure.add_subplot()
    sizes = np.geomspace(max(1, curve.pieces[0].begin), 4 << 20, 120)
    for color, senders in zip(COLORS, (1, 2, 4, 8, 16, 32), strict=True):
        times = [max_rate(curve, size, senders, rate) for size in sizes]
        axes.plot(sizes, times, color=color, label=f"{senders} sender{'s' if senders > 1 else ''}")
    _set_log_axes(axes, "bytes of each message", "seconds")
    store(figure, path)


@paper_style()
def staging_figure(path: Path, machine: Machine) -> None:
    """Draw the time of many messages between nodes, directly from GPU memory (solid) and staged (dashed)."""
    device, host = machine.curve("device_mpi", "off-node"), machine.curve("host", "off-node")
    down, up = machine.curve("d2h", "on-socket"), machine.curve("h2d", "on-socket")
    figure = new_figure(SINGLE_COLUMN, 0.8 * SINGLE_COLUMN)
    axes = figure.add_subplot()
    counts = np.unique(np.geomspace(1, 256, 60).astype(int))
    for color, size in zip(COLORS, (128, 1024, 4096, 16384, 131072), strict=False):
        axes.plot(counts, [direct_time(device, size, n) for n in counts], color=color, label=f"{size} B")
        axes.plot(counts, [three_step_time(down, up, host, size, n) for n in counts], "--", color=color)
        break_even = crossover(device, down, up, host, size)
        if break_even is not None and 1 <= break_even <= 256:
            axes.plot([break_even], [direct_time(device, size, break_even)], "o", color=color, markersize=4, zorder=3)
    _set_log_axes(axes, "messages", "seconds")
    store(figure, path)


@paper_style()
def strategies_figure(path: Path, strategies: Mapping[str, Sequence[tuple[int, float, float | None]]]) -> None:
    """Draw (bytes, measured, predicted) of an exchange by strategy: markers measured, dashed lines predicted."""
    figure = new_figure(SINGLE_COLUMN, 0.85 * SINGLE_COLUMN)
    axes = figure.add_subplot()
    for number, (name, points) in enumerate(strategies.items()):
        color, marker = COLORS[number % len(COLORS)], _MARKERS[number % len(_MARKERS)]
        sizes, measured, _ = zip(*points, strict=True)
        axes.plot(sizes, measured, marker + "-", color=color, markerfacecolor="white", markersize=3.5, label=name)
        predictions = [(size, predicted) for size, _, predicted in points if predicted is not None]
        if predictions:
            axes.plot(*zip(*predictions, strict=True), "--", color=color, linewidth=0.9)
    _set_log_axes(axes, "bytes per message", "seconds")
    store(figure, path)


def _set_log_axes(axes: Axes, x: str, y: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.legend(fontsize=6)
