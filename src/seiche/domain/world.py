# SPDX-License-Identifier: BSD-3-Clause
"""The processes of a run: a single one, or the ranks started by mpiexec."""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend.host_threads import allowed_cpus, host_threads
from seiche.domain.launchers import LAUNCHER_VARIABLES, launcher_mismatch, mpi_can_start
from seiche.errors import TransportError


@dataclass(frozen=True)
class World:
    """Rank `rank` of `size`, with `local_size` ranks on this host; `comm` is the MPI communicator or None.

    `cpu_sharers` is the number of ranks on this host that may use some of this rank's CPUs, itself included; 0: all.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    comm: Any = None
    cpu_sharers: int = 0

    @staticmethod
    def serial() -> World:
        """Return a world of one process."""
        return World()

    @staticmethod
    def from_mpi(*, single_rank: bool = False) -> World:
        """Return the world started by mpiexec, or a serial one without a launcher or mpi4py.

        Args:
            single_rank: whether each of several processes that MPI does not connect may have its own serial world.

        Raises:
            TransportError: the launcher started several processes, but MPI connects none of them to this one.
        """
        world = World()
        if any(name in os.environ for name in LAUNCHER_VARIABLES):
            with suppress(ImportError), warnings.catch_warnings():
                # mpi4py warns of the launcher of another MPI, which is rejected here.
                warnings.simplefilter("ignore", RuntimeWarning)
                if mpi_can_start():
                    from mpi4py import MPI

                    world = World.of(MPI.COMM_WORLD)
        if not single_rank:
            check_connected(world)
        return world

    @staticmethod
    def of(comm: Any) -> World:
        """Return the world of an mpi4py communicator."""
        from mpi4py import MPI

        local = comm.Split_type(MPI.COMM_TYPE_SHARED)
        sharers = _cpu_sharers(local)
        world = World(comm.Get_rank(), comm.Get_size(), local.Get_rank(), local.Get_size(), comm, sharers)
        local.Free()
        return world

    def with_present_cpus(self) -> World:
        """Return the same world after CPUs of its ranks have changed (collective)."""
        return self if self.comm is None or self.emulated else World.of(self.comm)

    def first(self, ranks: int) -> World | None:
        """Return the world of the first ranks, None on the others (collective)."""
        if ranks >= self.size:
            return self
        from mpi4py import MPI

        comm = self.comm.Split(0 if self.rank < ranks else MPI.UNDEFINED, self.rank)
        if comm == MPI.COMM_NULL:
            return None
        return World.of(comm) if ranks > 1 else World(0, 1, self.local_rank, self.local_size)

    def library(self) -> str:
        """Return the name and version of the MPI library, "none" in a serial world."""
        if self.comm is None or self.emulated:
            return "none"
        from mpi4py import MPI

        return " ".join(MPI.Get_library_version().replace("\x00", "").split("\n")[0].split())

    def threads(self, requested: int | None = None) -> int:
        """Return the CPU threads of this process: `requested`, else OMP_NUM_THREADS or its share of the cores."""
        return requested if requested is not None else host_threads(self.cpu_sharers or self.local_size)

    @property
    def emulated(self) -> bool:
        """Return whether the ranks are threads of one process (`domain/emulation.py`)."""
        return hasattr(self.comm, "take")

    def barrier(self) -> None:
        """Wait for all ranks."""
        if self.comm is not None:
            self.comm.Barrier()

    def allreduce_sum(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the sum over ranks of equal-shaped arrays."""
        if self.comm is None:
            return np.array(values)
        result = np.empty_like(values)
        self.comm.Allreduce(np.ascontiguousarray(values), result)
        return result

    def allreduce_max(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the maximum over ranks; NaN anywhere gives NaN everywhere."""
        if self.comm is None:
            return np.array(values)
        return np.asarray(np.max(np.stack(self.comm.allgather(np.asarray(values))), axis=0))

    def gather(self, value: Any) -> list[Any] | None:
        """Return the values of all ranks on rank 0, None elsewhere."""
        if self.comm is None:
            return [value]
        return self.comm.gather(value, root=0)  # type: ignore[no-any-return]

    def allgather(self, value: Any) -> list[Any]:
        """Return the values of all ranks everywhere."""
        return [value] if self.comm is None else list(self.comm.allgather(value))

    def alltoall(self, values: list[Any]) -> list[Any]:
        """Send `values[k]` to rank k; return the values received, in rank order."""
        return values if self.comm is None else list(self.comm.alltoall(values))

    def bcast(self, value: Any) -> Any:
        """Return rank 0's value everywhere."""
        return value if self.comm is None else self.comm.bcast(value, root=0)

    def abort(self, message: str) -> None:
        """End all ranks with one message; raise SystemExit in a serial world.

        Raises:
            SystemExit: in a serial world.
        """
        print(message, file=sys.stderr, flush=True)
        if self.comm is None or self.size == 1:
            raise SystemExit(1)
        self.comm.Abort(1)


def _cpu_sharers(local: Any) -> int:
    """Return the number of ranks of `local` that may use some of this one's CPUs (collective)."""
    own = allowed_cpus()
    return sum(not own.isdisjoint(cpus) for cpus in local.allgather(own))


def check_connected(world: World) -> None:
    """Raise TransportError if the launcher started several processes but the `world` has one."""
    module = sys.modules.get("mpi4py.MPI")
    problem = launcher_mismatch(world.size, module.Get_library_version() if module is not None else "")
    if problem is not None:
        raise TransportError(problem)


def raise_together(world: World, problem: str | None, error: type[Exception] = TransportError) -> None:
    """Raise `error` with the problem of the lowest rank that has one, on all ranks (collective)."""
    first = next((text for text in world.allgather(problem) if text is not None), None)
    if first is not None:
        raise error(first)
