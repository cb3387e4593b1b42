# SPDX-License-Identifier: BSD-3-Clause
"""Time a stage of the wave solver: `python benchmarks/waves_stage.py [--device cuda] [--elements 48] [--nodes 8]`.

Periodic cubes of elements^3 elements, upwind flux, acoustic and elastic, single and double precision: picoseconds a
node a stage, and the share of the copy bandwidth of the same run that the words of theory/waves, section 8, make.
Writes one line of JSON a configuration.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from seiche.backend.base import COPIES_TO_WARM_UP
from seiche.kernels.registry import dg
from seiche.waves import Brick, Forest, Material, Mesh, Solver


def cube(elements: int) -> Mesh:
    """Return a periodic cube of `elements`^3 trees."""
    return Mesh.of_forest(Forest.uniform(Brick((elements,) * 3, (True,) * 3), 0))


def words_a_node(of: dg.Discretisation) -> float:
    """Return the words a node a stage, mean of the five stages (the first reads no register, the last writes none)."""
    return 3.6 * of.fields + 2 * 6 / of.nodes * of.slot / of.face_nodes


def main() -> None:
    """Run the configurations one after another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--elements", type=int, default=48)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--steps", type=int, default=33)
    arguments = parser.parse_args()
    mesh = cube(arguments.elements)
    for medium, cs in (("acoustic", 0.0), ("elastic", 1.0)):
        for real in ("float32", "float64"):
            material = Material.uniform(mesh.count, 1.0, 2.0, cs)
            solver = Solver(mesh, material, nodes=arguments.nodes, precision=real, device=arguments.device)
            size, seconds = solver.backend.copy_times(lambda: None)
            bandwidth = size / float(np.median(seconds[COPIES_TO_WARM_UP:]))
            solver.run(arguments.steps)
            begin = time.perf_counter()
            solver.run(arguments.steps)
            taken = (time.perf_counter() - begin) / (5 * arguments.steps * mesh.count * arguments.nodes**3)
            row = {
                "device": solver.backend.describe(),
                "medium": medium,
                "precision": real,
                "nodes": arguments.nodes,
                "elements": mesh.count,
                "copy_GB_s": round(bandwidth / 1e9, 1),
                "ps_a_node_a_stage": round(taken * 1e12, 2),
                "share_of_copy": round(words_a_node(solver.of) * np.dtype(real).itemsize / taken / bandwidth, 3),
            }
            print(json.dumps(row), flush=True)
            del solver


if __name__ == "__main__":
    main()
