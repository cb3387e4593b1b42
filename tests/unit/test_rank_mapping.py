# SPDX-License-Identifier: BSD-3-Clause
"""Parts on ranks: the same parts, with fewer links between hosts, whatever the order in which hosts have ranks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from seiche.domain import shapes
from seiche.domain.emulation import emulate_ranks
from seiche.domain.partition import partition
from seiche.domain.rank_mapping import host_numbers, links_between_hosts, ranks_of_parts


def chain(parts: int) -> np.ndarray:
    """Return the links of parts in a row, with one link between neighbours."""
    links = np.zeros((parts, parts), np.int64)
    row = np.arange(parts - 1)
    links[row, row + 1] = links[row + 1, row] = 1
    return links


def mapped(links: np.ndarray, hosts: Sequence[int]) -> int:
    ranks = ranks_of_parts(links, hosts)
    assert sorted(ranks) == list(range(len(links)))
    return links_between_hosts(links, np.asarray(hosts)[ranks])


@pytest.mark.parametrize("hosts", [[0, 1] * 4, [0, 1, 2, 3] * 2, [0, 0, 1, 1, 0, 1, 1, 0, 2, 2], [0, 1, 1, 1, 1, 0]])
def test_a_row_of_parts_is_cut_once_between_two_hosts(hosts: list[int]) -> None:
    links = chain(len(hosts))
    assert links_between_hosts(links, hosts) > mapped(links, hosts) == len(set(hosts)) - 1


def test_parts_in_the_order_of_their_hosts_stay() -> None:
    assert ranks_of_parts(chain(6), [0, 0, 0, 1, 1, 1]).tolist() == list(range(6))
    assert ranks_of_parts(chain(3), [0, 0, 0]).tolist() == [0, 1, 2]
    assert ranks_of_parts(np.zeros((4, 4), np.int64), [0, 1, 0, 1]).tolist() == [0, 1, 2, 3]


def test_the_links_between_hosts_are_the_fewest_possible_for_few_parts() -> None:
    """Of random links all groups are tried; exchanges of two parts reach at most a tenth more, on average."""
    hosts, random, found, best = [0, 1, 0, 1, 0, 1, 0, 1], np.random.default_rng(5), 0, 0
    for _ in range(20):
        links = random.integers(0, 20, (8, 8)) * (random.random((8, 8)) < 0.5)
        links = links + links.T
        np.fill_diagonal(links, 0)
        number = mapped(links, hosts)
        assert number <= links_between_hosts(links, hosts)
        found += number
        groups = itertools.combinations(range(8), 4)
        best += min(links_between_hosts(links, np.isin(np.arange(8), group)) for group in groups)
    assert best <= found <= 1.1 * best


@pytest.mark.parametrize("block", [1, 4])
def test_a_partition_for_hosts_has_the_same_parts_and_fewer_links_between_hosts(block: int) -> None:
    sites, hosts = shapes.box((32, 32, 32)), [0, 1, 2, 3] * 4
    in_order, for_hosts = partition(sites, 16, block=block), partition(sites, 16, block=block, hosts=hosts)
    pairs = np.unique(np.stack([in_order, for_hosts]), axis=1)
    assert pairs.shape == (2, 16) and sorted(pairs[1]) == list(range(16))

    def between(owner: np.ndarray) -> int:
        host = np.asarray(hosts)[owner]
        grid = np.full((32, 32, 32), -1)
        grid[tuple(sites.coords.T)] = host
        return sum(int((np.roll(grid, 1, axis) != grid).sum()) for axis in range(3))

    assert between(for_hosts) < 0.75 * between(in_order)
    np.testing.assert_array_equal(partition(sites, 16, block=block, hosts=[0] * 16), in_order)


def test_emulated_ranks_have_the_hosts_of_their_emulation() -> None:
    assert emulate_ranks(5, host_numbers, 2) == [(0, 0, 1, 1, 2)] * 5
    assert emulate_ranks(3, host_numbers) == [(0, 0, 0)] * 3
