# SPDX-License-Identifier: BSD-3-Clause
"""Elastic cases: run, restart, records, check, and messages about impossible keys."""

from __future__ import annotations

import re
from pathlib import Path

import h5py
import numpy as np
import pytest

from seiche.case.load import read_source
from seiche.case.loading import load, prepare
from seiche.case.ultrasound.check import describe
from seiche.case.ultrasound.setup import check_limits
from seiche.case.ultrasound.size import sized_setup
from seiche.errors import CaseError
from seiche.ultrasound import Emitter, Grid, Line, Medium, Sensor, Source, simulate
from ultrasound_cases import assert_restart_has_the_same_bits, checkpoint_of

BONE = """solver = "ultrasound"
[grid]
shape = [64, 48]
spacing = "0.25 mm"
cfl = 0.2
steps = 240
[layer]
points = 8
[medium]
material = "water"
[[medium.region]]
kind = "box"
lower = ["0 mm", "-10 mm"]
upper = ["3 mm", "10 mm"]
sound_speed = "2800 m/s"
density = "1850 kg/m^3"
alpha_coeff = 4.0
shear_speed = "1500 m/s"
shear_alpha_coeff = 6.0
[[source]]
kind = "line"
start = ["-5 mm", "-3 mm"]
end = ["-4 mm", "3 mm"]
frequency = "500 kHz"
amplitude = "60 kPa"
[record]
points = [["1 mm", "0 mm"], ["-2 mm", "1.3 mm"]]
quantities = ["p", "s", "s_max"]
maps = ["p_max_all", "s_max_all"]
[run]
threads = 1
[output]
picture = "peak.png"
"""


def write(tmp_path: Path, text: str = BONE, *changes: tuple[str, str]) -> Path:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "case.toml"
    path.write_text(text)
    return path


def test_the_case_gives_the_fields_of_the_same_problem_in_python(tmp_path):
    run = load(write(tmp_path), output=tmp_path / "out").run(visible=False)
    assert (tmp_path / "out" / "peak.png").stat().st_size > 1000
    grid = Grid((64, 48), 0.25e-3)
    dt = 0.2 * 0.25e-3 / 2800
    x, y = grid.positions("x")[:, None], grid.positions("y")
    bone = (x >= 0) & (x <= 3e-3) & (np.abs(y) <= 10e-3)
    medium = Medium(
        np.where(bone, 2800.0, 1500.0),
        np.where(bone, 1850.0, 1000.0),
        alpha_coeff=np.where(bone, 4.0, 0.0),
        shear_speed=np.where(bone, 1500.0, 0.0),
        shear_alpha_coeff=np.where(bone, 6.0, 0.0),
    )
    phase = 500e3 * np.arange(240) * dt
    signal = 60e3 * np.sin(2 * np.pi * phase) * np.minimum(1, phase / 3.0)
    emitter = Emitter(Line((-5e-3, -3e-3), (-4e-3, 3e-3)), signal)
    sensor = Sensor(positions=[[1e-3, 0], [-2e-3, 1.3e-3]], record=("p", "s", "s_max", "s_max_all"))
    expected = simulate(Grid((64, 48), 0.25e-3, dt, 240), medium, Source(emitters=emitter), sensor, pml_size=8)
    with h5py.File(tmp_path / "out" / "result.h5") as file:
        assert file["sxy"].attrs["unit"] == "Pa"
    for name in ("p", "sxx", "syy", "sxy", "sxy_max", "sxy_max_all"):
        peak = np.abs(expected[name]).max()
        assert peak > 10
        np.testing.assert_allclose(run.arrays[name], expected[name], atol=1e-4 * peak, rtol=0)


def test_bone_that_shears_is_heated_by_what_it_absorbs(tmp_path):
    """Without conduction the temperature rises by the absorbed energy over the heat capacity, also after a restart."""
    heat = '[heat]\nduration = "2 s"\nconductivity = "0 W/m/K"\n[run]'
    path = write(tmp_path, BONE, ("maps =", 'frequencies = ["500 kHz"]\nperiods = 1\nmaps ='), ("[run]", heat))
    result = load(path).run(visible=False)
    grid = Grid((64, 48), 0.25e-3)
    bone = (grid.positions("x")[:, None] >= 0) & (grid.positions("x")[:, None] <= 3e-3) & np.ones(48, bool)
    power = result.arrays["heat"]
    assert power[bone].min() > 0 and (power[~bone] == 0).all()
    rise = 2.0 * power / (np.where(bone, 1850.0, 1000.0) * 3600.0)
    np.testing.assert_allclose(result.arrays["temperature"] - 37.0, rise, rtol=1e-6, atol=1e-12)
    assert 0 <= result.summary["details"]["greatest_temperature"]["place_m"][0] <= 3e-3
    records = assert_restart_has_the_same_bits(path, tmp_path, 200)  # within the last period
    assert {"heat", "temperature"} < records


def test_check_states_shear_and_the_slowest_wave(tmp_path):
    setup = prepare(write(tmp_path, BONE, ('"1500 m/s"', '"1200 m/s"')))
    lines = "\n".join(describe(setup))
    assert "shear speed" in lines
    assert "0 to 1200 m/s" in lines
    assert "elastic, float32" in lines
    assert "points per wavelength" in lines
    assert "9.6" in lines


