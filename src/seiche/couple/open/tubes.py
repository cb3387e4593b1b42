# SPDX-License-Identifier: BSD-3-Clause
"""How long the periodic tubes before the inlets are, such that whole cells make the wanted hematocrit."""

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

#: A tube with a type of cells that a shorter one lacks has a hematocrit that close to the wanted one; a length that
#: comes closer than `_GOOD` is not improved.
_CLOSE, _GOOD = 0.02, 0.002
#: The tube is at least this number of the radii of its largest cell long.
_LENGTH = 6.0
#: It may be up to this number of times as long for each type of cells to be in it.
_LONGEST = 12
#: It may have so many sites, or so many times those of the vessel: every rank computes all of it.
MOST_SITES, MOST_VESSELS = 5e6, 10


@dataclass(frozen=True, eq=False)
class TubePlan:
    """A tube before an inlet: its shape, the sites in it, cells of each type, and the hematocrit that they make."""

    prism: Prism
    sites: int
    cells: npt.NDArray[np.int64]
    hematocrit: float


def most_sites(sites: SiteSet) -> int:
    """Return how many sites a tube before a vessel may have."""
    return int(max(MOST_SITES, MOST_VESSELS * len(sites)))


def _least_length(vessel: OpenVessel, cells: CellsSetup) -> int:
    """Return the least length of a tube in sites."""
    if vessel.length is None:
        return math.ceil(_LENGTH * cells.largest())
    return math.ceil(vessel.length * (1 - 1e-9))


def tube_before(vessel: OpenVessel, inlet: IoletPlane, cells: CellsSetup) -> TubePlan:
    """Return the tube before an inlet whose whole cells come closest to the hematocrit."""
    shares = np.array(cells.shares)
    prism = Prism(vessel.sites, inlet, _least_length(vessel, cells), vessel.walls)
    return _fitting(prism, cells.volumes(), shares / shares.sum(), vessel.hematocrit, most_sites(vessel.sites))


def _fitting(prism: Prism, volumes: Floats, part: Floats, hematocrit: float, most: int) -> TubePlan:
    """Return the tube with whole cells that come close to the hematocrit, longer by up to its own length.

    Where a type is to have a part of the cells and would have none, it may be still longer, up to `most` sites.
    """
    section = len(prism.sites()) / prism.length

    def closest(lengths: range, every: bool) -> TubePlan | None:
        best: TubePlan | None = None
        for length in lengths:
            counts = cell_counts(section * length, volumes, part, hematocrit)
            if every and (counts < 1)[part > 0].any():
                continue
            reached = float(counts @ volumes) / (section * length)
            if best is None or abs(reached - hematocrit) < abs(best.hematocrit - hematocrit):
                best = TubePlan(prism.longer(length), round(section * length), counts, reached)
            if abs(reached / hematocrit - 1) < _GOOD:
                break
        return best

    near = range(prism.length, 2 * prism.length + 1)
    plan = closest(near, False)
    assert plan is not None
    if (plan.cells > 0)[part > 0].all():
        return plan
    far = range(near.stop, min(_LONGEST * prism.length, int(most / section)) + 1)
    for lengths in (near, far):
        complete = closest(lengths, True)
        if complete is not None and abs(complete.hematocrit / hematocrit - 1) <= _CLOSE:
            return complete
    return plan
