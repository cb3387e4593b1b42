# SPDX-License-Identifier: BSD-3-Clause
"""Transports chosen by prediction: the cheapest stands if it keeps its promise, else the next one is tried."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from seiche.backend import open_backend
from seiche.cli import main
from seiche.domain.world import World
from seiche.errors import FormatError, TransportError
from seiche.halo.choice import VARIABLE, Decision, decide, machine_in_use, predicted
from seiche.machine.file import FittedPiece, Launch, Machine, Measured, read_machine, write_machine
from seiche.machine.halo_times import transport_times
from seiche.machine.locality import Place

WORLD = World.serial()


def decided(times: dict[str, float], real: dict[str, float]) -> tuple[Decision | None, list[str], list[str]]:
    """Decide with transports that take the `real` seconds; one that is not in it cannot be opened."""
    made: list[str] = []
    dropped: list[str] = []

    def make(name: str) -> str:
        if name not in real:
            raise TransportError("no")
        made.append(name)
        return name

    found = decide(WORLD, times, make, real.__getitem__, dropped.append)
    if found is not None:
        assert found[0] == found[1].transport
        assert set(made) - {found[0]} == set(dropped)
    return (found[1] if found else None), made, dropped


def test_what_cannot_win_by_prediction_is_not_tried() -> None:
    decision, made, _ = decided({"host": 2e-5, "peer": 1e-5, "nccl": 1.5e-5}, {"host": 1, "peer": 1.2e-5, "nccl": 1})
    assert decision is not None
    assert decision.transport == "peer"
    assert made == ["peer", "nccl"]  # 20 us are more than 1.5 times 12 us
    assert decision.describe() == (
        "transport peer: peer 10 us predicted, measured 12; nccl 15 us predicted, measured 1e+06; host 20 us predicted"
    )


def test_when_prediction_and_time_drift_apart_the_next_is_tried() -> None:
    decision, made, dropped = decided(
        {"host": 9e-5, "peer": 1e-5, "nccl": 2e-5}, {"host": 1, "peer": 5e-5, "nccl": 2e-5}
    )
    assert decision is not None
    assert (decision.transport, made, dropped) == ("nccl", ["peer", "nccl"], ["peer"])
    # The next one is worse: the first stays; the last one promises no better and is not opened.
    decision, made, dropped = decided(
        {"host": 9e-5, "peer": 1e-5, "nccl": 2e-5}, {"host": 1, "peer": 5e-5, "nccl": 8e-5}
    )
    assert decision is not None
    assert (decision.transport, made, dropped) == ("peer", ["peer", "nccl"], ["nccl"])


def test_what_cannot_be_opened_is_passed_over() -> None:
    decision, _, _ = decided({"host": 2e-5, "peer": 1e-5}, {"host": 2e-5})
    assert decision is not None
    assert decision.transport == "host"
    assert decided({"peer": 1e-5}, {})[0] is None
    assert decided({}, {})[0] is None
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
GPUS = [Place("a", {0: (0,)}, f"{k}", "H200", 0) for k in range(3)]
CPUS = [Place("a", {0: (k,)}) for k in range(3)]


def test_exchanges_of_gpus_are_the_sums_of_their_parts() -> None:
    times = transport_times(NODE, GPUS, 0, (1, 2), (1000, 2000), (1000, 500))
    assert times["host"] == pytest.approx(
        (8e-6 + 2e-11 * 3000) + (7e-6 + 2e-11 * 1500) + (1e-6 + 2e-7 + 1.5 * 1e-10 * 3000) + 2 * 2e-6 + 2 * 3e-6
    )
    assert times["peer"] == pytest.approx(4e-6 + 3e-12 * 3000 + 3 * 2e-6)
    assert times["nccl"] == pytest.approx(1.3e-5 + 4e-12 * 3000 + 2 * 2e-6 + 2 * 3e-6)
    assert times["device_mpi"] == math.inf


def test_exchanges_of_cpus_and_of_ranks_without_messages() -> None:
    times = transport_times(NODE, CPUS, 0, (1,), (1000,), (1000,))
    assert times == {"host": pytest.approx(1e-6 + 1.5 * 1e-7 + 2 * 1e-6)}
    # A message of no bytes is not sent, one to itself does not leave.
    assert transport_times(NODE, CPUS, 0, (0, 1), (8, 0), (8, 0)) == {"host": pytest.approx(2e-6)}
    far = [CPUS[0], Place("b", {0: (0,)})]
    assert transport_times(NODE, far, 0, (1,), (8,), (8,)) == {"host": math.inf}
    shared = [GPUS[0], GPUS[0]]
    assert set(transport_times(NODE, shared, 0, (1,), (8,), (8,))) == {"host", "device_mpi"}


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
    with pytest.raises(FormatError, match="this is no machine file"):
        machine_in_use(WORLD, backend)


def test_one_rank_has_nothing_to_choose(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "choice", "summit"]) == 2
    assert "one rank has nobody to exchange with: start `seiche bench choice` by mpiexec" in capsys.readouterr().err
