# SPDX-License-Identifier: BSD-3-Clause
"""The postal model: time of a message or copy against its size, with one latency and rate per protocol."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Piece:
    """T = alpha + beta s for sizes from `begin` bytes; `end` is the largest size in its fit.

    alpha in seconds, beta in seconds per byte, with 95 % intervals (None for too few points).
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
    """Piecewise linear T(s) (theory/movement, eq. 1).

    A size belongs to the last piece that begins at or below it. The first and last piece extend to all smaller and
    larger sizes; an empty message therefore costs the first alpha.
    """

    pieces: tuple[Piece, ...]

    def __post_init__(self) -> None:
        """Raise ValueError if there is no piece, or if sizes do not ascend."""
        begins = [piece.begin for piece in self.pieces]
        if not begins or begins != sorted(set(begins)):
            raise ValueError(f"pieces of a curve begin at {begins}: expected ascending sizes")

    def piece(self, size: float) -> Piece:
        """Return the piece for a message of `size` bytes."""
        return next((piece for piece in reversed(self.pieces) if piece.begin <= size), self.pieces[0])

    def seconds(self, size: npt.ArrayLike) -> Any:
        """Return T(size) in seconds for one or many sizes in bytes."""
        sizes = np.asarray(size, np.float64)
        begins, alphas, betas = np.array([(piece.begin, piece.alpha, piece.beta) for piece in self.pieces]).T
        number = np.maximum(np.searchsorted(begins, sizes, side="right") - 1, 0)
        return alphas[number] + betas[number] * sizes

    def slower(self, factor: float) -> Curve:
        """Return the curve with every beta multiplied by `factor`."""
        return Curve(tuple(replace(piece, beta=factor * piece.beta) for piece in self.pieces))


def postal(alpha: float, beta: float) -> Curve:
    """Return the curve of one piece."""
    return Curve((Piece(0, 0, alpha, beta),))
