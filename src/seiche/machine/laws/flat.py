# SPDX-License-Identifier: BSD-3-Clause
"""Fits whose times do not grow with the size, as on a busy machine (theory/movement, section 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seiche.machine.laws.curve import Curve, Piece

if TYPE_CHECKING:
    from seiche.machine.laws.file import Machine

#: A fitted rate of this many times that of memory is not a rate of messages: their times do not grow with the size.
_MAX_MEMORY_RATES = 10.0
#: Fraction of a latency above which the time of the bytes at the rate of memory is not negligible.
_NOT_NEGLIGIBLE = 0.1


def flat_pieces(curve: Curve, memory_rate: float | None = None) -> list[Piece]:
    """Return the pieces whose times do not grow with the size although larger messages must take longer.

    A piece is flat if its rate is above ten times that of memory, or infinite. This matters in the last piece, from
    which larger sizes are extrapolated, and in a piece whose largest message takes more than a tenth of alpha at the
    rate of memory. Such times are those of a busy machine, or of too few sizes.

    Args:
        curve: the fit.
        memory_rate: upper limit of a message rate, bytes per second; without it only infinite rates count.
    """
    lowest = 0.0 if memory_rate is None else 1 / (_MAX_MEMORY_RATES * memory_rate)
    return [
        piece
        for piece in curve.pieces
        if piece.alpha > 0
        and 0 <= piece.beta <= lowest
        and (piece is curve.pieces[-1] or piece.end > _NOT_NEGLIGIBLE * piece.alpha * (memory_rate or np.inf))
    ]


def flat_lines(machine: Machine) -> list[str]:
    """Return a line for each flat piece of a machine file."""
    return [
        f"{path.path} {path.locality} takes {piece.alpha * 1e6:.3g} us for every size from {piece.begin} B on: "
        "its rate was not measured, so predictions for larger messages are too short"
        for path in machine.paths
        for piece in flat_pieces(path.curve, machine.memory_limit(path.path))
    ]
