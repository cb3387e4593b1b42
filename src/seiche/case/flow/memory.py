# SPDX-License-Identifier: BSD-3-Clause
"""Prediction of the memory and time of a run from its size; no field is allocated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seiche.case.flow.setup import FlowSetup
from seiche.domain.occupancy import occupancy
from seiche.domain.sites import SiteSet
from seiche.flow.choice import LayoutName, layouts_for, step_bytes, tile_edge
from seiche.flow.model import Newtonian
from seiche.flow.moment_state import values_per_site
from seiche.flow.velocity_set import D3Q19, VELOCITY_SETS, VelocitySet


@dataclass(frozen=True)
class Prediction:
    """Cost of a layout: total `memory` of all ranks in bytes, `traffic` in bytes per site and step, `seconds` per run.

    `populations` is the number of those on all ranks with 32-bit slot numbers; each rank must have fewer than 2^32.
    """

    layout: str
    memory: float
    traffic: float
    seconds: float | None
    populations: float = 0.0


def predict(setup: FlowSetup, bandwidth: float | None = None) -> list[Prediction]:
    """Return the cost of the layout of the case, or of all layouts for "auto"; `bandwidth` is in bytes/s, or None.

    The traffic is that of `seiche.flow.choice`. Shear-thinning fluids also read and write one relaxation rate per site.
    Fields that are computed for outputs are not included.
    """
    sites, storage = setup.vessel.sites, setup.precision.storage
    velocity_set = VELOCITY_SETS[setup.model.velocity_set]
    rate = 0 if isinstance(setup.model.rheology, Newtonian) else np.dtype(setup.precision.compute).itemsize
    rows = []
    for layout in layouts_for(setup.model):
        traffic = step_bytes(sites, layout, storage, velocity_set) + 2 * rate
        if setup.case.lattice.layout not in ("auto", layout) or not np.isfinite(traffic):
            continue
        seconds = len(sites) * traffic * setup.steps / bandwidth if bandwidth else None
        memory = memory_of(sites, layout, storage, velocity_set) + rate * len(sites)
        rows.append(Prediction(layout, memory, traffic, seconds, populations_of(sites, layout, velocity_set)))
    return rows


def memory_of(sites: SiteSet, layout: LayoutName, storage: str, velocity_set: VelocitySet = D3Q19) -> float:
    """Return the size of populations and tables on all ranks in bytes (flow.md section 10).

    Lists store Q - 1 four-byte neighbours per site, and one copy of the populations ("list-aa") or two copies. Tiles
    store two copies for all their lattice points, 112 B of table per tile and 4 B of mask per lattice point (8 B for
    moments).
    """
    populations = np.dtype(storage).itemsize * (values_per_site(storage) if layout == "moments" else velocity_set.Q)
    if layout.startswith("list"):
        return float(len(sites) * ((1 if layout == "list-aa" else 2) * populations + 4 * (velocity_set.Q - 1)))
    edge, masks = tile_edge(layout), 8 if layout == "moments" else 4
    return float(occupancy(sites, edge).tiles * (edge**3 * (2 * populations + masks) + 112))


def populations_of(sites: SiteSet, layout: LayoutName, velocity_set: VelocitySet = D3Q19) -> float:
    """Return the number of populations in one copy on all ranks; 0 for moments, whose slot numbers have 64 bits."""
    if layout == "moments":
        return 0.0
    if layout.startswith("list"):
        return float(len(sites)) * velocity_set.Q
    edge = tile_edge(layout)
    return float(occupancy(sites, edge).tiles) * edge**3 * velocity_set.Q
