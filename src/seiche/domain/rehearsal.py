# SPDX-License-Identifier: BSD-3-Clause
"""The ranks of a run played in one process: each is a thread, one of which works at a time.

What a rank asks the others for goes from hand to hand, so that plans of messages are those of a run under mpiexec.
Results that the ranks share are the same objects: nobody may change them.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World

Result = TypeVar("Result")


class _EndedError(Exception):
    """Another rank failed: this one need not go on."""


class _Stage:
    """What the ranks share. The one that works hands over to the next that can."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.gates = [threading.Lock() for _ in range(size)]
        for gate in self.gates:
            gate.acquire()
        self.ready, self.there = deque(range(size)), set(range(size))
        self.values: list[Any] = [None] * size
        self.come = 0
        self.told: list[Any] = []
        self.letters: defaultdict[tuple[int, int, Any], deque[bytes]] = defaultdict(deque)
        self.awaited: dict[int, tuple[int, int, Any]] = {}
        self.failure: BaseException | None = None

    def hand_over(self) -> None:
        """Let the next rank work; if none can, let all of them end."""
        if not self.ready and self.there:
            self.fail(RuntimeError("the ranks of a rehearsal wait for each other"))
        if self.ready:
            self.gates[self.ready.popleft()].release()

    def fail(self, error: BaseException) -> None:
        """Keep the first failure and let the ranks that are there end."""
        self.failure = self.failure or error
        self.ready = deque(sorted(self.there))

    def rest(self, rank: int) -> None:
        """Let others work until one of them puts `rank` among those that are ready.

        Raises:
            _EndedError: a rank failed, or none could go on.
        """
        self.hand_over()
        self.gates[rank].acquire()
        if self.failure is not None:
            raise _EndedError


class RehearsedRanks:
    """The part of an MPI communicator that Seiche's ranks need before their first step (names are those of mpi4py)."""

    def __init__(self, stage: _Stage, rank: int) -> None:
        """Be rank `rank` on a stage."""
        self._stage, self._rank, self._labels = stage, rank, 0

    def allgather(self, value: Any) -> list[Any]:
        """Return the values of all ranks."""
        stage = self._stage
        stage.values[self._rank] = value
        stage.come += 1
        if stage.come < stage.size:
            stage.rest(self._rank)
        else:
            stage.told, stage.values, stage.come = stage.values, [None] * stage.size, 0
            stage.ready.extend(rank for rank in range(stage.size) if rank != self._rank)
        return list(stage.told)

    def gather(self, value: Any, root: int = 0) -> list[Any] | None:
        """Return the values of all ranks on `root`, None elsewhere."""
        values = self.allgather(value)
        return values if self._rank == root else None

    def bcast(self, value: Any, root: int = 0) -> Any:
        """Return the value of `root`."""
        return self.allgather(value)[root]

    def alltoall(self, values: list[Any]) -> list[Any]:
        """Return what every rank has for this one."""
        return [each[self._rank] for each in self.allgather(values)]

    def Barrier(self) -> None:  # noqa: N802
        """Wait for all ranks."""
        self.allgather(None)

    def Allreduce(self, values: npt.NDArray[Any], result: npt.NDArray[Any]) -> None:  # noqa: N802
        """Sum arrays over ranks, in their order."""
        result[...] = sum(self.allgather(values.copy()))

    def Alltoall(self, sent: npt.NDArray[Any], received: npt.NDArray[Any]) -> None:  # noqa: N802
        """Bring number k of every rank to rank k."""
        received[...] = np.array([each[self._rank] for each in self.allgather(sent.copy())])

    def Alltoallv(self, sent: list[npt.NDArray[Any]], received: list[npt.NDArray[Any]]) -> None:  # noqa: N802
        """Bring part k of every rank to rank k: [values, counts]."""
        parts = np.split(sent[0], np.cumsum(sent[1])[:-1])
        arrived = [each[self._rank] for each in self.allgather(parts)]
        received[0][...] = np.concatenate([received[0][:0], *arrived])

    def next_label(self) -> int:
        """Return a number that every rank gets by its call of the same turn."""
        self._labels += 1
        return self._labels

    def put(self, peer: int, label: Any, letter: bytes) -> None:
        """Leave bytes for a rank."""
        stage, key = self._stage, (self._rank, peer, label)
        stage.letters[key].append(letter)
        if stage.awaited.get(peer) == key:
            del stage.awaited[peer]
            stage.ready.append(peer)

    def take(self, peer: int, label: Any) -> bytes:
        """Return the oldest bytes that a rank left here under a label, once they are there."""
        stage, key = self._stage, (peer, self._rank, label)
        if not stage.letters[key]:
            stage.awaited[self._rank] = key
            stage.rest(self._rank)
        return stage.letters[key].popleft()


def rehearse(ranks: int, work: Callable[[World], Result], ranks_a_host: int | None = None) -> list[Result]:
    """Return what `work` returns on each of `ranks` ranks.

    Args:
        ranks: their number; a single one is a serial world.
        work: is given the world of its rank, of which it may use all methods but `first`.
        ranks_a_host: how many share a host; all by default.

    Raises:
        Exception: what `work` raised, on the rank that did so first.
    """
    if ranks == 1:
        return [work(World.serial())]
    stage, shared = _Stage(ranks), min(ranks, ranks_a_host or ranks)
    results: list[Any] = [None] * ranks

    def play(rank: int) -> None:
        stage.gates[rank].acquire()
        try:
            if stage.failure is None:
                results[rank] = work(World(rank, ranks, rank % shared, shared, RehearsedRanks(stage, rank)))
        except _EndedError:
            pass
        except BaseException as error:
            stage.there.discard(rank)
            stage.fail(error)
        stage.there.discard(rank)
        stage.hand_over()

    threads = [threading.Thread(target=play, args=(rank,), daemon=True) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    stage.hand_over()
    for thread in threads:
        thread.join()
    if stage.failure is not None:
        raise stage.failure
    return results
