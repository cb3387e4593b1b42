# SPDX-License-Identifier: BSD-3-Clause
"""Where to keep states so that a run can be followed backwards with little memory (theory/waves, section 10).

Griewank and Walther 2000, doi:10.1145/347837.347846: with s states at hand and no step computed more than r times,
C(s + r, s) steps can be reversed, and no schedule needs fewer computed steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb


def places(begin: int, end: int, free: int) -> Iterator[int]:
    """Yield the steps after `begin`, whose state is kept, at which to keep `free` more before `end` is reversed."""
    while free > 0 and end - begin > 1:
        begin += _forward(end - begin, free)
        free -= 1
        yield begin


def _forward(steps: int, free: int) -> int:
    """Return how far to go from a kept state to the next, of `free`, when `steps` are to be reversed."""
    kept, repeats = free + 1, 0
    while comb(kept + repeats, kept) < steps:
        repeats += 1
    shortest = comb(kept + repeats - 2, kept) if repeats > 1 else 1
    return max(1, shortest, steps - comb(free + repeats, free))
