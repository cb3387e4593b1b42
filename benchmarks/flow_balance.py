# SPDX-License-Identifier: BSD-3-Clause
"""Load balance of a vessel with several openings: compute time of each rank before and after measured weights.

    mpiexec -n 4 python benchmarks/flow_balance.py --json benchmarks/results/flow-balance-4.json

A bifurcation with an inlet and two outlets, FP32, cut by METIS: first with equal costs of all sites, then with the
costs measured by the first solver. The time is that of a step's kernels without its messages.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from seiche.bench.flow import compute_seconds
from seiche.bench.results import provenance
from seiche.domain.bifurcation import bifurcation_surface
from seiche.domain.sites import SiteSet
from seiche.domain.voxelise import voxelise
from seiche.domain.world import World
from seiche.flow import Solver
from seiche.flow.balance import measure_costs
from seiche.flow.model import FlowModel, Newtonian, Precision, PressureIolet


def vessel(millions: float) -> SiteSet:
    """Return the bifurcation with about this number of million sites."""
    surface, planes = bifurcation_surface(resolution=2e-4)
    spacing = (surface.volume / (millions * 1e6)) ** (1 / 3)
    return voxelise(surface, spacing, planes)[0]


def main() -> None:
    """Measure both partitions and print the time of each rank."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--layout", default="tiles-8")
    parser.add_argument("--millions", type=float, default=3.0, help="sites in all")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    world = World.from_mpi()
    sites: SiteSet = world.bcast(vessel(options.millions) if world.rank == 0 else None)
    model = FlowModel(Newtonian(0.1), iolets=(PressureIolet(1.001), PressureIolet(1.0), PressureIolet(1.0)))
    weights, costs, rows, described = None, None, [], ""
    for name in ("equal weights", "measured weights"):
        solver = Solver(
            sites,
            model,
            device=options.device,
            layout=options.layout,
            precision=Precision("float32", "float32"),
            world=world,
            weights=weights,
        )
        solver.advance(64)
        costs = costs or measure_costs(solver)
        weights = costs.weights(sites)
        seconds = compute_seconds(solver, 3200)
        described = solver.backend.describe()
        rows.append(
            {
                "partition": name,
                "sites": len(sites),
                "ranks": world.size,
                "rank_microseconds": [round(1e6 * value, 2) for value in seconds],
                "max_over_mean": float(seconds.max() / seconds.mean()),
                "seconds_per_site_kind": [costs.fluid, costs.wall, costs.iolet],
            }
        )
        solver.close()
        if world.rank == 0:
            times_text = " ".join(f"{1e6 * value:.1f}" for value in np.sort(seconds))
            print(f"{name}: {times_text} us, max/mean {rows[-1]['max_over_mean']:.3f}", flush=True)
    if world.rank == 0 and options.json:
        document = {**provenance("flow balance", described), "layout": options.layout, "rows": rows}
        options.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
