# SPDX-License-Identifier: BSD-3-Clause
"""What a check is: a measured number, its bound, where the exact solution comes from, and perhaps a picture."""

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

#: A team of threads costs more than it brings on smaller sets of sites.
_SITES_OF_ONE_THREAD = 8000


@dataclass(frozen=True)
class Check:
    """One comparison: it passes when `value` is below `bound`, or above it where `sense` says so.

    A "recorded" value has no bound (infinity): it is printed because it says something about a run.
    `reference` names the source of the exact solution; `plot` draws the comparison into a file.
    """

    name: str
    value: float
    bound: float = math.inf
    sense: Literal["below", "above", "recorded"] = "below"
    unit: str = ""
    reference: str = ""
    plot: Callable[[Path], None] | None = field(default=None, repr=False, compare=False)

    @property
    def passed(self) -> bool:
        """Return whether the value keeps its bound; one that is not finite never does."""
        if not math.isfinite(self.value):
            return False
        if self.sense == "recorded":
            return True
        return bool(self.value >= self.bound if self.sense == "above" else self.value <= self.bound)


@dataclass(frozen=True)
class Setting:
    """Where and how large the checks run; `threads` of the CPU are chosen by the size of a check if not given."""

    device: str = "cpu"
    quick: bool = False
    threads: int | None = None

    def solver(self, sites: SiteSet, model: FlowModel, **options: Any) -> FlowSolver:
        """Return a solver on the device of this setting; `options` are those of `FlowSolver`."""
        threads = self.threads or (1 if len(sites) < _SITES_OF_ONE_THREAD else None)
        return FlowSolver(sites, model, **{"device": self.device, "threads": threads, **options})


#: Checks that belong together.
Family: TypeAlias = Callable[[Setting], list[Check]]


def positions(sites: SiteSet) -> Floats:
    """Return the places of the sites in lattice units (n, 3)."""
    return np.asarray(np.array(sites.origin) / sites.spacing + sites.coords)


def velocity(solver: FlowSolver) -> Floats:
    """Return the velocity along x of all sites, (n,)."""
    return np.asarray(solver.fields(["velocity"])["velocity"][:, 0], np.float64)


def relative_error(measured: npt.NDArray[Any], exact: npt.NDArray[Any]) -> float:
    """Return the L2 norm of the difference over that of the exact values."""
    return float(np.linalg.norm(measured - exact) / np.linalg.norm(exact))


def leaving_state(
    excess: Floats, velocity: Floats, gradient: Floats, tau: float, velocity_set: VelocitySet = D3Q19
) -> Floats:
    """Return populations (n, Q) that leave the sites of a smooth flow, to second order (Chapman-Enskog).

    f* = feq + (1 - 1/tau) fneq with fneq = -w tau rho/cs^2 (c c - cs^2 I):grad u; `excess` (n,) is rho - 1, `velocity`
    (n, 3), `gradient` (n, 3, 3) the derivative along the first axis of the velocity along the second, per site.
    """
    vectors = velocity_set.vectors
    tensor = np.einsum("qa,qb->qab", vectors, vectors) - CS2 * np.eye(3)
    strain = np.einsum("qab,nab->nq", tensor, gradient)
    off = (tau - 1) * velocity_set.weights / CS2 * (1 + excess)[:, None] * strain
    return np.asarray(velocity_set.equilibrium(excess, velocity) - off)
