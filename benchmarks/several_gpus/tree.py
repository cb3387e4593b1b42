# SPDX-License-Identifier: BSD-3-Clause
"""Flow in an artery tree with 39 openings on one and on all ranks, without and with output, with POP efficiencies.

    python -m benchmarks.several_gpus.tree --ranks 2 --sites 2e7 --json flow-tree-h100x2.json

Each run is `mpiexec -n RANKS seiche run`. The rows contain the rate, the POP efficiencies and the set-up times of the
summaries. With output, pressure and velocity of all sites are written four times.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seiche.bench.results import provenance, store
from seiche.domain.artery_tree import artery_branches

RADIUS, OUTLETS, LENGTH_RATIO, SEED = 1.5e-3, 38, 8.0, 1
VISCOSITY, DENSITY, TAU = 4e-3, 1060.0, 0.8
#: Peak velocity of the inlet in lattice units.
SPEED = 0.05
STEPS = {"cuda": 4096, "cpu": 64}

CASE = """
solver = "flow"
[geometry]
spacing = "{spacing:.6g} m"
shape = {{ kind = "tree", radius = "{radius} m", outlets = {outlets}, length_ratio = {length_ratio}, seed = {seed} }}
[fluid]
viscosity = "{viscosity} Pa s"
density = "{density} kg/m^3"
[lattice]
tau = {tau}
[time]
steps = {steps}
[[iolet]]
name = "inlet"
kind = "velocity"
flow_rate = "{flow_rate:.6g} m^3/s"
[[iolet]]
name = "outlet*"
kind = "pressure"
pressure = "0 mmHg"
[run]
device = "{device}"
transport = "{transport}"
precision = {{ compute = "float32" }}
{output}
"""


def case_text(sites: float, device: str, transport: str, *, output: bool) -> str:
    """Return a case with about `sites` fluid sites."""
    branches = artery_branches(RADIUS, OUTLETS, LENGTH_RATIO, SEED)
    volume = sum(math.pi * branch.radius**2 * math.dist(branch.start, branch.end) for branch in branches)
    spacing = (volume / sites) ** (1 / 3)
    kinematic = VISCOSITY / DENSITY
    peak = SPEED * kinematic / ((TAU - 0.5) / 3 * spacing)
    fields = f'[[output.fields]]\nfile = "u.vtkhdf"\nevery = {STEPS[device] // 4}\n'
    return CASE.format(
        spacing=spacing,
        radius=RADIUS,
        outlets=OUTLETS,
        length_ratio=LENGTH_RATIO,
        seed=SEED,
        viscosity=VISCOSITY,
        density=DENSITY,
        tau=TAU,
        steps=STEPS[device],
        flow_rate=peak / 2 * math.pi * RADIUS**2,
        device=device,
        transport=transport,
        output=fields if output else "",
    )


def measure(options: argparse.Namespace, ranks: int, *, output: bool) -> tuple[str, dict[str, Any]]:
    """Return the device and the row of a run.

    Raises:
        CalledProcessError: the run failed.
    """
    launcher = shlex.split(options.launcher)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        case, results = Path(folder) / "case.toml", Path(folder) / "results"
        case.write_text(case_text(options.sites, options.device, options.transport, output=output))
        words = [*launcher, "-n", str(ranks), sys.executable, "-m", "seiche", "run", str(case), "-o", str(results)]
        subprocess.run(words, check=True)
        summary = json.loads((results / "summary.json").read_text())
    return summary["device"], {
        "ranks": ranks,
        "output": output,
        "transport": options.transport if ranks > 1 else "none",
        "layout": summary["layout"],
        "sites": summary["sites"],
        "steps": summary["steps"],
        "seconds": summary["seconds"],
        "mlups": summary["sites"] * summary["steps"] / summary["seconds"] / 1e6,
        "pop": summary["efficiency"],
        "set_up": summary["set_up"],
    }


def with_efficiency(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows with the rate of a rank, divided by that on one rank without output."""
    one_rank = next(row["mlups"] for row in rows if row["ranks"] == 1 and not row["output"])
    return [{**row, "efficiency": row["mlups"] / row["ranks"] / one_rank} for row in rows]


def main() -> None:
    """Run, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--device", choices=tuple(STEPS), default="cuda")
    parser.add_argument("--sites", type=float, default=2e7)
    parser.add_argument("--transport", default="auto")
    parser.add_argument("--launcher", default="mpiexec")
    parser.add_argument("--folder", type=Path, help="folder for the files; the system's temporary folder by default")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for ranks in dict.fromkeys((1, options.ranks)):
        for output in (False, True):
            device, row = measure(options, ranks, output=output)
            rows = with_efficiency([*rows, row])
            print(f"{ranks} ranks, {'with' if output else 'without'} output: {rows[-1]['mlups']:.1f} MLUPS", flush=True)
            store(options.json, {**provenance("flow tree", device), "rows": rows})


if __name__ == "__main__":
    main()
