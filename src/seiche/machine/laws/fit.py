# SPDX-License-Identifier: BSD-3-Clause
"""Fit T(s) = alpha + beta s to measured times, one pair of parameters for each protocol (theory/movement, section 2).

Residuals are relative because times span decades; otherwise the largest sizes would dominate. Dynamic programming
finds the limits between protocols, an information criterion their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.machine.laws.curve import Curve, Piece
from seiche.machine.laws.flat import flat_pieces

Floats = npt.NDArray[np.float64]

#: Relative error of a measured minimum, assumed in the choice of the number of pieces.
NOISE = 0.02
MAX_PIECES = 4
#: Parameters of a piece: alpha, beta and its begin.
_PARAMETERS = 3
#: Bootstrap resamples of an interval, and its confidence level.
RESAMPLES, LEVEL = 400, 0.95
#: Warning thresholds: spread of repetitions, deviation of alpha from the smallest time, number of points.
_MAX_SPREAD, _MAX_DEVIATION = 0.10, 0.10
#: A message that takes this many times as long as a larger one was disturbed: no change of protocol has this effect.
_DISTURBANCE_FACTOR = 2.0
_MIN_POINTS = 4
#: Contribution of beta to a time, relative to alpha, that is a rounding error of the fit.
_ROUNDING = 1e-12


def least_squares(sizes: npt.ArrayLike, seconds: npt.ArrayLike) -> tuple[float, float]:
    """Return (alpha, beta) that minimise sum (alpha + beta s - T)^2; the largest sizes dominate.

    Raises:
        ValueError: fewer than two sizes.
    """
    s, t = _validated(sizes, seconds, 2)
    beta, alpha = np.polyfit(s, t, 1)
    return float(alpha), float(beta)


def relative_least_squares(sizes: npt.ArrayLike, seconds: npt.ArrayLike) -> tuple[float, float]:
    """Return (alpha, beta), both >= 0, that minimise sum ((alpha + beta s) / T - 1)^2 (eq. 2).

    One point gives a rate only: alpha = 0.

    Raises:
        ValueError: no size, or a nonpositive time.
    """
    alpha, beta = _relative(*_validated(sizes, seconds, 1))
    return float(alpha), float(beta)


def _validated(sizes: npt.ArrayLike, seconds: npt.ArrayLike, min_sizes: int) -> tuple[Floats, Floats]:
    s, t = np.asarray(sizes, np.float64), np.asarray(seconds, np.float64)
    if s.ndim != 1 or s.shape != t.shape or len(s) < min_sizes:
        raise ValueError(f"a fit requires at least {min_sizes} sizes with one time each, not {s.shape} and {t.shape}")
    if not np.all(np.isfinite(t)) or t.min() <= 0 or s.min() < 0 or np.any(np.diff(s) <= 0):
        raise ValueError("a fit requires ascending sizes >= 0 and times > 0")
    return s, t


def _relative(s: Floats, t: Floats) -> tuple[Any, Any]:
    """Solve for one or many rows of times (..., n): free, alpha = 0, or beta = 0."""
    u, v = 1.0 / t, s / t
    uu, uv, vv = (u * u).sum(-1), (u * v).sum(-1), (v * v).sum(-1)
    us, vs = u.sum(-1), v.sum(-1)
    determinant = uu * vv - uv * uv
    # One size, or sizes too close for a slope.
    singular = determinant <= 1e-14 * uu * vv
    divisor = np.where(singular, 1.0, determinant)
    alpha, beta = (vv * us - uv * vs) / divisor, (uu * vs - uv * us) / divisor
    through_zero = singular & (vv > 0) | (alpha < 0)
    constant = ~through_zero & ((beta * s.max() < _ROUNDING * alpha) | singular)
    alpha = np.where(through_zero, 0.0, np.where(constant, us / uu, alpha))
    beta = np.where(through_zero, vs / np.where(vv > 0, vv, 1.0), np.where(constant, 0.0, beta))
    return alpha, beta


def segment(sizes: npt.ArrayLike, seconds: npt.ArrayLike, max_pieces: int = MAX_PIECES) -> list[int]:
    """Return the indices at which protocols begin; the first is 0 (eq. 3).

    A piece has at least two points; only the last may have one (a protocol that begins at the largest size). The
    number of pieces, 1 ... `max_pieces`, minimises sum of squared relative residuals / NOISE^2 + 3 pieces ln(n).
    """
    s, t = _validated(sizes, seconds, 1)
    n = len(s)
    cost = np.full((n + 1, n + 1), np.inf)
    for begin in range(n):
        for end in range(begin + 2, n + 1):
            alpha, beta = _relative(s[begin:end], t[begin:end])
            cost[begin, end] = float(np.sum(((alpha + beta * s[begin:end]) / t[begin:end] - 1) ** 2))
    cost[n - 1, n] = 0.0
    best = np.full((max_pieces + 1, n + 1), np.inf)
    previous = np.zeros((max_pieces + 1, n + 1), int)
    best[0, 0] = 0.0
    for pieces in range(1, max_pieces + 1):
        for end in range(1, n + 1):
            sums = best[pieces - 1, :end] + cost[:end, end]
            previous[pieces, end] = int(np.argmin(sums))
            best[pieces, end] = sums[previous[pieces, end]]
    penalty = _PARAMETERS * np.log(n) * np.arange(1, max_pieces + 1)
    pieces = 1 + int(np.argmin(best[1:, n] / NOISE**2 + penalty))
    begins, end = [], n
    while pieces:
        end = int(previous[pieces, end])
        begins.append(end)
        pieces -= 1
    return begins[::-1]


def fit(
    sizes: npt.ArrayLike,
    seconds: npt.ArrayLike,
    *,
    cuts: Sequence[float] | None = None,
    relative: bool = True,
    seed: int = 1,
) -> Curve:
    """Return the curve fitted to measured minima.

    Args:
        sizes: (n,) bytes, ascending.
        seconds: (n,) the smallest time of each size.
        cuts: sizes at which pieces begin, without the first; automatic by default. With `relative=False` this is the
            fit of Bienz et al.
        relative: relative least squares with parameters >= 0, otherwise ordinary least squares.
        seed: seed of the bootstrap.

    Raises:
        ValueError: fewer than two sizes, a nonpositive time, or an empty piece between two cuts.
    """
    s, t = _validated(sizes, seconds, 2)
    begins = segment(s, t) if cuts is None else [0, *(int(np.searchsorted(s, cut)) for cut in cuts)]
    ends = [*begins[1:], len(s)]
    if any(begin >= end for begin, end in zip(begins, ends, strict=True)):
        raise ValueError(f"cuts {list(cuts or ())} produce a piece without sizes")
    random = np.random.default_rng(seed)
    pieces = []
    for begin, end in zip(begins, ends, strict=True):
        part_s, part_t = s[begin:end], t[begin:end]
        alpha, beta = (relative_least_squares if relative else least_squares)(part_s, part_t)
        intervals = _bootstrap(part_s, part_t, alpha, beta, random) if relative else (None, None)
        pieces.append(Piece(int(part_s[0]), int(part_s[-1]), alpha, beta, *intervals, points=end - begin))
    return Curve(tuple(pieces))


def _bootstrap(
    s: Floats, t: Floats, alpha: float, beta: float, random: np.random.Generator
) -> tuple[tuple[float, float] | None, tuple[float, float] | None]:
    """Return intervals of both parameters by bootstrap of the relative residuals; None below three points."""
    n = len(s)
    if n <= 2:
        return None, None
    fitted = alpha + beta * s
    # Corrected for the two fitted degrees of freedom.
    residual = (t / fitted - 1) * np.sqrt(n / (n - 2))
    times = fitted * (1 + residual[random.integers(0, n, (RESAMPLES, n))])
    alphas, betas = _relative(s, np.maximum(times, 1e-3 * fitted))
    tails = [50 * (1 - LEVEL), 50 * (1 + LEVEL)]
    (a_low, a_high), (b_low, b_high) = np.percentile(alphas, tails), np.percentile(betas, tails)
    return (float(a_low), float(a_high)), (float(b_low), float(b_high))


def errors(curve: Curve, sizes: npt.ArrayLike, seconds: npt.ArrayLike) -> Floats:
    """Return the relative error of the curve at each size (n,)."""
    t = np.asarray(seconds, np.float64)
    return np.asarray(np.abs(curve.seconds(np.asarray(sizes, np.float64)) / t - 1))


def without_disturbance(sizes: npt.ArrayLike, seconds: npt.ArrayLike) -> tuple[Floats, list[str]]:
    """Return times without those of a busy machine, and a line about them.

    No size takes longer than a larger one: each time is the shortest of its own and those of all larger sizes. A line
    says so if a time was above twice that.

    Args:
        sizes: (n,) bytes, ascending.
        seconds: (n,) minima of the repetitions.
    """
    s, t = np.asarray(sizes, np.int64), np.asarray(seconds, np.float64)
    lower_envelope = np.minimum.accumulate(t[::-1])[::-1]
    disturbed = t > _DISTURBANCE_FACTOR * lower_envelope
    if not disturbed.any():
        return lower_envelope, []
    ratio = t / lower_envelope
    row = int(np.argmax(ratio))
    line = (
        f"times at {int(disturbed.sum())} sizes were up to {ratio[row]:.3g} times those of larger ones "
        f"(at {int(s[row])} B), which replace them: the machine was busy; measure it when it is idle"
    )
    return lower_envelope, [line]


def warnings_of(
    curve: Curve,
    sizes: npt.ArrayLike,
    seconds: npt.ArrayLike,
    *,
    memory_rate: float | None = None,
    spread: npt.ArrayLike | None = None,
    gap: float | None = None,
) -> list[str]:
    """Return warnings about implausible values of a fit, one line each.

    Args:
        curve: the fit.
        sizes: (n,) bytes.
        seconds: (n,) the minima that were fitted.
        memory_rate: upper limit of a message rate, bytes per second.
        spread: (n,) relative spread of repetitions: median / minimum - 1.
        gap: additional latency of each message after the first, seconds.
    """
    s, t = np.asarray(sizes, np.float64), np.asarray(seconds, np.float64)
    flat = flat_pieces(curve, memory_rate)
    lines = [
        f"piece {piece.begin}..{piece.end} B is flat: {piece.alpha:.3g} s for every size, so larger messages take "
        "longer than predicted; measure it for longer, or when the machine is idle"
        for piece in flat
    ]
    for piece in curve.pieces:
        in_piece = (s >= piece.begin) & (s <= piece.end)
        name = f"piece {piece.begin}..{piece.end} B"
        min_time = float(t[in_piece].min()) if in_piece.any() else np.inf
        if piece.beta < 0:
            lines.append(f"{name}: beta = {piece.beta:.3g} s/B is negative, so larger messages would be faster")
        elif piece in flat:
            pass  # reported above
        elif piece.beta == 0:
            lines.append(f"{name}: beta = 0: no rate can be determined from these sizes")
        elif memory_rate is not None and piece.beta * memory_rate < 1:
            lines.append(
                f"{name}: 1/beta = {1e-9 / piece.beta:.4g} GB/s is above the memory rate, {memory_rate * 1e-9:.4g} GB/s"
            )
        if piece.alpha < 0:
            lines.append(f"{name}: alpha = {piece.alpha:.3g} s is negative")
        elif piece.alpha > min_time * (1 + _MAX_DEVIATION):
            lines.append(f"{name}: alpha = {piece.alpha:.3g} s is above the smallest time measured, {min_time:.3g} s")
        if piece is curve.pieces[0] and piece.alpha + piece.beta * float(s[0]) < min_time * (1 - _MAX_DEVIATION):
            lines.append(f"{name}: alpha = {piece.alpha:.3g} s is below the smallest time measured, {min_time:.3g} s")
        if piece.points < _MIN_POINTS:
            lines.append(f"{name}: only {piece.points} points")
    if gap is not None and gap > t.min() * (1 + _MAX_DEVIATION):
        lines.append(f"gap = {gap:.3g} s is above the smallest time measured, {t.min():.3g} s: messages are serialised")
    if spread is not None:
        spreads = np.asarray(spread, np.float64)
        if spreads.size and spreads.max() > _MAX_SPREAD:
            row = int(np.argmax(spreads))
            lines.append(
                f"repetitions at {int(s[row])} B vary by {spreads[row]:.0%}: other processes may have interfered"
            )
    return lines
