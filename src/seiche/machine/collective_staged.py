# SPDX-License-Identifier: BSD-3-Clause
"""How the data of an Alltoall(v) travels through memory of the host: by one process an array, or by several."""

from __future__ import annotations

from typing import Any

from seiche.domain.seats import hosts_of
from seiche.domain.world import World, raise_together
from seiche.errors import TransportError
from seiche.halo.transports.host import message_of_pieces
from seiche.halo.transports.memory import Bytes, DeviceMemory, HostMemory, Memory, RemoteMemory
from seiche.machine.collective_ways import ExchangeParts, Way, shared_handles, starts


class Staged(Way):
    """Through host memory: each of the processes of an array carries some bytes of its messages.

    Process j of array a exchanges with process j of every other array b: whole messages with (a + b) mod k = j, which
    both sides find without asking, or part j of k of every message. What it carries lies packed in its own buffers.
    """

    def __init__(self, world: World, memory: Memory | None, parts: ExchangeParts, processes: int, whole: bool) -> None:
        """Make the buffers and describe the messages."""
        super().__init__(world, memory, parts, processes, whole)
        self.row = world.comm if world.comm is None or processes == 1 else world.comm.Split(self.helper, self.me)
        sent, received = self._of_first((parts.sent, parts.received))
        self.all_sent = [_carried(sent, self.me, j, processes, whole) for j in range(processes)]
        self.all_received = [_carried(received, self.me, j, processes, whole) for j in range(processes)]
        self.sent, self.received = self.all_sent[self.helper], self.all_received[self.helper]
        self.out = self._staging(sum(size for _, size in self.sent))
        self.into = self._staging(sum(size for _, size in self.received))
        sizes = [[size for _, size in part] for part in (self.sent, self.received)]
        self._places = [(part, starts(part)) for part in sizes]

    def _staging(self, size: int) -> Bytes:
        return (self.memory or HostMemory()).staging(size)

    def _of_first(self, value: Any) -> Any:
        """Return the value of the rank that holds the array, on all that serve it."""
        return self.world.allgather(value)[self.me * self.processes]

    def __call__(self) -> None:
        """Fetch, exchange, deliver."""
        self.fetch()
        if self.row is None:
            self.into[:] = self.out
        else:
            sent, received = self._places
            self.row.Alltoallv([self.out, sent, "B"], [self.into, received, "B"])
        self.deliver()

    def fetch(self) -> None:
        """Fill `out` from the array."""
        assert self.memory is not None
        self.memory.read(self.parts.source, self.out)
        self.memory.wait()

    def deliver(self) -> None:
        """Fill the array from `into`."""
        assert self.memory is not None
        self.memory.write(self.into, self.parts.target)
        self.memory.wait()

    def close(self) -> None:
        """Free the communicator of the row."""
        if self.row is not None and self.row is not self.world.comm:
            self.row.Free()
        self.row = None
        super().close()


def _carried(sizes: list[int], me: int, helper: int, processes: int, whole: bool) -> list[tuple[int, int]]:
    """Return (offset in the array, bytes) of what a process carries of each message."""
    pieces = []
    for other, (begin, size) in enumerate(zip(starts(sizes), sizes, strict=True)):
        if whole:
            pieces.append((begin, size if (me + other) % processes == helper else 0))
        else:
            low, high = size * helper // processes, size * (helper + 1) // processes
            pieces.append((begin + low, high - low))
    return pieces


