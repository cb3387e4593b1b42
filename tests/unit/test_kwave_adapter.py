# SPDX-License-Identifier: BSD-3-Clause
"""Objects with the attributes of k-wave-python's, through `seiche.ultrasound.kwave`, against `simulate` and NumPy."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from seiche.errors import CaseError
from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate
from seiche.ultrasound.kwave import kspaceFirstOrder

SHAPE, STEPS, DT = (24, 21), 30, 2e-8


def objects(**change: Any) -> dict[str, SimpleNamespace]:
    """Return grid, medium, source and sensor like those of the package; `change` sets "owner__attribute"."""
    points = np.zeros(SHAPE)
    points[::6, ::5] = 1
    pressure = np.zeros(SHAPE)
    pressure[10:14, 9:12] = 1e6
    speed = np.full(SHAPE, 1500.0)
    speed[12:] = 1700.0
    result = {
        "kgrid": SimpleNamespace(N=np.array(SHAPE), spacing=np.array([1e-4, 1e-4]), dt=DT, Nt=STEPS, dim=2),
        "medium": SimpleNamespace(sound_speed=speed, density=None, alpha_coeff=None, BonA=None),
        "source": SimpleNamespace(p0=pressure),
        "sensor": SimpleNamespace(mask=points, record=None, record_start_index=1),
    }
    for name, value in change.items():
        owner, _, attribute = name.partition("__")
        setattr(result[owner], attribute, value)
    return result


def run(**change: Any) -> dict[str, np.ndarray]:
    return kspaceFirstOrder(**objects(**change), pml_size=4)


def direct(sensor: Sensor, **medium: Any) -> dict[str, np.ndarray]:
    """Return what `simulate` makes of the same problem."""
    inputs = objects()
    return simulate(
        Grid(SHAPE, 1e-4, DT, STEPS),
        Medium(inputs["medium"].sound_speed, **medium),
        Source(p0=inputs["source"].p0),
        sensor,
        pml_size=4,
        pml_inside=False,
        precision="float64",
    )


def test_initial_pressure_gives_series_and_final_field_by_default():
    result = run()
    expected = direct(Sensor(mask=objects()["sensor"].mask != 0, record=("p", "p_final")))
    assert set(result) == {"p", "p_final"}
    assert result["p"].shape == (20, STEPS)
    assert result["p_final"].shape == SHAPE
    for name, values in expected.items():
        np.testing.assert_array_equal(result[name], values)


def test_final_field_leaves_out_a_layer_inside_the_grid():
    result = kspaceFirstOrder(**objects(), pml_size=(4, 3), pml_inside=True)
    assert result["p_final"].shape == (16, 15)


def test_velocity_is_that_at_the_grid_points_and_aggregates_are_of_its_series():
    names = ["u", "ux_staggered", "ux_max", "uy_min", "ux_rms", "I_avg"]
    result = run(sensor__record=names)
    assert list(result) == ["ux", "uy", "ux_staggered", "ux_max", "uy_min", "ux_rms", "Ix_avg", "Iy_avg"]
    mask = objects()["sensor"].mask != 0
    expected = direct(Sensor(mask=mask, record=("u", "u_non_staggered", "I_avg")))
    np.testing.assert_array_equal(result["ux"], expected["ux_non_staggered"])
    np.testing.assert_array_equal(result["ux_staggered"], expected["ux"])
    np.testing.assert_array_equal(result["ux_max"], expected["ux_non_staggered"].max(axis=1))
    np.testing.assert_allclose(result["ux_rms"], np.sqrt((expected["ux_non_staggered"] ** 2).mean(axis=1)), rtol=1e-12)
    np.testing.assert_array_equal(result["Iy_avg"], expected["Iy_avg"])


@pytest.mark.parametrize("inside", [False, True])
def test_no_sensor_records_every_point_with_the_layers_as_k_wave_python_does(inside):
    inputs = objects()
    result = kspaceFirstOrder(inputs["kgrid"], inputs["medium"], inputs["source"], pml_size=4, pml_inside=inside)
    whole = SHAPE if inside else (SHAPE[0] + 8, SHAPE[1] + 8)
    assert result["p"].shape == (whole[0] * whole[1], STEPS)
    np.testing.assert_array_equal(result["p"][:, -1].reshape(whole)[4:-4, 4:-4], result["p_final"])


def test_a_uniform_array_of_exponents_counts_as_a_number():
    lossy = {"medium__alpha_coeff": 0.7, "medium__alpha_power": np.full(SHAPE, 1.5)}
    np.testing.assert_array_equal(run(**lossy)["p"], run(medium__alpha_coeff=0.7, medium__alpha_power=1.5)["p"])


def test_frequency_response_is_a_gaussian_filter_of_the_series():
    """The filter of k-Wave: its width is in per cent."""
    full = run(sensor__record=["p", "p_max"])
    result = run(sensor__record=["p", "p_max"], sensor__frequency_response=[3e6, 60.0])
    frequencies = np.fft.fftfreq(STEPS, DT)
    variance = (0.6 * 3e6 / (2 * np.sqrt(2 * np.log(2)))) ** 2
    response = np.exp(-((np.abs(frequencies) - 3e6) ** 2) / (2 * variance))
    expected = np.fft.ifft(np.fft.fft(full["p"], axis=1) * response, axis=1).real
    np.testing.assert_allclose(result["p"], expected, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_array_equal(result["p_max"], full["p_max"])


def test_directional_sensors_are_filtered_along_their_faces():
    """k-Wave multiplies the spectrum of the pressure by sin(x)/x, x = half the size times k along the face."""
    angle, size = 0.6, 3e-4
    mask = np.zeros(SHAPE)
    mask[10:14:2, 11] = 1
    directivity = SimpleNamespace(angle=np.full(SHAPE, angle), size=size, pattern="pressure")
    x, y = (np.arange(n) - n // 2 for n in SHAPE)
    smooth = 1e6 * np.exp(-(x[:, None] ** 2 + y**2) / 18.0)  # no waves of fewer than four points
    options: dict[str, Any] = {"source__p0": smooth, "sensor__mask": mask, "sensor__record": ["p"]}
    result = run(**options, sensor__directivity=directivity)["p"]
    everywhere = run(source__p0=smooth, sensor__mask=np.ones(SHAPE), sensor__record=["p"])["p"]
    fields = everywhere.T.reshape(STEPS, *SHAPE)
    kx, ky = (2 * np.pi * np.fft.fftfreq(n, 1e-4) for n in SHAPE)
    along = np.cos(angle) * ky - np.sin(angle) * kx[:, None]
    expected = np.fft.ifft2(np.fft.fft2(fields) * np.sinc(along * size / 2 / np.pi)).real[:, mask == 1].T
    assert np.abs(result - expected).max() < 1e-3 * np.abs(expected).max()
    plain = run(**options)["p"]
    assert np.abs(plain - expected).max() > 0.01 * np.abs(expected).max()


def test_sensors_with_the_pattern_of_a_gradient_are_filtered_along_their_normals():
    """k-Wave multiplies the spectrum of the pressure by the cosine of the angle to the normal, and takes real parts."""
    angles, mask = np.full(SHAPE, 0.6), np.zeros(SHAPE)
    mask[10:14:2, 11] = mask[5, 6] = 1
    angles[5, 6] = -np.pi / 2
    options: dict[str, Any] = {"sensor__mask": mask, "sensor__record": ["p"]}
    result = run(**options, sensor__directivity=SimpleNamespace(angle=angles, pattern="gradient"))["p"]
    everywhere = run(sensor__mask=None, sensor__record=["p"])["p"]  # layers of 4 points included
    spectra = np.fft.fft2(everywhere.T.reshape(STEPS, *(n + 8 for n in SHAPE)))
    kx, ky = (2 * np.pi * np.fft.fftfreq(n + 8, 1e-4) for n in SHAPE)
    k = np.hypot(kx[:, None], ky)
    k[0, 0] = 1.0
    for row, place in enumerate(np.argwhere(mask)):
        angle = angles[tuple(place)]
        normal = np.abs(np.cos(angle) * kx[:, None] + np.sin(angle) * ky)
        expected = np.fft.ifft2(spectra * normal / k).real[:, 4 + place[0], 4 + place[1]]
        np.testing.assert_allclose(result[row], expected, atol=1e-10 * np.abs(everywhere).max())


def test_cartesian_mask_is_interpolated_between_points():
    places = np.array([[0.0, 1.5e-4], [0.0, -2.5e-4]])
    result = run(sensor__mask=places, sensor__record=("p",))
    expected = direct(Sensor(positions=places.T))
    np.testing.assert_array_equal(result["p"], expected["p"])


def test_first_recorded_step_counts_from_one():
    full = run(sensor__record="p")["p"]
    np.testing.assert_array_equal(run(sensor__record="p", sensor__record_start_index=11)["p"], full[:, 10:])


def test_coefficients_that_are_zero_count_as_left_out_and_flat_arrays_fit():
    speed = objects()["medium"].sound_speed
    change = {"medium__alpha_coeff": np.zeros(SHAPE), "medium__BonA": 0.0, "medium__sound_speed": speed.ravel()}
    np.testing.assert_array_equal(run(**change)["p"], run()["p"])


def test_reference_frequency_scales_the_signal_instead_of_the_correction_of_its_field():
    mask = np.zeros(SHAPE)
    mask[10, 9:12] = 1
    wave = np.sin(2 * np.pi * 1e6 * np.arange(20) * DT)
    source = SimpleNamespace(p_mask=mask, p=wave, p_mode="additive", p_frequency_ref=1e6)
    arguments = objects() | {"source": source}
    result = kspaceFirstOrder(**arguments, pml_size=4)["p"]
    source = SimpleNamespace(p_mask=mask, p=wave * np.cos(np.pi * 1e6 * DT), p_mode="additive-no-correction")
    np.testing.assert_allclose(
        result, kspaceFirstOrder(**(arguments | {"source": source}), pml_size=4)["p"], rtol=1e-12
    )


def test_automatic_layer_gives_extents_of_small_prime_factors():
    arguments = objects(kgrid__Nt=2)
    result = kspaceFirstOrder(**arguments, pml_size="auto")
    assert result["p_final"].shape == SHAPE  # 24 + 2 12 = 48 and 21 + 2 12 = 45


def test_calls_of_the_package_need_no_change():
    """All arguments of its function are taken, those too that mean nothing here."""
    arguments = {"backend": "cpp", "data_path": "/no/where", "debug": True, "quiet": False, "binary_path": "/no/where"}
    result = kspaceFirstOrder(**objects(), pml_size=np.array([4, 4]), save_only=False, **arguments)
    np.testing.assert_array_equal(result["p"], run()["p"])


def test_exponent_two_needs_no_transforms_whatever_the_mode():
    """It comes without dispersion: without that term it is Stokes' absorption, without the other one nothing."""
    lossy = {"medium__alpha_coeff": 0.7, "medium__alpha_power": 2.0}
    both = run(**lossy)["p"]
    assert np.abs(both - run()["p"]).max() > 1e-3 * np.abs(both).max()
    np.testing.assert_array_equal(run(**lossy, medium__alpha_mode="no_dispersion")["p"], both)
    np.testing.assert_array_equal(run(**lossy, medium__alpha_mode="no_absorption")["p"], run()["p"])


