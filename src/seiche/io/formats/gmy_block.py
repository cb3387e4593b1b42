# SPDX-License-Identifier: BSD-3-Clause
"""One block of a `.gmy` file: words to sites and back, without a loop over sites.

Records have variable length, so a simple reader would read them one by one. Instead, the position after a link that
starts at p is computed for all p, and then that after a site (26 links, composed by repeated squaring). The
sites of the block follow by doubling: the positions of sites 0 ... n-1 determine those of n ... 2n-1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seiche.domain.sites import LinkKind

Words = npt.NDArray[np.uint32]
Positions = npt.NDArray[np.int64]
#: Number of words of a link by its kind: kind; kind, fraction; kind, iolet, fraction.
LINK_WORDS = np.array([1, 2, 3, 3], np.int64)


class MalformedBlockError(ValueError):
    """The words of a block violate the format."""


class FluidRecords(NamedTuple):
    """The n fluid sites of a block, m of them with cut links.

    `coords` is (n, 3) int32, `rows` (m,) are indices into it. `kind` is (m, 26) uint8, `fraction` (m, 26) float32.
    `iolet` (m, 26) int64 is numbered within inlets and outlets, 0 elsewhere. `normal` (m, 3) float32 is zero without a
    wall link.
    """

    coords: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int64]
    kind: npt.NDArray[np.uint8]
    iolet: npt.NDArray[np.int64]
    fraction: npt.NDArray[np.float32]
    normal: npt.NDArray[np.float32]


def decode_block(words: Words, edge: int) -> FluidRecords:
    """Read the `edge`^3 sites of a block; raises MalformedBlockError."""
    end = len(words)
    next_link = _next_link(words)
    next_site = _next_site(words, next_link)
    starts = _walk(next_site, edge**3)
    if starts.max() >= end or next_site[starts[-1]] != end:
        raise MalformedBlockError("its records do not fill it exactly: an unknown flag or link kind, or a wrong length")
    sites = np.flatnonzero(words[starts] == 1)
    start = starts[sites]
    coords = np.stack(np.unravel_index(sites, (edge, edge, edge)), axis=1).astype(np.int32)
    rows = np.flatnonzero(next_site[start] - start > 28)

    kind = np.zeros((len(rows), 26), np.uint8)
    iolet = np.zeros((len(rows), 26), np.int64)
    fraction = np.zeros((len(rows), 26), np.float32)
    padded = np.concatenate([words, np.zeros(2, np.uint32)])
    values = padded.view(np.float32)
    position = start[rows] + 1
    for k in range(26):
        kind[:, k] = padded[position]
        opening = kind[:, k] >= LinkKind.INLET
        iolet[:, k] = np.where(opening, padded[position + 1], 0)
        fraction[:, k] = np.where(kind[:, k] == LinkKind.NONE, np.float32(0.0), values[position + 1 + opening])
        position = next_link[position]
    has_normal = padded[position] == 1
    if np.any(has_normal != (kind == LinkKind.WALL).any(axis=1)):
        raise MalformedBlockError("a site has a normal but no wall link, or a wall link but no normal")
    normal = np.zeros((len(rows), 3), np.float32)
    for axis in range(3):
        normal[has_normal, axis] = values[position[has_normal] + 1 + axis]
    return FluidRecords(coords, rows, kind, iolet, fraction, normal)


def _next_link(words: Words) -> Positions:
    """Return for each position the one after a link that starts there; len(words) + 1 where none can start."""
    end = len(words)
    defect = end + 1
    next_position = np.full(end + 2, defect, np.int64)
    valid = np.flatnonzero(words <= LinkKind.OUTLET)
    next_position[valid] = valid + LINK_WORDS[words[valid]]
    return np.minimum(next_position, defect)


def _next_site(words: Words, next_link: Positions) -> Positions:
    """Return for each position the one after a site that starts there; len(words) + 1 where none can start."""
    end = len(words)
    defect = end + 1
    two = next_link[next_link]
    eight = _squared(_squared(two))
    flag = two[eight[_squared(eight)]]  # 16 links, then 8, then 2
    normal = np.full(end + 2, 2, np.uint32)
    normal[:end] = words
    site_end = np.where(normal[flag] == 0, flag + 1, np.where(normal[flag] == 1, flag + 4, defect))
    next_position = np.full(end + 2, defect, np.int64)
    solid, fluid = np.flatnonzero(words == 0), np.flatnonzero(words == 1)
    next_position[solid] = solid + 1
    next_position[fluid] = site_end[fluid + 1]
    return np.minimum(next_position, defect)


def _squared(jump: Positions) -> Positions:
    return jump[jump]


def _walk(jump: Positions, count: int) -> Positions:
    """Return the first `count` positions of the sequence 0, jump[0], jump[jump[0]] ..."""
    walk = np.zeros(1, np.int64)
    while len(walk) < count:
        walk = np.concatenate([walk, jump[walk]])
        jump = _squared(jump)
    return walk[:count]


def encode_block(records: FluidRecords, edge: int) -> Words:
    """Return the words of a block; the inverse of `decode_block`."""
    site = np.ravel_multi_index(tuple(records.coords.T.astype(np.int64)), (edge, edge, edge))
    link_words = LINK_WORDS[records.kind]
    has_normal = (records.kind == LinkKind.WALL).any(axis=1)
    size = np.ones(edge**3, np.int64)
    size[site] = 28
    size[site[records.rows]] = 2 + link_words.sum(axis=1) + 3 * has_normal
    starts = np.cumsum(size) - size
    words = np.zeros(int(size.sum()), np.uint32)
    values = words.view(np.float32)
    words[starts[site]] = 1
    start = starts[site[records.rows]]
    position = start[:, None] + 1 + np.cumsum(link_words, axis=1) - link_words
    words[position] = records.kind
    is_cut, opening = records.kind != LinkKind.NONE, records.kind >= LinkKind.INLET
    words[position[opening] + 1] = records.iolet[opening]
    values[(position + 1 + opening)[is_cut]] = records.fraction[is_cut]
    flag = start + 1 + link_words.sum(axis=1)
    words[flag] = has_normal
    for axis in range(3):
        values[flag[has_normal] + 1 + axis] = records.normal[has_normal, axis]
    return words
