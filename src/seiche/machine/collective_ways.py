# SPDX-License-Identifier: BSD-3-Clause
"""How the data of an Alltoall(v) travels: one class a way; `collectives.py` checks what they are given.

`sent[k]` and `received[k]` are bytes to and from array number k, one part behind the other in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from seiche.domain.world import World
from seiche.errors import TransportError
from seiche.halo.plan import raise_together
from seiche.halo.transports.device_mpi import takes_device_addresses
from seiche.halo.transports.devices import host_names
from seiche.halo.transports.memory import Bytes, DeviceMemory, HostMemory, Memory, Window, bytes_at
from seiche.halo.transports.nccl import join, nccl_library


@dataclass(frozen=True)
class Parts:
    """Bytes to and from each array, and the addresses of what is sent and received."""

    sent: list[int]
    received: list[int]
    source: int = 0
    target: int = 0

    @staticmethod
    def none(arrays: int) -> Parts:
        """Return the parts of a rank that holds no array."""
        return Parts([0] * arrays, [0] * arrays)


def starts(sizes: list[int]) -> list[int]:
    """Return where parts of `sizes` begin that lie one behind the other."""
    return [0, *np.cumsum(sizes).tolist()][:-1]


class Way(ABC):
    """One way; made and called by all ranks together."""

    def __init__(self, world: World, memory: Memory | None, parts: Parts, processes: int, whole: bool) -> None:
        """Prepare.

        Args:
            world: the ranks.
            memory: of this rank's arrays; None where it helps.
            parts: of this rank's arrays.
            processes: ranks an array.
            whole: messages are not split among processes.

        Raises:
            TransportError: on all ranks, if the data cannot travel like this.
        """
        self.world, self.memory, self.parts = world, memory, parts
        self.processes, self.whole = processes, whole
        self.me, self.helper = divmod(world.rank, processes)
        raise_together(world, self.impossible())

    def impossible(self) -> str | None:
        """Return why the data cannot travel like this, or None."""
        return None

    @abstractmethod
    def __call__(self) -> None:
        """Exchange."""

    def close(self) -> None:
        """Give back what is held."""
        self.memory = None


class Mpi(Way):
    """MPI gets the arrays themselves."""

    def impossible(self) -> str | None:
        """Return that MPI does not take device addresses."""
        if self.memory is not None and self.memory.device is not None and not takes_device_addresses():
            return "strategy 'mpi': this MPI does not take addresses of GPU memory; use 'nccl' or 'three-step'"
        return None

    def __init__(self, world: World, memory: Memory | None, parts: Parts, processes: int, whole: bool) -> None:
        """Describe the arrays to MPI."""
        super().__init__(world, memory, parts, processes, whole)
        self._messages = tuple(
            [bytes_at(address, sum(sizes)), (sizes, starts(sizes)), "B"]  # MPI looks at no more than the address
            for address, sizes in ((parts.source, parts.sent), (parts.target, parts.received))
        )

    def __call__(self) -> None:
        """Exchange."""
        assert self.memory is not None
        self.memory.wait()
        if self.world.comm is None:
            self.memory.copy(self.parts.source, self.parts.target, self.parts.sent[0])
        else:
            self.world.comm.Alltoallv(*self._messages)


class Peer(Way):
    """Every rank copies its parts into the others' arrays."""

    def __init__(self, world: World, memory: Memory | None, parts: Parts, processes: int, whole: bool) -> None:
        """Open the arrays of the others."""
        super().__init__(world, memory, parts, processes, whole)
        assert memory is not None
        places = world.allgather((_shared(world, memory, [parts.target])[0], starts(parts.received)))
        self._windows: dict[int, Window] = {}
        self._jobs: list[tuple[int, int, int, int]] = []
        problem = None
        # Beginning with the next rank, so that not all copy to the same one at once.
        for step in range(1, world.size):
            other = (world.rank + step) % world.size
            handle, begins = places[other]
            if not parts.sent[other]:
                continue
            try:
                self._windows[other] = memory.open(handle)
            except OSError as error:
                problem = f"strategy 'peer': rank {world.rank} cannot reach the array of rank {other}: {error}"
                break
            begin = parts.source + starts(parts.sent)[other]
            self._jobs.append((other, begin, parts.sent[other], begins[world.rank]))
        raise_together(world, problem)

    def impossible(self) -> str | None:
        """Return which rank is on another host."""
        return _far(self.world, "peer")

    def __call__(self) -> None:
        """Copy between two barriers: before, what others may still read; after, what they wait for."""
        assert self.memory is not None
        self.memory.wait()
        self.world.barrier()
        for other, address, size, offset in self._jobs:
            self._windows[other].store(address, size, offset)
        mine, parts = self.world.rank, self.parts
        self.memory.copy(
            parts.source + starts(parts.sent)[mine], parts.target + starts(parts.received)[mine], parts.sent[mine]
        )
        self.memory.wait()
        self.world.barrier()

    def close(self) -> None:
        """Let go of the arrays of others before anyone frees one."""
        for window in self._windows.values():
            window.close()
        self._windows.clear()
        self.world.barrier()
        super().close()


