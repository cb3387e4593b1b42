# SPDX-License-Identifier: BSD-3-Clause
"""A run of a blood case: flow with cells, which are packed, exchanged at openings, checked and written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.case.blood.estimates import drift_estimates
from seiche.case.blood.labelled import labelled_cells
from seiche.case.blood.live import cell_slice, hematocrit_curves
from seiche.case.blood.run import CELLS, BloodRun
from seiche.case.blood.series import CellsFile, surfaces_of, wall_of
from seiche.case.blood.setup import BloodSetup
from seiche.case.blood.tubes import missing_types
from seiche.case.fingerprint import fingerprint_of, values_of
from seiche.case.flow.live import FlowView
from seiche.case.flow.monitor import FlowMonitor
from seiche.case.flow.run import FlowCaseRun
from seiche.case.kind import LiveParts, Match, Restart, Results
from seiche.case.labels import GridRequest, LabelledParts, check_no_grid
from seiche.case.output import Final, Output, OutputTarget, Scheduled
from seiche.case.schedule import Schedule
from seiche.couple.balance import measure_blood_costs
from seiche.couple.blood import CELLS as ROWS_OF_CELLS
from seiche.couple.ranks import SharedBoundary
from seiche.domain.sharing import on_root
from seiche.errors import CaseError
from seiche.flow.solver import FlowSolver
from seiche.flow.state import SITES
from seiche.io.checkpoint import SHARE
from seiche.io.checkpoint_rows import Keys
from seiche.report.cells_figure import cells_figure
from seiche.report.style import FIGURE_MODULES
from seiche.solver import Estimate, State

#: Maximum fraction of the cells due at an inlet that may wait without a note.
_MAX_WAITING = 0.1


class BloodCaseRun(FlowCaseRun):
    """The solver of a case of blood, its cells and its outputs.

    Raises:
        CaseError: the checkpoint belongs to another case, or the cells cannot be coupled.
        UnstableError: a cell is outside the fluid.
    """

    setup: BloodSetup
    blood: BloodRun

    def measured_weights(self, solver: FlowSolver, restart: Restart | None) -> npt.NDArray[np.float64]:
        """Return the measured cost of each site, with the initial cells or those of `restart` (collective)."""
        state = None
        if restart is not None:
            state = cells_of(restart.resume(self.setup, solver, self.matches(), self._keys_of(solver)), solver)
        blood = BloodRun(self.setup, solver, state, tubes=False).blood
        return measure_blood_costs(blood).weights(blood)

    def _keys_of(self, solver: FlowSolver) -> Mapping[str, Keys]:
        """Return the keys of the flow, and a share of the cells of each type."""
        types = self.setup.cells.types if self.setup.cells is not None else ()
        return {**super()._keys_of(solver), **{f"{ROWS_OF_CELLS}{kind}": SHARE for kind in range(len(types))}}

    def immerse(self, state: State | None) -> None:
        """Add the cells to the flow."""
        self.blood = BloodRun(self.setup, self.solver, cells_of(state, self.solver) if state is not None else None)

    def matches(self) -> Mapping[str, Match]:
        """Return those of the flow, and the initial positions of the cells (collective)."""
        return {
            **super().matches(),
            "packing": Match(self._initial_fingerprint, "packing or positions of the cells", optional=True),
        }

    @cached_property
    def _initial_fingerprint(self) -> str:
        """Return the fingerprint of the packing, or of the files of positions (collective)."""
        case, folder = self.setup.case, Path(self.setup.source).parent
        keys = ("share",) if case.packing is not None else ("positions_from", "positions_outside")
        values = [values_of(case.packing), *(values_of(table, *keys) for table in case.cells)]
        files = [folder / table.positions for table in case.cells if table.positions is not None]
        return on_root(self.world, lambda: fingerprint_of(values, files))

    def make_monitor(self) -> FlowMonitor:
        """Return the monitor of the flow and the cells."""
        return BloodMonitor(self.setup, self.solver, self.blood)

    def more_outputs(self, folder: Path) -> Iterable[Output]:
        """Yield the exchange of cells at openings and the time series of cells."""
        if self.blood.openings is not None:
            yield from (Reservoirs(self.blood), OpeningExchange(self.blood))
        for table in self.setup.case.output.cells:
            yield CellsFile(folder, table, self.blood, self.setup, self.solver.step)

    def picture(self, path: Path) -> Output:
        """Return the picture of the cells."""
        return CellsPicture(self.setup, self.blood, path)

    def state(self) -> State:
        """Return the state of flow and cells."""
        return super().state().joined(self.blood.state())

    def labelled(self, names: Sequence[str], grid: GridRequest | None = None) -> LabelledParts:
        """Return fields and records of the flow, and the cells (see `labelled_cells`)."""
        check_no_grid("blood", grid)
        arrays, coordinates = super().labelled(names)
        cells, cell_coordinates = labelled_cells(self.blood)
        return arrays | cells, coordinates | cell_coordinates

    def exchange_seconds(self) -> float:
        """Return the mean time (s) of all messages of a step: halo, positions, velocities and forces."""
        boundary = self.blood.blood.boundary
        if not isinstance(boundary, SharedBoundary):
            return super().exchange_seconds()
        messages = boundary.sharing.messages
        cells = boundary.fluid.trial() + messages.positions.trial() + messages.velocities.trial("scatter_add")
        return super().exchange_seconds() + cells

    def notes(self) -> Sequence[str]:
        """Return differences from the checkpoint, and the cell types that no inlet supplies."""
        openings = self.blood.openings
        tubes = openings.tubes if openings is not None else {}
        counts = {name: [block.cells for block in tube.blood.cells.blocks] for name, tube in tubes.items()}
        changes = [f"--restart: {line}" for line in self.blood.changes]
        return [*super().notes(), *changes, *missing_types(self.setup, counts)]

    def results(self, files: Iterable[Path]) -> Results:
        """Return the results of the flow, a line about the cells, and a note for each crowded inlet."""
        self.blood.record()
        results = super().results(files)
        return replace(results, lines=[*results.lines, self.cell_line(), *self.crowded_inlets()])

    def physics(self) -> Mapping[str, str]:
        """Return those of the flow, the number of cells in the vessel and their hematocrit."""
        values, hematocrits = dict(super().physics()), self.blood.statistics.hematocrits
        values["cells"] = f"{sum(map(len, self.blood.ids)):,}"
        if hematocrits:
            values["hematocrit"] = f"{hematocrits[-1]:.3g}"
        return values

    def live_parts(self) -> LiveParts:
        """Return those of the flow with the outlines of the cells, and hematocrits."""
        flow, view = super().live_parts(), FlowView(self.setup, self.solver)
        return LiveParts(
            partial(cell_slice, self.blood, view),
            lambda: [*hematocrit_curves(self.blood.statistics), *flow.curves()],
            flow.outputs,
        )

    def estimates(self) -> list[Estimate]:
        """Return the estimates of the flow, and the changes of volume and area of the cells so far (collective)."""
        self.blood.record()
        statistics = self.blood.statistics
        return [*super().estimates(), *drift_estimates(statistics.volume_drift, statistics.area_drift)]

    def more_details(self) -> dict[str, Any]:
        """Return the summary of the cells."""
        return {"cells": self.blood.summary()}

    def cell_line(self) -> str:
        """Return the hematocrit and the drift of the cells as text."""
        cells, count = self.blood.summary(), sum(map(len, self.blood.ids))
        target = cells["hematocrit_wanted"]
        requested = "" if target is None else f" ({target:g} requested)"
        return (
            f"cells: {count:,}, hematocrit {cells['hematocrit']:.4f}{requested}, largest change of a volume "
            f"{cells['largest_volume_change']:.2%}, of an area {cells['largest_area_change']:.2%}"
        )

    def crowded_inlets(self) -> list[str]:
        """Return one line for each inlet at which more than a tenth of the scheduled cells could not be inserted.

        An inlet through which blood currently flows out, for example between two pulses, is not reported.
        """
        openings = self.blood.openings
        if openings is None:
            return []
        entered, lines = self.blood.statistics.entered, []
        for name, waiting in openings.waiting().items():
            total = waiting + entered[name]
            if waiting > max(1.0, _MAX_WAITING * total) and not openings.is_outflow(name):
                lines.append(
                    f'note: {waiting} of {total} cells could not be inserted at iolet["{name}"]: the inflow hematocrit'
                    " is below target because the inlet is crowded"
                )
        return lines


class BloodMonitor(FlowMonitor):
    """Monitor that checks the cells together with the flow."""

    def __init__(self, setup: BloodSetup, solver: FlowSolver, blood: BloodRun) -> None:
        super().__init__(setup, solver)
        self._blood = blood

    def check_immersed(self) -> None:
        """Check that no cell is torn, inverted or outside the fluid; record hematocrit, volumes and areas."""
        self._solver.finish()
        self._blood.check()


class Reservoirs(Scheduled):
    """Output that advances the reservoirs of the inlets to the current step."""

    label = "reservoirs"
    early = True
    checked = False

    def __init__(self, blood: BloodRun) -> None:
        assert blood.interval is not None
        self.schedule = Schedule(blood.interval)
        self._blood = blood

    def take(self) -> None:
        """Advance the reservoirs."""
        self._blood.advance_reservoirs()


class OpeningExchange(Reservoirs):
    """Output that removes and inserts cells at the openings, after the reservoirs have advanced."""

    label = "openings"

    def take(self) -> None:
        """Exchange cells."""
        self._blood.exchange()


class CellsPicture(Final):
    """Picture of the cells at the end of the run."""

    modules = FIGURE_MODULES

    def __init__(self, setup: BloodSetup, blood: BloodRun, path: Path) -> None:
        self._setup, self._blood, self._path = setup, blood, path

    @property
    def targets(self) -> Sequence[OutputTarget]:
        """Return the file."""
        return (OutputTarget("output.picture", self._path),)

    def finish(self) -> Sequence[Path]:
        """Draw the picture on rank 0."""
        blood, solver = self._blood, self._blood.solver
        populations, time = blood.populations(), solver.step * self._setup.dt
        if solver.world.rank == 0:
            cells_figure(self._path, surfaces_of(blood, populations, time), wall_of(self._setup))
        return (self._path,)


def cells_of(state: State, solver: FlowSolver) -> dict[str, Any]:
    """Return the values of the cells in a state, and their description (collective).

    Raises:
        CaseError: the state has no cells.
    """
    if CELLS not in state.attributes:
        raise CaseError(
            "--restart: the checkpoint contains no cells, but the case does; use a checkpoint of a blood case"
        )
    note = json.loads(str(state.attributes[CELLS]))
    names = [f"{ROWS_OF_CELLS}{kind}" for kind in range(len(note["types"]))]
    rows = [state.rows[name] for name in names if name in state.rows]
    if CELLS in state.replicated:
        return {"values": state.replicated[CELLS], "note": note, "rows": rows or None}
    # Checkpoints of version 1 store the cells as rows of the sites.
    by_rank = solver.world.allgather((solver.owned, state.rows[SITES].arrays[CELLS][:]))
    values = np.concatenate([values for _, values in by_rank])
    order = np.argsort(np.concatenate([sites for sites, _ in by_rank]), kind="stable")
    return {"values": values[order].reshape(-1), "note": note, "rows": None}
