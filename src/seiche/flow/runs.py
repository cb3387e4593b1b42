# SPDX-License-Identifier: BSD-3-Clause
"""Runs of consecutive slots in an adjacency table, for the sweeps of the in-place list on a CPU.

Sites that follow each other in the list mostly have neighbours that do so, too. A sweep then loads and stores vectors
instead of single values, and reads one slot for a run of `RUN` sites instead of `RUN` slots.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

#: Sites of a run (`RunInPlace::sites` in kernels/flow/layout_list.hpp).
RUN = 16
#: Runs processed per pass.
_CHUNK = 1 << 15
#: Eight true values.
_EIGHT = np.uint64(0x0101010101010101)


def runs_of(adjacency: npt.NDArray[np.uint32], count: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """Return the tables of the runs that are complete among the first `count` sites.

    Args:
        adjacency: the slot of each site along each direction but the rest direction (Q - 1, n), n >= count.
        count: number of sites.

    Returns:
        `rows` (max(1, count // RUN), Q): the first slot along each direction, or the index of the first piece if the
        slots are not consecutive. Bit q of column 0 is set for these directions. `pieces` (m, 2): the first slot of
        each piece with consecutive slots, and the number in the run of the site after its last one.
    """
    directions, runs = len(adjacency), count // RUN
    rows = np.zeros((max(1, runs), directions + 1), np.uint32)
    pieces: list[npt.NDArray[np.uint32]] = [np.zeros((0, 2), np.uint32)]
    number = 0
    for begin in range(0, runs, _CHUNK):
        end = min(begin + _CHUNK, runs)
        slots = adjacency[:, begin * RUN : end * RUN].reshape(directions, end - begin, RUN)
        follows = np.ones(slots.shape, bool)
        np.equal(slots[..., 1:], slots[..., :-1] + np.uint32(1), out=follows[..., 1:])
        broken = (follows.view(np.uint64) != _EIGHT).any(axis=2).T
        run, q = np.nonzero(broken)
        lanes, starts = slots[q, run], ~follows[q, run]
        starts[:, 0] = True
        table = rows[begin:end]
        table[:, 1:] = slots[..., 0].T
        table[:, 0] = broken @ (np.uint32(1) << np.arange(1, directions + 1, dtype=np.uint32))
        sizes = starts.sum(axis=1)
        table[run, q + 1] = number + np.cumsum(sizes) - sizes
        pieces.append(_pieces(lanes, starts))
        number += len(pieces[-1])
    return rows, np.concatenate(pieces)


def _pieces(slots: npt.NDArray[np.uint32], starts: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    """Return slot and end (m, 2) of the pieces that begin where `starts` (n, RUN) is set."""
    first = np.flatnonzero(starts)
    run_end = (first // RUN + 1) * RUN
    end = np.minimum(np.append(first[1:], starts.size), run_end) - (run_end - RUN)
    return np.stack([slots.reshape(-1)[first], end.astype(np.uint32)], axis=1).astype(np.uint32)
