# SPDX-License-Identifier: BSD-3-Clause
"""Work of the steps of a run, from the stages of a solver on a device that counts without computing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from seiche.backend import Backend
from seiche.backend.planned import PlannedBackend
from seiche.observe.stage import Stage

#: Simultaneous messages: (peer, bytes sent, bytes received) each.
PlannedExchange: TypeAlias = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class PlannedStage:
    """Work of one stage of one rank in one step.

    Attributes:
        name: name of the stage.
        bytes: memory traffic as declared by the stage, otherwise by its kernels; without packing.
        launches: number of kernel launches.
        useful: whether it computes.
        exchanges: exchanges that start in it.
        arrivals: number of exchanges that end in it, in order of their start.
        packed: memory traffic of packing and unpacking messages, bytes.
    """

    name: str
    bytes: int
    launches: int
    useful: bool = True
    exchanges: tuple[PlannedExchange, ...] = ()
    arrivals: int = 0
    packed: int = 0


@dataclass(frozen=True)
class PlannedRank:
    """One rank: kinds of steps with their frequency (sum 1), bytes of memory, number of items."""

    steps: tuple[tuple[float, tuple[PlannedStage, ...]], ...]
    memory: int
    items: int


@dataclass(frozen=True)
class RunPlan:
    """All ranks of a run: on GPUs or not, requested `transport`, kind and total number of items.

    `graphs`: steps are replayed as graphs if all their messages are device work. `shares` is the fraction of the memory
    bandwidth that stages are known to reach, by `base_name`.
    """

    ranks: tuple[PlannedRank, ...]
    gpu: bool
    transport: str
    item: str
    items: int
    layout: str = ""
    graphs: bool = True
    shares: dict[str, float] = field(default_factory=dict)


#: Stages of cells that several ranks share, with the name of the stage on a single rank.
_SHARED_STAGES: Final = {f"{name} (shared)": name for name in ("interpolate velocity", "membrane forces")}


def base_name(name: str) -> str:
    """Return the name of a stage without " interior" or " edge"; a single rank has no edge."""
    for suffix in (" interior", " edge"):
        name = name.removesuffix(suffix)
    return _SHARED_STAGES.get(name, name)


def planned_steps(
    kinds: Sequence[tuple[float, Sequence[Stage]]], backend: PlannedBackend
) -> tuple[tuple[float, tuple[PlannedStage, ...]], ...]:
    """Return the work of each kind of step, counted by running its stages (collective if they are)."""
    total = sum(weight for weight, _ in kinds)
    return tuple((weight / total, tuple(_planned(stage, backend) for stage in stages)) for weight, stages in kinds)


def planned_rank(backend: Backend, kinds: Sequence[tuple[float, Sequence[Stage]]], items: int) -> PlannedRank:
    """Return the plan of a rank with `items` items on a planned device (collective)."""
    assert isinstance(backend, PlannedBackend)
    return PlannedRank(planned_steps(kinds, backend), backend.memory, items)


def _planned(stage: Stage, backend: PlannedBackend) -> PlannedStage:
    ledger = backend.ledger
    ledger.clear()
    stage.action()
    useful = stage.useful and stage.messages is None
    direct = () if ledger.exchanges or ledger.arrivals else _direct_exchange(stage)
    return PlannedStage(
        stage.name,
        stage.bytes if useful and stage.bytes else ledger.bytes,
        ledger.launches,
        useful,
        (*ledger.exchanges, *direct),
        ledger.arrivals + len(direct),
        ledger.packed,
    )


def _direct_exchange(stage: Stage) -> tuple[PlannedExchange, ...]:
    """Return the messages of a stage without a transport that counts them, such as a transpose."""
    messages = stage.messages
    if messages is None or not messages.sent or not messages.received:
        return ()
    sent, received = dict(messages.sent), dict(messages.received)
    return (tuple((peer, sent.get(peer, 0), received.get(peer, 0)) for peer in sorted({*sent, *received})),)


def magnified(plan: RunPlan, factor: float, dimensions: int = 3) -> RunPlan:
    """Return the plan with the number of items per rank multiplied by `factor`; messages scale as the surface."""
    surface = factor ** ((dimensions - 1) / dimensions)

    def scaled(stage: PlannedStage) -> PlannedStage:
        exchanges = tuple(
            tuple((peer, round(sent * surface), round(received * surface)) for peer, sent, received in exchange)
            for exchange in stage.exchanges
        )
        bytes_moved, packed = round(stage.bytes * factor), round(stage.packed * surface)
        return replace(stage, bytes=bytes_moved, packed=packed, exchanges=exchanges)

    ranks = tuple(
        PlannedRank(
            tuple((weight, tuple(map(scaled, stages))) for weight, stages in rank.steps),
            round(rank.memory * factor),
            round(rank.items * factor),
        )
        for rank in plan.ranks
    )
    return replace(plan, ranks=ranks, items=round(plan.items * factor))
