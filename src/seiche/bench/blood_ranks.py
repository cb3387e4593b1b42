# SPDX-License-Identifier: BSD-3-Clause
"""`seiche bench blood --weak` and `--strong`: red cells on 1, 2, 4 ... ranks with the same load per rank or in total.

The loads of the ranks fill a periodic box in three directions. Each consists of copies of the same packed tile, so with
a partition into equal boxes (`bisection`) all ranks have the same work.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from seiche.backend import parse_device
from seiche.bench import results
from seiche.bench.blood import DRIFT, MAX_HEMATOCRIT, TILE, random_subset, red_cell, repeated
from seiche.bench.results import rank_counts
from seiche.bench.splits import Split, grown, requested_counts, split_of
from seiche.bench.transports import opened
from seiche.bench.without_messages import seconds_without_messages
from seiche.cells import Box, Cells, Contact, Packing, Repulsion, biconcave, pack
from seiche.couple import Blood
from seiche.couple.ranks import SharedBoundary
from seiche.domain import shapes
from seiche.domain.world import World
from seiche.flow import FlowModel, Newtonian, Precision, Regularised, Solver, Trt
from seiche.halo.exchange import HaloExchange
from seiche.kernels.registry.ibm import SUPPORT, Delta
from seiche.observe.repeat import sleep_until_barrier

#: Distance below which cells repel each other, um.
_REPULSION_RANGE = 0.25


@dataclass(frozen=True)
class Load:
    """Load of a rank, or of all together: sites along the axes, spacing in um, vertices per cell, and hematocrit."""

    name: str
    shape: tuple[int, int, int]
    spacing: float
    vertices: int
    hematocrit: float = 0.40


#: A load with well-resolved cells, and the load per GPU in Ames et al. (2020): 88 000 cells and 2*10^7 sites.
LOADS = {"resolved": Load("resolved", (256, 256, 256), 0.25, 642), "coarse": Load("coarse", (272, 272, 280), 1.0, 162)}


@dataclass(frozen=True)
class BloodRanksRow:
    """One measurement: time per step on the slowest rank in microseconds, for the flow without and with cells.

    `copies` is the ratio of ghost cells to owned cells on a rank, averaged over the ranks. `compute_microseconds` is
    the time of a step without messages: no packing, sending or waiting, and no host work for messages. `exposed` is the
    remaining fraction of a step. `efficiency` is the time of a step on one rank divided by this time, and by the number
    of ranks if the load is that of all ranks together (`strong`); 0 if one rank was not measured. `message_bytes` are
    the bytes sent and received per rank and step, the maximum over the ranks.
    """

    load: str
    ranks: int
    transport: str
    hematocrit: float
    delta: str
    support: int
    precision: str
    layout: str
    spacing: float
    sites: int
    cells: int
    vertices: int
    points: int
    steps: int
    copies: float
    flow_microseconds: float
    step_microseconds: float
    compute_microseconds: float
    exposed: float
    efficiency: float
    message_bytes: int
    packing_seconds: float
    setup_seconds: float
    partition: str = "slabs"
    strong: bool = False

    @property
    def millions_of_sites(self) -> float:
        """Number of sites of all ranks, in millions."""
        return self.sites / 1e6


def tiled(load: Load, split: Split, tile: Packing, counts: tuple[int, int, int]) -> Packing:
    """Return the cells of all ranks in um: copies of a tile for one load, repeated along the axes as `split`."""
    extent = np.array(load.shape) * load.spacing
    cell_volume = red_cell(load.spacing, load.vertices, 3).mesh.volume * load.spacing**3
    suspension = random_subset(
        repeated(tile, extent / counts, counts), load.hematocrit, float(extent.prod()), cell_volume
    )
    return repeated(suspension, extent, split)


def tile_of(load: Load, seed: int = 0) -> tuple[Packing, tuple[int, int, int]]:
    """Return a packed periodic tile and its number of copies per rank along each axis."""
    extent = np.array(load.shape) * load.spacing
    counts = np.maximum(1, np.round(extent / TILE)).astype(int)
    box = Box(tuple((extent / counts).tolist()))
    return pack(box, [biconcave(162)], MAX_HEMATOCRIT, seed=seed), tuple(counts.tolist())


class Scaling:
    """A flow with one load, or with one for each rank; its steps are timed without and with cells."""

    def __init__(
        self,
        world: World,
        load: Load,
        device: str,
        *,
        strong: bool,
        partition: str,
        precision: str,
        layout: str,
        transport: str,
        threads: int | None,
        steps: int,
    ) -> None:
        """Create a flow with a uniform velocity of 0.1 m/s, and time it (collective)."""
        collision = Regularised() if layout == "moments" else Trt()
        initial_velocity = tuple(speed * load.spacing / 0.25 for speed in DRIFT)
        self.model = FlowModel(Newtonian(1.0 / 6.0), collision, initial_velocity=initial_velocity)  # type: ignore[arg-type]
        self.world, self.load, self.precision, self.steps = world, load, precision, steps
        self.strong, self.partition = strong, partition
        self.split = (1, 1, 1) if strong else split_of(world.size)
        self.shape = grown(load.shape, self.split)
        begin = time.perf_counter()
        self.solver = Solver(
            shapes.box(self.shape),
            self.model,
            device=device,
            precision=Precision(precision, precision),  # type: ignore[arg-type]
            layout=layout,
            world=world,
            partition=partition,
            transport=transport,
            threads=threads,
        )
        self.setup = time.perf_counter() - begin
        self.flow = self.step_seconds()

    def step_seconds(self, repeats: int = 2) -> float:
        """Return the duration of a step in seconds on the slowest rank, the best of several runs of `steps`."""
        self.solver.advance(self.steps)
        times: list[float] = []
        for _ in range(repeats):
            self.world.barrier()
            begin = time.perf_counter()
            self.solver.start(self.steps)
            self.solver.finish()
            times.append((time.perf_counter() - begin) / self.steps)
        return float(self.world.allreduce_max(np.array(times)).min())

    def compute_seconds(self, exchanges: Sequence[HaloExchange]) -> float:
        """Return the duration of a step without messages in seconds on the slowest rank.

        About `steps` steps are run, so that lists of vertices are rebuilt as often as with messages. Afterwards, the
        state is invalid.
        """
        seconds = seconds_without_messages(self.solver, exchanges, self.steps)
        return float(self.world.allreduce_max(np.array([seconds]))[0])

    def measure(self, packing: Packing, delta: Delta, points: int, packing_seconds: float) -> BloodRanksRow:
        """Add cells to the flow and time steps, with and without messages (collective)."""
        solver, load, world = self.solver, self.load, self.world
        begin = time.perf_counter()
        cell_type = red_cell(load.spacing, load.vertices, points)
        precision: Any = self.precision
        centers = [packing.centers / load.spacing]
        cells = Cells(solver.backend, [cell_type], centers, [packing.rotations], precision=precision)
        law = Repulsion(cell_type.model.law.shear, _REPULSION_RANGE / load.spacing)
        contact = Contact(cells, law, lengths=tuple(map(float, self.shape)))
        blood = Blood(solver, cells, contact=contact, delta=delta)
        setup = self.setup + time.perf_counter() - begin
        step, copies, message_bytes = self.step_seconds(), 0.0, 0
        compute = step
        blood.check()
        boundary = blood.boundary
        if isinstance(boundary, SharedBoundary):
            table, messages = boundary.sharing.table, boundary.sharing.messages
            owned_cells = int(np.count_nonzero(table.owner == world.rank))
            exchanges = [solver.halo, boundary.fluid, messages.velocities, messages.positions]
            bytes_sent = (
                sum(exchange.bytes for exchange in exchanges) + messages.velocities.bytes
            )  # velocities and forces
            message_bytes = int(world.allreduce_max(np.array([bytes_sent]))[0])
            copies = float(np.mean(world.allgather((len(table.owner) - owned_cells) / max(owned_cells, 1))))
            compute = self.compute_seconds(exchanges)
            solver.populations.start(self.model.initial_density, self.model.initial_velocity)
        return BloodRanksRow(
            load=load.name,
            ranks=world.size,
            transport=solver.transport,
            hematocrit=packing.hematocrit,
            delta=delta,
            support=SUPPORT[delta],
            precision=self.precision,
            layout=solver.layout,
            spacing=load.spacing,
            sites=len(solver.sites),
            cells=len(packing.centers),
            vertices=load.vertices,
            points=points,
            steps=self.steps,
            copies=copies,
            flow_microseconds=self.flow * 1e6,
            step_microseconds=step * 1e6,
            compute_microseconds=compute * 1e6,
            exposed=max(0.0, 1.0 - compute / step),
            efficiency=0.0,
            message_bytes=message_bytes,
            packing_seconds=packing_seconds,
            setup_seconds=setup,
            partition=self.partition if world.size > 1 else "none",
            strong=self.strong,
        )


def main(
    *,
    world: World,
    device: str = "cpu",
    loads: Sequence[Load] = tuple(LOADS.values()),
    deltas: Sequence[Delta] = ("roma", "peskin"),
    precision: str = "float32",
    points: int = 3,
    steps: int | None = None,
    layout: str | None = None,
    threads: int | None = None,
    transports: Sequence[str] = ("auto",),
    partitions: Sequence[str] = ("bisection",),
    strong: bool = False,
    sizes: Sequence[int] = (),
    output: Path | None = None,
) -> list[BloodRanksRow]:
    """Measure on `sizes` ranks, by default `rank_counts`; print a table on rank 0 and store JSON at `output`.

    If `strong`, the ranks share one load; otherwise each has one. The default layout is that of `bench.blood`. Rows are
    stored after each measurement and returned on rank 0. On one rank, only the first partition and transport are used.

    Raises:
        CaseError: a size exceeds the number of ranks.
    """
    counted = requested_counts("blood", sizes, world.size, rank_counts(world.size))
    options: dict[str, Any] = {"strong": strong, "precision": precision, "threads": threads}
    options["layout"] = layout or ("moments" if parse_device(device).is_gpu else "tiles-8")
    even_steps = max((steps or (512 if parse_device(device).is_gpu else 10)) // 2 * 2, 2)
    rows: list[BloodRanksRow] = []
    device_name = ""
    for load in loads:
        begin = time.perf_counter()
        tile, counts = world.bcast(tile_of(load) if world.rank == 0 else None)
        tile_seconds = time.perf_counter() - begin
        for ranks in counted:
            subset = world.first(ranks)
            variants = list(product(partitions, transports))[: None if ranks > 1 else 1]
            for partition, transport in variants:
                if subset is None:
                    continue
                settings = {"partition": partition, "transport": transport, "steps": even_steps, **options}
                flow = opened(partial(Scaling, subset, load, device, **settings), transport, transports, subset)
                if flow is None:
                    continue
                begin = time.perf_counter()
                packing = tiled(load, flow.split, tile, counts)
                packing_seconds = tile_seconds + time.perf_counter() - begin
                device_name = flow.solver.backend.describe()
                for delta in deltas:
                    rows.append(flow.measure(packing, delta, points, packing_seconds))
                    if world.rank == 0:
                        rows = with_efficiency(rows)
                        results.store(output, results.document("blood-ranks", device_name, rows))
                flow.solver.close()
                del flow
            sleep_until_barrier(world)
    if world.rank == 0:
        results.show(device_name, _COLUMNS, rows, text_columns=3, width=150)
        print("flow, step and compute in us; compute is a step without messages")
    return rows


def with_efficiency(rows: Sequence[BloodRanksRow]) -> list[BloodRanksRow]:
    """Return the rows with their efficiencies, relative to the first row of the load and delta on one rank."""
    one_rank = {(row.load, row.delta): row.step_microseconds for row in reversed(rows) if row.ranks == 1}
    shares = [row.ranks if row.strong else 1 for row in rows]
    return [
        replace(row, efficiency=one_rank.get((row.load, row.delta), 0.0) / (row.step_microseconds * share))
        for row, share in zip(rows, shares, strict=True)
    ]


#: Headings of the table and formats of their values.
_COLUMNS = {
    "load": "{0.load}",
    "partition": "{0.partition}",
    "transport": "{0.transport}",
    "ranks": "{0.ranks}",
    "support": "{0.support}",
    "sites": "{0.millions_of_sites:.3g} M",
    "cells": "{0.cells}",
    "copies": "{0.copies:.1%}",
    "flow": "{0.flow_microseconds:.0f}",
    "step": "{0.step_microseconds:.0f}",
    "compute": "{0.compute_microseconds:.0f}",
    "exposed": "{0.exposed:.1%}",
    "efficiency": "{0.efficiency:.3f}",
}
