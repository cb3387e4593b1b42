# SPDX-License-Identifier: BSD-3-Clause
"""Teams of discontinuous Galerkin kernels: how a block of a GPU shares its work, and the fastest measured ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .spec import Real

Medium = Literal["acoustic", "elastic"]


@dataclass(frozen=True)
class Team:
    """How a block of a GPU shares its work; on the CPU only the number of elements per item matters.

    Attributes:
        elements: elements per item.
        layers: threads along the last axis.
        prefetch: number of items ahead for which memory is prefetched.
        blocks: blocks on a multiprocessor, which bound the registers.
        bypass_cache: stores bypass the caches.
        unrolled: loops over a thread's nodes are unrolled.
        early_load: a thread loads its part of the register before the team synchronises.
        copied_register: instead, the register is copied into shared memory after the state.
    """

    elements: int
    layers: int = 1
    prefetch: int = 0
    blocks: int = 0
    bypass_cache: bool = False
    unrolled: bool = False
    early_load: bool = True
    copied_register: bool = False

    @property
    def tuning(self) -> int:
        """Return the flags as the kernel's template argument."""
        flags = (self.unrolled, self.early_load, self.prefetch > 0, self.bypass_cache, self.copied_register)
        return sum(1 << bit for bit, flag in enumerate(flags) if flag)


#: The fastest of forty to fifty teams each on one H100 (docs/performance/tuning), by nodes per direction. With eight
#: nodes: on one H200.
TEAMS: dict[tuple[Medium, Real], dict[int, Team]] = {
    ("acoustic", "float32"): {
        4: Team(8, 1, 32, 6),
        5: Team(5, 1, 26, 4),
        6: Team(4, 1, 18),
        7: Team(2, 2, 69, 4, bypass_cache=True),
        8: Team(1, 2, 96, 6, bypass_cache=True, copied_register=True),
        9: Team(1, 2, 66, 4, bypass_cache=True),
        10: Team(1, 1, 16, 3, unrolled=True),
    },
    ("acoustic", "float64"): {
        4: Team(8, 1, 16, 3, bypass_cache=True),
        5: Team(1, 5, 131, 6, unrolled=True),
        6: Team(1, 3, 75, 4),
        7: Team(1, 2, 47, 4, bypass_cache=True),
        8: Team(1, 2, 32, 4, bypass_cache=True, copied_register=True),
        9: Team(1, 2, 22, 2, bypass_cache=True),
        10: Team(1, 1, 8, 2),
    },
    ("elastic", "float32"): {
        4: Team(2, 4, 128, 7),
        5: Team(2, 5, 65, 4),
        6: Team(1, 6, 75, 4, unrolled=True),
        7: Team(1, 4, 47, 4, bypass_cache=True),
        8: Team(1, 4, 32, 4, bypass_cache=True, copied_register=True),
        9: Team(1, 3, 22, 2, unrolled=True),
        10: Team(1, 5, unrolled=True),
    },
    ("elastic", "float64"): {
        4: Team(2, 4, 128, 4, bypass_cache=True, unrolled=True),
        5: Team(1, 5, 65, 4),
        6: Team(1, 3, 37, 3, bypass_cache=True, unrolled=True),
        7: Team(1, 2, 23, 3, bypass_cache=True),
        8: Team(1, 4, blocks=2, bypass_cache=True, copied_register=True),
        9: Team(1, 5, 11, 1),
        10: Team(1, 1, blocks=1),
    },
}

#: Teams of adjoint stages where another one than that of the stage was the fastest, with as many elements per item.
ADJOINT_TEAMS: dict[tuple[Medium, Real], dict[int, Team]] = {
    ("elastic", "float32"): {6: Team(1, 6, 75, 4, bypass_cache=True), 8: Team(1, 4, 32, 3, bypass_cache=True)},
    ("elastic", "float64"): {8: Team(1, 2, bypass_cache=True)},
}

#: Elements per item and layers of leapfrog's halves, by medium and nodes per direction.
LEAPS: dict[Medium, dict[int, tuple[int, int]]] = {
    "acoustic": {4: (8, 1), 5: (5, 1), 6: (4, 1), 7: (1, 2), 8: (1, 2), 9: (1, 2), 10: (1, 1)},
    "elastic": {4: (4, 2), 5: (3, 2), 6: (4, 2), 7: (1, 4), 8: (1, 4), 9: (1, 2), 10: (1, 2)},
}
#: Blocks per multiprocessor of leapfrog's halves where the compiler's choice of registers permits too few.
LEAP_BLOCKS: dict[tuple[Medium, Real], dict[int, int]] = {
    ("elastic", "float32"): {6: 2, 8: 3},
    ("elastic", "float64"): {8: 2, 10: 2},
}
#: Approximate prefetch distance in nodes: it hides the memory latency, and the data stays in the second-level cache.
NODES_AHEAD = 32 * 512
