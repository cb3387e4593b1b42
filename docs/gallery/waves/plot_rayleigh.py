# SPDX-License-Identifier: BSD-3-Clause
r"""
The speed of Rayleigh waves
===========================

A blow on the surface of a solid sends a wave along it whose motion decays with depth. For :math:`c_p = \sqrt 3 c_s`
its speed is 0.9194 times that of shear waves (Rayleigh, 1885), whatever the frequency.
"""

# %%
# The case
# --------
# A vertical force on the free surface of a half space, in two dimensions.

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np

import seiche

folder = Path(mkdtemp())
(folder / "case.toml").write_text("""
solver = "waves"
[mesh]
lower = ["-200 m", "-320 m"]
upper = ["800 m", "0 m"]
trees = [25, 8]
size = "40 m"
nodes = 6
[[material]]
name = "rock"
density = "2000 kg/m^3"
cp = "1732.05 m/s"
cs = "1000 m/s"
[boundary]
lower = ["absorbing", "absorbing"]
upper = ["absorbing", "free"]
margin = { trees = 2 }
[[source]]
position = ["0 m", "0 m"]
force = ["0 N", "-1 MN"]
time = { kind = "ricker", frequency = "10 Hz" }
[[receiver]]
name = "R"
start = ["100 m", "0 m"]
end = ["700 m", "0 m"]
count = 13
[time]
duration = "0.95 s"
[output.receivers]
every = "2 ms"
""")
with seiche.load(folder / "case.toml", output=folder / "out") as simulation:
    simulation.run(steps=int(0.65 * simulation.setup.steps), visible=False)
    field = simulation.result("velocity", shape=(401, 129))["velocity"].values
    simulation.run(visible=False)
    result = simulation.result("velocity")
times = result.coordinates["record_time"].values
traces = result["receiver_vy"].values
distances = np.linspace(100, 700, 13)

# %%
# The speed
# ---------
# The wave keeps its shape, so the delay between two distant receivers is that with the largest correlation.


def delay(first, second):
    """Return the time from trace to trace, with an interpolated maximum of their correlation."""
    correlation = np.correlate(second, first, mode="full")
    k = correlation.argmax()
    before, at, after = correlation[k - 1 : k + 2]
    return (k + (before - after) / (2 * (before - 2 * at + after)) - len(first) + 1) * (times[1] - times[0])


speed = (distances[10] - distances[5]) / delay(traces[:, 5], traces[:, 10])
print(f"speed {speed:.1f} m/s, Rayleigh 919.4 m/s")
assert abs(speed / 919.4 - 1) < 0.01

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
values = field[..., 1].T
limit = np.abs(values).max() / 4
left.imshow(values, extent=(-200, 800, -320, 0), origin="lower", cmap="RdBu_r", vmin=-limit, vmax=limit)
left.set(xlabel="x (m)", ylabel="y (m)", title="vertical velocity")
scale = 60 / np.abs(traces[:, 5]).max()
for distance, trace in zip(distances, traces.T, strict=True):
    right.plot(times, distance + scale * trace, color="k", linewidth=0.7)
right.plot(0.15 + distances / 919.4, distances, "C1--", label="0.9194 cs")
right.set(xlabel="time (s)", ylabel="distance (m)")
right.legend()
plt.show()
