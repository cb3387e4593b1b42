# SPDX-License-Identifier: BSD-3-Clause
"""Alltoall and Alltoallv of arrays in host or GPU memory, by any of the ways in which their data can travel.

| strategy | how |
|---|---|
| `auto` | one of these, chosen by a machine file |
| `mpi` | MPI gets the arrays themselves |
| `peer` | every rank copies into the others' arrays (one host) |
| `nccl` | grouped sends and receives |
| `three-step` | copy to the host, MPI, copy back |
| `extra-message` | the same, but `processes` of the host share the messages: the first deals them out and collects |
| `duplicate-pointer` | the same, but each of them copies its share from the first one's array itself |

The last two need `processes` ranks an array: ranks 0 ... processes - 1 serve the array of rank 0, and so on. The ranks
that hold arrays are numbered in that order, and counts are by that number. Helping ranks give no array.

```python
with Exchange(world, send, receive, strategy="three-step") as exchange:
    exchange()  # receive[k] of rank j becomes send[j] of rank k; as often as wanted
```
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from seiche.domain.world import World, raise_together
from seiche.errors import TransportError
from seiche.halo.choice import Decision
from seiche.halo.transports.memory import Memory, memory_of
from seiche.machine.collective_choice import choose_again, choose_way
from seiche.machine.collective_staged import DuplicatePointer, ExtraMessage, Staged
from seiche.machine.collective_ways import ExchangeParts, Mpi, Nccl, Peer, Way

ExchangeName: TypeAlias = Literal["auto", "mpi", "peer", "nccl", "three-step", "extra-message", "duplicate-pointer"]

Counts: TypeAlias = Sequence[int] | None

#: The ways by the names of strategies.
WAYS: dict[str, type[Way]] = {
    "mpi": Mpi,
    "peer": Peer,
    "nccl": Nccl,
    "three-step": Staged,
    "extra-message": ExtraMessage,
    "duplicate-pointer": DuplicatePointer,
}


class Exchange:
    """An Alltoall(v) between fixed arrays, set up once; a call does it, all ranks together.

    A call begins when the arrays' ranks are there and work of their current streams is done, and ends when what a rank
    receives is in its array. `decision` says what was taken, and for "auto" what was predicted and measured.
    """

    def __init__(
        self,
        world: World,
        send: Any,
        receive: Any,
        send_counts: Counts = None,
        receive_counts: Counts = None,
        *,
        strategy: ExchangeName = "three-step",
        processes: int = 1,
        whole: bool | None = None,
    ) -> None:
        """Agree on who sends what; all ranks must call it together.

        Args:
            world: the ranks.
            send: contiguous array of NumPy, or of a GPU; the parts for the arrays' ranks one behind the other. None on
                a helping rank, as `receive`.
            receive: an array of the same kind and type that can be written to and does not overlap `send`.
            send_counts: elements for each rank that holds an array, whole numbers; equal parts by default.
            receive_counts: elements from each.
            strategy: how the data travels; "auto" takes what the machine file in use (SEICHE_MACHINE) makes the
                cheapest, and times it, which overwrites `receive`; without a file the first that works.
            processes: ranks that serve one array.
            whole: helping ranks carry whole messages instead of a part of each; by default where counts are given.

        Raises:
            TransportError: on all ranks, if the arguments do not fit together or the strategy cannot be used here.
        """
        self.world = world
        raise_together(world, _unknown(world, strategy, processes))
        self.first = world.rank - world.rank % processes
        self.holds = world.rank == self.first
        memory, parts, problem = None, ExchangeParts.none(world.size // processes), None
        try:
            if self.holds:
                memory = _memory(world, send, receive)
                parts = _parts(world, send, receive, send_counts, receive_counts, processes=processes)
            elif send is not None or receive is not None:
                problem = f"rank {world.rank} helps rank {self.first} and must give no array"
        except TransportError as error:
            problem = str(error)
        raise_together(world, problem)
        raise_together(world, _mismatch(world, parts, processes))
        self._arrays = (send, receive)  # keep them alive
        split = (send_counts is not None) if whole is None else whole
        split = bool(world.bcast(split))
        self._make: Callable[[str], Way] = lambda name: WAYS[name](world, memory, parts, processes, split)
        self._way: Way
        if strategy == "auto":
            self._way, self.decision = choose_way(world, memory, parts, self._make, processes=processes, whole=split)
        else:
            self._way, self.decision = self._make(strategy), Decision(strategy)
        #: What was chosen by a machine file, and why, one after the other.
        self.decisions = [self.decision] if self.decision.measured else []
        self._closed = False

    def __call__(self) -> None:
        """Exchange.

        Raises:
            TransportError: a message failed, or the exchange is closed.
        """
        self._refuse_closed()
        self._way()

    @property
    def capturable(self) -> bool:
        """Return False: a graph cannot contain them."""
        return False

    @property
    def transport_name(self) -> str:
        """Return how the data travels."""
        return self.decision.transport

    @property
    def can_reconsider(self) -> bool:
        """Return whether a machine file chose the way."""
        return bool(self.decision.measured)

    def check(self) -> None:
        """Do nothing: a call has ended, or raised, when it returns."""

    def reconsider(self) -> bool:
        """Time what a machine file chose again, and choose anew where that drifted; return whether it is another now.

        Collective, while nobody else works with the arrays; `receive` is as before afterwards.

        Raises:
            TransportError: the exchange is closed.
        """
        self._refuse_closed()
        if not self.can_reconsider:
            return False
        receive = self._arrays[1]
        kept = None if receive is None else receive.copy()
        before = self._way
        self._way, self.decision = choose_again(self.world, self._way, self.decision, self._make)
        if receive is not None:
            receive[...] = kept
        if self.decision is not self.decisions[-1]:
            self.decisions.append(self.decision)
        return self._way is not before

    def close(self) -> None:
        """Give back what the exchange holds; all ranks must call it together. Once closed, nothing more happens."""
        if not self._closed:
            self._closed = True
            self._way.close()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise TransportError("the exchange is closed: make another one")

    def __enter__(self) -> Self:
        """Return the exchange."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close, unless ranks may be apart after an error."""
        if kind is None:
            self.close()


