# SPDX-License-Identifier: BSD-3-Clause
"""Common style of figures: sizes for a two-column paper, fonts, colours, scale bars, small files."""

from __future__ import annotations

import io
import logging
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seiche.errors import CaseError
from seiche.io.files import check_output_folder, replacing
from seiche.report.page_size import current_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

#: Widths of a figure over two columns and one column, inches (180 mm and 88 mm).
DOUBLE_COLUMN = 7.09
SINGLE_COLUMN = 3.46

DOTS_PER_INCH = 300

#: Modules that a figure needs, which take half a second to import.
FIGURE_MODULES = (
    *("matplotlib.backends.backend_agg", "matplotlib.figure", "matplotlib.offsetbox", "matplotlib.ticker"),
    *("PIL.Image", "PIL.PngImagePlugin", "scipy.ndimage"),
)

#: Compression of PNG files: the highest levels take four times as long and save 1 %.
_PNG: dict[str, Any] = {"compress_level": 6}

#: Colours of Okabe and Ito, safe for colour blindness (https://jfly.uni-koeln.de/color/).
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")

_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica", "Arial", "Liberation Sans", "DejaVu Sans"],
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.2,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "mathtext.fontset": "dejavusans",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}


@contextmanager
def paper_style() -> Iterator[None]:
    """Use the style of this module inside the block, and restore the previous settings after it."""
    import matplotlib as mpl

    # Suppress warnings about fonts of the list that are not installed.
    fonts = logging.getLogger("matplotlib.font_manager")
    level = fonts.level
    fonts.setLevel(logging.ERROR)
    try:
        with mpl.rc_context(_STYLE):
            yield
    finally:
        fonts.setLevel(level)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure that needs no display, of `width` x `height` inches or of the size of `page`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=current_page().inches or (width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def picture_format(name: str) -> str:
    """Return the picture format for the suffix of `name`; PNG without a suffix.

    Raises:
        CaseError: the format is not supported.
    """
    from matplotlib.backend_bases import FigureCanvasBase

    suffix, supported = (
        Path(name).suffix.lstrip(".").lower() or "png",
        sorted(FigureCanvasBase.get_supported_filetypes()),
    )
    if suffix not in supported:
        raise CaseError(f"{name}: {suffix!r} is not a picture format; use one of {', '.join(supported)}")
    return suffix


def save(figure: Figure, file: Path, name: str, limit: int | None = None) -> None:
    """Write `figure` to `file` in the format of the suffix of `name`.

    A PNG of more than `limit` bytes is stored with 256 colours, which reduces its size to a third; not so if the user
    has requested a resolution with `page`.
    """
    requested = current_page().dpi
    dpi, limit = (DOTS_PER_INCH, limit) if requested is None else (requested, None)
    suffix = picture_format(name)
    stream = io.BytesIO()
    format_options: dict[str, Any] = {"pil_kwargs": _PNG} if suffix == "png" else {}
    figure.savefig(stream, format=suffix, dpi=dpi, facecolor="white", **format_options)
    if suffix == "png" and limit is not None and stream.tell() > limit:
        from PIL import Image

        stream.seek(0)
        reduced = Image.open(stream).convert("RGB").quantize(256, dither=Image.Dither.FLOYDSTEINBERG)
        stream = io.BytesIO()
        reduced.save(stream, format="png", dpi=(dpi, dpi), **_PNG)
    file.write_bytes(stream.getvalue())


def store(figure: Figure, path: str | os.PathLike[str], limit: int | None = None) -> None:
    """Write `figure` to `path` as `save` does; it replaces an existing file when it is complete.

    Raises CaseError if its folder does not exist or is not writable.
    """
    check_output_folder(path)
    with replacing(path) as temporary:
        save(figure, temporary, os.fspath(path), limit)


def color_bar(axes: Axes, colors: ScalarMappable, label: str, extend: str = "neither") -> None:
    """Draw the colour bar of `colors` at the right of `axes`."""
    bar = axes.inset_axes((1.05, 0.15, 0.05, 0.7))
    # The same width for vessels of all shapes.
    bar.set_box_aspect(20)
    bar.set_anchor("W")
    axes.figure.colorbar(colors, cax=bar, label=label, extend=extend)


def nice_length(max_length: float) -> float:
    """Return the largest of 1, 2, 5 times a power of ten up to `max_length` (> 0)."""
    power = 10.0 ** math.floor(math.log10(max_length))
    return max(step * power for step in (1.0, 2.0, 5.0) if step * power <= max_length * (1 + 1e-12))


def scale_bar(axes: Axes, width: float) -> None:
    """Draw a bar of a round number of millimetres, about a quarter of `width` (mm), in the lower left corner."""
    from matplotlib.offsetbox import AnchoredOffsetbox, AuxTransformBox, TextArea, VPacker
    from matplotlib.patches import Rectangle

    length = nice_length(0.25 * width)
    bar = AuxTransformBox(axes.transData)
    bar.add_artist(Rectangle((0, 0), length, 0.0, edgecolor="0.1", linewidth=1.6))
    text = TextArea(f"{length:g} mm", textprops={"size": 7})
    packed = VPacker(children=[bar, text], align="center", pad=0, sep=2)
    axes.add_artist(AnchoredOffsetbox("lower left", child=packed, frameon=False, pad=0.1, borderpad=0.1))
