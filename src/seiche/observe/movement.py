# SPDX-License-Identifier: BSD-3-Clause
"""Performance records of all ranks of a run: stages, messages, memory, efficiencies."""

from __future__ import annotations

import platform
import resource
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.observe.efficiency import (
    Efficiency,
    HostEfficiency,
    HybridEfficiency,
    efficiency,
    host_efficiency,
    hybrid_efficiency,
)
from seiche.observe.replay import ideal_seconds
from seiche.observe.sample import Activity, Sample
from seiche.observe.stage import Stage
from seiche.observe.timers import STORED_SAMPLES, StageTimers

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RankRecord:
    """Record of one rank: `stages` mean seconds per step, `sent` (peer, messages, bytes) per step, `memory` bytes."""

    host: str
    sites: int
    activity: Activity
    device_wait: float
    steps_seconds: float
    stages: dict[str, float]
    sent: tuple[tuple[int, float, float], ...]
    memory: int
    host_overhead: dict[str, float]
    set_up: dict[str, float]
    writing: dict[str, float]
    counters: dict[str, Any]
    samples: tuple[Sample, ...]


@dataclass(frozen=True)
class Movement:
    """Records of all ranks of a run of `elapsed` seconds; `on_device`: steps run on devices, not on the host."""

    ranks: Sequence[RankRecord]
    elapsed: float
    on_device: bool
    transport: str
    message_stages: tuple[str, ...]

    def tree(self) -> Efficiency | None:
        """Return the efficiencies of ranks, or of their devices; None if no step was timed.

        Samples of a run with interference can add up to more than the elapsed time; they are then scaled down.
        """
        useful, active = self._activity()
        if not useful.max() > 0 or not self.elapsed > 0:
            return None
        measured, ideal = ideal_seconds([record.samples for record in self.ranks])
        share = ideal / measured if measured > 0 else 1.0
        ideal_elapsed = min(float(active.max()), max(float(useful.max()), share * float(active.max())))
        return efficiency(useful, self.elapsed, ideal=ideal_elapsed, active=active)

    def _activity(self) -> tuple[FloatArray, FloatArray]:
        """Return useful and active seconds of the ranks or their devices, (ranks,), at most the elapsed time."""
        useful = np.array([record.activity.useful for record in self.ranks])
        active = np.array([record.activity.active for record in self.ranks])
        scale = min(1.0, self.elapsed / max(active.max(), 1e-300))
        return useful * scale, active * scale

    def _host_losses(self) -> tuple[FloatArray, FloatArray]:
        """Return seconds of the processes in messages and in waits for their devices, at most the elapsed time."""
        messages = np.array([record.activity.host_messages for record in self.ranks])
        waited = np.array([record.device_wait for record in self.ranks])
        scale = np.minimum(1.0, self.elapsed / np.maximum(messages + waited, 1e-300))
        return messages * scale, waited * scale

    def host(self) -> HostEfficiency | None:
        """Return the losses of the host processes, None if the steps run on the host."""
        if not self.on_device or not self.elapsed > 0:
            return None
        return host_efficiency(*self._host_losses(), self.elapsed, [record.host for record in self.ranks])

    def hybrid(self) -> HybridEfficiency | None:
        """Return the efficiencies of processes and devices together, None if the steps run on the host."""
        if not self.on_device or not self.elapsed > 0:
            return None
        messages, waited = self._host_losses()
        cpu = (self.elapsed - messages - waited).clip(min=0.0)
        return hybrid_efficiency(cpu, self._activity()[0], self.elapsed)

    def efficiencies(self) -> dict[str, Any]:
        """Return all efficiencies by the names of docs/reference/summary.md, empty if no step was timed."""
        tree, host = self.tree(), self.host()
        if tree is None:
            return {}
        groups = {"host": host, "hybrid": self.hybrid() if host is not None else None}
        return {**tree.as_dict(), **{name: group.as_dict() for name, group in groups.items() if group is not None}}

    def _counters(self) -> dict[str, Any]:
        """Return the counts of all ranks by name, or the first reason why a rank has none."""
        reasons = [record.counters["unavailable"] for record in self.ranks if "unavailable" in record.counters]
        return {"unavailable": reasons[0]} if reasons else _by_name([record.counters for record in self.ranks])

    def as_dict(self) -> dict[str, Any]:
        """Return the records as lists over ranks."""
        return {
            "transport": self.transport,
            "device": "gpu" if self.on_device else "cpu",
            "hosts": [record.host for record in self.ranks],
            "sites": [record.sites for record in self.ranks],
            "useful_s": [record.activity.useful for record in self.ranks],
            "active_s": [record.activity.active for record in self.ranks],
            "waited_s": [record.device_wait for record in self.ranks],
            "host_messages_s": [record.activity.host_messages for record in self.ranks],
            "steps_s": [record.steps_seconds for record in self.ranks],
            "memory_B": [record.memory for record in self.ranks],
            "stages": _by_name([record.stages for record in self.ranks]),
            "message_stages": list(self.message_stages),
            "host_overhead": _by_name([record.host_overhead for record in self.ranks]),
            "set_up": _by_name([record.set_up for record in self.ranks]),
            "writing": _by_name([record.writing for record in self.ranks]),
            "counters": self._counters(),
            "messages": [[source, *sent] for source, record in enumerate(self.ranks) for sent in record.sent],
        }


