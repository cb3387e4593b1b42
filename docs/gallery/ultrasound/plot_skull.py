# SPDX-License-Identifier: BSD-3-Clause
r"""
Focusing through a slice of skull
=================================

The elements of an array start at different times, so that their waves arrive together at a point. Bone of varying
thickness spoils the focus. By reciprocity, the field of a source at the target gives the phases that restore it.
"""

# %%
# The array, the bone and a function for a run
# --------------------------------------------

import matplotlib.pyplot as plt
import numpy as np

from seiche.ultrasound import Emitter, Grid, Line, Medium, Sensor, Source, simulate

water, bone, frequency = (1500.0, 1000.0), (2500.0, 1700.0), 500e3
target = np.array([30e-3, 5e-3])
grid = Grid((108, 96), 0.4e-3).with_time(bone[0], cfl=0.25, end=45e-6)
origin = grid.positions("x")[12]
x, y = grid.positions("x") - origin, grid.positions("y")
back = 12e-3 + 1.5e-3 * np.sin(2 * np.pi * y / 11e-3)
skull = (x[:, None] >= 8e-3) & (x[:, None] < back)
medium = Medium(*(np.where(skull, b, w) for b, w in zip(bone, water, strict=True)), sound_speed_ref=water[0])
centers = (np.arange(16) - 7.5) * 1.6e-3
time = grid.dt * np.arange(grid.steps)
wave = 1e5 * np.sin(2 * np.pi * frequency * time) * np.minimum(time * frequency / 3, 1)
period = round(1 / (frequency * grid.dt))
sensor = Sensor(record=(), frequencies=(frequency,), frequency_window=(grid.steps - 4 * period, grid.steps))


def field(source, medium):
    """Return the complex pressure at the frequency."""
    found = simulate(grid, medium, source, sensor, pml_size=10)
    return found["p_amplitude"][0] * np.exp(1j * found["p_phase"][0])


def beam(delays, medium):
    """Return the field of the array with delays in seconds."""
    elements = [Line((origin, c - 0.7e-3), (origin, c + 0.7e-3)) for c in centers]
    return field(Source(emitters=(Emitter(elements, wave, delays=delays),)), medium)


# %%
# From the target to the array
# ----------------------------
# A point source at the target gives the phase at each element. Without bone, the phases follow from the distances.

mask = np.zeros(grid.shape, bool)
i, k = np.abs(x - target[0]).argmin(), np.abs(y - target[1]).argmin()
mask[i, k] = True
back_field = field(Source(p_mask=mask, p=wave), medium)[12]
received = np.array([back_field[np.abs(y - c) < 0.7e-3].mean() for c in centers])
straight = np.hypot(x[i], y[k] - centers) / water[0]
geometric = straight.max() - straight
conjugate = np.mod(np.angle(received), 2 * np.pi) / (2 * np.pi * frequency)

# %%
# Three fields
# ------------
# Reciprocity also predicts the gain: the pressure at the target is the sum of the received pressures, each with the
# phase of its delay.

named = {
    "water": beam(geometric, Medium(*water)),
    "bone": beam(geometric, medium),
    "bone, corrected": beam(conjugate, medium),
}
for name, values in named.items():
    print(f"{name:16s} {abs(values[i, k]) / 1e3:6.1f} kPa at the target")
gain = abs(named["bone, corrected"][i, k] / named["bone"][i, k])
expected = abs(received).sum() / abs((received * np.exp(-2j * np.pi * frequency * geometric)).sum())
print(f"gain {gain:.2f}, by reciprocity {expected:.2f}")
assert abs(gain / expected - 1) < 0.05

figure, panels = plt.subplots(1, 3, figsize=(9, 3), layout="constrained", sharey=True)
largest = 1e-3 * np.abs(named["water"][x > 15e-3]).max()
for axes, (title, values) in zip(panels, named.items(), strict=True):
    image = axes.pcolormesh(1e3 * x, 1e3 * y, 1e-3 * abs(values).T, cmap="inferno", vmin=0, vmax=largest)
    if title != "water":
        axes.contour(1e3 * x, 1e3 * y, skull.T, [0.5], colors="w", linewidths=0.7)
    axes.plot(*(1e3 * target), "c+", markersize=10)
    axes.set(title=title, xlabel="depth (mm)", aspect="equal")
panels[0].set_ylabel("across (mm)")
figure.colorbar(image, ax=panels, label="amplitude (kPa)")
plt.show()
