# SPDX-License-Identifier: BSD-3-Clause
"""Choice of the storage layout from the bytes moved per step and from measured efficiencies."""

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
from seiche.flow.moment_layout import MomentLayout
from seiche.flow.moment_state import sites_per_sector, values_per_site
from seiche.flow.region import Region
from seiche.flow.tile_layout import TileLayout, check_periods
from seiche.flow.velocity_set import D3Q19, VELOCITY_SETS, VelocitySet
from seiche.kernels.registry.flow import MOMENT_EDGE
from seiche.set_up import set_up_stage

LayoutName = Literal["list-ab", "list-aa", "tiles-4", "tiles-8", "moments"]
#: The layouts that store populations; they support every collision.
LAYOUT_NAMES: tuple[LayoutName, ...] = ("list-ab", "list-aa", "tiles-4", "tiles-8")
#: Effective bandwidth of a step as a fraction of the copy bandwidth of a GPU, by layout and storage precision: in tiles
#: without walls and in tiles with walls. Measured in boxes and tubes on an H100 (docs/performance/tuning.md). For
#: tiles-4 and float64 tiles-8, only the sum of the two parts was measured. For float64 moments, the values are those of
#: float32.
BANDWIDTH_FRACTIONS: dict[LayoutName, dict[str, tuple[float, float]]] = {
    "list-ab": {"float64": (0.95, 0.95), "float32": (0.94, 0.94), "float16": (0.96, 0.96)},
    "list-aa": {"float64": (0.92, 0.92), "float32": (0.89, 0.89), "float16": (0.86, 0.86)},
    "tiles-4": {"float64": (0.96, 0.75), "float32": (0.94, 0.73), "float16": (0.86, 0.53)},
    "tiles-8": {"float64": (0.98, 0.80), "float32": (0.98, 0.80), "float16": (1.0, 0.60)},
    "moments": {"float64": (0.85, 0.48), "float32": (0.85, 0.48), "float16": (0.79, 0.38)},
}


#: Time per site of list-aa, divided by the time per lattice point of tiles-8, on a CPU with immersed bodies, by storage
#: precision. Measured in tubes with 1.19 to 1.73 lattice points in tiles per site (docs/performance/tuning.md): 1.02 to
#: 1.36 in float64, where it grows with the number of sites, and 0.81 to 1.07 in float32.
IMMERSED_LIST_COST = {"float64": 1.2, "float32": 1.05}


def layouts_for(model: FlowModel | None) -> tuple[LayoutName, ...]:
    """Return the layouts available to a model; "moments" requires the regularised collision."""
    if model is None or not isinstance(model.collision, Regularised):
        return LAYOUT_NAMES
    return (*LAYOUT_NAMES, "moments")


def tile_edge(layout: LayoutName) -> int:
    """Return the edge length of the tiles of a layout in sites, 1 for lists."""
    if layout.startswith("list"):
        return 1
    return MOMENT_EDGE if layout == "moments" else int(layout.removeprefix("tiles-"))


@set_up_stage("link")
def make_layout(name: LayoutName, backend: Backend, world: World, region: Region, precision: Precision) -> Layout:
    """Create the layout `name` for the sites of a rank; CaseError if it cannot store them."""
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
    """Return the predicted number of bytes moved per step and fluid site.

    With s the size of a stored value. Lists: 2 Q s, plus the adjacency, 4 (Q - 1) B in every step (AB) or in every
    second step (AA). Tiles: 2 Q s for each lattice point in a 32-byte sector that contains fluid, 112 B of table per
    tile, and 4 B of mask for each lattice point of a tile with walls. Moments: as tiles, with 10 values per site (14 in
    half precision); repeated reads by neighbours are assumed to hit the cache.
    """
    return sum(_moved_bytes(sites, layout, storage, velocity_set))


