# SPDX-License-Identifier: BSD-3-Clause
"""`seiche bench ultrasound` on several ranks: cubes stacked along three axes, one per rank, for each decomposition."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from seiche.bench import results
from seiche.bench.results import rank_counts
from seiche.bench.splits import Split, requested_counts, split_name, split_of
from seiche.bench.transports import opened
from seiche.bench.ultrasound import Physics, problem_of, stage_milliseconds, step_seconds
from seiche.domain.world import World
from seiche.observe.repeat import sleep_until_barrier
from seiche.ultrasound.plan import Decomposition
from seiche.ultrasound.solver import UltrasoundSolver

#: Overlaps with each neighbour in points; 0 stands for transforms of the whole grid.
OVERLAPS = (8, 16, 0)
#: Stages that move messages.
_MESSAGE_STAGES = ("send halo", "receive halo", "transpose")


@dataclass(frozen=True)
class UltrasoundRanksRow:
    """One measurement: a cube of `size`^3 points for each of `ranks` ranks, and the same cube on one rank.

    `split` is the number of cubes along each axis, as in "2x2x1"; "" in older results, with all cubes along x.

    `overlap` is the requested width and `width` is that of the subdomains; both are 0 for the global basis.
    Milliseconds per step are the median of three runs. `redundant_work` is the number of points of a subdomain divided
    by the number of points that it owns. `stages` are the milliseconds of each stage on the first rank, in steps timed
    by stage.
    """

    size: int
    physics: str
    scheme: str
    precision: str
    basis: str
    transport: str
    transforms: str
    overlap: int
    width: int
    ranks: int
    milliseconds_one_rank: float
    milliseconds: float
    redundant_work: float
    stages: dict[str, float] = field(default_factory=dict)
    split: str = ""

    @property
    def efficiency(self) -> float:
        """Time of a step on one rank, divided by this time."""
        return self.milliseconds_one_rank / self.milliseconds

    @property
    def efficiency_after_redundant_work(self) -> float:
        """Efficiency if all points of the subdomain are counted as work of a rank."""
        return self.efficiency * self.redundant_work

    @property
    def share_of_messages(self) -> float:
        """Fraction of a step spent in stages that move messages."""
        return sum(self.stages.get(name, 0.0) for name in _MESSAGE_STAGES) / max(sum(self.stages.values()), 1e-30)


def measure(
    world: World,
    size: int,
    scheme: str,
    physics: Physics,
    *,
    split: Split,
    overlap: int,
    one_rank_milliseconds: float,
    transport: str = "auto",
    transports: Sequence[str] = (),
    seconds: float = 1.0,
    **options: Any,
) -> UltrasoundRanksRow | None:
    """Time one cube per rank, stacked as `split` (collective); `one_rank_milliseconds` is the time on one rank.

    Return None if the transport is not available, but others of `transports` may be.

    Raises:
        CaseError: the overlap is too wide for these cubes.
    """
    basis = "local" if overlap else "global"
    decomposition = Decomposition(basis, overlap, split if overlap else None, transport=transport)
    problem = problem_of(size, physics, split)
    create = partial(UltrasoundSolver, problem, world=world, decomposition=decomposition, scheme=scheme, **options)
    solver = opened(create, transport, transports, world)
    if solver is None:
        return None
    milliseconds = float(np.median(step_seconds(solver, world, seconds)[0])) * 1e3
    stages = stage_milliseconds(solver)
    row = UltrasoundRanksRow(
        size,
        physics,
        scheme,
        options.get("precision", "float32"),
        basis,
        solver.transport,
        solver.transforms,
        overlap,
        solver.overlap,
        world.size,
        one_rank_milliseconds,
        milliseconds,
        float(np.prod(solver.part.shape)) / size**3 if overlap else 1.0,
        stages,
        split_name(split),
    )
    solver.close()
    return row


def main(
    world: World,
    *,
    device: str = "cpu",
    sizes: Sequence[int] = (),
    schemes: Sequence[str] = ("exact",),
    physics: Sequence[Physics] = ("lossless", "full"),
    overlaps: Sequence[int] = OVERLAPS,
    precision: str = "float32",
    threads: int | None = None,
    seconds: float = 1.0,
    transports: Sequence[str] = ("auto",),
    splits: Sequence[Split] = (),
    counts: Sequence[int] = (),
    output: Path | None = None,
) -> list[UltrasoundRanksRow]:
    """Measure on 2, 4 ... ranks; print a table on rank 0 and store JSON at `output` after each row (collective).

    The first rank also times the cube on one rank. The cubes of some ranks are stacked by each of `splits` with as many
    pieces, by default by the most even one; the global basis is measured with the first of these. `counts` are the
    numbers of ranks. Schemes other than the exact one support only the global basis. The rows are returned on rank 0.

    Raises:
        CaseError: the cubes are too small for their layers or overlaps.
    """
    options: dict[str, Any] = {"device": device, "precision": precision, "threads": world.threads(threads)}
    cases = [(size, scheme, name) for size in sizes or (64,) for name in physics for scheme in schemes]
    rows: list[UltrasoundRanksRow] = []
    device_name = ""
    for size, scheme, name in cases:
        milliseconds, first_rank = 0.0, world.first(1)
        if first_rank is not None:
            solver = UltrasoundSolver(problem_of(size, name), scheme=scheme, **options)
            device_name = solver.backend.describe()
            milliseconds = float(np.median(step_seconds(solver, first_rank, seconds)[0])) * 1e3
            del solver
            gc.collect()
        sleep_until_barrier(world)
        milliseconds = world.bcast(milliseconds)
        for ranks in requested_counts("ultrasound", counts, world.size, rank_counts(world.size)[1:] or [1]):
            subset = world.first(ranks)
            variants = _variants(ranks, splits, overlaps if scheme == "exact" else [0], transports)
            for split, overlap, transport in variants:
                if subset is None:
                    continue
                settings: dict[str, Any] = {"split": split, "overlap": overlap, "transport": transport}
                settings["transports"] = transports
                settings |= {"one_rank_milliseconds": milliseconds, "seconds": seconds}
                row = measure(subset, size, scheme, name, **settings, **options)
                rows += [] if row is None else [row]
                gc.collect()
                if world.rank == 0:
                    results.store(output, results.document("ultrasound-ranks", device_name, rows))
            sleep_until_barrier(world)
    if world.rank == 0:
        results.show(device_name, _COLUMNS, rows, text_columns=5, width=150)
        print(
            "points of each rank; work: ratio of computed to owned points; after work: efficiency including that work"
        )
        return rows
    return []


def _variants(
    ranks: int, splits: Sequence[Split], overlaps: Sequence[int], transports: Sequence[str]
) -> list[tuple[Split, int, str]]:
    """Return the splits, overlaps and transports to measure on `ranks` ranks."""
    fitting = [split for split in splits if np.prod(split) == ranks] or [split_of(ranks)]
    return [variant for variant in product(fitting, overlaps, transports) if variant[1] > 0 or variant[0] == fitting[0]]


#: Headings of the table and formats of their values.
_COLUMNS = {
    **{name: f"{{0.{name}}}" for name in ("scheme", "physics", "basis", "transport", "transforms")},
    "points": "{0.size}^3",
    "ranks": "{0.ranks}",
    "cubes": "{0.split}",
    "width": "{0.width}",
    "1 rank": "{0.milliseconds_one_rank:.2f}",
    "ms/step": "{0.milliseconds:.2f}",
    "work": "{0.redundant_work:.3f}",
    "efficiency": "{0.efficiency:.3f}",
    "after work": "{0.efficiency_after_redundant_work:.3f}",
    "messages": "{0.share_of_messages:.1%}",
}
