# SPDX-License-Identifier: BSD-3-Clause
"""`seiche bench waves`: time per node and stage for each variant, and bytes, time and error of messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from seiche.backend import parse_device
from seiche.bench import results
from seiche.bench.splits import grown, split_of
from seiche.bench.transports import opened
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.kernels.registry import Real
from seiche.kernels.registry.dg import Medium, Variant, words_per_leap, words_per_node, words_per_stage
from seiche.observe.bandwidth import copy_bandwidth
from seiche.waves import Brick, Material, Mesh, SizeField, Solver
from seiche.waves.ghosts import GhostKind, check_ghosts
from seiche.waves.plane import PlaneWave
from seiche.waves.sweeps import RK_STAGES, check_variant

#: Combinations of medium and flux, which are measured in both precisions.
CONFIGURATIONS: tuple[tuple[Medium, str], ...] = (("acoustic", "upwind"), ("elastic", "central"), ("elastic", "upwind"))
PRECISIONS: tuple[Real, ...] = ("float64", "float32")
#: Number of steps after which states with different ghosts are compared, and number of elements per rank that are
#: compared: the last ones, which are adjacent to those of other ranks.
_COMPARISON_STEPS, _COMPARED_ELEMENTS = 10, 4096
#: Number of elements of the initial state, which is repeated.
_TILE = 64

#: A variant of a Runge-Kutta stage, or leapfrog with the central flux.
Kernels = Variant | Literal["leapfrog"]


@dataclass(frozen=True)
class WavesRow:
    """One measurement.

    Attributes:
        picoseconds_per_node_stage: time of a stage on the slowest rank, divided by its nodes (a leapfrog step has one
            stage).
        words_per_node: words moved by an inner stage in the model of theory/waves, section 8.
        share_of_copy: mean bandwidth of a stage, divided by the copy bandwidth in the same run.
        time_over_fused: time divided by that of the first variant with these ghosts (the fused variant unless only
            another one was requested).
        message_bytes: bytes that all ranks send per stage.
        error: maximum difference from the state of the first row of these settings (fused, traces as ghosts) after a
            few steps, relative to the largest unknown, in elements that are adjacent to those of other ranks.
        efficiency: time on one device for the elements of one rank, divided by the time on all ranks. If `strong`, time
            for all elements on one device, divided by the number of ranks and the time on all ranks. Its difference
            from 1 is the cost of messages.
        overlap: whether interior elements were computed while messages were in flight.
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
    picoseconds_per_node_stage: float
    time_over_fused: float
    words_per_node: float
    share_of_copy: float
    message_bytes: int
    error: float
    efficiency: float = 1.0
    strong: bool = False
    overlap: bool = True


