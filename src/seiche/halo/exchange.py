# SPDX-License-Identifier: BSD-3-Clause
"""Halo exchange: pack, send, receive and unpack; the caller may compute between `start` and `finish`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from seiche.backend import Array, Backend
from seiche.domain.world import World
from seiche.errors import TransportError
from seiche.halo.choice import Decision, Predictor, decide, drifted
from seiche.halo.launches import Action, Launch, message_launches
from seiche.halo.plan import HaloPlan, Slots, all_distinct, joined_slots
from seiche.halo.transports import MAX_IN_FLIGHT, Transport, TransportName, open_transport
from seiche.halo.transports.emulated import is_emulated
from seiche.halo.trial import timed_exchange
from seiche.kernels.registry import Store
from seiche.observe.repeat import Timing
from seiche.observe.stage import Messages, in_order

#: gather: owner to ghost; scatter: ghost to owner, replaced; scatter_add: ghost to owner, added.
Mode: TypeAlias = Literal["gather", "scatter", "scatter_add"]

#: Seconds spent on timing one transport.
_TRIAL_SECONDS = 0.02

#: The kernel launches of one exchange, as one call for each buffer of the transport.
_Launches: TypeAlias = tuple[Launch, ...]


class _Direction:
    """One direction of messages, owner to ghost or back: transport, array indices and exchanges in flight."""

    def __init__(
        self,
        backend: Backend,
        world: World,
        plan: HaloPlan,
        item_bytes: int,
        *,
        owner_to_ghost: bool,
        transport: TransportName,
    ) -> None:
        sources, targets = (plan.owned, plan.ghosts) if owner_to_ghost else (plan.ghosts, plan.owned)
        self.sent_bytes = tuple(item_bytes * len(slots) for slots in sources)
        self.received_bytes = tuple(item_bytes * len(slots) for slots in targets)
        self.transport: Transport = open_transport(
            transport, backend, world, peers=plan.peers, sent=self.sent_bytes, received=self.received_bytes
        )
        self.source_slots, self.target_slots = (backend.upload(joined_slots(lists)) for lists in (sources, targets))
        # One launch may unpack several messages only if no two of them write the same element.
        self.disjoint = all_distinct(*targets)
        #: Stream of exchanges without host work. It overlaps with the caller's stream and has priority.
        self.stream = (
            backend.stream(high_priority=True) if backend.concurrent_streams and self.transport.capturable else None
        )
        self.received_events: deque[Any] = deque()
        self.next_buffer = 0
        self.in_flight: deque[tuple[int, int, Mode]] = deque()


class HaloExchange:
    """Exchanges the values of a plan between ranks, for any number of arrays of one storage type.

    Between `start` and `finish` the caller must not touch the elements that messages are read from or written to. If
    the transport is capturable, the whole exchange runs on a separate stream. Exchanges are finished in the order in
    which they were started. Each direction (gather; scatter and scatter_add) allows two exchanges in flight. All ranks
    make the same sequence of calls.
    """

    def __init__(
        self,
        backend: Backend,
        world: World,
        plan: HaloPlan,
        store: Store,
        transport: TransportName = "auto",
        *,
        predict: Predictor | None = None,
    ) -> None:
        """Store the settings; buffers are allocated by the first exchange in each direction.

        Args:
            backend: the device of the arrays.
            world: the ranks.
            plan: the slots (indices of array elements) to send and to receive.
            store: type of the array elements; float16 is transferred in its stored form, scaled or not.
            transport: how messages travel.
            predict: used by "auto" to choose a transport by prediction and timing; otherwise "auto" opens the first
                one that works.
        """
        self.backend, self.world, self.plan, self.store = backend, world, plan, store
        self.transport, self._predict = transport, predict
        self._item_bytes = np.dtype(store).itemsize
        self._directions: dict[bool, _Direction] = {}
        #: Choices made by prediction; empty if the transport was specified or nothing could be predicted.
        self.decisions: list[Decision] = []
        self._decided: dict[bool, Decision] = {}
        self._bound: dict[tuple[int, Mode], tuple[_Direction, _Launches, _Launches]] = {}
        #: Disables all exchanges, to measure the cost of a step without messages.
        self.disabled = False
        #: Whether exchanges are predicted and timed as parts of graphs, where device and transport allow it.
        self.use_graphs = True
        #: Called before a transport is replaced, to discard graphs that contain its exchanges.
        self.before_change: list[Callable[[], None]] = []
        #: Timer around the work on the exchange's own stream.
        self.overlap_timer: Callable[[str], AbstractContextManager[None]] = lambda name: nullcontext()

    @property
    def bytes(self) -> int:
        """Bytes that this rank sends and receives in one exchange of any mode."""
        return self._item_bytes * sum(len(slots) for slots in (*self.plan.owned, *self.plan.ghosts))

    def sent(self, channel: str, mode: Mode = "gather") -> Messages:
        """Return the messages sent in one exchange."""
        return Messages(channel, sent=self._sizes(self.plan.owned if mode == "gather" else self.plan.ghosts))

    def received(self, channel: str, mode: Mode = "gather") -> Messages:
        """Return the messages received in one exchange."""
        return Messages(channel, received=self._sizes(self.plan.ghosts if mode == "gather" else self.plan.owned))

    def _sizes(self, slots_by_peer: tuple[Slots, ...]) -> tuple[tuple[int, int], ...]:
        return tuple(
            (peer, self._item_bytes * len(slots)) for peer, slots in zip(self.plan.peers, slots_by_peer, strict=True)
        )

    @property
    def capturable(self) -> bool:
        """Whether prepared exchanges need no host work, so that a graph can contain them."""
        return bool(self._directions) and all(direction.transport.capturable for direction in self._directions.values())

    @property
    def next_buffers(self) -> tuple[int, ...]:
        """Return the buffers of the next exchanges; a graph must be replayed from the buffers at its capture."""
        return tuple(direction.next_buffer for _, direction in sorted(self._directions.items()))

    @property
    def transport_name(self) -> str:
        """Return the name of the transport, "none" before the first exchange."""
        return next((direction.transport.name for _, direction in sorted(self._directions.items())), "none")

    @property
    def rejected_transports(self) -> tuple[str, ...]:
        """Return reasons why `auto` did not use other transports, such as memory of a peer that cannot be mapped."""
        return tuple(line for _, direction in sorted(self._directions.items()) for line in direction.transport.rejected)

    def slots(self, mode: Mode) -> tuple[Array, Array]:
        """Return the device arrays of source and target slots (indices of elements), ordered by peer.

        Call `prepare` first. The slots may be rewritten between exchanges. Target slots must be distinct; only a dummy
        element, which is never read, may occur several times.
        """
        direction = self._directions[mode == "gather"]
        return direction.source_slots, direction.target_slots

    def check(self) -> None:
        """Raise TransportError if a wait on the device timed out; call it when the device is idle."""
        for _, direction in sorted(self._directions.items()):
            if (problem := direction.transport.failure()) is not None:
                raise TransportError(problem)

    def prepare(self, array: Array, mode: Mode = "gather") -> None:
        """Set up everything that `start` and `finish` need for `array`, before they are captured or timed.

        The first call in a direction is collective. `start` makes it if necessary.

        Raises:
            TransportError: the array is too small for the plan, the mode is unknown or has no kernel for the storage
                type, or the transport cannot be opened.
        """
        self._bind(self.backend.pointer(array), array, mode)

    def start(self, array: Array, mode: Mode = "gather") -> None:
        """Pack and send the messages; returns immediately.

        Raises:
            TransportError: as `prepare`, or two exchanges are already in flight in this direction.
        """
        if self.disabled:
            return
        pointer = self.backend.pointer(array)
        direction, packs, unpacks = self._bound.get((pointer, mode)) or self._bind(pointer, array, mode)
        if len(direction.in_flight) == MAX_IN_FLIGHT:
            raise TransportError(
                f"rank {self.world.rank}: {MAX_IN_FLIGHT} exchanges are already in flight; finish one first"
            )
        buffer_index = direction.next_buffer
        if direction.stream is not None:
            direction.stream.wait(self.backend.current().record())
            with self.backend.use(direction.stream), self.overlap_timer("exchange"):
                self._send(direction, packs[buffer_index], buffer_index)
                self._receive(direction, unpacks[buffer_index], buffer_index)
                direction.received_events.append(direction.stream.record())
        else:
            self._send(direction, packs[buffer_index], buffer_index)
        direction.in_flight.append((buffer_index, pointer, mode))
        direction.next_buffer = (buffer_index + 1) % direction.transport.buffer_count

    def finish(self, array: Array, mode: Mode = "gather") -> None:
        """Receive and unpack the messages, in the order of the current stream.

        Raises:
            TransportError: the oldest exchange in flight in this direction is another one, or a message failed.
        """
        if self.disabled:
            return
        pointer = self.backend.pointer(array)
        bound = self._bound.get((pointer, mode))
        if bound is None or not bound[0].in_flight or bound[0].in_flight[0][1:] != (pointer, mode):
            raise TransportError(
                f"rank {self.world.rank}: the exchange to finish ({mode}) is not the one that was started first"
            )
        direction, _, unpacks = bound
        buffer_index = direction.in_flight[0][0]
        if direction.stream is not None:
            self.backend.current().wait(direction.received_events.popleft())
        else:
            self._receive(direction, unpacks[buffer_index], buffer_index)
        direction.in_flight.popleft()

    @staticmethod
    def _send(direction: _Direction, pack: Launch, buffer_index: int) -> None:
        direction.transport.acquire(buffer_index)
        pack()
        direction.transport.send(buffer_index)

    @staticmethod
    def _receive(direction: _Direction, unpack: Launch, buffer_index: int) -> None:
        direction.transport.receive(buffer_index)
        unpack()
        direction.transport.release(buffer_index)

    def close(self) -> None:
        """Close the transports (collective). Discard captured graphs first.

        Raises:
            TransportError: an exchange was started and not finished.
        """
        self._check_idle("close")
        for _, direction in sorted(self._directions.items()):
            direction.transport.close()
        self._directions.clear()
        self._decided.clear()
        self._bound.clear()

    def _check_idle(self, action: str) -> None:
        if any(direction.in_flight for direction in self._directions.values()):
            raise TransportError(f"rank {self.world.rank}: cannot {action} while an exchange is in flight")

    def _direction(self, owner_to_ghost: bool) -> _Direction:
        if owner_to_ghost not in self._directions:
            times = self._predicted_times(owner_to_ghost)
            if not times or not self._choose(owner_to_ghost, times):
                self._directions[owner_to_ghost] = self._open(owner_to_ghost, self.transport)
        return self._directions[owner_to_ghost]

    def _open(self, owner_to_ghost: bool, transport: str) -> _Direction:
        name = cast(TransportName, transport)
        return _Direction(
            self.backend, self.world, self.plan, self._item_bytes, owner_to_ghost=owner_to_ghost, transport=name
        )

    def _predicted_times(self, owner_to_ghost: bool) -> dict[str, float]:
        """Return the predicted seconds by transport; empty without a predictor or if there is no choice."""
        if self._predict is None or self.transport != "auto" or self.world.size == 1:
            return {}
        if is_emulated(
            self.backend, self.world
        ):  # the machine file describes other hardware: a prediction would require new measurements
            return {}
        owned_bytes, ghost_bytes = (
            [self._item_bytes * len(slots) for slots in lists] for lists in (self.plan.owned, self.plan.ghosts)
        )
        sent, received = (owned_bytes, ghost_bytes) if owner_to_ghost else (ghost_bytes, owned_bytes)
        return self._predict(self.backend, self.world, self.plan.peers, sent, received, graphs=self.use_graphs)

    def _choose(self, owner_to_ghost: bool, times: dict[str, float], fallback_reason: str = "") -> bool:
        """Open the fastest transport, if any can be opened; return whether it differs from the present one."""
        present = self._directions.get(owner_to_ghost)
        name = self._decided[owner_to_ghost].transport if present is not None else ""
        choice = decide(
            self.world,
            times,
            lambda other: present if present is not None and other == name else self._open(owner_to_ghost, other),
            self._trial,
            lambda direction: direction.transport.close(),
            fallback_reason=fallback_reason,
        )
        if choice is None:
            return False
        self._directions[owner_to_ghost], self._decided[owner_to_ghost] = choice
        self.decisions.append(choice[1])
        return choice[0] is not present

    @property
    def can_reconsider(self) -> bool:
        """Return whether transports were chosen by prediction and can be replaced: `slots` are not rewritten."""
        return bool(self._decided) and not self.plan.sized

    def reconsider(self, seconds: float = _TRIAL_SECONDS) -> bool:
        """Time the chosen transports again and choose again where the duration drifted (collective).

        Returns whether a transport changed.

        Raises:
            TransportError: an exchange is in flight.
        """
        self._check_idle("choose transports again")
        changed = False
        for owner_to_ghost, decision in sorted(self._decided.items()) if self.can_reconsider else ():
            direction = self._directions[owner_to_ghost]
            earlier_time, current = decision.measured[decision.transport], self._trial(direction, seconds)
            if drifted(earlier_time, current):
                for discard_graphs in self.before_change:
                    discard_graphs()
                if self._choose(owner_to_ghost, dict(decision.predicted), decision.change_since_choice(current)):
                    changed = True
                    for key in [key for key, bound in self._bound.items() if bound[0] is direction]:
                        self._bind_launches(self._directions[owner_to_ghost], *key)
        return changed

    def trial(self, mode: Mode = "gather", seconds: float = _TRIAL_SECONDS) -> float:
        """Return the seconds of one exchange, timed for `seconds` on scratch arrays (collective).

        It is timed in a graph if steps are replayed and the transport is capturable.

        Raises:
            TransportError: the transport cannot be opened, or an exchange is in flight.
        """
        return self.timing(mode, seconds).minimum

    def timing(self, mode: Mode = "gather", seconds: float = _TRIAL_SECONDS) -> Timing:
        """Return the timing of `trial` (collective).

        Raises:
            TransportError: as `trial`.
        """
        direction = self._direction(mode == "gather")
        if direction.in_flight:
            raise TransportError(f"rank {self.world.rank}: cannot start a trial while an exchange is in progress")
        return self._timing(direction, seconds)

    def _trial(self, direction: _Direction, seconds: float = _TRIAL_SECONDS) -> float:
        return self._timing(direction, seconds).minimum

    def _timing(self, direction: _Direction, seconds: float) -> Timing:
        return timed_exchange(self.backend, self.world, self.store, direction.transport, seconds, graph=self.use_graphs)

    def _bind(self, pointer: int, array: Array, mode: Mode) -> tuple[_Direction, _Launches, _Launches]:
        if mode not in ("gather", "scatter", "scatter_add"):
            raise TransportError(f"halo mode {mode!r} is unknown: use 'gather', 'scatter' or 'scatter_add'")
        if mode == "scatter_add" and self.store == "float16":
            raise TransportError("scatter_add of float16 would round every sum; use float32 or float64")
        if array.nbytes < self._item_bytes * self.plan.slots:
            raise TransportError(
                f"rank {self.world.rank}: an array of {array.nbytes} B is too small"
                f" for a halo plan of {self.plan.slots} {self.store} slots"
            )
        return self._bind_launches(self._direction(mode == "gather"), pointer, mode)

    def _bind_launches(
        self, direction: _Direction, pointer: int, mode: Mode
    ) -> tuple[_Direction, _Launches, _Launches]:
        """Bind the pack and unpack launches of the array at `pointer`."""
        unpack: Action = "UnpackAdd" if mode == "scatter_add" else "Unpack"
        backend, transport, common = self.backend, direction.transport, (self.store, pointer)
        sources = {"slots": direction.source_slots, "sizes": direction.sent_bytes}
        packs = tuple(
            in_order(message_launches(backend, "Pack", *common, **sources, addresses=addresses))
            for addresses in transport.outgoing
        )
        targets = {"slots": direction.target_slots, "sizes": direction.received_bytes, "disjoint": direction.disjoint}
        unpacks = tuple(
            in_order(message_launches(backend, unpack, *common, **targets, addresses=addresses))
            for addresses in transport.incoming
        )
        self._bound[pointer, mode] = (direction, packs, unpacks)
        return self._bound[pointer, mode]


def exchange_memory(messages: Sequence[tuple[int, int, int]], value_bytes: int) -> int:
    """Return the device memory (B) of a *gather* of `messages` (peer, values sent, values received).

    The messages of a direction are adjacent, and slots have 32 bits.
    """
    sent, received = (sum(message[k] for message in messages) for k in (1, 2))
    buffers = MAX_IN_FLIGHT * (max(1, value_bytes * sent) + max(1, value_bytes * received))
    return buffers + 4 * (sent + received)
