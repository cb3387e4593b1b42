# SPDX-License-Identifier: BSD-3-Clause
"""Where iolets get their values from: tables in time, computed profiles, weights, circuits; and from case files."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seiche
from case_files import advice, tube_file
from seiche.case.loading import prepare
from seiche.domain import shapes
from seiche.domain.sites import IoletPlane, SiteSet
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.flow import (
    FlowModel,
    Newtonian,
    PressureIolet,
    SiteProfile,
    Solver,
    TimeTable,
    VelocityIolet,
    WindkesselIolet,
)
from seiche.flow.iolets import BLOCK, density_excess, mode_values
from seiche.flow.section import developed_profile, opening_area, profile_flow_rate
from seiche.flow.windkessel import circuit_coefficients
from seiche.io.formats.columns import read_time_table, read_weights

WATER = Newtonian(0.1)
MMHG = 133.322387415


def test_a_table_is_linear_between_rows_and_holds_outside():
    table = TimeTable(np.array([10.0, 20.0, 40.0]), np.array([1.0, 3.0, 2.0]))
    np.testing.assert_allclose(table.at(np.array([0.0, 10.0, 15.0, 20.0, 30.0, 40.0, 99.0])), [1, 1, 2, 3, 2.5, 2, 2])


def test_a_table_that_repeats_starts_again_after_its_span():
    table = TimeTable(np.array([10.0, 20.0, 40.0]), np.array([1.0, 3.0, 1.0]), repeat=True)
    times = np.array([10.0, 15.0, 30.0, 39.0])
    for turn in (-2, -1, 0, 1, 7):
        np.testing.assert_allclose(table.at(times + 30 * turn), table.at(times), atol=1e-12)


def test_tables_replace_means_and_are_ramped():
    table, time = TimeTable(np.array([0.0, 100.0]), np.array([1.0, 1.02])), np.array([0.0, 25.0, 50.0, 100.0])
    np.testing.assert_allclose(density_excess(PressureIolet(9.0, table=table), time), [0, 0.005, 0.01, 0.02])
    ramped = density_excess(PressureIolet(ramp=50.0, ramp_from=1.01, table=table), time)
    np.testing.assert_allclose(ramped, [0.01, 0.0075, 0.01, 0.02])
    values = mode_values(VelocityIolet(9.0, table=TimeTable(table.times, table.values - 1), ramp=50.0), time)
    np.testing.assert_allclose(values, [[0], [0.0025], [0.01], [0.02]])


def test_values_continue_through_the_blocks_in_which_they_are_uploaded():
    table = TimeTable(np.array([0.0, 3.0 * BLOCK]), np.array([1.0, 1.003]))
    sites = shapes.tube(1.6, 3.0, 1.0)
    solver = Solver(sites, FlowModel(WATER, iolets=(PressureIolet(table=table), PressureIolet())), threads=1)
    solver.advance(BLOCK + 7)
    group = solver.iolets.groups[0]
    row = int(solver.iolets.clock[0]) - 1
    assert group.values is not None
    assert group.values[row, 0] == pytest.approx(1e-3 * (BLOCK + 6.5) / BLOCK, rel=1e-12)


@pytest.mark.parametrize("axis", [(1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (1.0, 0.3, 0.2), (1.0, 0.7, 0.4)])
def test_a_computed_profile_carries_its_velocity_times_the_area(axis: tuple[float, float, float]):
    sites = shapes.tube(8.0, 12.0, 1.0, axis=axis)
    for iolet in (0, 1):
        profile, area = developed_profile(sites, iolet), opening_area(sites, iolet)
        assert profile_flow_rate(sites, iolet, profile) == pytest.approx(area, rel=1e-12)
        assert area == pytest.approx(math.pi * 64, rel=0.05)
        assert profile.values.min() >= 0
        assert profile.values.max() == pytest.approx(2.0, rel=0.06)


def test_a_computed_profile_of_a_square_is_the_series_to_second_order():
    errors = []
    for edge in (11, 21):
        profile = developed_profile(shapes.duct(float(edge), float(edge), 2.0, 1.0, periodic=False), 0)
        errors.append(2.0962 - profile.values.max() / profile.values.mean())
    assert 0 < errors[1] < 0.015
    assert math.log(errors[0] / errors[1]) / math.log(21 / 11) > 1.8


def test_the_flow_through_a_rectangle_is_the_requested():
    sites = shapes.duct(8.0, 5.0, 6.0, 1.0, periodic=False)
    iolets = (VelocityIolet(1e-6, profile=developed_profile(sites, 0)), PressureIolet(scheme="anti-bounce-back"))
    solver = Solver(sites, FlowModel(WATER, iolets=iolets), threads=1)
    solver.advance(1500)
    assert solver.measures.iolet_flow()[0] == pytest.approx(40e-6, rel=1e-5)
    assert solver.measures.iolet_flow()[1] == pytest.approx(-40e-6, rel=1e-3)


def test_another_vessel_in_the_same_plane_does_not_count():
    """Two tubes side by side end in one plane; the section of one is that of the tube alone."""
    from seiche.domain.shapes import sites_from_distance

    def distance(points: np.ndarray) -> np.ndarray:
        return np.minimum(np.hypot(points[:, 1], points[:, 2]), np.hypot(points[:, 1] - 12.0, points[:, 2])) - 4.0

    def ends(points: np.ndarray) -> np.ndarray:
        return np.maximum(-points[:, 0], points[:, 0] - 6.0)

    planes = tuple(
        IoletPlane(name, role, (x, y, 0.0), (normal, 0.0, 0.0), 4.2)
        for name, role, x, y, normal in (
            ("a", "inlet", 0.0, 0.0, 1.0),
            ("b", "outlet", 6.0, 0.0, -1.0),
            ("c", "inlet", 0.0, 12.0, 1.0),
            ("d", "outlet", 6.0, 12.0, -1.0),
        )
    )
    sites = sites_from_distance(distance, (0, -4, -4), (6, 16, 4), 1.0, planes, region=ends)
    single = developed_profile(shapes.tube(4.0, 6.0, 1.0), 0)
    np.testing.assert_allclose(developed_profile(sites, 0).values, single.values, rtol=1e-12)


def test_weights_multiply_the_velocity_site_by_site():
    sites = shapes.tube(3.3, 6.0, 1.0)
    places = sites.coords[sites.boundary[(sites.link_iolet == 0).any(axis=1)]].astype(np.int64)
    weights = np.arange(1.0, len(places) + 1)
    shuffled = np.random.default_rng(1).permutation(len(places))
    flows = []
    for chosen in (weights, 2 * weights):
        profile = SiteProfile(places[shuffled], chosen[shuffled])
        solver = Solver(sites, FlowModel(WATER, iolets=(VelocityIolet(1e-4, profile=profile), PressureIolet())))
        solver.advance(1)
        flows.append(solver.measures.iolet_flow()[0])
        assert flows[-1] == pytest.approx(1e-4 * profile_flow_rate(sites, 0, profile), rel=1e-12)
    assert flows[1] == pytest.approx(2 * flows[0], rel=1e-12)


def test_numbers_of_a_circuit():
    decay, gain, rest, proximal, response, start = circuit_coefficients(
        WindkesselIolet(0.02, 500.0, 0.01, distal_density=0.99, initial_density=1.01), 3.0
    )
    assert decay == pytest.approx(math.exp(-0.1))
    assert (gain, rest) == (pytest.approx(0.06 * (1 - decay)), pytest.approx(-0.01 * (1 - decay)))
    # A resistance of 0.2 acoustic impedances: the smallest factor.
    assert (proximal, response, start) == (pytest.approx(0.03), pytest.approx(16 * 3.0), pytest.approx(0.01))


def test_the_assumed_response_of_a_circuit_grows_with_its_resistance_up_to_a_limit():
    impedance = math.sqrt(3.0) / 3.0  # of an outlet of 3 spacings^2, whose immediate response is 1; c = 1/sqrt(3)
    for ratio, factor in [(0.5, 16.0), (1.0, 16.0), (1.5, 24.0), (2.0, 32.0), (50.0, 32.0)]:
        outlet = WindkesselIolet(1e-12, 1.0, ratio * impedance / 3.0)
        assert circuit_coefficients(outlet, 1.0)[4] == pytest.approx(factor, rel=1e-6)


@pytest.mark.parametrize(("scheme", "proximal"), [("nash", 0.0), ("nash", 1.0), ("anti-bounce-back", 1.0)])
def test_a_circuit_far_stiffer_than_the_fluid_comes_to_rest_at_its_pressure(scheme: Any, proximal: float):
    sites = shapes.tube(3.3, 8.0, 1.0)
    outlet = WindkesselIolet(0.5, 0.0, proximal, scheme=scheme)
    solver = Solver(sites, FlowModel(Newtonian(0.3), iolets=(VelocityIolet(1e-4), outlet)), threads=1)
    solver.advance(30_000)
    outflow = -solver.measures.iolet_flow()[1]
    assert outflow == pytest.approx(solver.measures.iolet_flow()[0], rel=1e-3)
    assert solver.state().attributes["iolets.outlet.imposed"] == pytest.approx(3 * (0.5 + proximal) * outflow, rel=2e-3)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            (VelocityIolet(0.01, profile=SiteProfile(np.array([[9, 9, 9]]), np.ones(1))), PressureIolet()),
            "iolet 'inlet': its profile has no value for 16 of its sites, such as [0, 0, 0]",
        ),
        (
            (PressureIolet(), WindkesselIolet(0.0, 1.0)),
            "iolet 'outlet': Windkessel resistance 0.0 (lattice units): expected a number, positive",
        ),
        (
            (PressureIolet(), WindkesselIolet(1.0, -1.0)),
            "iolet 'outlet': Windkessel compliance -1.0 (lattice units): expected a number, zero or more",
        ),
        (
            (PressureIolet(), WindkesselIolet(1.0, 1.0, math.nan)),
            "iolet 'outlet': Windkessel proximal_resistance nan (lattice units): expected a number, zero or more",
        ),
    ],
)
def test_an_impossible_condition_gives_a_one_line_error(model: Any, message: str):
    with pytest.raises(CaseError) as caught:
        Solver(shapes.tube(2.3, 4.0, 1.0), FlowModel(WATER, iolets=model), threads=1)
    assert str(caught.value) == message


def test_windkessel_outlets_need_names_of_their_own():
    sites = shapes.tube(2.3, 4.0, 1.0)
    planes = tuple(replace(plane, name="end") for plane in sites.iolets)
    with pytest.raises(CaseError, match=r"^two Windkessel outlets have the same name; the names are end$"):
        Solver(replace(sites, iolets=planes), FlowModel(WATER, iolets=2 * (WindkesselIolet(1.0, 1.0),)), threads=1)


def without_sites() -> SiteSet:
    sites = shapes.tube(2.3, 4.0, 1.0, axis=(1.0, 0.2, 0.0))
    return SiteSet(sites.shape, sites.coords, 1.0, iolets=sites.iolets)


def narrow() -> SiteSet:
    sites = shapes.tube(2.3, 4.0, 1.0, axis=(1.0, 0.2, 0.0))
    return SiteSet(
        sites.shape,
        sites.coords,
        1.0,
        sites.origin,
        (False, False, True),
        sites.boundary,
        sites.link_kind,
        sites.link_iolet,
        iolets=sites.iolets,
    )


@pytest.mark.parametrize(
    ("sites", "message"),
    [
        (
            without_sites(),
            "iolet 'inlet': no site is adjacent to it, so its profile cannot be computed; use a finer spacing",
        ),
        (
            narrow(),
            "iolet 'inlet': a computed profile in a periodic geometry requires a normal along a lattice axis that is "
            "not periodic",
        ),
    ],
)
def test_a_section_that_cannot_be_solved_is_named(sites: SiteSet, message: str):
    with pytest.raises(CaseError) as caught:
        developed_profile(sites, 0)
    assert str(caught.value) == message


def test_files_of_columns(tmp_path: Path):
    path = tmp_path / "table.txt"
    path.write_text("# s mmHg\n0 80\n\n  0.25\t1.2e2 \n.5 -3.\n")
    times, values, _ = read_time_table(path)
    np.testing.assert_array_equal(times, [0, 0.25, 0.5])
    np.testing.assert_array_equal(values, [80, 120, -3])
    path.write_text("3 4 -5 0.5\r\n3 4 +6 1\r\n")
    coords, weights = read_weights(path)
    np.testing.assert_array_equal(coords, [[3, 4, -5], [3, 4, 6]])
    np.testing.assert_array_equal(weights, [0.5, 1])


def test_tables_of_a_case_become_lattice_units(tmp_path: Path):
    (tmp_path / "p.txt").write_text("0 99.99\n0.1 100.01\n0.4 99.99\n")
    (tmp_path / "u.txt").write_text("0 0.001\n0.2 0.002\n")
    path = tube_file(
        tmp_path,
        {
            "iolet.0": {"name": "inlet", "kind": "velocity", "table": "u.txt"},
            "iolet.1": {"name": "outlet", "kind": "pressure", "table": "p.txt", "repeat": True},
            "fluid.reference_pressure": "100 mmHg",
            "lattice": {"step": "0.5 ms"},
            "time": {"cycles": 2.0},
        },
    )
    setup = prepare(path)
    inlet, outlet = setup.model.iolets
    assert isinstance(inlet, VelocityIolet)
    assert isinstance(outlet, PressureIolet)
    assert inlet.table is not None
    assert outlet.table is not None
    assert setup.period == pytest.approx(0.4)
    assert setup.steps == 1600
    np.testing.assert_allclose(inlet.table.times, [0, 400])
    np.testing.assert_allclose(inlet.table.values, [0.002, 0.004])
    assert outlet.table.repeat
    unit = 1000 * (0.25e-3 / 0.5e-3) ** 2 / 3
    np.testing.assert_allclose(outlet.table.values - 1, np.array([-0.01, 0.01, -0.01]) * MMHG / unit, rtol=1e-9)
    assert setup.invariants.velocity_scale == pytest.approx(0.004)
    assert setup.invariants.density == (
        pytest.approx(1 - 0.01 * MMHG / unit),
        pytest.approx(1 + 0.01 * MMHG / unit, abs=0.1),
    )
    assert advice(setup)[0] == (
        'iolet["inlet"].table: ends at 0.2 s, before the end of the run at 0.8 s; its last value applies '
        "from then on (repeat = true repeats the table)"
    )


def test_a_flow_rate_enters_through_computed_profiles_and_weights(tmp_path: Path):
    expected = 1e-9
    inlet = {"name": "inlet", "kind": "velocity", "flow_rate": "1 uL/s", "profile": "computed"}
    square = {"kind": "duct", "width": "2 mm", "height": "1.5 mm", "length": "3 mm", "periodic": False}
    path = tube_file(tmp_path, {"iolet.0": inlet, "geometry.shape": square})
    setup = prepare(path)
    sites = setup.vessel.sites
    places = sites.coords[sites.boundary[(sites.link_iolet == 0).any(axis=1)]]
    lines = [f"{x} {y} {z} {1 + 0.1 * y}\n" for x, y, z in places.tolist()]
    (tmp_path / "w.txt").write_text("".join(lines))
    del inlet["profile"]
    weighted = prepare(tube_file(tmp_path, {"iolet.0": inlet | {"weights": "w.txt"}, "geometry.shape": square}))
    for made in (setup, weighted):
        condition = made.model.iolets[0]
        assert isinstance(condition, VelocityIolet)
        assert condition.profile is not None
        flow = condition.mean * profile_flow_rate(sites, 0, condition.profile)
        assert made.units.to_si("flow_rate", flow) == pytest.approx(expected, rel=1e-12)


def windkessel_case(folder: Path) -> Path:
    outlet = {
        "name": "outlet",
        "kind": "windkessel",
        "resistance": "0.2 mmHg s/mL",
        "proximal_resistance": "0.02 mmHg s/mL",
        "compliance": "0.5 mL/mmHg",
        "distal_pressure": "0.1 Pa",
        "scheme": "anti-bounce-back",
    }
    return tube_file(folder, {"iolet.1": outlet})


def test_a_windkessel_in_clinical_units(tmp_path: Path):
    setup = prepare(windkessel_case(tmp_path))
    outlet, step, dx = setup.model.iolets[1], setup.units.step, 0.25e-3
    assert isinstance(outlet, WindkesselIolet)
    assert outlet.scheme == "anti-bounce-back"
    assert outlet.resistance * outlet.compliance == pytest.approx(0.1 / step)
    assert outlet.proximal_resistance == pytest.approx(0.1 * outlet.resistance)
    pressure_over_flow = 0.2 * MMHG / 1e-6
    assert outlet.resistance == pytest.approx(pressure_over_flow * (dx**3 / step) / (1000 * (dx / step) ** 2))
    assert outlet.distal_density - 1 == pytest.approx(3 * 0.1 / (1000 * (dx / step) ** 2), rel=1e-6)
    assert outlet.initial_density == 1.0


def test_a_run_with_a_windkessel_continues_from_its_checkpoint(tmp_path: Path):
    path = windkessel_case(tmp_path)
    full = seiche.load(path, world=World.serial())
    full.run()
    first = seiche.load(path, output=tmp_path / "first", world=World.serial())
    first.run(40)
    first.checkpoint()
    second = seiche.load(path, restart=first.checkpoints.path, output=tmp_path / "b", world=World.serial())
    assert second.solver.step == 40
    second.run()
    np.testing.assert_array_equal(second.solver.state()["populations"], full.solver.state()["populations"])
    assert second.solver.state().attributes == full.solver.state().attributes
    assert full.solver.state().attributes["iolets.outlet.imposed"] != 0
