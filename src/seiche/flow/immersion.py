# SPDX-License-Identifier: BSD-3-Clause
"""What a flow must know of what is immersed in it (theory/coupling)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.halo.exchange import HaloExchange
from seiche.observe.stage import Stage


@dataclass(frozen=True, eq=False)
class Contrast:
    """Another viscosity inside cells: `ratio` times the outer one.

    `bits` on the device says which slots are inside; `inside` returns which of the owned sites are, (n_owned,). They
    are found anew after every step whose number is a multiple of `every`; `begin` is told the number of steps done
    before stages are launched or captured.
    """

    ratio: float
    bits: Array
    inside: Callable[[], npt.NDArray[np.bool_]]
    every: int
    begin: Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Immersion:
    """Something immersed in a fluid.

    `force` is the name of its force in the registry, one that keeps the velocity of the sites; `members` are those of
    its kernel arguments without the model's body force, which goes on; `slots`, one of them, finds the slot of an item.
    `stages` follow those of every step: velocity to what is immersed, new forces to the sites. `exchanges` are their
    messages. `prepare`, called by all ranks together before so many steps, returns for how many (one or more) things
    may go on as they are.
    """

    force: str
    members: dict[str, Any]
    stages: Sequence[Stage]
    contrast: Contrast | None = None
    exchanges: Sequence[HaloExchange] = ()
    prepare: Callable[[int], int] | None = None
