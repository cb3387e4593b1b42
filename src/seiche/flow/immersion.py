# SPDX-License-Identifier: BSD-3-Clause
"""Interface between a flow and immersed bodies (theory/coupling)."""

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
    """Viscosities inside cells: `ratios` times that of the outer fluid; the first ratio is 1, for sites outside.

    `bits`, on the device, consists of `planes` arrays of `words` words with one bit per slot; the bits of a slot form
    its index in `ratios`. `inside` returns the indices of the owned sites, (n_owned,), and `inside_on_device` returns
    them on the device. They are updated after each step whose number is a multiple of `every`. `begin` is called with
    the number of completed steps before stages are launched or captured.
    """

    ratios: Sequence[float]
    planes: int
    words: int
    bits: Array
    inside: Callable[[], npt.NDArray[np.uint8]]
    inside_on_device: Callable[[], Array]
    every: int
    begin: Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Immersion:
    """Bodies immersed in a fluid.

    `force` is the registry name of their force policy, which must store the velocity of the sites. `members` are its
    kernel arguments except the body force of the model, which remains active; one of them, `slots`, maps items to
    slots. `stages` are appended to each step: they interpolate the velocity and spread new forces. `exchanges` are the
    halo exchanges of these stages. `prepare(steps)` is collective and returns the number of steps (at least one) that
    may run before it must be called again.
    """

    force: str
    members: dict[str, Any]
    stages: Sequence[Stage]
    contrast: Contrast | None = None
    exchanges: Sequence[HaloExchange] = ()
    prepare: Callable[[int], int] | None = None
