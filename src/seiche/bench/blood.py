# SPDX-License-Identifier: BSD-3-Clause
"""`seiche bench blood`: red cells in a periodic box of fluid, stage by stage, against the flow alone; stored as JSON.

A box of 0.25 um sites holds cells of 642 vertices at random, none through another. All move with the fluid, faster than
blood does in vessels that are resolved so finely, so that lists are made anew at least as often as in a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from seiche.backend import Backend, parse_device
from seiche.backend.base import Graph
from seiche.bench import results
from seiche.cells import Box, Cells, CellType, Contact, Packing, Repulsion, biconcave, pack
from seiche.cells.mesh import EVANS_FUNG_RADIUS
from seiche.cells.red import MODEL
from seiche.couple import Blood
from seiche.domain import shapes
from seiche.flow import FlowModel, Newtonian, Precision, Regularised, Solver, Trt
from seiche.kernels.registry.ibm import SUPPORT, Delta
from seiche.observe.stage import Stage
from seiche.report.figures import shares_figure
from seiche.solver.replay import GRAPH_STEPS

#: Velocity of everything, in sites a step: 0.1 m/s at a spacing of 0.25 um and a relaxation time of 1.
DRIFT = (0.003, 0.002, 0.001)
#: The greatest packing that the others are chosen from.
DENSEST = 0.45
#: Edge of the packed tile that a larger box repeats, um.
TILE = 32.0
#: Stages of a step that belong to the cells, as the summary names them.
FEM, CONTACT, INTERPOLATE, LISTS, SPREAD = (
    "membrane forces",
    "contact forces",
    "interpolate velocity",
    "list vertices",
    "spread force",
)
CELL_STAGES = (INTERPOLATE, FEM, CONTACT, LISTS, SPREAD)
#: What is measured by default, and the function of each support.
HEMATOCRITS = (0.1, 0.2, 0.3, 0.4, 0.45)
DELTAS: dict[int, Delta] = {2: "hat", 3: "roma", 4: "peskin"}


@dataclass(frozen=True)
class BloodRow:
    """One measurement: microseconds a step of the flow alone, with cells, and of each stage; what memory is used.

    `step_microseconds` includes what happens only now and then (lists made anew); the stages are those of a step
    without that. `ratio` is a step over `flow_microseconds`. `vertices_per_second` counts vertices times steps.
    `bytes_per_site` is that of flow and coupling, `bytes_per_cell` all that a cell adds.
    """

    hematocrit: float
    delta: str
    support: int
    precision: str
    layout: str
    sites: int
    cells: int
    vertices: int
    points: int
    steps: int
    flow_microseconds: float
    step_microseconds: float
    ratio: float
    stages: dict[str, float]
    vertices_per_second: dict[str, float]
    bytes_per_cell: float
    bytes_per_site: float

    @property
    def sweep(self) -> float:
        """Return the microseconds of all stages that are not the cells'."""
        return sum(value for name, value in self.stages.items() if name not in CELL_STAGES)

    @property
    def millions_per_second(self) -> dict[str, float]:
        """Return 10^6 vertices times steps a second, by what is done with them."""
        return {name: rate / 1e6 for name, rate in self.vertices_per_second.items()}


def packing_of(edge: float, seed: int = 0, backend: Backend | None = None, vertices: int = 162) -> Packing:
    """Return a random packing of a periodic cube of this edge, in um, at the densest hematocrit, without overlap.

    Edges beyond a tile are whole multiples of one, which is repeated.
    """
    times = max(1, round(edge / TILE))
    tile = pack(Box((edge / times,) * 3), [biconcave(vertices)], DENSEST, seed=seed, backend=backend)
    shift = np.stack(np.meshgrid(*[np.arange(times) * (edge / times)] * 3, indexing="ij"), axis=-1).reshape(-1, 1, 3)
    centers = (tile.centers[None] + shift).reshape(-1, 3)
    count = times**3
    return Packing(centers, np.tile(tile.rotations, (count, 1, 1)), np.tile(tile.kinds, count), tile.hematocrit)


