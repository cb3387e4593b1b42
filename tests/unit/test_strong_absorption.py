# SPDX-License-Identifier: BSD-3-Clause
"""Errors of strong power-law absorption are printed by every way to run a case, each with a remedy that it has."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kwave_files import write_input
from seiche.case.kinds import kind_of
from seiche.case.load import read_source
from seiche.cli import main
from seiche.dropin.program import main as stand_in
from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate
from seiche.ultrasound.advice import estimates, initial_frequencies
from seiche.ultrasound.kwave import kspaceFirstOrder
from seiche.ultrasound.power_law import power_law_errors
from seiche.ultrasound.problem import Absorption, Problem
from seiche.ultrasound.simulate import Layers, problem_of
from ultrasound_cases import BASIC

SPEED, SPACING, DT, FREQUENCY = 2800.0, 5e-4, 5e-8, 0.5e6
SHAPE, STEPS = (48, 40), 400
ATTENUATION, PHASE = "relative error of attenuation", "relative error of phase speed"
BONE: dict[str, Any] = {"alpha_coeff": 8.6, "alpha_power": 1.1}


def tone() -> np.ndarray[Any, Any]:
    time = DT * np.arange(STEPS)
    return np.sin(2 * np.pi * FREQUENCY * time) * np.hanning(STEPS)


def blob(sigma: float) -> np.ndarray[Any, Any]:
    x, y = np.meshgrid(*(SPACING * (np.arange(n) - n // 2) for n in SHAPE), indexing="ij")
    return np.exp(-(x**2 + y**2) / (2 * sigma**2))


def mask() -> np.ndarray[Any, Any]:
    result = np.zeros(SHAPE, bool)
    result[24, 20] = True
    return result


def source_of(kind: str) -> Source:
    return Source(p_mask=mask(), p=tone()) if kind == "tone" else Source(p0=blob(1e-3))


def problem(source: Source, **medium: Any) -> Problem:
    grid = Grid(SHAPE, SPACING, DT, STEPS)
    layers = Layers.of(grid, 4, 2.0, True)
    return problem_of(grid, Medium(SPEED, 1000.0, **medium), source, layers, smooth_p0=False)


def lines_of(caught: list[warnings.WarningMessage]) -> list[str]:
    return [str(item.message) for item in caught if "relative error" in str(item.message)]


def check(lines: list[str], kind: str, remedy: str) -> None:
    """Both errors are stated, with their frequency, and with the remedy."""
    suffix = " of the initial pressure" if kind == "pressure" else ""
    for name in (ATTENUATION, PHASE):
        found = [line for line in lines if name in line]
        assert found, lines
        assert all(f"Hz{suffix}: {name} -" in line and line.endswith(remedy) for line in found)


@pytest.mark.parametrize("kind", ["tone", "pressure"])
def test_simulate_warns_of_strong_absorption(kind: str) -> None:
    grid, sensor = Grid(SHAPE, SPACING, DT, 2), Sensor(mask=mask(), record=("p",))
    for medium, warned in ((BONE, True), (BONE | {"alpha_mode": "relaxation"}, False), ({}, False)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            simulate(grid, Medium(SPEED, 1000.0, **medium), source_of(kind), sensor, pml_size=4)
        assert bool(lines_of(caught)) == warned
        if warned:
            check(lines_of(caught), kind, 'use medium.alpha_mode = "relaxation"')


@pytest.mark.parametrize("kind", ["tone", "pressure"])
def test_the_interface_for_objects_of_k_wave_warns_and_accepts_the_remedy(kind: str) -> None:
    spacing = np.array([SPACING, SPACING])
    kgrid = SimpleNamespace(N=np.array(SHAPE), spacing=spacing, dt=DT, Nt=2, dim=2)
    source = SimpleNamespace(p0=blob(1e-3))
    if kind == "tone":
        source = SimpleNamespace(p_mask=mask(), p=tone()[None])
    for mode, warned in ((None, True), ("relaxation", False)):
        medium = SimpleNamespace(sound_speed=SPEED, density=None, BonA=None, alpha_mode=mode, **BONE)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kspaceFirstOrder(kgrid, medium, source, SimpleNamespace(mask=mask(), record=None), pml_size=4)
        assert bool(lines_of(caught)) == warned
        if warned:
            check(lines_of(caught), kind, 'use medium.alpha_mode = "relaxation"')


@pytest.mark.parametrize("kind", ["tone", "pressure"])
def test_the_stand_ins_warn_of_strong_absorption(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shape = (1, *SHAPE[::-1])
    sources: dict[str, Any] = {"p0_source_flag": 1, "p0_source_input": blob(1e-3).T[None]}
    if kind == "tone":
        index = np.array([[[20 * 48 + 25]]])
        sources = {"p_source_flag": STEPS, "p_source_mode": 1, "p_source_many": 0, "p_source_index": index}
        sources["p_source_input"] = tone().reshape(1, STEPS, 1)
    media = {"c0": SPEED, "c_ref": SPEED, "absorbing_flag": 1, **BONE}
    write_input(tmp_path / "in.h5", shape, dx=SPACING, dy=SPACING, dt=DT, Nt=STEPS, **media, **sources)
    arguments = ["-i", str(tmp_path / "in.h5"), "-o", str(tmp_path / "out.h5"), "--benchmark", "2"]
    assert stand_in(arguments, "kspaceFirstOrder-OMP", "cpu") == 0
    lines = [line for line in "".join(capsys.readouterr()).splitlines() if "relative error" in line]
    check(lines, kind, 'use a case file of Seiche or seiche.ultrasound.simulate with alpha_mode = "relaxation"')


@pytest.mark.parametrize("kind", ["tone", "pressure"])
def test_the_check_prints_both_errors(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = BASIC.replace('sound_speed = "1500 m/s"', 'sound_speed = "2800 m/s"\nalpha_coeff = 8.6\nalpha_power = 1.1')
    if kind == "pressure":
        head = text.partition("[[source]]")[0]
        ball = '[[source]]\nkind = "initial-ball"\ncenter = ["0 mm", "0 mm"]\nradius = "3 mm"\npressure = "1 Pa"\n'
        text = head + ball + '[record]\npoints = [["5 mm", "0 mm"]]\n'
    (tmp_path / "case.toml").write_text(text)
    assert main(["check", str(tmp_path / "case.toml")]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "use medium.alpha_mode" in line]
    check(lines, kind, 'use medium.alpha_mode = "relaxation"')


def test_the_errors_are_those_at_the_frequencies() -> None:
    expected = power_law_errors(Absorption(8.6, 1.1), SPEED, FREQUENCY)
    found = {item.name: item for item in estimates(problem(source_of("tone"), **BONE), "exact")}
    assert found[ATTENUATION].value == pytest.approx(expected.attenuation, rel=0.05)
    assert found[PHASE].value == pytest.approx(expected.speed, rel=0.05)


@pytest.mark.parametrize("sigma", [1e-3, 2e-3])
def test_frequencies_of_an_initial_pressure_are_those_of_its_wave_numbers(sigma: float) -> None:
    """Of a Gaussian, k exp(-k^2 sigma^2/2) is largest at 1/sigma, and a tenth of that at 2.76/sigma."""
    frequencies = initial_frequencies(problem(Source(p0=blob(sigma))))
    assert frequencies is not None
    step = SPEED / (40 * SPACING)  # between the frequencies of the shorter lines
    assert frequencies[0] == pytest.approx(SPEED / (2 * np.pi * sigma), abs=step)
    assert frequencies[1] == pytest.approx(2.76 * SPEED / (2 * np.pi * sigma), abs=step)
    assert initial_frequencies(problem(source_of("tone"))) is None


@pytest.mark.parametrize(("band", "violated"), [("", True), ('relaxation_band = ["20 kHz", "100 kHz"]\n', False)])
def test_relaxation_outside_its_band_is_named(band: str, violated: bool, tmp_path: Path) -> None:
    """The default band begins at 0.5 MHz, and a source of 50 kHz was damped by another law without a word."""
    losses = f'alpha_coeff = 0.5\nalpha_power = 1.1\nalpha_mode = "relaxation"\n{band}'
    text = BASIC.replace("[[source]]", losses + "[[source]]", 1).replace("500 kHz", "50 kHz")
    (tmp_path / "case.toml").write_text(text.replace(" mm", "0 mm").replace('"0.50 mm"', '"5 mm"'))
    source = read_source(tmp_path / "case.toml")
    found = {item.name: item for item in kind_of(source).estimates(kind_of(source).prepare(source))}[ATTENUATION]
    assert found.violated == violated
    assert not violated or "use a medium.relaxation_band around this frequency" in str(found.warning)
