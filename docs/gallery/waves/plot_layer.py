# SPDX-License-Identifier: BSD-3-Clause
r"""
Shear waves in a soft layer
===========================

Soft ground amplifies an earthquake at the frequencies at which shear waves resonate between the surface and the rock,
first at :math:`c_s / (4 H)`. For waves from below, the velocity of the surface over that of the incident wave is
:math:`2 / |\cos kH - \mathrm{i}\,\alpha \sin kH|`, where :math:`\alpha` is the ratio of the impedances.
"""

# %%
# The case
# --------
# A plane shear wave travels upwards in a narrow periodic column. Its pulse is in the rock at the beginning.

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np

import seiche

folder = Path(mkdtemp())
(folder / "case.toml").write_text("""
solver = "waves"
[mesh]
lower = ["0 m", "-560 m"]
upper = ["20 m", "0 m"]
trees = [1, 28]
periodic = [true, false]
size = "20 m"
nodes = 6
[[material]]
name = "rock"
density = "2200 kg/m^3"
cp = "1500 m/s"
cs = "800 m/s"
[[material]]
name = "soil"
density = "1700 kg/m^3"
cp = "500 m/s"
cs = "200 m/s"
where = { kind = "layer", bottom = "-20 m", top = "0 m" }
[boundary]
upper = ["absorbing", "free"]
[plane_wave]
kind = "s"
direction = [0.0, 1.0]
position = ["10 m", "-274 m"]
velocity = "1 m/s"
time = { kind = "ricker", frequency = "4 Hz", delay = "20 ms" }
[[receiver]]
name = "TOP"
position = ["10 m", "0 m"]
[time]
duration = "3 s"
[output.receivers]
every = "5 ms"
""")
with seiche.load(folder / "case.toml", output=folder / "out") as simulation:
    simulation.run(visible=False)
    result = simulation.result("velocity")
times = result.coordinates["record_time"].values
surface = result["receiver_vx"].values[:, 0]

# %%
# The amplification
# -----------------
# The incident pulse is known, so one record gives the amplification at all frequencies of the pulse.

argument = (np.pi * 4 * (times - 1.0)) ** 2
incident = (1 - 2 * argument) * np.exp(-argument)
step = times[1] - times[0]
frequency = np.fft.rfftfreq(8 * len(times), step)
band = (frequency > 1) & (frequency < 9)
spectra = [np.abs(np.fft.rfft(v, 8 * len(times)))[band] for v in (surface, incident)]
found = spectra[0] / spectra[1]
phase = 2 * np.pi * frequency[band] * 20 / 200
alpha = 1700 * 200 / (2200 * 800)
exact = 2 / np.abs(np.cos(phase) - 1j * alpha * np.sin(phase))
resonance = frequency[band][found.argmax()]
print(f"resonance at {resonance:.2f} Hz, exact {200 / 80:.2f} Hz")
print(f"amplification {found.max():.2f}, exact {2 / alpha:.2f}")
assert abs(resonance / 2.5 - 1) < 0.02 and abs(found.max() * alpha / 2 - 1) < 0.02

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
left.plot(times, surface)
left.set(xlabel="time (s)", ylabel="velocity of the surface (m/s)")
right.plot(frequency[band], exact, label="exact")
right.plot(frequency[band], found, "--", label="Seiche")
right.axvline(2.5, color="0.8", zorder=0)
right.set(xlabel="frequency (Hz)", ylabel="amplification")
right.legend()
plt.show()
