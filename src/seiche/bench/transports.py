# SPDX-License-Identifier: BSD-3-Clause
"""Transports that a benchmark compares, of which some may not be available on these ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from seiche.domain.world import World
from seiche.errors import TransportError

T = TypeVar("T")


def opened(create: Callable[[], T], transport: str, transports: Sequence[str], world: World) -> T | None:
    """Return the result of `create`, which opens `transport`; None if it is not available here (collective).

    Raises:
        TransportError: it is not available and `transports` names no other.
    """
    try:
        return create()
    except TransportError as error:  # on all ranks
        if len(transports) < 2:
            raise
        if world.rank == 0:
            print(f"not measured: transport {transport}: {error}", flush=True)
        return None
