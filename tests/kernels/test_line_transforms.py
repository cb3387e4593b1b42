# SPDX-License-Identifier: BSD-3-Clause
"""Transforms of lines in kernels against NumPy, for lengths of all factors, along every axis."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.backend import open_backend
from seiche.kernels.registry import Real
from seiche.kernels.registry import kspace_lines as lines
from seiche.kernels.registry import kspace_passes as passes
from seiche.kernels.registry.line_teams import TEAMS

#: Greatest difference over the greatest number.
TOLERANCE = {"float32": 4e-7, "float64": 1.2e-15}
LENGTHS = [2, 3, 5, 7, 8, 15, 16, 27, 28, 36, 60, 98, 100, 128, 210]


def roots(length: int, real: Real) -> np.ndarray:
    return np.exp(-2j * np.pi * np.arange(length) / length).astype(np.result_type(real, np.complex64))


@pytest.mark.parametrize("length", [1, *LENGTHS, 384, 512, 1024, 4096])
def test_factors_are_few_and_make_the_length(length):
    radices = lines.radices_of(length)
    assert radices is not None
    assert np.prod(radices) == length
    assert max(radices) <= lines.MAX_RADIX
    assert len(radices) <= max(1, np.ceil(np.log2(length) / 3 + 0.4))


@pytest.mark.parametrize("length", [11, 22, 26, 289])
def test_lengths_with_large_primes_have_none(length):
    assert lines.radices_of(length) is None
    assert lines.fixed_transform(length, True, "float32") is None


@pytest.mark.parametrize("real", ["float32", "float64"])
@pytest.mark.parametrize("length", LENGTHS)
def test_rows_of_two_fields_become_their_spectra(length: int, real: Real, device):
    """The second field is far smaller: round-off of the first must not reach it. The last batch is not full."""
    backend, shape = open_backend(device), lines.fixed_transform(length, True, real)
    assert shape is not None
    count = 2 * shape.lanes + 1
    fields = np.random.default_rng(1).standard_normal((2, count, length)) * np.array([1.0, 1e-9])[:, None, None]
    fields = fields.astype(real)
    half, kernel = length // 2 + 1, backend.load(passes.row_forward(shape))
    spectra = backend.zeros(2 * count * half, np.result_type(real, np.complex64))
    members: dict[str, object] = {"fields": backend.upload(fields), "spectra": spectra}
    members |= {"roots": backend.upload(roots(length, real))}
    members |= {"count": count, "apart": length, "pitch": half, "weight": {}}
    range_ = {"first": 1, "count": 2, "all": 2}  # the last batch of a field first
    kernel.bind(backend.pack(kernel, **members, range=range_), 0, 2 * 2)()
    result = backend.download(spectra).reshape(2, count, half)
    for one, field in zip(result, fields.astype(np.float64), strict=True):
        exact = np.fft.rfft(field)
        assert np.abs(one - exact).max() < TOLERANCE[real] * np.abs(exact).max()


def check_round_trip(shape: lines.LineShape | None, length: int, real: Real, device: str) -> None:
    """Transform blocks of neighbouring lines, of which the last batch is not full."""
    backend = open_backend(device)
    assert shape is not None
    blocks, inner = 3, shape.lanes + 3
    random = np.random.default_rng(2)
    inputs = random.standard_normal((blocks, length, inner)) + 1j * random.standard_normal((blocks, length, inner))
    inputs = inputs.astype(np.result_type(real, np.complex64))
    spectra, table = backend.upload(inputs), backend.upload(roots(length, real))
    for inverse, exact in (
        (False, np.fft.fft(inputs.astype(complex), axis=1)),
        (True, length * inputs.astype(complex)),
    ):
        kernel = backend.load(passes.side_transform(shape, inverse=inverse))
        position = {"inner": inner, "count": inner, "batches": 2}
        range_ = {"first": 0, "count": blocks * 2, "all": blocks * 2}
        kernel.bind(backend.pack(kernel, spectra=spectra, roots=table, lines=position, range=range_), 0, blocks * 2)()
        result = backend.download(spectra).reshape(inputs.shape)
        assert np.abs(result - exact).max() < TOLERANCE[real] * np.abs(exact).max()


@pytest.mark.parametrize("real", ["float32", "float64"])
@pytest.mark.parametrize("length", LENGTHS)
def test_spectra_are_transformed_along_an_axis_forward_and_inverse(length: int, real: Real, device):
    check_round_trip(lines.fixed_transform(length, False, real), length, real, device)


def test_teams_that_were_timed_transform_lines(device):
    """Factors up to 32, which no other lengths have; on a processor, where a compiler needs long for them, up to 27."""
    for length in TEAMS if device != "cpu" else (280, 540):
        for shape in (lines.fixed_pass(length, "float32"), lines.fixed_transform(length, False, "float32")):
            check_round_trip(shape, length, "float32", device)
