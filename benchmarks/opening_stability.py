# SPDX-License-Identifier: BSD-3-Clause
"""Growth of small waves at flat openings: eigenvalues of a step of the linearised flow (theory/flow, section 8).

    python benchmarks/opening_stability.py --json benchmarks/results/opening-stability.json

A slab of `DEPTH` sites between two openings of the rule `plane` or of prescribed velocity, with a uniform velocity
along the normal (one end has inflow, the other outflow), two relaxation times and waves along the plane. Rows:

- `rest`: largest growth per step without flow by `tau` and by the weight `own` of the density of the site itself;
- `limit`: largest grid Reynolds number U/nu without growth by `tau`, `rule` and `magic`, to 2 %.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.bench.results import provenance
from seiche.flow.pressure_rules import DAMPING, OWN_DENSITY
from seiche.flow.velocity_set import CS2, D3Q19

DEPTH = 8
#: Wave numbers along the plane (rad per spacing).
WAVES = (0.0, 0.6, 1.2, 1.8, 2.4, np.pi)
#: Growth that counts as unstable; a neutral mode has rounding errors.
LEAST_GROWTH = 1e-4
LATTICE = D3Q19
Array = npt.NDArray[Any]


class Step:
    """The linearised collision at a velocity (U, 0, 0), as matrices of the arriving populations of a site."""

    def __init__(self, tau: float, velocity: float, magic: float) -> None:
        """Linearise about density 1."""
        c, w, Q = LATTICE.vectors.astype(float), LATTICE.weights, LATTICE.Q
        swap = np.eye(Q)[LATTICE.opposite]
        flow = np.array([velocity, 0.0, 0.0])
        self.density: Array = np.ones(Q)
        momentum = c.T
        self.momentum = momentum
        self.velocity = momentum - np.outer(flow, self.density)
        inertia_matrix = np.einsum("ap,b->abp", momentum, flow)
        self.inertia = (
            inertia_matrix + inertia_matrix.transpose(1, 0, 2) - np.einsum("a,b,p->abp", flow, flow, self.density)
        )
        self.tensor = np.einsum("qa,qb->qab", c, c) - np.eye(3) / 3
        even = w[:, None] * (self.density + 4.5 * np.einsum("qab,abp->qp", self.tensor, self.inertia))
        odd = w[:, None] * 3 * (c @ momentum)
        rate, odd_rate = 1 / tau, 1 / (0.5 + magic / (tau - 0.5))
        self.collision = np.eye(Q) - rate * ((np.eye(Q) + swap) / 2 - even) - odd_rate * ((np.eye(Q) - swap) / 2 - odd)
        self.stress = -(1 - rate / 2) * np.einsum("qa,qb,qp->abp", c, c, np.eye(Q) - even - odd)

    def even_part(self, q: int, density: Array, inertia: Array, stress: Array) -> Array:
        """Return twice the even part along q (eq. 21), (Q,)."""
        tensor = np.einsum("ab,abp->p", self.tensor[q], inertia - stress)
        return np.asarray(2 * LATTICE.weights[q] * (density + 4.5 * tensor))


def returned(step: Step, rule: str, site_weight: float, q: int, normal: int, phase: complex) -> tuple[Array, Array]:
    """Return the population opposite to q that an opening returns, as rows of its site and of the next site inwards."""
    site_row, next_row = np.zeros(LATTICE.Q, complex), np.zeros(LATTICE.Q, complex)
    if rule == "velocity":  # eq. (16); the momentum has the density of the site
        velocity = step.momentum[0] - step.velocity[0]
        site_row += step.collision[q] - 6 * LATTICE.weights[q] * LATTICE.vectors[q, 0] * velocity
        return site_row, next_row
    site_row -= step.collision[q]
    damping = np.zeros_like(step.stress)  # eq. (40)
    damping[0, 1:] = damping[1:, 0] = normal * DAMPING * step.velocity[1:]
    site_row += step.even_part(q, site_weight * step.density, step.inertia, step.stress + damping)
    next_row += 2 * LATTICE.weights[q] * (1 - site_weight) / 3 * step.density
    site_row[q] += phase  # eq. (39): the population that left the next site, displaced along the plane
    next_row[LATTICE.opposite[q]] += 1
    next_row -= step.even_part(q, step.density, step.inertia, step.stress)
    return site_row, next_row


def growth(step: Step, rule: str, site_weight: float, wave: tuple[float, float]) -> float:
    """Return the largest absolute eigenvalue of a step of the slab, less one."""
    Q, shift = LATTICE.Q, np.exp(1j * (LATTICE.vectors[:, 1:] @ np.array(wave)))
    matrix = np.zeros((DEPTH, Q, DEPTH, Q), complex)
    for q, (cx, _, _) in enumerate(LATTICE.vectors):
        for x in range(DEPTH):
            if 0 <= x - cx < DEPTH:
                matrix[x, q, x - cx] += step.collision[q] / shift[q]
        if cx:
            x, normal = (0, 1) if cx < 0 else (DEPTH - 1, -1)
            site_row, next_row = returned(step, rule, site_weight, q, normal, shift[q])
            matrix[x, LATTICE.opposite[q], x], matrix[x, LATTICE.opposite[q], x + normal] = site_row, next_row
    return float(np.abs(np.linalg.eigvals(matrix.reshape(DEPTH * Q, DEPTH * Q))).max() - 1)


def largest_growth(tau: float, velocity: float, rule: str, site_weight: float, magic: float) -> float:
    """Return the largest growth per step of all waves."""
    step = Step(tau, velocity, magic)
    return max(growth(step, rule, site_weight, (a, b)) for a in WAVES for b in WAVES if b <= a)


def limit(tau: float, rule: str, magic: float) -> float:
    """Return the largest grid Reynolds number without growth, 0 if there is none."""
    viscosity, low, high = (tau - 0.5) * CS2, 0.0, 20.0
    if largest_growth(tau, 0.0, rule, OWN_DENSITY, magic) > LEAST_GROWTH:
        return 0.0
    while high - low > 0.02 * high:
        middle = 0.5 * (low + high)
        if largest_growth(tau, middle * viscosity, rule, OWN_DENSITY, magic) > LEAST_GROWTH:
            high = middle
        else:
            low = middle
    return low


def main() -> None:
    """Compute all rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for tau in (0.505, 0.51, 0.52, 0.536):
        for site_weight in (0.0, 0.1, OWN_DENSITY, 0.4, 0.6, 0.8):
            value = largest_growth(tau, 0.0, "plane", site_weight, 3 / 16)
            rows.append({"kind": "rest", "tau": tau, "own": site_weight, "value": value})
            print(rows[-1], flush=True)
    for rule, magic in (("plane", 3 / 16), ("plane", 1 / 12), ("velocity", 3 / 16)):
        for tau in (0.51, 0.52, 0.536, 0.55):
            value = limit(tau, rule, magic)
            rows.append({"kind": "limit", "rule": rule, "magic": magic, "tau": tau, "value": value})
            print(rows[-1], flush=True)
    document = {**provenance("stability of openings", "NumPy"), "rows": rows}
    options.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
