# SPDX-License-Identifier: BSD-3-Clause
"""Coefficients of the flux at faces inside and at the boundary (theory/waves, eqs. 8 to 12)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.kernels.registry.dg import Flux

Floats = npt.NDArray[np.float64]
Boundary = Literal["free", "rigid", "absorbing"]


def sides_of(boundaries: Sequence[Boundary] | Boundary, dim: int) -> tuple[Boundary, ...]:
    """Return the kind of each side of the box, one word standing for all.

    Raises:
        CaseError: an unknown kind, or not one a side of the box.
    """
    sides = (boundaries,) * (2 * dim) if isinstance(boundaries, str) else tuple(boundaries)
    if len(sides) != 2 * dim:
        raise CaseError(f"boundaries: {len(sides)} kinds for the {2 * dim} sides of the box")
    for kind in sides:
        if kind not in get_args(Boundary):
            raise CaseError(f"boundaries: {kind!r} is not one of {', '.join(get_args(Boundary))}")
    return sides


def inner_coefficients(flux: Flux, own: Floats, other: Floats) -> Floats:
    """Return the coefficients of faces between two elements from their impedances.

    Args:
        flux: upwind or central.
        own: Z_p or (Z_p, Z_s) of the own side, (kinds, ...).
        other: the same beyond the face.

    Returns:
        (..., kinds * coefficients), as `kernels/dg/flux.hpp` wants them.
    """
    total = own + other
    there = (own > 0) & (total > 0)
    inverse = np.divide(1.0, total, out=np.zeros_like(total), where=there)
    if flux == "upwind":
        parts = [inverse, inverse * other, own]
    else:
        # Where one side is fluid, averages would weld the tangential motion: no traction there, each moves as it likes.
        welded = (own > 0) & (other > 0)
        zero = np.zeros_like(own)
        parts = [np.where(welded, 0.5, 0.0), zero, zero, np.where(welded, 0.5, np.where(own > 0, 1.0, 0.0))]
    return _interleaved(parts)


def boundary_coefficients(flux: Flux, kind: Boundary, own: Floats) -> Floats:
    """Return the coefficients of boundary faces, whose given trace is zero (theory/waves, table 1)."""
    zero = np.zeros_like(own)
    some = (own > 0).astype(np.float64)
    inverse = np.divide(1.0, own, out=np.zeros_like(own), where=own > 0)
    if flux == "upwind":
        factors = {"free": (inverse, zero), "rigid": (zero, some), "absorbing": (0.5 * inverse, 0.5 * some)}
        return _interleaved([*factors[kind], own])
    four = {
        "free": (zero, zero, zero, some),
        "rigid": (some, zero, zero, zero),
        "absorbing": (0.5 * some, 0.5 * inverse, 0.5 * own, 0.5 * some),
    }
    return _interleaved([*four[kind]])


def _interleaved(parts: list[Floats]) -> Floats:
    """Return coefficients beside each other, kinds outside: (..., kinds * parts) from arrays (kinds, ...)."""
    stacked = np.moveaxis(np.stack(parts, 1), (0, 1), (-2, -1))
    return np.asarray(stacked.reshape(*stacked.shape[:-2], stacked.shape[-2] * stacked.shape[-1]))
