# SPDX-License-Identifier: BSD-3-Clause
"""Equilibrium shape of a membrane under given forces, which minimises its energy minus the work of the forces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.cells.cells import Cells
from seiche.errors import CaseError, UnstableError

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Equilibrium:
    """Equilibrium: `vertices` (n, 3), largest component of the residual force, and number of energy evaluations."""

    vertices: Floats
    residual: float
    evaluations: int


def equilibrium(
    cells: Cells, loads: npt.ArrayLike, *, tolerance: float = 1e-4, max_evaluations: int = 20_000
) -> Equilibrium:
    """Relax the single cell of `cells` (float64) from its present shape under forces `loads` (n, 3) on its vertices.

    The device computes the forces; the host computes the energies and minimises them by L-BFGS. The cell is moved to
    the result. `tolerance` limits the components of the residual force relative to the largest load component or,
    without loads, to the shear modulus times the mean edge.

    Raises:
        CaseError: there are several cells, the precision is single, or the sum of the loads is not zero.
        UnstableError: the iteration did not converge within the limit of evaluations.
    """
    from scipy.optimize import minimize

    load = np.asarray(loads, np.float64)
    start = cells.vertices()[0] if cells.count == 1 else np.empty((0, 3))
    if cells.count != 1 or cells.precision != "float64" or load.shape != start.shape:
        raise CaseError("equilibrium: expected one cell in float64 and a load for each of its vertices")
    force_scale = float(np.abs(load).max())
    if np.abs(load.sum(axis=0)).max() > 1e-9 * max(force_scale, 1e-300) * len(load):
        raise CaseError("equilibrium: the sum of the loads is not zero, so the cell would accelerate")
    rest = cells.blocks[0].rest
    if force_scale == 0:
        force_scale = rest.cell.model.law.shear * float(np.sqrt(rest.face_areas.mean()))

    def potential(flat: Floats) -> tuple[float, Floats]:
        vertices = flat.reshape(start.shape)
        cells.set_vertices(vertices[None])
        cells.compute_forces()
        gradient = -(cells.vertex_forces()[0] + load)
        return float(rest.energies(vertices).sum() - (load * vertices).sum()), gradient.ravel()

    options = {
        "maxfun": max_evaluations,
        "maxiter": max_evaluations,
        "gtol": tolerance * force_scale,
        "ftol": 0.0,
        "maxcor": 30,
    }
    minimum = minimize(potential, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    residual = float(np.abs(potential(minimum.x)[1]).max())
    if not residual <= 10 * tolerance * force_scale:
        raise UnstableError(
            f"equilibrium: not converged: the residual force is {residual:.3g} after {minimum.nfev} evaluations; use "
            "smaller loads or more evaluations"
        )
    return Equilibrium(minimum.x.reshape(start.shape), residual, int(minimum.nfev))
