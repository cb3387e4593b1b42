# SPDX-License-Identifier: BSD-3-Clause
"""Predict the steps of a run on a machine from the plans of its ranks (theory/movement, section 7)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from seiche.errors import CaseError
from seiche.machine.laws.file import FittedPiece, Machine
from seiche.machine.laws.halo_times import includes_packing, transport_times
from seiche.machine.laws.locality import RankPlacement
from seiche.machine.laws.models import roofline
from seiche.machine.laws.prepared import MessageLaws, PlacedRanks
from seiche.observe.plan import PlannedExchange, PlannedRank, PlannedStage, RunPlan, base_name

Bound: TypeAlias = Literal["low", "best", "high", "latency"]

#: Transports whose messages are device work and can be part of graphs.
_IN_GRAPHS = ("peer", "nccl", "peer+nccl")
#: Above this ratio of memory sizes, a cache effect of the smaller one is not extrapolated.
_CACHE_RATIO = 2
#: Resources that can limit a rank.
RESOURCES = ("memory", "launches", "message latency", "message bandwidth")


@dataclass(frozen=True)
class StepTime:
    """The predicted step of a run; seconds.

    Attributes:
        ranks: number of ranks.
        seconds: duration of a step of the slowest rank; `low` and `high` are its interval.
        useful: seconds of each rank in compute stages.
        messages: seconds of each rank in messages that do not overlap with computation.
        exchange: seconds of all messages of the slowest rank, packing included, overlapped or not.
        computing: mean seconds over ranks by stage.
        waiting: mean seconds over ranks of messages without overlap, by the stage in which they arrive.
        memory: bytes of each rank.
        transport: transport of the messages; "none" without messages.
        slowest: number of the slowest rank.
        limit: the resource that accounts for most of its time; `parts` are the seconds of each resource.
    """

    ranks: int
    seconds: float
    low: float
    high: float
    useful: tuple[float, ...]
    messages: tuple[float, ...]
    exchange: float
    computing: dict[str, float]
    waiting: dict[str, float]
    memory: tuple[int, ...]
    transport: str
    slowest: int
    limit: str
    parts: dict[str, float]

    @property
    def load_balance(self) -> float:
        """Return mean over maximum useful time (eq. 17)."""
        return sum(self.useful) / (self.ranks * max(self.useful)) if max(self.useful) > 0 else 1.0

    @property
    def communication(self) -> float:
        """Return the communication efficiency (eq. 17)."""
        return max(self.useful) / self.seconds if self.seconds > 0 else 1.0

    @property
    def parallel(self) -> float:
        """Return the parallel efficiency (eq. 18)."""
        return self.load_balance * self.communication


@dataclass(frozen=True)
class Scale:
    """Measured time of a stage over its roofline time: best estimate, minimum and maximum.

    `elsewhere`: measured on another machine than the predicted one. `memory` is the memory of a rank in the measured
    run, bytes: a factor below one is a cache effect, which does not apply to ranks with much more memory.
    """

    best: float = 1.0
    low: float = 1.0
    high: float = 1.0
    elsewhere: bool = False
    memory: int | None = None

    def at(self, bound: Bound, memory: int) -> float:
        """Return the factor at a bound for a rank with `memory` bytes."""
        factor = self.low if bound == "low" else self.high if bound == "high" else self.best
        larger = self.memory is not None and memory > _CACHE_RATIO * self.memory
        # The lower bound assumes that the cache effect persists.
        return max(1.0, factor) if larger and bound != "low" else factor


def stored_scales(machine: Machine, solver: str, *, gpu: bool) -> dict[str, Scale] | None:
    """Return the scales of a solver that `seiche bench predict --keep` stored in the file, None if there are none."""
    stored = machine.stages.get("device" if gpu else "host", {}).get(solver)
    return None if stored is None else {name: Scale(**factor.model_dump()) for name, factor in stored.items()}


def default_ranks_per_node(machine: Machine, *, gpu: bool) -> int:
    """Return the number of ranks per node: one per GPU, or one per core."""
    hardware = machine.hardware
    return max(1, len(hardware.get("gpus", [])) if gpu else int(hardware.get("cores", 1)))


def planned_placements(machine: Machine, ranks: int, ranks_per_node: int, *, gpu: bool) -> list[RankPlacement]:
    """Return the placements of ranks that fill nodes in order; processes are not bound to sockets."""
    sockets = max(1, int(machine.hardware.get("sockets", 1)))
    cpus: dict[int, tuple[int, ...]] = {number: () for number in range(sockets)}
    positions = [divmod(rank, ranks_per_node) for rank in range(ranks)]
    if not gpu:
        return [RankPlacement(f"node {node}", cpus) for node, _ in positions]
    return [
        RankPlacement(f"node {node}", cpus, str(position), "GPU", position * sockets // ranks_per_node)
        for node, position in positions
    ]


def rank_rate(machine: Machine, ranks_on_node: int, *, gpu: bool) -> float:
    """Return the memory bandwidth of a rank, bytes per second: of its GPU, or its share of the node.

    Raises:
        CaseError: the file has no bandwidth for this memory.
    """
    measured = int(machine.hardware.get("ranks", 1)) if gpu else int(machine.hardware.get("hosts", 1))
    return machine.copy_rate("device" if gpu else "host") / max(1, measured) / (1 if gpu else ranks_on_node)


def at_bound(machine: Machine, bound: Bound) -> Machine:
    """Return the machine with all parameters at one end of their intervals, or ("latency") with empty messages.

    "low" refers to times; for bandwidths it is the upper end. Parameters without an interval are unchanged.
    """
    if bound == "best":
        return machine

    def shifted(piece: FittedPiece) -> FittedPiece:
        if bound == "latency":
            return piece.model_copy(update={"beta": 0.0})
        end = 0 if bound == "low" else 1
        alpha = piece.alpha_interval[end] if piece.alpha_interval else piece.alpha
        beta = piece.beta_interval[end] if piece.beta_interval else piece.beta
        extreme = min if bound == "low" else max
        return piece.model_copy(
            update={"alpha": max(0.0, extreme(alpha, piece.alpha)), "beta": extreme(beta, piece.beta)}
        )

    paths = [path.model_copy(update={"pieces": [shifted(piece) for piece in path.pieces]}) for path in machine.paths]
    if bound == "latency":
        return machine.model_copy(update={"paths": paths})
    ends = {name: rates[1 if bound == "low" else 0] for name, rates in machine.memory_intervals.items()}
    return machine.model_copy(update={"paths": paths, "memory": {**machine.memory, **ends}})


def in_graphs(machine: Machine) -> Machine:
    """Return the machine with the launch costs of kernels in graphs, if the file has them."""
    costs = machine.launch.get("device")
    if costs is None or costs.graph_kernel is None:
        return machine
    launch = costs.model_copy(update={"kernel": costs.graph_kernel, "event": min(costs.event, costs.graph_kernel)})
    return machine.model_copy(update={"launch": {**machine.launch, "device": launch}})


@dataclass
class _BoundedMachine:
    """A machine at each bound, cached."""

    machine: Machine
    placed: PlacedRanks
    graphs: bool
    bounds: dict[Bound, Machine] = field(default_factory=dict)
    _laws: dict[Bound, MessageLaws] = field(default_factory=dict)
    _times: dict[tuple[Bound, int, PlannedExchange], dict[str, float]] = field(default_factory=dict)

    def at(self, bound: Bound) -> Machine:
        if bound not in self.bounds:
            self.bounds[bound] = at_bound(self.machine, bound)
        return self.bounds[bound]

    def times(self, bound: Bound, rank: int, exchange: PlannedExchange) -> dict[str, float]:
        key = (bound, rank, exchange)
        if key not in self._times:
            peers, sent, received = zip(*exchange, strict=True) if exchange else ((), (), ())
            if bound not in self._laws:
                self._laws[bound] = MessageLaws(self.at(bound))
            sizes: dict[str, Any] = {"sent": sent, "received": received, "graphs": self.graphs}
            self._times[key] = transport_times(self._laws[bound], self.placed, rank, peers, **sizes)
        return self._times[key]


def predict_step(
    plan: RunPlan, machine: Machine, *, ranks_per_node: int | None = None, scales: Mapping[str, Scale] | None = None
) -> StepTime:
    """Return the predicted step of a run on a machine (eqs. 24 to 27).

    Args:
        plan: the plan of all ranks.
        machine: the measurements.
        ranks_per_node: ranks per node; by default one per GPU or core.
        scales: measured over roofline time of stages, from a run.

    Raises:
        CaseError: the file has no data for the memory, or for messages of the run.
    """
    gpu, count = plan.gpu, len(plan.ranks)
    node_ranks = ranks_per_node or default_ranks_per_node(machine, gpu=gpu)
    placements = planned_placements(machine, count, node_ranks, gpu=gpu)
    machines = _BoundedMachine(machine, PlacedRanks(placements), plan.graphs)
    transport = _transport(plan, machines)
    bounds: tuple[Bound, ...] = ("best", "low", "high", "latency")
    rates = {bound: rank_rate(machines.at(bound), min(node_ranks, count), gpu=gpu) for bound in bounds}
    launch_machine = in_graphs(machine) if plan.graphs and transport in ("none", *_IN_GRAPHS) else machine
    costs = launch_machine.launch.get("device" if gpu else "host")
    launch_time = costs.kernel if costs is not None else 0.0
    packing_included = includes_packing(machine, transport, gpu=gpu, graphs=plan.graphs)
    model = _Model(plan, machines, transport, rates, launch_time, scales or {}, packing_included)
    rank_times = [model.step_time(number, rank, "best") for number, rank in enumerate(plan.ranks)]
    slowest = max(range(count), key=lambda number: rank_times[number].seconds)
    ends = {
        bound: max(model.step_time(number, rank, bound).seconds for number, rank in enumerate(plan.ranks))
        for bound in ("low", "high")
    }
    latency = model.step_time(slowest, plan.ranks[slowest], "latency")
    slowest_time, step_seconds = rank_times[slowest], rank_times[slowest].seconds
    exposed, waiting = sum(slowest_time.waiting.values()), sum(latency.waiting.values())
    seconds = (slowest_time.useful - slowest_time.launches, slowest_time.launches, waiting, max(0.0, exposed - waiting))
    parts = dict(zip(RESOURCES, seconds, strict=True))
    return StepTime(
        ranks=count,
        seconds=step_seconds,
        low=min(step_seconds, ends["low"]),
        high=max(step_seconds, ends["high"]),
        useful=tuple(rank.useful for rank in rank_times),
        messages=tuple(rank.seconds - rank.useful for rank in rank_times),
        exchange=slowest_time.exchange,
        computing=_mean([rank.computing for rank in rank_times]),
        waiting=_mean([rank.waiting for rank in rank_times]),
        memory=tuple(rank.memory for rank in plan.ranks),
        transport=transport,
        slowest=slowest,
        limit=max(parts, key=parts.__getitem__),
        parts=parts,
    )


def _mean(ranks: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for rank in ranks for name in rank)
    return {name: sum(rank.get(name, 0.0) for rank in ranks) / len(ranks) for name in names}


def scales_of(
    plan: RunPlan, machine: Machine, stages: Mapping[str, tuple[float, float]], *, ranks_per_node: int | None = None
) -> dict[str, Scale]:
    """Return measured over roofline times of the stages of a run, by `base_name`.

    Args:
        plan: the plan of that run.
        machine: the machine of that run.
        stages: (mean, minimum) seconds of each stage in a step that has it, from the timers.
        ranks_per_node: ranks per node.

    Raises:
        CaseError: as `predict_step`; or the run does not have most of the stages.
    """
    step = predict_step(plan, machine, ranks_per_node=ranks_per_node)
    useful, times = set[str](), defaultdict[str, float](float)
    for weight, kind in plan.ranks[0].steps:
        for name in {stage.name for stage in kind}:
            times[name] += weight
        useful |= {stage.name for stage in kind if stage.useful}
    sums: dict[str, list[float]] = {}
    for name in useful & set(stages):
        mean, minimum = stages[name]
        stage_sums = sums.setdefault(base_name(name), [0.0, 0.0, 0.0])
        stage_sums[0] += mean * times[name]
        stage_sums[1] += minimum * times[name]
        stage_sums[2] += step.computing[name]
    scales, memory = {}, max(rank.memory for rank in plan.ranks)
    for name, (mean, minimum, roof) in sums.items():
        if roof > 0 and mean > 0:
            # The maximum is as far above the mean as the minimum is below it.
            scales[name] = Scale(mean / roof, minimum / roof, (2 * mean - minimum) / roof, memory=memory)
    scaled_seconds = sum(stage_sums[2] for name, stage_sums in sums.items() if name in scales)
    if scaled_seconds < 0.5 * sum(step.computing.get(name, 0.0) for name in useful):
        raise CaseError(
            f"the run lacks most of the stages of the case: {', '.join(sorted(useful))}; use a run of the same solver"
        )
    return scales


def _transport(plan: RunPlan, machines: _BoundedMachine) -> str:
    """Return the transport requested by the case, or the cheapest one with data in the file.

    Raises:
        CaseError: the file has no data for it, or for any transport.
    """
    slowest_times: dict[str, float] = {}
    any_messages = False
    for number, rank in enumerate(plan.ranks):
        totals: defaultdict[str, float] = defaultdict(float)
        for weight, stages in rank.steps:
            for exchange in (exchange for stage in stages for exchange in stage.exchanges):
                if any(peer != number for peer, _, _ in exchange):
                    any_messages = True
                    for name, seconds in machines.times("best", number, exchange).items():
                        totals[name] += weight * seconds
        for name, seconds in totals.items():
            slowest_times[name] = max(slowest_times.get(name, 0.0), seconds)
    if not any_messages:
        return "none"
    finite_times = {name: seconds for name, seconds in slowest_times.items() if math.isfinite(seconds)}
    requested, machine, ranks = plan.transport, machines.machine, len(plan.ranks)
    if requested not in ("auto", "local"):
        if requested in finite_times:
            return requested
        raise CaseError(f"machine {machine.name!r} has no data for transport {requested!r} on {ranks} ranks")
    if not finite_times:
        present = ", ".join(f"{entry.path} {entry.locality}" for entry in machine.paths) or "nothing"
        nodes = machines.placed.hosts
        raise CaseError(
            f"machine {machine.name!r} has no data for messages of {ranks} ranks on {nodes} nodes; it has {present}"
        )
    return min(finite_times, key=finite_times.__getitem__)


@dataclass
class _StepTime:
    """Seconds of a rank in a step."""

    seconds: float = 0.0
    useful: float = 0.0
    launches: float = 0.0
    exchange: float = 0.0
    computing: dict[str, float] = field(default_factory=dict)
    waiting: dict[str, float] = field(default_factory=dict)


@dataclass
class _Model:
    plan: RunPlan
    machines: _BoundedMachine
    transport: str
    rates: Mapping[Bound, float]
    launch_time: float
    scales: Mapping[str, Scale]
    #: Whether times of exchanges include packing.
    packing_included: bool = False

    def step_time(self, number: int, rank: PlannedRank, bound: Bound) -> _StepTime:
        """Return the seconds of the mean step of a rank."""
        total = _StepTime()
        for weight, stages in rank.steps:
            useful, in_flight = 0.0, list[tuple[float, float]]()
            for stage in stages:
                seconds, launches = self._computing(stage, bound, rank.memory)
                exposed, packing = 0.0, stage.packed / self.rates[bound]
                if self.packing_included or bound == "latency":
                    packing = 0.0
                for exchange in stage.exchanges:
                    in_flight.append((useful, self._exchange(number, exchange, bound) + packing / len(stage.exchanges)))
                for _ in range(stage.arrivals):
                    sent_at, duration = in_flight.pop(0)
                    duration += 0.0 if stage.exchanges else packing / stage.arrivals
                    total.exchange += weight * duration
                    # A device computes during messages; the host does not.
                    exposed += max(0.0, duration - (useful - sent_at if self.plan.gpu else 0.0))
                useful += seconds
                total.useful += weight * seconds
                total.launches += weight * launches
                total.seconds += weight * (seconds + exposed)
                total.computing[stage.name] = total.computing.get(stage.name, 0.0) + weight * seconds
                if stage.arrivals:
                    total.waiting[stage.name] = total.waiting.get(stage.name, 0.0) + weight * exposed
        return total

    def _computing(self, stage: PlannedStage, bound: Bound, memory: int) -> tuple[float, float]:
        """Return the seconds of a stage without its messages, and of its launches alone."""
        if not stage.useful:
            return 0.0, 0.0
        base = base_name(stage.name)
        # Launches of pack and unpack kernels belong to the transport.
        compute_launches = max(0, stage.launches - len(stage.exchanges) - stage.arrivals)
        launches, share = compute_launches * self.launch_time, self.plan.shares.get(base, 1.0)
        scale = self.scales.get(base, Scale())
        factor = scale.at(bound, memory)
        # A scale measured on this machine refers to the best estimate of its bandwidth.
        rate = self.rates["best" if base in self.scales and not scale.elsewhere else bound]
        return factor * roofline(stage.bytes, rate * share, launches), launches

    def _exchange(self, number: int, exchange: PlannedExchange, bound: Bound) -> float:
        if not any(peer != number for peer, _, _ in exchange):
            return 0.0
        return self.machines.times(bound, number, exchange)[self.transport]
