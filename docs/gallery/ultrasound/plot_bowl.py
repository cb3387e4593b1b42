# SPDX-License-Identifier: BSD-3-Clause
"""
The focus of a bowl, axisymmetric
=================================

A bowl focuses ultrasound of 500 kHz in water. Source and medium are symmetric about an axis, so a half plane gives
the three-dimensional field. O'Neil (1949) gives the amplitude on the axis in closed form.
"""

# %%
# Source, grid and run
# --------------------
# The grid has six points per wavelength. The amplitude and phase at the frequency are measured in the last periods.

import matplotlib.pyplot as plt
import numpy as np

from seiche.ultrasound import Bowl, Emitter, Grid, Medium, Sensor, Source, simulate

speed, density, frequency = 1500.0, 1000.0, 500e3
radius = diameter = 20e-3
spacing, steps_per_period = speed / frequency / 6, 30
steps = 40 * steps_per_period
grid = Grid((70, 30), spacing, 1 / (frequency * steps_per_period), steps, symmetry="axisymmetric")
x, r = grid.positions("x"), grid.positions("y")
start = x[14]
time = grid.dt * np.arange(steps)
signal = 1e5 * np.sin(2 * np.pi * frequency * time) * np.minimum(time * frequency / 3, 1)
bowl = Bowl((start, 0.0), (start + radius, 0.0), radius, diameter)
sensor = Sensor(record=(), frequencies=(frequency,), frequency_window=(steps - 4 * steps_per_period, steps))
source = Source(emitters=(Emitter(bowl, signal),))
field = simulate(grid, Medium(speed, density), source, sensor, pml_size=20, pml_inside=False)["p_amplitude"][0]

# %%
# O'Neil's formula
# ----------------
# With the distance :math:`B` to the rim, the amplitude at :math:`z` is :math:`p_0 |2 \sin(k (B - z) / 2) / (1 - z /
# F)|`. Since :math:`B^2 - z^2 = 2 h (F - z)`, for a bowl of depth :math:`h`, it can be written without a division by
# zero at the focus.

wavenumber = 2 * np.pi * frequency / speed
z = x[22:] - start
height = radius - np.sqrt(radius**2 - (diameter / 2) ** 2)
rim = np.sqrt((z - height) ** 2 + (diameter / 2) ** 2)
exact = 1e5 * np.abs(2 * height * radius / (rim + z) * wavenumber * np.sinc(wavenumber * (rim - z) / (2 * np.pi)))
error = np.abs(field[22:, 0] - exact).max() / exact.max()
print(f"largest error on the axis: {error:.2%} of the peak of {exact.max() / 1e3:.0f} kPa")
assert error < 0.01

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
both = np.concatenate([field[:, :0:-1], field], axis=1)
image = left.pcolormesh(1e3 * (x - start), 1e3 * np.concatenate([-r[:0:-1], r]), 1e-3 * both.T, cmap="inferno")
left.set(xlabel="distance (mm)", ylabel="radius (mm)", aspect="equal")
figure.colorbar(image, ax=left, label="pressure amplitude (kPa)", orientation="horizontal")
right.plot(1e3 * z, exact / 1e3, label="O'Neil")
right.plot(1e3 * z, field[22:, 0] / 1e3, ".", label="Seiche")
right.set(xlabel="distance (mm)", ylabel="amplitude on the axis (kPa)")
right.legend()
plt.show()
