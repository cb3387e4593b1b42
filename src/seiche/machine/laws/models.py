# SPDX-License-Identifier: BSD-3-Clause
"""Cost models beyond a single message: many messages, shared networks, shared copy engines, staging.

Seconds, bytes, bytes per second. An empty message costs its latency.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from seiche.machine.laws.curve import Curve

#: Locality class of the two ends of a message: same NUMA node, same host, different hosts.
Locality: TypeAlias = Literal["on-socket", "on-node", "off-node"]
LOCALITIES: tuple[Locality, ...] = ("on-socket", "on-node", "off-node")
#: Serialised fraction of the start-up times of copies over one engine where none was measured: copies of 1 to 6
#: processes from a GPU of Summit (BenchPress, memcpy_mult, all sizes; theory/movement, eq. 9).
TYPICAL_SHARING = 0.58
#: Gap over latency of messages between host memories where no gap was measured: that of both machines without GPUs in
#: benchmarks/machines (theory/movement, section 3).
TYPICAL_GAP = 0.38


def max_rate(curve: Curve, size: float, senders: int, node_rate: float = math.inf) -> float:
    """Return the time of one message of `size` bytes while `senders` of a node send one each (eq. 4).

    The node injects at most `node_rate`; below this limit the postal model holds.
    """
    return many_messages(curve, size, 1, senders=senders, node_rate=node_rate)


def many_messages(
    curve: Curve, size: float, count: int, *, senders: int = 1, node_rate: float = math.inf, gap: float | None = None
) -> float:
    """Return the time of `count` messages of `size` bytes from each of `senders` processes of a node (eq. 5).

    `gap` is the additional latency of each message after the first; by default alpha (no overlap of latencies).
    """
    if count < 1:
        return 0.0
    piece = curve.piece(size)
    gap_seconds = piece.alpha if gap is None else gap
    transfer = count * size * max(piece.beta, senders / node_rate)
    return piece.alpha + (count - 1) * gap_seconds + transfer


def irregular(
    regular: float, receives: int, *, queue: float = 0.0, busiest_link: float = 0.0, contention: float = 0.0
) -> float:
    """Return `regular` plus queue search and contention on the busiest network link (eq. 6).

    Args:
        regular: seconds without these terms.
        receives: number of unmatched receives.
        queue: seconds per squared receive.
        busiest_link: bytes on that link, estimated as mean hops times bytes.
        contention: seconds per byte on that link.
    """
    return regular + queue * receives**2 + contention * busiest_link


def shared_copy(curve: Curve, size: float, copies: int, sigma: float = TYPICAL_SHARING) -> float:
    """Return the time in which `copies` processes copy `size` bytes together over one copy engine (eq. 9).

    The rate of the engine is shared; a fraction `sigma` of the start-up times is serialised.
    """
    piece = curve.piece(size)
    return piece.alpha * (1 + sigma * (copies - 1)) + piece.beta * size


def shared_round_trip(
    to_host: Curve, to_device: Curve, size: float, copies: int, *, sigma: float, between: float
) -> float:
    """Return the time in which `copies` processes copy `size` bytes to the host, communicate, and copy them back.

    Each process works independently of the others (eq. 13a). The last one starts its messages when all copies to the
    host are complete; by then the others have copied back. All start-up times share the engine.

    Args:
        to_host: copies to the host.
        to_device: copies to the device.
        size: bytes of all processes.
        copies: number of processes.
        sigma: serialised fraction of the start-up times.
        between: seconds of the messages of a process.
    """
    down, up = to_host.piece(size), to_device.piece(size)
    latency = down.alpha + up.alpha
    engine = copies * sigma * latency
    last_process = latency + (copies - 1) * sigma * max(down.alpha, up.alpha) + between
    return (down.beta + up.beta) * size + max(engine, last_process)


@dataclass(frozen=True)
class MessageModel:
    """Messages between processes, or between GPUs, by locality class.

    `node_rate` is the injection rate limit of a node, bytes per second; `gaps` are seconds by class. The gap of a class
    without one is alpha multiplied by `typical_gap`. `sender_gap` is the additional latency of an off-node message for
    each other process of the node that sends at the same time, seconds.
    """

    curves: Mapping[str, Curve]
    node_rate: float = math.inf
    gaps: Mapping[str, float] = field(default_factory=dict)
    typical_gap: float = 1.0
    sender_gap: float = 0.0

    def gap(self, name: str, size: float) -> float:
        """Return the additional latency of each message of `size` bytes after the first; at most alpha.

        Raises:
            KeyError: the class has no curve.
        """
        alpha = self.curves[name].piece(size).alpha
        return min(alpha, self.gaps.get(name, self.typical_gap * alpha))

    def node_share(self, name: str, senders: int) -> tuple[float, float]:
        """Return the additional latency of a message, s, and its least time per byte, s/B, with `senders` of a node."""
        return ((senders - 1) * self.sender_gap, senders / self.node_rate) if name == "off-node" else (0.0, 0.0)

    def empty_seconds(self, counts: Mapping[str, float], senders: int = 1) -> float:
        """Return the time of `counts` empty messages (by class, may be means) after others: a gap each.

        Raises:
            KeyError: a class with messages has no curve.
        """
        return sum(
            count * (self.gap(name, 0) + self.node_share(name, senders)[0]) for name, count in counts.items() if count
        )

    def seconds(self, counts: Mapping[str, float], size: float, senders: int = 1) -> float:
        """Return the time in which a process sends `counts` messages (by class, may be means) of `size` bytes (eq. 10).

        `senders` processes of the node send at the same time.

        Raises:
            KeyError: a class with messages has no curve.
        """
        total = 0.0
        for name, count in counts.items():
            if count <= 0:
                continue
            piece = self.curves[name].piece(size)
            total += min(count, 1.0) * piece.alpha + max(0.0, count - 1) * self.gap(name, size)
            latency, share = self.node_share(name, senders)
            total += count * (latency + size * max(piece.beta, share))
        return total


def direct_time(device: Curve, size: float, count: float) -> float:
    """Return the time of `count` messages sent directly from device memory."""
    return count * float(device.seconds(size))


def three_step_time(d2h: Curve, h2d: Curve, host: Curve, size: float, count: float, *, distinct: float = 1.0) -> float:
    """Return the time of `count` messages staged through the host (eq. 7); a fraction `distinct` is copied."""
    copied_bytes = distinct * count * size
    return float(d2h.seconds(copied_bytes)) + float(h2d.seconds(copied_bytes)) + count * float(host.seconds(size))


def crossover(
    device: Curve, d2h: Curve, h2d: Curve, host: Curve, size: float, *, distinct: float = 1.0
) -> float | None:
    """Return the number of messages of `size` bytes above which staging is faster, None if never (eq. 8).

    Copies use the parameters of the piece of `size`.
    """
    g, c, to_host, to_device = (curve.piece(size) for curve in (device, host, d2h, h2d))
    saving = (g.alpha - c.alpha) + (g.beta - c.beta - distinct * (to_host.beta + to_device.beta)) * size
    return (to_host.alpha + to_device.alpha) / saving if saving > 0 else None


def roofline(size: float, rate: float, launch_time: float = 0.0) -> float:
    """Return the time of a kernel that moves `size` bytes at `rate` bytes per second after `launch_time` s (eq. 15)."""
    return launch_time + size / rate
