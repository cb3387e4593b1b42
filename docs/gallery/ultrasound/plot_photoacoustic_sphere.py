# SPDX-License-Identifier: BSD-3-Clause
"""
A sphere heated by light
========================

A light pulse heats a sphere, which then sends out sound. Outside the sphere the pressure is a straight line from
positive to negative values, the N-shaped wave :math:`p_0 (r - c t) / (2 r)` while :math:`|r - c t|` is below the
radius.
"""

# %%
# Three dimensions
# ----------------
# The initial pressure is smoothed over a few points, as sharp edges contain waves that the grid cannot represent.

import matplotlib.pyplot as plt
import numpy as np

from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate

speed, ball, distance = 1500.0, 1.5e-3, 2.55e-3
grid = Grid((64, 64, 64), 0.15e-3).with_time(speed, cfl=0.3, end=3e-6)
position = np.stack(np.meshgrid(*(grid.positions(axis) for axis in "xyz"), indexing="ij"))
r = np.linalg.norm(position, axis=0)
width = 0.2e-3
initial = 0.5 * (1 - np.tanh((r - ball) / width))
sensor = Sensor(positions=np.array([[distance, 0.0, 0.0]]), record=("p", "p_final"))
found = simulate(grid, Medium(speed), Source(p0=initial), sensor, smooth_p0=False)

# %%
# The exact signal
# ----------------
# In spherical symmetry :math:`r p` obeys the wave equation in one dimension (d'Alembert), also for the smooth edge.

time = grid.dt * np.arange(len(found["p"][0]))
s = distance - speed * time
exact = s * 0.5 * (1 - np.tanh((np.abs(s) - ball) / width)) / (2 * distance)
sharp = np.where(np.abs(s) < ball, s / (2 * distance), 0.0)
error = np.abs(found["p"][0] - exact).max() / exact.max()
print(f"largest error {error:.2%} of the peak")
assert error < 0.02

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
extent = 1e3 * grid.positions("x")[[0, -1, 0, -1]]
image = left.imshow(found["p_final"][:, :, 32].T, extent=extent, origin="lower", cmap="RdBu_r", vmin=-0.2, vmax=0.2)
left.set(xlabel="x (mm)", ylabel="y (mm)")
figure.colorbar(image, ax=left, label="pressure / p0")
right.plot(1e6 * time, sharp, color="0.7", label="sharp edge")
right.plot(1e6 * time, exact, label="exact")
right.plot(1e6 * time, found["p"][0], "--", label="Seiche")
right.set(xlabel="time (us)", ylabel="pressure / p0")
right.legend()
plt.show()
