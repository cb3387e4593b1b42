# SPDX-License-Identifier: BSD-3-Clause
"""A capsule in shear flow: deformation at a small capillary number, extrapolated to the limit of fine lattices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.cells import Cells, CellType, MembraneModel, NeoHookean, Skalak, ellipsoid
from seiche.cells.loop import limit_points
from seiche.couple import Blood
from seiche.couple.immersed import Scheme
from seiche.domain import shapes
from seiche.flow import FlowModel, MovingWall, Newtonian, Precision, Walls
from seiche.flow.solver import FlowSolver
from seiche.flow.state import site_state
from seiche.kernels.registry.ibm import Delta
from seiche.report.figures import convergence_figure, observed_order
from seiche.validate.check import Check, Floats, Setting, positions, post_collision_state

_FIRST_ORDER = "Barthes-Biesel, Rallison 1981, J. Fluid Mech. 113, 251"
#: Deformation divided by the capillary number mu g a / G to first order, for equal viscosities and both laws.
SLOPE = 25 / 12
#: Maximum Reynolds number g a^2 / nu of a capsule, and the distance between the walls in radii.
REYNOLDS, DISTANCE = 0.05, 10
#: Strain interval between samples of the steady deformation.
SAMPLED = 0.25


@dataclass(frozen=True)
class Capsule:
    """A sphere of `radius` sites between walls that move in opposite directions."""

    law: str
    capillary: float
    radius: float
    vertices: int = 642
    delta: Delta = "peskin"
    area_ratio: float = 1.0
    viscosity: float = 1 / 6
    scheme: Scheme = "euler"

    @property
    def shear_rate(self) -> float:
        """Return the shear rate at REYNOLDS."""
        return REYNOLDS * self.viscosity / self.radius**2

    def start(self, setting: Setting) -> Blood:
        """Return the capsule at rest in a developed shear flow."""
        height = float(round(DISTANCE * self.radius))
        precision = Precision("float32", "float32")
        solver = sheared(setting, (height,) * 3, self.shear_rate, self.viscosity, precision=precision)
        shear = self.viscosity * self.shear_rate * self.radius / self.capillary
        law = NeoHookean(shear) if self.law == "neo-Hookean" else Skalak(shear, self.area_ratio)
        kind = CellType("capsule", ellipsoid((self.radius,) * 3, self.vertices), MembraneModel(law))
        center = solver.sites.coords.mean(axis=0)
        cells = Cells(solver.backend, [kind], [[center]], precision=precision.compute)
        return Blood(solver, cells, delta=self.delta, scheme=self.scheme)

    def deformed(self, setting: Setting, strain: float, samples: int = 1) -> float:
        """Return the deformation after the strain g t, or the mean of `samples` at strain intervals of a quarter."""
        blood = self.start(setting)
        faces = blood.cells.blocks[0].rest.cell.mesh.faces
        values = []
        for number in range(1 - samples, 1):
            blood.advance(round((strain + number * SAMPLED) / self.shear_rate) - blood.solver.step)
            values.append(deformation(limit_points(faces, blood.cells.vertices()[0]), faces))
        blood.solver.close()
        return float(np.mean(values))


def sheared(
    setting: Setting, size: tuple[float, float, float], rate: float, viscosity: float, **options: Any
) -> FlowSolver:
    """Return the developed shear flow between plates that move in opposite directions.

    `size` is (length, width, height) in sites and `rate` the shear rate per step; `options` are passed to the solver.
    """
    length, width, height = size
    sites = shapes.channel(height, length, width, 1.0)
    speed = 0.5 * rate * height
    walls = (
        MovingWall("low", (-speed, 0.0, 0.0), patch=low_plate),
        MovingWall("high", (speed, 0.0, 0.0), patch=partial(high_plate, height)),
    )
    solver = setting.solver(sites, FlowModel(Newtonian(viscosity), walls=Walls(moving=walls)), **options)
    z = positions(sites)[:, 2] - 0.5 * height
    velocity, gradient = np.zeros((len(z), 3)), np.zeros((len(z), 3, 3))
    velocity[:, 0], gradient[:, 2, 0] = rate * z, rate
    start = post_collision_state(np.zeros(len(z)), velocity, gradient, 0.5 + 3 * viscosity)
    solver.set_state(site_state(solver, {"populations": start}))
    return solver


def low_plate(points: Floats) -> npt.NDArray[np.bool_]:
    """Return which `points` of the walls are on the lower plate, z = 0."""
    return np.asarray(points[:, 2] < 0.25)


def high_plate(height: float, points: Floats) -> npt.NDArray[np.bool_]:
    """Return which `points` of the walls are on the upper plate, z = `height`."""
    return np.asarray(points[:, 2] > height - 0.25)


def deformation(vertices: Floats, faces: npt.NDArray[np.integer]) -> float:
    """Return (L - B)/(L + B), in the x-z plane, of the ellipsoid with the moments of inertia of a closed surface.

    Args:
        vertices: points (n, 3).
        faces: vertex indices (m, 3), oriented outwards.
    """
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    volume = np.einsum("ij,ij->i", a, np.cross(b, c)) / 6
    total = a + b + c
    center = (volume @ total) / (4 * volume.sum())
    moments = [np.einsum("i,ij,ik->jk", volume, x, x) for x in (a, b, c, total)]
    second = np.sum(moments, axis=0) / (20 * volume.sum()) - np.outer(center, center)
    half_axes = np.sqrt(5 * np.linalg.eigvalsh(second[np.ix_((0, 2), (0, 2))]))
    return float((half_axes[1] - half_axes[0]) / half_axes.sum())


def small_deformation(setting: Setting) -> list[Check]:
    """Check D divided by the capillary number 0.02, extrapolated linearly in 1/radius from the two finest lattices.

    The dominant error is the enlargement of the capsule by a fraction of a spacing due to the delta function. The
    walls, ten radii apart, and the finite capillary number change D by less than one per cent.
    """
    capillary = 0.02
    laws = ("Skalak",) if setting.quick else ("Skalak", "neo-Hookean")
    radii, strain = ((4.0, 6.0), 0.45) if setting.quick else ((8.0, 12.0, 16.0), 0.6)
    checks = []
    for law in laws:
        slopes = [
            Capsule(law, capillary, radius, viscosity=0.4).deformed(setting, strain) / capillary for radius in radii
        ]
        finest = float(np.polynomial.Polynomial.fit(1 / np.array(radii[-2:]), slopes[-2:], 1)(0.0))
        errors = np.array(slopes) / SLOPE - 1
        plot = partial(
            convergence_figure,
            sizes=radii,
            errors={law: errors},
            order=1.0,
            x_label="radius in sites",
            y_label="D relative to first-order theory, minus 1",
        )
        name = f"capsule in shear, {law}: D over the capillary number"
        checks.append(Check(name, abs(finest / SLOPE - 1), 0.02, reference=_FIRST_ORDER, plot=plot))
        order = observed_order(radii, errors)
        checks.append(Check(f"capsule in shear, {law}: order in space", order, 0.8, "above", reference=_FIRST_ORDER))
    return checks
