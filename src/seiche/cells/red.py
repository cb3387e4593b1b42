# SPDX-License-Identifier: BSD-3-Clause
"""Red cell of `seiche validate cells`, the default in case files, examples and docs (SI units).

Its deformation by optical tweezers is within the error bars of Mills et al. 2004. Its recovery time after stretching
agrees with the measurements of Hochmuth et al. 1979 (theory/cells, section 9).
"""

from __future__ import annotations

from seiche.cells.laws import Skalak
from seiche.cells.mesh import biconcave
from seiche.cells.model import CellType, MembraneModel

#: Diameter at rest (Mills et al. 2004).
DIAMETER = 7.57e-6
#: G and C of Skalak's law.
SHEAR, AREA_RATIO = 2.8e-6, 10.0
#: Surface viscosity (N s/m) from recovery, 0.3 to 0.7 uN s/m; tank-treading gives about 0.1 uN s/m.
VISCOSITY = 0.3e-6
#: Default relaxation time (s) of the spring in series with the surface viscosity; far below the recovery time.
RELAXATION = 1e-3
#: G = 2.8 uN/m, area modulus 0.2 mN/m, bending modulus 2e-19 J, stress-free in the biconcave shape. A third of the area
#: modulus is that of Skalak's law with C = 10, the rest that of triangles, without which Loop control points crumple.
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
    """Return the red cell in units of `length` (m), `force` (N) and `time` (s), by default um, pN and s.

    Its surface viscosity acts only in a flow, where the unit of time is a step
    (`couple.limits.with_shortest_relaxation`).

    Raises:
        CaseError: `biconcave` does not support the number of vertices.
    """
    return CellType(name, biconcave(vertices, 0.5 * DIAMETER / length), MODEL.in_units(length, force, time))
