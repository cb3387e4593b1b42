# SPDX-License-Identifier: BSD-3-Clause
"""What `seiche.ultrasound` rejects, each in one line that names the argument; and what it leaves alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from seiche.errors import BackendUnavailable, CaseError, UnstableError
from seiche.ultrasound import Arc, Emitter, Grid, Line, Medium, Sensor, Source, simulate
from seiche.ultrasound.solver import UltrasoundSolver
from seiche.ultrasound.thermal import Bioheat, Tissue

SHAPE = (24, 20)
GRID = Grid(SHAPE, 1e-4, 2e-8, 10)
MASK = np.zeros(SHAPE, bool)
MASK[3, 4:7] = True
P0 = np.ones(SHAPE)
GOOD: dict[str, Any] = {
    "grid": GRID,
    "medium": Medium(1500.0),
    "source": Source(p0=P0),
    "sensor": Sensor(MASK),
    "pml_size": 4,
}
WAVE = np.ones(5)
OTHER = (
    "{}: a {} is not a seiche.ultrasound.{}; for objects of k-wave-python use seiche.ultrasound.kwave.kspaceFirstOrder"
)
ROUGH = 1500.0 + np.arange(480).reshape(SHAPE)


def error_message_of(**change: Any) -> str:
    with pytest.raises(CaseError) as caught:
        simulate(**(GOOD | change))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"medium": Medium(np.ones((3, 3)))}, "medium.sound_speed: shape (3, 3) is not the grid's (24, 20)"),
        ({"medium": Medium("fast")}, "medium.sound_speed: is not an array of numbers"),
        ({"medium": Medium(-1.0)}, "sound_speed: -1 is not > 0"),
        ({"medium": Medium(1500.0, 0.0)}, "density: 0 is not > 0"),
        ({"medium": Medium(1500.0, BonA=np.nan)}, "BonA: not every value is a finite number"),
        ({"medium": Medium(1500.0, alpha_coeff=0.5)}, "medium.alpha_power: is missing; alpha_coeff is set"),
        (
            {"medium": Medium(1500.0, alpha_coeff=0.5, alpha_power=1.0)},
            "alpha_power: 1 is too close to 1, where the dispersion term tan(pi y/2) is singular; use another exponent,"
            ' or alpha_mode = "no_dispersion"',
        ),
        (
            {"medium": Medium(1500.0, alpha_coeff=0.5, alpha_power=1.5, alpha_mode="none")},  # type: ignore[arg-type]
            "medium.alpha_mode: 'none' is not no_absorption, no_dispersion, stokes or relaxation",
        ),
        (
            {"medium": Medium(1500.0, alpha_coeff=0.5, alpha_power=1.5, alpha_mode="stokes")},
            "alpha_power: 1.5 with Stokes absorption; its exponent must be 2",
        ),
        (
            {"medium": Medium(1500.0, alpha_coeff=0.5, alpha_power=1.2 + 0.3 * MASK)},
            'medium.alpha_power: an array of several exponents requires alpha_mode = "relaxation"; otherwise use one'
            " number",
        ),
        (
            {"medium": Medium(1500.0, alpha_mode="relaxation")},
            'medium.alpha_coeff, alpha_power: alpha_mode = "relaxation" requires both',
        ),
        (
            {"medium": Medium(1500.0, alpha_coeff=0.5, alpha_power=2.5, alpha_mode="relaxation")},
            "medium.alpha_power: 2.5 to 2.5 is not between 0 and 2",
        ),
        (
            {"medium": Medium(1500.0, alpha_coeff=-0.5, alpha_power=1.5, alpha_mode="relaxation")},
            "medium.alpha_coeff: -0.5 must be >= 0",
        ),
        (
            {"medium": Medium(ROUGH, alpha_coeff=0.5, alpha_power=1.5, alpha_mode="relaxation")},
            "medium: 480 combinations of alpha_coeff, alpha_power and sound_speed; relaxation absorption allows 256;"
            " round them to fewer tissues",
        ),
        (
            {"medium": Medium(1500.0, alpha_coeff=50.0, alpha_power=2.0, alpha_mode="relaxation")},
            "alpha_coeff: 3 relaxation processes cannot approximate 50 dB/(MHz^2 cm) from 500000 to 5e+06 Hz; use a"
            " narrower band",
        ),
        (
            {
                "medium": Medium(
                    1500.0, alpha_coeff=0.5, alpha_power=1.0, alpha_mode="relaxation", relaxation_band=(2e6, 1e6)
                )
            },
            "medium.relaxation_band: 2e+06 to 1e+06 Hz is not a valid band; expected 0 < low < high",
        ),
        ({"medium": Medium(1500 + 1j)}, "medium.sound_speed: is not an array of numbers"),
        ({"medium": Medium(1500.0, sound_speed_ref="max")}, "medium.sound_speed_ref: is not an array of numbers"),  # type: ignore[arg-type]
        (
            {"medium": Medium(1500.0, alpha_coeff=0.5, alpha_power="y")},
            "medium.alpha_power: is not an array of numbers",
        ),
        ({"source": Source(p0=P0 * 1j)}, "source.p0: is not an array of numbers"),
        ({"source": Source(p_mask=MASK, p=WAVE * 1j)}, "source.p: is not an array of numbers"),
        (
            {"source": Source(p_mask=MASK, p=WAVE, p_weights=[1.0, np.nan, 1.0])},
            "source.p: not every weight is a finite number",
        ),
        ({"sensor": Sensor(np.full(SHAPE, "a"))}, "sensor.mask: is not an array of numbers or truth values"),
        ({"sensor": Sensor(corners=np.zeros((0, 4), int))}, "sensor.corners: has no cuboids"),
        ({"sensor": Sensor(positions=[["a", "b"]])}, "sensor.positions: is not an array of numbers"),
        (
            {"sensor": Sensor(MASK, frequencies=(1e9,))},
            "record: harmonics at 1e+09 Hz exceed the Nyquist frequency, 2.5e+07 Hz",
        ),
        (
            {"source": Source(emitters=(Emitter(Line((0, 0), (1, 0)), WAVE),))},
            "source.emitters[0]: a Line of 1 m does not lie inside the grid, whose diagonal is 0.00298329 m",
        ),
        (
            {"source": Source(emitters=(Emitter(Arc((0, 0), (1e-4, 0), np.inf, 1e-3), WAVE),))},
            "source.emitters[0]: arc: diameter 0.001 m is not between 0 and twice the radius inf m",
        ),
        (
            {"source": Source(emitters=(Emitter(Line((0, 0), (1e-4, 0)), WAVE * 1j),))},
            "source.emitters[0].signal: is not an array of numbers",
        ),
        ({"pml_size": "auto"}, "pml_size: is not an array of numbers"),
        ({"pml_size": 4.5}, "pml_size: 4.5 is not a whole number"),
        ({"source": Source()}, "source: has neither p0 nor a signal p, ux, uy or uz"),
        ({"source": Source(p0=np.ones((3, 3)))}, "source.p0: shape (3, 3) is not the grid's (24, 20)"),
        ({"source": Source(p0=P0 * np.inf)}, "source.p0: not every value is a finite number"),
        ({"source": Source(p_mask=MASK)}, "source.p: is missing; its mask is set"),
        ({"source": Source(p=WAVE)}, "source.p_mask: is missing"),
        ({"source": Source(p_mask=~MASK & False, p=WAVE)}, "source.p_mask: has no points"),
        (
            {"source": Source(p_mask=MASK, p=np.ones((2, 5)))},
            "source.p: shape (2, 5) is not (times,) or (3, times) for 3 points",
        ),
        (
            {"source": Source(p_mask=MASK, p=WAVE, p_mode="sum")},  # type: ignore[arg-type]
            "source p: mode 'sum' is not dirichlet, additive-no-correction or additive",
        ),
        ({"source": Source(u_mask=MASK)}, "source.u_mask: has no signal ux, uy or uz"),
        ({"source": Source(u_mask=MASK, uz=WAVE)}, "source.uz: the grid has axes x, y"),
        (
            {"source": Source(u_mask=MASK, ux=WAVE, u_delays=[1, 2])},
            "source.ux: its delays are not 3 whole numbers of steps >= 0",
        ),
        (
            {"source": Source(u_mask=MASK, ux=WAVE, u_weights=[1.0])},
            "source.ux: its weights have shape (1,), not (3,)",
        ),
        ({"source": Source(p_mask=MASK, p=WAVE * np.nan)}, "source p: not every sample is a finite number"),
        (
            {"sensor": Sensor()},
            "sensor.mask: is missing; records at points require a mask, corners, positions or elements",
        ),
        ({"sensor": Sensor(elements=[])}, "sensor.elements: has no shapes"),
        ({"sensor": Sensor(MASK, positions=[[0, 0]])}, "sensor: has mask and positions; use only one of them"),
        ({"sensor": Sensor(MASK & False)}, "sensor.mask: has no points"),
        ({"sensor": Sensor(MASK, first=10)}, "sensor.first: 10 is not one of the 10 steps"),
        (
            {"sensor": Sensor(corners=[[0, 0, 24, 3]])},
            "sensor.corners: a cuboid does not lie inside the grid of (24, 20) points",
        ),
        ({"sensor": Sensor(corners=[[0, 0, 3]])}, "sensor.corners: shape (1, 3) is not (n, 4) of whole numbers"),
        ({"sensor": Sensor(positions=[[1.0, 0.0]])}, "sensor.positions: a position lies outside the grid"),
        ({"pml_size": 13}, "pml_size: 13 along x is not between 0 and half of 24 points"),
        ({"pml_size": -1}, "pml_size: -1 is negative"),
        ({"pml_size": (4, 4, 4)}, "pml_size, pml_alpha: (4, 4, 4) and 2.0 are not one number for each of 2 axes"),
        ({"precision": "float16"}, "precision: 'float16' is not float32 or float64"),
        ({"scheme": "fast"}, "scheme: 'fast' is not exact, separable or local4"),
        (
            {"scheme": "local4", "sensor": Sensor(MASK, record=("u",))},
            "record: the local4 scheme does not record velocities; use the exact scheme",
        ),
        ({"grid": replace(GRID, dt=-1.0)}, "grid: time step: -1 is not a number > 0"),
        ({"grid": (24, 20)}, OTHER.format("grid", "tuple", "Grid")),
        ({"medium": 1500.0}, OTHER.format("medium", "float", "Medium")),
        ({"source": P0}, OTHER.format("source", "ndarray", "Source")),
        ({"sensor": MASK}, OTHER.format("sensor", "ndarray", "Sensor")),
        ({"medium": Medium(1500.0, alpha_power=1.5)}, "medium.alpha_coeff: is missing; alpha_power is set"),
        ({"medium": Medium(1500.0, alpha_mode="stokes")}, "medium.alpha_coeff: is missing; alpha_mode is set"),
        ({"medium": Medium(1500.0, sound_speed_ref=[1, 2])}, "medium.sound_speed_ref: shape (2,) is not one number"),  # type: ignore[arg-type]
        (
            {"medium": Medium(np.where(MASK, np.nan, 1500.0), alpha_coeff=1, alpha_power=1, alpha_mode="relaxation")},
            "medium.sound_speed: not every value is a finite number",
        ),
        (
            {"medium": Medium(1500.0, alpha_coeff=1, alpha_power=1, alpha_mode="relaxation", relaxation_band=(1e6,))},  # type: ignore[arg-type]
            "medium.relaxation_band: (1000000.0,) is not two frequencies",
        ),
        (
            {"source": Source(p_mask=np.where(MASK, np.nan, 0.0), p=WAVE)},
            "source.p_mask: not every value is a finite number",
        ),
        (
            {"sensor": Sensor(corners=[[0, 0, 1, 1], [0]])},
            "sensor.corners: cuboids have different numbers of indices",
        ),
        (
            {"pml_size": 10**9, "pml_inside": False},
            "pml_size: with layers of 1000000000 points outside, the grid has 4294967296 or more",
        ),
        ({"threads": 10**9}, "threads: 1000000000 is out of range; expected <= 4096"),
        ({"threads": "2"}, "threads: '2' is not a whole number"),
    ],
)
def test_impossible_request_is_named(change, words):
    assert error_message_of(**change) == words


def test_element_outside_the_grid_is_named():
    text = error_message_of(sensor=Sensor(elements=[Line((0.0, 0.0), (1e-4, 0.0)), Line((0.0, 0.0), (1.0, 0.0))]))
    assert text.startswith("sensor.elements[1]: a Line of 1 m does not lie inside the grid, whose diagonal is ")


@pytest.mark.parametrize("response", [(1e6,), (1e6, 0.0), (-1e6, 0.5), (np.inf, 0.5)])
def test_response_that_is_no_center_and_width_is_named(response):
    with pytest.raises(CaseError) as caught:
        Sensor(MASK, frequency_response=response)
    words = f"sensor.frequency_response: {response!r} is not a centre (Hz) and a relative width, both > 0"
    assert str(caught.value) == words


def test_unknown_record_is_named_with_the_known_ones():
    text = error_message_of(sensor=Sensor(MASK, record=("q",)))
    assert text.startswith("sensor.record: 'q' is not one of p, p_max")
    assert text.endswith("s_non_staggered, g, I, I_avg")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (((2, 3, 4, 5), 1e-4), "grid.shape: 4 axes; expected 1, 2 or 3"),
        (((1, 20), 1e-4), "grid.shape: (1, 20) has an axis of fewer than 2 points"),
        (((10, 20), (1e-4, 1e-4, 1e-4)), "grid.spacing: (0.0001, 0.0001, 0.0001) is not one positive number per axis"),
        ((10, -1.0), "grid.spacing: -1.0 is not one positive number per axis"),
        ((None, 1e-4), "grid.shape: None is not a number of points for each axis"),
        ((10, 1e-4, "1 us"), "grid.dt: is not an array of numbers"),
        ((10, 1e-4, 1e-8, 0), "grid.steps: 0 time steps; expected at least 1"),
    ],
)
def test_impossible_grid_is_named(arguments, words):
    with pytest.raises(CaseError) as caught:
        Grid(*arguments)
    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Sensor(MASK, record=None), "sensor.record: None is not a name or names of records"),  # type: ignore[arg-type]
        (
            lambda: Sensor(MASK, frequencies=(1e6,), frequency_window=5),  # type: ignore[arg-type]
            "sensor.frequency_window: 5 is not a first and a last step",
        ),
        (lambda: Source(emitters=("bowl",)), "source.emitters: every item must be an Emitter"),  # type: ignore[arg-type]
    ],
)
def test_impossible_arguments_are_named(make, words):
    with pytest.raises(CaseError) as caught:
        make()
    assert str(caught.value) == words


def test_what_begins_after_the_end_is_silent_however_late_it_is():
    late, silent = (
        simulate(**(GOOD | {"source": Source(p_mask=MASK, p=WAVE, p_delays=[0, 2, last])}))["p"]
        for last in (10**12, 10)
    )
    np.testing.assert_array_equal(late, silent)


def test_unstable_time_step_is_rejected_with_the_limit():
    """k-space theory: c_ref < max(c0) has a limit, c_ref = max(c0) none."""
    slow = Medium(1500.0, sound_speed_ref=1000.0)
    grid = replace(GRID, dt=4e-8)
    k = np.sqrt(2) * np.pi / 1e-4
    limit = 2 / (1000 * k) * np.arcsin(1000 / 1500)
    assert error_message_of(grid=grid, medium=slow) == (
        f"grid.dt: a time step of 4e-08 s is unstable in this medium; the longest stable step is {limit:.4g} s"
    )
    simulate(**(GOOD | {"grid": grid}))


def test_dispersion_that_lets_the_longest_wave_grow_is_rejected():
    """Below an exponent of 1 the term k^(y-1) is largest for the longest wave; 4000 steps made 1e13 Pa of 1 Pa."""
    medium = Medium(1500.0, 1000.0, alpha_coeff=200.0, alpha_power=0.5)
    grid = Grid((64, 64), 1e-4, 1e-8, 10)
    problem = {"grid": grid, "source": Source(p0=np.eye(64)), "sensor": Sensor(mask=np.eye(64) > 0)}
    message = error_message_of(medium=medium, **problem)
    assert message == "grid.dt: a time step of 1e-08 s is unstable in this medium; the longest stable step is 0 s"
    simulate(**(GOOD | problem | {"medium": replace(medium, alpha_coeff=20.0)}))


def test_pressure_that_is_no_longer_finite_ends_the_run():
    from seiche.ultrasound.simulate import Layers, problem_of

    grid = Grid(SHAPE, 1e-4, 2e-7, 3000)
    layers = Layers.of(grid, 0, 0.0, True)
    rough = np.random.default_rng(1).random(SHAPE)
    problem = problem_of(grid, Medium(1500.0, sound_speed_ref=700.0), Source(p0=rough), layers, smooth_p0=False)
    with pytest.raises(UnstableError) as caught:
        UltrasoundSolver(problem).advance(3000)
    assert str(caught.value).startswith("pressure is not finite after step ")
    assert str(caught.value).endswith("of 3000: the time step 2e-07 s is too long for this medium; use a shorter one")


def test_grid_that_exceeds_the_memory_is_rejected_before_it_is_allocated(monkeypatch):
    monkeypatch.setattr("seiche.backend.cpu.CpuBackend.free_memory", lambda self: 10_000)
    with pytest.raises(BackendUnavailable) as caught:
        simulate(**GOOD)
    assert str(caught.value) == "cpu: 480 points need at least 0.0 GB, but only 0.0 GB are free"


def test_inputs_are_left_as_they_are():
    speed, p0, wave = np.full(SHAPE, 1500.0), P0.copy(), WAVE.copy()
    speed[5:] = 1600.0
    before = [one.copy() for one in (speed, p0, wave, MASK)]
    sensor = Sensor(MASK, record=("p", "p_max_all", "I_avg"))
    source = Source(p0=p0, p_mask=MASK, p=wave)
    first = simulate(GRID, Medium(speed), source, sensor, pml_size=4, pml_inside=False)
    for one, retained in zip((speed, p0, wave, MASK), before, strict=True):
        np.testing.assert_array_equal(one, retained)
    second = simulate(GRID, Medium(speed), source, sensor, pml_size=4, pml_inside=False)
    assert set(first) == {"p", "p_max_all", "Ix_avg", "Iy_avg"}
    assert first["p_max_all"].shape == SHAPE
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Sensor(MASK, first=3.5), "sensor.first: 3.5 is not a whole number"),  # type: ignore[arg-type]
        (lambda: Sensor(MASK, frequency_window=(0.5, 3)), "sensor.frequency_window: 0.5 is not a whole number"),  # type: ignore[arg-type]
        (lambda: Sensor(MASK, frequencies=("high",)), "sensor.frequencies: is not an array of numbers"),  # type: ignore[arg-type]
        (lambda: Grid((np.nan, 3), 1e-4), "grid.shape: nan is not a whole number"),  # type: ignore[arg-type]
        (lambda: Grid((3, 3), "narrow"), "grid.spacing: is not an array of numbers"),  # type: ignore[arg-type]
        (lambda: Grid((3, 3), 1e-4, 1e-8, 4.5), "grid.steps: 4.5 is not a whole number"),  # type: ignore[arg-type]
        (lambda: GRID.with_time(0.0), "sound_speed: 0 is not a finite number > 0"),
        (lambda: GRID.positions("z"), "axis: 'z' is not one of x, y"),
        (
            lambda: Bioheat((3, 3), (0.0, 1.0), Tissue()),
            "spacing: (0.0, 1.0) is not one positive number for each axis of (3, 3) points",
        ),
        (lambda: Bioheat((3,), (1.0,), Tissue(), np.nan), "temperature: not every value is a finite number"),
        (lambda: Bioheat((3,), (1.0,), Tissue()).run(1.0, np.nan), "heat: not every value is a finite number"),
        (
            lambda: Bioheat((3,), (1.0,), Tissue(blood_temperature=np.nan)),
            "tissue.blood_temperature: nan is not a finite number",
        ),
    ],
)
def test_object_that_cannot_be_gives_a_one_line_error(make, words):
    with pytest.raises(CaseError) as caught:
        make()
    assert str(caught.value) == words


def test_one_record_frequency_or_emitter_stands_for_a_tuple_of_one():
    sensor = Sensor(MASK, record="p_max", frequencies=1e6)  # type: ignore[arg-type]
    assert (sensor.record, sensor.frequencies) == (("p_max",), (1e6,))
    emitter = Emitter(Line((0, 0), (1e-4, 0)), WAVE)
    assert Source(emitters=emitter).emitters == (emitter,)  # type: ignore[arg-type]


def test_a_time_step_or_a_number_of_steps_that_is_given_alone_is_kept():
    def times(**given: Any) -> int:
        return int(simulate(**(GOOD | {"grid": Grid(SHAPE, 1e-4, **given)}))["p"].shape[1])

    both = Grid(SHAPE, 1e-4).with_time(1500.0)
    assert times(steps=7) == 7
    assert times() == both.steps
    assert abs(times(dt=both.dt / 2) - 2 * both.steps) <= 1  # type: ignore[operator]


def test_an_element_that_starts_after_the_end_is_silent_however_late():
    shapes = [Line((0, 0), (1e-4, 0)), Line((0, 2e-4), (1e-4, 2e-4))]
    both = Emitter(shapes, WAVE, delays=[0.0, 1e9])
    result, expected = (
        simulate(**(GOOD | {"source": Source(emitters=(one,))}))["p"] for one in (both, Emitter(shapes[0], WAVE))
    )
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())
