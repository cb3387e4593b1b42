# SPDX-License-Identifier: BSD-3-Clause
"""
The wake of a cylinder
======================

At a Reynolds number of 100 the wake of a cylinder in a channel sheds vortices. Their frequency :math:`f` is given by
the Strouhal number :math:`f D / U`, which is 0.295 to 0.305 in the benchmark 2D-2 of Schaefer and Turek (1996).
"""

# %%
# The case
# --------
# The channel is one site thick, with twenty sites in the diameter of the cylinder. ``computed`` is the parabola
# between the plates. A function records the velocity behind the cylinder while the run goes on.

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np

import seiche

folder = Path(mkdtemp())
(folder / "case.toml").write_text("""
solver = "flow"
[geometry]
spacing = "5 mm"
shape = { kind = "duct", width = "0.41 m", height = "5 mm", length = "1.2 m", periodic = false, plates = true }
[[geometry.obstacle]]
kind = "cylinder"
start = ["0.2 m", "0.2 m", "0 m"]
end = ["0.2 m", "0.2 m", "5 mm"]
radius = "0.05 m"
[fluid]
density = "1 kg/m^3"
viscosity = "1 mPa s"
initial_velocity = ["1 m/s", "0 m/s", "0 m/s"]
[lattice]
mach = 0.2
[walls]
kind = "bouzidi"
[time]
duration = "7 s"
[[iolet]]
name = "inlet"
kind = "velocity"
velocity = "1 m/s"
profile = "computed"
[[iolet]]
name = "outlet"
kind = "pressure"
pressure = "0 Pa"
""")
times, lift = [], []
with seiche.load(folder / "case.toml", output=folder / "out") as simulation:

    def record(sim):
        """Store the velocity across the channel, 0.25 m behind the cylinder."""
        times.append(sim.time)
        lift.append(sim.fields("velocity")["velocity"][probe, 1])

    coordinates = simulation.solver.sites.coords
    probe = np.argmin(np.linalg.norm(coordinates - [90, 41, 0], axis=1))
    simulation.every(record, time=0.02)
    simulation.run(visible=False)
    result = simulation.result("velocity")

# %%
# The frequency
# -------------
# The period is the mean distance between upward zero crossings after four seconds.

times, lift = np.array(times), np.array(lift)
late = times > 4
t, v = times[late], lift[late] - lift[late].mean()
up = np.flatnonzero((v[:-1] < 0) & (v[1:] >= 0))
crossings = t[up] - v[up] * (t[up + 1] - t[up]) / (v[up + 1] - v[up])
strouhal = 0.1 / np.diff(crossings).mean()
print(f"{len(crossings)} crossings, Strouhal number {strouhal:.3f}, benchmark 0.295 to 0.305")
assert abs(strouhal / 0.3 - 1) < 0.05

x, y = (result.coordinates[name].values for name in "xy")
velocity = result["velocity"].values[:, :, 0]
vorticity = np.gradient(velocity[..., 1], x, axis=0) - np.gradient(velocity[..., 0], y, axis=1)
figure, (top, bottom) = plt.subplots(2, 1, figsize=(8, 4), layout="constrained")
image = top.pcolormesh(x, y, vorticity.T, cmap="RdBu_r", vmin=-30, vmax=30)
top.set(xlabel="x (m)", ylabel="y (m)", aspect="equal")
figure.colorbar(image, ax=top, label="vorticity (1/s)")
bottom.plot(times, lift)
bottom.set(xlabel="time (s)", ylabel="velocity across (m/s)")
plt.show()
