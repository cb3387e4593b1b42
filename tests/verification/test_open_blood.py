# SPDX-License-Identifier: BSD-3-Clause
"""Blood in an open vessel: cells leave, others enter, their number is constant, and every cell is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from case_files import cell_state, changed, open_blood_tables, toml_of
from seiche.case.blood.setup import free_layers
from seiche.case.loading import load
from seiche.case.schedule import Schedule
from seiche.case.simulation import Simulation
from seiche.cells import ellipsoid
from seiche.cells.overlap import overlap_or_near
from seiche.cells.prism import Prism
from seiche.cells.space import FluidSpace, heights
from seiche.couple.open.free_space import FreeSpace
from seiche.couple.open.state_names import FORMER
from seiche.couple.suspension import packed_populations
from seiche.domain import shapes
from seiche.domain.surface import Surface
from seiche.errors import CaseError


def opened(folder: Path, steps: int, device: str = "cpu", **options: Any) -> Simulation:
    folder.mkdir(exist_ok=True)
    (folder / "case.toml").write_text(toml_of(changed(open_blood_tables(5, 20, steps), "run.device", device)))
    return load(folder / "case.toml", output=folder / "out", **options)


def test_a_cell_has_room_only_where_it_meets_no_other_and_no_wall() -> None:
    """A rod of triangles through a ball has no vertex inside it, and the ball none inside the rod."""
    sites, ball = shapes.tube(8.0, 40.0, 1.0), ellipsoid((3.0, 3.0, 3.0), 42)
    rod = Surface(ball.vertices * [0.1, 0.1, 2.4], ball.faces)
    space = FreeSpace(FluidSpace(sites, closed=False), [ball])
    center = sites.coords.mean(axis=0)
    assert space.fits(0, ball.vertices + center)
    assert not space.fits(0, ball.vertices + center + [0.0, 6.0, 0.0])  # through the wall
    space.add(0, ball.vertices + center)
    assert not space.fits(0, ball.vertices + center + [5.0, 0.0, 0.0])
    assert space.fits(0, ball.vertices + center + [7.0, 0.0, 0.0])
    for body, other in ((ball, rod), (rod, ball)):
        space = FreeSpace(FluidSpace(sites, closed=False), [ball])
        space.add(0, body.vertices + center)
        assert not space.fits(0, other.vertices + center + 0.3)
    small = FreeSpace(FluidSpace(sites, closed=False), [ball])
    small.add(0, 0.1 * ball.vertices + center)
    assert not small.fits(0, ball.vertices + center)  # one is all inside


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("limit", [0.0, 0.5, 2.0])
def test_what_is_beyond_the_wall_is_so_by_its_distance(closed: bool, limit: float) -> None:
    sites = shapes.tube(5.0, 30.0, 0.5, axis=(1.0, 0.3, 0.2))
    random = np.random.default_rng(2)
    points = sites.coords.min(axis=0) - 4.0 + (np.ptp(sites.coords, axis=0) + 8.0) * random.random((6000, 3))
    for free in (None, {plane.name: 6.0 for plane in sites.iolets}):
        space = FluidSpace(sites, closed=closed, free=free)
        expected = space.distance(points) > limit
        assert np.array_equal(space.beyond(points, limit), expected)
        assert 0.1 < expected.mean() < 0.9
    assert not space.beyond(points[:0], limit).size


def test_heights_are_those_behind_an_opening_not_of_what_lies_before_it() -> None:
    sites = shapes.tube(5.0, 30.0, 0.5, axis=(0.0, 0.0, 1.0))
    plane = sites.iolets[0]
    middle = (np.asarray(plane.center) - np.asarray(sites.origin)) / sites.spacing
    points = middle + np.outer([4.0, 0.0, -1.0, -8.0], plane.normal)
    assert heights(sites, plane, points) == pytest.approx([4.0, 0.0, -1.0, np.inf])
    beside = np.cross(plane.normal, [1.0, 0.0, 0.0])
    assert heights(sites, plane, points + 30 * beside)[0] == np.inf
    space = FluidSpace(sites, free={plane.name: 6.0})
    assert space.distance(points[:1])[0] == pytest.approx(2.0)
    assert space.distance(middle[None] + 15 * np.asarray(plane.normal))[0] < -4


def test_the_reservoir_flows_as_fast_as_an_inlet_whose_velocity_nobody_knew(tmp_path: Path) -> None:
    """A pressure drives the blood, at a twentieth of what the peak velocity of the case lets expect."""
    tables = changed(open_blood_tables(4, 14, 1200), "lattice.velocity_scale", "200 mm/s")
    inlet = {"name": "inlet", "kind": "pressure", "pressure": "150 Pa"}
    (tmp_path / "case.toml").write_text(toml_of(changed(tables, "iolet.0", inlet)))
    simulation = load(tmp_path / "case.toml", output=tmp_path / "out")
    blood = simulation.blood
    assert blood is not None and blood.openings is not None
    tube = blood.openings.tubes["inlet"]
    at_first = tube.speed
    simulation.run(steps=896)
    before, passed = blood.openings.fluxes["inlet"].blood, simulation.solver.step
    simulation.run(steps=280)
    # A mean over ten checks: each cell that passes the openings changes the flow at once.
    mean = (blood.openings.fluxes["inlet"].blood - before) / (simulation.solver.step - passed) / tube.prism.area
    assert tube.speed == pytest.approx(mean, rel=0.1)
    assert tube.speed < 0.1 * at_first
    assert abs(tube._distance_due) < 0.1


def test_dense_blood_enters_as_the_reservoir_carries_it(tmp_path: Path) -> None:
    """Stiff balls 3.6 of which go abreast, at a hematocrit of 0.3: in a tube out of step with the vessel six wait."""
    tables = changed(changed(open_blood_tables(5, 24, 1200), "packing.hematocrit", 0.3), "lattice.tau", 1.5)
    (tmp_path / "case.toml").write_text(toml_of(tables))
    simulation = load(tmp_path / "case.toml", output=tmp_path / "out")
    blood = simulation.blood
    assert blood is not None and blood.openings is not None
    tube = blood.openings.tubes["inlet"]
    before = tube.populations()[0].vertices[..., 0].mean()
    steps = tube.solver.step
    simulation.run()
    carried = float(tube.populations()[0].vertices[..., 0].mean() - before) / tube.prism.length * tube.blood.cells.count
    entered, waiting = blood.statistics.entered["inlet"], blood.openings.waiting()["inlet"]
    assert waiting <= 1 < 8 <= entered
    assert entered + waiting == pytest.approx(carried, abs=1.5)
    # The tube advances with the vessel: at the same speed, for the same number of steps except those of the ramp.
    assert tube.solver.step - steps == pytest.approx(1200, rel=0.1)
    assert tube.speed == pytest.approx(blood._inflow.volumes()[0] / tube.prism.area, rel=0.05)


def test_cells_that_have_just_entered_are_where_their_images_in_the_tube_are(tmp_path: Path) -> None:
    """After a check, a cell less than three radii behind the inlet is its image, moved by whole tube lengths."""
    simulation = opened(tmp_path, 800)
    blood = simulation.blood
    assert blood is not None and blood.openings is not None
    openings, seen = blood.openings, dict[int, int]()
    tube, plane = openings.tubes["inlet"], simulation.setup.vessel.sites.iolets[0]
    assert blood.interval is not None
    looks = Schedule(blood.interval)
    while (look := looks.next_after(simulation.step)) < 800:
        simulation.run(steps=look - simulation.step)
        for name, (kind, number, _) in openings._guided["inlet"].items():
            own = blood.populations()[kind].vertices[int(np.flatnonzero(blood.ids[kind] == name)[0])]
            local = (own - own.mean(axis=0)) @ tube.prism.frame.T
            its = tube.populations()[kind].vertices[number]
            assert local == pytest.approx(its - its.mean(axis=0), abs=1e-5)
            behind = heights(simulation.setup.vessel.sites, plane, own).min()
            assert behind < openings._margins.entry + 3 * blood.cells.cell_radius()
            seen[name] = seen.get(name, 0) + 1
    assert sum(times > 1 for times in seen.values()) > 2 and max(seen.values()) > 2, seen


def test_at_the_start_the_blood_of_the_reservoir_continues_into_the_vessel(tmp_path: Path) -> None:
    """Behind the inlet cells are where those of the tube would be farther on; the others are clear of them."""
    tables = changed(open_blood_tables(5, 24, 400), "packing.hematocrit", 0.3)
    (tmp_path / "case.toml").write_text(toml_of(tables))
    simulation = load(tmp_path / "case.toml", output=tmp_path / "out")
    blood = simulation.blood
    assert blood is not None and blood.openings is not None
    openings, (balls,) = blood.openings, blood.populations()
    tube, (inlet, _) = openings.tubes["inlet"], simulation.setup.vessel.sites.iolets
    enter, led = openings._margins.entry, 3 * blood.cells.cell_radius()
    expected = tube.cells_within(enter, led)
    assert len(expected) > 4
    assert all(0 <= arrival.past_seam < led for arrival in expected)
    behind = heights(simulation.setup.vessel.sites, inlet, balls.vertices).min(axis=1)
    own = balls.vertices[behind < enter + led - 1e-3]
    assert len(own) == len(expected)
    for arrival in expected:
        local = (arrival.vertices - simulation.setup.vessel.sites.coords.mean(axis=0)) @ tube.prism.frame.T
        its = tube.populations()[0].vertices[arrival.number]
        assert local - local.mean(axis=0) == pytest.approx(its - its.mean(axis=0), abs=1e-5)
        assert np.abs(own - arrival.vertices).max(axis=(1, 2)).min() < 1e-4
    assert sorted(openings._guided["inlet"]) == np.flatnonzero(behind < enter + led - 1e-3).tolist()
    bodies = [Surface(item, blood.cells.surfaces[0].faces) for item in balls.vertices]
    for one, body in enumerate(bodies):
        assert not any(overlap_or_near(body, other, 0.0) for other in bodies[:one])
    # The wanted hematocrit away from the openings, within three of the thirty cells.
    volume, sites = float(blood.cells.volumes()[0]), len(simulation.setup.vessel.sites)
    assert len(bodies) * volume / sites / blood.cells.fillable_fraction == pytest.approx(0.3, abs=3 * volume / sites)
    assert blood.statistics.entered == {"inlet": 0} and openings.waiting() == {"inlet": 0}
    assert balls.ids.tolist() == list(range(len(bodies)))


def test_the_inflow_of_cells_is_what_the_blood_of_the_reservoir_carries(tmp_path: Path, device: str) -> None:
    """A tube 3.6 cells wide: its reservoir is within 2 % of the target, and each cell that it owes enters or waits."""
    simulation = opened(tmp_path, 400, device)
    blood = simulation.blood
    assert blood is not None and blood.openings is not None and blood.cells.packing is not None
    openings, volume = blood.openings, float(blood.cells.volumes()[0])
    tube = openings.tubes["inlet"]
    assert tube.hematocrit == pytest.approx(0.1, rel=0.02)
    assert tube.hematocrit == pytest.approx(volume * tube.blood.cells.count / len(tube.sites))
    at_first, sites = len(blood.ids[0]), len(simulation.setup.vessel.sites)
    # Packed cells are not placed where they would be removed at the first check: these layers, and those of one radius
    # of these balls, are not counted.
    layers = free_layers(simulation.setup)
    assert set(layers) == {"inlet", "outlet"} and layers["outlet"] > layers["inlet"] > 2
    assert blood.cells.fillable_fraction == pytest.approx(1 - (2 * 2.8 + sum(layers.values())) / 40, abs=0.03)
    (balls,) = packed_populations(blood.cells)
    for plane in simulation.setup.vessel.sites.iolets:
        assert heights(simulation.setup.vessel.sites, plane, balls.vertices).min() >= layers[plane.name]
    assert len(balls.ids) * volume / sites / blood.cells.fillable_fraction == pytest.approx(
        0.1, abs=0.5 * volume / sites
    )
    # At the inlet that of the reservoir is there instead, by chance some more or fewer.
    assert abs(at_first - len(balls.ids)) <= 4
    before = tube.populations()[0].vertices[..., 0].mean()
    simulation.run()
    carried = float(tube.populations()[0].vertices[..., 0].mean() - before) / tube.prism.length * tube.blood.cells.count
    statistics, ids = blood.statistics, blood.ids[0]
    entered, removed = statistics.entered["inlet"], statistics.removed["outlet"]
    assert entered >= 3
    assert removed >= 2
    assert entered - statistics.removed["inlet"] + openings.waiting()["inlet"] == pytest.approx(carried, abs=1.5)
    assert openings.waiting()["inlet"] <= 1
    assert at_first + entered - statistics.removed["inlet"] - removed == len(ids)
    assert len(np.unique(ids)) == len(ids)
    assert ids.max() == at_first + entered - 1
    summary = blood.summary()
    assert summary["entered"] == {"inlet": entered}
    assert summary["left"]["outlet"] == removed
    # What the reservoir discharges is its own hematocrit, and a little more when cells keep to the axis.
    reservoir = summary["reservoirs"]["inlet"]
    assert reservoir["hematocrit"] == tube.hematocrit
    assert 0.8 < reservoir["discharge_hematocrit"] / tube.hematocrit < 1.5
    assert openings.fluxes["inlet"].cells == pytest.approx((entered - statistics.removed["inlet"]) * volume)
    # The requested flow, after a ramp of 50 steps; the mass is 17 % more, at the density of so strong a pressure.
    speed = simulation.setup.units.to_lattice("velocity", 0.05)
    assert openings.fluxes["inlet"].blood == pytest.approx(speed * tube.prism.area * (400 - 25), rel=0.05)
    assert summary["history"]["outlet: cells_m3"][-1] == pytest.approx(-removed * volume * 0.125e-18)
    # Balls of 42 vertices and 2.8 sites radius take in some fluid in so strong a shear: 0.065 in 400 steps.
    assert summary["largest_volume_change"] < 0.1


def inflow_history(folder: Path, tables: dict[str, Any], steps: int) -> list[tuple[float, float]]:
    """Return the inflow after every step, from the flow of every step and from the checks."""
    (folder / "case.toml").write_text(toml_of(tables))
    simulation = load(folder / "case.toml", output=folder / "out")
    assert simulation.blood is not None and simulation.blood.openings is not None
    came, passed, result = 0.0, simulation.blood.openings.fluxes["inlet"], []
    while simulation.solver.step < steps:
        simulation.run(steps=1)
        came += float(simulation.blood._inflow.volumes()[0])
        result.append((came, passed.blood))
    return result


def test_what_a_pulsating_flow_without_a_ramp_brings_in_is_counted(tmp_path: Path) -> None:
    """Two periods of 160 steps; checks every 40 steps would have an error of 5 %."""
    inlet = {"name": "inlet", "kind": "velocity", "velocity": "50 mm/s", "profile": "womersley", "period": "28.5 us"}
    inlet["harmonics"] = [{"amplitude": "45 mm/s", "phase": "90 deg"}]
    came, counted = inflow_history(tmp_path, changed(open_blood_tables(4, 14, 320), "iolet.0", inlet), 320)[-1]
    assert came > 0
    assert counted == pytest.approx(came, rel=0.01)


@pytest.mark.parametrize("ramp", [20, pytest.param(100, marks=pytest.mark.nightly)])
def test_what_a_ramp_brings_in_is_counted(ramp: int, tmp_path: Path) -> None:
    """The first check is after 56 steps, within the longer ramp."""
    result = inflow_history(tmp_path, changed(open_blood_tables(4, 14, 112), "iolet.0.ramp", ramp), 112)
    for step in (56, 112):
        came, counted = result[step - 1]
        assert counted == pytest.approx(came, rel=0.05)


def test_cells_that_wait_are_reported_at_the_end(tmp_path: Path) -> None:
    simulation = opened(tmp_path, 60)
    assert simulation.blood is not None and simulation.blood.openings is not None
    assert simulation.crowded_inlets() == []
    simulation.blood.openings._overdue["inlet"][0] = 2
    simulation.blood.statistics.entered["inlet"] = 18
    assert simulation.crowded_inlets() == []  # a tenth
    simulation.blood.statistics.entered["inlet"] = 9
    (line,) = simulation.crowded_inlets()
    assert line == (
        'note: 2 of 11 cells could not be inserted at iolet["inlet"]: the inflow hematocrit is below target because '
        "the inlet is crowded"
    )
    simulation.blood.openings._flows = np.array([-0.1, 0.1])
    assert simulation.crowded_inlets() == []  # they wait for blood that flows in


@pytest.mark.parametrize("every", [None, pytest.param(224, marks=pytest.mark.nightly)])
def test_cells_leave_through_an_inlet_as_through_an_outlet(every: int | None, tmp_path: Path) -> None:
    """The flow is opposite to the roles: between two checks cells move up to eight sites."""
    tables = changed(changed(open_blood_tables(4, 16, 900), "iolet.0.role", "outlet"), "iolet.1.role", "inlet")
    tables["packing"]["hematocrit"] = 0.25
    if every is not None:
        tables["reservoir"]["every"] = every
    (tmp_path / "case.toml").write_text(toml_of(tables))
    simulation = load(tmp_path / "case.toml", output=tmp_path / "out")
    assert simulation.blood is not None and simulation.blood.openings is not None
    before = simulation.blood.blood.cells.count
    simulation.run()
    remaining = simulation.blood.statistics.removed["outlet"]
    assert remaining >= 3 and simulation.blood.blood.cells.count == before - remaining
    assert simulation.blood.openings.waiting() == {"outlet": remaining}
    assert simulation.crowded_inlets() == []
    assert simulation.blood.openings.fluxes["outlet"].blood < 0


def former_names(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a checkpoint of open vessels by the names that earlier versions wrote."""
    tubes = {name: former_names(tube) for name, tube in values.get("tubes", {}).items()}
    return {FORMER.get(name, name): value for name, value in values.items()} | ({"tubes": tubes} if tubes else {})


