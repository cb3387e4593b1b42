# SPDX-License-Identifier: BSD-3-Clause
"""The red cell that `seiche validate cells` checks: the default of case files, examples and docs (SI units).

Stretched by optical tweezers it is within the error bars of Mills et al. 2004 (theory/cells, section 8).
"""

from __future__ import annotations

from seiche.cells.laws import Skalak
from seiche.cells.mesh import biconcave
from seiche.cells.model import CellType, MembraneModel

#: At rest, as Mills et al. 2004 measured it.
DIAMETER = 7.57e-6
#: G and C of Skalak's law.
SHEAR, AREA_RATIO = 2.8e-6, 10.0
#: G = 2.8 uN/m, modulus of area 0.2 mN/m (a third of it Skalak's with C = 10, the rest that of each triangle, without
#: which the control points of Loop shells slowly crumple), bending modulus 2e-19 J, stress free in the biconcave shape.
MODEL = MembraneModel(
    Skalak(SHEAR, AREA_RATIO), bending=2e-19, spontaneous_curvature="rest", area=28e-6, local_area=140e-6, volume=1000.0
)


def red_cell(vertices: int = 642, *, length: float = 1e-6, force: float = 1e-12, name: str = "red") -> CellType:
    """Return the red cell in units of `length` (m) and `force` (N), by default micrometres and piconewtons.

    Raises:
        CaseError: a number of vertices that `biconcave` does not have.
    """
    return CellType(name, biconcave(vertices, 0.5 * DIAMETER / length), MODEL.in_units(length, force))
