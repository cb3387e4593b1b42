# SPDX-License-Identifier: BSD-3-Clause
"""What a device holds while a problem is computed: fields, work arrays, medium; and kernels bound to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.backend.transforms import Transforms
from seiche.domain.world import World
from seiche.errors import BackendUnavailable
from seiche.kernels.registry import KernelSpec
from seiche.observe.stage import Messages, Stage
from seiche.ultrasound import operators
from seiche.ultrasound.problem import Field, Problem

Bound = Callable[[], None]


class Work:
    """Something bound to a state, which must move `bytes` of memory."""

    __slots__ = ("_run", "bytes")

    def __init__(self, run: Bound, moved: int) -> None:
        """Declare what `run` moves."""
        self._run, self.bytes = run, moved

    def __call__(self) -> None:
        """Do it."""
        self._run()


class Carried(Work):
    """Messages between ranks: a stage of its own, called `name`, that computes nothing."""

    __slots__ = ("messages", "name")

    def __init__(self, name: str, run: Bound, messages: Messages) -> None:
        """Declare what `run` sends or receives."""
        super().__init__(run, sum(size for _, size in (*messages.sent, *messages.received)))
        self.name, self.messages = name, messages


class Several:
    """Work in order, of which some may be messages."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Bound]) -> None:
        """Keep the parts."""
        self.parts = tuple(parts)

    def __call__(self) -> None:
        """Do all of it."""
        for one in self.parts:
            one()


