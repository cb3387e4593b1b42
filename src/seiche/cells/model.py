# SPDX-License-Identifier: BSD-3-Clause
"""Membrane models and types of cells.

Units of length and energy are arbitrary; moduli are energies per area, and forces are energies per length. Coupled runs
use lattice units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from seiche.cells.laws import MembraneLaw
from seiche.cells.mesh import checked
from seiche.cells.overlap import self_intersection
from seiche.domain.surface import Surface
from seiche.errors import CaseError
from seiche.kernels.registry.membrane import CAPACITIES, SLOTS

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MembraneModel:
    """Elasticity of a membrane.

    `law` is the in-plane law, and `bending` is the modulus of Helfrich's energy (eq. 7). `spontaneous_curvature` c0 has
    the sign of twice the mean curvature (-2/R on a sphere); "rest" is the local curvature of the stress-free shape. The
    penalties (eq. 10), energies per area or volume, are `area` (whole cell), `local_area` (each triangle) and `volume`.

    `viscosity` is the surface viscosity (eqs. 16 to 19), force times time over length, or 0. Its spring and dashpot
    relax in the time `relaxation`; the full viscosity resists strains that are slower. In a flow, the unit of time is a
    step.

    `shell` is "loop", a Loop subdivision surface with 1 or 3 integration points per element (`points`), or "flat",
    triangles and hinges.
    """

    law: MembraneLaw
    bending: float = 0.0
    spontaneous_curvature: float | Literal["rest"] = 0.0
    area: float = 0.0
    local_area: float = 0.0
    volume: float = 0.0
    viscosity: float = 0.0
    relaxation: float = 0.0
    shell: Literal["loop", "flat"] = "loop"
    points: Literal[1, 3] = 3

    def __post_init__(self) -> None:
        """Raise CaseError for a modulus that is negative or not finite, or for an unknown shell."""
        for field in fields(self.law):
            _nonnegative(f"law.{field.name}", getattr(self.law, field.name))
        for name in ("bending", "area", "local_area", "volume", "viscosity", "relaxation"):
            _nonnegative(name, getattr(self, name))
        if self.viscosity > 0 and self.relaxation == 0:
            raise CaseError(f"relaxation = 0: a viscosity of {self.viscosity:g} requires a relaxation time above 0")
        if self.spontaneous_curvature != "rest" and not math.isfinite(self.spontaneous_curvature):
            raise CaseError(f"spontaneous_curvature = {self.spontaneous_curvature}: expected a number or 'rest'")
        if self.shell not in ("loop", "flat"):
            raise CaseError(f"shell = {self.shell!r}: expected 'loop' or 'flat'")
        if self.points not in (1, 3):
            raise CaseError(f"points = {self.points}: expected 1 or 3 integration points per element")

    @property
    def spring(self) -> float:
        """Return the modulus k' of the spring in series with the surface viscosity."""
        return self.viscosity / self.relaxation if self.viscosity > 0 else 0.0

    def in_units(self, length: float, force: float, time: float = 1.0) -> MembraneModel:
        """Convert this membrane from SI units to units of `length` (m), `force` (N) and `time` (s)."""
        tension = force / length
        curvature = self.spontaneous_curvature
        return replace(
            self,
            law=replace(self.law, shear=self.law.shear / tension),
            bending=self.bending / (force * length),
            spontaneous_curvature=curvature if curvature == "rest" else curvature * length,
            area=self.area / tension,
            local_area=self.local_area / tension,
            volume=self.volume * length / tension,
            viscosity=self.viscosity / (tension * time),
            relaxation=self.relaxation / time,
        )


def _nonnegative(name: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise CaseError(f"{name} = {value:g}: expected zero or more")


@dataclass(frozen=True, eq=False)
class CellType:
    """A type of cells: its name, its undeformed `mesh` and its membrane.

    The vertices of `mesh` are on the surface. With Loop shells, the moving points are control points whose limit
    surface passes through the vertices of `mesh`. `stress_free` is the shape without in-plane stress, with the same
    triangles; by default it is that of `mesh`.
    """

    name: str
    mesh: Surface
    model: MembraneModel
    stress_free: Surface | None = None

    def __post_init__(self) -> None:
        """Check the meshes.

        Raises:
            CaseError: a mesh is open, inverted or intersects itself, has too many vertices or neighbours, or the shapes
                have different triangles.
        """
        checked(self.mesh, f"cell type {self.name!r}: mesh")
        if len(self.mesh.vertices) > CAPACITIES[-1]:
            raise CaseError(
                f"cell type {self.name!r}: {len(self.mesh.vertices)} vertices; the maximum is {CAPACITIES[-1]}"
            )
        crossing = self_intersection(self.mesh)
        if crossing is not None:
            raise CaseError(
                f"cell type {self.name!r}: mesh: the surface intersects itself: triangles {crossing[0]} and "
                f"{crossing[1]} cross"
            )
        valence = np.bincount(self.mesh.faces.reshape(-1))
        control = valence[self.mesh.faces].sum(axis=1).max() - 6
        if self.model.shell == "loop" and control > max(SLOTS):
            raise CaseError(
                f"cell type {self.name!r}: a triangle has {control} control points; the maximum is {max(SLOTS)}: "
                "use vertices with fewer neighbours, or flat triangles (model = 'triangles', in Python shell = "
                "'flat')"
            )
        if self.stress_free is not None:
            checked(self.stress_free, f"cell type {self.name!r}: stress-free mesh")
            if not np.array_equal(self.stress_free.faces, self.mesh.faces):
                raise CaseError(
                    f"cell type {self.name!r}: the triangles of the stress-free mesh differ from those of the mesh"
                )

    def control_points(self, surface: Surface | None = None) -> Floats:
        """Return the moving points (n, 3) for a `surface` with the triangles of `mesh`; by default for `mesh`."""
        chosen = surface or self.mesh
        if self.model.shell == "flat":
            return chosen.vertices
        from seiche.cells.loop import control_points

        return control_points(chosen)

    def moving_mesh(self) -> Surface:
        """Return the undeformed mesh of the moving points, which is slightly larger than `mesh` for Loop shells."""
        return Surface(self.control_points(), self.mesh.faces)
