# SPDX-License-Identifier: BSD-3-Clause
"""Length of the reservoirs for which a whole number of cells has the requested hematocrit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.cells.packing import cell_counts
from seiche.cells.prism import Prism
from seiche.couple.open.vessel import OpenVessel
from seiche.couple.suspension import CellsSetup
from seiche.domain.sites import IoletPlane, SiteSet

Floats = npt.NDArray[np.float64]

#: Relative tolerance of the hematocrit of a tube that is lengthened for a rare type of cells, and the error at which
#: the search for a length ends.
_TOLERANCE, _SEARCH_TOLERANCE = 0.02, 0.002
#: Minimum length, in radii of the largest cell.
_MIN_RADII = 6.0
#: Maximum factor by which a tube is lengthened in order to contain every type of cells.
_MAX_FACTOR = 12
#: Maximum number of sites, absolute and relative to the vessel, since every rank computes the whole tube.
MAX_SITES, MAX_SITE_RATIO = 5e6, 10


@dataclass(frozen=True, eq=False)
class TubePlan:
    """Tube of a reservoir: its shape, number of sites, number of cells of each type, and their hematocrit."""

    prism: Prism
    sites: int
    cells: npt.NDArray[np.int64]
    hematocrit: float


def max_sites(sites: SiteSet) -> int:
    """Return the maximum number of sites of a reservoir."""
    return int(max(MAX_SITES, MAX_SITE_RATIO * len(sites)))


def reservoir_plan(vessel: OpenVessel, inlet: IoletPlane, cells: CellsSetup) -> TubePlan:
    """Return the reservoir of an inlet with the whole number of cells closest to the hematocrit."""
    shares = np.array(cells.shares)
    length = math.ceil(_MIN_RADII * cells.cell_radius() if vessel.length is None else vessel.length * (1 - 1e-9))
    prism = Prism(vessel.sites, inlet, length, vessel.walls)
    return _fitting(prism, cells.volumes(), shares / shares.sum(), vessel.hematocrit, max_sites(vessel.sites))


def _fitting(prism: Prism, volumes: Floats, fractions: Floats, hematocrit: float, limit: int) -> TubePlan:
    """Return the tube, up to twice as long, with the whole number of cells closest to the hematocrit.

    It may be longer, up to `limit` sites, if a cell type with a positive share would otherwise be absent.
    """
    section = len(prism.sites()) / prism.length

    def closest(lengths: range, all_types: bool) -> TubePlan | None:
        best: TubePlan | None = None
        for length in lengths:
            counts = cell_counts(section * length, volumes, fractions, hematocrit)
            if all_types and (counts < 1)[fractions > 0].any():
                continue
            achieved = float(counts @ volumes) / (section * length)
            if best is None or abs(achieved - hematocrit) < abs(best.hematocrit - hematocrit):
                best = TubePlan(prism.with_length(length), round(section * length), counts, achieved)
            if abs(achieved / hematocrit - 1) < _SEARCH_TOLERANCE:
                break
        return best

    short_lengths = range(prism.length, 2 * prism.length + 1)
    plan = closest(short_lengths, False)
    assert plan is not None
    if (plan.cells > 0)[fractions > 0].all():
        return plan
    long_lengths = range(short_lengths.stop, min(_MAX_FACTOR * prism.length, int(limit / section)) + 1)
    for lengths in (short_lengths, long_lengths):
        candidate = closest(lengths, True)
        if candidate is not None and abs(candidate.hematocrit / hematocrit - 1) <= _TOLERANCE:
            return candidate
    return plan
