# SPDX-License-Identifier: BSD-3-Clause
"""What all ranks of a run did with their time, brought together: stages, messages, memory, efficiencies."""

from __future__ import annotations

import platform
import resource
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seiche.domain.world import World
from seiche.observe.efficiency import Efficiency, HostEfficiency, efficiency, host_efficiency
from seiche.observe.replay import ideal_seconds
from seiche.observe.sample import Activity, Sample
from seiche.observe.stage import Stage
from seiche.observe.timers import SAMPLES_KEPT, StageTimers


@dataclass(frozen=True)
class RankRecord:
    """What one rank tells: `stages` mean seconds a step, `sent` (peer, messages, bytes) a step, `memory` bytes."""

    host: str
    sites: int
    activity: Activity
    waited: float
    steps_seconds: float
    stages: dict[str, float]
    sent: tuple[tuple[int, float, float], ...]
    memory: int
    beside: dict[str, float]
    samples: tuple[Sample, ...]


@dataclass(frozen=True)
class Movement:
    """The records of all ranks of a run of `elapsed` seconds, on devices of their own (`on_device`) or not."""

    ranks: Sequence[RankRecord]
    elapsed: float
    on_device: bool
    transport: str
    useless: tuple[str, ...]

    def tree(self) -> Efficiency | None:
        """Return the efficiencies of ranks, or of their devices; None if no step was timed.

        Samples of a run that other work disturbs can tell of more time than there was: they are then scaled to fit.
        """
        useful = np.array([record.activity.useful for record in self.ranks])
        active = np.array([record.activity.active for record in self.ranks])
        if not useful.max() > 0 or not self.elapsed > 0:
            return None
        fit = min(1.0, self.elapsed / active.max())
        useful, active = useful * fit, active * fit
        taken, ideal = ideal_seconds([record.samples for record in self.ranks])
        share = ideal / taken if taken > 0 else 1.0
        reached = min(float(active.max()), max(float(useful.max()), share * float(active.max())))
        return efficiency(useful, self.elapsed, ideal=reached, active=active)

    def host(self) -> HostEfficiency | None:
        """Return what the host processes lost, None if they are the devices themselves."""
        if not self.on_device or not self.elapsed > 0:
            return None
        messages = np.array([record.activity.host_messages for record in self.ranks])
        waited = np.array([record.waited for record in self.ranks])
        fit = np.minimum(1.0, self.elapsed / np.maximum(messages + waited, 1e-300))
        return host_efficiency(messages * fit, waited * fit, self.elapsed, [record.host for record in self.ranks])

    def efficiencies(self) -> dict[str, Any]:
        """Return all trees by the names of docs/reference/summary.md, empty if no step was timed."""
        tree, host = self.tree(), self.host()
        if tree is None:
            return {}
        return {**tree.as_dict(), **({"host": host.as_dict()} if host is not None else {})}

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers rank by rank."""
        names = dict.fromkeys(name for record in self.ranks for name in record.stages)
        others = dict.fromkeys(name for record in self.ranks for name in record.beside)
        return {
            "transport": self.transport,
            "device": "gpu" if self.on_device else "cpu",
            "hosts": [record.host for record in self.ranks],
            "sites": [record.sites for record in self.ranks],
            "useful_s": [record.activity.useful for record in self.ranks],
            "active_s": [record.activity.active for record in self.ranks],
            "waited_s": [record.waited for record in self.ranks],
            "steps_s": [record.steps_seconds for record in self.ranks],
            "memory_B": [record.memory for record in self.ranks],
            "stages": {name: [record.stages.get(name, 0.0) for record in self.ranks] for name in names},
            "not_useful": list(self.useless),
            "beside": {name: [record.beside.get(name, 0.0) for record in self.ranks] for name in others},
            "messages": [
                [source, peer, count, size]
                for source, record in enumerate(self.ranks)
                for peer, count, size in record.sent
            ],
        }


def gather_movement(
    timers: StageTimers,
    phases: Sequence[Sequence[Stage]],
    world: World,
    *,
    weights: Sequence[float] | None = None,
    elapsed: float,
    on_device: bool,
    beside: Mapping[str, float],
    transport: str,
    sites: int,
) -> Movement | None:
    """Return the records of all ranks on rank 0, None elsewhere (collective).

    Args:
        timers: of this rank's steps.
        phases: the stages of each kind of step.
        world: the ranks.
        weights: how often each kind came; by default they alternate.
        elapsed: wall seconds of this rank; the longest of all counts.
        on_device: whether the steps are the work of a device of its own, which the host only waits for.
        beside: seconds of the host between steps, by what it did.
        transport: how messages travel.
        sites: items of this rank.
    """
    times, often = timers.times(), how_often(phases, weights)
    record = RankRecord(
        host=platform.node(),
        sites=sites,
        activity=timers.activity(),
        waited=timers.waited,
        steps_seconds=timers.seconds,
        stages={name: time.mean * often.get(name, 1.0) for name, time in times.items()},
        sent=messages_a_step(phases, weights),
        memory=peak_memory(),
        beside=dict(beside),
        samples=tuple(timers.samples)[-SAMPLES_KEPT:],  # timers that keep more do so for a trace
    )
    longest = float(world.allreduce_max(np.array([elapsed]))[0])
    records = world.gather(record)
    if records is None:
        return None
    useless = dict.fromkeys(stage.name for stages in phases for stage in stages if not stage.useful)
    return Movement(records, longest, on_device, transport, tuple(useless))


def _parts(phases: Sequence[Sequence[Stage]], weights: Sequence[float] | None) -> list[float]:
    """Return the part of all steps that are of each kind."""
    given = [1.0] * len(phases) if weights is None else list(weights)
    whole = sum(given) or 1.0
    return [weight / whole for weight in given]


def how_often(phases: Sequence[Sequence[Stage]], weights: Sequence[float] | None = None) -> dict[str, float]:
    """Return the part of the steps in which each stage comes, by name, in the order of the steps.

    Args:
        phases: the stages of each kind of step.
        weights: how often each kind came; by default they alternate.
    """
    found: dict[str, float] = {}
    for part, stages in zip(_parts(phases, weights), phases, strict=True):
        for name in dict.fromkeys(stage.name for stage in stages):
            found[name] = found.get(name, 0.0) + part
    return found


def bytes_when_there(phases: Sequence[Sequence[Stage]], weights: Sequence[float] | None = None) -> dict[str, float]:
    """Return the bytes that each stage moves in a step that has it, mean over the kinds of steps (as `how_often`)."""
    found: dict[str, float] = {}
    for part, stages in zip(_parts(phases, weights), phases, strict=True):
        for stage in stages:
            found[stage.name] = found.get(stage.name, 0.0) + part * stage.bytes
    often = how_often(phases, weights)
    return {name: size / often[name] if often[name] else 0.0 for name, size in found.items()}


def messages_a_step(
    phases: Sequence[Sequence[Stage]], weights: Sequence[float] | None = None
) -> tuple[tuple[int, float, float], ...]:
    """Return (peer, messages, bytes) that leave this rank in a step, mean over the kinds of steps (as `how_often`)."""
    count: dict[int, float] = {}
    size: dict[int, float] = {}
    for part, stages in zip(_parts(phases, weights), phases, strict=True):
        for stage in stages:
            for peer, sent in stage.messages.sent if stage.messages is not None else ():
                if sent:
                    count[peer] = count.get(peer, 0.0) + part
                    size[peer] = size.get(peer, 0.0) + part * sent
    return tuple((peer, count[peer], size[peer]) for peer in sorted(count))


def peak_memory() -> int:
    """Return the most bytes of memory that this process held so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)
