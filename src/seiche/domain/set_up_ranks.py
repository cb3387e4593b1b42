# SPDX-License-Identifier: BSD-3-Clause
"""The ranks that create a geometry together: each one processes its share of every pass.

All of them run the same set-up. Inside `set_up_on` a pass processes the share of its rank, and the results of all ranks
are joined in their order, which does not depend on their number. See docs/decisions/0033-set-up-by-all-ranks.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.shared_memory import joined_array
from seiche.domain.world import World

_world: ContextVar[World | None] = ContextVar("set_up_world", default=None)


@contextmanager
def set_up_on(world: World) -> Iterator[None]:
    """Divide the passes inside this block among the ranks of `world`, all of which must run it (collective)."""
    token = _world.set(world)
    try:
        yield
    finally:
        _world.reset(token)


def set_up_world() -> World:
    """Return the ranks of the present set-up, by default only this process."""
    return _world.get() or World.serial()


def own_share(count: int, multiple: int = 1) -> range:
    """Return the share of this rank of `count` items in ascending order; shares begin at multiples of `multiple`."""
    world, groups = set_up_world(), -(-count // multiple)
    first, end = (min(count, multiple * (groups * (world.rank + k) // world.size)) for k in (0, 1))
    return range(first, end)


def own_part(weight_before: npt.NDArray[np.int64]) -> range:
    """Return the share of this rank of the items 0 ... n - 1 by their weights; `weight_before` (n + 1,) are sums."""
    world, total = set_up_world(), int(weight_before[-1])
    cuts = [total * (world.rank + k) // world.size for k in (0, 1)]
    first, end = np.searchsorted(weight_before[:-1], cuts).tolist()
    return range(first, end if world.rank + 1 < world.size else len(weight_before) - 1)


def joined(part: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the parts (n, ...) of all ranks in their order, one copy per host (collective)."""
    return joined_array(set_up_world(), part)


def sum_of_all(number: int) -> int:
    """Return the sum of a number over the ranks (collective)."""
    return sum(set_up_world().allgather(number))
