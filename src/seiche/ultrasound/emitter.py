# SPDX-License-Identifier: BSD-3-Clause
"""Sources between the points of a grid: shapes with signals, delays and apodisation (theory, section 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from seiche.backend.host_threads import on_threads
from seiche.errors import CaseError
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.numbers import real_numbers
from seiche.ultrasound.problem import Field, MaskSource, Mode
from seiche.ultrasound.shapes import Bowl, Disc, Floats, Quadrature, Shape

#: Half width in points of the windowed sinc, and the shape of its Kaiser window: waves of four points per wavelength or
#: more are reproduced to 2e-4, of three to 2e-3 (found by trying all positions between two points).
HALF_WIDTH, WINDOW = 6, 8.0
#: Quadrature points for each spacing of the grid, along each direction of a shape.
_POINTS_PER_SPACING = 3.0
#: Contributions in one chunk of the sum, and number of chunks computed together, which take 70 MB each.
_CHUNK, _TOGETHER = 1 << 22, 8
#: Zeros before and after an interpolated signal.
_PADDING = 4


@dataclass(frozen=True)
class Emitter:
    """Shapes with a common signal, each with a delay and a factor.

    Attributes:
        shapes: one shape, or the elements of an array.
        signal: (n_times,): Pa, or m/s for a velocity. A flat shape in free space sends a plane wave of this pressure
            to both sides, like a piston in a baffle that moves with this pressure over rho c.
        delays: seconds by which an element starts later, not necessarily whole steps.
        apodisation: factor of every element.
        quantity: "p", or "u" for the velocity along the direction of the shape.
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
            CaseError: an impossible value; the message begins with `name`.
        """
        assert grid.dt is not None
        if self.mode not in ("additive", "additive-no-correction") or self.quantity not in ("p", "u"):
            raise CaseError(
                f"{name}: quantity {self.quantity!r} and mode {self.mode!r}: quantity must be p or u, and mode "
                "additive or additive-no-correction"
            )
        shapes = list(self.shapes) if isinstance(self.shapes, Sequence) else [self.shapes]
        signal = real_numbers(f"{name}.signal", self.signal)
        if signal.ndim != 1 or not signal.size or not np.isfinite(signal).all():
            raise CaseError(f"{name}: signal is not an array (n_times,) of finite numbers")
        if not shapes:
            raise CaseError(f"{name}: has no shape")
        delays, factors = self._elements(name, len(shapes))
        quadratures = [quadrature_of(shape, grid, name) for shape in shapes]
        for shape, quadrature in zip(shapes, quadratures, strict=True):
            if self.quantity == "u" and quadrature.normals is None:
                kind, axes = type(shape).__name__, len(grid.shape)
                raise CaseError(f"{name}: a {kind} in {axes} dimensions has no normal direction; use quantity p")
        sources = []
        dimensions = len(grid.shape)
        for axis in grid.axes if self.quantity == "u" else ("p",):
            number = 0 if axis == "p" else grid.axes.index(axis)
            spacing = grid.spacings[number]
            parts = []
            for quadrature in quadratures:
                share = quadrature.weights
                if axis != "p":
                    assert quadrature.normals is not None
                    share = share * quadrature.normals[:, number]
                unit = spacing ** (dimensions - quadrature.dimension) / float(np.prod(grid.spacings))
                parts.append(
                    weights_at(grid, quadrature.points, share * unit, staggered=None if axis == "p" else number)
                )
            points = np.unique(np.concatenate([indices for indices, _ in parts]))
            if not points.size:
                continue
            matrix = np.zeros((len(parts), points.size))
            for row, (indices, weights) in zip(matrix, parts, strict=True):
                row[np.searchsorted(points, indices)] = weights
            speed = np.asarray(sound_speed, np.float64)
            speed = speed.ravel()[points] if speed.ndim else np.full(points.size, float(speed))
            scale = 2 * grid.dt / (dimensions * speed * spacing)
            if axis != "p":
                scale = 2 * speed * grid.dt / spacing
            matrix *= factors[:, None] * scale
            delay_steps = delays / grid.dt
            if grid.steps is not None:  # a later start has no effect
                delay_steps = np.minimum(delay_steps, grid.steps)
            sources.append(replace(self._mask_source(axis, points, matrix, signal, delay_steps), origin=name))
        return sources

    def _mask_source(
        self, axis: str, points: npt.NDArray[np.int64], matrix: Floats, signal: Floats, delays: Floats
    ) -> MaskSource:
        """Return one signal with weights if all delays are equal, else a signal for every point."""
        if np.ptp(delays) == 0:
            samples = delayed(signal, float(delays[0]))
            return MaskSource(axis, points, samples[:, None], self.mode, len(samples), matrix.sum(axis=0))
        delayed_signals = [delayed(signal, float(delay)) for delay in delays]
        max_length = max(len(signal_) for signal_ in delayed_signals)
        padded_signals = np.stack([np.pad(signal_, (0, max_length - len(signal_))) for signal_ in delayed_signals])
        return MaskSource(axis, points, np.ascontiguousarray(padded_signals.T @ matrix), self.mode, max_length)

    def _elements(self, name: str, count: int) -> tuple[Floats, Floats]:
        arrays = []
        for option, value, default in (("delays", self.delays, 0.0), ("apodisation", self.apodisation, 1.0)):
            array = np.full(count, default) if value is None else real_numbers(f"{name}.{option}", value)
            if array.shape != (count,) or not np.isfinite(array).all():
                raise CaseError(f"{name}: {option} are not {count} finite numbers, one per shape")
            arrays.append(array)
        if arrays[0].min() < 0:
            raise CaseError(f"{name}: a delay of {arrays[0].min():g} s is negative")
        return arrays[0], arrays[1]


def quadrature_of(shape: Shape, grid: Grid, name: str, spacing: float | None = None) -> Quadrature:
    """Return the points of a shape about `spacing` (m) apart, by default a third of that of the grid.

    On an axisymmetric grid these are points of the half plane: of the meridian of a bowl or disc on the axis, and of
    any other shape in two dimensions, which stands for its surface of revolution.

    Raises:
        CaseError: an impossible shape, or one that is not inside the grid; the message begins with `name`.
    """
    dimensions, kind = len(grid.shape), type(shape).__name__
    extent = float(np.linalg.norm([(n - 1) * d for n, d in zip(grid.shape, grid.spacings, strict=True)]))
    if grid.symmetry is not None:
        extent *= 2  # of the whole plane
    try:
        size = shape.size()
        if not size <= (1 + 1e-9) * extent:  # before quadrature: metres instead of millimetres give too many points
            raise CaseError(f"a {kind} of {size:g} m does not lie inside the grid, whose diagonal is {extent:g} m")
        spacing = spacing or min(grid.spacings) / _POINTS_PER_SPACING
        if grid.symmetry is not None and isinstance(shape, Bowl | Disc):
            quadrature = shape.meridian(spacing)
        else:
            quadrature = shape.quadrature(spacing)
    except CaseError as error:
        raise CaseError(f"{name}: {error}") from None
    except (TypeError, ValueError):
        raise CaseError(f"{name}: positions and lengths of a {kind} are not numbers") from None
    if quadrature.points.shape[1] != dimensions:
        raise CaseError(f"{name}: a {kind} in {quadrature.points.shape[1]} dimensions on a grid of {dimensions}")
    indices = quadrature.points / grid.spacings + np.array(grid.origin)
    if not ((indices >= 0) & (indices <= np.array(grid.shape) - 1)).all():
        raise CaseError(f"{name}: a {kind} does not lie inside the grid")
    return quadrature


def weights_at(
    grid: Grid, positions: Floats, shares: Floats, *, staggered: int | None = None
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return indices (n,) in C order and weights (n,) on the grid of band-limited points at `positions` (m, D), eq. 27.

    Each point is spread over the 12 nearest points along every axis; contributions outside the grid are dropped. With
    `staggered` the points of that axis are shifted by half a cell. On an axisymmetric grid the mirror images of the
    points about the axis also contribute; those of a radial component, that is, a staggered radius, are negative.
    """
    if grid.symmetry is not None:
        sign = -1.0 if staggered == 1 else 1.0
        positions, shares = np.concatenate([positions, positions * (1, -1)]), np.concatenate([shares, sign * shares])
    shape = np.array(grid.shape)
    scaled = positions / grid.spacings + np.array(grid.origin)
    if staggered is not None:
        scaled = scaled - 0.5 * (np.arange(len(shape)) == staggered)
    offsets = np.arange(1 - HALF_WIDTH, HALF_WIDTH + 1)
    first, last = (
        np.clip(np.floor(end).astype(np.int64) + reach, 0, shape - 1)
        for end, reach in ((scaled.min(axis=0), offsets[0]), (scaled.max(axis=0), offsets[-1]))
    )
    extents = last - first + 1  # of the box around all contributions
    total = np.zeros(int(np.prod(extents)))

    def sum_chunk(chunk: slice) -> None:
        lower = np.floor(scaled[chunk]).astype(np.int64)
        index, value = np.zeros((len(lower), 1), np.int64), shares[chunk, None]
        for axis, points in enumerate(shape):
            nodes = lower[:, axis, None] + offsets
            kernel = _kernel(nodes - scaled[chunk, axis, None])
            kernel[(nodes < 0) | (nodes >= points)] = 0.0
            offset = np.clip(nodes, first[axis], last[axis]) - first[axis]
            index = (index[:, :, None] * extents[axis] + offset[:, None, :]).reshape(len(lower), -1)
            value = (value[:, :, None] * kernel[:, None, :]).reshape(len(lower), -1)
        sums[chunk.start] = np.bincount(index.ravel(), value.ravel(), minlength=total.size).astype(
            np.float64, copy=False
        )

    size = max(1, _CHUNK // len(offsets) ** len(shape))
    chunks = [slice(begin, begin + size) for begin in range(0, len(scaled), size)]
    for together in (chunks[k : k + _TOGETHER] for k in range(0, len(chunks), _TOGETHER)):
        sums: dict[int, Floats] = {}
        on_threads(sum_chunk, together)
        for chunk in together:  # in a fixed order
            total += sums[chunk.start]
    nonzero = np.flatnonzero(np.abs(total) > 1e-9 * max(np.abs(total).max(), 1e-300))
    indices_used = tuple(np.add(np.unravel_index(nonzero, extents), first[:, None]))
    return np.asarray(np.ravel_multi_index(indices_used, tuple(shape)), np.int64), total[nonzero]


def _kernel(distance: Floats) -> Floats:
    """Return the sinc of distances in points, times a Kaiser window."""
    inside = np.sqrt(np.maximum(0.0, 1 - (distance / HALF_WIDTH) ** 2))
    return np.asarray(np.sinc(distance) * np.i0(WINDOW * inside) / np.i0(WINDOW))


def delayed(signal: Floats, steps: float) -> Floats:
    """Return a signal delayed by `steps`, whole or not, with a cubic spline and zeros before and after."""
    if steps == 0:
        return signal
    whole_steps = int(np.floor(steps))
    fraction = steps - whole_steps
    if fraction == 0:
        return np.concatenate([np.zeros(whole_steps), signal])
    from scipy.interpolate import CubicSpline

    padded = np.pad(signal, _PADDING)
    spline = CubicSpline(np.arange(len(padded)), padded)
    samples = spline(np.arange(_PADDING, len(signal) + _PADDING + 1) - fraction)
    return np.concatenate([np.zeros(whole_steps), samples])
