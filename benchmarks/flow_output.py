# SPDX-License-Identifier: BSD-3-Clause
"""Cost of output and monitoring: step times of a tube with and without them.

    mpiexec -n 4 python benchmarks/flow_output.py --device cuda --sites 8e7 --steps 10240 --every 1024 --folder /scratch

Three runs of a flow:

- `steps`: steps alone;
- `monitored`: monitored every --monitor steps;
- `written`: also writes pressure and velocity of all sites every --every steps, and a checkpoint every --checkpoint.

A window is at least --every/8 steps; its time per step is that of the slowest rank. Printed in microseconds: mean,
median, 5th and 95th percentile, maximum, and the excess of the mean over that of the steps alone. Files are removed at
the end.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import seiche
from seiche.backend import open_backend
from seiche.bench.results import provenance
from seiche.case.loop import RunLoop
from seiche.case.simulation import Simulation
from seiche.case.stop_signals import StopRequest
from seiche.domain.world import World

CASE = """
solver = "flow"
[geometry]
spacing = "1 mm"
shape = {{ kind = "tube", radius = "{radius} mm", length = "{length} mm" }}
[fluid]
viscosity = "4 mPa s"
[lattice]
tau = 0.8
[time]
steps = {steps}
[[iolet]]
name = "inlet"
kind = "velocity"
velocity = "0.001 mm/s"
[[iolet]]
name = "outlet"
kind = "pressure"
pressure = "0 mmHg"
[run]
device = "{device}"
partition = "slabs"
monitor_every = {monitor}
precision = {{ compute = "{precision}" }}
[output]
in_flight = {in_flight}
record_every = {steps}
{fields}
"""


def case_text(options: argparse.Namespace, *, monitored: bool, written: bool) -> str:
    """Return a case file of a tube with a length of six diameters."""
    radius = (options.sites / (12 * math.pi)) ** (1 / 3)
    fields = f'[[output.fields]]\nfile = "u.vtkhdf"\nevery = {options.every}\n' if written else ""
    if written and options.checkpoint:
        fields += f"[output.checkpoint]\nevery = {options.checkpoint}\n"
    return CASE.format(
        radius=round(radius, 1),
        length=round(12 * radius),
        steps=options.steps,
        device=options.device,
        precision=options.precision,
        monitor=options.monitor if monitored else options.steps,
        in_flight=options.in_flight,
        fields=fields,
    )


class Windows:
    """Records when the device completed each chunk of steps; replaces the progress bar of a run."""

    def __init__(self, window: int, first: int) -> None:
        """Start without records; nothing is recorded before step `first`."""
        self.window, self.first, self.steps, self.times = window, first, [], []

    def update(self, step: int) -> None:
        """Record that `step` steps are done."""
        if step >= self.first and (not self.steps or step >= self.steps[-1] + self.window):
            self.steps.append(step)
            self.times.append(time.perf_counter())

    def seconds(self) -> npt.NDArray[np.float64]:
        """Return the seconds per step of every window except the last, in which kernels may be compiled."""
        return (np.diff(self.times) / np.diff(self.steps))[:-1]


def window_times(simulation: Simulation, every: int) -> npt.NDArray[np.float64]:
    """Return the seconds per step of windows of at least every/8 steps on the slowest rank, with their output.

    Windows before the second output do not count, since they compile kernels and allocate memory.
    """
    window = every // 8
    windows, steps = Windows(window, every + 2 * window), simulation.setup.steps
    loop = RunLoop(simulation.case_run, simulation.outputs, simulation.checkpoints.describe, None)
    loop.advance(steps, steps, windows.update, StopRequest())
    return np.asarray(simulation.world.allreduce_max(windows.seconds()))


def measure(options: argparse.Namespace, world: World, name: str) -> dict[str, Any]:
    """Return percentiles of one of the three runs."""
    folder = Path(world.bcast(tempfile.mkdtemp(dir=options.folder) if world.rank == 0 else None))
    if world.rank == 0:
        (folder / "case.toml").write_text(case_text(options, monitored=name != "steps", written=name == "written"))
    world.barrier()
    try:
        with seiche.load(folder / "case.toml", world=world) as simulation:
            times = window_times(simulation, options.every) * 1e6
            seconds = {**simulation.outputs.seconds, "wait for output": simulation.outputs.writer.waited}
            sites = len(simulation.setup.vessel.sites)
            simulation.solver.close()
    finally:
        world.barrier()
        if world.rank == 0:
            shutil.rmtree(folder)
    low, median, high = np.percentile(times, [5, 50, 95])
    return {
        "run": name,
        "sites": sites,
        "mean_us": float(times.mean()),
        "median_us": float(median),
        "p5_us": float(low),
        "p95_us": float(high),
        "max_us": float(times.max()),
        **{f"{key} (s)": value for key, value in seconds.items()},
    }


def main() -> None:
    """Measure, print, and store on request."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--sites", type=float, default=1e6)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--monitor", type=int, default=512)
    parser.add_argument("--checkpoint", type=int)
    parser.add_argument("--in-flight", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="folder for the files; the system's temporary folder by default")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    world, rows = World.from_mpi(), []
    about = provenance("flow output", open_backend(options.device, None, world.local_rank).describe())
    for name in ("steps", "monitored", "written"):
        row = measure(options, world, name)
        rows.append(row)
        row["more_than_steps"] = row["mean_us"] / rows[0]["mean_us"] - 1
        if world.rank == 0:
            columns = "  ".join(f"{key[:-3]} {row[key]:9.2f}" for key in row if key.endswith("_us"))
            print(f"{name:10} {columns}  us per step, {row['more_than_steps']:+.2%}", flush=True)
            print(" " * 11 + ", ".join(f"{key} {value:.3f}" for key, value in row.items() if "(s)" in key), flush=True)
            if options.json:
                options.json.write_text(json.dumps({**about, "ranks": world.size, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
