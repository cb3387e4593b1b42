# SPDX-License-Identifier: BSD-3-Clause
"""Photoacoustic images from lines and planes of sensors, and the sound speed of the sharpest one, by exact series."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.errors import CaseError
from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate
from seiche.ultrasound.autofocus import autofocus, sharpness
from seiche.ultrasound.kspace_image import kspace_image

C, DT, TIMES = 1500.0, 2e-8, 256
DX = C * DT


def ball_series(distance: np.ndarray, width: float, times: np.ndarray) -> np.ndarray:
    """Return the exact series at distances from a ball of pressure exp(-r^2 / 2 s^2) in three dimensions."""
    r, ct = distance[..., None], C * times
    return sum((r + sign * ct) / (2 * r) * np.exp(-((r + sign * ct) ** 2) / (2 * width**2)) for sign in (1, -1))


def test_a_layer_is_reconstructed_exactly():
    depth = np.arange(TIMES) * DX
    layer = np.exp(-(((depth - 100 * DX) / (4 * DX)) ** 2))
    for sensors in ((8,), (4, 6)):
        series = np.broadcast_to(0.5 * layer, (*sensors, TIMES))
        image = kspace_image(series, 3 * DX, DT, C, padding=1)
        np.testing.assert_allclose(image, np.broadcast_to(layer, image.shape), atol=1e-13)


@pytest.mark.parametrize("periods", [(1,), (3,), (0, 2), (1, 2)])
def test_a_packet_that_varies_along_the_sensors_is_reconstructed(periods):
    """The series of p0 = f(x) cos(q.y) is the cosine integral of the spectrum of f: no other method is involved."""
    spacing, shape = 4 * DX, (16, 12)[: len(periods)]
    q = 2 * np.pi * np.array(periods) / (np.array(shape) * spacing)
    width, carrier, centre = 8 * DX, 0.9 / DX, 90 * DX
    k = np.linspace(0, np.pi / DX, 20001)
    packet = sum(np.exp(-(((k + sign * carrier) * width) ** 2) / 2) for sign in (1, -1))
    packet = packet * 0.5 * np.sqrt(2 * np.pi) * width * np.cos(k * centre)
    time = np.arange(TIMES) * DT
    signal = np.trapezoid(packet * np.cos(C * time[:, None] * np.sqrt(k**2 + q @ q)), k, axis=1) / np.pi
    phase = sum(np.ix_(*(number * np.arange(n) * spacing for number, n in zip(q, shape, strict=True))))
    depth = np.arange(TIMES) * DX
    expected = np.cos(carrier * (depth - centre)) * np.exp(-(((depth - centre) / width) ** 2) / 2)
    image = kspace_image(np.cos(phase)[..., None] * signal, spacing, DT, C, padding=1)
    assert np.abs(image - np.cos(phase)[..., None] * expected).max() < 1e-4


def missing_share(depth: float, ends: tuple[float, ...]) -> float:
    """Return the share of the directions of waves that pass beside sensors that end at +-`ends`."""
    theta, phi = (np.arange(2000) + 0.5) / 2000 * np.pi / 2, (np.arange(200) + 0.5) / 200 * np.pi / 2
    if len(ends) == 1:
        return float(np.mean(depth * np.tan(theta) > ends[0]))
    radius, weight = depth * np.tan(theta)[:, None], np.sin(theta)[:, None] / len(phi) * np.pi / 4000
    beside = (radius * np.cos(phi) > ends[0]) | (radius * np.sin(phi) > ends[1])
    return float(np.sum(beside * weight))


@pytest.mark.parametrize("ratio", [1.0, 0.75])
def test_a_ball_in_front_of_a_plane_of_sensors_lacks_the_directions_beside_the_plane(ratio):
    width, depth, n = 6 * DX, 48 * DX, 80
    spacing = 4 * DX, 4 * DX * ratio
    y, z = ((np.arange(n) - n // 2) * d for d in spacing)
    series = ball_series(np.sqrt(depth**2 + y[:, None] ** 2 + z**2), width, np.arange(TIMES) * DT)
    image = kspace_image(series, spacing, DT, C)
    x = np.arange(TIMES) * DX
    exact = np.exp(-((x - depth) ** 2 + y[:, None, None] ** 2 + z[:, None] ** 2) / (2 * width**2))
    missing = missing_share(depth, (n // 2 * spacing[0], n // 2 * spacing[1]))
    assert 0.2 < missing < 0.35
    assert image[n // 2, n // 2, 48] == pytest.approx(1 - missing, abs=0.02)
    assert np.abs(image - exact).max() < 1.2 * missing
    assert kspace_image(series, spacing, DT, C, positive=True).min() == 0.0


def test_a_simulated_line_of_sensors_gives_the_image_of_two_discs():
    spacing = 4 * DX
    grid = Grid((48, 512), spacing, 2 * DT, 600)
    x, y = np.meshgrid(np.arange(48) * spacing, grid.positions("y"), indexing="ij")
    p0 = np.zeros(grid.shape)
    for depth, across, width, pressure in ((18, -10, 2.5, 1.0), (12, 14, 3.5, 0.5)):  # lengths in spacings
        squares = (x - (depth + 8) * spacing) ** 2 + (y - across * spacing) ** 2
        p0 += pressure * np.exp(-squares / (2 * (width * spacing) ** 2))
    line = np.zeros(grid.shape, bool)
    line[8] = True
    options = {"pml_size": 8, "smooth_p0": False, "precision": "float64", "pml_inside": False}
    series = simulate(grid, Medium(C), Source(p0=p0), Sensor(mask=line), **options)["p"]
    image = kspace_image(series, spacing, 2 * DT, C)[:, ::2].T[:40]  # depths at the spacing of the grid
    assert np.abs(image - p0[8:]).max() < 0.11  # waves that pass beside the line or arrive later


def test_the_sharpest_image_of_a_ball_has_the_true_sound_speed():
    width, depth, n = 5 * DX, 50 * DX, 64
    y = (np.arange(n) - n // 2) * 4 * DX
    series = ball_series(np.sqrt(depth**2 + y[:, None] ** 2 + y**2), width, np.arange(TIMES) * DT)
    trials = np.linspace(1380.0, 1620.0, 7)
    images = {c: kspace_image(series, 4 * DX, DT, c, positive=True) for c in trials}
    for measure in ("brenner", "tenenbaum", "variance"):
        found = autofocus(images.__getitem__, trials, measure=measure)
        assert found.sound_speed == pytest.approx(C, rel=0.01), measure
        assert found.sharpness.shape == trials.shape


def test_measures_of_sharpness_are_those_of_their_definitions():
    """A ramp of slope s: Brenner (2 s)^2 a pair; Tenenbaum (2 s)^2, (8 s)^2 or (32 s)^2 an inner point."""
    for shape, sobel in (((9,), 2.0), ((9, 7), 8.0), ((9, 7, 5), 32.0)):
        ramp = np.broadcast_to(0.5 * np.arange(9.0).reshape(-1, *(1,) * (len(shape) - 1)), shape)
        inner = np.prod([n - 2 for n in shape])
        assert sharpness(ramp) == pytest.approx(7 * np.prod(shape[1:]) * 1.0)
        assert sharpness(ramp, "tenenbaum") == pytest.approx(inner * (sobel * 0.5) ** 2)
        assert sharpness(ramp, "variance") == pytest.approx(ramp.var() * ramp.size / ramp.mean())


def test_every_measure_falls_when_an_image_is_blurred():
    x = np.arange(-20.0, 21.0)
    images = [np.exp(-np.add.outer(x**2, x**2) / (2 * w**2)) / w**2 for w in (2.0, 3.0, 4.0)]
    for measure in ("brenner", "tenenbaum", "variance"):
        values = [sharpness(image, measure) for image in images]
        assert values == sorted(values, reverse=True)


def test_autofocus_interpolates_the_maximum_between_unequal_trials():
    """The Brenner sharpness of an image scaled by s is s^2 times as large; here it is a parabola about 1492."""
    image = np.zeros((5, 5))
    image[2, 2] = 1.0

    def scaled(c: float) -> np.ndarray:
        return image * np.sqrt(1 - ((c - 1492.0) / 400) ** 2)

    found = autofocus(scaled, [1400.0, 1450.0, 1480.0, 1530.0, 1600.0])
    assert found.sound_speed == pytest.approx(1492.0, rel=1e-12)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: kspace_image(np.ones(4), 1.0, 1.0, 1.0), "series: shape (4,) is not (n, times) or (n, m, times)"),
        (lambda: kspace_image(np.full((2, 4), np.nan), 1.0, 1.0, 1.0), "series: shape (2, 4) is not"),
        (lambda: kspace_image(np.ones((2, 4)), -1.0, 1.0, 1.0), "spacing: -1.0 is not one positive number"),
        (lambda: kspace_image(np.ones((2, 4)), (1.0, 2.0), 1.0, 1.0), "spacing: (1.0, 2.0) is not one positive number"),
        (lambda: kspace_image(np.ones((2, 4)), 1.0, 0.0, 1.0), "dt: 0 is not a finite number > 0"),
        (lambda: kspace_image(np.ones((2, 4)), 1.0, 1.0, np.inf), "sound_speed: inf is not a finite number > 0"),
        (lambda: kspace_image(np.ones((2, 4)), 1.0, 1.0, 1.0, padding=0), "padding: 0 is not a whole number >= 1"),
        (lambda: sharpness(np.ones((2, 9))), "image: shape (2, 9) is not one to three axes of at least 3 finite"),
        (lambda: sharpness(np.zeros((3, 3)), "variance"), "image: its mean, 0, is not positive"),
        (lambda: sharpness(np.ones((3, 3)), "entropy"), "measure: 'entropy' is not brenner, tenenbaum or variance"),
        (lambda: autofocus(lambda c: np.eye(3), [1.0, 2.0]), "sound_speeds: are not at least three numbers"),
        (lambda: autofocus(lambda c: c * np.eye(3), [1, 2, 3]), "sound_speeds: the sharpest image is at the end"),
    ],
)
def test_invalid_input_gives_a_one_line_error(act, words):
    with pytest.raises(CaseError) as caught:
        act()
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)
