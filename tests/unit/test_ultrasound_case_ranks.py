# SPDX-License-Identifier: BSD-3-Clause
"""Output of `seiche check` for ultrasound on several ranks: work, error, memory, and unsupported cases."""

from __future__ import annotations

import re

import numpy as np
import pytest

from seiche.case.loading import load, prepare
from seiche.case.ultrasound.setup import decompose, error_of_ranks, local_parts
from seiche.cli import main
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.ultrasound.crossing import crossing_error
from ultrasound_cases import BASIC, case


def test_check_for_several_ranks_tells_work_error_and_memory(tmp_path, capsys):
    text = BASIC.replace("[48, 40]", "[96, 80]").replace('points = [["0 mm", "1 mm"]]\n', "")
    path = case(tmp_path, text)
    assert main(["check", str(path), "--ranks", "4", "--set", "run.overlap=8"]) == 0
    text = capsys.readouterr().out
    assert "40 x 80 points with overlaps of 8, 1.67 times the work of one" in text
    assert re.search(r"error of ranks at 5e\+05 Hz +\d\.\de-0[34] of the field after 3 cuts", text)
    assert "on each of 4 ranks" in text
    # On a GPU 38 points, twice a prime, become 40.
    assert main(["check", str(path), "--ranks", "4", "--set", "run.overlap=7", "--set", "run.device=cuda"]) == 0
    message = capsys.readouterr().out
    assert "40 x 80 points with overlaps of 8 (7 requested; widened for the transforms), 1.67 times" in message
    assert (
        re.search(r"error of ranks at 5e\+05 Hz.*", message)[0] == re.search(r"error of ranks at 5e\+05 Hz.*", text)[0]
    )  # type: ignore[index]
    assert main(["check", str(path), "--ranks", "3", "--set", "run.basis=global"]) == 0
    text = capsys.readouterr().out
    assert "3 ranks" in text
    assert "32 x 80 points, transforms of the whole grid, exact" in text
    assert main(["check", str(path), "--ranks", "40"]) == 0  # pieces would be too thin, so that slabs are taken
    text = capsys.readouterr().out
    assert "40 ranks" in text and "transforms of the whole grid" in text
    assert main(["check", str(path), "--ranks", "64"]) == 2
    words = "basis: 96x80 points cannot be cut into slabs for 64 ranks; use fewer"
    assert capsys.readouterr().err == f"seiche: error: {path}: {words}\n"
    assert main(["check", str(path), "--ranks", "64", "--set", "run.basis=local"]) == 2
    words = "split: 96x80 points cannot be cut for 64 ranks with overlap 12; use fewer ranks or a smaller overlap"
    assert capsys.readouterr().err == f"seiche: error: {path}: {words}\n"


def test_overlap_is_as_narrow_as_keeps_the_error_that_is_requested(tmp_path, capsys):
    """Six points a wavelength, one cut: the error is predicted to fall with the overlap."""
    text = BASIC.replace("[48, 40]", "[96, 80]").replace('points = [["0 mm", "1 mm"]]\n', "")
    path, widths = case(tmp_path, text.replace("= 60", "= 400")), []
    for error in (1e-1, 1e-3, 2e-4):
        decomposition = decompose(prepare(path, [f"run.error={error}"]), 2)
        assert decomposition.basis == "auto"
        widths.append(decomposition.overlap)
        assert main(["check", str(path), "--ranks", "2", "--set", f"run.error={error}"]) == 0
        output = capsys.readouterr().out
        assert f"overlaps of {decomposition.overlap}," in output
        message = float(output.partition("error of ranks")[2].split()[3])
        assert message <= 1.05 * error  # two digits are printed
    assert widths == sorted(set(widths))
    assert decompose(prepare(path), 2).overlap == 12
    assert decompose(prepare(path, ["run.overlap=8"]), 2).overlap == 8
    assert decompose(prepare(path, ["run.split=[1, 2]"]), 2).split == (1, 2)
    assert decompose(prepare(path, ["run.error=1e-12"]), 2).basis == "global"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            ["run.error=1e-12", "run.basis=local"],
            "run.error: 1e-12 cannot be reached with 2 ranks; the error of the widest",
        ),
        (
            ["run.split=[2, 1]", "run.basis=global"],
            "run.split: (2, 1) is only allowed with the local basis; the global",
        ),
        (["run.error=0.1", "run.overlap=8"], "run: give at most one of overlap and error; both are given"),
        (["run.split=[0, 2]"], "run.split[0]: 0"),
        (["run.error=2"], "run.error: 2"),
    ],
)
def test_an_impossible_decomposition_gives_a_one_line_error(changes, words, tmp_path, capsys):
    text = BASIC.replace("[48, 40]", "[96, 80]").replace('points = [["0 mm", "1 mm"]]\n', "")
    path = case(tmp_path, text)
    arguments = [word for one in changes for word in ("--set", one)]
    assert main(["check", str(path), "--ranks", "2", *arguments]) == 2
    output = capsys.readouterr().err
    assert words in output and output.count("\n") == 1


