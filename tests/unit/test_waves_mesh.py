# SPDX-License-Identifier: BSD-3-Clause
"""Forests and meshes: counts known from p4est, partitions, ghosts, leaves made by each rank alone."""

from __future__ import annotations

import time

import numpy as np
import pytest

from seiche.errors import CaseError
from seiche.waves.forest import Brick, Forest, cuts, morton_keys
from seiche.waves.mesh import GHOST, LOCAL, NONE, Mesh, corners_of
from seiche.waves.sizes import Generator, SizeField, elements_per_wavelength, slabs
from seiche.waves.trees import stretched

#: base level, refinements around (1/3, 1/3, 1/3), periodic; leaves before and after balancing, conforming and hanging
#: faces, boundary faces; ghosts of 2, 3, 4 ranks: as p4est 2.2 counts them.
COUNTS = [
    (2, 2, True, 78, 99, 237, 24, 0, [30, 36], [30, 55, 43], [36, 38, 58, 35]),
    (2, 2, False, 78, 99, 192, 21, 105, [14, 27], [18, 37, 25], [24, 28, 41, 17]),
    (3, 1, True, 519, 519, 1542, 6, 0, [128, 128], [143, 210, 145], [126, 132, 138, 130]),
    (3, 3, False, 533, 596, 1461, 54, 384, [73, 75], [59, 116, 73], [48, 91, 114, 71]),
    (1, 4, True, 36, 141, 273, 60, 0, [31, 40], [43, 69, 46], [49, 25, 55, 53]),
]


def around_a_point(base: int, extra: int, periodic: bool) -> Forest:
    """Return the unit cube at level `base`, refined `extra` times around (1/3, 1/3, 1/3), not balanced."""
    forest = Forest.uniform(Brick((1, 1, 1), (periodic,) * 3), base)
    point = (1 << forest.brick.depth) // 3
    for _ in range(extra):
        inside = ((forest.corner <= point) & (point < forest.corner + forest.side[:, None])).all(1)
        forest = forest.refined(inside & (forest.level < base + extra))
    return forest


@pytest.mark.parametrize("case", COUNTS, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_leaves_faces_and_ghosts_are_counted_as_by_p4est(case: tuple) -> None:
    base, extra, periodic, before, after, conforming, hanging, boundary, *parts = case
    forest = around_a_point(base, extra, periodic)
    assert len(forest) == before
    forest = forest.balanced()
    assert len(forest) == after
    mesh = Mesh.of_forest(forest)
    large = mesh.kinds[:, :, 1] != NONE
    assert (mesh.child >= 0).sum() == 4 * hanging == 4 * large.sum()
    assert (mesh.kinds[:, :, 0] == NONE).sum() == boundary
    assert (mesh.kinds[:, :, 0] == LOCAL).sum() == 2 * conforming + 5 * hanging
    for ranks, ghosts in zip((2, 3, 4), parts, strict=True):
        meshes = [Mesh.of_forest(forest, rank=rank, ranks=ranks) for rank in range(ranks)]
        shares = after * np.arange(ranks + 1) // ranks
        assert [mesh.count for mesh in meshes] == list(np.diff(shares))
        assert [mesh.ghosts for mesh in meshes] == ghosts


def test_neighbours_are_mutual_and_hanging_positions_agree() -> None:
    mesh = Mesh.of_forest(around_a_point(2, 2, True).balanced())
    for element in range(mesh.count):
        for face in range(6):
            remote = mesh.neighbours[element, face, 0]
            child = mesh.child[element, face]
            assert mesh.neighbours[remote, face ^ 1, max(child, 0)] == element
            step = mesh.level[remote] - mesh.level[element]
            assert step == (-1 if child >= 0 else 1 if mesh.neighbours[element, face, 1] >= 0 else 0)


def random_sizes(seed: int, brick: Brick) -> SizeField:
    """Return a size field of a few random points."""
    rng = np.random.default_rng(seed)
    points = rng.random((3, brick.dim)) * brick.trees
    return SizeField(points, points, rng.uniform(0.02, 0.2, 3))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("trees", "periodic"), [((2, 1, 1), (True, False, True)), ((2, 3), (False, False))])
def test_graded_sizes_give_balanced_leaves_and_each_rank_makes_its_own(
    seed: int, trees: tuple[int, ...], periodic: tuple[bool, ...]
) -> None:
    brick = Brick(trees, periodic)
    generator = Generator(brick, random_sizes(seed, brick))
    full = generator.leaves()
    assert len(full.balanced()) == len(full)
    assert np.all(np.diff(full.key.astype(np.int64)) > 0)
    ends = cuts(np.ones(len(full)), 3)
    for rank in range(3):
        first, last = ends[rank], ends[rank + 1]
        high = int(full.key[last]) if last < len(full) else 1 << 63
        part = generator.leaves(int(full.key[first]), high)
        assert np.array_equal(part.key, full.key[first:last])
        own = Mesh.of_forest(full, rank=rank, ranks=3)
        single = Mesh(part, generator.leaves_of, full.key[ends[:-1]], rank=rank, first=int(first), total=len(full))
        assert np.array_equal(own.neighbours, single.neighbours)
        assert np.array_equal(own.kinds, single.kinds)
        assert np.array_equal(own.ghost_owner, single.ghost_owner)
        assert np.array_equal(own.level, single.level)
        assert np.all(own.ghost_owner != rank)
        assert (own.kinds == GHOST).any() == (own.ghosts > 0)


