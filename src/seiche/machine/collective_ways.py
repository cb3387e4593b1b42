# SPDX-License-Identifier: BSD-3-Clause
"""How the data of an Alltoall(v) travels without detour; `collectives.py` checks what these classes are given.

`sent[k]` and `received[k]` are bytes to and from array number k, one part behind the other in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from seiche.domain.seats import hosts_of, on_different_hosts
from seiche.domain.world import World, raise_together
from seiche.errors import TransportError
from seiche.halo.transports.device_mpi import takes_device_addresses
from seiche.halo.transports.memory import DeviceMemory, Memory, RemoteMemory, bytes_at
from seiche.halo.transports.nccl import join, nccl_library


@dataclass(frozen=True)
class ExchangeParts:
    """Bytes to and from each array, and the addresses of what is sent and received."""

    sent: list[int]
    received: list[int]
    source: int = 0
    target: int = 0

    @staticmethod
    def none(arrays: int) -> ExchangeParts:
        """Return the parts of a rank that holds no array."""
        return ExchangeParts([0] * arrays, [0] * arrays)


def starts(sizes: list[int]) -> list[int]:
    """Return where parts of `sizes` begin that lie one behind the other."""
    return [0, *np.cumsum(sizes).tolist()][:-1]


class Way(ABC):
    """One way; made and called by all ranks together."""

    def __init__(self, world: World, memory: Memory | None, parts: ExchangeParts, processes: int, whole: bool) -> None:
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

    def __init__(self, world: World, memory: Memory | None, parts: ExchangeParts, processes: int, whole: bool) -> None:
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

    def __init__(self, world: World, memory: Memory | None, parts: ExchangeParts, processes: int, whole: bool) -> None:
        """Open the arrays of the others."""
        super().__init__(world, memory, parts, processes, whole)
        assert memory is not None
        places = world.allgather((shared_handles(world, memory, [parts.target])[0], starts(parts.received)))
        self._windows: dict[int, RemoteMemory] = {}
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
        mine = world.rank
        begin, end = parts.source + starts(parts.sent)[mine], parts.target + starts(parts.received)[mine]
        self._own = (begin, end, parts.sent[mine])
        try:
            raise_together(world, problem)
        except TransportError:
            self.close()
            raise

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
        self.memory.copy(*self._own)
        self.memory.wait()
        self.world.barrier()

    def close(self) -> None:
        """Let go of the arrays of others before anyone frees one."""
        for window in self._windows.values():
            window.close()
        self._windows.clear()
        self.world.barrier()
        super().close()


def shared_handles(world: World, memory: Memory | None, addresses: list[int]) -> list[Any]:
    """Return handles of memory for other processes; fail on all ranks if one cannot share."""
    handles, problem = [], None
    try:
        handles = [memory.share(address) for address in addresses] if memory is not None else []
    except TransportError as error:
        problem = str(error)
    raise_together(world, problem)
    return handles


def _far(world: World, strategy: str) -> str | None:
    hosts = hosts_of(world)
    other = next((rank for rank, host in enumerate(hosts) if host != hosts[world.rank]), None)
    if other is None:
        return None
    apart = on_different_hosts(hosts[world.rank], hosts[other])
    return f"strategy {strategy!r}: ranks {world.rank} and {other} are {apart}"


class Nccl(Way):
    """One group of sends and receives in the current stream."""

    def __init__(self, world: World, memory: Memory | None, parts: ExchangeParts, processes: int, whole: bool) -> None:
        """Join a communicator."""
        super().__init__(world, memory, parts, processes, whole)
        self._nccl = nccl_library()
        self._communicator = join(world, self._nccl)

    def impossible(self) -> str | None:
        """Return that there are no GPUs, or not one for each rank."""
        device = None if self.memory is None else self.memory.device
        seats = self.world.allgather((hosts_of(self.world)[self.world.rank], device))
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
