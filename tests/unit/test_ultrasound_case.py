# SPDX-License-Identifier: BSD-3-Clause
"""Ultrasound cases from file to results: the command line and what is written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import h5py
import numpy as np
import pytest

from seiche.case.loading import load, prepare
from seiche.cli import main
from seiche.errors import CaseError
from seiche.ultrasound import Arc, Emitter, Grid, Medium, Sensor, Source, simulate
from ultrasound_cases import BASIC, case

ROOT = Path(__file__).resolve().parents[2]


def test_a_case_gives_what_the_same_objects_give(tmp_path):
    result = load(case(tmp_path)).run(visible=False)
    period = 20  # steps: the greatest whole number for which the Courant number is not above 0.3
    grid = Grid((48, 40), 0.5e-3, 1 / 5e5 / period, 60)
    t = np.arange(60) * grid.dt
    tone = 60e3 * np.sin(2 * np.pi * 5e5 * t) * np.minimum(1, 5e5 * t / 3)
    arc = Arc((-8e-3, 0.0), (2e-3, 0.0), 10e-3, 8e-3)
    expected = simulate(
        grid,
        Medium(1500.0),
        Source(emitters=(Emitter(arc, tone),)),
        Sensor(positions=[[0.0, 1e-3]], record=("p", "p_max_all"), frequencies=(5e5,), frequency_window=(40, 60)),
        pml_size=6,
    )
    with h5py.File(tmp_path / "out" / "result.h5") as file:
        for name, values in expected.items():
            np.testing.assert_allclose(file[name][()], values, rtol=1e-5, atol=1e-5 * np.abs(values).max())
            assert file[name].attrs["unit"] == ("rad" if name == "p_phase" else "Pa")
        np.testing.assert_allclose(file["x"], grid.positions("x"))
        assert file.attrs["time_step"] == grid.dt
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["details"]["greatest_p_amplitude"]["value"] == pytest.approx(expected["p_amplitude"].max(), rel=1e-4)
    assert summary == json.loads(json.dumps(dict(result.summary)))


def test_commands_check_and_run(tmp_path, capsys):
    path = case(tmp_path)
    assert main(["check", str(path)]) == 0
    text = capsys.readouterr().out
    assert re.search(r"points per wavelength +6 \(at least 4\)", text)
    assert "any time step is stable" in text
    assert "B per point" in text
    assert not (tmp_path / "out").exists()
    assert main(["run", str(path), "--output", str(tmp_path / "there"), "--set", "output.picture=field.svg"]) == 0
    assert "maximum of p_amplitude: " in capsys.readouterr().out
    assert sorted(file.name for file in (tmp_path / "there").glob("[!.]*")) == [
        "field.svg",
        "result.h5",
        "summary.json",
    ]


def test_contrast_is_advised_against_by_the_check_and_noted_by_the_run(tmp_path, capsys):
    text = BASIC.replace("steps = 60", "steps = 40").replace("cfl = 0.3", "cfl = 0.5").replace("periods = 1\n", "")
    text = text.replace('frequencies = ["500 kHz"]\n', "")
    text += '[[medium.region]]\nkind = "box"\nmaterial = "cortical bone"\n'
    text += 'lower = ["4 mm", "-9 mm"]\nupper = ["8 mm", "9 mm"]\n'
    path = case(tmp_path, text)
    assert main(["check", str(path)]) == 0
    line = "5e+05 Hz: phase error in time of waves that cross the grid"
    assert f"advice: {line}" in capsys.readouterr().out
    assert main(["run", str(path)]) == 0
    assert f"seiche: note: {line}" in capsys.readouterr().err


def test_extents_with_large_prime_factors_are_advised_against(tmp_path, capsys):
    path = case(tmp_path, BASIC.replace("shape = [48, 40]", "shape = [46, 40]"))
    advice = "46 points along x, absorbing layers included, have the prime factor 23"
    assert main(["check", str(path)]) == 0
    assert f"{advice}, for which the transforms are slow; 45 or 48 points would be faster" in capsys.readouterr().out
    assert main(["run", str(path)]) == 0
    assert advice in capsys.readouterr().err
    assert main(["check", str(path), "--set", "grid.shape=[46, 40000000]"]) == 0
    assert advice in capsys.readouterr().out
    assert main(["check", str(path), "--set", "grid.shape=[45, 44]"]) == 0
    assert "prime factor" not in capsys.readouterr().out


def test_regions_materials_files_and_a_ct_image_make_the_medium(tmp_path):
    shape = (48, 40)
    np.savez(tmp_path / "medium.npz", sound_speed=np.full(shape, 1520.0), density=np.full(shape, 1010.0))
    image = np.zeros(shape)
    image[30:34] = 500.0
    np.save(tmp_path / "head.npy", image)
    text = BASIC.replace('sound_speed = "1500 m/s"\ndensity = "1000 kg/m^3"', 'file = "medium.npz"\nalpha_power = 2.0')
    text += """[[medium.region]]
