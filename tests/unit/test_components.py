# SPDX-License-Identifier: BSD-3-Clause
"""Connected components of the fluid, and the blocks of links that belong to one component each."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from seiche.domain.site_owners import SiteOwners
from seiche.domain.sites import SiteSet
from seiche.domain.world import World
from seiche.flow.components import components
from seiche.flow.region import Region
from seiche.flow.wall_mass import blocks
from seiche.kernels.registry.walls import WALL_BLOCK


def scattered(shape: tuple[int, int, int], share: float, seed: int) -> tuple[SiteSet, np.ndarray]:
    """Return the fluid sites of a random box, and a mask of them; every link out of the fluid is cut."""
    fluid = np.random.default_rng(seed).random(shape) < share
    return SiteSet(shape, np.argwhere(fluid).astype(np.int32), 1.0), fluid


@pytest.mark.parametrize("share", [0.05, 0.2, 0.6])
def test_components_are_those_of_an_image(share: str):
    sites, fluid = scattered((9, 11, 13), share, 3)
    result, count = components(Region(sites, SiteOwners.of(np.zeros(len(sites), np.int32)), 0), World.serial())
    structure = ndimage.generate_binary_structure(3, 2)  # D3Q19: faces and edges
    labels, expected = ndimage.label(fluid, structure)
    assert count == expected
    pairs = set(zip(result.tolist(), labels[fluid].tolist(), strict=True))
    assert len(pairs) == count
    first = [int(np.flatnonzero(result == k)[0]) for k in range(count)]
    assert first == sorted(first)


def test_periodic_sides_join_components():
    coords = np.array([[0, y, z] for y in (0, 1, 4, 5) for z in (0, 1, 7)], np.int32)
    owner = np.zeros(len(coords), np.int32)
    counts = []
    for periodic in ((False, False, False), (False, True, False), (False, True, True)):
        sites = SiteSet((1, 6, 8), coords, 1.0, periodic=periodic)
        counts.append(components(Region(sites, SiteOwners.of(owner), 0), World.serial())[1])
    assert counts == [4, 2, 1]


def test_blocks_hold_one_component_and_end_with_the_interior():
    component = np.concatenate([np.repeat([0, 2], [WALL_BLOCK + 5, 3]), np.repeat([0, 1], [7, 2 * WALL_BLOCK])])
    interior = WALL_BLOCK + 8
    first, part, begun = blocks(component, interior)
    assert first[0] == 0
    assert first[-1] == len(component)
    assert (np.diff(first) > 0).all()
    assert np.diff(first).max() <= WALL_BLOCK
    assert first[begun] == interior
    for begin, end, number in zip(first[:-1], first[1:], part, strict=True):
        assert (component[begin:end] == number).all()


def test_blocks_of_nothing_are_none():
    first, part, begun = blocks(np.zeros(0, np.int64), 0)
    assert first.tolist() == [0]
    assert len(part) == begun == 0
