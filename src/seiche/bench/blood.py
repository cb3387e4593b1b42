# SPDX-License-Identifier: BSD-3-Clause
"""`seiche bench blood`: stages of red cells in a periodic box of fluid, compared with the flow without cells.

A box with a spacing of 0.25 um contains non-overlapping cells with 642 vertices at random positions. The whole
suspension moves faster than blood in vessels at this resolution, so lists are rebuilt at least as often as in a real
run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seiche.backend import Backend, parse_device
from seiche.backend.base import Graph
from seiche.bench import results
from seiche.cells import Box, Cells, CellType, Contact, Packing, Repulsion, biconcave, pack
from seiche.cells.mesh import EVANS_FUNG_RADIUS
from seiche.cells.red import MODEL
from seiche.couple import Blood
from seiche.couple.limits import with_shortest_relaxation
from seiche.domain import shapes
from seiche.flow import FlowModel, Newtonian, Precision, Regularised, Solver, Trt
from seiche.kernels.registry.ibm import SUPPORT, Delta
from seiche.observe.stage import Stage
from seiche.report.figures import shares_figure
from seiche.solver.replay import GRAPH_STEPS

#: Uniform velocity in sites per step: 0.1 m/s for a spacing of 0.25 um and a relaxation time of 1.
DRIFT = (0.003, 0.002, 0.001)
#: Hematocrit of the densest packing, from which packings of lower hematocrit are selected.
MAX_HEMATOCRIT = 0.45
#: Edge of the packed tile of which a larger box consists, um.
TILE = 32.0
#: Stages of a step that belong to the cells, as named in the summary.
FEM, CONTACT, INTERPOLATE = "membrane forces", "contact forces", "interpolate velocity"
LISTS, SPREAD = "list vertices", "spread force"
CELL_STAGES = (INTERPOLATE, FEM, CONTACT, LISTS, SPREAD)
#: Default hematocrits, and the delta function of each support.
HEMATOCRITS = (0.1, 0.2, 0.3, 0.4, 0.45)
DELTAS: dict[int, Delta] = {2: "hat", 3: "roma", 4: "peskin"}


@dataclass(frozen=True)
class BloodRow:
    """One measurement: time per step of the flow without and with cells, and of each stage, in microseconds; memory.

    `step_microseconds` includes occasional work such as rebuilding lists; `stages` are the times in a step without such
    work. `ratio` is the time of a step with cells divided by `flow_microseconds`. `vertices_per_second` is vertices
    times steps per second. `bytes_per_site` includes flow and coupling; `bytes_per_cell` is the additional memory of a
    cell.
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
        """Time of all stages other than those of the cells, in microseconds."""
        return sum(value for name, value in self.stages.items() if name not in CELL_STAGES)

    @property
    def millions_per_second(self) -> dict[str, float]:
        """Vertices times steps per second, in millions, by operation."""
        return {name: rate / 1e6 for name, rate in self.vertices_per_second.items()}


def packing_of(edge: float, seed: int = 0, backend: Backend | None = None, vertices: int = 162) -> Packing:
    """Return a random packing of a periodic cube of edge `edge` (um) at the maximum hematocrit, without overlaps.

    A cube larger than a tile consists of a whole number of copies of the tile.
    """
    tiles = max(1, round(edge / TILE))
    tile = pack(Box((edge / tiles,) * 3), [biconcave(vertices)], MAX_HEMATOCRIT, seed=seed, backend=backend)
    return repeated(tile, np.full(3, edge / tiles), (tiles,) * 3)


def repeated(packing: Packing, extent: npt.NDArray[np.float64], counts: tuple[int, int, int]) -> Packing:
    """Return the packing of a periodic box of this extent, repeated `counts` times along the axes."""
    shift = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, 1, 3) * extent
    centers = (packing.centers[None] + shift).reshape(-1, 3)
    rotations = np.tile(packing.rotations, (len(shift), 1, 1))
    return Packing(centers, rotations, np.tile(packing.kinds, len(shift)), packing.hematocrit)


def random_subset(packing: Packing, hematocrit: float, volume: float, cell_volume: float, seed: int = 0) -> Packing:
    """Return a random subset of a packing, cells of `cell_volume` that fill the fraction `hematocrit` of `volume`."""
    count = min(len(packing.centers), round(hematocrit * volume / cell_volume))
    selected = np.sort(np.random.default_rng(seed).permutation(len(packing.centers))[:count])
    return packing.subset(selected, count * cell_volume / volume)


def red_cell(spacing: float, vertices: int, points: int) -> CellType:
    """Return a red cell on a lattice of this spacing (um), in plasma at a relaxation time of 1.

    The membrane is that of the default red cell. The diameter is that of Evans and Fung, as in the stored results.
    """
    length = spacing * 1e-6
    dt = 0.5 * length**2 / (3 * 1.17e-6)
    model = replace(MODEL.in_units(length, 1025.0 * length**4 / dt**2, dt), points=points)  # type: ignore[arg-type]
    return CellType("red", biconcave(vertices, EVANS_FUNG_RADIUS / spacing), with_shortest_relaxation(model, 1.0 / 6.0))


