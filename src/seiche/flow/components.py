# SPDX-License-Identifier: BSD-3-Clause
"""Connected components of the fluid, that is, of the sites joined by uncut links.

Each rank first merges adjacent sites along z into runs, of which there are far fewer than sites, and then joins the
runs. Finally the components of all ranks are joined.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.domain.sites import LinkKind
from seiche.domain.world import World
from seiche.flow.region import Region

Rows = npt.NDArray[np.int64]


def components(region: Region, world: World) -> tuple[Rows, int]:
    """Return the component (n_owned,) of each owned site and the number of components on all ranks; collective.

    Components are numbered in the order of their first sites, independently of the number of ranks.
    """
    label, remote_links = _local(region)
    first = np.full(int(label.max(initial=-1)) + 1, len(region.sites), np.int64)
    np.minimum.at(first, label, region.owned)
    first_site = first[label]
    pairs = _across(region, world, first_site, remote_links)
    first_sites = np.unique(np.concatenate([np.concatenate(world.allgather(first)), pairs.reshape(-1)]))
    component = _join(len(first_sites), *(np.searchsorted(first_sites, pairs[:, k]) for k in (0, 1)))
    return component[np.searchsorted(first_sites, first_site)], int(component.max(initial=-1)) + 1


def closed_components(region: Region, world: World, component: Rows, count: int) -> npt.NDArray[np.bool_]:
    """Return flags (count,) of the components that have walls but no iolet; collective.

    `component` (n_owned,) is the component of each site.
    """
    opened = np.any(region.sites.link_iolet[region.boundary_rows] >= 0, axis=1)
    sites = (region.boundary_sites[opened], np.flatnonzero(_at_wall(region)))
    openings, walls = (world.allreduce_sum(np.bincount(component[rows], minlength=count)) for rows in sites)
    return np.asarray((openings == 0) & (walls > 0))


def sparse_sites(region: Region, world: World, component: Rows, selected: npt.NDArray[np.bool_]) -> Rows:
    """Return the rows in `owned` of some wall sites of each component flagged in `selected` (count,); collective.

    These are the wall sites whose global number is a multiple of eight or, if a component has none of these, all its
    wall sites. The choice does not depend on the number of ranks.
    """
    at_wall = _at_wall(region)
    result, pending = np.zeros(len(region.owned), bool), selected.copy()
    for candidates in (at_wall & (region.owned % 8 == 0), at_wall):
        result |= candidates & pending[component]
        pending &= world.allreduce_sum(np.bincount(component[result], minlength=len(selected))) == 0
    return np.flatnonzero(result)


def _at_wall(region: Region) -> npt.NDArray[np.bool_]:
    """Return flags (n_owned,) of the sites that have a link cut by a wall."""
    at_wall = np.zeros(len(region.owned), bool)
    at_wall[region.boundary_sites] = np.any(region.sites.link_kind[region.boundary_rows] == LinkKind.WALL, axis=1)
    return at_wall


def _local(region: Region) -> tuple[Rows, Rows]:
    """Return the component of each owned site on this rank, and the links to other ranks as (row, global site)."""
    count, directions = len(region.owned), range(1, region.velocity_set.Q)
    z_direction = next(q for q in directions if tuple(region.velocity_set.vectors[q]) == (0, 0, 1))
    following = region.own_neighbour(z_direction)[: count - 1]
    begins = np.ones(count, bool)
    begins[following[following == np.arange(1, count)]] = False
    run = np.cumsum(begins) - 1
    runs, pairs, remote_links = int(begins.sum()), [np.zeros(0, np.int64)], [np.zeros((0, 2), np.int64)]
    for q in directions:
        row = region.own_neighbour(q)
        remote_links.append(np.stack(region.remote_neighbour(q), axis=1))
        local_rows = np.flatnonzero(row >= 0)
        labels = run[local_rows] * runs + run[row[local_rows]]
        pairs.append(labels[np.flatnonzero(np.diff(labels, prepend=-1))])  # neighbours along z join the same runs
    labels = np.unique(np.concatenate(pairs))
    return _join(runs, labels // max(runs, 1), labels % max(runs, 1))[run], np.concatenate(remote_links)


def _across(region: Region, world: World, first_site: Rows, remote_links: Rows) -> Rows:
    """Return the pairs (n, 2) of components that are joined by links between ranks, each given by its first site.

    The result contains the pairs of all ranks.
    """
    owner = region.owner[remote_links[:, 1]]
    by_rank = [remote_links[owner == rank] for rank in range(world.size)]
    received = world.alltoall([np.stack([first_site[links[:, 0]], links[:, 1]], axis=1) for links in by_rank])
    links = np.concatenate(received)
    pairs = np.stack([links[:, 0], first_site[region.rows_of(links[:, 1])]], axis=1) if len(links) else links
    return np.concatenate(world.allgather(np.unique(pairs, axis=0)))


def _join(count: int, a: Rows, b: Rows) -> Rows:
    """Return the component of each of `count` nodes joined by edges (a[k], b[k]), in the order of their first nodes."""
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
