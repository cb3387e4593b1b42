# SPDX-License-Identifier: BSD-3-Clause
"""Moduli of Seiche's membrane that equal those of HemoCell's spring network at small strain.

HemoCell's forces are k (x + x/|c - x^2|), with a coefficient k from the file of a cell type, a relative deformation x
and a limit c (Zavodszky et al. 2017, doi 10.3389/fphys.2017.00563; coefficients and limits are those of version 2.7).
At small x they are k (1 + 1/c) x. On equilateral triangles of edge l such a network is an isotropic membrane. Its shear
modulus is G = sqrt(3)/4 times the stiffness of a spring, and its area modulus is 2 G (Seung and Nelson 1988, doi
10.1103/PhysRevA.38.1005; the same ratio for worm-like chains: Fedosov et al. 2010, doi 10.1016/j.bpj.2010.02.002).
Derivations: docs/howto/hemocell.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

#: Length (m) in the coefficient of links, the persistence length of spectrin, and that in all other coefficients.
LINK_LENGTH, LENGTH = 7.5e-9, 0.5e-6
#: Number of triangles to which the coefficients of area and volume refer.
TRIANGLES = 1280
#: Limits c of the relative deformations: link, area, volume, bending at vertices (red cell) and at edges (platelet).
LINK, AREA, VOLUME, VERTEX, HINGE = 9.0, 0.09, 0.01, 0.0555, 2.467
#: C of Skalak's law with the area modulus 2 G of a triangular network: K = G (1 + 2 C).
AREA_RATIO = 0.5


class SpringCoefficients(NamedTuple):
    """Coefficients of a cell type: dimensionless, and the viscosity of an edge in N s/m."""

    link: float
    area: float
    bend: float
    volume: float
    viscosity: float = 0.0


class ContinuumModuli(NamedTuple):
    """Shear modulus G and local area modulus (N/m), bending modulus (J), volume modulus (Pa), viscosity (N s/m)."""

    shear: float
    local_area: float
    bending: float
    volume: float
    viscosity: float


def edge_length(area: float, triangles: int) -> float:
    """Return the edge of `triangles` equal equilateral triangles with a total `area`."""
    return math.sqrt(4 * area / (math.sqrt(3) * triangles))


def continuum_moduli(
    springs: SpringCoefficients, area: float, triangles: int, *, spacing: float, energy: float, hinges: bool
) -> ContinuumModuli:
    """Return the moduli of a network of `triangles` with a total `area` (m^2) in a lattice of `spacing` (m).

    `energy` is the thermal energy (J), the unit of the coefficients. `hinges` is whether the membrane bends at edges,
    as that of a platelet does; otherwise it bends at vertices.
    """
    edge, fine = edge_length(area, triangles), TRIANGLES / triangles
    unit = energy / LENGTH
    stiffness = _slope(LINK) * springs.link * energy / (LINK_LENGTH * edge)
    pull = _slope(AREA) * springs.area * fine * unit
    pressure = springs.volume * fine * unit / VOLUME
    # A vertex deviates by l H/2 edges from the mean of its neighbours, where H is the mean curvature. An edge with the
    # angle t between its triangles has the energy sqrt(3) k t^2, and its forces have the arm sqrt(3)/2 l.
    bending = _slope(HINGE) * edge / 4 if hinges else _slope(VERTEX) * edge / (8 * math.sqrt(3))
    return ContinuumModuli(
        shear=math.sqrt(3) / 4 * stiffness,
        local_area=2 * pull / (math.sqrt(3) * spacing),
        bending=bending * springs.bend * unit,
        volume=3 * pressure * triangles / area,
        viscosity=math.sqrt(3) / 4 * springs.viscosity,
    )


def _slope(limit: float) -> float:
    return 1 + 1 / limit
