# SPDX-License-Identifier: BSD-3-Clause
"""Transforms of the whole grid on several ranks (theory/ultrasound, section 13): a slab of the grid on each rank.

Planes are transformed locally. A transposition then gives each rank the numbers of its share along the second axis,
with complete lines along the first axis, which it transforms. The inverse runs the same steps in reverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from seiche.backend import Array
from seiche.backend.transforms import Bound as Transform
from seiche.backend.transforms import Transforms
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.machine.collectives import Exchange
from seiche.ultrasound.local_basis import Part, part_problem
from seiche.ultrasound.medium_arrays import varies
from seiche.ultrasound.problem import Field, MaskSource, Problem, Share, Window
from seiche.ultrasound.state import ActionSequence, DeviceState, MessageAction
from seiche.ultrasound.two_layouts import Transposer, copies, transposition


def slabs_of(shape: tuple[int, ...], ranks: int) -> list[Part]:
    """Return nearly equal slabs along the first axis, one per rank; raise CaseError for too few planes or shares."""
    if len(shape) == 1:
        raise CaseError("basis: a grid with one axis cannot be cut into slabs; use the local basis")
    if min(shape[0], _divided(shape)) < ranks:
        raise CaseError(
            f"basis: {'x'.join(map(str, shape))} points cannot be cut into slabs for {ranks} ranks; use fewer"
        )
    bounds = _bounds(shape[0], ranks)
    other_axes = tuple(Window(n, 0, n, 0) for n in shape[1:])
    return [Part(rank, (Window(shape[0], a, b - a, 0), *other_axes)) for rank, (a, b) in enumerate(pairwise(bounds))]


def _divided(shape: tuple[int, ...]) -> int:
    """Return the extent of the second axis of a spectrum, which ranks share: halved if it is the last axis."""
    return shape[1] // 2 + 1 if len(shape) == 2 else shape[1]


def _bounds(count: int, ranks: int) -> list[int]:
    sizes = [count // ranks + (rank < count % ranks) for rank in range(ranks)]
    return [0, *(int(n) for n in np.cumsum(sizes))]


def slab_problem(problem: Problem, parts: Sequence[Part], rank: int, *, axis_wise: bool = False) -> Problem:
    """Return the problem on the slab of a rank.

    Densities between two slabs are means over the cut, given at staggered points. Sources that are corrected over the
    whole grid stay on every rank. In `axis_wise` schemes slabs do not need these densities. All their sources stay,
    since all ranks must agree which of them act.
    """
    bounds = _bounds(_divided(problem.shape), len(parts))
    density = problem.density
    staggered = problem.staggered_density
    if staggered is None and varies(density) and not axis_wise:
        staggered = tuple(_midpoint_means(density, axis) for axis in range(problem.dimensions))
    slab = part_problem(replace(problem, staggered_density=staggered, sources=()), parts[rank])
    local_sources = (
        part_problem(replace(problem, sources=(source,)), parts[rank]).sources for source in problem.sources
    )
    sources = [
        _on_every_rank(source, local_parts) for source, local_parts in zip(problem.sources, local_sources, strict=True)
    ]
    if axis_wise:
        sources = [
            _without_points(source) if local is None else local
            for source, local in zip(problem.sources, sources, strict=True)
        ]
    present = tuple(source for source in sources if source is not None)
    return replace(slab, share=Share(1, bounds[rank], bounds[rank + 1]), sources=present)


def column_problem(problem: Problem, ranks: int, rank: int) -> Problem:
    """Return the problem on the columns of a rank, complete lines along the first axis, for its passes there."""
    bounds = _bounds(problem.shape[1], ranks)
    windows = [Window(n, 0, n, 0) for n in problem.shape]
    windows[1] = Window(problem.shape[1], bounds[rank], bounds[rank + 1] - bounds[rank], 0)
    staggered, absorption = problem.staggered_density, problem.absorption
    reduced = replace(
        problem,
        staggered_density=None if staggered is None else staggered[:1],
        absorption=None if absorption is None else replace(absorption, alpha_coeff=0.0),
        relaxation=None,
        initial_pressure=None,
        sources=(),
    )
    return part_problem(reduced, Part(rank, tuple(windows)))


def _midpoint_means(density: Field, axis: int) -> Field:
    """Return the means of neighbours along an axis (eq. 5)."""
    values = np.asarray(density)
    last = values.take([-1], axis)
    following = np.concatenate([values.take(np.arange(1, values.shape[axis]), axis), last], axis)
    means: Field = (values + following) / 2
    return means


def _on_every_rank(source: MaskSource, local_sources: tuple[MaskSource, ...]) -> MaskSource | None:
    """Return a source on a slab; one that requires transforms is on every rank, with zero weights if necessary."""
    if source.mode != "additive":
        return local_sources[0] if local_sources else None
    has_one_signal = source.samples.shape[1] == 1
    if not local_sources:
        samples = source.samples if has_one_signal else np.zeros((len(source.samples), 2))
        delays = None if source.delays is None else np.zeros(samples.shape[1], np.int64)
        count = samples.shape[1]
        return replace(
            source, points=np.zeros(count, np.int64), samples=samples, weights=np.zeros(count), delays=delays
        )
    local_source = local_sources[0]
    if has_one_signal or len(local_source.points) > 1:
        return local_source
    # One signal would apply to all points; a second point with a zero signal prevents this.
    return replace(
        local_source,
        points=np.repeat(local_source.points, 2),
        samples=np.concatenate([local_source.samples, np.zeros_like(local_source.samples)], axis=1),
        weights=None if local_source.weights is None else np.repeat(local_source.weights, 2),
        delays=None if local_source.delays is None else np.repeat(local_source.delays, 2),
    )


def _without_points(source: MaskSource) -> MaskSource:
    """Return a source without points."""
    no_points = np.zeros(0, np.int64)
    return replace(source, points=no_points, samples=source.samples[:, :1], weights=None, delays=None)


class Slabs:
    """The slabs of all ranks; transforms cover the whole grid.

    Args:
        world: the ranks.
        parts: all slabs, one per rank.
        strategy: transport of the messages (seiche.machine.collectives).
        columns: the problem on this rank's columns, for axis-wise schemes (two_layouts.py).
    """

    overlaps = None

    def __init__(
        self, world: World, parts: Sequence[Part], strategy: Any = "auto", columns: Problem | None = None
    ) -> None:
        self.world, self._parts, self._strategy, self._columns = world, parts, strategy, columns
        #: All exchanges of this rank.
        self.exchanges: list[Exchange] = []

    def attach(self, state: DeviceState) -> None:
        """Do nothing: slabs have no overlaps."""

    def transforms(self, state: DeviceState) -> Transforms:
        """Return the transforms of the whole grid."""
        return SlabTransforms(self.world, state, self._parts, strategy=self._strategy, exchanges=self.exchanges)

    def open_columns(self, state: DeviceState) -> tuple[DeviceState, Transposer]:
        """Return the fields of this rank's columns, and the transposition of the slab into them; collective."""
        assert self._columns is not None
        columns = DeviceState(state.backend, self._columns, state.real.name, components=1)
        return columns, Transposer(self.world, state, columns, strategy=self._strategy, exchanges=self.exchanges)


