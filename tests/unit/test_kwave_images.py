# SPDX-License-Identifier: BSD-3-Clause
"""Functions around a simulation by the names of k-wave-python: arguments, orders of axes, and their meaning."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.signal import convolve2d

from seiche.errors import CaseError
from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate
from seiche.ultrasound.autofocus import sharpness as plain_sharpness
from seiche.ultrasound.b_mode import envelope
from seiche.ultrasound.kspace_image import kspace_image
from seiche.ultrasound.kwave_images import (
    TimeReversal,
    envelope_detection,
    kspaceLineRecon,
    kspacePlaneRecon,
    log_compression,
    scan_conversion,
    sharpness,
)
from seiche.ultrasound.photoacoustic import time_reversal

RNG = np.random.default_rng(3)


def test_images_have_the_depth_first_for_either_order_of_the_series():
    line, plane = RNG.normal(size=(12, 20)), RNG.normal(size=(6, 5, 20))
    expected = kspace_image(line, 1e-4, 2e-8, 1500.0).T
    np.testing.assert_array_equal(kspaceLineRecon(line.T, 1e-4, 2e-8, 1500.0), expected)
    np.testing.assert_array_equal(kspaceLineRecon(line, 1e-4, 2e-8, 1500.0, "yt", interp="*linear"), expected)
    positive = kspaceLineRecon(line.T, 1e-4, 2e-8, 1500.0, pos_cond=True)
    np.testing.assert_array_equal(positive, np.maximum(expected, 0))
    expected = np.moveaxis(kspace_image(plane, (1e-4, 2e-4), 2e-8, 1500.0), -1, 0)
    result = kspacePlaneRecon(np.moveaxis(plane, -1, 0), 1e-4, 2e-4, 2e-8, 1500.0)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(kspacePlaneRecon(plane, 1e-4, 2e-4, 2e-8, 1500.0, data_order="yzt"), expected)


def test_measures_have_the_names_of_k_wave_and_zeros_around_tenenbaums_image():
    image = RNG.uniform(size=(7, 8))
    assert sharpness(image) == sharpness(image, None) == plain_sharpness(image)
    assert sharpness(image, "NormVariance") == pytest.approx(((image - image.mean()) ** 2).sum() / image.mean())
    sobel = np.outer([1, 2, 1], [1, 0, -1])
    expected = sum((convolve2d(image, kernel) ** 2).sum() for kernel in (sobel, sobel.T))
    assert sharpness(image, "Tenenbaum") == pytest.approx(expected, rel=1e-12)


def test_scan_conversion_puts_samples_at_half_of_the_travelled_distance():
    angles, dt, c = np.linspace(-30.0, 30.0, 13), 1e-7, 1500.0
    depth = np.arange(1, 301) * c * dt / 2
    lines = np.deg2rad(angles)[:, None] + 50 * depth
    image = scan_conversion(lines, angles, (0.02, 0.03), c, dt, resolution=(81, 91))
    x, y = np.linspace(0, 0.02, 81)[:, None], np.linspace(-0.015, 0.015, 91)
    angle, distance = np.arctan2(y, x), np.hypot(x, y)
    inside = (np.abs(angle) < np.pi / 6 - 1e-9) & (distance > depth[0]) & (distance < depth[-1])
    np.testing.assert_allclose(image[inside], (angle + 50 * distance)[inside], rtol=1e-10)
    assert np.all(image[np.abs(angle) > np.pi / 6 + 1e-9] == 0)
    assert scan_conversion(lines, angles, (0.02, 0.03), c, dt).shape == (256, 256)


def test_rows_are_compressed_relative_to_their_own_maximum():
    rows = np.array([[0.1, 2.0], [0.3, 4.0]])
    expected = np.stack([top * np.log(1 + 3 * row / top) / np.log(4) for row, top in zip(rows, (2, 4), strict=True)])
    np.testing.assert_allclose(log_compression(rows, 3.0, True), expected, rtol=1e-12)
    np.testing.assert_allclose(log_compression(rows, 3.0), np.log(1 + 3 * rows) / np.log(4), rtol=1e-12)
    signals = RNG.normal(size=(3, 40))
    np.testing.assert_array_equal(envelope_detection(signals), envelope(signals))


def test_time_reversal_takes_the_objects_of_the_package():
    grid = Grid((40, 40), 1e-4, 2e-8, 150)
    mask = np.zeros(grid.shape)
    mask[4] = 1
    x = grid.positions("x")
    p0 = np.exp(-(x[:, None] ** 2 + x**2) / 9e-8)
    options = {"pml_size": 6, "pml_inside": False}
    series = simulate(grid, Medium(1500.0), Source(p0=p0), Sensor(mask=mask), smooth_p0=False, **options)["p"]
    kgrid = SimpleNamespace(N=np.array(grid.shape), spacing=np.array([1e-4, 1e-4]), dt=2e-8, Nt=150, dim=2)
    sensor = SimpleNamespace(mask=mask, recorded_pressure=series)
    image = TimeReversal(kgrid, SimpleNamespace(sound_speed=1500.0), sensor)(None, None, None, pml_size=6)
    np.testing.assert_array_equal(image, 2 * time_reversal(grid, Medium(1500.0), mask, series, **options))
    assert np.unravel_index(image.argmax(), image.shape) == (20, 20)
    without = SimpleNamespace(mask=mask)
    with pytest.raises(CaseError, match=r"sensor.recorded_pressure: is missing"):
        TimeReversal(kgrid, SimpleNamespace(sound_speed=1500.0), without)()
    with pytest.raises(CaseError, match="compensation_factor: 0 is not a finite number > 0"):
        TimeReversal(kgrid, SimpleNamespace(sound_speed=1500.0), sensor, 0.0)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: kspaceLineRecon(np.ones((4, 4)), 1, 1, 1, "tx"), "data_order: 'tx' is not 'ty' or 'yt'"),
        (lambda: kspaceLineRecon(np.ones((4, 4)), 1, 1, 1, interp="spline"), "interp: 'spline' is not nearest, linear"),
        (lambda: kspaceLineRecon(np.ones(4), 1, 1, 1), "p: shape (4,) has not the axes ty"),
        (lambda: kspacePlaneRecon(np.ones((4, 4)), 1, 1, 1, 1), "p: shape (4, 4) has not the axes tyz"),
        (lambda: sharpness(np.ones((4, 4)), "Entropy"), "mode: 'Entropy' is not Brenner, Tenenbaum, NormVariance"),
        (
            lambda: scan_conversion(np.ones((2, 4)), [0, 1], (1, 0), 1, 1),
            "image_size, resolution: are not two positive",
        ),
        (lambda: scan_conversion(np.ones((2, 4)), [0, 1, 2], (1, 1), 1, 1), "lines: shape (2, 4) is not (angles"),
    ],
)
def test_invalid_input_gives_a_one_line_error(act, words):
    with pytest.raises(CaseError) as caught:
        act()
    assert str(caught.value).startswith(words)
