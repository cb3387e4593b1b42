# SPDX-License-Identifier: BSD-3-Clause
r"""
Bone that shears
================

Beyond 32 degrees, compressional waves in water do not enter bone: as a fluid, bone reflects them completely. Shear
waves do enter, so that only 29 % of the pressure returns at 39 degrees.
"""

# %%
# One run with each model of bone
# -------------------------------
# A line in the water emits a packet of plane waves at an angle. The grid is periodic along y and contains the phase of
# the wave once, so it is narrow.

import matplotlib.pyplot as plt
import numpy as np

from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate

speed, bone, shear, light, heavy = 1500.0, 2800.0, 1500.0, 1000.0, 1850.0  # m/s, kg/m^3
width, first = 16, 142  # points: along y, and in front of the bone
frequency, along = speed / 10, 2 * np.pi / width  # ten points of 1 m per wavelength; the units do not matter
angle = np.arcsin(along * speed / (2 * np.pi * frequency))
grid = Grid((200, width), 1.0, dt=0.15 / bone, steps=5100)
time, y = np.arange(grid.steps) * grid.dt, np.arange(width)
packet = np.exp(-(((time * frequency - 7) / 2) ** 2) / 2)
signal = packet * np.cos(2 * np.pi * frequency * time - along * y[:, None])
line, sensors = np.zeros(grid.shape, bool), np.zeros(grid.shape, bool)
line[22] = sensors[82] = True
inside = (np.arange(200) >= first)[:, None] & np.ones(width, bool)


def pressure(shear_speed):
    """Return the complex pressure of the plane wave at the sensors over time."""
    medium = Medium(np.where(inside, bone, speed), np.where(inside, heavy, light), shear_speed=inside * shear_speed)
    options = {"pml_size": (20, 0), "precision": "float64"}
    result = simulate(grid, medium, Source(p_mask=line, p=signal), Sensor(mask=sensors), **options)
    return np.exp(1j * along * y) @ result["p"] / width


waves = {"fluid": pressure(0.0), "elastic": pressure(shear)}

# %%
# Reflection coefficients
# -----------------------
# Fourier transforms of the incident and the reflected wave give the coefficient at the frequency of the packet, to be
# compared with that of plane waves.

middle = 7 / frequency + (first - 22) / (speed * np.cos(angle))
tone = np.exp(-2j * np.pi * frequency * time)
found = {
    name: abs((wave * tone)[time > middle].sum() / (wave * tone)[time <= middle].sum()) for name, wave in waves.items()
}
cosines = [np.sqrt(1 - (np.sin(angle) * c / speed) ** 2 + 0j) for c in (speed, bone, shear)]
water, long, across = (
    rho * c / cos for rho, c, cos in zip((light, heavy, heavy), (speed, bone, shear), cosines, strict=True)
)
double = 1 - 2 * (np.sin(angle) * shear / speed) ** 2
load = long * double**2 + across * (1 - double**2)
exact = abs((load - water) / (load + water))

figure, axes = plt.subplots(figsize=(7, 3.5))
for name, wave in waves.items():
    axes.plot(time * frequency, wave.real, label=f"{name} bone: {found[name]:.3f} is reflected")
axes.set(xlabel="time (periods)", ylabel="pressure (Pa)", title=f"Incidence at {np.degrees(angle):.0f} degrees")
axes.legend()

# %%
# The exact coefficient is 0.286.

print(found, exact)
assert abs(found["elastic"] - exact) < 0.01
assert abs(found["fluid"] - 1) < 0.05
plt.show()
