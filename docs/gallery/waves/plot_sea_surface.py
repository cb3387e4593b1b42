# SPDX-License-Identifier: BSD-3-Clause
r"""
A sound source below the sea surface
====================================

The surface of the sea reflects sound with opposite sign. The echo is that of a mirror image above the surface, so the
exact pressure is the difference of two waves in an unbounded fluid.
"""

# %%
# The case
# --------
# A source 60 m deep in two dimensions, a line source in water. The upper side is free, the others absorb.

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np

import seiche

folder = Path(mkdtemp())
(folder / "case.toml").write_text("""
solver = "waves"
[mesh]
lower = ["-300 m", "-300 m"]
upper = ["300 m", "0 m"]
trees = [20, 10]
size = "30 m"
nodes = 6
[[material]]
name = "water"
density = "1000 kg/m^3"
cp = "1500 m/s"
[boundary]
lower = ["absorbing", "absorbing"]
upper = ["absorbing", "free"]
[[source]]
position = ["0 m", "-60 m"]
volume = "1 mL"
time = { kind = "gaussian", sigma = "8 ms", delay = "40 ms" }
[[receiver]]
name = "A"
position = ["120 m", "-100 m"]
[[receiver]]
name = "B"
position = ["40 m", "-150 m"]
[time]
duration = "0.22 s"
[output.receivers]
every = "1 ms"
""")
with seiche.load(folder / "case.toml", output=folder / "out") as simulation:
    simulation.run(steps=int(0.6 * simulation.setup.steps), visible=False)
    early = simulation.result("pressure", shape=(241, 121))["pressure"].values
    simulation.run(visible=False)
    result = simulation.result("pressure")
times = result.coordinates["record_time"].values
found = result["receiver_p"].values

# %%
# The exact pressure
# ------------------
# A line source with the volume rate :math:`V s(t)` has the pressure :math:`\tfrac{\rho V}{2 \pi} \int_0^\infty s'(t -
# \tfrac{r}{c} \cosh\theta)\,\mathrm{d}\theta`.

theta = np.linspace(0, 4, 2000)


def line_source(r):
    """Return the pressure at the distance r in an unbounded fluid."""
    t = times[:, None] - r / 1500 * np.cosh(theta) - 0.04
    slope = -t / 0.008**2 * np.exp(-((t / 0.008) ** 2) / 2) / (0.008 * np.sqrt(2 * np.pi))
    return 1000 * 1e-6 / (2 * np.pi) * np.trapezoid(slope, theta, axis=1)


figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
limit = np.abs(early).max() / 3
image = left.imshow(early.T, extent=(-300, 300, -300, 0), origin="lower", cmap="RdBu_r", vmin=-limit, vmax=limit)
figure.colorbar(image, ax=left, label="pressure (Pa)", orientation="horizontal")
for number, (x, y) in enumerate(((120, -100), (40, -150))):
    exact = line_source(np.hypot(x, y + 60)) - line_source(np.hypot(x, y - 60))
    error = np.linalg.norm(found[:, number] - exact) / np.linalg.norm(exact)
    print(f"receiver {'AB'[number]}: relative error {error:.2%}")
    assert error < 0.03
    left.plot(x, y, "k^")
    right.plot(times, exact, color=f"C{number}", linewidth=4, alpha=0.3)
    right.plot(times, found[:, number], color=f"C{number}", linewidth=1, label=f"receiver {'AB'[number]}")
left.set(xlabel="x (m)", ylabel="y (m)")
right.set(xlabel="time (s)", ylabel="pressure (Pa); wide: exact")
right.legend()
plt.show()
