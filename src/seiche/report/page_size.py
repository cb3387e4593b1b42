# SPDX-License-Identifier: BSD-3-Clause
"""Resolution and size of pictures, as a user or a case requests them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from seiche.errors import CaseError

#: Limits of the resolution (dots per inch), of a side (mm), and of the pixels of a picture.
MIN_DPI, MAX_DPI = 30, 1200
MIN_SIDE, MAX_SIDE = 20.0, 1000.0
MAX_PIXELS = 100_000_000
_MM_PER_INCH = 25.4


@dataclass(frozen=True)
class PageSize:
    """Dots per inch, and width and height in mm; None is the default of the figure.

    Raises:
        CaseError: a value is outside its limits, or the picture would have too many pixels.
    """

    dpi: int | None = None
    size: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        """Check the limits."""
        if self.dpi is not None and not MIN_DPI <= self.dpi <= MAX_DPI:
            raise CaseError(f"dpi {self.dpi}: must be {MIN_DPI} to {MAX_DPI} dots per inch")
        if self.size is None:
            return
        if not all(MIN_SIDE <= side <= MAX_SIDE for side in self.size):
            raise CaseError(f"size {size_text(self.size)}: each side must be {MIN_SIDE:g} to {MAX_SIDE:g} mm")
        if self.dpi is not None:
            width, height = (side / _MM_PER_INCH * self.dpi for side in self.size)
            if width * height > MAX_PIXELS:
                raise CaseError(
                    f"size {size_text(self.size)} mm at {self.dpi} dpi: {width:.0f} x {height:.0f} pixels are too many;"
                    f" at most {MAX_PIXELS:,} in total"
                )

    @property
    def inches(self) -> tuple[float, float] | None:
        """Return width and height in inches."""
        return None if self.size is None else (self.size[0] / _MM_PER_INCH, self.size[1] / _MM_PER_INCH)


def size_text(size: tuple[float, float]) -> str:
    """Return a size as text that `parse_size` reads."""
    return f"{size[0]:g}x{size[1]:g}"


def parse_size(text: str) -> tuple[float, float]:
    """Return width and height (mm) of a text such as "180x100".

    Raises:
        CaseError: the text has another form.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*x\s*(\d+(?:\.\d+)?)\s*(?:mm)?\s*", text)
    if match is None:
        raise CaseError(f'size {text[:40]!r}: expected width x height in mm, such as "180x100"')
    return float(match[1]), float(match[2])


def page_of(dpi: int | None, size: str | None) -> PageSize:
    """Return the page of two options or keys; CaseError for values outside their limits."""
    return PageSize(dpi, None if size is None else parse_size(size))


_CURRENT: ContextVar[PageSize | None] = ContextVar("page_size", default=None)


@contextmanager
def page(requested: PageSize) -> Iterator[None]:
    """Draw the figures of the block with the requested resolution and size."""
    token = _CURRENT.set(requested)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_page() -> PageSize:
    """Return the page of the innermost block of `page`."""
    return _CURRENT.get() or PageSize()