kind = "shell"
center = ["0 mm", "0 mm"]
inner = "2 mm"
outer = "4 mm"
material = "brain"
density = "1041 kg/m^3"
[medium.ct]
file = "head.npy"
"""
    setup = prepare(case(tmp_path, text), ["grid.cfl=0.1", "grid.steps=100"])
    speed, density = np.asarray(setup.medium.sound_speed), np.asarray(setup.medium.density)
    assert speed[24, 20] == 1520.0  # the middle: inside the shell
    assert (speed[24, 26], density[24, 26]) == (1560.0, 1041.0)
    assert (speed[31, 0], density[31, 0]) == (2300.0, 1550.0)
    absorption = np.asarray(setup.medium.alpha_coeff)
    assert absorption[24, 26] == pytest.approx(0.3 / 0.25)  # 0.3 dB/cm at 500 kHz
    assert absorption[24, 20] == 0.0
    assert absorption[31, 0] > 2.0


def test_ball_of_pressure_is_seen_by_a_ring_and_reconstructed(tmp_path):
    text = BASIC.partition("[[source]]")[0].replace("steps = 60", 'duration = "16 us"')
    text += """[[source]]
kind = "initial-ball"
center = ["1 mm", "-1 mm"]
radius = "1.5 mm"
pressure = "1 kPa"
[record]
ring = { center = ["0 mm", "0 mm"], radius = "6 mm" }
[image]
iterations = 2
[output]
picture = "image.png"
"""
    result = load(case(tmp_path, text)).run(visible=False)
    position = result.summary["details"]["greatest_image"]["place_m"]
    assert np.hypot(position[0] - 1e-3, position[1] + 1e-3) < 1.3e-3
    assert result.summary["details"]["greatest_image"]["value"] == pytest.approx(1000.0, rel=0.1)
    assert (tmp_path / "out" / "image.png").stat().st_size > 1000


def test_the_image_of_an_absorbing_medium_is_compensated(tmp_path):
    text = BASIC.partition("[[source]]")[0].replace("steps = 60", 'duration = "16 us"')
    text = text.replace("[medium]", "[medium]\nalpha_coeff = 15\nalpha_power = 1.5", 1)
    text += """[[source]]