def _shared(world: World, memory: Memory | None, addresses: list[int]) -> list[Any]:
    """Return handles of memory for other processes; fail on all ranks if one cannot share."""
    handles, problem = [], None
    try:
        handles = [memory.share(address) for address in addresses] if memory is not None else []
    except TransportError as error:
        problem = str(error)
    raise_together(world, problem)
    return handles


def _far(world: World, strategy: str) -> str | None:
    hosts = host_names(world)
    other = next((rank for rank, host in enumerate(hosts) if host != hosts[world.rank]), None)
    if other is None:
        return None
    return f"strategy {strategy!r}: ranks {world.rank} and {other} are on different hosts"


class Nccl(Way):
    """One group of sends and receives in the current stream."""

    def __init__(self, world: World, memory: Memory | None, parts: Parts, processes: int, whole: bool) -> None:
        """Join a communicator."""
        super().__init__(world, memory, parts, processes, whole)
        self._nccl = nccl_library()
        self._communicator = join(world, self._nccl)

    def impossible(self) -> str | None:
        """Return that there are no GPUs, or not one for each rank."""
        device = None if self.memory is None else self.memory.device
        seats = self.world.allgather((host_names(self.world)[self.world.rank], device))
        if device is None:
            return f"strategy 'nccl' needs arrays of a GPU, but rank {self.world.rank} has one of the host"
        if len(set(seats)) < len(seats):
            return "strategy 'nccl' needs a GPU a rank, but ranks share one"
        return None if nccl_library() is not None else "strategy 'nccl' needs NCCL: pip install nvidia-nccl-cu13"

    def __call__(self) -> None:
        """Exchange, and wait for the stream."""
        assert isinstance(self.memory, DeviceMemory)
        nccl, stream = self._nccl, self.memory.stream()
        nccl.groupStart()
        for kind, address, sizes in (
            ("send", self.parts.source, self.parts.sent),
            ("recv", self.parts.target, self.parts.received),
        ):
            for other, (begin, size) in enumerate(zip(starts(sizes), sizes, strict=True)):
                if size:
                    getattr(self._communicator, kind)(address + begin, size, nccl.NCCL_UINT8, other, stream)
        nccl.groupEnd()
        self.memory.wait()

    def close(self) -> None:
        """Leave the communicator."""
        self._communicator.destroy()
        super().close()


