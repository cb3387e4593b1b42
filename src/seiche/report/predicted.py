# SPDX-License-Identifier: BSD-3-Clause
"""What a machine file says that the stages of a run should have taken, beside what they took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seiche.machine.laws.file import Machine, PathName
from seiche.machine.laws.models import Locality, roofline

#: The way of the machine file that each transport takes.
PATHS: dict[str, PathName] = {"host": "host", "device_mpi": "device_mpi", "nccl": "nccl", "peer": "peer_store"}


@dataclass(frozen=True)
class Compared:
    """Seconds a step of a stage, or of all messages: measured, and predicted (None: not known)."""

    name: str
    measured: float
    predicted: float | None
    why: str = ""

    @property
    def ratio(self) -> float | None:
        """Return measured over predicted."""
        return self.measured / self.predicted if self.predicted else None


def predicted_beside_measured(summary: Mapping[str, Any], machine: Machine) -> list[Compared]:
    """Return every stage with bytes as the memory's rate would have it (theory/movement, eq. 14), and the messages.

    Messages follow the fitted law of the transport's path and of the class of the two hosts (eq. 10).
    """
    movement = summary.get("movement") or {}
    useless = set(movement.get("not_useful", []))
    rows = [_of_memory(row, summary, machine) for row in summary["stages"] if row.get("mean") and row["bandwidth"]]
    rows = [row for row in rows if row.name not in useless]
    if movement.get("messages"):
        measured = max(map(sum, zip(*(movement["stages"][name] for name in useless), strict=True)))
        rows.append(_of_messages(measured, movement, machine))
    return rows


def memory_roof(summary: Mapping[str, Any], machine: Machine) -> tuple[float | None, float]:
    """Return the bytes a second of all ranks' memory and the seconds to start a kernel, as the machine file has them.

    Ranks of a host share its memory; every GPU has its own.
    """
    kind = "device" if (summary.get("movement") or {}).get("device") == "gpu" else "host"
    rate, launch = machine.memory.get(kind), machine.launch.get(kind)
    measured_on = machine.hardware.get("ranks")
    if rate is not None and kind == "device" and isinstance(measured_on, int) and measured_on > 0:
        rate *= summary["ranks"] / measured_on
    return rate, launch.kernel if launch is not None else 0.0


def _of_memory(row: Mapping[str, Any], summary: Mapping[str, Any], machine: Machine) -> Compared:
    rate, start = memory_roof(summary, machine)
    if rate is None:
        return Compared(row["name"], row["mean"], None, "the machine file has no memory of this kind")
    return Compared(row["name"], row["mean"], roofline(row["bandwidth"] * row["mean"], rate, start))


def _path_of(movement: Mapping[str, Any]) -> PathName | None:
    """Return the way of the machine file that the messages of a run took; transposes go by strategies."""
    transport, gpu = movement["transport"], movement.get("device") == "gpu"
    if transport == "mpi":
        return "device_mpi" if gpu else "host"
    if transport == "three-step" and not gpu:
        return "host"
    return PATHS.get(transport)


def _of_messages(measured: float, movement: Mapping[str, Any], machine: Machine) -> Compared:
    transport, path = movement["transport"], _path_of(movement)
    messages = machine.messages(path) if path is not None else None
    if messages is None:
        return Compared("messages", measured, None, f"the machine file has nothing of the transport {transport}")
    hosts = movement["hosts"]
    longest = 0.0
    for rank in range(len(hosts)):
        rows = [row for row in movement["messages"] if row[0] == rank]
        counts: dict[str, float] = {}
        for _, peer, count, _ in rows:
            kind: Locality = "on-node" if hosts[rank] == hosts[peer] else "off-node"
            if kind not in messages.curves:
                return Compared("messages", measured, None, f"the machine file has no {path} messages {kind}")
            counts[kind] = counts.get(kind, 0.0) + count
        size = sum(row[3] for row in rows) / max(1.0, sum(counts.values()))
        longest = max(longest, messages.seconds(counts, size, hosts.count(hosts[rank])))
    return Compared("messages", measured, longest)
