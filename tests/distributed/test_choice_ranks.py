# SPDX-License-Identifier: BSD-3-Clause
"""Halo exchanges whose transport a machine file chooses carry the same values, and say what they chose."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

import seiche
from prediction_cases import case_file, machine, piece
from seiche.backend import open_backend
from seiche.bench import choice as bench_choice
from seiche.case import loop
from seiche.domain.world import World
from seiche.errors import TransportError
from seiche.halo import HaloExchange, HaloPlan
from seiche.machine import collective_choice
from seiche.machine.collectives import Exchange
from seiche.machine.in_use import VARIABLE, predicted_transport_times
from seiche.machine.laws.file import Measured, read_machine, write_machine
from seiche.machine.measure.survey import measure

UNITS = {"time": "s", "size": "B", "rate": "B/s"}
SLOW = Measured(path="host", locality="on-socket", pieces=[piece(0.4, 1e-9)])


def write_lassen(world: World, folder: Path, **change: object) -> Path:
    """Return the file of Lassen with other numbers, which rank 0 has written into its folder (collective)."""
    path = Path(world.bcast(str(folder / "m.json")))
    if world.rank == 0:
        write_machine(path, read_machine("lassen").model_copy(update=change))
    world.barrier()
    return path


def ring(world: World, count: int) -> HaloPlan:
    """Return the plan by which every rank gets the first `count` values of its neighbours."""
    peers = tuple(sorted({(world.rank + step) % world.size for step in (-1, 1)}))
    own = tuple(np.arange(count, dtype=np.uint32) for _ in peers)
    reference = tuple(np.arange(count, dtype=np.uint32) + (1 + k) * count for k in range(len(peers)))
    return HaloPlan(peers, own, reference)


@pytest.mark.ranks(2, 3)
def test_a_chosen_transport_carries_the_values(
    ranks: int, device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World.from_mpi()
    backend, plan = open_backend(device, 1, world.local_rank), ring(world, 5)
    monkeypatch.setenv(VARIABLE, str(write_lassen(world, tmp_path, hardware={})))
    exchange = HaloExchange(backend, world, plan, "float64", predict=predicted_transport_times)
    host = np.zeros(5 * (1 + len(plan.peers)))
    host[:5] = 10 * world.rank + np.arange(5)
    array = backend.upload(host)
    assert exchange.trial() > 0
    assert (backend.download(array) == host).all()
    for _ in range(3):
        exchange.start(array)
        exchange.finish(array)
    expected = np.concatenate([10 * rank + np.arange(5) for rank in (world.rank, *plan.peers)])
    assert (backend.download(array) == expected).all()
    if device == "cpu":
        (decision,) = exchange.decisions
        joined = {"two_step", "three_step"} if world.local_size < world.size else set()
        assert decision.transport == exchange.transport_name and decision.transport in {"host"} | joined
        assert len(set(world.allgather(decision.describe()))) == 1
    exchange.start(array)
    with pytest.raises(TransportError, match="cannot start a trial while an exchange is in progress"):
        exchange.trial()
    exchange.finish(array)
    exchange.close()
    inputs = HaloExchange(backend, world, plan, "float64", "host")
    inputs.prepare(array)
    assert inputs.decisions == []
    inputs.close()


@pytest.mark.ranks(2, one_host=True)
def test_choices_are_timed_against_all_transports(ranks: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    world = World.from_mpi()
    path = tmp_path_factory.mktemp("choice") / "m.json"
    write_machine(path, measure(world, seconds=1.0))
    rows = bench_choice.main(machine=path, device="cpu", sizes=(64, 4096), world=world)
    assert [(row.pattern, row.size) for row in rows] == [
        (pattern, size) for pattern in ("ring", "transpose") for size in (64, 4096)
    ]
    for row in rows[2:]:
        assert set(row.seconds) == {"mpi", "three-step"} >= set(row.predicted)
        assert row.chosen in row.seconds
        assert row.cost >= 1.0
    for row in rows[:2]:
        assert set(row.seconds) == {"host", "device_mpi", "peer"}
        assert row.chosen in ("host", "peer")
        assert row.cost >= 1.0
        assert min(row.predicted["host"], row.predicted["peer"]) > 0


@pytest.mark.ranks(2)
def test_a_file_of_another_machine_is_measured_again_before_the_choice(
    ranks: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World.from_mpi()
    monkeypatch.setenv(VARIABLE, "summit")
    exchange = HaloExchange(open_backend("cpu", 1), world, ring(world, 5), "float32", predict=predicted_transport_times)
    exchange.trial()
    assert exchange.transport_name in ("host", "peer")
    warned = [record.message for record in caplog.records if "is from another machine" in record.message]
    assert len(warned) == (1 if world.rank == 0 else 0)
    assert 0 < exchange.decisions[0].predicted["host"] < 10
    exchange.close()


@pytest.mark.ranks(2, 4, one_host=True)
def test_the_strategy_of_an_exchange_is_chosen(ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World.from_mpi()
    monkeypatch.delenv(VARIABLE, raising=False)
    send, receive = np.arange(float(world.size)) + 10 * world.rank, np.zeros(world.size)
    expected = [10 * rank + world.rank for rank in range(world.size)]
    with Exchange(world, send, receive, strategy="auto") as exchange:
        exchange()
        assert exchange.decision.transport == "mpi"
    assert receive.tolist() == expected
    monkeypatch.setenv(VARIABLE, str(write_lassen(world, tmp_path, memory={"host": 1e10})))
    with Exchange(world, send, receive, strategy="auto") as exchange:
        receive[:] = 0
        exchange()
        assert set(exchange.decision.predicted) == {"mpi", "three-step"}
        assert exchange.decision.measured["mpi"] > 0  # the cheapest by prediction is always tried
        assert len(set(world.allgather(exchange.decision.transport))) == 1
    assert receive.tolist() == expected
    helped = world.rank % 2 == 0
    halves = [np.arange(2.0 * (world.size // 2)) if helped else None for _ in range(2)]
    with Exchange(world, *halves, strategy="auto", processes=2) as exchange:
        exchange()
        assert exchange.decision.transport in ("extra-message", "duplicate-pointer")


@pytest.mark.ranks(2)
def test_a_strategy_that_drifts_is_chosen_again_and_the_arrays_stay(
    ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World.from_mpi()
    monkeypatch.setenv(VARIABLE, str(write_lassen(world, tmp_path, memory={"host": 1e10})))
    clock = {"Mpi": 1e-6, "Staged": 1e-5}
    monkeypatch.setattr(collective_choice, "_seconds", lambda _, way: clock[type(way).__name__])
    send, receive = np.arange(2.0) + 10 * world.rank, np.zeros(2)
    with Exchange(world, send, receive, strategy="auto") as exchange:
        assert exchange.decision.transport == "mpi"
        exchange()
        retained = receive.tolist()
        assert not exchange.reconsider()  # as fast as ever
        clock["Mpi"] = 1.0
        assert exchange.reconsider()
        assert receive.tolist() == retained == [world.rank, 10.0 + world.rank]
        assert [item.transport for item in exchange.decisions] == ["mpi", "three-step"]
        assert exchange.decision.reason == "mpi took 1 us when it was chosen, 1e+06 us now"
        receive[:] = 0
        exchange()
        assert receive.tolist() == retained
    with Exchange(world, send, receive, strategy="mpi") as exchange:
        assert not exchange.reconsider()  # nobody chose it
        assert exchange.decisions == []


def computed(case: Path, output: Path, overrides: list[str], world: World) -> tuple[np.ndarray, list[str]]:
    """Return a field that a run of waves or ultrasound made, and its report of the choices."""
    simulation = seiche.load(case, output=output, overrides=overrides, world=world)
    with simulation:
        simulation.run()
        return simulation.fields(["pressure"])["pressure"], simulation.solver.decisions


@pytest.mark.ranks(2)
@pytest.mark.parametrize("name", ["waves", "local", "global"])
def test_messages_of_waves_and_ultrasound_are_monitored_during_a_run(
    ranks: int, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every review measures other times than before; results do not change, and the final report lists the choices."""
    world = World.from_mpi()
    written = write_lassen(world, tmp_path, hardware={}, memory={"host": 1e10})
    folder, solver = written.parent, "waves" if name == "waves" else "ultrasound"
    if world.rank == 0:
        case_file(folder, solver)
    world.barrier()
    case, changes = folder / f"{solver}.toml", [] if name == "waves" else [f"run.basis={name}", "grid.steps=12"]
    plain, nothing = computed(case, folder / "a", changes, world)
    assert nothing == []
    monkeypatch.setenv(VARIABLE, str(written))
    monkeypatch.setattr(loop, "REVIEW_SECONDS", 0.0)
    seconds = cycle([1e-6, 1e-4, 1e-2, 1.0, 1e2])
    monkeypatch.setattr(HaloExchange, "_trial", lambda *_: next(seconds))
    monkeypatch.setattr(collective_choice, "_seconds", lambda *_: next(seconds))
    looked, decisions = computed(case, folder / "b", changes, world)
    np.testing.assert_array_equal(looked, plain)
    assert any("us when it was chosen" in line for line in decisions)


