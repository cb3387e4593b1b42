# SPDX-License-Identifier: BSD-3-Clause
"""Interface of a kind of case, by which it is read, checked, predicted and run (decision 27).

A `Kind` converts a case file to a `Setup`, which allocates no field, and creates a `CaseRun`: the solver and its
outputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy.typing as npt

from seiche.backend import Array
from seiche.case.labels import GridRequest, LabelledParts
from seiche.case.output import Output, StateMonitor
from seiche.case.source import CaseFile
from seiche.case.steering import Control, Steering
from seiche.case.tables import Table
from seiche.domain.emulation import emulate_ranks
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.halo.exchange import HaloExchange
from seiche.observe.plan import PlannedRank
from seiche.report.case_figure import CasePicture
from seiche.report.live_page import LiveCurves, LiveSlice
from seiche.solver import Estimate, SolverBase, State

#: Largest number of sensors or receivers with a curve on the status page.
MAX_CURVES = 6


@dataclass(frozen=True)
class Match:
    """A value that must be the same in a checkpoint and a case, with its `description` for messages and a remedy.

    An `optional` value may be absent from checkpoints of earlier versions; `earlier` is what they stored instead of
    `value`. It matters only in checkpoints after the step `since`.
    """

    value: str
    description: str
    remedy: str = ""
    optional: bool = False
    earlier: str | None = None
    since: int = -1

    def accepts(self, stored: Any) -> bool:
        """Return whether a checkpoint with the value `stored`, None if it has none, belongs to the case."""
        return stored in (self.value, self.earlier) if stored is not None else self.optional


@dataclass(frozen=True)
class Results:
    """Physical results for the summary: conserved quantities, volume flow rates (m^3/s) by iolet, details, text."""

    invariants: Mapping[str, float] = field(default_factory=dict)
    flow_rates: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    lines: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class LiveParts:
    """What the status page shows of a run.

    `slice(points)` returns a field in a plane with at most `points` along a side, on rank 0, and `curves()` the records
    so far (collective). The `outputs` collect records for the curves.
    """

    slice: Callable[[int], LiveSlice | None] = lambda points: None
    curves: Callable[[], Sequence[LiveCurves]] = tuple
    outputs: Sequence[Output] = ()


class Restart(Protocol):
    """Checkpoint from which a run continues (`seiche.case.checkpoint.CheckpointRestart`)."""

    def resume(
        self, setup: Setup, solver: SolverBase, matches: Mapping[str, Match], keys: Mapping[str, Any] | None = None
    ) -> State:
        """Load its state into `solver` and return the state; CaseError if it does not match (collective)."""


class CaseRun(ABC):
    """The solver of a case with its outputs and monitor; methods are collective unless stated otherwise.

    Attributes:
        solver: the solver.
        outputs: the outputs, in the order in which they receive the state.
        monitor: the monitor, which checks the state.
        default_fields: names that `fields` uses by default.
        stop_reason: the reason why the run ends after the current step, or None.
    """

    solver: SolverBase
    outputs: Sequence[Output] = ()
    monitor: StateMonitor
    default_fields: Sequence[str] = ()
    stop_reason: str | None = None

    def stop(self, reason: str) -> None:
        """Request the end of the run after the current step (not collective)."""
        self.stop_reason = reason

    def fields(self, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
        """Return fields of the items of this rank in SI units; KeyError for an unknown name."""
        return self.solver.fields(names or self.default_fields)

    def device_fields(self, names: Sequence[str]) -> dict[str, Array]:
        """Return the same fields as device arrays."""
        return self.solver.device_fields(names or self.default_fields)

    def controls(self) -> Mapping[str, Control]:
        """Return the values of the case that may be changed during the run, by name (not collective)."""
        return {}

    @cached_property
    def steering(self) -> Steering:
        """Return the current `controls` (not collective)."""
        return Steering(self.controls(), self.solver.world)

    @abstractmethod
    def matches(self) -> Mapping[str, Match]:
        """Return the values that a checkpoint must share with the case, by attribute name."""

    def state(self) -> State:
        """Return the state for a checkpoint."""
        return self.solver.state()

    def notes(self) -> Sequence[str]:
        """Return notes for the user before the first step (not collective)."""
        return ()

    def estimates(self) -> Sequence[Estimate]:
        """Return estimates of the current state, such as the drift of mass so far (collective)."""
        return ()

    def physics(self) -> Mapping[str, str]:
        """Return the latest physical quantities by name, as text for the progress line (not collective)."""
        return {}

    def live_parts(self) -> LiveParts:
        """Return what the status page shows of the state; called once, before the first step with such a page."""
        return LiveParts()

    def arrays(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return final results by name, the same on every rank (not collective)."""
        return {}

    def labelled(self, names: Sequence[str], grid: GridRequest | None = None) -> LabelledParts:
        """Return fields and records with dimensions and units, and coordinates, on every rank (collective).

        Raises KeyError as `fields` does, and CaseError for a `grid` if the fields are already on a grid.
        """
        raise CaseError("result: this kind of case has no labelled results; use fields")

    def exchange_seconds(self) -> float:
        """Return the sum of the separately measured times of all messages of a step, in s; 0 on one rank."""
        if self.solver.world.size == 1:
            return 0.0
        return sum(exchange.trial() for exchange in self.solver.exchanges if isinstance(exchange, HaloExchange))

    def close(self) -> None:
        """Close the solver."""
        self.solver.close()

    def results(self, files: Iterable[Path]) -> Results:
        """Return the physical results for the summary; `files` are the written files (collective)."""
        return Results(details={"files": [path.name for path in files]})


