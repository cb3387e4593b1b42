# SPDX-License-Identifier: BSD-3-Clause
"""Sensors of finite size and their response in a case file."""

from __future__ import annotations

import h5py
import numpy as np
import pytest

from seiche.case.loading import load, prepare
from seiche.errors import CaseError
from seiche.ultrasound import Arc, Line, Solver
from ultrasound_cases import case

ELEMENTS = (
    '[[record.element]]\nkind = "line"\nstart = ["2 mm", "-3 mm"]\nend = ["2 mm", "3 mm"]\n'
    '[[record.element]]\nkind = "arc"\nposition = ["4 mm", "0 mm"]\nfocus = ["-4 mm", "0 mm"]\n'
    'radius = "8 mm"\ndiameter = "6 mm"\n'
)


def with_elements(tmp_path, *changes: str):
    """Return the loaded case of an arc with two elements as sensors."""
    path = case(tmp_path)
    path.write_text(path.read_text() + ELEMENTS)
    return load(path, overrides=["record.points=[]", *changes])


def test_elements_and_response_of_a_case_are_those_of_a_sensor(tmp_path):
    simulation = with_elements(tmp_path, "record.frequency_response={center='500 kHz', width=0.6}")
    simulation.run(visible=False)
    setup = prepare(tmp_path / "case.toml", overrides=["record.points=[]"])
    assert setup.sensor.elements == (
        Line((2e-3, -3e-3), (2e-3, 3e-3)),
        Arc((4e-3, 0.0), (-4e-3, 0.0), 8e-3, 6e-3),
    )
    with h5py.File(tmp_path / "out" / "result.h5") as file:
        series = file["p"][()]
    (tmp_path / "plain").mkdir()
    path = case(tmp_path / "plain")
    path.write_text(path.read_text() + ELEMENTS)
    load(path, overrides=["record.points=[]"]).run(visible=False)
    with h5py.File(tmp_path / "plain" / "out" / "result.h5") as file:
        unfiltered = file["p"][()]
    assert series.shape == unfiltered.shape == (2, 60)
    deviation = 0.6 * 5e5 / (2 * np.sqrt(2 * np.log(2)))
    response = np.exp(-((np.fft.rfftfreq(60, setup.dt) - 5e5) ** 2) / (2 * deviation**2))
    expected = np.fft.irfft(np.fft.rfft(unfiltered, axis=1) * response, 60, axis=1)
    np.testing.assert_allclose(series, expected, atol=1e-5 * np.abs(expected).max())


def test_directions_of_a_case_are_those_of_a_sensor(tmp_path):
    """A vector for all points, or radial directions of a ring."""
    path = case(tmp_path)
    points = "record.points=[['0 mm','0 mm'],['1 mm','2 mm']]"
    assert prepare(path, overrides=[points]).sensor.directions is None
    along = prepare(path, overrides=[points, "record.direction=[3, -1]"])
    np.testing.assert_array_equal(along.sensor.directions, [3.0, -1.0])
    np.testing.assert_allclose(along.request.directions, np.array([[3.0, -1.0]] * 2) / np.sqrt(10))
    ring = "record.ring={center=['0.5 mm','0 mm'], radius='3 mm'}"
    around = prepare(path, overrides=["record.points=[]", ring, 'record.direction="radial"'])
    x, y = (np.asarray(around.grid.positions(axis)) for axis in around.grid.axes)
    rows, columns = np.nonzero(around.sensor.mask)
    np.testing.assert_allclose(around.sensor.directions, np.stack([x[rows] - 0.5e-3, y[columns]], axis=1), atol=1e-12)
    load(path, overrides=[points, "record.direction=[0, 1]"]).run(visible=False)
    with h5py.File(tmp_path / "out" / "result.h5") as file:
        directed = file["p"][()]
    setup = prepare(path, overrides=[points, "record.direction=[0, 1]"])
    solver = Solver(setup.problem, record=setup.request)
    solver.advance(setup.steps)
    np.testing.assert_array_equal(directed, solver.recorder.series("p").T)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["record.direction=[1, 0]"], "record: direction: needs points or a ring"),
        (['record.direction="radial"'], 'record: direction: "radial" needs a ring; use a vector'),
        (
            ["record.element=[]", "record.points=[['0 mm','0 mm']]", "record.direction=[1, 0, 0]"],
            "record.direction: has 3 coordinates, the grid has 2 axes",
        ),
        (
            ["record.points=[['0 mm','0 mm']]"],
            "record: give at most one of points, ring and element; points and element",
        ),
        (
            ["record.frequency_response={center='1 MHz', width=0.5}", "record.quantities=['p_max']"],
            'record: frequency_response: needs sensors that record the series "p"',
        ),
        (["record.frequency_response={center='1 MHz', width=0}"], "record.frequency_response.width: "),
    ],
)
def test_what_does_not_fit_is_named(changes, words, tmp_path):
    with pytest.raises(CaseError) as caught:
        with_elements(tmp_path, *changes)
    assert words in str(caught.value)


def test_an_element_of_other_axes_is_named(tmp_path):
    path = case(tmp_path)
    path.write_text(path.read_text() + ELEMENTS.replace('start = ["2 mm", "-3 mm"]', 'start = ["2 mm"]'))
    with pytest.raises(CaseError, match=r"record.element\[0\].start: has 1 coordinates, the grid has 2 axes"):
        load(path, overrides=["record.points=[]"])
