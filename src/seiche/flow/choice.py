# SPDX-License-Identifier: BSD-3-Clause
"""Which storage layout a run gets, by the bytes that a step is predicted to move."""

from __future__ import annotations

from typing import Literal

import numpy as np

from seiche.domain.sites import SiteSet
from seiche.errors import CaseError
from seiche.flow.velocity_set import D3Q19, VelocitySet

LayoutName = Literal["list-ab", "list-aa", "tiles-4", "tiles-8"]
LAYOUT_NAMES: tuple[LayoutName, ...] = ("list-ab", "list-aa", "tiles-4", "tiles-8")


def step_bytes(sites: SiteSet, layout: LayoutName, storage: str, velocity_set: VelocitySet = D3Q19) -> float:
    """Return the predicted bytes of a step a fluid site.

    Lists: 2 Q s and the adjacency (4 (Q - 1) B every step, or every second one in place). Tiles: 2 Q s for every site
    of a tile that is not alone in its run of 32 bytes, 112 B of table a tile, 4 B of mask a site in tiles with walls.
    """
    size = np.dtype(storage).itemsize
    populations = 2 * velocity_set.Q * size
    if layout.startswith("list"):
        return populations + (4.0 if layout == "list-ab" else 2.0) * (velocity_set.Q - 1)
    edge = int(layout.removeprefix("tiles-"))
    if any(sites.periodic[axis] and sites.shape[axis] % edge for axis in range(3)):
        return float("inf")
    extent = [-(-length // edge) for length in sites.shape]
    tile = sites.coords.astype(np.int64) // edge
    key = (tile[:, 0] * extent[1] + tile[:, 1]) * extent[2] + tile[:, 2]
    tiles, counts = np.unique(key, return_counts=True)
    walled = np.zeros(len(tiles), bool)
    walled[np.searchsorted(tiles, key[sites.boundary])] = True
    walled |= counts < edge**3
    # memory moves in runs of 32 bytes: a run is moved when one of its sites is fluid
    run = max(1, 32 // size)
    inside = sites.coords % edge
    lane = inside[:, 0] + edge * (inside[:, 1].astype(np.int64) + edge * inside[:, 2])
    runs = len(np.unique(key * (edge**3 // run) + lane // run)) if len(tiles) < len(sites) else len(sites)
    moved = runs * run * populations + 112.0 * len(tiles) + 4.0 * edge**3 * np.count_nonzero(walled)
    return float(moved) / len(sites)


def choose_layout(
    sites: SiteSet, layout: str, storage: str, device: str, velocity_set: VelocitySet = D3Q19
) -> LayoutName:
    """Return `layout`, or for "auto" the one with the fewest predicted bytes a step.

    On the CPU the in-place list is preferred at equal bytes: it needs half the memory.

    Raises:
        CaseError: an unknown name.
    """
    if layout in LAYOUT_NAMES:
        return layout
    if layout != "auto":
        raise CaseError(f"layout {layout!r} is not one of auto, {', '.join(LAYOUT_NAMES)}")
    if device.startswith("cpu"):
        return "list-aa"
    candidates: tuple[LayoutName, ...] = ("tiles-8", "tiles-4", "list-aa")
    return min(candidates, key=lambda name: step_bytes(sites, name, storage, velocity_set))
