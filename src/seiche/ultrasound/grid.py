# SPDX-License-Identifier: BSD-3-Clause
"""The grid in space and time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Literal

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.numbers import one_number, real_numbers, whole_number
from seiche.ultrasound.radial import OUTER_ENDS, OuterEnd

#: Maximum number of points.
_MAX_POINTS = 1 << 48


@dataclass(frozen=True)
class Grid:
    """A regular grid of one to three axes x, y, z, and the time steps.

    Attributes:
        shape: points along each axis.
        spacing: metres between points, one number or one per axis.
        dt: seconds; see `with_time`.
        steps: number of time steps.
        symmetry: "axisymmetric" for a half plane of two axes: x along the axis of symmetry, and the radius y, whose
            first point lies on that axis.
        outer_end: condition at the largest radius of an axisymmetric grid, behind the absorbing layer: "rigid" (the
            velocity is zero) or "pressure-release" (the pressure is zero, k-Wave's default; twice the work).
    """

    shape: tuple[int, ...]
    spacing: tuple[float, ...] | float
    dt: float | None = None
    steps: int | None = None
    symmetry: Literal["axisymmetric"] | None = None
    outer_end: OuterEnd = "rigid"

    def __post_init__(self) -> None:
        """Convert shape and spacing to tuples; raise CaseError for values out of range."""
        if not isinstance(self.shape, (int, np.integer)) and np.ndim(self.shape) != 1:
            raise CaseError(f"grid.shape: {self.shape} is not a number of points for each axis")
        shape = (self.shape,) if isinstance(self.shape, (int, np.integer)) else tuple(self.shape)
        if not 1 <= len(shape) <= 3:
            raise CaseError(f"grid.shape: {len(shape)} axes; expected 1, 2 or 3")
        shape = tuple(whole_number("grid.shape", n) for n in shape)
        if self.symmetry not in (None, "axisymmetric"):
            raise CaseError(f"grid.symmetry: {self.symmetry!r} is not axisymmetric")
        if self.outer_end not in OUTER_ENDS:
            raise CaseError(f"grid.outer_end: {self.outer_end!r} is not {' or '.join(OUTER_ENDS)}")
        if self.symmetry is not None and len(shape) != 2:
            raise CaseError(f"grid.symmetry: an axisymmetric grid has 2 axes, not {len(shape)}")
        if min(shape) < 2:
            raise CaseError(f"grid.shape: {shape} has an axis of fewer than 2 points")
        if prod(shape) > _MAX_POINTS:
            raise CaseError(f"grid.shape: more than {_MAX_POINTS:,} points")
        if self.dt is not None:
            object.__setattr__(self, "dt", one_number("grid.dt", self.dt))
        if self.steps is not None:
            steps = whole_number("grid.steps", self.steps)
            if steps < 1:
                raise CaseError(f"grid.steps: {steps} time steps; expected at least 1")
            object.__setattr__(self, "steps", steps)
        spacing_values = real_numbers("grid.spacing", self.spacing)
        spacing = [
            float(d) for d in (np.full(len(shape), spacing_values) if spacing_values.ndim == 0 else spacing_values)
        ]
        if len(spacing) != len(shape) or not all(np.isfinite(d) and d > 0 for d in spacing):
            raise CaseError(f"grid.spacing: {self.spacing} is not one positive number per axis")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "spacing", tuple(spacing))

    @property
    def spacings(self) -> tuple[float, ...]:
        """Return metres between points along each axis."""
        assert isinstance(self.spacing, tuple)
        return self.spacing

    @property
    def axes(self) -> tuple[str, ...]:
        """Return the names of the axes."""
        return ("x", "y", "z")[: len(self.shape)]

    def positions(self, axis: str) -> npt.NDArray[np.float64]:
        """Return the coordinates along an axis, m, relative to its `origin`.

        Raises:
            CaseError: the grid has no such axis.
        """
        if axis not in self.axes:
            raise CaseError(f"axis: {axis!r} is not one of {', '.join(self.axes)}")
        number = self.axes.index(axis)
        return np.asarray((np.arange(self.shape[number]) - self.origin[number]) * self.spacings[number], np.float64)

    @property
    def origin(self) -> tuple[int, ...]:
        """Return the index of the point with coordinate zero along each axis: n // 2, and 0 along a radius."""
        return tuple(0 if self.is_radial(axis) else n // 2 for axis, n in zip(self.axes, self.shape, strict=True))

    def is_radial(self, axis: str) -> bool:
        """Return whether an axis is the radius of an axisymmetric grid."""
        return self.symmetry is not None and axis == self.axes[-1]

    def with_time(self, sound_speed: npt.ArrayLike, *, end: float | None = None, cfl: float = 0.3) -> Grid:
        """Return the grid with a time step and the number of steps up to `end` seconds.

        The time step is cfl min(spacing) / max(c0); by default the end is the time of sound across the diagonal at
        min(c0).

        Raises:
            CaseError: a Courant number, a sound speed or an end that is not positive.
        """
        speed = real_numbers("sound_speed", sound_speed)
        if not (np.isfinite(speed).all() and speed.min() > 0):
            raise CaseError(f"sound_speed: {speed.min():g} is not a finite number > 0")
        if not cfl > 0 or (end is not None and not end > 0):
            raise CaseError(f"grid: cfl = {cfl:g} and end = {end} must be positive")
        dt = cfl * min(self.spacings) / float(speed.max())
        if end is None:
            diagonal = np.sqrt(sum((n * d) ** 2 for n, d in zip(self.shape, self.spacings, strict=True)))
            end = float(diagonal / speed.min())
        return replace(self, dt=dt, steps=int(np.floor(end / dt)) + 1)

    def completed(self, sound_speed: npt.ArrayLike) -> Grid:
        """Return the grid with missing time step or number of steps set as by `with_time`.

        Raises:
            CaseError: a sound speed or a time step that is not positive.
        """
        if self.dt is not None and self.steps is not None:
            return self
        completed = self.with_time(sound_speed)
        if self.dt is not None:
            return self.with_time(sound_speed, cfl=self.dt / min(self.spacings) * float(np.max(sound_speed)))
        return completed if self.steps is None else replace(completed, steps=self.steps)
