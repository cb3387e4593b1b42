# SPDX-License-Identifier: BSD-3-Clause
"""How long the periodic tubes before the inlets are, such that whole cells make the wanted hematocrit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.case.cells import CellsSetup
from seiche.case.margins import inlets_of
from seiche.case.setup import Setup
from seiche.cells.packing import cell_counts
from seiche.cells.prism import Prism
from seiche.cells.space import FluidSpace
from seiche.errors import CaseError

Floats = npt.NDArray[np.float64]

#: The hematocrit of a tube is that close to the wanted one, or the case is refused; a length that does better is good.
HELD, _GOOD = 0.02, 0.002
#: The tube is at least this number of the radii of its largest cell long.
_LENGTH = 6.0


@dataclass(frozen=True, eq=False)
class TubePlan:
    """A tube before an inlet: its shape, the sites in it, cells of each type, and the hematocrit that they make."""

    prism: Prism
    sites: int
    cells: npt.NDArray[np.int64]
    hematocrit: float


def least_length(setup: Setup, cells: CellsSetup) -> int:
    """Return the least length of a tube in sites."""
    table = setup.case.reservoir
    if table is None or table.length is None:
        return math.ceil(_LENGTH * cells.largest())
    return math.ceil(setup.units.to_lattice("length", table.length) * (1 - 1e-9))


def planned(setup: Setup, cells: CellsSetup, walls: FluidSpace | None = None) -> dict[str, TubePlan]:
    """Return the tubes of a case with a reservoir, by inlet; `walls` is the vessel with open openings.

    Raises:
        CaseError: whole cells do not come close enough to the hematocrit.
    """
    table, sites = setup.case.reservoir, setup.vessel.sites
    if table is None or cells.hematocrit is None:
        return {}
    walls = walls or FluidSpace(sites, closed=False)
    shares = np.array([each.share for each in setup.case.cells])
    wanted, found = table.hematocrit or cells.hematocrit, {}
    for plane in inlets_of(setup):
        prism = Prism(sites, plane, least_length(setup, cells), walls)
        plan = _fitting(prism, cells.volumes(), shares / shares.sum(), wanted)
        if not abs(plan.hematocrit / wanted - 1) <= HELD:
            length = plan.prism.length * setup.units.spacing * 1e6
            raise CaseError(
                f'{setup.source}: reservoir before iolet["{plane.name}"]: hematocrit = {wanted:g}: {plan.cells.sum()} '
                f"cells in {length:.3g} um make {plan.hematocrit:.3g}, more than {HELD:.0%} off; use a greater "
                "reservoir.length"
            )
        found[plane.name] = plan
    return found


def _fitting(prism: Prism, volumes: Floats, part: Floats, hematocrit: float) -> TubePlan:
    """Return the tube, longer by up to its own length, with whole cells that come close to the hematocrit."""
    section = len(prism.sites()) / prism.length
    best: TubePlan | None = None
    for length in range(prism.length, 2 * prism.length + 1):
        counts = cell_counts(section * length, volumes, part, hematocrit)
        reached = float(counts @ volumes) / (section * length)
        if best is None or abs(reached - hematocrit) < abs(best.hematocrit - hematocrit):
            best = TubePlan(prism.longer(length), round(section * length), counts, reached)
        if abs(reached / hematocrit - 1) < _GOOD:
            break
    assert best is not None
    return best
