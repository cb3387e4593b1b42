# SPDX-License-Identifier: BSD-3-Clause
"""Models of many messages, staging and strategies against values worked out by hand from the printed tables."""

from __future__ import annotations

import math
from pathlib import Path
from typing import get_args

import pytest

from seiche.errors import CaseError
from seiche.machine.laws import file
from seiche.machine.laws.curve import postal
from seiche.machine.laws.file import known_machines, read_machine
from seiche.machine.laws.models import (
    crossover,
    direct_time,
    irregular,
    many_messages,
    max_rate,
    roofline,
    shared_copy,
    three_step_time,
)
from seiche.machine.laws.strategies import Paths, Topology, exchange_time

SIZES = (128, 1024, 4096, 8192, 16384, 32768, 65536, 131072, 524288)
NEVER = math.inf


@pytest.mark.parametrize(
    ("machine", "distinct", "counts"),
    [
        ("summit", 1.0, (6.1, 7.7, 10.9, 24.6, NEVER, NEVER, 27.5, 6.8, 1.2)),
        ("summit", 0.25, (6.1, 7.6, 10.2, 18.5, NEVER, 28.6, 7.0, 2.8, 0.6)),
        ("lassen", 1.0, (46.0, 44.8, 7.5, NEVER, NEVER, NEVER, NEVER, NEVER, NEVER)),
    ],
)
def test_crossover_counts_of_the_printed_tables(machine: str, distinct: float, counts: tuple[float, ...]) -> None:
    m = read_machine(machine)
    curves = [m.curve("device_mpi", "off-node"), m.curve("d2h", "on-socket")]
    curves += [m.curve("h2d", "on-socket"), m.curve("host", "off-node")]
    for size, expected in zip(SIZES, counts, strict=True):
        result = crossover(*curves, size, distinct=distinct)
        assert (NEVER if result is None else round(result, 1)) == expected


def test_at_the_crossover_both_ways_cost_the_same() -> None:
    device, down, up, host = postal(2e-5, 2e-11), postal(1e-5, 2e-11), postal(1.1e-5, 2e-11), postal(1e-6, 1e-11)
    count = crossover(device, down, up, host, 1000)
    assert count is not None
    assert direct_time(device, 1000, count) == pytest.approx(three_step_time(down, up, host, 1000, count))
    assert direct_time(device, 1000, 2 * count) > three_step_time(down, up, host, 1000, 2 * count)


def test_a_node_below_its_injection_limit_obeys_the_postal_law() -> None:
    curve = read_machine("summit").curve("host", "off-node")
    single = float(curve.seconds(65536))
    for senders in (1, 2):
        assert max_rate(curve, 65536, senders, 33.4e9) == pytest.approx(single)
    # 33.4e9 * 8.51e-11 = 2.84: the third sender is the first that waits
    assert max_rate(curve, 65536, 3, 33.4e9) == pytest.approx(6.56e-6 + 3 * 65536 / 33.4e9)


def test_gaps_between_no_overlap_and_full_overlap() -> None:
    curve = postal(2e-6, 1e-10)
    assert many_messages(curve, 1000, 10) == pytest.approx(10 * 2e-6 + 10 * 1e-7)
    assert many_messages(curve, 1000, 10, gap=0.0) == pytest.approx(2e-6 + 10 * 1e-7)
    assert many_messages(curve, 1000, 10, gap=5e-7) == pytest.approx(2e-6 + 9 * 5e-7 + 10 * 1e-7)
    assert many_messages(curve, 0, 1) == 2e-6
    assert many_messages(curve, 1000, 0) == 0.0
    assert irregular(1e-5, 10, queue=1e-9, busiest_link=1e6, contention=1e-12) == pytest.approx(1e-5 + 1e-7 + 1e-6)


def test_shared_copy_engines_and_roofline() -> None:
    curve = postal(1e-5, 2e-11)
    assert shared_copy(curve, 1e6, 1) == pytest.approx(3e-5)
    assert shared_copy(curve, 1e6, 6, 0.5) == pytest.approx(3.5e-5 + 2e-5)
    assert roofline(4.23e9, 4.23e12, 2e-6) == pytest.approx(1.002e-3)


def test_messages_of_a_gpu_by_class() -> None:
    assert Topology(32, 6).counts() == {"on-socket": 2, "on-node": 3, "off-node": 186}
    assert Topology(1, 4, sockets=1).counts() == {"on-socket": 3, "on-node": 0, "off-node": 0}
    assert sum(Topology(2, 1).counts().values()) == 1


