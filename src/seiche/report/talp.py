# SPDX-License-Identifier: BSD-3-Clause
"""Stages of a run as JSON with the keys of TALP, for tools that read its files (DLB 3.6, https://pm.bsc.es/dlb).

A region is the whole run ("Global"), the set-up, or a stage. Times are in nanoseconds; those of processes are summed
over their threads, which share the work of each stage.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import seiche
from seiche.errors import CaseError
from seiche.io import files
from seiche.observe.efficiency import host_efficiency
from seiche.report.processor import counts_of

#: Version of the format, and the beginning of every file; only files that begin with it are replaced.
VERSION = "3.6"
_FIRST_CHARACTERS = f'{{\n  "dlbVersion": "{VERSION}",\n  "writtenBy": "seiche'

Json = dict[str, Any]


def talp_content(summary: Mapping[str, Any]) -> Json:
    """Return the content of the file from that of a `summary.json`.

    Raises:
        CaseError: no step of the run was timed.
    """
    movement, tree = summary.get("movement") or {}, summary.get("efficiency") or {}
    if "parallel" not in tree:
        raise CaseError("report: --talp: no step of this run was timed")
    run = _Regions(summary, movement)
    on_gpu = movement.get("device") == "gpu"
    elapsed, messages = float(tree["elapsed_s"]), movement.get("host_messages_s") or [0.0] * run.ranks
    waited = movement["waited_s"] if on_gpu else [0.0] * run.ranks
    useful = [max(0.0, elapsed - m - w) for m, w in zip(messages, waited, strict=True)]
    run.add("Global", elapsed, movement["useful_s"] if not on_gpu else useful, messages, waited)
    run.regions["Global"] |= _gpu(tree, movement, run.ranks) if on_gpu else {}
    if (counts := counts_of(movement)) is not None:
        run.regions["Global"] |= {"cycles": round(counts.cycles), "instructions": round(counts.instructions)}
    run.regions["Global"]["numMpiCalls"] = round(sum(row[2] for row in movement["messages"]) * summary["steps"])
    set_up = [sum(times) for times in zip(*(movement.get("set_up") or {}).values(), strict=True)]
    if set_up:
        run.add("set-up", max(set_up), set_up, [0.0] * run.ranks, [0.0] * run.ranks)
    for name, seconds in movement["stages"].items():
        total = [value * summary["steps"] for value in seconds]
        nothing = [0.0] * run.ranks
        computes = name not in movement.get("message_stages", ())
        useful, messages = (total, nothing) if computes else (nothing, total)
        run.add(name, max(total), useful, messages, nothing)
    return {
        "dlbVersion": VERSION,
        "writtenBy": f"seiche {seiche.__version__}",
        "timestamp": summary["date"],
        "resources": {"numCpus": run.ranks * run.threads, "numNodes": run.nodes, "numMpiRanks": run.ranks},
        "Application": run.regions,
        "Process": run.processes,
    }


def write_talp(path: str | os.PathLike[str], summary: Mapping[str, Any]) -> None:
    """Write the content of `summary` to `path`; it replaces an existing file of this kind when it is complete.

    Raises:
        CaseError: the existing file is another one, or no step was timed.
        OSError: the file cannot be written.
    """
    message = f"{path} exists and is not a TALP file of Seiche; choose another file with --talp"
    files.check_replaceable(path, _FIRST_CHARACTERS, f"cannot write {path}", message)
    text = json.dumps(talp_content(summary), indent=2) + "\n"
    with files.replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


class _Regions:
    """Regions of a run by name, of all processes together and of each."""

    def __init__(self, summary: Mapping[str, Any], movement: Mapping[str, Any]) -> None:
        self.ranks, self.threads = int(summary["ranks"]), max(1, int(summary["threads"]))
        self.hosts = list(movement["hosts"])
        self._node_of = {host: number for number, host in enumerate(dict.fromkeys(self.hosts))}
        self.nodes = len(self._node_of)
        self.regions: dict[str, Json] = {}
        self.processes: dict[str, list[Json]] = {}

    def add(
        self,
        name: str,
        elapsed: float,
        useful: Sequence[float],
        messages: Sequence[float],
        waited: Sequence[float],
    ) -> None:
        """Add a region of `elapsed` seconds from seconds of each process."""
        # What a process does not spend usefully or waiting for its device, it waits for others (TALP's MPI time).
        outside = [max(0.0, elapsed - u - w) for u, w in zip(useful, waited, strict=True)]
        lost = [min(w, elapsed - m) for w, m in zip(waited, outside, strict=True)]
        host = host_efficiency(outside, lost, elapsed, self.hosts).as_dict() if elapsed > 0 else {}
        cpus = self.ranks * self.threads
        common = {"avgCpus": float(cpus), "cycles": 0, "instructions": 0, "numMeasurements": 1, "numMpiCalls": 0}
        common |= {"numOmpParallels": 0, "numOmpTasks": 0, "numGpuCalls": 0}
        self.regions[name] = {
            "numCpus": cpus,
            "numMpiRanks": self.ranks,
            "numNodes": self.nodes,
            "numGpus": 0,
            **common,
            "elapsedTime": _ns(elapsed),
            "usefulTime": _ns(sum(useful) * self.threads),
            "mpiTime": _ns(sum(messages) * self.threads),
            "gpuRuntimeTime": _ns(sum(waited)),
            "parallelEfficiency": host.get("parallel", 0.0),
            "mpiParallelEfficiency": host.get("load_balance", 0.0) * host.get("communication", 0.0),
            "mpiCommunicationEfficiency": host.get("communication", 0.0),
            "mpiLoadBalance": host.get("load_balance", 0.0),
            "mpiLoadBalanceIn": host.get("inside_nodes", 0.0),
            "mpiLoadBalanceOut": host.get("between_nodes", 0.0),
            "deviceOffloadEfficiency": host.get("offload", 0.0),
        }
        self.processes[name] = [
            {
                "rank": rank,
                "nodeId": self._node_of[self.hosts[rank]],
                "hostname": self.hosts[rank],
                "numCpus": self.threads,
                **{**common, "avgCpus": float(self.threads)},
                "elapsedTime": _ns(elapsed),
                "usefulTime": _ns(useful[rank] * self.threads),
                "mpiTime": _ns(messages[rank] * self.threads),
                "gpuRuntimeTime": _ns(waited[rank]),
            }
            for rank in range(self.ranks)
        ]


def _gpu(tree: Mapping[str, Any], movement: Mapping[str, Any], gpus: int) -> Json:
    """Return the values of the devices for the whole run."""
    useful, active = movement["useful_s"], movement["active_s"]
    return {
        "numGpus": gpus,
        "gpuUsefulTime": _ns(sum(useful)),
        "gpuCommunicationTime": _ns(sum(active) - sum(useful)),
        "maxGpuUsefulTime": _ns(max(useful)),
        "maxGpuActiveTime": _ns(max(active)),
        "gpuParallelEfficiency": tree["parallel"],
        "gpuLoadBalance": tree["load_balance"],
        "gpuCommunicationEfficiency": tree["device"],
        "gpuOrchestrationEfficiency": tree["orchestration"],
    }


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
