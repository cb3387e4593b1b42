# SPDX-License-Identifier: BSD-3-Clause
"""The largest flow of one device: seconds of the set-up, bytes per site on host and device, and speed, with moments.

    python benchmarks/flow_largest.py --million 1000 --storage float32 --json benchmarks/results/flow-largest-h200.json

`tube` is a round tube of a length of ten radii, `tree` an arterial tree with 38 outlets, which leaves most of its box
empty. With several ranks, `--million` counts the sites of all of them.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from seiche.bench.flow import document, measure, model_of, show, tube_case
from seiche.domain.set_up_ranks import set_up_on
from seiche.domain.sites import SiteSet
from seiche.domain.tree_surface import tree_surface
from seiche.domain.voxelise import voxelise
from seiche.domain.world import World
from seiche.flow import Solver
from seiche.flow.model import Newtonian, Precision
from seiche.observe.bandwidth import copy_bandwidth
from seiche.set_up import record_set_up

#: Sites of a tree divided by the cube of the radius of its inlet in spacings, measured at a radius of 14.
_SITES_OF_UNIT_TREE = 160.0


def vessel(name: str, sites: float) -> SiteSet:
    """Return the vessel with about `sites` sites."""
    if name == "tube":
        return tube_case(round(sites))
    surface, planes = tree_surface((sites / _SITES_OF_UNIT_TREE) ** (1 / 3))
    return voxelise(surface, 1.0, planes)[0]


def peak_host_bytes() -> int:
    """Return the largest resident memory of this process so far."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def run(options: argparse.Namespace, world: World) -> dict[str, Any]:
    """Set up and time one vessel; return what is stored of it (collective)."""
    before = peak_host_bytes()
    with record_set_up() as times:
        with set_up_on(world):
            sites = vessel(options.vessel, 1e6 * options.million)
        precision = Precision("float32", options.storage)
        model = model_of(sites, Newtonian(0.1), "moments")
        solver = Solver(sites, model, device=options.device, precision=precision, layout="moments", world=world)
    host = sum(world.allgather(peak_host_bytes() - before)) / len(sites)
    copy = copy_bandwidth(solver.backend, world)
    row = measure(solver, f"{options.vessel}, {world.size} rank" + "s" * (world.size > 1), options.seconds, copy)
    used = sum(world.allgather(solver.backend.used_memory())) / len(sites)
    if world.rank == 0:
        show([row], solver.backend.describe(), copy)
        print(f"set-up {times.total:.1f} s:", {name: round(value, 2) for name, value in times.seconds().items()})
        print(f"{len(sites):,} sites: at most {host:.1f} B of host memory and {used:.1f} B of device memory per site")
    memory = {"host_bytes_per_site": host, "device_bytes_per_site": used, "set_up_seconds": times.seconds()}
    return {**document([row], solver.backend.describe(), copy), "memory": memory, "row": asdict(row)}


def main() -> None:
    """Measure one vessel and store it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vessel", choices=("tube", "tree"), default="tube")
    parser.add_argument("--million", type=float, default=1000.0, help="sites in millions")
    parser.add_argument("--storage", choices=("float32", "float16"), default="float32")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    world = World.from_mpi()
    stored = run(options, world)
    if world.rank == 0 and options.json:
        options.json.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
