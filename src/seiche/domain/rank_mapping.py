# SPDX-License-Identifier: BSD-3-Clause
"""Which rank computes which part: parts with many common links go to ranks of one host.

A partition into one part for each rank does not know where the ranks are. Launchers number them along the hosts or
round robin. Exchanging parts among ranks changes neither the load nor the total number of cut links, but the number of
links between hosts, where messages are slowest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from seiche.domain.rank_locations import hosts_of
from seiche.domain.world import World

Links: TypeAlias = npt.NDArray[np.int64]
Numbers: TypeAlias = npt.NDArray[np.int64]

#: More parts stay on the rank of their number; a matrix of the links between all of them takes 128 MiB.
MAX_MAPPED_PARTS = 4096
#: Up to this many parts exchanges of two parts are tried, which takes O(parts^2) operations for each.
_MAX_REFINED_PARTS = 256


def host_numbers(world: World) -> tuple[int, ...]:
    """Return the host of every rank, numbered in the order of their first ranks (collective).

    Emulated ranks have the hosts of their emulation, in blocks.
    """
    if world.emulated:
        return tuple(rank // world.local_size for rank in range(world.size))
    hosts = hosts_of(world)
    numbers = {host: number for number, host in enumerate(dict.fromkeys(hosts))}
    return tuple(numbers[host] for host in hosts)


def links_between_hosts(links: Links, hosts: npt.ArrayLike) -> int:
    """Return the number of links between parts on different hosts.

    Args:
        links: links between each two parts, (parts, parts), symmetric.
        hosts: host of each part, (parts,).
    """
    host_of_part = np.asarray(hosts)
    return int(links[host_of_part[:, None] != host_of_part].sum()) // 2


def ranks_of_parts(links: Links, hosts: Sequence[int]) -> npt.NDArray[np.int32]:
    """Return the rank of every part, (parts,), a permutation; that of least links between hosts among those tried.

    Tried are the parts in their order on the ranks, in their order on the hosts (METIS numbers neighbours close to each
    other), and hosts filled one after the other with the part that has most links to those already there. Each is
    improved by exchanges of two parts, the best one first (Kernighan and Lin, Bell Syst. Tech. J. 49, 291, 1970). The
    order on the ranks is kept where nothing is better.

    Args:
        links: links between each two parts, (parts, parts), symmetric with zero diagonal.
        hosts: host of each rank, (parts,), numbers from 0.
    """
    in_order = np.asarray(hosts, np.int64)
    identity = np.arange(len(in_order), dtype=np.int32)
    if len(set(hosts)) < 2:
        return identity
    sizes = np.bincount(in_order)
    candidates = [in_order, np.repeat(np.arange(len(sizes)), sizes), _filled(links, sizes)]
    if len(in_order) <= _MAX_REFINED_PARTS:
        candidates += [_refined(links, candidate) for candidate in candidates]
    best = min(candidates, key=lambda candidate: links_between_hosts(links, candidate))
    if links_between_hosts(links, best) >= links_between_hosts(links, in_order):
        return identity
    ranks = np.empty(len(in_order), np.int32)
    ranks[np.argsort(best, kind="stable")] = np.argsort(in_order, kind="stable")
    return ranks


def _filled(links: Links, sizes: Numbers) -> Numbers:
    """Return a host for every part: each grows from the part with the fewest links to parts without a host."""
    hosts = np.full(len(links), -1, np.int64)
    for host, size in enumerate(sizes):
        to_host = np.zeros(len(links), np.int64)
        for _ in range(size):
            free = np.flatnonzero(hosts < 0)
            to_free = links[np.ix_(free, free)].sum(axis=1) if not to_host.any() else np.zeros(len(free), np.int64)
            part = free[np.lexsort((free, to_free, -to_host[free]))[0]]
            hosts[part] = host
            to_host += links[part]
    return hosts


def _refined(links: Links, hosts: Numbers) -> Numbers:
    """Return the hosts of parts after exchanges of two parts, as long as each reduces the links between hosts."""
    hosts = hosts.copy()
    is_on = (hosts[:, None] == np.arange(hosts.max() + 1)).astype(np.int64)
    while True:
        to_host = links @ is_on
        # gained[a, b]: links that a gains on its host when it goes to the host of b.
        gained = to_host[:, hosts] - np.take_along_axis(to_host, hosts[:, None], axis=1)
        gain = gained + gained.T - 2 * links
        gain[hosts[:, None] == hosts] = 0
        first, second = np.unravel_index(int(np.argmax(gain)), gain.shape)
        if gain[first, second] <= 0:
            return hosts
        for part, host in ((first, hosts[second]), (second, hosts[first])):
            is_on[part] = 0
            is_on[part, host] = 1
        hosts[first], hosts[second] = hosts[second], hosts[first]
