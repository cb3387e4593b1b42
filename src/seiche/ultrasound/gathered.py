# SPDX-License-Identifier: BSD-3-Clause
"""Collection of the records of several ranks, each of which records in its part of the grid."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.solver.state import RowSet
from seiche.ultrasound.local_basis import points_in
from seiche.ultrasound.partition import Partition
from seiche.ultrasound.recorded_values import aggregate_of, final_value
from seiche.ultrasound.records import Recorder, Request, Sink, needs_transforms, series_of
from seiche.ultrasound.state import DeviceState
from seiche.ultrasound.weighted_sensors import WeightedSensors


class GatheredRows:
    """Sink of one rank; `flush_to_sink` sends the rows of all ranks to another sink, on rank 0.

    Args:
        world: the ranks (the constructor is collective).
        sensor_indices: sensors of this rank, (n,).
        sensors: number of all sensors.
        sink: receives complete rows on rank 0.
    """

    def __init__(self, world: World, sensor_indices: npt.NDArray[np.int64], sensors: int, sink: Sink) -> None:
        self._world, self._sensors, self._sink = world, sensors, sink
        self._owners = world.allgather(sensor_indices)
        self._blocks: dict[str, list[tuple[int, npt.NDArray[Any]]]] = {}

    def __call__(self, name: str, row: int, values: npt.NDArray[Any]) -> None:
        """Store rows until they are flushed."""
        self._blocks.setdefault(name, []).append((row, values))

    def flush_to_sink(self) -> None:
        """Send all rows to the sink; collective, after the same step on all ranks."""
        local_rows = {
            name: (blocks[0][0], np.concatenate([b for _, b in blocks])) for name, blocks in self._blocks.items()
        }
        self._blocks = {}
        gathered = self._world.gather(local_rows)
        for name in dict.fromkeys(name for rank in gathered or () for name in rank):
            blocks_of_ranks = [
                (sensor_indices, *rank[name])
                for sensor_indices, rank in zip(self._owners, gathered or (), strict=True)
                if name in rank
            ]
            row, first = blocks_of_ranks[0][1], blocks_of_ranks[0][2]
            all_sensors = np.zeros((len(first), self._sensors), first.dtype)
            for sensor_indices, _, values in blocks_of_ranks:
                all_sensors[:, sensor_indices] = values
            self._sink(name, row, all_sensors)


class Records:
    """Records of all ranks; arrays are the same on every rank, and methods that return them are collective.

    On several ranks, weighted sums of values at several points are formed from the series of these points.

    Attributes:
        sensors: number of sensors of all ranks.
        stored_sensors: number of sensors and of points of weighted sums whose records are stored.
        local: records of this rank.
        keys: indices of the stored sensors that this rank records, (n,).
    """

    def __init__(self, partition: Partition, state: DeviceState, request: Request) -> None:
        """Bind the records of this rank (collective); raise CaseError for an invalid request."""
        self._partition, self._request, self.sensors = partition, request, request.sensors
        self._rows: GatheredRows | None = None
        self._sums: WeightedSensors | None = None
        self._stored = request
        if partition.basis is not None and request.nodes is not None and request.weights is not None:
            self._sums = WeightedSensors.of(request.nodes, request.weights)
            names = [name if name.endswith("_all") else series_of(name) for name in request.quantities]
            self._stored = replace(
                request, points=self._sums.points, nodes=None, weights=None, quantities=tuple(dict.fromkeys(names))
            )
        self.stored_sensors = self._stored.sensors
        self.keys = np.arange(self.stored_sensors)
        self.local = Recorder(state, request if partition.basis is None else self._local_request(self._stored))

    def _local_request(self, request: Request) -> Request:
        """Return this rank's part of a request."""
        partition, world = self._partition, self._partition.world
        local: npt.NDArray[np.int64] | None = None
        if request.points is not None:
            self.keys, local = points_in(request.points, partition.shape, partition.part, core=True)
        quantities = tuple(
            name for name in request.quantities if name.endswith("_all") or needs_transforms(name) or len(self.keys)
        )
        if request.sink is not None:
            self._rows = GatheredRows(world, self.keys, self.stored_sensors, request.sink)
        return replace(request, points=local, quantities=quantities, sink=self._rows)

    def flush(self) -> None:
        """Flush all series to their sink; collective."""
        self.local.flush()
        if self._rows is not None:
            self._rows.flush_to_sink()

    def series_names(self) -> tuple[str, ...]:
        """Return the names of the series (not collective)."""
        return self._request.names(self._partition.problem.axes, series=True)

    @property
    def aggregates(self) -> tuple[str, ...]:
        """Return the names of the aggregates (not collective)."""
        return self._request.names(self._partition.problem.axes, series=False)

    def series(self, name: str) -> npt.NDArray[Any]:
        """Return a series from memory: (steps recorded, sensors)."""
        if self._partition.world.size == 1 and self._sums is None:
            return self.local.series(name)
        values = self._all_sensors(self._local_values(f"{name}_series")).T
        return values if self._sums is None else self._sums.sums(values)

    def traces(self, name: str, sensors: npt.NDArray[np.int64], rows: int) -> tuple[npt.NDArray[Any], int]:
        """Return at most `rows` evenly chosen rows of a series at some sensors, (rows, sensors), and their step.

        Only these values are sent; rows that are already in a sink are not available, and the result is empty
        (collective).
        """
        if self._sums is None:
            return self._stored_traces(name, sensors, rows)
        points = np.unique(self._sums.columns[sensors])
        values, step = self._stored_traces(name, points, rows)
        return self._sums.sums(values, sensors, points), step

    def _stored_traces(self, name: str, sensors: npt.NDArray[np.int64], rows: int) -> tuple[npt.NDArray[Any], int]:
        """Return the same for stored sensors."""
        keys = np.flatnonzero(np.isin(self.keys, sensors))
        stored = self.local.stored_rows(name) if len(self.keys) else 0
        step = max(1, -(-self._partition.world.allreduce_max(np.array([stored]))[0] // rows))
        own_values = self.local.selected(name, keys, int(step)) if len(self.keys) else np.zeros((0, 0), self.local.real)
        parts = self._partition.world.allgather((self.keys[keys], own_values))
        count = max(len(values) for _, values in parts)
        result = np.zeros((count, len(sensors)), self.local.real)
        for indices, values in parts:
            if len(indices):
                result[: len(values), np.searchsorted(sensors, indices)] = values
        return result, int(step)

    def _local_values(self, name: str) -> npt.NDArray[Any]:
        """Return the records of the sensors of this rank, (n, ...), empty without sensors."""
        series = name.endswith("_series")
        if len(self.keys):
            return self.local.series(name.removesuffix("_series")).T if series else self.local.raw_aggregate(name)
        return np.zeros((0, self.local.recorded) if series else 0, self.local.real)

    def _all_sensors(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the values at all sensors, (sensors, ...)."""
        all_values = np.zeros((self.stored_sensors, *values.shape[1:]), values.dtype)
        for keys, rows in self._partition.world.allgather((self.keys, values)):
            all_values[keys] = rows
        return all_values

    def raw_aggregate(self, name: str) -> npt.NDArray[Any]:
        """Return the accumulator of an aggregate, flat: the sum of squares for a root mean square."""
        if name.endswith("_all"):
            return self._partition.gathered(self._partition.owned(self.local.raw_aggregate(name))).reshape(-1)
        return self._all_sensors(self._local_values(name))

    def aggregate(self, name: str) -> npt.NDArray[Any]:
        """Return an aggregate: (sensors,), or the grid's shape for "_all"; root mean squares of the steps so far."""
        if self._sums is not None and not name.endswith("_all"):
            return aggregate_of(name, self.series(series_of(name)))
        return final_value(name, self.raw_aggregate(name), self.local.recorded, self._partition.shape)

    def amplitude_and_phase(self, number: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return amplitude (Pa) and phase (rad) of p = A cos(w t + phase), by index in `Request.harmonics`."""
        amplitude, phase = (
            self._partition.gathered(self._partition.owned(field)) for field in self.local.amplitude_and_phase(number)
        )
        return amplitude, phase

    def stress_amplitudes(self) -> dict[str, npt.NDArray[np.complex128]]:
        """Return the complex amplitudes of the stresses (Pa) at the first of the harmonics, by name."""
        parts = self.local.stress_amplitudes().items()
        return {name: self._partition.gathered(self._partition.owned(field)) for name, field in parts}

    def rows(self) -> RowSet | None:
        """Return the records of this rank's sensors as rows of a state; None without sensors (not collective)."""
        if not self.stored_sensors:
            return None
        axes, stored = self._partition.problem.axes, self._stored
        names = [name for name in stored.names(axes, series=False) if not name.endswith("_all")]
        if stored.sink is None:
            names += [f"{name}_series" for name in stored.names(axes, series=True)]
        return RowSet(
            self.keys, self.stored_sensors, {name: np.ascontiguousarray(self._local_values(name)) for name in names}
        )
