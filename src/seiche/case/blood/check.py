# SPDX-License-Identifier: BSD-3-Clause
"""Output lines of `seiche check` about cells: shapes, hematocrit, maximum time step, memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from seiche.case.blood.estimates import FULL_VISCOSITY, blood_estimates, viscosity_of_surface
from seiche.case.blood.setup import BloodSetup
from seiche.case.blood.tubes import check_packable, missing_types, plan_tubes
from seiche.case.check import check_lines
from seiche.case.flow.check import cost_rows, flow_rows
from seiche.case.flow.limits import run_notes
from seiche.case.flow.memory import predict
from seiche.cells.cells import ALIGNMENT, memory_planes
from seiche.cells.contact_lists import contact_memory
from seiche.cells.mesh import mean_edge, reduced_volume
from seiche.cells.space import POINT_SPACING, sparse_points, wall_points
from seiche.couple.bricks import list_entries
from seiche.couple.open.tubes import TubePlan
from seiche.couple.suspension import CellsSetup
from seiche.domain.occupancy import SizedSites, occupancy
from seiche.domain.sites import SiteSet
from seiche.flow.choice import choose_layout
from seiche.flow.observation import CHUNK, COLUMNS
from seiche.flow.velocity_set import VELOCITY_SETS
from seiche.kernels.registry.ibm import BRICK, SUPPORT


@dataclass(frozen=True)
class CellMemory:
    """Device memory in addition to that of the flow, in bytes: per cell of each type, per site, and in total."""

    cell: dict[str, float]
    site: float
    total: float


@dataclass(frozen=True)
class TubeMemory:
    """Device memory of the reservoir of an inlet on each rank, in bytes: its flow and its cells."""

    flow: float
    cells: float


def describe(setup: BloodSetup, ranks: int = 1, *, measure: bool = True) -> list[str]:
    """Return the lines for `ranks` ranks; with `measure`, the bandwidth is measured to predict the run time."""
    tubes = _tubes(setup)
    remark = " without the reservoirs" if setup.case.reservoir is not None else ""
    memory = None if setup.cells is None else memory_of_cells(setup, setup.cells)
    cells = [] if setup.cells is None or memory is None else cell_rows(setup, setup.cells, memory, tubes)
    cost = cost_rows(setup, ranks, measure, remark=remark, cells=0.0 if memory is None else memory.total)
    rows = [*flow_rows(setup), *cells, *cost]
    missing_cell_types = missing_types(setup, {name: plan.cells.tolist() for name, plan in tubes.items()})
    return check_lines(rows, blood_estimates(setup), (*run_notes(setup), *missing_cell_types))


def _tubes(setup: BloodSetup) -> dict[str, TubePlan]:
    """Return the tubes of the reservoirs; CaseError if one cannot be packed."""
    if setup.cells is None or isinstance(setup.vessel.sites, SizedSites):
        return {}
    plans = plan_tubes(setup, setup.cells)
    check_packable(setup, setup.cells, plans)
    return plans


def cell_rows(
    setup: BloodSetup, cells: CellsSetup, memory: CellMemory, tubes: Mapping[str, TubePlan]
) -> Iterator[tuple[str, str]]:
    """Yield names and values of the lines about cells, their `memory`, and the `tubes` of reservoirs."""
    units = setup.units
    counts = cell_counts(setup, cells)
    for index, (kind, surface) in enumerate(zip(cells.types, cells.surfaces, strict=True)):
        count = counts[index]
        area, volume = surface.area * units.spacing**2 * 1e12, surface.volume * units.spacing**3 * 1e18
        yield (
            f"cells {kind.name}",
            f"{count:,} of {len(kind.mesh.vertices)} vertices ({kind.model.shell}), area {area:.4g} um^2, "
            f"volume {volume:.4g} um^3, reduced volume {reduced_volume(surface):.3f}, "
            f"edges {mean_edge(kind.mesh):.2g} spacings",
        )
        law, scale = kind.model.law, units.scale("surface_modulus") * 1e6
        area = (law.area_modulus + kind.model.local_area) * scale
        yield (
            f"moduli {kind.name}",
            f"G = {law.shear * scale:.4g} uN/m (k_s = 3 G = {3 * law.shear * scale:.4g} uN/m), area modulus "
            f"{area:.4g} uN/m, bending {kind.model.bending * units.scale('energy'):.4g} J",
        )
        if kind.model.viscosity > 0:
            spring = viscosity_of_surface(kind, units)
            yield (
                f"surface viscosity {kind.name}",
                f"{spring.viscosity * 1e6:.4g} uN s/m, in series with a spring of {spring.modulus * 1e6:.4g} uN/m, "
                f"relaxation time {spring.time:.3g} s: at least {FULL_VISCOSITY:.0%} of it acts up to "
                f"a shear rate of {spring.max_shear_rate:.3g} 1/s, relative delay of recovery {spring.delay:.2g}",
            )
        limit = cells.limits[index]
        yield (
            f"time step {kind.name}",
            f"at most {limit.ratio * units.step:.3g} s, set by the {limit.modulus} ({limit.shares[limit.modulus]:.0%})",
        )
        yield f"memory {kind.name}", f"{memory.cell[kind.name] / 1e3:.4g} kB per cell"
    if cells.packing is not None:
        region = " away from the openings" if cells.fillable_fraction < 1 else ""
        requested = f"{region} ({cells.hematocrit:g} requested)" if cells.hematocrit is not None else ""
        hematocrit, count = cells.packing.hematocrit / cells.fillable_fraction, len(cells.packing.centers)
        yield "hematocrit", f"{hematocrit:.4f}{requested}, {count:,} cells, no overlaps"
    for name, plan in tubes.items():
        yield from _tube_rows(setup, cells, name, plan)
    for kind, contrast in zip(cells.types, cells.contrasts, strict=True):
        if contrast != 1:
            times = f"{contrast:.3g} times that of the fluid"
            yield f"viscosity in {kind.name}", times
    yield (
        "memory of cells",
        f"{memory.site:.4g} B per site in addition to the flow, {memory.total / 1e6:.3g} MB in total",
    )


def _tube_rows(setup: BloodSetup, cells: CellsSetup, name: str, plan: TubePlan) -> Iterator[tuple[str, str]]:
    """Yield the lines about the tube of a reservoir."""
    length = plan.prism.length * setup.units.spacing * 1e6
    listed = [f"{number:,} {kind.name}" for number, kind in zip(plan.cells.tolist(), cells.types, strict=True)]
    by_type = f" ({', '.join(listed)})" if len(listed) > 1 else ""
    yield (
        f"reservoir {name}",
        f"{plan.cells.sum():,} cells{by_type} in a tube of {length:.4g} um, {plan.sites:,} sites, hematocrit "
        f"{plan.hematocrit:.4f}",
    )
    tube = memory_of_tube(setup, cells, plan)
    yield (
        f"memory {name}",
        f"{(tube.flow + tube.cells) / 1e6:.3g} MB on every rank, of which {tube.cells / 1e6:.3g} MB for the cells",
    )


def memory_of_tube(setup: BloodSetup, cells: CellsSetup, plan: TubePlan) -> TubeMemory:
    """Return the size in bytes of the tube of an inlet, in the layout that a run chooses for it.

    It includes the buffers for the velocity of a chunk of sites. Only sizes are used, no sites are created.
    """
    sites, model, lattice = plan.prism.sites(), replace(setup.model, iolets=()), setup.case.lattice
    case = setup.case.model_copy(update={"lattice": lattice.model_copy(update={"layout": "auto"})})
    tube = replace(setup, case=case, model=model, vessel=replace(setup.vessel, sites=sites))
    velocities = VELOCITY_SETS[model.velocity_set]
    storage, device = setup.precision.storage, case.run.device
    layout = choose_layout(sites, "auto", storage, device, velocities, model=model, immersed=True)
    flow = next(row.memory for row in predict(tube) if row.layout == layout)
    flow += COLUMNS * np.dtype(setup.precision.compute).itemsize * min(CHUNK, len(sites)) + 8 * len(sites)
    return TubeMemory(flow, memory_of_cells(tube, cells, plan.cells.tolist()).total)


def memory_of_cells(setup: BloodSetup, cells: CellsSetup, counts: Sequence[int] | None = None) -> CellMemory:
    """Return the size in bytes of membranes, contact and coupling; `counts` are those of the packed cells by default.

    For each vertex, the position (float64), force, slip, velocity, the first of the sites for which it is listed and
    near walls a weight are stored, and entries in lists of bricks and of contact candidates. For each site of a
    brick of 8^3 sites, four values of the velocity and three of the force are stored.
    """
    size = np.dtype(setup.precision.compute).itemsize
    sites, support = setup.vessel.sites, SUPPORT[setup.case.coupling.delta]
    counts = cell_counts(setup, cells) if counts is None else counts
    vertices = int(sum(n * len(kind.mesh.vertices) for n, kind in zip(counts, cells.types, strict=True)))
    stride = -(-max(vertices, 1) // ALIGNMENT) * ALIGNMENT
    points = _wall_points(sites)
    walls = contact_memory(0, points) if points else 0
    bricks_lists = list_entries(sites.shape, sites.periodic, support, vertices)
    lists = contact_memory(vertices, other=bricks_lists) + (contact_memory(vertices, points) - walls if points else 0)
    slip = 3 * size if setup.case.coupling.slip > 0 else 0
    is_open = all(sites.periodic) and not any(extent % BRICK for extent in sites.shape)
    inverse = 0 if is_open and len(sites) == np.prod(sites.shape) else size
    per_vertex = 24 + 3 * size + slip + 3 * size + inverse + 3
    bricks = occupancy(sites, BRICK).tiles
    rows = float(np.prod([-(-extent // BRICK) + 1 for extent in sites.shape]))
    per_site = (bricks + 1) * (BRICK**3 * 7 * size + 64 + 8 + 12 + 16) + 4 * rows
    velocities, requested = VELOCITY_SETS[setup.model.velocity_set], setup.case.lattice.layout
    storage, device = setup.precision.storage, setup.case.run.device
    layout = choose_layout(sites, requested, storage, device, velocities, model=setup.model, immersed=True)
    if layout not in ("tiles-8", "moments"):  # in these, items are the slots
        per_site += 4 * len(sites)
    per_site += (bricks + 1) * 64 * len(set(cells.contrasts) - {1.0}).bit_length()
    per_site += walls
    shared = lists / vertices if vertices else 0.0  # fixed cost of the lists, divided among the vertices
    planes = max(map(memory_planes, cells.types))  # of surface viscosity, of all types
    per_vertex += 24 * planes
    per_cell = {kind.name: len(kind.mesh.vertices) * (per_vertex + shared) + 16 for kind in cells.types}
    total = per_site + stride * per_vertex + lists + sum(16 * n for n in counts)
    return CellMemory(per_cell, per_site / len(sites), total)


def cell_counts(setup: BloodSetup, cells: CellsSetup) -> list[int]:
    """Return the number of packed cells of each type or, if none are packed, that for the requested hematocrit."""
    if cells.packing is not None:
        return [int(count) for count in np.bincount(cells.packing.kinds, minlength=len(cells.types))]
    shares = np.asarray(cells.shares) / max(sum(cells.shares), 1e-300)
    cell_volume = (cells.hematocrit or 0.0) * len(setup.vessel.sites)
    return [round(count) for count in shares * cell_volume / float(shares @ cells.volumes())]


def _wall_points(sites: SiteSet) -> int:
    """Return the number of wall points with contact forces; an oblique plane of area S intersects 1.5 S/e^2 cubes."""
    if isinstance(sites, SizedSites):
        return round(1.5 * sites.area / POINT_SPACING**2)
    return len(sparse_points(wall_points(sites)[0]))
