# SPDX-License-Identifier: BSD-3-Clause
"""Deformable cells: meshes, membranes, packings."""

from __future__ import annotations

from seiche.cells.cells import Cells
from seiche.cells.contact import Contact, Morse, Repulsion
from seiche.cells.laws import NeoHookean, Skalak
from seiche.cells.mesh import biconcave, ellipsoid, icosphere, read_mesh
from seiche.cells.model import CellType, MembraneModel
from seiche.cells.packing import Packing, pack
from seiche.cells.red import red_cell
from seiche.cells.relax import Equilibrium, equilibrium
from seiche.cells.vessels import Box, SurfaceInterior, Tube

__all__ = [
    "Box",
    "CellType",
    "Cells",
    "Contact",
    "Equilibrium",
    "MembraneModel",
    "Morse",
    "NeoHookean",
    "Packing",
    "Repulsion",
    "Skalak",
    "SurfaceInterior",
    "Tube",
    "biconcave",
    "ellipsoid",
    "equilibrium",
    "icosphere",
    "pack",
    "read_mesh",
    "red_cell",
]
