# SPDX-License-Identifier: BSD-3-Clause
"""Sources that lie between the points of a grid: shapes with signals, delays and apodisation (theory, section 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.numbers import real_numbers
from seiche.ultrasound.problem import Field, MaskSource, Mode
from seiche.ultrasound.shapes import Floats, Quadrature, Shape

#: Half width in points of the windowed sinc, and the shape of its Kaiser window: waves of four points a wavelength or
#: more are reproduced to 2e-4, of three to 2e-3 (found by trying all positions between two points).
HALF_WIDTH, WINDOW = 6, 8.0
#: Points of the quadrature a spacing of the grid, along each direction of a shape.
_FINENESS = 3.0
#: Contributions that are summed at once.
_AT_ONCE = 1 << 22
#: Samples of a signal that count as silence before and after it, where it is interpolated.
_QUIET = 4


@dataclass(frozen=True)
class Emitter:
    """Shapes that send the same signal, each with its own delay and strength.

    Attributes:
        shapes: one shape, or the elements of an array.
        signal: (n_times,): Pa, or m/s for a velocity. A flat shape in free space sends a plane wave of this pressure
            to both sides, as a piston in a baffle does that moves with this pressure over rho c.
        delays: seconds by which an element starts later; whole steps are not needed.
        apodisation: factor of every element.
        quantity: "p", or "u" for the velocity along the direction that a shape faces.
        mode: "additive" or "additive-no-correction".
    """

    shapes: Shape | Sequence[Shape]
    signal: npt.ArrayLike
    delays: npt.ArrayLike | None = None
    apodisation: npt.ArrayLike | None = None
    quantity: Literal["p", "u"] = "p"
    mode: Mode = "additive"

    def on(self, grid: Grid, sound_speed: Field, name: str) -> list[MaskSource]:
        """Return the sources at points of the grid, scaled (theory, eqs. 15 and 27).

        Raises:
            CaseError: naming what is wrong, beginning with `name`.
        """
        assert grid.time_step is not None
        if self.mode not in ("additive", "additive-no-correction") or self.quantity not in ("p", "u"):
            raise CaseError(
                f"{name}: quantity {self.quantity!r} and mode {self.mode!r}; need p or u, additive or"
                " additive-no-correction"
            )
        shapes = list(self.shapes) if isinstance(self.shapes, Sequence) else [self.shapes]
        signal = real_numbers(f"{name}.signal", self.signal)
        if signal.ndim != 1 or not signal.size or not np.isfinite(signal).all():
            raise CaseError(f"{name}: its signal is not (n_times,) finite numbers")
        if not shapes:
            raise CaseError(f"{name}: has no shape")
        delays, factors = self._elements(name, len(shapes))
        found = [self._quadrature(shape, grid, name) for shape in shapes]
        sources = []
        dimensions = len(grid.shape)
        for axis in grid.axes if self.quantity == "u" else ("p",):
            number = 0 if axis == "p" else grid.axes.index(axis)
            spacing = grid.spacings[number]
            parts = []
            for one in found:
                share = one.shares
                if axis != "p":
                    assert one.normals is not None
                    share = share * one.normals[:, number]
                unit = spacing ** (dimensions - one.dimension) / float(np.prod(grid.spacings))
                parts.append(weights_at(grid, one.points, share * unit, staggered=None if axis == "p" else number))
            points = np.unique(np.concatenate([at for at, _ in parts]))
            if not points.size:
                continue
            matrix = np.zeros((len(parts), points.size))
            for row, (at, weights) in zip(matrix, parts, strict=True):
                row[np.searchsorted(points, at)] = weights
            speed = np.asarray(sound_speed, np.float64)
            speed = speed.ravel()[points] if speed.ndim else np.full(points.size, float(speed))
            scale = 2 * grid.time_step / (dimensions * speed * spacing)
            if axis != "p":
                scale = 2 * speed * grid.time_step / spacing
            matrix *= factors[:, None] * scale
            late = delays / grid.time_step
            if grid.steps is not None:  # what begins after the end is silent, however late it is
                late = np.minimum(late, grid.steps)
            sources.append(replace(self._together(axis, points, matrix, signal, late), origin=name))
        return sources

    def _together(
        self, axis: str, points: npt.NDArray[np.int64], matrix: Floats, signal: Floats, delays: Floats
    ) -> MaskSource:
        """Return one signal with weights where all elements are in step, else a signal for every point."""
        if np.ptp(delays) == 0:
            samples = delayed(signal, float(delays[0]))
            return MaskSource(axis, points, samples[:, None], self.mode, len(samples), matrix.sum(axis=0))
        each = [delayed(signal, float(one)) for one in delays]
        longest = max(len(one) for one in each)
        whole = np.stack([np.pad(one, (0, longest - len(one))) for one in each])
        return MaskSource(axis, points, np.ascontiguousarray(whole.T @ matrix), self.mode, longest)

    def _elements(self, name: str, count: int) -> tuple[Floats, Floats]:
        found = []
        for what, value, default in (("delays", self.delays, 0.0), ("apodisation", self.apodisation, 1.0)):
            array = np.full(count, default) if value is None else real_numbers(f"{name}.{what}", value)
            if array.shape != (count,) or not np.isfinite(array).all():
                raise CaseError(f"{name}: {what} are not {count} finite numbers, one a shape")
            found.append(array)
        if found[0].min() < 0:
            raise CaseError(f"{name}: a delay of {found[0].min():g} s is negative")
        return found[0], found[1]

    def _quadrature(self, shape: Shape, grid: Grid, name: str) -> Quadrature:
        dimensions, kind = len(grid.shape), type(shape).__name__
        extent = float(np.linalg.norm([(n - 1) * d for n, d in zip(grid.shape, grid.spacings, strict=True)]))
        try:
            size = shape.size()
            if not size <= (1 + 1e-9) * extent:  # before it is filled with points: metres for millimetres are many
                raise CaseError(f"a {kind} of {size:g} m does not lie inside the grid, whose diagonal is {extent:g} m")
            found = shape.quadrature(min(grid.spacings) / _FINENESS)
        except CaseError as error:
            raise CaseError(f"{name}: {error}") from None
        except (TypeError, ValueError):
            raise CaseError(f"{name}: a {kind} of places and lengths that are no numbers") from None
        if found.points.shape[1] != dimensions:
            raise CaseError(f"{name}: a {kind} in {found.points.shape[1]} dimensions on a grid of {dimensions}")
        if self.quantity == "u" and found.normals is None:
            raise CaseError(f"{name}: a {kind} in {dimensions} dimensions faces nowhere; only p can act on it")
        places = found.points / grid.spacings + np.array([n // 2 for n in grid.shape])
        if not ((places >= 0) & (places <= np.array(grid.shape) - 1)).all():
            raise CaseError(f"{name}: a {kind} does not lie inside the grid")
        return found


def weights_at(
    grid: Grid, places: Floats, shares: Floats, *, staggered: int | None = None
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return indices (n,) in C order and weights (n,) on the grid of band-limited points at `places` (m, D), eq. 27.

    Each spreads its share over the 12 nearest points along every axis; what would lie outside the grid is left out.
    With `staggered` the points of that axis are half a cell further.
    """
    shape = np.array(grid.shape)
    scaled = places / grid.spacings + np.array([n // 2 for n in grid.shape])
    if staggered is not None:
        scaled = scaled - 0.5 * (np.arange(len(shape)) == staggered)
    offsets = np.arange(1 - HALF_WIDTH, HALF_WIDTH + 1)
    total = np.zeros(int(np.prod(shape)))
    portion = max(1, _AT_ONCE // len(offsets) ** len(shape))
    for begin in range(0, len(scaled), portion):
        part = slice(begin, begin + portion)
        below = np.floor(scaled[part]).astype(np.int64)
        index, value = np.zeros((len(below), 1), np.int64), shares[part, None]
        for axis, points in enumerate(shape):
            nodes = below[:, axis, None] + offsets
            kernel = _kernel(nodes - scaled[part, axis, None])
            kernel[(nodes < 0) | (nodes >= points)] = 0.0
            index = (index[:, :, None] * points + np.clip(nodes, 0, points - 1)[:, None, :]).reshape(len(below), -1)
            value = (value[:, :, None] * kernel[:, None, :]).reshape(len(below), -1)
        total += np.bincount(index.ravel(), value.ravel(), minlength=total.size)
    found = np.flatnonzero(np.abs(total) > 1e-9 * max(np.abs(total).max(), 1e-300))
    return found, total[found]


def _kernel(distance: Floats) -> Floats:
    """Return the sinc of distances in points, in a Kaiser window."""
    inside = np.sqrt(np.maximum(0.0, 1 - (distance / HALF_WIDTH) ** 2))
    return np.asarray(np.sinc(distance) * np.i0(WINDOW * inside) / np.i0(WINDOW))


def delayed(signal: Floats, steps: float) -> Floats:
    """Return a signal that starts `steps` later, whole or not: a cubic spline through it and the silence around."""
    if steps == 0:
        return signal
    whole = int(np.floor(steps))
    part = steps - whole
    if part == 0:
        return np.concatenate([np.zeros(whole), signal])
    from scipy.interpolate import CubicSpline

    padded = np.pad(signal, _QUIET)
    spline = CubicSpline(np.arange(len(padded)), padded)
    samples = spline(np.arange(_QUIET, len(signal) + _QUIET + 1) - part)
    return np.concatenate([np.zeros(whole), samples])
