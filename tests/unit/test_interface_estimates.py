# SPDX-License-Identifier: BSD-3-Clause
"""Estimates of interfaces that are stairs of points, of fitted qualities, and of frequencies outside their band."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seiche.case.kinds import kind_of
from seiche.case.load import read_source
from seiche.case.ultrasound.size import MAX_CREATED_POINTS
from seiche.case.waves.estimates import quality_error
from seiche.solver import Estimate
from ultrasound_cases import BASIC
from waves_cases import BLOCK, FORCE, SOIL

STAIRS, QUALITY = "relative error of waves at interfaces", "relative error of 1/Q"
BALL = '[[medium.region]]\nkind = "ball"\ncenter = ["2 mm", "0 mm"]\nradius = "4 mm"\n'
DENSE = 'sound_speed = "1900 m/s"\ndensity = "1400 kg/m^3"\n'


def estimates_of(text: str, folder: Path) -> list[Estimate]:
    path = folder / "case.toml"
    path.write_text(text)
    source = read_source(path)
    kind = kind_of(source)
    return kind.estimates(kind.prepare(source))


def with_medium(text: str) -> str:
    return BASIC.replace("[[source]]", text + "[[source]]", 1)


def test_averaged_and_uniform_media_have_no_stairs(tmp_path: Path) -> None:
    for text in (BASIC, with_medium(BALL + DENSE)):
        assert STAIRS not in {item.name for item in estimates_of(text, tmp_path)}


@pytest.mark.parametrize(("spacing", "error"), [("0.75 mm", 0.145), ("0.5 mm", 0.106), ("0.375 mm", 0.076)])
def test_the_error_of_stairs_is_that_of_a_fluid_cylinder(spacing: str, error: float, tmp_path: Path) -> None:
    """L2 errors of a cylinder of this medium in water, at 4, 6 and 8 points per wavelength."""
    text = with_medium("average = false\n" + BALL + DENSE).replace('spacing = "0.5 mm"', f'spacing = "{spacing}"')
    (found,) = [item for item in estimates_of(text, tmp_path) if item.name == STAIRS]
    assert found.value == pytest.approx(error, rel=0.07)
    assert found.violated == (error > 0.1)
    assert found.remedy.endswith("or medium.average = true")


def test_stairs_of_files_and_of_relaxation_are_named(tmp_path: Path) -> None:
    speed = np.full((48, 40), 1500.0)
    speed[24:] = 1900.0
    np.savez(tmp_path / "medium.npz", sound_speed=speed, density=np.where(speed > 1600, 1400.0, 1000.0))
    uniform = 'sound_speed = "1500 m/s"\ndensity = "1000 kg/m^3"\n'
    losses = 'alpha_coeff = 0.5\nalpha_power = 1.1\nalpha_mode = "relaxation"\n'
    for text, cause in (
        (BASIC.replace(uniform, 'file = "medium.npz"\n'), "medium.file"),
        (with_medium(losses + BALL + DENSE), 'medium.alpha_mode = "relaxation"'),
    ):
        (found,) = [item for item in estimates_of(text, tmp_path) if item.name == STAIRS]
        assert found.value == pytest.approx(0.102, abs=0.01)
        assert f"since {cause} has one medium for each point; use a spacing below 0.0004" in str(found.warning)


def test_stairs_of_a_sized_grid_are_those_of_the_parts(tmp_path: Path) -> None:
    text = with_medium("average = false\n" + BALL + DENSE).replace("[48, 40]", "[1600, 1600]")
    assert 1600**2 > MAX_CREATED_POINTS
    (found,) = [item for item in estimates_of(text, tmp_path) if item.name == STAIRS]
    assert found.value == pytest.approx(0.102, abs=0.01)


def waves_with(band: str, mechanisms: int = 3) -> str:
    table = f"[attenuation]\nband = {band}\nmechanisms = {mechanisms}\n"
    return BLOCK + 'size = "5 m"\n' + SOIL + "qp = 50.0\nqs = 20.0\n" + table + FORCE + "[time]\nsteps = 2\n"


def test_qualities_are_followed_in_the_band_and_lost_outside_it(tmp_path: Path) -> None:
    inside = {item.where: item for item in estimates_of(waves_with('["20 Hz", "800 Hz"]'), tmp_path)}
    assert inside["attenuation.band"].value < 0.1 and not inside["attenuation.band"].violated
    (peak,) = [item for where, item in inside.items() if where.endswith("the peak frequency")]
    assert peak.value < 0.1 and not peak.violated
    outside = [item for item in estimates_of(waves_with('["1 Hz", "10 Hz"]'), tmp_path) if item.name == QUALITY]
    (peak,) = [item for item in outside if item.where.endswith("the peak frequency")]
    assert peak.violated and "outside attenuation.band, 1 to 10 Hz" in str(peak.warning)
    single = [item for item in estimates_of(waves_with('["1 Hz", "1000 Hz"]', 1), tmp_path) if item.name == QUALITY]
    assert single[0].violated and "use more attenuation.mechanisms" in str(single[0].warning)


def test_far_above_the_band_the_loss_falls_with_the_frequency() -> None:
    errors = [quality_error([1000.0], (1.0, 10.0), 3, np.array([f])) for f in (1e3, 1e4)]
    assert 1 - errors[1] == pytest.approx((1 - errors[0]) / 10, rel=0.01)
