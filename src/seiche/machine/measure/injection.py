# SPDX-License-Identifier: BSD-3-Clause
"""Injection of a node from timings of simultaneous senders (theory/movement, section 3)."""

from __future__ import annotations

from collections.abc import Sequence

from seiche.machine.laws import terms
from seiche.machine.laws.file import Injected, Measured
from seiche.machine.measure.messages import SENDER_GAP_SIZES
from seiche.observe.repeat import Timing

#: Minimum number of measurements, and of the largest message sizes, from which an injection rate is fitted.
_INJECTION_SIZES = 3


def injection_of(measured: Measured, rows: Sequence[tuple[int, int, Timing]]) -> Injected:
    """Return the rate of a node from large messages, and the latency of further senders from small ones, if present.

    Args:
        measured: a single message.
        rows: (senders, bytes of the message from each, timing).

    Raises:
        ValueError: too few measurements for a rate, or they show no limit.
    """
    small = [row for row in rows if row[1] in SENDER_GAP_SIZES]
    senders, sizes, timings = zip(*(row for row in rows if row not in small), strict=True)
    last_protocol, largest = measured.pieces[-1].begin, sorted(set(sizes))[-_INJECTION_SIZES:]
    rate, points = terms.injection_rate(
        senders,
        sizes,
        [timing.minimum for timing in timings],
        measured.curve,
        min_senders=min(terms.SATURATING_SENDERS, max(senders)),
        min_size=min(last_protocol, largest[0]),
    )
    if points < _INJECTION_SIZES:
        raise ValueError(f"only {points} of its measurements can be fitted; {_INJECTION_SIZES} are needed")
    gap = None
    if any(count > 1 for count, _, _ in small):
        few, bytes_of_each, times = zip(*small, strict=True)
        gap = terms.sender_gap(few, bytes_of_each, [timing.minimum for timing in times], measured.curve, rate)
    return Injected(
        path=measured.path, locality=measured.locality, rate=rate, senders=max(senders), points=points, gap=gap
    )
