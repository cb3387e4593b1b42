# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that sum observed values over the sites of a rank, `kernels/reduce/`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from .spec import CPP_TYPE, REALS, KernelSpec, Member, Real

Rule = Literal["Totals", "VelocityChange", "VelocitySum"]

#: Sites that one block of threads sums (`reduce_block` in the header), and the words of its result.
BLOCK = 2048
WORDS: dict[Rule, int] = {"Totals": 4, "VelocityChange": 2, "VelocitySum": 3}
#: Word 3 of the totals: this constant minus the first row that is not finite (`not_finite` in the header).
NOT_FINITE = 1 << 62
_LANES = 128

#: Description of the kernels in the CPU table.
BUILT = "all kernels for sums"


def reduce(rule: Rule, real: Real) -> KernelSpec:
    """Sum the sites of each block."""
    rows: tuple[Member, ...] = (("observed", "ptr"), ("stride", "int64"), ("count", "int64"), ("out", "ptr"))
    if rule == "VelocityChange":
        rows = (*rows, ("before", "ptr"), ("before_stride", "int64"))
    elif rule == "Totals":
        rows = (*rows, ("first", "int64"))
    return _spec(f"Reduce<{rule}<{CPP_TYPE[real]}>,false>", rows)


def fold(rule: Rule, real: Real) -> KernelSpec:
    """Sum the blocks."""
    rows: tuple[Member, ...] = (("partial", "ptr"), ("count", "int64"), ("out", "ptr"))
    return _spec(f"Reduce<Fold<{rule}<{CPP_TYPE[real]}>>,true>", rows)


def _spec(name: str, rule: tuple[Member, ...]) -> KernelSpec:
    return KernelSpec(name, "reduce/totals.hpp", (("rule", rule),), threads=_LANES, team=True)


def built_kernels() -> Iterator[KernelSpec]:
    """Yield the specialisations of the CPU table."""
    for rule in WORDS:
        for real in REALS:
            yield reduce(rule, real)
            yield fold(rule, real)
