# SPDX-License-Identifier: BSD-3-Clause
"""A machine measured on several ranks: every rank gets the same file, with what these ranks can show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seiche.backend import open_backend
from seiche.bench import machine as bench_machine
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.machine.laws.file import parse_machine
from seiche.machine.laws.locality import RankPlacement
from seiche.machine.measure import survey as measurement
from seiche.machine.measure.exchanges import exchange_curve, neighbour_gap
from seiche.machine.measure.survey import measure, trust_of


@pytest.mark.ranks(2, one_host=True)
def test_ranks_of_one_host_measure_their_messages(ranks: int) -> None:
    world = World.from_mpi()
    result = measure(world, seconds=1.0)
    assert len(set(world.allgather(result.model_dump_json()))) == 1
    assert parse_machine(json.dumps(result.model_dump(by_alias=True, mode="json")), "x") == result
    host = result.messages("host")
    assert host is not None
    assert [path.path for path in result.paths] == ["host", "host_exchange", "shared_exchange"]
    for path in result.paths:
        assert path.sizes[:2] == ([1, 2] if path.path == "host" else [8, 16])
        assert all(0 < seconds < 10 for seconds in path.seconds)
        assert (path.gap is not None) == (path.duplex is not None) == (path.path == "host")
        assert len(path.spread) == len(path.reproduced) == len(path.sizes)
    assert result.trust is not None and result.trust == trust_of(result.paths)
    with pytest.raises(CaseError, match="has no data for 'host' off-node"):
        result.curve("host", "off-node")
    assert result.absent["host off-node"] == "no ranks on two hosts"
    assert result.probes["single_copy"].works is not None
    assert result.absent["injection of host on-socket"] == "there is only one pair of ranks; several are needed"
    assert result.hardware["ranks"] == ranks


@pytest.mark.ranks(3, 4)
def test_each_further_neighbour_of_an_exchange_adds_a_gap(ranks: int) -> None:
    """All exchange with all; on processors, where each message is one more for the host."""
    world = World.from_mpi()
    backend, here = open_backend("cpu", 1), [RankPlacement("a", {0: (0, 1)})] * ranks
    pair = exchange_curve(world, backend, here, (0, 1), "on-socket", transport="host", seconds=0.2)
    assert not isinstance(pair, str)
    gap = neighbour_gap(world, backend, pair, "host", 0.2)
    assert world.allgather(gap) == [gap] * ranks
    assert 0 <= gap < 1


@pytest.mark.ranks(2)
def test_a_file_that_is_there_stops_all_ranks(ranks: int) -> None:
    with pytest.raises(CaseError, match="exists: move it"):
        bench_machine.main(device="cpu", output=Path(__file__), world=World.from_mpi())


@pytest.mark.ranks(4)
def test_ranks_of_two_hosts_measure_the_network(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hosts are played by one: classes, pairs and the injection of a node are those of two."""
    world = World.from_mpi()
    hosts = [RankPlacement("ab"[rank // 2], {0: (0, 1)}) for rank in range(ranks)]
    monkeypatch.setattr(measurement, "rank_placements", lambda backend, world: hosts)
    result = measurement.measure(world, seconds=1.0)
    assert {path.locality for path in result.paths} == {"on-socket", "off-node"}
    assert result.hardware["hosts"] == 2
    (limit,) = [item for item in result.injection if item.locality == "off-node"] or [None]
    messages = result.messages("host")
    assert messages is not None
    if limit is None:
        assert "injection of host off-node" in result.absent
    else:
        assert messages.node_rate == limit.rate
        assert limit.senders == 2
    assert result.absent["injection of host on-socket"] == "there is only one pair of ranks; several are needed"
    assert messages.seconds({"on-socket": 1, "off-node": 2}, 1024, senders=2) > 0
