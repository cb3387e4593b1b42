# SPDX-License-Identifier: BSD-3-Clause
"""The figure of an ultrasound run: fields over the medium, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.report.style import DOUBLE_COLUMN, color_bar, new_figure, paper_style, save

#: Sound speeds that differ by less than this part are drawn as one medium.
_CONTRAST = 0.05


@dataclass(frozen=True, eq=False)
class Panel:
    """A field (1D or 2D, axes of `places` in m) with its title and the label of its colours."""

    title: str
    label: str
    values: npt.NDArray[Any]
    both_signs: bool = False


def middle_slice(values: npt.NDArray[Any], through: Sequence[int] | None = None) -> npt.NDArray[Any]:
    """Return a field of three axes in the plane of the first two, through the point `through` or the middle."""
    if values.ndim < 3:
        return values
    return np.asarray(values[:, :, values.shape[2] // 2 if through is None else through[2]])


def ultrasound_figure(
    path: Path,
    name: str,
    places: Sequence[npt.NDArray[np.float64]],
    panels: Sequence[Panel],
    *,
    sound_speed: npt.NDArray[Any] | None,
    title: str = "",
) -> None:
    """Draw the panels into `path` in the format of the suffix of `name`; contours show where the sound speed jumps.

    `places` are the coordinates (m) of the first axes, one or two of them.
    """
    with paper_style():
        count = len(panels)
        height = 2.6
        if len(places) == 2:
            width = 0.55 * DOUBLE_COLUMN / count  # of what is drawn, beside labels and colours
            height = min(8.0, width * float(np.ptp(places[1]) / np.ptp(places[0])) + (1.2 if title else 0.9))
        figure = new_figure(DOUBLE_COLUMN, height)
        if title:
            figure.suptitle(title)
        axes = figure.subplots(1, count, squeeze=False)[0]
        scaled = [1e3 * one for one in places]
        for one, panel in zip(axes, panels, strict=True):
            one.set_title(panel.title)
            one.set_xlabel("x (mm)")
            if len(scaled) == 1:
                one.plot(scaled[0], panel.values)
                one.set_ylabel(panel.label)
                continue
            one.set_ylabel("y (mm)")
            high = float(np.abs(panel.values).max()) or 1.0
            low = -high if panel.both_signs else float(panel.values.min())
            colors = one.pcolormesh(
                scaled[0],
                scaled[1],
                panel.values.T,
                cmap="RdBu_r" if panel.both_signs else "inferno",
                vmin=low,
                vmax=high,
                shading="nearest",
                rasterized=True,
            )
            if sound_speed is not None and np.ptp(sound_speed) > _CONTRAST * sound_speed.min():
                levels = np.linspace(sound_speed.min(), sound_speed.max(), 4)[1:-1]
                one.contour(scaled[0], scaled[1], sound_speed.T, levels=levels, colors="0.7", linewidths=0.5)
            one.set_aspect("equal")
            color_bar(one, colors, panel.label)
        save(figure, path, name)
