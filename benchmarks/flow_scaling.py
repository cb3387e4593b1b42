# SPDX-License-Identifier: BSD-3-Clause
"""Weak and strong scaling of the flow solver, and the cost of a step of a small vessel.

    mpiexec -n 4 python benchmarks/flow_scaling.py --transport peer --json benchmarks/results/flow-scaling-4.json

Cases in FP32 on tiles of 8^3, one rank per GPU:

- `weak`: 272^3 sites per rank, stacked cubes, cut in slabs;
- `strong`: 384 x 384 x 448 sites in total, cut in slabs;
- `vessel`: a round tube of 2*10^6 sites between two pressure iolets, cut by METIS.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from seiche.bench.flow import box_case, document, measure, model_of, show, tube_case
from seiche.domain import shapes
from seiche.domain.world import World
from seiche.flow import Solver
from seiche.flow.model import Newtonian, Precision
from seiche.observe.bandwidth import copy_bandwidth

CASES = {
    "vessel": (lambda ranks: tube_case(2_080_000), "metis"),
    "weak": (lambda ranks: box_case(272, ranks), "slabs"),
    "strong": (lambda ranks: shapes.box((384, 384, 448)), "slabs"),
}


def main() -> None:
    """Measure the requested cases and store them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", choices=tuple(CASES), help="all by default")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--transport", action="append", help="several may be compared; auto by default")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    world, rows, copy, device = World.from_mpi(), [], 0.0, ""
    for name in options.case or CASES:
        build, partition = CASES[name]
        sites = build(world.size)
        for transport in options.transport or ["auto"]:
            solver = Solver(
                sites,
                model_of(sites, Newtonian(0.1)),
                device=options.device,
                precision=Precision("float32", "float32"),
                layout="tiles-8",
                world=world,
                partition=partition,
                transport=transport,
            )
            if not copy:
                copy, device = copy_bandwidth(solver.backend, world), solver.backend.describe()
            rows.append(measure(solver, f"{name}, {world.size} ranks", options.seconds, copy))
            solver.close()
            if world.rank == 0:  # earlier results survive if a later case fails
                show(rows[-1:], device, copy)
                if options.json:
                    options.json.write_text(json.dumps(document(rows, device, copy), indent=1) + "\n")


if __name__ == "__main__":
    main()
