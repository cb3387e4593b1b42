# SPDX-License-Identifier: BSD-3-Clause
"""The red cell of `seiche validate cells`, the default of case files, examples and docs (SI units).

Its deformation by optical tweezers is within the error bars of Mills et al. 2004. It recovers from stretching in the
time that Hochmuth et al. 1979 measured (theory/cells, section 9).
"""

from __future__ import annotations

from seiche.cells.laws import Skalak
from seiche.cells.mesh import biconcave
from seiche.cells.model import CellType, MembraneModel

#: At rest (Mills et al. 2004).
DIAMETER = 7.57e-6
#: G and C of Skalak's law.
SHEAR, AREA_RATIO = 2.8e-6, 10.0
#: Surface viscosity (N s/m) from recovery, 0.3 to 0.7 uN s/m; tank-treading gives about 0.1 uN s/m.
VISCOSITY = 0.3e-6
#: Relaxation time (s) of the spring in series with it, by default; far below the time of recovery.
RELAXATION = 1e-3
#: G = 2.8 uN/m, area modulus 0.2 mN/m, bending modulus 2e-19 J, stress-free in the biconcave shape. A third of the area
#: modulus is Skalak's with C = 10, the rest that of each triangle; without it control points of Loop shells crumple.
MODEL = MembraneModel(
    Skalak(SHEAR, AREA_RATIO),
    bending=2e-19,
    spontaneous_curvature="rest",
    area=28e-6,
    local_area=140e-6,
    volume=1000.0,
    viscosity=VISCOSITY,
    relaxation=RELAXATION,
)


def red_cell(
    vertices: int = 642, *, length: float = 1e-6, force: float = 1e-12, time: float = 1.0, name: str = "red"
) -> CellType:
    """Return the red cell in units of `length` (m), `force` (N) and `time` (s): by default um, pN and s.

    Its surface viscosity acts in a flow, where the unit of time is a step (`couple.limits.with_shortest_relaxation`).

    Raises:
        CaseError: a number of vertices that `biconcave` does not support.
    """
    return CellType(name, biconcave(vertices, 0.5 * DIAMETER / length), MODEL.in_units(length, force, time))
