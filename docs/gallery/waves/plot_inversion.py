# SPDX-License-Identifier: BSD-3-Clause
"""
Full-waveform inversion in two dimensions
=========================================

Seismograms contain the speeds of the medium between sources and receivers. The gradient of the misfit with respect to
the speeds of all elements costs about as much as a few simulations (the adjoint method). L-BFGS uses it to find a
fast body.
"""

# %%
# Sources, receivers and the true medium
# --------------------------------------

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

from seiche.waves import Brick, Forest, Material, Mesh, PointSource, Ricker
from seiche.waves.adjoint import Experiment

width, height, speed, density = 8, 6, 2.0, 2.0  # km, km/s, g/cm^3
mesh = Mesh.of_forest(Forest.uniform(Brick((width, height), (False, False)), 0))
receivers = [(x, y) for y in (0.5, height - 0.5) for x in np.linspace(0.5, width - 0.5, 6)]
receivers += [(x, y) for x in (0.5, width - 0.5) for y in (2.0, 4.0)]
options = {"nodes": 4, "boundaries": "absorbing", "device": "cpu", "threads": 1}
shots = [
    Experiment(mesh, 0.08, 100, [PointSource(position, Ricker(0.35, 3.5), volume=1.0)], receivers, ("p",), options)
    for position in ((0.5, 2.8), (7.5, 3.3), (4.1, 5.5))
]
x, y = (mesh.lower + mesh.sizes / 2).T
truth = 0.08 * np.exp(-((x - 3.8) ** 2 + (y - 2.9) ** 2) / 2 / 1.2**2)


def medium(relative):
    """Return the medium with speeds `speed` (1 + relative)."""
    return Material(np.full(mesh.count, density), speed * (1 + relative), np.zeros(mesh.count))


data = [shot.simulate(medium(truth)) for shot in shots]

# %%
# The gradient
# ------------
# It is that of the discrete scheme, so it agrees with differences of the misfit to round-off and truncation errors.


def misfit(relative):
    """Return the misfit and its gradient."""
    parts = [shot.gradient(medium(relative), d) for shot, d in zip(shots, data, strict=True)]
    return sum(p.misfit for p in parts), speed * np.sum([p.cp for p in parts], axis=0)


start = np.zeros(mesh.count)
first, gradient = misfit(start)
direction = np.random.default_rng(1).standard_normal(mesh.count)
ahead, behind = (
    sum(shot.misfit(medium(sign * 1e-5 * direction), d) for shot, d in zip(shots, data, strict=True))
    for sign in (1, -1)
)
difference = (ahead - behind) / 2e-5
print(f"derivative along a random direction {gradient @ direction:.8e}, by differences {difference:.8e}")
assert abs(gradient @ direction / difference - 1) < 1e-5

# %%
# The inversion
# -------------

history: list[float] = []


def scaled(relative):
    """Return misfit and gradient over the initial misfit."""
    value, slope = misfit(relative)
    history.append(value / first)
    return value / first, slope / first


found = minimize(
    scaled, start, jac=True, method="L-BFGS-B", bounds=[(-0.2, 0.2)] * mesh.count, options={"maxiter": 5}
).x
correlation = np.corrcoef(found, truth)[0, 1]
print(f"misfit {min(history):.1e} of the initial one, correlation with the true medium {correlation:.2f}")
assert min(history) < 0.05 and correlation > 0.9

figure, panels = plt.subplots(1, 3, figsize=(9, 2.8), layout="constrained")
column, row = np.floor(mesh.lower).astype(int).T
for axes, (title, values) in zip(panels, {"true": truth, "found": found}.items(), strict=False):
    grid = np.empty((height, width))
    grid[row, column] = speed * (1 + values)
    image = axes.imshow(grid, origin="lower", extent=(0, width, 0, height), cmap="RdBu_r", vmin=1.84, vmax=2.16)
    axes.plot(*np.array(receivers).T, "k.", markersize=3)
    axes.set(title=title, xlabel="x (km)")
figure.colorbar(image, ax=panels[:2], label="speed (km/s)", orientation="horizontal")
panels[2].semilogy(history, ".-")
panels[2].set(xlabel="evaluation", title="misfit")
plt.show()
