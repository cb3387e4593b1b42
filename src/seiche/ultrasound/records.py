# SPDX-License-Identifier: BSD-3-Clause
"""Sensor records during a run (theory/ultrasound, section 6).

Series are collected in ring buffers on the device and flushed in blocks of rows; extremes and sums stay on the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.errors import CaseError
from seiche.kernels.registry import kspace as registry
from seiche.observe.stage import Stage
from seiche.solver.state import RowSet, check_row_shapes
from seiche.ultrasound import operators
from seiche.ultrasound.problem import stress_names
from seiche.ultrasound.state import ActionSequence, Bound, DeviceState, stages
from seiche.ultrasound.tones import Harmonics, ToneSums

#: Bytes of the ring of one series.
_RING_BYTES = 8 << 20
#: Rules of the aggregates, and their initial values.
_RULES: dict[str, tuple[registry.Rule, float]] = {
    "max": ("Maximum", -float(np.finfo(np.float32).max)),
    "min": ("Minimum", float(np.finfo(np.float32).max)),
    "rms": ("SumOfSquares", 0.0),
}


class Sink(Protocol):
    """Destination for the rows of a series."""

    def __call__(self, name: str, row: int, values: npt.NDArray[Any]) -> None:
        """Receive rows `row`, `row + 1` ... of series `name`: (rows, sensors)."""


@dataclass(frozen=True)
class Request:
    """Quantities to record.

    Attributes:
        points: indices of sensor points in C order, (n,).
        nodes, weights: instead, (n, m) indices and weights of sensors between points.
        directions: unit vectors (n, D), of which the series of the pressure has the response (eq. 72).
        quantities: names of "p", "u" and, in elastic media, "s" (stresses) with suffixes: "" and "_non_staggered" (u
            and s) are series, "_max", "_min" and "_rms" aggregates at the sensors, "_max_all" and "_min_all" over the
            grid. "g" is the series of the gradient of the pressure.
        first: first recorded step, from 0.
        harmonics: frequencies of amplitude and phase.
        stress_tone: whether to record also the stresses of an elastic medium at the first of them.
        sink: destination of the series; memory by default.
    """

    points: npt.NDArray[np.int64] | None = None
    nodes: npt.NDArray[np.int64] | None = None
    weights: npt.NDArray[np.floating[Any]] | None = None
    directions: npt.NDArray[np.float64] | None = None
    quantities: tuple[str, ...] = ()
    first: int = 0
    harmonics: tuple[Harmonics, ...] = ()
    stress_tone: bool = False
    sink: Sink | None = None

    @property
    def sensors(self) -> int:
        """Return the number of sensors."""
        points = self.points if self.nodes is None else self.nodes
        return 0 if points is None else len(points)

    def names(self, axes: Sequence[str], *, series: bool) -> tuple[str, ...]:
        """Return the names of the series, or of the aggregates, on a grid with these axes, such as "ux_max"."""
        return tuple(
            name
            for quantity in self.quantities
            if (_suffix(quantity) in _RULES) != series
            for name in components_of(quantity, axes)
        )


def components_of(quantity: str, axes: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the components of a quantity: "p_max" itself, or "ux_max" and so on for "u_max"."""
    if quantity[0] == "s":
        return tuple(f"{name}{quantity[1:]}" for name in stress_names(axes))
    return (quantity,) if quantity[0] == "p" else tuple(f"{quantity[0]}{axis}{quantity[1:]}" for axis in axes)


def needs_transforms(quantity: str) -> bool:
    """Return whether a series needs transforms of the whole grid, in which all ranks take part."""
    return quantity == "g" or quantity.endswith("_non_staggered")


def _suffix(quantity: str) -> str:
    """Return the suffix of a quantity, such as "max" for "p_max" and "p_max_all"; "" for "p" and "u"."""
    return quantity[1:].lstrip("_").removesuffix("_all")


@dataclass
class _Series:
    name: str
    ring: Array
    rows: int
    #: Columns of the ring in the order of the sensors; None: they have this order.
    columns: npt.NDArray[np.intp] | None = None
    written: int = 0
    blocks: list[npt.NDArray[Any]] = field(default_factory=list)


