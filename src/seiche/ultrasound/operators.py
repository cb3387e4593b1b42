# SPDX-License-Identifier: BSD-3-Clause
"""Tables of the k-space scheme: wave numbers, derivatives, correction, absorbing layers (theory/ultrasound, section 2).

Tables along axes contain the three axes of a padded shape one after another; a missing axis has extent 1. The last axis
of a spectrum has half the wave numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from seiche.backend.host_threads import on_threads
from seiche.ultrasound.problem import Absorption, Problem

Real = npt.NDArray[np.float64]
_Table = TypeVar("_Table", bound=npt.NDArray[Any])


def padded_shape(problem: Problem) -> tuple[int, int, int]:
    """Return the extents along three axes, with leading 1s."""
    first, middle, last = (1,) * (3 - problem.dimensions) + tuple(problem.shape)
    return first, middle, last


def spectral_shape(problem: Problem) -> tuple[int, int, int]:
    """Return the extents of this rank's half spectrum, with leading 1s."""
    first, middle, last = [1] * (3 - problem.dimensions) + [len(k) for k in wave_numbers(problem)]
    return first, middle, last


def wave_numbers(problem: Problem) -> list[Real]:
    """Return k along each of the grid's axes in FFT order, 1/m; the last axis is halved. Nyquist entries are -pi/d."""
    return [_shared(problem, axis, _numbers(problem, axis)) for axis in range(problem.dimensions)]


def transform_points(problem: Problem) -> int:
    """Return the number of points of a transform, the divisor of an inverse one."""
    return int(np.prod([int(n) for n in problem.transform_shape]))


