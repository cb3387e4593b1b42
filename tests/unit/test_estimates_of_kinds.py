# SPDX-License-Identifier: BSD-3-Clause
"""Estimates of layers, sources, sensors, media and sides, with cases that pass each bound and cases that do not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from case_files import blood_tables, box_tables, changed, setup_of, toml_of, tube_tables
from page_blocks import ROOT
from seiche.case.flow.estimates import flow_estimates
from seiche.case.kinds import kind_of
from seiche.case.load import read_source
from seiche.case.loading import load, prepare
from seiche.case.ultrasound.estimates import wrapped_fraction
from seiche.case.waves.estimates import energy_estimate, wave_estimates
from seiche.solver import Estimate
from ultrasound_cases import BASIC
from waves_cases import BLOCK, FORCE, ROCK, SOIL

TEMPLATE = ROOT / "src/seiche/case/templates/waves.toml"


def estimates_of(text: str, folder: Path) -> dict[str, Estimate]:
    """Return the estimates of a case file before a run, by name; of those with one name the last."""
    path = folder / "case.toml"
    path.write_text(text)
    source = read_source(path)
    kind = kind_of(source)
    return {estimate.name: estimate for estimate in kind.estimates(kind.prepare(source))}


def test_absorbing_layers_that_leave_a_wave_are_named(tmp_path: Path) -> None:
    name = "amplitude transmitted by the absorbing layers"
    for frequency, least in (("500 kHz", 6), ("700 kHz", 9)):  # 6 and 4.3 points per wavelength
        for points, violated in ((0, True), (4, True), (least, False)):
            text = BASIC.replace("points = 6", f"points = {points}").replace("500 kHz", frequency)
            layer = estimates_of(text, tmp_path)[name]
            expected = wrapped_fraction(points, 2.0, coarse=frequency == "700 kHz")
            assert layer.value == pytest.approx(expected)
            assert layer.violated == violated
            assert f"use layer.points of at least {least}" in (layer.warning or layer.remedy)
    assert estimates_of(BASIC.replace("points = 6", "strength = 0"), tmp_path)[name].warning is not None


def test_amplitudes_that_steepen_across_a_linear_medium_are_named(tmp_path: Path) -> None:
    name = "length of the grid over the shock formation distance"
    quiet = estimates_of(BASIC, tmp_path)[name]
    loud = estimates_of(BASIC.replace('amplitude = "', 'amplitude = "1000'), tmp_path)[name]
    assert not quiet.passed
    assert loud.passed
    assert loud.remedy.startswith("set medium.BonA")
    nonlinear = BASIC.replace('sound_speed = "1500 m/s"', 'sound_speed = "1500 m/s"\nBonA = 5.0')
    assert estimates_of(nonlinear, tmp_path)[name].upper_bound is None


def test_recorded_frequencies_that_no_source_emits_are_named(tmp_path: Path) -> None:
    name = "amplitude of the sources at this frequency, relative to their largest"
    long = BASIC.replace("steps = 60", "steps = 200")
    assert estimates_of(long, tmp_path)[name].value == pytest.approx(1.0, abs=0.02)
    other = long.replace('frequencies = ["500 kHz"]', 'frequencies = ["1 MHz"]')
    found = estimates_of(other, tmp_path)[name]
    assert found.value < 0.02
    assert "record 500000 Hz" in str(found.warning)
    nonlinear = other.replace('sound_speed = "1500 m/s"', 'sound_speed = "1500 m/s"\nBonA = 5.0')
    assert name not in estimates_of(nonlinear, tmp_path)


def test_the_extent_of_sources_and_the_place_of_sensors_are_in_points(tmp_path: Path) -> None:
    result = estimates_of(BASIC, tmp_path)
    assert result["extent"].value > 1
    assert result["Courant number"].value == pytest.approx(0.3, rel=0.1)
    head, _, tail = BASIC.partition("[[source]]")
    ball = '[[source]]\nkind = "initial-ball"\ncenter = ["0 mm", "0 mm"]\nradius = "{}"\npressure = "1 Pa"\n'
    record = '[record]\npoints = [["{}", "0 mm"]]\n'
    small = estimates_of(head + ball.format("1 mm") + record.format("5 mm"), tmp_path)
    large = estimates_of(head + ball.format("4 mm") + record.format("5 mm"), tmp_path)
    assert small["radius"].passed
    assert not large["radius"].passed
    assert not large["distance from the absorbing layer"].passed
    assert large["distance from the middle of the nearest source"].value == pytest.approx(
        0.005 / spacing(tmp_path), rel=1e-6
    )
    outside = estimates_of(head + ball.format("4 mm") + record.format("-11 mm"), tmp_path)
    assert outside["distance from the absorbing layer"].passed
    assert tail


def spacing(folder: Path) -> float:
    """Return the spacing of the last case."""
    source = read_source(folder / "case.toml")
    setup: Any = kind_of(source).prepare(source)
    return float(setup.grid.spacings[0])


MUD = """
[[material]]
name = "mud"
density = "1500 kg/m^3"
cp = "900 m/s"
cs = "200 m/s"
where = { kind = "layer", bottom = "5 m", top = "10 m" }
"""


def test_resolution_is_stated_for_each_medium(tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    path.write_text(BLOCK + 'size = "5 m"\ntrees = [4, 4, 2]\n' + SOIL + MUD + FORCE + "[time]\nsteps = 2\n")
    source = read_source(path)
    kind = kind_of(source)
    result = {estimate.where: estimate for estimate in kind.estimates(kind.prepare(source))}
    frequency = 0.48 / 1e-3
    for name, slowest in (("soil", 800.0), ("mud", 200.0)):
        assert result[f'material["{name}"]'].value == pytest.approx(3 * slowest / frequency / 5.0)
    result = estimates_of(BLOCK + 'size = "5 m"\n' + SOIL + FORCE + "[time]\nsteps = 2\n", tmp_path)
    assert not any(estimate.where.startswith("material") for estimate in result.values())


def test_absorbing_sides_state_their_reflection_or_the_thickness_of_their_layer(tmp_path: Path) -> None:
    text = BLOCK + 'size = "5 m"\n' + SOIL + FORCE + "[time]\nsteps = 2\n"
    result = estimates_of(text, tmp_path)
    assert result["reflection of absorbing sides at 45 degrees"].value == pytest.approx(0.1716, abs=1e-4)
    wavelength = 1500.0 * 2.5 / (0.48 / 1e-3)
    layer = estimates_of(text.replace("[boundary]", '[boundary]\nsponge = "4 m"'), tmp_path)
    assert layer["thickness of the absorbing layer"].value == pytest.approx(4 / wavelength)
    assert not layer["thickness of the absorbing layer"].violated
    thin = estimates_of(text.replace("[boundary]", '[boundary]\nsponge = "3 m"'), tmp_path)
    assert thin["thickness of the absorbing layer"].violated
    assert f"{0.5 * wavelength:.2g} m in all or more" in thin["thickness of the absorbing layer"].remedy
    margin = estimates_of(text.replace("[boundary]", "[boundary]\nmargin = { trees = 1 }"), tmp_path)
    assert margin["thickness of the absorbing layer"].value == pytest.approx(1.2 * 10 / wavelength)
    assert "reflection of absorbing sides at 45 degrees" not in layer
    walls = text.replace(
        'upper = ["absorbing", "absorbing", "free"]',
        'lower = ["free", "free", "rigid"]\nupper = ["free", "free", "free"]',
    )
    assert not {"reflection of absorbing sides at 45 degrees", "thickness of the absorbing layer"} & set(
        estimates_of(walls, tmp_path)
    )


@pytest.mark.parametrize("path", [ROOT / "examples/basin/case.toml", TEMPLATE], ids=["basin", "template"])
def test_absorbing_layers_of_shipped_cases_are_thick_enough(path: Path) -> None:
    name = "thickness of the absorbing layer"
    (layer,) = [item for item in wave_estimates(prepare(path)) if item.name == name]
    assert layer.value >= 0.5


PLANE = """
[plane_wave]
kind = "p"
direction = [1.0, 0.0]
position = ["20 m", "15 m"]
velocity = "1 m/s"
time = { kind = "ricker", frequency = "20 Hz", delay = "5 ms" }
[[receiver]]
name = "A"
position = ["22 m", "15 m"]
[time]
steps = 20
"""


def test_the_energy_of_a_run_without_sources_does_not_grow(tmp_path: Path) -> None:
    (tmp_path / "case.toml").write_text(ROCK + PLANE)
    with load(tmp_path / "case.toml", output=tmp_path / "out") as simulation:
        simulation.run(visible=False)
        result = {estimate.name: estimate for estimate in simulation.estimates()}
        assert -1 < result["relative growth of energy so far"].value <= 1e-12
        assert not result["relative growth of energy so far"].passed
        (grown,) = energy_estimate(simulation.setup, 0.001)
        assert grown.violated
    assert not list(energy_estimate(SimpleNamespace(), None))  # type: ignore[arg-type]


def test_the_width_of_a_tube_is_in_sites_and_cells_are_in_sites(tmp_path: Path) -> None:
    name = "narrowest width"
    coarse = {estimate.name: estimate for estimate in flow_estimates(setup_of(tube_tables()))}
    assert coarse[name].value == pytest.approx(8.0)
    assert coarse[name].passed
    assert name not in {estimate.name for estimate in flow_estimates(setup_of(box_tables()))}
    fine = {item.name: item for item in flow_estimates(setup_of(changed(tube_tables(), "geometry.spacing", "0.1 mm")))}
    assert not fine[name].passed
    result = estimates_of(toml_of(changed(blood_tables(), "time.steps", 2)), tmp_path)
    assert result["diameter"].value > 2 * result["thickness"].value > 0
