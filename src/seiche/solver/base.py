# SPDX-License-Identifier: BSD-3-Clause
"""Base class of all solvers: steps are advanced, timed, replayed as graphs and checked here.

A solver defines the stages of its steps; this module runs them. On a device with graphs, `graph_steps` steps are
captured once and replayed, messages included, if this does not change results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter_ns
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
    """Result of a check that found all values finite; `values` are results for the whole domain, such as "mach"."""

    step: int
    values: Mapping[str, float] = field(default_factory=dict)


class StepExchange(Protocol):
    """Messages of a step: a halo exchange or a collective."""

    decisions: list[Any]

    @property
    def capturable(self) -> bool:
        """Whether a graph can contain the messages."""

    @property
    def transport_name(self) -> str:
        """Name of the transport."""

    @property
    def rejected_transports(self) -> tuple[str, ...]:
        """Reasons why other transports were not used."""

    @property
    def can_reconsider(self) -> bool:
        """Whether the transport was chosen from the data in a machine file."""

    def reconsider(self) -> bool:
        """Measure again and choose again (collective); return whether the choice changed."""

    def check(self) -> None:
        """Raise TransportError if a message did not arrive."""

    def close(self) -> None:
        """Free the transport (collective)."""


class SolverBase(ABC):
    """Steps of one discretisation on the ranks of a world; methods are collective unless noted.

    Attributes:
        backend: the device of this rank.
        world: the ranks.
        timers: times of the stages.
        precision: "float32" or "float64"; a pair (arithmetic, storage) for flow.
        step: number of steps done.
        dt: duration of a step; 1 in lattice units, otherwise in seconds or in the unit of the speeds.
        item: the kind of item distributed over ranks: "sites", "elements" or "points".
        items: number of items of this rank.
        total_items: number of items of all ranks.
        layout: description of the storage layout, scheme or element, for summaries.
        exchanges: messages of a step.
        lookahead: whether the device may run one chunk of steps ahead of the host.
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
    exchanges: Sequence[StepExchange]
    lookahead = False
    #: Number of steps in a graph.
    graph_steps = GRAPH_STEPS
    _replay: Replay

    # ---- definition of a solver

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
        """Return the relative frequency of each kind of step; None if they alternate."""
        return None

    @abstractmethod
    def check(self) -> Health:
        """Check the present state and return its totals.

        Raises:
            UnstableError: on every rank, if a value of the state is not finite.
        """

    @abstractmethod
    def fields(self, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
        """Return fields of this rank's items by name, (items, ...).

        Raises:
            KeyError: an unknown name.
        """

    def device_fields(self, names: Sequence[str]) -> dict[str, Array]:
        """Return the same fields as device arrays: views of the storage of the solver, or `derived_field` arrays."""
        fields = self.fields(names)
        for name, values in fields.items():
            fields[name] = self.derived_field(name, values.shape, values.dtype)
            self.backend.assign(fields[name], values)
        return fields

    def derived_field(self, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Return the device array of a derived field; later calls for `name` return the same one (not collective)."""
        array = self._derived_fields.get(name)
        if array is None or array.shape != shape:
            self._derived_fields[name] = array = self.backend.zeros(shape, dtype)
        return array

    @cached_property
    def _derived_fields(self) -> dict[str, Array]:
        return {}

    @abstractmethod
    def state(self) -> State:
        """Return the state for a restart, independent of the number of ranks, layout and device."""

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

    def _prepare_steps(self, steps: int) -> int:
        """Prepare for at most `steps` steps; return the number of steps prepared, at least one."""
        return steps

    def _before_launch(self, steps: int) -> Hashable:
        """Prepare the next launch, one step or one graph; return the key of a graph of these steps."""
        return 0

    def _after_launch(self, steps: int) -> None:  # noqa: B027  (a hook)
        """Process a completed launch of `steps` steps; `step` is already the new number."""

    def _finish_steps(self, steps: int) -> None:  # noqa: B027  (a hook)
        """Finish the steps that `_prepare_steps` prepared."""

    def _collect(self) -> None:  # noqa: B027  (a hook)
        """Copy records to the host when the device is idle."""

    def _may_replay(self) -> bool:
        """Return whether the next steps can be a graph; the first step cannot, because it allocates."""
        return self.step > 0 and self.step % len(self.phases) == 0

    def _upcoming(self, steps: int) -> Sequence[Sequence[Stage]]:
        """Return the stages of the next `steps` steps, for a graph."""
        return [self.phases[k % len(self.phases)] for k in range(steps)]

    # ---- execution of steps

    def advance(self, steps: int = 1) -> None:
        """Advance by `steps` steps and wait for them.

        Raises:
            TransportError: a message from another rank did not arrive.
            UnstableError: a value of the state is not finite.
        """
        self.start(steps)
        self.finish()
        self.check()

    def start(self, steps: int) -> None:
        """Submit `steps` steps to the device without waiting for them."""
        with self.timers.running():
            end = self.step + steps
            while self.step < end:
                first, begin = self.step, perf_counter_ns()
                last = min(end, first + max(1, self._prepare_steps(end - first)))
                self.timers.preparation.add(perf_counter_ns() - begin)
                while self.step < last:
                    self._launch(last - self.step)
                begin = perf_counter_ns()
                self._finish_steps(last - first)
                self.timers.preparation.add(perf_counter_ns() - begin)

    def _launch(self, remaining: int) -> None:
        begin = perf_counter_ns()
        replayed = self._can_replay(remaining)
        count = self.graph_steps if replayed else 1
        key = self._before_launch(count)
        stages = self.stages if not replayed else ()
        launched = perf_counter_ns()
        if replayed:
            self.timers.replay(count, lambda: self._replay.launch(self._upcoming(count), key))
        else:
            self.timers.step(stages)
        done = perf_counter_ns()
        self.step += count
        self._after_launch(count)
        self.timers.preparation.add(launched - begin + perf_counter_ns() - done)

    def _can_replay(self, remaining: int) -> bool:
        return (
            remaining >= self.graph_steps
            and self.backend.has_graphs
            and not self.timers.is_sample_due
            and all(exchange.capturable for exchange in self.exchanges)
            and self._may_replay()
        )

    def record_event(self) -> Any:
        """Record an event after all work submitted to the device (not collective)."""
        return self.backend.current().record()

    def finish(self, event: Any = None) -> None:
        """Wait for all work submitted to the device, or for the work before `event`.

        Raises:
            TransportError: a message from another rank did not arrive.
        """
        with self.timers.running(), self.timers.waiting():
            if event is None:
                self.backend.synchronize()
            else:
                self.backend.await_event(event)
            for exchange in self.exchanges:
                exchange.check()
        if event is None:
            self._collect()

    @property
    def transport(self) -> str:
        """Return the transport of the messages, "none" without messages (not collective)."""
        return next((exchange.transport_name for exchange in self.exchanges), "none")

    @property
    def decisions(self) -> list[str]:
        """Return choices based on a machine file, and transports not usable, with reasons (not collective)."""
        choices = [choice.describe() for exchange in self.exchanges for choice in exchange.decisions]
        rejected_transports = [line for exchange in self.exchanges for line in exchange.rejected_transports]
        return list(dict.fromkeys([*choices, *rejected_transports]))

    def reconsider(self) -> None:
        """Choose transports again if messages are slower than predicted; call after `finish`. Results do not change."""
        if any(exchange.can_reconsider for exchange in self.exchanges):
            self.discard_graphs()  # they contain the messages
            for exchange in self.exchanges:
                exchange.reconsider()

    def discard_graphs(self) -> None:
        """Discard captured steps before stages or transports change (not collective)."""
        self._replay.clear()

    def close(self) -> None:
        """Free all resources on the device and on other ranks; a second call does nothing."""
        self.discard_graphs()  # first: communicators wait for graphs that use them
        for exchange in self.exchanges:
            exchange.close()
