# SPDX-License-Identifier: BSD-3-Clause
"""Beams, scan lines and B-mode images against exact arrival times, exact envelopes and a simulated echo."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from seiche.errors import CaseError
from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate
from seiche.ultrasound.b_mode import decibels, envelope, log_compression, scan_convert, time_gain
from seiche.ultrasound.beamforming import delay_and_sum, focus_delays, sector_points, steering_delays, transmit_times

C, F, DT = 1540.0, 2e6, 1 / 2e6 / 12
LINEAR = np.stack([np.zeros(32), (np.arange(32) - 15.5) * 0.35e-3], axis=1)
_Y, _Z = np.meshgrid((np.arange(9) - 4) * 0.4e-3, (np.arange(7) - 3) * 0.5e-3)
MATRIX = np.stack([np.zeros(63), _Y.ravel(), _Z.ravel()], axis=1)


def pulse(time: np.ndarray) -> np.ndarray:
    return np.cos(2 * np.pi * F * time) * np.exp(-((time * F / 1.2) ** 2))


@pytest.mark.parametrize("positions", [LINEAR, MATRIX], ids=["line", "plane"])
@pytest.mark.parametrize("kind", ["steered", "focused", "diverging", "photoacoustic"])
def test_the_echo_of_a_point_is_found_where_it_is(positions, kind):
    """Every element emits after its delay; the point hears all of them and answers with the first and latest sum."""
    dimensions = positions.shape[1]
    target = np.array([14e-3, 1.5e-3, -0.8e-3][:dimensions])
    wave: dict[str, Any] = {}
    if kind == "steered":
        wave = {"direction": target}
        delays = steering_delays(positions, target, C)
        unit = target / np.linalg.norm(target)
        emitted = ((target - positions) @ unit / C + delays)[0]
        np.testing.assert_allclose((target - positions) @ unit / C + delays, emitted, rtol=1e-12)
    elif kind == "photoacoustic":
        emitted = 0.0
    else:
        focus = target if kind == "focused" else np.array([-10e-3, 0.0, 0.0][:dimensions])
        wave = {"focus": focus, "diverging": kind == "diverging"}
        delays = focus_delays(positions, focus, C, diverging=kind == "diverging")
        travel = np.linalg.norm(positions - focus, axis=1) / C
        emitted = (delays + travel)[0] if kind == "focused" else np.linalg.norm(target - focus) / C - travel.min()
        if kind == "focused":
            np.testing.assert_allclose(delays + travel, emitted, rtol=1e-12)
    if wave:
        assert delays.min() == 0.0
        assert transmit_times(target, positions, C, **wave) == pytest.approx(emitted, rel=1e-12)
    arrivals = emitted + np.linalg.norm(positions - target, axis=1) / C
    start = 2e-6
    series = pulse(start + np.arange(520) * DT - arrivals[:, None])
    points = target + np.stack(np.meshgrid(*[np.linspace(-1e-3, 1e-3, 9)] * dimensions, indexing="ij"), axis=-1)
    times = transmit_times(points, positions, C, **wave) if wave else 0.0
    image = delay_and_sum(series, positions, points, DT, C, transmit=times, start=start)
    assert image.shape == (9,) * dimensions
    assert np.unravel_index(image.argmax(), image.shape) == (4,) * dimensions
    assert image.max() == pytest.approx(1.0, abs=2e-3)


def test_weights_and_f_number_select_elements():
    series = np.arange(32.0)[:, None] * np.ones(400)  # the record of an element is its number
    points = np.array([[10e-3, LINEAR[7, 1]], [10e-3, LINEAR[20, 1]]])
    image = delay_and_sum(series, LINEAR, points, DT, C)
    np.testing.assert_allclose(image, 15.5, rtol=1e-12)
    weights = np.zeros(32)
    weights[[3, 4]] = 1.0, 3.0
    np.testing.assert_allclose(delay_and_sum(series, LINEAR, points, DT, C, apodisation=weights), 3.75, rtol=1e-12)
    narrow = delay_and_sum(series, LINEAR, points, DT, C, f_number=4.0)  # 1.25 mm to either side: 3 elements
    np.testing.assert_allclose(narrow, [7.0, 20.0], rtol=1e-12)
    assert delay_and_sum(series, LINEAR, [[1.0, 0.0]], DT, C) == pytest.approx(0.0)  # after the end of the series


@pytest.mark.parametrize("angle", [0.0, -0.35])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_simulated_array_focuses_where_its_delays_meet(angle, device):
    grid = Grid((104, 120), 0.2e-3).with_time(C, cfl=0.3, end=28e-6)
    elements = np.zeros(grid.shape, bool)
    elements[12, 25:95:2] = True
    x, y = (grid.positions(axis) for axis in grid.axes)
    positions = np.stack([x[np.nonzero(elements)[0]], y[np.nonzero(elements)[1]]], axis=1)
    focus = positions.mean(axis=0) + 12e-3 * np.array([np.cos(angle), np.sin(angle)])
    delays = np.rint(focus_delays(positions, focus, C) / grid.dt).astype(np.int64)
    signal = pulse(np.arange(200) * grid.dt - 1.2e-6)
    source = Source(p_mask=elements, p=signal, p_delays=delays)
    result = simulate(grid, Medium(C), source, Sensor(record=("p_max_all",)), pml_size=10, device=device)
    found = result["p_max_all"]
    found[:22] = 0.0  # in front of the elements
    place = np.array([axis[k] for axis, k in zip((x, y), np.unravel_index(found.argmax(), found.shape), strict=True)])
    along = np.array([np.cos(angle), np.sin(angle)])
    assert abs((place - focus) @ along) < 2.5e-3  # the maximum is in front of the focus by a part of its length
    assert abs((place - focus) @ [-along[1], along[0]]) < 0.3e-3


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_echoes_of_steered_waves_show_a_simulated_scatterer(device):
    grid = Grid((96, 96), 0.2e-3).with_time(C, cfl=0.3, end=26e-6)
    x, y = (grid.positions(axis) for axis in grid.axes)
    at = np.array([x[62], y[40]])
    density = np.full(grid.shape, 1000.0)
    density[61:64, 39:42] = 1600.0
    elements = np.zeros(grid.shape, bool)
    elements[12, 16:80] = True
    positions = np.stack([np.full(64, x[12]), y[16:80]], axis=1)
    points = np.stack(np.meshgrid(x[40:80], y[20:70], indexing="ij"), axis=-1)
    image = np.zeros(points.shape[:2])
    for angle in (-0.15, 0.0, 0.15):
        direction = np.cos(angle), np.sin(angle)
        delays = np.rint(steering_delays(positions, direction, C) / grid.dt).astype(np.int64)
        source = Source(p_mask=elements, p=pulse(np.arange(120) * grid.dt - 1e-6), p_delays=delays)
        options = {"pml_size": 10, "device": device}
        echoes = simulate(grid, Medium(C, density), source, Sensor(mask=elements), **options)["p"]
        echoes = echoes - simulate(grid, Medium(C, 1000.0), source, Sensor(mask=elements), **options)["p"]
        times = transmit_times(points, positions, C, direction=direction)
        image += delay_and_sum(echoes, positions, points, grid.dt, C, transmit=times, start=-1e-6)
    bright = envelope(image, axis=0)
    place = np.unravel_index(bright.argmax(), bright.shape)
    assert np.linalg.norm(points[place] - at) < 0.45e-3
    far = np.linalg.norm(points - at, axis=-1) > 3e-3
    assert bright[far].max() < 0.35 * bright.max()


@pytest.mark.parametrize("count", [400, 401])
@pytest.mark.parametrize("axis", [0, -1])
def test_the_envelope_of_a_tone_burst_is_that_of_its_amplitude(count, axis):
    time = (np.arange(count) - count / 2) * DT
    amplitude = np.exp(-((time * F / 4) ** 2))
    signals = np.stack([amplitude * np.cos(2 * np.pi * F * time + phase) for phase in (0.0, 0.7, 2.0)])
    found = envelope(signals.T if axis == 0 else signals, axis)
    np.testing.assert_allclose(found.T if axis == 0 else found, np.broadcast_to(amplitude, (3, count)), atol=1e-6)


def test_time_gain_undoes_the_absorption_of_echoes():
    """0.7 dB/(MHz^1.1 cm) at 2 MHz; an echo from the depth d travels 2 d = c0 t."""
    medium = Medium(C, alpha_coeff=0.7, alpha_power=1.1)
    time = 1e-6 + np.arange(50) * DT
    decay = 10 ** (-0.7 * 2**1.1 * 100 * C * time / 20)
    found = time_gain(np.stack([decay, 2 * decay]), DT, medium, 2e6, start=1e-6)
    np.testing.assert_allclose(found, [[1.0] * 50, [2.0] * 50], rtol=1e-12)


def test_compression_in_decibels_and_by_a_factor():
    amplitudes = np.array([0.0, 0.01, 0.1, 1.0, 10.0])
    np.testing.assert_allclose(decibels(amplitudes, 50.0), [-50.0, -50.0, -40.0, -20.0, 0.0], atol=1e-12)
    found = log_compression(amplitudes, 9.0)
    np.testing.assert_allclose(found, np.log10(1 + 9 * amplitudes), rtol=1e-12, atol=1e-15)
    assert log_compression(amplitudes, 9.0, normalise=True)[-1] == pytest.approx(10.0)
    assert log_compression(amplitudes, 9.0, normalise=True)[2] == pytest.approx(10 * np.log10(1.09))


def test_scan_conversion_of_a_bilinear_field_is_exact_and_empty_outside():
    angles, distances = np.linspace(-0.6, 0.5, 23), np.linspace(5e-3, 40e-3, 141)
    lines = 2.0 + angles[:, None] + 30 * distances - 10 * angles[:, None] * distances
    for image in (
        scan_convert(lines, angles, distances, spacing=0.5e-3),
        scan_convert(lines, angles, distances, shape=(60, 80)),
    ):
        angle, distance = np.arctan2(image.y, image.x[:, None]), np.hypot(image.x[:, None], image.y)
        inside = (angle >= -0.6) & (angle <= 0.5) & (distance >= 5e-3) & (distance <= 40e-3)
        expected = 2.0 + angle + 30 * distance - 10 * angle * distance
        np.testing.assert_allclose(image.values[inside], expected[inside], rtol=1e-10)
        assert np.isnan(image.values[~inside]).mean() > 0.99
        assert 0.3 < inside.mean() < 1.0
    assert image.x[-1] == pytest.approx(40e-3)
    assert image.y[0] == pytest.approx(40e-3 * np.sin(-0.6))


def test_points_of_a_sector_leave_the_origin_at_their_angles():
    points = sector_points([1e-3, 2e-3, 3e-3], [-0.3, 0.4], [0.0, 5e-3])
    assert points.shape == (2, 2, 3)
    np.testing.assert_allclose(points[:, 0], [[1e-3, 2e-3, 3e-3]] * 2)
    offset = points[1, 1] - points[1, 0]
    np.testing.assert_allclose(offset, [5e-3 * np.cos(0.4), 5e-3 * np.sin(0.4), 0.0], atol=1e-18)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: steering_delays(np.ones(3), (1, 0), C), "positions: shape (3,) is not (n, 2) or (n, 3) of finite"),
        (lambda: steering_delays(LINEAR, (0, 0), C), "direction: its length is zero"),
        (lambda: focus_delays(LINEAR, (1, 0, 0), C), "focus: shape (3,) is not 2 finite numbers"),
        (lambda: focus_delays(LINEAR, (1, 0), -1.0), "sound_speed: -1 is not a finite number > 0"),
        (lambda: transmit_times([[1, 0]], LINEAR, C), "direction, focus: exactly one of them is required"),
        (lambda: delay_and_sum(np.ones((3, 9)), LINEAR, [[1, 0]], DT, C), "series: shape (3, 9) is not (32, times)"),
        (lambda: delay_and_sum(np.ones((32, 9)), LINEAR, [1, 0, 0], DT, C), "points: shape (3,) is not (..., 2)"),
        (lambda: delay_and_sum(np.ones((32, 9)), LINEAR, [1, 0], 0.0, C), "dt: 0 is not a finite number > 0"),
        (
            lambda: delay_and_sum(np.ones((32, 9)), LINEAR, [1, 0], DT, C, apodisation=[1.0]),
            "apodisation: shape (1,) is not one finite number for each element",
        ),
        (
            lambda: delay_and_sum(np.ones((32, 9)), LINEAR, [[1, 0]], DT, C, transmit=[1.0, 2.0]),
            "transmit: shape (2,) is not one number, or that of the points (1,)",
        ),
        (lambda: envelope([1.0, np.inf]), "values: not every value is a finite number"),
        (lambda: envelope(np.ones(4), 1), "axis: 1 is not an axis of values of shape (4,)"),
        (lambda: decibels([-1.0, 2.0]), "amplitudes: are not numbers >= 0 with one above 0"),
        (lambda: log_compression([1.0], 0.0), "factor: 0 is not a finite number > 0"),
        (lambda: scan_convert(np.ones((2, 2)), [1, 0], [0, 1], spacing=1.0), "angles: are not at least two numbers"),
        (lambda: scan_convert(np.ones((2, 3)), [0, 1], [0, 1], spacing=0.1), "lines: shape (2, 3) is not (angles"),
        (lambda: scan_convert(np.ones((2, 2)), [0, 2], [0, 1], spacing=1.0), "angles, distances: must be within"),
        (lambda: scan_convert(np.ones((2, 2)), [0, 1], [0, 1]), "spacing, shape: exactly one of them is required"),
        (lambda: sector_points([0.0], [0.1], [1.0]), "origin: shape (1,) is not two or three finite numbers"),
        (lambda: time_gain(np.ones(4), DT, Medium(np.ones(3)), F), "medium: must be uniform"),
    ],
)
def test_invalid_input_gives_a_one_line_error(act, words):
    with pytest.raises(CaseError) as caught:
        act()
    assert str(caught.value).startswith(words)