def test_strategies_are_the_sums_of_their_parts() -> None:
    s = read_machine("summit")
    paths, layout, size, k = s.strategy_paths(), Topology(2, 6, processes=6), 1000.0, 6
    # Without a measured gap, each message from host memory after the first adds 0.38 latencies.
    # Each of 6 off-node messages waits for the other senders of the node: 5, or 35 with helper processes.
    latencies = 1.38 * 4.73e-7 + 1.76 * 1.17e-6 + (1 + 5 * 0.38) * 1.85e-6 + 6 * 5 * 1.08e-8
    within = 2 * 6.95e-11 * size + 3 * 2.16e-10 * size
    host = latencies + within + 6 * size * 3.93e-10
    moved = 12 * size
    copies = 2 * 1.09e-5 + (2.36e-11 + 2.38e-11) * moved
    assert exchange_time("three-step", paths, layout, size) == pytest.approx(copies + host)
    device = 2 * (1.68e-5 + 1.86e-11 * size) + 3 * (1.80e-5 + 2.09e-11 * size) + 6 * 4.96e-6 + 6 * 5 * 4.6e-8
    device += 6 * size * max(1.69e-10, 6 / 19.6e9)
    assert exchange_time("device", paths, layout, size) == pytest.approx(device)
    # whole messages handed to six processes: a sixth of them each, 36 senders on the node
    shared = 2 / k * 4.73e-7 + 3 / k * 1.17e-6 + 1.85e-6 + within / k + 6 / k * size * max(3.93e-10, 36 / 33.4e9)
    shared += 35 * 1.08e-8
    dealt = 2 * (k - 1) * (4.73e-7 + 6.95e-11 * moved / k)
    assert exchange_time("extra-message", paths, layout, size, whole_messages=True) == pytest.approx(
        copies + dealt + shared
    )
    # A library that exchanges empty messages, too, takes the gaps for each of them.
    empty = (2 * 4.73e-7 * (3.51e-7 / 4.73e-7) + 3 * 9.08e-7 + 6 * 1.38e-6) * 0.38 * (1 - 1 / k)
    empty += 6 * (1 - 1 / k) * 35 * 1.08e-8
    assert exchange_time(
        "extra-message", paths, layout, size, whole_messages=True, empty_messages=True
    ) == pytest.approx(copies + dealt + shared + empty)
    # The copies of all processes share the engine: 0.58 of their start-up times where nothing was measured.
    for entries, sigma in (({}, 0.58), ({"d2h": 0.8}, 0.8), ({"d2h": 0.1}, 0.1)):
        engine, last = k * sigma * 2 * 1.09e-5, 2 * 1.09e-5 + (k - 1) * sigma * 1.09e-5 + shared
        assert (engine > last) == (sigma > 0.1)
        machine = s.model_copy(update={"sharing": entries})
        assert exchange_time(
            "duplicate-pointer", machine.strategy_paths(), layout, size, whole_messages=True
        ) == pytest.approx(copies - 2 * 1.09e-5 + max(engine, last))
    assert exchange_time("device", paths, layout, 0) == 0.0
    assert exchange_time("device", paths, Topology(1, 1), 1000) == 0.0
    with pytest.raises(ValueError, match="without messages between GPUs"):
        exchange_time("device", Paths(paths.host), layout, 8)


def test_machines_that_come_with_the_package_hold_the_printed_tables() -> None:
    assert known_machines() == ["lassen", "summit"]
    lassen = read_machine("lassen")
    assert lassen.curve("host", "off-node").piece(8192).beta == 4.63e-11
    assert lassen.curve("device_mpi", "off-node").piece(4096).alpha == 6.87e-6
    # Data sheets: 170 GB/s a socket of POWER9 (eight channels of 2.666 GT/s and 8 B), 900 GB/s a V100 SXM2.
    for name in known_machines():
        memory = read_machine(name).memory
        assert memory == {"host": 2 * 170e9, "device": 900e9}
        assert memory["host"] == pytest.approx(2 * 8 * 2.666e9 * 8, rel=0.005)
    with pytest.raises(CaseError, match=r"machine 'lassen' has no data for 'nccl' on-socket \(not in the paper\)"):
        lassen.curve("nccl", "on-socket")


def test_inside_a_node_a_class_stands_in_for_one_that_is_missing() -> None:
    summit = read_machine("summit")
    subset = summit.model_copy(
        update={"paths": [p for p in summit.paths if (p.path, p.locality) == ("host", "on-node")]}
    )
    assert subset.curve("host", "on-socket") == summit.curve("host", "on-node")
    messages = subset.messages("host")
    assert messages is not None
    assert set(messages.curves) == {"on-socket", "on-node"}
    with pytest.raises(CaseError, match="has no data for 'host' off-node; it has host on-node; measure it"):
        subset.curve("host", "off-node")
    assert subset.messages("nccl") is None


def test_the_reference_page_names_every_key_of_a_machine_file() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "machine-file.md").read_text()
    for model in (file.Machine, file.Measured, file.FittedPiece, file.Injected, file.Launch, file.Files, file.Probe):
        for name, field in model.model_fields.items():
            assert f"`{field.alias or name}`" in page, name
    assert all(f"`{path}`" in page for path in get_args(file.PathName))