kind = "initial-ball"
center = ["0 mm", "0 mm"]
radius = "2 mm"
pressure = "1 kPa"
[record]
ring = { center = ["0 mm", "0 mm"], radius = "6 mm" }
[image]
"""
    found = []
    for number, options in enumerate(([], ["image.compensate=300 kHz"])):
        result = load(case(tmp_path, text), overrides=options, output=tmp_path / str(number)).run(visible=False)
        found.append(result.summary["details"]["greatest_image"]["value"])
    assert found[1] > 1.02 * found[0]
    for change in (["medium.alpha_mode=relaxation"], ["medium.alpha_mode=no_absorption"]):
        with pytest.raises(CaseError, match=r"image.compensate: needs a medium that absorbs by a power law"):
            prepare(case(tmp_path, text), ["image.compensate=300 kHz", *change])


def test_heat_and_dose_follow_from_the_amplitude(tmp_path):
    text = BASIC.replace("[medium]", "[medium]\nalpha_power = 2.0\nalpha_coeff = 4.0")
    text = text.replace("cfl = 0.3", "cfl = 0.1") + '[heat]\nduration = "2 s"\nconductivity = "0 W/m/K"\n'
    result = load(case(tmp_path, text)).run(visible=False)
    amplitude = result.arrays["p_amplitude"][0]
    alpha = 4.0 * 0.25 * 100 / (20 * np.log10(np.e))
    rise = 2 * alpha * amplitude**2 / (2 * 1000 * 1500) * 2.0 / (1000 * 3600)
    np.testing.assert_allclose(result.arrays["temperature"] - 37.0, rise, rtol=1e-5, atol=1e-9)


def test_a_burst_ends_and_tones_of_one_kind_act_as_an_array(tmp_path):
    second = BASIC.partition("[[source]]")[2].partition("[record]")[0].replace('"0 mm"]', '"2 mm"]')
    text = BASIC.replace("[record]", f'delay = "0.3 us"\ncycles = 2\n[[source]]{second}cycles = 2\n[record]')
    setup = prepare(case(tmp_path, text))
    (source,) = setup.problem.sources
    assert source.samples.shape[1] == source.points.size
    period = 1 / 5e5 / setup.problem.dt
    assert source.steps == pytest.approx(2 * period + 0.3e-6 / setup.problem.dt, abs=2.5)


def test_the_examples_are_sound_cases_and_the_photoacoustic_one_finds_its_discs(tmp_path):
    with pytest.raises(CaseError, match="unstable"):
        prepare(ROOT / "examples" / "skull-focus" / "case.toml", ["grid.cfl=0.5"])
    assert prepare(ROOT / "examples" / "skull-focus" / "case.toml").notes == ()
    large = ["grid.shape=[108, 72, 72]", "grid.spacing=1.05 mm", "layer.points=8"]
    assert prepare(ROOT / "examples" / "skull-focus" / "case-3d.toml", large).problem.dimensions == 3
    result = load(ROOT / "examples" / "photoacoustic" / "case.toml", output=tmp_path).run(visible=False)
    assert result.summary["details"]["greatest_image"]["value"] == pytest.approx(2000.0, rel=0.05)


def test_skull_focus_lies_behind_the_bone(tmp_path):
    """A third of the resolution in time and space: the field is focused on the axis, and the bone is the warmest."""
    coarse = ["grid.shape=[144, 108]", "grid.spacing=0.8 mm", "layer.points=10"]
    result = load(ROOT / "examples" / "skull-focus" / "case.toml", overrides=coarse, output=tmp_path).run(visible=False)
    amplitude = result.arrays["p_amplitude"][0]
    grid = Grid((144, 108), 0.8e-3)
    x, y = grid.positions("x"), grid.positions("y")
    brain = amplitude[np.ix_(x > -5e-3, np.abs(y) < 30e-3)]
    position = np.unravel_index(int(np.argmax(brain)), brain.shape)
    assert abs(x[x > -5e-3][position[0]] - 15e-3) < 8e-3
    assert abs(y[np.abs(y) < 30e-3][position[1]]) < 1e-3
    focus = result.summary["details"]["foci"]["sources.0"]
    assert focus["pressure_Pa"] == pytest.approx(float(brain.max()))
    assert focus["place_m"] == pytest.approx([x[x > -5e-3][position[0]], y[np.abs(y) < 30e-3][position[1]]])
    assert 1.5e-3 < focus["width_6dB_m"] < 6e-3 < focus["length_6dB_m"] < 40e-3
    size = focus["area_6dB_m2"]
    assert 0.5 < size / (focus["width_6dB_m"] * focus["length_6dB_m"]) < 2
    assert result.summary["details"]["greatest_p_amplitude"]["place_m"][0] < -10e-3
    assert any(line.startswith("focus of sources.0: at (") for line in result.lines)
    hottest = result.summary["details"]["greatest_temperature"]
    assert 37.5 < hottest["value"] < 60.0
    assert 66e-3 < np.hypot(hottest["place_m"][0] - 60e-3, hottest["place_m"][1]) < 76e-3


def test_stokes_absorption_of_a_case_needs_no_exponent(tmp_path):
    text = BASIC.replace("[medium]", '[medium]\nalpha_mode = "stokes"\nalpha_coeff = 0.5')
    absorption = prepare(case(tmp_path, text)).problem.absorption
    assert absorption is not None
    assert (absorption.alpha_coeff, absorption.alpha_power, absorption.stokes) == (0.5, 2.0, True)


def test_file_with_absorption_needs_an_exponent(tmp_path):
    np.savez(tmp_path / "head.npz", alpha_coeff=np.full((48, 40), 0.5))
    with pytest.raises(CaseError, match=r"medium.alpha_power: is missing; alpha_coeff of head.npz needs it"):
        prepare(case(tmp_path, BASIC.replace("[medium]", '[medium]\nfile = "head.npz"')))


def test_relaxation_without_anything_that_absorbs_is_lossless(tmp_path):
    text = BASIC.replace("[medium]", '[medium]\nalpha_power = 1.0\nalpha_mode = "relaxation"')
    assert prepare(case(tmp_path, text)).problem.relaxation is None
