# SPDX-License-Identifier: BSD-3-Clause
"""
Photoacoustic image by time reversal
====================================

Two discs absorb a light pulse and emit sound, which a ring of sensors records. Emitted again in reversed order from
the sensors, the signals converge to an image of the discs. Iterations correct what the ring misses.
"""

# %%
# Signals of two discs
# --------------------

import matplotlib.pyplot as plt
import numpy as np

from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate
from seiche.ultrasound.photoacoustic import time_reversal

medium = Medium(1500.0, 1000.0)
grid = Grid((128, 128), 0.1e-3).with_time(1500.0, cfl=0.3, end=8e-6)
x, y = np.meshgrid(grid.positions("x"), grid.positions("y"), indexing="ij")


def disc(center, radius, pressure):
    """Return a disc with an edge over about two points."""
    distance = np.hypot(x - center[0], y - center[1])
    return pressure * 0.5 * (1 - np.tanh((distance - radius) / 0.12e-3))


truth = disc((-1.0e-3, 0.6e-3), 0.8e-3, 1.0) + disc((1.3e-3, -0.8e-3), 0.5e-3, 2.0)
ring = np.abs(np.hypot(x, y) - 4e-3) < 0.05e-3
series = simulate(grid, medium, Source(p0=truth), Sensor(mask=ring), pml_size=12, smooth_p0=False)["p"]

# %%
# Images
# ------
# The error is the norm of the difference from the true pressure over that of the true pressure.

options = {"pml_size": 12, "smooth_p0": False}
images = {n: time_reversal(grid, medium, ring, series, iterations=n, **options) for n in (1, 4)}
errors = {n: np.linalg.norm(image - truth) / np.linalg.norm(truth) for n, image in images.items()}
for n, error in errors.items():
    print(f"{n} iterations: error {error:.1%}")
assert errors[4] < 0.1 < errors[1]

figure, panels = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
extent = 1e3 * grid.positions("x")[[0, -1, 0, -1]]
named = {"true": truth, "time reversal": images[1], "four iterations": images[4]}
for axes, (title, image) in zip(panels, named.items(), strict=True):
    drawn = axes.imshow(image.T, extent=extent, origin="lower", cmap="inferno", vmin=0, vmax=2.1)
    axes.set(title=title, xlabel="x (mm)", xlim=(-4, 4), ylim=(-4, 4))
panels[0].plot(1e3 * x[ring], 1e3 * y[ring], "w,")
figure.colorbar(drawn, ax=panels, label="pressure (Pa)")
plt.show()
