# SPDX-License-Identifier: BSD-3-Clause
"""Flow as a kind of case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from seiche.case.flow.check import describe
from seiche.case.flow.counted_plan import can_count, chosen_layout, counted_ranks
from seiche.case.flow.estimates import flow_estimates
from seiche.case.flow.geometry import FlowVessel, build
from seiche.case.flow.limits import check_limits, check_state_counts
from seiche.case.flow.rims import rim_lines
from seiche.case.flow.run import FlowCaseRun, open_solver
from seiche.case.flow.schema import FlowCase
from seiche.case.flow.setup import FlowSetup, build_setup
from seiche.case.flow.size import sized_vessel
from seiche.case.flow.sketch import can_be_drawn, flow_picture
from seiche.case.kind import Kind, PlannedCase
from seiche.case.load import check_tables
from seiche.case.source import CaseFile
from seiche.domain.set_up_ranks import set_up_on
from seiche.domain.sharing import on_root, without_arrays
from seiche.domain.world import World
from seiche.flow.choice import layouts_for, step_bytes, step_time
from seiche.flow.velocity_set import VELOCITY_SETS
from seiche.observe.plan import PlannedRank, planned_rank
from seiche.report.case_figure import CasePicture

SetupOf = TypeVar("SetupOf", bound=FlowSetup)


def flow_setup(
    source: CaseFile, case: FlowCase, ranks: int, *, sized: bool = False, vessel: FlowVessel | None = None
) -> FlowSetup:
    """Return the set-up of a checked case, created by this process, with the geometry `vessel` if it exists.

    With `sized`, a large vessel has a size but no sites.

    Raises:
        CaseError: the case cannot run.
        FormatError: a file is invalid.
    """
    if sized:
        vessel = sized_vessel(case, source.folder, str(source.path))
    vessel = vessel or build(case, source.folder, str(source.path))
    vessel = replace(vessel, notes=(*source.notes, *vessel.notes))
    setup = build_setup(case, vessel, str(source.path))
    check_limits(setup, ranks)
    return setup


def shared_setup(source: CaseFile, case: FlowCase, world: World, make: Callable[[FlowVessel], SetupOf]) -> SetupOf:
    """Create the geometry of a checked case on all ranks, and the remaining set-up from it on rank 0 (collective)."""
    with set_up_on(world):
        vessel = build(case, source.folder, str(source.path))
    if world.size == 1:
        return make(vessel)

    def setup_without_sites() -> SetupOf:
        setup = make(vessel)
        empty_vessel = replace(setup.vessel, sites=without_arrays(vessel.sites), surface=None)
        return replace(setup, vessel=empty_vessel)

    setup = on_root(world, setup_without_sites)
    return replace(setup, vessel=replace(setup.vessel, sites=vessel.sites, surface=vessel.surface))


def prepare(source: CaseFile, world: World | None = None, *, initial_state: bool = True) -> FlowSetup:
    """Create the geometry of a case on all ranks; no field is allocated (collective).

    Raises the same CaseError or FormatError on every rank for an invalid case.
    """
    world = world or World.serial()
    case = check_tables(source.tables, str(source.path), FlowCase)
    return shared_setup(source, case, world, lambda vessel: flow_setup(source, case, world.size, vessel=vessel))


def check_with(
    schema: type[FlowCase], make: Callable[[CaseFile], SetupOf], describe: Callable[[SetupOf, int], list[str]]
) -> Callable[[CaseFile, World, int], list[str]]:
    """Return the check of a kind of case; `make` returns the set-up on one rank, and `describe` returns the lines."""

    def check(source: CaseFile, world: World, ranks: int) -> list[str]:
        lines = on_root(world, lambda: rim_lines(source, schema))
        if world.rank == 0:  # printed before the iolets are checked, because the rims explain errors of iolets
            print("\n".join(lines), end="\n" if lines else "")

        def check_on_root() -> list[str]:
            setup = make(source)
            check_limits(setup, ranks)
            return describe(setup, ranks)

        return on_root(world, check_on_root)

    return check


def _sized_setup(source: CaseFile) -> FlowSetup:
    """Return the set-up for a check; the sites of a large vessel are not created."""
    setup = flow_setup(source, check_tables(source.tables, str(source.path), FlowCase), 1, sized=True)
    check_state_counts(setup)
    return setup


class FlowPlan(PlannedCase):
    """A flow case whose runs can be planned."""

    item = "sites"
    setup: FlowSetup

    def __init__(self, source: CaseFile) -> None:
        self.setup = prepare(source)
        self.total = len(self.setup.vessel.sites)

    def check_ranks(self, ranks: int) -> None:
        """Raise a CaseError for a number of ranks on which the case cannot run."""
        check_limits(self.setup, ranks)

    def rank(self, world: World, device: str) -> tuple[PlannedRank, str]:
        """Return the plan of one rank and its layout (collective)."""
        solver = open_solver(self.setup, world, device=device)
        kinds = [(1.0, stages) for stages in solver.phases]
        return planned_rank(solver.backend, kinds, len(solver.owned)), solver.layout

    def all_ranks(self, ranks: int, device: str) -> tuple[list[PlannedRank], str]:
        """Return the plans of all ranks, counted in tiles where possible, and the layout."""
        layout = chosen_layout(self.setup, device)
        if ranks == 1 or not can_count(self.setup, layout):
            return super().all_ranks(ranks, device)
        return counted_ranks(self.setup, ranks, device, layout), layout

    def shares(self, layout: str) -> dict[str, float]:
        """Return the fraction of the memory bandwidth that the sweep reaches, measured on GPUs (`flow/choice.py`)."""
        sites, storage = self.setup.vessel.sites, self.setup.precision.storage
        lattice = VELOCITY_SETS[self.setup.model.velocity_set]
        name = next(candidate for candidate in layouts_for(self.setup.model) if candidate == layout)
        traffic, effective_traffic = (rule(sites, name, storage, lattice) for rule in (step_bytes, step_time))
        return {"stream-collide": traffic / effective_traffic}


def _picture(source: CaseFile) -> CasePicture:
    setup = _sized_setup(source)
    return flow_picture(setup if can_be_drawn(setup) else prepare(source))


FLOW = Kind(
    "flow",
    FlowCase,
    prepare,
    FlowCaseRun,
    check_with(FlowCase, _sized_setup, describe),
    FlowPlan,
    flow_estimates,
    picture=_picture,
    verify=_sized_setup,
)
