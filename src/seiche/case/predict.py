# SPDX-License-Identifier: BSD-3-Clause
"""Memory and time that a run will need, from bytes alone: no field is allocated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seiche.case.setup import Setup
from seiche.domain.sites import SiteSet
from seiche.flow.choice import LAYOUT_NAMES, LayoutName, step_bytes
from seiche.flow.model import CarreauYasuda

#: Populations of a site.
DIRECTIONS = 19


@dataclass(frozen=True)
class Prediction:
    """What one layout needs: `memory` bytes of all ranks, `traffic` bytes a site and step, `seconds` for the run."""

    layout: str
    memory: float
    traffic: float
    seconds: float | None


def predict(setup: Setup, bandwidth: float | None = None) -> list[Prediction]:
    """Return the needs of the layout that the case asks for, or of each; `bandwidth` in bytes a second, or None.

    Traffic is that of `seiche.flow.choice`; shear-thinning fluid also reads and writes a relaxation rate a site. The
    density, velocity and the like that outputs need are made when they are due and not counted.
    """
    sites, storage = setup.vessel.sites, setup.precision.storage
    rate = np.dtype(setup.precision.compute).itemsize if isinstance(setup.model.rheology, CarreauYasuda) else 0
    rows = []
    for layout in LAYOUT_NAMES:
        traffic = step_bytes(sites, layout, storage) + 2 * rate
        if setup.case.lattice.layout not in ("auto", layout) or not np.isfinite(traffic):
            continue
        seconds = len(sites) * traffic * setup.steps / bandwidth if bandwidth else None
        rows.append(Prediction(layout, memory_of(sites, layout, storage) + rate * len(sites), traffic, seconds))
    return rows


def memory_of(sites: SiteSet, layout: LayoutName, storage: str) -> float:
    """Return the bytes of populations and tables on all ranks (flow.md section 10).

    Lists keep 18 four-byte neighbours a site and one copy of the populations in place, else two; tiles keep two copies
    for all their sites, 112 B of table and 4 B of mask a site.
    """
    populations = DIRECTIONS * np.dtype(storage).itemsize
    if layout.startswith("list"):
        return float(len(sites) * ((1 if layout == "list-aa" else 2) * populations + 4 * (DIRECTIONS - 1)))
    edge = int(layout.removeprefix("tiles-"))
    return float(tiles_of(sites, edge) * (edge**3 * (2 * populations + 4) + 112))


def tiles_of(sites: SiteSet, edge: int) -> int:
    """Return the number of tiles of `edge`^3 sites that hold fluid."""
    coords = sites.coords.astype(np.int64) // edge
    _, ny, nz = (-(-n // edge) for n in sites.shape)
    return len(np.unique((coords[:, 0] * ny + coords[:, 1]) * nz + coords[:, 2]))