def thinned(packing: Packing, hematocrit: float, volume: float, cell: float, seed: int = 0) -> Packing:
    """Return a packing from which cells were taken at random until their `cell` volumes fill this share of `volume`."""
    keep = min(len(packing.centers), round(hematocrit * volume / cell))
    chosen = np.sort(np.random.default_rng(seed).permutation(len(packing.centers))[:keep])
    return packing.taken(chosen, keep * cell / volume)


def red_cell(spacing: float, vertices: int, points: int) -> CellType:
    """Return a red cell on a lattice of this spacing in um, in plasma at a relaxation time of 1.

    Its membrane is that of the default red cell, its diameter Evans and Fung's, with which the stored rows were timed.
    """
    length = spacing * 1e-6
    step = 0.5 * length**2 / (3 * 1.17e-6)
    model = replace(MODEL.in_units(length, 1025.0 * length**4 / step**2), points=points)  # type: ignore[arg-type]
    return CellType("red", biconcave(vertices, EVANS_FUNG_RADIUS / spacing), model)


class Suspension:
    """A flow whose steps are timed first alone and then with cells."""

    def __init__(
        self, edge: int, device: str, precision: str = "float32", layout: str = "tiles-8", threads: int | None = None
    ) -> None:
        """Make a periodic cube of edge^3 sites that moves as a whole, with the collision that the layout permits."""
        collision = Regularised() if layout == "moments" else Trt()
        model = FlowModel(Newtonian(1.0 / 6.0), collision, initial_velocity=DRIFT)
        both = Precision(precision, precision)  # type: ignore[arg-type]
        self.edge, self.precision = edge, precision
        self.solver = Solver(
            shapes.box((edge,) * 3), model, device=device, precision=both, layout=layout, threads=threads
        )
        self.backend = self.solver.backend
        self.clock = self.backend.clock()

    def step_seconds(self, steps: int, repeats: int = 3) -> float:
        """Return the best time of a step over runs of `steps`."""
        self.solver.advance(steps)
        times: list[float] = []
        for _ in range(repeats):
            begin = self.clock.record()
            self.solver.start(steps)
            self.solver.finish()
            times.append(self.clock.elapsed(begin, self.clock.record()) / steps)
        return min(times)

    def stage_seconds(self, stage: Stage, repeats: int) -> float:
        """Return the time of a stage, launched as in a step."""

        def work() -> None:
            for _ in range(repeats):
                stage.action()

        work()
        graph: Graph = self.backend.capture(work)
        times: list[float] = []
        for _ in range(3):
            begin = self.clock.record()
            graph.launch()
            times.append(self.clock.elapsed(begin, self.clock.record()) / repeats)
        return min(times)


def measure(
    flow: Suspension,
    packing: Packing,
    spacing: float,
    delta: Delta,
    *,
    vertices: int = 642,
    points: int = 3,
    steps: int = 96,
    alone: float,
    reach: float = 1.0,
) -> BloodRow:
    """Put cells into the flow and time steps and stages; `alone` are the seconds of a step of the flow alone.

    Cells repel each other below a distance of `reach` sites.
    """
    solver, backend = flow.solver, flow.backend
    kind = red_cell(spacing, vertices, points)
    centers, turns = packing.centers / spacing, packing.rotations
    cells = Cells(backend, [kind], [centers], [turns], precision=flow.precision)  # type: ignore[arg-type]
    law = Repulsion(kind.model.law.shear, reach)
    contact = Contact(cells, law, lengths=(float(flow.edge),) * 3)
    blood = Blood(solver, cells, contact=contact, delta=delta)
    step = flow.step_seconds(steps)
    blood.check()
    state, flow_steps = blood.state(), 4 if not backend.has_graphs else GRAPH_STEPS // 2
    stages = {}
    for stage in solver.phases[0]:
        stages[stage.name] = flow.stage_seconds(stage, flow_steps)
        if stage.name == INTERPOLATE:
            blood.set_state(state)
    named = {"fem": FEM, "interpolate": INTERPOLATE, "spread": SPREAD}
    count = cells.vertex_count
    memory = blood.memory()
    of_cells = cells.memory() + contact.memory() + memory["vertex"] * count
    return BloodRow(
        hematocrit=packing.hematocrit,
        delta=delta,
        support=SUPPORT[delta],
        precision=flow.precision,
        layout=solver.layout,
        sites=len(solver.sites),
        cells=cells.count,
        vertices=vertices,
        points=points,
        steps=steps,
        flow_microseconds=alone * 1e6,
        step_microseconds=step * 1e6,
        ratio=step / alone,
        stages={name: seconds * 1e6 for name, seconds in stages.items()},
        vertices_per_second={name: count / stages[stage] for name, stage in named.items()},
        bytes_per_cell=of_cells / cells.count,
        bytes_per_site=solver.populations.memory() / len(solver.sites) + memory["site"],
    )


