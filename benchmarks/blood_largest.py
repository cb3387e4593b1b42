# SPDX-License-Identifier: BSD-3-Clause
"""The largest suspension of one device: a run of a periodic box of cells, its checkpoint, and a restart from it.

    python benchmarks/blood_largest.py --edge 800 --steps 1000 --device cuda --folder largest --json largest.json

The load is that of Ames et al. (2020): cells of 162 vertices at a hematocrit of 0.40, sites of 1 um, a delta function
of support 3, and moments in FP32. Each run is a process of its own, `seiche run`, of which the summary, the time and
the peak of the memory are stored. `--keep` leaves the checkpoint in the folder.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from seiche.bench import results

#: Steps after the restart.
MORE_STEPS = 10

CASE = """solver = "blood"
title = "periodic box of {edge}^3 sites at a hematocrit of 0.40"
[geometry]
spacing = "1 um"
shape = {{ kind = "box", size = ["{edge} um", "{edge} um", "{edge} um"] }}
[fluid]
density = "1025 kg/m^3"
viscosity = "1.2 mPa s"
[lattice]
tau = 1.0
velocity_scale = "10 mm/s"
collision = "regularised"
layout = "moments"
[time]
steps = {steps}
[body_force]
force = ["1e4 N/m^3", "0 N/m^3", "0 N/m^3"]
[[cells]]
name = "red"
shape = {{ kind = "biconcave", vertices = 162 }}
surface_viscosity = "0 uN s/m"
[packing]
hematocrit = 0.40
seed = 1
[coupling]
delta = "roma"
[run]
device = "{device}"
precision = {{ compute = "float32", storage = "float32" }}
[output.checkpoint]
every = {every}
"""


class DeviceMemory(threading.Thread):
    """The largest memory in use on a GPU, by nvidia-smi once per second, None without it."""

    def __init__(self, device: str) -> None:
        """Begin to observe the GPU `device`, "cuda" or "cuda:1"."""
        super().__init__(daemon=True)
        self.bytes: int | None = None
        self._command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
        self._command += ["-i", device.partition(":")[2] or "0"]
        self._ended = threading.Event()
        if device.startswith("cuda"):
            self.start()

    def run(self) -> None:
        """Observe until the end."""
        while not self._ended.wait(1.0):
            answer = subprocess.run(self._command, capture_output=True, text=True, check=False).stdout.strip()
            if answer.isdecimal():
                self.bytes = max(self.bytes or 0, int(answer) << 20)

    def end(self) -> int | None:
        """Return the largest memory seen."""
        self._ended.set()
        return self.bytes


def run(options: argparse.Namespace, steps: int, restart: Path | None = None) -> dict[str, Any]:
    """Run the case for `steps` steps, from a checkpoint if given, and return what is stored of the run."""
    case, output = options.folder / "case.toml", options.folder / ("restarted" if restart else "out")
    case.write_text(CASE.format(edge=options.edge, steps=steps, every=options.steps, device=options.device))
    command = [sys.executable, "-m", "seiche", "run", str(case), "--output", str(output), "--replace"]
    begin, memory = time.monotonic(), DeviceMemory(options.device)
    process = subprocess.Popen(command + (["--restart", str(restart)] if restart else []))
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} ended with status {os.waitstatus_to_exitcode(status)}")
    summary = json.loads((output / "summary.json").read_text())
    kept = ("device", "sites", "steps", "seconds", "mlups", "copy_bandwidth", "stages", "set_up")
    peaks = {"host_bytes": 1024 * usage.ru_maxrss, "device_bytes": memory.end()}
    cells = summary["details"]["cells"]["types"]
    return {"wall_seconds": time.monotonic() - begin, **peaks, "cells": cells, **{key: summary[key] for key in kept}}


def main() -> None:
    """Run the case and the restart, print and store both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edge", type=int, default=800, help="sites along an edge of the box")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--folder", type=Path, required=True, help="folder of the case and its outputs")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    first = run(options, options.steps)
    checkpoint = options.folder / "out" / "checkpoint.seiche"
    stored = {"first": first, "checkpoint_bytes": checkpoint.stat().st_size, "edge": options.edge}
    write(options, stored)
    stored["restarted"] = run(options, options.steps + MORE_STEPS, checkpoint)
    write(options, stored)
    if not options.keep:
        checkpoint.unlink()


def write(options: argparse.Namespace, stored: dict[str, Any]) -> None:
    """Print the results so far, and store them if a file is given."""
    document = results.document("blood-largest", stored["first"]["device"], [], **stored)
    print(json.dumps(document, indent=1))
    results.store(options.json, document)


if __name__ == "__main__":
    main()
