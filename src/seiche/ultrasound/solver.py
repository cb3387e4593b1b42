# SPDX-License-Identifier: BSD-3-Clause
"""The k-space ultrasound solver: a step is a list of named stages (theory/ultrasound, section 3).

gradient, velocity               momentum
velocity sources
divergence, density              mass, and the pressure that follows
pressure sources, pressure       instead, in a step in which a source acts on the density
absorption                       fractional Laplacians of power-law media
record                           what sensors see
advance clock
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, open_backend
from seiche.domain.world import World
from seiche.errors import CaseError, UnstableError
from seiche.kernels.registry import Real
from seiche.kernels.registry import kspace as registry
from seiche.observe.stage import Stage
from seiche.observe.timers import StageTimers
from seiche.solver import Health, RowSet, SolverBase, State
from seiche.solver.replay import Replay
from seiche.solver.state import refuse_misshapen
from seiche.ultrasound.axis_wise import AxisWiseScheme
from seiche.ultrasound.exact import ExactScheme
from seiche.ultrasound.exact_lines import ExactLinesScheme, has_lines
from seiche.ultrasound.gathered import Records, refuse_on_ranks
from seiche.ultrasound.local_basis import Part, least_overlap
from seiche.ultrasound.overlaps import LocalBasis
from seiche.ultrasound.partition import partition_of
from seiche.ultrasound.plan import Plan, Sharing
from seiche.ultrasound.problem import Problem
from seiche.ultrasound.records import Request
from seiche.ultrasound.slabs import Slabs
from seiche.ultrasound.source_stages import SourceStages
from seiche.ultrasound.state import DeviceState, stages
from seiche.ultrasound.two_layouts import TwoLayoutScheme

SCHEMES = ("exact", "separable", "local4")
Transforms: TypeAlias = Literal["auto", "library", "lines"]
#: Steps after which it is checked whether the pressure is still finite.
_CHECK_EVERY = 256


class UltrasoundSolver(SolverBase):
    """A problem on the ranks of a world, a part of the grid a rank.

    Args:
        problem: the whole problem, the same on every rank.
        world: the ranks; this process alone by default.
        sharing: how they share the grid; several ranks record no velocities at the grid's points and have no sensors
            between points.
        device: "cpu", "cuda" or "cuda:1".
        precision: "float32" or "float64".
        scheme: "exact", "separable" or "local4".
        record: what sensors record.
        threads: CPU threads of each rank.
        transforms: of the exact scheme, by a "library" over the whole grid, or of "lines" in the kernels themselves,
            for two or three axes with factors of at most 7; of the others, by kernels for lines of any length, or for
            "lines" of those very lengths; "auto" takes lines on a GPU where they are possible.

    Attributes:
        problem: the whole problem.
        recorder: what was recorded, on all ranks.
        plan: why the grid is shared as it is; None where one rank has all of it.
        sources: those of this rank's part.

    Raises:
        CaseError: an unknown precision or scheme, a record that the scheme or several ranks do not have, or a grid that
            cannot be cut as `sharing` says.
        BackendUnavailable: the device is not there, or has too little memory.
    """

    item = "points"
    #: Steps differ by the sources that act and by what is recorded: a graph is one step of one kind.
    graph_steps = 1

    def __init__(
        self,
        problem: Problem,
        *,
        world: World | None = None,
        sharing: Sharing | None = None,
        device: str = "cpu",
        precision: str = "float32",
        scheme: str = "exact",
        record: Request | None = None,
        threads: int | None = None,
        transforms: Transforms = "auto",
    ) -> None:
        """Allocate the fields at rest (collective)."""
        self.world, sharing, request = world or World.serial(), sharing or Sharing(), record or Request()
        _refuse_unknown(precision, scheme, request, transforms)
        if self.world.size > 1 or sharing.basis is not None:
            refuse_on_ranks(request)
        threads = self.world.threads(threads)
        options = {"device": device, "precision": precision, "scheme": scheme, "threads": threads}
        self._partition = partition = partition_of(problem, self.world, sharing, {**options, "transforms": transforms})
        self.problem, self.precision, self.scheme = problem, precision, scheme
        self.step, self.dt = 0, problem.time_step
        self.backend = open_backend(device, threads, self.world.local_rank)
        self.timers = StageTimers(self.backend.clock())
        basis = partition.basis
        self._state = DeviceState(self.backend, partition.problem, precision, basis)
        self._scheme = self._open_scheme(partition.transforms)
        self.layout = f"{scheme}, transforms by {self.transforms}"
        self.items = int(np.prod([window.core for window in self.part.windows]))
        self.total_items = problem.points
        self.sources = SourceStages(self._state)
        self.recorder = Records(partition, self._state, request)
        self._recorder = self.recorder.part
        self._clock = self._state.bind(registry.advance(), items=1, clock=self._state.clock)
        self.exchanges = [] if basis is None else basis.exchanges
        for exchange in basis.exchanges if isinstance(basis, LocalBasis) else ():
            exchange.beside = lambda name: self.timers.beside(name)
        self._replay = Replay(self.backend, ())  # messages are never in a graph
        self._lists: dict[tuple[bool, ...], list[Stage]] = {}
        self._counts: dict[tuple[bool, ...], int] = {}

    def _open_scheme(self, transforms: str) -> ExactScheme | AxisWiseScheme:
        state, problem = self._state, self._partition.problem
        if self.scheme != "exact":
            fixed = self.backend.prefers_fused_transforms if transforms == "auto" else transforms == "lines"
            if isinstance(state.local, Slabs):
                return TwoLayoutScheme(state, *state.local.open_columns(state), self.scheme, fixed=fixed)
            return AxisWiseScheme(state, self.scheme, fixed=fixed)
        real: Real = "float32" if state.real == np.float32 else "float64"
        whole = state.local is not None and state.local.overlaps is None
        lines = transforms == "lines"
        if transforms == "auto":
            lines = self.backend.prefers_fused_transforms and not whole and has_lines(problem, real)
        if lines and whole:
            raise CaseError("transforms: those of lines do not cover a grid that ranks share; use the library's")
        return ExactLinesScheme(state) if lines else ExactScheme(state)

    # ---- what this solver is

    @property
    def transforms(self) -> str:
        """Return what transforms: "lines" in the kernels themselves, or the name of a library."""
        library = self._scheme.name == "exact" and not isinstance(self._scheme, ExactLinesScheme)
        return self._state.transforms.name if library else "lines"

    @property
    def plan(self) -> Plan | None:
        """Return why the grid is shared as it is; None where one rank has all of it."""
        return self._partition.plan

    @property
    def parts(self) -> Sequence[Part]:
        """Return the parts of the grid, one a rank."""
        return self._partition.parts

    @property
    def part(self) -> Part:
        """Return the part of this rank."""
        return self._partition.part

    @property
    def overlap(self) -> int:
        """Return the width of the narrowest overlap, 0 where transforms cover the whole grid."""
        return least_overlap(self.parts)

    # ---- steps

    @property
    def stages(self) -> list[Stage]:
        """Return the stages of the next step."""
        *active, sensed, tones = kind = self._kind()
        if self._begins:
            start = Stage("initial pressure", self._set_initial_pressure)
            return [start, *self._scheme.start(), *self._last(sensed, tones)]
        if kind not in self._lists:
            velocity, pressure = self.sources.velocity(active), self.sources.pressure(active)
            step = self._scheme.step(stages("velocity sources", *velocity), stages("pressure sources", *pressure))
            self._lists[kind] = [*step, *self._last(sensed, tones)]
        return self._lists[kind]

    def _kind(self) -> tuple[bool, ...]:
        """Return the kind of the next step: which sources act, and what is recorded."""
        return *self.sources.active(self.step), *self._recorder.due(self.step)

    @property
    def _begins(self) -> bool:
        """Return whether the next step starts from a pressure."""
        return self.step == 0 and self.problem.initial_pressure is not None

    @property
    def phases(self) -> tuple[list[Stage], ...]:
        """Return the stages of each kind of step that was done, but for the one that starts from a pressure."""
        return tuple(self._lists[kind] for kind in self._counts)

    @property
    def weights(self) -> tuple[int, ...]:
        """Return how many steps of each kind were done."""
        return tuple(self._counts.values())

    def _last(self, sensed: bool, tones: bool) -> list[Stage]:
        record = [Stage("record", self._recorder.work(sensed, tones))] if sensed or tones else []
        return [*record, Stage("advance clock", self._clock)]

    def _set_initial_pressure(self) -> None:
        pressure = np.ascontiguousarray(self._partition.problem.initial_pressure, self._state.real)
        self.backend.assign(self._state.p, pressure.reshape(-1))

    def _before(self, steps: int) -> int:
        """Return how many steps may follow before the pressure is checked."""
        return min(steps, _CHECK_EVERY - self.step % _CHECK_EVERY)

    def _may_replay(self) -> bool:
        """Return whether a graph of the next step may be captured: what is done on first use must not be in it."""
        return self._partition.basis is None and not self._begins and self._kind() in self._counts

    def _before_launch(self, steps: int) -> Hashable:
        """Count the next step; return its kind."""
        kind = self._kind()
        if not self._begins:
            self._counts[kind] = self._counts.get(kind, 0) + 1
        return kind

    def _upcoming(self, steps: int) -> Sequence[Sequence[Stage]]:
        """Return the stages of the next step."""
        return [self.stages]

    def _after_launch(self, steps: int) -> None:
        """Hand full rings of series on."""
        self._recorder.done(self.step)

    def _after(self, steps: int) -> None:
        """Check the pressure now and then."""
        if self.step % _CHECK_EVERY == 0:
            self.check()

    def check(self) -> Health:
        """Return the largest pressure (Pa).

        Raises:
            UnstableError: on every rank, if the pressure is not finite.
        """
        own = self._state.p.reshape(self.part.shape)[self.part.core]
        largest = float(self.world.allreduce_max(np.array([self.backend.max(own)]))[0])
        if not np.isfinite(largest):
            raise UnstableError(
                f"pressure is not finite after step {self.step} of {self.problem.steps}: the time step"
                f" {self.problem.time_step:g} s is too long for this medium"
            )
        return Health(self.step, {"largest_pressure": largest})

    def _collect(self) -> None:
        """Hand what was recorded on."""
        self.recorder.flush()

    # ---- fields and state

    def _block(self, name: str) -> npt.NDArray[Any]:
        """Return a field at this rank's own points; collective for the velocity along the first axis."""
        if name == f"u{self.problem.axes[0]}":
            self._scheme.settle()
        return self._partition.own(self.backend.download(self._state.arrays[name]))

    def fields(self, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
        """Return fields at this rank's own points, blocks in the shape of its part without overlaps.

        Names are those of `field`, "pressure", or "velocity" with its components last.
        """
        found = {}
        for name in names:
            if name == "velocity":
                found[name] = np.stack([self._block(f"u{axis}") for axis in self.problem.axes], axis=-1)
            else:
                found[name] = self._block("p" if name == "pressure" else name)
        return found

    def device_fields(self, names: Sequence[str]) -> dict[str, Array]:
        """Return the same as views of the fields on the device; collective for the velocity along the first axis."""
        if {"velocity", f"u{self.problem.axes[0]}"} & set(names):
            self._scheme.settle()
        shape, core = self.part.shape, self.part.core
        stored = {**self._state.arrays, "pressure": self._state.p}
        found = {name: stored[name].reshape(shape)[core] for name in names if name != "velocity"}
        if "velocity" in names:
            velocity = self._state.u.reshape(-1, *shape)[:, *core]
            found["velocity"] = velocity.transpose(*range(1, velocity.ndim), 0)
        return found

    def field(self, name: str) -> npt.NDArray[Any]:
        """Return a field over the whole grid, on every rank: "p", "ux", "rhox" and so on for the grid's axes.

        Raises:
            KeyError: another name.
        """
        return self._partition.whole(self._block(name))

    @property
    def _arrays(self) -> dict[str, Array]:
        """Return all arrays (points,) of the part that a restart needs."""
        return {**self._state.arrays, **self._recorder.arrays}

    @property
    def keys(self) -> Mapping[str, npt.NDArray[np.int64]]:
        """Return the indices of this rank's own points, and the numbers of its sensors if there are any."""
        sensors = {"sensors": self.recorder.keys} if self.recorder.sensors else {}
        return {"points": self._partition.keys, **sensors}

    def state(self) -> State:
        """Return fields and what was recorded: rows of points and of sensors.

        Overlaps are not in it: they are filled from their neighbours before they are read. A run that continues from it
        in the same parts has the same bits as one without a stop. In others it begins with the same bits and goes on
        as their steps do, with slabs to round-off. Series that go to a sink are not in it either.
        """
        self._collect()
        self._scheme.settle()
        points = {
            name: self._partition.own(self.backend.download(array)).reshape(-1) for name, array in self._arrays.items()
        }
        rows = {"points": RowSet(self._partition.keys, self.total_items, points)}
        if (sensors := self.recorder.rows()) is not None:
            rows["sensors"] = sensors
        return State(self.step, rows, attributes={"recorded": self._recorder.recorded})

    def set_state(self, state: State) -> None:
        """Continue from `state`, whose rows are those of `keys`.

        Raises:
            CaseError: an array is missing or has another shape, or sensors began to record at another step.
        """
        recorder, arrays, rows = self._recorder, self._arrays, state.rows.get("points")
        recorded = recorder.recorded_of(state.step)
        if state.attributes.get("recorded", recorded) != recorded:
            raise CaseError(
                f"state: {state.attributes['recorded']} of {state.step} steps are recorded; expected {recorded}"
            )
        refuse_misshapen(rows, dict.fromkeys(arrays, ()), self.items, "points")
        assert rows is not None
        recorder.set_state(state.step, state.rows.get("sensors"))
        for name, array in arrays.items():
            self.backend.assign(array, self._partition.padded(rows.arrays[name][:], self._state.real))
        self.backend.assign(self._state.clock, np.array([state.step], np.int64))
        for one in self._scheme.restored():
            one.action()
        self.step = state.step


def _refuse_unknown(precision: str, scheme: str, request: Request, transforms: str) -> None:
    """Refuse words that this solver does not know, and records that a scheme does not have."""
    if precision not in ("float32", "float64"):
        raise CaseError(f"precision: {precision!r} is not float32 or float64")
    if scheme not in SCHEMES:
        raise CaseError(f"scheme: {scheme!r} is not {', '.join(SCHEMES[:-1])} or {SCHEMES[-1]}")
    if scheme != "exact" and any(name.startswith("u") for name in request.quantities):
        raise CaseError(f"record: the velocity is not recorded by the {scheme} scheme; use the exact one")
    if transforms not in get_args(Transforms):
        raise CaseError(f"transforms: {transforms!r} is not auto, library or lines")
