# SPDX-License-Identifier: BSD-3-Clause
"""Axisymmetric cases: run, restart, records, heat, focus, check, and messages about impossible keys."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from seiche.case.load import read_source
from seiche.case.loading import load, prepare
from seiche.case.ultrasound.check import describe
from seiche.case.ultrasound.regions import Filled, average_regions
from seiche.case.ultrasound.schema import BoxRegion
from seiche.case.ultrasound.setup import check_limits
from seiche.case.ultrasound.size import sized_setup
from seiche.errors import CaseError
from seiche.ultrasound import Grid
from seiche.ultrasound.thermal import Bioheat, Tissue
from ultrasound_cases import assert_restart_has_the_same_bits, checkpoint_of

ROOT = Path(__file__).resolve().parents[2]
BOWL = """solver = "ultrasound"
[grid]
shape = [64, 33]
spacing = "0.5 mm"
symmetry = "axisymmetric"
cfl = 0.3
steps = 240
[layer]
points = 8
[medium]
material = "water"
alpha_power = 2.0
[[medium.region]]
kind = "box"
lower = ["-2 mm", "0 mm"]
upper = ["1 mm", "20 mm"]
material = "skin"
[[source]]
kind = "bowl"
position = ["-11 mm", "0 mm"]
focus = ["1 mm", "0 mm"]
radius = "12 mm"
diameter = "16 mm"
frequency = "500 kHz"
amplitude = "60 kPa"
[record]
points = [["1 mm", "0 mm"], ["2 mm", "1.3 mm"]]
quantities = ["p", "u_non_staggered"]
frequencies = ["500 kHz"]
periods = 3
maps = ["p_max_all", "u_final"]
"""


def written(folder: Path, text: str = BOWL) -> Path:
    path = folder / "case.toml"
    path.write_text(text)
    return path


def test_a_bowl_in_a_case_has_its_focus_on_the_axis(tmp_path):
    text = BOWL + '[heat]\nduration = "1 s"\n[output]\npicture = "focus.png"\n'
    found = load(written(tmp_path, text), output=tmp_path / "out").run(visible=False)
    amplitude = found.arrays["p_amplitude"][0]
    assert amplitude.shape == (64, 33)
    focus = found.summary["details"]["foci"]["sources.0"]
    assert focus["place_m"][1] == 0.0
    assert abs(focus["place_m"][0]) < 3e-3
    x, y = ((np.arange(64) - 32) * 0.5e-3, np.arange(33) * 0.5e-3)
    half_width = np.interp(
        -focus["pressure_Pa"] / 2, -amplitude[np.argmin(np.abs(x - focus["place_m"][0])), :12], y[:12]
    )
    assert focus["width_6dB_m"] == pytest.approx(2 * half_width, rel=0.02)
    assert found.summary["details"]["symmetry"] == "axisymmetric"
    assert found.arrays["temperature"].max() > 37.0
    with h5py.File(tmp_path / "out" / "result.h5") as file:
        assert file.attrs["symmetry"] == "axisymmetric"
        np.testing.assert_allclose(file["y"][:], y, atol=1e-15)
    assert (tmp_path / "out" / "focus.png").stat().st_size > 1000


@pytest.mark.parametrize("outer_end", ["rigid", "pressure-release"])
def test_a_restarted_case_has_the_same_bits(outer_end, tmp_path):
    text = BOWL.replace("cfl = 0.3", f'cfl = 0.3\nouter_end = "{outer_end}"')
    path = written(tmp_path, text)
    assert assert_restart_has_the_same_bits(path, tmp_path, 100)


def test_a_checkpoint_of_the_other_outer_end_is_refused(tmp_path):
    checkpoint = checkpoint_of(written(tmp_path), tmp_path, 10)
    path = written(tmp_path, BOWL.replace("cfl = 0.3", 'cfl = 0.3\nouter_end = "pressure-release"'))
    with pytest.raises(CaseError, match="grid or time step"):
        load(path, output=tmp_path / "second", restart=checkpoint).run(visible=False)


def test_check_reports_the_symmetry_and_the_error_in_the_focus(tmp_path):
    lines = describe(prepare(written(tmp_path)))
    assert any(line.split() == "symmetry about the axis x, outer end rigid".split() for line in lines)
    assert any("relative error of the pressure in a focus" in line for line in lines)


def test_a_large_axisymmetric_case_is_checked_without_its_arrays(tmp_path):
    text = BOWL.replace("[64, 33]", "[2048, 1025]").replace('"0.5 mm"', '"0.25 mm"')
    setup = sized_setup(read_source(written(tmp_path, text)))
    assert setup is not None
    assert setup.problem.outer_end == "rigid"
    lines = describe(setup)
    memory = next(line for line in lines if line.startswith("memory"))
    assert 80 < float(memory.split(", ")[1].split()[0]) < 140


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[64, 33]", "[64, 33, 33]", "symmetry: an axisymmetric grid has 2 axes, not 3"),
        (
            'symmetry = "axisymmetric"',
            'outer_end = "rigid"',
            'outer_end: is only allowed with symmetry = "axisymmetric"',
        ),
        ('symmetry = "axisymmetric"', "", "needs a grid of 3 axes, not 2"),
        ('position = ["-11 mm", "0 mm"]', 'position = ["-11 mm", "1 mm"]', "are not on the axis of symmetry"),
        ("[record]", '[run]\nscheme = "local4"\n[record]', "scheme: an axisymmetric grid requires the exact scheme"),
        ('"1.3 mm"', '"-1.3 mm"', "a position lies outside the grid"),
    ],
)
def test_impossible_keys_are_refused_in_one_line(old, new, message, tmp_path):
    with pytest.raises(CaseError) as caught:
        prepare(written(tmp_path, BOWL.replace(old, new)))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_several_ranks_are_refused(tmp_path):
    with pytest.raises(CaseError, match=r"grid\.symmetry: an axisymmetric grid requires a single rank"):
        check_limits(prepare(written(tmp_path)), 2)


def test_cells_on_the_axis_lie_in_a_region_that_begins_there():
    grid = Grid((12, 10), 1e-3, symmetry="axisymmetric")
    box = BoxRegion(kind="box", lower=("-2 mm", "0 mm"), upper=("2 mm", "3.2 mm"))  # type: ignore[arg-type]
    values = {"density": 1000.0, "sound_speed": 1500.0}
    inside = {"density": 1200.0, "sound_speed": 1600.0}
    region = Filled.of(box, 2, Path(), name="medium.region[0]", properties=inside)
    found = average_regions([region], values, grid)
    middle = found["density"][6]
    np.testing.assert_array_equal(middle[:3], 1200.0)
    assert middle[3] == pytest.approx(1000 + 0.7 * 200)
    np.testing.assert_array_equal(middle[4:], 1000.0)
    assert found["staggered_density"][1][6, 0] == 1200.0


def test_heat_spreads_as_a_ball_in_three_dimensions():
    """A Gaussian of width s spreads to s^2 + 2 D t with the amplitude (s^2/(s^2 + 2 D t))^(3/2)."""
    shape, spacing, width = (81, 41), 0.25e-3, 2e-3
    tissue = Tissue(1000.0, 4000.0, 0.6)
    x, r = (np.arange(81) - 40) * spacing, np.arange(41) * spacing
    squared = x[:, None] ** 2 + r[None] ** 2
    state = Bioheat(shape, (spacing, spacing), tissue, 37 + np.exp(-squared / (2 * width**2)), symmetry="axisymmetric")
    state.run(4.0)
    spread = width**2 + 2 * 0.6 / 4e6 * 4.0
    exact = (width**2 / spread) ** 1.5 * np.exp(-squared / (2 * spread))
    assert exact.max() < 0.7
    np.testing.assert_allclose(state.temperature - 37, exact, rtol=0, atol=3e-3)


def test_heat_is_conserved_with_the_volumes_of_the_cells():
    shape, spacing = (20, 15), 1e-3
    rough = 37 + np.random.default_rng(3).random(shape)
    conductivity = 0.3 + np.random.default_rng(4).random(shape)
    state = Bioheat(shape, (spacing, spacing), Tissue(conductivity=conductivity), rough, symmetry="axisymmetric")
    volumes = np.arange(15) + 0.0
    volumes[0] = 1 / 8
    state.run(20.0)
    assert np.ptp(state.temperature) < 0.7 * np.ptp(rough)
    assert (state.temperature * volumes).sum() == pytest.approx((rough * volumes).sum(), rel=1e-12)


def test_heat_with_symmetry_needs_two_axes():
    with pytest.raises(CaseError, match="symmetry: 'axisymmetric' is not axisymmetric, with two axes"):
        Bioheat((4, 4, 4), (1e-3,) * 3, Tissue(), symmetry="axisymmetric")


def test_the_example_with_a_skull_is_a_sound_case():
    setup = prepare(ROOT / "examples" / "skull-axisymmetric" / "case.toml")
    assert setup.notes == ()
    assert setup.problem.outer_end == "rigid"
