# SPDX-License-Identifier: BSD-3-Clause
"""The waves of a point source in a uniform medium of three dimensions (theory/waves, section 13, eqs. 33 to 36).

All fields are sums over both kinds of wave and five columns: the third, second and first integral of the function of
time, the function and its derivative, at the retarded time. `coefficients` returns their factors at points,
`TabulatedPulse` the columns on a grid of times.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from seiche.waves.sources import PointSource, TimeFunction

Floats = npt.NDArray[np.float64]

#: Columns of a field: I3, I2, I1, g, g'. The rows of a table also have g'' and g'''.
COLUMNS, ROW = 5, 7
#: Intervals of a table in a time step.
PER_STEP = 4
#: Factors of g at seven neighbouring times for its first three derivatives, times the spacing.
_STENCILS = (
    np.array([-1, 9, -45, 0, 45, -9, 1]) / 60,
    np.array([2, -27, 270, -490, 270, -27, 2]) / 180,
    np.array([1, -8, 13, 0, -13, 8, -1]) / 8,
)
#: Rows of a table that are computed at a time.
_CHUNK = 4096


@dataclass(frozen=True)
class Uniform:
    """A uniform medium; `cs` is zero in a fluid."""

    density: float
    cp: float
    cs: float

    @property
    def mu(self) -> float:
        """Return the shear modulus."""
        return self.density * self.cs**2

    @property
    def lame(self) -> float:
        """Return lambda, in a fluid the bulk modulus."""
        return self.density * self.cp**2 - 2 * self.mu

    @property
    def speeds(self) -> tuple[float, float]:
        """Return the speeds of both kinds of wave; in a fluid the second is unused and equal to the first."""
        return self.cp, self.cs or self.cp


class TabulatedPulse:
    """Rows I3, I2, I1, g, g', g'', g''' of a function of time, zero before t = 0, at multiples of a spacing.

    Integrals are sums from t = 0, so a row does not depend on the rows requested before.
    """

    def __init__(self, function: TimeFunction, spacing: float) -> None:
        """Start with no rows."""
        self._function, self.spacing = function, spacing
        #: Factor of the amplitude from each row on, ascending.
        self._factors: list[tuple[int, float]] = [(0, 1.0)]
        self._restart()

    def _restart(self) -> None:
        self._start, self._rows = 0, np.zeros((1, ROW))
        self._rows[0, 3:] = self._derivatives(np.zeros(1, np.int64))[0]

    def set_factor(self, first: int, factor: float) -> None:
        """Multiply the function by `factor` from row `first` on; later rows are computed again."""
        if factor != self._factors[-1][1]:
            self._factors = [entry for entry in self._factors if entry[0] < first] + [(first, factor)]
            self._restart()

    def rows(self, first: int, count: int) -> Floats:
        """Return the rows first ... first + count - 1, (count, 7), and discard those before `first`."""
        if max(first, 0) < self._start:
            self._restart()
        result = np.zeros((count, ROW))
        while (end := self._start + len(self._rows)) < first + count:
            self._extend(min(_CHUNK, max(first + count - end, 64)))
            skipped = min(max(first - self._start, 0), len(self._rows) - 1)
            self._start, self._rows = self._start + skipped, self._rows[skipped:]
        from_row = max(first, self._start)
        if from_row < first + count:
            result[from_row - first :] = self._rows[from_row - self._start : first + count - self._start]
        return result

    def _values(self, t: Floats) -> Floats:
        """Return the function at times, zero before t = 0, times the factor in force."""
        values = np.where(t >= 0, np.asarray(self._function(t), np.float64), 0.0)
        if self._factors == [(0, 1.0)]:
            return values
        starts, factors = zip(*self._factors, strict=True)
        interval = np.searchsorted(np.array(starts) * self.spacing, t, side="right") - 1
        return np.asarray(values * np.array(factors)[np.maximum(interval, 0)])

    def _derivatives(self, rows: npt.NDArray[np.int64]) -> Floats:
        """Return g and its first three derivatives at consecutive rows, (rows, 4)."""
        neighbour_values = self._values(np.arange(rows[0] - 3, rows[-1] + 4) * self.spacing)
        result = [neighbour_values[3:-3]]
        for order, stencil in enumerate(_STENCILS, 1):
            derivative = sum(w * neighbour_values[k : k + len(rows)] for k, w in enumerate(stencil))
            result.append(np.asarray(derivative) / self.spacing**order)
        return np.stack(result, 1)

    def _extend(self, count: int) -> None:
        """Append `count` rows: integrals by three-point Gauss quadrature of the moments of g in every interval."""
        h, last = self.spacing, self._start + len(self._rows) - 1
        number = last + np.arange(count, dtype=np.int64)
        nodes = (1 + np.array([-1, 0, 1]) * np.sqrt(0.6)) / 2
        values = self._values((number[:, None] + nodes) * h) * np.array([5, 8, 5]) / 18
        moments = [h ** (k + 1) * (values * (1 - nodes) ** k).sum(1) / (1, 1, 2)[k] for k in range(3)]
        rows = np.empty((count + 1, ROW))
        rows[0] = self._rows[-1]
        rows[:, 2] = np.cumsum(np.concatenate([rows[:1, 2], moments[0]]))
        rows[:, 1] = np.cumsum(np.concatenate([rows[:1, 1], h * rows[:-1, 2] + moments[1]]))
        rows[:, 0] = np.cumsum(np.concatenate([rows[:1, 0], h * rows[:-1, 1] + h * h / 2 * rows[:-1, 2] + moments[2]]))
        rows[1:, 3:] = self._derivatives(number + 1)
        self._rows = np.concatenate([self._rows, rows[1:]])


def interpolated_columns(rows: Floats, first: int, times: Floats, spacing: float, shift: int = 0) -> Floats:
    """Return columns at `times` in units of the spacing, (..., 5), by cubic Hermite interpolation.

    Args:
        rows: rows of a table from row `first` on.
        first: number of the first of these rows.
        times: times in units of `spacing`.
        spacing: time between two rows.
        shift: number of derivatives in time, 0 or 1.
    """
    interval = np.floor(times)
    f, row = times - interval, interval.astype(np.int64) - first
    inside = (row >= 0) & (row + 1 < len(rows))
    row = np.where(inside, row, 0)
    low, high = rows[row][..., shift:], rows[row + 1][..., shift:]
    g = 1 - f
    weights = ((1 + 2 * f) * g * g, f * g * g * spacing, f * f * (3 - 2 * f), -f * f * g * spacing)
    terms = (low[..., :COLUMNS], low[..., 1 : COLUMNS + 1], high[..., :COLUMNS], high[..., 1 : COLUMNS + 1])
    return np.asarray(
        np.where(inside[..., None], sum(w[..., None] * t for w, t in zip(weights, terms, strict=True)), 0.0)
    )


@cache
def _radial_factors() -> Floats:
    """Return C[k, j], for which ((1/r) d/dr)^k (F(t - r/c)/r) is the sum of C[k, j] F^(j) c^-j r^(j - 2k - 1)."""
    factors = np.zeros((COLUMNS, COLUMNS))
    factors[0, 0] = 1.0
    for k in range(COLUMNS - 1):
        for j in range(k + 1):
            factors[k + 1, j] -= (2 * k + 1 - j) * factors[k, j]
            factors[k + 1, j + 1] -= factors[k, j]
    return factors


def _radial(r: Floats, speed: float, column: int) -> Floats:
    """Return ((1/r) d/dr)^k of F(t - r/c)/r, (k, points, columns), for F in a column (eq. 35)."""
    factors = _radial_factors()
    result = np.zeros((COLUMNS, len(r), COLUMNS))
    for k in range(COLUMNS):
        for j in range(min(k + 1, COLUMNS - column)):
            result[k, :, column + j] = factors[k, j] * speed**-j * r ** (j - 2 * k - 1)
    return result


class _Contracted:
    """Derivatives in space of F(t - r/c)/r at points `x` (points, 3), contracted with a force or a moment.

    `vector` has the shape (3, points, columns), `matrix` (3, 3, points, columns).
    """

    def __init__(self, x: Floats) -> None:
        self._x, self._r = x.T[..., None], np.linalg.norm(x, axis=1)

    def _of(self, speed: float, column: int) -> Floats:
        return _radial(self._r, speed, column)

    def force_vector(self, f: Floats, speed: float, column: int) -> Floats:
        """Return f_j d_i d_j."""
        x, k = self._x, self._of(speed, column)
        return np.asarray(f[:, None, None] * k[1] + x * (f @ x[..., 0])[:, None] * k[2])

    def force_matrix(self, f: Floats, speed: float, column: int) -> Floats:
        """Return f_j d_i d_j d_l."""
        x, k, projection = self._x, self._of(speed, column), (f @ self._x[..., 0])[:, None]
        f = f[:, None, None]
        mixed = f[:, None] * x + x[:, None] * f + np.eye(3)[:, :, None, None] * projection
        return np.asarray(mixed * k[2] + x[:, None] * x * projection * k[3])

    def moment_vector(self, m: Floats, speed: float, column: int) -> Floats:
        """Return M_jk d_i d_j d_k."""
        x, k = self._x, self._of(speed, column)
        mx = np.einsum("ij,jpq->ipq", m, x)
        xmx = (x * mx).sum(0)
        return np.asarray((2 * mx + np.trace(m) * x) * k[2] + x * xmx * k[3])

    def moment_matrix(self, m: Floats, speed: float, column: int) -> Floats:
        """Return M_jk d_i d_j d_k d_l."""
        x, k, identity = self._x, self._of(speed, column), np.eye(3)[:, :, None, None]
        mx = np.einsum("ij,jpq->ipq", m, x)
        xmx, trace, outer_product = (x * mx).sum(0), np.trace(m), x[:, None] * x
        second = 2 * m[:, :, None, None] + trace * identity
        third = trace * outer_product + 2 * mx[:, None] * x + 2 * x[:, None] * mx + identity * xmx
        return np.asarray(second * k[2] + third * k[3] + outer_product * xmx * k[4])

    def gradient(self, speed: float, column: int) -> Floats:
        """Return d_i."""
        return np.asarray(self._x * self._of(speed, column)[1])

    def hessian(self, speed: float, column: int) -> Floats:
        """Return d_i d_l."""
        x, k = self._x, self._of(speed, column)
        return np.asarray(np.eye(3)[:, :, None, None] * k[1] + x[:, None] * x * k[2])

    def value(self, speed: float, column: int) -> Floats:
        """Return the function itself, (points, columns)."""
        return np.asarray(self._of(speed, column)[0])


def coefficients(source: PointSource, medium: Uniform, x: Floats) -> tuple[Floats, Floats]:
    """Return the factors of velocity and gradient of displacement at points `x` from the source (points, 3).

    The velocity is (3, points, 2, 5): component, point, longitudinal or transverse wave, column. The gradient is
    (3, 3, points, 2, 5); its component i, l is the derivative of component i along axis l.
    """
    if medium.cs == 0:
        return _in_fluid(source, medium, x)
    (cp, cs), contracted = medium.speeds, _Contracted(x)
    scale = 1 / (4 * np.pi * medium.density)
    velocity, gradient = np.zeros((3, len(x), 2, COLUMNS)), np.zeros((3, 3, len(x), 2, COLUMNS))
    if source.force is not None:
        force = scale * np.asarray(source.force, np.float64)
        for wave, (speed, sign) in enumerate(((cp, 1.0), (cs, -1.0))):
            velocity[:, :, wave] = sign * contracted.force_vector(force, speed, 2)
            gradient[:, :, :, wave] = sign * contracted.force_matrix(force, speed, 1)
        velocity[:, :, 1] += force[:, None, None] * contracted.value(cs, 4) / cs**2
        gradient[:, :, :, 1] += force[:, None, None, None] * contracted.gradient(cs, 3) / cs**2
        return velocity, gradient
    moment = -scale * np.asarray(source.moment, np.float64)
    for wave, (speed, sign) in enumerate(((cp, 1.0), (cs, -1.0))):
        velocity[:, :, wave] = sign * contracted.moment_vector(moment, speed, 1)
        gradient[:, :, :, wave] = sign * contracted.moment_matrix(moment, speed, 0)
    velocity[:, :, 1] += np.einsum("ik,kpq->ipq", moment, contracted.gradient(cs, 3)) / cs**2
    gradient[:, :, :, 1] += np.einsum("ik,klpq->ilpq", moment, contracted.hessian(cs, 2)) / cs**2
    return velocity, gradient


def _in_fluid(source: PointSource, medium: Uniform, x: Floats) -> tuple[Floats, Floats]:
    """Return `coefficients` in a fluid, for a force, a volume, or a moment that is a multiple of the unit matrix."""
    velocity, gradient = np.zeros((3, len(x), 2, COLUMNS)), np.zeros((3, 3, len(x), 2, COLUMNS))
    contracted = _Contracted(x)
    if source.force is not None:
        force = np.asarray(source.force, np.float64) / (4 * np.pi * medium.density)
        velocity[:, :, 0] = contracted.force_vector(force, medium.cp, 2)
        gradient[:, :, :, 0] = contracted.force_matrix(force, medium.cp, 1)
        return velocity, gradient
    volume = source.volume
    if volume is None:
        volume = float(np.asarray(source.moment, np.float64)[0, 0]) / medium.lame
    scale = -volume / (4 * np.pi)
    velocity[:, :, 0] = scale * contracted.gradient(medium.cp, 3)
    gradient[:, :, :, 0] = scale * contracted.hessian(medium.cp, 2)
    return velocity, gradient


def stress(gradient: Floats, lame: Floats | float, mu: Floats | float) -> Floats:
    """Return lambda tr(G) I + mu (G + G^T) of gradients (3, 3, points, ...), with moduli that fit (points, ...)."""
    trace = gradient[0, 0] + gradient[1, 1] + gradient[2, 2]
    result = mu * (gradient + gradient.swapaxes(0, 1))
    for axis in range(3):
        result[axis, axis] += lame * trace
    return np.asarray(result)


def unknowns(velocity: Floats, stresses: Floats, acoustic: bool) -> Floats:
    """Return the unknowns of a medium, (fields, points, ...), from velocity and stress."""
    if acoustic:
        return np.concatenate([-stresses[0, 0][None], velocity])
    rows = ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))
    return np.concatenate([velocity, np.stack([stresses[row] for row in rows])])
