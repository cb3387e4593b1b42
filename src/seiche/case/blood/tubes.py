# SPDX-License-Identifier: BSD-3-Clause
"""How long the periodic tubes before the inlets are, such that whole cells make the wanted hematocrit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.case.blood.cells import refuse_large
from seiche.case.blood.margins import inlets_of
from seiche.case.blood.setup import BloodSetup, CellsSetup
from seiche.cells.packing import HIGHEST_HEMATOCRIT, cell_counts, pack
from seiche.cells.prism import Prism
from seiche.cells.space import FluidSpace
from seiche.errors import CaseError

Floats = npt.NDArray[np.float64]

#: The hematocrit of a tube is that close to the wanted one, or the case is refused; a length that does better is good.
HELD, _GOOD = 0.02, 0.002
#: The tube is at least this number of the radii of its largest cell long.
_LENGTH = 6.0
#: It may be up to this number of times as long for each type of cells to be in it.
_LONGEST = 12
#: It may have so many sites, or so many times those of the vessel: every rank computes all of it.
_MOST_SITES, _MOST_VESSELS = 5e6, 10


@dataclass(frozen=True, eq=False)
class TubePlan:
    """A tube before an inlet: its shape, the sites in it, cells of each type, and the hematocrit that they make."""

    prism: Prism
    sites: int
    cells: npt.NDArray[np.int64]
    hematocrit: float


def refuse_tubes(setup: BloodSetup) -> None:
    """Raise a CaseError for a reservoir that no packing can fill, or one too long to compute; before cells are made."""
    table, packing, sites = setup.case.reservoir, setup.case.packing, setup.vessel.sites
    if table is None or packing is None:
        return
    wanted = table.hematocrit or packing.hematocrit
    if wanted > HIGHEST_HEMATOCRIT:
        origin = "" if table.hematocrit else " (that of [packing])"
        raise CaseError(
            f"{setup.source}: reservoir.hematocrit = {wanted:g}{origin}: a number above 0 and up to "
            f"{HIGHEST_HEMATOCRIT:g} is expected"
        )
    for plane in inlets_of(setup) if table.length is not None else ():
        assert table.length is not None
        area, most = Prism(sites, plane, 1).area, most_sites(setup)
        if area * table.length / sites.spacing > most:
            raise CaseError(
                f'{setup.source}: reservoir.length: {table.length:.3g} m before iolet["{plane.name}"] make '
                f"{area * table.length / sites.spacing:.2g} sites; up to {most:,} are possible, {_MOST_SITES:,.0f} or "
                f"{_MOST_VESSELS} times those of the vessel; use at most {most / area * sites.spacing:.3g} m"
            )


def most_sites(setup: BloodSetup) -> int:
    """Return how many sites a tube may have."""
    return int(max(_MOST_SITES, _MOST_VESSELS * len(setup.vessel.sites)))


def least_length(setup: BloodSetup, cells: CellsSetup) -> int:
    """Return the least length of a tube in sites."""
    table = setup.case.reservoir
    if table is None or table.length is None:
        return math.ceil(_LENGTH * cells.largest())
    return math.ceil(setup.units.to_lattice("length", table.length) * (1 - 1e-9))


def planned(setup: BloodSetup, cells: CellsSetup, walls: FluidSpace | None = None) -> dict[str, TubePlan]:
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
        plan = _fitting(prism, cells.volumes(), shares / shares.sum(), wanted, most_sites(setup))
        if not abs(plan.hematocrit / wanted - 1) <= HELD:
            length = plan.prism.length * setup.units.spacing * 1e6
            raise CaseError(
                f'{setup.source}: reservoir before iolet["{plane.name}"]: hematocrit = {wanted:g}: {plan.cells.sum()} '
                f"cells in {length:.3g} um make {plan.hematocrit:.3g}, more than {HELD:.0%} off; use a greater "
                "reservoir.length"
            )
        _refuse_short(setup, cells, plane.name, plan)
        _refuse_reach(setup, cells, plane.name, plan)
        found[plane.name] = plan
    return found


def _refuse_short(setup: BloodSetup, cells: CellsSetup, name: str, plan: TubePlan) -> None:
    """Refuse a tube in which a cell has no place."""
    what = f'the tube of {plan.prism.length * setup.units.spacing * 1e6:.3g} um before iolet["{name}"]'
    try:
        space = FluidSpace(plan.prism.sites())
        refuse_large(space, cells.types, cells.surfaces, setup.units, what, "a greater reservoir.length")
    except CaseError as error:
        raise CaseError(f"{setup.source}: {error}") from None


def _refuse_reach(setup: BloodSetup, cells: CellsSetup, name: str, plan: TubePlan) -> None:
    """Refuse forces that reach so far that a cell of the tube could meet itself."""
    spacing = setup.units.spacing
    for key, law in (("reach", cells.between), ("wall_reach", cells.wall)):
        if plan.prism.length < 3 * law.farthest:
            raise CaseError(
                f"{setup.source}: contact.{key if law.farthest == law.reach else 'adhesion.reach'}: "
                f"{law.farthest * spacing:.3g} m is more than a third of the tube of {plan.prism.length * spacing:.3g} "
                f'm before iolet["{name}"]; use a shorter one, or a greater reservoir.length'
            )


def refuse_unpackable(setup: BloodSetup, cells: CellsSetup, plans: Mapping[str, TubePlan]) -> None:
    """Pack the tubes as a run does, to see whether that is possible.

    Raises:
        CaseError: it is not.
    """
    table, shares = setup.case.reservoir, [each.share for each in setup.case.cells]
    if table is None or cells.hematocrit is None:
        return
    wanted = table.hematocrit or cells.hematocrit
    for name, plan in plans.items():
        try:
            pack(FluidSpace(plan.prism.sites()), cells.surfaces, wanted, shares=shares, gap=cells.gap, seed=table.seed)
        except CaseError as error:
            key, _, reason = str(error).partition(": ")
            what = reason if key.startswith("hematocrit") else str(error)
            raise CaseError(
                f'{setup.source}: reservoir.hematocrit: {wanted:g} is not possible before iolet["{name}"]: {what}'
            ) from None


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
        if complete is not None and abs(complete.hematocrit / hematocrit - 1) <= HELD:
            return complete
    return plan


def lacking(setup: BloodSetup, counts: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """Yield a line for each type of which none is among the `counts` (types,) of cells in the tubes, by inlet."""
    for name, numbers in counts.items():
        for table, number in zip(setup.case.cells, numbers, strict=True):
            if table.share > 0 and number < 1:
                yield (
                    f'reservoir before iolet["{name}"]: none of its {sum(numbers)} cells is a "{table.name}", whose '
                    f"share is {table.share:g}, so none enters; use a greater reservoir.length or share"
                )
