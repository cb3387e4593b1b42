# SPDX-License-Identifier: BSD-3-Clause
"""Plane waves in a homogeneous medium: initial states and exact solutions (theory/waves, eq. 18)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.kernels.registry.dg import Medium

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PlaneWave:
    """v = polarization g(direction.x/c - t), with the corresponding stress or pressure.

    Attributes:
        kind: "p" (longitudinal) or "s" (transverse).
        direction: direction of propagation, of any length, (dim,).
        density, cp, cs: the medium.
        polarization: of an s wave, perpendicular to the direction; chosen by default.
    """

    kind: Literal["p", "s"]
    direction: Sequence[float]
    density: float
    cp: float
    cs: float = 0.0
    polarization: Sequence[float] | None = None

    def __post_init__(self) -> None:
        """Raise CaseError for vectors of zero length, an s wave in a fluid, or one that is not transverse."""
        for name, vector in (("direction", self.direction), ("polarization", self.polarization)):
            if vector is not None and not np.linalg.norm(vector) > 0:
                raise CaseError(f"plane wave: {name} {list(vector)} has zero length")
        if self.kind == "s" and not self.cs > 0:
            raise CaseError("plane wave: an s wave requires a solid, cs > 0")
        polarization = self.polarization
        if polarization is not None and abs(np.dot(self._unit_direction, polarization)) > 1e-9 * np.linalg.norm(
            polarization
        ):
            raise CaseError(f"plane wave: polarization {list(polarization)} is not perpendicular to the direction")

    @property
    def _unit_direction(self) -> Floats:
        d = np.asarray(self.direction, np.float64)
        return np.asarray(d / np.linalg.norm(d))

    @property
    def speed(self) -> float:
        """Return the speed of the wave."""
        return self.cp if self.kind == "p" else self.cs

    @property
    def motion(self) -> Floats:
        """Return the unit vector of the velocity."""
        direction = self._unit_direction
        if self.kind == "p":
            return direction
        if self.polarization is not None:
            transverse = np.asarray(self.polarization, np.float64)
        elif len(direction) == 2:
            transverse = np.array([-direction[1], direction[0]])
        else:
            transverse = np.cross(direction, np.eye(3)[int(np.argmin(abs(direction)))])
        return np.asarray(transverse / np.linalg.norm(transverse))

    def state(self, medium: Medium, positions: Floats, time: float, g: Callable[[Floats], Floats]) -> Floats:
        """Return the unknowns at positions (elements, nodes, dim): (elements, fields, nodes)."""
        unit_direction, motion = self._unit_direction, self.motion
        amplitude = g(positions @ unit_direction / self.speed - time)
        velocity = [component * amplitude for component in motion]
        if medium == "acoustic":
            return np.stack([self.density * self.cp * amplitude, *velocity], 1)
        gradient = np.outer(motion, unit_direction) / self.speed
        mu = self.density * self.cs**2
        lam = self.density * self.cp**2 - 2 * mu
        stress = -(lam * np.trace(gradient) * np.eye(len(unit_direction)) + mu * (gradient + gradient.T))
        rows = (
            [(0, 0), (1, 1), (0, 1)] if len(unit_direction) == 2 else [(0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)]
        )
        return np.stack([*velocity, *(stress[row] * amplitude for row in rows)], 1)
