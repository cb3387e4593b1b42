# SPDX-License-Identifier: BSD-3-Clause
"""A single red cell in shear flow: tumbling, or tank-treading of its membrane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seiche.cells import Cells
from seiche.cells.red import VISCOSITY
from seiche.couple import Blood
from seiche.flow import Precision
from seiche.validate.cells.capsules import sheared
from seiche.validate.cells.red_cells import CYTOSOL, CellLattice
from seiche.validate.check import Floats, Setting


@dataclass(frozen=True)
class CellInShear:
    """A red cell midway between plates; um, s, pN.

    `outer` is the viscosity of the suspending fluid, `strain` the strain per time step, and `surface_viscosity` the
    surface viscosity of the membrane (N s/m). The axis of the cell lies in the shear plane, at an angle `tilt`
    (radians) to the gradient.
    """

    shear_rate: float
    outer: float
    inner: float = CYTOSOL
    spacing: float = 0.5
    vertices: int = 642
    strain: float = 1e-3
    viscosity: float = 0.5
    size: tuple[float, float, float] = (28.0, 16.0, 20.0)
    tilt: float = 0.6
    surface_viscosity: float = VISCOSITY

    @property
    def lattice(self) -> CellLattice:
        """Return the lattice."""
        return CellLattice(self.spacing, self.strain / self.shear_rate, self.outer, self.viscosity)

    def start(self, setting: Setting) -> Blood:
        """Return the cell at rest in a developed shear flow."""
        length, width, height = (float(round(size / self.spacing)) for size in self.size)
        precision = Precision("float32", "float32")
        solver = sheared(setting, (length, width, height), self.strain, self.viscosity, precision=precision)
        center = solver.sites.coords.mean(axis=0)
        rotation = [[np.cos(self.tilt), 0, np.sin(self.tilt)], [0, 1, 0], [-np.sin(self.tilt), 0, np.cos(self.tilt)]]
        kind = self.lattice.red_cell(self.vertices, self.surface_viscosity)
        cells = Cells(solver.backend, [kind], [[center]], [[rotation]], precision=solver.precision.compute)
        return Blood(solver, cells, viscosity_contrast=self.inner / self.outer)

    def motion(self, setting: Setting, total_strain: float) -> CellMotion:
        """Return the motion up to the strain `total_strain`, with 20 samples per unit strain."""
        blood = self.start(setting)
        interval = max(round(0.05 / self.strain), 1)
        vertices = [blood.cells.vertices()[0]]
        for _ in range(round(total_strain / (interval * self.strain))):
            blood.advance(interval)
            vertices.append(blood.cells.vertices()[0])
        blood.solver.close()
        rest = blood.cells.blocks[0].rest
        drift = np.abs(blood.areas_and_volumes()[0] / [rest.area, rest.volume] - 1)
        return CellMotion(np.array(vertices), interval * self.strain, self.spacing, (float(drift[0]), float(drift[1])))


@dataclass(frozen=True, eq=False)
class CellMotion:
    """Vertices (times, n, 3) of a cell, the `strain` between samples, and the final `drift` of area and volume."""

    vertices: Floats
    strain: float
    spacing: float
    drift: tuple[float, float]

    @property
    def strains(self) -> Floats:
        """Return the strain at each time."""
        return np.asarray(self.strain * np.arange(len(self.vertices)), np.float64)

    def inclination(self) -> Floats:
        """Return the unwrapped angle between the longest axis of the shape and the flow, in the shear plane."""
        x = self.vertices - self.vertices.mean(axis=1, keepdims=True)
        xx, zz, xz = ((x[:, :, a] * x[:, :, b]).sum(axis=1) for a, b in ((0, 0), (2, 2), (0, 2)))
        return np.asarray(0.5 * np.unwrap(np.arctan2(2 * xz, xx - zz)), np.float64)

    def half_axes(self) -> Floats:
        """Return the half-axes (times, 3) in um: longest and shortest in the shear plane, and normal to it."""
        angle = self.inclination()
        x = self.vertices - self.vertices.mean(axis=1, keepdims=True)
        cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
        axes = [x[:, :, 0] * cos + x[:, :, 2] * sin, x[:, :, 2] * cos - x[:, :, 0] * sin, x[:, :, 1]]
        return np.stack([0.5 * self.spacing * np.ptp(axis, axis=1) for axis in axes], axis=1)

    def treading_rate(self) -> float:
        """Return the angular velocity of the membrane in radians per unit strain, in the second half of the time.

        It is the mean over the vertices near the shear plane, about the centre, and includes the rotation of the whole
        cell.
        """
        x = self.vertices - self.vertices.mean(axis=1, keepdims=True)
        is_selected = np.abs(x[0, :, 1]) < 0.35 * np.abs(x[0, :, 1]).max()
        angles = np.unwrap(np.arctan2(x[:, is_selected, 2], x[:, is_selected, 0]), axis=0)
        half = len(angles) // 2
        return float(np.abs(angles[-1] - angles[half]).mean() / (self.strain * (len(angles) - 1 - half)))

    def half_turns(self) -> float:
        """Return the number of half turns of the whole shape in the direction of the flow."""
        angle = self.inclination()
        return float((angle[0] - angle[-1]) / np.pi)
