# SPDX-License-Identifier: BSD-3-Clause
r"""
Seismograms of an earthquake
============================

A small fault that slips is equivalent to a moment tensor. In a homogeneous medium, its near and far fields are known
in closed form (Aki and Richards 2002, eq. 4.29): P waves with four lobes, and S waves between them.
"""

# %%
# Source and receivers
# --------------------
# A vertical strike-slip event in three dimensions. Any consistent units may be used: here km, s and a density of 2.

import matplotlib.pyplot as plt
import numpy as np

from seiche.waves import Brick, Forest, Gaussian, Material, Mesh, PointSource, Solver

density, cp, cs = 2.0, 1.75, 1.0
tensor = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
pulse = Gaussian(0.4, 2.0)
receivers = np.array([(1.2, 1.2, 0.4), (1.7, 0.2, 0.3), (0.4, -1.1, 1.2)])
mesh = Mesh.of_forest(Forest.uniform(Brick((8, 8, 8), (False,) * 3), 0), origin=-3.2, tree_size=0.8)
solver = Solver(
    mesh,
    Material.uniform(mesh.count, density, cp, cs),
    nodes=5,
    precision="float32",
    sources=[PointSource((0.0, 0.0, 0.0), pulse, moment=tensor.tolist())],
    receivers=[tuple(position) for position in receivers],
    sample_every=2,
)
solver.advance(2 * int(5.2 / (2 * solver.dt)))
found = solver.samples()[:, :, :3]
times = 2 * solver.dt * np.arange(1, len(found) + 1)

# %%
# The exact seismograms
# ---------------------
# The moment rate is the pulse; the formula for displacements is differentiated with respect to time.


def rate(t):
    """Return the moment rate, a Gaussian of area one."""
    return np.exp(-(((t - 2.0) / 0.4) ** 2) / 2) / (0.4 * np.sqrt(2 * np.pi))


def acceleration(t):
    """Return its derivative."""
    return -(t - 2.0) / 0.4**2 * rate(t)


def exact(position):
    """Return the velocities (times, 3) at a position."""
    r = np.linalg.norm(position)
    gamma = position / r
    along = tensor @ gamma
    radial, trace = gamma * (gamma @ along), np.trace(tensor)
    delays = np.linspace(r / cp, r / cs, 300)
    near = np.trapezoid(delays * rate(times[:, None] - delays), delays, axis=1)[:, None]
    p, s = (rate(times - r / c)[:, None] for c in (cp, cs))
    far_p, far_s = (acceleration(times - r / c)[:, None] for c in (cp, cs))
    total = (15 * radial - 3 * gamma * trace - 6 * along) * near / r**4
    total = total + (6 * radial - gamma * trace - 2 * along) * p / (cp**2 * r**2)
    total = total - (6 * radial - gamma * trace - 3 * along) * s / (cs**2 * r**2)
    total = total + radial * far_p / (cp**3 * r) - (radial - along) * far_s / (cs**3 * r)
    return total / (4 * np.pi * density)


figure, panels = plt.subplots(3, 1, figsize=(7, 5), layout="constrained", sharex=True)
for number, (position, axes) in enumerate(zip(receivers, panels, strict=True)):
    expected = exact(position)
    error = np.linalg.norm(found[:, number] - expected) / np.linalg.norm(expected)
    print(f"receiver {number}: relative error {error:.2%}")
    assert error < 0.05
    for component, name in enumerate("xyz"):
        axes.plot(times, expected[:, component], color=f"C{component}", linewidth=4, alpha=0.3)
        axes.plot(times, found[:, number, component], color=f"C{component}", linewidth=1, label=name)
    axes.axvline(2.0 + np.linalg.norm(position) / cp, color="0.8", zorder=0)
    axes.axvline(2.0 + np.linalg.norm(position) / cs, color="0.8", zorder=0)
panels[0].legend(ncols=3, title="velocity; wide: exact; grey: P and S arrivals")
panels[2].set_xlabel("time (s)")
plt.show()
