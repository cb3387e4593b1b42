# SPDX-License-Identifier: BSD-3-Clause
"""Schedule of stored states for an adjoint run with little memory (theory/waves, section 10).

With s stored states and no step computed more than r times, C(s + r, s) steps can be reversed. No schedule needs fewer
computed steps (Griewank and Walther 2000, doi:10.1145/347837.347846).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb


def stored_steps(begin: int, end: int, free: int) -> Iterator[int]:
    """Yield the steps at which to store `free` states before `end` is reversed; that of `begin` is already stored."""
    while free > 0 and end - begin > 1:
        begin += _forward(end - begin, free)
        free -= 1
        yield begin


@dataclass(frozen=True)
class Reversal:
    """Work for the reversal of a run: computed steps (the run included), stored states and restored states."""

    computed: int
    stored: int
    restored: int


def reversal_of(steps: int, count: int) -> Reversal:
    """Return the work for `steps` steps with at most `count` stored states, the first one included."""
    stack, computed = [0], steps
    stack += stored_steps(0, steps, count - 1)
    stored = len(stack)
    for step in reversed(range(steps)):
        while stack[-1] > step:
            stack.pop()
        begin = stack[-1]
        if begin < step:
            new = list(stored_steps(begin, step + 1, count - len(stack)))
            stack += new
            stored += len(new)
        computed += step - begin
    return Reversal(computed, stored, steps)


def _forward(steps: int, free: int) -> int:
    """Return the distance from a stored state to the next, of `free`, for the reversal of `steps` steps."""
    states, repeats = free + 1, 0
    while comb(states + repeats, states) < steps:
        repeats += 1
    min_length = comb(states + repeats - 2, states) if repeats > 1 else 1
    return max(1, min_length, steps - comb(free + repeats, free))