def _moved_bytes(sites: SiteSet, layout: LayoutName, storage: str, velocity_set: VelocitySet) -> tuple[float, float]:
    """Return the bytes of `step_bytes` separately for tiles without walls (or lists) and tiles with walls."""
    size = np.dtype(storage).itemsize
    populations = 2 * size * (values_per_site(storage) if layout == "moments" else velocity_set.Q)
    if layout.startswith("list"):
        return populations + (4.0 if layout == "list-ab" else 2.0) * (velocity_set.Q - 1), 0.0
    edge = tile_edge(layout)
    if any(sites.periodic[axis] and sites.shape[axis] % edge for axis in range(3)):
        return float("inf"), 0.0
    # Memory is moved in sectors of 32 bytes; a sector is moved if it contains a fluid site.
    sector = sites_per_sector(storage) if layout == "moments" else max(1, 32 // size)
    counts, lanes = occupancy(sites, edge, sector), edge**3
    without_walls = (lanes * populations + 112.0) * (counts.tiles - counts.walled)
    total = counts.lanes * populations + 112.0 * counts.tiles + 4.0 * lanes * counts.walled
    return without_walls / len(sites), (total - without_walls) / len(sites)


def step_time(sites: SiteSet, layout: LayoutName, storage: str, velocity_set: VelocitySet = D3Q19) -> float:
    """Return the predicted time per step and fluid site on a GPU, as the bytes that a plain copy moves in that time."""
    without_walls, with_walls = _moved_bytes(sites, layout, storage, velocity_set)
    fractions = BANDWIDTH_FRACTIONS[layout][storage]
    return without_walls / fractions[0] + with_walls / fractions[1]


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
    """Return `layout` or, for "auto", the layout of `candidates` with the shortest predicted time per step.

    `immersed` states whether bodies will be immersed in the fluid.

    Raises CaseError for an unknown name, for periodic extents that are not multiples of the tile edge, and for
    "moments" with a collision other than the regularised one.
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
                check_periods(sites, name, tile_edge(name))
            return name
    if layout != "auto":
        raise CaseError(f"layout {layout!r} is not one of auto, {', '.join(allowed)}")
    if immersed and not parse_device(device).is_gpu:
        return _layout_with_bodies(sites, storage)
    return min(candidates(device, model), key=lambda name: step_time(sites, name, storage, velocity_set))


def _layout_with_bodies(sites: SiteSet, storage: str) -> LayoutName:
    """Return the CPU layout for a fluid with immersed bodies: tiles-8, unless the tiles are too empty.

    Forces of bodies are contiguous in tiles; in lists they are gathered.
    """
    edge = tile_edge("tiles-8")
    if any(sites.periodic[axis] and sites.shape[axis] % edge for axis in range(3)):
        return "list-aa"
    lanes = edge**3 * occupancy(sites, edge).tiles
    cost = IMMERSED_LIST_COST.get(storage, IMMERSED_LIST_COST["float32"])
    return "tiles-8" if lanes < cost * len(sites) else "list-aa"


def recommendation(
    sites: SiteSet, storage: str, device: str, model: FlowModel | None = None, *, immersed: bool = False
) -> str:
    """Return a text that names the layout which "auto" selects, and the reason; the default model has D3Q19."""
    velocity_set = VELOCITY_SETS[model.velocity_set] if model is not None else D3Q19
    chosen = choose_layout(sites, "auto", storage, device, velocity_set, model=model, immersed=immersed)
    if not parse_device(device).is_gpu:
        if immersed:
            obstacle = "tiles do not fit the periods or are too empty"
            reason = "its tiles are full enough" if chosen == "tiles-8" else obstacle
            return f"{chosen}: the fastest layout on a CPU with cells, because {reason}"
        return f"{chosen}: on a CPU the fastest layout, with a single copy of the populations"
    times = {name: step_time(sites, name, storage, velocity_set) for name in candidates(device, model)}
    listed = ", ".join(f"{name} {time:.0f}" for name, time in times.items() if np.isfinite(time))
    text = f"{chosen}: shortest predicted time per site and step, in bytes copied in that time ({listed})"
    moments = step_time(sites, "moments", storage, velocity_set)
    if "moments" not in times and moments < times[chosen]:
        text += f'; layout moments with collision = "regularised" takes {moments:.0f}'
    return text


def candidates(device: str, model: FlowModel | None) -> tuple[LayoutName, ...]:
    """Return the layouts among which "auto" selects on a device.

    On a CPU this is the in-place list only: it is the fastest, and it stores the populations once.
    """
    if not parse_device(device).is_gpu:
        return ("list-aa",)
    return tuple(name for name in ("moments", "tiles-8", "tiles-4", "list-aa") if name in layouts_for(model))
