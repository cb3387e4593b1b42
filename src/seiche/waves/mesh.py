# SPDX-License-Identifier: BSD-3-Clause
"""The elements of a rank, its ghosts and the neighbour table (theory/waves, section 6).

Faces are numbered 2 axis + (0: low side, 1: high side). For each element, face and child the table has an index and a
kind. A conforming face has one neighbour (child 0), and so has the fine side of a hanging face, with its position on
the large face. The coarse side of a hanging face has 2^(dim - 1) neighbours.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.waves.forest import Brick, Forest, Integers, Keys, cuts, morton_keys
from seiche.waves.sizes import Generator, SizeField
from seiche.waves.trees import Trees, TreeSize

#: Kinds of a neighbour: an element of this rank, one of another rank, none.
LOCAL, GHOST, NONE = 0, 1, 2

#: Distance, in units of the finest element, below which a point is treated as on a face.
_ON_FACE = 1e-6

#: Function that returns the corners and levels of the leaves that contain points.
_Locate = Callable[[Integers], tuple[Integers, Integers]]


class Mesh:
    """The leaves of a forest that one rank owns, as boxes in space.

    Attributes:
        brick: the trees of the forest.
        trees: positions of the trees, in the caller's unit of length.
        count: number of elements of this rank; `total` is that of all ranks.
        number: position of each owned element along the global curve, (count,). Each rank owns an interval of it and
            stores elements without neighbours on other ranks first; both groups follow the curve.
        interior: number of elements without neighbours on other ranks.
        corner, level: integer corners (count + ghosts, dim) and levels of owned elements, then of ghosts.
        ghost_owner: rank of each ghost, (ghosts,).
        neighbours: index of the neighbour, -1 without one, (count, 2 dim, 2^(dim - 1)) int32.
        kinds: LOCAL, GHOST or NONE, same shape, int8.
        child: position on the coarse face where this is the fine side, else -1, (count, 2 dim) int8.
    """

    def __init__(
        self,
        leaves: Forest,
        locate: _Locate,
        cut_keys: Keys,
        *,
        rank: int,
        first: int,
        total: int,
        tree_size: TreeSize = 1.0,
        origin: Sequence[float] | float = 0.0,
    ) -> None:
        """Build the tables of `leaves`; rank r owns the keys from cut_keys[r] to below cut_keys[r + 1].

        Raises CaseError for a tree without extent, or leaves that are not balanced.
        """
        self.brick, self.total = leaves.brick, total
        self.trees = Trees(leaves.brick, tree_size, origin)
        self.count = len(leaves)
        self.neighbours: npt.NDArray[np.int32]
        self.kinds: npt.NDArray[np.int8]
        self.child: npt.NDArray[np.int8]
        self.corner: Integers
        self.level: Integers
        self._build(leaves, locate, cut_keys, rank)
        self._inner_first(first)

    @staticmethod
    def of_forest(
        forest: Forest,
        *,
        rank: int = 0,
        ranks: int = 1,
        tree_size: TreeSize = 1.0,
        origin: Sequence[float] | float = 0.0,
    ) -> Mesh:
        """Return the elements of `rank` in a balanced forest of which every rank has all leaves.

        Args:
            forest: all leaves.
            rank: number of the rank.
            ranks: number of ranks; each gets an equal number of leaves.
            tree_size: sides of a tree; for an axis also a list of the widths of its trees.
            origin: lower corner of the brick.

        Raises:
            CaseError: more ranks than leaves, or leaves that are not balanced.
        """
        ends = cuts(np.ones(len(forest)), ranks)

        def locate(points: Integers) -> tuple[Integers, Integers]:
            leaves = forest.leaf_of(points)
            return forest.corner[leaves], forest.level[leaves]

        first, last = int(ends[rank]), int(ends[rank + 1])
        leaves, cut_keys, total = forest.interval(first, last), forest.key[ends[:-1]], len(forest)
        return Mesh(leaves, locate, cut_keys, rank=rank, first=first, total=total, tree_size=tree_size, origin=origin)

    @staticmethod
    def generate(
        brick: Brick,
        sizes: SizeField,
        *,
        world: World | None = None,
        weights: Callable[[Forest], Integers] | None = None,
        tree_size: TreeSize = 1.0,
        origin: Sequence[float] | float = 0.0,
    ) -> Mesh:
        """Return this rank's elements of a size field without storing the global mesh (collective).

        Each rank weighs the leaves in its share of coarse boxes. An allgather of these weights yields the interval of
        each rank, which then generates the leaves of its interval.

        Args:
            brick: the trees.
            sizes: largest permitted size of elements.
            world: the ranks.
            weights: function that returns the costs of leaves, positive integers (n,); every rank gets an equal share
                of the total. By default all costs are one.
            tree_size: sides of a tree; for an axis also a list of the widths of its trees.
            origin: lower corner of the brick.

        Raises:
            CaseError: more ranks than elements, or weights that are not positive integers or leave a rank with none.
        """
        world = world or World.serial()
        generator = Generator(brick, sizes)
        if world.size == 1:
            leaves = generator.leaves()
            return Mesh.of_forest(leaves, tree_size=tree_size, origin=origin)
        boxes = np.append(generator.boxes(16 * world.size), np.uint64(1 << 63))
        shares = len(boxes[:-1]) * np.arange(world.size + 1) // world.size
        own_leaves = generator.leaves(int(boxes[shares[world.rank]]), int(boxes[shares[world.rank + 1]]))
        inside = np.searchsorted(own_leaves.key, boxes[shares[world.rank] : shares[world.rank + 1] + 1])
        cost = np.concatenate([[0], np.cumsum(_costs(own_leaves, weights))])
        gathered = world.allgather((np.diff(inside), np.diff(cost[inside])))
        starts, costs = (np.append(0, np.cumsum(np.concatenate(counts))) for counts in zip(*gathered, strict=True))
        total, total_cost = int(starts[-1]), int(costs[-1])
        if total < world.size:
            raise CaseError(f"there are more ranks ({world.size}) than mesh elements ({total}); use fewer ranks")
        begin = int(np.searchsorted(world.size * costs, total_cost * world.rank, side="right")) - 1
        end = int(np.searchsorted(world.size * costs, total_cost * (world.rank + 1)))
        ghost_leaves = generator.leaves(int(boxes[begin]), int(boxes[end]))
        # The cumulative weight at the end of a leaf determines its rank (theory/waves, eq. 19).
        owner = (world.size * (costs[begin] + np.cumsum(_costs(ghost_leaves, weights))) - 1) // total_cost
        first, last = np.searchsorted(owner, [world.rank, world.rank + 1])
        if (fewest := min(world.allgather(int(last - first)))) < 1:
            raise CaseError(f"partition: with these weights one of {world.size} ranks has {fewest} elements")
        leaves = ghost_leaves.interval(int(first), int(last))
        cut_keys = np.array(world.allgather(leaves.key[0]), np.uint64)
        first_number, locate, rank = int(starts[begin] + first), generator.leaves_of, world.rank
        return Mesh(
            leaves, locate, cut_keys, rank=rank, first=first_number, total=total, tree_size=tree_size, origin=origin
        )

    @property
    def dim(self) -> int:
        """Return the number of axes."""
        return self.brick.dim

    @property
    def faces(self) -> int:
        """Return the faces of an element."""
        return 2 * self.dim

    @property
    def ghosts(self) -> int:
        """Return the number of ghosts."""
        return len(self.ghost_owner)

    @cached_property
    def sizes(self) -> npt.NDArray[np.float64]:
        """Return the sides of owned elements and ghosts, (count + ghosts, dim)."""
        return self.trees.sizes(self.corner, self.level, self.brick.depth)

    @cached_property
    def lower(self) -> npt.NDArray[np.float64]:
        """Return the lower corners of owned elements and ghosts, (count + ghosts, dim)."""
        return self.trees.positions(self.corner, self.brick.depth)

    @property
    def extent(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the lower and upper corner of the brick."""
        return self.trees.origin, np.array([edges[-1] for edges in self.trees.edges])

    def elements_at(
        self, point: Sequence[float], label: str = "point"
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the owned elements that touch a point, (m,), and its local coordinates in each, -1 to 1, (m, dim).

        A point on a face, edge or corner touches all elements around it, also across periodic sides.

        Raises:
            CaseError: the point lies outside the brick.
        """
        position = np.asarray(point, np.float64)
        fine = (
            self.trees.in_units(position) * (1 << self.brick.depth)
            if position.shape == (self.dim,)
            else np.array([-np.inf])
        )
        # Sides are sums of tree widths, so a point on a side may be outside due to rounding.
        if not np.all((fine > -_ON_FACE) & (fine < self.brick.extent + _ON_FACE)):
            lower, upper = self.extent
            raise CaseError(
                f"{label} {position.tolist()} is outside the mesh,"
                f" which extends from {lower.tolist()} to {upper.tolist()}"
            )
        cell = np.floor(fine).astype(np.int64)
        rounded = np.rint(fine).astype(np.int64)
        on_plane = np.abs(fine - rounded) < _ON_FACE
        choices = [
            (r - 1, r) if is_on_plane else (c,) for is_on_plane, r, c in zip(on_plane, rounded, cell, strict=True)
        ]
        cells = np.array(list(itertools.product(*choices)), np.int64)
        wrapped, is_outside = self.brick.wrap(cells)
        element = self._containing(wrapped)
        owned = (element >= 0) & ~is_outside
        element, first = np.unique(element[owned], return_index=True)
        return element, self._local(fine - (cells - wrapped)[owned][first], element)

    def locate(self, points: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the owned element that contains each point (n, dim), -1 for none, and local coordinates, -1 to 1.

        Every point of the brick belongs to one element of one rank; others are moved to the nearest of the brick.
        """
        fine = self.trees.in_units(points) * (1 << self.brick.depth)
        element = self._containing(np.clip(np.floor(fine).astype(np.int64), 0, self.brick.extent - 1))
        return element, self._local(fine, element)

    def _containing(self, cells: Integers) -> npt.NDArray[np.int64]:
        """Return the owned element that contains each integer point (n, dim), -1 for none."""
        keys, order = self._curve
        index = np.searchsorted(keys, morton_keys(cells), side="right") - 1
        element = order[index]
        side = np.int64(1) << (self.brick.depth - self.level[element])
        offset = cells - self.corner[element]
        return np.where((index >= 0) & ((offset >= 0) & (offset < side[:, None])).all(1), element, -1)

    def _local(self, fine: npt.NDArray[np.float64], element: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the local coordinates, -1 to 1, of points in units of the finest level in their elements."""
        side = np.int64(1) << (self.brick.depth - self.level[element])
        return np.asarray(np.clip(2 * (fine - self.corner[element]) / side[:, None] - 1, -1.0, 1.0))

    @cached_property
    def keys(self) -> Keys:
        """Return the keys of owned elements and ghosts, (count + ghosts,)."""
        return morton_keys(self.corner)

    @cached_property
    def _curve(self) -> tuple[Keys, npt.NDArray[np.int64]]:
        """Return the keys of owned elements, ascending, and the indices of these elements."""
        order = np.argsort(self.number)
        return self.keys[order], order

    def ghost_copies(self, peer: int) -> npt.NDArray[np.int64]:
        """Return the owned elements that are ghosts on the rank `peer`, in the order of that rank."""
        ghost = self.kinds == GHOST
        owner = np.full(self.kinds.shape, -1, np.int64)
        owner[ghost] = self.ghost_owner[self.neighbours[ghost] - self.count]
        elements = np.nonzero((owner == peer).any((1, 2)))[0]
        return np.asarray(elements[np.argsort(self.keys[elements])])

    def _inner_first(self, first: int) -> None:
        """Sort the elements: first those without neighbours on other ranks."""
        outer = (self.kinds == GHOST).any((1, 2))
        order = np.argsort(outer, kind="stable")
        self.interior, self.number = self.count - int(outer.sum()), first + order
        new_index = np.arange(self.count + self.ghosts)
        new_index[order] = np.arange(self.count)
        new_order = np.concatenate([order, np.arange(self.count, self.count + self.ghosts)])
        self.corner, self.level = self.corner[new_order], self.level[new_order]
        self.kinds, self.child = self.kinds[order], self.child[order]
        neighbours = self.neighbours[order]
        self.neighbours = np.where(neighbours >= 0, new_index[neighbours], -1).astype(np.int32)

    def _build(self, leaves: Forest, locate: _Locate, cut_keys: Keys, rank: int) -> None:
        count, faces, children = self.count, self.faces, 1 << (self.dim - 1)
        low = cut_keys[rank]
        high = cut_keys[rank + 1] if rank + 1 < len(cut_keys) else np.uint64(1 << 63)

        def leaves_of(points: Integers) -> tuple[Keys, Integers]:
            key = morton_keys(points)
            is_own = (key >= low) & (key < high)
            leaf_keys, levels = np.empty(len(points), np.uint64), np.empty(len(points), np.int64)
            leaf = leaves.leaf_of(points[is_own])
            leaf_keys[is_own], levels[is_own] = leaves.key[leaf], leaves.level[leaf]
            if not is_own.all():
                corner, levels[~is_own] = locate(points[~is_own])
                leaf_keys[~is_own] = morton_keys(corner)
            return leaf_keys, levels

        no_key = np.uint64((1 << 64) - 1)
        keys = np.full((count, faces, children), no_key)
        levels = np.full((count, faces, children), -1, np.int64)
        self.child = np.full((count, faces), -1, np.int8)
        for face in range(faces):
            points, outside = self.brick.wrap(self._across(leaves, face, 0))
            inner = np.nonzero(~outside)[0]
            keys[inner, face, 0], levels[inner, face, 0] = leaves_of(points[inner])
            difference = levels[inner, face, 0] - leaves.level[inner]
            if np.any(abs(difference) > 1):
                raise CaseError("mesh: elements that share a face differ by more than one level; balance the forest")
            small, large = inner[difference == -1], inner[difference == 1]
            self.child[small, face] = self._child_position(leaves, face)[small]
            for child in range(1, children):
                points, _ = self.brick.wrap(self._across(leaves, face, child)[large])
                keys[large, face, child], levels[large, face, child] = leaves_of(points)
        self._number(leaves, keys, levels, (keys >= low) & (keys < high), cut_keys)

    def _number(
        self, leaves: Forest, keys: Keys, levels: Integers, owned: npt.NDArray[np.bool_], cut_keys: Keys
    ) -> None:
        """Convert the keys of neighbours to indices: owned elements, then ghosts in the order of the curve."""
        exists = levels >= 0
        local, ghost = exists & owned, exists & ~owned
        remote, first = np.unique(keys[ghost], return_index=True)
        self.neighbours = np.full(keys.shape, -1, np.int32)
        self.neighbours[local] = np.searchsorted(leaves.key, keys[local])
        self.neighbours[ghost] = self.count + np.searchsorted(remote, keys[ghost])
        self.kinds = np.where(local, LOCAL, np.where(ghost, GHOST, NONE)).astype(np.int8)
        self.ghost_owner = np.searchsorted(cut_keys, remote, side="right") - 1
        self.level = np.concatenate([leaves.level, levels[ghost][first]])
        self.corner = np.concatenate([leaves.corner, corners_of(remote, self.dim)])

    def _across(self, leaves: Forest, face: int, child: int) -> Integers:
        """Return a point just outside each element's face, in the part of the face that belongs to `child`."""
        axis, side = face // 2, leaves.side
        points = leaves.corner.copy()
        points[:, axis] += side if face % 2 else -1
        for bit, tangent in enumerate(a for a in range(self.dim) if a != axis):
            points[:, tangent] += (child >> bit & 1) * (side >> 1)
        return points

    def _child_position(self, leaves: Forest, face: int) -> npt.NDArray[np.int64]:
        """Return the position of each element on its parent's face."""
        position = np.zeros(len(leaves), np.int64)
        for bit, tangent in enumerate(a for a in range(self.dim) if a != face // 2):
            position |= ((leaves.corner[:, tangent] // leaves.side) & 1) << bit
        return position


def _costs(leaves: Forest, weights: Callable[[Forest], Integers] | None) -> Integers:
    """Return the weights of leaves; CaseError unless they are positive integers, one for each leaf."""
    if weights is None:
        return np.ones(len(leaves), np.int64)
    costs = np.asarray(weights(leaves))
    if costs.shape != (len(leaves),) or costs.dtype.kind not in "iu" or np.any(costs < 1):
        raise CaseError("partition: weights of elements must be positive integers, one for each")
    return costs.astype(np.int64)


def corners_of(keys: Keys, dim: int) -> Integers:
    """Return the integer coordinates (n, dim) of Morton keys."""
    corner = np.zeros((len(keys), dim), np.int64)
    for bit in range(63 // dim):
        for axis in range(dim):
            corner[:, axis] |= ((keys >> np.uint64(dim * bit + axis)) & np.uint64(1)).astype(np.int64) << bit
    return corner
