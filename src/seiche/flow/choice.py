# SPDX-License-Identifier: BSD-3-Clause
"""Which storage layout a run gets: by the bytes that a step must move, and how fast a layout was seen to move them."""

from __future__ import annotations

from typing import Literal

import numpy as np

from seiche.backend import Backend, parse_device
from seiche.domain.sites import SiteSet
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.flow.layout import Layout
from seiche.flow.list_layout import ListLayout
from seiche.flow.model import FlowModel, Precision, Regularised
from seiche.flow.moment_layout import MomentLayout, numbers_of, run_of
from seiche.flow.region import Region
from seiche.flow.tile_layout import TileLayout, refuse_periods
from seiche.flow.velocity_set import D3Q19, VelocitySet
from seiche.kernels.registry.flow import MOMENT_EDGE

LayoutName = Literal["list-ab", "list-aa", "tiles-4", "tiles-8", "moments"]
#: The layouts that keep populations: for every collision.
LAYOUT_NAMES: tuple[LayoutName, ...] = ("list-ab", "list-aa", "tiles-4", "tiles-8")
#: Share of the copy bandwidth of a GPU at which a step moves its bytes, by the precision of storage: in tiles without
#: walls and in tiles with walls. From boxes and tubes on one H100 (docs/performance/tuning.md). Of tiles-4 and of
#: doubles in tiles-8 only the sum of both was measured, of moments in doubles nothing: taken as in floats.
SHARES: dict[LayoutName, dict[str, tuple[float, float]]] = {
    "list-ab": {"float64": (0.95, 0.95), "float32": (0.94, 0.94), "float16": (0.96, 0.96)},
    "list-aa": {"float64": (0.92, 0.92), "float32": (0.89, 0.89), "float16": (0.86, 0.86)},
    "tiles-4": {"float64": (0.96, 0.75), "float32": (0.94, 0.73), "float16": (0.86, 0.53)},
    "tiles-8": {"float64": (0.98, 0.80), "float32": (0.98, 0.80), "float16": (1.0, 0.60)},
    "moments": {"float64": (0.85, 0.48), "float32": (0.85, 0.48), "float16": (0.79, 0.38)},
}


def layouts_for(model: FlowModel | None) -> tuple[LayoutName, ...]:
    """Return the layouts that a model can run in: moments hold only what the regularised collision leaves."""
    if model is None or not isinstance(model.collision, Regularised):
        return LAYOUT_NAMES
    return (*LAYOUT_NAMES, "moments")


def tile_edge(layout: LayoutName) -> int:
    """Return the edge of a layout's tiles in sites, 1 for lists."""
    if layout.startswith("list"):
        return 1
    return MOMENT_EDGE if layout == "moments" else int(layout.removeprefix("tiles-"))


def make_layout(name: LayoutName, backend: Backend, world: World, region: Region, precision: Precision) -> Layout:
    """Return the populations of a rank's sites in a layout.

    Raises:
        CaseError: the layout cannot hold these sites.
    """
    arguments = (backend, world, region, precision.storage)
    try:
        if name == "moments":
            return MomentLayout(*arguments, compute=precision.compute)
        if name.startswith("tiles"):
            return TileLayout(*arguments, edge=tile_edge(name))
        return ListLayout(*arguments, in_place=name == "list-aa")
    except ValueError as error:
        raise CaseError(str(error)) from error


def step_bytes(sites: SiteSet, layout: LayoutName, storage: str, velocity_set: VelocitySet = D3Q19) -> float:
    """Return the predicted bytes of a step a fluid site.

    Lists: 2 Q s and the adjacency (4 (Q - 1) B every step, or every second one in place). Tiles: 2 Q s for every site
    of a tile that is not alone in its run of 32 bytes, 112 B of table a tile, 4 B of mask a site in tiles with walls.
    Moments are tiles with 10 numbers a site (14 halves); what neighbours read again is taken to come from the cache.
    """
    return sum(_moved(sites, layout, storage, velocity_set))


