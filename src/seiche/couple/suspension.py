# SPDX-License-Identifier: BSD-3-Clause
"""Cells suspended in a flow, in lattice units: types and places, and the way from the host into a flow and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.cells.cells import Cells
from seiche.cells.contact import Contact, Repulsion
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
    """Cells in lattice units and how they are coupled to the flow.

    `surfaces` are the undeformed polyhedra of the points that move, one a type: their volumes count for the
    hematocrit. `shares` are the numbers of cells of each type over that of all. `packing` (centers are means of those
    points) is None for a run that goes on from a checkpoint. `filled` says which types have the viscosity `contrast`
    inside. `hematocrit` is the one that was asked for, None where places were given: it is that of the part `reached`
    of the fluid, without what packed cells leave free at openings. `limits` of the time step, one a type. `label` is
    the name of the case, for messages; `notes` are lines about the places that were read.
    """

    types: tuple[CellType, ...]
    surfaces: tuple[Surface, ...]
    shares: tuple[float, ...]
    packing: Packing | None
    hematocrit: float | None
    gap: float
    contrast: float
    between: Repulsion
    wall: Repulsion
    limits: tuple[StepLimit, ...]
    filled: tuple[bool, ...]
    reached: float
    delta: Delta
    scheme: Scheme
    mark_every: int
    slip: float
    label: str
    notes: tuple[str, ...]

    def volumes(self) -> Floats:
        """Return the volume of a cell of each type, in volumes of a site."""
        return np.array([surface.volume for surface in self.surfaces])

    def largest(self) -> float:
        """Return the largest distance of a vertex from the middle of its cell, in spacings."""
        return max(radius_of(surface) for surface in self.surfaces)


def radius_of(surface: Surface) -> float:
    """Return the largest distance of a vertex from the mean of the vertices."""
    return float(np.linalg.norm(surface.vertices - surface.vertices.mean(axis=0), axis=1).max())


@dataclass
class Population:
    """Cells of one type: `vertices` and `velocity` (n, v, 3) in lattice units, `names` (n,) for life."""

    vertices: Floats
    velocity: Floats
    names: npt.NDArray[np.int64]

    def changed(
        self, keep: npt.NDArray[np.bool_], vertices: Sequence[Floats], velocity: Sequence[Floats], first_name: int
    ) -> Population:
        """Return the cells to keep and new ones, (v, 3) each."""
        shape = (-1, *self.vertices.shape[1:])
        added = np.asarray(vertices, np.float64).reshape(shape)
        return Population(
            np.concatenate([self.vertices[keep], added]),
            np.concatenate([self.velocity[keep], np.asarray(velocity, np.float64).reshape(shape)]),
            np.concatenate([self.names[keep], first_name + np.arange(len(added))]),
        )


def packed(cells: CellsSetup) -> list[Population]:
    """Return the cells of the packing, undeformed and at rest."""
    if cells.packing is None:
        raise CaseError("packing: no cells were put anywhere")
    found = []
    for kind, surface in enumerate(cells.surfaces):
        centers, rotations = cells.packing.of_kind(kind)
        points = surface.vertices - surface.vertices.mean(axis=0)
        vertices = np.einsum("nij,vj->nvi", rotations, points) + centers[:, None]
        found.append(Population(vertices, np.zeros_like(vertices), np.arange(len(vertices))))
    return found


def named(populations: Sequence[Population]) -> int:
    """Name all cells by their order; return the next name."""
    first = 0
    for population in populations:
        population.names = first + np.arange(len(population.vertices))
        first += len(population.vertices)
    return first


def couple(
    given: CellsSetup,
    solver: FlowSolver,
    populations: Sequence[Population],
    wall: Floats,
    *,
    fresh: bool = True,
    before: Blood | None = None,
) -> Blood:
    """Put cells of the types `given` into the flow of `solver`, whose wall has the points `wall` (n, 3).

    Those that are not `fresh` move already. They replace those of `before`.

    Raises:
        CaseError: what cannot be coupled.
        UnstableError: a cell is outside the fluid.
    """
    sites = solver.sites
    centers = [population.vertices.mean(axis=1) for population in populations]
    cells = Cells(solver.backend, given.types, centers, precision=solver.precision.compute)
    for kind, population in enumerate(populations):
        cells.set_vertices(population.vertices, kind)
    try:
        contact = Contact(
            cells,
            given.between,
            wall=given.wall if len(wall) else None,
            wall_points=wall if len(wall) else None,
            lengths=np.where(sites.periodic, sites.shape, 0),
        )
        blood = Blood(
            solver,
            cells,
            contact=contact,
            delta=given.delta,
            scheme=given.scheme,
            viscosity_contrast=given.contrast,
            mark_every=given.mark_every,
            slip=given.slip,
            filled=given.filled,
            before=before,
        )
    except CaseError as error:
        raise CaseError(f"{given.label}: {error}") from None
    if not fresh:
        move(blood, populations)
    return blood


def move(blood: Blood, populations: Sequence[Population]) -> None:
    """Put all cells of `blood` where `populations` say, as many of each type, with those velocities (collective)."""
    blood.move([each.vertices for each in populations], [each.velocity for each in populations])


def populations_of(blood: Blood, names: Sequence[npt.NDArray[np.int64]]) -> list[Population]:
    """Return all cells as they are now, with their names by type (collective)."""
    return [
        Population(blood.vertices(kind), blood.velocities(kind).astype(np.float64), mine)
        for kind, mine in enumerate(names)
    ]
