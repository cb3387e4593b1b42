# SPDX-License-Identifier: BSD-3-Clause
r"""
A Windkessel outlet
===================

The vessels beyond an outlet act like a resistance with a compliance. The pressure :math:`p` of the compliance
:math:`C` follows :math:`C\,\mathrm{d}p/\mathrm{d}t = Q - p / R`. After a constant flow :math:`Q` sets in, it rises to
:math:`R Q` with the time constant :math:`R C`.
"""

# %%
# The case
# --------
# A tube with a diameter of 4 mm. The time constant is 0.1 s, and the final pressure 0.125 mmHg.

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np

import seiche

folder = Path(mkdtemp())
(folder / "case.toml").write_text("""
solver = "flow"
[geometry]
spacing = "0.4 mm"
shape = { kind = "tube", radius = "2 mm", length = "8 mm" }
[fluid]
density = "1060 kg/m^3"
viscosity = "4 mPa s"
[walls]
kind = "bouzidi"
[lattice]
tau = 0.52
[time]
duration = "0.5 s"
[[iolet]]
name = "inlet"
kind = "velocity"
flow_rate = "0.5 mL/s"
profile = "computed"
ramp = "80 ms"
[[iolet]]
name = "outlet"
kind = "windkessel"
resistance = "0.25 mmHg s/mL"
compliance = "0.4 mL/mmHg"
initial_pressure = "0 mmHg"
""")

# %%
# Flow and pressure over time
# ---------------------------

mmhg = 133.322
times, flows, pressures = [], [], []
with seiche.load(folder / "case.toml", output=folder / "out") as simulation:
    outlet = simulation.solver.sites.coords[:, 0] == simulation.solver.sites.coords[:, 0].max()

    def record(sim):
        """Store the flow out of the tube and the pressure at its end."""
        times.append(sim.time)
        flows.append(-1e6 * sim.flow_rates()["outlet"])
        pressures.append(sim.fields("pressure")["pressure"][outlet].mean() / mmhg)

    simulation.every(record, time=0.005)
    simulation.run(visible=False)
times, flows, pressures = map(np.array, (times, flows, pressures))

# %%
# The circuit
# -----------
# The equation of the circuit, integrated with the computed flow, gives the expected pressure.

exact = np.zeros(len(times))
for n in range(1, len(times)):
    step = times[n] - times[n - 1]
    final = 0.25 * (flows[n] + flows[n - 1]) / 2
    exact[n] = final + (exact[n - 1] - final) * np.exp(-step / 0.1)
error = np.abs(pressures - exact).max() / 0.125
print(f"last pressure {pressures[-1]:.4f} mmHg, R Q = {0.25 * flows[-1]:.4f} mmHg; largest error {error:.2%}")
assert error < 0.03

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.plot(times, exact, label="circuit")
axes.plot(times[::3], pressures[::3], ".", label="Seiche")
axes.set(xlabel="time (s)", ylabel="pressure at the outlet (mmHg)")
twin = axes.twinx()
twin.plot(times, flows, color="0.7")
twin.set_ylabel("flow (mL/s)", color="0.5")
axes.legend(loc="lower right")
plt.show()
