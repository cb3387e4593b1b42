# SPDX-License-Identifier: BSD-3-Clause
"""What the steps of a run consist of, taken from the stages of solvers on a device that only counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from seiche.backend import Backend
from seiche.backend.planned import PlannedBackend
from seiche.observe.stage import Stage

#: Messages that are under way together: (peer, bytes sent, bytes received) each.
Exchange: TypeAlias = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class PlannedStage:
    """What one stage of one rank does in one step.

    Attributes:
        name: of the stage.
        bytes: of memory traffic, as the stage declares it, else as its kernels do; without those of messages.
        launches: of kernels.
        useful: whether it computes.
        exchanges: that begin in it.
        arrivals: exchanges that end in it, the oldest first.
        packed: bytes that putting messages together and taking them apart moves.
    """

    name: str
    bytes: int
    launches: int
    useful: bool = True
    exchanges: tuple[Exchange, ...] = ()
    arrivals: int = 0
    packed: int = 0


@dataclass(frozen=True)
class PlannedRank:
    """One rank: kinds of steps by how often they come (parts of 1), bytes of memory, sites, points or elements."""

    steps: tuple[tuple[float, tuple[PlannedStage, ...]], ...]
    memory: int
    items: int


@dataclass(frozen=True)
class RunPlan:
    """All ranks of a run: on GPUs or not, `transport` as the case asks for it, what `items` are, and their total.

    `graphs` says that steps are replayed as graphs where all their messages are device work. `shares` has for stages
    (by `base_name`) the part of the memory's rate at which they are known to move their bytes.
    """

    ranks: tuple[PlannedRank, ...]
    gpu: bool
    transport: str
    item: str
    items: int
    layout: str = ""
    graphs: bool = True
    shares: dict[str, float] = field(default_factory=dict)


#: What is done to cells that other ranks hold, too, by its name where one rank holds them all.
_OF_SHARED: Final = {"interpolate shared": "interpolate velocity", "forces of shared": "membrane forces"}


def base_name(name: str) -> str:
    """Return the name of a stage without the part of a rank that it is about: one rank alone has no edge."""
    for part in (" interior", " edge"):
        name = name.removesuffix(part)
    return _OF_SHARED.get(name, name)


def planned_steps(
    kinds: Sequence[tuple[float, Sequence[Stage]]], backend: PlannedBackend
) -> tuple[tuple[float, tuple[PlannedStage, ...]], ...]:
    """Return what the stages of each kind of step do, by letting them count (collective where they are)."""
    whole = sum(weight for weight, _ in kinds)
    return tuple((weight / whole, tuple(_planned(stage, backend) for stage in stages)) for weight, stages in kinds)


def planned_rank(backend: Backend, kinds: Sequence[tuple[float, Sequence[Stage]]], items: int) -> PlannedRank:
    """Return what a rank of `items` items does in each kind of step on a planned device (collective)."""
    assert isinstance(backend, PlannedBackend)
    return PlannedRank(planned_steps(kinds, backend), backend.memory, items)


def _planned(stage: Stage, backend: PlannedBackend) -> PlannedStage:
    ledger = backend.ledger
    ledger.clear()
    stage.action()
    useful = stage.useful and stage.messages is None
    whole = () if ledger.exchanges or ledger.arrivals else _exchanged(stage)
    return PlannedStage(
        stage.name,
        stage.bytes if useful and stage.bytes else ledger.bytes,
        ledger.launches,
        useful,
        (*ledger.exchanges, *whole),
        ledger.arrivals + len(whole),
        ledger.packed,
    )


def _exchanged(stage: Stage) -> tuple[Exchange, ...]:
    """Return what a stage sends and receives by itself, as transposes do: no transport counts it."""
    told = stage.messages
    if told is None or not told.sent or not told.received:
        return ()
    sent, received = dict(told.sent), dict(told.received)
    return (tuple((peer, sent.get(peer, 0), received.get(peer, 0)) for peer in sorted({*sent, *received})),)


def magnified(plan: RunPlan, times: float, dimensions: int = 3) -> RunPlan:
    """Return the plan in which every rank has `times` the items: what it computes grows so, messages as surfaces do."""
    surface = times ** ((dimensions - 1) / dimensions)

    def stage(one: PlannedStage) -> PlannedStage:
        exchanges = tuple(
            tuple((peer, round(sent * surface), round(received * surface)) for peer, sent, received in each)
            for each in one.exchanges
        )
        return replace(one, bytes=round(one.bytes * times), packed=round(one.packed * surface), exchanges=exchanges)

    ranks = tuple(
        PlannedRank(
            tuple((weight, tuple(stage(one) for one in stages)) for weight, stages in rank.steps),
            round(rank.memory * times),
            round(rank.items * times),
        )
        for rank in plan.ranks
    )
    return replace(plan, ranks=ranks, items=round(plan.items * times))
