# SPDX-License-Identifier: BSD-3-Clause
"""What the solver computes, complete and in SI units: made from a user's objects or from a file.

Arrays have one axis for each name in `axes`, C order; a number stands for an array that is the same everywhere.
Source signals are scaled already, so that they are added as they are (theory/ultrasound, eq. 15).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.relaxation import Relaxation

Floats: TypeAlias = npt.NDArray[np.floating[Any]]
#: A number, or an array over the grid.
Field: TypeAlias = "float | Floats"
Mode = Literal["dirichlet", "additive-no-correction", "additive"]
#: Points that a list of 32-bit indices can name.
MOST_POINTS = 1 << 32


@dataclass(frozen=True)
class Absorption:
    """Absorption alpha = alpha_coeff f^alpha_power: dB/(MHz^y cm), theory/ultrasound, eq. 11.

    With `stokes` the exponent is 2 and no transform is needed. `losses` and `dispersion` switch the two terms.
    """

    alpha_coeff: Field
    alpha_power: float
    stokes: bool = False
    losses: bool = True
    dispersion: bool = True


@dataclass(frozen=True)
class Pml:
    """An absorbing layer of `size` points at both ends of an axis, of strength `alpha` (nepers a point)."""

    size: int
    alpha: float


@dataclass(frozen=True)
class Window:
    """A part of an axis of `total` points: `core` own ones from `start`, and `overlap` of neighbours at both sides.

    Behind them are `more` of the neighbours' points than before them.
    """

    total: int
    start: int
    core: int
    overlap: int
    more: int = 0

    @property
    def extent(self) -> int:
        """Return the points of the part, overlaps included."""
        return self.core + 2 * self.overlap + self.more

    def indices(self, *, clipped: bool) -> npt.NDArray[np.int64]:
        """Return the numbers of these points; beyond the ends the axis begins anew, or `clipped` the end stays."""
        first = self.start - self.overlap
        numbers = np.arange(first, first + self.extent, dtype=np.int64)
        return np.clip(numbers, 0, self.total - 1) if clipped else numbers % self.total


@dataclass(frozen=True)
class Share:
    """The numbers `start` to `stop` along an axis of the whole grid's half spectrum: what one rank computes of it."""

    axis: int
    start: int
    stop: int


@dataclass(frozen=True)
class MaskSource:
    """Signals at points of the grid.

    `quantity` is "p" or the name of an axis (the velocity along it). `points` (n,) are indices in C order, `samples`
    (t, 1) one signal for all of them or (t, n), `weights` (n,) multiply it. It acts in the first `steps` steps, point s
    by sample `step + delays[s]`. `origin` says of which of a user's sources it is.
    """

    quantity: str
    points: npt.NDArray[np.int64]
    samples: Floats
    mode: Mode
    steps: int
    weights: Floats | None = None
    delays: npt.NDArray[np.int64] | None = None
    origin: str = ""


