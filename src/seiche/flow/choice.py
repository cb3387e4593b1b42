# SPDX-License-Identifier: BSD-3-Clause
"""Choice of the storage layout, from the bytes moved per step and the measured efficiency of each layout."""

from __future__ import annotations

from typing import Literal

import numpy as np

from seiche.backend import Backend, parse_device
from seiche.domain.occupancy import occupancy
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
#: The layouts that store populations, for every collision.
LAYOUT_NAMES: tuple[LayoutName, ...] = ("list-ab", "list-aa", "tiles-4", "tiles-8")
#: Effective bandwidth of a step over the copy bandwidth of a GPU by storage precision, in tiles without and with walls.
#: Measured in boxes and tubes on one H100 (docs/performance/tuning.md). For tiles-4 and float64 tiles-8 only the sum of
#: both was measured. Float64 moments were not measured; their values are those of float32.
SHARES: dict[LayoutName, dict[str, tuple[float, float]]] = {
    "list-ab": {"float64": (0.95, 0.95), "float32": (0.94, 0.94), "float16": (0.96, 0.96)},
    "list-aa": {"float64": (0.92, 0.92), "float32": (0.89, 0.89), "float16": (0.86, 0.86)},
    "tiles-4": {"float64": (0.96, 0.75), "float32": (0.94, 0.73), "float16": (0.86, 0.53)},
    "tiles-8": {"float64": (0.98, 0.80), "float32": (0.98, 0.80), "float16": (1.0, 0.60)},
    "moments": {"float64": (0.85, 0.48), "float32": (0.85, 0.48), "float16": (0.79, 0.38)},
}


#: Time of list-aa for a site over that of tiles-8 for a site of a tile, on a CPU with immersed bodies. A step with
#: tiles-8 takes 0.75 to 0.88 of the time in a box, 0.82 to 0.87 in a tube of 20 sites radius (tiles have 1.27 times its
#: sites) and 0.94 to 1.21 in one of 10 sites (1.73 times).
IMMERSED_LIST_COST = 1.5


def layouts_for(model: FlowModel | None) -> tuple[LayoutName, ...]:
    """Return the layouts available to a model; "moments" requires the regularised collision."""
    if model is None or not isinstance(model.collision, Regularised):
        return LAYOUT_NAMES
    return (*LAYOUT_NAMES, "moments")


def tile_edge(layout: LayoutName) -> int:
    """Return the edge of a layout's tiles in sites, 1 for lists."""
    if layout.startswith("list"):
        return 1
    return MOMENT_EDGE if layout == "moments" else int(layout.removeprefix("tiles-"))


def make_layout(name: LayoutName, backend: Backend, world: World, region: Region, precision: Precision) -> Layout:
    """Return the populations of a rank's sites in a layout; CaseError if the layout cannot store these sites."""
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
    """Return the predicted bytes per step and fluid site; s is the size of a stored number.

    Lists: 2 Q s and the adjacency (4 (Q - 1) B every step, or every second one in place). Tiles: 2 Q s for every site
    in a 32-byte run that contains fluid, 112 B of table per tile, 4 B of mask per site of tiles with walls. Moments:
    tiles with 10 numbers per site (14 halves); repeated reads by neighbours are assumed to hit the cache.
    """
    return sum(_moved_bytes(sites, layout, storage, velocity_set))


