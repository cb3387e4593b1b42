# SPDX-License-Identifier: BSD-3-Clause
"""Fit T(s) = alpha + beta s to measured times, one pair of parameters for each protocol (theory/movement, section 2).

Times span decades, so residuals are relative: the largest sizes do not rule. Where a protocol ends is found by dynamic
programming; an information criterion says how many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.machine.laws.curve import Curve, Piece

Floats = npt.NDArray[np.float64]

#: The relative error of one measured minimum that the choice of the number of pieces assumes.
NOISE = 0.02
MOST_PIECES = 4
#: Two parameters and the place where the piece begins.
_PARAMETERS = 3
#: Refits behind an interval, and its level.
RESAMPLES, LEVEL = 400, 0.95
#: Spread of repetitions and distance of alpha from the smallest time that are worth a word.
_SPREAD, _DISTANCE = 0.10, 0.10
_FEW_POINTS = 4


def least_squares(sizes: npt.ArrayLike, seconds: npt.ArrayLike) -> tuple[float, float]:
    """Return (alpha, beta) that minimise sum (alpha + beta s - T)^2: the largest sizes rule.

    Raises:
        ValueError: fewer than two sizes.
    """
    s, t = _checked(sizes, seconds, 2)
    beta, alpha = np.polyfit(s, t, 1)
    return float(alpha), float(beta)


def relative_least_squares(sizes: npt.ArrayLike, seconds: npt.ArrayLike) -> tuple[float, float]:
    """Return (alpha, beta), both >= 0, that minimise sum ((alpha + beta s) / T - 1)^2 (eq. 2).

    One point fixes a rate alone: alpha = 0.

    Raises:
        ValueError: no size, or a time that is not positive.
    """
    alpha, beta = _relative(*_checked(sizes, seconds, 1))
    return float(alpha), float(beta)


def _checked(sizes: npt.ArrayLike, seconds: npt.ArrayLike, least: int) -> tuple[Floats, Floats]:
    s, t = np.asarray(sizes, np.float64), np.asarray(seconds, np.float64)
    if s.ndim != 1 or s.shape != t.shape or len(s) < least:
        raise ValueError(f"a fit needs at least {least} sizes with one time each, not {s.shape} and {t.shape}")
    if not np.all(np.isfinite(t)) or t.min() <= 0 or s.min() < 0 or np.any(np.diff(s) <= 0):
        raise ValueError("a fit needs ascending sizes >= 0 and times > 0")
    return s, t


def _relative(s: Floats, t: Floats) -> tuple[Any, Any]:
    """Solve for one or many rows of times (..., n); the constraints leave three candidates."""
    u, v = 1.0 / t, s / t
    uu, uv, vv = (u * u).sum(-1), (u * v).sum(-1), (v * v).sum(-1)
    us, vs = u.sum(-1), v.sum(-1)
    determinant = uu * vv - uv * uv
    # One size, or sizes so close that they tell no slope.
    flat = determinant <= 1e-14 * uu * vv
    safe = np.where(flat, 1.0, determinant)
    alpha, beta = (vv * us - uv * vs) / safe, (uu * vs - uv * us) / safe
    through_zero = flat & (vv > 0) | (alpha < 0)
    constant = ~through_zero & ((beta < 0) | flat)
    alpha = np.where(through_zero, 0.0, np.where(constant, us / uu, alpha))
    beta = np.where(through_zero, vs / np.where(vv > 0, vv, 1.0), np.where(constant, 0.0, beta))
    return alpha, beta


def segment(sizes: npt.ArrayLike, seconds: npt.ArrayLike, most: int = MOST_PIECES) -> list[int]:
    """Return the indices at which protocols begin; the first is 0 (eq. 3).

    A piece has at least two points, but the last may have one: a protocol that begins at the largest size measured.
    Of 1 ... `most` pieces, that number is taken for which sum of squared relative residuals / NOISE^2 + 3 pieces ln(n)
    is smallest.
    """
    s, t = _checked(sizes, seconds, 1)
    n = len(s)
    cost = np.full((n + 1, n + 1), np.inf)
    for begin in range(n):
        for end in range(begin + 2, n + 1):
            alpha, beta = _relative(s[begin:end], t[begin:end])
            cost[begin, end] = float(np.sum(((alpha + beta * s[begin:end]) / t[begin:end] - 1) ** 2))
    cost[n - 1, n] = 0.0
    best = np.full((most + 1, n + 1), np.inf)
    before = np.zeros((most + 1, n + 1), int)
    best[0, 0] = 0.0
    for pieces in range(1, most + 1):
        for end in range(1, n + 1):
            sums = best[pieces - 1, :end] + cost[:end, end]
            before[pieces, end] = int(np.argmin(sums))
            best[pieces, end] = sums[before[pieces, end]]
    penalty = _PARAMETERS * np.log(n) * np.arange(1, most + 1)
    pieces = 1 + int(np.argmin(best[1:, n] / NOISE**2 + penalty))
    begins, end = [], n
    while pieces:
        end = int(before[pieces, end])
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
    """Return the curve through measured minima.

    Args:
        sizes: (n,) bytes, ascending.
        seconds: (n,) the smallest time of each.
        cuts: sizes at which pieces begin, the first one left out; found automatically by default. With
            `relative=False` this is the fit of the paper of Bienz et al.
        relative: relative least squares with parameters >= 0, else plain least squares.
        seed: of the bootstrap.

    Raises:
        ValueError: fewer than two sizes, a time that is not positive, or an empty piece between two cuts.
    """
    s, t = _checked(sizes, seconds, 2)
    if cuts is None:
        begins = segment(s, t)
    else:
        begins = [0, *(int(np.searchsorted(s, cut)) for cut in cuts)]
    ends = [*begins[1:], len(s)]
    if any(begin >= end for begin, end in zip(begins, ends, strict=True)):
        raise ValueError(f"cuts {list(cuts or ())} leave a piece without sizes")
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
    """Return intervals of both parameters by refits to resampled relative residuals; None below three points."""
    n = len(s)
    if n <= 2:
        return None, None
    fitted = alpha + beta * s
    # Two parameters were spent: residuals are smaller than the noise by this factor.
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


def warnings_of(
    curve: Curve,
    sizes: npt.ArrayLike,
    seconds: npt.ArrayLike,
    *,
    memory_rate: float | None = None,
    spread: npt.ArrayLike | None = None,
    gap: float | None = None,
) -> list[str]:
    """Return what is impossible or doubtful in a fit, one line each.

    Args:
        curve: the fit.
        sizes: (n,) bytes.
        seconds: (n,) the minima that were fitted.
        memory_rate: bytes a second that no message can pass.
        spread: (n,) of the repetitions: median over minimum, less one.
        gap: seconds that each message after the first adds to the latency.
    """
    s, t = np.asarray(sizes, np.float64), np.asarray(seconds, np.float64)
    found: list[str] = []
    for piece in curve.pieces:
        inside = (s >= piece.begin) & (s <= piece.end)
        name = f"piece {piece.begin}..{piece.end} B"
        smallest = float(t[inside].min()) if inside.any() else np.inf
        if piece.beta < 0:
            found.append(f"{name}: beta = {piece.beta:.3g} s/B is negative: larger messages cannot be faster")
        elif piece.beta == 0:
            found.append(f"{name}: beta = 0: these sizes tell no rate")
        elif memory_rate is not None and piece.beta * memory_rate < 1:
            found.append(
                f"{name}: 1/beta = {1e-9 / piece.beta:.4g} GB/s is above the memory's {memory_rate * 1e-9:.4g} GB/s"
            )
        if piece.alpha < 0:
            found.append(f"{name}: alpha = {piece.alpha:.3g} s is negative")
        elif piece.alpha > smallest * (1 + _DISTANCE):
            found.append(f"{name}: alpha = {piece.alpha:.3g} s is above the smallest time measured, {smallest:.3g} s")
        first = piece is curve.pieces[0]
        if first and piece.alpha + piece.beta * float(s[0]) < smallest * (1 - _DISTANCE):
            found.append(f"{name}: alpha = {piece.alpha:.3g} s is below the smallest time measured, {smallest:.3g} s")
        if piece.points < _FEW_POINTS:
            found.append(f"{name}: {piece.points} points are few")
    if gap is not None and gap > t.min() * (1 + _DISTANCE):
        found.append(
            f"gap = {gap:.3g} s is above the smallest time measured, {t.min():.3g} s: messages wait for others"
        )
    if spread is not None:
        wide = np.asarray(spread, np.float64)
        if wide.size and wide.max() > _SPREAD:
            worst = int(np.argmax(wide))
            found.append(f"repetitions at {int(s[worst])} B spread by {wide[worst]:.0%}: the machine was not quiet")
    return found
