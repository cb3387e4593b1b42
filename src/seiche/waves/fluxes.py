# SPDX-License-Identifier: BSD-3-Clause
"""Numerical fluxes between elements (theory/waves, eqs. 8 to 12), in the table `FLUXES`.

To add one: docs/howto/add-a-flux.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.kernels.registry.dg import CENTRAL, UPWIND, FluxKernel
from seiche.waves.boundary import Boundary

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Flux:
    """A numerical flux between elements.

    Attributes:
        kernel: name, C++ type, words of a trace and number of coefficients of a face.
        inner: function from the impedances of both sides, (kinds, ...) each, to the coefficients of an inner face.
        outer: the same for a boundary face with zero outer trace (table 1), from the kind of boundary and the
            impedances of the element.
        courant_limits: maximum dt c/h on cubes with five stages, by the number of nodes per direction (from
            eigenvalues; table 3).
        courant_factor: maximum dt c divided by the minimum node distance, for other numbers of nodes.
        averages: whether averages couple the stiffness of an element with the inertia of its neighbour.
        slopes: whether the coefficients depend on impedances, for media gradients; None if they are not supported.
    """

    kernel: FluxKernel
    inner: Callable[[Floats, Floats], Sequence[Floats]]
    outer: Callable[[Boundary, Floats], Sequence[Floats]]
    courant_limits: Mapping[int, float]
    courant_factor: float
    averages: bool = False
    slopes: bool | None = None

    def inner_coefficients(self, impedance: Floats, neighbour_impedance: Floats) -> Floats:
        """Return those of `inner` in the layout of the kernels, (..., kinds * coefficients)."""
        return _interleaved(self.inner(impedance, neighbour_impedance))

    def outer_coefficients(self, kind: Boundary, impedance: Floats) -> Floats:
        """Return those of `outer` in the layout of the kernels."""
        return _interleaved(self.outer(kind, impedance))


def _interleaved(coefficients: Sequence[Floats]) -> Floats:
    """Return arrays (kinds, ...) as one of shape (..., kinds * coefficients)."""
    stacked = np.moveaxis(np.stack(coefficients, 1), (0, 1), (-2, -1))
    return np.asarray(stacked.reshape(*stacked.shape[:-2], stacked.shape[-2] * stacked.shape[-1]))


def _upwind_inner(impedance: Floats, neighbour_impedance: Floats) -> Sequence[Floats]:
    total = impedance + neighbour_impedance
    inverse = np.divide(1.0, total, out=np.zeros_like(total), where=(impedance > 0) & (total > 0))
    return inverse, inverse * neighbour_impedance, impedance


def _upwind_outer(kind: Boundary, impedance: Floats) -> Sequence[Floats]:
    zero, one = np.zeros_like(impedance), (impedance > 0).astype(np.float64)
    inverse = np.divide(1.0, impedance, out=np.zeros_like(impedance), where=impedance > 0)
    factors = {"free": (inverse, zero), "rigid": (zero, one), "absorbing": (0.5 * inverse, 0.5 * one)}
    return *factors[kind], impedance


def _central_inner(impedance: Floats, neighbour_impedance: Floats) -> Sequence[Floats]:
    # Next to a fluid, averaging would couple the tangential motion: impose zero shear traction (free slip).
    half, zero = np.where((impedance > 0) & (neighbour_impedance > 0), 0.5, 0.0), np.zeros_like(impedance)
    return half, zero, zero, np.where(half > 0, half, np.where(impedance > 0, 1.0, 0.0))


def _central_outer(kind: Boundary, impedance: Floats) -> Sequence[Floats]:
    zero, one = np.zeros_like(impedance), (impedance > 0).astype(np.float64)
    inverse = np.divide(1.0, impedance, out=np.zeros_like(impedance), where=impedance > 0)
    absorbing = (0.5 * one, 0.5 * inverse, 0.5 * impedance, 0.5 * one)
    return {"free": (zero, zero, zero, one), "rigid": (one, zero, zero, zero), "absorbing": absorbing}[kind]


#: By name.
FLUXES = {
    flux.kernel.name: flux
    for flux in (
        Flux(
            UPWIND,
            _upwind_inner,
            _upwind_outer,
            courant_limits={3: 0.2683, 4: 0.1390, 5: 0.0850, 6: 0.0573, 7: 0.0413, 8: 0.0311},
            courant_factor=0.48,
            slopes=True,
        ),
        Flux(
            CENTRAL,
            _central_inner,
            _central_outer,
            courant_limits={3: 0.3813, 4: 0.2119, 5: 0.1356, 6: 0.0935, 7: 0.0682, 8: 0.0519},
            courant_factor=0.76,
            averages=True,
            slopes=False,
        ),
    )
}


def flux_named(name: str) -> Flux:
    """Return the flux `name`; CaseError for an unknown one."""
    if name not in FLUXES:
        raise CaseError(f"flux: {name!r} is not one of {', '.join(FLUXES)}")
    return FLUXES[name]
