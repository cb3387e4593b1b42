# SPDX-License-Identifier: BSD-3-Clause
"""Cells of a run: creation, statistics, exchange at openings, checkpoints and summary."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.case.blood.cell_state import stored_populations
from seiche.case.blood.setup import BloodSetup, open_vessel
from seiche.case.blood.tubes import plan_tubes
from seiche.cells.cells import memory_planes
from seiche.cells.space import sparse_points, wall_points
from seiche.couple.open.inflow import VolumeInflow
from seiche.couple.open.inlet_reservoir import population_of
from seiche.couple.open.reservoir import Openings
from seiche.couple.suspension import (
    Population,
    assign_ids,
    couple,
    equal_shares,
    gathered_ids,
    gathered_populations,
    move,
    packed_populations,
    present_cells,
)
from seiche.errors import CaseError
from seiche.flow.solver import FlowSolver
from seiche.solver import State

Floats = npt.NDArray[np.float64]

#: Minimum ratio of net to total flow at an opening for which a discharge hematocrit is reported.
_MIN_NET_FLOW = 0.1

#: Name, in a state, of the values of the openings and of the description of the cells (JSON).
CELLS = "cells"


@dataclass
class CellStatistics:
    """Statistics of the cells over time.

    `hematocrits` are those of the entire vessel; `open_series` are additional time series of an open vessel, by name.
    `entered` and `removed` are the numbers of cells by opening. `volume_drift` and `area_drift` are the maximum
    relative changes of volume and area over all cells.
    """

    times: list[float] = field(default_factory=list)
    hematocrits: list[float] = field(default_factory=list)
    open_series: dict[str, list[float | None]] = field(default_factory=dict)
    volume_drift: float = 0.0
    area_drift: float = 0.0
    entered: dict[str, int] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)


def settings_of(setup: BloodSetup) -> dict[str, Any]:
    """Return the settings of the cells of a case, without their initial positions, as a JSON object."""
    excluded, case = {"name", "positions", "share"}, setup.case
    return {
        "cells": {table.name: table.model_dump(mode="json", exclude=excluded) for table in case.cells},
        "contact": case.contact.model_dump(mode="json"),
        "coupling": case.coupling.model_dump(mode="json"),
        "reservoir": case.reservoir.model_dump(mode="json") if case.reservoir is not None else {},
    }


def setting_differences(case: Mapping[str, Any], checkpoint: Mapping[str, Any], name: str = "") -> Iterator[str]:
    """Yield one line for each key whose values in case and checkpoint differ in the first six significant digits."""
    for key in case.keys() & checkpoint.keys():
        new, old, path = case[key], checkpoint[key], f"{name}.{key}" if name else key
        if isinstance(new, Mapping) and isinstance(old, Mapping):
            yield from setting_differences(new, old, path)
        elif new != old:
            texts = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in (new, old)]
            if texts[0] != texts[1]:  # the same value may have been written in another unit
                yield f"{path} is {texts[0]}, but {texts[1]} in the checkpoint"


class BloodRun:
    """Cells in the flow of a case, their statistics and their exchange at openings."""

    def __init__(
        self, setup: BloodSetup, solver: FlowSolver, state: dict[str, Any] | None = None, *, tubes: bool = True
    ) -> None:
        """Add the cells of the packing, or those of the `state()` of an earlier run, to the flow.

        Without `tubes`, no cells are exchanged at the openings of an open vessel.

        Raises CaseError for cells that cannot be coupled, UnstableError for cells outside the fluid.
        """
        if setup.cells is None:
            raise CaseError(f"{setup.source}: cells: is missing")
        self.setup, self.solver, self.cells = setup, solver, setup.cells
        self.statistics = CellStatistics()
        #: Differences between the settings of cells in the case and in the checkpoint, one line each.
        self.changes: list[str] = []
        self.next_id = 0
        #: File names of the time series of cells, by their names in the case.
        self.series: dict[str, str] = {}
        self.openings: Openings | None = None
        #: Steps between two exchanges of cells at the openings; None in a closed vessel.
        self.interval: float | None = None
        world = solver.world
        #: Whether each rank passes a part of the cells; openings need all of them.
        in_parts = world.size > 1 and (setup.case.reservoir is None or not tubes)
        populations = (
            packed_populations(self.cells, world if in_parts else None)
            if state is None
            else self._restored(state, in_parts=in_parts)
        )
        if setup.case.reservoir is not None and tubes:
            vessel = open_vessel(setup)
            self.openings = Openings(vessel, self.cells, plan_tubes(setup, self.cells, vessel), solver.world)
            self.interval = vessel.interval
            self._inflow = VolumeInflow(solver)
            if state is None:
                populations = self.openings.initial_cells(populations)
            else:
                self.openings.load_state(state["values"][self._cell_value_count :], state["note"]["openings"])
            removed, entered = self.statistics.removed, self.statistics.entered
            removed.update({plane.name: removed.get(plane.name, 0) for plane in vessel.sites.iolets})
            entered.update({plane.name: entered.get(plane.name, 0) for plane in vessel.inlets})
        if state is None:
            self.next_id = assign_ids(populations)
        self.ids = gathered_ids(populations, world)
        self._wall = sparse_points(wall_points(setup.vessel.sites)[0])
        self.blood = couple(self.cells, solver, populations, self._wall, fresh=state is None)
        self.blood.ids = self.ids

    def populations(self) -> list[Population]:
        """Return the current state of all cells."""
        return present_cells(self.blood, self.ids)

    def own_populations(self) -> list[Population]:
        """Return the positions and velocities of an equal share of the cells; shares of ranks are consecutive."""
        return equal_shares(self.blood, self.ids)

    def advance_reservoirs(self) -> None:
        """Advance the reservoirs of an open vessel to the current step."""
        if self.openings is not None:
            self.openings.advance(self._inflow.volumes())

    def exchange(self) -> None:
        """Remove and insert cells at the openings, after `advance_reservoirs`."""
        if self.openings is None:
            return
        populations = self.populations()
        max_speed = max((np.linalg.norm(p.velocity, axis=-1).max(initial=0.0) for p in populations), default=0.0)
        exchange = self.openings.exchange([p.vertices for p in populations], self.ids, float(max_speed))
        if exchange.is_empty:
            return
        for (type_index, row), image in exchange.guided.items():
            population = populations[type_index]
            population.vertices[row], population.velocity[row] = image.vertices, image.velocity
            if population.relaxed is not None:
                population.relaxed[row] = image.relaxed
        if not exchange.entered and not exchange.removed:
            move(self.blood, populations)
            return
        for type_index, population in enumerate(populations):
            new = [arrival for arrival in exchange.entering if arrival.kind == type_index]
            for cell_id, arrival in enumerate(new, start=self.next_id):
                self.openings.register(arrival, cell_id)
            added = population_of(new, population, self.next_id)
            populations[type_index] = population.changed(exchange.keep[type_index], added)
            self.next_id += len(new)
        for totals, counts in (
            (self.statistics.entered, exchange.entered),
            (self.statistics.removed, exchange.removed),
        ):
            for name, count in counts.items():
                totals[name] = totals.get(name, 0) + count
        self.ids = [population.ids for population in populations]
        self.blood = couple(self.cells, self.solver, populations, self._wall, fresh=False, previous=self.blood)
        self.blood.ids = self.ids

    def check(self) -> None:
        """Record hematocrit, volumes and areas; UnstableError if a cell is torn, inverted or outside the fluid."""
        self.blood.check()
        self.record()

    def record(self) -> None:
        """Record hematocrit, volumes and areas, at most once per step (collective)."""
        time, statistics = self.solver.step * self.setup.units.step, self.statistics
        if statistics.times and statistics.times[-1] == time:
            return
        measures, first = self.blood.areas_and_volumes(), 0
        for block, ids in zip(self.blood.cells.blocks, self.ids, strict=True):
            values = measures[first : first + len(ids)]
            first += len(ids)
            if len(values):
                drift = np.abs(values / [block.rest.area, block.rest.volume] - 1).max(axis=0)
                statistics.area_drift = max(statistics.area_drift, float(drift[0]))
                statistics.volume_drift = max(statistics.volume_drift, float(drift[1]))
        statistics.times.append(time)
        statistics.hematocrits.append(float(measures[:, 1].sum()) / len(self.setup.vessel.sites))
        if self.openings is not None:
            for name, value in self._current_values(self.openings):
                statistics.open_series.setdefault(name, []).append(value)

    def _current_values(self, openings: Openings) -> Iterator[tuple[str, float | None]]:
        """Yield name and current value (SI units) of each time series of an open vessel."""
        yield "hematocrit_inside", openings.inside
        for name, tube in openings.tubes.items():
            yield f"reservoir {name}: hematocrit", tube.hematocrit
            yield f"reservoir {name}: discharge_hematocrit", tube.discharge()
        volume = self.setup.units.spacing**3
        for name, flux in openings.fluxes.items():
            yield f"{name}: blood_m3", flux.blood * volume
            yield f"{name}: cells_m3", flux.cells * volume

    def state(self) -> State:
        """Return the state of the cells.

        Each rank has the rows of its cells, with their identifiers `id`. The replicated array contains the state of the
        openings, and the attribute of the same name the description of the cells (JSON).
        """
        state, blocks = self.blood.state(), self.blood.cells.blocks
        rows = {
            name: replace(own, arrays={**own.arrays, "id": ids[own.keys]})
            for (name, own), ids in zip(state.rows.items(), self.ids, strict=True)
        }
        metadata: dict[str, Any] = {
            "types": [cell_type.name for cell_type in self.cells.types],
            "cells": [len(ids) for ids in self.ids],
            "vertices": [block.vertices for block in blocks],
            "relaxed": [block.elements if memory_planes(block.rest.cell) else 0 for block in blocks],
            "volumes": [cell_type.mesh.volume for cell_type in self.cells.types],
            "next_name": self.next_id,
            "series": self.series,
            "given": settings_of(self.setup),
            "drift": [self.statistics.area_drift, self.statistics.volume_drift],
            "entered": self.statistics.entered,
            "left": self.statistics.removed,
        }
        values = [np.zeros(0)]
        if self.openings is not None:
            arrays, metadata["openings"] = self.openings.state()
            values += arrays
        return State(state.step, rows, {CELLS: np.concatenate(values)}, {CELLS: json.dumps(metadata)})

    def _restored(self, state: dict[str, Any], *, in_parts: bool) -> list[Population]:
        """Return the cells stored in `state`, all or a part of them, and restore the statistics."""
        metadata, stored = state["note"], state["values"]
        expected = [(cell_type.name, len(cell_type.mesh.vertices)) for cell_type in self.cells.types]
        if list(zip(metadata["types"], metadata["vertices"], strict=True)) != expected:
            raise CaseError(f"--restart: the types of cells in the checkpoint differ from those of {self.setup.source}")
        for cell_type, volume in zip(self.cells.types, metadata.get("volumes", ()), strict=False):
            if not np.isclose(cell_type.mesh.volume, volume, rtol=1e-6, atol=0.0):
                raise CaseError(
                    f'--restart: undeformed cells "{cell_type.name}" have {cell_type.mesh.volume / volume:.4g} times '
                    f"the volume of those in the checkpoint; the shape or size in {self.setup.source} differs"
                )
        settings = metadata.get("given", {}).get("cells", {})
        for table in self.setup.case.cells:
            model = settings.get(table.name, {}).get("model", table.model)
            if model != table.model:  # Loop shells store control points, flat shells surface vertices
                raise CaseError(
                    f'--restart: cells "{table.name}" have model = "{model}" in the checkpoint but "{table.model}" '
                    f"in {self.setup.source}; use the same model: the states of the two models are not compatible"
                )
        self.changes = sorted(setting_differences(settings_of(self.setup), metadata.get("given", {})))
        area_drift, volume_drift = metadata.get("drift", (0.0, 0.0))
        entered, removed = dict(metadata["entered"]), dict(metadata["left"])
        self.statistics = CellStatistics(
            area_drift=area_drift, volume_drift=volume_drift, entered=entered, removed=removed
        )
        self.next_id, self.series = int(metadata["next_name"]), dict(metadata.get("series", {}))
        world = self.solver.world
        populations, self._cell_value_count = stored_populations(metadata, state["rows"], stored)
        if in_parts:
            return [cells if cells.numbers is not None else cells.part(world) for cells in populations]
        return populations if state["rows"] is None else gathered_populations(populations, world)

    def summary(self) -> dict[str, Any]:
        """Return the recorded hematocrits and drifts of the cells for the summary."""
        statistics, hematocrits = self.statistics, self.statistics.hematocrits
        return {
            "types": {
                cell_type.name: {"cells": len(ids), "vertices": len(cell_type.mesh.vertices)}
                for cell_type, ids in zip(self.cells.types, self.ids, strict=True)
            },
            "hematocrit": hematocrits[-1] if hematocrits else None,
            "hematocrit_wanted": self.cells.hematocrit,
            "hematocrit_mean": float(np.mean(hematocrits)) if hematocrits else None,
            "largest_volume_change": statistics.volume_drift,
            "largest_area_change": statistics.area_drift,
            "edges_sites": self.blood.mean_edge_lengths(),
            "entered": statistics.entered,
            "left": statistics.removed,
            **(self._open_summary(self.openings) if self.openings is not None else {}),
            "history": {"time_s": statistics.times, "hematocrit": hematocrits, **statistics.open_series},
        }

    def _open_summary(self, openings: Openings) -> dict[str, Any]:
        """Return the hematocrits of an open vessel, averaged over the second half of the records."""
        series, middle = self.statistics.open_series, len(self.statistics.times) // 2

        def mean(name: str) -> float | None:
            values = [value for value in series.get(name, [])[middle:] if value is not None]
            return float(np.mean(values)) if values else None

        def discharge(name: str) -> float | None:
            blood, cells = (np.array(series.get(f"{name}: {key}", []), np.float64) for key in ("blood_m3", "cells_m3"))
            half = len(blood) // 2
            net = blood[-1] - blood[half] if len(blood) else 0.0
            total = np.abs(np.diff(blood[half:])).sum()
            return float((cells[-1] - cells[half]) / net) if abs(net) > _MIN_NET_FLOW * total else None

        return {
            "hematocrit_inside": mean("hematocrit_inside"),
            "discharge_hematocrit": {name: discharge(name) for name in openings.fluxes},
            "waiting": openings.waiting(),
            "reservoirs": {
                name: {
                    "hematocrit": tube.hematocrit,
                    "hematocrit_wanted": openings.hematocrit,
                    "discharge_hematocrit": mean(f"reservoir {name}: discharge_hematocrit"),
                    "cells": tube.blood.cells.count,
                    "length_m": tube.prism.length * self.setup.units.spacing,
                }
                for name, tube in openings.tubes.items()
            },
        }
