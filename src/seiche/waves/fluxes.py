# SPDX-License-Identifier: BSD-3-Clause
"""How elements meet at their faces (theory/waves, eqs. 8 to 12): one object each, in the table `FLUXES`.

How to add one: docs/howto/add-a-flux.md.
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
    """A flux between elements.

    Attributes:
        kernel: its name, its C++ type, how many words a trace has and how many coefficients a face.
        inner: the coefficients of faces between two elements, in order, from the impedances of the own side and of the
            other, (kinds, ...) each.
        outer: those of a boundary face, whose given trace is zero (table 1), from the kind and the own impedances.
        largest: largest dt c/h on cubes by nodes a direction, in the scheme of five stages (eigenvalues; table 3).
        rule: the same in units of the smallest distance of two nodes, for other numbers of nodes.
        averages: whether the stiffness of an element meets the inertia of its neighbour, as averages make it.
        slopes: what media gradients know of it: whether its coefficients depend on impedances; None: nothing.
    """

    kernel: FluxKernel
    inner: Callable[[Floats, Floats], Sequence[Floats]]
    outer: Callable[[Boundary, Floats], Sequence[Floats]]
    largest: Mapping[int, float]
    rule: float
    averages: bool = False
    slopes: bool | None = None

    def inner_coefficients(self, own: Floats, other: Floats) -> Floats:
        """Return those of `inner` as kernels want them, (..., kinds * coefficients)."""
        return _interleaved(self.inner(own, other))

    def outer_coefficients(self, kind: Boundary, own: Floats) -> Floats:
        """Return those of `outer` as kernels want them."""
        return _interleaved(self.outer(kind, own))


def _interleaved(parts: Sequence[Floats]) -> Floats:
    """Return coefficients beside each other, kinds outside: (..., kinds * parts) from arrays (kinds, ...)."""
    stacked = np.moveaxis(np.stack(parts, 1), (0, 1), (-2, -1))
    return np.asarray(stacked.reshape(*stacked.shape[:-2], stacked.shape[-2] * stacked.shape[-1]))


def _upwind_inner(own: Floats, other: Floats) -> Sequence[Floats]:
    total = own + other
    inverse = np.divide(1.0, total, out=np.zeros_like(total), where=(own > 0) & (total > 0))
    return inverse, inverse * other, own


def _upwind_outer(kind: Boundary, own: Floats) -> Sequence[Floats]:
    zero, some = np.zeros_like(own), (own > 0).astype(np.float64)
    inverse = np.divide(1.0, own, out=np.zeros_like(own), where=own > 0)
    factors = {"free": (inverse, zero), "rigid": (zero, some), "absorbing": (0.5 * inverse, 0.5 * some)}
    return *factors[kind], own


def _central_inner(own: Floats, other: Floats) -> Sequence[Floats]:
    # Where one side is fluid, averages would weld the tangential motion: no traction there, each moves as it likes.
    half, zero = np.where((own > 0) & (other > 0), 0.5, 0.0), np.zeros_like(own)
    return half, zero, zero, np.where(half > 0, half, np.where(own > 0, 1.0, 0.0))


def _central_outer(kind: Boundary, own: Floats) -> Sequence[Floats]:
    zero, some = np.zeros_like(own), (own > 0).astype(np.float64)
    inverse = np.divide(1.0, own, out=np.zeros_like(own), where=own > 0)
    return {
        "free": (zero, zero, zero, some),
        "rigid": (some, zero, zero, zero),
        "absorbing": (0.5 * some, 0.5 * inverse, 0.5 * own, 0.5 * some),
    }[kind]


#: By name.
FLUXES = {
    flux.kernel.name: flux
    for flux in (
        Flux(
            UPWIND,
            _upwind_inner,
            _upwind_outer,
            largest={3: 0.2683, 4: 0.1390, 5: 0.0850, 6: 0.0573, 7: 0.0413, 8: 0.0311},
            rule=0.48,
            slopes=True,
        ),
        Flux(
            CENTRAL,
            _central_inner,
            _central_outer,
            largest={3: 0.3813, 4: 0.2119, 5: 0.1356, 6: 0.0935, 7: 0.0682, 8: 0.0519},
            rule=0.76,
            averages=True,
            slopes=False,
        ),
    )
}


def flux_named(name: str) -> Flux:
    """Return the flux `name`.

    Raises:
        CaseError: there is none.
    """
    if name not in FLUXES:
        raise CaseError(f"flux: {name!r} is not one of {', '.join(FLUXES)}")
    return FLUXES[name]
