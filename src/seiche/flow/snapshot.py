# SPDX-License-Identifier: BSD-3-Clause
"""Snapshots of fields, computed on the device and copied to the host during the next steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.flow.observation import CHUNK, TRACTION_COLUMNS, Observation, WallStress, in_memory_order, traction
from seiche.flow.physics import viscosity_of

#: Columns of the observation kernel by field.
COLUMNS = {"density": (0, 1), "velocity": (1, 4), "stress": (4, 10), "shear_rate": (10, 11)}
#: Fields of wall sites, three components each.
ON_WALL = ("wall_shear_stress", "traction")
#: Rows reordered per pass; they and the resulting fields fit in the cache of a core.
PIECE_ROWS = 1 << 14


def check_names(names: Sequence[str]) -> None:
    """Raise a KeyError for an unknown field."""
    available = [*COLUMNS, *ON_WALL, "viscosity"]
    if unknown := sorted(set(names) - set(available)):
        raise KeyError(f"unknown fields {unknown}; available are {available}")


class Staging:
    """Device buffer for copies of fields to the host, shared by all snapshots of a solver.

    Copies from the buffer overlap with the steps. The device waits for them before it uses the buffer again.
    """

    def __init__(self, observation: Observation) -> None:
        self.observation = observation
        self._side = observation.backend.stream()
        self._copy_end: Any = None
        self._memory: Array = observation.backend.zeros(0, observation.real)

    def reserve(self, size: int) -> Array:
        """Return the buffer with at least `size` values, for later work of the current stream."""
        backend = self.observation.backend
        if size > len(self._memory):
            self._side.synchronize()
            self._memory = backend.zeros(0, self.observation.real)
            self._memory = backend.zeros(size, self.observation.real)
        self.wait_for_copies()
        return self._memory

    def wait_for_copies(self) -> None:
        """Make later work of the current stream wait for all copies started so far."""
        if self._copy_end is not None:
            self.observation.backend.current().wait(self._copy_end)

    def copy(self, pairs: Sequence[tuple[Array, npt.NDArray[Any]]]) -> Any:
        """Start copies from device to pinned memory after the current work; return the event of their completion."""
        backend = self.observation.backend
        filled = backend.current().record()
        with backend.use(self._side):
            self._side.wait(filled)
            for source, target in pairs:
                backend.copy_to_host(source, target)
            self._copy_end = self._side.record()
        return self._copy_end


class Snapshots:
    """Repeated snapshots of the same fields at the same sites.

    Names: density, velocity (n, 3), stress (n, 6: xx yy zz xy xz yz, deviatoric), shear_rate, viscosity,
    wall_shear_stress and traction (n, 3; zero off the wall); KeyError for others.

    Args:
        staging: the device buffer of the solver.
        names: fields.
        rows: ascending rows of the region, (n,); None for all.
        bounded: whether to limit the device memory; the device then waits for copies.
    """

    def __init__(
        self,
        staging: Staging,
        names: Sequence[str],
        rows: npt.NDArray[np.int64] | None = None,
        *,
        bounded: bool = False,
    ) -> None:
        check_names(names)
        self.staging, self.names, self._rows = staging, tuple(names), rows
        observation = staging.observation
        backend = observation.backend
        if rows is None:
            order, self._items = observation.order, observation.items
        else:
            order, items = in_memory_order(observation.layout.item[rows])
            self._items = backend.upload(items)
        self.count = len(order)
        #: Position of each row in memory order.
        self.position = np.empty(self.count, np.int32)
        self.position[order] = np.arange(self.count, dtype=np.int32)
        self.columns = sorted({c for name in names if name in COLUMNS for c in range(*COLUMNS[name])})
        self.has_rates = "viscosity" in names and observation.physics.rates is not None
        self.wall_rows = np.zeros(0, np.int64)
        if any(name in ON_WALL for name in names):
            self._choose_walls(rows)
        required_bytes = len(self.columns) * self.count * np.dtype(observation.real).itemsize
        scarce = not backend.host_memory and required_bytes > backend.free_memory() // 2
        self._chunk = min(self.count, CHUNK) if bounded or scarce else self.count
        #: Offsets of the parts of a snapshot in host memory: columns, observed values and shear stress at walls, rates.
        walls, rates = len(self.wall_rows), self.count if self.has_rates else 0
        sizes = [len(self.columns) * self.count, len(TRACTION_COLUMNS) * walls, 3 * walls, rates]
        self.offsets = [int(end) for end in np.cumsum([0, *sizes])]
        self.free: list[npt.NDArray[Any]] = []

    def _choose_walls(self, rows: npt.NDArray[np.int64] | None) -> None:
        observation = self.staging.observation
        walls, normals = observation.walls
        if rows is None:
            self.wall_rows = walls
        else:
            is_chosen = np.isin(walls, rows, assume_unique=True)
            walls, normals = walls[is_chosen], normals[is_chosen]
            self.wall_rows = np.searchsorted(rows, walls)
        self.wall_stress = WallStress(observation, observation.backend.upload(observation.layout.item[walls]), normals)

    def reserve(self, count: int) -> None:
        """Allocate pinned memory for `count` snapshots in advance, since pinning is slow."""
        observation = self.staging.observation
        while len(self.free) < count:
            self.free.append(observation.backend.pinned(self.offsets[-1], observation.real))

    def take(self, phase: int) -> Snapshot:
        """Take the fields before a step of this phase, without waiting for the device; the halo must be current."""
        observation = self.staging.observation
        host = self.free.pop() if self.free else observation.backend.pinned(self.offsets[-1], observation.real)
        event = None
        for begin in range(0, self.count, max(self._chunk, 1)):
            event = self._take_sites(phase, begin, min(begin + self._chunk, self.count), host)
        pairs: list[tuple[Array, npt.NDArray[Any]]] = []
        self.staging.wait_for_copies()
        if len(self.wall_rows):
            self.wall_stress.observe(phase)
            count, stride = self.wall_stress.count, self.wall_stress.stride
            for k, column in enumerate(TRACTION_COLUMNS):
                offset = self.offsets[1] + k * count
                source = self.wall_stress.observed[column * stride : column * stride + count]
                pairs.append((source, host[offset : offset + count]))
            pairs.append((self.wall_stress.shear_stress(), host[self.offsets[2] : self.offsets[3]]))
        if self.has_rates:
            rates: Array = observation.physics.rates
            self._rates = rates[self._items]  # referenced until the next snapshot, when its copy is complete
            pairs.append((self._rates, host[self.offsets[3] : self.offsets[4]]))
        if pairs:
            event = self.staging.copy(pairs)
        return Snapshot(self, host, event, self._rates_inside())

    def _rates_inside(self) -> npt.NDArray[Any] | None:
        """Return a copy of the current rates if they depend on cells, since these move while copies are in flight."""
        physics = self.staging.observation.physics
        if "viscosity" not in self.names or self.has_rates or physics.even_rate is not None:
            return None
        rates = physics.even_rates()
        return rates if self._rows is None else rates[self._rows]

    def _take_sites(self, phase: int, first: int, last: int, host: npt.NDArray[Any]) -> Any:
        """Start copying the columns of sites first ... last - 1 to the host; return the event of its completion."""
        if not self.columns:
            return None
        observation = self.staging.observation
        direct = observation.backend.host_memory  # no copy is needed
        buffer = host if direct else self.staging.reserve(len(self.columns) * self._chunk)
        offset, stride = (0, self.count) if direct else (first, self._chunk)
        for begin, end, out in observation.chunks(phase, self._items, first, last):
            for k, column in enumerate(self.columns):
                source = out[column * observation.stride : column * observation.stride + end - begin]
                buffer[k * stride + begin - offset : k * stride + end - offset] = source
        if direct:
            return None
        pieces = [
            (buffer[k * stride : k * stride + last - first], host[k * self.count + first : k * self.count + last])
            for k in range(len(self.columns))
        ]
        return self.staging.copy(pieces)


class Snapshot:
    """Fields in transfer to the host memory `host`, complete after `event`; `rates` (n,) are already on the host."""

    def __init__(
        self, plan: Snapshots, host: npt.NDArray[Any], event: Any, rates: npt.NDArray[Any] | None = None
    ) -> None:
        self._plan, self._host, self._event, self._rates = plan, host, event, rates

    def fields(self) -> dict[str, npt.NDArray[Any]]:
        """Wait for the copies and return the fields; may be called once, from any thread."""
        result: dict[str, npt.NDArray[Any]] = {}
        for rows, fields in self.pieces():
            for name, values in fields.items():
                if name not in result:
                    result[name] = np.empty((self._plan.count, *values.shape[1:]), values.dtype)
                result[name][rows] = values
        return result

    def pieces(self) -> Iterator[tuple[slice, dict[str, npt.NDArray[Any]]]]:
        """Wait for the copies and yield slices of rows with their fields, in order; may be called once."""
        plan, observation = self._plan, self._plan.staging.observation
        if self._event is not None:
            observation.backend.await_event(self._event)
        walls = {name: self._on_wall(name) for name in plan.names if name in ON_WALL}
        for begin in range(0, max(plan.count, 1), PIECE_ROWS):
            rows = slice(begin, min(begin + PIECE_ROWS, plan.count))
            yield rows, {name: walls[name][rows] if name in walls else self._piece(name, rows) for name in plan.names}
        plan.free.append(self._host)

    def _piece(self, name: str, rows: slice) -> npt.NDArray[Any]:
        """Return a field of the fluid at `rows`; the viscosity follows from the relaxation rates."""
        if name != "viscosity":
            return self._columns(name, self._plan.position[rows])
        plan, host = self._plan, self._host
        physics = plan.staging.observation.physics
        rates: npt.NDArray[Any]
        if plan.has_rates:
            rates = host[plan.offsets[3] : plan.offsets[4]][plan.position[rows]]
        elif self._rates is not None:
            rates = self._rates[rows]
        else:
            rates = np.full(rows.stop - rows.start, physics.even_rate, host.dtype)
        return np.asarray(viscosity_of(rates))

    def _columns(self, name: str, position: npt.NDArray[np.int32]) -> npt.NDArray[Any]:
        """Return a field at the given positions in memory order."""
        plan, host = self._plan, self._host
        columns = range(*COLUMNS[name])
        values = np.empty((len(position), len(columns)), host.dtype)
        for k, column in enumerate(columns):
            offset = plan.columns.index(column) * plan.count
            values[:, k] = host[offset : offset + plan.count][position] + (1.0 if name == "density" else 0.0)
        return values[:, 0] if len(columns) == 1 else values

    def _on_wall(self, name: str) -> npt.NDArray[Any]:
        plan = self._plan
        values = np.zeros((plan.count, 3), self._host.dtype)
        if len(plan.wall_rows):
            shear_stress = self._host[plan.offsets[2] : plan.offsets[3]].reshape(-1, 3)
            values[plan.wall_rows] = shear_stress if name == "wall_shear_stress" else self._traction()
        return values

    def _traction(self) -> npt.NDArray[Any]:
        plan = self._plan
        observed = self._host[plan.offsets[1] : plan.offsets[2]].reshape(len(TRACTION_COLUMNS), -1)
        return np.stack(list(traction(observed, plan.wall_stress.normals)), axis=1)