class SlabTransforms(Transforms):
    """Transforms of the whole grid. A spectrum has `_spectrum_size` complex numbers, more than this rank has points."""

    def __init__(
        self, world: World, state: DeviceState, parts: Sequence[Part], *, strategy: Any, exchanges: list[Exchange]
    ) -> None:
        """Prepare the transforms of planes and the message buffer; `exchanges` collects the exchanges."""
        super().__init__(state.extents, state.real.name)
        self._world, self._strategy, self._exchanges = world, strategy, exchanges
        whole_shape = state.problem.whole_shape
        self._planes = state.backend.transforms((1,) * (4 - len(whole_shape)) + whole_shape[1:], state.real.name)  # type: ignore[arg-type]
        self.name = f"{self._planes.name}, slabs"
        self._spectrum_size = state.rows["spectrum"]
        self._heights = [part.windows[0].core for part in parts]
        self._bounds = _bounds(_divided(whole_shape), world.size)
        self._inner = self.half if len(whole_shape) == 3 else 1
        self._messages = state.backend.zeros(self._spectrum_size, self.complex)
        self._bound_exchanges: dict[tuple[int, bool], MessageAction] = {}
        self._pointer = state.backend.pointer

    @property
    def spectrum_shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """Return the allocated size of one spectrum."""
        return (self._spectrum_size,)

    def _layouts(self, field: Array) -> tuple[Array, Array, list[tuple[Array, Array]]]:
        """Return a field as planes, as columns, and pairs of its pieces by rank: in the messages, in the planes."""
        height, divided, inner = self._heights[self._world.rank], self._bounds[-1], self._inner
        planes, pairs, offset = field[: height * divided * inner].reshape(height, divided, inner), [], 0
        for first, last in pairwise(self._bounds):
            size = height * (last - first) * inner
            message = self._messages[offset : offset + size].reshape(height, last - first, inner)
            pairs.append((message, planes[:, first:last]))
            offset += size
        width = self._bounds[self._world.rank + 1] - self._bounds[self._world.rank]
        columns = field[: sum(self._heights) * width * inner].reshape(sum(self._heights), width * inner)
        return planes.reshape(height, *self._planes.spectrum_shape), columns, pairs

    def _exchange(self, field: Array, columns: Array, inverse: bool) -> MessageAction:
        """Return the transposition of a field to columns or back, created once."""
        key = (self._pointer(field), inverse)
        if key not in self._bound_exchanges:
            height, width = self._heights[self._world.rank], columns.shape[1]
            out = [height * (b - a) * self._inner for a, b in pairwise(self._bounds)]
            arriving = [rows * width for rows in self._heights]
            ends = (self._messages[: sum(out)], out), (columns.reshape(-1), arriving)
            send, receive = ends[::-1] if inverse else ends
            exchange = transposition(self._world, send, receive, self._strategy, self._exchanges)
            self._bound_exchanges[key] = exchange
        return self._bound_exchanges[key]

    def forward(self, source: Array | None, spectrum: Array) -> Transform:
        """Return the transform of fields, one after another."""
        work: list[Transform] = []
        for number, field in enumerate(spectrum):
            planes, columns, pairs = self._layouts(field)
            reals = None if source is None else source[number].reshape(len(planes), *self._planes.shape)
            work += [self._planes.forward(reals, planes), copies(pairs)]
            work += [self._exchange(field, columns, inverse=False), self._planes.columns(columns, inverse=False)]
        return ActionSequence(work)

    def inverse(self, spectrum: Array) -> Transform:
        """Return the transform of spectra back into padded rows."""
        work: list[Transform] = []
        for field in spectrum:
            planes, columns, pairs = self._layouts(field)
            work += [self._planes.columns(columns, inverse=True), self._exchange(field, columns, inverse=True)]
            work += [copies([(target, message) for message, target in pairs]), self._planes.inverse(planes)]
        return ActionSequence(work)

    def columns(self, values: Array, *, inverse: bool) -> Transform:
        """Return the transform of complex numbers along lines that are complete on this rank."""
        return self._planes.columns(values, inverse=inverse)
