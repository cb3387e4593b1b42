# SPDX-License-Identifier: BSD-3-Clause
"""What comes back from an absorbing layer whose trees grow, under a free surface, in a layered half space (P-SV)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.waves import Brick, Forest, Gaussian, Material, Mesh, PointSource, Solver
from seiche.waves.trees import stretched

Floats = npt.NDArray[np.float64]


def layered(half: int, deep: int, beyond: int, growth: float, device: str, **options: object) -> Solver:
    """Return a couple 2 km below the surface; 1 km of a slow medium on a fast one (km, s), trees of 1 km and more."""
    across, down = stretched(2 * half, 1.0, (beyond, beyond), growth), stretched(deep, 1.0, (beyond, 0), growth)
    forest = Forest.uniform(Brick((len(across), len(down)), (False, False)), 0)
    mesh = Mesh.of_forest(forest, tree_size=(across, down), origin=(-sum(across) / 2, -sum(down)))
    soft = mesh.lower[:, 1] >= -1.0 - 1e-9
    material = Material(np.where(soft, 2.6, 2.7), np.where(soft, 4.0, 6.0), np.where(soft, 2.0, 3.464))
    source = PointSource((0.0, -2.0), Gaussian(0.2, 1.2), moment=[[0.0, 1.0], [1.0, 0.0]])
    boundaries = ("absorbing", "absorbing", "absorbing", "free")
    return Solver(mesh, material, nodes=5, boundaries=boundaries, device=device, sources=[source], **options)  # type: ignore[arg-type]


def test_what_comes_back_from_trees_that_grow(device: str) -> None:
    """Seismograms against those of a box from whose sides nothing comes back; sides alone, a thin layer, six trees."""
    samples: dict[str, Floats] = {}
    cases = {"large": (18, 18, 0, 0.0), "sides": (6, 6, 0, 0.0), "thin": (6, 6, 0, 2.0), "growing": (4, 4, 6, 11.9)}
    for name, (half, deep, beyond, sponge) in cases.items():
        solver = layered(half, deep, beyond, 1.2, device, receivers=[(1.0, 0.0), (3.0, 0.0)], sponge=sponge)
        assert np.isclose(solver.dt, 0.02390625)  # the same in all
        solver.advance(int(5.0 / solver.dt))
        samples[name] = solver.samples()[..., :2]
    full = np.linalg.norm(samples["large"], axis=(0, 2))
    error = {
        name: float((np.linalg.norm(values - samples["large"], axis=(0, 2)) / full).max())
        for name, values in samples.items()
    }
    assert error["sides"] > 0.05
    assert error["thin"] > 0.1
    assert error["growing"] < 0.01


def test_the_energy_of_a_layered_half_space_leaves_through_trees_that_grow(device: str) -> None:
    """Ten times as long as the longest way across: the energy only falls, of random values too."""
    solver = layered(2, 2, 4, 1.3, device, sponge=8.0)
    solver.start_from(np.random.default_rng(3).standard_normal(solver.values().shape))
    energies = [solver.energy()]
    for _ in range(20):
        solver.advance(round(5.0 / solver.dt))
        energies.append(solver.energy())
    assert np.all(np.diff(energies) < 0)
    assert energies[-1] < 1e-3 * energies[0]  # stresses in equilibrium stay
