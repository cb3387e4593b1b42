# SPDX-License-Identifier: BSD-3-Clause
r"""
A plate of bone
===============

A plate of bone in water reflects and transmits a pulse. How much depends on the frequency, because the echoes inside
the plate interfere: the transmission is 1 if the thickness is a multiple of half the wavelength.
"""

# %%
# Two runs, with and without the plate
# ------------------------------------
# The problem is one-dimensional. Dividing the spectra of the two signals gives the transmission at all frequencies.

import matplotlib.pyplot as plt
import numpy as np

from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate

water, bone = (1500.0, 1000.0), (2800.0, 1850.0)  # m/s, kg/m^3
spacing, points = 50e-6, 1200
grid = Grid((points,), spacing).with_time(bone[0], cfl=0.2, end=60e-6)
x = grid.positions("x")
inside = (x > 0) & (x < 4e-3 - spacing / 2)
mask, sensor = np.zeros(points, bool), np.zeros(points, bool)
mask[250], sensor[950] = True, True
time = grid.dt * np.arange(grid.steps)
argument = (np.pi * 800e3 * (time - 2e-6)) ** 2
pulse = (1 - 2 * argument) * np.exp(-argument)


def transmitted(sound_speed, density):
    """Return the pressure behind the plate."""
    medium = Medium(sound_speed, density, sound_speed_ref=water[0])
    source = Source(p_mask=mask, p=pulse)
    return simulate(grid, medium, source, Sensor(mask=sensor), pml_size=40, precision="float64")["p"][0]


plate = transmitted(np.where(inside, bone[0], water[0]), np.where(inside, bone[1], water[1]))
free = transmitted(*water)

# %%
# The exact transmission
# ----------------------
# For the ratio of impedances :math:`m` and the phase :math:`\phi = \omega d / c` it is :math:`1 / |\cos\phi -
# \tfrac{i}{2} (m + 1/m) \sin\phi|`.

frequency = np.fft.rfftfreq(grid.steps, grid.dt)
band = (frequency > 200e3) & (frequency < 1.6e6)
found = np.abs(np.fft.rfft(plate)[band] / np.fft.rfft(free)[band])
ratio = bone[0] * bone[1] / (water[0] * water[1])
phase = 2 * np.pi * frequency[band] * inside.sum() * spacing / bone[0]
exact = 1 / np.abs(np.cos(phase) - 0.5j * (ratio + 1 / ratio) * np.sin(phase))
error = np.abs(found - exact).max()
print(f"largest error of the transmission from 0.2 to 1.6 MHz: {error:.4f}")
assert error < 0.03

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
left.plot(1e6 * time, free, label="water")
left.plot(1e6 * time, plate, label="plate")
left.set(xlabel="time (us)", ylabel="pressure (Pa)", xlim=(24, 36))
left.legend()
right.plot(1e-6 * frequency[band], exact, label="exact")
right.plot(1e-6 * frequency[band], found, "--", label="Seiche")
right.set(xlabel="frequency (MHz)", ylabel="transmission", ylim=(0, 1.05))
right.legend()
plt.show()
