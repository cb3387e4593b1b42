# SPDX-License-Identifier: BSD-3-Clause
"""Branches of a generated arterial tree: one inlet and any number of outlets, after Murray's law.

A vessel that supplies n outlets has the radius R (n / N)^(1/3), where R is that of the inlet and N the number of
outlets. The cubes of the radii of two daughters therefore add up to that of their parent, and all outlets have the same
radius (Murray, PNAS 12 (1926) 207). The angle between a daughter of radius r1, with a sister of radius r2, and its
parent of radius r0 is that of least volume (Murray, J. Gen. Physiol. 9 (1926) 835):

    cos a1 = (r0^4 + r1^4 - r2^4) / (2 r0^2 r1^2).

The division of the outlets among daughters and the planes of the bifurcations are random. Branches that would touch
others are drawn again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError

Floats = npt.NDArray[np.float64]

#: Smallest part of the outlets of a vessel that a daughter supplies.
MIN_PART = 0.3
#: Smallest distance between the axes of branches that do not join, relative to the sum of their radii, and of any axis
#: from an opening, relative to its radius.
CLEARANCE, OPENING_CLEARANCE = 1.5, 3.0
#: Trials of a bifurcation, and of the whole tree.
_TRIALS, _TREES = 40, 40


@dataclass(frozen=True)
class Branch:
    """A straight vessel from `start` to `end` (3,), metres; `parent` is its index, -1 for the root.

    `outlets` is the number of outlets that it supplies; if it is one, the branch ends in an outlet.
    """

    start: Floats
    end: Floats
    radius: float
    outlets: int
    parent: int

    @property
    def direction(self) -> Floats:
        """The unit vector from start to end (3,)."""
        return np.asarray((self.end - self.start) / np.linalg.norm(self.end - self.start))


def artery_branches(radius: float, outlets: int, length_ratio: float, seed: int) -> list[Branch]:
    """Return the branches of a tree, parents before their daughters; the root begins at the origin along +x.

    Args:
        radius: radius of the inlet (metres).
        outlets: number of outlets.
        length_ratio: length of each branch relative to its radius.
        seed: seed of the random numbers. A seed always gives the same tree, at any radius.

    Raises:
        CaseError: a value is not possible, or no tree without contacts was found.
    """
    if not (np.isfinite(radius) and radius > 0.0):
        raise CaseError(f"radius = {radius:g} m must be positive")
    if outlets < 2:
        raise CaseError(f"outlets = {outlets}: a tree has at least two outlets")
    if not 4.0 <= length_ratio <= 100.0:
        raise CaseError(f"length_ratio = {length_ratio:g}: must be from 4 to 100")
    random = np.random.default_rng(seed)
    for _ in range(_TREES):
        branches = _grown(outlets, length_ratio, random)
        if branches is not None:
            return [Branch(radius * b.start, radius * b.end, radius * b.radius, b.outlets, b.parent) for b in branches]
    raise CaseError(
        f"no tree with {outlets} outlets whose branches do not touch was found; increase length_ratio or change seed"
    )


def branch_angles(parent: float, daughters: tuple[float, float]) -> tuple[float, float]:
    """Return the angles (radians) between the daughters of these radii and their parent, after Murray."""
    first, second = (radius / parent for radius in daughters)
    cosines = (1 + first**4 - second**4) / (2 * first**2), (1 + second**4 - first**4) / (2 * second**2)
    return float(np.arccos(min(cosines[0], 1.0))), float(np.arccos(min(cosines[1], 1.0)))


def _grown(outlets: int, length_ratio: float, random: np.random.Generator) -> list[Branch] | None:
    """Return a tree with an inlet of radius 1, or None if a bifurcation did not fit."""
    branches = [Branch(np.zeros(3), np.array([length_ratio, 0.0, 0.0]), 1.0, outlets, -1)]
    planes = [_perpendicular(branches[0].direction, random)]
    index = 0
    while index < len(branches):
        if branches[index].outlets > 1:
            for _ in range(_TRIALS):
                daughters, normal = _bifurcation(branches, index, planes[index], length_ratio, random)
                if _is_free(daughters, branches, index):
                    break
            else:
                return None
            branches += daughters
            planes += [normal, normal]
        index += 1
    return branches


def _bifurcation(
    branches: Sequence[Branch], index: int, plane: Floats, length_ratio: float, random: np.random.Generator
) -> tuple[list[Branch], Floats]:
    """Return two daughters of a branch, and the normal of their plane; `plane` is that of the parent's bifurcation."""
    parent = branches[index]
    least = max(1, round(MIN_PART * parent.outlets))
    first = int(random.integers(least, parent.outlets - least, endpoint=True))
    counts = first, parent.outlets - first
    total = branches[0].outlets
    radii = (counts[0] / total) ** (1 / 3), (counts[1] / total) ** (1 / 3)
    axis = parent.direction
    turn = random.uniform(np.pi / 3, 2 * np.pi / 3)
    normal = np.cos(turn) * plane + np.sin(turn) * np.cross(axis, plane)
    across = np.cross(normal, axis)
    daughters = []
    for side, radius, count, angle in zip((1.0, -1.0), radii, counts, branch_angles(parent.radius, radii), strict=True):
        direction = np.cos(angle) * axis + side * np.sin(angle) * across
        daughters.append(Branch(parent.end, parent.end + length_ratio * radius * direction, radius, count, index))
    return daughters, normal


