# SPDX-License-Identifier: BSD-3-Clause
"""Halo plans and exchanges of one rank with itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seiche.backend import open_backend
from seiche.domain.world import World
from seiche.errors import TransportError
from seiche.halo import HaloExchange, HaloPlan, build_plan

STORES = ("float64", "float32", "float16")
WORLD = World.serial()


def slots(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.uint32)


def self_plan(owned: np.ndarray, copies: np.ndarray) -> HaloPlan:
    return HaloPlan((0,), (owned.astype(np.uint32),), (copies.astype(np.uint32),))


def exchange_of(plan: HaloPlan, store: str = "float64", transport: str = "auto") -> HaloExchange:
    return HaloExchange(open_backend("cpu", 2), WORLD, plan, store, transport)


@settings(max_examples=60, deadline=None)
@given(count=st.integers(1, 200), share=st.floats(0, 0.5), seed=st.integers(0, 2**32), store=st.sampled_from(STORES))
def test_gather_and_scatter_within_one_rank_equal_indexing(count, share, seed, store):
    random = np.random.default_rng(seed)
    chosen = random.permutation(count)
    half = int(share * count)
    owned, copies = chosen[:half], chosen[half : 2 * half]
    exchange = exchange_of(self_plan(owned, copies), store)
    array = exchange.backend.upload(random.standard_normal(count).astype(store))
    expected = array.copy()

    expected[copies] = expected[owned]
    exchange.start(array, "gather")
    exchange.finish(array, "gather")
    np.testing.assert_array_equal(array, expected)

    array[copies] = expected[copies] = random.standard_normal(half).astype(store)
    expected[owned] = expected[copies]
    exchange.start(array, "scatter")
    exchange.finish(array, "scatter")
    np.testing.assert_array_equal(array, expected)

    if store != "float16":
        expected[owned] += expected[copies]
        exchange.start(array, "scatter_add")
        exchange.finish(array, "scatter_add")
        np.testing.assert_array_equal(array, expected)
    assert exchange.bytes == 2 * half * np.dtype(store).itemsize
    exchange.close()


def test_float16_bits_travel_unchanged():
    bits = np.array([0x7C01, 0xFFFF, 0x8000, 0x0001, 0, 0, 0, 0], np.uint16)
    exchange = exchange_of(self_plan(np.arange(4), np.arange(4, 8)), "float16")
    array = exchange.backend.upload(bits)
    exchange.start(array)
    exchange.finish(array)
    np.testing.assert_array_equal(array[4:], bits[:4])


def test_two_exchanges_may_be_in_flight_and_end_in_order():
    exchange = exchange_of(self_plan(np.arange(3), np.arange(3, 6)))
    first, second = (exchange.backend.upload(np.arange(6.0) + offset) for offset in (0.0, 10.0))
    exchange.start(first)
    exchange.start(second)
    with pytest.raises(TransportError, match="2 exchanges are already in flight; finish one first"):
        exchange.start(first)
    with pytest.raises(TransportError, match=r"finish \(gather\) is not the one that was started first"):
        exchange.finish(second)
    with pytest.raises(TransportError, match="cannot close while an exchange is in flight"):
        exchange.close()
    first[:3] = -1.0
    exchange.finish(first)
    exchange.finish(second)
    np.testing.assert_array_equal(first, [-1, -1, -1, 0, 1, 2])
    np.testing.assert_array_equal(second, [10, 11, 12, 10, 11, 12])
    with pytest.raises(TransportError, match=r"finish \(gather"):
        exchange.finish(first)


def test_local_exchange_may_be_captured():
    exchange = exchange_of(self_plan(np.arange(2), np.arange(2, 4)))
    array = exchange.backend.upload(np.arange(4.0))
    exchange.prepare(array)
    assert exchange.capturable

    def two_steps() -> None:
        for _ in range(2):
            exchange.start(array)
            exchange.finish(array)

    graph = exchange.backend.capture(two_steps)
    array[:2] = (7.0, 8.0)
    graph.launch()
    np.testing.assert_array_equal(array, [7, 8, 7, 8])


def test_an_empty_plan_exchanges_nothing():
    exchange = exchange_of(build_plan(WORLD, {}, lambda keys: keys))
    array = exchange.backend.upload(np.arange(3.0))
    exchange.start(array)
    exchange.finish(array)
    np.testing.assert_array_equal(array, np.arange(3.0))
    assert exchange.plan.peers == () and exchange.bytes == 0


def test_keys_become_slots_of_the_owner_in_the_order_of_the_copies():
    plan = build_plan(WORLD, {0: (np.array([70, 50]), slots(4, 3))}, lambda keys: keys // 10 - 5)
    assert plan.peers == (0,) and plan.slots == 5
    np.testing.assert_array_equal(plan.owned[0], [0, 2])
    np.testing.assert_array_equal(plan.ghosts[0], [3, 4])


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({1: (np.array([1]), slots(9))}, "rank 0 requests values from rank 1, but there are 1 ranks"),
        ({0: (np.array([1, 2]), slots(9))}, "rank 0 requests 2 keys from rank 0 for 1 slots"),
        (
            {0: (np.array([1, 99]), slots(8, 9))},
            "rank 0 requests key 99 (1 of 2 keys) from rank 0, which does not own it",
        ),
        ({0: (np.array([1, 1]), slots(8, 9))}, "rank 0: halo plan: the list for rank 0 contains a slot twice"),
        (
            {0: (np.array([1, 2]), slots(9, 9))},
            "rank 0: internal error: two values of the halo plan would be stored at the same index",
        ),
    ],
)
def test_impossible_plans_are_rejected_in_one_line(wanted, message):
    with pytest.raises(TransportError) as raised:
        build_plan(WORLD, wanted, lambda keys: np.where(keys < 8, keys, -1))
    assert str(raised.value) == message


def test_peers_must_ascend():
    with pytest.raises(TransportError, match="peers of a halo plan must be ascending"):
        HaloPlan((2, 1), (slots(), slots()), (slots(), slots()))


@pytest.mark.parametrize(
    ("exchange", "length", "mode", "message"),
    [
        (exchange_of(self_plan(np.arange(3), np.arange(3, 6))), 5, "gather", "an array of 40 B is too small"),
        (exchange_of(self_plan(np.arange(3), np.arange(3, 6))), 6, "sum", "halo mode 'sum' is unknown"),
        (exchange_of(self_plan(np.arange(1), np.arange(1, 2)), "float16"), 6, "scatter_add", "scatter_add of float16"),
        (exchange_of(HaloPlan((), (), ()), transport="host"), 6, "gather", "transport 'host' requires MPI"),
        (exchange_of(HaloPlan((), (), ()), transport="pigeon"), 6, "gather", "transport 'pigeon' is unknown"),
        (exchange_of(HaloPlan((3,), (slots(0),), (slots(1),))), 6, "gather", "cannot send from rank 0 to rank 3"),
        (
            exchange_of(HaloPlan((0,), (slots(0),), (slots(1, 2),))),
            6,
            "gather",
            "rank 0 expects 16 B from rank 0, which",
        ),
    ],
)
def test_exchanges_that_are_invalid_are_rejected(exchange, length, mode, message):
    with pytest.raises(TransportError) as raised:
        exchange.start(exchange.backend.zeros(length, np.float64), mode)
    assert message in str(raised.value)
