# SPDX-License-Identifier: BSD-3-Clause
"""Predicted times of an Alltoall or Alltoallv between GPUs by strategy.

The models assume direct exchange (theory/movement, section 4); libraries with other algorithms for tiny messages are
faster. Strategies move at least one byte per process: compare Alltoall from `processes` bytes per message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from seiche.machine.laws.curve import Curve
from seiche.machine.laws.models import TYPICAL_SHARING, MessageModel, shared_round_trip

Strategy: TypeAlias = Literal["device", "three-step", "extra-message", "duplicate-pointer"]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Topology:
    """`nodes` with `gpus` GPUs on `sockets` each; `processes` host processes serve each GPU."""

    nodes: int
    gpus: int
    sockets: int = 2
    processes: int = 1

    @property
    def size(self) -> int:
        """Return the total number of GPUs."""
        return self.nodes * self.gpus

    def counts(self) -> dict[str, float]:
        """Return the number of messages from one GPU to all others by locality class."""
        per_socket = self.gpus / self.sockets
        return {
            "on-socket": max(0.0, per_socket - 1),
            "on-node": self.gpus - max(1.0, per_socket),
            "off-node": float((self.nodes - 1) * self.gpus),
        }


@dataclass(frozen=True)
class Paths:
    """Models that strategies use: messages between host processes and between GPUs, and copies between them.

    `sigma` is the fraction of the start-up time of a copy that is serialised on a shared copy engine.
    """

    host: MessageModel
    device: MessageModel | None = None
    d2h: Curve | None = None
    h2d: Curve | None = None
    sigma: float = TYPICAL_SHARING


def exchange_time(
    strategy: Strategy,
    paths: Paths,
    layout: Topology,
    size: float,
    *,
    whole_messages: bool = False,
    empty_messages: bool = False,
) -> float:
    """Return the time of an exchange in which every GPU sends `size` bytes to each other one (eq. 13).

    Helper processes transfer `whole_messages` (Alltoallv) or a part of each (Alltoall). Empty exchanges take no time.
    With `empty_messages` the library also exchanges the empty messages of an Alltoallv, each for the gap.

    Raises:
        ValueError: a path of the strategy is missing.
    """
    if size <= 0 or layout.size < 2:
        return 0.0
    counts, k = layout.counts(), layout.processes
    if strategy == "device":
        return _required(paths.device, strategy, "messages between GPUs").seconds(counts, size, layout.gpus)
    to_host = _required(paths.d2h, strategy, "copies to the host")
    to_device = _required(paths.h2d, strategy, "copies to the device")
    array_bytes = layout.size * size
    if strategy == "three-step":
        staged = paths.host.seconds(counts, size, layout.gpus)
        return float(to_host.seconds(array_bytes)) + staged + float(to_device.seconds(array_bytes))
    helper_counts = {name: count / k for name, count in counts.items()} if whole_messages else counts
    among_helpers = paths.host.seconds(helper_counts, size if whole_messages else size / k, layout.gpus * k)
    if whole_messages and empty_messages:
        empty = {name: (1 - 1 / k) * count for name, count in counts.items()}
        among_helpers += paths.host.empty_seconds(empty, layout.gpus * k)
    if strategy == "extra-message":
        scatter_gather = 2 * (k - 1) * float(paths.host.curves["on-socket"].seconds(array_bytes / k))
        return (
            float(to_host.seconds(array_bytes)) + scatter_gather + among_helpers + float(to_device.seconds(array_bytes))
        )
    return shared_round_trip(to_host, to_device, array_bytes, k, sigma=paths.sigma, between=among_helpers)


def _required(value: _T | None, strategy: str, description: str) -> _T:
    if value is None:
        raise ValueError(f"strategy {strategy!r} cannot be predicted without {description}")
    return value
