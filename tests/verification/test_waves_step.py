# SPDX-License-Identifier: BSD-3-Clause
"""Waves: the largest step is stable, by the spectrum of the right-hand side (theory/waves, section 7)."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.waves import Brick, Forest, Material, Mesh, Solver


def largest_amplification(solver: Solver) -> float:
    """Return the largest factor of any mode in one of the largest steps, all modes by columns of the operator."""
    shape = solver.values().shape
    columns = []
    for row in np.eye(int(np.prod(shape))):
        solver.start_from(row.reshape(shape))
        columns.append(solver.rhs().ravel())
    z = solver.largest_step * np.linalg.eigvals(np.array(columns).T)
    return float(np.abs(1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24 + z**5 / 200).max())


@pytest.mark.parametrize(("nodes", "trees"), [(4, (2, 2)), (6, (2, 1))])
@pytest.mark.parametrize("boundary", ["periodic", "free", "rigid"])
def test_the_largest_step_in_plane_solids_is_stable(
    nodes: int, trees: tuple[int, int], boundary: str, device: str
) -> None:
    """Where shear waves are about half as fast as longitudinal ones the step is longer, in the plane less so."""
    wraps = boundary == "periodic"
    mesh = Mesh.of_forest(Forest.uniform(Brick(trees, (wraps, wraps)), 0))
    material = Material.uniform(mesh.count, 1.0, 1.74, 1.0)
    solver = Solver(mesh, material, nodes=nodes, boundaries="free" if wraps else boundary, device=device)
    assert largest_amplification(solver) < 1 + 1e-6
    assert solver.largest_step > 1.2 * Solver(mesh, Material.uniform(mesh.count, 1.0, 1.74), nodes=nodes).largest_step


def test_the_largest_step_in_a_solid_cube_with_rigid_sides_is_stable(device: str) -> None:
    mesh = Mesh.of_forest(Forest.uniform(Brick((1, 1, 1), (False,) * 3), 0))
    solver = Solver(mesh, Material.uniform(1, 1.0, 1.74, 1.0), nodes=5, boundaries="rigid", device=device)
    assert largest_amplification(solver) < 1 + 1e-6


@pytest.mark.parametrize("cs", [0.0, 1.1], ids=["fluid", "solid"])
@pytest.mark.parametrize("contrast", [3.0, 10.0, 100.0])
@pytest.mark.parametrize("nodes", [3, 4])
def test_the_largest_step_is_stable_when_densities_jump_from_node_to_node(
    nodes: int, contrast: float, cs: float, device: str
) -> None:
    mesh = Mesh.of_forest(Forest.uniform(Brick((2, 2), (True, True)), 0))
    shape = (mesh.count, nodes**2)
    density = np.where(np.random.default_rng(0).random(shape) < 0.5, 1.0, contrast)
    material = Material(density, np.full(shape, 2.0), np.full(shape, cs))
    solver = Solver(mesh, material, nodes=nodes, device=device)
    assert largest_amplification(solver) < 1 + 1e-6
