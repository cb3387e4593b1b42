# SPDX-License-Identifier: BSD-3-Clause
"""The `.pos` files of a case: where they count from, how their cells are turned, and which are outside the vessel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seiche.case.blood.schema import CellTable, MeshFile, PositionsFrom
from seiche.case.blood.setup import BloodSetup
from seiche.case.flow.geometry import Vessel
from seiche.cells.model import CellType
from seiche.cells.overlap import overlapping_pairs
from seiche.cells.packing import Packing
from seiche.cells.space import FluidSpace
from seiche.domain.surface import Surface
from seiche.errors import CaseError
from seiche.io.formats.pos import Thin, read_pos

Floats = npt.NDArray[np.float64]

#: Spacings from the origin within which cells may be put into a vessel that is periodic.
_FARTHEST = 1e6


def origin_of(vessel: Vessel, positions_from: PositionsFrom) -> Floats:
    """Return the point (metres, in the coordinates of the geometry) from which positions count.

    HemoCell counts from the first site of its lattice, which begins one spacing outside the box around an STL surface
    (the margin of `getFlagMatrixFromSTL`), and at the first site along a periodic axis.
    """
    sites = vessel.sites
    if positions_from == "geometry":
        return np.zeros(3)
    first = np.asarray(sites.origin)
    if vessel.surface is not None:
        lowest = vessel.surface.vertices.min(axis=0)
    else:
        lowest = first + sites.spacing * (sites.coords.min(axis=0) - 0.5)
    return np.where(sites.periodic, first, lowest - sites.spacing)


def thin_axis(table: CellTable) -> Thin:
    """Return the axis of a mesh that angles of zero leave along HemoCell's thin axis, y: meshes of files are its own.

    Shapes that Seiche makes are thin along z, an ellipsoid as far as its half axes are.
    """
    return "y" if isinstance(table.shape, MeshFile) else "z"


def middle_of(kind: CellType, surface: Surface) -> Floats:
    """Return where the mean of the points that move, those of `surface`, is from the center of the mesh's box (3,)."""
    mesh = kind.mesh.vertices
    return np.asarray(surface.vertices.mean(axis=0) - 0.5 * (mesh.min(axis=0) + mesh.max(axis=0)))


def read_places(
    setup: BloodSetup, space: FluidSpace, folder: Path, types: Sequence[CellType], surfaces: Sequence[Surface]
) -> tuple[Packing, tuple[str, ...]]:
    """Return the cells of the .pos files and notes on cells outside the fluid that were dropped.

    Raises CaseError for cells outside that are not to be dropped, for files of which no cell is inside, and for cells
    that overlap.
    """
    case, vessel, sites = setup.case, setup.vessel, setup.vessel.sites
    centers, rotations, kinds, notes = [], [], [], []
    for number, (table, kind, surface) in enumerate(zip(case.cells, types, surfaces, strict=True)):
        at, turns = read_pos(folder / (table.positions or ""), thin=thin_axis(table))
        shift = origin_of(vessel, table.positions_from) - np.asarray(sites.origin)
        places = (at + shift) / sites.spacing + turns @ middle_of(kind, surface)
        inside = _inside(space, surface, places, turns)
        key, count = f'cells["{table.name}"].positions: {table.positions}', int((~inside).sum())
        if count and (table.positions_outside == "refuse" or count == len(at)):
            first = ", ".join(f"{1e6 * c:.4g}" for c in at[inside.argmin()])
            raise CaseError(
                f"{key}: cell {inside.argmin()} at ({first}) um is not inside the vessel, nor are {count - 1} of the "
                f"other {len(at) - 1}; positions_from says where positions count from, positions_outside what becomes "
                "of such cells"
            )
        if count:
            notes.append(f"{key}: {count} of {len(at)} cells are not inside the vessel and were dropped")
        centers.append(places[inside])
        rotations.append(turns[inside])
        kinds.append(np.full(int(inside.sum()), number))
    packing = Packing(np.concatenate(centers), np.concatenate(rotations), np.concatenate(kinds), 0.0)
    lengths = np.where(sites.periodic, np.asarray(sites.shape, np.float64), 0.0)
    # The surfaces of Loop shells may touch where the polyhedra of their control points, which are larger, overlap.
    beside = np.array(
        [s.vertices.mean(axis=0) - k.mesh.vertices.mean(axis=0) for k, s in zip(types, surfaces, strict=True)]
    )
    middles = packing.centers - np.einsum("nij,nj->ni", packing.rotations, beside[packing.kinds])
    clashes = overlapping_pairs([kind.mesh for kind in types], replace(packing, centers=middles), lengths)
    if len(clashes):
        one, two = (_name(types, packing, int(cell)) for cell in clashes[0])
        raise CaseError(f"cells: positions: {len(clashes)} pairs of cells overlap, first {one} and {two}")
    volume = float(np.array([surface.volume for surface in surfaces])[packing.kinds].sum())
    return Packing(packing.centers, packing.rotations, packing.kinds, volume / space.volume), tuple(notes)


def _inside(space: FluidSpace, surface: Surface, places: Floats, turns: Floats) -> npt.NDArray[np.bool_]:
    """Return which cells (n,) have all of their points in the fluid; periodic vessels go on, but not for ever."""
    points = surface.vertices - surface.vertices.mean(axis=0)
    return np.array(
        [
            bool(np.abs(place).max() <= _FARTHEST and (space.distance(points @ turn.T + place) < 0).all())
            for place, turn in zip(places, turns, strict=True)
        ],
        bool,
    )


def _name(types: Sequence[CellType], packing: Packing, cell: int) -> str:
    kind = int(packing.kinds[cell])
    return f'cell {cell - int(np.searchsorted(packing.kinds, kind))} of "{types[kind].name}"'