def _is_free(daughters: Sequence[Branch], branches: Sequence[Branch], parent: int) -> bool:
    """Return whether new branches are far enough from all others, except for their parent and sister at the joint."""
    radii = np.array([branch.radius for branch in branches])
    separate = np.arange(len(branches)) != parent
    ends = [index for index, branch in enumerate(branches) if branch.outlets == 1]
    openings = np.array([_opening(branches[index]) for index in ends]).reshape(-1, 3)
    if parent > 0:
        ends, openings = [*ends, 0], np.concatenate([openings, branches[0].start[None]])
    for daughter in daughters:
        count = max(8, round(4 * float(np.linalg.norm(daughter.end - daughter.start)) / daughter.radius))
        axis = daughter.start + np.linspace(0.0, 1.0, count)[:, None] * (daughter.end - daughter.start)
        clear = _distances(axis, branches).min(axis=0) >= CLEARANCE * (radii + daughter.radius)
        if not clear[separate].all():
            return False
        if daughter.outlets == 1:
            distance = _distances(_opening(daughter)[None], branches)[0]
            if (distance < radii + OPENING_CLEARANCE * daughter.radius).any():
                return False
        if (
            len(ends)
            and (_distances(openings, [daughter])[:, 0] < daughter.radius + OPENING_CLEARANCE * radii[ends]).any()
        ):
            return False
    return True


def _opening(branch: Branch) -> Floats:
    """Return a point (3,) one radius beyond the end of a branch, the center of a sphere around its opening."""
    return np.asarray(branch.end + branch.radius * branch.direction)


def _distances(points: Floats, branches: Sequence[Branch]) -> Floats:
    """Return the distances (p, b) of `points` (p, 3) from the axes of `branches`."""
    starts = np.array([branch.start for branch in branches])
    axes = np.array([branch.end for branch in branches]) - starts
    offsets = points[:, None] - starts
    fraction = np.clip((offsets * axes).sum(axis=2) / (axes * axes).sum(axis=1), 0.0, 1.0)
    return np.asarray(np.linalg.norm(offsets - fraction[:, :, None] * axes, axis=2))


def _perpendicular(axis: Floats, random: np.random.Generator) -> Floats:
    """Return a random unit vector (3,) perpendicular to `axis`."""
    vector = np.cross(axis, random.normal(size=3))
    return np.asarray(vector / np.linalg.norm(vector))
