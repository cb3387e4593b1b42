# SPDX-License-Identifier: BSD-3-Clause
"""Emulation of the ranks of a run in one process: each rank is a thread, and one thread runs at a time.

Collectives and messages are passed in memory, so message plans equal those of a run under mpiexec. Shared results are
the same objects on all ranks and must not be modified.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World

Result = TypeVar("Result")


class _AbortedError(Exception):
    """Another rank failed, or all ranks wait."""


class _Scheduler:
    """Shared data of the ranks; switches between their threads."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.gates = [threading.Lock() for _ in range(size)]
        for gate in self.gates:
            gate.acquire()
        self.ready, self.active = deque(range(size)), set(range(size))
        self.values: list[Any] = [None] * size
        self.arrivals = 0
        self.gathered: list[Any] = []
        self.messages: defaultdict[tuple[int, int, Any], deque[bytes]] = defaultdict(deque)
        self.awaited: dict[int, tuple[int, int, Any]] = {}
        self.failure: BaseException | None = None

    def resume_next(self) -> None:
        """Resume the next ready rank; if all ranks wait, abort them."""
        if not self.ready and self.active:
            self.fail(RuntimeError("deadlock: the emulated ranks wait for each other"))
        if self.ready:
            self.gates[self.ready.popleft()].release()

    def fail(self, error: BaseException) -> None:
        """Store the first failure and make all active ranks ready to end."""
        self.failure = self.failure or error
        self.ready = deque(sorted(self.active))

    def wait(self, rank: int) -> None:
        """Run other ranks until `rank` is ready; _AbortedError after a failure."""
        self.resume_next()
        self.gates[rank].acquire()
        if self.failure is not None:
            raise _AbortedError


class EmulatedRanks:
    """The subset of an MPI communicator that Seiche needs before the first step, with the names of mpi4py."""

    def __init__(self, scheduler: _Scheduler, rank: int) -> None:
        self._scheduler, self._rank, self._tags = scheduler, rank, 0

    def allgather(self, value: Any) -> list[Any]:
        """Return the values of all ranks."""
        scheduler = self._scheduler
        scheduler.values[self._rank] = value
        scheduler.arrivals += 1
        if scheduler.arrivals < scheduler.size:
            scheduler.wait(self._rank)
        else:
            scheduler.gathered, scheduler.values, scheduler.arrivals = scheduler.values, [None] * scheduler.size, 0
            scheduler.ready.extend(rank for rank in range(scheduler.size) if rank != self._rank)
        return list(scheduler.gathered)

    def gather(self, value: Any, root: int = 0) -> list[Any] | None:
        """Return the values of all ranks on `root`, None elsewhere."""
        values = self.allgather(value)
        return values if self._rank == root else None

    def bcast(self, value: Any, root: int = 0) -> Any:
        """Return the value of `root`."""
        return self.allgather(value)[root]

    def alltoall(self, values: Sequence[Any]) -> list[Any]:
        """Return, from the values of every rank, the entry for this rank."""
        return [row[self._rank] for row in self.allgather(values)]

    def Barrier(self) -> None:  # noqa: N802
        """Wait for all ranks."""
        self.allgather(None)

    def Allreduce(self, values: npt.NDArray[Any], result: npt.NDArray[Any]) -> None:  # noqa: N802
        """Sum arrays over ranks, in rank order."""
        result[...] = sum(self.allgather(values.copy()))

    def Alltoall(self, sent: npt.NDArray[Any], received: npt.NDArray[Any]) -> None:  # noqa: N802
        """Send entry k of every rank to rank k."""
        received[...] = np.array(self.alltoall(list(sent.copy())))

    def Alltoallv(self, sent: list[npt.NDArray[Any]], received: list[npt.NDArray[Any]]) -> None:  # noqa: N802
        """Send part k of every rank to rank k; `sent` and `received` are [values, counts]."""
        pieces = self.alltoall(np.split(sent[0], np.cumsum(sent[1])[:-1]))
        received[0][...] = np.concatenate([received[0][:0], *pieces])

    def next_tag(self) -> int:
        """Return the number of this call, the same on every rank."""
        self._tags += 1
        return self._tags

    def put(self, peer: int, tag: Any, message: bytes) -> None:
        """Send a message to a rank."""
        scheduler, key = self._scheduler, (self._rank, peer, tag)
        scheduler.messages[key].append(message)
        if scheduler.awaited.get(peer) == key:
            del scheduler.awaited[peer]
            scheduler.ready.append(peer)

    def take(self, peer: int, tag: Any) -> bytes:
        """Wait for the oldest message from a rank with this tag and return it."""
        scheduler, key = self._scheduler, (peer, self._rank, tag)
        if not scheduler.messages[key]:
            scheduler.awaited[self._rank] = key
            scheduler.wait(self._rank)
        return scheduler.messages[key].popleft()


def emulate_ranks(ranks: int, work: Callable[[World], Result], ranks_per_host: int | None = None) -> list[Result]:
    """Return the results of `work` on each of `ranks` emulated ranks; re-raises the first exception of a rank.

    `work` receives the world of its rank and may use all its methods except `first`. `ranks_per_host` ranks share a
    host, all by default. A single rank is a serial world.
    """
    if ranks == 1:
        return [work(World.serial())]
    scheduler, ranks_on_host = _Scheduler(ranks), min(ranks, ranks_per_host or ranks)
    results: list[Any] = [None] * ranks

    def run(rank: int) -> None:
        scheduler.gates[rank].acquire()
        try:
            if scheduler.failure is None:
                results[rank] = work(
                    World(rank, ranks, rank % ranks_on_host, ranks_on_host, EmulatedRanks(scheduler, rank))
                )
        except _AbortedError:
            pass
        except BaseException as error:
            scheduler.active.discard(rank)
            scheduler.fail(error)
        scheduler.active.discard(rank)
        scheduler.resume_next()

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    scheduler.resume_next()
    for thread in threads:
        thread.join()
    if scheduler.failure is not None:
        raise scheduler.failure
    return results
