# SPDX-License-Identifier: BSD-3-Clause
"""Transports chosen by prediction: the cheapest stands if it keeps its promise, else the next one is tried."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seiche.backend import open_backend
from seiche.cli import main
from seiche.domain.emulation import emulate_ranks
from seiche.domain.world import World
from seiche.errors import CaseError, FormatError, TransportError
from seiche.halo import HaloExchange, HaloPlan
from seiche.halo.choice import Decision, decide
from seiche.machine.in_use import VARIABLE, machine_in_use, predicted
from seiche.machine.laws.file import FittedPiece, Injected, Launch, Machine, Measured, read_machine, write_machine
from seiche.machine.laws.halo_times import includes_packing, transport_times
from seiche.machine.laws.locality import RankPlacement
from seiche.machine.laws.predict import exchange_times
from seiche.machine.laws.strategies import Topology

WORLD = World.serial()


def decision_of(times: dict[str, float], real: dict[str, float]) -> tuple[Decision | None, list[str], list[str]]:
    """Decide with transports that take the `real` seconds; one that is not in it cannot be opened."""
    made: list[str] = []
    dropped: list[str] = []

    def make(name: str) -> str:
        if name not in real:
            raise TransportError("no")
        made.append(name)
        return name

    result = decide(WORLD, times, make, real.__getitem__, dropped.append)
    if result is not None:
        assert result[0] == result[1].transport
        assert set(made) - {result[0]} == set(dropped)
    return (result[1] if result else None), made, dropped


def test_what_cannot_win_by_prediction_is_not_tried() -> None:
    decision, made, _ = decision_of(
        {"host": 2e-5, "peer": 1e-5, "nccl": 1.5e-5}, {"host": 1, "peer": 1.2e-5, "nccl": 2e-5}
    )
    assert decision is not None
    assert decision.transport == "peer"
    assert made == ["peer", "nccl"]  # 20 us are more than 1.5 times 12 us
    assert decision.describe() == (
        "transport peer: peer 10 us predicted, measured 12; nccl 15 us predicted, measured 20; host 20 us predicted"
    )


def test_when_prediction_and_time_drift_apart_the_next_is_tried() -> None:
    decision, made, dropped = decision_of(
        {"host": 9e-5, "peer": 1e-5, "nccl": 2e-5}, {"host": 1, "peer": 2.5e-5, "nccl": 2e-5}
    )
    assert decision is not None
    assert (decision.transport, made, dropped) == ("nccl", ["peer", "nccl"], ["peer"])
    # The next one is worse: the first stays; the last one promises no better and is not opened.
    decision, made, dropped = decision_of(
        {"host": 9e-5, "peer": 1e-5, "nccl": 2e-5}, {"host": 1, "peer": 2.5e-5, "nccl": 5e-5}
    )
    assert decision is not None
    assert (decision.transport, made, dropped) == ("peer", ["peer", "nccl"], ["nccl"])
    assert decision.reason == ""


@pytest.mark.parametrize("wrong", [1e-7, 1e-3])
def test_a_file_whose_numbers_are_wrong_is_not_used_and_all_are_tried(
    wrong: float, caplog: pytest.LogCaptureFixture
) -> None:
    """The file says a tenth, or a hundred times of what `host` takes, and puts the best one far behind it."""
    times, real = {"host": wrong, "nccl": 50 * wrong, "peer": 60 * wrong}, {"host": 1e-5, "nccl": 2e-5, "peer": 5e-6}
    with caplog.at_level("INFO", "seiche.halo"):
        decision, made, _ = decision_of(times, real)
    assert decision is not None
    assert decision.transport == "peer"
    assert made == ["host", "nccl", "peer"]
    assert decision.measured == real
    assert decision.reason == "host deviates from its prediction by more than a factor of 3: all were timed"
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert f"host {wrong * 1e6:.3g} us predicted, measured 10" in record.message
    assert record.message.endswith("(host deviates from its prediction by more than a factor of 3: all were timed)")


class Times:
    """Seconds that each transport takes now, in the place of trials."""

    def __init__(self, **seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, direction: Any, seconds: float = 0.0) -> float:
        return self.seconds[direction.transport.name]


def test_a_choice_that_drifts_during_a_run_is_made_again_and_messages_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    """The network gets slow after the choice: another transport is taken, and bound arrays go on with it."""
    now = Times(host=1e-5, peer=3e-5)
    monkeypatch.setattr(HaloExchange, "_trial", now)
    monkeypatch.setattr(HaloExchange, "_predicted_times", lambda self, owner_to_ghost: {"host": 1e-5, "peer": 2e-5})

    def work(world: World) -> tuple[Any, ...]:
        backend = open_backend("cpu", 1)
        peer = 1 - world.rank
        plan = HaloPlan((peer,), (np.array([0], np.uint32),), (np.array([1], np.uint32),))
        exchange = HaloExchange(backend, world, plan, "float64")
        array = backend.upload(np.array([float(world.rank), -1.0]))
        exchange.prepare(array)
        before, steady = exchange.transport_name, exchange.reconsider()
        world.barrier()
        now.seconds["host"] = 4e-5
        world.barrier()
        exchange.start(array)
        with pytest.raises(
            TransportError, match=rf"rank {world.rank}: cannot choose transports again while an exchange is in flight"
        ):
            exchange.reconsider()
        exchange.finish(array)
        array[:] = 10 * array[0], -1.0
        changed = exchange.reconsider()
        exchange.start(array)
        exchange.finish(array)
        exchange.close()
        return before, steady, changed, exchange.decisions, array.tolist(), exchange.can_reconsider

    for rank, (before, steady, changed, decisions, values, second) in enumerate(emulate_ranks(2, work)):
        assert (before, steady, changed, second) == ("host", False, True, False)
        assert [item.transport for item in decisions] == ["host", "peer"]
        assert decisions[1].reason == "host took 10 us when it was chosen, 40 us now"
        assert decisions[1].measured == {"host": 4e-5, "peer": 3e-5}
        assert values == [10 * rank, 10 * (1 - rank)]


def test_a_transport_that_is_still_the_best_stays_and_its_time_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    now = Times(host=1e-5, peer=1e-3)
    monkeypatch.setattr(HaloExchange, "_trial", now)
    monkeypatch.setattr(HaloExchange, "_predicted_times", lambda self, owner_to_ghost: {"host": 1e-5, "peer": 2e-5})

    def work(world: World) -> list[Any]:
        plan = HaloPlan((1 - world.rank,), (np.array([0], np.uint32),), (np.array([1], np.uint32),))
        exchange = HaloExchange(open_backend("cpu", 1), world, plan, "float64")
        array = np.zeros(2)
        exchange.prepare(array)
        world.barrier()
        now.seconds["host"] = 5e-5
        first, second = exchange.reconsider(), exchange.reconsider()
        world.barrier()
        return [first, second, len(exchange.decisions), exchange.transport_name]

    for rank, result in enumerate(emulate_ranks(2, work)):
        # The result of the second review is the reference from then on.
        assert result == [False, False, 2, "host"], rank


def test_exchanges_without_a_choice_have_nothing_to_reconsider() -> None:
    plan = HaloPlan((0,), (np.array([0], np.uint32),), (np.array([1], np.uint32),))
    exchange = HaloExchange(open_backend("cpu", 1), WORLD, plan, "float64")
    exchange.prepare(np.zeros(2))
    assert not exchange.can_reconsider
    assert not exchange.reconsider()


def test_what_cannot_be_opened_is_passed_over() -> None:
    decision, _, _ = decision_of({"host": 2e-5, "peer": 1e-5}, {"host": 2e-5})
    assert decision is not None
    assert decision.transport == "host"
    assert decision_of({"peer": 1e-5}, {})[0] is None
    assert decision_of({}, {})[0] is None
    assert predicted(WORLD, {"host": 1e-5, "peer": math.inf}) == {"host": 1e-5}


def path(name: str, alpha: float, beta: float, gap: float | None = None, duplex: float | None = None) -> Measured:
    piece = FittedPiece(begin=1, end=1 << 20, alpha=alpha, beta=beta)
    return Measured(path=name, locality="on-socket", pieces=[piece], gap=gap, duplex=duplex)  # type: ignore[arg-type]


NODE = Machine(
    schema_="seiche-machine",
    version=1,
    units={"time": "s", "size": "B", "rate": "B/s"},
    name="node",
    source="a test",
    paths=[
        path("host", 1e-6, 1e-10, 2e-7, 1.5),
        path("h2d", 7e-6, 2e-11),
        path("d2h", 8e-6, 2e-11),
        path("peer_store", 4e-6, 3e-12),
        path("nccl", 1.3e-5, 4e-12),
    ],
    launch={"device": Launch(kernel=2e-6, event=3e-6), "host": Launch(kernel=1e-6)},
)
GPUS = [RankPlacement("a", {0: (0,)}, f"{k}", "H200", 0) for k in range(3)]
CPUS = [RankPlacement("a", {0: (k,)}) for k in range(3)]


def test_exchanges_of_gpus_are_the_sums_of_their_parts() -> None:
    times = transport_times(NODE, GPUS, 0, (1, 2), sent=(1000, 2000), received=(1000, 500))
    assert times["host"] == pytest.approx(
        (8e-6 + 2e-11 * 3000) + (7e-6 + 2e-11 * 1500) + (1e-6 + 2e-7 + 1.5 * 1e-10 * 3000) + 2 * 2e-6 + 2 * 3e-6
    )
    assert times["peer"] == pytest.approx(4e-6 + 3e-12 * 3000 + 3 * 2e-6)
    assert times["nccl"] == pytest.approx(1.3e-5 + 4e-12 * 3000 + 2 * 2e-6 + 2 * 3e-6)
    assert times["device_mpi"] == math.inf


def test_exchanges_that_were_measured_whole_are_their_law() -> None:
    """Replayed in graphs `peer` is the exchange that was measured there, and the gap for every other neighbour.

    Where that was not measured it is a launch. `nccl` has calls in graphs and launches.
    """
    message = NODE.launch | {"device": Launch(kernel=2e-6, event=3e-6, graph_kernel=1e-6)}
    more = [path("peer_exchange", 6e-6, 4e-12), path("nccl_graph", 9e-6, 5e-12), path("host_exchange", 2e-6, 3e-10)]
    node = NODE.model_copy(update={"paths": [*NODE.paths, *more], "launch": message})
    times = transport_times(node, GPUS, 0, (1, 2), sent=(1000, 2000), received=(1000, 500), graphs=True)
    assert times["peer"] == pytest.approx(6e-6 + 4e-12 * 3000 + 1e-6)
    several = [one.model_copy(update={"gap": 4e-7}) if one.path == "peer_exchange" else one for one in node.paths]
    told_gap = transport_times(
        node.model_copy(update={"paths": several}),
        GPUS,
        0,
        (1, 2),
        sent=(1000, 2000),
        received=(1000, 500),
        graphs=True,
    )
    assert told_gap["peer"] == pytest.approx(6e-6 + 4e-12 * 3000 + 4e-7)
    one = transport_times(node, GPUS, 0, (1, 2), sent=(1000, 0), received=(1000, 0), graphs=True)
    assert one["peer"] == pytest.approx(6e-6 + 4e-12 * 1000)
    assert times["nccl"] == pytest.approx(9e-6 + 5e-12 * 3000 + 2 * 1e-6 + 2 * 1e-6)
    by_host = transport_times(node, GPUS, 0, (1, 2), sent=(1000, 2000), received=(1000, 500))
    assert by_host["peer"] == pytest.approx(4e-6 + 3e-12 * 3000 + 3 * 2e-6)
    assert (
        times["host"]
        == by_host["host"]
        == transport_times(NODE, GPUS, 0, (1, 2), sent=(1000, 2000), received=(1000, 500))["host"]
    )
    # On processors: latency, the gap that messages have, and no launches, which were measured with it.
    cpus = transport_times(node, CPUS, 0, (1, 2), sent=(1000, 2000), received=(1000, 500))
    assert cpus == {"host": pytest.approx(2e-6 + 2e-7 + 3e-10 * 3000)}
    # A measurement of one class does not apply to another.
    far = [*CPUS[:2], RankPlacement("b", {0: (0,)})]
    expected = dict.fromkeys(("host", "two_step", "three_step"), math.inf)
    assert transport_times(node, far, 0, (2,), sent=(8,), received=(8,)) == expected
    wide = [path("host", 1e-6, 1e-10).model_copy(update={"locality": "off-node"})]
    both = node.model_copy(update={"paths": [*node.paths, *wide]})
    assert transport_times(both, far, 0, (1, 2), sent=(8, 8), received=(8, 8))["host"] < 1e-5
    full = [
        (gpu, graphs, includes_packing(node, name, gpu=gpu, graphs=graphs))
        for gpu, graphs, name in (
            (True, True, "peer"),
            (True, False, "peer"),
            (True, True, "nccl"),
            (False, True, "host"),
        )
    ]
    assert [item[2] for item in full] == [True, False, False, True]


def test_exchanges_of_cpus_and_of_ranks_without_messages() -> None:
    times = transport_times(NODE, CPUS, 0, (1,), sent=(1000,), received=(1000,))
    assert times == {"host": pytest.approx(1e-6 + 1.5 * 1e-7 + 2 * 1e-6)}
    # A message of no bytes is not sent, one to itself does not leave.
    assert transport_times(NODE, CPUS, 0, (0, 1), sent=(8, 0), received=(8, 0)) == {"host": pytest.approx(2e-6)}
    far = [CPUS[0], RankPlacement("b", {0: (0,)})]
    assert transport_times(NODE, far, 0, (1,), sent=(8,), received=(8,)) == {"host": math.inf}
    known = NODE.model_copy(update={"paths": [path("host", 1e-6, 1e-10).model_copy(update={"locality": "off-node"})]})
    limited = known.model_copy(update={"injection": [Injected(path="host", rate=1.5e10)]})
    nodes = [CPUS[0], CPUS[1], RankPlacement("b", {0: (0,)})]
    assert transport_times(known, nodes, 2, (0,), sent=(8000,), received=(8,))["host"] == pytest.approx(
        1e-6 + 8e-7 + 2e-6
    )
    # One rank alone does not fill its node's network, two together do: 15 GB/s, 7.5 for each.
    assert transport_times(limited, nodes, 2, (0,), sent=(8000,), received=(8,))["host"] == pytest.approx(
        1e-6 + 8e-7 + 2e-6
    )
    assert transport_times(limited, nodes, 0, (2,), sent=(8000,), received=(8,))["host"] == pytest.approx(
        1e-6 + 8000 / 7.5e9 + 2e-6
    )
    shared = [GPUS[0], GPUS[0]]
    assert set(transport_times(NODE, shared, 0, (1,), sent=(8,), received=(8,))) == {"host", "device_mpi"}


def test_gpus_of_a_node_share_its_network_in_calls_of_nccl_too() -> None:
    """Eight GPUs a node send 4 MiB each over a network of 25 GB/s a node: 1342 us at least."""
    size, rate = 4 << 20, 25e9
    places = [RankPlacement(host, {0: (k,)}, f"{host}{k}", "H200", 0) for host in "ab" for k in range(8)]
    names = ("host", "nccl", "nccl_graph")
    fast = [path(name, 9e-6, 4e-11).model_copy(update={"locality": "off-node"}) for name in names]
    machine = NODE.model_copy(update={"paths": [*NODE.paths, *fast], "launch": {"device": Launch(kernel=1e-6)}})
    single = transport_times(machine, places, 0, (8,), sent=(size,), received=(size,))["nccl"]
    # Without a limit in the file, a node sends no faster than one process does.
    assert machine.has_assumed_node_rate and not NODE.has_assumed_node_rate
    assert single == pytest.approx(9e-6 + 8 * 4e-11 * size + 2e-6)
    alone = [place for place in places if place.gpu.endswith("0")]
    assert transport_times(machine, alone, 0, (1,), sent=(size,), received=(size,))["nccl"] == pytest.approx(
        9e-6 + 4e-11 * size + 2e-6
    )
    for measured in ("host", "nccl"):
        limited = machine.model_copy(update={"injection": [Injected(path=measured, rate=rate)]})
        for graphs in (False, True):
            times = transport_times(limited, places, 0, (8,), sent=(size,), received=(size,), graphs=graphs)
            assert times["nccl"] == pytest.approx(9e-6 + 8 * size / rate + 2e-6)
        strategies = exchange_times(limited, Topology(2, 8), 1 << 20)
        assert strategies["nccl"] > 8 * 8 * (1 << 20) / rate  # every GPU sends to the eight of the other node


def test_the_machine_in_use_is_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = open_backend("cpu", 1)
    monkeypatch.delenv(VARIABLE, raising=False)
    assert machine_in_use(WORLD, backend) is None
    path = tmp_path / "m.json"
    write_machine(path, NODE)  # it does not say of what machine it is
    monkeypatch.setenv(VARIABLE, str(path))
    assert machine_in_use(WORLD, backend) == NODE
    write_machine(path, read_machine("summit"))
    assert machine_in_use(WORLD, backend) == NODE  # read once
    (tmp_path / "other.json").write_text("{}")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "other.json"))
    with pytest.raises(FormatError, match="not a machine file"):
        machine_in_use(WORLD, backend)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none.json"))
    with pytest.raises(CaseError, match=r"^SEICHE_MACHINE: machine file .*none.json: does not exist; measure one with"):
        machine_in_use(WORLD, backend)


def test_one_rank_has_nothing_to_choose(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "choice", "summit"]) == 2
    assert "`seiche bench choice` needs at least two ranks: start it with mpiexec -n 2" in capsys.readouterr().err
