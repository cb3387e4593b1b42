# SPDX-License-Identifier: BSD-3-Clause
"""A check: a measured number, its bound, the source of the exact solution, and an optional figure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from seiche.domain.sites import SiteSet
from seiche.flow.model import FlowModel
from seiche.flow.solver import FlowSolver
from seiche.flow.velocity_set import CS2, D3Q19, VelocitySet

Floats = npt.NDArray[np.float64]

#: Number of sites below which a single thread is fastest.
_SITES_OF_ONE_THREAD = 8000


@dataclass(frozen=True)
class Check:
    """One comparison: it passes if `value` is below `bound`, or above it with `sense` "above".

    A "recorded" value has no bound; it is printed for information. `reference` is the source of the exact solution;
    `plot` draws the comparison to a file. `family` is the subject and the function of the check, set when it has run.
    """

    name: str
    value: float
    bound: float = math.inf
    sense: Literal["below", "above", "recorded"] = "below"
    unit: str = ""
    reference: str = ""
    plot: Callable[[Path], None] | None = field(default=None, repr=False, compare=False)
    family: str = ""

    @property
    def passed(self) -> bool:
        """Return whether the value is finite and within its bound."""
        is_within = self.value >= self.bound if self.sense == "above" else self.value <= self.bound
        return math.isfinite(self.value) and bool(is_within or self.sense == "recorded")


@dataclass(frozen=True)
class Setting:
    """Device and size of the checks; by default, the number of CPU `threads` depends on the size of a check."""

    device: str = "cpu"
    quick: bool = False
    threads: int | None = None

    def solver(self, sites: SiteSet, model: FlowModel, **options: Any) -> FlowSolver:
        """Return a solver on the device of this setting; `options` are passed to `FlowSolver`."""
        threads = self.threads or (1 if len(sites) < _SITES_OF_ONE_THREAD else None)
        return FlowSolver(sites, model, **{"device": self.device, "threads": threads, **options})


#: A function that returns related checks.
Family: TypeAlias = Callable[[Setting], list[Check]]


def positions(sites: SiteSet) -> Floats:
    """Return the positions of the sites in lattice units (n, 3)."""
    return np.asarray(np.array(sites.origin) / sites.spacing + sites.coords)


def velocity(solver: FlowSolver) -> Floats:
    """Return the velocity along x of all sites, (n,)."""
    return np.asarray(solver.fields(["velocity"])["velocity"][:, 0], np.float64)


def relative_error(measured: npt.NDArray[Any], exact: npt.NDArray[Any]) -> float:
    """Return the L2 norm of the difference divided by that of the exact values."""
    return float(np.linalg.norm(measured - exact) / np.linalg.norm(exact))


def post_collision_state(
    excess: Floats, velocity: Floats, gradient: Floats, tau: float, velocity_set: VelocitySet = D3Q19
) -> Floats:
    """Return the post-collision populations (n, Q) of a smooth flow, to second order (Chapman-Enskog).

    f* = feq + (1 - 1/tau) fneq with fneq = -w tau rho/cs^2 (c c - cs^2 I):grad u. `excess` (n,) is rho - 1, `velocity`
    is (n, 3). `gradient` (n, 3, 3) has the elements [:, a, b] = d(u_b)/d(x_a).
    """
    vectors = velocity_set.vectors
    tensor = np.einsum("qa,qb->qab", vectors, vectors) - CS2 * np.eye(3)
    strain = np.einsum("qab,nab->nq", tensor, gradient)
    non_equilibrium = (tau - 1) * velocity_set.weights / CS2 * (1 + excess)[:, None] * strain
    return np.asarray(velocity_set.equilibrium(excess, velocity) - non_equilibrium)
