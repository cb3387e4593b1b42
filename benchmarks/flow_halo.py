# SPDX-License-Identifier: BSD-3-Clause
"""Time that the halo adds to a step, with steps replayed as graphs and about 64 KiB for each neighbour.

    mpiexec -n 4 python benchmarks/flow_halo.py --json benchmarks/results/flow-halo-4.json

Slabs of a periodic box, FP32, one rank per GPU. Steps with and without messages are timed alternately; the minimum
counts. Two ranks exchange both faces with each other, so their faces are half as large.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path

from seiche.bench.results import provenance
from seiche.domain import shapes
from seiche.domain.world import World
from seiche.errors import TransportError
from seiche.flow import FlowModel, Newtonian, Precision, Solver
from seiche.observe.repeat import slowest_rank_seconds

#: Sites of a slab along its axis, and of the faces of two ranks and of more.
ALONG, FACES = 64, {True: (32, 56), False: (56, 64)}
ROUNDS = 7


def seconds_of_steps(solver: Solver, world: World, steps: int) -> float:
    """Return the seconds per step of the slowest rank, the minimum of several measurements."""

    def run(count: int) -> None:
        solver.start(count)
        solver.finish()

    run(steps // 4)
    return min(slowest_rank_seconds(world, partial(run, steps)) for _ in range(ROUNDS)) / steps


def row(world: World, device: str, transport: str, layout: str, steps: int) -> dict[str, object]:
    """Measure the time that one transport adds to a step in one layout (collective).

    Raises:
        TransportError: the transport is not available.
    """
    sites = shapes.box((ALONG * world.size, *FACES[world.size == 2]))
    solver = Solver(
        sites,
        FlowModel(Newtonian(0.1), initial_velocity=(0.01, 0.0, 0.0)),
        device=device,
        world=world,
        precision=Precision("float32", "float32"),
        layout=layout,
        partition="slabs",
        transport=transport,
    )
    times = {}
    for disabled in (False, True):
        solver.discard_graphs()
        solver.halo.disabled = disabled
        times[disabled] = seconds_of_steps(solver, world, steps)
    result = {
        "transport": solver.transport,
        "layout": solver.layout,
        "ranks": world.size,
        "sites": len(sites),
        "neighbours": len(solver.halo.plan.peers),
        "message_bytes": max((4 * len(part) for part in solver.halo.plan.owned), default=0),
        "step_microseconds": 1e6 * times[False],
        "compute_microseconds": 1e6 * times[True],
        "device": solver.backend.describe(),
    }
    solver.close()
    return result


def main() -> None:
    """Measure the requested cases, print and store them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--transport", action="append", help="several may be compared; peer and nccl by default")
    parser.add_argument("--layout", action="append", help="list-ab and tiles-8 by default")
    parser.add_argument("--steps", type=int, default=1600, help="seconds of each of seven measurements")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    world, rows = World.from_mpi(), []
    for transport in options.transport or ["peer", "nccl"]:
        for layout in options.layout or ["list-ab", "tiles-8"]:
            try:
                result = row(world, options.device, transport, layout, options.steps)
            except TransportError as error:  # on all ranks
                if world.rank == 0:
                    print(f"{transport}: {error}", flush=True)
                continue
            device = str(result.pop("device"))
            rows.append(result)
            if world.rank == 0:
                step, compute = result["step_microseconds"], result["compute_microseconds"]
                print(
                    f"{transport} {layout}: {result['message_bytes']} B to each of {result['neighbours']}:"
                    f" step {step:.2f} us, without messages {compute:.2f} us",
                    flush=True,
                )
                if options.json:
                    document = {**provenance("flow halo", device), "rows": rows}
                    options.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
