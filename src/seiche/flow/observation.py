# SPDX-License-Identifier: BSD-3-Clause
"""Density, velocity, stress, shear rate and wall stress at the sites of a rank, computed on its device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.domain.links import outward_normals
from seiche.flow.layout import Layout
from seiche.flow.physics import Physics
from seiche.flow.region import Region
from seiche.flow.velocity_set import CS2
from seiche.kernels.registry.flow import wall_shear_stress
from seiche.kernels.registry.reduce import BLOCK, NOT_FINITE, WORDS, Rule, fold, reduce

#: Number of columns that the observation kernel writes. The traction needs the columns of rho - 1 and of the stress.
COLUMNS = 11
TRACTION_COLUMNS = (0, *range(4, 10))
#: Sites observed per launch, a multiple of `BLOCK`; it limits the additional memory.
CHUNK = 1 << 21
#: Items per site up to which sites are sorted in an array of all items.
_MAX_SPREAD = 4


def buffer_bytes(sites: int, real: str) -> int:
    """Return the device memory (B) of the observation of `sites` sites: columns of a chunk, and items."""
    return COLUMNS * max(1, min(CHUNK, sites)) * np.dtype(real).itemsize + 8 * sites


class Observation:
    """Observation of the state before a step; halos must be current."""

    def __init__(
        self, backend: Backend, layout: Layout, region: Region, physics: Physics, precision: tuple[Any, str]
    ) -> None:
        """Allocate the buffers for the sites of `region`; `precision` is (compute, storage)."""
        self.backend, self.layout, self.region, self.physics = backend, layout, region, physics
        self.real, self._precision = precision[0], precision
        self.count = len(layout.item)
        self.stride = max(1, min(CHUNK, self.count))
        self._out = backend.zeros(COLUMNS * self.stride, self.real)
        #: Rows of the region in memory order, for coalesced reads.
        self.order, items = in_memory_order(layout.item)
        self.items = backend.upload(items)
        self._wall: WallStress | None = None
        self._previous_velocity: Array | None = None
        self._change: npt.NDArray[Any] | None = None
        self._velocity_words: npt.NDArray[Any] | None = None
        #: Kernels bound to their arguments, since packing takes longer than a step of a small vessel.
        self._launches: dict[tuple[int, ...], Callable[[], None]] = {}
        self._sums: dict[Rule, tuple[Array, Array]] = {}
        self._folds: dict[Rule, Callable[[], None]] = {}

    def launch(self, phase: int, items: int, count: int, out: Array, stride: int) -> None:
        """Observe the `count` items whose indices are stored at the address `items`.

        Column c of item k is out[c * stride + k].
        """
        key = (phase, items, count, self.backend.pointer(out), stride)
        if key not in self._launches:
            kernel, arguments = self.physics.observation(self._precision, phase, sites=items, out=out, stride=stride)
            self._launches[key] = kernel.bind(arguments, 0, count)
        self._launches[key]()

    def clear_launches(self) -> None:
        """Discard bound kernels after a change of the physics."""
        self._launches.clear()

    def chunks(self, phase: int, items: Array, first: int, last: int) -> Iterator[tuple[int, int, Array]]:
        """Observe the entries first ... last - 1 of `items` in chunks.

        Yield (begin, end, columns[c * self.stride + k]).
        """
        for begin in range(first, last, self.stride):
            end = min(begin + self.stride, last)
            self.launch(phase, self.backend.pointer(items) + 8 * begin, end - begin, self._out, self.stride)
            yield begin, end, self._out

    @cached_property
    def items_by_row(self) -> Array:
        """Return the layout items of the sites on the device, ordered as in the region."""
        ordered = np.array_equal(self.order, np.arange(self.count))
        return self.items if ordered else self.backend.upload(self.layout.item)

    def write_columns(self, phase: int, fields: Mapping[tuple[int, int], Array]) -> None:
        """Write ranges of columns to device arrays (columns, n_owned), ordered as in the region."""
        for begin, end, out in self.chunks(phase, self.items_by_row, 0, self.count if fields else 0):
            table = out.reshape(COLUMNS, self.stride)
            for (first, last), field in fields.items():
                field[:, begin:end] = table[first:last, : end - begin]

    @cached_property
    def walls(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Return the rows of the region that are wall sites (w,), ascending, and their outward normals (w, 3)."""
        normals = outward_normals(self.region.sites)[self.region.boundary_rows]
        at_wall = np.any(normals != 0, axis=1)
        return self.region.boundary_sites[at_wall], normals[at_wall]

    @cached_property
    def wall_rows(self) -> Array:
        """Return the rows of `walls` on the device."""
        return self.backend.upload(self.walls[0])

    def wall_stress(self, phase: int) -> WallStress:
        """Return the stress at all wall sites, valid until the next call."""
        if self._wall is None:
            rows, normals = self.walls
            self._wall = WallStress(self, self.backend.upload(self.layout.item[rows]), normals)
        self._wall.observe(phase)
        return self._wall

    def velocity_change(self, phase: int) -> tuple[float, float]:
        """Return the sums of |u - u'|^2 (at the first call infinity) and |u|^2, where u' is u at the previous call."""
        first_call = self._previous_velocity is None
        if self._previous_velocity is None:
            self._previous_velocity = self.backend.zeros(3 * self.count, self.real)
        previous, size = self.backend.pointer(self._previous_velocity), np.dtype(self.real).itemsize
        if self._change is None:
            self._change = self.backend.pinned(WORDS["VelocityChange"], np.float64)
        members = lambda begin: {"before": previous + size * begin, "before_stride": self.count}  # noqa: E731
        self._start("VelocityChange", phase, members, self._change)
        self.backend.current().synchronize()
        change, square = self._change
        return float("inf") if first_call else float(change), float(square)

    @property
    def reference_velocity(self) -> npt.NDArray[Any] | None:
        """Return the velocity (n_owned, 3) at the last call of `velocity_change`; None before the first call."""
        if self._previous_velocity is None:
            return None
        velocity = np.empty((self.count, 3), self.real)
        velocity[self.order] = self.backend.download(self._previous_velocity).reshape(3, -1).T
        return velocity

    @reference_velocity.setter
    def reference_velocity(self, velocity: npt.NDArray[Any] | None) -> None:
        self._previous_velocity = None
        if velocity is not None:
            columns = np.ascontiguousarray(velocity[self.order].T, self.real)
            self._previous_velocity = self.backend.upload(columns.reshape(-1))

    def velocity_sum(self, phase: int) -> npt.NDArray[np.float64]:
        """Return the sum of the site velocities (3,); the order of summation is the same on every device."""
        if self._velocity_words is None:
            self._velocity_words = self.backend.pinned(WORDS["VelocitySum"], np.float64)
        self._start("VelocitySum", phase, lambda begin: {}, self._velocity_words)
        self.backend.current().synchronize()
        return np.array(self._velocity_words)

    def totals_memory(self) -> npt.NDArray[Any]:
        """Return pinned memory for the words of `start_totals`."""
        return self.backend.pinned(WORDS["Totals"], np.int64)

    def start_totals(self, phase: int, host: npt.NDArray[Any]) -> None:
        """Start the reduction of the totals of the current state into `host`, see `totals_of`."""
        self._start("Totals", phase, lambda begin: {"first": begin}, host)

    def totals_of(self, host: npt.NDArray[Any]) -> tuple[int, int, float, int | None]:
        """Return the sum of rho - 1 in units of 2^-24 and 2^-60, the maximum |u|^2, and the row of a bad site.

        The row is that of the first site in memory order with a value that is not finite; None if all are finite.
        """
        coarse, fine, max_speed_squared, bad_site = (int(word) for word in host)
        row = int(self.order[NOT_FINITE - bad_site]) if bad_site else None
        return coarse, fine, float(np.int64(max_speed_squared).view(np.float64)), row

    def _start(
        self, rule: Rule, phase: int, chunk_members: Callable[[int], dict[str, int]], host: npt.NDArray[Any]
    ) -> None:
        """Start a sum over all sites into `host`.

        `further(begin)` returns additional members for the chunk at `begin`.
        """
        backend, words = self.backend, WORDS[rule]
        if rule not in self._sums:
            kind = np.int64 if rule == "Totals" else np.float64
            blocks = -(-self.count // BLOCK)
            self._sums[rule] = (backend.zeros(words * blocks, kind), backend.zeros(words, kind))
            self._folds[rule] = self._fold(rule, *self._sums[rule])
        partial, total = self._sums[rule]
        kernel = backend.load(reduce(rule, self.real))
        for begin, end, out in self.chunks(phase, self.items, 0, self.count):
            blocks = -(-(end - begin) // BLOCK)
            target = backend.pointer(partial) + 8 * words * (begin // BLOCK)
            observed, count = backend.pointer(out), end - begin
            members = {
                "observed": observed,
                "stride": self.stride,
                "count": count,
                "out": target,
                **chunk_members(begin),
            }
            key = (-1, *members.values())
            if key not in self._launches:
                self._launches[key] = kernel.bind(backend.pack(kernel, rule=members), 0, blocks)
            self._launches[key]()
        self._folds[rule]()
        backend.copy_to_host(total, host)

    def _fold(self, rule: Rule, partial: Array, total: Array) -> Callable[[], None]:
        kernel = self.backend.load(fold(rule, self.real))
        rows = {"partial": partial, "count": len(partial) // WORDS[rule], "out": total}
        return kernel.bind(self.backend.pack(kernel, rule=rows), 0, 1)


def in_memory_order(item: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the permutation (n,) that sorts the distinct items (n,), and the sorted items."""
    if np.all(item[1:] > item[:-1]):
        return np.arange(len(item)), item
    slots = int(item.max()) + 1
    if slots > _MAX_SPREAD * len(item):
        order = np.argsort(item)
        return order, item[order]
    # Counting sort: several times faster than a comparison sort.
    row = np.full(slots, -1, np.int32)
    row[item] = np.arange(len(item), dtype=np.int32)
    items = np.flatnonzero(row >= 0)
    return row[items].astype(np.int64), items


class WallStress:
    """Stress at selected wall sites of a rank, on its device."""

    def __init__(self, observation: Observation, items: Array, normals: npt.NDArray[Any]) -> None:
        """Allocate buffers for wall sites with layout items `items` (on the device) and outward `normals` (w, 3)."""
        backend, real, self.count = observation.backend, observation.real, len(normals)
        self._observation, self._items = observation, items
        self.normals = np.ascontiguousarray(normals.astype(real))
        self.stride = max(self.count, 1)
        #: Columns of the observation, each of length `stride`.
        self.observed = backend.zeros(COLUMNS * self.stride, real)
        self._members = {
            "observed": self.observed,
            "stride": self.stride,
            "walls": backend.upload(np.arange(self.count, dtype=np.int64)),
            "normals": backend.upload(self.normals),
            "out": backend.zeros(3 * self.count, real),
        }
        kernel = backend.load(wall_shear_stress(real))
        self._launch = kernel.bind(backend.pack(kernel, **self._members), 0, self.count)

    def observe(self, phase: int) -> None:
        """Fill `observed` from the state before a step of this phase."""
        if self.count:
            items = self._observation.backend.pointer(self._items)
            self._observation.launch(phase, items, self.count, self.observed, self.stride)

    def shear_stress(self) -> Array:
        """Return the wall shear stress (3 w,) computed from `observed`, on the device; the next call overwrites it."""
        if self.count:
            self._launch()
        return self._members["out"]

    def traction(self) -> Iterator[Array]:
        """Yield the components of the traction (w,) computed from `observed`, on the device."""
        table = self.observed.reshape(COLUMNS, self.stride)
        return traction([table[column, : self.count] for column in TRACTION_COLUMNS], self._members["normals"])


def traction(observed: Iterable[Array], normals: Array) -> Iterator[Array]:
    """Yield the components (w,) of sigma n - cs^2 (rho - 1) n, on the host or a device.

    `observed` are the rows (w,) of rho - 1 and of xx, yy, zz, xy, xz, yz of sigma; `normals` has the shape (w, 3).
    """
    excess, xx, yy, zz, xy, xz, yz = observed
    x, y, z = normals.T
    pressure = CS2 * excess
    yield xx * x + xy * y + xz * z - pressure * x
    yield xy * x + yy * y + yz * z - pressure * y
    yield xz * x + yz * y + zz * z - pressure * z
