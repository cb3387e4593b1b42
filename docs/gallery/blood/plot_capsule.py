# SPDX-License-Identifier: BSD-3-Clause
r"""
A capsule in shear flow
=======================

A sphere with an elastic membrane between sliding plates becomes an ellipsoid at a fixed angle, and its membrane rotates
around it like the tread of a tank. While the deformation is small, the membrane rotates like a rigid sphere, with half
the shear rate :math:`\dot\gamma / 2` (Jeffery, 1922).
"""

# %%
# The case
# --------
# A neo-Hookean capsule of radius 3 um between plates that slide with 12 cm/s in opposite directions. A file places it
# in the middle of the channel.

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np

import seiche

viscosity, radius, capillary = 1.2e-3, 3e-6, 0.03
rate = 0.24 / 24e-6
modulus = viscosity * rate * radius / capillary
folder = Path(mkdtemp())
(folder / "capsule.pos").write_text("1\n12 12 12 0 0 0\n")
(folder / "case.toml").write_text(f"""
solver = "blood"
[geometry]
spacing = "0.75 um"
shape = {{ kind = "channel", height = "24 um", length = "24 um", width = "24 um" }}
[fluid]
density = "1025 kg/m^3"
viscosity = "1.2 mPa s"
[lattice]
tau = 2.0
velocity_scale = "12 cm/s"
[time]
duration = "{2.0 / rate} s"
[[walls.moving]]
name = "low"
velocity = ["-12 cm/s", "0 m/s", "0 m/s"]
where = {{ kind = "plane", point = ["0 um", "0 um", "0 um"], normal = [0, 0, 1] }}
[[walls.moving]]
name = "high"
velocity = ["12 cm/s", "0 m/s", "0 m/s"]
where = {{ kind = "plane", point = ["0 um", "0 um", "24 um"], normal = [0, 0, 1] }}
[[cells]]
name = "capsule"
shape = {{ kind = "sphere", diameter = "6 um", vertices = 162 }}
law = "neo-hookean"
shear_modulus = "{modulus} N/m"
bending = "0 J"
area = "0 N/m"
local_area = "0 N/m"
volume = "0 Pa"
positions = "capsule.pos"
[run]
precision = {{ compute = "float32" }}
""")

# %%
# The rotation of the membrane
# ----------------------------
# The angular velocity is that of the rigid body with the same angular momentum as the vertices.

times, rotation, deformation = [], [], []
with seiche.load(folder / "case.toml", output=folder / "out") as simulation:

    def record(sim):
        """Store the angular velocity about y and the deformation of the capsule."""
        result = sim.result("velocity")
        points = result["vertex_position"].values - result["cell_position"].values[0]
        momentum = np.cross(points, result["vertex_velocity"].values).sum(axis=0)
        inertia = (points**2).sum() * np.eye(3) - points.T @ points
        times.append(1e3 * sim.time)
        rotation.append(np.linalg.solve(inertia, momentum)[1])
        deformation.append(result["cell_deformation"].values[0])

    simulation.every(record, time=0.1 / rate)
    simulation.run(visible=False)
    result = simulation.result("velocity")
print(f"angular velocity {rotation[-1]:.0f} 1/s, half the shear rate {rate / 2:.0f} 1/s")
print(f"deformation {deformation[-1]:.3f}")
assert abs(rotation[-1] / (rate / 2) - 1) < 0.05

x, z = (1e6 * result.coordinates[name].values for name in "xz")
velocity = result["velocity"].values
middle = velocity.shape[1] // 2
position = 1e6 * result["vertex_position"].values
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
image = left.pcolormesh(x, z, 1e3 * velocity[:, middle, :, 2].T, cmap="RdBu_r")
figure.colorbar(image, ax=left, label="velocity along z (mm/s)")
left.plot(position[:, 0], position[:, 2], "k.", markersize=2)
left.set(xlabel="x (µm)", ylabel="z (µm)", aspect="equal")
right.plot(times, rotation, ".-", label="Seiche")
right.axhline(rate / 2, color="0.5", ls="--", label="half the shear rate")
right.set(xlabel="time (ms)", ylabel="angular velocity (1/s)", ylim=(0, None))
right.legend()
plt.show()