def _declared(run: Bound, moved: int) -> Bound:
    """Return work that says what it moves; messages in it stay what they are."""
    if not isinstance(run, Several):
        return Work(run, moved)
    own = sum(not isinstance(part, Carried) for part in run.parts)
    return Several([part if isinstance(part, Carried) else Work(part, moved // own) for part in run.parts])


class DeclaredTransforms:
    """Transforms that say what they move."""

    def __init__(self, transforms: Transforms) -> None:
        """Take the transforms of a backend."""
        self._transforms = transforms
        self.name, self.complex, self.spectrum_shape = transforms.name, transforms.complex, transforms.spectrum_shape

    def forward(self, source: Array | None, spectrum: Array) -> Bound:
        """Return the transform of a backend."""
        return _declared(self._transforms.forward(source, spectrum), self._transforms.moved(spectrum))

    def inverse(self, spectrum: Array) -> Bound:
        """Return the transform of a backend."""
        return _declared(self._transforms.inverse(spectrum), self._transforms.moved(spectrum))


class Overlaps(Protocol):
    """What a part of a larger grid does with its overlaps (overlaps.py)."""

    @property
    def bell(self) -> Array:
        """Return the bell along the axes one after another."""

    @property
    def reach(self) -> int:
        """Return how many own points behind a cut of the first axis neighbours have in their overlaps, at most."""

    def exchange(self, array: Array, *, padded: bool = False) -> tuple[Bound, Bound]:
        """Return what starts to fill the overlaps of a field, and what ends it."""

    def taper(self, field: Array | None, spectra: Array, components: int) -> Bound:
        """Return the product of fields and bell in padded rows of spectra."""


class Local(Protocol):
    """The part of a rank: with overlaps and transforms of its own, or without and transforms of the whole grid."""

    world: World

    @property
    def overlaps(self) -> Overlaps | None:
        """Return the overlaps, None where transforms cover the whole grid (slabs.py)."""

    def attach(self, state: DeviceState) -> None:
        """Take the fields."""

    def transforms(self, state: DeviceState) -> Transforms:
        """Return the transforms that this part takes."""


#: Kernels that declare the bytes of a complex number of a spectrum, and those that declare them of a batch of lines.
_OF_SPECTRA = ("kspace/gradient.hpp", "kspace/divergence.hpp", "kspace/fractional.hpp")
_OF_BATCHES = ("kspace/row_lines.hpp", "kspace/row_relaxing.hpp", "kspace/spectral_lines.hpp")


def _numbers(spec: KernelSpec, members: dict[str, Any]) -> int:
    """Return of how many numbers an item of a kernel is, which declares the bytes of one: those of a row or a line."""
    if not spec.team or spec.header in _OF_BATCHES:
        return 1
    if "lines" in members:
        return int(members["lines"]["plan"]["length"])
    rows = members.get("rows", {"length": 1, "half": 1})
    return int(rows["half" if spec.header in _OF_SPECTRA else "length"])


class DeviceState:
    """Fields of a problem on a device.

    Attributes:
        p: pressure (points,).
        u, rho: velocity and density, (D, points), a component an axis of the grid.
        clock: the number of the present step, (1,) int64.
        rows: how rows lie, as kernels want it; `row_count` of them.
        spectral_rows: the same for rows of spectra, which on several ranks may be others; `spectral_count` of them.
    """

    def __init__(
        self, backend: Backend, problem: Problem, real: str, local: Local | None = None, components: int | None = None
    ) -> None:
        """Allocate fields at rest; `local` where the problem is a part of a larger grid.

        Velocity and density have so many `components`, the first ones, by default one for each axis.

        Raises:
            BackendUnavailable: the device has too little memory.
        """
        self.backend, self.problem, self.real = backend, problem, np.dtype(real)
        self.extents = operators.padded_shape(problem)
        half = self.extents[2] // 2 + 1
        self.row_count = self.extents[0] * self.extents[1]
        planes, middle, numbers = operators.spectral_shape(problem)
        self.spectral_count = planes * middle
        room = max(self.row_count * half, self.spectral_count * numbers)
        self.rows = {
            "planes": self.extents[0],
            "middle": self.extents[1],
            "length": self.extents[2],
            "half": half,
            "points": problem.points,
            "spectrum": room,
        }
        self.spectral_rows = {**self.rows, "planes": planes, "middle": middle, "half": numbers}
        count = problem.dimensions if components is None else components
        needed, free = problem.points * self.real.itemsize * (2 + 3 * count), backend.free_memory()
        if 0 < free < needed:
            raise BackendUnavailable(
                f"{backend.name}: {problem.points} points need at least {needed / 1e9:.1f} GB, but {free / 1e9:.1f} GB"
                " are free"
            )
        self.p = backend.zeros(problem.points, self.real)
        self.u = backend.zeros((count, problem.points), self.real)
        self.rho = backend.zeros((count, problem.points), self.real)
        self.clock = backend.zeros(1, np.int64)
        self._transforms: DeclaredTransforms | None = None
        self._work: Array | None = None
        self._made: dict[str, Array] = {}
        self._kept: list[dict[str, Any]] = []
        self.local = local
        if local is not None:
            local.attach(self)

    def forward(self, fields: Array | None, spectra: Array, components: int) -> list[Bound]:
        """Return what leaves the spectra of fields in `spectra`; without fields they lie there in padded rows.

        On a part of a larger grid the overlaps come first, and the fields are tapered to zero over them.
        """
        overlaps = None if self.local is None else self.local.overlaps
        if overlaps is None:
            volumes = None if fields is None else fields.reshape(components, *self.extents)
            return [self.transforms.forward(volumes, spectra)]
        # Binding a transform may lose what the arrays hold: it comes before the exchange is bound.
        each = [slice(k, k + 1) for k in range(components)]
        transforms = [self.transforms.forward(None, spectra[k]) for k in each]
        if fields is None:
            ends = [overlaps.exchange(spectra[k].reshape(-1).view(self.real), padded=True) for k in each]
            tapers = [overlaps.taper(None, spectra[k], 1) for k in each]
        else:
            volumes = fields.reshape(components, -1)
            ends = [overlaps.exchange(volumes[k].reshape(-1)) for k in each]
            tapers = [overlaps.taper(volumes[k], spectra[k], 1) for k in each]
        # All fields are under way at once: while one travels, those before it are transformed.
        work = [start for start, _ in ends]
        for (_, finish), taper, transform in zip(ends, tapers, transforms, strict=True):
            work += [finish, taper, transform]
        return work

    @property
    def transforms(self) -> DeclaredTransforms:
        """Return the transforms over the whole grid."""
        if self._transforms is None:
            if self.local is None:
                found = self.backend.transforms(self.extents, self.real.name)
            else:
                found = self.local.transforms(self)
            self._transforms = DeclaredTransforms(found)
        return self._transforms

    @property
    def work(self) -> Array:
        """Return the work spectra, one a component and at least two: (n, *half shape). Any stage may overwrite them."""
        if self._work is None:
            count = max(2, self.problem.dimensions)
            self._work = self.backend.zeros((count, *self.transforms.spectrum_shape), self.transforms.complex)
        return self._work

    def upload(self, table: npt.NDArray[Any]) -> Array:
        """Return a table on the device, in the precision of the fields (complex stays complex)."""
        kind = self.real if table.dtype.kind == "f" else np.result_type(self.real, np.complex64)
        return self.backend.upload(np.ascontiguousarray(table, kind))

    def once(self, name: str, make: Callable[[], Array]) -> Array:
        """Return what `make` makes, made once for each name."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def field(self, name: str, value: Field) -> Array:
        """Return an array over the grid on the device, once for each name."""

        def make() -> Array:
            whole = np.broadcast_to(np.asarray(value, self.real), self.problem.shape)
            return self.backend.upload(np.ascontiguousarray(whole).reshape(-1))

        return self.once(name, make)

    def bind(self, spec: KernelSpec, items: int | None = None, begin: int = 0, **members: Any) -> Bound:
        """Return the launch of a kernel over all rows, or over `items` items from `begin` on."""
        self._kept.append(members)  # kernels know addresses only
        kernel, count = self.backend.load(spec), self.row_count if items is None else items
        run = kernel.bind(self.backend.pack(kernel, **members), begin, begin + count)
        return Work(run, kernel.bytes_per_item * count * _numbers(spec, members))

    def bind_spectral(self, spec: KernelSpec, **members: Any) -> Bound:
        """Return the launch of a kernel over all rows of spectra."""
        return self.bind(spec, items=self.spectral_count, rows=self.spectral_rows, **members)

    def host(self, array: Array) -> npt.NDArray[Any]:
        """Return a field (points,) on the host, in the grid's shape."""
        return np.asarray(self.backend.download(array)).reshape(self.problem.shape)

    @property
    def arrays(self) -> dict[str, Array]:
        """Return the fields that a step continues from, (points,) by name, such as "p", "ux", "rhox" and "memory0"."""
        fields = {"p": self.p}
        for name, components in (("u", self.u), ("rho", self.rho)):
            fields |= {f"{name}{axis}": components[k] for k, axis in enumerate(self.problem.axes)}
        memory = self._made.get("relaxation", ())
        return {**fields, **{f"memory{k}": one for k, one in enumerate(memory)}}


def stage(name: str, *work: Bound) -> Stage:
    """Return a stage that does several things in order, and declares the bytes that they do."""

    def run() -> None:
        for one in work:
            one()

    return Stage(name, run if len(work) != 1 else work[0], sum(getattr(one, "bytes", 0) for one in work))


def stages(name: str, *work: Bound) -> list[Stage]:
    """Return the stage that does several things in order, in pieces between the messages, which are stages too."""
    found = []
    for carried, parts in groupby(_flat(work), lambda one: isinstance(one, Carried)):
        if carried:
            found += [_message(one) for one in parts if isinstance(one, Carried)]
        else:
            found.append(stage(name, *parts))
    return found


def _flat(work: Iterable[Bound]) -> Iterator[Bound]:
    for one in work:
        yield from _flat(one.parts) if isinstance(one, Several) else (one,)


def _message(one: Carried) -> Stage:
    return Stage(one.name, one, one.bytes, useful=False, messages=one.messages)
