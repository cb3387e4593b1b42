# SPDX-License-Identifier: BSD-3-Clause
"""Ranks played in one process do what ranks of MPI do, and end when one of them fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from seiche.backend import open_backend
from seiche.backend.planned import PlannedBackend
from seiche.domain.emulation import emulate_ranks
from seiche.domain.shared_memory import shared_array
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.halo.exchange import HaloExchange
from seiche.halo.plan import build_plan
from seiche.kernels.registry.halo import halo_move


def test_collectives_bring_what_mpi_would() -> None:
    def work(world: World) -> tuple[Any, ...]:
        rank, size = world.rank, world.size
        world.barrier()
        return (
            world.allgather(10 * rank),
            world.gather(rank),
            world.bcast(f"from {rank}"),
            world.alltoall([(rank, peer) for peer in range(size)]),
            world.allreduce_sum(np.array([rank, 1.0])).tolist(),
            world.allreduce_max(np.array([rank, -rank])).tolist(),
        )

    for rank, result in enumerate(emulate_ranks(4, work)):
        assert result == (
            [0, 10, 20, 30],
            [0, 1, 2, 3] if rank == 0 else None,
            "from 0",
            [(peer, rank) for peer in range(4)],
            [6.0, 4.0],
            [3, 0],
        )


def test_ranks_of_a_host_are_numbered_on_it() -> None:
    seats = emulate_ranks(5, lambda world: (world.local_rank, world.local_size, world.emulated), ranks_per_host=2)
    assert [seat[0] for seat in seats] == [0, 1, 0, 1, 0]
    assert {seat[1:] for seat in seats} == {(2, True)}
    assert emulate_ranks(1, lambda world: (world.size, world.emulated)) == [(1, False)]


def test_arrays_of_rank_zero_are_not_copied() -> None:
    array = np.arange(5)
    result = emulate_ranks(3, lambda world: shared_array(world, array if world.rank == 0 else None))
    assert all(item is array for item in result)


def test_a_failure_of_one_rank_ends_all() -> None:
    def work(world: World) -> None:
        if world.rank == 2:
            raise CaseError("no")
        world.barrier()
        world.barrier()

    with pytest.raises(CaseError, match=r"^no$"):
        emulate_ranks(4, work)


@pytest.mark.parametrize("late", [0, 3])
def test_ranks_that_wait_for_each_other_without_end_are_reported(late: int) -> None:
    def work(world: World) -> None:
        if world.rank == late:
            world.barrier()

    with pytest.raises(RuntimeError, match="deadlock: the emulated ranks wait for each other"):
        emulate_ranks(4, work)


def ring(world: World, device: str) -> tuple[Any, Any]:
    """Return an exchange in which every rank has a copy of the next rank's first value, and its array."""
    backend = open_backend(device, 1)
    behind = (world.rank + 1) % world.size
    expected = {behind: (np.array([behind]), np.array([1], np.uint32))}
    plan = build_plan(world, expected, lambda keys: np.where(keys == world.rank, 0, -1))
    array = backend.upload(np.array([float(world.rank), -1.0]))
    exchange = HaloExchange(backend, world, plan, "float64")
    exchange.start(array)
    exchange.finish(array)
    return backend, backend.download(array)


def test_messages_go_from_hand_to_hand_on_a_device_that_computes() -> None:
    arrays = [array for _, array in emulate_ranks(4, lambda world: ring(world, "cpu"))]
    np.testing.assert_array_equal(arrays, [[0, 1], [1, 2], [2, 3], [3, 0]])


def test_a_device_that_counts_moves_nothing_and_counts_all() -> None:
    for rank, (backend, array) in enumerate(emulate_ranks(4, lambda world: ring(world, "cuda:planned"))):
        np.testing.assert_array_equal(array, [rank, -1])
        peers = sorted({(rank + 1) % 4, (rank - 1) % 4})
        messages = tuple((peer, 8 * (peer == (rank - 1) % 4), 8 * (peer == (rank + 1) % 4)) for peer in peers)
        assert backend.ledger.exchanges == [messages]
        assert backend.ledger.arrivals == 1
        assert backend.ledger.launches == 2  # pack and unpack
        assert backend.is_gpu


def test_memory_is_counted_while_it_is_held_and_never_written() -> None:
    backend = PlannedBackend()
    much = backend.zeros(1 << 44, np.float64)  # 128 TiB: no machine has it
    assert backend.memory == 1 << 47
    table = backend.upload(np.arange(8.0))
    assert backend.memory == (1 << 47) + 64
    np.testing.assert_array_equal(backend.download(table), np.arange(8.0))
    backend.assign(much, np.zeros(()))
    del much
    assert backend.memory == 64
    kernel, real = backend.load(halo_move("Pack", "float64")), open_backend("cpu", 1).load(halo_move("Pack", "float64"))
    assert kernel.bytes_per_item == real.bytes_per_item > 0
    assert kernel.dtype == real.dtype
    assert "nothing is computed" in backend.describe()
