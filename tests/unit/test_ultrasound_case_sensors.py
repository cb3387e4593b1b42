# SPDX-License-Identifier: BSD-3-Clause
"""Sensors of finite size and their response in a case file."""

from __future__ import annotations

import h5py
import numpy as np
import pytest

from seiche.case.loading import load, prepare
from seiche.errors import CaseError
from seiche.ultrasound import Arc, Line
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


@pytest.mark.parametrize(
    ("changes", "words"),
    [
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
