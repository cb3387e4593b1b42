# SPDX-License-Identifier: BSD-3-Clause
"""Sites and other arrays are the same on every rank, with and without memory that ranks of a host share."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from flow_cases import tilted_tube

from seiche.domain import shared_memory
from seiche.domain.partition import owners, owners_of
from seiche.domain.rank_locations import hosts_of
from seiche.domain.rank_mapping import host_numbers
from seiche.domain.set_up_ranks import set_up_on
from seiche.domain.shared_memory import shared_array
from seiche.domain.sharing import on_root
from seiche.domain.site_owners import SiteOwners
from seiche.domain.sites import SiteSet
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.flow.region import Region

NO_MEMORY = Path("/no such folder")


@pytest.mark.ranks(1, 2, 3)
@pytest.mark.parametrize("memory", [shared_memory.SHARED_MEMORY, NO_MEMORY])
def test_sites_of_all_ranks_are_those_of_one(memory: Path, monkeypatch: pytest.MonkeyPatch):
    world = World.from_mpi()
    monkeypatch.setattr(shared_memory, "SHARED_MEMORY", memory)
    monkeypatch.setattr(shared_memory, "MIN_SHARED_BYTES", 1)
    expected = tilted_tube()
    with set_up_on(world):
        sites = tilted_tube()
    for item in fields(SiteSet):
        np.testing.assert_array_equal(getattr(sites, item.name), getattr(expected, item.name), err_msg=item.name)
    assert sites.fingerprint == expected.fingerprint
    assert world.size == 1 or not sites.coords.flags.writeable
    owner, single = owners(sites, world), owners_of(expected, world.size, hosts=host_numbers(world))
    np.testing.assert_array_equal(owner.expanded(), single.expanded())
    np.testing.assert_array_equal(owner.start, single.start)


@pytest.mark.ranks(2, nodes=("2+1",))
def test_ranks_of_a_host_map_the_same_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    world = World.from_mpi()
    monkeypatch.setattr(shared_memory, "MIN_SHARED_BYTES", 1)
    monkeypatch.setattr(shared_memory, "SHARED_MEMORY", tmp_path)  # without the files of other tests
    array = shared_array(world, np.arange(10.0).reshape(2, 5) if world.rank == 0 else None)
    np.testing.assert_array_equal(array, np.arange(10.0).reshape(2, 5))
    world.barrier()
    if world.rank == 0:
        array.flags.writeable = True
        array[1, 4] = -1.0
    world.barrier()
    hosts = hosts_of(world)
    assert array[1, 4] == (-1.0 if hosts[world.rank] == hosts[0] else 9.0)
    assert list(tmp_path.iterdir()) == []  # the file has no name any more
    empty = shared_array(world, np.zeros((0, 3), np.int32) if world.rank == 0 else None)
    assert empty.shape == (0, 3)


@pytest.mark.ranks(2, nodes=("2+1",))
@pytest.mark.parametrize("content", [bytes(80), b"short"], ids=["same length", "shorter"])
def test_a_file_of_the_same_name_in_another_container_is_not_mapped(
    content: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    world = World.from_mpi()
    monkeypatch.setattr(shared_memory, "MIN_SHARED_BYTES", 1)
    other = tmp_path / "seiche-other"
    other.write_bytes(content)
    if world.local_rank > 0:
        open_file = os.open
        monkeypatch.setattr(shared_memory.os, "open", lambda _, flags: open_file(other, flags))
    array = shared_array(world, np.arange(10.0) if world.rank == 0 else None)
    np.testing.assert_array_equal(array, np.arange(10.0))
    world.barrier()
    if world.rank == 0:
        array.flags.writeable = True
        array[4] = -1.0
    world.barrier()
    assert array[4] == (-1.0 if world.rank == 0 else 4.0)
    assert other.read_bytes() == content


@pytest.mark.ranks(2)
def test_a_file_for_which_there_is_no_memory_is_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    world = World.from_mpi()
    monkeypatch.setattr(shared_memory, "MIN_SHARED_BYTES", 1)
    monkeypatch.setattr(shared_memory, "SHARED_MEMORY", tmp_path)

    def fail(*_: int) -> None:
        raise OSError("no memory")

    monkeypatch.setattr(shared_memory.os, "posix_fallocate", fail)
    array = shared_array(world, np.arange(10.0) if world.rank == 0 else None)
    np.testing.assert_array_equal(array, np.arange(10.0))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.ranks(1, 3)
def test_what_rank_zero_rejects_is_rejected_by_all():
    world = World.from_mpi()

    def refuse() -> None:
        raise CaseError("too many ranks")

    with pytest.raises(CaseError, match=r"^too many ranks$"):
        on_root(world, refuse)
    assert on_root(world, lambda: world.rank) == 0


@pytest.mark.parametrize("wraps", [(True, True, True), (False, True, False), (False, False, False)])
def test_neighbours_of_a_part_are_those_of_the_whole(wraps: tuple[bool, bool, bool]):
    random = np.random.default_rng(3)
    coords = np.argwhere(random.random((7, 9, 8)) < 0.6).astype(np.int32)
    sites = SiteSet((7, 9, 8), coords, 1.0, periodic=wraps)
    owner = random.integers(0, 3, len(sites)).astype(np.int32)
    owner[coords[:, 0] < 4] = 0  # rank 1 and 2 have boxes of their own
    for rank in range(4):  # rank 3 has nothing
        region = Region(sites, SiteOwners.of(owner), rank)
        np.testing.assert_array_equal(region.rows_of(region.owned), np.arange(len(region.owned)))
        others = np.append(np.flatnonzero(owner != rank), -1)
        assert np.all(region.rows_of(others) == -1)
        for q in range(1, 19):
            expected = sites.find(region.coords + region.velocity_set.vectors[q])
            np.testing.assert_array_equal(region.neighbour(q, np.arange(len(region.owned))), expected)
            np.testing.assert_array_equal(region.own_neighbour(q), region.rows_of(expected))
            remote = np.flatnonzero((expected >= 0) & (owner[expected] != rank))
            rows, neighbours = region.remote_neighbour(q)
            np.testing.assert_array_equal(rows, remote)
            np.testing.assert_array_equal(neighbours, expected[remote])