class ExtraMessage(Staged):
    """The process that holds the array copies it whole, deals it out, and collects.

    What another process carries of the array goes as it lies: MPI takes its pieces together, no copy does.
    """

    def __init__(self, world: World, memory: Memory | None, parts: ExchangeParts, processes: int, whole: bool) -> None:
        """Make the buffers of the whole array, and describe the pieces of the others to MPI."""
        super().__init__(world, memory, parts, processes, whole)
        self.group = None if world.comm is None else world.comm.Split(self.me, self.helper)
        self.whole_out = self._staging(sum(parts.sent))
        self.whole_into = self._staging(sum(parts.received))
        holds = self.helper == 0
        self._out = _pieces(self.whole_out, self.sent, self.out) if holds else []
        self._into = _pieces(self.whole_into, self.received, self.into) if holds else []
        self._deals = self._described(self.whole_out, self.all_sent) if holds else []
        self._collects = self._described(self.whole_into, self.all_received) if holds else []

    def _described(self, array: Bytes, carried: list[list[tuple[int, int]]]) -> list[tuple[int, list[Any]]]:
        """Return the other processes that carry anything of the array, and how MPI finds it."""
        found = []
        for helper, pieces in enumerate(carried[1:], 1):
            some = [piece for piece in pieces if piece[1]]
            if some:
                found.append((helper, message_of_pieces(array, some)))
        return found

    def impossible(self) -> str | None:
        """Return which processes of an array are on different hosts."""
        return _apart(self.world, self.me, self.processes, "extra-message")

    def fetch(self) -> None:
        """Copy, deal out."""
        if self.memory is None:
            if self.group is not None and self.out.size:
                self.group.Recv([self.out, "B"], source=0)
            return
        self.memory.read(self.parts.source, self.whole_out)
        self.memory.wait()
        under_way = [self.group.Isend(message, dest=helper) for helper, message in self._deals] if self.group else []
        for whole, own in self._out:
            own[:] = whole
        for each in under_way:
            each.Wait()

    def deliver(self) -> None:
        """Collect, copy."""
        if self.memory is None:
            if self.group is not None and self.into.size:
                self.group.Send([self.into, "B"], dest=0)
            return
        under_way = [self.group.Irecv(message, source=at) for at, message in self._collects] if self.group else []
        for whole, own in self._into:
            whole[:] = own
        for each in under_way:
            each.Wait()
        self.memory.write(self.whole_into, self.parts.target)
        self.memory.wait()

    def close(self) -> None:
        """Free the communicators and what was described to MPI."""
        for _, message in (*self._deals, *self._collects):
            message[2].Free()
        self._deals, self._collects = [], []
        if self.group is not None:
            self.group.Free()
            self.group = None
        super().close()


class DuplicatePointer(Staged):
    """Every process opens the array and copies its share itself."""

    def __init__(self, world: World, memory: Memory | None, parts: ExchangeParts, processes: int, whole: bool) -> None:
        """Open the arrays of the first process."""
        handles = shared_handles(world, memory, [parts.source, parts.target])
        everyone = world.allgather((memory.device, *handles) if memory is not None else None)
        device, source, target = everyone[world.rank - world.rank % processes]
        self._opened: list[RemoteMemory] = []
        self._copies: Memory = memory or (HostMemory() if device is None else DeviceMemory(device))
        super().__init__(world, memory, parts, processes, whole)
        problem = None
        if memory is None:
            try:
                self._opened = [self._copies.open(handle) for handle in (source, target)]
            except OSError as error:
                problem = f"strategy 'duplicate-pointer': rank {world.rank} cannot open its array: {error}"
        try:
            raise_together(world, problem)
        except TransportError:
            self.close()
            raise
        if memory is None:
            self.out, self.into = (self._copies.staging(buffer.size) for buffer in (self.out, self.into))

    def impossible(self) -> str | None:
        """Return which processes of an array are on different hosts."""
        return _apart(self.world, self.me, self.processes, "duplicate-pointer")

    def fetch(self) -> None:
        """Copy this process's share, once the array is ready."""
        if self.memory is not None:
            self.memory.wait()
        self.world.barrier()
        for (begin, size), host in _placed(self.sent, self.out):
            if size and self.memory is not None:
                self.memory.read(self.parts.source + begin, host)
            elif size:
                self._opened[0].read(begin, host)
        self._copies.wait()

    def deliver(self) -> None:
        """Copy this process's share; the array is complete when all have."""
        for (begin, size), host in _placed(self.received, self.into):
            if size and self.memory is not None:
                self.memory.write(host, self.parts.target + begin)
            elif size:
                self._opened[1].write(host, begin)
        self._copies.wait()
        self.world.barrier()

    def close(self) -> None:
        """Let go of the arrays before anyone frees one."""
        for window in self._opened:
            window.close()
        self._opened.clear()
        self.world.barrier()
        super().close()


def _apart(world: World, me: int, processes: int, strategy: str) -> str | None:
    hosts = hosts_of(world)[me * processes : (me + 1) * processes]
    if len(set(hosts)) == 1:
        return None
    return (
        f"strategy {strategy!r}: ranks {me * processes} to {(me + 1) * processes - 1} serve one array on several hosts"
    )


def _placed(pieces: list[tuple[int, int]], buffer: Bytes) -> list[tuple[tuple[int, int], Bytes]]:
    """Return the pieces with their places in a packed buffer."""
    begins = starts([size for _, size in pieces])
    return [(piece, buffer[begin : begin + piece[1]]) for piece, begin in zip(pieces, begins, strict=True)]


def _pieces(array: Bytes, carried: list[tuple[int, int]], packed: Bytes) -> list[tuple[Bytes, Bytes]]:
    """Return the pieces that a process carries, in the array and in its packed buffer."""
    placed = _placed(carried, packed)
    return [(array[offset : offset + size], host) for (offset, size), host in placed if size]
