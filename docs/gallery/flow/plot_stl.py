# SPDX-License-Identifier: BSD-3-Clause
r"""
A vessel from an STL file
=========================

A surface, for example from a segmentation, is voxelised, and its rims become the openings. Here it is a bifurcation
with an aneurysm. In the straight parent vessel, the wall shear stress is that of a round tube, :math:`4 \mu Q / (\pi
R^3)`.
"""

# %%
# Surface and case
# ----------------
# Replace the file by your own surface; ``unit`` states the unit of its numbers. Tables of iolets without a position
# are assigned to the rims in order of size.

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np

import seiche
from seiche.domain.bifurcation import bifurcation_surface
from seiche.io.formats.stl import write_stl

folder = Path(mkdtemp())
write_stl(folder / "vessel.stl", bifurcation_surface()[0])
(folder / "case.toml").write_text("""
solver = "flow"
[geometry]
stl = "vessel.stl"
unit = "1 m"
spacing = "0.2 mm"
[fluid]
density = "1060 kg/m^3"
viscosity = "4 mPa s"
[walls]
kind = "bouzidi"
[lattice]
tau = 0.55
[time]
duration = "0.5 s"
[[iolet]]
name = "inlet"
kind = "velocity"
flow_rate = "0.2 mL/s"
ramp = "0.2 s"
[[iolet]]
name = "left"
kind = "pressure"
pressure = "0 mmHg"
[[iolet]]
name = "right"
kind = "pressure"
pressure = "0 mmHg"
""")
with seiche.load(folder / "case.toml", output=folder / "out") as simulation:
    simulation.run(visible=False)
    result = simulation.result("velocity", "wall_shear_stress")
    rates = simulation.flow_rates()

# %%
# Flow rates and wall shear stress
# --------------------------------
# What flows in flows out again. The stress is that at the sites next to the wall, a little inside the vessel. There
# it is :math:`4 \mu Q r / (\pi R^4)`, and it is compared between 6 and 3 mm upstream of the bifurcation.

total = sum(rates.values()) / rates["inlet"]
print({name: f"{1e6 * rate:.4f} mL/s" for name, rate in rates.items()}, f"sum {total:.1e} of the inflow")
x, y, z = (1e3 * result.coordinates[name].values for name in "xyz")
stress = np.linalg.norm(result["wall_shear_stress"].values, axis=-1)
wall = np.argwhere(stress > 0)
positions = np.stack([axis[wall[:, k]] for k, axis in enumerate((x, y, z))], axis=1)
stress = stress[tuple(wall.T)]
parent = (positions[:, 0] > -6) & (positions[:, 0] < -3)
exact = 4 * 4e-3 * 0.2e-6 / (np.pi * 1.5e-3**3)
ratio = np.mean(stress[parent] / (exact * np.hypot(positions[parent, 1], positions[parent, 2]) / 1.5))
print(f"wall shear stress of the parent over that of a round tube: {ratio:.3f}")
assert abs(ratio - 1) < 0.05 and abs(total) < 0.02

speed = np.linalg.norm(result["velocity"].values, axis=-1)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
image = left.pcolormesh(x, y, 1e3 * speed[:, :, len(z) // 2].T)
figure.colorbar(image, ax=left, label="speed in the middle plane (mm/s)")
order = np.argsort(positions[:, 2])
points = right.scatter(*positions[order, :2].T, c=stress[order], s=6, cmap="inferno", vmin=0, vmax=2 * exact)
figure.colorbar(points, ax=right, label="wall shear stress (Pa)")
for axes in (left, right):
    axes.set(xlabel="x (mm)", ylabel="y (mm)", aspect="equal")
plt.show()