def _numbers(problem: Problem, axis: int) -> Real:
    points = problem.transform_shape[axis]
    k = 2 * np.pi * np.fft.fftfreq(points, problem.spacing[axis])
    if axis == problem.dimensions - 1:
        k = k[: points // 2 + 1]  # even sizes: the Nyquist entry of fftfreq is negative
    return np.asarray(k, np.float64)


def _shared(problem: Problem, axis: int, table: _Table) -> _Table:
    """Return this rank's share of a table along an axis."""
    share = problem.share
    return table if share is None or share.axis != axis else table[share.start : share.stop]  # type: ignore[return-value]


def derivative_tables(problem: Problem, sign: int) -> npt.NDArray[np.complex128]:
    """Return i k exp(sign i k d/2) / N along the axes one after another (eqs. 6 and 8), N points in all.

    With the sign 0 the derivative is at the points themselves.
    """
    tables: list[npt.NDArray[np.complex128]] = [np.zeros(1, np.complex128)] * (3 - problem.dimensions)
    for axis, (spacing, points) in enumerate(zip(problem.spacing, problem.transform_shape, strict=True)):
        table = staggered_derivative(points, spacing, sign)[: len(_numbers(problem, axis))]
        tables.append(_shared(problem, axis, table) / transform_points(problem))
    return np.concatenate(tables)


def staggered_derivative(points: int, spacing: float, sign: int) -> npt.NDArray[np.complex128]:
    """Return i k exp(sign i k d/2) along an axis in FFT order."""
    k = 2 * np.pi * np.fft.fftfreq(points, spacing)
    table = np.asarray(1j * k * np.exp(sign * 0.5j * k * spacing), np.complex128)
    if points % 2 == 0:
        table[points // 2] = table[points // 2].real  # exactly, so that real fields stay real
    return table


def shift_table(problem: Problem) -> npt.NDArray[np.complex128]:
    """Return exp(-i k d/2) / N along the axes one after another: half a cell back, to the grid's points (eq. 19)."""
    tables: list[npt.NDArray[np.complex128]] = [np.ones(1, np.complex128)] * (3 - problem.dimensions)
    for axis, (spacing, points) in enumerate(zip(problem.spacing, problem.transform_shape, strict=True)):
        table = np.asarray(np.exp(-0.5j * _numbers(problem, axis) * spacing), np.complex128)
        if points % 2 == 0:
            table[points // 2] = 0.0  # the real part of -i
        tables.append(_shared(problem, axis, table) / transform_points(problem))
    return np.concatenate(tables)


def direction_filter(problem: Problem, direction: Real, dtype: npt.DTypeLike) -> npt.NDArray[np.floating]:
    """Return |k.n|/(|k| N) on the half spectrum, (n0, n1, half), for a unit vector n (D,) and N points (eq. 72).

    Entries at Nyquist numbers are means over both signs of these numbers, so that real fields stay real.
    """
    absent: list[Real] = [np.zeros(1)] * (3 - problem.dimensions)
    numbers = [*absent, *wave_numbers(problem)]
    opposite = [*absent]
    for axis, k in enumerate(numbers[len(absent) :]):
        partner = -k
        if problem.transform_shape[axis] % 2 == 0:
            partner[problem.transform_shape[axis] // 2] *= -1
        opposite.append(partner)
    vector = np.concatenate([np.zeros(len(absent)), direction])

    def along(k: list[Real]) -> Real:
        return np.asarray(np.abs(k[0][:, None, None] * vector[0] + k[1][:, None] * vector[1] + k[2] * vector[2]))

    length = np.sqrt(numbers[0][:, None, None] ** 2 + numbers[1][:, None] ** 2 + numbers[2] ** 2)
    length[0, 0, 0] = 1.0
    return np.asarray((along(numbers) + along(opposite)) / (2 * transform_points(problem) * length), dtype)


def square_table(problem: Problem) -> Real:
    """Return k^2 along the axes one after another."""
    zeros = [np.zeros(1)] * (3 - problem.dimensions)
    return np.concatenate([*zeros, *(k * k for k in wave_numbers(problem))])


def laplacian_numbers(absorption: Absorption) -> dict[str, float]:
    """Return the exponent of the fractional Laplacians, and the taper of a gain, as kernel members (eqs. 12 and 52)."""
    k2 = 0.0 if absorption.gain_below is None else absorption.gain_below**2
    return {"exponent": (absorption.alpha_power - 2) / 2, "passband": k2, "slope": 1 / k2 if k2 else 0.0}


def on_spectrum(problem: Problem, function: Callable[[Real], Real], dtype: npt.DTypeLike) -> npt.NDArray[np.floating]:
    """Return function(|k|) on the half spectrum, shape (n0, n1, half), computed plane by plane in double precision."""
    squares = [np.zeros(1)] * (3 - problem.dimensions) + [k * k for k in wave_numbers(problem)]
    result = np.empty([len(axis_squares) for axis_squares in squares], dtype)
    plane = squares[1][:, None] + squares[2][None, :]

    def compute(a: int) -> None:
        result[a] = function(np.sqrt(squares[0][a] + plane))

    each_plane(len(result), compute)
    return result


def each_plane(planes: int, compute: Callable[[int], None]) -> None:
    """Call `compute` for each plane of a grid, on all threads of this process."""
    on_threads(compute, range(planes))


def kappa(problem: Problem, dtype: npt.DTypeLike) -> npt.NDArray[np.floating]:
    """Return the correction sin(a)/a, a = c_ref k dt/2 (eq. 4)."""
    scale = problem.reference_speed * problem.dt / 2 / np.pi
    return on_spectrum(problem, lambda k: np.sinc(scale * k), dtype)


def source_kappa(problem: Problem, dtype: npt.DTypeLike) -> npt.NDArray[np.floating]:
    """Return the correction of additive sources cos(a) over the number of points (eq. 16)."""
    scale = problem.reference_speed * problem.dt / 2
    return on_spectrum(problem, lambda k: np.cos(scale * k) / transform_points(problem), dtype)


def pml_table(problem: Problem, *, staggered: bool) -> Real:
    """Return the factors of the absorbing layers along the axes one after another (eq. 13)."""
    shift = 0.5 if staggered else 0.0
    tables = [np.ones(1)] * (3 - problem.dimensions)
    for axis, (points, spacing, layer) in enumerate(
        zip(problem.whole_shape, problem.spacing, problem.pml, strict=True)
    ):
        table, size = np.zeros(points), layer.size
        if size:
            i = np.arange(1, size + 1) + shift
            if not problem.is_radial(problem.axes[axis]):
                table[:size] = ((size + 1 - i) / size) ** 4
            table[points - size :] = (i / size) ** 4
        strength = layer.alpha * problem.reference_speed / spacing * problem.dt / 2
        factors = np.exp(-strength * table)
        tables.append(factors if problem.window is None else factors[problem.window[axis].indices(clipped=False)])
    return np.concatenate(tables)


def ones_table(problem: Problem) -> Real:
    """Return factors 1 along the axes, for no layer."""
    return np.ones(sum(padded_shape(problem)))
