# SPDX-License-Identifier: BSD-3-Clause
"""`seiche bench waves --gradient`: time of the gradient of a misfit over that of a run (theory/waves, section 10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from seiche.backend import open_backend, parse_device
from seiche.bench import results
from seiche.domain.world import World
from seiche.kernels.registry import Real
from seiche.kernels.registry.dg import Discretisation, Medium, words_per_node
from seiche.kernels.registry.dg_adjoint import words_per_adjoint_step
from seiche.waves import Brick, Material, Mesh, PointSource, Ricker, SizeField
from seiche.waves.adjoint import Experiment
from seiche.waves.fluxes import FLUXES
from seiche.waves.limits import largest_step
from seiche.waves.revolve import reversal_of

#: Steps of a run, and one of how many is stored.
STEPS, STORED = 500, 10
_MEDIA: tuple[Medium, ...] = ("acoustic", "elastic")


@dataclass(frozen=True)
class GradientRow:
    """One measurement.

    Attributes:
        snapshots: stored states.
        by_node: whether the medium, and with it the gradient, is defined by node.
        seconds_of_run, seconds_of_gradient: of `Experiment.simulate` and `Experiment.gradient` from the medium to the
            result, the better of two.
        ratio: of these times.
        predicted: the same by the words moved.
    """

    medium: str
    precision: str
    nodes: int
    elements: int
    ranks: int
    by_node: bool
    steps: int
    snapshots: int
    seconds_of_run: float
    seconds_of_gradient: float
    ratio: float
    predicted: float


def predicted_ratio(scheme: Discretisation, steps: int, snapshots: int) -> float:
    """Return the cost of a gradient in runs, by the words moved."""
    work, step = reversal_of(steps, snapshots), 5 * words_per_node(scheme)
    copies = 2 * scheme.fields * work.stored
    return (work.computed * step + copies + steps * words_per_adjoint_step(scheme)) / (steps * step)


def main(
    *,
    device: str = "cpu",
    size: int | None = None,
    nodes: Sequence[int] = (6, 8),
    media: Sequence[Medium] = _MEDIA,
    precisions: Sequence[Real] = ("float32",),
    by_node: Sequence[bool] = (False,),
    steps: int = STEPS,
    threads: int | None = None,
    output: Path | None = None,
) -> list[GradientRow]:
    """Measure, print each row on rank 0 immediately and store JSON at `output`; return the rows.

    A cube of `size`^3 elements with 8 nodes per direction, or of about as many nodes, is shared by all ranks. The
    sides absorb, a force acts in the middle and nine receivers record velocities or the pressure.
    """
    world = World.from_mpi()
    edge = size or (24 if parse_device(device).is_gpu else 4)
    described = open_backend(device, world.threads(threads), world.local_rank).describe()
    rows: list[GradientRow] = []
    for node_count in nodes:
        for medium in media:
            for precision in precisions:
                for nodal in by_node:
                    options = {"nodes": node_count, "precision": precision, "device": device, "threads": threads}
                    shot, material = _shot(
                        medium, max(2, round(edge * 8 / node_count)), steps, options, world=world, by_node=nodal
                    )
                    rows.append(_measure(shot, material))
                    if world.rank == 0:
                        _show(rows[-1], described, first=len(rows) == 1)
                        results.store(output, results.document("waves-gradient", described, rows))
    return rows


def _shot(
    medium: Medium, edge: int, steps: int, options: dict[str, Any], *, world: World, by_node: bool
) -> tuple[Experiment, Material]:
    """Return a shot in a cube of elements of unit size, and its medium."""
    mesh = Mesh.generate(Brick((edge,) * 3, (False,) * 3), SizeField.uniform(1.0, 3), world=world)
    nodes, middle = options["nodes"], edge / 2 + 0.3
    shape = (mesh.count, nodes**3)[: 2 if by_node else 1]
    shear = 1.0 if medium == "elastic" else 0.0
    material = Material(*(np.full(shape, value) for value in (1.0, 2.0, shear)))
    dt = 0.9 * largest_step(mesh, material, nodes, FLUXES["upwind"], world)
    pulse = Ricker(0.3, 4.0)
    source = PointSource((middle,) * 3, pulse, force=(1.0, 0.5, 0.2))
    line = np.linspace(0.5, edge - 0.5, 3)
    receivers = [(float(x), float(y), edge - 0.4) for x in line for y in line]
    fields = ("p",) if medium == "acoustic" else ("vx", "vy", "vz")
    snapshots = max(2, steps // STORED)
    return Experiment(mesh, dt, steps, [source], receivers, fields, options, snapshots, world), material


def _measure(shot: Experiment, material: Material) -> GradientRow:
    """Return the times of a run and of a gradient; a shorter shot first compiles all kernels."""
    assert shot.world is not None
    data = np.zeros((shot.steps, len(shot.receivers), len(shot.fields)))
    short = Experiment(**{**vars(shot), "steps": 3, "snapshots": 2})
    short.gradient(material, data[:3])

    def seconds(action: Any) -> float:
        shot.world.barrier()  # type: ignore[union-attr]
        begin = perf_counter()
        action()
        return float(shot.world.allreduce_max(np.array([perf_counter() - begin]))[0])  # type: ignore[union-attr]

    run = min(seconds(lambda: shot.simulate(material)) for _ in range(2))
    gradient = min(seconds(lambda: shot.gradient(material, data)) for _ in range(2))
    nodes, precision = shot.options["nodes"], shot.options["precision"]
    medium: Medium = "elastic" if material.has_solid else "acoustic"
    scheme = Discretisation(medium, 3, nodes, real=precision, nodal=material.by_node)
    assert shot.snapshots is not None
    return GradientRow(
        medium=medium,
        precision=precision,
        nodes=nodes,
        elements=shot.mesh.total,
        ranks=shot.world.size,
        by_node=material.by_node,
        steps=shot.steps,
        snapshots=shot.snapshots,
        seconds_of_run=run,
        seconds_of_gradient=gradient,
        ratio=gradient / run,
        predicted=predicted_ratio(scheme, shot.steps, shot.snapshots),
    )


_COLUMNS = "{:<9}{:<10}{:>3}{:>10}{:>6} {:<9}{:>6}{:>10}{:>9}{:>10}{:>7}{:>10}"
_HEADINGS = ("medium", "precision", "n", "elements", "ranks", "by", "steps", "snapshots", "run, s", "gradient", "ratio")


def _show(row: GradientRow, device: str, *, first: bool) -> None:
    """Print a row, with a heading above the first one."""
    if first:
        print(device)
        print(_COLUMNS.format(*_HEADINGS, "predicted"))
    by = "node" if row.by_node else "element"
    times = f"{row.seconds_of_run:.3f}", f"{row.seconds_of_gradient:.3f}", f"{row.ratio:.2f}", f"{row.predicted:.2f}"
    values = row.medium, row.precision, row.nodes, row.elements, row.ranks, by, row.steps, row.snapshots
    print(_COLUMNS.format(*values, *times), flush=True)
