# SPDX-License-Identifier: BSD-3-Clause
"""Predict the steps of a run on a machine from the plans of its ranks (theory/movement, section 7)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from seiche.errors import CaseError
from seiche.machine.laws.file import FittedPiece, Machine
from seiche.machine.laws.halo_times import packed_too, transport_times
from seiche.machine.laws.locality import RankPlace
from seiche.machine.laws.models import roofline
from seiche.observe.plan import Exchange, PlannedRank, PlannedStage, RunPlan, base_name

Bound: TypeAlias = Literal["low", "best", "high", "latency"]

#: Transports whose messages are device work, so that graphs may contain them.
_IN_GRAPHS = ("peer", "nccl")
#: So many times as much is another place among the caches and the memory.
_MUCH_MORE = 2
#: What may limit a rank.
RESOURCES = ("memory", "launches", "message latency", "message bandwidth")


@dataclass(frozen=True)
class StepTime:
    """The predicted step of a run; seconds.

    Attributes:
        ranks: their number.
        seconds: a step, of the slowest rank; `low` and `high` its interval.
        useful: each rank's seconds in stages that compute.
        messages: each rank's seconds of messages that nothing hides.
        exchange: seconds of the messages of a step of the slowest rank, packing included, hidden or not.
        computing: mean seconds of all ranks by stage.
        waiting: mean seconds of all ranks by the stage in which messages arrive, those that nothing hides.
        memory: bytes of each rank.
        transport: how messages travel; "none" without.
        slowest: number of the slowest rank.
        limit: the resource that takes most of its time, `parts` the seconds of each.
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
        """Return mean over greatest useful time (eq. 17)."""
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
    """How long stages take against what the memory's rate says, by `base_name`: best, least and most that was seen.

    `elsewhere` says that it was seen on another machine than the one that is predicted. `memory` is what a rank held
    then, bytes: less time than the memory needs is a cache's doing, and tells nothing of ranks that hold much more.
    """

    best: float = 1.0
    low: float = 1.0
    high: float = 1.0
    elsewhere: bool = False
    memory: int | None = None

    def at(self, bound: Bound, memory: int) -> float:
        """Return the factor at a bound for a rank that holds `memory` bytes."""
        factor = self.low if bound == "low" else self.high if bound == "high" else self.best
        beyond = self.memory is not None and memory > _MUCH_MORE * self.memory
        # The caches may still hold it: that is what the low end says.
        return max(1.0, factor) if beyond and bound != "low" else factor


def kept_scales(machine: Machine, solver: str, *, gpu: bool) -> dict[str, Scale] | None:
    """Return what `seiche bench predict --keep` left in the file about the stages of a solver, None if nothing."""
    kept = machine.stages.get("device" if gpu else "host", {}).get(solver)
    return None if kept is None else {name: Scale(**each.model_dump()) for name, each in kept.items()}


def ranks_a_node(machine: Machine, *, gpu: bool) -> int:
    """Return how many ranks a node takes: one a GPU, or one a core."""
    known = machine.hardware
    return max(1, len(known.get("gpus", [])) if gpu else int(known.get("cores", 1)))


