# SPDX-License-Identifier: BSD-3-Clause
"""An ultrasound run: the solver with its records."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.case.energy_growth import EnergyGrowth, EnergyMonitor, chunk_physics
from seiche.case.kind import MAX_CURVES, CaseRun, LiveParts, Match, Restart, Results
from seiche.case.labels import GridRequest, Labelled, LabelledParts, check_no_grid, texts
from seiche.case.output import ChunkMonitor
from seiche.case.snapshots import SnapshotFile, labelled_snapshots
from seiche.case.steering import Control
from seiche.case.ultrasound.estimates import energy_estimate, temperature_estimate
from seiche.case.ultrasound.live import pressure_curves, pressure_slice
from seiche.case.ultrasound.outputs import ResultFile, label_of, unit_of
from seiche.case.ultrasound.places import inner_box, sensor_places
from seiche.case.ultrasound.setup import UltrasoundSetup, open_solver, signals_of
from seiche.case.ultrasound.snapshots import PressurePoints
from seiche.case.ultrasound.target import target_lines
from seiche.domain.world import World
from seiche.report.display_units import display
from seiche.solver import Estimate
from seiche.ultrasound.energy import SourceEnergy, energy, has_energy
from seiche.ultrasound.solver import UltrasoundSolver

_WINDOW_REMEDY = "the window, at the end of the run, began at step {0}, but now at step {1}, before the checkpoint"


class UltrasoundCaseRun(CaseRun):
    """The solver of an ultrasound case and its outputs; CaseError for a checkpoint of another case."""

    solver: UltrasoundSolver
    default_fields = ("pressure",)

    def __init__(self, setup: UltrasoundSetup, world: World, folder: Path, restart: Restart | None) -> None:
        self.setup, self.solver = setup, open_solver(setup, world)
        if restart is not None:
            restart.resume(setup, self.solver, self.matches())
        self.growth: EnergyGrowth | None = None
        self.monitor: ChunkMonitor = ChunkMonitor(self.solver)
        if has_energy(setup.problem):
            first = None if setup.problem.initial_pressure is not None else 0.0
            first = energy(self.solver) if self.solver.step > 0 else first
            supply = SourceEnergy(self.solver)
            self.growth = EnergyGrowth(self.solver, partial(energy, self.solver), supply, first)
            self.monitor = EnergyMonitor(self.solver, self.growth)
        self.records = ResultFile(setup, self.solver, folder)
        sources = [(table, PressurePoints(table, setup, self.solver)) for table in setup.case.output.snapshots]
        films = [SnapshotFile(table, source, setup, self.solver, folder, joined=True) for table, source in sources]
        self.outputs = [*films, self.records]

    def notes(self) -> Sequence[str]:
        """Return the notes of the device, such as a slow library for transforms."""
        return self.solver.backend.notes

    def matches(self) -> Mapping[str, Match]:
        """Return grid, medium, records and initial pressure; other sources may be changed at a restart."""
        setup, problem, run = self.setup, self.setup.problem, self.setup.case.run
        grid: tuple[Any, ...] = (problem.shape, problem.spacing, problem.dt, [repr(layer) for layer in problem.pml])
        if problem.outer_end is not None:
            grid += (problem.outer_end,)
        medium = (problem.reference_speed, problem.sound_speed, problem.density, problem.staggered_density)
        losses: tuple[Any, ...] = (problem.BonA, problem.absorption, problem.relaxation)
        if problem.elastic is not None:
            losses += (problem.elastic,)
        request = setup.request
        record = (request.points, request.nodes, request.weights, request.quantities, request.first)
        tones: tuple[Any, ...] = tuple((tone.frequency, tone.last - tone.first) for tone in request.harmonics)
        tones += ("stress",) if request.stress_tone else ()
        begin = setup.sensor.frequency_window[0] if setup.sensor.frequency_window is not None else 0
        return {
            "geometry": Match(_digest(grid), "grid or time step"),
            "model": Match(_digest((medium, losses, run.scheme)), "medium or scheme"),
            "record": Match(
                _digest((*record, tones)), "table of records", earlier=_digest((*record, request.harmonics))
            ),
            "window": Match(str(begin), "window of record.frequencies", _WINDOW_REMEDY, optional=True, since=begin),
            "initial": Match(_digest(problem.initial_pressure), "initial pressure", optional=True),
        }

    def estimates(self) -> list[Estimate]:
        """Return the growth of the energy, in linear media without losses, and the highest temperature."""
        heated = list(temperature_estimate(self.records.arrays.get("temperature")))
        if self.growth is None:
            return heated
        self.growth.compare()
        return [*energy_estimate(self.setup, self.growth.largest), *heated]

    def physics(self) -> Mapping[str, str]:
        """Return the largest pressure in the grid and the latest growth of the energy."""
        return chunk_physics(self.monitor, "largest_pressure", "Pa", self.growth)

    def live_parts(self) -> LiveParts:
        """Return the pressure in a plane, at sensors, and its largest value."""
        setup, solver = self.setup, self.solver
        return LiveParts(
            partial(pressure_slice, setup, solver),
            lambda: pressure_curves(setup, solver, self.monitor.history, MAX_CURVES),
        )

    def controls(self) -> Mapping[str, Control]:
        """Return the amplitude factors of the signals, by the number of the first source of each."""
        return {
            f"sources.{source_indices[0]}.amplitude": Control(
                1.0, partial(self.solver.sources.scale, f"source.emitters[{k}]")
            )
            for k, source_indices in enumerate(signals_of(self.setup.case))
        }

    def arrays(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return records, images and temperatures."""
        return self.records.arrays

    def labelled(self, names: Sequence[str], grid: GridRequest | None = None) -> LabelledParts:
        """Return fields on the grid of the case and, after the last step, also records, maps and snapshots.

        The sound speed of a medium that is not uniform is included.
        """
        check_no_grid("ultrasound", grid)
        setup, points = self.setup, self.setup.grid
        axes, shape = tuple(points.axes), tuple(points.shape)
        coordinates = {axis: Labelled(np.asarray(points.positions(axis)), (axis,), "m") for axis in axes}
        inside = setup.layers.grid_slices(setup.problem.shape)
        arrays = {}
        for name in names or self.default_fields:
            values = self._whole(name)
            dims = axes + (("component",) if values.ndim > len(axes) else ())
            arrays[name] = Labelled(values[inside], dims, "m/s" if name[0] in "uv" else unit_of(name))
            if len(dims) > len(axes):
                coordinates["component"] = texts(axes, "component")
        coordinates |= self._places(axes)
        for name, values in self.records.arrays.items():
            if values.shape == shape:
                dims = axes
            elif name in ("p_amplitude", "p_phase"):
                dims = ("frequency", *axes)
                coordinates["frequency"] = Labelled(np.array(setup.case.record.frequencies), ("frequency",), "1/s")
            elif values.ndim == 2:
                dims = ("sensor", "record_time")
                times = setup.dt * (setup.sensor.first + np.arange(values.shape[1]))
                coordinates["record_time"] = Labelled(times, ("record_time",), "s")
            else:
                dims = ("sensor",)
            arrays[name] = Labelled(values, dims, unit_of(name))
        if (speed := np.asarray(setup.medium.sound_speed)).shape == shape:
            arrays["sound_speed"] = Labelled(speed, axes, unit_of("sound_speed"))
        return labelled_snapshots(self.outputs, arrays, coordinates)

    def _places(self, axes: tuple[str, ...]) -> dict[str, Labelled]:
        """Return the positions of the sensors after the last step, and the ends of the part without layers."""
        setup, coordinates = self.setup, {}
        places = sensor_places(setup) if self.records.arrays else None
        if places is not None:
            for axis, column in zip(axes, places.T, strict=True):
                coordinates[f"sensor_{axis}"] = Labelled(column, ("sensor",), "m")
        if setup.layers.inside:
            for name, end in zip(("inner_lower", "inner_upper"), inner_box(setup), strict=True):
                coordinates[name] = Labelled(end, ("axis",), "m")
            coordinates["axis"] = texts(axes, "axis")
        return coordinates

    def _whole(self, name: str) -> npt.NDArray[Any]:
        """Return a field over the whole grid on every rank, by the names of `fields` (collective)."""
        if name == "velocity":
            return np.stack([self.solver.field(f"u{axis}") for axis in self.setup.problem.axes], axis=-1)
        return self.solver.field("p" if name == "pressure" else name)

    def results(self, files: Iterable[Path]) -> Results:
        """Return the grid and the largest recorded values."""
        setup, solver, problem = self.setup, self.solver, self.setup.problem
        maxima, foci, target = self.records.maxima(), self.records.foci(), self.records.target()
        details = {
            "case_file": setup.source,
            "scheme": setup.case.run.scheme,
            "basis": solver.plan.describe() if solver.plan is not None else "whole grid",
            "points": list(problem.shape),
            "spacing_m": problem.spacing[0],
            **({"symmetry": "axisymmetric"} if problem.outer_end is not None else {}),
            "time_step_s": problem.dt,
            "time_s": solver.step * solver.dt,
            "files": [path.name for path in files],
            "notes": list(setup.notes),
            **maxima,
            **({"foci": foci} if foci else {}),
            **({"target": target} if target else {}),
        }
        peaks = self.monitor.history.values.get("largest_pressure", [])
        lines = [f"largest pressure at the checks of the state: {display(max(peaks), 'Pa')}"] if peaks else []
        for name, entry in maxima.items():
            position = ", ".join(f"{1e3 * c:.4g}" for c in entry["place_m"])
            label = name.replace("greatest_", "maximum of ")
            lines.append(f"{label}: {entry['value']:.5g} {entry['unit']} at ({position}) mm")
        for name, focus in foci.items():
            position = ", ".join(f"{1e3 * c:.4g}" for c in focus["place_m"])
            lines.append(f"focus of {name}: at ({position}) mm, {label_of(focus)}")
        lines += target_lines(target)
        return Results(details=details, lines=lines)


def _digest(value: Any) -> str:
    """Return a hash of nested numbers, arrays and dataclasses."""
    digest = hashlib.sha256()

    def add(item: Any) -> None:
        if isinstance(item, np.ndarray):
            digest.update(repr((item.shape, item.dtype.str)).encode())
            digest.update(np.ascontiguousarray(item).tobytes())
        elif is_dataclass(item):
            digest.update(type(item).__name__.encode())
            add([getattr(item, field.name) for field in fields(item)])
        elif isinstance(item, list | tuple):
            for element in item:
                add(element)
        else:
            digest.update(repr(item).encode())

    add(value)
    return digest.hexdigest()
