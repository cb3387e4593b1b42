# SPDX-License-Identifier: BSD-3-Clause
"""The k-space ultrasound solver: a step is a list of named stages (theory/ultrasound, section 3).

gradient, velocity               momentum
velocity sources
divergence, density              mass, and the resulting pressure
pressure sources, pressure       instead, in a step in which a source acts on the density
absorption                       fractional Laplacians of power-law media
record                           sensor records
advance clock
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, open_backend
from seiche.domain.world import World
from seiche.errors import CaseError, UnstableError
from seiche.kernels.registry import kspace as registry
from seiche.observe.stage import Stage
from seiche.observe.timers import StageTimers
from seiche.solver import Health, RowSet, SolverBase, State
from seiche.solver.replay import Replay
from seiche.solver.state import check_row_shapes
from seiche.ultrasound.elastic_layers import StoredLayers
from seiche.ultrasound.exact import ExactScheme
from seiche.ultrasound.exact_lines import ExactLinesScheme
from seiche.ultrasound.gathered import Records
from seiche.ultrasound.local_basis import min_overlap
from seiche.ultrasound.partition import partition_of
from seiche.ultrasound.plan import Decomposition
from seiche.ultrasound.problem import Problem
from seiche.ultrasound.records import Request
from seiche.ultrasound.source_stages import SourceStages
from seiche.ultrasound.state import DeviceState, has_lines, stages

if TYPE_CHECKING:
    from seiche.ultrasound.axis_wise import AxisWiseScheme
    from seiche.ultrasound.elastic import ElasticScheme
    from seiche.ultrasound.slabs import Slabs

SCHEMES = ("exact", "separable", "local4")
Transforms: TypeAlias = Literal["auto", "library", "lines"]
#: Steps between checks that the pressure is finite.
_CHECK_EVERY = 256


class UltrasoundSolver(SolverBase):
    """A problem on the ranks of a world, with a part of the grid on each rank.

    Args:
        problem: the whole problem, the same on every rank.
        world: the ranks; this process alone by default.
        decomposition: of the grid on several ranks.
        device: "cpu", "cuda" or "cuda:1".
        precision: "float32" or "float64".
        scheme: "exact", "separable" or "local4".
        record: quantities to record.
        threads: CPU threads of each rank.
        transforms: "library" for whole grids, "lines" inside the kernels, "auto" for lines on a GPU where possible. The
            exact scheme has lines for two or three axes with factors of at most 7. The other schemes always use lines;
            "lines" compiles them for the lengths of the axes.
        shared: a solver of a problem that differs in sources only; its device and arrays of the medium are used.

    Attributes:
        problem: the whole problem.
        recorder: records of all ranks.
        parts, part: parts of the grid by rank, and the part of this rank.
        plan: reason for the decomposition; None where one rank has the whole grid.
        overlap: width of the narrowest overlap, 0 where transforms cover the whole grid.
        sources: those in the part of this rank.

    Raises:
        CaseError: an unknown option, an unsupported record, or a grid that cannot be cut by `decomposition`.
        BackendUnavailable: the device is missing, or has too little memory.
    """

    item = "points"
    #: Steps differ in active sources and records: a graph is one step of one kind.
    graph_steps = 1
    _state: DeviceState

    def __init__(
        self,
        problem: Problem,
        *,
        world: World | None = None,
        decomposition: Decomposition | None = None,
        device: str = "cpu",
        precision: str = "float32",
        scheme: str = "exact",
        record: Request | None = None,
        threads: int | None = None,
        transforms: Transforms = "auto",
        shared: UltrasoundSolver | None = None,
    ) -> None:
        self.world, request = world or World.serial(), record or Request()
        decomposition = decomposition or Decomposition()
        _check_options(precision, scheme, request, transforms)
        if problem.outer_end is not None:
            check_axisymmetric_support(scheme, self.world.size if decomposition.basis is None else 2, transforms)
        if problem.elastic is not None:
            check_elastic_support(scheme, transforms)
        threads = self.world.threads(threads)
        options = dict(device=device, precision=precision, scheme=scheme, threads=threads, transforms=transforms)
        self._partition = partition = partition_of(problem, self.world, decomposition, options)
        self.problem, self.precision, self.scheme = problem, precision, scheme
        self.step, self.dt = 0, problem.dt
        self.backend = open_backend(device, threads, self.world.local_rank) if shared is None else shared.backend
        self.timers = StageTimers(self.backend.clock(), label=self.backend.annotate)
        self.plan, self.parts, self.part = partition.plan, partition.parts, partition.part
        self.overlap = min_overlap(self.parts)
        basis = partition.basis
        tables: dict[str, Array] = {} if shared is None else shared._state.tables
        self._state = DeviceState(self.backend, partition.problem, precision, basis, tables=tables)
        self._scheme = self._open_scheme(partition.transforms)
        self.layout = f"{self._scheme.name}, transforms by {self.transforms}"
        self.items = int(np.prod([window.core for window in self.part.windows]))
        self.total_items = problem.points
        self.sources = SourceStages(self._state)
        self.recorder = Records(partition, self._state, request)
        self._recorder = self.recorder.local
        self._clock = self._state.bind(registry.advance(), items=1, clock=self._state.clock)
        self.exchanges = [] if basis is None else basis.exchanges
        for exchange in () if basis is None or basis.overlaps is None else basis.overlaps.exchanges:
            exchange.overlap_timer = lambda name: self.timers.overlap(name)
        self._replay = Replay(self.backend, ())  # graphs never contain messages
        self._lists: dict[tuple[bool, ...], list[Stage]] = {}
        self._counts: dict[tuple[bool, ...], int] = {}

    def _open_scheme(self, transforms: str) -> ExactScheme | AxisWiseScheme | ElasticScheme:
        state, problem = self._state, self._partition.problem
        global_basis = state.local is not None and state.local.overlaps is None
        if problem.outer_end is not None:
            from seiche.ultrasound.axisymmetric import AxisymmetricScheme

            return AxisymmetricScheme(state)
        fixed = self.backend.prefers_fused_transforms if transforms == "auto" else transforms == "lines"
        if problem.elastic is not None:
            from seiche.ultrasound.elastic import ElasticScheme
            from seiche.ultrasound.elastic_medium import absorbs

            return ElasticScheme(state, fixed=fixed, absorbing=absorbs(self.problem))
        if self.scheme != "exact":
            if global_basis:
                from seiche.ultrasound.two_layouts import TwoLayoutScheme

                columns = cast("Slabs", state.local).open_columns(state)
                return TwoLayoutScheme(state, *columns, self.scheme, fixed=fixed)
            from seiche.ultrasound.axis_wise import AxisWiseScheme

            return AxisWiseScheme(state, self.scheme, fixed=fixed)
        lines = transforms == "lines"
        if transforms == "auto":
            lines = self.backend.prefers_fused_transforms and not global_basis and has_lines(problem, state.precision)
        if lines and global_basis:
            raise CaseError('transforms: "lines" does not support the global basis on several ranks; use "library"')
        return ExactLinesScheme(state) if lines else ExactScheme(state)

    @property
    def transforms(self) -> str:
        """Return the kind of transforms: "lines" in the kernels, or the name of a library."""
        library = self._scheme.name == "exact" and not isinstance(self._scheme, ExactLinesScheme)
        return self._state.transforms.name if library else "lines"

    # ---- steps

    @property
    def stages(self) -> list[Stage]:
        """Return the stages of the next step."""
        *active, sensors, harmonics = kind = self._kind()
        if self._starts_from_pressure:
            start = Stage("initial pressure", self._set_initial_pressure)
            return [start, *self._scheme.start(), *self._final_stages(sensors, harmonics)]
        if kind not in self._lists:
            velocity, pressure = self.sources.velocity(active), self.sources.pressure(active)
            step = self._scheme.step(stages("velocity sources", *velocity), stages("pressure sources", *pressure))
            self._lists[kind] = [*step, *self._final_stages(sensors, harmonics)]
        return self._lists[kind]

    def _kind(self) -> tuple[bool, ...]:
        """Return the kind of the next step: the sources that act, and the records."""
        return *self.sources.active(self.step), *self._recorder.is_recording(self.step)

    @property
    def _starts_from_pressure(self) -> bool:
        """Return whether the next step starts from an initial pressure."""
        return self.step == 0 and self.problem.initial_pressure is not None

    @property
    def phases(self) -> tuple[list[Stage], ...]:
        """Return the stages of each kind of step so far, without the start from an initial pressure."""
        return tuple(self._lists[kind] for kind in self._counts)

    @property
    def weights(self) -> tuple[int, ...]:
        """Return the number of steps of each kind so far."""
        return tuple(self._counts.values())

    def _final_stages(self, sensors: bool, harmonics: bool) -> list[Stage]:
        record = self._recorder.stages(sensors, harmonics) if sensors or harmonics else []
        return [*record, Stage("advance clock", self._clock)]

    def _set_initial_pressure(self) -> None:
        pressure = np.ascontiguousarray(self._partition.problem.initial_pressure, self._state.real)
        self.backend.assign(self._state.p, pressure.reshape(-1))

    def _prepare_steps(self, steps: int) -> int:
        """Return the number of steps until the pressure is checked."""
        return min(steps, _CHECK_EVERY - self.step % _CHECK_EVERY)

    def _may_replay(self) -> bool:
        """Return whether a graph of the next step may be captured: not on first use, which allocates memory."""
        return self._partition.basis is None and not self._starts_from_pressure and self._kind() in self._counts

    def _before_launch(self, steps: int) -> Hashable:
        """Count the next step; return its kind."""
        kind = self._kind()
        if not self._starts_from_pressure:
            self._counts[kind] = self._counts.get(kind, 0) + 1
        return kind

    def _upcoming(self, steps: int) -> Sequence[Sequence[Stage]]:
        """Return the stages of the next step."""
        return [self.stages]

    def _after_launch(self, steps: int) -> None:
        """Flush full rings of series."""
        self._recorder.after_steps(self.step)

    def _finish_steps(self, steps: int) -> None:
        """Check the pressure at intervals."""
        if self.step % _CHECK_EVERY == 0:
            self.check()

    def check(self) -> Health:
        """Return the largest pressure (Pa).

        Raises:
            UnstableError: on every rank, if the pressure is not finite.
        """
        own_pressure = self._state.p.reshape(self.part.shape)[self.part.core]
        max_pressure = float(self.world.allreduce_max(np.array([self.backend.max(own_pressure)]))[0])
        if not np.isfinite(max_pressure):
            raise UnstableError(
                f"pressure is not finite after step {self.step} of {self.problem.steps}: the time step {self.dt:g} "
                "s is too long for this medium; use a shorter one"
            )
        return Health(self.step, {"largest_pressure": max_pressure})

    def _collect(self) -> None:
        """Flush the records."""
        self.recorder.flush()

    # ---- fields and state

    def _block(self, name: str) -> npt.NDArray[Any]:
        """Return a field at this rank's owned points; collective for the velocity along the first axis."""
        if name == f"u{self.problem.axes[0]}":
            self._scheme.complete_fields()
        return self._partition.owned(self.backend.download(self._state.arrays[name]))

    def fields(self, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
        """Return fields at this rank's owned points, blocks in the shape of its part without overlaps.

        Names are those of `field`, "pressure", or "velocity" with its components last.
        """
        blocks = {}
        for name in names:
            if name == "velocity":
                blocks[name] = np.stack([self._block(f"u{axis}") for axis in self.problem.axes], axis=-1)
            else:
                blocks[name] = self._block("p" if name == "pressure" else name)
        return blocks

    def device_fields(self, names: Sequence[str]) -> dict[str, Array]:
        """Return the same as device views of the stored fields; collective for the velocity along the first axis."""
        if {"velocity", f"u{self.problem.axes[0]}"} & set(names):
            self._scheme.complete_fields()
        shape, core = self.part.shape, self.part.core
        stored = {**self._state.arrays, "pressure": self._state.p}
        views = {name: stored[name].reshape(shape)[core] for name in names if name != "velocity"}
        if "velocity" in names:
            velocity = self._state.u.reshape(-1, *shape)[:, *core]
            views["velocity"] = velocity.transpose(*range(1, velocity.ndim), 0)
        return views

    def field(self, name: str) -> npt.NDArray[Any]:
        """Return a field over the whole grid, on every rank: "p", "ux", "rhox" and so on for the grid's axes.

        Raises:
            KeyError: another name.
        """
        return self._partition.gathered(self._block(name))

    @property
    def _arrays(self) -> dict[str, Array]:
        """Return all arrays (points,) of the part for a restart."""
        return {**self._state.arrays, **self._recorder.arrays}

    @property
    def keys(self) -> Mapping[str, npt.NDArray[np.int64]]:
        """Return the indices of this rank's owned points, and the numbers of its sensors, if any.

        In an elastic medium also those of the memory of the layers at the ends of each axis, "layers x".
        """
        sensors = {"sensors": self.recorder.keys} if self.recorder.stored_sensors else {}
        layers = {f"layers {axis}": self._stored_layers(axis).keys for axis in self._state.layer_memory}
        return {"points": self._partition.keys, **sensors, **layers}

    def _stored_layers(self, axis: str) -> StoredLayers:
        """Return the memory of the layers of an elastic medium at the ends of an axis."""
        return StoredLayers.of(self.problem, self.part, self.problem.axes.index(axis))

    def state(self) -> State:
        """Return fields and records as rows of points and of sensors.

        Overlaps are not included; they are filled from the neighbours before use. With the same parts a restarted run
        is bitwise identical to an uninterrupted one. In other parts the initial state is identical; later
        steps differ as the decompositions do, by round-off for slabs. Series with a sink are not included.
        """
        self._collect()
        self._scheme.complete_fields()
        points = {
            name: self._partition.owned(self.backend.download(array)).reshape(-1)
            for name, array in self._arrays.items()
        }
        rows = {"points": RowSet(self._partition.keys, self.total_items, points)}
        if (sensors := self.recorder.rows()) is not None:
            rows["sensors"] = sensors
        for axis, memories in self._state.layer_memory.items():
            layers = self._stored_layers(axis)
            values = {name: layers.values(self.backend.download(memory)) for name, memory in memories.items()}
            rows[f"layers {axis}"] = RowSet(layers.keys, layers.total, values)
        return State(self.step, rows, attributes={"recorded": self._recorder.recorded})

    def set_state(self, state: State) -> None:
        """Continue from `state`, whose rows are those of `keys`.

        Raises:
            CaseError: an array is missing or has another shape, or sensors began to record at another step.
        """
        recorder, arrays, rows = self._recorder, self._arrays, state.rows.get("points")
        recorded = recorder.recorded_steps_after(state.step)
        if state.attributes.get("recorded", recorded) != recorded:
            raise CaseError(
                f"state: {state.attributes['recorded']} of {state.step} steps are recorded; expected {recorded}"
            )
        check_row_shapes(rows, dict.fromkeys(arrays, ()), self.items, "points")
        assert rows is not None
        for axis, memories in self._state.layer_memory.items():
            layers, name = self._stored_layers(axis), f"layers {axis}"
            check_row_shapes(layer := state.rows.get(name), dict.fromkeys(memories, ()), layers.keys.size, name)
            assert layer is not None
            for key, memory in memories.items():
                self.backend.assign(memory, layers.memory(layer.arrays[key][:], self._state.real))
        recorder.set_state(state.step, state.rows.get("sensors"))
        for name, array in arrays.items():
            self.backend.assign(array, self._partition.padded(rows.arrays[name][:], self._state.real))
        self._recorder.clear_later_harmonics(state.step)
        self.backend.assign(self._state.clock, np.array([state.step], np.int64))
        for stage in self._scheme.after_restore():
            stage.action()
        self.step = state.step


def check_axisymmetric_support(scheme: str, ranks: int, transforms: str = "library") -> None:
    """Raise CaseError for options that an axisymmetric problem does not support."""
    if scheme != "exact":
        raise CaseError(f"scheme: an axisymmetric grid requires the exact scheme, not {scheme!r}")
    if ranks > 1:
        raise CaseError("grid.symmetry: an axisymmetric grid requires a single rank")
    if transforms == "lines":
        raise CaseError('transforms: an axisymmetric grid requires "library", not "lines"')


def check_elastic_support(scheme: str, transforms: str = "auto") -> None:
    """Raise CaseError for options that an elastic problem does not support."""
    if scheme != "exact":
        raise CaseError(f"scheme: an elastic medium has a scheme of its own; omit {scheme!r}")
    if transforms == "library":
        raise CaseError('transforms: an elastic medium requires "lines" or "auto", not "library"')


def _check_options(precision: str, scheme: str, request: Request, transforms: str) -> None:
    """Raise CaseError for unknown options, and for records that a scheme does not support."""
    if precision not in ("float32", "float64"):
        raise CaseError(f"precision: {precision!r} is not float32 or float64")
    if scheme not in SCHEMES:
        raise CaseError(f"scheme: {scheme!r} is not {', '.join(SCHEMES[:-1])} or {SCHEMES[-1]}")
    if scheme != "exact" and any(name.startswith("u") for name in request.quantities):
        raise CaseError(f"record: the {scheme} scheme does not record velocities; use the exact scheme")
    if transforms not in get_args(Transforms):
        raise CaseError(f"transforms: {transforms!r} is not auto, library or lines")
