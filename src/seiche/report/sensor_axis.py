# SPDX-License-Identifier: BSD-3-Clause
"""Records of many sensors as an image over time, in the order of the sensors along their ring or line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.report.color_range import color_top
from seiche.report.display_units import display_unit, length_scale
from seiche.report.section_figure import distances_along_line
from seiche.report.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable

Floats = npt.NDArray[np.float64]

#: Records are drawn as lines up to this number, and as an image above.
MAX_LINES = 8
#: Maximum distance of sensors from their circle, as a fraction of its radius.
_ROUND = 0.05


@dataclass(frozen=True, eq=False)
class SensorAxis:
    """The order (n,) in which sensors are drawn, their positions (n,) on the axis in this order, and its label."""

    order: npt.NDArray[np.int64]
    positions: Floats
    label: str


def sensor_axis(count: int, places: Floats | None, word: str = "sensor") -> SensorAxis:
    """Return the axis of `count` sensors at `places` (n, dim) in m, if these are known.

    It is the angle on a circle in two dimensions, the distance along a straight line, and otherwise the number of the
    sensor, which is called `word`.
    """
    if places is not None and len(places) == count and count > 1:
        if (along := distances_along_line(places)) is not None:
            size, unit = length_scale(float(np.ptp(along)))
            order = np.argsort(along, kind="stable")
            return SensorAxis(order, along[order] / size, f"distance along the line ({unit})")
        if places.shape[1] == 2 and (angles := _angles(places)) is not None:
            order = np.argsort(angles, kind="stable")
            return SensorAxis(order, angles[order], "angle on the ring (degrees)")
    return SensorAxis(np.arange(count), np.arange(count, dtype=np.float64), word)


def _angles(places: Floats) -> Floats | None:
    """Return the angles (n,) of points (n, 2) on a circle, 0 to 360 degrees from the x axis; None for other points."""
    if len(places) < 3:
        return None
    # The circle |p|^2 = 2 c.p + k that fits best in the sense of least squares.
    matrix = np.concatenate([2.0 * places, np.ones((len(places), 1))], axis=1)
    scale = float(np.abs(places).max()) or 1.0
    solution = np.linalg.lstsq(matrix / [scale, scale, 1.0], (places**2).sum(axis=1), rcond=None)[0]
    offsets = places - solution[:2] / scale
    radii = np.linalg.norm(offsets, axis=1)
    if float(np.abs(radii - radii.mean()).max()) > _ROUND * radii.mean():
        return None
    return np.asarray(np.degrees(np.arctan2(offsets[:, 1], offsets[:, 0])) % 360.0)


def draw_lines(
    panel: Axes, times: Floats, values: npt.NDArray[Any], names: Sequence[str], quantity: tuple[str, str]
) -> None:
    """Draw a few records (series, times) of a quantity (name, SI unit) as lines with their names."""
    time_scale, time_unit = display_unit(float(np.abs(times).max(initial=0.0)), "s")
    scale, unit = display_unit(float(np.nanmax(np.abs(values), initial=0.0)), quantity[1])
    for number, (line, word) in enumerate(zip(values, names, strict=True)):
        panel.plot(time_scale * times, scale * line, color=COLORS[number % len(COLORS)], label=word)
    panel.set_xlabel(f"time ({time_unit})")
    panel.set_ylabel(f"{quantity[0]} ({unit})")


def draw_traces(
    panel: Axes, times: Floats, values: npt.NDArray[Any], axis: SensorAxis, quantity: tuple[str, str]
) -> tuple[ScalarMappable, str]:
    """Draw records (sensors, times) of a quantity (name, SI unit); return what the colour bar shows, and its label."""
    top, _ = color_top(values)
    scale, value_unit = display_unit(top, quantity[1])
    time_scale, time_unit = display_unit(float(np.abs(times).max(initial=0.0)), "s")
    low, cmap = (-top, "RdBu_r") if float(values.min(initial=0.0)) < 0 else (0.0, "viridis")
    mesh = panel.pcolormesh(
        times * time_scale,
        axis.positions,
        scale * np.asarray(values, np.float64)[axis.order],
        shading="nearest",
        rasterized=True,
        cmap=cmap,
        vmin=scale * low,
        vmax=scale * top,
    )
    panel.set_xlabel(f"time ({time_unit})")
    panel.set_ylabel(axis.label)
    return mesh, f"{quantity[0]} ({value_unit})"
