# SPDX-License-Identifier: BSD-3-Clause
"""Reports of ranks about a run: both ends agree on messages, and efficiencies are consistent."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from flow_cases import WATER, iolet_model, tilted_tube

from seiche.case.loading import load
from seiche.domain.rank_locations import hosts_of
from seiche.domain.world import World
from seiche.flow import Solver
from seiche.observe.movement import gather_movement
from seiche.observe.replay import ideal_seconds
from seiche.report.summary import read_summary

TUBE = Path(__file__).resolve().parents[2] / "examples" / "tube" / "case.toml"


@pytest.mark.ranks(1, 3)
def test_ranks_tell_of_messages_and_time_that_fit_together():
    world = World.from_mpi()
    sites = tilted_tube()
    solver = Solver(sites, iolet_model(WATER), world=world, threads=1)
    begin = time.monotonic()
    solver.start(40)
    solver.finish()
    elapsed = time.monotonic() - begin
    result = gather_movement(
        solver.timers,
        solver.phases,
        world,
        elapsed=elapsed,
        on_device=False,
        host_overhead={"monitor": 0.0},
        transport=solver.transport,
        sites=len(solver.owned),
    )
    received = world.gather([m.received for phase in solver.phases for s in phase if (m := s.messages)])
    solver.close()
    assert (result is None) == (world.rank != 0)
    if result is None or received is None:
        return
    assert sum(record.sites for record in result.ranks) == len(sites)
    arriving = {}
    for rank, parts in enumerate(received):
        for peer, size in (pair for part in parts for pair in part):
            arriving[peer, rank] = arriving.get((peer, rank), 0) + size / 2
    assert {(r, p): size for r, record in enumerate(result.ranks) for p, _, size in record.sent} == arriving
    assert bool(arriving) == (world.size > 1)
    taken, ideal = ideal_seconds([record.samples for record in result.ranks])
    assert 0 < ideal <= taken
    values = result.efficiencies()
    assert values["elements"] == world.size
    assert values["parallel"] == pytest.approx(values["load_balance"] * values["communication"])
    assert values["communication"] == pytest.approx(values["serialisation"] * values["transfer"])
    for name in ("load_balance", "serialisation", "transfer", "device", "orchestration"):
        assert 0 < values[name] <= 1
    assert values["device"] == 1.0 or world.size > 1
    table = result.as_dict()
    assert len(table["useful_s"]) == len(table["memory_B"]) == world.size
    assert min(table["memory_B"]) > 10e6
    assert ("receive halo" in table["message_stages"]) == (world.size > 1)


def test_a_run_without_a_timed_step_has_no_efficiency():
    sites = tilted_tube()
    solver = Solver(sites, iolet_model(WATER), threads=1)
    solver.advance(1)
    result = gather_movement(
        solver.timers,
        solver.phases,
        World.serial(),
        elapsed=1.0,
        on_device=True,
        host_overhead={},
        transport="none",
        sites=len(sites),
    )
    assert result is not None
    assert result.efficiencies() == {}
    assert result.host() is not None


@pytest.mark.ranks(2)
def test_the_trace_of_two_ranks_has_both_on_one_time_line(tmp_path_factory: pytest.TempPathFactory):
    world = World.from_mpi()
    folder = Path(world.bcast(str(tmp_path_factory.mktemp("run"))))
    changes = ["time.steps=100", "geometry.spacing=0.25 mm", "iolet.inlet.ramp=50", "output.trace=trace.json"]
    simulation = load(TUBE, overrides=[*changes, "run.threads=1"], output=folder, world=world)
    simulation.run()
    simulation.solver.close()
    if world.rank:
        return
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    assert {event["pid"] for event in events} == {0, 1}
    steps = [
        {e["name"]: e["ts"] for e in events if e["pid"] == rank and e["ph"] == "X" and e["name"].startswith("step ")}
        for rank in (0, 1)
    ]
    assert steps[0].keys() == steps[1].keys() == {f"step {k}" for k in range(1, 100, 16)}
    # One message each way and step; what is received was sent before, on the clock of both.
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert len(starts) == len(ends) == 2 * len(steps[0])
    assert all(ends[number]["ts"] > start["ts"] for number, start in starts.items())
    movement = read_summary(folder / "summary.json")["movement"]
    assert {start["args"]["bytes"] for start in starts.values()} == {row[3] for row in movement["messages"]}


@pytest.mark.ranks(2, nodes=("1+1",))
def test_the_trace_of_a_rank_with_another_clock_has_messages_after_they_are_sent(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
):
    """The clock of rank 1 has an offset of a day, and is a fifth faster."""
    world = World.from_mpi()
    folder = Path(world.bcast(str(tmp_path_factory.mktemp("run"))))
    if len(set(hosts_of(world))) == 1:
        monkeypatch.setattr("seiche.domain.clocks.hosts_of", lambda _: ["a", "b"])
    clock, begin = time.perf_counter_ns, time.perf_counter_ns()
    if world.rank == 1:
        monkeypatch.setattr(time, "perf_counter_ns", lambda: 86_400 * 10**9 + round(1.2 * (clock() - begin)))
        monkeypatch.setattr(time, "perf_counter", lambda: time.perf_counter_ns() * 1e-9)
    changes = ["time.steps=160", "geometry.spacing=0.5 mm", "iolet.inlet.ramp=50", "output.trace=trace.json"]
    simulation = load(TUBE, overrides=[*changes, "run.threads=1"], output=folder, world=world)
    simulation.run()
    simulation.close()
    if world.rank:
        return
    document = json.loads((folder / "trace.json").read_text())
    drift, error = document["otherData"]["clock_drift"], document["otherData"]["clock_error_s"]
    assert drift[0] == 0.0 and 0 < error < 0.01
    events = [e for e in document["traceEvents"] if e["ph"] == "X" and e["name"].startswith("step ")]
    first, second = ({e["name"]: e["ts"] for e in events if e["pid"] == rank} for rank in (0, 1))
    assert first.keys() == second.keys()
    elapsed = (max(first.values()) - min(first.values())) * 1e-6
    assert drift[1] == pytest.approx(1 / 1.2 - 1, abs=2 * error / elapsed)
    # In both directions, no message is received before it is sent.
    starts = {e["id"]: e["ts"] for e in document["traceEvents"] if e["ph"] == "s"}
    ends = {e["id"]: e["ts"] for e in document["traceEvents"] if e["ph"] == "f"}
    assert len(starts) == 2 * len(first)
    assert all(ends[number] > begin_us - 1e6 * error for number, begin_us in starts.items())
