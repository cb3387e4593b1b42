# SPDX-License-Identifier: BSD-3-Clause
r"""
A vessel from a mask
====================

A segmentation is a mask of voxels. Here the mask is a tube that is tilted relative to the voxels, so that the exact
answer is known: the pressure falls by :math:`8 \mu Q L / (\pi R^4)` along a length :math:`L` (Hagen-Poiseuille).
"""

# %%
# The mask
# --------
# Any array of flags does, for example ``nibabel.load("mask.nii.gz").get_fdata() > 0``.

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np

import seiche

radius, voxel = 1.0, 0.1  # mm
x, y, z = np.meshgrid(*(voxel * (np.arange(n) - (n - 1) / 2) for n in (100, 48, 32)), indexing="ij")
axis = np.array([np.cos(0.2), np.sin(0.2), 0.0])
along = x * axis[0] + y * axis[1]
distance = np.sqrt(x**2 + y**2 + z**2 - along**2)
folder = Path(mkdtemp())
np.save(folder / "mask.npy", distance < radius)

# %%
# The case
# --------
# The vessel leaves the image at two rims, which are its openings.

(folder / "case.toml").write_text("""
solver = "flow"
[geometry]
spacing = "0.125 mm"
[geometry.image]
file = "mask.npy"
voxel = ["0.1 mm", "0.1 mm", "0.1 mm"]
position = ["-4.95 mm", "-2.35 mm", "-1.55 mm"] # of the first voxel
[fluid]
density = "1060 kg/m^3"
viscosity = "4 mPa s"
[walls]
kind = "bouzidi"
[lattice]
tau = 0.55
[time]
duration = "0.4 s"
[[iolet]]
name = "rim0"
kind = "velocity"
flow_rate = "0.05 mL/s"
profile = "computed"
ramp = "0.15 s"
[[iolet]]
name = "rim1"
kind = "pressure"
pressure = "0 Pa"
""")
with seiche.load(folder / "case.toml", output=folder / "out") as simulation:
    simulation.run(visible=False)
    result = simulation.result("pressure", "velocity")

# %%
# The pressure along the axis
# ---------------------------
# The mean pressure of each cross-section is compared with the exact line, away from the ends.

grid = [1e3 * result.coordinates[name].values for name in "xyz"]
position = sum(c * a for c, a in zip(np.meshgrid(*grid, indexing="ij"), axis, strict=True))
pressure = result["pressure"].values
inside = np.isfinite(pressure)
edges = np.arange(-4.0, 4.1, 0.25)
middle = (edges[1:] + edges[:-1]) / 2
bins = np.digitize(position[inside], edges)
mean = np.array([pressure[inside][bins == k].mean() for k in range(1, len(edges))])
gradient = np.polyfit(middle, mean, 1)[0]
exact = -8 * 4e-3 * 0.05e-6 / (np.pi * 1e-3**4) * 1e-3  # Pa/mm
print(f"pressure gradient {gradient:.3f} Pa/mm, Hagen-Poiseuille {exact:.3f} Pa/mm")
assert abs(gradient / exact - 1) < 0.03

speed = np.linalg.norm(result["velocity"].values, axis=-1)
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
image = left.pcolormesh(grid[0], grid[1], 1e3 * speed[:, :, speed.shape[2] // 2].T)
left.set(xlabel="x (mm)", ylabel="y (mm)", aspect="equal")
figure.colorbar(image, ax=left, label="speed (mm/s)", orientation="horizontal")
right.plot(middle, mean, "o", label="Seiche")
right.plot(middle, exact * (middle - middle.mean()) + mean.mean(), label="Hagen-Poiseuille")
right.set(xlabel="position on the axis (mm)", ylabel="pressure (Pa)")
right.legend()
plt.show()
