# SPDX-License-Identifier: BSD-3-Clause
"""The bifurcation from Python: run a tenth of a beat and print the flow rate through each opening."""

from pathlib import Path

import seiche

CASE = Path(__file__).with_name("case.toml")

if __name__ == "__main__":
    with seiche.load(CASE, device="cpu", replace=True) as simulation:
        simulation.run(steps=1000)
        for name, flow in simulation.flow_rates().items():
            print(f"{name:8} {flow * 1e6:+.3f} mL/s")
        print(simulation.report())
