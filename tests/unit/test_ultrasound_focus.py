# SPDX-License-Identifier: BSD-3-Clause
"""The focus of a curved source in a map of amplitudes of known form."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seiche.ultrasound import Grid
from seiche.ultrasound.focus import find_focus

LENGTH, WIDTH, PEAK = 6e-3, 2e-3, 3e5


def gaussian_beam(grid: Grid, middle: tuple[float, ...], beam: tuple[float, ...]) -> np.ndarray:
    """Return a Gaussian with half of its peak at LENGTH/2 along `beam` and at WIDTH/2 across."""
    axes = np.meshgrid(*(grid.positions(axis) for axis in grid.axes), indexing="ij")
    offset = np.stack([axis - c for axis, c in zip(axes, middle, strict=True)])
    along = np.tensordot(np.asarray(beam), offset, axes=1)
    across = np.maximum((offset**2).sum(axis=0) - along**2, 0.0)
    return PEAK * np.exp(-4 * math.log(2) * (along**2 / LENGTH**2 + across / WIDTH**2))


@pytest.mark.parametrize(
    ("shape", "beam"),
    [((120, 100), (1.0, 0.0)), ((120, 100), (0.8, -0.6)), ((64, 56, 48), (0.48, 0.6, 0.64))],
)
def test_place_pressure_and_size_are_those_of_a_gaussian_along_any_beam(shape, beam):
    grid = Grid(shape, 0.25e-3)
    middle = tuple(0.5e-3 for _ in shape)
    source = tuple(c - 30e-3 * b for c, b in zip(middle, beam, strict=True))
    focus = find_focus(gaussian_beam(grid, middle, beam), grid, source, middle)
    assert focus.position == pytest.approx(middle)
    assert focus.pressure == pytest.approx(PEAK)
    assert focus.length == pytest.approx(LENGTH, rel=0.02)
    assert focus.width == pytest.approx(WIDTH, rel=0.02)
    ellipse = {2: math.pi / 4 * LENGTH * WIDTH, 3: math.pi / 6 * LENGTH * WIDTH**2}
    assert focus.size == pytest.approx(ellipse[len(shape)], rel=0.05)  # whole cells are counted


def test_the_volume_about_an_axis_is_that_of_the_rotated_region():
    grid = Grid((120, 40), 0.1e-3, symmetry="axisymmetric")
    focus = find_focus(gaussian_beam(grid, (0.5e-3, 0.0), (1.0, 0.0)), grid, (-30e-3, 0.0), (0.5e-3, 0.0))
    assert focus.size == pytest.approx(math.pi / 6 * LENGTH * WIDTH**2, rel=0.05)


def test_larger_amplitudes_in_front_of_the_bone_are_not_the_focus():
    grid = Grid((120, 100), 0.25e-3)
    values = gaussian_beam(grid, (2e-3, 0.0), (1.0, 0.0)) + 2 * gaussian_beam(grid, (-11e-3, 0.0), (0.0, 1.0))
    focus = find_focus(values, grid, (-26e-3, 0.0), (4e-3, 0.0))
    assert focus.position == pytest.approx((2e-3, 0.0))
    assert focus.pressure == pytest.approx(PEAK, rel=1e-3)


def test_a_field_that_decays_through_the_region_has_no_focus_and_a_wide_one_no_length():
    grid = Grid((120, 100), 0.25e-3)
    decaying = np.exp(-grid.positions("x")[:, None] / 5e-3) * (1 + 0 * grid.positions("y"))
    decaying -= 1e3 * np.abs(grid.positions("y"))
    assert find_focus(decaying, grid, (-14e-3, 0.0), (0.0, 0.0)) is None
    focus = find_focus(gaussian_beam(grid, (13e-3, 0.0), (1.0, 0.0)), grid, (-12e-3, 0.0), (12e-3, 0.0))
    assert focus.length is None
    assert focus.size is None
    assert focus.width == pytest.approx(WIDTH, rel=0.02)


def test_the_focus_is_the_largest_local_maximum_of_the_region_also_at_the_end_of_the_grid():
    from scipy.ndimage import maximum_filter

    grid = Grid((40, 30), 1e-3)
    for number in range(20):
        rng = np.random.default_rng(number)
        values, middle = rng.uniform(1.0, 2.0, grid.shape), (rng.uniform(-20e-3, 20e-3), 14e-3)
        squares = sum(np.ix_(*((grid.positions(a) - c) ** 2 for a, c in zip(grid.axes, middle, strict=True))))
        peaks = np.where((squares <= (20e-3 / 4) ** 2) & (values >= maximum_filter(values, size=3)), values, 0.0)
        focus = find_focus(values, grid, (middle[0] - 20e-3, middle[1]), middle)
        assert (focus.pressure if focus else 0.0) == peaks.max()
