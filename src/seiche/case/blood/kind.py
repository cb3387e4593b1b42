# SPDX-License-Identifier: BSD-3-Clause
"""Blood, which is flow with cells, as a kind of case."""

from __future__ import annotations

from dataclasses import fields, replace

from seiche.backend.planned import PlannedBackend
from seiche.case.blood.case_run import BloodCaseRun
from seiche.case.blood.cells import cells_setup
from seiche.case.blood.check import describe
from seiche.case.blood.estimates import blood_estimates
from seiche.case.blood.limits import check_cell_limits
from seiche.case.blood.schema import BloodCase
from seiche.case.blood.setup import BloodSetup
from seiche.case.blood.sketch import blood_picture
from seiche.case.flow.geometry import FlowVessel
from seiche.case.flow.kind import FlowPlan, check_with, flow_setup, shared_setup
from seiche.case.flow.limits import check_state_counts
from seiche.case.flow.run import open_solver
from seiche.case.flow.sketch import can_be_drawn
from seiche.case.kind import Kind
from seiche.case.load import check_tables
from seiche.case.source import CaseFile
from seiche.cells.space import sparse_points, wall_points
from seiche.couple.suspension import couple, packed_populations
from seiche.domain.occupancy import SizedSites
from seiche.domain.world import World
from seiche.observe.plan import PlannedRank, planned_rank
from seiche.report.case_figure import CasePicture


def prepare(source: CaseFile, world: World | None = None, *, initial_state: bool = True) -> BloodSetup:
    """Create the geometry on all ranks, and the cells on rank 0 for all of them; no field is allocated (collective).

    Without `initial_state` no cells are packed because a checkpoint provides them. Raises the same CaseError or
    FormatError on every rank for an invalid case.
    """
    world = world or World.serial()
    case = check_tables(source.tables, str(source.path), BloodCase)

    def make(vessel: FlowVessel) -> BloodSetup:
        flow = flow_setup(source, case, world.size, vessel=vessel)
        setup = BloodSetup(**{item.name: getattr(flow, item.name) for item in fields(flow)})
        check_cell_limits(setup)
        return replace(setup, cells=cells_setup(setup, source.folder, initial_state=initial_state))

    return shared_setup(source, case, world, make)


def _sized_setup(source: CaseFile) -> BloodSetup:
    """Return the set-up for a check; a large vessel has neither sites nor packed cells."""
    case = check_tables(source.tables, str(source.path), BloodCase)
    flow = flow_setup(source, case, 1, sized=True)
    setup = BloodSetup(**{item.name: getattr(flow, item.name) for item in fields(flow)})
    check_cell_limits(setup)
    check_state_counts(setup)
    initial_state = not isinstance(setup.vessel.sites, SizedSites)
    return replace(setup, cells=cells_setup(setup, source.folder, initial_state=initial_state))


class BloodPlan(FlowPlan):
    """A blood case whose runs can be planned."""

    setup: BloodSetup

    def __init__(self, source: CaseFile) -> None:
        self.setup = prepare(source)
        self.total = len(self.setup.vessel.sites)

    def rank(self, world: World, device: str) -> tuple[PlannedRank, str]:
        """Return the plan of one rank and its layout (collective)."""
        setup = self.setup
        solver = open_solver(setup, world, device=device)
        backend = solver.backend
        assert setup.cells is not None and isinstance(backend, PlannedBackend)
        backend.running = True  # kernels on the device determine the cells of the rank
        couple(setup.cells, solver, packed_populations(setup.cells), sparse_points(wall_points(setup.vessel.sites)[0]))
        backend.running = False
        kinds = [(1.0, stages) for stages in solver.phases]
        return planned_rank(backend, kinds, len(solver.owned)), solver.layout


def _picture(source: CaseFile) -> CasePicture:
    setup = _sized_setup(source)
    return blood_picture(setup if can_be_drawn(setup) else prepare(source))


_check = check_with(BloodCase, _sized_setup, describe)
BLOOD = Kind("blood", BloodCase, prepare, BloodCaseRun, _check, BloodPlan, blood_estimates, _picture, _sized_setup)
