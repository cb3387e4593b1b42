# SPDX-License-Identifier: BSD-3-Clause
"""Alltoall(v) algorithms staged through host memory, with one or several processes per array."""

from __future__ import annotations

from typing import Any

from seiche.domain.seats import hosts_of
from seiche.domain.world import World, raise_together
from seiche.errors import TransportError
from seiche.halo.transports.host import message_of_pieces
from seiche.halo.transports.memory import Bytes, DeviceMemory, HostMemory, Memory, RemoteMemory
from seiche.machine.collective_algorithms import AlltoallAlgorithm, ExchangeParts, shared_handles, starts


class Staged(AlltoallAlgorithm):
    """Exchange through host memory; each process of an array transfers a part of its messages.

    Process j of array a exchanges with process j of every other array b. It transfers either whole messages with
    (a + b) mod k = j, a rule that both sides evaluate locally, or part j of k of every message. Its buffers are packed.
    """

    def __init__(self, world: World, memory: Memory | None, parts: ExchangeParts, processes: int, whole: bool) -> None:
        super().__init__(world, memory, parts, processes, whole)
        self.row = world.comm if world.comm is None or processes == 1 else world.comm.Split(self.helper, self.me)
        sent, received = self._from_owner((parts.sent, parts.received))
        self.all_sent = [_pieces_of(sent, self.me, j, processes, whole) for j in range(processes)]
        self.all_received = [_pieces_of(received, self.me, j, processes, whole) for j in range(processes)]
        self.sent, self.received = self.all_sent[self.helper], self.all_received[self.helper]
        self.out = self._staging(sum(size for _, size in self.sent))
        self.into = self._staging(sum(size for _, size in self.received))
        packed_sizes = [[size for _, size in pieces] for pieces in (self.sent, self.received)]
        self._layouts = [(sizes, starts(sizes)) for sizes in packed_sizes]

    def _staging(self, size: int) -> Bytes:
        return (self.memory or HostMemory()).staging(size)

    def _from_owner(self, value: Any) -> Any:
        """Return the value of the rank that owns the array, on all ranks that serve it."""
        return self.world.allgather(value)[self.me * self.processes]

    def __call__(self) -> None:
        """Copy to the host, exchange, copy back."""
        self.fetch()
        if self.row is None:
            self.into[:] = self.out
        else:
            sent, received = self._layouts
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


def _pieces_of(sizes: list[int], me: int, helper: int, processes: int, whole: bool) -> list[tuple[int, int]]:
    """Return (offset in the array, bytes) of the part of each message that a process transfers."""
    pieces = []
    for peer, (begin, size) in enumerate(zip(starts(sizes), sizes, strict=True)):
        if whole:
            pieces.append((begin, size if (me + peer) % processes == helper else 0))
        else:
            low, high = size * helper // processes, size * (helper + 1) // processes
            pieces.append((begin + low, high - low))
    return pieces


