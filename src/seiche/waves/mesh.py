# SPDX-License-Identifier: BSD-3-Clause
"""The elements of a rank, its ghosts, and who lies beyond which face (theory/waves, section 6).

Faces have the numbers 2 axis + (0: low side, 1: high side). The neighbour table has for every element, face and child
an index and a kind. A conforming face has one neighbour (child 0); so has the small side of a hanging face,
with its place on the large one beside it; the large side has 2^(dim - 1) of them.
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

#: A point so near to a face, in units of the finest element, lies on it.
_ON_FACE = 1e-6

#: Corners and levels of the leaves that hold points.
_Locate = Callable[[Integers], tuple[Integers, Integers]]


class Mesh:
    """The leaves of a forest that one rank owns, as boxes in space.

    Attributes:
        brick: the trees of the forest.
        trees: where the trees lie, in the caller's unit of length.
        count: elements of this rank; those of all ranks are `total`.
        number: place of every own element along the curve of all, (count,): the ranks' intervals follow each other,
            and in each come first the elements that do not touch other ranks', each part along the curve.
        interior: how many do not touch other ranks' elements.
        corner, level: integer corners (count + ghosts, dim) and levels of own elements, then of ghosts.
        ghost_owner: rank of each ghost, (ghosts,).
        neighbours: index of the neighbour, -1 where there is none, (count, 2 dim, 2^(dim - 1)) int32.
        kinds: LOCAL, GHOST or NONE, same shape, int8.
        child: place on the large face where this is the small side, else -1, (count, 2 dim) int8.
    """

    def __init__(
        self,
        own: Forest,
        locate: _Locate,
        cut_keys: Keys,
        *,
        rank: int,
        first: int,
        total: int,
        tree_size: TreeSize = 1.0,
        origin: Sequence[float] | float = 0.0,
    ) -> None:
        """Build the tables of the leaves `own`; rank r owns the keys from cut_keys[r] on.

        Raises:
            CaseError: a tree without extent, or leaves that are not balanced.
        """
        self.brick, self.total = own.brick, total
        self.trees = Trees(own.brick, tree_size, origin)
        self.count = len(own)
        self.neighbours: npt.NDArray[np.int32]
        self.kinds: npt.NDArray[np.int8]
        self.child: npt.NDArray[np.int8]
        self.corner: Integers
        self.level: Integers
        self._build(own, locate, cut_keys, rank)
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
        """Return the share of `rank` in a balanced forest that is wholly in memory.

        Args:
            forest: all leaves.
            rank: whose elements.
            ranks: how many there are; they get equal numbers of leaves.
            tree_size: sides of a tree; for an axis also a list of the widths of its trees.
            origin: lower corner of the brick.

        Raises:
            CaseError: more ranks than leaves, or leaves that are not balanced.
        """
        ends = cuts(np.ones(len(forest)), ranks)

        def locate(points: Integers) -> tuple[Integers, Integers]:
            at = forest.holder(points)
            return forest.corner[at], forest.level[at]

        first, last = int(ends[rank]), int(ends[rank + 1])
        own = forest.interval(first, last)
        return Mesh(
            own,
            locate,
            forest.key[ends[:-1]],
            rank=rank,
            first=first,
            total=len(forest),
            tree_size=tree_size,
            origin=origin,
        )

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
        """Return this rank's elements of a size field, made by this rank alone (collective).

        Each rank weighs the leaves of its share of coarse boxes; one gathering of these weights tells everybody where
        its interval begins and ends; then each makes the leaves of its interval.

        Args:
            brick: the trees.
            sizes: how large elements may be.
            world: the ranks.
            weights: gives costs of leaves, positive integers (n,); every rank gets an equal share. Ones if left out.
            tree_size: sides of a tree; for an axis also a list of the widths of its trees.
            origin: lower corner of the brick.

        Raises:
            CaseError: more ranks than elements, or weights that are not positive integers or leave a rank with none.
        """
        world = world or World.serial()
        generator = Generator(brick, sizes)
        if world.size == 1:
            own = generator.leaves()
            return Mesh.of_forest(own, tree_size=tree_size, origin=origin)
        boxes = np.append(generator.boxes(16 * world.size), np.uint64(1 << 63))
        shares = len(boxes[:-1]) * np.arange(world.size + 1) // world.size
        mine = generator.leaves(int(boxes[shares[world.rank]]), int(boxes[shares[world.rank + 1]]))
        inside = np.searchsorted(mine.key, boxes[shares[world.rank] : shares[world.rank + 1] + 1])
        burden = np.concatenate([[0], np.cumsum(_costs(mine, weights))])
        gathered = world.allgather((np.diff(inside), np.diff(burden[inside])))
        starts, burdens = (np.append(0, np.cumsum(np.concatenate(part))) for part in zip(*gathered, strict=True))
        total, whole = int(starts[-1]), int(burdens[-1])
        if total < world.size:
            raise CaseError(f"{world.size} ranks are more than the {total} elements of the mesh")
        begin = int(np.searchsorted(world.size * burdens, whole * world.rank, side="right")) - 1
        end = int(np.searchsorted(world.size * burdens, whole * (world.rank + 1)))
        near = generator.leaves(int(boxes[begin]), int(boxes[end]))
        # A leaf belongs to the rank in whose share of the whole weight its own weight ends (theory/waves, eq. 19).
        owner = (world.size * (burdens[begin] + np.cumsum(_costs(near, weights))) - 1) // whole
        first, last = np.searchsorted(owner, [world.rank, world.rank + 1])
        if (least := min(world.allgather(int(last - first)))) < 1:
            raise CaseError(f"partition: the weights leave one of {world.size} ranks with {least} elements")
        own = near.interval(int(first), int(last))
        cut_keys = np.array(world.allgather(own.key[0]), np.uint64)
        before = int(starts[begin] + first)
        return Mesh(
            own,
            generator.holders,
            cut_keys,
            rank=world.rank,
            first=before,
            total=total,
            tree_size=tree_size,
            origin=origin,
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
        """Return the sides of own elements and ghosts, (count + ghosts, dim)."""
        return self.trees.sizes(self.corner, self.level, self.brick.depth)

    @cached_property
    def lower(self) -> npt.NDArray[np.float64]:
        """Return the lower corners of own elements and ghosts, (count + ghosts, dim)."""
        return self.trees.places(self.corner, self.brick.depth)

    @property
    def extent(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the lower and upper corner of the brick."""
        return self.trees.origin, np.array([edges[-1] for edges in self.trees.edges])

    def touching(
        self, point: Sequence[float], what: str = "point"
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the own elements that touch a point, and its place (-1 to 1 an axis) in each: (m,) and (m, dim).

        One inside an element; those on both sides of a face, around an edge or a corner, across periodic sides too.

        Raises:
            CaseError: the point lies outside the brick.
        """
        at = np.asarray(point, np.float64)
        fine = self.trees.counted(at) * (1 << self.brick.depth) if at.shape == (self.dim,) else np.array([-np.inf])
        # Sides are sums of trees: a point that is meant to lie on one may be the rounding of a sum outside.
        if not np.all((fine > -_ON_FACE) & (fine < self.brick.extent + _ON_FACE)):
            lower, upper = self.extent
            raise CaseError(
                f"{what} {at.tolist()} lies outside the mesh, which reaches from {lower.tolist()} to {upper.tolist()}"
            )
        cell = np.floor(fine).astype(np.int64)
        rounded = np.rint(fine).astype(np.int64)
        on_plane = np.abs(fine - rounded) < _ON_FACE
        choices = [(r - 1, r) if on else (c,) for on, r, c in zip(on_plane, rounded, cell, strict=True)]
        cells = np.array(list(itertools.product(*choices)), np.int64)
        wrapped, outside = self.brick.wrap(cells)
        cells, wrapped = cells[~outside], wrapped[~outside]
        keys, order = self._curve
        holder = np.searchsorted(keys, morton_keys(wrapped), side="right") - 1
        found = np.where(holder >= 0, order[holder], -1)
        side = np.int64(1) << (self.brick.depth - self.level[found])
        inside = (found >= 0) & ((wrapped >= self.corner[found]) & (wrapped < self.corner[found] + side[:, None])).all(
            1
        )
        found, cells, wrapped, side = found[inside], cells[inside], wrapped[inside], side[inside]
        place = 2 * (fine - (cells - wrapped) - self.corner[found]) / side[:, None] - 1
        element, first = np.unique(found, return_index=True)
        return element, np.clip(place[first], -1.0, 1.0)

    def holding(self, points: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the own element that holds each point (n, dim), -1 if none does, and the place in it, -1 to 1.

        Every point of the brick belongs to one element of one rank; others are moved to the nearest of the brick.
        """
        fine = self.trees.counted(points) * (1 << self.brick.depth)
        cell = np.clip(np.floor(fine).astype(np.int64), 0, self.brick.extent - 1)
        keys, order = self._curve
        holder = np.searchsorted(keys, morton_keys(cell), side="right") - 1
        found = np.where(holder >= 0, order[holder], 0)
        side = np.int64(1) << (self.brick.depth - self.level[found])
        corner = self.corner[found]
        inside = (holder >= 0) & ((cell >= corner) & (cell < corner + side[:, None])).all(1)
        place = np.clip(2 * (fine - corner) / side[:, None] - 1, -1.0, 1.0)
        return np.where(inside, found, -1), place

    @cached_property
    def keys(self) -> Keys:
        """Return the keys of own elements and ghosts, (count + ghosts,)."""
        return morton_keys(self.corner)

    @cached_property
    def _curve(self) -> tuple[Keys, npt.NDArray[np.int64]]:
        """Return the keys of own elements, ascending, and whose they are."""
        order = np.argsort(self.number)
        return self.keys[order], order

    def mirrors(self, peer: int) -> npt.NDArray[np.int64]:
        """Return the own elements that are ghosts of the rank `peer`, in its order."""
        beside = np.zeros(self.count, np.bool_)
        ghost = self.kinds == GHOST
        owner = np.full(self.kinds.shape, -1, np.int64)
        owner[ghost] = self.ghost_owner[self.neighbours[ghost] - self.count]
        beside[(owner == peer).any((1, 2))] = True
        found = np.nonzero(beside)[0]
        return np.asarray(found[np.argsort(self.keys[found])])

    def _inner_first(self, first: int) -> None:
        """Put the elements that do not touch other ranks' before those that do."""
        outer = (self.kinds == GHOST).any((1, 2))
        order = np.argsort(outer, kind="stable")
        self.interior, self.number = self.count - int(outer.sum()), first + order
        place = np.arange(self.count + self.ghosts)
        place[order] = np.arange(self.count)
        own = np.concatenate([order, np.arange(self.count, self.count + self.ghosts)])
        self.corner, self.level = self.corner[own], self.level[own]
        self.kinds, self.child = self.kinds[order], self.child[order]
        neighbours = self.neighbours[order]
        self.neighbours = np.where(neighbours >= 0, place[neighbours], -1).astype(np.int32)

    def _build(self, own: Forest, locate: _Locate, cut_keys: Keys, rank: int) -> None:
        count, faces, children = self.count, self.faces, 1 << (self.dim - 1)
        low = cut_keys[rank]
        high = cut_keys[rank + 1] if rank + 1 < len(cut_keys) else np.uint64(1 << 63)

        def holders(points: Integers) -> tuple[Keys, Integers]:
            key = morton_keys(points)
            mine = (key >= low) & (key < high)
            at, levels = np.empty(len(points), np.uint64), np.empty(len(points), np.int64)
            found = own.holder(points[mine])
            at[mine], levels[mine] = own.key[found], own.level[found]
            if not mine.all():
                corner, levels[~mine] = locate(points[~mine])
                at[~mine] = morton_keys(corner)
            return at, levels

        none = np.uint64((1 << 64) - 1)
        keys = np.full((count, faces, children), none)
        levels = np.full((count, faces, children), -1, np.int64)
        self.child = np.full((count, faces), -1, np.int8)
        for face in range(faces):
            points, outside = self.brick.wrap(self._across(own, face, 0))
            here = np.nonzero(~outside)[0]
            keys[here, face, 0], levels[here, face, 0] = holders(points[here])
            step = levels[here, face, 0] - own.level[here]
            if np.any(abs(step) > 1):
                raise CaseError("mesh: elements that share a face differ by more than one level: balance the forest")
            small, large = here[step == -1], here[step == 1]
            self.child[small, face] = self._place(own, face)[small]
            for child in range(1, children):
                points, _ = self.brick.wrap(self._across(own, face, child)[large])
                keys[large, face, child], levels[large, face, child] = holders(points)
        self._number(own, keys, levels, (keys >= low) & (keys < high), cut_keys)

    def _number(self, own: Forest, keys: Keys, levels: Integers, owned: npt.NDArray[np.bool_], cut_keys: Keys) -> None:
        """Turn keys of neighbours, some `owned`, into indices: own elements, then ghosts in the order of the curve."""
        there = levels >= 0
        mine = there & owned
        remote, first = np.unique(keys[there & ~mine], return_index=True)
        self.neighbours = np.full(keys.shape, -1, np.int32)
        self.neighbours[mine] = np.searchsorted(own.key, keys[mine])
        self.neighbours[there & ~mine] = self.count + np.searchsorted(remote, keys[there & ~mine])
        self.kinds = np.where(mine, LOCAL, np.where(there, GHOST, NONE)).astype(np.int8)
        self.ghost_owner = np.searchsorted(cut_keys, remote, side="right") - 1
        self.level = np.concatenate([own.level, levels[there & ~mine][first]])
        self.corner = np.concatenate([own.corner, corners_of(remote, self.dim)])

    def _across(self, own: Forest, face: int, child: int) -> Integers:
        """Return a point just beyond a face, in the part of it that belongs to `child`."""
        axis, side = face // 2, own.side
        points = own.corner.copy()
        points[:, axis] += side if face % 2 else -1
        for bit, other in enumerate(a for a in range(self.dim) if a != axis):
            points[:, other] += (child >> bit & 1) * (side >> 1)
        return points

    def _place(self, own: Forest, face: int) -> npt.NDArray[np.int64]:
        """Return the place of each element among those that share its parent's face."""
        place = np.zeros(len(own), np.int64)
        for bit, other in enumerate(a for a in range(self.dim) if a != face // 2):
            place |= ((own.corner[:, other] // own.side) & 1) << bit
        return place


def _costs(leaves: Forest, weights: Callable[[Forest], Integers] | None) -> Integers:
    """Return the weights of leaves.

    Raises:
        CaseError: they are no positive integers, one a leaf.
    """
    if weights is None:
        return np.ones(len(leaves), np.int64)
    costs = np.asarray(weights(leaves))
    if costs.shape != (len(leaves),) or costs.dtype.kind not in "iu" or np.any(costs < 1):
        raise CaseError("partition: weights of elements have to be positive integers, one for each")
    return costs.astype(np.int64)


def corners_of(keys: Keys, dim: int) -> Integers:
    """Return the integer coordinates (n, dim) of Morton keys."""
    corner = np.zeros((len(keys), dim), np.int64)
    for bit in range(63 // dim):
        for axis in range(dim):
            corner[:, axis] |= ((keys >> np.uint64(dim * bit + axis)) & np.uint64(1)).astype(np.int64) << bit
    return corner
