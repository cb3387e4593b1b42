# SPDX-License-Identifier: BSD-3-Clause
"""Comparison of the stages of a run with predictions from a machine file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seiche.machine.laws.file import Machine, PathName
from seiche.machine.laws.models import Locality, roofline

#: Path in the machine file of each transport.
PATHS: dict[str, PathName] = {"host": "host", "device_mpi": "device_mpi", "nccl": "nccl", "peer": "peer_store"}
#: Messages that are joined by rank or by host travel between host memories.
PATHS |= {"two_step": "host", "three_step": "host"}


@dataclass(frozen=True)
class StageComparison:
    """Seconds per step of a stage, or of all messages: measured, and predicted (None if unknown)."""

    name: str
    measured: float
    predicted: float | None
    reason: str = ""

    @property
    def ratio(self) -> float | None:
        """Return measured over predicted."""
        return self.measured / self.predicted if self.predicted else None


def compare_with_prediction(summary: Mapping[str, Any], machine: Machine) -> list[StageComparison]:
    """Return the comparison of every stage with declared bytes (theory/movement, eq. 14), and of the messages.

    Messages follow the fitted model of the path of the transport and the locality of the hosts (eq. 10).
    """
    movement = summary.get("movement") or {}
    message_stages = set(movement.get("message_stages", []))
    rows = [
        _compare_memory_stage(row, summary, machine)
        for row in summary["stages"]
        if row.get("mean") and row["bandwidth"]
    ]
    rows = [row for row in rows if row.name not in message_stages]
    if movement.get("messages"):
        measured = max(map(sum, zip(*(movement["stages"][name] for name in message_stages), strict=True)))
        rows.append(_compare_messages(measured, movement, machine))
    return rows


def memory_roof(summary: Mapping[str, Any], machine: Machine) -> tuple[float | None, float]:
    """Return the memory bandwidth of all ranks (B/s) and the launch time of a kernel (s) from the machine file.

    Ranks of a host share its memory; GPUs have separate memories.
    """
    kind = "device" if (summary.get("movement") or {}).get("device") == "gpu" else "host"
    rate, launch = machine.memory.get(kind), machine.launch.get(kind)
    measured_ranks = machine.hardware.get("ranks")
    if rate is not None and kind == "device" and isinstance(measured_ranks, int) and measured_ranks > 0:
        rate *= summary["ranks"] / measured_ranks
    return rate, launch.kernel if launch is not None else 0.0


def _compare_memory_stage(row: Mapping[str, Any], summary: Mapping[str, Any], machine: Machine) -> StageComparison:
    rate, launch_time = memory_roof(summary, machine)
    if rate is None:
        return StageComparison(row["name"], row["mean"], None, "the machine file has no bandwidth for this memory")
    return StageComparison(row["name"], row["mean"], roofline(row["bandwidth"] * row["mean"], rate, launch_time))


def _path_of(movement: Mapping[str, Any]) -> PathName | None:
    """Return the path in the machine file of the messages of a run; transposes name a strategy."""
    transport, gpu = movement["transport"], movement.get("device") == "gpu"
    if transport == "mpi":
        return "device_mpi" if gpu else "host"
    if transport == "three-step" and not gpu:
        return "host"
    if transport == "peer" and not gpu:
        return "shared_exchange"
    # Of two transports, that between hosts.
    return PATHS.get(transport.rpartition("+")[2])


def _compare_messages(measured: float, movement: Mapping[str, Any], machine: Machine) -> StageComparison:
    transport, path = movement["transport"], _path_of(movement)
    messages = machine.messages(path) if path is not None else None
    if messages is None:
        return StageComparison("messages", measured, None, f"the machine file has no data for transport {transport}")
    hosts = movement["hosts"]
    max_seconds = 0.0
    for rank in range(len(hosts)):
        rows = [row for row in movement["messages"] if row[0] == rank]
        counts: dict[str, float] = {}
        for _, peer, count, _ in rows:
            locality: Locality = "on-node" if hosts[rank] == hosts[peer] else "off-node"
            if locality not in messages.curves:
                return StageComparison(
                    "messages", measured, None, f"the machine file has no {path} messages {locality}"
                )
            counts[locality] = counts.get(locality, 0.0) + count
        size = sum(row[3] for row in rows) / max(1.0, sum(counts.values()))
        max_seconds = max(max_seconds, messages.seconds(counts, size, hosts.count(hosts[rank])))
    return StageComparison("messages", measured, max_seconds)
