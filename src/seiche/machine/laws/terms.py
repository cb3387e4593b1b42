# SPDX-License-Identifier: BSD-3-Clause
"""Fits of injection rate, gap, queue search, contention and copy-engine sharing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.machine.laws.curve import Curve, Piece

#: Fewer senders rarely saturate a node.
SATURATING_SENDERS = 5


def injection_rate(
    senders: npt.ArrayLike,
    size: npt.ArrayLike,
    seconds: npt.ArrayLike,
    curve: Curve,
    *,
    total: npt.ArrayLike | None = None,
    min_senders: int = SATURATING_SENDERS,
    min_size: float = 0.0,
) -> tuple[float, int]:
    """Return (injection rate of a node, B/s; number of measurements), by 1/R = sum (T - a) S / sum S^2 (eq. 11).

    Args:
        senders: (n,) simultaneous senders of the node.
        size: (n,) bytes of the message from one sender.
        seconds: (n,) time until all messages have arrived.
        curve: a single message; a is the alpha of the piece of `size`.
        total: (n,) bytes of the node, senders * size by default.
        min_senders: measurements with fewer senders are ignored.
        min_size: measurements with smaller messages are ignored.

    Raises:
        ValueError: no measurement remains, or the measurements show no limit.
    """
    p, s, t = (np.asarray(values, np.float64) for values in (senders, size, seconds))
    node_bytes = p * s if total is None else np.asarray(total, np.float64)
    is_used = (p >= min_senders) & (s >= min_size)
    if not is_used.any():
        raise ValueError(f"no measurement has {min_senders} senders of {min_size:g} B or more")
    alpha = np.array([curve.piece(value).alpha for value in s[is_used]])
    inverse = float(((t[is_used] - alpha) * node_bytes[is_used]).sum() / (node_bytes[is_used] ** 2).sum())
    if inverse <= 0:
        raise ValueError("the times are below the latency, so no injection rate can be fitted")
    return 1.0 / inverse, int(is_used.sum())


def sender_gap(
    senders: npt.ArrayLike, size: npt.ArrayLike, seconds: npt.ArrayLike, curve: Curve, node_rate: float = np.inf
) -> float:
    """Return the latency that each sender of a node adds to messages of the others, seconds, >= 0 (eq. 32).

    Args:
        senders: (n,) simultaneous senders of the node; each size is also measured with one.
        size: (n,) bytes of the message from one sender; small, so that latency dominates.
        seconds: (n,) time until all messages have arrived.
        curve: a single message.
        node_rate: injection rate of a node, B/s.

    Raises:
        ValueError: no measurement has two senders, or a size was not measured with one sender.
    """
    single = {s: t for p, s, t in zip(*map(np.ravel, (senders, size, seconds)), strict=True) if p == 1}
    p, s, t = _with_several(senders, size, seconds, "the latency of further senders requires at least two of them")
    if missing := sorted(set(s) - set(single)):
        raise ValueError(f"messages of {missing[0]:g} B were not measured with one sender")
    beta = np.array([curve.piece(value).beta for value in s])
    rate_limited = s * np.maximum(0.0, p / node_rate - beta)
    excess = t - np.array([single[value] for value in s]) - rate_limited
    return max(0.0, float(np.median(excess / (p - 1))))


def gap(counts: npt.ArrayLike, size: npt.ArrayLike, seconds: npt.ArrayLike, curve: Curve) -> float:
    """Return the gap, the cost of each message after the first: median of [T - a - n b s] / (n - 1), >= 0 (eq. 12).

    Args:
        counts: (n,) simultaneous messages.
        size: (n,) bytes of each message.
        seconds: (n,) time until all have arrived.
        curve: a single message.

    Raises:
        ValueError: no measurement has two messages.
    """
    n, s, t = _with_several(counts, size, seconds, "a gap requires measurements of at least two messages")
    pieces: list[Piece] = [curve.piece(value) for value in s]
    alpha, beta = (np.array([getattr(piece, name) for piece in pieces]) for name in ("alpha", "beta"))
    return max(0.0, float(np.median((t - alpha - n * beta * s) / (n - 1))))


def duplex(size: npt.ArrayLike, seconds: npt.ArrayLike, curve: Curve) -> float:
    """Return the slowdown of simultaneous messages in both directions: median of T(both) / T(one), 1 to 8.

    Args:
        size: (n,) bytes of each message; large, to make latency negligible.
        seconds: (n,) time until both have arrived.
        curve: a single message.
    """
    ratio = float(np.median(np.asarray(seconds, np.float64) / curve.seconds(size)))
    return min(8.0, max(1.0, ratio))


def queue(receives: npt.ArrayLike, excess: npt.ArrayLike) -> float:
    """Return gamma >= 0 of excess = gamma n^2 by least squares: queue search time in seconds."""
    return _proportion(np.asarray(receives, np.float64) ** 2, np.asarray(excess, np.float64))


def contention(link_bytes: npt.ArrayLike, excess: npt.ArrayLike) -> float:
    """Return delta >= 0 of excess = delta l by least squares: seconds per byte on the busiest link."""
    return _proportion(np.asarray(link_bytes, np.float64), np.asarray(excess, np.float64))


def engine_sharing(copies: npt.ArrayLike, size: npt.ArrayLike, seconds: npt.ArrayLike, curve: Curve) -> float:
    """Return sigma in [0, 1]: the serialised fraction of the start-up of `copies` on one engine (eq. 9).

    Args:
        copies: (n,) simultaneous copies.
        size: (n,) bytes of all copies together.
        seconds: (n,) time until the last is complete.
        curve: a single copy.

    Raises:
        ValueError: no measurement has two copies.
    """
    k, s, t = _with_several(copies, size, seconds, "sharing requires measurements of at least two simultaneous copies")
    alpha = np.array([curve.piece(value).alpha for value in s])
    return min(1.0, _proportion(alpha * (k - 1), t - curve.seconds(s)))


def _proportion(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> float:
    return max(0.0, float((x * y).sum() / (x * x).sum()))


def _with_several(
    counts: npt.ArrayLike, size: npt.ArrayLike, seconds: npt.ArrayLike, error_text: str
) -> tuple[npt.NDArray[np.float64], ...]:
    """Return the measurements with counts >= 2; raise ValueError with text `error_text` if there are none."""
    n, s, t = (np.asarray(values, np.float64) for values in (counts, size, seconds))
    is_selected = n >= 2
    if not is_selected.any():
        raise ValueError(error_text)
    return n[is_selected], s[is_selected], t[is_selected]
