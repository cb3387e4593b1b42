# SPDX-License-Identifier: BSD-3-Clause
"""Transducers with the attributes of k-wave-python's, as sources and sensors of the adapter."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from seiche.errors import CaseError
from seiche.ultrasound import Emitter, Grid, Line, Medium, Sensor, Source, simulate
from seiche.ultrasound.emitter import quadrature_of
from seiche.ultrasound.kwave import kspaceFirstOrder, scan_lines
from seiche.ultrasound.kwave_arrays import element_signals, shapes_of, transducer_source
from seiche.ultrasound.shapes import Annulus, Bowl

SHAPE, DT, STEPS, DX = (32, 28), 2e-8, 30, 1e-4


def element(kind: str, **attributes: Any) -> SimpleNamespace:
    return SimpleNamespace(type=kind, **attributes)


def array_of(*elements: SimpleNamespace, transformation: Any = ()) -> SimpleNamespace:
    return SimpleNamespace(elements=list(elements), array_transformation=transformation)


LINES = array_of(
    element("line", start_point=np.array([-8e-4, -6e-4]), end_point=np.array([-8e-4, -1e-4])),
    element("line", start_point=np.array([-8e-4, 1e-4]), end_point=np.array([-8e-4, 6e-4])),
)
SHAPES = [Line((-8e-4, -6e-4), (-8e-4, -1e-4)), Line((-8e-4, 1e-4), (-8e-4, 6e-4))]


WATER = SimpleNamespace(sound_speed=1500.0, density=None, alpha_coeff=None, BonA=None)


def kgrid_of(shape: tuple[int, ...]) -> SimpleNamespace:
    return SimpleNamespace(N=np.array(shape), spacing=np.full(len(shape), DX), dt=DT, Nt=STEPS, dim=len(shape))


def run(source: Any, sensor: Any, shape: tuple[int, ...] = SHAPE) -> dict[str, np.ndarray]:
    return kspaceFirstOrder(kgrid_of(shape), WATER, source, sensor, pml_size=4, pml_inside=True)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("count", [1, 2])
def test_an_array_is_source_and_sensor(count):
    """One signal for all elements or one for each, and the mean over each element."""
    signals = 1e5 * np.sin(2 * np.pi * 2e6 * DT * np.arange(20)) * np.array([[1.0], [-0.4]])[:count]
    result = run(SimpleNamespace(p_mask=LINES, p=signals), SimpleNamespace(mask=LINES, record=["p"]))["p"]
    emitters = [Emitter(SHAPES, signals[0])]
    if count == 2:
        emitters = [Emitter(shape, signal) for shape, signal in zip(SHAPES, signals, strict=True)]
    expected = simulate(
        Grid(SHAPE, DX, DT, STEPS),
        Medium(1500.0),
        Source(emitters=tuple(emitters)),
        Sensor(elements=SHAPES),
        pml_size=4,
        precision="float64",
    )["p"]
    np.testing.assert_array_equal(result, expected)
    assert result.shape == (2, STEPS)


def test_every_kind_of_element_has_its_measure_and_place():
    grid = Grid((40, 40, 40), DX)
    centre, focus = np.array([-5e-4, 0.0, 0.0]), np.array([1e-3, 0.0, 0.0])
    curved = {"position": centre, "focus_position": focus, "radius_of_curvature": 1.5e-3}
    turned = np.array([[0.0, -1.0, 0.0, 1e-4], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 2e-4], [0.0, 0.0, 0.0, 1.0]])
    found = shapes_of(
        array_of(
            element("annulus", inner_diameter=4e-4, outer_diameter=1e-3, **curved),
            element("bowl", diameter=1e-3, **curved),
            element("disc", diameter=8e-4, position=centre, focus_position=focus),
            element("rect", position=centre, length=6e-4, width=3e-4, orientation=np.array([90.0, 0.0, 30.0])),
            element("custom", integration_points=np.array([[0.0, 1e-4], [0.0, 0.0], [0.0, 0.0]]), measure=3e-8, dim=2),
            transformation=turned,
        )
    )
    quadratures = [quadrature_of(shape, grid, "element") for shape in found]
    areas = [quadrature.weights.sum() for quadrature in quadratures]
    caps = [2 * np.pi * 1.5e-3 * (1.5e-3 - np.sqrt(1.5e-3**2 - (d / 2) ** 2)) for d in (4e-4, 1e-3)]
    np.testing.assert_allclose(areas, [caps[1] - caps[0], caps[1], np.pi * 16e-8, 18e-8, 3e-8], rtol=1e-9)
    bowl = quadratures[1]
    np.testing.assert_allclose(np.average(bowl.points, axis=0, weights=bowl.weights)[::2], [1e-4, 2e-4], atol=1e-9)
    rectangle = quadratures[3]
    np.testing.assert_allclose(
        np.average(rectangle.points, axis=0, weights=rectangle.weights), turned[:3] @ [*centre, 1]
    )
    # about x by 90 degrees, then about z by 30: the long side in the plane z = 0, the short one along z
    spread = np.ptp(rectangle.points, axis=0)
    assert spread[0] / spread[1] == pytest.approx(np.sqrt(3), rel=1e-9)
    assert spread[2] == pytest.approx(3e-4, rel=0.1)
    np.testing.assert_allclose(quadratures[4].points, [[1e-4, 0.0, 2e-4], [1e-4, 1e-4, 2e-4]], atol=1e-15)


def test_two_annuli_and_a_bowl_are_the_larger_bowl():
    grid = Grid((40, 40, 40), DX)
    place = {"position": (-5e-4, 0.0, 0.0), "focus": (1e-3, 0.0, 0.0), "radius": 1.5e-3}
    parts = [Bowl(diameter=6e-4, **place), Annulus(inner_diameter=6e-4, outer_diameter=2e-3, **place)]
    wave = 2 * np.pi / (6 * DX) * np.array([0.6, 0.5, 0.3])
    sums = [
        (quadrature.weights * np.cos(quadrature.points @ wave)).sum()
        for quadrature in (quadrature_of(shape, grid, "s") for shape in (*parts, Bowl(diameter=2e-3, **place)))
    ]
    assert sums[0] + sums[1] == pytest.approx(sums[2], rel=1e-4)


class Transducer:
    """Three elements of two by four points at x = 5, with steering and elevation delays in steps."""

    elevation_focus_distance = 1e-3

    def __init__(self) -> None:
        self.shape = (16, 20, 16)
        self.indexed_active_elements_mask = np.zeros(self.shape, np.int64)
        for number in range(3):
            self.indexed_active_elements_mask[5, 4 + 3 * number : 6 + 3 * number, 6:10] = number + 1
        self.mask = self.active_elements_mask = (self.indexed_active_elements_mask > 0).astype(float)
        self.transmit_apodization_mask = np.array([0.0, 0.5, 1.0, 0.7])[self.indexed_active_elements_mask]
        self.elevation = np.zeros(self.shape, np.uint16)
        self.elevation[5, :, 6:10] = [0, 2, 2, 0]
        self.input_signal = np.concatenate([np.zeros(7), np.hanning(9), np.zeros(7)])[:, None]

    def delay_mask(self, mode: int | None = None) -> np.ndarray:
        steering = np.array([0, 4, 2, 0])[self.indexed_active_elements_mask] if mode is None else 0
        return ((self.elevation + steering) * (self.active_elements_mask > 0)).astype(np.uint16)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_transducer_emits_velocities_with_delays_and_apodisation():
    """Point s adds the sample t + delay to the velocity along x, times 2 c dt/dx and its apodisation."""
    transducer = Transducer()
    grid = Grid(transducer.shape, DX, DT, STEPS)
    (source,) = Source(**transducer_source(transducer, grid, 1500.0)).on(grid, 1500.0)
    mask = transducer.active_elements_mask > 0
    assert (source.quantity, source.mode) == ("x", "additive-no-correction")
    np.testing.assert_array_equal(source.points, np.flatnonzero(mask))
    assert source.delays is not None and source.weights is not None
    signal, delays = transducer.input_signal[:, 0], transducer.delay_mask()[mask]
    for step in range(source.steps):
        found = source.samples[step + source.delays, 0] * source.weights
        sample = step + delays.astype(int)
        wanted = np.where(sample < len(signal), signal[np.minimum(sample, len(signal) - 1)], 0.0)
        factor = 2 * 1500.0 * DT / DX * transducer.transmit_apodization_mask[mask]
        np.testing.assert_allclose(found, factor * wanted, atol=1e-15)
    result = run(transducer, transducer, transducer.shape)["p"]
    assert result.shape == (3, STEPS)
    assert np.abs(result).max() > 0


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_lines_of_a_scan_change_one_transducer():
    """A generator sets the delays of each line, as scripts of the package set the steering angle."""

    def lines() -> Iterator[Transducer]:
        for number in range(3):
            transducer.elevation[5, :, 6:10] = [0, number, number, 0]
            yield transducer

    transducer, sensor = Transducer(), SimpleNamespace(mask=np.ones(Transducer().shape), record=("p",))
    grid = kgrid_of(transducer.shape)
    found = scan_lines(grid, WATER, lines(), sensor, pml_size=4, pml_inside=True)
    assert len(found) == 3
    for result, line in zip(found, lines(), strict=True):
        np.testing.assert_array_equal(result["p"], run(line, sensor, transducer.shape)["p"])
    assert not np.array_equal(found[0]["p"], found[2]["p"])
    with pytest.raises(CaseError, match="pml: is not an option of kspaceFirstOrder"):
        scan_lines(grid, WATER, lines(), sensor, pml=5)


def test_elements_record_means_after_the_delays_of_an_elevation_focus():
    transducer = Transducer()
    mask = transducer.active_elements_mask > 0
    series = np.random.default_rng(1).normal(size=(int(mask.sum()), 12))
    elements = transducer.indexed_active_elements_mask[mask]
    delays = transducer.elevation[mask]
    expected = np.zeros((3, 12))
    for one, delay, signal in zip(elements, delays, series, strict=True):
        expected[one - 1] += np.pad(signal[delay:], (0, delay)) / 8
    np.testing.assert_allclose(element_signals(transducer, series), expected, atol=1e-15)
    transducer.elevation_focus_distance = np.inf
    means = [series[elements == k].mean(axis=0) for k in (1, 2, 3)]
    np.testing.assert_allclose(element_signals(transducer, series), means, atol=1e-15)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            SimpleNamespace(p_mask=LINES, p=np.ones((3, 4))),
            "source.p: 3 signals for 2 elements; expected 1 or one for each",
        ),
        (
            SimpleNamespace(p_mask=LINES, p=np.ones(4), p_mode="dirichlet"),
            'source.p_mode: "dirichlet" is not available for the elements of a kWaveArray',
        ),
        (
            SimpleNamespace(u_mask=LINES, ux=np.ones(4)),
            "source.u_mask: a kWaveArray is available for source.p_mask only",
        ),
        (SimpleNamespace(p_mask=array_of(), p=np.ones(4)), "kWaveArray: has no elements"),
        (
            SimpleNamespace(p_mask=array_of(element("star")), p=np.ones(4)),
            "kWaveArray: element 0 has the type 'star', which is not available",
        ),
    ],
)
def test_what_an_array_cannot_do_is_named(source, words):
    with pytest.raises(CaseError) as caught:
        run(source, SimpleNamespace(mask=np.ones(SHAPE)))
    assert str(caught.value) == words


def test_a_transducer_of_another_grid_or_without_leading_zeros_is_named():
    transducer = Transducer()
    with pytest.raises(CaseError, match=r"source: the transducer belongs to a grid of \(16, 20, 16\) points"):
        transducer_source(transducer, Grid((8, 8, 8), DX, DT, 2), 1500.0)
    transducer.input_signal = np.ones(20)
    with pytest.raises(CaseError, match=r"source.input_signal: must begin with 6 zeros, the largest delay"):
        transducer_source(transducer, Grid(transducer.shape, DX, DT, 2), 1500.0)
