# SPDX-License-Identifier: BSD-3-Clause
"""The postal law: time of a message or copy over its size, one latency and one rate for each protocol."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Piece:
    """T = alpha + beta s for sizes from `begin` bytes on; `end` is the largest size it was fitted to.

    alpha in seconds, beta in seconds a byte; the intervals hold 95 %, None where there are too few points.
    """

    begin: int
    end: int
    alpha: float
    beta: float
    alpha_interval: tuple[float, float] | None = None
    beta_interval: tuple[float, float] | None = None
    points: int = 0


@dataclass(frozen=True)
class Curve:
    """T(s), piece by piece (theory/movement, eq. 1).

    A size belongs to the last piece that begins at or below it, sizes below the first piece to the first: a message of
    no bytes costs the first alpha. Above the last size measured the last piece goes on.
    """

    pieces: tuple[Piece, ...]

    def __post_init__(self) -> None:
        """Check that there are pieces, in order.

        Raises:
            ValueError: none, or their sizes do not ascend.
        """
        begins = [piece.begin for piece in self.pieces]
        if not begins or begins != sorted(set(begins)):
            raise ValueError(f"pieces of a curve begin at {begins}: need ascending sizes")

    def piece(self, size: float) -> Piece:
        """Return the piece that a message of `size` bytes belongs to."""
        found = self.pieces[0]
        for piece in self.pieces:
            if piece.begin <= size:
                found = piece
        return found

    def seconds(self, size: npt.ArrayLike) -> Any:
        """Return T(size) in seconds for a size or an array of sizes in bytes."""
        sizes = np.asarray(size, np.float64)
        number = np.searchsorted([piece.begin for piece in self.pieces], sizes, side="right") - 1
        number = np.maximum(number, 0)
        alpha = np.array([piece.alpha for piece in self.pieces])[number]
        beta = np.array([piece.beta for piece in self.pieces])[number]
        return alpha + beta * sizes

    def slower(self, factor: float) -> Curve:
        """Return the curve with every beta multiplied."""
        return Curve(tuple(replace(piece, beta=factor * piece.beta) for piece in self.pieces))


def postal(alpha: float, beta: float) -> Curve:
    """Return the curve of one piece."""
    return Curve((Piece(0, 0, alpha, beta),))
