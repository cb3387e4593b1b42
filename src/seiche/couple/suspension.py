# SPDX-License-Identifier: BSD-3-Clause
"""Cells suspended in a flow, in lattice units: types, positions, and transfer between host and flow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.cells.cells import Cells
from seiche.cells.contact import Contact, Repulsion
from seiche.cells.growth import centered
from seiche.cells.model import CellType
from seiche.cells.packing import Packing
from seiche.couple.blood import Blood
from seiche.couple.immersed import Scheme
from seiche.couple.limits import StepLimit
from seiche.domain.surface import Surface
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


def radius_of(surface: Surface) -> float:
    """Return the maximum distance of a vertex from the mean of the vertices."""
    return float(np.linalg.norm(surface.vertices - surface.vertices.mean(axis=0), axis=1).max())


@dataclass
class Population:
    """Cells of one type: `vertices` and `velocity` (n, v, 3) in lattice units, permanent identifiers `ids` (n,).

    `relaxed` (n, e, 3) contains the internal variables of surface viscosity, None without it.
    """

    vertices: Floats
    velocity: Floats
    ids: npt.NDArray[np.int64]
    relaxed: Floats | None = None

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


def packed_populations(cells: CellsSetup) -> list[Population]:
    """Return the cells of the packing, undeformed and at rest."""
    if cells.packing is None:
        raise CaseError(
            "packing: the case does not define initial positions of the cells; set a hematocrit or give positions"
        )
    populations = []
    for kind, surface in enumerate(cells.surfaces):
        centers, rotations = cells.packing.of_kind(kind)
        vertices = np.einsum("nij,vj->nvi", rotations, centered(surface)) + centers[:, None]
        populations.append(Population(vertices, np.zeros_like(vertices), np.arange(len(vertices))))
    return populations


def assign_ids(populations: Sequence[Population]) -> int:
    """Set the permanent identifiers of all cells to consecutive numbers; return the next identifier."""
    first = 0
    for population in populations:
        population.ids = first + np.arange(len(population.vertices))
        first += len(population.vertices)
    return first


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

    Raises:
        CaseError: the cells and the flow cannot be coupled.
        UnstableError: a cell is outside the fluid.
    """
    sites = solver.sites
    centers = [population.vertices.mean(axis=1) for population in populations]
    cells = Cells(solver.backend, setup.types, centers, precision=solver.precision.compute)
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
        )
    except CaseError as error:
        raise CaseError(f"{setup.label}: {error}") from None
    if not fresh:
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
