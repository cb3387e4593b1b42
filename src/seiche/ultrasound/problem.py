# SPDX-License-Identifier: BSD-3-Clause
"""Complete definition of a problem for the solver, in SI units, from user objects or a file.

Arrays have one axis for each name in `axes`, C order; a number replaces a constant array. Source signals are already
scaled and are added without further factors (theory/ultrasound, eq. 15).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.host_fields import extremes
from seiche.ultrasound.radial import OUTER_ENDS, OuterEnd, continued_points
from seiche.ultrasound.relaxation import Relaxation

Floats: TypeAlias = npt.NDArray[np.floating[Any]]
#: A number, or an array over the grid.
Field: TypeAlias = "float | Floats"
Mode = Literal["dirichlet", "additive-no-correction", "additive"]
#: Number of points that 32-bit indices can address.
MAX_POINTS = 1 << 32


@dataclass(frozen=True)
class Absorption:
    """Absorption alpha = alpha_coeff f^alpha_power: dB/(MHz^y cm), theory/ultrasound, eq. 11.

    With `stokes` the exponent is 2 and no transform is needed. `losses` and `dispersion` switch the two terms. With
    `gain_below` (1/m) the losses are gains, in full up to this wave number (eq. 52).
    """

    alpha_coeff: Field
    alpha_power: float
    stokes: bool = False
    losses: bool = True
    dispersion: bool = True
    gain_below: float | None = None

    @property
    def sign(self) -> float:
        """Return 1 for losses, -1 for gains."""
        return 1.0 if self.gain_below is None else -1.0

    @property
    def tangent(self) -> float:
        """Return tan(pi y/2) times the sign, as the factor from -tau c0 to eta; zero without dispersion."""
        return self.sign * float(np.tan(np.pi * self.alpha_power / 2)) if self.dispersion else 0.0


def check_exponent(absorption: Absorption) -> None:
    """Raise CaseError for an exponent of the power law that the model does not have."""
    y = absorption.alpha_power
    if absorption.stokes:
        if y != 2:
            raise CaseError(f"alpha_power: {y:g} with Stokes absorption; its exponent must be 2")
    elif not 0 < y < 3:
        raise CaseError(f"alpha_power: {y:g} is not between 0 and 3")
    elif abs(y - 1) < 0.01 and absorption.dispersion:
        raise CaseError(
            f"alpha_power: {y:g} is too close to 1, where the dispersion term tan(pi y/2) is singular; use "
            'another exponent, or alpha_mode = "no_dispersion"'
        )


@dataclass(frozen=True)
class Elastic:
    """Shear waves: their speed in m/s, 0 in fluids, and their absorption in dB/(MHz^2 cm), eqs. 62 and 66."""

    shear_speed: Field
    shear_alpha_coeff: Field | None = None


@dataclass(frozen=True)
class Pml:
    """An absorbing layer of `size` points at both ends of an axis, of strength `alpha` (nepers per point).

    Along a radial axis it is at the outer end only.
    """

    size: int
    alpha: float


@dataclass(frozen=True)
class Window:
    """A part of an axis of `total` points: `core` owned points from `start`, and `overlap` of neighbours at both sides.

    After the core there are `extra_points` additional points of the neighbour.
    """

    total: int
    start: int
    core: int
    overlap: int
    extra_points: int = 0

    @property
    def extent(self) -> int:
        """Return the points of the part, overlaps included."""
        return self.core + 2 * self.overlap + self.extra_points

    def indices(self, *, clipped: bool) -> npt.NDArray[np.int64]:
        """Return the indices of these points; beyond the ends they are periodic, or `clipped` to the ends."""
        first = self.start - self.overlap
        numbers = np.arange(first, first + self.extent, dtype=np.int64)
        return np.clip(numbers, 0, self.total - 1) if clipped else numbers % self.total


@dataclass(frozen=True)
class Share:
    """The numbers `start` to `stop` of one rank along an axis of the whole grid's half spectrum."""

    axis: int
    start: int
    stop: int


