# SPDX-License-Identifier: BSD-3-Clause
"""Small waves that exercise everything at once: hanging faces across ranks, solids and fluids, sources, receivers."""

from __future__ import annotations

from typing import Any

import numpy as np

from seiche.domain.world import World
from seiche.waves import Brick, Forest, Gaussian, Material, Mesh, PointSource, SizeField, Solver
from seiche.waves.adjoint import Experiment

#: medium, dimensions, flux, precision, material by node.
CASES = {
    "elastic by node": ("elastic", 2, "upwind", "float64", True),
    "elastic central": ("elastic", 2, "central", "float32", False),
    "acoustic": ("acoustic", 3, "upwind", "float32", False),
}
#: More of them where kernels take less time to compile.
CASES_OF_GPUS = {**CASES, "solid and fluid": ("elastic", 3, "upwind", "float64", False)}
NODES = 3


def sizes(dim: int) -> SizeField:
    """Return sizes that refine a brick around a point and in a corner."""
    points = np.array([[0.3] * dim, [0.9] * dim])
    return SizeField(points, points, [0.13, 0.2])


def brick(dim: int) -> Brick:
    return Brick((2, 1, 1)[:dim], (True, False, True)[:dim])


def mesh_of(dim: int, world: World) -> Mesh:
    """Return this rank's share, which it makes alone, with more weight on small elements."""
    return Mesh.generate(brick(dim), sizes(dim), world=world, weights=weight_of_small_leaves)


def weight_of_small_leaves(leaves: Forest) -> Any:
    return 1 + leaves.level**2


def material_of(mesh: Mesh, medium: str, by_node: bool) -> Material:
    """Return random media that depend on the place of an element along the curve alone."""
    shape = (mesh.total, NODES**mesh.dim) if by_node else (mesh.total,)
    random = np.random.default_rng(7)
    density, cp = 1 + random.random(shape), 2 + random.random(shape)
    cs = 1 + 0.5 * random.random(shape)
    cs[:: 1 if medium == "acoustic" else 4] = 0
    return Material(density[mesh.number], cp[mesh.number], cs[mesh.number])


def receivers_of(dim: int) -> list[tuple[float, ...]]:
    """Return receivers on a corner of elements, inside of one and on a face."""
    return [(1.0, 0.5, 0.5)[:dim], (0.27, 0.31, 0.4)[:dim], (0.51, 0.77, 0.1)[:dim]]


def sources_of(medium: str, dim: int) -> list[PointSource]:
    """Return sources on a corner of elements and inside of one."""
    corner, inside, _ = receivers_of(dim)
    pulse, force = Gaussian(0.05, 0.02), (1.0, 0.5, 0.2)[:dim]
    if medium == "acoustic":
        first = PointSource(corner, pulse, volume=2.0)
    else:
        first = PointSource(corner, pulse, moment=np.eye(dim).tolist())
    return [first, PointSource(inside, pulse, force=force)]


def solver_of(case: str, world: World, **options: Any) -> Solver:
    """Return a solver at rest: sources on a corner and inside, receivers on a face and inside, an absorbing layer."""
    medium, dim, flux, precision, by_node = CASES_OF_GPUS[case]
    mesh = mesh_of(dim, world)
    return Solver(
        mesh,
        material_of(mesh, medium, by_node),
        nodes=NODES,
        flux=flux,
        medium=medium,
        precision=precision,
        boundaries="absorbing",
        sources=sources_of(medium, dim),
        receivers=receivers_of(dim),
        sample_every=2,
        sponge=0.2,
        peak_side=3,
        world=world,
        **{"threads": 1, **options},
    )


def start(solver: Solver) -> None:
    """Set a random state that depends on the place of an element along the curve alone."""
    shape = solver.values().shape
    states = np.random.default_rng(11).standard_normal((solver.mesh.total, *shape[1:]))
    solver.start_from(states[solver.mesh.number])


def shot_of(case: str, world: World) -> tuple[Experiment, Material]:
    """Return a shot with the sources and receivers of a solver, and its medium."""
    medium, dim, flux, precision, by_node = CASES_OF_GPUS[case]
    mesh = mesh_of(dim, world)
    options = {"nodes": NODES, "flux": flux, "precision": precision, "boundaries": "absorbing", "threads": 1}
    shot = Experiment(
        mesh,
        0.004,
        7,
        sources_of(medium, dim),
        receivers_of(dim),
        ("p",) if medium == "acoustic" else ("vx", "vy"),
        {**options, "medium": medium, "sponge": 0.2},
        snapshots=2,
        world=world,
    )
    return shot, material_of(mesh, medium, by_node)


def solver_with_boxes(world: World, **options: Any) -> Solver:
    """Return a solver with overlapping boxes of two sources at hanging faces, near a side, in varying media."""
    trees = Brick((6, 8, 5), (False, True, False))
    graded = SizeField([[-np.inf] * 3, [3.5, -np.inf, -np.inf]], [[np.inf] * 3] * 2, [1.0, 0.5])
    mesh = Mesh.generate(trees, graded, world=world, weights=weight_of_small_leaves)
    shape = (mesh.total, NODES**3)
    random = np.random.default_rng(5)
    density, cp, cs = (value * (1 + 0.03 * random.random(shape))[mesh.number] for value in (2.0, 3.0, 1.7))
    pulse = Gaussian(0.1, 0.3)
    return Solver(
        mesh,
        Material(density, cp, cs),
        nodes=NODES,
        boundaries=("absorbing",) * 5 + ("free",),
        sources=[
            PointSource((2.9, 3.0, 3.7), pulse, moment=[[0.0, 1.0, 0.0], [1.0, 0.0, 0.3], [0.0, 0.3, 0.5]]),
            PointSource((3.2, 3.4, 3.3), pulse, force=(1.0, 0.5, 0.2)),
        ],
        receivers=[(3.0, 3.0, 3.0), (4.1, 2.2, 5.0), (5.6, 3.0, 2.0)],
        sample_every=2,
        peak_side=5,
        world=world,
        **{"threads": 1, **options},
    )
