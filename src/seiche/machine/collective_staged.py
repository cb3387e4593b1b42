# SPDX-License-Identifier: BSD-3-Clause
"""Alltoall(v) algorithms staged through host memory, with one or several processes per array."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from seiche.domain.rank_locations import hosts_of
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

    def __init__(
        self, world: World, memory: Memory | None, parts: ExchangeParts, processes: int, whole_messages: bool
    ) -> None:
        super().__init__(world, memory, parts, processes, whole_messages)
        self.peers_comm = (
            world.comm
            if world.comm is None or processes == 1
            else world.comm.Split(self.helper_index, self.array_index)
        )
        sent, received = self._from_owner((parts.sent, parts.received))
        self.all_sent = [_pieces_of(sent, self.array_index, j, processes, whole_messages) for j in range(processes)]
        self.all_received = [
            _pieces_of(received, self.array_index, j, processes, whole_messages) for j in range(processes)
        ]
        self.sent, self.received = self.all_sent[self.helper_index], self.all_received[self.helper_index]
        self.send_buffer = self._staging(sum(size for _, size in self.sent))
        self.receive_buffer = self._staging(sum(size for _, size in self.received))
        packed_sizes = [[size for _, size in pieces] for pieces in (self.sent, self.received)]
        self._layouts = [(sizes, starts(sizes)) for sizes in packed_sizes]

    def _staging(self, size: int) -> Bytes:
        return (self.memory or HostMemory()).staging(size)

    def _from_owner(self, value: Any) -> Any:
        """Return the value of the rank that owns the array, on all ranks that serve it."""
        return self.world.allgather(value)[self.array_index * self.processes]

    def __call__(self) -> None:
        """Copy to the host, exchange, copy back."""
        self.copy_to_staging()
        if self.peers_comm is None:
            self.receive_buffer[:] = self.send_buffer
        else:
            sent, received = self._layouts
            self.peers_comm.Alltoallv([self.send_buffer, sent, "B"], [self.receive_buffer, received, "B"])
        self.copy_from_staging()

    def copy_to_staging(self) -> None:
        """Fill `send_buffer` from the array."""
        assert self.memory is not None
        self.memory.read(self.parts.source, self.send_buffer)
        self.memory.wait()

    def copy_from_staging(self) -> None:
        """Fill the array from `receive_buffer`."""
        assert self.memory is not None
        self.memory.write(self.receive_buffer, self.parts.target)
        self.memory.wait()

    def close(self) -> None:
        """Free the communicator of the peers."""
        if self.peers_comm is not None and self.peers_comm is not self.world.comm:
            self.peers_comm.Free()
        self.peers_comm = None
        super().close()


def _pieces_of(
    sizes: list[int], array_index: int, helper_index: int, processes: int, whole_messages: bool
) -> list[tuple[int, int]]:
    """Return (offset in the array, bytes) of the part of each message that a process transfers."""
    pieces = []
    for peer, (begin, size) in enumerate(zip(starts(sizes), sizes, strict=True)):
        if whole_messages:
            pieces.append((begin, size if (array_index + peer) % processes == helper_index else 0))
        else:
            low, high = size * helper_index // processes, size * (helper_index + 1) // processes
            pieces.append((begin + low, high - low))
    return pieces


class ExtraMessage(Staged):
    """The owner of the array copies all of it, and scatters to and gathers from its helpers.

    The pieces of a helper are sent in place, as one MPI datatype, without a packing copy.
    """

    def __init__(
        self, world: World, memory: Memory | None, parts: ExchangeParts, processes: int, whole_messages: bool
    ) -> None:
        super().__init__(world, memory, parts, processes, whole_messages)
        self.array_comm = None if world.comm is None else world.comm.Split(self.array_index, self.helper_index)
        self.whole_send_buffer = self._staging(sum(parts.sent))
        self.whole_receive_buffer = self._staging(sum(parts.received))
        owner = self.helper_index == 0
        self._send_views = _piece_views(self.whole_send_buffer, self.sent, self.send_buffer) if owner else []
        self._receive_views = (
            _piece_views(self.whole_receive_buffer, self.received, self.receive_buffer) if owner else []
        )
        self._scatter_messages = self._helper_messages(self.whole_send_buffer, self.all_sent) if owner else []
        self._gather_messages = self._helper_messages(self.whole_receive_buffer, self.all_received) if owner else []

    @staticmethod
    def _helper_messages(array: Bytes, pieces_of: list[list[tuple[int, int]]]) -> list[tuple[int, list[Any]]]:
        """Return (helper, MPI message) for each helper that transfers bytes of the array."""
        nonempty = [[piece for piece in pieces if piece[1]] for pieces in pieces_of]
        return [(k, message_of_pieces(array, pieces)) for k, pieces in enumerate(nonempty) if k and pieces]

    def unavailable_reason(self) -> str | None:
        """Return a reason if processes of an array are on different hosts."""
        return _split_over_hosts(self.world, self.array_index, self.processes, "extra-message")

    def copy_to_staging(self) -> None:
        """Copy to the host and scatter to the helpers."""
        if self.memory is None:
            if self.array_comm is not None and self.send_buffer.size:
                self.array_comm.Recv([self.send_buffer, "B"], source=0)
            return
        self.memory.read(self.parts.source, self.whole_send_buffer)
        self.memory.wait()
        with self._transfers("Isend", self._scatter_messages):
            for buffer_slice, packed in self._send_views:
                packed[:] = buffer_slice

    @contextmanager
    def _transfers(self, start: Literal["Isend", "Irecv"], messages: list[tuple[int, list[Any]]]) -> Iterator[None]:
        """Start the messages to or from the helpers; wait for them at the end of the block."""
        requests = [
            getattr(self.array_comm, start)(message, helper)
            for helper, message in (messages if self.array_comm else ())
        ]
        yield
        for request in requests:
            request.Wait()

    def copy_from_staging(self) -> None:
        """Gather from the helpers and copy to the array."""
        if self.memory is None:
            if self.array_comm is not None and self.receive_buffer.size:
                self.array_comm.Send([self.receive_buffer, "B"], dest=0)
            return
        with self._transfers("Irecv", self._gather_messages):
            for buffer_slice, packed in self._receive_views:
                buffer_slice[:] = packed
        self.memory.write(self.whole_receive_buffer, self.parts.target)
        self.memory.wait()

    def close(self) -> None:
        """Free the communicators and datatypes."""
        for _, message in (*self._scatter_messages, *self._gather_messages):
            message[2].Free()
        self._scatter_messages, self._gather_messages = [], []
        if self.array_comm is not None:
            self.array_comm.Free()
            self.array_comm = None
        super().close()


class DuplicatePointer(Staged):
    """Every process maps the array and copies its own part."""

    def __init__(
        self, world: World, memory: Memory | None, parts: ExchangeParts, processes: int, whole_messages: bool
    ) -> None:
        handles = shared_handles(world, memory, [parts.source, parts.target])
        shared = world.allgather((memory.device, *handles) if memory is not None else None)
        device, source, target = shared[world.rank - world.rank % processes]
        self._mapped_arrays: list[RemoteMemory] = []
        self._copy_memory: Memory = memory or (HostMemory() if device is None else DeviceMemory(device))
        super().__init__(world, memory, parts, processes, whole_messages)
        problem = None
        if memory is None:
            try:
                self._mapped_arrays = [self._copy_memory.open(handle) for handle in (source, target)]
            except OSError as error:
                problem = f"strategy 'duplicate-pointer': rank {world.rank} cannot map its array: {error}"
        try:
            raise_together(world, problem)
        except TransportError:
            self.close()
            raise
        if memory is None:
            self.send_buffer, self.receive_buffer = (
                self._copy_memory.staging(buffer.size) for buffer in (self.send_buffer, self.receive_buffer)
            )

    def unavailable_reason(self) -> str | None:
        """Return which processes of an array are on different hosts."""
        return _split_over_hosts(self.world, self.array_index, self.processes, "duplicate-pointer")

    def copy_to_staging(self) -> None:
        """Copy the part of this process, once the array is ready."""
        if self.memory is not None:
            self.memory.wait()
        self.world.barrier()
        for (begin, size), host in _buffer_views(self.sent, self.send_buffer):
            if size and self.memory is not None:
                self.memory.read(self.parts.source + begin, host)
            elif size:
                self._mapped_arrays[0].read(begin, host)
        self._copy_memory.wait()

    def copy_from_staging(self) -> None:
        """Copy the part of this process; the barrier completes the array."""
        for (begin, size), host in _buffer_views(self.received, self.receive_buffer):
            if size and self.memory is not None:
                self.memory.write(host, self.parts.target + begin)
            elif size:
                self._mapped_arrays[1].write(host, begin)
        self._copy_memory.wait()
        self.world.barrier()

    def close(self) -> None:
        """Unmap the arrays on all ranks before any rank frees its own."""
        for window in self._mapped_arrays:
            window.close()
        self._mapped_arrays.clear()
        self.world.barrier()
        super().close()


def _split_over_hosts(world: World, array_index: int, processes: int, strategy: str) -> str | None:
    first, last = array_index * processes, (array_index + 1) * processes - 1
    if len(set(hosts_of(world)[first : last + 1])) == 1:
        return None
    return f"strategy {strategy!r}: ranks {first} to {last} serve one array but are on several hosts"


def _buffer_views(pieces: list[tuple[int, int]], buffer: Bytes) -> list[tuple[tuple[int, int], Bytes]]:
    """Return the pieces with their views of a packed buffer."""
    begins = starts([size for _, size in pieces])
    return [(piece, buffer[begin : begin + piece[1]]) for piece, begin in zip(pieces, begins, strict=True)]


def _piece_views(array: Bytes, pieces: list[tuple[int, int]], packed: Bytes) -> list[tuple[Bytes, Bytes]]:
    """Return views of the pieces of a process, in the array and in its packed buffer."""
    return [(array[offset : offset + size], host) for (offset, size), host in _buffer_views(pieces, packed) if size]