def _moved_bytes(sites: SiteSet, layout: LayoutName, storage: str, velocity_set: VelocitySet) -> tuple[float, float]:
    """Return the bytes of `step_bytes` in two parts: tiles without walls (or lists), and tiles with walls."""
    size = np.dtype(storage).itemsize
    populations = 2 * size * (numbers_of(storage) if layout == "moments" else velocity_set.Q)
    if layout.startswith("list"):
        return populations + (4.0 if layout == "list-ab" else 2.0) * (velocity_set.Q - 1), 0.0
    edge = tile_edge(layout)
    if any(sites.periodic[axis] and sites.shape[axis] % edge for axis in range(3)):
        return float("inf"), 0.0
    # Memory moves in runs of 32 bytes: a run is moved if it contains a fluid site.
    run = run_of(storage) if layout == "moments" else max(1, 32 // size)
    counts, lanes = occupancy(sites, edge, run), edge**3
    without_walls = (lanes * populations + 112.0) * (counts.tiles - counts.walled)
    total = counts.lanes * populations + 112.0 * counts.tiles + 4.0 * lanes * counts.walled
    return without_walls / len(sites), (total - without_walls) / len(sites)


def step_time(sites: SiteSet, layout: LayoutName, storage: str, velocity_set: VelocitySet = D3Q19) -> float:
    """Return the predicted time per step and fluid site on a GPU, in bytes that a plain copy moves in that time."""
    (without_walls, with_walls), shares = _moved_bytes(sites, layout, storage, velocity_set), SHARES[layout][storage]
    return without_walls / shares[0] + with_walls / shares[1]


def choose_layout(
    sites: SiteSet,
    layout: str,
    storage: str,
    device: str,
    velocity_set: VelocitySet = D3Q19,
    *,
    model: FlowModel | None = None,
    immersed: bool = False,
) -> LayoutName:
    """Return `layout`, or for "auto" the one of `candidates` with the shortest predicted step.

    `immersed`: bodies will be immersed in the fluid.

    Raises CaseError for an unknown name, periodic extents that are not multiples of the tile, and "moments" with
    a collision other than the regularised one.
    """
    allowed = layouts_for(model)
    if layout == "moments" and layout not in allowed:
        raise CaseError(
            'layout "moments" stores ten numbers per site, which is sufficient only for collision = "regularised"; '
            "choose that collision or another layout"
        )
    for name in allowed:
        if layout == name:
            if not name.startswith("list"):
                refuse_periods(sites, name, tile_edge(name))
            return name
    if layout != "auto":
        raise CaseError(f"layout {layout!r} is not one of auto, {', '.join(allowed)}")
    if immersed and not parse_device(device).is_gpu:
        return _with_bodies(sites)
    return min(candidates(device, model), key=lambda name: step_time(sites, name, storage, velocity_set))


def _with_bodies(sites: SiteSet) -> LayoutName:
    """Return the layout on a CPU for a fluid with immersed bodies: tiles-8 unless too few of their sites are fluid.

    The sweep of tiles is vectorised with forces of bodies, that of lists is not.
    """
    edge = tile_edge("tiles-8")
    if any(sites.periodic[axis] and sites.shape[axis] % edge for axis in range(3)):
        return "list-aa"
    lanes = edge**3 * len(np.unique(sites.coords.astype(np.int64) // edge, axis=0))
    return "tiles-8" if lanes < IMMERSED_LIST_COST * len(sites) else "list-aa"


def recommendation(
    sites: SiteSet,
    storage: str,
    device: str,
    velocity_set: VelocitySet = D3Q19,
    model: FlowModel | None = None,
    *,
    immersed: bool = False,
) -> str:
    """Return the layout that "auto" selects and the reason, as text."""
    chosen = choose_layout(sites, "auto", storage, device, velocity_set, model=model, immersed=immersed)
    if not parse_device(device).is_gpu:
        if immersed:
            why_not = "tiles do not fit the periods or are too empty"
            reason = "its sweep is vectorised" if chosen == "tiles-8" else why_not
            return f"{chosen}: on a CPU the fastest with cells, because {reason}"
        return f"{chosen}: on a CPU as fast as the others, with one copy of the populations"
    times = {name: step_time(sites, name, storage, velocity_set) for name in candidates(device, model)}
    listed = ", ".join(f"{name} {time:.0f}" for name, time in times.items() if np.isfinite(time))
    text = f"{chosen}: shortest predicted time per site and step, in bytes copied in that time ({listed})"
    moments = step_time(sites, "moments", storage, velocity_set)
    if "moments" not in times and moments < times[chosen]:
        text += f'; layout moments with collision = "regularised" takes {moments:.0f}'
    return text


def candidates(device: str, model: FlowModel | None) -> tuple[LayoutName, ...]:
    """Return the layouts from which "auto" selects on a device.

    On the CPU only the in-place list: the others are hardly faster, and it stores one copy of the populations.
    """
    if not parse_device(device).is_gpu:
        return ("list-aa",)
    return tuple(name for name in ("moments", "tiles-8", "tiles-4", "list-aa") if name in layouts_for(model))
