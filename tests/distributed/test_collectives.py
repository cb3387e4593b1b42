# SPDX-License-Identifier: BSD-3-Clause
"""Alltoall and Alltoallv by every strategy move the same bytes to the same places, on any number of ranks."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from seiche.bench import collectives as bench_collectives
from seiche.domain.rank_locations import hosts_of
from seiche.domain.world import World
from seiche.errors import TransportError
from seiche.halo.transports import single_copy
from seiche.machine.collectives import Exchange, alltoall, alltoallv

#: By strategy, ranks an array.
EVERY = [
    ("mpi", 1),
    ("peer", 1),
    ("three-step", 1),
    ("extra-message", 2),
    ("duplicate-pointer", 2),
    ("extra-message", 4),
]


def can_attach(world: World) -> bool:
    """Return whether every rank may read the memory of the next one of its host."""
    hosts = hosts_of(world)
    order = [(world.rank + step) % world.size for step in range(1, world.size + 1)]
    partner = next(rank for rank in order if hosts[rank] == hosts[world.rank])
    own, into = np.ones(8, np.uint8), np.zeros(8, np.uint8)
    single_copy.permit_access()
    process, address = world.allgather((os.getpid(), int(own.ctypes.data)))[partner]
    try:
        single_copy.read_memory(process, address, into)
    except OSError:
        pass
    return all(world.allgather(bool(into.all())))


def on_device(device: str, array: np.ndarray) -> Any:
    if device == "cpu":
        return array
    import cupy

    return cupy.asarray(array)


def sent_value(source: int, target: int, number: np.ndarray | int) -> Any:
    return 1000 * source + 100 * target + number


def irregular(arrays: int) -> np.ndarray:
    """Return elements from each array to each, some of them none."""
    counts = np.random.default_rng(arrays).integers(0, 9, (arrays, arrays))
    counts[0, arrays - 1] = 0
    counts[-1, 0] = 3
    return counts


def exchange_and_compare(
    world: World, strategy: Any, processes: int, device: str, dtype: str, counts: np.ndarray
) -> None:
    """Exchange twice with other values and compare with what each rank must have."""
    arrays = world.size // processes
    me, helper = divmod(world.rank, processes)
    send = receive = own = reference = None
    if helper == 0:
        own, reference = counts[me].tolist(), counts[:, me].tolist()
        send, receive = (on_device(device, np.zeros(sum(c), dtype)) for c in (own, reference))
    equal = bool((counts == counts[0, 0]).all())
    inputs = (None, None) if equal else (own, reference)
    for full in (None, True, False):
        with Exchange(
            world, send, receive, *inputs, strategy=strategy, processes=processes, whole_messages=full
        ) as exchange:
            for turn in range(2):
                if send is not None:
                    values = [sent_value(me, k, np.arange(counts[me, k])) for k in range(arrays)]
                    send[...] = on_device(device, np.concatenate(values).astype(dtype) + turn)
                    receive[...] = 0
                exchange()
                if receive is not None:
                    expected = [sent_value(k, me, np.arange(counts[k, me])) for k in range(arrays)]
                    result = receive if device == "cpu" else receive.get()
                    assert result.tolist() == (np.concatenate(expected) + turn).tolist()


@pytest.mark.ranks(1, 2, 3, 4, nodes=("2+2", "1+1+1"))
def test_every_strategy_delivers_the_same(ranks: int) -> None:
    world = World.from_mpi()
    attach, hosts = can_attach(world), hosts_of(world)
    for strategy, processes in EVERY:
        if world.size % processes or (strategy in ("peer", "duplicate-pointer") and not attach):
            continue
        arrays = world.size // processes
        sharing = world.size if strategy == "peer" else processes  # ranks that must be on one host
        if any(len(set(hosts[first : first + sharing])) > 1 for first in range(0, world.size, sharing)):
            with pytest.raises(TransportError, match=r"on (several|different) hosts"):
                exchange_and_compare(world, strategy, processes, "cpu", "float64", np.full((arrays, arrays), 5))
            continue
        exchange_and_compare(world, strategy, processes, "cpu", "float64", np.full((arrays, arrays), 5))
        exchange_and_compare(world, strategy, processes, "cpu", "int16", irregular(arrays))
        exchange_and_compare(world, strategy, processes, "cpu", "float64", np.zeros((arrays, arrays), int))


@pytest.mark.gpu
@pytest.mark.ranks(1, 2, 4)
def test_every_strategy_delivers_between_gpus(ranks: int, device: str) -> None:
    import cupy

    world = World.from_mpi()
    gpus = cupy.cuda.runtime.getDeviceCount()
    for strategy, processes in [*EVERY, ("nccl", 1)]:
        arrays = world.size // processes
        if world.size % processes or strategy == "mpi" or (strategy == "nccl" and world.size > gpus):
            continue
        cupy.cuda.Device((world.rank // processes) % gpus).use()
        exchange_and_compare(world, strategy, processes, "cuda", "float64", np.full((arrays, arrays), 5))
        exchange_and_compare(world, strategy, processes, "cuda", "float64", irregular(arrays))


@pytest.mark.ranks(2)
def test_one_call_exchanges_any_array(ranks: int) -> None:
    world = World.from_mpi()
    send = np.arange(4, dtype=np.int64).reshape(2, 2) + 10 * world.rank
    receive = np.zeros_like(send)
    alltoall(world, send, receive)
    assert receive.tolist() == ([[0, 1], [10, 11]] if world.rank == 0 else [[2, 3], [12, 13]])
    counts = [[1, 3], [0, 2]]
    out = np.arange(sum(counts[world.rank]), dtype=np.float32)
    into = np.zeros(counts[0][world.rank] + counts[1][world.rank], np.float32)
    alltoallv(world, out, counts[world.rank], into, [counts[0][world.rank], counts[1][world.rank]], strategy="mpi")
    assert into.tolist() == ([0] if world.rank == 0 else [1, 2, 3, 0, 1])


@pytest.mark.ranks(2)
def test_arguments_that_do_not_match_are_reported_on_every_rank(ranks: int) -> None:
    world = World.from_mpi()
    a, fixed = np.zeros(4), np.zeros(4)
    fixed.flags.writeable = False
    objects = np.full(4, None, object)
    rejected: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("strategy 'pigeon' is unknown: use one of 'auto', 'mpi', 'peer'", (a, a.copy()), {"strategy": "pigeon"}),
        (
            "2 ranks cannot be divided into groups of 3 processes",
            (a, a),
            {"strategy": "extra-message", "processes": 3},
        ),
        ("strategy 'mpi' cannot use 2 processes per array", (a, a), {"strategy": "mpi", "processes": 2}),
        ("rank 0 must pass an array to send", (None, a), {}),
        ("float64 but receives ndarray of float32", (a, np.zeros(4, np.float32)), {}),
        ("5 elements to send do not divide equally among 2 ranks", (np.zeros(5), a), {}),
        (r"rank 0: send counts \[1, 1\] must be 2 non-negative numbers with the sum 4", (a, a, [1, 1], [2, 2]), {}),
        (r"send counts \[5, -1\] must be", (a, a, [5, -1], [2, 2]), {}),
        ("rank 0 expects 24 B from rank 0, which sends 16 B", (a, a.copy(), [2, 2], [3, 1]), {}),
        ("an array of shape .4,. is not contiguous; copy it first", (np.zeros(8)[::2], a), {}),
        ("list is not a NumPy or GPU array", ([1, 2], a), {}),
        ("strategy 'nccl' requires arrays in GPU memory, but rank 0 has one", (a, a.copy()), {"strategy": "nccl"}),
        ("rank 0 sends Python objects .object.: only numbers can be exchanged", (objects, objects.copy()), {}),
        ("rank 0: the receive array is not writable", (a, fixed), {}),
        ("rank 0: the receive array overlaps the send array", (a, a), {"strategy": "mpi"}),
        ("rank 0: the receive array overlaps the send array", (a[:2], a[1:3]), {}),
        ("rank 0: send counts must be whole numbers, one per rank", (a, a.copy(), [1.5, 2.5], [2, 2]), {}),
        ("rank 0: receive counts must be whole numbers, one per rank", (a, a.copy(), [2, 2], 2), {}),
        ("rank 0: send counts must be whole numbers", (a, a.copy(), "22", [2, 2]), {}),
        ("2 ranks cannot be divided into groups of 1.5 processes per array", (a, a.copy()), {"processes": 1.5}),
        (
            "rank 1 is a helper of rank 0 and must not pass an array",
            (a, a.copy()),
            {"strategy": "extra-message", "processes": 2},
        ),
    ]
    for message, arguments, options in rejected:
        with pytest.raises(TransportError, match=message):
            Exchange(world, *arguments, **options)
    with pytest.raises(TransportError, match="ranks use different strategies or processes"):
        Exchange(world, a, a, strategy="mpi" if world.rank else "peer")
    # An argument that is invalid on one rank only must not leave the others waiting.
    with pytest.raises(TransportError, match="ranks use different strategies or processes"):
        Exchange(world, a, a, strategy="extra-message", processes=2 if world.rank else 0)


@pytest.mark.ranks(1, 2)
def test_an_exchange_that_was_closed_is_reported(ranks: int) -> None:
    world = World.from_mpi()
    exchange = Exchange(world, np.zeros(2), np.zeros(2), strategy="mpi")
    exchange.close()
    exchange.close()
    for act in (exchange, exchange.reconsider):
        with pytest.raises(TransportError, match="the exchange is closed; create a new one"):
            act()


@pytest.mark.ranks(2, one_host=True)
def test_memory_that_cannot_be_opened_is_reported_on_every_rank(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from seiche.halo.transports import memory

    def blocked(*arguments: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(memory, "verify_process", blocked)
    world = World.from_mpi()
    with pytest.raises(
        TransportError, match=r"strategy 'peer': rank 0 cannot map the array of rank 1: .*not permitted"
    ):
        Exchange(world, np.zeros(2), np.zeros(2), strategy="peer")
    array, into = (np.zeros(1), np.zeros(1)) if world.rank == 0 else (None, None)
    with pytest.raises(TransportError, match=r"strategy 'duplicate-pointer': rank 1 cannot map its array: .*permitted"):
        Exchange(world, array, into, strategy="duplicate-pointer", processes=2)


@pytest.mark.ranks(2)
def test_ranks_of_several_hosts_cannot_share_an_array(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from seiche.machine import collective_algorithms, collective_staged

    for module in (collective_algorithms, collective_staged):
        monkeypatch.setattr(module, "hosts_of", lambda world: ["a", "b"])
    world, a = World.from_mpi(), np.zeros(2)
    with pytest.raises(TransportError, match="strategy 'peer': ranks 0 and 1 are on different hosts"):
        Exchange(world, a, a.copy(), strategy="peer")
    array, into = (np.zeros(1), np.zeros(1)) if world.rank == 0 else (None, None)
    with pytest.raises(TransportError, match="'extra-message': ranks 0 to 1 serve one array but are on several hosts"):
        Exchange(world, array, into, strategy="extra-message", processes=2)


@pytest.mark.ranks(4, one_host=True)
def test_all_strategies_are_timed_on_the_same_arrays(ranks: int) -> None:
    world = World.from_mpi()
    attach = can_attach(world)
    rows = bench_collectives.main(device="cpu", processes=2, seconds=0.1, sizes=(64,), world=world)
    assert {row.arrays for row in rows} == {2}
    strategies = {"mpi", "three-step", "extra-message"} | ({"peer", "duplicate-pointer"} if attach else set())
    assert {row.strategy for row in rows if row.kind == "alltoallv"} == strategies
    assert world.allgather(rows) == [rows] * 4
