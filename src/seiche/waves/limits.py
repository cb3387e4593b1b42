# SPDX-License-Identifier: BSD-3-Clause
"""The largest stable time step (theory/waves, section 7)."""

from __future__ import annotations

import numpy as np

from seiche.domain.world import World
from seiche.kernels.registry.dg import Flux
from seiche.waves.basis import Basis
from seiche.waves.material import Material
from seiche.waves.mesh import Mesh

#: Largest dt c/h on cubes with the five-stage scheme, by nodes a direction (eigenvalues; theory/waves, table 3).
_LARGEST = {
    "upwind": {3: 0.2683, 4: 0.1390, 5: 0.0850, 6: 0.0573, 7: 0.0413, 8: 0.0311},
    "central": {3: 0.3813, 4: 0.2119, 5: 0.1356, 6: 0.0935, 7: 0.0682, 8: 0.0519},
}
#: The same in units of the smallest distance of two nodes, for the numbers of nodes that are not in the table.
_RULE = {"upwind": 0.48, "central": 0.76}
#: Between these ratios c_p/c_s the upwind step in solids may be longer by the last number, with four nodes or more.
_SOLID = (1.7, 2.05, 1.4)


def largest_step(mesh: Mesh, material: Material, nodes: int, flux: Flux, world: World | None = None) -> float:
    """Return the time step at which the fastest mode of the smallest element of all ranks would begin to grow.

    A box that is no cube counts as a cube of side 3/(1/h_x + 1/h_y + 1/h_z).
    """
    gap = float(Basis(nodes).nodes[1] + 1) / 2
    number = _LARGEST[flux].get(nodes, _RULE[flux] * gap)
    side = 3.0 / np.sum(1.0 / mesh.sizes[: mesh.count], axis=1)
    speed = material.cp.reshape(mesh.count, -1).max(1)
    world = world or World.serial()
    ratio = material.cp / np.where(material.cs > 0, material.cs, np.inf)  # of a fluid 0
    lowest, highest = -world.allreduce_max(np.array([-ratio.min(), ratio.max()])) * [1, -1]
    if flux == "upwind" and nodes >= 4 and _SOLID[0] <= lowest and highest <= _SOLID[1]:
        number *= _SOLID[2]
    return float(-world.allreduce_max(np.array([-np.min(number * side / speed)]))[0])
