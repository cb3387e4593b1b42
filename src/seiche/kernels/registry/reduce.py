# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that add up what was observed at the sites of a rank, of `kernels/reduce/`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from .spec import CPP_TYPE, KernelSpec, Member, Real

Rule = Literal["Totals", "VelocityChange", "VelocitySum"]

#: Sites that one block of threads adds up (`reduce_block` in the header), and the words of its result.
BLOCK = 2048
WORDS: dict[Rule, int] = {"Totals": 4, "VelocityChange": 2, "VelocitySum": 3}
#: Word 3 of the totals: this less the first row that is not finite (`not_finite` in the header).
NOT_FINITE = 1 << 62
_LANES = 128

#: What the CPU table has, in words.
BUILT = "every sum"


def reduce(rule: Rule, real: Real) -> KernelSpec:
    """Add up the sites of each block."""
    rows: tuple[Member, ...] = (("observed", "ptr"), ("stride", "int64"), ("count", "int64"), ("out", "ptr"))
    if rule == "VelocityChange":
        rows = (*rows, ("before", "ptr"), ("before_stride", "int64"))
    elif rule == "Totals":
        rows = (*rows, ("first", "int64"))
    return _spec(f"Reduce<{rule}<{CPP_TYPE[real]}>,false>", rows)


def fold(rule: Rule, real: Real) -> KernelSpec:
    """Add up the blocks."""
    rows: tuple[Member, ...] = (("partial", "ptr"), ("count", "int64"), ("out", "ptr"))
    return _spec(f"Reduce<Fold<{rule}<{CPP_TYPE[real]}>>,true>", rows)


def _spec(name: str, rule: tuple[Member, ...]) -> KernelSpec:
    return KernelSpec(name, "reduce/totals.hpp", (("rule", rule),), threads=_LANES, team=True)


def built_kernels() -> Iterator[KernelSpec]:
    """Yield the specialisations of the CPU table."""
    reals: tuple[Real, ...] = ("float64", "float32")
    for rule in WORDS:
        for real in reals:
            yield reduce(rule, real)
            yield fold(rule, real)


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of what is compiled on first use: here none."""
    yield from ()
