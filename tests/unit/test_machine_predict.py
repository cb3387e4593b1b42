# SPDX-License-Identifier: BSD-3-Clause
"""Predicted exchanges from machine files, and the figures and tables that show them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from seiche.bench import collectives as bench_collectives
from seiche.cli import main
from seiche.domain.shapes import box
from seiche.domain.world import World
from seiche.errors import FormatError, TransportError
from seiche.flow import Solver
from seiche.flow.model import FlowModel, Newtonian
from seiche.machine.laws.file import Machine, read_machine
from seiche.machine.laws.locality import RankPlacement
from seiche.machine.laws.predict import cheapest, exchange_times, layout_of
from seiche.machine.laws.strategies import Topology, exchange_time
from seiche.report.movement_figures import draw_machine


def test_predictions_are_those_of_the_strategies() -> None:
    summit, layout = read_machine("summit"), Topology(32, 6, processes=6)
    times = exchange_times(summit, layout, 4096, whole_messages=True)
    assert set(times) == {"mpi", "three-step", "extra-message", "duplicate-pointer"}
    paths = summit.strategy_paths()
    for name in ("extra-message", "duplicate-pointer"):
        assert times[name] == exchange_time(name, paths, layout, 4096, whole_messages=True, empty_messages=True)
    assert times["three-step"] == exchange_time("three-step", paths, replace(layout, processes=1), 4096)
    assert times["mpi"] == exchange_time("device", paths, layout, 4096)
    assert set(exchange_times(summit, Topology(32, 6), 4096)) == {"mpi", "three-step"}


def test_on_summit_processes_that_share_the_messages_win_and_on_lassen_the_gpus() -> None:
    """As in the paper (its figures of Alltoallv): staging by many processes on Summit, MVAPICH2-GDR on Lassen."""
    summit = exchange_times(read_machine("summit"), Topology(32, 6, processes=6), 1024, whole_messages=True)
    lassen = exchange_times(read_machine("lassen"), Topology(32, 4, processes=10), 64, whole_messages=True)
    # By the library, few senders win (measured: 238 us, 619 and 825 with 36 processes for each node).
    assert cheapest(summit, summit) == "three-step"
    # One message for each pair, without those of the library that are empty (measured: 91 and 133 us).
    options = {"hardware": read_machine("summit").hardware | {"mpi": "MPICH"}}
    direct = exchange_times(
        read_machine("summit").model_copy(update=options), Topology(32, 6, processes=6), 1024, whole_messages=True
    )
    assert cheapest(direct, direct) == "duplicate-pointer"
    assert direct["duplicate-pointer"] < summit["duplicate-pointer"]
    assert direct["three-step"] == summit["three-step"]
    assert summit["mpi"] > summit["extra-message"] > summit["three-step"]
    assert direct["three-step"] > direct["extra-message"]
    one_message = exchange_times(read_machine("lassen"), Topology(2, 1), 64)
    assert cheapest(one_message, one_message) == "mpi"
    assert set(lassen) == set(summit)


def test_what_a_file_cannot_tell_is_left_out() -> None:
    summit = read_machine("summit")
    none = summit.model_copy(update={"paths": []})
    assert exchange_times(none, Topology(2, 6), 64) == {}
    assert cheapest({}, ["mpi"]) is None
    one_node = summit.model_copy(update={"paths": [p for p in summit.paths if p.locality != "off-node"]})
    assert set(exchange_times(one_node, Topology(1, 6), 64)) == {"mpi", "three-step"}
    host_only = summit.model_copy(update={"memory": {"host": 1e10}})
    on_host = exchange_times(host_only, Topology(1, 2, sockets=1), 1 << 20, gpus=False)
    assert set(on_host) == {"mpi", "three-step"}
    # Two copies of both parts, each byte read and written, in addition to the message.
    assert on_host["three-step"] - on_host["mpi"] == pytest.approx(2 * 2 * 2 * (1 << 20) / 1e10)


def test_layouts_follow_places() -> None:
    a = [RankPlacement("a", {node: (node,)}, f"{node}{k}", "H200", node) for node in (0, 1) for k in (0, 1)]
    b = [replace(position, host="b") for position in a]
    assert layout_of([*a, *b]) == Topology(2, 4, 2)
    assert layout_of([*a, *b], 2) == Topology(2, 2, 2, 2)
    assert layout_of([RankPlacement("a", {0: (0, 1)})] * 3) == Topology(1, 3, 1)


def with_measurements(machine: Machine) -> Machine:
    sizes = [4**k for k in range(1, 10)]
    paths = [
        item.model_copy(update={"sizes": sizes, "seconds": item.curve.seconds(sizes).tolist()})
        for item in machine.paths
    ]
    return machine.model_copy(update={"paths": paths})


def test_every_figure_that_a_file_has_numbers_for_is_drawn(tmp_path: Path) -> None:
    drawn = draw_machine(tmp_path, with_measurements(read_machine("summit")))
    assert sorted(path.name for path in drawn) == ["copies.png", "messages.png", "senders.png", "staging.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)
    assert draw_machine(tmp_path, read_machine("summit").model_copy(update={"paths": []})) == []


def test_exchanges_are_timed_stored_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = bench_collectives.main(
        device="cpu",
        seconds=0.1,
        machine=Path("summit"),
        output=tmp_path / "c.json",
        plots=tmp_path / "plots",
        sizes=(16, 256),
        world=World.serial(),
    )
    assert {(row.kind, row.strategy) for row in rows} == {
        (kind, name) for kind in ("alltoall", "alltoallv") for name in ("mpi", "peer", "three-step")
    }
    assert all(row.seconds > 0 for row in rows)
    stored = json.loads((tmp_path / "c.json").read_text())
    assert len(stored["rows"]) == len(rows)
    assert "requires arrays in GPU memory" in stored["absent"]["nccl"]
    assert stored["absent"]["extra-message"] == "needs --processes 2 or more"
    assert (tmp_path / "plots" / "alltoallv.png").exists()
    assert "three-step" in capsys.readouterr().out


def test_ranks_that_cannot_be_shared_and_files_that_are_none_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(TransportError, match="1 ranks cannot be divided into groups of 2 per array"):
        bench_collectives.main(device="cpu", processes=2, world=World.serial())
    (tmp_path / "m.json").write_text("{}")
    with pytest.raises(FormatError, match="not a machine file"):
        bench_collectives.main(device="cpu", machine=tmp_path / "m.json", world=World.serial())
    assert main(["bench", "collectives", "--device", "cpu", "--processes", "2"]) == 2


def test_a_solver_declares_the_bytes_that_the_roofline_reads() -> None:
    """A box of 16^3 sites in two copies of FP32: 19 populations read and written, and the list of neighbours."""
    solver = Solver(box((16, 16, 16)), FlowModel(Newtonian(0.1)), layout="list-ab", device="cpu", threads=1)
    assert sum(stage.bytes for phase in solver.phases for stage in phase) >= 16**3 * 2 * 19 * 4
    solver.close()
