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

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, open_backend
from seiche.backend.base import Graph
from seiche.errors import CaseError, UnstableError
from seiche.kernels.registry import Real
from seiche.kernels.registry import kspace as registry
from seiche.observe.stage import Stage
from seiche.observe.timers import StageTimers
from seiche.ultrasound.axis_wise import AxisWiseScheme
from seiche.ultrasound.exact import ExactScheme
from seiche.ultrasound.exact_lines import ExactLinesScheme, has_lines
from seiche.ultrasound.problem import Problem
from seiche.ultrasound.records import Recorder, Request
from seiche.ultrasound.slabs import Slabs
from seiche.ultrasound.source_stages import SourceStages
from seiche.ultrasound.state import Local, State, stage, stages
from seiche.ultrasound.two_layouts import TwoLayoutScheme

SCHEMES = ("exact", "separable", "local4")
Transforms: TypeAlias = Literal["auto", "library", "lines"]
#: Steps between two looks whether the pressure is still finite.
_CHECK_EVERY = 256


class Solver:
    """A problem on one device.

    Args:
        problem: what is computed.
        device: "cpu", "cuda" or "cuda:1".
        precision: "float32" or "float64".
        scheme: "exact", "separable" or "local4".
        record: what sensors record.
        threads: CPU threads.
        local: what ranks share, where the problem is the part of one (ranks.py).
        transforms: of the exact scheme, by a "library" over the whole grid, or of "lines" in the kernels themselves,
            for two or three axes with factors of at most 7; of the others, by kernels for lines of any length, or for
            "lines" of those very lengths; "auto" takes lines on a GPU where they are possible.

    Raises:
        CaseError: an unknown precision or scheme, or a record that the scheme does not have.
        BackendUnavailable: the device is not there, or has too little memory.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        device: str = "cpu",
        precision: str = "float32",
        scheme: str = "exact",
        record: Request | None = None,
        threads: int | None = None,
        local: Local | None = None,
        transforms: Transforms = "auto",
    ) -> None:
        """Allocate the fields at rest."""
        if precision not in ("float32", "float64"):
            raise CaseError(f"precision: {precision!r} is not float32 or float64")
        if scheme not in SCHEMES:
            raise CaseError(f"scheme: {scheme!r} is not {', '.join(SCHEMES[:-1])} or {SCHEMES[-1]}")
        recorded = () if record is None else record.quantities
        if scheme != "exact" and any(name.startswith("u") for name in recorded):
            raise CaseError(f"record: the velocity is not recorded by the {scheme} scheme; use the exact one")
        if local is not None and scheme != "exact" and not isinstance(local, Slabs):
            raise CaseError(f"basis: the {scheme} scheme has no local basis; its ranks share transforms: global")
        self.problem = problem
        self.backend = open_backend(device, threads, 0 if local is None else local.world.local_rank)
        self.state = State(self.backend, problem, precision, local)
        self._scheme = self._open_scheme(scheme, transforms)
        self._sources = SourceStages(self.state)
        self.recorder = Recorder(self.state, record or Request())
        self._advance = self.state.bind(registry.advance(), items=1, clock=self.state.clock)
        self.time_step = 0
        self.timers = StageTimers(self.backend.clock())
        self._lists: dict[tuple[bool, ...], list[Stage]] = {}
        self._counts: dict[tuple[bool, ...], int] = {}
        self._graphs: dict[tuple[bool, ...], Graph] = {}

    def _open_scheme(self, scheme: str, transforms: Transforms) -> ExactScheme | AxisWiseScheme:
        state = self.state
        if transforms not in get_args(Transforms):
            raise CaseError(f"transforms: {transforms!r} is not auto, library or lines")
        if scheme != "exact":
            fixed = self.backend.prefers_fused_transforms if transforms == "auto" else transforms == "lines"
            if isinstance(state.local, Slabs):
                return TwoLayoutScheme(state, *state.local.open_columns(state), scheme, fixed=fixed)
            return AxisWiseScheme(state, scheme, fixed=fixed)
        real: Real = "float32" if state.real == np.float32 else "float64"
        whole = state.local is not None and state.local.overlaps is None
        lines = transforms == "lines"
        if transforms == "auto":
            lines = self.backend.prefers_fused_transforms and not whole and has_lines(self.problem, real)
        if lines and whole:
            raise CaseError("transforms: those of lines do not cover a grid that ranks share; use the library's")
        return ExactLinesScheme(state) if lines else ExactScheme(state)

    @property
    def transforms(self) -> str:
        """Return what transforms: "lines" in the kernels themselves, or the name of a library."""
        library = self._scheme.name == "exact" and not isinstance(self._scheme, ExactLinesScheme)
        return self.state.transforms.name if library else "lines"

    def stages(self) -> list[Stage]:
        """Return the stages of the step that comes next."""
        *active, sensed, tones = key = self._kind()
        if self.time_step == 0 and self.problem.initial_pressure is not None:
            start = Stage("initial pressure", self._set_initial_pressure)
            return [start, *self._scheme.start(), *self._after(sensed, tones)]
        if key not in self._lists:
            velocity, pressure = self._sources.velocity(active), self._sources.pressure(active)
            step = self._scheme.step(stages("velocity sources", *velocity), stages("pressure sources", *pressure))
            self._lists[key] = [*step, *self._after(sensed, tones)]
        return self._lists[key]

    def _kind(self) -> tuple[bool, ...]:
        """Return of which kind the step that comes next is: which sources act, and what is recorded."""
        return *self._sources.active(self.time_step), *self.recorder.due(self.time_step)

    @property
    def phases(self) -> tuple[list[Stage], ...]:
        """Return the stages of each kind of step that was done, but for those that start from a pressure."""
        return tuple(self._lists[kind] for kind in self._counts)

    @property
    def weights(self) -> tuple[int, ...]:
        """Return how many steps of each kind were done."""
        return tuple(self._counts.values())

    def _after(self, sensed: bool, tones: bool) -> list[Stage]:
        record = [Stage("record", self.recorder.work(sensed, tones))] if sensed or tones else []
        return [*record, Stage("advance clock", self._advance)]

    def _set_initial_pressure(self) -> None:
        pressure = np.ascontiguousarray(self.problem.initial_pressure, self.state.real)
        self.backend.assign(self.state.p, pressure.reshape(-1))

    def step(self) -> None:
        """Advance by one step."""
        kind = self._kind()
        self.timers.step(self.stages())
        self._done(kind)

    def run(self, steps: int | None = None) -> None:
        """Advance by `steps`, or to the end of the problem; what was recorded is then on the host.

        Raises:
            UnstableError: the pressure is no longer finite.
        """
        end = self.problem.steps if steps is None else self.time_step + steps
        with self.timers.running():
            while self.time_step < end:
                alone = self.state.local is None  # what ranks send each other is not captured
                if alone and self.backend.has_graphs and self.timers.steps > 2 and not self.timers.due:
                    self._replay()
                else:
                    self.step()
            self.backend.synchronize()
        self.check_finite()
        self.recorder.flush()

    def _replay(self) -> None:
        """Advance by one step through a captured graph; kinds of steps differ by the sources that act."""
        kind = self._kind()
        if kind not in self._graphs:
            run = stage("step", *(one.action for one in self.stages())).action
            run()  # what is done on first use only must not be captured
            self._graphs[kind] = self.backend.capture(run)
            self.timers.count(1)
        else:
            self.timers.replay(1, self._graphs[kind].launch)
        self._done(kind)

    def _done(self, kind: tuple[bool, ...]) -> None:
        if kind in self._lists:  # or else it was the first one, from a pressure
            self._counts[kind] = self._counts.get(kind, 0) + 1
        self.time_step += 1
        self.recorder.done(self.time_step)
        if self.time_step % _CHECK_EVERY == 0:
            self.check_finite()

    def check_finite(self) -> None:
        """Look whether the pressure is finite.

        Raises:
            UnstableError: it is not.
        """
        greatest = self.backend.max(self.state.p)
        if self.state.local is not None:  # all ranks stop together
            greatest = float(self.state.local.world.allreduce_max(np.array([greatest]))[0])
        if not np.isfinite(greatest):
            raise UnstableError(
                f"pressure is not finite after step {self.time_step} of {self.problem.steps}: the time step"
                f" {self.problem.time_step:g} s is too long for this medium"
            )

    def restore(
        self, time_step: int, fields: Mapping[str, npt.NDArray[Any]], aggregates: Mapping[str, npt.NDArray[Any]]
    ) -> None:
        """Go on from `time_step` with fields by the names of `field`, and running aggregates of the recorder."""
        for name, values in fields.items():
            self.backend.assign(self._array(name), np.ascontiguousarray(values, self.state.real).reshape(-1))
        self.backend.assign(self.state.clock, np.array([time_step], np.int64))
        if isinstance(self._scheme, AxisWiseScheme):
            for one in self._scheme.restored():
                one.action()
        self.recorder.restore(time_step, aggregates)
        self.time_step = time_step

    def _array(self, name: str) -> Array:
        if name == "p":
            return self.state.p
        array = {"u": self.state.u, "rho": self.state.rho}[name[:-1]]
        return array[self.problem.axes.index(name[-1])]

    def field(self, name: str) -> npt.NDArray[Any]:
        """Return a field over the grid: "p", "ux", "rhox" and so on for the grid's axes; collective on several ranks.

        Raises:
            KeyError: another name.
        """
        if isinstance(self._scheme, TwoLayoutScheme) and name == f"u{self.problem.axes[0]}":
            self._scheme.settle()
        return self.state.host(self._array(name))
