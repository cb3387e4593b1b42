# SPDX-License-Identifier: BSD-3-Clause
"""Sources given by the user, and their signals scaled for the solver (theory/ultrasound, section 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.backend.host_threads import host_threads, on_threads, pieces_of
from seiche.errors import CaseError
from seiche.ultrasound.emitter import Emitter
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.host_fields import extremes, scale
from seiche.ultrasound.numbers import real_numbers
from seiche.ultrasound.problem import Field, Floats, MaskSource, Mode, stress_names


@dataclass(frozen=True)
class Source:
    """Sources of waves. Masks have the shape of the grid; their points are in C order.

    Attributes:
        p0: initial pressure, Pa, in the shape of the grid.
        p_mask: points of a pressure source.
        p: its signals (n_times,) or (n_points, n_times), Pa.
        p_mode: "additive", "additive-no-correction" or "dirichlet".
        u_mask, ux, uy, uz, u_mode: the same for the velocity, m/s.
        p_delays, u_delays: delay of each point's signal in whole steps, (n_points,).
        p_weights, u_weights: factors of a point's signal (apodisation, or the weights of an off-grid shape).
        s_mask: points of a source of stress in an elastic medium.
        sxx, syy, szz, sxy, sxz, syz: its signals, Pa, positive in tension. Each acts at the point of its stress: shear
            stresses are half a spacing further along both of their axes.
        s_mode: "additive" or "dirichlet".
        emitters: bowls, arcs, discs, rectangles and lines between the points of the grid.
    """

    p0: npt.ArrayLike | None = None
    p_mask: npt.ArrayLike | None = None
    p: npt.ArrayLike | None = None
    p_mode: Mode = "additive"
    u_mask: npt.ArrayLike | None = None
    ux: npt.ArrayLike | None = None
    uy: npt.ArrayLike | None = None
    uz: npt.ArrayLike | None = None
    u_mode: Mode = "additive"
    p_delays: npt.ArrayLike | None = None
    u_delays: npt.ArrayLike | None = None
    p_weights: npt.ArrayLike | None = None
    u_weights: npt.ArrayLike | None = None
    s_mask: npt.ArrayLike | None = None
    sxx: npt.ArrayLike | None = None
    syy: npt.ArrayLike | None = None
    szz: npt.ArrayLike | None = None
    sxy: npt.ArrayLike | None = None
    sxz: npt.ArrayLike | None = None
    syz: npt.ArrayLike | None = None
    s_mode: Mode = "additive"
    emitters: tuple[Emitter, ...] = ()

    def __post_init__(self) -> None:
        """Convert one emitter to a tuple; raise CaseError for other objects."""
        if isinstance(self.emitters, Emitter):
            object.__setattr__(self, "emitters", (self.emitters,))
        if not all(isinstance(emitter, Emitter) for emitter in self.emitters):
            raise CaseError("source.emitters: every item must be an Emitter")

    def on(self, grid: Grid, sound_speed: Field) -> tuple[MaskSource, ...]:
        """Return the sources with scaled signals (eq. 15).

        Raises:
            CaseError: a mask without a signal or a signal without a mask, wrong shapes, or no points.
        """
        assert grid.dt is not None
        sources: list[MaskSource] = []
        dimensions = len(grid.shape)
        if self.p is not None or self.p_mask is not None:
            points = mask_points("source.p_mask", self.p_mask, grid.shape)
            speed = _at(sound_speed, points)
            scale: Floats
            if self.p_mode == "dirichlet":
                scale = 1 / (dimensions * speed**2)
            else:
                scale = 2 * grid.dt / (dimensions * speed * grid.spacings[0])
            delays = _delays("source.p", self.p_delays, points.size, grid)
            sources.append(
                _source("p", points, self.p, self.p_mode, scale=scale, delays=delays, weights=self.p_weights)
            )
        signals = {axis: getattr(self, f"u{axis}") for axis in "xyz"}
        if self.u_mask is not None or any(signal is not None for signal in signals.values()):
            points = mask_points("source.u_mask", self.u_mask, grid.shape)
            speed = _at(sound_speed, points)
            if all(signal is None for signal in signals.values()):
                raise CaseError("source.u_mask: has no signal ux, uy or uz")
            for axis, signal in signals.items():
                if signal is None:
                    continue
                if axis not in grid.axes:
                    raise CaseError(f"source.u{axis}: the grid has axes {', '.join(grid.axes)}")
                spacing = grid.spacings[grid.axes.index(axis)]
                scale = np.ones(1) if self.u_mode == "dirichlet" else 2 * speed * grid.dt / spacing
                delays = _delays(f"source.u{axis}", self.u_delays, points.size, grid)
                sources.append(
                    _source(axis, points, signal, self.u_mode, scale=scale, delays=delays, weights=self.u_weights)
                )
        sources += self._stresses(grid, sound_speed)
        for number, emitter in enumerate(self.emitters):
            sources += emitter.on(grid, sound_speed, f"source.emitters[{number}]")
        return tuple(sources)

    def _stresses(self, grid: Grid, sound_speed: Field) -> list[MaskSource]:
        """Return the sources of stress."""
        assert grid.dt is not None
        signals = {name: signal for name in stress_names("xyz") if (signal := getattr(self, name)) is not None}
        if self.s_mask is None and not signals:
            return []
        points = mask_points("source.s_mask", self.s_mask, grid.shape)
        if not signals:
            raise CaseError("source.s_mask: has no signal sxx, syy, szz, sxy, sxz or syz")
        speed = _at(sound_speed, points)
        scale = np.ones(1) if self.s_mode == "dirichlet" else 2 * speed * grid.dt / grid.spacings[0]
        return [
            _source(name, points, signal, self.s_mode, scale=scale, delays=None, weights=None)
            for name, signal in signals.items()
        ]


def mask_points(name: str, mask: npt.ArrayLike | None, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Return the indices of the points of a mask in C order; raise CaseError unless it has the grid's shape."""
    if mask is None:
        raise CaseError(f"{name}: is missing")
    array = np.asarray(mask)
    if array.dtype.kind not in "biuf":
        raise CaseError(f"{name}: is not an array of numbers or truth values")
    if array.shape != shape:
        raise CaseError(f"{name}: shape {array.shape} is not the grid's {shape}")
    points = np.flatnonzero(array)
    if not points.size:
        raise CaseError(f"{name}: has no points")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise CaseError(f"{name}: not every value is a finite number")
    return points.astype(np.int64)


