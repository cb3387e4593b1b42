# SPDX-License-Identifier: BSD-3-Clause
"""Objects with the attributes of k-wave-python's, through the elastic functions, against the equations in NumPy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from elastic_oracle import ElasticOracle
from seiche.errors import CaseError
from seiche.ultrasound.kwave_elastic import pstd_elastic_2d, pstd_elastic_3d
from seiche.ultrasound.problem import Absorption, Elastic, MaskSource, Pml, Problem

SHAPES, STEPS, DT, SPACING = {2: (24, 21), 3: (14, 12, 10)}, 40, 5e-9, 1e-4
LAYER = 4


def objects(dimensions: int = 2, **change: Any) -> dict[str, Any]:
    """Return objects like those of the package; `change` sets "owner__attribute"."""
    shape, axes = SHAPES[dimensions], "xyz"[:dimensions]
    rng = np.random.default_rng(3)
    solid = np.arange(shape[0]).reshape(-1, *[1] * (dimensions - 1)) + np.zeros(shape) >= shape[0] // 2
    forces, stresses, sensors = (np.zeros(shape) for _ in range(3))
    forces[6:8, 5:8] = stresses[9, 4:7] = sensors[6:10:2, 5:9:2] = 1
    count = int(stresses.sum())
    signal = np.hanning(STEPS // 2)
    source = SimpleNamespace(u_mask=forces, ux=1e-3 * signal[None], s_mask=stresses, s_mode="additive")
    source.sxx, source.sxy = (1e3 * rng.random((count, 1)) * signal for _ in range(2))
    result = {
        "kgrid": SimpleNamespace(N=np.array(shape), spacing=np.full(dimensions, SPACING), dt=DT, Nt=STEPS),
        "medium": SimpleNamespace(
            sound_speed_compression=np.where(solid, 2000.0, 1500.0),
            sound_speed_shear=np.where(solid, 800.0, 0.0),
            density=np.where(solid, 1200.0, 1000.0),
            alpha_coeff_compression=0.1,
            alpha_coeff_shear=0.5,
        ),
        "source": source,
        "sensor": SimpleNamespace(mask=sensors, record=["p", "u", "u_non_staggered", "p_final", "p_max"]),
        "simulation_options": SimpleNamespace(pml_size=[LAYER] * len(axes), pml_alpha=2.0, pml_inside=True),
    }
    for name, value in change.items():
        owner, _, attribute = name.partition("__")
        setattr(result[owner], attribute, value)
    return result


def oracle(inputs: dict[str, Any]) -> tuple[ElasticOracle, dict[str, np.ndarray]]:
    """Return the equations after the run, and the series of p and the velocities at sensors in Fortran order."""
    medium, source, shape = inputs["medium"], inputs["source"], tuple(inputs["kgrid"].N)
    scale = 2 * medium.sound_speed_compression * DT / SPACING

    def emitter(name: str, mask: np.ndarray, values: np.ndarray) -> MaskSource:
        by_point = np.zeros((*shape, values.shape[1]))
        for number, index in enumerate(np.flatnonzero(mask.ravel(order="F"))):  # the first axis varies fastest
            at = np.unravel_index(index, shape, order="F")
            by_point[at] = scale[at] * values[number if len(values) > 1 else 0]
        points = np.flatnonzero(mask)
        samples = by_point.reshape(-1, values.shape[1])[points].T
        return MaskSource(name, points, samples, "additive-no-correction", values.shape[1])

    sources = [emitter("x", source.u_mask, source.ux)]
    sources += [emitter(name, source.s_mask, getattr(source, name)) for name in ("sxx", "sxy")]
    problem = Problem(
        axes=tuple("xyz"[: len(shape)]),
        shape=shape,
        spacing=(SPACING,) * len(shape),
        dt=DT,
        steps=STEPS,
        reference_speed=2000.0,
        sound_speed=medium.sound_speed_compression,
        density=medium.density,
        absorption=Absorption(medium.alpha_coeff_compression, 2.0, stokes=True),
        elastic=Elastic(medium.sound_speed_shear, medium.alpha_coeff_shear),
        pml=(Pml(LAYER, 2.0),) * len(shape),
        sources=tuple(sources),
    )
    equations, series = ElasticOracle(problem), {name: [] for name in ("p", *(f"u{a}" for a in problem.axes))}
    points = np.flatnonzero(inputs["sensor"].mask.ravel(order="F"))
    for step in range(STEPS):
        equations.step(step)
        for name, field in zip(series, (equations.p, *equations.v), strict=True):
            series[name].append(field.ravel(order="F")[points])
    return equations, {name: np.array(values).T for name, values in series.items()}


@pytest.mark.parametrize("dimensions", [2, 3])
def test_stress_and_velocity_sources_give_the_series_of_the_equations(dimensions):
    inputs = objects(dimensions)
    result = (pstd_elastic_2d if dimensions == 2 else pstd_elastic_3d)(**inputs, num_threads=1)
    equations, expected = oracle(inputs)
    for name, values in expected.items():
        assert np.abs(values).max() > 0
        np.testing.assert_allclose(result[name], values, atol=1e-10 * np.abs(values).max(), rtol=0)
    np.testing.assert_allclose(result["p_final"], equations.p, atol=1e-10 * np.abs(equations.p).max(), rtol=0)
    np.testing.assert_array_equal(result["p_max"], result["p"].max(axis=1))
    assert result["ux_non_staggered"].shape == result["ux"].shape


def test_an_initial_pressure_and_cartesian_sensors_are_accepted():
    pressure = np.zeros(SHAPES[2])
    pressure[10:14, 9:12] = 1e3
    places = np.array([[0.0, 1e-4], [2e-4, -1e-4]])
    inputs = objects(source__p0=pressure, source__sxx=None, source__sxy=None, source__ux=None, sensor__mask=places)
    result = pstd_elastic_2d(**inputs, num_threads=1)
    assert result["p"].shape == (2, STEPS)
    assert 100 < result["p"].max() < 1e3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"medium__sound_speed_shear": None}, "medium.sound_speed_shear: is missing"),
        ({"medium__BonA": 6.0}, "medium.BonA: elastic media are linear"),
        ({"source__p": np.ones(5)}, "source.p: elastic media have sources of stress"),
        ({"source__s_mask": None}, "source.s_mask: is not a binary mask; required for source.sxx"),
        ({"sensor__mask": None}, "sensor.mask: is not a binary mask"),
        ({"sensor__record": ["I_max"]}, "sensor.record: 'I_max' is not one of"),
        ({"simulation_options__pml_size": [1, 2, 3]}, "simulation_options.pml_size"),
    ],
)
def test_what_elastic_simulations_do_not_offer_gives_one_line(change, words):
    with pytest.raises(CaseError, match=words) as error:
        pstd_elastic_2d(**objects(**change))
    assert "\n" not in str(error.value)


def test_a_grid_of_other_axes_is_named():
    with pytest.raises(CaseError, match="kgrid: has 2 axes; pstd_elastic_3d needs 3"):
        pstd_elastic_3d(**objects())