class Setup(ABC):
    """A case before anything is allocated.

    Attributes:
        case: the checked tables; all kinds have `title`, `run` and `output`.
        source: name of the case file.
        notes: notes for the user, one line each.
        steps: total number of steps.
        dt: duration of a step, s.
    """

    if TYPE_CHECKING:  # dataclass fields in some kinds, properties in others

        @property
        def case(self) -> Any: ...  # noqa: D102
        @property
        def source(self) -> str: ...  # noqa: D102
        @property
        def steps(self) -> int: ...  # noqa: D102
        @property
        def dt(self) -> float: ...  # noqa: D102
        @property
        def notes(self) -> Sequence[str]: ...  # noqa: D102

    @property
    def title(self) -> str:
        """Return the title of the case, by default the name of its file."""
        return str(self.case.title or self.source)

    @property
    @abstractmethod
    def inputs(self) -> Sequence[Path]:
        """Return the input files of the case."""

    def steps_of(self, value: int | float, key: str = "") -> float:
        """Convert the interval `key` in steps (int) or seconds (float) to steps, at least one.

        An interval from half a step to one step is one step, for every kind of case.

        Raises:
            CaseError: a shorter interval.
        """
        steps = float(value) if isinstance(value, int) else value / self.dt
        if steps < 0.5:
            raise CaseError(f"{key}: is shorter than half a time step of {self.dt:.3g} s")
        return max(1.0, steps)

    def short_intervals(self) -> Iterator[str]:
        """Yield a message for each interval between outputs that is shorter than half a step."""
        for key, value in self.case.output.intervals():
            try:
                self.steps_of(value, key)
            except CaseError as error:
                yield str(error)

    def check_intervals(self) -> None:
        """Raise CaseError for an interval between outputs that is shorter than half a step."""
        for message in self.short_intervals():
            raise CaseError(f"{self.source}: {message}")


class PlannedCase(ABC):
    """A case whose runs are predicted by means of devices that only record operations.

    Attributes:
        setup: the case.
        item: name of the items that are distributed to ranks; `total` is their number.
        dimensions: number of dimensions of the domain.
        graphs: whether steps on several GPUs are replayed as graphs.
    """

    setup: Setup
    item: str
    total: int
    dimensions = 3
    graphs = True

    def check_ranks(self, ranks: int) -> None:  # noqa: B027  (most kinds detect this during set-up)
        """Raise a CaseError if the case cannot run on this number of ranks."""

    @abstractmethod
    def rank(self, world: World, device: str) -> tuple[PlannedRank, str]:
        """Return the operations of a rank, and the layout; CaseError as for `check_ranks` (collective)."""

    def all_ranks(self, ranks: int, device: str) -> tuple[list[PlannedRank], str]:
        """Return the operations of all ranks, and the layout; CaseError as for `check_ranks`."""
        plans = emulate_ranks(ranks, lambda world: self.rank(world, device))
        return [rank for rank, _ in plans], plans[0][1]

    def shares(self, layout: str) -> dict[str, float]:
        """Return the known fractions of the memory bandwidth that stages reach on a GPU, by stage."""
        return {}


@dataclass(frozen=True)
class Kind:
    """A kind of case.

    Attributes:
        name: the value of `solver` in a case file.
        schema: the schema of its tables.
        prepare: function that creates the set-up of a source (collective); with `initial_state=False`, parts
            that a checkpoint contains are omitted.
        open: function that creates the run of a set-up, optionally from a checkpoint; the output folder need not exist
            (collective).
        check: function that returns the lines of `seiche check` for a source and a number of ranks (collective).
        plan: function that creates the planned case of a source.
        estimates: function that returns the estimates of a set-up, the same on every rank.
        picture: function that returns the picture of a source before it runs (not collective), or None.
        verify: function that returns the set-up of a source on one rank after the checks of `check`; a large domain
            may have a size only. By default `prepare`.
    """

    name: str
    schema: type[Table]
    prepare: Callable[..., Setup]
    open: Callable[[Any, World, Path, Restart | None], CaseRun]
    check: Callable[[CaseFile, World, int], Sequence[str]]
    plan: Callable[[CaseFile], PlannedCase]
    estimates: Callable[[Any], Sequence[Estimate]] = field(default=lambda setup: ())
    picture: Callable[[CaseFile], CasePicture] | None = None
    verify: Callable[[CaseFile], Setup] | None = None
