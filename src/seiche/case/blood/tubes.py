# SPDX-License-Identifier: BSD-3-Clause
"""Inflow reservoirs, which are periodic tubes upstream of the inlets, and errors for invalid ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from seiche.case.blood.cells import check_cells_fit
from seiche.case.blood.setup import BloodSetup, open_vessel
from seiche.cells.packing import MAX_HEMATOCRIT, pack
from seiche.cells.prism import Prism
from seiche.cells.space import FluidSpace
from seiche.couple.open.tubes import MAX_SITE_RATIO, MAX_SITES, TubePlan, max_sites, reservoir_plan
from seiche.couple.open.vessel import OpenVessel, inlets_of
from seiche.couple.suspension import CellsSetup
from seiche.errors import CaseError

#: Maximum relative deviation of the hematocrit of a tube from the requested hematocrit.
HEMATOCRIT_TOLERANCE = 0.02


def check_tubes(setup: BloodSetup) -> None:
    """Raise a CaseError for a reservoir that is too dense to pack or too long to compute, before cells are created."""
    table, packing, sites = setup.case.reservoir, setup.case.packing, setup.vessel.sites
    if table is None or packing is None:
        return
    hematocrit = table.hematocrit or packing.hematocrit
    if hematocrit > MAX_HEMATOCRIT:
        origin = "" if table.hematocrit else " (that of [packing])"
        raise CaseError(
            f"{setup.source}: reservoir.hematocrit = {hematocrit:g}{origin}: expected a number above 0 and at most "
            f"{MAX_HEMATOCRIT:g}"
        )
    for plane in inlets_of(sites) if table.length is not None else ():
        assert table.length is not None
        area, limit = Prism(sites, plane, 1).area, max_sites(sites)
        if area * table.length / sites.spacing > limit:
            raise CaseError(
                f'{setup.source}: reservoir.length: {table.length:.3g} m at iolet["{plane.name}"] needs '
                f"{area * table.length / sites.spacing:.2g} sites; the limit is {limit:,}, the larger of "
                f"{MAX_SITES:,.0f} and {MAX_SITE_RATIO} times the sites of the vessel; use at most "
                f"{limit / area * sites.spacing:.3g} m"
            )


def plan_tubes(setup: BloodSetup, cells: CellsSetup, vessel: OpenVessel | None = None) -> dict[str, TubePlan]:
    """Return the tubes of a case with a reservoir, by inlet; `vessel` is that of the case if it already exists.

    Raises:
        CaseError: no whole number of cells yields the hematocrit, or a tube is too short for a cell or its forces.
    """
    if setup.case.reservoir is None or cells.hematocrit is None:
        return {}
    vessel, plans = vessel or open_vessel(setup), {}
    requested = vessel.hematocrit
    for plane in vessel.inlets:
        plan = reservoir_plan(vessel, plane, cells)
        if not abs(plan.hematocrit / requested - 1) <= HEMATOCRIT_TOLERANCE:
            length = plan.prism.length * setup.units.spacing * 1e6
            raise CaseError(
                f'{setup.source}: reservoir of iolet["{plane.name}"]: hematocrit = {requested:g}: '
                f"{plan.cells.sum()} cells in {length:.3g} um give {plan.hematocrit:.3g}, which deviates by more "
                f"than {HEMATOCRIT_TOLERANCE:.0%}; use a larger reservoir.length"
            )
        _check_tube_length(setup, cells, plane.name, plan)
        _check_interaction_range(setup, cells, plane.name, plan)
        plans[plane.name] = plan
    return plans


def _check_tube_length(setup: BloodSetup, cells: CellsSetup, name: str, plan: TubePlan) -> None:
    """Raise a CaseError for a tube into which a cell does not fit."""
    container = f'the tube of {plan.prism.length * setup.units.spacing * 1e6:.3g} um before iolet["{name}"]'
    space, remedy = FluidSpace(plan.prism.sites()), "a larger reservoir.length"
    try:
        check_cells_fit(space, cells.types, cells.surfaces, setup.units, container=container, remedy=remedy)
    except CaseError as error:
        raise CaseError(f"{setup.source}: {error}") from None


def _check_interaction_range(setup: BloodSetup, cells: CellsSetup, name: str, plan: TubePlan) -> None:
    """Raise a CaseError for forces of such a long range that a cell in the periodic tube could interact with itself."""
    spacing = setup.units.spacing
    for key, law in (("reach", cells.between), ("wall_reach", cells.wall)):
        if plan.prism.length < 3 * law.cutoff:
            raise CaseError(
                f"{setup.source}: contact.{key if law.cutoff == law.reach else 'adhesion.reach'}: "
                f"{law.cutoff * spacing:.3g} m is more than a third of the length ("
                f'{plan.prism.length * spacing:.3g} m) of the reservoir upstream of iolet["{name}"]; use a shorter '
                "reach, or a larger reservoir.length"
            )


def check_packable(setup: BloodSetup, cells: CellsSetup, plans: Mapping[str, TubePlan]) -> None:
    """Pack the tubes as a run does; CaseError if that is not possible."""
    for name, plan in plans.items():
        vessel, space = open_vessel(setup), FluidSpace(plan.prism.sites())
        try:
            pack(space, cells.surfaces, vessel.hematocrit, shares=cells.shares, gap=cells.gap, seed=vessel.seed)
        except CaseError as error:
            key, _, reason = str(error).partition(": ")
            reason = reason if key.startswith("hematocrit") else str(error)
            raise CaseError(
                f"{setup.source}: reservoir.hematocrit: {vessel.hematocrit:g} is not possible before "
                f'iolet["{name}"]: {reason}'
            ) from None


def missing_types(setup: BloodSetup, counts: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """Yield one line for each cell type missing from a reservoir; `counts` (types,) are numbers of cells by inlet."""
    for name, type_counts in counts.items():
        for table, number in zip(setup.case.cells, type_counts, strict=True):
            if table.share > 0 and number < 1:
                yield (
                    f'reservoir of iolet["{name}"]: none of its {sum(type_counts)} cells is a "{table.name}", whose '
                    f"share is {table.share:g}, so none enters; use a larger reservoir.length or share"
                )
