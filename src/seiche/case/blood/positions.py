# SPDX-License-Identifier: BSD-3-Clause
"""`.pos` files of a case: their origin, the convention for orientations, and cells outside the vessel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seiche.case.blood.schema import CellTable, MeshFile, PositionsFrom
from seiche.case.blood.setup import BloodSetup
from seiche.case.flow.geometry import FlowVessel
from seiche.cells.model import CellType
from seiche.cells.overlap import overlapping_pairs
from seiche.cells.packing import Packing
from seiche.cells.space import FluidSpace
from seiche.domain.sites import SiteSet
from seiche.domain.surface import Surface
from seiche.errors import CaseError
from seiche.io.formats.pos import Thin, read_pos

Floats = npt.NDArray[np.float64]

#: Maximum distance (spacings) of a cell from the origin, which limits positions in periodic vessels.
_MAX_DISTANCE = 1e6


def periods(sites: SiteSet) -> Floats:
    """Return the periods (spacings) of the lattice along x, y and z; 0 along axes that are not periodic."""
    return np.where(sites.periodic, np.asarray(sites.shape, np.float64), 0.0)


def origin_of(vessel: FlowVessel, positions_from: PositionsFrom) -> Floats:
    """Return the origin of positions (metres, in the coordinates of the geometry).

    The origin in HemoCell is the first site of its lattice. It is one spacing outside the box around an STL surface
    (the margin of `getFlagMatrixFromSTL`); along a periodic axis it is the first site.
    """
    sites = vessel.sites
    if positions_from == "geometry":
        return np.zeros(3)
    first = np.asarray(sites.origin)
    if vessel.surface is not None:
        lower_corner = vessel.surface.vertices.min(axis=0)
    else:
        lower_corner = first + sites.spacing * (sites.coords.min(axis=0) - 0.5)
    return np.where(sites.periodic, first, lower_corner - sites.spacing)


def thin_axis(table: CellTable) -> Thin:
    """Return the mesh axis that is the thin axis y of HemoCell: y for mesh files, z for built-in shapes."""
    return "y" if isinstance(table.shape, MeshFile) else "z"


def center_offset(mesh: Surface, surface: Surface) -> Floats:
    """Return the mean of the moving points (`surface`) relative to the center of the bounding box of the mesh, (3,)."""
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    return np.asarray(surface.vertices.mean(axis=0) - 0.5 * (low + high))


class PlacedCells(NamedTuple):
    """The cells of a .pos file.

    `positions` (n, 3) are those of the file in metres, `centers` (n, 3) the means of the moving points in spacings from
    the first site, `rotations` (n, 3, 3) matrices, and `inside` (n,) flags of the cells inside the vessel.
    """

    positions: Floats
    centers: Floats
    rotations: Floats
    inside: npt.NDArray[np.bool_]


def placed_cells(
    table: CellTable, mesh: Surface, surface: Surface, vessel: FlowVessel, space: FluidSpace, *, folder: Path
) -> PlacedCells:
    """Return the cells of the .pos file of a type with the undeformed `mesh` and the moving points `surface`.

    Both are in spacings; files are relative to `folder`.
    """
    sites = vessel.sites
    positions, rotations = read_pos(folder / (table.positions or ""), thin=thin_axis(table))
    shift = origin_of(vessel, table.positions_from) - np.asarray(sites.origin)
    centers = (positions + shift) / sites.spacing + rotations @ center_offset(mesh, surface)
    return PlacedCells(positions, centers, rotations, _inside(space, surface, centers, rotations))


def read_positions(
    setup: BloodSetup, space: FluidSpace, folder: Path, types: Sequence[CellType], surfaces: Sequence[Surface]
) -> tuple[Packing, tuple[str, ...]]:
    """Return the cells of the .pos files, and notes on dropped cells outside the fluid.

    Raises CaseError for cells outside the fluid unless they may be dropped, for a file without a cell inside the fluid,
    and for overlaps.
    """
    case, vessel, sites = setup.case, setup.vessel, setup.vessel.sites
    centers, rotations, kinds, notes = [], [], [], []
    for number, (table, kind, surface) in enumerate(zip(case.cells, types, surfaces, strict=True)):
        cells = placed_cells(table, kind.mesh, surface, vessel, space, folder=folder)
        positions, inside = cells.positions, cells.inside
        key, count = f'cells["{table.name}"].positions: {table.positions}', int((~inside).sum())
        if count and (table.positions_outside == "refuse" or count == len(positions)):
            first = ", ".join(f"{1e6 * c:.4g}" for c in positions[inside.argmin()])
            raise CaseError(
                f"{key}: cell {inside.argmin()} at ({first}) um is not inside the vessel, nor are {count - 1} of the "
                f'other {len(positions) - 1}; check positions_from, or set positions_outside = "drop"'
            )
        if count:
            notes.append(f"{key}: {count} of {len(positions)} cells are not inside the vessel and were dropped")
        centers.append(cells.centers[inside])
        rotations.append(cells.rotations[inside])
        kinds.append(np.full(int(inside.sum()), number))
    packing = Packing(np.concatenate(centers), np.concatenate(rotations), np.concatenate(kinds), 0.0)
    # Overlaps are tested with the meshes, since the control polyhedra of Loop shells are larger.
    pairs = zip(types, surfaces, strict=True)
    offsets = np.array([surface.vertices.mean(axis=0) - kind.mesh.vertices.mean(axis=0) for kind, surface in pairs])
    mesh_centers = packing.centers - np.einsum("nij,nj->ni", packing.rotations, offsets[packing.kinds])
    overlaps = overlapping_pairs([kind.mesh for kind in types], replace(packing, centers=mesh_centers), periods(sites))
    if len(overlaps):
        first, second = (_name(types, packing, int(cell)) for cell in overlaps[0])
        raise CaseError(f"cells: positions: {len(overlaps)} pairs of cells overlap, the first are {first} and {second}")
    volume = float(np.array([surface.volume for surface in surfaces])[packing.kinds].sum())
    return Packing(packing.centers, packing.rotations, packing.kinds, volume / space.volume), tuple(notes)


def _inside(space: FluidSpace, surface: Surface, centers: Floats, rotations: Floats) -> npt.NDArray[np.bool_]:
    """Return flags (n,) of the cells with all points in the fluid; their distance from the origin must be limited."""
    points = surface.vertices - surface.vertices.mean(axis=0)
    return np.array(
        [
            bool(np.abs(center).max() <= _MAX_DISTANCE and (space.distance(points @ rotation.T + center) < 0).all())
            for center, rotation in zip(centers, rotations, strict=True)
        ],
        bool,
    )


def _name(types: Sequence[CellType], packing: Packing, cell: int) -> str:
    kind = int(packing.kinds[cell])
    return f'cell {cell - int(np.searchsorted(packing.kinds, kind))} of "{types[kind].name}"'
