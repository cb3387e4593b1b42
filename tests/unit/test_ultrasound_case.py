# SPDX-License-Identifier: BSD-3-Clause
"""Ultrasound cases from file to results: the command line, what is written, what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seiche.case.document import page
from seiche.case.schema_ultrasound import UltrasoundCase
from seiche.case.ultrasound import load
from seiche.case.ultrasound_setup import prepare, sharing_of
from seiche.cli import main
from seiche.domain.world import World
from seiche.errors import CaseError, FormatError, SeicheError
from seiche.ultrasound import Arc, Emitter, Grid, Medium, Sensor, Source, simulate

ROOT = Path(__file__).resolve().parents[2]
BASIC = """solver = "ultrasound"
[grid]
shape = [48, 40]
spacing = "0.5 mm"
cfl = 0.3
steps = 60
[layer]
points = 6
[medium]
sound_speed = "1500 m/s"
density = "1000 kg/m^3"
[[source]]
kind = "arc"
position = ["-8 mm", "0 mm"]
focus = ["2 mm", "0 mm"]
radius = "10 mm"
diameter = "8 mm"
frequency = "500 kHz"
amplitude = "60 kPa"
[record]
points = [["0 mm", "1 mm"]]
frequencies = ["500 kHz"]
periods = 1
maps = ["p_max_all"]
"""


def case(folder: Path, text: str = BASIC) -> Path:
    path = folder / "case.toml"
    path.write_text(text)
    return path


def test_page_of_the_case_file_is_that_of_the_schema():
    stored = (ROOT / "docs" / "reference" / "ultrasound-case.md").read_text()
    message = "run: python -m seiche.case.document ultrasound > docs/reference/ultrasound-case.md"
    assert stored == page(UltrasoundCase), message


def test_a_case_gives_what_the_same_objects_give(tmp_path):
    found = load(case(tmp_path)).run(visible=False)
    period = 20  # steps: the greatest whole number for which the Courant number is not above 0.3
    grid = Grid((48, 40), 0.5e-3, 1 / 5e5 / period, 60)
    t = np.arange(60) * grid.time_step
    tone = 60e3 * np.sin(2 * np.pi * 5e5 * t) * np.minimum(1, 5e5 * t / 3)
    arc = Arc((-8e-3, 0.0), (2e-3, 0.0), 10e-3, 8e-3)
    wanted = simulate(
        grid,
        Medium(1500.0),
        Source(emitters=(Emitter(arc, tone),)),
        Sensor(positions=[[0.0, 1e-3]], record=("p", "p_max_all"), frequencies=(5e5,), frequency_window=(40, 60)),
        pml_size=6,
    )
    with h5py.File(tmp_path / "out" / "result.h5") as file:
        for name, values in wanted.items():
            np.testing.assert_allclose(file[name][()], values, rtol=1e-5, atol=1e-5 * np.abs(values).max())
            assert file[name].attrs["unit"] == ("rad" if name == "p_phase" else "Pa")
        np.testing.assert_allclose(file["x"], grid.positions("x"))
        assert file.attrs["time_step"] == grid.time_step
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["details"]["greatest_p_amplitude"]["value"] == pytest.approx(wanted["p_amplitude"].max(), rel=1e-4)
    assert summary == json.loads(json.dumps(found.summary))


def test_commands_check_and_run(tmp_path, capsys):
    path = case(tmp_path)
    assert main(["check", str(path)]) == 0
    text = capsys.readouterr().out
    assert "6.00 points per wavelength, phase error in time up to 0 rad" in text
    assert "any time step is stable" in text
    assert "B a point" in text
    assert not (tmp_path / "out").exists()
    assert main(["run", str(path), "--output", str(tmp_path / "there"), "--set", "output.picture=field.svg"]) == 0
    assert "greatest p_amplitude: " in capsys.readouterr().out
    assert sorted(file.name for file in (tmp_path / "there").iterdir()) == ["field.svg", "result.h5", "summary.json"]


def test_contrast_is_advised_against_by_the_check_and_noted_by_the_run(tmp_path, capsys):
    text = BASIC.replace("steps = 60", "steps = 40").replace("cfl = 0.3", "cfl = 0.5").replace("periods = 1\n", "")
    text = text.replace('frequencies = ["500 kHz"]\n', "")
    text += '[[medium.region]]\nkind = "box"\nmaterial = "cortical bone"\n'
    text += 'lower = ["4 mm", "-9 mm"]\nupper = ["8 mm", "9 mm"]\n'
    path = case(tmp_path, text)
    assert main(["check", str(path)]) == 0
    assert "advice: scheme exact: waves of 5e+05 Hz that cross the grid are off by up to" in capsys.readouterr().out
    assert main(["run", str(path)]) == 0
    assert "seiche: note: scheme exact: waves of 5e+05 Hz" in capsys.readouterr().err


def test_check_for_several_ranks_tells_work_error_and_memory(tmp_path, capsys):
    text = BASIC.replace("[48, 40]", "[96, 80]").replace('points = [["0 mm", "1 mm"]]\n', "")
    path = case(tmp_path, text)
    assert main(["check", str(path), "--ranks", "4", "--set", "run.overlap=8"]) == 0
    text = capsys.readouterr().out
    assert "40 x 80 points with overlaps of 8, 1.67 times the work of one" in text
    assert re.search(r"error of ranks at 5e\+05 Hz +\d\.\de-0[34] of the field after 3 cuts", text)
    assert "of each of 4 ranks" in text
    assert main(["check", str(path), "--ranks", "3", "--set", "run.basis=global"]) == 0
    text = capsys.readouterr().out
    assert "3 ranks" in text
    assert "32 x 80 points, transforms of the whole grid: no error" in text
    assert main(["check", str(path), "--ranks", "40"]) == 0  # pieces would be too thin, so that slabs are taken
    text = capsys.readouterr().out
    assert "40 ranks" in text and "transforms of the whole grid" in text
    assert main(["check", str(path), "--ranks", "64"]) == 2
    words = "basis: 96x80 points have no slabs for 64 ranks"
    assert capsys.readouterr().err == f"seiche: error: {path}: {words}\n"
    assert main(["check", str(path), "--ranks", "64", "--set", "run.basis=local"]) == 2
    words = "split: 96x80 points cannot be cut for 64 ranks with overlap 12"
    assert capsys.readouterr().err == f"seiche: error: {path}: {words}\n"


def test_overlap_is_as_narrow_as_keeps_the_error_that_is_asked_for(tmp_path, capsys):
    """Six points a wavelength, one cut: the error is predicted to fall with the overlap."""
    text = BASIC.replace("[48, 40]", "[96, 80]").replace('points = [["0 mm", "1 mm"]]\n', "")
    path, widths = case(tmp_path, text), []
    for error in (1e-1, 1e-3, 1e-4):
        sharing = sharing_of(prepare(path, [f"run.error={error}"]), 2)
        assert sharing.basis == "auto"
        widths.append(sharing.overlap)
        assert main(["check", str(path), "--ranks", "2", "--set", f"run.error={error}"]) == 0
        said = capsys.readouterr().out
        assert f"overlaps of {sharing.overlap}," in said
        told = float(said.partition("error of ranks")[2].split()[3])
        assert told <= 1.05 * error
    assert widths == sorted(set(widths))
    assert sharing_of(prepare(path), 2).overlap == 12
    assert sharing_of(prepare(path, ["run.overlap=8"]), 2).overlap == 8
    assert sharing_of(prepare(path, ["run.split=[1, 2]"]), 2).split == (1, 2)
    assert sharing_of(prepare(path, ["run.error=1e-12"]), 2).basis == "global"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["run.error=1e-12", "run.basis=local"], "run.error: 1e-12 is not kept by any overlap of 2 ranks, the widest"),
        (["run.split=[2, 1]", "run.basis=global"], "run.split: (2, 1) goes with the local basis; the global one has"),
        (["run.error=0.1", "run.overlap=8"], "run: give at most one of overlap and error; both are given"),
        (["run.split=[0, 2]"], "run.split[0]: 0"),
        (["run.error=2"], "run.error: 2"),
    ],
)
def test_sharing_that_cannot_be_is_one_line(changes, words, tmp_path, capsys):
    text = BASIC.replace("[48, 40]", "[96, 80]").replace('points = [["0 mm", "1 mm"]]\n', "")
    path = case(tmp_path, text)
    arguments = [word for one in changes for word in ("--set", one)]
    assert main(["check", str(path), "--ranks", "2", *arguments]) == 2
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1


def test_error_of_ranks_needs_a_frequency(tmp_path):
    text = BASIC.partition("[[source]]")[0] + '[[source]]\nkind = "initial-ball"\ncenter = ["0 mm", "0 mm"]\n'
    text += 'radius = "2 mm"\npressure = "1 kPa"\n[record]\nmaps = ["p_max_all"]\n'
    with pytest.raises(
        CaseError, match=r"run\.error: no source has a frequency from which the error could be predicted"
    ):
        sharing_of(prepare(case(tmp_path, text), ["run.error=1e-3"]), 2)


ONE_RANK = [
    (
        ["record.points=[]", "run.scheme=local4", "run.basis=local"],
        'basis: the local4 scheme has no local basis; take "global"',
    ),
    (
        ["record.points=[]", "run.scheme=separable", "run.basis=local"],
        'basis: the separable scheme has no local basis; take "global"',
    ),
    (["run.scheme=exact"], "sensor.positions: sensors between points do not go with several ranks; use a mask"),
]


@pytest.mark.parametrize(("changes", "words"), ONE_RANK, ids=["local4", "separable", "points"])
def test_check_refuses_for_several_ranks_what_a_run_on_them_refuses(changes, words, tmp_path, capsys):
    path = case(tmp_path)
    arguments = [word for one in changes for word in ("--set", one)]
    assert main(["check", str(path), *arguments]) == 0
    capsys.readouterr()
    assert main(["check", str(path), "--ranks", "2", *arguments]) == 2
    assert capsys.readouterr().err == f"seiche: error: {path}: {words}\n"
    with pytest.raises(CaseError) as caught:
        load(path, overrides=changes, world=World(0, 2, 0, 2))
    assert str(caught.value) == f"{path}: {words}"


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


def test_ball_of_pressure_is_seen_by_a_ring_and_pictured(tmp_path):
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
    found = load(case(tmp_path, text)).run(visible=False)
    place = found.summary["details"]["greatest_image"]["place_m"]
    assert np.hypot(place[0] - 1e-3, place[1] + 1e-3) < 1.3e-3
    assert found.summary["details"]["greatest_image"]["value"] == pytest.approx(1000.0, rel=0.1)
    assert (tmp_path / "out" / "image.png").stat().st_size > 1000


def test_heat_and_dose_follow_from_the_amplitude(tmp_path):
    text = BASIC.replace("[medium]", "[medium]\nalpha_power = 2.0\nalpha_coeff = 4.0")
    text = text.replace("cfl = 0.3", "cfl = 0.1") + '[heat]\nduration = "2 s"\nconductivity = "0 W/m/K"\n'
    found = load(case(tmp_path, text)).run(visible=False)
    amplitude = found.arrays["p_amplitude"][0]
    alpha = 4.0 * 0.25 * 100 / (20 * np.log10(np.e))
    rise = 2 * alpha * amplitude**2 / (2 * 1000 * 1500) * 2.0 / (1000 * 3600)
    np.testing.assert_allclose(found.arrays["temperature"] - 37.0, rise, rtol=1e-5, atol=1e-9)


def test_a_burst_ends_and_tones_of_one_kind_act_as_an_array(tmp_path):
    second = BASIC.partition("[[source]]")[2].partition("[record]")[0].replace('"0 mm"]', '"2 mm"]')
    text = BASIC.replace("[record]", f'delay = "0.3 us"\ncycles = 2\n[[source]]{second}cycles = 2\n[record]')
    setup = prepare(case(tmp_path, text))
    (source,) = setup.problem.sources
    assert source.samples.shape[1] == source.points.size
    period = 1 / 5e5 / setup.problem.time_step
    assert source.steps == pytest.approx(2 * period + 0.3e-6 / setup.problem.time_step, abs=2.5)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (
            'solver = "ultrasound"',
            'solver = "ultrasond"',
            'solver: "ultrasond" is not known; expected "flow", "blood", "ultrasound" or',
        ),
        ("[layer]", "[lair]", "lair: unknown key"),
        ("shape = [48, 40]", "shape = [48, 1]", "grid.shape: (48, 1) has an axis of less than 2 points"),
        ("shape = [48, 40]", "shape = [48.5, 40]", "grid.shape[0]: 48.5 is not a whole number"),
        ("cfl = 0.3", 'cfl = 0.3\ntime_step = "1 us"', "grid: give at most one of cfl and time_step; both are given"),
        ('sound_speed = "1500 m/s"\n', "", "medium.sound_speed: is missing; give it, a material or a file"),
        ('"500 kHz"\namp', '"1600 kHz"\namp', "source[0].frequency: 1.6e+06 Hz has 1.88 points per wavelength where"),
        ('["-8 mm", "0 mm"]', '["-8 mm"]', "source[0].position: 1 coordinates on a grid of 2 axes"),
        ('["-8 mm", "0 mm"]', '["-28 mm", "0 mm"]', "source.emitters[0]: a Arc does not lie inside the grid"),
        ('"arc"', '"bowl"', "source[0]: kind bowl needs a grid of 2 axes"),
        ('"-8 mm"', '"-8 ms"', 'source[0].position: "-8 ms" is a time; expected a length such as "0.1 mm"'),
        ('"8 mm"', '"28 mm"', "source.emitters[0]: arc: diameter 0.028 m is not between 0 and twice the radius 0.01 m"),
        ('["0 mm", "1 mm"]', '["0 mm", "11 mm"]', "sensor.positions: a position lies outside the grid"),
        ("periods = 1", "periods = 9", "record.periods: 9 periods of 500000 Hz are 180 steps, of 60 in all"),
        ("points = 6", "points = 21", "pml_size: 21 along y is not between 0 and half of 40 points"),
        ("[record]", "[heat]\nduration = '1 s'\n[record]", "heat: needs a medium that absorbs; medium.alpha_power is"),
        ("[record]", "[image]\n[record]", "image: needs record.ring, which is missing"),
        (
            "[medium]",
            "[medium]\nalpha_power = 1.0\nalpha_coeff = 0.5",
            "alpha_power: 1 is too near 1, where the dispersion",
        ),
        (
            "[medium]",
            "[run]\nscheme = 'separable'\n[medium]",
            "grid: a time step of 2.8e-07 s is unstable in this medium; the longest stable step is 2.033e-07 s",
        ),
        ("[medium]", '[medium]\nfile = "none.npz"', "none.npz: whole file: cannot be read: No such file or directory"),
        (
            "[record]",
            '[[medium.region]]\nkind = "ball"\ncenter = ["90 mm", "0 mm"]\nradius = "1 mm"\n[record]',
            "medium.region[0]: the ball holds no point of the grid",
        ),
        (
            "[record]",
            '[[medium.region]]\nkind = "shell"\ncenter = ["0 mm", "0 mm"]\ninner = "2 mm"\nouter = "1 mm"\n[record]',
            "medium.region[0]: inner radius 0.002 m is not less than the outer one 0.001 m",
        ),
    ],
)
def test_what_is_wrong_with_a_case_is_one_line(before, after, words, tmp_path, capsys):
    assert before in BASIC
    text = BASIC.replace(before, after, 1)
    if "kind bowl" in words:
        words = "source[0]: kind bowl needs a grid of 3 axes, not 2"
    if "separable" in after:
        text = text.replace("cfl = 0.3", 'time_step = "0.28 us"').replace("steps = 60", "steps = 90")
    assert main(["run", str(case(tmp_path, text))]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert words in message


@pytest.mark.parametrize("option", [["--restart", "a"], ["--ranks-info"]])
def test_options_of_other_solvers_are_refused(option, tmp_path, capsys):
    assert main(["run", str(case(tmp_path)), *option]) == 2
    assert f'{option[0]}: goes not with solver = "ultrasound"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"nonsense", "not a NumPy file of numbers"),
        (b"", "not a NumPy file of numbers"),
        (np.zeros((3, 3)), "shape (3, 3) is not the grid's (48, 40)"),
        (np.full((48, 40), np.nan), "not every value is a finite number"),
        (np.array(["bone"]), "not an array of numbers"),
    ],
)
def test_broken_files_of_arrays_are_one_line(content, words, tmp_path):
    path = tmp_path / "head.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, content)
    with pytest.raises(FormatError) as caught:
        prepare(case(tmp_path, BASIC + '[medium.ct]\nfile = "head.npy"\n'))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


VALUES: Any = st.one_of(
    st.integers(-3, 60),
    st.floats(allow_nan=True),
    st.text(max_size=5),
    st.booleans(),
    st.just("3 mm"),
    st.lists(st.sampled_from(["1 mm", "-2 mm", 3, "x"]), max_size=4),
)
KEYS = [
    *("grid.shape", "grid.spacing", "grid.cfl", "grid.duration", "grid.steps", "layer.points", "layer.strength"),
    *("medium.sound_speed", "medium.density", "medium.BonA", "medium.alpha_coeff", "medium.alpha_power"),
    *("medium.material", "medium.file", "medium.region", "source", "record.points", "record.ring", "record.maps"),
    *("record.frequencies", "record.periods", "record.start", "heat", "image", "run.scheme", "output.picture"),
]


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(KEYS), VALUES, min_size=1, max_size=3))
def test_fuzzed_cases_are_refused_in_one_line_or_accepted(tmp_path_factory, changes):
    import tomllib

    from seiche.case.load import check_tables

    data = tomllib.loads(BASIC)
    for key, value in changes.items():
        table, _, name = key.rpartition(".")
        (data.setdefault(table, {}) if table else data)[name] = value
    try:
        checked = check_tables(data, "case.toml", UltrasoundCase)
        if np.prod([max(1, n) for n in checked.grid.shape]) < 4000 and (checked.grid.steps or 999) < 1000:
            from seiche.case.ultrasound_setup import _setup

            _setup(checked, Path("case.toml"))
    except SeicheError as error:
        assert "\n" not in str(error)


def test_the_examples_are_sound_cases_and_the_photoacoustic_one_finds_its_discs(tmp_path):
    with pytest.raises(CaseError, match="unstable"):
        prepare(ROOT / "examples" / "skull-focus" / "case.toml", ["grid.cfl=0.5"])
    assert prepare(ROOT / "examples" / "skull-focus" / "case.toml").notes == ()
    large = ["grid.shape=[108, 72, 72]", "grid.spacing=1.05 mm", "layer.points=8"]
    assert prepare(ROOT / "examples" / "skull-focus" / "case-3d.toml", large).problem.dimensions == 3
    found = load(ROOT / "examples" / "photoacoustic" / "case.toml", output=tmp_path).run(visible=False)
    assert found.summary["details"]["greatest_image"]["value"] == pytest.approx(2000.0, rel=0.05)


def test_skull_focus_lies_behind_the_bone(tmp_path):
    """A third of the resolution in time and space: the field is focused on the axis, and the bone is the warmest."""
    coarse = ["grid.shape=[144, 108]", "grid.spacing=0.8 mm", "layer.points=10"]
    found = load(ROOT / "examples" / "skull-focus" / "case.toml", overrides=coarse, output=tmp_path).run(visible=False)
    amplitude = found.arrays["p_amplitude"][0]
    grid = Grid((144, 108), 0.8e-3)
    x, y = grid.positions("x"), grid.positions("y")
    brain = amplitude[np.ix_(x > -5e-3, np.abs(y) < 30e-3)]
    place = np.unravel_index(int(np.argmax(brain)), brain.shape)
    assert abs(x[x > -5e-3][place[0]] - 15e-3) < 8e-3
    assert abs(y[np.abs(y) < 30e-3][place[1]]) < 1e-3
    hottest = found.summary["details"]["greatest_temperature"]
    assert 37.5 < hottest["value"] < 60.0
    assert 66e-3 < np.hypot(hottest["place_m"][0] - 60e-3, hottest["place_m"][1]) < 76e-3