def test_a_restart_continues_with_the_same_bits(tmp_path):
    path = write(tmp_path)
    assert {"sxx", "sxy_max", "sxy_max_all"} < assert_restart_has_the_same_bits(path, tmp_path, 100)


def test_a_checkpoint_of_another_shear_speed_is_refused(tmp_path):
    checkpoint = checkpoint_of(write(tmp_path), tmp_path, 10)
    path = write(tmp_path, BONE, ('"1500 m/s"', '"1400 m/s"'))
    with pytest.raises(CaseError, match="medium or scheme"):
        load(path, output=tmp_path / "second", restart=checkpoint).run(visible=False)


def test_soft_regions_in_bone_have_no_shear(tmp_path):
    soft = (
        '[[medium.region]]\nkind = "ball"\ncenter = ["1.5 mm", "0 mm"]\nradius = "1 mm"\nmaterial = "brain"\n[[source]]'
    )
    setup = prepare(write(tmp_path, BONE, ("[[source]]", soft)))
    shear = np.asarray(setup.problem.elastic.shear_speed)
    x, y = setup.grid.positions("x")[:, None], setup.grid.positions("y")
    inside = np.hypot(x - 1.5e-3, y) < 0.9e-3
    assert inside.sum() > 10
    assert (shear[inside] == 0).all()
    assert (np.asarray(setup.problem.elastic.shear_alpha_coeff)[inside] == 0).all()
    assert shear.max() == 1500


def test_the_size_of_a_large_case_is_that_of_the_arrays(tmp_path):
    small = prepare(write(tmp_path))
    large = sized_setup(read_source(write(tmp_path, BONE, ("[64, 48]", "[1600, 1400]"))))
    assert large is not None
    assert large.limit == pytest.approx(small.limit)
    assert large.problem.elastic is not None
    lines = "\n".join(describe(large))
    per_point = float(lines.split("B per point")[0].split(",")[-1])
    # 16 numbers of fields and medium, one map of p and three of stresses, and the layers
    assert 80 <= per_point < 82


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('shear_speed = "1500 m/s"\n', "", "medium: shear_speed is missing; shear_alpha_coeff needs it"),
        (
            "[[source]]",
            '[[medium.region]]\nkind = "box"\nlower = ["0 mm", "0 mm"]\nupper = ["1 mm", "1 mm"]\n'
            'material = "cortical bone"\n[[source]]',
            r"medium: region\[1\].shear_speed is missing; other parts of the medium have one; use 0 for a fluid",
        ),
        ('"1500 m/s"', '"2700 m/s"', r"shear_speed: reaches sqrt\(3\)/2 of the sound speed"),
        ("shear_alpha_coeff = 6.0", "shear_alpha_coeff = 60.0", "shear_alpha_coeff: compression would gain energy"),
        ('material = "water"', 'material = "water"\nBonA = 5.0', "BonA: an elastic medium is linear"),
        ('material = "water"', 'material = "water"\nalpha_power = 1.1', "alpha_power: absorption of an elastic medium"),
        ("cfl = 0.2", "cfl = 0.5", "grid: a time step of .* is unstable in this medium; the longest stable step is"),
        ("threads = 1", 'scheme = "local4"', "scheme: an elastic medium has a scheme of its own; omit 'local4'"),
    ],
)
def test_impossible_keys_are_refused(tmp_path, old, new, message):
    with pytest.raises(CaseError, match=message):
        prepare(write(tmp_path, BONE, (old, new)))


def test_stresses_of_fluids_and_transforms_of_the_whole_grid_are_refused(tmp_path):
    shear = ('shear_speed = "1500 m/s"\nshear_alpha_coeff = 6.0\n', "")
    with pytest.raises(CaseError, match=r"sensor.record: 's' requires an elastic medium; set medium.shear_speed"):
        prepare(write(tmp_path, BONE, shear, ('material = "water"', 'material = "water"\nalpha_power = 2.0')))
    with pytest.raises(CaseError, match='basis: an elastic medium has no global basis; use "local"'):
        check_limits(prepare(write(tmp_path, BONE, ("threads = 1", 'basis = "global"'))), 2)
    with pytest.raises(CaseError, match=r"run.error: 1e-09 cannot be reached .*; use fewer ranks or a finer"):
        check_limits(prepare(write(tmp_path, BONE, ("threads = 1", "error = 1e-9"))), 2)


def test_check_names_memory_exchange_and_error_of_ranks(tmp_path):
    setup = prepare(write(tmp_path))
    lines = "\n".join(describe(setup, 2))
    # Rows of 48 points, 12 or more beyond each end; two velocities, stresses and accelerations in single precision.
    width = int(re.search(r"2 ranks +(\d+) x 48 points with overlaps of (\d+)", lines)[1]) - 32
    assert width >= 24
    assert re.search(rf"exchange +{6 * width * 48 * 4 / 1e6:.4g} MB received by a rank per step, at most", lines)
    assert re.search(r"error of ranks at 5e\+05 Hz +\d", lines)
    assert re.search(r"memory +[\d.]+ MB, [\d.]+ B per point, on each of 2 ranks", lines)