class ExtraMessage(Staged):
    """The owner of the array copies all of it, and scatters to and gathers from its helpers.

    The pieces of a helper are sent in place, as one MPI datatype, without a packing copy.
    """

    def __init__(self, world: World, memory: Memory | None, parts: ExchangeParts, processes: int, whole: bool) -> None:
        super().__init__(world, memory, parts, processes, whole)
        self.group = None if world.comm is None else world.comm.Split(self.me, self.helper)
        self.whole_out = self._staging(sum(parts.sent))
        self.whole_into = self._staging(sum(parts.received))
        owner = self.helper == 0
        self._out = _views(self.whole_out, self.sent, self.out) if owner else []
        self._into = _views(self.whole_into, self.received, self.into) if owner else []
        self._scatter = self._helper_messages(self.whole_out, self.all_sent) if owner else []
        self._gather = self._helper_messages(self.whole_into, self.all_received) if owner else []

    @staticmethod
    def _helper_messages(array: Bytes, pieces_of: list[list[tuple[int, int]]]) -> list[tuple[int, list[Any]]]:
        """Return (helper, MPI message) for each helper that transfers bytes of the array."""
        nonempty = [[piece for piece in pieces if piece[1]] for pieces in pieces_of]
        return [(k, message_of_pieces(array, pieces)) for k, pieces in enumerate(nonempty) if k and pieces]

    def impossible(self) -> str | None:
        """Return a reason if processes of an array are on different hosts."""
        return _split_over_hosts(self.world, self.me, self.processes, "extra-message")

    def fetch(self) -> None:
        """Copy to the host and scatter to the helpers."""
        if self.memory is None:
            if self.group is not None and self.out.size:
                self.group.Recv([self.out, "B"], source=0)
            return
        self.memory.read(self.parts.source, self.whole_out)
        self.memory.wait()
        requests = [self.group.Isend(message, dest=helper) for helper, message in self._scatter] if self.group else []
        for whole, own in self._out:
            own[:] = whole
        for request in requests:
            request.Wait()

    def deliver(self) -> None:
        """Gather from the helpers and copy to the array."""
        if self.memory is None:
            if self.group is not None and self.into.size:
                self.group.Send([self.into, "B"], dest=0)
            return
        requests = [self.group.Irecv(message, source=helper) for helper, message in self._gather] if self.group else []
        for whole, own in self._into:
            whole[:] = own
        for request in requests:
            request.Wait()
        self.memory.write(self.whole_into, self.parts.target)
        self.memory.wait()

    def close(self) -> None:
        """Free the communicators and datatypes."""
        for _, message in (*self._scatter, *self._gather):
            message[2].Free()
        self._scatter, self._gather = [], []
        if self.group is not None:
            self.group.Free()
            self.group = None
        super().close()


class DuplicatePointer(Staged):
    """Every process maps the array and copies its own part."""

    def __init__(self, world: World, memory: Memory | None, parts: ExchangeParts, processes: int, whole: bool) -> None:
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
                problem = f"strategy 'duplicate-pointer': rank {world.rank} cannot map its array: {error}"
        try:
            raise_together(world, problem)
        except TransportError:
            self.close()
            raise
        if memory is None:
            self.out, self.into = (self._copies.staging(buffer.size) for buffer in (self.out, self.into))

    def impossible(self) -> str | None:
        """Return which processes of an array are on different hosts."""
        return _split_over_hosts(self.world, self.me, self.processes, "duplicate-pointer")

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
        """Copy the part of this process; the barrier completes the array."""
        for (begin, size), host in _placed(self.received, self.into):
            if size and self.memory is not None:
                self.memory.write(host, self.parts.target + begin)
            elif size:
                self._opened[1].write(host, begin)
        self._copies.wait()
        self.world.barrier()

    def close(self) -> None:
        """Unmap the arrays on all ranks before any rank frees its own."""
        for window in self._opened:
            window.close()
        self._opened.clear()
        self.world.barrier()
        super().close()


def _split_over_hosts(world: World, me: int, processes: int, strategy: str) -> str | None:
    first, last = me * processes, (me + 1) * processes - 1
    if len(set(hosts_of(world)[first : last + 1])) == 1:
        return None
    return f"strategy {strategy!r}: ranks {first} to {last} serve one array but are on several hosts"


def _placed(pieces: list[tuple[int, int]], buffer: Bytes) -> list[tuple[tuple[int, int], Bytes]]:
    """Return the pieces with their views of a packed buffer."""
    begins = starts([size for _, size in pieces])
    return [(piece, buffer[begin : begin + piece[1]]) for piece, begin in zip(pieces, begins, strict=True)]


def _views(array: Bytes, pieces: list[tuple[int, int]], packed: Bytes) -> list[tuple[Bytes, Bytes]]:
    """Return views of the pieces of a process, in the array and in its packed buffer."""
    return [(array[offset : offset + size], host) for (offset, size), host in _placed(pieces, packed) if size]
