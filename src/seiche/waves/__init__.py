# SPDX-License-Identifier: BSD-3-Clause
"""Acoustic and elastic waves by the discontinuous Galerkin method on forests of octrees."""

from __future__ import annotations

from seiche.waves.forest import Brick, Forest
from seiche.waves.material import Material
from seiche.waves.mesh import Mesh
from seiche.waves.sizes import SizeField
from seiche.waves.solver import WaveSolver as Solver
from seiche.waves.sources import Brune, Gaussian, PointSource, Ricker

__all__ = ["Brick", "Brune", "Forest", "Gaussian", "Material", "Mesh", "PointSource", "Ricker", "SizeField", "Solver"]
