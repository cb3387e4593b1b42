# SPDX-License-Identifier: BSD-3-Clause
"""The base of every solver: how steps are advanced, timed, replayed as graphs, checked and closed.

A solver says what the stages of its steps are; this module does them. On a device with graphs, `graph_steps` steps at a
time are captured once and replayed, messages included, wherever that does not change a result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.domain.world import World
from seiche.observe.stage import Stage
from seiche.observe.timers import StageTimers
from seiche.solver.replay import GRAPH_STEPS, Replay
from seiche.solver.state import State


@dataclass(frozen=True)
class Health:
    """What a check of a finite state found; `values` are numbers of the whole domain by name, such as "mach"."""

    step: int
    values: Mapping[str, float] = field(default_factory=dict)


class Exchange(Protocol):
    """Messages of a step: a halo exchange or a collective."""

    decisions: list[Any]

    @property
    def capturable(self) -> bool:
        """Whether a graph may contain them."""

    @property
    def transport_name(self) -> str:
        """How they travel."""

    @property
    def can_reconsider(self) -> bool:
        """Whether a machine file chose how they travel."""

    def reconsider(self) -> bool:
        """Measure again and choose anew (collective); return whether the choice changed."""

    def check(self) -> None:
        """Raise TransportError if a message did not arrive."""

    def close(self) -> None:
        """Free the transport (collective)."""


class SolverBase(ABC):
    """Steps of one discretisation on the ranks of a world; all methods are collective unless they say otherwise.

    Attributes:
        backend: the device of this rank.
        world: the ranks.
        timers: time of each stage.
        precision: of the arithmetic, "float32" or "float64"; flow has a pair, arithmetic and storage.
        step: number of steps done.
        dt: duration of a step; 1 in lattice units, otherwise in seconds or in the unit of the speeds.
        item: what the ranks share out: "sites", "elements" or "points".
        items: number of items of this rank.
        total_items: number of items of all ranks.
        layout: the storage layout, scheme or kind of element, in words, for summaries.
        exchanges: messages of a step.
        lookahead: whether the host may be one chunk of steps behind the device.
    """

    backend: Backend
    world: World
    timers: StageTimers
    precision: Any
    step: int
    dt: float
    item: str
    items: int
    total_items: int
    layout: str
    exchanges: Sequence[Exchange]
    lookahead = False
    #: Steps that one graph holds.
    graph_steps = GRAPH_STEPS
    _replay: Replay

    # ---- what a solver says of itself

    @property
    @abstractmethod
    def phases(self) -> Sequence[Sequence[Stage]]:
        """Return the stages of each kind of step."""

    @property
    def stages(self) -> Sequence[Stage]:
        """Return the stages of the next step; the kinds of step alternate."""
        return self.phases[self.step % len(self.phases)]

    @property
    def weights(self) -> Sequence[float] | None:
        """Return how often each kind of step came; None where the kinds alternate."""
        return None

    @abstractmethod
    def check(self) -> Health:
        """Return totals of the present state.

        Raises:
            UnstableError: on every rank, if a number of the state is not finite.
        """

    @abstractmethod
    def fields(self, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
        """Return fields of this rank's items by name, (items, ...).

        Raises:
            KeyError: an unknown name.
        """

    def device_fields(self, names: Sequence[str]) -> dict[str, Array]:
        """Return the same as arrays of the device: views of what the solver stores, or copies."""
        return {name: self.backend.upload(values) for name, values in self.fields(names).items()}

    @abstractmethod
    def state(self) -> State:
        """Return what a restart needs, the same for every number of ranks, layout and device."""

    @property
    @abstractmethod
    def keys(self) -> Mapping[str, npt.NDArray[np.int64]]:
        """Return the rows that this rank needs of each row set of a state (not collective)."""

    @abstractmethod
    def set_state(self, state: State) -> None:
        """Continue from `state`, whose rows are those of `keys`.

        Raises:
            CaseError: an array is missing or has another shape.
        """

    # ---- hooks

    def _before(self, steps: int) -> int:
        """Prepare for at most `steps` steps; return for how many of them, one or more, that is enough."""
        return steps

    def _before_launch(self, steps: int) -> Hashable:
        """Prepare for the next launch, of one step or one graph; return the key of a graph of these steps."""
        return 0

    def _after_launch(self, steps: int) -> None:  # noqa: B027  (a hook)
        """Account for a launch of `steps` steps; `step` is already the new number."""

    def _after(self, steps: int) -> None:  # noqa: B027  (a hook)
        """Do what has to follow the steps that `_before` allowed."""

    def _collect(self) -> None:  # noqa: B027  (a hook)
        """Bring what was recorded to the host, once the device is idle."""

    def _may_replay(self) -> bool:
        """Return whether the next steps may come from a graph: not the first, which makes what is made on first use."""
        return self.step > 0 and self.step % len(self.phases) == 0

    def _upcoming(self, steps: int) -> Sequence[Sequence[Stage]]:
        """Return the stages of the next `steps` steps, for a graph."""
        return [self.phases[k % len(self.phases)] for k in range(steps)]

    # ---- the life of a step

    def advance(self, steps: int = 1) -> None:
        """Advance by `steps` steps and wait for them.

        Raises:
            TransportError: a message of another rank did not arrive.
            UnstableError: a number of the state is not finite.
        """
        self.start(steps)
        self.finish()
        self.check()

    def start(self, steps: int) -> None:
        """Submit `steps` steps to the device, which may still be busy with them when this returns."""
        with self.timers.running():
            end = self.step + steps
            while self.step < end:
                first = self.step
                last = min(end, first + max(1, self._before(end - first)))
                while self.step < last:
                    self._launch(last - self.step)
                self._after(last - first)

    def _launch(self, remaining: int) -> None:
        replayed = self._can_replay(remaining)
        count = self.graph_steps if replayed else 1
        key = self._before_launch(count)
        if replayed:
            self.timers.replay(count, lambda: self._replay.launch(self._upcoming(count), key))
        else:
            self.timers.step(self.stages)
        self.step += count
        self._after_launch(count)

    def _can_replay(self, remaining: int) -> bool:
        return (
            remaining >= self.graph_steps
            and self.backend.has_graphs
            and not self.timers.due
            and all(exchange.capturable for exchange in self.exchanges)
            and self._may_replay()
        )

    def mark(self) -> Any:
        """Return an event that the device reaches after all it was given so far (not collective)."""
        return self.backend.current().record()

    def finish(self, mark: Any = None) -> None:
        """Wait until the device has done all it was given, or all before `mark`.

        Raises:
            TransportError: a message of another rank did not arrive.
        """
        with self.timers.running(), self.timers.waiting():
            if mark is None:
                self.backend.synchronize()
            else:
                self.backend.await_event(mark)
            for exchange in self.exchanges:
                exchange.check()
        if mark is None:
            self._collect()

    @property
    def transport(self) -> str:
        """Return how messages travel, "none" without any (not collective)."""
        return next((exchange.transport_name for exchange in self.exchanges), "none")

    @property
    def decisions(self) -> list[str]:
        """Return in words what a machine file chose for the messages, and why (not collective)."""
        return list(dict.fromkeys(each.describe() for exchange in self.exchanges for each in exchange.decisions))

    def reconsider(self) -> None:
        """Choose anew how messages travel where that takes longer than predicted; after `finish`. Results stay."""
        if any(exchange.can_reconsider for exchange in self.exchanges):
            self.discard_graphs()  # they hold the messages that may change
            for exchange in self.exchanges:
                exchange.reconsider()

    def discard_graphs(self) -> None:
        """Discard captured steps, because stages or transports change (not collective)."""
        self._replay.clear()

    def close(self) -> None:
        """Free what other ranks or the device hold for this solver; a second call does nothing."""
        self.discard_graphs()  # first: a communicator waits for the graphs that use it
        for exchange in self.exchanges:
            exchange.close()