class Suspension:
    """Flow whose steps are timed without and with cells."""

    def __init__(
        self, edge: int, device: str, precision: str = "float32", layout: str = "tiles-8", threads: int | None = None
    ) -> None:
        """Create a periodic cube of edge^3 sites in uniform motion, with the collision required by the layout."""
        collision = Regularised() if layout == "moments" else Trt()
        model = FlowModel(Newtonian(1.0 / 6.0), collision, initial_velocity=DRIFT)
        options = {"precision": Precision(precision, precision), "layout": layout}  # type: ignore[arg-type]
        self.edge, self.precision = edge, precision
        self.solver = Solver(shapes.box((edge,) * 3), model, device=device, threads=threads, **options)  # type: ignore[arg-type]
        self.backend = self.solver.backend
        self.clock = self.backend.clock()

    def step_seconds(self, steps: int, repeats: int = 3) -> float:
        """Return the seconds of a step, best of several runs of `steps`."""
        self.solver.advance(steps)
        times: list[float] = []
        for _ in range(repeats):
            begin = self.clock.record()
            self.solver.start(steps)
            self.solver.finish()
            times.append(self.clock.elapsed(begin, self.clock.record()) / steps)
        return min(times)

    def stage_seconds(self, stage: Stage, repeats: int) -> float:
        """Return the seconds of a stage, launched as in a step."""

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
    flow_seconds: float,
    reach: float = 1.0,
) -> BloodRow:
    """Add cells to the flow and time steps and stages; `flow_seconds` is the time of a step without cells.

    Cells repel each other at distances below `reach` sites.
    """
    solver, backend = flow.solver, flow.backend
    cell_type = red_cell(spacing, vertices, points)
    centers, rotations = packing.centers / spacing, packing.rotations
    cells = Cells(backend, [cell_type], [centers], [rotations], precision=flow.precision)  # type: ignore[arg-type]
    law = Repulsion(cell_type.model.law.shear, reach)
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
    operations = {"fem": FEM, "interpolate": INTERPOLATE, "spread": SPREAD}
    count = cells.vertex_count
    memory = blood.memory()
    cell_memory = cells.memory() + contact.memory() + memory["vertex"] * count
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
        flow_microseconds=flow_seconds * 1e6,
        step_microseconds=step * 1e6,
        ratio=step / flow_seconds,
        stages={name: seconds * 1e6 for name, seconds in stages.items()},
        vertices_per_second={name: count / stages[stage] for name, stage in operations.items()},
        bytes_per_cell=cell_memory / cells.count,
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

    The default layout is the fastest one: moments on a GPU, tiles on a CPU.
    """
    if figure is not None:  # before anything is measured
        from seiche.report.style import picture_format

        picture_format(figure.name)
    on_gpu = parse_device(device).is_gpu
    edge = size or (256 if on_gpu else 64)
    count = steps or (96 if on_gpu else 10)
    flow = Suspension(edge, device, precision, layout or ("moments" if on_gpu else "tiles-8"), threads)
    flow_seconds = flow.step_seconds(count)
    packing = packing_of(edge * spacing, backend=flow.backend)
    volume = (edge * spacing) ** 3
    cell_volume = red_cell(spacing, vertices, points).mesh.volume * spacing**3
    rows = []
    for hematocrit in hematocrits:
        selected = random_subset(packing, hematocrit, volume, cell_volume)
        for delta in deltas:
            row = measure(
                flow, selected, spacing, delta, vertices=vertices, points=points, steps=count, flow_seconds=flow_seconds
            )
            rows.append(row)
    device_name = flow.backend.describe()
    results.show(device_name, _COLUMNS, rows)
    print("flow, step, sweep and stages in us; rates in 10^6 vertices per second")
    results.store(output, results.document("blood", device_name, rows))
    if figure is not None:
        draw(figure, {device_name: rows})
    return rows


def draw(path: Path, results: Mapping[str, Sequence[BloodRow]]) -> None:
    """Draw, for each device, the shares of stages in a step against the hematocrit, for the widest delta function.

    Only rows with the largest number of integration points are drawn.
    """
    shares: dict[str, dict[str, dict[str, float]]] = {}
    for name, rows in results.items():
        widest = max((row.support, row.points) for row in rows)
        selected = sorted((row for row in rows if (row.support, row.points) == widest), key=lambda row: row.hematocrit)
        shares[name] = {f"{row.hematocrit:.2f}": _shares(row) for row in selected}
    shares_figure(path, shares=shares, x_label="hematocrit")


def _shares(row: BloodRow) -> dict[str, float]:
    """Return the shares by the names in the figure; the remainder of a step is list rebuilding and waiting."""
    microseconds = {"fluid": row.sweep, "interpolation": row.stages[INTERPOLATE], "membranes": row.stages[FEM]}
    microseconds |= {"contact": row.stages[CONTACT], "spreading": row.stages[SPREAD]}
    return {**microseconds, "lists, waiting": max(row.step_microseconds - sum(microseconds.values()), 0.0)}


#: Headings of the table and formats of their values.
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
