# SPDX-License-Identifier: BSD-3-Clause
"""Output concurrent with the steps: order, a bound on pending jobs, errors on the main thread, and correct fields."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from flow_cases import FIELDS, blood_in_a_tilted_tube

import seiche
from case_files import changed, toml_of, tube_tables
from seiche.cli import main
from seiche.domain import shapes
from seiche.domain.world import World
from seiche.flow import FlowModel, Newtonian, Solver, observation
from seiche.flow.snapshot import PIECE_ROWS
from seiche.io import parallel
from seiche.io.background import BackgroundWriter, Job, write_now
from seiche.report.summary import read_summary

WORLD = World.serial()


class Noted(Job):
    """Records the calls, and can be delayed or fail."""

    def __init__(
        self, name: str, notes: list[str], gate: threading.Event | None = None, error: Exception | None = None
    ):
        self.name, self.notes, self.gate, self.error = name, notes, gate, error

    def store(self) -> str:
        if self.gate is not None:
            assert self.gate.wait(20)
        if self.error is not None:
            raise self.error
        self.notes.append(f"store {self.name}")
        return self.name

    def commit(self, stored: list[Any]) -> None:
        self.notes.append(f"commit {' '.join(stored)}")

    def finish(self, complete: bool) -> None:
        self.notes.append(f"{'finish' if complete else 'drop'} {self.name}")


def test_jobs_count_in_their_order_and_only_when_stored():
    notes: list[str] = []
    writer = BackgroundWriter(WORLD, 3)
    for name in "abc":
        writer.submit(Noted(name, notes))
        writer.poll()
    writer.drain()
    for action in ("store", "commit", "finish"):
        assert [note for note in notes if note.startswith(action)] == [f"{action} {name}" for name in "abc"]
    assert all(notes.index(f"store {name}") < notes.index(f"commit {name}") for name in "abc")
    assert writer.unfinished == 0
    writer.stop()


def test_a_full_writer_waits_and_says_so():
    notes: list[str] = []
    gate = threading.Event()
    writer = BackgroundWriter(WORLD, 2)
    writer.submit(Noted("a", notes, gate))
    writer.submit(Noted("b", notes))
    assert writer.unfinished == 2
    assert writer.waited == 0.0
    threading.Timer(0.1, gate.set).start()
    writer.submit(Noted("c", notes))
    assert writer.unfinished <= 2
    assert writer.waited > 0.05
    writer.drain()
    writer.stop()


def test_an_error_is_raised_by_the_main_thread_and_later_jobs_are_dropped():
    notes: list[str] = []
    writer = BackgroundWriter(WORLD, 4)
    writer.submit(Noted("a", notes))
    writer.submit(Noted("b", notes, error=OSError("the disk is full")))
    writer.submit(Noted("c", notes))
    with pytest.raises(OSError, match="the disk is full"):
        writer.drain()
    writer.stop()
    assert "commit b" not in notes
    assert "store c" not in notes
    assert notes[-1] == "drop c"
    with pytest.raises(OSError, match="full"):
        write_now(Noted("d", notes, error=OSError("full")), WORLD)
    assert notes[-1] == "drop d"


def test_a_defect_of_a_job_is_not_hidden():
    writer = BackgroundWriter(WORLD, 4)
    writer.submit(Noted("a", [], error=ZeroDivisionError("defect")))
    with pytest.raises(ZeroDivisionError, match="defect"):
        writer.drain()
    writer.stop()


@pytest.mark.ranks(2)
def test_an_error_of_one_rank_is_raised_by_all():
    world = World.from_mpi()
    notes: list[str] = []
    writer = BackgroundWriter(world, 4)
    writer.submit(Noted(f"a{world.rank}", notes))
    writer.drain()
    assert ("commit a0 a1" in notes) == (world.rank == 0)
    writer.submit(Noted("b", notes, error=OSError(28, "no space", "f") if world.rank == 1 else None))
    with pytest.raises(OSError, match="no space") as caught:
        writer.drain()
    assert (caught.value.errno, caught.value.filename) == (28, "f")
    writer.stop()
    assert notes[-1] == "drop b"


def test_a_snapshot_keeps_its_moment_while_the_flow_continues(device: str):
    sites, model = blood_in_a_tilted_tube()
    solver = Solver(sites, model, device=device, threads=1)
    plans = [
        solver.measures.snapshots(FIELDS),
        solver.measures.snapshots(("stress", "traction", "viscosity"), np.arange(3, len(sites), 5)),
    ]
    taken, expected = [], []
    for _ in range(3):
        solver.advance(7)
        expected.append(solver.fields((*FIELDS, "traction")))
        taken.append([solver.measures.snapshot(plan) for plan in plans])
    solver.advance(20)
    for fields, (full, subset) in zip(expected, taken, strict=True):
        for name, values in full.fields().items():
            np.testing.assert_array_equal(values, fields[name], err_msg=name)
        for name, values in subset.fields().items():
            np.testing.assert_array_equal(values, fields[name][3::5], err_msg=name)
    assert len(plans[0].free) == 3  # memory that the next snapshots use again
    measures = solver.measures
    nothing = measures.snapshot(measures.snapshots(("velocity", "traction"), np.zeros(0, np.int64))).fields()
    assert [nothing[name].shape for name in nothing] == [(0, 3), (0, 3)]
    assert measures.snapshot(measures.snapshots(())).fields() == {}


def test_one_viscosity_holds_for_all_sites_of_many_pieces(device: str):
    sites = shapes.box((40, 40, 24))
    assert len(sites) > 2 * PIECE_ROWS
    solver = Solver(sites, FlowModel(Newtonian(0.2)), device=device, threads=1)
    for rows in (None, np.arange(5, len(sites), 2)):
        result = solver.measures.snapshot(solver.measures.snapshots(("viscosity", "density"), rows)).fields()
        assert result["viscosity"].shape == result["density"].shape == ((len(sites),) if rows is None else rows.shape)
        np.testing.assert_allclose(result["viscosity"], 0.2, rtol=1e-14)


def test_fields_and_sums_do_not_depend_on_how_many_sites_are_observed_at_once(
    device: str, monkeypatch: pytest.MonkeyPatch
):
    sites, model = blood_in_a_tilted_tube()
    results = []
    for chunk in (1 << 21, 2048):
        monkeypatch.setattr(observation, "CHUNK", chunk)
        solver = Solver(sites, model, device=device, threads=1)
        solver.advance(10)
        first = solver.measures.velocity_change()
        solver.advance(10)
        results.append((solver.fields(FIELDS), solver.monitor(), first, solver.measures.velocity_change()))
    (fields, monitor, first, change), (others, other, first_other, change_other) = results
    for name, values in fields.items():
        np.testing.assert_array_equal(values, others[name], err_msg=name)
    assert (monitor.mass, monitor.mach, change) == (other.mass, other.mach, change_other)
    assert first == first_other == float("inf")


def case(folder: Path, **output: Any) -> Path:
    tables = changed(tube_tables(), "output", {"fields": [{"file": "u.vtkhdf", "every": 5}], **output})
    (folder / "case.toml").write_text(toml_of(tables))
    return folder / "case.toml"


def times_of(path: Path) -> list[float]:
    with h5py.File(path) as file:
        return list(file["VTKHDF/Steps/Values"])


def test_a_full_disk_ends_the_run_with_one_line_and_leaves_the_states_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    write = os.pwrite

    def limited(descriptor: int, data: bytes, offset: int) -> int:
        if b"000003" in bytes(data[:6]):  # the third state is stored, but cannot be made to count
            raise OSError(28, "No space left on device")
        return write(descriptor, data, offset)

    monkeypatch.setattr(parallel.os, "pwrite", limited)
    assert main(["run", str(case(tmp_path))]) == 2
    *_, error = capsys.readouterr().err.splitlines()
    position = tmp_path / "out" / "u.vtkhdf"
    assert error.startswith(f"seiche: error: {position}: write of 6 bytes at ")
    assert error.endswith("failed: No space left on device")
    assert len(times_of(position)) == 2


def test_a_run_says_what_its_output_cost(tmp_path: Path):
    path = case(tmp_path, in_flight=1, checkpoint={"every": 10})
    with seiche.load(path, world=WORLD) as simulation:
        simulation.run()
        step = simulation.setup.units.step
    np.testing.assert_allclose(times_of(tmp_path / "out" / "u.vtkhdf"), step * np.arange(5, 101, 5))
    rows = {row["name"]: row["seconds"] for row in read_summary(tmp_path / "out" / "summary.json")["stages"]}
    assert all(rows[name] > 0.0 for name in ("monitor", "snapshots", "wait for output"))


def test_a_restart_compares_with_the_velocity_of_the_run_before(tmp_path: Path):
    table = {"steps": 100_000, "steady": 1e-4, "steady_interval": 50}
    path = tmp_path / "case.toml"
    path.write_text(toml_of(changed(tube_tables(), "time", table)))
    with seiche.load(path, output=tmp_path / "whole", world=WORLD) as full:
        stopped = full.run()
    with seiche.load(path, output=tmp_path / "part", world=WORLD) as first:
        first.run(stopped.step - 20)
        first.checkpoint()
    restart = tmp_path / "part" / "checkpoint.seiche"
    with seiche.load(path, output=tmp_path / "part", restart=restart, world=WORLD) as second:
        repeated = second.run()
    assert (repeated.step, repeated.stopped) == (stopped.step, stopped.stopped)
