# SPDX-License-Identifier: BSD-3-Clause
"""What a kind of case is to whoever reads, checks, predicts or runs it (decision 27).

A `Kind` reads a case into a `Setup`, which allocates no field. The kind opens a `CaseRun`: the solver and its outputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy.typing as npt

from seiche.backend import Array
from seiche.case.output import Monitor, Output
from seiche.case.source import CaseFile
from seiche.case.steering import Control, Steering
from seiche.case.tables import Table
from seiche.domain.world import World
from seiche.halo.exchange import HaloExchange
from seiche.observe.plan import PlannedRank
from seiche.solver import SolverBase, State


@dataclass(frozen=True)
class Match:
    """What must be equal in a checkpoint and a case: `what` it is in words, and what to do where it is not."""

    value: str
    what: str
    remedy: str = ""


@dataclass(frozen=True)
class Results:
    """The physics of a summary: conserved numbers, volume flow (m^3/s) by iolet, and whatever else there is."""

    invariants: Mapping[str, float] = field(default_factory=dict)
    flow_rates: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    lines: Sequence[str] = ()


class Restart(Protocol):
    """A checkpoint that a run continues (`seiche.case.checkpoint.CheckpointRestart`)."""

    def resume(
        self, setup: Setup, solver: SolverBase, matches: Mapping[str, Match], keys: Mapping[str, Any] | None = None
    ) -> State:
        """Put its state into `solver` and return it; CaseError if it does not match (collective)."""


class CaseRun(ABC):
    """The solver of a case and everything that lives with it; every method is collective unless it says otherwise.

    Attributes:
        solver: the solver.
        outputs: what takes the state, in the order in which it is taken.
        monitor: what checks it.
        usual_fields: names of the fields that are meant where none is named.
        stop_reason: why the run is to end after the present step, None if it is not.
    """

    solver: SolverBase
    outputs: Sequence[Output] = ()
    monitor: Monitor
    usual_fields: Sequence[str] = ()
    stop_reason: str | None = None

    def stop(self, reason: str) -> None:
        """Ask for the end of the run after the present step (not collective)."""
        self.stop_reason = reason

    def fields(self, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
        """Return fields of this rank's items in SI units.

        Raises:
            KeyError: an unknown name.
        """
        return self.solver.fields(names or self.usual_fields)

    def device_fields(self, names: Sequence[str]) -> dict[str, Array]:
        """Return the same as arrays of the device."""
        return self.solver.device_fields(names or self.usual_fields)

    def controls(self) -> Mapping[str, Control]:
        """Return the numbers of the case that may change during the run, by name (not collective)."""
        return {}

    @cached_property
    def steering(self) -> Steering:
        """Return these numbers as they are now (not collective)."""
        return Steering(self.controls(), self.solver.world)

    @abstractmethod
    def matches(self) -> Mapping[str, Match]:
        """Return what must be equal for a run to continue, by names of attributes of the checkpoint."""

    def state(self) -> State:
        """Return what a restart needs."""
        return self.solver.state()

    def notes(self) -> Sequence[str]:
        """Return what a user should know before the first step (not collective)."""
        return ()

    def arrays(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return results by name, the same on every rank, once the last step is done (not collective)."""
        return {}

    def exchange_seconds(self) -> float:
        """Return the seconds of all messages of a step, each timed alone; 0 on one rank."""
        if self.solver.world.size == 1:
            return 0.0
        return sum(each.trial() for each in self.solver.exchanges if isinstance(each, HaloExchange))

    def close(self) -> None:
        """Close the solver."""
        self.solver.close()

    def results(self, files: Iterable[Path]) -> Results:
        """Return the physics of the summary; `files` were written (collective)."""
        return Results(details={"files": [path.name for path in files]})


class Setup(ABC):
    """A case before anything is allocated.

    Attributes:
        case: the checked tables; all kinds have `title`, `run` and `output`.
        source: name of the case file.
        notes: what a user should know, a line each.
        steps: number of steps of the whole run.
        dt: duration of a step, s.
    """

    if TYPE_CHECKING:  # fields of dataclasses in some kinds, properties in others

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
        """Return the title of the case, or else its file."""
        return str(self.case.title or self.source)

    @property
    @abstractmethod
    def inputs(self) -> Sequence[Path]:
        """Return the files that the case is read from."""

    def steps_of(self, value: int | float) -> float:
        """Return an interval, steps (int) or seconds (float), in steps, at least one."""
        return max(1.0, float(value) if isinstance(value, int) else value / self.dt)


class PlannedCase(ABC):
    """A case whose runs can be planned, on devices that only count.

    Attributes:
        setup: the case.
        item: what its ranks share out, `total` of them.
        dimensions: of its domain.
        graphs: whether steps on several GPUs are replayed as graphs.
    """

    setup: Setup
    item: str
    total: int
    dimensions = 3
    graphs = True

    def refuse(self, ranks: int) -> None:  # noqa: B027  (most kinds find out while they are made)
        """Refuse a number of ranks on which the case cannot run; CaseError."""

    @abstractmethod
    def rank(self, world: World, device: str) -> tuple[PlannedRank, str]:
        """Return what one rank does on a planned device, and the name of the layout (collective).

        Raises:
            CaseError: the case cannot run on so many ranks.
        """

    def shares(self, layout: str) -> dict[str, float]:
        """Return for stages on GPUs the known part of the memory's rate at which they move their bytes."""
        return {}


@dataclass(frozen=True)
class Kind:
    """A kind of case.

    Attributes:
        name: the value of `solver` in a case file.
        schema: its tables.
        prepare: makes the set-up of a source on the ranks of a world (collective); without `place`, what a checkpoint
            has is not made.
        open: makes the solver of a set-up and what lives with it, in the state of a checkpoint if one is given, with
            outputs in a folder that need not be there yet (collective).
        check: gives the lines of `seiche check` of a source for a number of ranks (collective).
        plan: makes the planned case of a source.
    """

    name: str
    schema: type[Table]
    prepare: Callable[..., Setup]
    open: Callable[[Any, World, Path, Restart | None], CaseRun]
    check: Callable[[CaseFile, World, int], Sequence[str]]
    plan: Callable[[CaseFile], PlannedCase]
