# SPDX-License-Identifier: BSD-3-Clause
"""The red cell of all checks, that of `seiche.cells.red`, and its lattice: um, pN, s.

In these units a viscosity of 1 mPa s is 1e-3, a surface modulus of 1 uN/m is 1, an energy of 1e-18 J is 1.
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
#: Contact force between two vertices (pN), and its reach between cells and from a wall (um).
CONTACT, REACH, WALL_REACH = 0.2, 0.3, 0.5


@dataclass(frozen=True)
class CellLattice:
    """Sites `spacing` um apart, steps of `step` s, in a fluid of viscosity `outer` that is `viscosity` on the lattice.

    The density follows from the length of a step. It is greater than that of the fluid, as is the Reynolds number.
    """

    spacing: float
    step: float
    outer: float
    viscosity: float = 0.5

    @property
    def density(self) -> float:
        """Return the density of the fluid in the computation, kg/m^3."""
        return 1e12 * self.outer * self.step / (self.viscosity * self.spacing**2)

    @property
    def force(self) -> float:
        """Return the unit of force of the lattice, pN."""
        return self.outer * self.spacing**2 / (self.viscosity * self.step)

    def red_cell(self, vertices: int, viscosity: float = VISCOSITY) -> CellType:
        """Return the cell in lattice units; its surface has another `viscosity` (N s/m) if one is given."""
        kind = red_cell(vertices, length=1e-6 * self.spacing, force=1e-12 * self.force, time=self.step)
        model = replace(kind.model, viscosity=kind.model.viscosity * (viscosity / VISCOSITY))
        return replace(
            kind, model=with_shortest_relaxation(model, self.viscosity) if viscosity else replace(model, relaxation=0.0)
        )

    def contact(self, reach: float = REACH) -> Repulsion:
        """Return the contact force that has a `reach` (um), in lattice units."""
        return Repulsion(CONTACT / self.force, reach / self.spacing)
