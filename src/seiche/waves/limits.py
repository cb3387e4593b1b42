# SPDX-License-Identifier: BSD-3-Clause
"""The largest stable time step (theory/waves, section 7)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.waves.basis import Basis
from seiche.waves.fluxes import Flux
from seiche.waves.material import Material
from seiche.waves.mesh import Mesh
from seiche.waves.ranks import with_ghosts

Floats = npt.NDArray[np.float64]

#: Largest dt c/h of leapfrog on cubes, by nodes a direction (eigenvalues; theory/waves, table 3), and the same in units
#: of the smallest distance of two nodes, for other numbers of nodes.
_LEAPFROG, _LEAPFROG_RULE = {3: 0.2283, 4: 0.1269, 5: 0.0812, 6: 0.0560, 7: 0.0408, 8: 0.0310}, 0.45
#: Between these ratios c_p/c_s the upwind step in solids may be longer, with four nodes or more, by this in 2 and 3
#: dimensions.
_SOLID = (1.7, 2.05)
_LONGER = {2: 1.25, 3: 1.35}
#: Where the upwind flux meets a medium that varies from node to node, this share of sqrt(kappa/rho), with the stiffest
#: and the lightest node of an element, counts as a speed (spectra of random media with contrasts to 100).
_WITHIN = 0.65

#: How much faster the waves of the large side of a hanging face count with the upwind flux, per unit of 2 Z-/(Z- + Z+)
#: in solids, of 2 Z+/(Z- + Z+) in fluids (measured radii of the spectrum; theory/waves, section 7); and with the
#: central flux.
_HANGING = {"elastic": 1.55, "acoustic": 0.97, "central": 1.45}


def largest_step(
    mesh: Mesh, material: Material, nodes: int, flux: Flux, world: World | None = None, *, leapfrog: bool = False
) -> float:
    """Return the time step at which the fastest mode of any element of all ranks would begin to grow (collective).

    A box that is no cube counts as one of side 3/(1/h_x + 1/h_y + 1/h_z); with the central flux, where frequencies of
    the axes add up in squares, of side sqrt(3/(1/h_x^2 + 1/h_y^2 + 1/h_z^2)).
    """
    world = world or World.serial()
    gap = float(Basis(nodes).nodes[1] + 1) / 2
    largest, rule = (_LEAPFROG, _LEAPFROG_RULE) if leapfrog else (flux.largest, flux.rule)
    number = largest.get(nodes, rule * gap)
    inverse = 1.0 / mesh.sizes[: mesh.count]
    side = np.sqrt(3.0 / (inverse**2).sum(1)) if flux.averages else 3.0 / inverse.sum(1)
    speed = material.cp.reshape(mesh.count, -1).max(1) * _haste(mesh, material, flux, world)
    ratio = material.cp / np.where(material.cs > 0, material.cs, np.inf)  # of a fluid 0
    lowest, highest = -world.allreduce_max(np.array([-ratio.min(), ratio.max()])) * [1, -1]
    if not flux.averages and nodes >= 4 and _SOLID[0] <= lowest and highest <= _SOLID[1]:
        number *= _LONGER[mesh.dim]
    return float(-world.allreduce_max(np.array([-np.min(number * side / speed)]))[0])


def _haste(mesh: Mesh, material: Material, flux: Flux, world: World) -> Floats:
    """Return by what every element's speed has to be multiplied for what lies beyond its faces, (count,) (collective).

    Averages couple an element's stiffness with its neighbour's inertia: sqrt(kappa-/rho+) and sqrt(kappa+/rho-) count
    as speeds, and so do those of two nodes of one element. The upwind flux is so fast only at the large sides of
    hanging faces, whose small sides see its highest mode enlarged, and a part of it inside elements.
    """
    medium = "elastic" if any(world.allgather(material.has_solid)) else "acoustic"
    rows = np.stack([material.density, material.cp, material.cs], 1).reshape(mesh.count, 3, -1)
    rho, cp, cs = np.moveaxis(with_ghosts(world, mesh, rows), 1, 0)
    speeds = np.stack([cp, cs])
    low, high = (rho * speeds).min(2), (rho * speeds).max(2)  # impedances, (2, elements)
    inside = np.sqrt((rho * cp**2).max(1) / rho.min(1)) / cp.max(1)
    haste: Floats = np.maximum(1.0, inside[: mesh.count] * (1.0 if flux.averages else _WITHIN))
    for face, child in np.ndindex(mesh.faces, mesh.kinds.shape[2]):
        here = np.nonzero(mesh.neighbours[:, face, child] >= 0)[0]
        there = mesh.neighbours[here, face, child]
        large = mesh.neighbours[here, face, 1] >= 0
        if flux.averages:
            fastest = cp[here].max(1)
            stiff = [(rho * cp**2)[elements].max(1) for elements in (here, there)]
            light = [rho[elements].min(1) for elements in (there, here)]
            mixed = np.sqrt(np.maximum(stiff[0] / light[0], stiff[1] / light[1])) / fastest
            found = np.maximum(mixed, 1.0) * np.where(large, _HANGING["central"], 1.0)
        else:
            own, other = (high[:, here], low[:, there]) if medium == "elastic" else (high[:, there], low[:, here])
            total = own + other
            share = np.divide(2 * own, total, out=np.zeros_like(total), where=total > 0).max(0)
            found = np.where(large, _HANGING[medium] * share, 1.0)
        np.maximum.at(haste, here, found)
    return haste
