# SPDX-License-Identifier: BSD-3-Clause
r"""
A stiff cell on the axis of a tube
==================================

Red cells of some patients are spheres and nearly rigid. On the axis of a tube, a rigid sphere is slower than the
fluid would be there, because the wall holds the surrounding fluid back. Haberman and Sayre (1958) calculated its
velocity.
"""

# %%
# The case
# --------
# The radius of the cell is 3/8 of that of the tube. A file places it on the axis.

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt

import seiche

folder = Path(mkdtemp())
(folder / "sphere.pos").write_text("1\n15 0 0 0 0 0\n")
(folder / "case.toml").write_text("""
solver = "blood"
[geometry]
spacing = "0.5 um"
shape = { kind = "tube", radius = "8 um", length = "30 um", periodic = true }
[fluid]
density = "1025 kg/m^3"
viscosity = "1.2 mPa s"
[walls]
kind = "bouzidi"
[lattice]
tau = 1.5
velocity_scale = "10 mm/s"
[time]
duration = "0.1 ms"
[body_force]
force = ["7.5e5 N/m^3", "0 N/m^3", "0 N/m^3"]
[[cells]]
name = "sphere"
shape = { kind = "sphere", diameter = "6 um", vertices = 162 }
law = "neo-hookean"
shear_modulus = "200 uN/m"
bending = "0 J"
area = "0 N/m"
local_area = "0 N/m"
volume = "0 Pa"
positions = "sphere.pos"
[run]
precision = { compute = "float32" }
""")
times, speeds = [], []
with seiche.load(folder / "case.toml", output=folder / "out") as simulation:

    def record(sim):
        """Store the velocity of the cell along the tube."""
        times.append(1e6 * sim.time)
        speeds.append(1e3 * sim.result("velocity")["cell_velocity"].values[0, 0])

    simulation.every(record, time=5e-6)
    simulation.run(visible=False)
    result = simulation.result("velocity")

# %%
# The velocity
# ------------
# With the ratio of the radii :math:`\lambda`, it is :math:`u_\mathrm{max} (1 - \tfrac23 \lambda^2 - 0.20217
# \lambda^5) / (1 - 0.75857 \lambda^5)`.

ratio = 3 / 8
alone = 1e3 * 7.5e5 * 8e-6**2 / (4 * 1.2e-3)
expected = alone * (1 - 2 / 3 * ratio**2 - 0.20217 * ratio**5) / (1 - 0.75857 * ratio**5)
print(f"velocity {speeds[-1]:.2f} mm/s, Haberman and Sayre {expected:.2f} mm/s, fluid alone {alone:.2f} mm/s")
assert abs(speeds[-1] / expected - 1) < 0.04

x, y = (1e6 * result.coordinates[name].values for name in "xy")
velocity = 1e3 * result["velocity"].values[..., 0]
position = 1e6 * result["vertex_position"].values
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
image = left.pcolormesh(x, y, velocity[:, :, velocity.shape[2] // 2].T)
figure.colorbar(image, ax=left, label="velocity (mm/s)")
left.plot(position[:, 0], position[:, 1], "w.", markersize=1.5)
left.set(xlabel="x (µm)", ylabel="y (µm)", aspect="equal")
right.plot(times, speeds, ".-", label="cell")
right.axhline(alone, color="0.7", label="axis, fluid alone")
right.axhline(expected, color="C1", ls="--", label="Haberman and Sayre")
right.set(xlabel="time (µs)", ylabel="velocity (mm/s)", ylim=(0, None))
right.legend()
plt.show()
