# SPDX-License-Identifier: BSD-3-Clause
"""Predicted times of exchanges between several hosts: joined messages, and one path for each pair of ranks."""

from __future__ import annotations

import math

import pytest

from seiche.machine.laws.file import FittedPiece, Injected, Launch, Machine, Measured, PathName
from seiche.machine.laws.halo_times import includes_packing, transport_times
from seiche.machine.laws.locality import RankPlacement
from seiche.machine.laws.models import Locality

#: Latency and time per byte of messages within a host and between hosts; gaps; launch; bytes per second of a node.
NEAR, FAR = (1e-6, 1e-10), (1e-5, 1e-9)
NEAR_GAP, FAR_GAP = 2e-7, 4e-6
LAUNCH, RATE = 5e-7, 2e9


def measured(path: PathName, locality: Locality, law: tuple[float, float], gap: float | None = None) -> Measured:
    return Measured(
        path=path, locality=locality, pieces=[FittedPiece(begin=0, end=1, alpha=law[0], beta=law[1])], gap=gap
    )


def machine(*more: Measured) -> Machine:
    paths = [measured("host", "on-socket", NEAR, NEAR_GAP), measured("host", "off-node", FAR, FAR_GAP), *more]
    return Machine(
        schema="seiche-machine",
        version=1,
        units={"time": "s", "size": "B", "rate": "B/s"},
        name="nodes",
        source="by hand",
        paths=paths,
        injection=[Injected(path="host", rate=RATE)],
        launch={"host": Launch(kernel=LAUNCH), "device": Launch(kernel=LAUNCH, event=0.0)},
    )


def placements(*sizes: int, gpus: bool = False) -> list[RankPlacement]:
    return [
        RankPlacement(f"node {node}", {0: (0,)}, f"{rank}" if gpus else None, "GPU", 0)
        for node, size in enumerate(sizes)
        for rank in range(size)
    ]


def times(machine: Machine, ranks: list[RankPlacement], sizes: dict[int, int], **options: bool) -> dict[str, float]:
    values = list(sizes.values())
    return transport_times(machine, ranks, 0, list(sizes), sent=values, received=values, **options)


def test_joined_messages_take_one_latency_of_the_network_for_each_host() -> None:
    size = 100
    predicted = times(machine(), placements(4, 4), dict.fromkeys((1, 4, 5, 6, 7), size))
    near = NEAR[0] + NEAR[1] * size
    network = max(FAR[1], 4 / RATE)
    direct = near + 4 * (FAR_GAP + network * size) + 2 * LAUNCH
    assert predicted["host"] == pytest.approx(direct)
    # One of four parts of a joined message needs no message within the host.
    distributed = 0.75 * (NEAR[0] + 3 * NEAR_GAP + 4 * NEAR[1] * size)
    two = near + 2 * LAUNCH + FAR[0] + network * 4 * size + 2 * LAUNCH + distributed
    assert predicted["two_step"] == pytest.approx(two)
    collected_and_distributed = 0.75 * (NEAR[0] + NEAR_GAP + 2 * 4 * NEAR[1] * size)
    three = near + 2 * LAUNCH + FAR[0] + FAR[1] * 16 * size + 2 * LAUNCH + collected_and_distributed
    assert predicted["three_step"] == pytest.approx(three)
    assert max(two, three) < direct


def test_large_messages_are_sent_directly() -> None:
    predicted = times(machine(), placements(4, 4), dict.fromkeys((1, 4), 1 << 20))
    assert min(predicted, key=predicted.__getitem__) == "host"


def test_ranks_of_a_host_share_the_routes_to_several_hosts() -> None:
    """Three other hosts, two ranks a host: the first rank sends the two largest joined messages."""
    sizes = {2: 10, 4: 1000, 6: 100}
    predicted = times(machine(), placements(2, 2, 2, 2), sizes)
    joined = FAR[0] + FAR_GAP + FAR[1] * 2 * (1000 + 100) + 2 * LAUNCH
    local = 0.5 * (NEAR[0] + 5 * NEAR_GAP + 2 * NEAR[1] * sum(sizes.values()))
    assert predicted["three_step"] == pytest.approx(joined + local)


def test_on_cpus_stores_within_a_host_and_messages_between_hosts_take_their_times_in_turn() -> None:
    shared = measured("shared_exchange", "on-socket", (7e-6, 5e-11))
    predicted = times(machine(shared), placements(4, 4), {1: 100, 2: 300, 4: 100})
    stores = 7e-6 + LAUNCH + 5e-11 * 400
    between = times(machine(), placements(4, 4), {4: 100})
    for name in ("host", "two_step", "three_step"):
        assert predicted[f"peer+{name}"] == pytest.approx(stores + between[name])
    assert "peer" not in predicted  # not all peers are on one host
    one_host = times(machine(shared), placements(4), {1: 100, 2: 300})
    assert one_host["peer"] == pytest.approx(stores)
    assert set(one_host) == {"host", "peer"}
    # Without peers on the host, or on others, only one of the two takes time.
    alone = times(machine(), placements(2, 2), {2: 100})["host"]
    assert times(machine(shared), placements(2, 2), {2: 100})["peer+host"] == pytest.approx(alone)
    assert times(machine(shared), placements(4, 4), {1: 100, 2: 300})["peer+host"] == pytest.approx(stores)


def test_gpus_store_while_messages_to_other_hosts_are_on_their_way() -> None:
    paths = [measured("peer_store", "on-socket", (3e-6, 1e-11)), measured("nccl", "off-node", (9e-6, 1e-9))]
    paths += [measured("nccl", "on-socket", (8e-6, 2e-11)), measured("d2h", "on-socket", (8e-6, 2e-11))]
    ranks = placements(2, 2, gpus=True)
    both = times(machine(*paths), ranks, {1: 1 << 20, 2: 100})
    stores = 3e-6 + 1e-11 * (1 << 20) + 3 * LAUNCH
    assert both["peer+nccl"] == pytest.approx(max(stores, 9e-6 + 100 * max(1e-9, 2 / RATE) + 2 * LAUNCH))
    assert both["peer+nccl"] < both["nccl"]
    assert math.isinf(both["peer+host"])  # no copies to the device were measured
    assert times(machine(*paths), ranks, {})["peer+nccl"] == 0.0


def test_hosts_of_one_rank_each_have_nothing_to_join() -> None:
    assert set(times(machine(), placements(1, 1, 1), {1: 8, 2: 8})) == {"host"}


def test_packing_is_included_where_whole_exchanges_were_measured() -> None:
    by_host = measured("host_exchange", "on-socket", NEAR)
    shared = measured("shared_exchange", "on-socket", NEAR)
    for transport, paths, included in (
        ("host", [by_host], True),
        ("two_step", [by_host], True),
        ("peer", [by_host], False),
        ("peer", [shared], True),
        ("peer+host", [by_host], False),
        ("peer+three_step", [by_host, shared], True),
        ("peer+device_mpi", [by_host, shared], False),
    ):
        assert includes_packing(machine(*paths), transport, gpu=False, graphs=False) is included, transport
