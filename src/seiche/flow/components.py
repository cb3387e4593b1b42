# SPDX-License-Identifier: BSD-3-Clause
"""Connected components of the fluid: sites that populations can reach from each other.

Sites of a rank are joined as runs along z, of which there are far fewer, and then across ranks.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.flow.region import Region

Rows = npt.NDArray[np.int64]


def components(region: Region, world: World) -> tuple[Rows, int]:
    """Return the component (n_owned,) of each owned site, and the number of components of all ranks; collective.

    Components are numbered by their first site, so that every number of ranks finds the same numbers.
    """
    label, foreign = _local(region)
    first = np.full(int(label.max(initial=-1)) + 1, len(region.sites), np.int64)
    np.minimum.at(first, label, region.owned)
    name = first[label]
    beyond = _across(region, world, name, foreign)
    every = np.unique(np.concatenate([np.concatenate(world.allgather(first)), beyond.reshape(-1)]))
    whole = _join(len(every), *(np.searchsorted(every, beyond[:, k]) for k in (0, 1)))
    return whole[np.searchsorted(every, name)], int(whole.max(initial=-1)) + 1


def _local(region: Region) -> tuple[Rows, Rows]:
    """Return the component of each owned site among the rank's own, and links to others: rows of (row, global site)."""
    count, half = len(region.owned), range(1, region.velocity_set.Q)
    along = next(q for q in half if tuple(region.velocity_set.vectors[q]) == (0, 0, 1))
    after = region.rows_of(region.neighbour(along))
    begins = np.ones(count, bool)
    begins[after[: count - 1][after[: count - 1] == np.arange(1, count)]] = False
    run = np.cumsum(begins) - 1
    runs, pairs, foreign = int(begins.sum()), [np.zeros(0, np.int64)], [np.zeros((0, 2), np.int64)]
    for q in half:
        site = region.neighbour(q)
        row = region.rows_of(site)
        away = np.flatnonzero((row < 0) & (site >= 0))
        foreign.append(np.stack([away, site[away]], axis=1))
        own = np.flatnonzero(row >= 0)
        joined = run[own] * runs + run[row[own]]
        pairs.append(joined[np.flatnonzero(np.diff(joined, prepend=-1))])  # neighbours along z join the same runs
    joined = np.unique(np.concatenate(pairs))
    return _join(runs, joined // max(runs, 1), joined % max(runs, 1))[run], np.concatenate(foreign)


def _across(region: Region, world: World, name: Rows, foreign: Rows) -> Rows:
    """Return the pairs (n, 2) of names of components of all ranks that a link between two ranks joins."""
    owner = region.owner[foreign[:, 1]]
    asked = [foreign[owner == rank] for rank in range(world.size)]
    asking = world.alltoall([np.stack([name[links[:, 0]], links[:, 1]], axis=1) for links in asked])
    links = np.concatenate(asking)
    pairs = np.stack([links[:, 0], name[region.rows_of(links[:, 1])]], axis=1) if len(links) else links
    return np.concatenate(world.allgather(np.unique(pairs, axis=0)))


def _join(count: int, a: Rows, b: Rows) -> Rows:
    """Return the component of each of `count` things, of which a[k] and b[k] are joined, numbered by their first."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not count:
        return np.zeros(0, np.int64)
    graph = coo_array((np.ones(len(a), np.int8), (a, b)), shape=(count, count))
    _, label = connected_components(graph, directed=False)
    _, first = np.unique(label, return_index=True)
    order = np.empty(len(first), np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return np.asarray(order[label], np.int64)
