# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of neighbours in periodic space, and evenly distributed points on a surface."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def neighbor_pairs(centers: Floats, lengths: Floats, cutoff: float) -> tuple[Integers, Floats]:
    """Return the ordered pairs (p, 2) of centers or images within `cutoff`, and the shift (p, 3) of the second."""
    from scipy.spatial import cKDTree

    images = [
        np.arange(-np.ceil(cutoff / length), np.ceil(cutoff / length) + 1) if length else np.zeros(1)
        for length in lengths
    ]
    steps = np.stack(np.meshgrid(*images, indexing="ij"), axis=-1).reshape(-1, 3) * lengths
    low, high = centers.min(axis=0) - cutoff, centers.max(axis=0) + cutoff
    originals, shifts, image_centers = [], [], []
    for step in steps:
        shifted = centers + step
        in_reach = np.flatnonzero(((shifted >= low) & (shifted <= high)).all(axis=1))
        originals.append(in_reach)
        image_centers.append(shifted[in_reach])
        shifts.append(np.broadcast_to(step, (len(in_reach), 3)))
    original, shift, image_center = np.concatenate(originals), np.concatenate(shifts), np.concatenate(image_centers)
    near_rows = cKDTree(centers).query_ball_tree(cKDTree(image_center), cutoff)
    first = np.repeat(np.arange(len(centers)), [len(row) for row in near_rows])
    second = np.fromiter((k for row in near_rows for k in sorted(row)), np.int64, len(first))
    distinct = (original[second] != first) | (shift[second] != 0).any(axis=1)
    return np.stack([first[distinct], original[second[distinct]]], axis=1), shift[second[distinct]]


def spread_points(points: Floats, count: int) -> Floats:
    """Select at most `count` points, each of which is the farthest from those selected before it."""
    if len(points) <= count:
        return points
    chosen_points = [int(np.linalg.norm(points, axis=1).argmax())]
    distance = np.full(len(points), np.inf)
    while len(chosen_points) < count:
        distance = np.minimum(distance, np.linalg.norm(points - points[chosen_points[-1]], axis=1))
        chosen_points.append(int(distance.argmax()))
    return points[chosen_points]
