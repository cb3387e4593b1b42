# SPDX-License-Identifier: BSD-3-Clause
"""`seiche bench flow`: MLUPS, traffic and share of the copy bandwidth for each layout and precision."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import parse_device
from seiche.bench import results
from seiche.bench.splits import Split, grown, requested_counts, split_name, split_of
from seiche.bench.transports import opened
from seiche.bench.without_messages import seconds_without_messages
from seiche.domain import shapes
from seiche.domain.sites import SiteSet
from seiche.domain.world import World
from seiche.flow.choice import layouts_for
from seiche.flow.iolets import BLOCK
from seiche.flow.layout import HALF_SCALE
from seiche.flow.model import FlowModel, Newtonian, Precision, PressureIolet, Regularised, Rheology, Trt
from seiche.flow.solver import FlowSolver
from seiche.observe.bandwidth import copy_bandwidth
from seiche.observe.repeat import sleep_until_barrier
from seiche.solver.replay import GRAPH_STEPS

#: Default (compute, storage) pairs for each kind of device.
PRECISIONS = {
    "cpu": (("float32", "float32"), ("float64", "float64")),
    "cuda": (("float32", "float32"), ("float64", "float64"), ("float32", "float16")),
}


@dataclass(frozen=True)
class FlowRow:
    """One measurement; `bytes_per_update` is the minimum traffic of the scheme per fluid site.

    `step_microseconds` is the time of a step on the slowest rank; `compute_microseconds` is the time of the same sweeps
    and iolet stages without messages. `efficiency` is the rate of a rank divided by that of a run on one rank, 0 if one
    rank was not measured.
    """

    case: str
    layout: str
    compute: str
    storage: str
    rheology: str
    sites: int
    ranks: int
    steps: int
    mlups: float
    bytes_per_update: float
    gigabytes_per_second: float
    share_of_copy: float
    memory_bytes: int
    transport: str = "none"
    step_microseconds: float = 0.0
    compute_microseconds: float = 0.0
    partition: str = ""
    efficiency: float = 0.0


def box_case(edge: int, split: Split = (1, 1, 1)) -> SiteSet:
    """Return a periodic box of cubes of edge^3 sites, stacked along the axes as `split`."""
    return shapes.box(grown((edge,) * 3, split))


def tube_case(sites: int) -> SiteSet:
    """Return a round tube along x between two pressure iolets, with about `sites` sites and a length of ten radii."""
    radius = (sites / (10.0 * np.pi)) ** (1.0 / 3.0)
    return shapes.tube(radius, 10.0 * radius, 1.0)


def model_of(sites: SiteSet, rheology: Rheology, layout: str = "auto") -> FlowModel:
    """Return a flow driven by a density difference, with the collision that the layout requires."""
    densities = (1.001, 0.999)
    iolets = tuple(PressureIolet(densities[k % 2]) for k in range(len(sites.iolets)))
    return FlowModel(rheology, Regularised() if layout == "moments" else Trt(), iolets=iolets)


def fill_random(solver: FlowSolver, seed: int = 1) -> None:
    """Fill the populations with small random numbers, because operations with zeros might be faster."""
    random = np.random.default_rng(seed + solver.world.rank)
    scale = HALF_SCALE if solver.precision.storage == "float16" else 1.0
    pattern = (1e-3 * scale * random.random(1 << 22, np.float32)).astype(solver.precision.storage)
    if solver.layout == "moments" and scale != 1.0:
        pattern = (0.75 + 1e-3 * pattern).astype(
            np.float16
        )  # small as an FP16 value, and also as the upper half of an FP32 value
    for array in solver.populations.arrays:
        for begin in range(0, array.size, pattern.size):
            chunk = array[begin : begin + pattern.size]
            solver.backend.assign(chunk, pattern[: chunk.size])


def compute_seconds(solver: FlowSolver, steps: int) -> npt.NDArray[np.float64]:
    """Return the seconds per step of each rank without messages (ranks,); the state is invalid afterwards."""
    solver.iolets.prepare(0, BLOCK)  # values for this number of steps, including the first replay of the graph
    limited_steps = min(steps, BLOCK - GRAPH_STEPS)
    return np.array(solver.world.allgather(seconds_without_messages(solver, solver.exchanges, limited_steps)))


def measure(solver: FlowSolver, case: str, seconds: float, copy: float) -> FlowRow:
    """Run for about `seconds` and return the performance (collective)."""
    fill_random(solver)
    solver.timers.every = 1 << 30

    def seconds_of(steps: int) -> float:
        """Return the seconds of `steps` steps, without checking the state."""
        begin = solver.timers.seconds
        solver.start(steps)
        solver.finish()
        return solver.timers.seconds - begin

    seconds_of(66)
    rank_step_seconds = seconds_of(64) / 64
    step_seconds = float(solver.world.allreduce_max(np.array([rank_step_seconds]))[0])
    steps = max(64, int(seconds / step_seconds) // 64 * 64)
    run_seconds = float("inf")
    for _ in range(3):
        solver.world.barrier()
        run_seconds = min(run_seconds, float(solver.world.allreduce_max(np.array([seconds_of(steps)]))[0]))
    bytes_per_step = sum(stage.bytes for phase in solver.phases for stage in phase) / len(solver.phases)
    bytes_per_step = float(solver.world.allreduce_sum(np.array([float(bytes_per_step)]))[0])
    sites, traffic = len(solver.sites), bytes_per_step * steps / run_seconds
    has_messages = solver.populations.plan.peers or solver.world.size > 1
    compute = float(compute_seconds(solver, steps).max()) if has_messages else run_seconds / steps
    return FlowRow(
        case,
        solver.layout,
        solver.precision.compute,
        solver.precision.storage,
        re.sub(r"\B(?=[A-Z])", "-", type(solver.model.rheology).__name__).lower(),
        sites,
        solver.world.size,
        steps,
        sites * steps / run_seconds / 1e6,
        bytes_per_step / sites,
        traffic / 1e9,
        traffic / copy,
        solver.populations.memory(),
        solver.transport,
        run_seconds / steps * 1e6,
        compute * 1e6,
    )


def cases(names: Sequence[str], device: str, size: int | None, ranks: int = 1) -> Iterator[tuple[str, SiteSet]]:
    """Yield the geometries to be measured; `size` is the edge of the box, or the sites of the tube in millions.

    `ranks` is the number of boxes, stacked along three axes, or the factor by which the sites of the tube are
    multiplied.
    """
    on_gpu = parse_device(device).is_gpu
    for name in names:
        if name == "box":
            edge = size or (384 if on_gpu else 112)
            split = split_of(ranks)
            yield f"box {edge}^3" + (f" x {split_name(split)}" if ranks > 1 else ""), box_case(edge, split)
        else:
            yield "tube", tube_case((size or (20 if on_gpu else 1)) * ranks * 1_040_000)


def main(
    *,
    device: str = "cpu",
    names: Sequence[str] = ("tube",),
    layouts: Sequence[str] = layouts_for(FlowModel(Newtonian(0.1), Regularised())),
    precisions: Sequence[tuple[str, str]] | None = None,
    rheology: Rheology | None = None,
    size: int | None = None,
    seconds: float = 2.0,
    threads: int | None = None,
    transports: Sequence[str] = ("auto",),
    partitions: Sequence[str] = ("metis",),
    weak: bool = False,
    sizes: Sequence[int] = (),
    output: Path | None = None,
) -> list[FlowRow]:
    """Measure on `sizes` ranks, by default on all; print a table on rank 0, store JSON at `output`; return the rows.

    With `weak`, `size` is the load of each rank; otherwise it is the total load. Rows are stored after each
    measurement. On one rank, only the first partition and transport are measured.

    Raises:
        CaseError: a number of ranks exceeds that of the world.
    """
    world = World.from_mpi()
    precision_pairs = precisions or PRECISIONS["cuda" if parse_device(device).is_gpu else "cpu"]
    rows: list[FlowRow] = []
    copy, device_name = 0.0, ""
    for ranks in requested_counts("flow", sizes, world.size, [world.size]):
        subset, copy = world.first(ranks), 0.0
        variants = list(product(partitions, transports))[: None if ranks > 1 else 1]
        for case, sites in cases(names, device, size, ranks if weak else 1):
            if subset is None:
                continue
            for pair, layout, (partition, transport) in product(precision_pairs, layouts, variants):
                create = partial(
                    FlowSolver,
                    sites,
                    model_of(sites, rheology or Newtonian(0.1), layout),
                    device=device,
                    precision=Precision(*pair),  # type: ignore[arg-type]
                    layout=layout,
                    world=subset,
                    partition=partition,
                    transport=transport,
                    threads=threads,
                )
                solver = opened(create, transport, transports, subset)
                if solver is None:
                    continue
                if not copy:
                    device_name = solver.backend.describe()
                    copy = copy_bandwidth(solver.backend, subset)
                rows.append(replace(measure(solver, case, seconds, copy), partition=partition if ranks > 1 else "none"))
                solver.close()
                del solver
                if world.rank == 0:
                    rows = with_efficiency(rows)
                    results.store(output, document(rows, device_name, copy))
        sleep_until_barrier(world)
    if world.rank == 0:
        show(rows, device_name, copy)
    return rows


def with_efficiency(rows: Sequence[FlowRow]) -> list[FlowRow]:
    """Return the rows with their efficiencies, the rate of a rank divided by that on one rank of the same shape."""

    def key(row: FlowRow) -> tuple[str, ...]:
        return row.case.partition(" x ")[0], row.layout, row.compute, row.storage, row.rheology

    one_rank = {key(row): row.mlups for row in rows if row.ranks == 1}
    return [
        replace(row, efficiency=row.mlups / row.ranks / one_rank[key(row)] if key(row) in one_rank else 0.0)
        for row in rows
    ]


def document(rows: Sequence[FlowRow], device: str, copy: float) -> dict[str, Any]:
    """Return the document to store: device, date, commit, versions, copy bandwidth and rows."""
    return results.document("flow", device, rows, copy_bytes_per_second=copy)


#: Headings of the table and formats of their values.
_COLUMNS = {
    "case": "{0.case}",
    "layout": "{0.layout}",
    "compute/storage": "{0.compute}/{0.storage}",
    "partition": "{0.partition}",
    "transport": "{0.transport}",
    "ranks": "{0.ranks}",
    "sites": "{0.sites}",
    "MLUPS": "{0.mlups:.1f}",
    "B/update": "{0.bytes_per_update:.1f}",
    "GB/s": "{0.gigabytes_per_second:.1f}",
    "share of copy": "{0.share_of_copy:.0%}",
    "us/step": "{0.step_microseconds:.1f}",
    "us compute": "{0.compute_microseconds:.1f}",
    "efficiency": "{0.efficiency:.3f}",
}


def show(rows: Sequence[FlowRow], device: str, copy: float) -> None:
    """Print the rows as a table."""
    results.show(f"{device}, copy {copy / 1e9:.1f} GB/s", _COLUMNS, rows, text_columns=5, width=170)