def _moved(sites: SiteSet, layout: LayoutName, storage: str, velocity_set: VelocitySet) -> tuple[float, float]:
    """Return the same in two parts, of tiles without walls (and of lists) and of tiles with walls."""
    size = np.dtype(storage).itemsize
    populations = 2 * size * (numbers_of(storage) if layout == "moments" else velocity_set.Q)
    if layout.startswith("list"):
        return populations + (4.0 if layout == "list-ab" else 2.0) * (velocity_set.Q - 1), 0.0
    edge = tile_edge(layout)
    if any(sites.periodic[axis] and sites.shape[axis] % edge for axis in range(3)):
        return float("inf"), 0.0
    extent = [-(-length // edge) for length in sites.shape]
    tile = sites.coords.astype(np.int64) // edge
    key = (tile[:, 0] * extent[1] + tile[:, 1]) * extent[2] + tile[:, 2]
    tiles, counts = np.unique(key, return_counts=True)
    walled = np.zeros(len(tiles), bool)
    walled[np.searchsorted(tiles, key[sites.boundary])] = True
    walled |= counts < edge**3
    # memory moves in runs of 32 bytes: a run is moved when one of its sites is fluid
    run = run_of(storage) if layout == "moments" else max(1, 32 // size)
    inside = sites.coords % edge
    lane = inside[:, 0] + edge * (inside[:, 1].astype(np.int64) + edge * inside[:, 2])
    lanes = edge**3
    places = len(np.unique(key * (lanes // run) + lane // run)) * run if len(tiles) < len(sites) else len(sites)
    beside = int(np.count_nonzero(walled))
    free = (lanes * populations + 112.0) * (len(tiles) - beside)
    every = places * populations + 112.0 * len(tiles) + 4.0 * lanes * beside
    return free / len(sites), (every - free) / len(sites)


def step_time(sites: SiteSet, layout: LayoutName, storage: str, velocity_set: VelocitySet = D3Q19) -> float:
    """Return the predicted time of a step a fluid site on a GPU, in bytes that a plain copy moves meanwhile."""
    (free, walled), shares = _moved(sites, layout, storage, velocity_set), SHARES[layout][storage]
    return free / shares[0] + walled / shares[1]


def choose_layout(
    sites: SiteSet,
    layout: str,
    storage: str,
    device: str,
    velocity_set: VelocitySet = D3Q19,
    *,
    model: FlowModel | None = None,
) -> LayoutName:
    """Return `layout`, or for "auto" the one of `candidates` whose steps are predicted to be the fastest.

    Raises:
        CaseError: an unknown name, tiles that do not fit the periods, moments with another collision than the
            regularised one.
    """
    allowed = layouts_for(model)
    if layout == "moments" and layout not in allowed:
        raise CaseError(
            'layout "moments" keeps ten numbers a site, which is all that the collision "regularised" leaves and too'
            " little for others; choose that collision or another layout"
        )
    for name in allowed:
        if layout == name:
            if not name.startswith("list"):
                refuse_periods(sites, name, tile_edge(name))
            return name
    if layout != "auto":
        raise CaseError(f"layout {layout!r} is not one of auto, {', '.join(allowed)}")
    return min(candidates(device, model), key=lambda name: step_time(sites, name, storage, velocity_set))


def recommendation(
    sites: SiteSet, storage: str, device: str, velocity_set: VelocitySet = D3Q19, model: FlowModel | None = None
) -> str:
    """Return the layout that "auto" takes and why, in words."""
    chosen = choose_layout(sites, "auto", storage, device, velocity_set, model=model)
    if not parse_device(device).is_gpu:
        return f"{chosen}: on a CPU as fast as the others, with one copy of the populations"
    needs = {name: step_time(sites, name, storage, velocity_set) for name in candidates(device, model)}
    listed = ", ".join(f"{name} {needs[name]:.0f}" for name in needs if np.isfinite(needs[name]))
    words = f"{chosen}: the least time a site and step, in bytes that a copy moves in it ({listed})"
    moments = step_time(sites, "moments", storage, velocity_set)
    if "moments" not in needs and moments < needs[chosen]:
        words += f'; with collision = "regularised" the layout moments takes {moments:.0f}'
    return words


def candidates(device: str, model: FlowModel | None) -> tuple[LayoutName, ...]:
    """Return the layouts among which "auto" chooses on a device.

    On the CPU that is the list in place alone: the others are hardly faster, and it has one copy of the populations. On
    a GPU speed goes with bytes, nearly.
    """
    if not parse_device(device).is_gpu:
        return ("list-aa",)
    return tuple(name for name in ("moments", "tiles-8", "tiles-4", "list-aa") if name in layouts_for(model))
