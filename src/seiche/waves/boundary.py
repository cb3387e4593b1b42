# SPDX-License-Identifier: BSD-3-Clause
"""Kinds of the sides of the box."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from seiche.errors import CaseError

Boundary = Literal["free", "rigid", "absorbing"]


def sides_of(boundaries: Sequence[Boundary] | Boundary, dim: int) -> tuple[Boundary, ...]:
    """Return the kind of each side of the box; one kind may apply to all. CaseError for an invalid kind or number."""
    sides = (boundaries,) * (2 * dim) if isinstance(boundaries, str) else tuple(boundaries)
    if len(sides) != 2 * dim:
        raise CaseError(
            f"boundaries: {len(sides)} kinds for the {2 * dim} sides of the box; expected one, or one for each"
        )
    for kind in sides:
        if kind not in get_args(Boundary):
            raise CaseError(f"boundaries: {kind!r} is not one of {', '.join(get_args(Boundary))}")
    return sides
