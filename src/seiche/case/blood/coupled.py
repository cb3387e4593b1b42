# SPDX-License-Identifier: BSD-3-Clause
"""Cells on the host, and the way from there into a flow and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from seiche.case.blood.setup import BloodSetup, CellsSetup
from seiche.errors import CaseError

if TYPE_CHECKING:
    from seiche.couple.blood import Blood
    from seiche.flow import Solver

Floats = npt.NDArray[np.float64]


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
    setup: BloodSetup,
    solver: Solver,
    populations: Sequence[Population],
    wall: Floats,
    *,
    fresh: bool = True,
    before: Blood | None = None,
) -> Blood:
    """Put cells into the flow of `solver`, whose wall has the points `wall` (n, 3); not `fresh`: they move already.

    They replace those of `before`.

    Raises:
        CaseError: what cannot be coupled.
        UnstableError: a cell is outside the fluid.
    """
    from seiche.cells.cells import Cells
    from seiche.cells.contact import Contact
    from seiche.couple.blood import Blood

    given, table, sites = setup.cells, setup.case.coupling, solver.sites
    assert given is not None
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
            delta=table.delta,
            scheme=table.scheme,
            viscosity_contrast=given.contrast,
            mark_every=table.mark_every,
            slip=table.slip,
            filled=given.filled,
            before=before,
        )
    except CaseError as error:
        raise CaseError(f"{setup.source}: {error}") from None
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
