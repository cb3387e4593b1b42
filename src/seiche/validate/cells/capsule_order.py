# SPDX-License-Identifier: BSD-3-Clause
"""Temporal order of the coupling: a capsule in shear flow, with successively halved time steps."""

from __future__ import annotations

from functools import partial

import numpy as np

from seiche.cells import Cells, CellType, MembraneModel, NeoHookean, ellipsoid
from seiche.couple import Blood
from seiche.couple.immersed import Scheme
from seiche.report.figures import convergence_figure, observed_order
from seiche.validate.cells.capsules import sheared
from seiche.validate.check import Check, Floats, Setting

#: Capsule radius, box edge, strain per step and viscosity with the longest step, and capillary number.
_RADIUS, _EDGE, _STRAIN, _VISCOSITY, _CAPILLARY = 4.0, 20.0, 0.01, 0.5, 0.3


def _vertices(setting: Setting, scheme: Scheme, divisions: int) -> Floats:
    """Return the vertices at a strain of 1, with `divisions` times shorter steps on the same lattice."""
    viscosity, rate = _VISCOSITY / divisions, _STRAIN / divisions
    solver = sheared(setting, (_EDGE,) * 3, rate, viscosity)
    model = MembraneModel(NeoHookean(viscosity * rate * _RADIUS / _CAPILLARY))
    kind = CellType("capsule", ellipsoid((_RADIUS,) * 3, 162), model)
    middle = solver.sites.coords.mean(axis=0) + np.array([0.2, 0.3, -0.1])
    cells = Cells(solver.backend, [kind], [[middle]])
    blood = Blood(solver, cells, scheme=scheme)
    blood.advance(round(1 / rate))
    solver.close()
    vertices: Floats = blood.cells.vertices()[0]
    return vertices


def _distance(first: Floats, second: Floats) -> float:
    return float(np.sqrt(((first - second) ** 2).sum(axis=1).mean()))


def order_in_time(setting: Setting) -> list[Check]:
    """Check that Adams-Bashforth coupled with the flow is second-order, and that Euler differs by a first-order term.

    Euler is compared with Adams-Bashforth because its first-order term is smaller than the second-order ones.
    """
    divisions = (1, 2, 4) if setting.quick else (1, 2, 4, 8)
    euler, adams = ([_vertices(setting, scheme, n) for n in divisions] for scheme in ("euler", "adams-bashforth"))
    halved = [_distance(adams[i], adams[i + 1]) for i in range(len(divisions) - 1)]
    distances = [_distance(first, second) for first, second in zip(euler, adams, strict=True)][: len(halved)]
    steps = [round(n / _STRAIN) for n in divisions[:-1]]
    plot = partial(
        convergence_figure,
        sizes=steps,
        errors={"Adams-Bashforth, step halved": halved, "Euler less Adams-Bashforth": distances},
        order=2.0,
        x_label="steps",
        y_label="distance of vertices (sites)",
    )
    return [
        Check("order in time, Adams-Bashforth", observed_order(divisions[:-1], halved), 1.9, "above", plot=plot),
        Check("order in time, Euler", observed_order(divisions[:-1], distances), 0.9, "above"),
    ]