def _at(field: Field, points: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return a field at points, or one number for all of them."""
    return np.asarray(field, np.float64).ravel()[points] if np.ndim(field) else np.full(1, float(np.asarray(field)))


def _delays(name: str, delays: npt.ArrayLike | None, count: int, grid: Grid) -> npt.NDArray[np.int64] | None:
    """Return delays in steps, limited to the duration of the run: a later start has no effect."""
    if delays is None:
        return None
    steps = np.asarray(delays)
    if steps.shape != (count,) or steps.dtype.kind not in "iu" or steps.min() < 0:
        raise CaseError(f"{name}: its delays are not {count} whole numbers of steps >= 0")
    assert grid.steps is not None
    return np.asarray(np.minimum(steps, grid.steps), np.int64)


def _source(
    quantity: str,
    points: npt.NDArray[np.int64],
    signal: npt.ArrayLike | None,
    mode: Mode,
    *,
    scale: Floats,
    delays: npt.NDArray[np.int64] | None,
    weights: npt.ArrayLike | None,
) -> MaskSource:
    name = f"source.u{quantity}" if quantity in "xyz" else f"source.{quantity}"
    if signal is None:
        raise CaseError(f"{name}: is missing; its mask is set")
    samples = np.atleast_2d(real_numbers(name, signal))
    count = points.size
    if samples.ndim != 2 or samples.shape[0] not in (1, count) or not samples.shape[1]:
        raise CaseError(f"{name}: shape {np.shape(signal)} is not (times,) or ({count}, times) for {count} points")
    point_weights = None if weights is None else real_numbers(f"{name}, weights", weights)
    if point_weights is not None and not np.isfinite(point_weights).all():
        raise CaseError(f"{name}: not every weight is a finite number")
    if point_weights is not None and point_weights.shape != (count,):
        raise CaseError(f"{name}: its weights have shape {point_weights.shape}, not ({count},)")
    factors: Floats | None = scale * (1.0 if point_weights is None else point_weights)
    if factors is not None and factors.size == 1:
        samples, factors = samples * factors, None
    elif factors is not None and len(samples) == count > 1:
        samples, factors = samples * factors[:, None], None
    steps = samples.shape[1]
    if delays is not None:
        # The solver reads sample t + delay: a later start is a smaller offset into a signal with leading zeros.
        max_delay = int(delays.max())
        samples = np.concatenate([np.zeros((len(samples), max_delay)), samples, np.zeros((len(samples), max_delay))], 1)
        delays, steps = (max_delay - delays).astype(np.int64), steps + max_delay
    return MaskSource(quantity, points, np.ascontiguousarray(samples.T), mode, steps, factors, delays)


def smoothed(field: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return a field over the grid, low-pass filtered by a rotated Blackman window and rescaled to its maximum.

    This avoids ringing at sharp edges; by default an initial pressure is smoothed (theory/ultrasound, eq. 18).
    """
    from scipy.fft import irfftn, rfftn

    array, threads = np.asarray(field, np.float64), host_threads()
    radius = max(n // 2 for n in array.shape)
    frequencies = [np.fft.fftfreq(n) * n / (n // 2) for n in array.shape]
    frequencies[-1] = np.abs(frequencies[-1][: array.shape[-1] // 2 + 1])  # of a real field the others follow
    squares = [f.reshape([-1 if j == i else 1 for j in range(array.ndim)]) ** 2 for i, f in enumerate(frequencies)]
    angles = np.pi * np.arange(radius + 1) / radius
    table = 0.42 + 0.5 * np.cos(angles) + 0.08 * np.cos(2 * angles)
    spectrum = rfftn(array, workers=threads)

    def apply(piece: slice) -> None:
        distances = np.sqrt(np.asarray(sum([squares[0][piece], *squares[1:]]))) * radius
        spectrum[piece] *= np.interp(distances, np.arange(radius + 1), table)

    on_threads(apply, pieces_of(len(spectrum)))
    smooth = irfftn(spectrum, array.shape, workers=threads)
    maximum, smooth_maximum = (max(-least, greatest) for least, greatest in (extremes(array), extremes(smooth)))
    if smooth_maximum > 0:
        scale(smooth, maximum / smooth_maximum)
    return np.asarray(smooth)


def smoothed_about_axis(field: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the same for a field of an axisymmetric grid, which is continued symmetrically about the axis."""
    array = np.asarray(field, np.float64)
    return smoothed(np.concatenate([array[:, :0:-1], array], axis=1))[:, array.shape[1] - 1 :]
