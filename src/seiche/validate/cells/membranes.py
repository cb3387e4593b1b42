# SPDX-License-Identifier: BSD-3-Clause
"""Membranes without flow: energy derivatives, conservation, invariance, the bending energy of a sphere, equilibrium."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np

from seiche.backend import open_backend
from seiche.cells import Cells, CellType, MembraneModel, NeoHookean, Skalak, biconcave, ellipsoid
from seiche.cells.energy import RestState
from seiche.cells.laws import MembraneLaw
from seiche.report.figures import convergence_figure, observed_order
from seiche.validate.check import Check, Floats, Setting

_SKALAK = "Skalak et al. 1973, doi:10.1016/S0006-3495(73)85983-1"
_LOOP = "Cirak, Ortiz, Schroeder 2000, Int. J. Numer. Meth. Eng. 47, 2039"


def _model(law: MembraneLaw, shell: Literal["loop", "flat"]) -> MembraneModel:
    """Return a membrane model in which every term is nonzero."""
    return MembraneModel(law, 0.2, -0.7, area=3.0, local_area=2.0, volume=5.0, shell=shell)


_MODELS = {
    "Loop, Skalak": _model(Skalak(1.3, 2.0), "loop"),
    "Loop, neo-Hookean": _model(NeoHookean(0.7), "loop"),
    "flat, Skalak": _model(Skalak(1.3, 2.0), "flat"),
}


def derivatives(setting: Setting) -> list[Check]:
    """Compare forces with central differences of the energies, on randomly deformed red cells."""
    checks = []
    for name, model in _MODELS.items():
        cells = Cells(open_backend(setting.device), [CellType("red", biconcave(162), model)], [np.zeros((1, 3))])
        random, step, max_error = np.random.default_rng(1), 1e-4, 0.0
        x = cells.vertices()[0] + 0.05 * random.standard_normal((162, 3))
        force, rest = _forces(cells, x), cells.blocks[0].rest
        for _ in range(4 if setting.quick else 32):
            direction = random.standard_normal(x.shape)
            sampled_energies = [float(rest.energies(x + k * step * direction).sum()) for k in (-2, -1, 1, 2)]
            slope = (8 * (sampled_energies[2] - sampled_energies[1]) - (sampled_energies[3] - sampled_energies[0])) / (
                12 * step
            )
            max_error = max(max_error, abs(-float((force * direction).sum()) / slope - 1))
        checks.append(Check(f"membrane force, {name}: error of the derivative", max_error, 1e-6, reference=_SKALAK))
        scale = float(np.abs(force).sum())
        net = max(np.abs(force.sum(axis=0)).max(), np.abs(np.cross(x, force).sum(axis=0)).max()) / scale
        checks.append(Check(f"membrane force, {name}: net force and torque", float(net), 1e-13))
    return checks


def sphere(setting: Setting) -> list[Check]:
    """Check the bending energy of a sphere, 8 pi k for any radius: Loop shells converge to it, hinges do not."""
    sizes, errors = (162, 642, 2562), []
    for count in sizes:
        model = MembraneModel(Skalak(1.0), bending=1.0)
        rest = RestState(CellType("ball", ellipsoid((2, 2, 2), count), model))
        errors.append(abs(float(rest.energies(rest.control)[1]) / (8 * np.pi) - 1))
    edges = [round(np.sqrt(count)) for count in sizes]
    plot = partial(
        convergence_figure,
        sizes=edges,
        errors={"bending energy": errors},
        order=1.0,
        x_label="square root of the vertices",
    )
    flat = RestState(CellType("ball", ellipsoid((2, 2, 2), 642), MembraneModel(Skalak(1.0), bending=1.0, shell="flat")))
    hinges = abs(float(flat.energies(flat.control)[1]) / (8 * np.pi) - 1)
    return [
        Check("bending energy of a sphere, 642 vertices", errors[1], 5e-3, reference=_LOOP, plot=plot),
        Check("bending energy of a sphere: order", observed_order(edges, errors), 1.0, "above", reference=_LOOP),
        Check("bending energy of a sphere, 642 vertices, hinges", hinges, sense="recorded"),
    ]


def rest(setting: Setting) -> list[Check]:
    """Check that all forces are zero in the undeformed shape, with every term of the energy."""
    max_force = 0.0
    shells: tuple[Literal["loop", "flat"], ...] = ("loop", "flat")
    for shell in shells:
        model = MembraneModel(Skalak(1.0, 10.0), 0.1, "rest", area=3.0, local_area=2.0, volume=5.0, shell=shell)
        cells = Cells(open_backend(setting.device), [CellType("red", biconcave(642), model)], [np.zeros((1, 3))])
        max_force = max(max_force, float(np.abs(_forces(cells, cells.vertices()[0])).max()))
    return [Check("undeformed cell: largest force over G times length", max_force, 1e-11, reference=_SKALAK)]


def _forces(cells: Cells, vertices: Floats) -> Floats:
    """Return the forces (n, 3) on the single cell of `cells` with its vertices moved to `vertices`."""
    cells.set_vertices(vertices[None])
    cells.compute_forces()
    forces: Floats = cells.vertex_forces()[0]
    return forces
