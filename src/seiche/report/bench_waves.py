# SPDX-License-Identifier: BSD-3-Clause
"""`seiche bench waves`: picoseconds a node a stage of each variant, and bytes, time and error of what ranks send."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from seiche.domain.world import World
from seiche.kernels.registry import Real
from seiche.kernels.registry.dg import Flux, Medium, Variant, words_a_node, words_a_stage
from seiche.observe.bandwidth import copy_bandwidth
from seiche.report.bench_flow import heading
from seiche.waves import Brick, Material, Mesh, SizeField, Solver
from seiche.waves.ghosts import GhostKind, check_ghosts
from seiche.waves.plane import PlaneWave
from seiche.waves.sweeps import check_variant

#: Medium and flux, each in both precisions.
CONFIGURATIONS: tuple[tuple[Medium, Flux], ...] = (
    ("acoustic", "upwind"),
    ("elastic", "central"),
    ("elastic", "upwind"),
)
PRECISIONS: tuple[Real, ...] = ("float64", "float32")
#: Steps after which states of different ghosts are compared.
_COMPARED = 10


@dataclass(frozen=True)
class Row:
    """One measurement.

    `ps_a_node_a_stage` is the time of a stage on the slowest rank over the nodes of a rank, `words_a_node` what an
    inner stage moves by the model of theory/waves, section 8, `share_of_copy` what the mean of the five stages makes of
    the copy bandwidth of the same run, `times_of_fused` the time over that of the first variant with these ghosts
    (the fused one, unless only another was asked for); `message_bytes` are those that all ranks send in a stage;
    `error` is the largest difference of the state from that of the first row of these settings (fused, with traces
    as ghosts) over the largest unknown, after a few steps.
    """

    medium: str
    flux: str
    precision: str
    nodes: int
    elements: int
    ranks: int
    variant: str
    ghosts: str
    transport: str
    steps: int
    ps_a_node_a_stage: float
    times_of_fused: float
    words_a_node: float
    share_of_copy: float
    message_bytes: int
    error: float


def start(solver: Solver) -> None:
    """Set a wave across the brick, four elements long."""
    wave = PlaneWave("p", (1.0, 0.6, 0.3), 1.0, 2.0, 1.0 if solver.medium == "elastic" else 0.0)
    solver.set_state(wave.state(solver.medium, solver.positions, 0.0, lambda t: np.asarray(np.sin(np.pi * t))))


def measure(solver: Solver, seconds: float) -> tuple[float, int]:
    """Return the seconds a step of the slowest rank, best of three runs of about `seconds`, and the steps of a run."""
    world = solver.world
    solver.timers.every = 1 << 30

    def spent(steps: int) -> float:
        world.barrier()
        begin = solver.timers.seconds
        solver.run(steps)
        return float(world.allreduce_max(np.array([solver.timers.seconds - begin]))[0])

    solver.run(2)
    steps = max(2, int(seconds / (spent(2) / 2)) // 2 * 2)
    return min(spent(steps) for _ in range(3)) / steps, steps


def main(
    *,
    device: str = "cpu",
    ghosts: str = "traces",
    variant: str = "fused",
    size: int | None = None,
    nodes: int = 8,
    configurations: Sequence[tuple[Medium, Flux]] = CONFIGURATIONS,
    precisions: Sequence[Real] = PRECISIONS,
    seconds: float = 2.0,
    threads: int | None = None,
    transport: str = "auto",
    output: Path | None = None,
) -> list[Row]:
    """Measure, print a table on rank 0 and store JSON at `output`; return the rows.

    Every rank gets a periodic cube of `size`^3 elements. `ghosts` is a kind, `variant` one of the kernels', or either
    is "all" to compare them.

    Raises:
        CaseError: an unknown kind of ghosts, or an unknown variant.
    """
    world = World.from_mpi()
    if ghosts != "all":
        check_ghosts(ghosts)
    if variant != "all":
        check_variant(variant)
    variants = get_args(Variant) if variant == "all" else (variant,)
    kinds = get_args(GhostKind) if ghosts == "all" and world.size > 1 else ("traces" if ghosts == "all" else ghosts,)
    edge = size or (32 if device.startswith("cuda") else 8)
    brick = Brick((edge, edge, edge * world.size), (True,) * 3)
    mesh = Mesh.generate(brick, SizeField.uniform(1.0, 3), world=world)
    rows: list[Row] = []
    copy, described = 0.0, ""
    for medium, flux in configurations:
        material = Material.uniform(mesh.count, 1.0, 2.0, 1.0 if medium == "elastic" else 0.0)
        for precision in precisions:
            expected: npt.NDArray[Any] | None = None
            fastest = 0.0
            for kind, how in product(kinds, variants):
                solver = Solver(
                    mesh,
                    material,
                    nodes=nodes,
                    flux=flux,
                    precision=precision,
                    device=device,
                    threads=threads,
                    world=world,
                    transport=transport,  # type: ignore[arg-type]
                    ghosts=kind,
                    variant=how,
                )
                if not copy:
                    described, copy = solver.backend.describe(), copy_bandwidth(solver.backend, world)
                start(solver)
                solver.run(_COMPARED)
                state = solver.state()
                expected = state if expected is None else expected
                parts = np.array([np.abs(state - expected).max(), np.abs(expected).max()], np.float64)
                error, largest = world.allreduce_max(parts)
                step, steps = measure(solver, seconds)
                moved = solver.ghosts.bytes // 2 if solver.ghosts else 0
                stage = step / 5 / (mesh.count * nodes**3)
                fastest = stage if how == variants[0] else fastest
                bytes_a_node = words_a_node(solver.of, how) * np.dtype(precision).itemsize
                rows.append(
                    Row(
                        medium=medium,
                        flux=flux,
                        precision=precision,
                        nodes=nodes,
                        elements=mesh.total,
                        ranks=world.size,
                        variant=how,
                        ghosts=kind if world.size > 1 else "none",
                        transport=solver.ghosts.exchanges[0].transport_name if solver.ghosts else "none",
                        steps=steps,
                        ps_a_node_a_stage=stage * 1e12,
                        times_of_fused=stage / fastest,
                        words_a_node=words_a_stage(solver.of, how),
                        share_of_copy=bytes_a_node * world.size / stage / copy,
                        message_bytes=int(world.allreduce_sum(np.array([moved]))[0]),
                        error=float(error / largest),
                    )
                )
                solver.close()
                del solver
    if world.rank == 0:
        show(rows, described, copy)
        if output is not None:
            stored = {**heading("waves", described), "copy_bytes_per_second": copy, "rows": [asdict(r) for r in rows]}
            output.write_text(json.dumps(stored, indent=1) + "\n")
    return rows


def show(rows: Sequence[Row], device: str, copy: float) -> None:
    """Print the rows as a table."""
    table = Table(title=f"{device}, copy {copy / 1e9:.1f} GB/s", title_justify="left")
    words = ("medium", "flux", "precision", "variant", "ghosts")
    numbers = ("elements", "words", "ps/node/stage", "of fused", "of copy", "kB/stage", "error")
    for name in (*words, *numbers):
        table.add_column(name, justify="left" if name in words else "right")
    for row in rows:
        table.add_row(
            row.medium,
            row.flux,
            row.precision,
            row.variant,
            row.ghosts,
            f"{row.elements}",
            f"{row.words_a_node:.1f}",
            f"{row.ps_a_node_a_stage:.1f}",
            f"{row.times_of_fused:.2f}",
            f"{row.share_of_copy:.0%}",
            f"{row.message_bytes / 1e3:.1f}",
            f"{row.error:.1e}",
        )
    Console(width=140).print(table)
