# SPDX-License-Identifier: BSD-3-Clause
"""SolidBody bodies in vessels."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from seiche.domain.solids import Floats, SolidBody
from seiche.errors import CaseError

#: Distance (p,) of points (p, 3) from a wall, negative in the fluid.
_Distance = Callable[[Floats], Floats]


def with_obstacles(
    distance: _Distance,
    obstacles: Sequence[SolidBody],
    box: tuple[Floats, Floats],
    spacing: float,
    periodic: tuple[bool, bool, bool],
    *,
    node: Floats | None = None,
) -> _Distance:
    """Return the `distance` from the wall or the nearest obstacle, which repeat along the `periodic` axes of the box.

    `node` is the position of any lattice node, by default half a spacing along each axis. Raises CaseError for an
    obstacle without a lattice node.
    """
    if not obstacles:
        return distance
    low, high = box
    for number, obstacle in enumerate(obstacles, start=1):
        _check_not_empty(obstacle, number, box, spacing, node=np.full(3, 0.5 * spacing) if node is None else node)
    bodies = [obstacle.extended(low, high, spacing) for obstacle in obstacles]
    steps = [(-1, 0, 1) if is_periodic else (0,) for is_periodic in periodic]
    shifts = [np.array(step) * (high - low) for step in itertools.product(*steps)]

    def nearest(points: Floats) -> Floats:
        result = distance(points)
        for body, shift in itertools.product(bodies, shifts):
            result = np.maximum(result, body.depth(points - shift))
        return np.asarray(result)

    return nearest


def no_wall(points: Floats) -> Floats:
    """Return the distance of points from a wall if there is none."""
    return np.full(len(points), -np.inf)


def _check_not_empty(
    obstacle: SolidBody, number: int, box: tuple[Floats, Floats], spacing: float, *, node: Floats
) -> None:
    """Reject an obstacle that contains no node of the box, and so has no effect."""
    lower_corner, upper_corner = obstacle.bounds()
    shift = node / spacing
    first = np.ceil(np.maximum(lower_corner, box[0]) / spacing - shift).astype(np.int64)
    last = np.floor(np.minimum(upper_corner, box[1]) / spacing - shift).astype(np.int64)
    for x in range(int(first[0]), int(last[0]) + 1):
        y, z = (np.arange(first[k], last[k] + 1) for k in (1, 2))
        nodes = np.stack(np.meshgrid([x], y, z, indexing="ij"), axis=-1).reshape(-1, 3)
        if len(nodes) and bool((obstacle.depth((nodes + shift) * spacing) > 0.0).any()):
            return
    raise CaseError(
        f"obstacle {number} contains no lattice node; move it into the shape, or make it larger than a spacing of "
        f"{spacing:g} m"
    )