def test_the_mesh_of_a_size_field_is_no_coarser_than_requested() -> None:
    brick = Brick((1, 1, 1), (False,) * 3)
    mesh = Mesh.generate(brick, slabs([0.0, 0.25, 1.0], [0.07, 0.3], 2, 3), tree_size=4.0, origin=(-2.0, -2.0, 0.0))
    upper = mesh.lower[:, 2] < 1.0
    assert mesh.sizes[upper].max() <= 0.07 * 4.0
    assert mesh.sizes[~upper].max() <= 0.3 * 4.0 + 1e-12
    assert np.isclose(np.prod(mesh.sizes, axis=1).sum(), 64.0)
    assert mesh.total == mesh.count == len(mesh.level)


def test_weights_move_the_cuts() -> None:
    weights = np.ones(12)
    assert list(cuts(weights, 3)) == [0, 4, 8, 12]
    weights[:4] = 4.0
    assert list(cuts(weights, 3)) == [0, 2, 4, 12]
    assert list(cuts(np.array([100.0, 1, 1]), 3)) == [0, 1, 2, 3]


def test_keys_give_their_corners_back() -> None:
    rng = np.random.default_rng(0)
    for dim, bits in ((2, 31), (3, 21)):
        corners = rng.integers(0, 1 << bits, (100, dim))
        assert np.array_equal(corners_of(morton_keys(corners), dim), corners)


def test_points_on_faces_belong_to_all_elements_around() -> None:
    mesh = Mesh.of_forest(Forest.uniform(Brick((2, 2), (False, True)), 0), tree_size=(1.0, 3.0))
    assert len(mesh.elements_at((0.5, 1.0))[0]) == 1
    assert len(mesh.elements_at((1.0, 1.0))[0]) == 2
    assert len(mesh.elements_at((1.0, 3.0))[0]) == 4
    assert len(mesh.elements_at((0.5, 0.0))[0]) == 2  # across the periodic side
    element, position = mesh.elements_at((2.0, 1.5))
    assert len(element) == 1
    assert np.allclose(position, [[1.0, 0.0]])


def test_trees_may_have_widths_of_their_own() -> None:
    """Volume, neighbours' corners, points on both sides of a face, and the place in an element, on a stretched axis."""
    widths = stretched(2, 1.0, (1, 2), growth=1.5)
    assert np.allclose(widths, [1.5, 1.0, 1.0, 1.5, 2.25])
    forest = Forest.uniform(Brick((5, 2), (False, False)), 0)
    mesh = Mesh.of_forest(forest.refined(forest.corner[:, 1] == 0), tree_size=(widths, 2.0), origin=(-1.5, 0.0))
    lower, upper = mesh.extent
    assert np.allclose(lower, [-1.5, 0.0]) and np.allclose(upper, [5.75, 4.0])
    assert np.isclose(np.prod(mesh.sizes, axis=1).sum(), 7.25 * 4.0)
    for element in range(mesh.count):
        middle = mesh.lower[element] + mesh.sizes[element] * [0.25, 0.5]
        result, position = mesh.elements_at(middle)
        assert result.tolist() == [element]
        assert np.allclose(position, [[-0.5, 0.0]])
        held, where = mesh.locate(middle[None])
        assert held.tolist() == [element] and np.allclose(where, [[-0.5, 0.0]])
        for axis in range(2):
            beyond = int(mesh.neighbours[element, 2 * axis + 1, 0])
            if beyond >= 0:
                assert np.isclose(mesh.lower[beyond, axis], mesh.lower[element, axis] + mesh.sizes[element, axis])
    assert len(mesh.elements_at((3.5, 3.0))[0]) == 2
    assert len(mesh.elements_at(upper)[0]) == 1


def test_points_on_a_side_that_is_a_rounded_sum_belong_to_the_mesh() -> None:
    """Ten trees of 0.1 end at 0.9999999999999999; a point at 1 lies on that side, one a thousandth beyond does not."""
    forest = Forest.uniform(Brick((10, 1), (False, False)), 0)
    mesh = Mesh.of_forest(forest, tree_size=([0.1] * 10, 1.0))
    below = Mesh.of_forest(forest, tree_size=([0.1] * 10, 1.0), origin=(-mesh.extent[1][0], 0.0))
    assert mesh.extent[1][0] != 1.0
    for side, outwards in ((mesh, np.array([1e-15, 0.0])), (below, np.array([0.0, 1e-16]))):
        element, position = side.elements_at(side.extent[1] + outwards)
        assert element.tolist() == [9] and np.array_equal(position, [[1.0, 1.0]])
        element, position = side.elements_at(side.extent[0] - outwards)
        assert element.tolist() == [0] and np.array_equal(position, [[-1.0, -1.0]])
    for point in ((1.001, 0.5), (-0.001, 0.5), (0.5, 1.001), (np.nan, 0.5), (0.5,), (np.inf, 0.0)):
        with pytest.raises(CaseError, match="is outside the mesh"):
            mesh.elements_at(point)


def test_elements_per_wavelength_interpolates_its_table() -> None:
    assert np.isclose(elements_per_wavelength(5, 1e-3), 2.23)
    assert 1.63 < elements_per_wavelength(5, 3e-3) < 2.23
    assert elements_per_wavelength(5, 1e-4) == pytest.approx(3.01)


def test_six_hundred_thousand_elements_are_meshed_in_seconds() -> None:
    """The requirement is a million in a minute on two cores; 30 s allow for busy machines."""
    sizes = slabs([0.0, 0.5, 1.0], [1 / 32 * 1.001, 1 / 64 * 1.001], axis=2, dim=3)
    begin = time.process_time()
    mesh = Mesh.generate(Brick((2, 2, 1), (False,) * 3), sizes)
    # The layer of boxes below the finer half touches it, so that these are as small.
    assert mesh.total == 4 * (32 * 32 * 15 + 64 * 64 * 34)
    assert (mesh.child >= 0).sum() == 4 * 64 * 64 and time.process_time() - begin < 30
