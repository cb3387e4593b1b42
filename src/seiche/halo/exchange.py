# SPDX-License-Identifier: BSD-3-Clause
"""The exchange of a halo: pack, let a transport carry the messages, unpack; the caller works in between."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from seiche.backend import Array, Backend
from seiche.domain.world import World
from seiche.errors import TransportError
from seiche.halo.choice import Decision, Predictor, decide, drifted
from seiche.halo.launches import Action, Launch, moves
from seiche.halo.plan import HaloPlan, Slots, all_distinct
from seiche.halo.transports import UNDER_WAY, Transport, TransportName, open_transport
from seiche.halo.trial import timed_exchange
from seiche.kernels.registry import Store
from seiche.observe.repeat import Timing
from seiche.observe.stage import Messages

#: gather: owner to copy; scatter: copy to owner, replaced; scatter_add: copy to owner, added.
Mode: TypeAlias = Literal["gather", "scatter", "scatter_add"]

#: Seconds of timing a transport before it is taken.
_TRIAL = 0.02

#: Launches of one message round, for each of the transport's slots.
_Launches: TypeAlias = tuple[tuple[Launch, ...], ...]


class _Direction:
    """Messages from owners to copies, or back: their transport, their slots on the device, and who is under way."""

    def __init__(
        self, backend: Backend, world: World, plan: HaloPlan, size: int, *, outward: bool, transport: TransportName
    ) -> None:
        sources, targets = (plan.owned, plan.copies) if outward else (plan.copies, plan.owned)
        self.sent = tuple(size * len(part) for part in sources)
        self.received = tuple(size * len(part) for part in targets)
        self.transport: Transport = open_transport(
            transport, backend, world, peers=plan.peers, sent=self.sent, received=self.received
        )
        self.source_slots = backend.upload(np.concatenate([np.zeros(0, np.uint32), *sources]))
        self.target_slots = backend.upload(np.concatenate([np.zeros(0, np.uint32), *targets]))
        # Messages may be unpacked side by side only if no two of them write the same slot.
        self.disjoint = all_distinct(*targets)
        #: Where the whole exchange is device work: beside the caller's, and before it where both want the device.
        self.stream = backend.stream(urgent=True) if backend.concurrent_streams and self.transport.capturable else None
        self.received_events: deque[Any] = deque()
        self.next_slot = 0
        self.under_way: deque[tuple[int, int, Mode]] = deque()


class HaloExchange:
    """Carries the values of a plan between ranks, for any number of arrays of one storage type.

    Between `start` and `finish` the caller may work on all parts of the array but those that messages are read from or
    written to. Where a transport is device work only, the whole exchange runs on a stream of its own beside that work.
    `finish` comes in the order of `start`; in each direction (gather; scatter and scatter_add) at most two exchanges
    may be under way. All ranks call the same sequence.
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
        """Remember what to exchange; buffers come with the first exchange in each direction.

        Args:
            backend: the device that holds the arrays.
            world: the ranks.
            plan: the slots.
            store: type of an array's elements; float16 is carried as it is stored, scaled or not.
            transport: how messages travel.
            predict: "auto" takes a transport by what it predicts of each, and times it; without one the first that
                works.
        """
        self.backend, self.world, self.plan, self.store = backend, world, plan, store
        self.transport, self._predict = transport, predict
        self._size = np.dtype(store).itemsize
        self._directions: dict[bool, _Direction] = {}
        #: What was chosen by predictions, and why; none where the transport was given or nothing is predicted.
        self.decisions: list[Decision] = []
        self._decided: dict[bool, Decision] = {}
        self._bound: dict[tuple[int, Mode], tuple[_Direction, _Launches, _Launches]] = {}
        #: Nothing is packed, sent or waited for: for those who ask what a step costs without messages.
        self.silent = False
        #: Whether steps are replayed as graphs where they can be: what is timed, and predicted, then is a graph.
        self.replayed = True
        #: Forget graphs that hold messages of this exchange: called before their transport may go.
        self.before_change: list[Callable[[], None]] = []
        #: Around what goes on in the exchange's own stream: whoever times the steps puts a stopwatch here.
        self.beside: Callable[[str], AbstractContextManager[None]] = lambda name: nullcontext()

    @property
    def bytes(self) -> int:
        """Bytes of the messages that this rank sends and receives in one exchange of any mode."""
        return self._size * sum(len(part) for part in (*self.plan.owned, *self.plan.copies))

    def sent(self, channel: str, mode: Mode = "gather") -> Messages:
        """Return what leaves this rank in one exchange."""
        parts = self.plan.owned if mode == "gather" else self.plan.copies
        return Messages(channel, sent=self._sizes(parts))

    def received(self, channel: str, mode: Mode = "gather") -> Messages:
        """Return what arrives in one exchange."""
        parts = self.plan.copies if mode == "gather" else self.plan.owned
        return Messages(channel, received=self._sizes(parts))

    def _sizes(self, parts: tuple[Slots, ...]) -> tuple[tuple[int, int], ...]:
        return tuple((peer, self._size * len(part)) for peer, part in zip(self.plan.peers, parts, strict=True))

    @property
    def capturable(self) -> bool:
        """Whether prepared exchanges are device work only, so that a graph may contain them."""
        return bool(self._directions) and all(each.transport.capturable for each in self._directions.values())

    @property
    def next_slots(self) -> tuple[int, ...]:
        """Return the slots that the next exchanges use: a captured graph goes on only where it began."""
        return tuple(direction.next_slot for _, direction in sorted(self._directions.items()))

    @property
    def transport_name(self) -> str:
        """Return how messages travel, "none" before the first exchange."""
        return next((direction.transport.name for _, direction in sorted(self._directions.items())), "none")

    def slots(self, mode: Mode) -> tuple[Array, Array]:
        """Return the slots on the device that messages are read from and written to, peer by peer, once prepared.

        They may be written between exchanges; slots that a message writes must differ, but for one that nobody reads.
        """
        direction = self._directions[mode == "gather"]
        return direction.source_slots, direction.target_slots

    def check(self) -> None:
        """Raise TransportError if the device gave up waiting for a message; call it when the device is idle."""
        for _, direction in sorted(self._directions.items()):
            if (problem := direction.transport.failure()) is not None:
                raise TransportError(problem)

    def prepare(self, array: Array, mode: Mode = "gather") -> None:
        """Set up everything that `start` and `finish` need for `array`, so that they can be captured or timed.

        The first call in a direction is collective: all ranks must make it together. `start` makes it if need be.

        Raises:
            TransportError: the array is too small for the plan, the mode is unknown or has no kernel for the storage
                type, or the transport cannot be opened.
        """
        self._bind(self.backend.pointer(array), array, mode)

    def start(self, array: Array, mode: Mode = "gather") -> None:
        """Pack the messages and send them; returns at once.

        Raises:
            TransportError: as `prepare`; or two exchanges are already under way in this direction.
        """
        if self.silent:
            return
        pointer = self.backend.pointer(array)
        bound = self._bound.get((pointer, mode)) or self._bind(pointer, array, mode)
        direction, packs, unpacks = bound
        if len(direction.under_way) == UNDER_WAY:
            raise TransportError(
                f"rank {self.world.rank}: {UNDER_WAY} exchanges are under way, finish one before the next"
            )
        slot = direction.next_slot
        if direction.stream is not None:
            direction.stream.wait(self.backend.current().record())
            with self.backend.use(direction.stream), self.beside("exchange"):
                self._send(direction, packs[slot], slot)
                self._receive(direction, unpacks[slot], slot)
                direction.received_events.append(direction.stream.record())
        else:
            self._send(direction, packs[slot], slot)
        direction.under_way.append((slot, pointer, mode))
        direction.next_slot = (slot + 1) % direction.transport.slots

    def finish(self, array: Array, mode: Mode = "gather") -> None:
        """Receive the messages and unpack them, in the order of the current stream.

        Raises:
            TransportError: the oldest exchange under way in this direction is another one, or a message failed.
        """
        if self.silent:
            return
        pointer = self.backend.pointer(array)
        bound = self._bound.get((pointer, mode))
        if bound is None or not bound[0].under_way or bound[0].under_way[0][1:] != (pointer, mode):
            raise TransportError(f"rank {self.world.rank}: finish of a {mode} that is not the oldest one started")
        direction, _, unpacks = bound
        slot = direction.under_way[0][0]
        if direction.stream is not None:
            self.backend.current().wait(direction.received_events.popleft())
        else:
            self._receive(direction, unpacks[slot], slot)
        direction.under_way.popleft()

    @staticmethod
    def _send(direction: _Direction, packs: tuple[Launch, ...], slot: int) -> None:
        direction.transport.acquire(slot)
        for launch in packs:
            launch()
        direction.transport.send(slot)

    @staticmethod
    def _receive(direction: _Direction, unpacks: tuple[Launch, ...], slot: int) -> None:
        direction.transport.receive(slot)
        for launch in unpacks:
            launch()
        direction.transport.release(slot)

    def close(self) -> None:
        """Free the transports; all ranks must call it together, with nothing under way and no captured graph kept.

        Raises:
            TransportError: an exchange was started and not finished.
        """
        if any(direction.under_way for direction in self._directions.values()):
            raise TransportError(f"rank {self.world.rank}: close while an exchange is under way")
        for _, direction in sorted(self._directions.items()):
            direction.transport.close()
        self._directions.clear()
        self._decided.clear()
        self._bound.clear()

    def _direction(self, outward: bool) -> _Direction:
        if outward not in self._directions:
            times = self._times(outward)
            if not times or not self._choose(outward, times):
                self._directions[outward] = self._made(outward, self.transport)
        return self._directions[outward]

    def _made(self, outward: bool, transport: str) -> _Direction:
        name = cast(TransportName, transport)
        return _Direction(self.backend, self.world, self.plan, self._size, outward=outward, transport=name)

    def _times(self, outward: bool) -> dict[str, float]:
        """Return the predicted seconds of each transport, none without a predictor or a choice."""
        if self._predict is None or self.transport != "auto" or self.world.size == 1:
            return {}
        owned, copies = ([self._size * len(part) for part in parts] for parts in (self.plan.owned, self.plan.copies))
        sent, received = (owned, copies) if outward else (copies, owned)
        return self._predict(self.backend, self.world, self.plan.peers, sent, received, graphs=self.replayed)

    def _choose(self, outward: bool, times: dict[str, float], doubt: str = "") -> bool:
        """Take the best transport; return whether it is another one than before (if one could be opened)."""
        present = self._directions.get(outward)
        name = self._decided[outward].transport if present is not None else ""
        found = decide(
            self.world,
            times,
            lambda each: present if present is not None and each == name else self._made(outward, each),
            self._trial,
            lambda direction: direction.transport.close(),
            doubt=doubt,
        )
        if found is None:
            return False
        self._directions[outward], self._decided[outward] = found
        self.decisions.append(found[1])
        return found[0] is not present

    @property
    def can_reconsider(self) -> bool:
        """Return whether transports were chosen by predictions and may be changed: their slots are the plan's."""
        return bool(self._decided) and not self.plan.sized

    def reconsider(self, seconds: float = _TRIAL) -> bool:
        """Time what was chosen again, and choose anew where that drifted; return whether it is another one now.

        Collective, with nothing under way.

        Raises:
            TransportError: an exchange is under way.
        """
        if any(direction.under_way for direction in self._directions.values()):
            raise TransportError(f"rank {self.world.rank}: reconsider while an exchange is under way")
        changed = False
        for outward, decision in sorted(self._decided.items()) if self.can_reconsider else ():
            direction = self._directions[outward]
            then, now = decision.measured[decision.transport], self._trial(direction, seconds)
            if drifted(then, now):
                for forget in self.before_change:
                    forget()
                if self._choose(outward, dict(decision.predicted), decision.now_takes(now)):
                    changed = True
                    for key in [key for key, bound in self._bound.items() if bound[0] is direction]:
                        self._launch_by(self._directions[outward], *key)
        return changed

    def trial(self, mode: Mode = "gather", seconds: float = _TRIAL) -> float:
        """Return the seconds of one exchange that leaves every array as it is, timed for `seconds` (collective).

        In a graph where steps are `replayed` and the exchange is device work only.

        Raises:
            TransportError: the transport cannot be opened, or an exchange is under way.
        """
        return self.timing(mode, seconds).minimum

    def timing(self, mode: Mode = "gather", seconds: float = _TRIAL) -> Timing:
        """Return the timing of `trial` (collective).

        Raises:
            TransportError: as `trial`.
        """
        direction = self._direction(mode == "gather")
        if direction.under_way:
            raise TransportError(f"rank {self.world.rank}: no trial while an exchange is under way")
        return self._timing(direction, seconds)

    def _trial(self, direction: _Direction, seconds: float = _TRIAL) -> float:
        return self._timing(direction, seconds).minimum

    def _timing(self, direction: _Direction, seconds: float) -> Timing:
        given = (self.backend, self.world, self.store, direction.transport, seconds)
        return timed_exchange(*given, graph=self.replayed)

    def _bind(self, pointer: int, array: Array, mode: Mode) -> tuple[_Direction, _Launches, _Launches]:
        if mode not in ("gather", "scatter", "scatter_add"):
            raise TransportError(f"halo mode {mode!r} is unknown: use 'gather', 'scatter' or 'scatter_add'")
        if mode == "scatter_add" and self.store == "float16":
            raise TransportError("scatter_add of float16 would round every sum: use float32 or float64")
        if array.nbytes < self._size * self.plan.slots:
            raise TransportError(
                f"rank {self.world.rank}: an array of {array.nbytes} B is too small"
                f" for a halo plan of {self.plan.slots} {self.store} slots"
            )
        return self._launch_by(self._direction(mode == "gather"), pointer, mode)

    def _launch_by(self, direction: _Direction, pointer: int, mode: Mode) -> tuple[_Direction, _Launches, _Launches]:
        """Return how messages from and to the array at `pointer` are put together and taken apart."""
        taken: Action = "UnpackAdd" if mode == "scatter_add" else "Unpack"
        transport, given = direction.transport, (self.store, pointer)
        packs = tuple(
            moves(self.backend, "Pack", *given, direction.source_slots, sizes=direction.sent, addresses=addresses)
            for addresses in transport.outgoing
        )
        unpacks = tuple(
            moves(
                self.backend,
                taken,
                *given,
                direction.target_slots,
                sizes=direction.received,
                addresses=addresses,
                together=direction.disjoint,
            )
            for addresses in transport.incoming
        )
        self._bound[pointer, mode] = (direction, packs, unpacks)
        return self._bound[pointer, mode]
