# SPDX-License-Identifier: BSD-3-Clause
"""Alltoall(v) algorithms that use the arrays directly; `collectives.py` validates their arguments.

`sent[k]` and `received[k]` are bytes to and from array number k; the parts are contiguous in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from seiche.domain.rank_locations import hosts_of, on_different_hosts
from seiche.domain.world import World, raise_together
from seiche.errors import TransportError
from seiche.halo.transports.device_mpi import accepts_device_addresses
from seiche.halo.transports.memory import DeviceMemory, Memory, RemoteMemory, bytes_at
from seiche.halo.transports.nccl import join, nccl_library


@dataclass(frozen=True)
class ExchangeParts:
    """Bytes to and from each array, and the addresses of the send and receive arrays."""

    sent: list[int]
    received: list[int]
    source: int = 0
    target: int = 0

    @staticmethod
    def none(arrays: int) -> ExchangeParts:
        """Return the parts of a rank without an array."""
        return ExchangeParts([0] * arrays, [0] * arrays)


def starts(sizes: list[int]) -> list[int]:
    """Return the offsets of contiguous parts of `sizes`."""
    return [0, *np.cumsum(sizes).tolist()][:-1]


class AlltoallAlgorithm(ABC):
    """One algorithm; constructed and called collectively."""

    def __init__(
        self, world: World, memory: Memory | None, parts: ExchangeParts, processes: int, whole_messages: bool
    ) -> None:
        """Prepare an exchange.

        Args:
            world: the ranks.
            memory: memory of this rank's arrays; None on a helper rank.
            parts: sizes and addresses of this rank's arrays.
            processes: ranks per array.
            whole_messages: whether messages are not split among processes.

        Raises:
            TransportError: on all ranks, if the algorithm is not available.
        """
        self.world, self.memory, self.parts = world, memory, parts
        self.processes, self.whole_messages = processes, whole_messages
        self.array_index, self.helper_index = divmod(world.rank, processes)
        raise_together(world, self.unavailable_reason())

    def unavailable_reason(self) -> str | None:
        """Return the reason why the algorithm is not available, or None."""
        return None

    @abstractmethod
    def __call__(self) -> None:
        """Exchange."""

    def close(self) -> None:
        """Release all resources."""
        self.memory = None


class Mpi(AlltoallAlgorithm):
    """MPI_Alltoallv on the arrays themselves."""

    def unavailable_reason(self) -> str | None:
        """Return a reason if MPI does not accept device addresses."""
        if self.memory is not None and self.memory.device is not None and not accepts_device_addresses():
            return "strategy 'mpi': this MPI library does not accept GPU memory; use 'nccl' or 'three-step'"
        return None

    def __init__(
        self, world: World, memory: Memory | None, parts: ExchangeParts, processes: int, whole_messages: bool
    ) -> None:
        super().__init__(world, memory, parts, processes, whole_messages)
        self._messages = tuple(
            [bytes_at(address, sum(sizes)), (sizes, starts(sizes)), "B"]  # MPI uses the address only
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


class Peer(AlltoallAlgorithm):
    """Every rank copies its parts into the arrays of the other ranks."""

    def __init__(
        self, world: World, memory: Memory | None, parts: ExchangeParts, processes: int, whole_messages: bool
    ) -> None:
        super().__init__(world, memory, parts, processes, whole_messages)
        assert memory is not None
        shared = world.allgather((shared_handles(world, memory, [parts.target])[0], starts(parts.received)))
        self._windows: dict[int, RemoteMemory] = {}
        self._remote_copies: list[tuple[int, int, int, int]] = []
        problem = None
        # Start with the next rank: otherwise all ranks copy to the same target at the same time.
        for offset in range(1, world.size):
            peer = (world.rank + offset) % world.size
            handle, begins = shared[peer]
            if not parts.sent[peer]:
                continue
            try:
                self._windows[peer] = memory.open(handle)
            except OSError as error:
                problem = f"strategy 'peer': rank {world.rank} cannot map the array of rank {peer}: {error}"
                break
            begin = parts.source + starts(parts.sent)[peer]
            self._remote_copies.append((peer, begin, parts.sent[peer], begins[world.rank]))
        source, target = starts(parts.sent)[world.rank], starts(parts.received)[world.rank]
        self._own_copy = (parts.source + source, parts.target + target, parts.sent[world.rank])
        try:
            raise_together(world, problem)
        except TransportError:
            self.close()
            raise

    def unavailable_reason(self) -> str | None:
        """Return a reason if a rank is on another host."""
        hosts, rank = hosts_of(self.world), self.world.rank
        remote = next((remote for remote, host in enumerate(hosts) if host != hosts[rank]), None)
        if remote is None:
            return None
        return f"strategy 'peer': ranks {rank} and {remote} are {on_different_hosts(hosts[rank], hosts[remote])}"

    def __call__(self) -> None:
        """Copy between two barriers: other ranks may still read the arrays before, and need the data after."""
        assert self.memory is not None
        self.memory.wait()
        self.world.barrier()
        for peer, address, size, offset in self._remote_copies:
            self._windows[peer].store(address, size, offset)
        self.memory.copy(*self._own_copy)
        self.memory.wait()
        self.world.barrier()

    def close(self) -> None:
        """Close the mapped arrays on all ranks before any rank frees its own."""
        for window in self._windows.values():
            window.close()
        self._windows.clear()
        self.world.barrier()
        super().close()


def shared_handles(world: World, memory: Memory | None, addresses: list[int]) -> list[Any]:
    """Return interprocess handles of memory; raise on all ranks if one rank cannot share."""
    handles, problem = [], None
    try:
        handles = [memory.share(address) for address in addresses] if memory is not None else []
    except TransportError as error:
        problem = str(error)
    raise_together(world, problem)
    return handles


class Nccl(AlltoallAlgorithm):
    """One group of NCCL sends and receives in the current stream."""

    def __init__(
        self, world: World, memory: Memory | None, parts: ExchangeParts, processes: int, whole_messages: bool
    ) -> None:
        super().__init__(world, memory, parts, processes, whole_messages)
        self._nccl = nccl_library()
        self._communicator = join(world, self._nccl)

    def unavailable_reason(self) -> str | None:
        """Return a reason if ranks have no GPU, or share one."""
        device = None if self.memory is None else self.memory.device
        devices = self.world.allgather((hosts_of(self.world)[self.world.rank], device))
        if device is None:
            return f"strategy 'nccl' requires arrays in GPU memory, but rank {self.world.rank} has one in host memory"
        if len(set(devices)) < len(devices):
            return "strategy 'nccl' requires one GPU per rank, but some ranks share one"
        return None if nccl_library() is not None else "strategy 'nccl' requires NCCL: pip install nvidia-nccl-cu13"

    def __call__(self) -> None:
        """Exchange and synchronise the stream."""
        assert isinstance(self.memory, DeviceMemory)
        nccl, stream = self._nccl, self.memory.stream()
        nccl.groupStart()
        for kind, address, sizes in (
            ("send", self.parts.source, self.parts.sent),
            ("recv", self.parts.target, self.parts.received),
        ):
            for peer, (begin, size) in enumerate(zip(starts(sizes), sizes, strict=True)):
                if size:
                    getattr(self._communicator, kind)(address + begin, size, nccl.NCCL_UINT8, peer, stream)
        nccl.groupEnd()
        self.memory.wait()

    def close(self) -> None:
        """Destroy the communicator."""
        self._communicator.destroy()
        super().close()
