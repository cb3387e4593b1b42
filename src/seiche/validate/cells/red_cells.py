# SPDX-License-Identifier: BSD-3-Clause
"""The red cell of all checks, that of `seiche.cells.red`, and its lattice; units are um, pN and s.

In these units, a viscosity of 1 mPa s is 1e-3, a surface modulus of 1 uN/m is 1, and an energy of 1e-18 J is 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from seiche.cells import CellType, Repulsion, red_cell
from seiche.cells.red import DIAMETER, VISCOSITY
from seiche.couple.limits import with_shortest_relaxation

#: Half the diameter at rest (um).
RADIUS = 0.5e6 * DIAMETER
#: Viscosities (pN s/um^2) of plasma, cytosol, and the dextran of Tran-Son-Tay et al. 1984.
PLASMA, CYTOSOL, DEXTRAN = 1.2e-3, 6e-3, 35e-3
#: Contact force between two vertices (pN), and its range between cells and from a wall (um).
CONTACT, REACH, WALL_REACH = 0.2, 0.3, 0.5


@dataclass(frozen=True)
class CellLattice:
    """A lattice with the spacing `spacing` (um) and the time step `step` (s).

    The fluid viscosity is `outer`, and `viscosity` in lattice units. The density follows from the time step; it is
    greater than that of the real fluid, and so is the Reynolds number.
    """

    spacing: float
    step: float
    outer: float
    viscosity: float = 0.5

    @property
    def density(self) -> float:
        """Return the density of the computed fluid, kg/m^3."""
        return 1e12 * self.outer * self.step / (self.viscosity * self.spacing**2)

    @property
    def force(self) -> float:
        """Return the lattice unit of force, pN."""
        return self.outer * self.spacing**2 / (self.viscosity * self.step)

    def red_cell(self, vertices: int, viscosity: float = VISCOSITY) -> CellType:
        """Return the cell in lattice units, with the surface viscosity `viscosity` (N s/m)."""
        kind = red_cell(vertices, length=1e-6 * self.spacing, force=1e-12 * self.force, time=self.step)
        model = replace(kind.model, viscosity=kind.model.viscosity * (viscosity / VISCOSITY))
        return replace(
            kind, model=with_shortest_relaxation(model, self.viscosity) if viscosity else replace(model, relaxation=0.0)
        )

    def contact(self, reach: float = REACH) -> Repulsion:
        """Return the contact force with the range `reach` (um), in lattice units."""
        return Repulsion(CONTACT / self.force, reach / self.spacing)