def test_an_open_vessel_continues_with_bitwise_equal_results(tmp_path: Path, device: str) -> None:
    """A run on a GPU also has the bits of one on a processor: the same cells enter at the same checks."""
    full = opened(tmp_path / "whole", 420)
    full.run()
    first = opened(tmp_path / "parts", 420, device)
    first.run(steps=240)
    first.outputs.drain()
    second = opened(tmp_path / "parts", 420, device, restart=tmp_path / "parts" / "out" / "checkpoint.seiche")
    second.run()
    assert full.blood is not None and first.blood is not None and second.blood is not None
    before, after = (item.blood.statistics for item in (first, full))
    assert 0 < before.entered["inlet"] < after.entered["inlet"]  # before the restart and after it
    assert 0 < before.removed["outlet"]
    (one, note), (two, other) = cell_state(full.blood), cell_state(second.blood)
    assert note == other
    assert np.array_equal(one, two)
    assert np.array_equal(*(item.solver.state()["populations"] for item in (full, second)))
    openings = second.blood.openings
    assert openings is not None
    arrays, values = openings.state()
    openings.load_state(np.concatenate(arrays), former_names(values))
    assert openings.state()[1] == values
    repeated: dict[str, Any] = {
        "restart": tmp_path / "parts" / "out" / "checkpoint.seiche",
        "output": tmp_path / "again",
    }
    other = load(tmp_path / "parts" / "case.toml", overrides=["reservoir.seed=3", "time.steps=500"], **repeated)
    assert other.blood is not None and other.blood.changes == ["reservoir.seed is 3, but 0 in the checkpoint"]
    other.close()
    with pytest.raises(CaseError, match="the reservoir in the checkpoint differs from that of"):
        load(tmp_path / "parts" / "case.toml", overrides=["reservoir.length=40 um", "time.steps=500"], **repeated)


def test_the_tube_before_an_inlet_has_its_cross_section() -> None:
    sites = shapes.tube(8.0, 40.0, 1.0, axis=(0.0, 0.6, 0.8))
    prism = Prism(sites, sites.iolets[0], 24)
    assert prism.area == pytest.approx(np.pi * 64, rel=0.05)
    before = prism.sites()
    assert before.periodic == (True, False, False)
    assert before.shape[0] == 24
    assert len(before) / 24 == pytest.approx(np.pi * 64, rel=0.05)
    assert before.coords[:, 0].max() == 23
    # The first axis of the tube is the direction of the inflow.
    remote = prism.world(np.array([[5.0, 0.0, 0.0]]))[0] * sites.spacing + np.asarray(sites.origin)
    assert remote == pytest.approx([0.0, 3.0, 4.0], abs=1e-9)
    assert prism.heights(prism.world(np.array([[5.0, 3.0, 4.0]])))[0][0] == pytest.approx(5.0)
