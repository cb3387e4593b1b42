# SPDX-License-Identifier: BSD-3-Clause
"""The default picture of a result: a field in a plane, with cells, and the records over time."""

from __future__ import annotations

import io
import math
import os
from typing import TYPE_CHECKING

from seiche.errors import CaseError
from seiche.report.display_units import display
from seiche.report.field_panel import PlaneField, draw_plane, draw_profile, plane_field
from seiche.report.record_panel import draw_record
from seiche.report.result_arrays import ResultArrays, is_at_nodes, is_field
from seiche.report.style import DOUBLE_COLUMN, new_figure, paper_style, store

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Fields that are drawn without a choice of the caller, and records; the first that exists.
_FIELDS = ("p_max_all", "image", "velocity", "pressure")
_RECORDS = ("flow_rate", "p", "receiver_vz", "receiver_vy", "receiver_vx", "receiver_p")
#: Other names of fields.
_OTHER_NAMES = {"speed": "velocity"}
#: Ratio of height and width below which records are drawn below a field and not beside it.
_WIDE = 0.62
#: Smallest width of a page, inches.
_NARROWEST = 2.8
#: Height of a panel of records, room for labels and for a colour bar, inches.
_RECORD_HEIGHT, _LABELS, _COLOR_BAR = 2.0, 0.7, 1.3


class ResultFigure:
    """A picture that notebooks display.

    Attributes:
        figure: the figure of Matplotlib.
    """

    def __init__(self, figure: Figure) -> None:
        """Show a figure."""
        self.figure = figure

    def __repr__(self) -> str:
        """Return title, quantities and size."""
        labels = [text for axes in self.figure.axes for text in (axes.get_title(), axes.get_ylabel()) if text]
        width, height = (25.4 * side for side in self.figure.get_size_inches())
        title = self.figure.get_suptitle()
        shown = "; ".join(filter(None, [title, *dict.fromkeys(labels)]))
        return f"<picture of {width:.0f} x {height:.0f} mm: {shown}; save(path) writes it>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture in the format of its suffix: PNG, PDF, SVG; CaseError if its folder does not exist."""
        store(self.figure, path)

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        self.figure.savefig(stream, format="png", dpi=150, facecolor="white")
        return stream.getvalue()


def result_figure(result: ResultArrays, name: str | None = None, *, decibels: float | None = None) -> ResultFigure:
    """Return a picture of the field `name`, by default of the speed or the pressure, and of the records over time.

    Three axes of a grid are cut in the plane across the shortest of them in which most values lie. At nodes of elements
    in three dimensions the top is drawn. Vectors are drawn by their magnitude, and "speed" is that of "velocity"; cells
    by their outlines in the plane. Lines separate media of different sound speed. With `decibels`, absolute values of a
    field on a grid are drawn in dB of their maximum, down to minus this number.

    Raises:
        CaseError: an unknown name, one of an array without positions, or a range in decibels that is not positive or
            not of a field on a grid.
    """
    if decibels is not None and not (isinstance(decibels, int | float) and 0.0 < decibels < math.inf):
        raise CaseError(f"plot: decibels = {decibels}: expected a positive number, the range below the maximum")
    fields = [key for key, item in result.arrays.items() if is_field(item)]
    records = [key for key, item in result.arrays.items() if "record_time" in item.dims and item.values.size > 1]
    if name is None:
        name = next((key for key in (*_FIELDS, *fields) if key in fields), None)
    elif name not in result.arrays:
        name = _OTHER_NAMES.get(name, name)
    if name is not None and name in records:
        if decibels is not None:
            raise CaseError(f"plot: decibels are for fields on a grid; {name} is a record")
        return _record_figure(result, name)
    if name is not None and name not in fields:
        known = f"it has {', '.join(fields) or 'none'}" + (f", and the records {', '.join(records)}" if records else "")
        raise CaseError(f"plot: {name!r} is not a field of this result; {known}")
    record = next((key for key in (*_RECORDS, *records) if key in records), None)
    if name is None and record is None:
        raise CaseError("plot: the result has no fields and no records")
    if name is None:
        assert record is not None
        return _record_figure(result, record)
    if decibels is not None and is_at_nodes(result.arrays[name]):
        raise CaseError(f"plot: decibels are for fields on a grid; {name} is at the nodes of elements")
    with paper_style():
        plane = plane_field(result, name, decibels)
        figure, field_panel, record_panel = _panels(plane, record is not None)
        figure.suptitle(f"{result.title}, {display(result.time, 's', digits=4)}")
        if plane.is_line:
            draw_profile(field_panel, plane)
        else:
            draw_plane(field_panel, result, plane)
        if record is not None and record_panel is not None:
            draw_record(record_panel, result, record)
    return ResultFigure(figure)


def _panels(plane: PlaneField, has_record: bool) -> tuple[Figure, Axes, Axes | None]:
    """Return a figure with the panel of the field, of the shape of the field, and that of records if there are any."""
    ratio = 0.5 if plane.is_line else plane.aspect
    width = DOUBLE_COLUMN
    if has_record and ratio < _WIDE:
        height = max((width - _COLOR_BAR) * ratio, 0.5) + _LABELS + 0.3
        figure = new_figure(width, height + _RECORD_HEIGHT)
        top, bottom = figure.subplots(2, 1, height_ratios=[height, _RECORD_HEIGHT])
        return figure, top, bottom
    if has_record:
        field_width = min(width / 2, 3.2 / ratio + _COLOR_BAR)
        height = min((field_width - _COLOR_BAR) * ratio + _LABELS + 0.3, 1.2 * width)
        figure = new_figure(width, max(height, 2.8))
        left, right = figure.subplots(1, 2, width_ratios=[field_width, width - field_width])
        return figure, left, right
    height = min((width - _COLOR_BAR) * ratio, 4.0)
    width = min(max(height / ratio + _COLOR_BAR + _LABELS, _NARROWEST), width)
    figure = new_figure(width, height + _LABELS + 0.3)
    figure.set_layout_engine("compressed")
    return figure, figure.add_subplot(), None


def _record_figure(result: ResultArrays, name: str) -> ResultFigure:
    with paper_style():
        figure = new_figure(DOUBLE_COLUMN, 4.2)
        figure.suptitle(f"{result.title}, {display(result.time, 's', digits=4)}")
        draw_record(figure.add_subplot(), result, name)
    return ResultFigure(figure)
