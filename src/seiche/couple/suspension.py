# SPDX-License-Identifier: BSD-3-Clause
"""Cells suspended in a flow, in lattice units: types, positions, and transfer between host and flow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.cells.cells import Cells
from seiche.cells.contact import Contact, Repulsion
from seiche.cells.growth import centered, radius_of
from seiche.cells.model import CellType
from seiche.cells.overlap import Packing, placed
from seiche.couple.blood import Blood
from seiche.couple.immersed import Scheme
from seiche.couple.limits import StepLimit
from seiche.couple.markers import InitialCells
from seiche.couple.placement import placement_of, sent_to
from seiche.domain.surface import Surface
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.flow.solver import FlowSolver
from seiche.kernels.registry.ibm import Delta

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CellsSetup:
    """Cells in lattice units and their coupling to the flow."""

    types: tuple[CellType, ...]
    surfaces: tuple[Surface, ...]  # undeformed polyhedra of the vertices, whose volumes define the hematocrit
    shares: tuple[float, ...]  # fraction of the number of cells, by type
    packing: Packing | None  # its centers are means of vertices; None after a restart
    hematocrit: (
        float | None
    )  # requested value in the fraction `fillable_fraction` of the fluid; None if positions were read
    gap: float  # minimum distance of packed cells from each other and from walls
    contrasts: tuple[float, ...]  # ratio of the viscosity inside cells to that of the fluid, by type
    between: Repulsion
    wall: Repulsion
    limits: tuple[StepLimit, ...]  # longest stable time step, by type
    fillable_fraction: float  # fraction of the fluid in which cells are packed, without layers at openings
    delta: Delta
    scheme: Scheme
    mark_every: int
    slip: float
    label: str  # name of the case, for messages
    notes: tuple[str, ...]  # about positions read from files

    def volumes(self) -> Floats:
        """Return the volume of a cell of each type, in units of the volume of a site."""
        return np.array([surface.volume for surface in self.surfaces])

    def cell_radius(self) -> float:
        """Return the maximum distance of a vertex from the center of its cell, in sites."""
        return max(radius_of(surface) for surface in self.surfaces)


@dataclass
class Population:
    """Cells of one type: `vertices` and `velocity` (n, v, 3) in lattice units, permanent identifiers `ids` (n,).

    `relaxed` (n, e, 3) contains the internal variables of surface viscosity, None without it. `numbers` (n,) are the
    numbers of these cells among the `total` ones of the type, if each rank has only some of them.
    """

    vertices: Floats
    velocity: Floats
    ids: npt.NDArray[np.int64]
    relaxed: Floats | None = None
    numbers: npt.NDArray[np.int64] | None = None
    total: int = 0

    def part(self, world: World) -> Population:
        """Return the part of a rank of cells that every rank has."""
        total = len(self.ids)
        own = slice(total * world.rank // world.size, total * (world.rank + 1) // world.size)
        relaxed = None if self.relaxed is None else self.relaxed[own]
        numbers = np.arange(total)[own]
        return Population(self.vertices[own], self.velocity[own], self.ids[own], relaxed, numbers, total)

    def relaxed_of(self, number: int) -> Floats | None:
        """Return the memory (e, 3) of a cell; None without surface viscosity."""
        return None if self.relaxed is None else np.asarray(self.relaxed[number])

    def changed(self, keep: npt.NDArray[np.bool_], new: Population) -> Population:
        """Return the cells selected by `keep`, followed by those of `new`."""
        relaxed = None
        if self.relaxed is not None and new.relaxed is not None:
            relaxed = np.concatenate([self.relaxed[keep], new.relaxed])
        return Population(
            np.concatenate([self.vertices[keep], new.vertices]),
            np.concatenate([self.velocity[keep], new.velocity]),
            np.concatenate([self.ids[keep], new.ids]),
            relaxed,
        )


def packed_populations(cells: CellsSetup, share: World | None = None) -> list[Population]:
    """Return the cells of the packing, undeformed and at rest; with `share`, an equal part for each of its ranks."""
    if cells.packing is None:
        raise CaseError(
            "packing: the case does not define initial positions of the cells; set a hematocrit or give positions"
        )
    populations = []
    for kind, surface in enumerate(cells.surfaces):
        centers, rotations = cells.packing.of_kind(kind)
        total, numbers = len(centers), None
        if share is not None:
            numbers = np.arange(total * share.rank // share.size, total * (share.rank + 1) // share.size)
            centers, rotations = centers[numbers], rotations[numbers]
        vertices = placed(centered(surface), centers, rotations)
        ids = np.arange(len(vertices)) if numbers is None else numbers
        populations.append(Population(vertices, np.zeros(vertices.shape), ids, numbers=numbers, total=total))
    return populations


def assign_ids(populations: Sequence[Population]) -> int:
    """Set the permanent identifiers of all cells to consecutive numbers; return the next identifier."""
    first = 0
    for population in populations:
        if population.numbers is None:
            population.ids, count = first + np.arange(len(population.vertices)), len(population.vertices)
        else:
            population.ids, count = first + population.numbers, population.total
        first += count
    return first


def gathered_ids(populations: Sequence[Population], world: World) -> list[npt.NDArray[np.int64]]:
    """Return the identifiers of all cells of each type; populations may be parts (collective)."""
    ids = []
    for population in populations:
        if population.numbers is None:
            ids.append(population.ids)
            continue
        numbers, own_ids = zip(*world.allgather((population.numbers, population.ids)), strict=True)
        ids.append(np.concatenate(own_ids)[np.argsort(np.concatenate(numbers))])
    return ids


def gathered_populations(parts: Sequence[Population], world: World) -> list[Population]:
    """Return all cells on every rank, of which each rank passes a part (collective)."""
    populations = []
    for part in parts:
        arrays = world.allgather((part.numbers, part.vertices, part.velocity, part.ids, part.relaxed))
        order = np.argsort(np.concatenate([entry[0] for entry in arrays]))
        vertices, velocity, ids = (np.concatenate([entry[k] for entry in arrays])[order] for k in (1, 2, 3))
        relaxed = None if part.relaxed is None else np.concatenate([entry[4] for entry in arrays])[order]
        populations.append(Population(vertices, velocity, ids, relaxed))
    return populations


def couple(
    setup: CellsSetup,
    solver: FlowSolver,
    populations: Sequence[Population],
    wall_points: Floats,
    *,
    fresh: bool = True,
    previous: Blood | None = None,
) -> Blood:
    """Couple cells with the flow of `solver`, whose wall is represented by `wall_points` (n, 3).

    Without `fresh`, the velocities of the populations are also set. The cells replace those of the coupling `previous`.
    On several ranks, each passes all cells or, with their numbers, a part of them.

    Raises:
        CaseError: the cells and the flow cannot be coupled.
        UnstableError: a cell is outside the fluid.
    """
    sites = solver.sites
    in_parts = all(population.numbers is not None for population in populations)
    centers = [population.vertices.mean(axis=1)[: 0 if in_parts else None] for population in populations]
    cells = Cells(solver.backend, setup.types, centers, precision=solver.precision.compute)
    initial = None
    if in_parts:
        has_moved = not fresh and solver.step > 0
        placement = placement_of(
            cells,
            [population.vertices for population in populations],
            [population.velocity for population in populations] if has_moved else None,
            None if fresh else [population.relaxed for population in populations],
        )
        numbers = [population.numbers for population in populations if population.numbers is not None]
        initial = InitialCells([population.total for population in populations], placement._replace(numbers=numbers))
    else:
        for kind, population in enumerate(populations):
            cells.set_vertices(population.vertices, kind)
    try:
        contact = Contact(
            cells,
            setup.between,
            wall=setup.wall if len(wall_points) else None,
            wall_points=wall_points if len(wall_points) else None,
            lengths=np.where(sites.periodic, sites.shape, 0),
        )
        blood = Blood(
            solver,
            cells,
            contact=contact,
            delta=setup.delta,
            scheme=setup.scheme,
            viscosity_contrast=setup.contrasts,
            mark_every=setup.mark_every,
            slip=setup.slip,
            previous=previous,
            initial=initial,
        )
    except CaseError as error:
        raise CaseError(f"{setup.label}: {error}") from None
    if not fresh and not in_parts:
        move(blood, populations)
    return blood


def move(blood: Blood, populations: Sequence[Population]) -> None:
    """Set the state of all cells of `blood`; their number must not change (collective)."""
    blood.set_vertices(
        [cells.vertices for cells in populations],
        [cells.velocity for cells in populations],
        [cells.relaxed for cells in populations],
    )


def present_cells(blood: Blood, ids: Sequence[npt.NDArray[np.int64]]) -> list[Population]:
    """Return the present state of all cells, with their `ids` by type (collective)."""
    populations = []
    for kind, ids_of_type in enumerate(ids):
        velocities = blood.velocities(kind).astype(np.float64)
        populations.append(Population(blood.vertices(kind), velocities, ids_of_type, blood.memory_metric(kind)))
    return populations


def equal_shares(blood: Blood, ids: Sequence[npt.NDArray[np.int64]]) -> list[Population]:
    """Return the present positions and velocities of an equal share of the cells of each type (collective).

    The shares of the ranks are consecutive; `ids` are those of all cells by type.
    """
    world, populations = blood.solver.world, []
    for kind, ids_of_type in enumerate(ids):
        total = len(ids_of_type)
        numbers, vertices, velocity = blood.own_cells(kind)
        if world.size > 1:
            ends = total * np.arange(1, world.size + 1) // world.size
            homes = np.searchsorted(ends, numbers, side="right")
            arrays = np.stack([vertices, velocity]).transpose(0, 3, 1, 2)
            numbers, arrays = sent_to(world, homes, numbers, arrays)
            vertices, velocity = arrays.transpose(0, 2, 3, 1)
        own_ids = ids_of_type[numbers]
        populations.append(Population(vertices, velocity.astype(np.float64), own_ids, numbers=numbers, total=total))
    return populations
