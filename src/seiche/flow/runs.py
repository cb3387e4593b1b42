# SPDX-License-Identifier: BSD-3-Clause
"""Runs of consecutive slots in an adjacency table, for the sweeps of the in-place list on a CPU.

Sites that follow each other in the list mostly have neighbours that do so, too. A sweep then loads and stores vectors
instead of single values, and reads one slot for a run of `RUN` sites instead of `RUN` slots.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.domain.host_passes import offsets, run_pass
from seiche.kernels.registry.sites import slot_runs

#: Sites of a run: `RunInPlace::sites` in kernels/flow/layout_list.hpp and `SlotRuns::lanes_of_run` in
#: kernels/sites/neighbours.hpp.
RUN = 16


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
    counts = np.zeros(runs, np.int32)
    common = {"adjacency": np.ascontiguousarray(adjacency), "stride": adjacency.shape[1], "directions": directions}
    run_pass(slot_runs(fill=False), runs, first=None, counts=counts, rows=None, pieces=None, **common)
    first = offsets(counts)
    pieces = np.empty((first[-1], 2), np.uint32)
    run_pass(slot_runs(fill=True), runs, first=first, counts=None, rows=rows, pieces=pieces, **common)
    return rows, pieces
