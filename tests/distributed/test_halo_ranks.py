# SPDX-License-Identifier: BSD-3-Clause
"""Halo exchanges between ranks against a dense reference that every rank computes for itself, bit for bit."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from launch import run_ranks

STORES = ("float64", "float32", "float16")
SITES = 211


class Model:
    """Random owners of SITES keys and, for every ordered pair of ranks, keys that one requests from the other."""

    def __init__(self, size: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.size = size
        self.owner = random.integers(0, size, SITES)
        self.place = np.zeros(SITES, np.int64)
        self.keys = [random.permutation(np.flatnonzero(self.owner == rank)) for rank in range(size)]
        for keys in self.keys:
            self.place[keys] = np.arange(len(keys))
        # Ranks also request values from themselves; some pairs request nothing, so that messages go one way only.
        self.wanted = [[self._some(random, self.keys[peer]) for peer in range(size)] for _ in range(size)]
        self.values = random.standard_normal(SITES) * 10.0 ** random.integers(-3, 4, SITES)
        self.returned = [
            [random.standard_normal(len(keys)) * 10.0 ** random.integers(-3, 4, len(keys)) for keys in row]
            for row in self.wanted
        ]

    @staticmethod
    def _some(random: np.random.Generator, keys: np.ndarray) -> np.ndarray:
        return random.permutation(keys)[: random.choice([0, len(keys) // 3, len(keys)])]

    def plan(self, world: Any) -> Any:
        from seiche.halo import build_plan

        self.mine = self.keys[world.rank]
        expected, first = {}, len(self.mine)
        random = np.random.default_rng(world.rank)
        self.copy_slots = []
        total = sum(len(keys) for keys in self.wanted[world.rank])
        free = first + random.permutation(total)
        for peer, keys in enumerate(self.wanted[world.rank]):
            slots, free = free[: len(keys)], free[len(keys) :]
            self.copy_slots.append(slots)
            expected[peer] = (keys, slots.astype(np.uint32))
        self.length = first + total
        locate = lambda keys: np.where(self.owner[keys] == world.rank, self.place[keys], -1)  # noqa: E731
        return build_plan(world, expected, locate)

    def start_array(self, backend: Any, store: str) -> Any:
        array = np.full(self.length, -7.0, store)
        array[: len(self.mine)] = self.values[self.mine]
        return backend.upload(array)

    def check_gathered(self, rank: int, array: np.ndarray, store: str, factor: float = 1.0) -> None:
        expected = (self.values.astype(store) * np.dtype(store).type(factor)).astype(store)
        np.testing.assert_array_equal(array[: len(self.mine)], expected[self.mine])
        for peer, keys in enumerate(self.wanted[rank]):
            np.testing.assert_array_equal(array[self.copy_slots[peer]], expected[keys])

    def scattered(self, rank: int, store: str, add: bool, peers: Any) -> np.ndarray:
        dense = self.values.astype(store)
        for peer in peers:
            keys, values = self.wanted[peer][rank], self.returned[peer][rank].astype(store)
            dense[keys] = dense[keys] + values if add else values
        return dense[self.mine]


def exchanges_equal_the_dense_reference(transport: str, device: str) -> None:
    from seiche.backend import open_backend
    from seiche.domain.world import World
    from seiche.halo import HaloExchange

    world = World.from_mpi()
    backend = open_backend(device, local_rank=world.local_rank)
    order_matters = 0
    for seed in range(4):
        model = Model(world.size, seed)
        plan = model.plan(world)
        for store in STORES:
            exchange = HaloExchange(backend, world, plan, store, transport)
            array = model.start_array(backend, store)
            for _ in range(5):
                exchange.start(array)
                exchange.finish(array)
            model.check_gathered(world.rank, backend.download(array), store)

            host = backend.download(array)
            for peer, slots in enumerate(model.copy_slots):
                host[slots] = model.returned[world.rank][peer]
            ascending, descending = range(world.size), range(world.size)[::-1]
            for mode in ("scatter", "scatter_add")[: 1 if store == "float16" else 2]:
                backend.assign(array, host)
                exchange.start(array, mode)
                exchange.finish(array, mode)
                expected = model.scattered(world.rank, store, mode == "scatter_add", ascending)
                other = model.scattered(world.rank, store, mode == "scatter_add", descending)
                np.testing.assert_array_equal(backend.download(array)[: len(model.mine)], expected)
                order_matters += int(np.count_nonzero(expected != other))
            sent = sum(len(row[world.rank]) for row in model.wanted)
            received = sum(len(keys) for keys in model.wanted[world.rank])
            assert exchange.bytes == (sent + received) * np.dtype(store).itemsize
            exchange.close()
    # The reference depends on the order of the sums, so equality above means that the order is the documented one.
    assert (order_matters > 0) == (world.size > 1)


def two_exchanges_overlap(device: str, transport: str = "host") -> None:
    from seiche.backend import open_backend
    from seiche.domain.world import World
    from seiche.halo import HaloExchange

    world = World.from_mpi()
    backend = open_backend(device, local_rank=world.local_rank)
    model = Model(world.size, 11)
    exchange = HaloExchange(backend, world, model.plan(world), "float64", transport)
    arrays = [model.start_array(backend, "float64") for _ in range(3)]
    back = model.start_array(backend, "float64")
    exchange.start(arrays[0])
    for step in range(1, 30):
        # Ranks drift apart: a fast one sends its next message while a slow one has not read the one before.
        time.sleep(0.002 * ((step + world.rank) % world.size))
        exchange.start(arrays[step % 3])
        exchange.start(back, "scatter_add")
        exchange.finish(arrays[(step - 1) % 3])
        exchange.finish(back, "scatter_add")
        array = arrays[(step - 1) % 3]
        model.check_gathered(world.rank, backend.download(array), "float64", 2.0 ** ((step - 1) // 3))
        # The owner changes its values once its message has been packed: the next round must bring the new ones.
        array[: len(model.mine)] *= 2.0
    exchange.finish(arrays[29 % 3])
    exchange.close()


def plans_that_do_not_belong_together() -> None:
    from seiche.backend import open_backend
    from seiche.domain.world import World
    from seiche.errors import TransportError
    from seiche.halo import HaloExchange, HaloPlan, build_plan

    world = World.from_mpi()
    backend = open_backend("cpu", 1)
    array = backend.zeros(8, np.float64)
    slots = np.arange(2, dtype=np.uint32)
    none = slots[:0]

    def message(action: Any) -> str:
        with pytest.raises(TransportError) as raised:
            action()
        return str(raised.value)

    # Rank 1 sends nothing to rank 0, which expects two values.
    plan = HaloPlan((1,), (none,), (slots,)) if world.rank == 0 else HaloPlan((), (), ())
    assert message(lambda: HaloExchange(backend, world, plan, "float64").start(array)) == (
        "rank 0 expects 16 B from rank 1, which sends 0 B; the halo plans are inconsistent"
    )
    wrong = HaloPlan((1 - world.rank,), (slots[: 1 + world.rank],), (slots + 4,))
    assert message(lambda: HaloExchange(backend, world, wrong, "float32").start(array)) == (
        "rank 1 expects 8 B from rank 0, which sends 4 B; the halo plans are inconsistent"
    )
    # An error of one rank is raised on all, so that none waits forever.
    expected = {0: (np.array([3]), slots[:1])} if world.rank == 1 else {}
    assert message(lambda: build_plan(world, expected, lambda keys: np.full(len(keys), -1))) == (
        "rank 1 requests key 3 (1 of 1 keys) from rank 0, which does not own it"
    )
    here = HaloPlan((1 - world.rank,), (slots,), (slots + 4,))
    assert message(lambda: HaloExchange(backend, world, here, "float64", "local").start(array)) == (
        "transport 'local' cannot send from rank 0 to rank 1; use 'host'"
    )
    assert message(lambda: HaloExchange(backend, world, here, "float64", "nccl").start(array)) == (
        "transport 'nccl' requires a GPU, but rank 0 computes on cpu"
    )


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_exchanges_between_ranks_equal_the_dense_reference(ranks):
    run_ranks(ranks, exchanges_equal_the_dense_reference, "host", "cpu")


def test_one_rank_takes_the_local_transport():
    run_ranks(1, exchanges_equal_the_dense_reference, "auto", "cpu")


@pytest.mark.parametrize("ranks", [2, 3])
def test_messages_of_two_steps_do_not_mix(ranks):
    run_ranks(ranks, two_exchanges_overlap, "cpu")


def test_plans_that_are_inconsistent_stop_all_ranks_with_one_message():
    run_ranks(2, plans_that_do_not_belong_together)


def a_message_that_never_comes_is_named(transport: str, device: str) -> None:
    from seiche.backend import open_backend
    from seiche.domain.world import World
    from seiche.errors import TransportError
    from seiche.halo import HaloExchange

    world = World.from_mpi()
    backend = open_backend(device, local_rank=world.local_rank)
    model = Model(world.size, 11)
    exchange = HaloExchange(backend, world, model.plan(world), "float64", transport)
    array = model.start_array(backend, "float64")
    exchange.prepare(array)
    if world.rank == 0:
        exchange.start(array)
        exchange.finish(array)
        backend.synchronize()
        with pytest.raises(TransportError, match=r"rank 0 received no"):
            exchange.check()
    world.barrier()


def gpus() -> int:
    """Return the number of GPUs here."""
    cupy = pytest.importorskip("cupy")
    return int(cupy.cuda.runtime.getDeviceCount())


@pytest.mark.parametrize("ranks", [2, 3])
def test_mpi_carries_messages_from_device_memory(ranks):
    run_ranks(ranks, exchanges_equal_the_dense_reference, "device_mpi", "cpu")
    run_ranks(ranks, two_exchanges_overlap, "cpu", "device_mpi")


@pytest.mark.gpu
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_exchanges_by_stores_into_the_peers_memory_equal_the_dense_reference(ranks):
    gpus()
    run_ranks(ranks, exchanges_equal_the_dense_reference, "peer", "cuda", timeout=240)
    run_ranks(ranks, two_exchanges_overlap, "cuda", "peer", timeout=240)


@pytest.mark.gpu
def test_a_peer_that_does_not_send_is_named(monkeypatch):
    gpus()
    monkeypatch.setenv("SEICHE_TIMEOUT", "0.5")
    run_ranks(2, a_message_that_never_comes_is_named, "peer", "cuda", timeout=240)


@pytest.mark.gpu
def test_exchanges_by_nccl_equal_the_dense_reference():
    if gpus() < 2:
        pytest.skip("NCCL needs a GPU a rank")
    run_ranks(min(gpus(), 4), exchanges_equal_the_dense_reference, "nccl", "cuda", timeout=240)
    run_ranks(min(gpus(), 4), two_exchanges_overlap, "cuda", "nccl", timeout=240)


@pytest.mark.gpu
@pytest.mark.parametrize("ranks", [1, 2])
def test_exchanges_from_gpu_memory_equal_the_dense_reference(ranks):
    pytest.importorskip("cupy")
    run_ranks(ranks, exchanges_equal_the_dense_reference, "host", "cuda", timeout=240)
    run_ranks(ranks, two_exchanges_overlap, "cuda", timeout=240)