class Recorder:
    """Records the requested quantities. `sensors` is the number of sensors, `recorded` that of recorded steps."""

    def __init__(self, state: DeviceState, request: Request) -> None:
        """Bind rings and aggregates; raise CaseError for an unknown quantity, or a sensor outside the grid."""
        self._state, self.request, self.sensors, self.real = state, request, request.sensors, state.real
        self._series: dict[str, _Series] = {}
        self.aggregates: dict[str, Array] = {}
        self._kernels: list[Bound] = []
        self.recorded = 0
        self._check()
        self._sensors = self._sensor_arguments(padded=False)
        for quantity in request.quantities:
            arrays = {"p": [state.p], "u": list(state.u), "s": list(state.stress), "g": [state.p] * len(state.u)}[
                quantity[0]
            ]
            for name, array in zip(components_of(quantity, state.problem.axes), arrays, strict=True):
                self._add(name, quantity, array)
        self._tones = {"p": ToneSums(state, request.harmonics, state.p)}
        if request.stress_tone:
            stresses = zip(state.problem.stresses, state.stress, strict=True)
            self._tones |= {name: ToneSums(state, request.harmonics[:1], field) for name, field in stresses}

    def _check(self) -> None:
        request, points = self.request, self._state.problem.points
        valid = {f"p{kind}" for kind in ("", "_max", "_min", "_rms", "_max_all", "_min_all")}
        stresses = {f"s{name[1:]}" for name in valid}
        valid |= {f"u{name[1:]}" for name in valid} | {"u_non_staggered", "g"}
        if self._state.problem.elastic is not None:
            valid |= stresses | {"s_non_staggered"}
        elif (stresses | {"s_non_staggered"}) & set(request.quantities):
            raise CaseError("record: stresses require an elastic medium; set shear_speed")
        for quantity in request.quantities:
            if quantity not in valid:
                raise CaseError(f"record: {quantity!r} is not one of {', '.join(sorted(valid))}")
        if request.directions is not None and (self._state.local is not None or self._state.problem.outer_end):
            raise CaseError("sensor.directions: require a single rank and a grid without symmetry")
        for indices in (request.points, request.nodes):
            if indices is not None and indices.size and (indices.min() < 0 or indices.max() >= points):
                raise CaseError(f"sensor: a point lies outside the grid of {points} points")
        is_distributed = self._state.local is not None  # all ranks take part in the transforms
        needs_sensors = [
            name
            for name in request.quantities
            if not name.endswith("_all") and not (is_distributed and needs_transforms(name))
        ]
        if not self.sensors and needs_sensors:
            raise CaseError("sensor: has no points")
        if request.quantities and not 0 <= request.first < self._state.problem.steps:
            steps = self._state.problem.steps
            raise CaseError(f"sensor: the first recorded step, {request.first + 1}, is not between 1 and {steps}")

    def _sensor_arguments(
        self, *, padded: bool, part: npt.NDArray[np.intp] | slice = slice(None)
    ) -> tuple[registry.SensorKind, dict[str, Any]]:
        """Return kind and kernel arguments of (part of) the sensors, for arrays (points,) or for padded rows."""
        request, state = self.request, self._state

        def upload(indices: npt.NDArray[np.int64]) -> Array:
            if padded:
                length, padded_length = state.extents[2], 2 * state.rows["half"]
                indices = indices // length * padded_length + indices % length
            return state.backend.upload(np.ascontiguousarray(indices, np.uint32).reshape(-1))

        if request.nodes is not None and request.weights is not None:
            weights = state.backend.upload(np.ascontiguousarray(request.weights[part], state.real).reshape(-1))
            nodes = {"points": upload(request.nodes[part]), "weights": weights, "count": request.nodes.shape[1]}
            return "between", nodes
        if request.points is not None and request.points.size:
            return "points", {"points": upload(request.points[part])}
        return "points", {"points": None}

    def _add(self, name: str, quantity: str, array: Array) -> None:
        if _suffix(quantity) in _RULES:
            self._add_aggregate(name, quantity, array)
            return
        transformed = self._gradient(name, array) if quantity == "g" else []
        if quantity.endswith("_non_staggered"):
            transformed = self._shift(name, array)
        if not self.sensors:
            self._kernels += transformed
            return
        ring_rows = max(1, min(_RING_BYTES // (self.sensors * self._state.real.itemsize), self._remaining_rows()))
        ring = self._state.backend.zeros((ring_rows, self.sensors), self._state.real)
        self._series[name] = _Series(name, ring, ring_rows)
        if name == "p" and self.request.directions is not None:
            self._add_directional(self._series[name], array, self.request.directions)
            return
        sensors = self._sensors
        if transformed:
            array = self._state.work[0:1]
            self._kernels += transformed
            sensors = self._sensor_arguments(padded=True)
        self._kernels.append(self._sample(array, sensors, ring, items=self.sensors, rows=ring_rows))

    def _sample(
        self, array: Array, sensors: tuple[registry.SensorKind, dict[str, Any]], ring: Array, *, items: int, rows: int
    ) -> Bound:
        """Return the kernel that stores the values of `items` sensors in the first columns of a ring of `rows` rows."""
        kind, arguments = sensors
        spec, sensor = registry.sample(kind, self._state.precision), {"field": array, **arguments}
        layout = {"first": self.request.first, "ring": rows, "sensors": self.sensors, "clock": self._state.clock}
        return self._state.bind(spec, items=items, sensor=sensor, series=ring, **layout)

    def _add_directional(self, series: _Series, pressure: Array, directions: npt.NDArray[np.float64]) -> None:
        """Record filtered pressures: one filter, and neighbouring columns of the ring, for each direction."""
        state, spectrum, begin = self._state, self._state.work[0:1], 0
        vectors, groups = distinct_directions(directions)
        order = np.argsort(groups, kind="stable")
        series.columns = np.argsort(order)
        for vector, count in zip(vectors, np.bincount(groups), strict=True):
            factor = state.upload(operators.direction_filter(state.problem, vector, state.real))
            spec, part = registry.spectral_filter(state.precision), order[begin : begin + count]
            self._kernels += [*state.forward(pressure.reshape(1, -1), spectrum, 1)]
            self._kernels += [state.bind_spectral(spec, spectrum=spectrum, factor=factor)]
            self._kernels += [state.transforms.inverse(spectrum)]
            sensors, ring = self._sensor_arguments(padded=True, part=part), series.ring.reshape(-1)[begin:]
            self._kernels.append(self._sample(spectrum, sensors, ring, items=int(count), rows=series.rows))
            begin += int(count)

    def _remaining_rows(self) -> int:
        return self._state.problem.steps - self.request.first

    def _add_aggregate(self, name: str, quantity: str, array: Array) -> None:
        state, everywhere = self._state, quantity.endswith("_all")
        rule, start = _RULES[_suffix(quantity)]
        items = state.problem.points if everywhere else self.sensors
        result = state.backend.upload(np.full(items, start, state.real))
        kind: registry.SensorKind
        kind, arguments = ("everywhere", {}) if everywhere else self._sensors
        self.aggregates[name] = result
        spec = registry.accumulate(kind, rule, state.precision)
        self._kernels.append(state.bind(spec, items=items, sensor={"field": array, **arguments}, result=result))

    def _shift(self, name: str, source: Array) -> list[Bound]:
        """Return the work that interpolates a component to the grid's points, in padded rows (eq. 19).

        A velocity is shifted along one axis, a shear stress along two, and a normal stress not at all.
        """
        state, axes = self._state, name[1:].partition("_")[0]
        shift = state.table("shift", lambda: state.upload(operators.shift_table(state.problem)))
        spectrum, field = state.work[0:1], source.reshape(1, -1)
        work: list[Bound] = []
        for axis in axes if axes[0] != axes[-1] or len(axes) == 1 else "":
            extension = [] if work else state.continued(field, spectrum, state.parity_of(axis))
            in_place = bool(work or extension)
            work += extension
            work += [state.transforms.forward(None, spectrum)] if in_place else state.forward(field, spectrum, 1)
            work += self._multiplied(spectrum, axis, shift)
        return work

    def _multiplied(self, spectrum: Array, axis: str, table: Array) -> list[Bound]:
        """Return the product of a spectrum and a table along an axis, transformed back."""
        state = self._state
        spec = registry.spectral_shift(3 - state.problem.dimensions + state.problem.axes.index(axis), state.precision)
        return [state.bind_spectral(spec, spectrum=spectrum, shift=table), state.transforms.inverse(spectrum)]

    def _gradient(self, name: str, pressure: Array) -> list[Bound]:
        """Return the work that computes a component of the gradient of the pressure, in padded rows (eq. 20a)."""
        state, spectrum, field = self._state, self._state.work[0:1], pressure.reshape(1, -1)
        table = state.table("gradient", lambda: state.upload(operators.derivative_tables(state.problem, 0)))
        work = state.continued(field, spectrum, "even")
        work += [state.transforms.forward(None, spectrum)] if work else state.forward(field, spectrum, 1)
        return [*work, *self._multiplied(spectrum, name[1:], table)]

    def is_recording(self, t: int) -> tuple[bool, bool]:
        """Return whether sensors, and whether harmonics, are recorded in step t."""
        sensors = bool(self._kernels) and self.request.first <= t < self._state.problem.steps
        return sensors, any(harmonic.first <= t < harmonic.last for harmonic in self.request.harmonics)

    def stages(self, sensors: bool, harmonics: bool) -> list[Stage]:
        """Return the stages that record the present fields for sensors and for harmonics; some may be messages."""
        sums = [run for tone in self._tones.values() for run in tone.kernels] if harmonics else []
        work = [*(self._kernels if sensors else ()), *sums]
        if self._state.local is None:
            return [Stage("record", ActionSequence(work))]
        return stages("record", *work)

    def recorded_steps_after(self, steps: int) -> int:
        """Return how many of the first `steps` steps are recorded at the sensors."""
        return max(0, steps - self.request.first)

    def after_steps(self, steps: int) -> None:
        """Flush full rings after `steps` steps."""
        self.recorded = self.recorded_steps_after(steps)
        for series in self._series.values():
            if self.recorded - series.written == series.rows:
                self._flush(series)

    def flush(self) -> None:
        """Flush all rings."""
        for series in self._series.values():
            if self.recorded > series.written:
                self._flush(series)

    def _flush(self, series: _Series) -> None:
        """Flush the rows since the last flush, which may wrap around the end of the ring."""
        count = self.recorded - series.written
        offset = series.written % series.rows
        pieces = [slice(offset, min(offset + count, series.rows)), slice(0, max(0, offset + count - series.rows))]
        download = self._state.backend.download
        rows = np.concatenate([download(series.ring[piece]) for piece in pieces])
        rows = rows if series.columns is None else rows[:, series.columns]
        if self.request.sink is None:
            series.blocks.append(rows)
        else:
            self.request.sink(series.name, series.written, rows)
        series.written += count

    def series(self, name: str) -> npt.NDArray[Any]:
        """Return a series from memory: (steps recorded, sensors)."""
        blocks = self._series[name].blocks
        return np.concatenate(blocks) if blocks else np.zeros((0, self.sensors), self.real)

    def stored_rows(self, name: str) -> int:
        """Return the number of rows of a series in memory."""
        return sum(map(len, self._series[name].blocks))

    def selected(self, name: str, sensors: npt.NDArray[np.intp], step: int) -> npt.NDArray[Any]:
        """Return every `step`-th row of a series in memory at some sensors, (rows, sensors)."""
        first, blocks = 0, [np.zeros((0, len(sensors)), self.real)]
        for block in self._series[name].blocks:
            blocks.append(block[first::step, sensors])
            first = (first - len(block)) % step if first < len(block) else first - len(block)
        return np.concatenate(blocks)

    def raw_aggregate(self, name: str) -> npt.NDArray[Any]:
        """Return the accumulator of an aggregate, flat: the sum of squares for a root mean square."""
        return np.asarray(self._state.backend.download(self.aggregates[name]))

    @property
    def arrays(self) -> dict[str, Array]:
        """Return the accumulators over the grid, (points,) by name: raw aggregates, and sums of harmonics."""
        arrays = {name: array for name, array in self.aggregates.items() if name.endswith("_all")}
        for of, sums in self._tones.items():
            arrays |= {f"{name}{'' if of == 'p' else of}": array for name, array in sums.arrays.items()}
        return arrays

    def set_state(self, steps: int, rows: RowSet | None) -> None:
        """Continue after `steps` steps from raw aggregates, and series without a sink; CaseError if one is missing."""
        recorded, in_memory = self.recorded_steps_after(steps), self.request.sink is None
        aggregates = [name for name in self.aggregates if not name.endswith("_all")]
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(aggregates, ())
        shapes |= {f"{name}_series": (recorded,) for name in self._series if in_memory}
        check_row_shapes(rows, shapes, self.sensors, "sensors")
        arrays = {} if rows is None else rows.arrays
        for name in aggregates:
            values = np.ascontiguousarray(arrays[name][:], self._state.real)
            self._state.backend.assign(self.aggregates[name], values)
        for series in self._series.values():
            series.written = recorded
            series.blocks = [np.ascontiguousarray(arrays[f"{series.name}_series"][:].T)] if in_memory else []
        self.recorded = recorded

    def clear_later_harmonics(self, steps: int) -> None:
        """Clear the sums of harmonics that begin after `steps` steps; a state may have those of an earlier window."""
        for sums in self._tones.values():
            sums.clear_later(steps)

    def amplitude_and_phase(self, number: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return amplitude (Pa) and phase (rad) of p = A cos(w t + phase), by index in `request.harmonics`."""
        cosine, sine = self._tones["p"].amplitudes(number)
        return np.hypot(cosine, sine), np.arctan2(-sine, cosine)

    def stress_amplitudes(self) -> dict[str, npt.NDArray[np.complex128]]:
        """Return the complex amplitudes A of the stresses Re(A exp(i w t)), Pa, at the first of the harmonics."""
        parts = {name: sums.amplitudes(0) for name, sums in self._tones.items() if name != "p"}
        return {name: cosine - 1j * sine.astype(np.float64) for name, (cosine, sine) in parts.items()}


def distinct_directions(directions: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    """Return the distinct vectors (m, D) of unit vectors (n, D), and the index of each; opposite ones are equal."""
    first = np.argmax(np.abs(directions) > 1e-9, axis=1)
    signs = np.sign(np.take_along_axis(directions, first[:, None], axis=1))
    vectors, groups = np.unique(np.round(directions * signs, 12) + 0.0, axis=0, return_inverse=True)
    return vectors, groups.reshape(-1)


def series_of(name: str) -> str:
    """Return the series of a record at sensors: "p" for "p_max", and a series itself."""
    kind, _, suffix = name.partition("_")
    return kind if suffix in _RULES else name
