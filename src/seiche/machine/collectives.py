# SPDX-License-Identifier: BSD-3-Clause
"""Alltoall and Alltoallv of arrays in host or GPU memory, by a choice of algorithms.

| strategy | algorithm |
|---|---|
| `auto` | one of these, chosen by a machine file |
| `mpi` | MPI on the arrays themselves |
| `peer` | every rank copies into the arrays of the others (one host) |
| `nccl` | grouped sends and receives |
| `three-step` | copy to the host, MPI, copy back |
| `extra-message` | as three-step with `processes` ranks per array; the first scatters and gathers |
| `duplicate-pointer` | as three-step with `processes` ranks per array; each maps the array and copies its part |

The last two need `processes` ranks per array: ranks 0 ... processes - 1 serve the array of rank 0, and so on. The
owners of arrays are numbered in that order; counts refer to these numbers. Helper ranks pass no array.

```python
with Exchange(world, send, receive, strategy="three-step") as exchange:
    exchange()  # receive[k] of rank j becomes send[j] of rank k; can be repeated
```
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from seiche.domain.world import World, raise_together
from seiche.errors import TransportError
from seiche.halo.choice import Decision
from seiche.halo.transports.memory import Memory, memory_of
from seiche.machine.collective_algorithms import AlltoallAlgorithm, ExchangeParts, Mpi, Nccl, Peer
from seiche.machine.collective_choice import choose_again, choose_algorithm
from seiche.machine.collective_staged import DuplicatePointer, ExtraMessage, Staged

ExchangeName: TypeAlias = Literal["auto", "mpi", "peer", "nccl", "three-step", "extra-message", "duplicate-pointer"]

Counts: TypeAlias = Sequence[int] | None

#: Algorithms by the names of strategies.
ALGORITHMS: dict[str, type[AlltoallAlgorithm]] = {
    "mpi": Mpi,
    "peer": Peer,
    "nccl": Nccl,
    "three-step": Staged,
    "extra-message": ExtraMessage,
    "duplicate-pointer": DuplicatePointer,
}


class Exchange:
    """An Alltoall(v) between fixed arrays, set up once and then called collectively.

    A call first waits for the current streams of the owners, and returns when the received data is in the array.
    `decision` has the strategy and, for "auto", the predicted and measured times.
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
        whole_messages: bool | None = None,
    ) -> None:
        """Set up the exchange (collective).

        Args:
            world: the ranks.
            send: contiguous NumPy or GPU array, the parts for all owners in order. None on a helper rank, as
                `receive`.
            receive: a writable array of the same kind and type that does not overlap `send`.
            send_counts: elements for each owner, whole numbers; equal parts by default.
            receive_counts: elements from each owner.
            strategy: the algorithm; "auto" chooses the cheapest by the machine file in use (SEICHE_MACHINE) and times
                it, which overwrites `receive`; without a file it chooses the first that works.
            processes: ranks that serve one array.
            whole_messages: helper ranks transfer these instead of a part of each; by default if counts are given.

        Raises:
            TransportError: on all ranks, if the arguments are inconsistent or the strategy is not available.
        """
        self.world = world
        raise_together(world, _argument_problem(world, strategy, processes))
        owner = world.rank - world.rank % processes
        memory, parts, problem = None, ExchangeParts.none(world.size // processes), None
        try:
            if world.rank == owner:
                memory = _memory(world, send, receive)
                parts = _parts(world, send, receive, send_counts, receive_counts, processes=processes)
            elif send is not None or receive is not None:
                problem = f"rank {world.rank} is a helper of rank {owner} and must not pass an array"
        except TransportError as error:
            problem = str(error)
        raise_together(world, problem)
        raise_together(world, _mismatch(world, parts, processes))
        self._arrays = (send, receive)  # referenced as long as the exchange uses them
        use_whole_messages = bool(world.bcast((send_counts is not None) if whole_messages is None else whole_messages))
        self._open_algorithm: Callable[[str], AlltoallAlgorithm] = lambda name: ALGORITHMS[name](
            world, memory, parts, processes, use_whole_messages
        )
        if strategy == "auto":
            choice = choose_algorithm(
                world, memory, parts, self._open_algorithm, processes=processes, whole_messages=use_whole_messages
            )
        else:
            choice = self._open_algorithm(strategy), Decision(strategy)
        self._algorithm, self.decision = choice
        #: Choices made by a machine file, in order.
        self.decisions = [self.decision] if self.decision.measured else []
        #: Reasons why other strategies were not used: those of "auto" are logged only.
        self.rejected_transports: tuple[str, ...] = ()
        self._closed = False

    def __call__(self) -> None:
        """Exchange.

        Raises:
            TransportError: a message failed, or the exchange is closed.
        """
        self._check_open()
        self._algorithm()

    @property
    def capturable(self) -> bool:
        """Return False: a graph cannot contain these messages."""
        return False

    @property
    def transport_name(self) -> str:
        """Return the name of the strategy."""
        return self.decision.transport

    @property
    def can_reconsider(self) -> bool:
        """Return whether the strategy was chosen from the data in a machine file."""
        return bool(self.decision.measured)

    def check(self) -> None:
        """Do nothing: a call has completed or raised when it returns."""

    def reconsider(self) -> bool:
        """Time a choice of the machine file again, and choose again if it drifted; return whether it changed.

        Collective; no other code may use the arrays meanwhile. The contents of `receive` are restored.

        Raises:
            TransportError: the exchange is closed.
        """
        self._check_open()
        if not self.can_reconsider:
            return False
        receive = self._arrays[1]
        saved = None if receive is None else receive.copy()
        previous = self._algorithm
        self._algorithm, self.decision = choose_again(self.world, previous, self.decision, self._open_algorithm)
        if receive is not None:
            receive[...] = saved
        if self.decision is not self.decisions[-1]:
            self.decisions.append(self.decision)
        return self._algorithm is not previous

    def close(self) -> None:
        """Release all resources (collective); a second call does nothing."""
        if not self._closed:
            self._closed = True
            self._algorithm.close()

    def _check_open(self) -> None:
        if self._closed:
            raise TransportError("the exchange is closed; create a new one")

    def __enter__(self) -> Self:
        """Return the exchange."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close, except after an error, when not all ranks may arrive."""
        if kind is None:
            self.close()


def alltoall(
    world: World, send: Any, receive: Any, *, strategy: ExchangeName = "three-step", processes: int = 1
) -> None:
    """Send an equal part of `send` to every owner of an array, once (collective).

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
    """Send `send_counts` elements of `send` to the owners of arrays, once (collective).

    Raises:
        TransportError: as `Exchange`.
    """
    with Exchange(
        world, send, receive, send_counts, receive_counts, strategy=strategy, processes=processes, whole_messages=True
    ) as exchange:
        exchange()


def _argument_problem(world: World, strategy: str, processes: int) -> str | None:
    # Compared first: if one rank rejected arguments that others accept, the others would hang.
    arguments = sorted({repr(pair) for pair in world.allgather((strategy, processes))})
    if len(arguments) > 1:
        return f"ranks use different strategies or processes: {', '.join(arguments)}"
    if strategy != "auto" and strategy not in ALGORITHMS:
        return f"strategy {strategy!r} is unknown: use one of {', '.join(map(repr, ('auto', *ALGORITHMS)))}"
    if not isinstance(processes, int | np.integer) or processes < 1 or world.size % processes:
        return f"{world.size} ranks cannot be divided into groups of {processes} processes per array"
    if processes > 1 and strategy not in ("auto", "extra-message", "duplicate-pointer"):
        return f"strategy {strategy!r} cannot use {processes} processes per array; use 1"
    return None


def _memory(world: World, send: Any, receive: Any) -> Memory:
    if send is None or receive is None:
        raise TransportError(f"rank {world.rank} must pass an array to send and one to receive")
    memory, receive_memory = memory_of(send), memory_of(receive)
    if type(memory) is not type(receive_memory) or send.dtype != receive.dtype:
        raise TransportError(
            f"rank {world.rank} sends {type(send).__name__} of {send.dtype} but receives"
            f" {type(receive).__name__} of {receive.dtype}"
        )
    if getattr(send.dtype, "hasobject", False):  # addresses, which are valid in this process only
        raise TransportError(f"rank {world.rank} sends Python objects ({send.dtype}): only numbers can be exchanged")
    if isinstance(receive, np.ndarray) and not receive.flags.writeable:
        raise TransportError(f"rank {world.rank}: the receive array is not writable")
    return memory


def _parts(
    world: World, send: Any, receive: Any, send_counts: Counts, receive_counts: Counts, *, processes: int
) -> ExchangeParts:
    ranks = world.size // processes
    sizes = []
    for direction, array, counts in (("send", send, send_counts), ("receive", receive, receive_counts)):
        if counts is None:
            if array.size % ranks:
                raise TransportError(
                    f"rank {world.rank}: {array.size} elements to {direction} do not divide equally among {ranks} ranks"
                )
            counts = [array.size // ranks] * ranks
        try:
            elements = [operator.index(count) for count in counts]
        except TypeError:
            raise TransportError(f"rank {world.rank}: {direction} counts must be whole numbers, one per rank") from None
        if len(elements) != ranks or min(elements) < 0 or sum(elements) != array.size:
            counts_text = f"{direction} counts {elements[:8]}"
            raise TransportError(
                f"rank {world.rank}: {counts_text} must be {ranks} non-negative numbers with the sum {array.size}"
            )
        sizes.append([count * array.dtype.itemsize for count in elements])
    memory = memory_of(send)
    parts = ExchangeParts(sizes[0], sizes[1], memory.address(send), memory.address(receive))
    sent_bytes, received_bytes = map(sum, sizes)
    if (
        sent_bytes > 0 < received_bytes
        and parts.source < parts.target + received_bytes
        and parts.target < parts.source + sent_bytes
    ):
        raise TransportError(f"rank {world.rank}: the receive array overlaps the send array")
    return parts


def _mismatch(world: World, parts: ExchangeParts, processes: int) -> str | None:
    """Return an error text if an owner expects other sizes than the senders send."""
    if world.rank % processes:
        world.allgather(None)
        return None
    received_sizes = [sent[world.rank // processes] for sent in world.allgather(parts.sent)[::processes]]
    for peer, (expected, size) in enumerate(zip(parts.received, received_sizes, strict=True)):
        if size != expected:
            return f"rank {world.rank} expects {expected} B from rank {peer * processes}, which sends {size} B"
    return None
