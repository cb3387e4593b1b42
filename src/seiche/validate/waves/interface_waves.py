# SPDX-License-Identifier: BSD-3-Clause
"""Exact Rayleigh, Scholte and Stoneley waves along a plane interface (wave number 2 pi)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from seiche.validate.waves.plane_layers import Solid, plane_fields
from seiche.waves import Material, Mesh

Floats = npt.NDArray[np.float64]
Complex = npt.NDArray[np.complex128]


@dataclass(frozen=True)
class InterfaceWave:
    """exp(i 2 pi (x - speed t)) along y = 0, decaying away from it; `above` is a medium or vacuum (None).

    In each medium, the potentials of longitudinal and shear motion decay as exp(-q abs(y)), with q^2 = 1 - speed^2/c^2
    in units of the wave number. The conditions at y = 0 determine their amplitudes.
    """

    below: Solid
    above: Solid | None
    speed: float

    def _fields(self, medium: Solid, decay: float, ux: complex, uy: complex) -> Complex:
        """Return v_x, v_y, S_xx, S_yy, S_xy of a displacement (ux, uy) exp(i x + decay y)."""
        return plane_fields(medium, (1j, decay), self.speed, (ux, uy))

    @cached_property
    def _potentials(self) -> list[tuple[float, bool, Complex]]:
        """Return the decay, whether the medium is the upper one, and the fields of each potential."""
        potentials = []
        for medium, above in ((self.below, False), (self.above, True)):
            if medium is None:
                continue
            sign = -1.0 if above else 1.0
            qp = sign * np.sqrt(1 - (self.speed / medium.cp) ** 2)
            potentials.append((float(qp), above, self._fields(medium, qp, 1j, qp)))
            if medium.cs > 0:
                qs = sign * np.sqrt(1 - (self.speed / medium.cs) ** 2)
                potentials.append((float(qs), above, self._fields(medium, qs, qs, -1j)))
        return potentials

    @cached_property
    def _solution(self) -> tuple[Complex, float]:
        def jump(field: int) -> list[complex]:
            return [complex(fields[field]) * (-1 if above else 1) for _, above, fields in self._potentials]

        def below(field: int) -> list[complex]:
            return [0.0 if above else complex(fields[field]) for _, above, fields in self._potentials]

        if self.above is None:
            rows = [jump(3), jump(4)]
        elif self.above.cs == 0:
            rows = [jump(1), jump(3), below(4)]
        else:
            rows = [jump(field) for field in (0, 1, 3, 4)]
        _, singular, vectors = np.linalg.svd(np.array(rows))
        return vectors[-1].conj(), float(singular[-1] / singular[0])

    @property
    def misfit(self) -> float:
        """Return the relative smallest singular value of the interface conditions, which is zero at the true speed."""
        return self._solution[1]

    def material(self, mesh: Mesh) -> Material:
        """Return the material of a mesh; elements above y = 0 belong to the upper medium."""
        upper = self.above or self.below
        above = mesh.lower[: mesh.count, 1] >= 0
        names = "density", "cp", "cs"
        return Material(*(np.where(above, getattr(upper, name), getattr(self.below, name)) for name in names))

    def state(self, positions: Floats, time: float) -> Floats:
        """Return the unknowns of the elastic medium at the element nodes, (elements, 5, nodes)."""
        x, y = 2 * np.pi * np.moveaxis(positions, -1, 0)
        upper = positions[..., 1].mean(1) > 0
        total = np.zeros((len(x), 5, x.shape[1]))
        for amplitude, (decay, above, fields) in zip(self._solution[0], self._potentials, strict=True):
            wave = np.exp(1j * (x - 2 * np.pi * self.speed * time) + decay * y) * (upper == above)[:, None]
            total += (amplitude * fields[:, None] * wave[:, None]).real
        return total