def test_objects_are_not_changed():
    arguments = objects(sensor__record=["p"])
    before = copy.deepcopy(arguments)
    kspaceFirstOrder(**arguments, pml_size=4)
    for owner, one in arguments.items():
        for name, value in vars(before[owner]).items():
            np.testing.assert_array_equal(getattr(one, name), value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kgrid__Nt": "auto"}, "kgrid.Nt, kgrid.dt: are not set; call kgrid.makeTime or kgrid.setTime"),
        ({"medium__sound_speed": None}, "medium.sound_speed: is missing"),
        ({"medium__density": np.ones(7)}, "medium.density: has 7 values, but the grid has 24x21 points"),
        ({"source__p": np.ones(4)}, "source.p_mask: is missing; required for source.p"),
        ({"sensor__mask": np.ones(9)}, "sensor.mask: has 9 values, but the grid has 24x21 points"),
        ({"sensor__record": ["p", "q"]}, "sensor.record: 'q' is not one of "),
        (
            {"sensor__directivity": SimpleNamespace(angle=np.zeros(SHAPE), pattern="cardioid")},
            "sensor.directivity.pattern: 'cardioid' is not 'pressure' or 'gradient'",
        ),
    ],
)
def test_what_does_not_fit_gives_a_one_line_error(change, words):
    with pytest.raises(CaseError) as caught:
        run(**change)
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"use_sg": False}, "use_sg, use_kspace: must be True; other schemes are not available"),
        ({"backend": "matlab"}, "backend: 'matlab' is not 'python' or 'cpp'"),
        (
            {"save_only": True},
            "save_only: must be False; use k-wave-python to write files for kspaceFirstOrder-OMP",
        ),
        ({"device": "tpu"}, "device: 'tpu' is not 'cpu', 'gpu' or 'cuda'"),
        ({"dtype": "float16"}, "dtype: 'float16' is not float32 or float64"),
        ({"pml_size": "big"}, "pml_size: 'big' is not a number, a tuple of numbers or 'auto' (pml_size)"),
        ({"pml_size": (1, 2, 3)}, "pml_size: 3 numbers for 2 axes"),
    ],
)
def test_arguments_that_are_not_offered_give_one_line_errors(arguments, words):
    with pytest.raises(CaseError) as caught:
        kspaceFirstOrder(**objects(), **arguments)
    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("alpha_sign", [-1, 1], "a medium that amplifies is unstable without a filter; use time_reversal"),
        ("alpha_filter", np.ones(SHAPE), "the filter belongs to absorption with another sign; use time_reversal"),
    ],
)
def test_amplification_is_refused_with_the_reason(name, value, words):
    """k-wave-python ignores both."""
    with pytest.raises(CaseError, match=f"medium.{name}: {words}"):
        run(**{f"medium__{name}": value})
    assert run(medium__alpha_sign=[1, 1])["p"].size
