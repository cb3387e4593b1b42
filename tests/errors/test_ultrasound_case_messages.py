# SPDX-License-Identifier: BSD-3-Clause
"""Ultrasound cases that are wrong: one line each, naming key or file, value and what was expected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from case_files import table_of
from seiche.case.loading import prepare
from seiche.case.ultrasound.schema import UltrasoundCase
from seiche.cli import main
from seiche.errors import FormatError, SeicheError
from ultrasound_cases import BASIC, case

#: Text of the case, its replacement, and a part of the message.
WRONG = table_of(r"""
solver = "ultrasound" | solver = "ultrasond" | solver: "ultrasond" is not known; expected "flow", "blood",
    "ultrasound" or
[layer] | [lair] | lair: unknown key
shape = [48, 40] | shape = [48, 1] | grid.shape: (48, 1) has an axis of fewer than 2 points
shape = [48, 40] | shape = [48.5, 40] | grid.shape[0]: 48.5 is not a whole number
cfl = 0.3 | cfl = 0.3\ntime_step = "1 us" | grid: give at most one of cfl and time_step; both are given
sound_speed = "1500 m/s"\n |  | medium.sound_speed: is missing; set it, or choose a material or a file
"500 kHz"\namp | "1600 kHz"\namp | source[0].frequency: 1.6e+06 Hz has 1.88 points per wavelength at
"500 kHz"\namp | "50 Hz"\namp | source[0].frequency: 50 Hz has 6e+04 points per wavelength, more than 10000; check
"1500 m/s" | "1500 mm/s" | medium.sound_speed: 1.5 m/s is not between 10 and 100000 m/s, which include all
"1500 m/s" | "1500 km/s" | medium.sound_speed: 1.5e+06 m/s is not between 10 and 100000 m/s, which include all
"1000 kg/m^3" | "1e9 kg/m^3" | medium.density: 1e+09 kg/m^3 is not between 0.001 and 100000 kg/m^3, which
cfl = 0.3 | time_step = "1 s" | grid: a time step of 1 s is a Courant number of 3e+06, not between 1e-05 and 2; check
cfl = 0.3 | cfl = 1e-6 | is a Courant number of 1e-06, not between 1e-05 and 2; check its unit and that of grid
["-8 mm", "0 mm"] | ["-8 mm"] | source[0].position: has 1 coordinates, the grid has 2 axes
["-8 mm", "0 mm"] | ["-28 mm", "0 mm"] | source.emitters[0]: a Arc does not lie inside the grid
"arc" | "bowl" | source[0]: kind bowl needs a grid of 2 axes
"-8 mm" | "-8 ms" | source[0].position: "-8 ms" is a time; expected a length such as "0.1 mm"
"8 mm" | "28 mm" | source.emitters[0]: arc: diameter 0.028 m is not between 0 and twice the radius 0.01 m
["0 mm", "1 mm"] | ["0 mm", "11 mm"] | sensor.positions: a position lies outside the grid
periods = 1 | periods = 9 | record.periods: 9 periods of 500000 Hz are 180 steps, but the run has 60
points = 6 | points = 21 | pml_size: 21 along y is not between 0 and half of 40 points
[record] | [heat]\nduration = '1 s'\n[record] | heat: needs an absorbing medium; medium.alpha_power is
[record] | [image]\n[record] | image: needs record.ring, which is missing
[medium] | [medium]\nalpha_power = 1.0\nalpha_coeff = 0.5 | alpha_power: 1 is too close to 1, where the dispersion
[medium] | [run]\nscheme = 'separable'\n[medium] | grid: a time step of 2.8e-07 s is unstable in this medium; the
    longest stable step is 2.033e-07 s
[medium] | [medium]\nalpha_coeff = 0.5 | medium: alpha_power is missing; alpha_coeff needs it
[medium] | [medium]\nalpha_mode = 'relaxation' | medium: alpha_power is missing; alpha_mode needs it
[medium] | [medium]\nfile = "none.npz" | none.npz: whole file: cannot be read: No such file or directory
[record] | [[medium.region]]\nkind = "ball"\ncenter = ["90 mm", "0 mm"]\nradius = "1 mm"\n[record] |
    medium.region[0]: the ball contains no point of the grid
[record] | [[medium.region]]\nkind = "shell"\ncenter = ["0 mm", "0 mm"]\ninner = "2 mm"\nouter = "1 mm"\n[record] |
    medium.region[0]: the inner radius 0.002 m is not less than the outer radius 0.001 m
""")


@pytest.mark.parametrize(("before", "after", "words"), WRONG)
def test_what_is_wrong_with_a_case_gives_a_one_line_error(before, after, words, tmp_path, capsys):
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


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ('folder = "."\nfile = "case.toml"', "output.file: would overwrite {}/case.toml, which the case reads"),
        ('folder = "."\nfile = "speed.npz"', "output.file: would overwrite {}/speed.npz, which the case reads"),
        ('folder = "."\nfile = "notes.txt"', "output.file: {}/notes.txt exists but is not a valid HDF5 file"),
        ('folder = "."\nsummary = "notes.txt"', "output.summary: {}/notes.txt exists but is not a valid summary"),
        ('file = "folder"', "output.file: {}/out/folder is a folder"),
        ('folder = "notes.txt"', "output.file: {}/notes.txt is not a folder"),
    ],
)
def test_outputs_replace_neither_inputs_nor_files_of_others(output, words, tmp_path, capsys):
    np.savez(tmp_path / "speed.npz", sound_speed=np.full((48, 40), 1500.0))
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "out" / "folder").mkdir(parents=True)
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    text = BASIC.replace("[medium]", '[medium]\nfile = "speed.npz"') + f"[output]\n{output}\n"
    path = case(tmp_path, text)
    assert main(["run", str(path)]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert words.format(tmp_path) in message
    assert path.read_text() == text
    assert before == {path: path.read_bytes() for path in before}


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
def test_broken_files_of_arrays_give_one_line_errors(content, words, tmp_path):
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


def test_a_picture_without_a_field_is_rejected_before_the_run(tmp_path, capsys):
    text = BASIC.replace('frequencies = ["500 kHz"]\n', "")
    path = tmp_path / "case.toml"
    path.write_text(text)
    changes = ["--set", "record.maps=[]", "--set", 'record.quantities=["p_max"]', "--set", "output.picture=field.png"]
    assert main(["check", str(path), *changes]) == 2
    assert "output.picture: no field to draw; add record.frequencies" in capsys.readouterr().err
    assert main(["check", str(path), *changes, "--set", 'record.maps=["p_final"]']) == 0


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(KEYS), VALUES, min_size=1, max_size=3))
def test_fuzzed_cases_are_rejected_in_one_line_or_accepted(tmp_path_factory, changes):
    import tomllib

    from seiche.case.load import check_tables

    data = tomllib.loads(BASIC)
    for key, value in changes.items():
        table, _, name = key.rpartition(".")
        (data.setdefault(table, {}) if table else data)[name] = value
    try:
        checked = check_tables(data, "case.toml", UltrasoundCase)
        if np.prod([max(1, n) for n in checked.grid.shape]) < 4000 and (checked.grid.steps or 999) < 1000:
            from seiche.case.ultrasound.setup import _setup

            _setup(checked, Path("case.toml"))
    except SeicheError as error:
        assert "\n" not in str(error)
