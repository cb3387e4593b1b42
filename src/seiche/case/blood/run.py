# SPDX-License-Identifier: BSD-3-Clause
"""The cells of a run: made, watched, changed in number where a vessel is open, saved and described."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.case.blood.setup import BloodSetup, open_vessel
from seiche.case.blood.tubes import planned
from seiche.cells.space import sparse_points, wall_points
from seiche.couple.open.inflow import VolumeInflow
from seiche.couple.open.reservoir import Openings
from seiche.couple.suspension import Population, couple, move, named, packed, populations_of
from seiche.errors import CaseError
from seiche.flow.solver import FlowSolver

Floats = npt.NDArray[np.float64]

#: The least part of what flows to and fro that must go on for a hematocrit of it to be told.
_NET = 0.1


@dataclass
class Watch:
    """What was seen of the cells: hematocrits over time, largest changes of volume and area, those that came and went.

    `hematocrits` are of the whole vessel; `openings` what an open vessel tells beside, by name. `entered` and `left`
    count cells by opening; `volume_drift` and `area_drift` are relative.
    """

    times: list[float] = field(default_factory=list)
    hematocrits: list[float] = field(default_factory=list)
    openings: dict[str, list[float | None]] = field(default_factory=dict)
    volume_drift: float = 0.0
    area_drift: float = 0.0
    entered: dict[str, int] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)


def given_of(setup: BloodSetup) -> dict[str, Any]:
    """Return what the case says of cells as JSON has it, but where they are at the start."""
    placing, case = {"name", "positions", "share"}, setup.case
    return {
        "cells": {table.name: table.model_dump(mode="json", exclude=placing) for table in case.cells},
        "contact": case.contact.model_dump(mode="json"),
        "coupling": case.coupling.model_dump(mode="json"),
        "reservoir": case.reservoir.model_dump(mode="json") if case.reservoir is not None else {},
    }


def differences(here: Mapping[str, Any], there: Mapping[str, Any], name: str = "") -> Iterator[str]:
    """Yield in which keys of both, a line each, nested tables of a case differ from those in a checkpoint."""
    for key in here.keys() & there.keys():
        one, two, path = here[key], there[key], f"{name}.{key}" if name else key
        if isinstance(one, Mapping) and isinstance(two, Mapping):
            yield from differences(one, two, path)
        elif one != two:
            said = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in (one, two)]
            yield f"{path} is {said[0]}, in the checkpoint {said[1]}"


class BloodRun:
    """Cells in the flow of a case."""

    def __init__(
        self, setup: BloodSetup, solver: FlowSolver, state: dict[str, Any] | None = None, *, tubes: bool = True
    ) -> None:
        """Put the cells of the packing, or of `state()` of an earlier run, into the flow.

        Without `tubes` an open vessel is one through whose openings no cell comes or goes.

        Raises CaseError for what cannot be coupled, UnstableError for cells outside the fluid.
        """
        if setup.cells is None:
            raise CaseError(f"{setup.source}: cells: are missing")
        self.setup, self.solver, self.cells = setup, solver, setup.cells
        self.watch = Watch()
        #: What the case says of cells otherwise than the checkpoint, a line each.
        self.changes: list[str] = []
        self.next_name = 0
        #: Under which names the series of the cells are written, by those that the case gives them.
        self.series: dict[str, str] = {}
        self.openings: Openings | None = None
        #: Steps between two exchanges of cells at the openings, None in a closed vessel.
        self.interval: float | None = None
        populations = packed(self.cells) if state is None else self._restored(state)
        if setup.case.reservoir is not None and tubes:
            vessel = open_vessel(setup)
            self.openings = Openings(vessel, self.cells, planned(setup, self.cells, vessel), solver.world)
            self.interval = vessel.interval
            self._inflow = VolumeInflow(solver)
            if state is None:
                populations = self.openings.begin(populations)
            else:
                self.openings.load_state(state["numbers"][self._used :], state["note"]["openings"])
            for plane in vessel.sites.iolets:
                self.watch.left.setdefault(plane.name, 0)
            for plane in vessel.inlets:
                self.watch.entered.setdefault(plane.name, 0)
        if state is None:
            self.next_name = named(populations)
        self.names = [population.names for population in populations]
        self._wall = sparse_points(wall_points(setup.vessel.sites)[0])
        self.blood = couple(self.cells, solver, populations, self._wall, fresh=state is None)
        self.blood.names = self.names

    def populations(self) -> list[Population]:
        """Return all cells as they are now."""
        return populations_of(self.blood, self.names)

    def feed(self) -> None:
        """Advance the reservoirs of an open vessel to the present."""
        if self.openings is not None:
            self.openings.feed(self._inflow.volumes())

    def look(self) -> None:
        """Let cells leave and enter, after `feed`."""
        if self.openings is None:
            return
        populations = self.populations()
        fastest = max((np.linalg.norm(p.velocity, axis=-1).max(initial=0.0) for p in populations), default=0.0)
        traffic = self.openings.traffic([each.vertices for each in populations], self.names, float(fastest))
        if traffic.quiet:
            return
        for (kind, row), twin in traffic.led.items():
            populations[kind].vertices[row], populations[kind].velocity[row] = twin.vertices, twin.velocity
        if not traffic.entered and not traffic.left:
            move(self.blood, populations)
            return
        for kind, population in enumerate(populations):
            new = [arrival for arrival in traffic.enter if arrival.kind == kind]
            for number, arrival in enumerate(new, start=self.next_name):
                self.openings.entered(arrival, number)
            places, velocities = [arrival.vertices for arrival in new], [arrival.velocity for arrival in new]
            populations[kind] = population.changed(traffic.keep[kind], places, velocities, self.next_name)
            self.next_name += len(new)
        for counts, seen in ((self.watch.entered, traffic.entered), (self.watch.left, traffic.left)):
            for name, number in seen.items():
                counts[name] = counts.get(name, 0) + number
        self.names = [population.names for population in populations]
        self.blood = couple(self.cells, self.solver, populations, self._wall, fresh=False, before=self.blood)
        self.blood.names = self.names

    def check(self) -> None:
        """Note hematocrit, volumes and areas; UnstableError if a cell is torn, inside out or outside the fluid."""
        self.blood.check()
        self.note()

    def note(self) -> None:
        """Note hematocrit, volumes and areas, once a step (collective)."""
        now = self.solver.step * self.setup.units.step
        if self.watch.times and self.watch.times[-1] == now:
            return
        measures, first = self.blood.measures(), 0
        for block, names in zip(self.blood.cells.blocks, self.names, strict=True):
            mine = measures[first : first + len(names)]
            first += len(names)
            if len(mine):
                drift = np.abs(mine / [block.rest.area, block.rest.volume] - 1).max(axis=0)
                self.watch.area_drift = max(self.watch.area_drift, float(drift[0]))
                self.watch.volume_drift = max(self.watch.volume_drift, float(drift[1]))
        self.watch.times.append(now)
        self.watch.hematocrits.append(float(measures[:, 1].sum()) / len(self.setup.vessel.sites))
        if self.openings is not None:
            for name, value in self._history(self.openings):
                self.watch.openings.setdefault(name, []).append(value)

    def _history(self, openings: Openings) -> Iterator[tuple[str, float | None]]:
        """Yield what is told of an open vessel over time, in SI units."""
        yield "hematocrit_inside", openings.inside
        for name, tube in openings.tubes.items():
            yield f"reservoir {name}: hematocrit", tube.hematocrit
            yield f"reservoir {name}: discharge_hematocrit", tube.discharge()
        volume = self.setup.units.spacing**3
        for name, passed in openings.passed.items():
            yield f"{name}: blood_m3", passed.blood * volume
            yield f"{name}: cells_m3", passed.cells * volume

    def state(self) -> tuple[Floats, str]:
        """Return what a restart needs: all vertices and their velocities as one row of numbers, and a note (JSON)."""
        populations = self.populations()
        parts = [each.ravel() for p in populations for each in (p.vertices, p.velocity, p.names.astype(np.float64))]
        note: dict[str, Any] = {
            "types": [kind.name for kind in self.cells.types],
            "cells": [len(population.names) for population in populations],
            "vertices": [population.vertices.shape[1] for population in populations],
            "volumes": [kind.mesh.volume for kind in self.cells.types],
            "next_name": self.next_name,
            "series": self.series,
            "given": given_of(self.setup),
            "drift": [self.watch.area_drift, self.watch.volume_drift],
            "entered": self.watch.entered,
            "left": self.watch.left,
        }
        if self.openings is not None:
            more, note["openings"] = self.openings.state()
            parts += more
        return np.concatenate(parts), json.dumps(note)

    def _restored(self, state: dict[str, Any]) -> list[Population]:
        """Return the cells of `state`, the numbers and the note that `state()` returned."""
        note, numbers = state["note"], state["numbers"]
        wanted = [(kind.name, len(kind.mesh.vertices)) for kind in self.cells.types]
        if list(zip(note["types"], note["vertices"], strict=True)) != wanted:
            raise CaseError(f"--restart: the checkpoint has other types of cells than {self.setup.source}")
        for kind, volume in zip(self.cells.types, note.get("volumes", ()), strict=False):
            if not np.isclose(kind.mesh.volume, volume, rtol=1e-6, atol=0.0):
                raise CaseError(
                    f'--restart: undeformed cells "{kind.name}" have {kind.mesh.volume / volume:.4g} times the volume'
                    f" of those of the checkpoint; {self.setup.source} has another shape or size"
                )
        before = note.get("given", {}).get("cells", {})
        for table in self.setup.case.cells:
            model = before.get(table.name, {}).get("model", table.model)
            if model != table.model:  # control points are no vertices of the surface
                raise CaseError(
                    f'--restart: cells "{table.name}" of the checkpoint have model = "{model}", those of'
                    f' {self.setup.source} "{table.model}": what moves is not the same'
                )
        self.changes = sorted(differences(given_of(self.setup), note.get("given", {})))
        self.watch.area_drift, self.watch.volume_drift = note.get("drift", (0.0, 0.0))
        self.next_name, self.series = int(note["next_name"]), dict(note.get("series", {}))
        self.watch.entered, self.watch.left = dict(note["entered"]), dict(note["left"])
        found, at = [], 0
        for count, vertices in zip(note["cells"], note["vertices"], strict=True):
            size = count * vertices * 3
            place, velocity = numbers[at : at + size], numbers[at + size : at + 2 * size]
            names = numbers[at + 2 * size : at + 2 * size + count].astype(np.int64)
            shape = (count, vertices, 3)
            found.append(Population(place.reshape(shape).copy(), velocity.reshape(shape).copy(), names))
            at += 2 * size + count
        self._used = at
        return found

    def summary(self) -> dict[str, Any]:
        """Return hematocrit and health of the cells for the summary, as they were noted."""
        watch, mean = self.watch, float(np.mean(self.watch.hematocrits)) if self.watch.hematocrits else None
        return {
            "types": {
                kind.name: {"cells": len(names), "vertices": len(kind.mesh.vertices)}
                for kind, names in zip(self.cells.types, self.names, strict=True)
            },
            "hematocrit": watch.hematocrits[-1] if watch.hematocrits else None,
            "hematocrit_wanted": self.cells.hematocrit,
            "hematocrit_mean": mean,
            "largest_volume_change": watch.volume_drift,
            "largest_area_change": watch.area_drift,
            "edges_sites": self.blood.edges(),
            "entered": watch.entered,
            "left": watch.left,
            **(self._open_summary(self.openings) if self.openings is not None else {}),
            "history": {"time_s": watch.times, "hematocrit": watch.hematocrits, **watch.openings},
        }

    def _open_summary(self, openings: Openings) -> dict[str, Any]:
        """Return the hematocrits of an open vessel: means over the second half of what was noted."""
        seen, waiting = self.watch.openings, openings.waiting()

        def mean(name: str) -> float | None:
            values = [value for value in seen.get(name, [])[len(self.watch.times) // 2 :] if value is not None]
            return float(np.mean(values)) if values else None

        def discharge(name: str) -> float | None:
            blood, cells = (np.array(seen.get(f"{name}: {what}", []), np.float64) for what in ("blood_m3", "cells_m3"))
            half = len(blood) // 2
            passed = blood[-1] - blood[half] if len(blood) else 0.0
            to_and_fro = np.abs(np.diff(blood[half:])).sum()
            return float((cells[-1] - cells[half]) / passed) if abs(passed) > _NET * to_and_fro else None

        return {
            "hematocrit_inside": mean("hematocrit_inside"),
            "discharge_hematocrit": {name: discharge(name) for name in openings.passed},
            "waiting": waiting,
            "reservoirs": {
                name: {
                    "hematocrit": tube.hematocrit,
                    "hematocrit_wanted": openings.wanted,
                    "discharge_hematocrit": mean(f"reservoir {name}: discharge_hematocrit"),
                    "cells": tube.blood.cells.count,
                    "length_m": tube.prism.length * self.setup.units.spacing,
                }
                for name, tube in openings.tubes.items()
            },
        }