@dataclass(frozen=True)
class Problem:
    """A medium on a grid with its sources.

    Attributes:
        axes: names of the axes, such as ("x", "y").
        shape, spacing: points and metres between them along each axis.
        time_step, steps: seconds; number of steps.
        reference_speed: c_ref of the k-space correction and the absorbing layer, m/s.
        sound_speed, density: c0 in m/s and rho0 in kg/m3.
        pml: a layer for each axis.
        staggered_density: rho0 at the staggered points of each axis; None takes means of neighbours.
        BonA: parameter of nonlinearity; None for linear acoustics.
        absorption: None for a medium without losses.
        relaxation: relaxation processes instead; `sound_speed` is then the unrelaxed one.
        initial_pressure: p0 in Pa.
        sources: signals at points.
        window: the part of a larger grid that this one is, an entry an axis; absorbing layers are those of the whole.
        share: what this rank has of the spectrum of that larger grid, where transforms cover it (slabs.py).
    """

    axes: tuple[str, ...]
    shape: tuple[int, ...]
    spacing: tuple[float, ...]
    time_step: float
    steps: int
    reference_speed: float
    sound_speed: Field
    density: Field
    pml: tuple[Pml, ...]
    staggered_density: tuple[Field, ...] | None = None
    BonA: Field | None = None
    absorption: Absorption | None = None
    relaxation: Relaxation | None = None
    initial_pressure: Floats | None = None
    sources: tuple[MaskSource, ...] = ()
    window: tuple[Window, ...] | None = None
    share: Share | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be computed.

        Raises:
            CaseError: naming the number and what it may be.
        """
        dimensions = len(self.axes)
        if not 1 <= dimensions <= 3 or {len(self.shape), len(self.spacing), len(self.pml)} != {dimensions}:
            raise CaseError(f"grid: {self.shape} points, {self.spacing} m and axes {self.axes} do not agree")
        for name, points, spacing, layer in zip(self.axes, self.whole_shape, self.spacing, self.pml, strict=True):
            if points < 2:
                raise CaseError(f"grid: {points} points along {name}; need at least 2")
            _positive(f"grid: spacing along {name}", spacing)
            if layer.size < 0 or 2 * layer.size > points:
                raise CaseError(f"pml_size: {layer.size} along {name} is not between 0 and half of {points} points")
            if not (np.isfinite(layer.alpha) and layer.alpha >= 0):
                raise CaseError(f"pml_alpha: {layer.alpha} along {name} is not a number >= 0")
        if self.points >= MOST_POINTS:
            raise CaseError(f"grid: {self.points} points; at most {MOST_POINTS - 1} fit one device")
        if self.steps < 1:
            raise CaseError(f"grid: {self.steps} time steps; need at least 1")
        _positive("grid: time step", self.time_step)
        self._check_field("sound_speed", self.sound_speed, lowest=0.0, exclusive=True)
        _positive("reference sound speed", self.reference_speed)
        self._check_field("density", self.density, lowest=0.0, exclusive=True)
        for one in self.staggered_density or ():
            self._check_field("staggered density", one, lowest=0.0, exclusive=True)
        if self.BonA is not None:
            self._check_field("BonA", self.BonA)
        if self.absorption is not None:
            self._check_absorption(self.absorption)
        if self.relaxation is not None and self.absorption is not None:
            raise CaseError("absorption: a power law and relaxation processes exclude each other")
        if self.initial_pressure is not None:
            self._check_field("initial pressure", self.initial_pressure)
        for source in self.sources:
            self._check_source(source)

    @property
    def dimensions(self) -> int:
        """Return the number of axes."""
        return len(self.axes)

    @property
    def whole_shape(self) -> tuple[int, ...]:
        """Return the points along each axis of the grid that this one may be a part of."""
        return self.shape if self.window is None else tuple(one.total for one in self.window)

    @property
    def transform_shape(self) -> tuple[int, ...]:
        """Return the points along each axis that transforms cover."""
        return self.shape if self.share is None else self.whole_shape

    @property
    def points(self) -> int:
        """Return the number of points of the grid."""
        return int(np.prod([int(n) for n in self.shape]))

    def _check_field(self, name: str, value: Field, *, lowest: float | None = None, exclusive: bool = False) -> None:
        array = np.asarray(value)
        if array.ndim and array.shape != self.shape:
            raise CaseError(f"{name}: shape {array.shape} is not the grid's {self.shape}")
        least, most = float(array.min()), float(array.max())
        if not (np.isfinite(least) and np.isfinite(most)):
            raise CaseError(f"{name}: not every value is a finite number")
        if lowest is not None and (least < lowest or (exclusive and least == lowest)):
            raise CaseError(f"{name}: {least:g} is not {'>' if exclusive else '>='} {lowest:g}")

    def _check_absorption(self, absorption: Absorption) -> None:
        self._check_field("alpha_coeff", absorption.alpha_coeff, lowest=0.0)
        y = absorption.alpha_power
        if absorption.stokes:
            if y != 2:
                raise CaseError(f"alpha_power: {y:g} with Stokes absorption, whose exponent is 2")
        elif not 0 < y < 3:
            raise CaseError(f"alpha_power: {y:g} is not between 0 and 3")
        elif abs(y - 1) < 0.01 and absorption.dispersion:
            raise CaseError(
                f"alpha_power: {y:g} is too near 1, where the dispersion term tan(pi y/2) is singular; use another"
                ' exponent, or switch dispersion off (alpha_mode = "no_dispersion")'
            )

    def _check_source(self, source: MaskSource) -> None:
        name = "p" if source.quantity == "p" else f"u{source.quantity}"
        count = source.points.size
        if source.quantity != "p" and source.quantity not in self.axes:
            raise CaseError(f"source {name}: the grid has axes {', '.join(self.axes)}")
        if source.mode not in ("dirichlet", "additive-no-correction", "additive"):
            raise CaseError(f"source {name}: mode {source.mode!r} is not dirichlet, additive-no-correction or additive")
        if not count and self.window is None:
            raise CaseError(f"source {name}: acts on no point")
        if count and (source.points.min() < 0 or source.points.max() >= self.points):
            raise CaseError(f"source {name}: a point lies outside the grid of {self.points} points")
        if source.samples.ndim != 2 or source.samples.shape[1] not in (1, count):
            raise CaseError(f"source {name}: {source.samples.shape[-1]} signals for {count} points; need 1 or {count}")
        longest = 0 if source.delays is None or not source.delays.size else int(source.delays.max())
        if source.delays is not None and (source.delays.shape != (count,) or source.delays.min() < 0):
            raise CaseError(f"source {name}: delays are not {count} numbers >= 0")
        if source.weights is not None and source.weights.shape != (count,):
            raise CaseError(f"source {name}: weights are not {count} numbers")
        if source.steps < 1 or source.steps + longest > len(source.samples):
            raise CaseError(
                f"source {name}: {len(source.samples)} samples do not last for {source.steps} steps with delays up to"
                f" {longest}"
            )
        if not np.isfinite(source.samples).all():
            raise CaseError(f"source {name}: not every sample is a finite number")


def _positive(name: str, value: float) -> None:
    if not (np.isfinite(value) and value > 0):
        raise CaseError(f"{name}: {value:g} is not a number > 0")