def planned_places(machine: Machine, ranks: int, a_node: int, *, gpu: bool) -> list[RankPlace]:
    """Return where ranks are when nodes are filled one after the other; processes are bound to no socket."""
    sockets = max(1, int(machine.hardware.get("sockets", 1)))
    cpus: dict[int, tuple[int, ...]] = {number: () for number in range(sockets)}
    found = []
    for rank in range(ranks):
        node, seat = divmod(rank, a_node)
        name = str(seat) if gpu else None
        found.append(
            RankPlace(f"node {node}", cpus, name, "GPU" if gpu else "", seat * sockets // a_node if gpu else None)
        )
    return found


def rank_rate(machine: Machine, ranks_here: int, *, gpu: bool) -> float:
    """Return the bytes a second that a rank's memory moves: its GPU's, or its part of its node's.

    Raises:
        CaseError: the file has no bandwidth of that memory.
    """
    measured = int(machine.hardware.get("ranks", 1)) if gpu else int(machine.hardware.get("hosts", 1))
    return machine.copy_rate("device" if gpu else "host") / max(1, measured) / (1 if gpu else ranks_here)


def at_bound(machine: Machine, bound: Bound) -> Machine:
    """Return the machine with all parameters at one end of their intervals, or ("latency") with messages of no bytes.

    The low end is that of the times: the high one of a memory's rate. A parameter without an interval stays as it is.
    """
    if bound == "best":
        return machine

    def moved(piece: FittedPiece) -> FittedPiece:
        if bound == "latency":
            return piece.model_copy(update={"beta": 0.0})
        end = 0 if bound == "low" else 1
        alpha = piece.alpha_interval[end] if piece.alpha_interval else piece.alpha
        beta = piece.beta_interval[end] if piece.beta_interval else piece.beta
        pick = min if bound == "low" else max
        return piece.model_copy(update={"alpha": max(0.0, pick(alpha, piece.alpha)), "beta": pick(beta, piece.beta)})

    paths = [each.model_copy(update={"pieces": [moved(piece) for piece in each.pieces]}) for each in machine.paths]
    if bound == "latency":
        return machine.model_copy(update={"paths": paths})
    ends = {name: rates[1 if bound == "low" else 0] for name, rates in machine.memory_intervals.items()}
    return machine.model_copy(update={"paths": paths, "memory": {**machine.memory, **ends}})


def in_graphs(machine: Machine) -> Machine:
    """Return the machine whose GPUs start a kernel as in a graph, if the file tells what that takes."""
    told = machine.launch.get("device")
    if told is None or told.graph_kernel is None:
        return machine
    launch = told.model_copy(update={"kernel": told.graph_kernel, "event": min(told.event, told.graph_kernel)})
    return machine.model_copy(update={"launch": {**machine.launch, "device": launch}})


@dataclass
class _Machines:
    """A machine at its bounds, with the exchanges that were asked for already."""

    machine: Machine
    places: Sequence[RankPlace]
    graphs: bool
    bounds: dict[Bound, Machine] = field(default_factory=dict)

    def at(self, bound: Bound) -> Machine:
        if bound not in self.bounds:
            self.bounds[bound] = at_bound(self.machine, bound)
        return self.bounds[bound]

    def times(self, bound: Bound, rank: int, exchange: Exchange) -> dict[str, float]:
        peers, sent, received = zip(*exchange, strict=True) if exchange else ((), (), ())
        given = (self.at(bound), self.places, rank, peers)
        return transport_times(*given, sent=sent, received=received, graphs=self.graphs)


def predict_step(
    plan: RunPlan, machine: Machine, *, a_node: int | None = None, scales: Mapping[str, Scale] | None = None
) -> StepTime:
    """Return the predicted step of a run on a machine (eqs. 24 to 27).

    Args:
        plan: of all ranks.
        machine: what was measured.
        a_node: ranks on each node; one a GPU or a core by default.
        scales: how long stages take against the roofline, as a run has shown.

    Raises:
        CaseError: the file lacks the memory, or has no way for messages that the run sends.
    """
    gpu, count = plan.gpu, len(plan.ranks)
    width = a_node or ranks_a_node(machine, gpu=gpu)
    machines = _Machines(machine, planned_places(machine, count, width, gpu=gpu), plan.graphs)
    transport = _transport(plan, machines)
    bounds: tuple[Bound, ...] = ("best", "low", "high", "latency")
    rates = {bound: rank_rate(machines.at(bound), min(width, count), gpu=gpu) for bound in bounds}
    told = machine.launch.get("device" if gpu else "host")
    if plan.graphs and transport in ("none", *_IN_GRAPHS):
        told = in_graphs(machine).launch.get("device" if gpu else "host")
    start = told.kernel if told is not None else 0.0
    packed = packed_too(machine, transport, gpu=gpu, graphs=plan.graphs)
    model = _Model(plan, machines, transport, rates, start, scales or {}, packed)
    walks = [model.walk(number, rank, "best") for number, rank in enumerate(plan.ranks)]
    slowest = max(range(count), key=lambda number: walks[number].seconds)
    ends = {
        bound: max(model.walk(number, rank, bound).seconds for number, rank in enumerate(plan.ranks))
        for bound in ("low", "high")
    }
    latency = model.walk(slowest, plan.ranks[slowest], "latency")
    walk, best = walks[slowest], walks[slowest].seconds
    exposed, late = sum(walk.waiting.values()), sum(latency.waiting.values())
    parts = dict(
        zip(RESOURCES, (walk.useful - walk.launches, walk.launches, late, max(0.0, exposed - late)), strict=True)
    )
    return StepTime(
        ranks=count,
        seconds=best,
        low=min(best, ends["low"]),
        high=max(best, ends["high"]),
        useful=tuple(each.useful for each in walks),
        messages=tuple(each.seconds - each.useful for each in walks),
        exchange=walk.exchange,
        computing=_mean([each.computing for each in walks]),
        waiting=_mean([each.waiting for each in walks]),
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
    plan: RunPlan, machine: Machine, stages: Mapping[str, tuple[float, float]], *, a_node: int | None = None
) -> dict[str, Scale]:
    """Return how long stages of a run took against what the machine's memory says, by `base_name`.

    Args:
        plan: of that run.
        machine: on which it was.
        stages: (mean, least) seconds of each stage in a step that has it, as its timers have them.
        a_node: ranks on each node.

    Raises:
        CaseError: as `predict_step`; or the run lacks most of the stages.
    """
    step = predict_step(plan, machine, a_node=a_node)
    useful, times = set[str](), defaultdict[str, float](float)
    for weight, kind in plan.ranks[0].steps:
        for name in {stage.name for stage in kind}:
            times[name] += weight
        useful |= {stage.name for stage in kind if stage.useful}
    sums: dict[str, list[float]] = {}
    for name in useful & set(stages):
        mean, least = stages[name]
        row = sums.setdefault(base_name(name), [0.0, 0.0, 0.0])
        row[0] += mean * times[name]
        row[1] += least * times[name]
        row[2] += step.computing[name]
    found, held = {}, max(rank.memory for rank in plan.ranks)
    for name, (mean, least, roof) in sums.items():
        if roof > 0 and mean > 0:
            # As far above the mean as the shortest is below it.
            found[name] = Scale(mean / roof, least / roof, (2 * mean - least) / roof, memory=held)
    known = sum(row[2] for name, row in sums.items() if name in found)
    if known < 0.5 * sum(step.computing.get(name, 0.0) for name in useful):
        raise CaseError(f"it lacks most of the stages of the case: {', '.join(sorted(useful))}")
    return found


def _transport(plan: RunPlan, machines: _Machines) -> str:
    """Return the transport that the case asks for, or the cheapest one of those that the file knows.

    Raises:
        CaseError: it knows none.
    """
    worst: dict[str, float] = {}
    any_messages = False
    for number, rank in enumerate(plan.ranks):
        totals: defaultdict[str, float] = defaultdict(float)
        for weight, stages in rank.steps:
            for exchange in (each for stage in stages for each in stage.exchanges):
                if any(peer != number for peer, _, _ in exchange):
                    any_messages = True
                    for name, seconds in machines.times("best", number, exchange).items():
                        totals[name] += weight * seconds
        for name, seconds in totals.items():
            worst[name] = max(worst.get(name, 0.0), seconds)
    if not any_messages:
        return "none"
    known = {name: seconds for name, seconds in worst.items() if math.isfinite(seconds)}
    wanted = plan.transport
    machine, ranks = machines.machine, len(plan.ranks)
    if wanted not in ("auto", "local"):
        if wanted in known:
            return wanted
        raise CaseError(f"machine {machine.name!r} does not tell what transport {wanted!r} takes on {ranks} ranks")
    if not known:
        there = ", ".join(f"{each.path} {each.locality}" for each in machine.paths) or "nothing"
        raise CaseError(
            f"machine {machine.name!r} knows no way for the messages of {ranks} ranks on"
            f" {len({place.host for place in machines.places})} nodes; it has {there}"
        )
    return min(known, key=known.__getitem__)


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
    machines: _Machines
    transport: str
    rates: Mapping[Bound, float]
    start: float
    scales: Mapping[str, Scale]
    #: Whether times of exchanges have what packing takes.
    packed: bool = False

    def walk(self, number: int, rank: PlannedRank, bound: Bound) -> _StepTime:
        """Return the seconds of the mean step of a rank."""
        found = _StepTime()
        for weight, stages in rank.steps:
            useful, under_way = 0.0, list[tuple[float, float]]()
            for stage in stages:
                seconds, launches = self._computing(stage, bound, rank.memory)
                packing, exposed = (0.0 if self.packed else stage.packed / self.rates[bound]), 0.0
                packing = 0.0 if bound == "latency" else packing
                for exchange in stage.exchanges:
                    under_way.append((useful, self._exchange(number, exchange, bound) + packing / len(stage.exchanges)))
                for _ in range(stage.arrivals):
                    sent_at, took = under_way.pop(0)
                    took += 0.0 if stage.exchanges else packing / stage.arrivals
                    found.exchange += weight * took
                    # The host moves messages itself; a device computes beside them.
                    exposed += max(0.0, took - (useful - sent_at if self.plan.gpu else 0.0))
                useful += seconds
                found.useful += weight * seconds
                found.launches += weight * launches
                found.seconds += weight * (seconds + exposed)
                found.computing[stage.name] = found.computing.get(stage.name, 0.0) + weight * seconds
                if stage.arrivals:
                    found.waiting[stage.name] = found.waiting.get(stage.name, 0.0) + weight * exposed
        return found

    def _computing(self, stage: PlannedStage, bound: Bound, memory: int) -> tuple[float, float]:
        """Return the seconds of a stage without its messages, and of its launches alone."""
        if not stage.useful:
            return 0.0, 0.0
        base = base_name(stage.name)
        # Those that pack and unpack are the transport's.
        own = max(0, stage.launches - len(stage.exchanges) - stage.arrivals)
        launches, share = own * self.start, self.plan.shares.get(base, 1.0)
        scale = self.scales.get(base, Scale())
        factor = scale.at(bound, memory)
        # On the machine of the run what it took is known, whatever the rate of the memory is.
        rate = self.rates["best" if base in self.scales and not scale.elsewhere else bound]
        return factor * roofline(stage.bytes, rate * share, launches), launches

    def _exchange(self, number: int, exchange: Exchange, bound: Bound) -> float:
        if not any(peer != number for peer, _, _ in exchange):
            return 0.0
        return self.machines.times(bound, number, exchange)[self.transport]
