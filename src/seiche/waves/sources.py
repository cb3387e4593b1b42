# SPDX-License-Identifier: BSD-3-Clause
"""Point sources and receivers: time functions, and interpolation at the nodes (theory/waves, section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.kernels.registry.dg import Medium
from seiche.waves.basis import Basis
from seiche.waves.mesh import Mesh

Floats = npt.NDArray[np.float64]


class TimeFunction(Protocol):
    """Amplitude of a source in time."""

    def __call__(self, t: Floats) -> Floats:
        """Return the amplitudes at the times `t`."""


class Pulse:
    """A function of time with a positive scale, the frequency or time in the field that `scale` names."""

    scale: ClassVar[str]

    def __post_init__(self) -> None:
        """Raise CaseError for a scale that is not positive."""
        value = getattr(self, self.scale)
        if not (np.isfinite(value) and value > 0):
            raise CaseError(f"source: {type(self).__name__} pulse: {self.scale} = {value:g} must be positive")


@dataclass(frozen=True)
class Ricker(Pulse):
    """(1 - 2 a) exp(-a), a = (pi f (t - delay))^2: peak frequency f, largest at `delay`."""

    scale = "frequency"

    frequency: float
    delay: float

    def __call__(self, t: Floats) -> Floats:
        """Return the amplitudes."""
        a = (np.pi * self.frequency * (t - self.delay)) ** 2
        return np.asarray((1 - 2 * a) * np.exp(-a))


@dataclass(frozen=True)
class Gaussian(Pulse):
    """exp(-(t - delay)^2/(2 sigma^2))/(sigma sqrt(2 pi)), of area 1; with delay >= 6 sigma it starts near zero."""

    scale = "sigma"

    sigma: float
    delay: float

    def __call__(self, t: Floats) -> Floats:
        """Return the amplitudes."""
        z = (t - self.delay) / self.sigma
        return np.asarray(np.exp(-0.5 * z * z) / (self.sigma * np.sqrt(2 * np.pi)))


@dataclass(frozen=True)
class Brune(Pulse):
    """(t/T^2) exp(-t/T) after t = 0, of area 1 (Brune 1970)."""

    scale = "duration"

    duration: float

    def __call__(self, t: Floats) -> Floats:
        """Return the amplitudes."""
        time_since_onset = np.maximum(t, 0.0)
        return np.asarray(time_since_onset / self.duration**2 * np.exp(-time_since_onset / self.duration))


@dataclass(frozen=True)
class PointSource:
    """A force, a moment rate (solids) or a volume rate (fluids) at a point, times a function of time.

    Exactly one of the three is set: `force` (dim,), `moment` (dim, dim; symmetric; the unit matrix is an explosion) or
    `volume`, a number.
    """

    position: Sequence[float]
    time: TimeFunction
    force: Sequence[float] | None = None
    moment: Sequence[Sequence[float]] | None = None
    volume: float | None = None

    def strengths(self, medium: Medium, dim: int) -> Floats:
        """Return the source of each field for unit amplitude, before division by density or modulus, (fields,).

        Raises:
            CaseError: not exactly one kind, a wrong number of components, numbers that are not finite, or a kind that
                the medium does not support.
        """
        kinds = [name for name in ("force", "moment", "volume") if getattr(self, name) is not None]
        if len(kinds) != 1:
            raise CaseError(
                f"source: expected exactly one of force, moment and volume, got {', '.join(kinds) or 'none'}"
            )
        acoustic = medium == "acoustic"
        fields = np.zeros(dim + 1 if acoustic else dim + dim * (dim + 1) // 2)
        if self.force is not None:
            if np.shape(self.force) != (dim,):
                raise CaseError(f"source: force {self.force} requires {dim} components")
            fields[1 if acoustic else 0 :][:dim] = self.force
        elif self.volume is not None:
            if not acoustic:
                raise CaseError("source: volume requires the acoustic medium; use moment in an elastic one")
            fields[0] = self.volume
        else:
            m = np.asarray(self.moment, np.float64)
            if acoustic:
                raise CaseError("source: moment requires the elastic medium; use volume in an acoustic one")
            if m.shape != (dim, dim) or not np.array_equal(m, m.T):
                raise CaseError(f"source: moment {m.tolist()} must be a symmetric {dim} x {dim} matrix")
            rows = [(0, 0), (1, 1), (0, 1)] if dim == 2 else [(0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)]
            fields[dim:] = [-m[row] for row in rows]
        if not np.isfinite(fields).all():
            raise CaseError(f"source at {list(self.position)}: {kinds[0]} must be finite")
        return fields


@dataclass(frozen=True)
class Points:
    """Points distributed over the elements of this rank that touch them, sorted by element.

    Attributes:
        element: element of each part, (parts,), ascending.
        point: point of each part, (parts,).
        share: fraction of the point, (parts,); the fractions of a point add up to one.
        values: Lagrange polynomials at the point, (parts, dim, n).
    """

    element: npt.NDArray[np.int32]
    point: npt.NDArray[np.int64]
    share: Floats
    values: Floats


def share_out(
    mesh: Mesh, basis: Basis, positions: Sequence[Sequence[float]], label: str, world: World | None = None
) -> Points:
    """Return this rank's parts of points; the elements around a face, edge or corner have equal shares (collective).

    The positions are the same on every rank. Raises CaseError for a point outside the mesh.
    """
    world = world or World.serial()
    touching = [mesh.elements_at(position, label) for position in positions]
    counts = world.allreduce_sum(np.array([len(elements) for elements, _ in touching], np.int64))
    parts = sorted(
        (
            (int(element), point, 1.0 / float(counts[point]), basis.values(local))
            for point, (elements, locals_of_point) in enumerate(touching)
            for element, local in zip(elements, locals_of_point, strict=True)
        ),
        key=lambda part: part[:2],
    )
    element, point, share, values = zip(*parts, strict=True) if parts else ((),) * 4
    polynomials = np.array(values, np.float64).reshape(-1, mesh.dim, basis.n)
    return Points(np.array(element, np.int32), np.array(point, np.int64), np.array(share, np.float64), polynomials)
