# SPDX-License-Identifier: BSD-3-Clause
"""Device memory of a problem (fields, work arrays, tables) and kernels bound to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.backend.transforms import Transforms
from seiche.errors import BackendUnavailable
from seiche.kernels.registry import KernelSpec, Real
from seiche.kernels.registry.kspace_lines import fixed_transform
from seiche.kernels.registry.kspace_radial import continue_rows
from seiche.observe.stage import Messages, Stage
from seiche.ultrasound import operators
from seiche.ultrasound.host_fields import converted
from seiche.ultrasound.problem import Field, Problem
from seiche.ultrasound.radial import Parity, continuation, first_continued

Bound = Callable[[], None]


class DeviceAction:
    """A bound action, with the `bytes` of its minimum memory traffic."""

    __slots__ = ("_run", "bytes")

    def __init__(self, run: Bound, byte_count: int) -> None:
        self._run, self.bytes = run, byte_count

    def __call__(self) -> None:
        """Run the action."""
        self._run()


class MessageAction(DeviceAction):
    """Messages between ranks: a separate stage, called `name`, that computes nothing."""

    __slots__ = ("messages", "name")

    def __init__(self, name: str, run: Bound, messages: Messages) -> None:
        super().__init__(run, sum(size for _, size in (*messages.sent, *messages.received)))
        self.name, self.messages = name, messages


class ActionSequence:
    """Bound actions in order; some may be messages."""

    __slots__ = ("actions",)

    def __init__(self, actions: Sequence[Bound]) -> None:
        self.actions = tuple(actions)

    def __call__(self) -> None:
        """Run all actions."""
        for action in self.actions:
            action()


def _declared(run: Bound, byte_count: int) -> Bound:
    """Return actions with their memory traffic; messages among them are unchanged."""
    if not isinstance(run, ActionSequence):
        return DeviceAction(run, byte_count)
    count = sum(not isinstance(action, MessageAction) for action in run.actions)
    return ActionSequence(
        [
            action if isinstance(action, MessageAction) else DeviceAction(action, byte_count // count)
            for action in run.actions
        ]
    )


class DeclaredTransforms:
    """Transforms of a backend with their memory traffic."""

    def __init__(self, transforms: Transforms) -> None:
        self._transforms = transforms
        self.name, self.complex, self.spectrum_shape = transforms.name, transforms.complex, transforms.spectrum_shape

    def forward(self, source: Array | None, spectrum: Array) -> Bound:
        """Return the forward transform of the backend."""
        return _declared(self._transforms.forward(source, spectrum), self._transforms.traffic(spectrum))

    def inverse(self, spectrum: Array) -> Bound:
        """Return the inverse transform of the backend."""
        return _declared(self._transforms.inverse(spectrum), self._transforms.traffic(spectrum))


#: Bytes to whose multiples half rows may be extended: a line of a GPU's caches, half of it, and a sector of its memory.
ALIGNMENTS = (128, 64, 32)
#: Maximum extension relative to a half row.
_MAX_EXTENSION = 0.125
#: Kernels that declare bytes for each complex number of a spectrum, and those that declare them for a batch of lines.
_PER_COMPLEX = ("kspace/derivatives.hpp", "kspace/shift.hpp", "kspace/fractional.hpp", "kspace/radial.hpp")
_PER_BATCH = ("kspace/row_lines.hpp", "kspace/row_relaxing.hpp", "kspace/spectral_lines.hpp")


def _numbers_per_item(spec: KernelSpec, members: dict[str, Any]) -> int:
    """Return the number of declared units in an item: of a row or line where bytes are declared for one number."""
    if not spec.team or spec.header in _PER_BATCH:
        return 1
    if "lines" in members:
        return int(members["lines"]["plan"]["length"])
    rows = members.get("rows", {"length": 1, "half": 1})
    return int(rows["half" if spec.header in _PER_COMPLEX else "length"])


def has_lines(problem: Problem, real: Real) -> bool:
    """Return whether the kernels can transform lines along every axis of a grid of two or three dimensions."""
    lines = (fixed_transform(n, False, real) for n in problem.shape)
    return problem.dimensions > 1 and problem.outer_end is None and all(line is not None for line in lines)


def half_row_pitch(problem: Problem, real: Real) -> int:
    """Return the distance of half rows, in complex numbers, in spectra that kernels on a GPU transform by lines.

    In three dimensions they begin at whole sectors of memory, in long rows at whole lines. Otherwise a batch of
    neighbouring lines would read and write parts of further ones.
    """
    half = problem.transform_shape[-1] // 2 + 1
    if problem.dimensions < 3 or not has_lines(problem, real):
        return half
    for alignment in ALIGNMENTS:
        in_unit = alignment // (2 * np.dtype(real).itemsize)
        pitch = -(-half // in_unit) * in_unit
        if pitch <= (1 + _MAX_EXTENSION) * half:
            return pitch
    return half


class LocalPart(Protocol):
    """The part of a rank: its overlaps with other parts, or None where transforms cover the whole grid."""

    overlaps: Any

    def attach(self, state: DeviceState) -> None:
        """Upload the arrays of the part."""

    def transforms(self, state: DeviceState) -> Transforms:
        """Return the transforms of the part."""


class DeviceState:
    """Fields of a problem on a device.

    Attributes:
        real, precision: type of real numbers, for NumPy and for kernels.
        p: pressure (points,).
        u, rho: velocity and density, (D, points), one component per axis. In an elastic medium there is no density.
        stress: of an elastic medium, in the order of `Problem.stresses`, (D (D + 1)/2, points).
        layer_memory: of an elastic medium, the memory of the absorbing layers at the ends of each axis.
        clock: the number of the present step, (1,) int64.
        tables: arrays by name that kernels only read, such as those of the medium.
        rows: layout of the rows as kernels expect it; `row_count` is their number.
        line_rows: the same for kernels that transform lines, with half rows in whole lines of a GPU's memory.
        spectral_rows: the same for rows of spectra, which may differ on several ranks; `spectral_count` of them.
        local: the part of a larger grid that this rank computes, if any.
    """

    def __init__(
        self,
        backend: Backend,
        problem: Problem,
        real: str,
        local: LocalPart | None = None,
        components: int | None = None,
        *,
        tables: dict[str, Array] | None = None,
    ) -> None:
        """Allocate zero fields, with `components` of velocity and density; raise BackendUnavailable without memory.

        `tables` are those of a state with the same grid, medium and precision; they are shared with it.
        """
        self.backend, self.problem, self.real, self.local = backend, problem, np.dtype(real), local
        self.precision: Real = "float32" if self.real == np.float32 else "float64"
        self.extents = operators.padded_shape(problem)
        half = problem.transform_shape[-1] // 2 + 1 if problem.outer_end is not None else self.extents[2] // 2 + 1
        self.row_count = self.extents[0] * self.extents[1]
        planes, middle, numbers = operators.spectral_shape(problem)
        self.spectral_count = planes * middle
        pitch = half
        if backend.is_gpu and problem.share is None:
            pitch = half_row_pitch(problem, self.precision)
        self.rows = {
            **dict(zip(("planes", "middle", "length"), self.extents, strict=True)),
            "half": half,
            "points": problem.points,
            "spectrum": max(self.row_count * pitch, self.spectral_count * numbers),
        }
        self.line_rows = {**self.rows, "half": pitch}
        self.spectral_rows = {**self.rows, "planes": planes, "middle": middle, "half": numbers}
        count = problem.dimensions if components is None else components
        stresses, densities = len(problem.stresses), 0 if problem.elastic is not None else count
        needed, free = problem.points * self.real.itemsize * (2 + 3 * count), backend.free_memory()
        if 0 < free < needed:
            raise BackendUnavailable(
                f"{backend.name}: {problem.points} points need at least {needed / 1e9:.1f} GB, but only"
                f" {free / 1e9:.1f} GB are free"
            )
        self.p = backend.zeros(problem.points, self.real)
        self.u = backend.zeros((count, problem.points), self.real)
        self.rho = backend.zeros((densities, problem.points), self.real)
        self.stress = backend.zeros((stresses, problem.points), self.real)
        self.layer_memory: dict[str, dict[str, Array]] = {}
        self.clock = backend.zeros(1, np.int64)
        self._transforms: DeclaredTransforms | None = None
        self._spectra: Array | None = None
        self.tables: dict[str, Array] = {} if tables is None else tables
        self.memory: Array | None = None
        self._bound_members: list[dict[str, Any]] = []
        if local is not None:
            local.attach(self)

    def forward(self, fields: Array | None, spectra: Array, components: int) -> list[Bound]:
        """Return the transform of fields into `spectra`; without fields it starts from padded rows in `spectra`.

        On a part of a larger grid the overlaps are filled first, and the fields are tapered to zero over them.
        """
        overlaps = None if self.local is None else self.local.overlaps
        if self.problem.outer_end is not None:
            return self._forward_continued(fields, spectra, components)
        if overlaps is None:
            volumes = None if fields is None else fields.reshape(components, *self.extents)
            return [self.transforms.forward(volumes, spectra)]
        # Binding a transform may overwrite the arrays: it comes before the exchange is bound.
        slices = [slice(k, k + 1) for k in range(components)]
        transforms = [self.transforms.forward(None, spectra[k]) for k in slices]
        if fields is None:
            row = 2 * self.rows["half"]
            exchanges = [overlaps.exchange(spectra[k].reshape(-1).view(self.real), row) for k in slices]
            tapers = [overlaps.taper(None, spectra[k], 1) for k in slices]
        else:
            volumes = fields.reshape(components, -1)
            exchanges = [overlaps.exchange(volumes[k].reshape(-1), self.rows["length"]) for k in slices]
            tapers = [overlaps.taper(volumes[k], spectra[k], 1) for k in slices]
        # All fields are sent at the start; each is transformed while the later ones are in flight.
        work = [start for start, _ in exchanges]
        for (_, finish), taper, transform in zip(exchanges, tapers, transforms, strict=True):
            work += [finish, taper, transform]
        return work

    def _forward_continued(self, fields: Array | None, spectra: Array, components: int) -> list[Bound]:
        """Return the transform of even fields on an axisymmetric grid."""
        targets = [spectra[k : k + 1] for k in range(components)]
        sources = [None] * components if fields is None else list(fields.reshape(components, -1))
        continued = [
            action for source, target in zip(sources, targets, strict=True) for action in self.continued(source, target)
        ]
        return [*continued, self.transforms.forward(None, spectra)]

    def continued(self, field: Array | None, spectrum: Array, parity: Parity = "even") -> list[Bound]:
        """Return the work that continues a field beyond the ends of a radial axis, into the padded rows of a spectrum.

        Without a field, the padded rows themselves are continued. On a Cartesian grid there is no work.
        """
        problem = self.problem
        if problem.outer_end is None:
            return []
        points = problem.shape[-1]
        index, factor = continuation(points, problem.outer_end, parity)
        if parity == "quotient":
            factor = factor / ((index + 0.5) * problem.spacing[-1])
        members: dict[str, Any] = {
            "index": self.table(f"{parity} index", lambda: self.backend.upload(index)),
            "factor": self.table(f"{parity} factor", lambda: self.upload(factor)),
        }
        first = first_continued(points, problem.outer_end, parity) if field is None else 0
        stride = 2 * self.rows["half"] if field is None else points
        source = spectrum if field is None else field
        members |= {"rows": self.rows, "row_stride": stride, "first": first, "period": len(index)}
        return [self.bind(continue_rows(self.precision), field=source, padded=spectrum, **members)]

    def parity_of(self, quantity: str) -> Parity:
        """Return the symmetry of a quantity about the axis of an axisymmetric grid: "p" or the axis of a velocity."""
        return "odd" if self.problem.is_radial(quantity) else "even"

    @property
    def transforms(self) -> DeclaredTransforms:
        """Return the transforms over the whole grid; on an axisymmetric one, over the period of the radial axis."""
        if self._transforms is None:
            local = self.local
            extents = (*self.extents[:2], self.problem.transform_shape[-1]) if local is None else self.extents
            transforms = self.backend.transforms(extents, self.real.name) if local is None else local.transforms(self)
            self._transforms = DeclaredTransforms(transforms)
        return self._transforms

    @property
    def work(self) -> Array:
        """Return the work spectra (n, *half shape): at least two, and one per component or three if axisymmetric.

        Any stage overwrites them.
        """
        shape = self.transforms.spectrum_shape
        return self._all_spectra[:, : math.prod(shape)].reshape(-1, *shape)

    @property
    def line_work(self) -> Array:
        """Return the same memory as (n, rows, numbers), for kernels that transform lines (`line_rows`)."""
        numbers = self.line_rows["half"]
        return self._all_spectra[:, : self.row_count * numbers].reshape(-1, self.row_count, numbers)

    @property
    def _all_spectra(self) -> Array:
        if self._spectra is None:
            count = max(2, self.problem.dimensions) if self.problem.outer_end is None else 3
            self._spectra = self.backend.zeros((count, self.rows["spectrum"]), self.transforms.complex)
        return self._spectra

    def upload(self, table: npt.NDArray[Any]) -> Array:
        """Return a table on the device, in the precision of the fields (complex stays complex)."""
        kind = self.real if table.dtype.kind == "f" else np.result_type(self.real, np.complex64)
        return self.backend.upload(np.ascontiguousarray(table, kind))

    def table(self, name: str, make: Callable[[], Array]) -> Array:
        """Return the table of this name, made by `make` on first use."""
        if name not in self.tables:
            self.tables[name] = make()
        return self.tables[name]

    def relaxation_memory(self, processes: int) -> Array:
        """Return the variables of relaxation processes (processes, points), zero on first use."""
        if self.memory is None:
            self.memory = self.backend.zeros((processes, self.problem.points), self.real)
        return self.memory

    def field(self, name: str, value: Field) -> Array:
        """Return the cached array of a field over the grid on the device."""

        def make() -> Array:
            return self.backend.upload(converted(value, self.problem.shape, self.real).reshape(-1))

        return self.table(name, make)

    def bind(self, spec: KernelSpec, items: int | None = None, begin: int = 0, **members: Any) -> Bound:
        """Return the launch of a kernel over all rows, or over `items` items from `begin` on."""
        self._bound_members.append(members)  # kernels store addresses only
        kernel, count = self.backend.load(spec), self.row_count if items is None else items
        run = kernel.bind(self.backend.pack(kernel, **members), begin, begin + count)
        return DeviceAction(run, kernel.bytes_per_item * count * _numbers_per_item(spec, members))

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
        axes = self.problem.axes
        fields |= {f"u{axis}": self.u[k] for k, axis in enumerate(axes)}
        if self.problem.elastic is not None:
            return fields | {name: self.stress[k] for k, name in enumerate(self.problem.stresses)}
        fields |= {f"rho{axis}": self.rho[k] for k, axis in enumerate(axes)}
        return fields | {f"memory{k}": memory for k, memory in enumerate(() if self.memory is None else self.memory)}


def stage(name: str, *work: Bound) -> Stage:
    """Return one stage for several actions in order, with the sum of their bytes."""
    run = work[0] if len(work) == 1 else ActionSequence(work)
    return Stage(name, run, sum(getattr(action, "bytes", 0) for action in work))


def stages(name: str, *work: Bound) -> list[Stage]:
    """Return several actions in order as stages: one for each message, and one for the work between messages."""
    result = []
    for is_message, actions in groupby(_flat(work), lambda action: isinstance(action, MessageAction)):
        if is_message:
            result += [
                Stage(action.name, action, action.bytes, useful=False, messages=action.messages)
                for action in actions
                if isinstance(action, MessageAction)
            ]
        else:
            result.append(stage(name, *actions))
    return result


def _flat(work: Iterable[Bound]) -> Iterator[Bound]:
    for action in work:
        yield from _flat(action.actions) if isinstance(action, ActionSequence) else (action,)