def test_error_of_ranks_needs_a_frequency(tmp_path):
    text = BASIC.partition("[[source]]")[0] + '[[source]]\nkind = "initial-ball"\ncenter = ["0 mm", "0 mm"]\n'
    text += 'radius = "2 mm"\npressure = "1 kPa"\n[record]\nmaps = ["p_max_all"]\n'
    with pytest.raises(CaseError, match=r"run\.error: no source has a frequency, which the prediction needs"):
        decompose(prepare(case(tmp_path, text), ["run.error=1e-3"]), 2)


ONE_RANK = [
    (
        ["record.points=[]", "run.scheme=local4", "run.basis=local"],
        'basis: the local4 scheme has no local basis; use "global"',
    ),
    (
        ["record.points=[]", "run.scheme=separable", "run.basis=local"],
        'basis: the separable scheme has no local basis; use "global"',
    ),
]


@pytest.mark.parametrize(("changes", "words"), ONE_RANK, ids=["local4", "separable"])
def test_check_rejects_for_several_ranks_what_a_run_on_them_rejects(changes, words, tmp_path, capsys):
    path = case(tmp_path)
    arguments = [word for one in changes for word in ("--set", one)]
    assert main(["check", str(path), *arguments]) == 0
    capsys.readouterr()
    assert main(["check", str(path), "--ranks", "2", *arguments]) == 2
    assert capsys.readouterr().err == f"seiche: error: {path}: {words}\n"
    with pytest.raises(CaseError) as caught:
        load(path, overrides=changes, world=World(0, 2, 0, 2))
    assert str(caught.value) == f"{path}: {words}"


def test_predicted_error_counts_the_onset_of_a_tone(tmp_path):
    """What an onset sends at few points a wavelength stays however wide overlaps are: narrower where it is slower."""
    message = {}
    text = BASIC.replace("[48, 40]", "[96, 80]").replace('points = [["0 mm", "1 mm"]]\n', "").replace("= 60", "= 400")
    for ramp in (3, 12):
        setup = prepare(case(tmp_path, text.replace('"60 kPa"', f'"60 kPa"\nramp = {ramp}')))
        for overlap in (8, 16, 24):
            parts = local_parts(setup, 2, (2, 1), overlap)
            message[ramp, overlap] = error_of_ranks(setup.problem, parts, 5e5)
    assert message[3, 24] > 2e-5 > 10 * crossing_error(6.0, 24, cfl=0.3)
    assert message[12, 24] < message[3, 24] < message[3, 16] < message[3, 8]


@pytest.mark.ranks(2)
def test_error_on_two_ranks_is_the_predicted_one_within_a_factor_of_a_few(ranks, tmp_path):
    text = BASIC.replace("[48, 40]", "[96, 80]").replace('points = [["0 mm", "1 mm"]]\n', "").replace("= 60", "= 240")
    text = text.replace('maps = ["p_max_all"]', 'maps = ["p_max_all", "p_final"]')
    path = case(tmp_path, text)
    world = World.from_mpi()
    for overlap in (8, 24):
        changes = [f"run.overlap={overlap}", "run.split=[2, 1]", "run.precision=float64", "run.basis=local"]
        setup = prepare(path, changes)
        predicted = error_of_ranks(setup.problem, local_parts(setup, 2, (2, 1), overlap), 5e5)
        both = (
            load(path, overrides=changes, output=tmp_path / "both", world=world, replace=True)
            .run(visible=False)
            .arrays["p_final"]
        )
        one = load(path, overrides=changes, output=tmp_path / f"{world.rank}", world=World.serial(), replace=True)
        expected = one.run(visible=False).arrays["p_final"]
        measured = np.linalg.norm(both - expected) / np.linalg.norm(expected)
        assert predicted / 5 < measured < 5 * predicted