def alltoall(
    world: World, send: Any, receive: Any, *, strategy: ExchangeName = "three-step", processes: int = 1
) -> None:
    """Send an equal part of `send` to every rank that holds an array, once (collective).

    Raises:
        TransportError: as `Exchange`.
    """
    with Exchange(world, send, receive, strategy=strategy, processes=processes) as exchange:
        exchange()


def alltoallv(
    world: World,
    send: Any,
    send_counts: Counts,
    receive: Any,
    receive_counts: Counts,
    *,
    strategy: ExchangeName = "three-step",
    processes: int = 1,
) -> None:
    """Send `send_counts` elements of `send` to the ranks that hold arrays, once (collective).

    Raises:
        TransportError: as `Exchange`.
    """
    with Exchange(
        world, send, receive, send_counts, receive_counts, strategy=strategy, processes=processes, whole=True
    ) as exchange:
        exchange()


def _unknown(world: World, strategy: str, processes: int) -> str | None:
    # First of all: a rank that refused what others accept would leave them waiting.
    said = sorted({repr(each) for each in world.allgather((strategy, processes))})
    if len(said) > 1:
        return f"ranks disagree about strategy and processes: {', '.join(said)}"
    if strategy != "auto" and strategy not in WAYS:
        return f"strategy {strategy!r} is unknown: use one of {', '.join(repr(name) for name in ('auto', *WAYS))}"
    if not isinstance(processes, int | np.integer) or processes < 1 or world.size % processes:
        return f"{world.size} ranks cannot serve arrays by {processes} processes each"
    if processes > 1 and strategy not in ("auto", "extra-message", "duplicate-pointer"):
        return f"strategy {strategy!r} has no use for {processes} processes an array: use 1"
    return None


def _memory(world: World, send: Any, receive: Any) -> Memory:
    if send is None or receive is None:
        raise TransportError(f"rank {world.rank} must give an array to send and one to receive")
    memory, other = memory_of(send), memory_of(receive)
    if type(memory) is not type(other) or send.dtype != receive.dtype:
        raise TransportError(
            f"rank {world.rank} sends {type(send).__name__} of {send.dtype} but receives"
            f" {type(receive).__name__} of {receive.dtype}"
        )
    if getattr(send.dtype, "hasobject", False):  # addresses in this process, which mean nothing in another
        raise TransportError(f"rank {world.rank} sends Python objects ({send.dtype}): only numbers can be exchanged")
    if isinstance(receive, np.ndarray) and not receive.flags.writeable:
        raise TransportError(f"rank {world.rank}: the array to receive in cannot be written to")
    return memory


def _parts(
    world: World, send: Any, receive: Any, send_counts: Counts, receive_counts: Counts, *, processes: int
) -> ExchangeParts:
    ranks = world.size // processes
    sizes = []
    for what, array, counts in (("send", send, send_counts), ("receive", receive, receive_counts)):
        if counts is None:
            if array.size % ranks:
                raise TransportError(
                    f"rank {world.rank}: {array.size} elements to {what} cannot be shared equally among {ranks} ranks"
                )
            counts = [array.size // ranks] * ranks
        try:
            whole = [operator.index(count) for count in counts]
        except TypeError:
            raise TransportError(f"rank {world.rank}: {what} counts must be whole numbers, one a rank") from None
        if len(whole) != ranks or min(whole) < 0 or sum(whole) != array.size:
            raise TransportError(
                f"rank {world.rank}: {what} counts {whole[:8]} do not share {array.size} elements among {ranks} ranks"
            )
        sizes.append([count * array.dtype.itemsize for count in whole])
    memory = memory_of(send)
    parts = ExchangeParts(sizes[0], sizes[1], memory.address(send), memory.address(receive))
    if _overlap(parts):
        raise TransportError(f"rank {world.rank}: the array to receive in overlaps the one to send")
    return parts


def _overlap(parts: ExchangeParts) -> bool:
    out, into = sum(parts.sent), sum(parts.received)
    return out > 0 < into and parts.source < parts.target + into and parts.target < parts.source + out


def _mismatch(world: World, parts: ExchangeParts, processes: int) -> str | None:
    """Return which rank expects what another one does not send; on ranks that hold arrays."""
    if world.rank % processes:
        world.allgather(None)
        return None
    mine = world.rank // processes
    everyone = world.allgather(parts.sent)[::processes]
    arriving = [sent[mine] for sent in everyone]
    wrong = np.flatnonzero(np.array(arriving) != np.array(parts.received))
    if not len(wrong):
        return None
    other = int(wrong[0])
    return (
        f"rank {world.rank} expects {parts.received[other]} B from rank {other * processes},"
        f" which sends {arriving[other]} B"
    )
