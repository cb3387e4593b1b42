# SPDX-License-Identifier: BSD-3-Clause
"""The red cell of all checks, one set of parameters, and the lattice that it is put on: micrometres, piconewtons, s.

In these units a viscosity of 1 mPa s is 1e-3, a surface modulus of 1 uN/m is 1, an energy of 1e-18 J is 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from seiche.cells import CellType, MembraneModel, Repulsion, Skalak, biconcave
from seiche.domain.surface import Surface

#: Half the diameter at rest: 7.57 um, the one that Mills et al. 2004 measured.
RADIUS = 0.5 * 7.57
#: G = 2.8 uN/m, modulus of area 0.2 mN/m (a third of it Skalak's with C = 10, the rest that of each triangle, without
#: which the control points of Loop shells slowly crumple), bending modulus 2e-19 J, stress free in the biconcave shape.
MODEL = MembraneModel(
    Skalak(2.8, 10.0), bending=0.2, spontaneous_curvature="rest", area=28.0, local_area=140.0, volume=1000.0
)
#: Viscosities (pN s/um^2) of plasma, of what is inside a cell, and of the dextran of Tran-Son-Tay et al. 1984.
PLASMA, CYTOSOL, DEXTRAN = 1.2e-3, 6e-3, 35e-3
#: Contact force between two vertices (pN), and how far it reaches between cells and from a wall (um).
CONTACT, REACH, WALL_REACH = 0.2, 0.3, 0.5


@dataclass(frozen=True)
class Lattice:
    """Sites `spacing` um apart, steps of `step` s, in a fluid of viscosity `outer` that is `viscosity` on the lattice.

    Inertia is none of the numbers: the density is what makes a step so long (`density`), greater than that of the
    fluid, and the Reynolds number with it.
    """

    spacing: float
    step: float
    outer: float
    viscosity: float = 0.5

    @property
    def density(self) -> float:
        """Return the density that the fluid has in the computation, kg/m^3."""
        return 1e12 * self.outer * self.step / (self.viscosity * self.spacing**2)

    @property
    def force(self) -> float:
        """Return the unit of force of the lattice, pN."""
        return self.outer * self.spacing**2 / (self.viscosity * self.step)

    def red_cell(self, vertices: int) -> CellType:
        """Return the cell in lattice units."""
        mesh, law, tension = biconcave(vertices, RADIUS / self.spacing), MODEL.law, self.force / self.spacing
        assert isinstance(law, Skalak)
        model = replace(
            MODEL,
            law=Skalak(law.shear / tension, law.area_ratio),
            bending=MODEL.bending / (self.force * self.spacing),
            area=MODEL.area / tension,
            local_area=MODEL.local_area / tension,
            volume=MODEL.volume * self.spacing / tension,
        )
        return CellType("red", Surface(mesh.vertices, mesh.faces), model)

    def contact(self, reach: float = REACH) -> Repulsion:
        """Return the contact force that has a `reach` (um), in lattice units."""
        return Repulsion(CONTACT / self.force, reach / self.spacing)
