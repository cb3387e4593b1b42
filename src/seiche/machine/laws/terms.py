# SPDX-License-Identifier: BSD-3-Clause
"""Fit the terms beyond one message: injection rate, gap, queue search, contention and the sharing of a copy engine."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.machine.laws.curve import Curve, Piece

#: Fewer senders than this seldom fill a node.
SENDERS_THAT_FILL = 5


def injection_rate(
    senders: npt.ArrayLike,
    size: npt.ArrayLike,
    seconds: npt.ArrayLike,
    curve: Curve,
    *,
    total: npt.ArrayLike | None = None,
    least_senders: int = SENDERS_THAT_FILL,
    least_size: float = 0.0,
) -> tuple[float, int]:
    """Return (bytes a second that a node injects, measurements behind it), by 1/R = sum (T - a) S / sum S^2 (eq. 11).

    Args:
        senders: (n,) processes of the node that sent at once.
        size: (n,) bytes of one sender's message.
        seconds: (n,) time in which all arrived.
        curve: one message alone; a is the alpha of the piece that `size` belongs to.
        total: (n,) bytes of the node, senders * size by default.
        least_senders: measurements with fewer do not count.
        least_size: nor those of smaller messages.

    Raises:
        ValueError: no measurement is left, or they show no limit.
    """
    p, s, t = (np.asarray(values, np.float64) for values in (senders, size, seconds))
    whole = p * s if total is None else np.asarray(total, np.float64)
    used = (p >= least_senders) & (s >= least_size)
    if not used.any():
        raise ValueError(f"no measurement has {least_senders} senders of {least_size:g} B or more")
    alpha = np.array([curve.piece(value).alpha for value in s[used]])
    inverse = float(((t[used] - alpha) * whole[used]).sum() / (whole[used] ** 2).sum())
    if inverse <= 0:
        raise ValueError("the times are below the latency: no injection rate can be told from them")
    return 1.0 / inverse, int(used.sum())


def gap(counts: npt.ArrayLike, size: npt.ArrayLike, seconds: npt.ArrayLike, curve: Curve) -> float:
    """Return what each message after the first adds: the median of [T - a - n b s] / (n - 1), >= 0 (eq. 12).

    Args:
        counts: (n,) messages under way at once.
        size: (n,) bytes of each.
        seconds: (n,) until all have arrived.
        curve: one message alone.

    Raises:
        ValueError: no measurement has two messages.
    """
    n, s, t = _several(counts, size, seconds, "a gap needs measurements of at least two messages")
    pieces: list[Piece] = [curve.piece(value) for value in s]
    alpha, beta = (np.array([getattr(piece, name) for piece in pieces]) for name in ("alpha", "beta"))
    return max(0.0, float(np.median((t - alpha - n * beta * s) / (n - 1))))


def duplex(size: npt.ArrayLike, seconds: npt.ArrayLike, curve: Curve) -> float:
    """Return by how much messages slow down when both ends send at once: the median of T(both) / T(one), 1 to 8.

    Args:
        size: (n,) bytes of each message; large, so that latencies do not count.
        seconds: (n,) until both have arrived.
        curve: one message alone.
    """
    ratio = float(np.median(np.asarray(seconds, np.float64) / curve.seconds(size)))
    return min(8.0, max(1.0, ratio))


def queue(receives: npt.ArrayLike, excess: npt.ArrayLike) -> float:
    """Return gamma >= 0 of excess = gamma n^2 by least squares: seconds of queue search beyond the regular time."""
    return _proportion(np.asarray(receives, np.float64) ** 2, np.asarray(excess, np.float64))


def contention(link_bytes: npt.ArrayLike, excess: npt.ArrayLike) -> float:
    """Return delta >= 0 of excess = delta l by least squares: seconds a byte through the busiest link."""
    return _proportion(np.asarray(link_bytes, np.float64), np.asarray(excess, np.float64))


def engine_sharing(copies: npt.ArrayLike, size: npt.ArrayLike, seconds: npt.ArrayLike, curve: Curve) -> float:
    """Return sigma in [0, 1]: the part of a copy's start-up that queues when `copies` share an engine (eq. 9).

    Args:
        copies: (n,) processes that copied at once.
        size: (n,) bytes of all of them together.
        seconds: (n,) until the last was done.
        curve: one copy alone.

    Raises:
        ValueError: no measurement has two copies.
    """
    k, s, t = _several(copies, size, seconds, "sharing needs measurements of at least two copies at once")
    alpha = np.array([curve.piece(value).alpha for value in s])
    return min(1.0, _proportion(alpha * (k - 1), t - curve.seconds(s)))


def _proportion(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> float:
    return max(0.0, float((x * y).sum() / (x * x).sum()))


def _several(
    counts: npt.ArrayLike, size: npt.ArrayLike, seconds: npt.ArrayLike, refusal: str
) -> tuple[npt.NDArray[np.float64], ...]:
    """Return the measurements with counts of two or more; raise ValueError with `refusal` where there are none."""
    n, s, t = (np.asarray(values, np.float64) for values in (counts, size, seconds))
    several = n >= 2
    if not several.any():
        raise ValueError(refusal)
    return n[several], s[several], t[several]