@dataclass(frozen=True)
class MaskSource:
    """Signals at points of the grid.

    `quantity` is "p", the name of an axis (the velocity along it), or that of a stress such as "sxy". `points` (n,) are
    indices in C order, `samples` (t, 1) one common signal or (t, n), `weights` (n,) its factors. The source acts in the
    first `steps` steps, at point s with sample `step + delays[s]`. `origin` names the source of the user.
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
        dt, steps: seconds; number of steps.
        reference_speed: c_ref of the k-space correction and the absorbing layer, m/s.
        sound_speed, density: c0 in m/s and rho0 in kg/m3.
        pml: a layer for each axis.
        staggered_density: rho0 at the staggered points of each axis; None for means of neighbours.
        BonA: parameter of nonlinearity; None for linear acoustics.
        absorption: None for a medium without losses.
        relaxation: relaxation processes instead; `sound_speed` is then the unrelaxed one.
        initial_pressure: p0 in Pa.
        sources: signals at points.
        window: position in a larger grid, one entry per axis; absorbing layers are those of the larger grid.
        share: this rank's part of the spectrum of that larger grid, where transforms cover it (slabs.py).
        outer_end: of an axisymmetric problem, the condition at the outer end of its second axis. This axis is the
            radius; its first point lies on the axis of symmetry. None for Cartesian axes.
        elastic: properties of shear waves; `sound_speed` and `absorption` are then those of compressional waves. None
            for fluids.
    """

    axes: tuple[str, ...]
    shape: tuple[int, ...]
    spacing: tuple[float, ...]
    dt: float
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
    outer_end: OuterEnd | None = None
    elastic: Elastic | None = None

    def __post_init__(self) -> None:
        """Raise CaseError for a value outside its range."""
        dimensions = len(self.axes)
        if not 1 <= dimensions <= 3 or {len(self.shape), len(self.spacing), len(self.pml)} != {dimensions}:
            raise CaseError(f"grid: {self.shape} points, {self.spacing} m and axes {self.axes} are inconsistent")
        if self.outer_end is not None:
            self._check_axisymmetric()
        for name, points, spacing, layer in zip(self.axes, self.whole_shape, self.spacing, self.pml, strict=True):
            if points < 2:
                raise CaseError(f"grid: {points} points along {name}; expected at least 2")
            _positive(f"grid: spacing along {name}", spacing)
            ends = 1 if self.is_radial(name) else 2
            if layer.size < 0 or ends * layer.size > points:
                most = "half of " if ends == 2 else ""
                raise CaseError(f"pml_size: {layer.size} along {name} is not between 0 and {most}{points} points")
            if not (np.isfinite(layer.alpha) and layer.alpha >= 0):
                raise CaseError(f"pml_alpha: {layer.alpha} along {name} is not a number >= 0")
        if self.points >= MAX_POINTS:
            raise CaseError(f"grid: {self.points} points; at most {MAX_POINTS - 1} fit on one device")
        if self.steps < 1:
            raise CaseError(f"grid: {self.steps} time steps; expected at least 1")
        _positive("grid: time step", self.dt)
        self._check_field("sound_speed", self.sound_speed, minimum=0.0, exclusive=True)
        _positive("reference sound speed", self.reference_speed)
        self._check_field("density", self.density, minimum=0.0, exclusive=True)
        for density in self.staggered_density or ():
            self._check_field("staggered density", density, minimum=0.0, exclusive=True)
        if self.BonA is not None:
            self._check_field("BonA", self.BonA)
        if self.absorption is not None:
            self._check_absorption(self.absorption)
        if self.relaxation is not None and self.absorption is not None:
            raise CaseError("absorption: both a power law and relaxation processes are set; use one of them")
        if self.elastic is not None:
            self._check_elastic(self.elastic)
        if self.initial_pressure is not None:
            self._check_field("initial pressure", self.initial_pressure)
        for source in self.sources:
            self._check_source(source)

    @property
    def has_fractional_terms(self) -> bool:
        """Return whether absorption needs fractional Laplacians."""
        return self.absorption is not None and not self.absorption.stokes

    @property
    def stresses(self) -> tuple[str, ...]:
        """Return the names of the stresses of an elastic problem: normal ones, then shear stresses; () for fluids."""
        return () if self.elastic is None else stress_names(self.axes)

    @property
    def dimensions(self) -> int:
        """Return the number of axes."""
        return len(self.axes)

    @property
    def whole_shape(self) -> tuple[int, ...]:
        """Return the points along each axis of the whole grid."""
        return self.shape if self.window is None else tuple(window.total for window in self.window)

    @property
    def transform_shape(self) -> tuple[int, ...]:
        """Return the points of a transform along each axis."""
        if self.outer_end is not None:
            return (self.shape[0], continued_points(self.shape[1], self.outer_end))
        return self.shape if self.share is None else self.whole_shape

    def is_radial(self, axis: str) -> bool:
        """Return whether an axis is the radius of an axisymmetric problem."""
        return self.outer_end is not None and axis == self.axes[-1]

    @property
    def points(self) -> int:
        """Return the number of points of the grid."""
        return int(np.prod([int(n) for n in self.shape]))

    @property
    def stored_samples(self) -> int:
        """Return the number of samples of all signals."""
        return sum(source.samples.size for source in self.sources)

    def _check_axisymmetric(self) -> None:
        if self.outer_end not in OUTER_ENDS:
            raise CaseError(f"grid.outer_end: {self.outer_end!r} is not {' or '.join(OUTER_ENDS)}")
        if self.dimensions != 2:
            raise CaseError(f"grid.symmetry: an axisymmetric grid has 2 axes, not {self.dimensions}")
        if self.shape[1] < 3:
            raise CaseError(f"grid.shape: {self.shape[1]} points along the radius; expected at least 3")

    def _check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        if shape and shape != self.shape:
            raise CaseError(f"{name}: shape {shape} is not the grid's {self.shape}")

    def _check_field(self, name: str, value: Field, *, minimum: float | None = None, exclusive: bool = False) -> None:
        array = np.asarray(value)
        self._check_shape(name, array.shape)
        min_value, max_value = extremes(array)
        if not (np.isfinite(min_value) and np.isfinite(max_value)):
            raise CaseError(f"{name}: not every value is a finite number")
        if minimum is not None and (min_value < minimum or (exclusive and min_value == minimum)):
            raise CaseError(f"{name}: {min_value:g} is not {'>' if exclusive else '>='} {minimum:g}")

    def _check_absorption(self, absorption: Absorption) -> None:
        self._check_field("alpha_coeff", absorption.alpha_coeff, minimum=0.0)
        if absorption.gain_below is not None:
            _positive("gain_below", absorption.gain_below)
            if absorption.stokes:
                raise CaseError("gain_below: is not available with Stokes absorption; use the exponent 2 without it")
        check_exponent(absorption)

    def _check_elastic(self, elastic: Elastic) -> None:
        if self.dimensions == 1 or self.outer_end is not None:
            raise CaseError("shear_speed: an elastic medium requires a Cartesian grid with 2 or 3 axes")
        if self.BonA is not None:
            raise CaseError("BonA: an elastic medium is linear; omit BonA or shear_speed")
        if self.relaxation is not None or (self.absorption is not None and not self.absorption.stokes):
            raise CaseError("alpha_power: absorption of an elastic medium has the exponent 2 (Kelvin-Voigt)")
        self._check_field("shear_speed", elastic.shear_speed, minimum=0.0)
        shear, speed = np.asarray(elastic.shear_speed, float), np.asarray(self.sound_speed, float)
        if (4 * shear**2 >= 3 * speed**2).any():
            raise CaseError("shear_speed: reaches sqrt(3)/2 of the sound speed, where no material resists compression")
        if elastic.shear_alpha_coeff is None:
            return
        self._check_field("shear_alpha_coeff", elastic.shear_alpha_coeff, minimum=0.0)
        absorption = 0.0 if self.absorption is None else np.asarray(self.absorption.alpha_coeff, float)
        least = 4 / 3 * np.asarray(elastic.shear_alpha_coeff, float) * (shear / speed) ** 3
        if (absorption < least * (1 - 1e-6)).any():
            raise CaseError(
                "shear_alpha_coeff: compression would gain energy; alpha_coeff must be at least "
                f"4/3 shear_alpha_coeff (shear_speed / sound_speed)^3, here up to {float(np.max(least)):.3g}"
            )

    def _check_source(self, source: MaskSource) -> None:
        name = f"u{source.quantity}" if source.quantity in "xyz" else source.quantity
        count = source.points.size
        if source.quantity not in ("p", *self.axes, *self.stresses):
            if source.quantity[0] == "s" and self.elastic is None:
                raise CaseError(f"source {name}: a stress requires an elastic medium; set shear_speed")
            raise CaseError(f"source {name}: the grid has axes {', '.join(self.axes)}")
        if source.mode not in ("dirichlet", "additive-no-correction", "additive"):
            raise CaseError(f"source {name}: mode {source.mode!r} is not dirichlet, additive-no-correction or additive")
        if not count and self.window is None:
            raise CaseError(f"source {name}: has no points")
        if count and (source.points.min() < 0 or source.points.max() >= self.points):
            raise CaseError(f"source {name}: a point lies outside the grid of {self.points} points")
        if source.samples.ndim != 2 or source.samples.shape[1] not in (1, count):
            raise CaseError(
                f"source {name}: {source.samples.shape[-1]} signals for {count} points; expected 1 or {count}"
            )
        max_delay = 0 if source.delays is None or not source.delays.size else int(source.delays.max())
        if source.delays is not None and (source.delays.shape != (count,) or source.delays.min() < 0):
            raise CaseError(f"source {name}: delays are not {count} numbers >= 0")
        if source.weights is not None and source.weights.shape != (count,):
            raise CaseError(f"source {name}: weights are not {count} numbers")
        if source.steps < 1 or source.steps + max_delay > len(source.samples):
            raise CaseError(
                f"source {name}: {len(source.samples)} samples are too few for {source.steps} steps with delays up to"
                f" {max_delay}"
            )
        if not np.isfinite(source.samples).all():
            raise CaseError(f"source {name}: not every sample is a finite number")


def stress_names(axes: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the stresses on a grid: "sxx" and so on, then "sxy" and so on."""
    return (*(f"s{axis}{axis}" for axis in axes), *(f"s{a}{b}" for a, b in combinations(axes, 2)))


def _positive(name: str, value: float) -> None:
    if not (np.isfinite(value) and value > 0):
        raise CaseError(f"{name}: {value:g} is not a number > 0")
