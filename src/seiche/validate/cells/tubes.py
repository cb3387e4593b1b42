# SPDX-License-Identifier: BSD-3-Clause
"""Suspensions of red cells in periodic tubes: apparent viscosity, hematocrits, cell-free layer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from seiche.cells import Cells, Contact, Tube, pack
from seiche.cells.red import VISCOSITY
from seiche.cells.space import wall_points
from seiche.couple import Blood
from seiche.couple.immersed import Scheme
from seiche.domain import shapes
from seiche.domain.sites import SiteSet
from seiche.domain.surface import Surface
from seiche.flow import FlowModel, Newtonian, Precision, Walls
from seiche.flow.solver import FlowSolver
from seiche.kernels.registry.ibm import Delta
from seiche.validate.cells.red_cells import CYTOSOL, PLASMA, WALL_REACH, CellLattice
from seiche.validate.check import Floats, Setting

#: Hydrodynamic radius minus that of the vertices, in sites, from the drag on a sphere (docs/theory/coupling.md,
#: section 1). It also applies to cells.
EXCESS: dict[Delta, float] = {"hat": 0.43, "roma": 0.51, "peskin": 0.67}
#: Maximum number of vertices of the meshes used for packing; finding overlaps of finer meshes takes longer.
_MAX_PACKING_VERTICES = 642


def relative_viscosity(diameter: float, hematocrit: float) -> float:
    """Return the apparent viscosity relative to plasma in a glass tube (Pries et al. 1992).

    `diameter` is in um; `hematocrit` is the discharge hematocrit.
    """
    at_45 = 220 * math.exp(-1.3 * diameter) + 3.2 - 2.44 * math.exp(-0.06 * diameter**0.645)
    q = 1 / (1 + 1e-11 * diameter**12)
    c = (0.8 + math.exp(-0.075 * diameter)) * (q - 1) + q
    curve: float = ((1 - hematocrit) ** c - 1) / (0.55**c - 1)
    return 1 + (at_45 - 1) * curve


def hematocrit_ratio(diameter: float, hematocrit: float) -> float:
    """Return tube over discharge hematocrit (Pries 1990); `diameter` in um, `hematocrit` is that of the discharge."""
    factor = 1 + 1.7 * math.exp(-0.415 * diameter) - 0.6 * math.exp(-0.011 * diameter)
    return hematocrit + (1 - hematocrit) * factor


def swollen(surface: Surface, distance: float) -> float:
    """Return the relative volume of `surface` after every vertex has moved by `distance` along its normal."""
    normals = np.zeros_like(surface.vertices)
    a, b, c = (surface.vertices[surface.faces[:, k]] for k in range(3))
    for corner in surface.faces.T:
        np.add.at(normals, corner, np.cross(b - a, c - a))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return float(Surface(surface.vertices + distance * normals, surface.faces).volume / surface.volume)


@dataclass(frozen=True)
class TubeSuspension:
    """Red cells in a periodic tube along x, driven by a body force. Lengths are in um and times in s.

    `rate` is the mean velocity divided by the diameter, for this force and the empirical viscosity. The duration of the
    run is `transits` / `rate`; measurements cover the last fraction `share` of it. `surface_viscosity` is in N s/m.
    """

    diameter: float
    hematocrit: float
    rate: float = 80.0
    transits: float = 20.0
    length: float = 40.0
    lattice: CellLattice = field(default_factory=lambda: CellLattice(0.5, 2e-6, PLASMA, 0.25))
    vertices: int = 642
    delta: Delta = "peskin"
    scheme: Scheme = "adams-bashforth"
    surface_viscosity: float = VISCOSITY
    gap: float = 0.8
    share: float = 0.5
    samples: int = 32
    seed: int = 1

    @property
    def steps(self) -> int:
        """Return the number of steps of the run, a multiple of 32 times the number of samples."""
        return max(round(self.transits / (self.rate * self.lattice.step) / self.samples / 32), 1) * 32 * self.samples

    @cached_property
    def sites(self) -> SiteSet:
        """Return the tube, whose axis passes through the point `axis`."""
        radius = 0.5 * self.diameter / self.lattice.spacing
        return shapes.tube(radius, round(self.length / self.lattice.spacing), 1.0, periodic=True)

    @property
    def axis(self) -> Floats:
        """Return y and z of the axis in site coordinates."""
        return -np.asarray(self.sites.origin, np.float64)[1:]

    @property
    def body_force(self) -> float:
        """Return the force per site."""
        viscosity = PLASMA * relative_viscosity(self.diameter, 1.2 * self.hematocrit)
        gradient = 32 * viscosity * self.rate / self.diameter  # pN/um^3
        return gradient * self.lattice.spacing**3 / self.lattice.force

    def solver(self, setting: Setting) -> FlowSolver:
        """Return the plasma at rest, subject to the body force."""
        model = FlowModel(
            Newtonian(self.lattice.viscosity), body_force=(self.body_force, 0.0, 0.0), walls=Walls("bouzidi")
        )
        return setting.solver(self.sites, model, precision=Precision("float32", "float32"))

    def blood(self, setting: Setting) -> Blood:
        """Return the tube with its randomly packed cells, which are slightly away from the wall."""
        lattice, solver = self.lattice, self.solver(setting)
        cell_type = lattice.red_cell(self.vertices, self.surface_viscosity)
        radius, length = 0.5 * self.diameter / lattice.spacing, float(self.sites.shape[0])
        packing_tube = Tube(radius - self.gap / lattice.spacing, length)
        cell_count = self.hematocrit * math.pi * radius**2 * length / packing_tube.volume
        shape = lattice.red_cell(min(self.vertices, _MAX_PACKING_VERTICES)).moving_mesh()
        packing = pack(packing_tube, [shape], cell_count, seed=self.seed, backend=solver.backend)
        centers = packing.centers + np.array([0.0, *self.axis])
        cells = Cells(solver.backend, [cell_type], [centers], [packing.rotations], precision=solver.precision.compute)
        contact = Contact(
            cells,
            lattice.contact(),
            wall=lattice.contact(WALL_REACH),
            wall_points=wall_points(self.sites)[0],
            lengths=(length, 0.0, 0.0),
        )
        contrast = CYTOSOL / lattice.outer
        return Blood(
            solver,
            cells,
            contact=contact,
            delta=self.delta,
            scheme=self.scheme,
            viscosity_contrast=contrast,
            mark_every=4,
        )

    def plasma_speed(self, setting: Setting) -> float:
        """Return the mean velocity of plasma without cells, in lattice units."""
        solver = self.solver(setting)
        radius = 0.5 * self.diameter / self.lattice.spacing
        solver.advance(round(2 * radius**2 / self.lattice.viscosity))
        speed = float(solver.fields(["velocity"])["velocity"][:, 0].mean())
        solver.close()
        return speed

    def layer(self, vertices: Floats) -> float:
        """Return the width (um) of the cell-free layer: the mean distance from the wall to the outermost membrane.

        It is measured in eight directions around the tube, for every micrometre of its length.
        """
        length = self.sites.shape[0]
        points = vertices.reshape(-1, 3)
        bins = round(length * self.lattice.spacing)
        bin_index = (np.mod(points[:, 0], length) * bins / length).astype(np.int64) % bins
        angles = 2 * np.pi * np.arange(8) / 8
        lateral = (points[:, 1:] - self.axis) @ np.stack([np.cos(angles), np.sin(angles)])
        outer = np.zeros((bins, len(angles)))
        np.maximum.at(outer, bin_index, lateral)
        occupied = outer[outer.max(axis=1) > 0]
        return float(0.5 * self.diameter - self.lattice.spacing * occupied.mean())

    def run(self, setting: Setting) -> TubeMeasurements:
        """Run the suspension and return the measurements."""
        blood = self.blood(setting)
        plasma, rest = self.plasma_speed(setting), blood.cells.blocks[0].rest
        interval, rows = self.steps // self.samples, []
        for _ in range(self.samples):
            blood.advance(interval)
            vertices, measures = blood.vertices(), blood.areas_and_volumes()
            drift = np.abs(measures / [rest.area, rest.volume] - 1).max(axis=0)
            speed = float(blood.solver.fields(["velocity"])["velocity"][:, 0].mean())
            position = float(vertices[:, :, 0].mean())
            rows.append((blood.solver.step, speed, position, self.layer(vertices), blood.hematocrit(), *drift))
        blood.solver.close()
        return TubeMeasurements(self, plasma, np.array(rows))


@dataclass(frozen=True, eq=False)
class TubeMeasurements:
    """Measurements of a suspension.

    `rows`: step, mean velocity of the suspension, mean position of the cells along the tube, cell-free layer (um), tube
    hematocrit, largest relative changes of area and volume of a cell. `plasma` is the mean velocity without cells.
    """

    suspension: TubeSuspension
    plasma: float
    rows: Floats

    @property
    def _second_part(self) -> Floats:
        return self.rows[-max(round(self.suspension.share * len(self.rows)), 2) :]

    @property
    def speed(self) -> float:
        """Return the mean velocity in lattice units."""
        return float(self._second_part[1:, 1].mean())

    @property
    def viscosity(self) -> float:
        """Return the apparent viscosity relative to that of plasma."""
        return self.plasma / self.speed

    @property
    def tube_hematocrit(self) -> float:
        """Return the cell volume divided by the tube volume."""
        return float(self._second_part[:, 4].mean())

    @property
    def discharge_hematocrit(self) -> float:
        """Return the volume flow of cells over that of the suspension."""
        second_part = self._second_part
        cells = (second_part[-1, 2] - second_part[0, 2]) / (second_part[-1, 0] - second_part[0, 0])
        return self.tube_hematocrit * float(cells) / self.speed

    @property
    def effective_hematocrit(self) -> float:
        """Return the discharge hematocrit calculated with the hydrodynamic cell volume."""
        suspension = self.suspension
        cell_type = suspension.lattice.red_cell(suspension.vertices)
        return self.discharge_hematocrit * swollen(cell_type.moving_mesh(), EXCESS[suspension.delta])

    @property
    def layer(self) -> float:
        """Return the hydrodynamic width of the cell-free layer, um."""
        suspension = self.suspension
        return float(self._second_part[:, 3].mean()) - EXCESS[suspension.delta] * suspension.lattice.spacing

    @property
    def drift(self) -> tuple[float, float]:
        """Return the largest relative changes of area and volume of any cell in the whole run."""
        return float(self.rows[:, 5].max()), float(self.rows[:, 6].max())