class Staged(Way):
    """Through host memory: each of the processes of an array carries some bytes of its messages.

    Process j of array a exchanges with process j of every other array b: whole messages with (a + b) mod k = j, which
    both sides find without asking, or part j of k of every message. What it carries lies packed in its own buffers.
    """

    def __init__(self, world: World, memory: Memory | None, parts: Parts, processes: int, whole: bool) -> None:
        """Make the buffers and describe the messages."""
        super().__init__(world, memory, parts, processes, whole)
        self.row = world.comm if world.comm is None or processes == 1 else world.comm.Split(self.helper, self.me)
        sent, received = self._of_first((parts.sent, parts.received))
        self.all_sent = [_carried(sent, self.me, j, processes, whole) for j in range(processes)]
        self.all_received = [_carried(received, self.me, j, processes, whole) for j in range(processes)]
        self.sent, self.received = self.all_sent[self.helper], self.all_received[self.helper]
        self.out = self._staging(sum(size for _, size in self.sent))
        self.into = self._staging(sum(size for _, size in self.received))

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
            sent, received = ([size for _, size in part] for part in (self.sent, self.received))
            self.row.Alltoallv([self.out, (sent, starts(sent)), "B"], [self.into, (received, starts(received)), "B"])
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
    """The process that holds the array copies it whole, deals it out, and collects."""

    def __init__(self, world: World, memory: Memory | None, parts: Parts, processes: int, whole: bool) -> None:
        """Make the buffers of the whole array."""
        super().__init__(world, memory, parts, processes, whole)
        self.group = None if world.comm is None else world.comm.Split(self.me, self.helper)
        self.whole_out = self._staging(sum(parts.sent))
        self.whole_into = self._staging(sum(parts.received))
        self._dealt = np.empty(sum(parts.sent), np.uint8)
        self._collected = np.empty(sum(parts.received), np.uint8)

    def impossible(self) -> str | None:
        """Return which processes of an array are on different hosts."""
        return _apart(self.world, self.me, self.processes, "extra-message")

    def fetch(self) -> None:
        """Copy, order by process, deal out."""
        if self.memory is not None:
            self.memory.read(self.parts.source, self.whole_out)
            self.memory.wait()
            _pack(self.whole_out, self.all_sent, self._dealt)
        if self.group is None:
            self.out[:] = self._dealt
        else:
            self.group.Scatterv([self._dealt, *_totals(self.all_sent), "B"], self.out, root=0)

    def deliver(self) -> None:
        """Collect, order by message, copy."""
        if self.group is None:
            self._collected[:] = self.into
        else:
            self.group.Gatherv(self.into, [self._collected, *_totals(self.all_received), "B"], root=0)
        if self.memory is not None:
            _unpack(self._collected, self.all_received, self.whole_into)
            self.memory.write(self.whole_into, self.parts.target)
            self.memory.wait()

    def close(self) -> None:
        """Free the communicators."""
        if self.group is not None:
            self.group.Free()
            self.group = None
        super().close()


class DuplicatePointer(Staged):
    """Every process opens the array and copies its share itself."""

    def __init__(self, world: World, memory: Memory | None, parts: Parts, processes: int, whole: bool) -> None:
        """Open the arrays of the first process."""
        handles = _shared(world, memory, [parts.source, parts.target])
        everyone = world.allgather((memory.device, *handles) if memory is not None else None)
        device, source, target = everyone[world.rank - world.rank % processes]
        self._opened: list[Window] = []
        self._copies: Memory = memory or (HostMemory() if device is None else DeviceMemory(device))
        super().__init__(world, memory, parts, processes, whole)
        problem = None
        if memory is None:
            try:
                self._opened = [self._copies.open(handle) for handle in (source, target)]
            except OSError as error:
                problem = f"strategy 'duplicate-pointer': rank {world.rank} cannot open its array: {error}"
        raise_together(world, problem)
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
    hosts = host_names(world)[me * processes : (me + 1) * processes]
    if len(set(hosts)) == 1:
        return None
    return (
        f"strategy {strategy!r}: ranks {me * processes} to {(me + 1) * processes - 1} serve one array on several hosts"
    )


def _placed(pieces: list[tuple[int, int]], buffer: Bytes) -> list[tuple[tuple[int, int], Bytes]]:
    """Return the pieces with their places in a packed buffer."""
    begins = starts([size for _, size in pieces])
    return [(piece, buffer[begin : begin + piece[1]]) for piece, begin in zip(pieces, begins, strict=True)]


def _totals(carried: list[list[tuple[int, int]]]) -> tuple[list[int], list[int]]:
    sizes = [sum(size for _, size in pieces) for pieces in carried]
    return sizes, starts(sizes)


def _pack(array: Bytes, carried: list[list[tuple[int, int]]], packed: Bytes) -> None:
    for pieces, begin in zip(carried, _totals(carried)[1], strict=True):
        for (offset, size), host in _placed(pieces, packed[begin:]):
            host[:] = array[offset : offset + size]


def _unpack(packed: Bytes, carried: list[list[tuple[int, int]]], array: Bytes) -> None:
    for pieces, begin in zip(carried, _totals(carried)[1], strict=True):
        for (offset, size), host in _placed(pieces, packed[begin:]):
            array[offset : offset + size] = host


#: The ways by the names of strategies.
WAYS: dict[str, type[Way]] = {
    "mpi": Mpi,
    "peer": Peer,
    "nccl": Nccl,
    "three-step": Staged,
    "extra-message": ExtraMessage,
    "duplicate-pointer": DuplicatePointer,
}
