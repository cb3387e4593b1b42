# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of ranks of a benchmark, and loads that grow with them along three axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from seiche.errors import CaseError

#: Pieces along the three axes.
Split: TypeAlias = tuple[int, int, int]


def split_of(ranks: int) -> Split:
    """Return the most even pieces along three axes for `ranks` ranks, largest first: (2, 2, 2) for 8, (2, 1, 1) for 2.

    With these, equal cubes have the smallest surface in common.
    """
    splits = [
        (ranks // (second * third), second, third)
        for third in range(1, ranks + 1)
        for second in range(third, ranks // third + 1)
        if ranks % (second * third) == 0 and ranks // (second * third) >= second
    ]
    return min(splits, key=lambda split: (sum(split), split))


def split_name(split: Sequence[int]) -> str:
    """Return a split as text: "2x2x1"."""
    return "x".join(map(str, split))


def grown(shape: Sequence[int], split: Split) -> Split:
    """Return the extents of one load of `shape` for each rank, stacked along the axes as `split`."""
    x, y, z = (extent * pieces for extent, pieces in zip(shape, split, strict=True))
    return x, y, z


def requested_counts(benchmark: str, sizes: Sequence[int], available: int, default: Sequence[int]) -> list[int]:
    """Return the numbers of ranks to measure, ascending: `sizes`, or `default` if none are requested.

    Raises:
        CaseError: a number exceeds the available ranks.
    """
    invalid = [size for size in sizes if not 1 <= size <= available]
    if invalid:
        raise CaseError(f"bench {benchmark}: cannot use {invalid[0]} ranks of {available}: choose 1 to {available}")
    return sorted(set(sizes)) or list(default)


def parse_split(text: str) -> Split:
    """Return the split written as "2x2x1".

    Raises:
        CaseError: the text is not three positive numbers.
    """
    pieces = text.split("x")
    if len(pieces) != 3 or not all(piece.isdecimal() and int(piece) > 0 for piece in pieces):
        raise CaseError(f"--split: {text!r} is not three numbers of pieces, as in 2x2x1")
    x, y, z = map(int, pieces)
    return x, y, z
