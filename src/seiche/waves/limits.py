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

#: Maximum dt c/h of leapfrog on cubes, by nodes per direction (eigenvalues; theory/waves, table 3). For other numbers
#: of nodes, the same in units of the smallest distance of two nodes.
_LEAPFROG, _LEAPFROG_RULE = {3: 0.2283, 4: 0.1269, 5: 0.0812, 6: 0.0560, 7: 0.0408, 8: 0.0310}, 0.45
#: Range of c_p/c_s in which the upwind step in solids may be longer, with four nodes or more.
_SPEED_RATIOS = (1.7, 2.05)
#: Factor by which it may be longer, by dimension.
_STEP_FACTOR = {2: 1.25, 3: 1.35}
#: Upwind flux, media by node: fraction of sqrt(kappa/rho), of the stiffest and the lightest node of an element, that
#: is used as a speed (spectra of random media with contrasts to 100).
_NODAL_FRACTION = 0.65

#: Factor of the speed on the coarse side of a hanging face (measured spectral radii; theory/waves, section 7). With the
#: upwind flux it is per unit of 2 Z-/(Z- + Z+) in solids and of 2 Z+/(Z- + Z+) in fluids.
_HANGING = {"elastic": 1.55, "acoustic": 0.97, "central": 1.45}


def largest_step(
    mesh: Mesh, material: Material, nodes: int, flux: Flux, world: World | None = None, *, leapfrog: bool = False
) -> float:
    """Return the time step above which the fastest mode of any element is unstable (collective).

    An element with sides h is treated as a cube of side 3/(1/h_x + 1/h_y + 1/h_z). With the central flux the squared
    frequencies of the axes add up, so its side is sqrt(3/(1/h_x^2 + 1/h_y^2 + 1/h_z^2)).
    """
    world = world or World.serial()
    node_distance = float(Basis(nodes).nodes[1] + 1) / 2
    limits, factor = (_LEAPFROG, _LEAPFROG_RULE) if leapfrog else (flux.courant_limits, flux.courant_factor)
    courant = limits.get(nodes, factor * node_distance)
    inverse = 1.0 / mesh.sizes[: mesh.count]
    side = np.sqrt(3.0 / (inverse**2).sum(1)) if flux.averages else 3.0 / inverse.sum(1)
    speed = material.cp.reshape(mesh.count, -1).max(1) * _speed_factors(mesh, material, flux, world)
    ratio = material.cp / np.where(material.cs > 0, material.cs, np.inf)  # 0 in a fluid
    min_ratio, max_ratio = -world.allreduce_max(np.array([-ratio.min(), ratio.max()])) * [1, -1]
    if not flux.averages and nodes >= 4 and _SPEED_RATIOS[0] <= min_ratio and max_ratio <= _SPEED_RATIOS[1]:
        courant *= _STEP_FACTOR[mesh.dim]
    return float(-world.allreduce_max(np.array([-np.min(courant * side / speed)]))[0])


def _speed_factors(mesh: Mesh, material: Material, flux: Flux, world: World) -> Floats:
    """Return the factors of the elements' speeds that account for their neighbours, (count,) (collective).

    Averages couple the stiffness of an element with the inertia of its neighbour. Therefore sqrt(kappa-/rho+) and
    sqrt(kappa+/rho-) count as speeds, and so do those of two nodes of one element. With the upwind flux this matters
    only on the coarse sides of hanging faces, where interpolation amplifies the highest mode, and within elements.
    """
    medium = "elastic" if any(world.allgather(material.has_solid)) else "acoustic"
    rows = np.stack([material.density, material.cp, material.cs], 1).reshape(mesh.count, 3, -1)
    rho, cp, cs = np.moveaxis(with_ghosts(world, mesh, rows), 1, 0)
    speeds = np.stack([cp, cs])
    low, high = (rho * speeds).min(2), (rho * speeds).max(2)  # impedances, (2, elements)
    inside = np.sqrt((rho * cp**2).max(1) / rho.min(1)) / cp.max(1)
    factors: Floats = np.maximum(1.0, inside[: mesh.count] * (1.0 if flux.averages else _NODAL_FRACTION))
    for face, child in np.ndindex(mesh.faces, mesh.kinds.shape[2]):
        elements_near = np.nonzero(mesh.neighbours[:, face, child] >= 0)[0]
        neighbours = mesh.neighbours[elements_near, face, child]
        large = mesh.neighbours[elements_near, face, 1] >= 0
        if flux.averages:
            stiff = [(rho * cp**2)[elements].max(1) for elements in (elements_near, neighbours)]
            densities = [rho[elements].min(1) for elements in (neighbours, elements_near)]
            mixed = np.sqrt(np.maximum(stiff[0] / densities[0], stiff[1] / densities[1])) / cp[elements_near].max(1)
            factor = np.maximum(mixed, 1.0) * np.where(large, _HANGING["central"], 1.0)
        else:
            z, z_neighbour = (
                (high[:, elements_near], low[:, neighbours])
                if medium == "elastic"
                else (high[:, neighbours], low[:, elements_near])
            )
            total = z + z_neighbour
            share = np.divide(2 * z, total, out=np.zeros_like(total), where=total > 0).max(0)
            factor = np.where(large, _HANGING[medium] * share, 1.0)
        np.maximum.at(factors, elements_near, factor)
    return factors