@pytest.mark.ranks(2, one_host=True)
def test_a_wrong_file_is_not_used_and_drifting_messages_are_monitored_during_a_run(
    ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file says 0.4 s a message; then every review measures other times than before: the results do not change."""
    world = World.from_mpi()
    folder = Path(world.bcast(str(tmp_path)))
    if world.rank == 0:
        write_machine(folder / "m.json", machine(units=UNITS, hardware={}, paths=[SLOW]))
        case_file(folder, "flow")
    world.barrier()
    plain = seiche.load(folder / "flow.toml", output=folder / "a", world=world)
    plain.run()
    monkeypatch.setenv(VARIABLE, str(folder / "m.json"))
    monkeypatch.setattr(loop, "REVIEW_SECONDS", 0.0)
    seconds = cycle([1e-6, 1e-4, 1e-2, 1.0, 1e2])
    monkeypatch.setattr(HaloExchange, "_trial", lambda *_: next(seconds))
    looked = seiche.load(folder / "flow.toml", output=folder / "b", world=world)
    looked.run()
    decisions = looked.solver.halo.decisions
    assert decisions[0].reason == "host deviates from its prediction by more than a factor of 3: all were timed"
    assert decisions[-1].reason.startswith("host took ")
    np.testing.assert_array_equal(looked.solver.state()["populations"], plain.solver.state()["populations"])