def start(solver: Solver) -> None:
    """Set an initial wave, repeated in each block of 64 elements, since positions do not affect the time."""
    wave = PlaneWave("p", (1.0, 0.6, 0.3), 1.0, 2.0, 1.0 if solver.medium == "elastic" else 0.0)
    points = np.random.default_rng(1).random((min(_TILE, solver.mesh.count), solver.disc.nodes**3, 3))
    tile = wave.state(solver.medium, points, 0.0, lambda t: np.asarray(np.sin(np.pi * t))).astype(solver.disc.real)
    count = solver.mesh.count
    solver.start_from(np.tile(tile, (-(-count // len(tile)), 1, 1))[:count])


def measure(solver: Solver, seconds: float) -> tuple[float, int]:
    """Return the seconds per step of the slowest rank, best of three runs of about `seconds`, and the steps per run."""
    world = solver.world
    solver.timers.every = 1 << 30

    def run_seconds(steps: int) -> float:
        world.barrier()
        begin = solver.timers.seconds
        solver.advance(steps)
        return float(world.allreduce_max(np.array([solver.timers.seconds - begin]))[0])

    solver.advance(2)
    steps = max(2, int(seconds / (run_seconds(2) / 2)) // 2 * 2)
    return min(run_seconds(steps) for _ in range(3)) / steps, steps


def main(
    *,
    device: str = "cpu",
    ghosts: str = "traces",
    variant: str = "fused",
    size: int | None = None,
    nodes: int | Sequence[int] = 8,
    configurations: Sequence[tuple[Medium, str]] = CONFIGURATIONS,
    precisions: Sequence[Real] = PRECISIONS,
    seconds: float = 2.0,
    threads: int | None = None,
    transports: Sequence[str] = ("auto",),
    overlaps: Sequence[bool] = (True,),
    strong: bool = False,
    output: Path | None = None,
) -> list[WavesRow]:
    """Measure, print each row on rank 0 immediately and store JSON at `output`; return the rows.

    Every rank has a periodic cube of `size`^3 elements, and the cubes are stacked along three axes; if `strong`, all
    ranks share one cube. `overlaps` selects steps with and without interior elements during messages. With several
    values of `nodes`, the number of elements is chosen such that the total number of nodes is about that of `size`^3
    elements with 8 nodes per direction. `ghosts` is one kind or "all"; `variant` is one variant, "leapfrog", or "all"
    (without leapfrog).

    Raises:
        CaseError: `ghosts` or `variant` is unknown, or leapfrog is combined with ghosts other than traces.
    """
    world = World.from_mpi()
    if ghosts != "all":
        check_ghosts(ghosts)
    if variant == "leapfrog":
        if ghosts != "traces":
            raise CaseError(f'ghosts = {ghosts!r}: use "traces" with leapfrog')
        media = dict.fromkeys(medium for medium, _ in configurations)
        configurations = [(medium, "central") for medium in media]
    elif variant != "all":
        check_variant(variant)
    rows: list[WavesRow] = []
    bench = _Bench(device, threads, world, seconds=seconds, strong=strong)
    exchanges = list(product(transports, overlaps))[: None if world.size > 1 else 1]
    node_counts = (nodes,) if isinstance(nodes, int) else tuple(nodes)
    default_edge = size or (32 if parse_device(device).is_gpu else 8)
    for node_count in node_counts:
        edge = default_edge if len(node_counts) == 1 else max(1, round(default_edge * 8 / node_count))
        for (medium, flux), precision in product(configurations, precisions):
            for row in bench.rows(_Case(medium, flux, precision, node_count, edge), variant, ghosts, exchanges):
                rows.append(row)
                if world.rank == 0:
                    show(row, bench.described, bench.copy, first=len(rows) == 1)
                    stored = results.document("waves", bench.described, rows, copy_bytes_per_second=bench.copy)
                    results.store(output, stored)
    return rows


class _Case(NamedTuple):
    """Equations, flux, precision, nodes per element and direction, and elements along an edge."""

    medium: Medium
    flux: str
    precision: Real
    nodes: int
    edge: int


class _Bench:
    """Measurement of the rows of a case."""

    def __init__(self, device: str, threads: int | None, world: World, *, seconds: float, strong: bool) -> None:
        self.device, self.threads, self.world = device, threads, world
        self.seconds, self.strong = seconds, strong
        self.described, self.copy = "", 0.0
        self._meshes: dict[tuple[int, bool], Mesh] = {}

    def _mesh(self, edge: int, one_device: bool) -> Mesh:
        if (edge, one_device) not in self._meshes:
            shape = grown((edge,) * 3, split_of(1 if one_device or self.strong else self.world.size))
            world = World.serial() if one_device else self.world
            mesh = Mesh.generate(Brick(shape, (True,) * 3), SizeField.uniform(1.0, 3), world=world)
            self._meshes[edge, one_device] = mesh
        return self._meshes[edge, one_device]

    def _solver(
        self, case: _Case, scheme: Kernels, kind: GhostKind | None, transport: str = "auto", *, overlap: bool = True
    ) -> Solver:
        """Return a solver in its initial state; without ghosts, a solver for this rank only."""
        one_device, world = kind is None, self.world
        mesh = self._mesh(case.edge, one_device)
        if not overlap:
            mesh = copy(mesh)
            mesh.interior = 0  # all elements wait for messages
        device = f"cuda:{world.local_rank}" if one_device and self.device == "cuda" else self.device
        solver = Solver(
            mesh,
            Material.uniform(mesh.count, 1.0, 2.0, 1.0 if case.medium == "elastic" else 0.0),
            nodes=case.nodes,
            flux=case.flux,
            precision=case.precision,
            device=device,
            threads=world.threads(self.threads),
            world=World.serial() if one_device else world,
            transport=transport,  # type: ignore[arg-type]
            ghosts=kind or "traces",
            variant="fused" if scheme == "leapfrog" else scheme,
            integrator="leapfrog" if scheme == "leapfrog" else "runge-kutta",
        )
        if not self.copy:
            self.described, self.copy = solver.backend.describe(), copy_bandwidth(solver.backend, world)
        start(solver)
        return solver

    def rows(self, case: _Case, variant: str, ghosts: str, exchanges: Sequence[tuple[str, bool]]) -> Iterator[WavesRow]:
        """Yield one row for each kind of ghosts, each variant, and each transport with and without overlap."""
        world, size = self.world, self.world.size
        schemes: Sequence[Any] = get_args(Variant) if variant == "all" else (variant,)
        kinds: Sequence[Any] = (ghosts,) if ghosts != "all" else get_args(GhostKind) if size > 1 else ("traces",)
        one_device_seconds = 0.0
        if size > 1:
            alone = self._solver(case, schemes[0], None)
            one_device_seconds = float(world.allreduce_max(np.array([measure(alone, self.seconds)[0]]))[0])
            alone.close()
            del alone
        reference: npt.NDArray[Any] | None = None
        fused_stage = 0.0
        for kind, scheme, (transport, overlap) in product(kinds, schemes, exchanges):
            create = partial(self._solver, case, scheme, kind, transport, overlap=overlap)
            solver = opened(create, transport, [name for name, _ in exchanges], world)
            if solver is None:
                continue
            solver.advance(_COMPARISON_STEPS)
            state = solver.backend.download(solver.u[-min(_COMPARED_ELEMENTS, solver.mesh.count) :])
            reference = state if reference is None else reference
            maxima = np.array([np.abs(state - reference).max(), np.abs(reference).max()], np.float64)
            error, max_value = world.allreduce_max(maxima)
            step, steps = measure(solver, self.seconds)
            sent_bytes = solver.ghosts.bytes // 2 if solver.ghosts else 0
            is_leapfrog = scheme == "leapfrog"
            total = solver.mesh.total * case.nodes**3
            stage = step / (1 if is_leapfrog else RK_STAGES) / (total / size)
            fused_stage = stage if (scheme, (transport, overlap)) == (schemes[0], exchanges[0]) else fused_stage
            words = words_per_leap(solver.disc) if is_leapfrog else words_per_node(solver.disc, scheme)
            yield WavesRow(
                medium=case.medium,
                flux=case.flux,
                precision=case.precision,
                nodes=case.nodes,
                elements=solver.mesh.total,
                ranks=size,
                variant=scheme,
                ghosts=kind if size > 1 else "none",
                transport=solver.ghosts.transport_name if solver.ghosts else "none",
                steps=steps,
                picoseconds_per_node_stage=stage * 1e12,
                time_over_fused=stage / fused_stage,
                words_per_node=words if is_leapfrog else words_per_stage(solver.disc, scheme),
                share_of_copy=words * np.dtype(case.precision).itemsize * size / stage / self.copy,
                message_bytes=int(world.allreduce_sum(np.array([sent_bytes]))[0]),
                error=float(error / max_value),
                efficiency=one_device_seconds / step / (size if self.strong else 1) if one_device_seconds else 1.0,
                strong=self.strong,
                overlap=overlap,
            )
            solver.close()
            del solver


_COLUMNS = "{:<9}{:<8}{:<9}{:>3} {:<11}{:<10}{:<10}{:>9}{:>6} {:>9}{:>9}{:>8}{:>11}{:>9}{:>6}"
_HEADINGS = ("medium", "flux", "precision", "n", "variant", "ghosts", "messages", "elements", "words", "ps/stage")


def show(row: WavesRow, device: str, copy: float, *, first: bool) -> None:
    """Print a row, with a heading above the first one; times are in ps per stage and node."""
    if first:
        print(f"{device}, copy {copy / 1e9:.1f} GB/s (share: relative to the copy; *: without overlap of messages)")
        print(_COLUMNS.format(*_HEADINGS, "x fused", "share", "kB/stage", "error", "eff."))
    values = (
        *(row.medium, row.flux, row.precision, row.nodes, row.variant, row.ghosts),
        *(f"{row.transport}{'' if row.overlap else ' *'}", row.elements),
        *(f"{row.words_per_node:.1f}", f"{row.picoseconds_per_node_stage:.1f}", f"{row.time_over_fused:.2f}"),
        *(f"{row.share_of_copy:.0%}", f"{row.message_bytes / 1e3:.1f}", f"{row.error:.1e}", f"{row.efficiency:.2f}"),
    )
    print(_COLUMNS.format(*values), flush=True)