def _by_name(ranks: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """Return the values of all ranks by name; a missing value is 0."""
    names = dict.fromkeys(name for values in ranks for name in values)
    return {name: [values.get(name, 0.0) for values in ranks] for name in names}


def gather_movement(
    timers: StageTimers,
    phases: Sequence[Sequence[Stage]],
    world: World,
    *,
    weights: Sequence[float] | None = None,
    elapsed: float,
    on_device: bool,
    host_overhead: Mapping[str, float],
    transport: str,
    sites: int,
    set_up: Mapping[str, float] | None = None,
    writing: Mapping[str, float] | None = None,
    counters: Mapping[str, Any] | None = None,
) -> Movement | None:
    """Return the records of all ranks on rank 0, None elsewhere (collective).

    Args:
        timers: of this rank's steps.
        phases: the stages of each kind of step.
        world: the ranks.
        weights: relative frequency of each kind; by default they alternate.
        elapsed: wall seconds of this rank; the longest of all ranks counts.
        on_device: whether the steps run on a device while the host waits.
        host_overhead: seconds of the host between steps, by activity.
        transport: transport of the messages.
        sites: number of items of this rank.
        set_up: seconds of the stages of the set-up of this rank.
        writing: seconds in which this rank wrote to files, by output.
        counters: counts of the processor (`ProcessCounters.as_dict`).
    """
    times, frequency = timers.times(), stage_frequency(phases, weights)
    record = RankRecord(
        host=platform.node(),
        sites=sites,
        activity=timers.activity(),
        device_wait=timers.device_wait,
        steps_seconds=timers.seconds,
        stages={name: time.mean * frequency.get(name, 1.0) for name, time in times.items()},
        sent=messages_per_step(phases, weights),
        memory=peak_memory(),
        host_overhead=dict(host_overhead),
        set_up=dict(set_up or {}),
        writing=dict(writing or {}),
        counters=dict(counters or {}),
        samples=tuple(timers.samples)[-STORED_SAMPLES:],  # more samples are stored for a trace
    )
    max_elapsed = float(world.allreduce_max(np.array([elapsed]))[0])
    records = world.gather(record)
    if records is None:
        return None
    message_stages = dict.fromkeys(stage.name for stages in phases for stage in stages if not stage.useful)
    return Movement(records, max_elapsed, on_device, transport, tuple(message_stages))


def _fractions(phases: Sequence[Sequence[Stage]], weights: Sequence[float] | None) -> list[float]:
    """Return the fraction of steps of each kind."""
    weights = [1.0] * len(phases) if weights is None else weights
    total = sum(weights) or 1.0
    return [weight / total for weight in weights]


def stage_frequency(phases: Sequence[Sequence[Stage]], weights: Sequence[float] | None = None) -> dict[str, float]:
    """Return the fraction of steps that have each stage, by name, in the order of the steps.

    Args:
        phases: the stages of each kind of step.
        weights: relative frequency of each kind; by default they alternate.
    """
    frequency: dict[str, float] = {}
    for fraction, stages in zip(_fractions(phases, weights), phases, strict=True):
        for name in dict.fromkeys(stage.name for stage in stages):
            frequency[name] = frequency.get(name, 0.0) + fraction
    return frequency


def bytes_per_occurrence(phases: Sequence[Sequence[Stage]], weights: Sequence[float] | None = None) -> dict[str, float]:
    """Return the mean bytes of each stage per step that has it (arguments as in `stage_frequency`)."""
    totals: dict[str, float] = {}
    for fraction, stages in zip(_fractions(phases, weights), phases, strict=True):
        for stage in stages:
            totals[stage.name] = totals.get(stage.name, 0.0) + fraction * stage.bytes
    frequency = stage_frequency(phases, weights)
    return {name: size / frequency[name] if frequency[name] else 0.0 for name, size in totals.items()}


def messages_per_step(
    phases: Sequence[Sequence[Stage]], weights: Sequence[float] | None = None
) -> tuple[tuple[int, float, float], ...]:
    """Return mean (peer, messages, bytes) sent by this rank per step (arguments as in `stage_frequency`)."""
    count: dict[int, float] = {}
    size: dict[int, float] = {}
    for fraction, stages in zip(_fractions(phases, weights), phases, strict=True):
        for stage in stages:
            for peer, sent in stage.messages.sent if stage.messages is not None else ():
                if sent:
                    count[peer] = count.get(peer, 0.0) + fraction
                    size[peer] = size.get(peer, 0.0) + fraction * sent
    return tuple((peer, count[peer], size[peer]) for peer in sorted(count))


def peak_memory() -> int:
    """Return the peak resident memory of this process, bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)
