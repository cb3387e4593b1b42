# SPDX-License-Identifier: BSD-3-Clause
"""A case of flow with cells in it, in lattice units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.case.blood.schema import BloodCase
from seiche.case.flow.setup import FlowSetup
from seiche.cells.contact import Repulsion
from seiche.cells.model import CellType
from seiche.cells.packing import Packing
from seiche.couple.limits import StepLimit
from seiche.domain.surface import Surface

Floats = npt.NDArray[np.float64]

#: Directions over which the width of a cell is averaged.
_DIRECTIONS = 400


@dataclass(frozen=True, eq=False)
class CellsSetup:
    """Cells of a case in lattice units.

    `surfaces` are the undeformed polyhedra of the points that move, one a type: their volumes count for the
    hematocrit. `packing` (centers are means of those points) is None for a run that goes on from a checkpoint.
    `filled` says which types have the viscosity `contrast` inside.
    `hematocrit` is the one that was asked for, None where places were given: it is that of the part `reached` of the
    fluid, without what packed cells leave free at openings. `limits` of the time step, one a type. `notes` are lines
    about the places that were read.
    """

    types: tuple[CellType, ...]
    surfaces: tuple[Surface, ...]
    packing: Packing | None
    hematocrit: float | None
    gap: float
    contrast: float
    between: Repulsion
    wall: Repulsion
    limits: tuple[StepLimit, ...]
    filled: tuple[bool, ...]
    reached: float = 1.0
    notes: tuple[str, ...] = ()

    def volumes(self) -> Floats:
        """Return the volume of a cell of each type, in volumes of a site."""
        return np.array([surface.volume for surface in self.surfaces])

    def largest(self) -> float:
        """Return the largest distance of a vertex from the middle of its cell, in spacings."""
        return max(radius_of(surface) for surface in self.surfaces)


@dataclass(frozen=True)
class BloodSetup(FlowSetup):
    """Everything a run with cells needs but the solver; `cells` is what is in the flow."""

    case: BloodCase
    cells: CellsSetup | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Return those of the flow and those about places of cells."""
        return (*super().notes, *(self.cells.notes if self.cells is not None else ()))


def radius_of(surface: Surface) -> float:
    """Return the largest distance of a vertex from the mean of the vertices."""
    return float(np.linalg.norm(surface.vertices - surface.vertices.mean(axis=0), axis=1).max())


def mean_half_width(surface: Surface) -> float:
    """Return the mean over all directions of how far a surface reaches from the mean of its vertices."""
    steps = np.arange(_DIRECTIONS) + 0.5
    height, turn = 1 - 2 * steps / _DIRECTIONS, np.pi * (1 + 5**0.5) * steps
    ring = np.sqrt(1 - height**2)
    directions = np.stack([ring * np.cos(turn), ring * np.sin(turn), height])
    return float(((surface.vertices - surface.vertices.mean(axis=0)) @ directions).max(axis=0).mean())
