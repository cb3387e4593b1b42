# SPDX-License-Identifier: BSD-3-Clause
"""Change of the LOH.1 seismograms when the elements of `seiche validate waves` are halved.

    mpiexec -n 8 python benchmarks/waves_half.py --json benchmarks/results/waves-half-8.json

Every element is split, with the same trees and sponge: eight times the nodes and twice the steps.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline

from seiche.backend import open_backend, parse_device
from seiche.bench.results import provenance
from seiche.domain.world import World
from seiche.validate.waves.layer_over_half_space import FULL, LOSSLESS, REDUCED, seismograms
from seiche.validate.waves.misfits import misfit


def main() -> None:
    """Compute both seismograms; print and store their difference and the error of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    world = World.from_mpi()
    full_case = FULL if parse_device(options.device).is_gpu else REDUCED
    results, rows = [], []
    for size in (full_case, replace(full_case, splits=1)):
        begin = time.perf_counter()
        results.append(seismograms(size, LOSSLESS, device=options.device, world=world))
        latest = results[-1]
        rows.append(
            {
                "tree": size.tree,
                "splits": size.splits,
                "nodes": latest.nodes,
                "steps": len(latest.times),
                "seconds": time.perf_counter() - begin,
                "largest_error_of_a_component": float(misfit(latest.computed, latest.exact).max()),
            }
        )
        if world.rank == 0:
            print(rows[-1], flush=True)
    coarse, fine = results
    common = coarse.times <= fine.times[-1]
    finer = CubicSpline(fine.times, fine.computed)(coarse.times[common])
    change = misfit(coarse.computed[common], finer)
    if world.rank == 0:
        print(f"largest change of a component: {change.max():.3%}; by receiver {np.round(100 * change.max(1), 2)} %")
        if options.json:
            document = provenance("waves half", open_backend(options.device).describe())
            document |= {"ranks": world.size, "rows": rows, "change_of_components": change.tolist()}
            options.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
