# SPDX-License-Identifier: BSD-3-Clause
"""Record sections: the seismograms of receivers on a line, time downwards over the distance along the line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.report.display_units import display, display_unit, length_scale
from seiche.report.style import DOUBLE_COLUMN, new_figure, paper_style, store

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]

GAINS, STYLES = ("common", "trace"), ("wiggle", "image")
#: Maximum number of traces drawn as wiggles by default.
_MAX_WIGGLES = 60
#: Deviation of a trace at the clip, in mean distances between traces.
_AMPLITUDE = 0.9
#: Maximum distance of receivers from their line, as a fraction of its length.
_STRAIGHT = 0.01


@dataclass(frozen=True)
class SectionStyle:
    """How a section is drawn.

    `gain` "common" divides all traces by one value, "trace" each by its own. This value is the `percentile` of the
    absolute samples, and larger samples are clipped. `style` None: wiggles for up to 60 traces, otherwise an image.

    Raises:
        CaseError: an unknown gain or style, or a percentile that is not above 50 and at most 100.
    """

    gain: str = "common"
    percentile: float = 99.0
    style: str | None = None

    def __post_init__(self) -> None:
        """Check the values."""
        if self.gain not in GAINS:
            raise CaseError(f"gain {self.gain!r}: expected {' or '.join(GAINS)}")
        if self.style is not None and self.style not in STYLES:
            raise CaseError(f"style {self.style!r}: expected {' or '.join(STYLES)}")
        if not 50.0 < self.percentile <= 100.0:
            raise CaseError(f"percentile {self.percentile:g}: must be above 50 and at most 100")


@dataclass(frozen=True, eq=False)
class Section:
    """Traces (receivers, times) at `distances` (receivers,) in m, ascending, and `times` (s)."""

    distances: Floats
    times: Floats
    traces: Floats
    name: str
    unit: str


def distances_along_line(positions: Floats) -> Floats | None:
    """Return distances (m) from the first of `positions` (n, dim) along their line; None if they are not on a line."""
    ends = positions - positions[0]
    direction = ends[np.argmax(np.linalg.norm(ends, axis=1))]
    length = float(np.linalg.norm(direction))
    if len(positions) < 2 or length == 0.0:
        return None
    along = ends @ direction / length
    off_line = np.linalg.norm(ends - along[:, None] * direction / length, axis=1).max()
    return along if off_line <= _STRAIGHT * length and len(np.unique(along)) == len(along) else None


def section_of(positions: Floats, times: Floats, traces: Floats, quantity: tuple[str, str]) -> Section | None:
    """Return the section of traces (n, times) of a quantity (name, unit); None if receivers are not on a line."""
    distances = distances_along_line(positions)
    if distances is None or not len(times):
        return None
    order = np.argsort(distances, kind="stable")
    return Section(distances[order], times, np.asarray(traces, np.float64)[order], *quantity)


def scaled_traces(traces: Floats, style: SectionStyle) -> tuple[Floats, float]:
    """Return traces divided by their clip, within -1 to 1, and the largest clip."""
    axis = 1 if style.gain == "trace" else None
    clip = np.atleast_1d(np.percentile(np.abs(traces), style.percentile, axis=axis))[:, None]
    # Of a trace that is zero most of the time, the percentile may be zero.
    clip = np.where(clip > 0.0, clip, np.abs(traces).max(axis=axis, keepdims=True))
    return np.clip(traces / np.where(clip > 0.0, clip, 1.0), -1.0, 1.0), float(clip.max())


def draw_section(axes: Axes, section: Section, style: SectionStyle) -> None:
    """Draw a section; the title states the gain and the clip."""
    scaled, clip = scaled_traces(section.traces, style)
    largest = float(np.ptp(section.distances))
    size, unit = length_scale(largest)
    time_scale, time_unit = display_unit(float(np.abs(section.times).max()), "s")
    distances, times = section.distances / size, time_scale * section.times
    drawing = style.style or ("wiggle" if len(distances) <= _MAX_WIGGLES else "image")
    if drawing == "wiggle":
        amplitude = _AMPLITUDE * float(np.ptp(distances)) / (len(distances) - 1)
        for distance, trace in zip(distances, scaled, strict=True):
            line = distance + amplitude * trace
            axes.plot(line, times, color="0.1", linewidth=0.5)
            axes.fill_betweenx(times, distance, line, where=trace > 0, color="0.1", linewidth=0)
        axes.set_xlim(distances[0] - 1.2 * amplitude, distances[-1] + 1.2 * amplitude)
    else:
        axes.pcolormesh(distances, times, scaled.T, cmap="gray_r", vmin=-1, vmax=1, shading="nearest", rasterized=True)
    axes.set_ylim(times[-1], times[0])
    axes.set_xlabel(f"distance along the line ({unit})")
    axes.set_ylabel(f"time ({time_unit})")
    gain = f"clip {display(clip, section.unit)}" if style.gain == "common" else "each trace scaled"
    axes.set_title(f"{section.name}, {gain} ({style.percentile:g}th percentile)", fontsize=8)


def section_figure(path: Path, section: Section, style: SectionStyle) -> None:
    """Draw a section to `path`; OSError if the file cannot be written."""
    with paper_style():
        figure = new_figure(DOUBLE_COLUMN, 4.2)
        draw_section(figure.add_subplot(), section, style)
        store(figure, path)