def main(
    *,
    device: str = "cpu",
    hematocrits: Sequence[float] = HEMATOCRITS,
    deltas: Sequence[Delta] = tuple(DELTAS.values()),
    precision: str = "float32",
    size: int | None = None,
    spacing: float = 0.25,
    vertices: int = 642,
    points: int = 3,
    steps: int | None = None,
    layout: str | None = None,
    threads: int | None = None,
    output: Path | None = None,
    figure: Path | None = None,
) -> list[BloodRow]:
    """Measure, print a table, store JSON at `output` and draw the shares of the stages at `figure`; return the rows.

    The layout is by default the fastest one: moments on a GPU, tiles of populations on a CPU.
    """
    if figure is not None:  # before anything is measured
        from seiche.report.style import kind_of_picture

        kind_of_picture(figure.name)
    on_gpu = parse_device(device).is_gpu
    edge = size or (256 if on_gpu else 64)
    count = steps or (96 if on_gpu else 10)
    flow = Suspension(edge, device, precision, layout or ("moments" if on_gpu else "tiles-8"), threads)
    alone = flow.step_seconds(count)
    packing = packing_of(edge * spacing, backend=flow.backend)
    volume = (edge * spacing) ** 3
    cell = red_cell(spacing, vertices, points).mesh.volume * spacing**3
    rows = []
    for hematocrit in hematocrits:
        chosen = thinned(packing, hematocrit, volume, cell)
        for delta in deltas:
            row = measure(flow, chosen, spacing, delta, vertices=vertices, points=points, steps=count, alone=alone)
            rows.append(row)
    described = flow.backend.describe()
    results.show(described, _COLUMNS, rows)
    print("flow, step, sweep and stages in us; rates in 10^6 vertices a second")
    results.store(output, results.document("blood", described, rows))
    if figure is not None:
        draw(figure, {described: rows})
    return rows


def draw(path: Path, results: Mapping[str, Sequence[BloodRow]]) -> None:
    """Draw for each device the shares of the stages in a step over the hematocrit, of the widest function measured.

    Of the rows those with the most points of integration count.
    """
    parts: dict[str, dict[str, dict[str, float]]] = {}
    for name, rows in results.items():
        widest, points = max((row.support, row.points) for row in rows)
        chosen = sorted(
            (row for row in rows if (row.support, row.points) == (widest, points)), key=lambda row: row.hematocrit
        )
        parts[name] = {f"{row.hematocrit:.2f}": _shares(row) for row in chosen}
    shares_figure(path, parts=parts, x_label="hematocrit")


def _shares(row: BloodRow) -> dict[str, float]:
    """Return the stages as the figure names them; what a step takes beyond them is lists made anew and waiting."""
    named = {"fluid": row.sweep, "interpolation": row.stages[INTERPOLATE], "membranes": row.stages[FEM]}
    named |= {"contact": row.stages[CONTACT], "spreading": row.stages[SPREAD]}
    return {**named, "lists, waiting": max(row.step_microseconds - sum(named.values()), 0.0)}


#: Headings of the table and what they show of a row.
_COLUMNS = {
    "Ht": "{0.hematocrit:.2f}",
    "support": "{0.support}",
    "flow": "{0.flow_microseconds:.0f}",
    "step": "{0.step_microseconds:.0f}",
    "ratio": "{0.ratio:.2f}",
    "sweep": "{0.sweep:.0f}",
    **{
        short: f"{{0.stages[{name}]:.0f}}"
        for short, name in zip(("interp.", "FEM", "contact", "lists", "spread"), CELL_STAGES, strict=True)
    },
    "FEM/s": "{0.millions_per_second[fem]:.0f}",
    "interp./s": "{0.millions_per_second[interpolate]:.0f}",
    "spread/s": "{0.millions_per_second[spread]:.0f}",
}
