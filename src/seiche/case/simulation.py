# SPDX-License-Identifier: BSD-3-Clause
"""A case that runs: `sim = seiche.load("case.toml"); sim.run(); print(sim.report())`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from weakref import WeakValueDictionary

import numpy.typing as npt

from seiche.backend import Array
from seiche.case.account import Account, imbalance, keep_trace, serving
from seiche.case.agreement import on_rank_zero
from seiche.case.checkpoint import CheckpointFile, CheckpointRestart
from seiche.case.folder import RunFolder
from seiche.case.kind import CaseRun, Kind, Setup
from seiche.case.loop import RunLoop, StopRequest, stop_signals
from seiche.case.output import Callback, Output, Place
from seiche.case.outputs import Outputs
from seiche.case.schedule import Schedule
from seiche.case.steering import Steering
from seiche.case.summary import summary_of
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.observe.bandwidth import copy_bandwidth
from seiche.observe.progress import Progress
from seiche.observe.trace import common_epoch
from seiche.report.summary import content_of, write_summary
from seiche.solver import SolverBase

#: Simulations of this process by their folders: one that is loaded in the place of another closes it.
_OPEN: WeakValueDictionary[Path, Simulation] = WeakValueDictionary()


@dataclass(frozen=True)
class Outcome:
    """How a run ended: at step `step`, after `seconds`; `stopped` says why if before its last step.

    `lines` are the physics in words, `files` what was written, `summary` the content of the summary file (of movement
    on rank 0 only), `arrays` the results of kinds that record them; all empty before the end of the case.
    """

    step: int
    seconds: float
    stopped: str | None
    lines: Sequence[str] = ()
    files: Sequence[Path] = field(default=(), repr=False)
    summary: Mapping[str, Any] = field(default_factory=dict, repr=False)
    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict, repr=False)


class Simulation:
    """A case with its solver and outputs; every method is collective over the ranks.

    Attributes:
        setup: the case before anything was allocated.
        solver: its solver.
        parts: what lives with the solver: outputs, monitor, and for blood the cells.
        world: the ranks.
        folder: where the outputs go.
    """

    def __init__(
        self,
        kind: Kind,
        setup: Setup,
        world: World,
        folder: Path,
        *,
        restart: Path | None = None,
        replace: bool = False,
    ) -> None:
        """Make the solver (this allocates the fields) and load the state in `restart`, if given.

        Raises:
            CaseError: the folder holds another run, or the checkpoint belongs to another case.
            BackendUnavailable: the device is not there, or has too little memory.
        """
        self.setup, self.world, self.folder = setup, world, folder
        self.started, self.seconds = time.monotonic(), 0.0
        self._bandwidth: float | None = None
        self._request = StopRequest()
        self._closed = self._released = False
        self._records = RunFolder(folder, setup.source, restart=restart, replace=replace)
        if replace or restart is not None:
            _close_earlier(folder, world)
        checkpoint = CheckpointRestart(restart, world) if restart is not None else None
        self.parts: CaseRun = kind.open(setup, world, folder, checkpoint)
        self.solver: SolverBase = self.parts.solver
        if checkpoint is not None:
            checkpoint.restore_steering(self.parts)
        self.first_step = self.solver.step
        self.checkpoints = CheckpointFile(self.parts, setup, folder / setup.case.output.checkpoint.file, self._drain)
        self.outputs = Outputs(self.parts, [*self.parts.outputs, self.checkpoints], setup.case.output.in_flight)
        self._trace = folder / setup.case.output.trace if setup.case.output.trace is not None else None
        on_rank_zero(world, lambda: self._records.claim(self.places, setup.inputs))
        _OPEN[folder.resolve()] = self
        keep_trace(self._trace, self.solver.timers, world)

    def _drain(self) -> None:
        self.outputs.drain()

    @property
    def places(self) -> list[Place]:
        """Return where the run writes (not collective)."""
        output = self.setup.case.output
        own = [Place("output.summary", self.folder / output.summary, "summary")]
        own += [Place("output.trace", self._trace, "trace")] if self._trace is not None else []
        return [place for item in self.outputs.items for place in item.places] + own

    @property
    def title(self) -> str:
        """Return the title of the case, or else its file (not collective)."""
        return self.setup.title

    @property
    def step(self) -> int:
        """Return the number of steps done (not collective)."""
        return self.solver.step

    @property
    def time(self) -> float:
        """Return the physical time reached, in seconds (not collective)."""
        return self.solver.step * self.setup.dt

    def run(self, steps: int | None = None, *, serve: int | None = None, visible: bool = True) -> Outcome:
        """Advance by `steps`, or to the end of the case; at the end complete the files and write the summary.

        SIGTERM, SIGINT, the wall-clock limit and `stop` finish the step, write a checkpoint and return. A signal after
        the last step of the case does not keep the files from being completed.

        Args:
            steps: number of steps; those left of the case by default.
            serve: port of a page on this machine's loopback address with the progress, 0 for any free one.
            visible: whether rank 0 shows the progress.

        Raises:
            CaseError: the simulation is closed, as by loading the case again in its folder, or ended before another run
                began there.
            UnstableError: a field is no longer finite; complete outputs and the last checkpoint stay.
        """
        self._resume()
        with stop_signals(self._request):
            outcome = self._run(steps, serve, visible)
        if outcome.summary:  # what a signal asked for is done; one that came too late is for the next steps
            self._request.number = 0
        return outcome

    def _run(self, steps: int | None, serve: int | None, visible: bool) -> Outcome:
        solver, last = self.solver, self.setup.steps
        target = last if steps is None else solver.step + steps
        solver.backend.synchronize()
        solver.timers.align(common_epoch(self.world))
        begin = time.monotonic()
        bar = Progress(
            target, solver.total_items, item=solver.item, first=solver.step, visible=visible and self.world.rank == 0
        )
        self.parts.stop_reason = None
        limit = self.setup.case.run.wall_clock
        deadline = (limit, self.started + limit) if limit is not None else None
        loop = RunLoop(self.parts, self.outputs, self.checkpoints.describe, deadline)
        try:
            with serving(bar.state, self.title, serve, self.world), bar:
                stopped = loop.advance(target, last, lambda done: self._show(bar, done), self._request)
                if stopped is not None:
                    self.checkpoint()
        except BaseException:
            self._fail()
            raise
        self.seconds += time.monotonic() - begin
        if stopped is None and solver.step < last:
            return Outcome(solver.step, self.seconds, None)
        return self._finish(stopped)

    def _show(self, bar: Progress, done: int) -> None:
        bar.update(done, imbalance=imbalance(self.solver.timers, self.world), checkpoint=self.checkpoints.last)

    def every(
        self,
        function: Callable[[Simulation], object] | None = None,
        *,
        steps: int | None = None,
        time: float | None = None,
    ) -> Any:
        """Call `function(simulation)` every so many `steps`, or every `time` seconds of the case, on all ranks.

        The function sees a state that was checked; it may read fields, set `steering`, and call `stop`. Without
        `function` it is a decorator.

        Raises:
            CaseError: neither an interval in steps nor one in time, or both.
        """
        if (steps is None) == (time is None) or (steps or time or 0) <= 0:
            raise CaseError("every: give a positive number of steps, or a positive time in s")
        interval = self.setup.steps_of(int(steps) if steps is not None else float(time or 0.0))

        def add(call: Callable[[Simulation], object]) -> Callable[[Simulation], object]:
            def settled() -> None:
                self.outputs.settle()  # the check of the state is complete
                call(self)

            self.add(Callback(Schedule(interval), settled))
            return call

        return add if function is None else add(function)

    def add(self, output: Output) -> None:
        """Add an output; `every` is the short way."""
        self.outputs.add(output)

    def stop(self, reason: str = "a callback") -> None:
        """End the run after the present step, with a checkpoint; one rank is enough (not collective)."""
        self.parts.stop(reason)

    def __getattr__(self, name: str) -> Any:
        """Return what the kind of case adds: `flow_rates` of flow, `blood`, `records` of ultrasound."""
        if name == "parts":  # not made yet
            raise AttributeError(name)
        return getattr(self.parts, name)

    def notes(self) -> list[str]:
        """Return what a user should know before the run, a line each (not collective)."""
        return [*self.setup.notes, *self.parts.notes()]

    def fields(self, names: Sequence[str] | str = (), *more: str) -> dict[str, npt.NDArray[Any]]:
        """Return fields in SI units by the names of the case file; rows are this rank's items.

        Names come as a list or one after the other; without any, the usual ones of the kind.

        Raises:
            CaseError: an unknown name.
        """
        return self._named_fields(self.parts.fields, (names, *more) if isinstance(names, str) else names)

    def device_fields(self, names: Sequence[str] | str = (), *more: str) -> dict[str, Array]:
        """Return the same as arrays of the device: NumPy's on the CPU, CuPy's on a GPU, on its current stream.

        What the solver stores is a view, not to be written to; all are valid until the callback returns.
        """
        return self._named_fields(self.parts.device_fields, (names, *more) if isinstance(names, str) else names)

    def _named_fields(self, get: Callable[[Sequence[str]], dict[str, Any]], names: Sequence[str]) -> dict[str, Any]:
        try:
            return get(names)
        except KeyError as error:
            raise CaseError(
                f"fields: {error.args[0]!r} is not a field of solver = {self.setup.case.solver!r}"
            ) from None

    @property
    def steering(self) -> Steering:
        """Return the numbers of the case that may change: `sim.steering["iolets.inlet.pressure"] = 120.0` (Pa)."""
        return self.parts.steering

    def checkpoint(self, path: Path | str | None = None) -> Path:
        """Write the present state, to the checkpoint of the case by default, and wait until it is complete."""
        self.solver.finish()
        ended = self._released
        if path is not None and Path(path) != self.checkpoints.path:
            CheckpointFile(self.parts, self.setup, Path(path), self._drain).save()
            return Path(path)
        self._resume()
        self.outputs.drain()
        self.outputs.submit(self.checkpoints)
        self.outputs.drain()
        if ended:
            self._release("done", ())
        return self.checkpoints.path

    def _resume(self) -> None:
        """Take the folder again if the run had ended, to write more."""
        if self._closed:
            raise CaseError(f"{self.setup.source}: the simulation is closed; load the case again")
        if self._released:
            on_rank_zero(self.world, lambda: self._records.resume(self.places))
            self._released = False

    def report(self) -> str:
        """Return the table stage | time | share | GB/s | share of the copy bandwidth of the steps done so far."""
        return self.account().report()

    def bandwidth(self) -> float:
        """Return the bytes a second that plain copies reach on the devices of all ranks; measured once."""
        if self._bandwidth is None:
            self._bandwidth = copy_bandwidth(self.solver.backend, self.world)
        return self._bandwidth

    def account(self) -> Account:
        """Return the account of the steps done so far."""
        solver, outputs = self.solver, self.outputs
        return Account(
            solver.timers,
            solver.backend,
            self.world,
            solver.phases,
            items=solver.items,
            transport=solver.transport,
            seconds=self.seconds,
            bandwidth=self.bandwidth(),
            weights=solver.weights,
            beside={**outputs.seconds, "wait for output": outputs.writer.waited},
        )

    def _finish(self, stopped: str | None) -> Outcome:
        """Complete the files, write summary and trace."""
        files = self.outputs.finish()
        account, results = self.account(), self.parts.results(files)
        summary = summary_of(self.setup, self.parts, account, results, first=self.first_step, stopped=stopped)
        if self.world.rank == 0:
            write_summary(self.folder / self.setup.case.output.summary, summary)
        account.save_trace(self._trace, self.title)
        self._release("done" if stopped is None else "stopped", files)
        return Outcome(
            self.solver.step, self.seconds, stopped, results.lines, files, content_of(summary), self.parts.arrays()
        )

    def _fail(self) -> None:
        self.outputs.close()
        self._release("failed", ())

    def _release(self, state: str, files: Sequence[Path]) -> None:
        if self.world.rank == 0 and not self._released:
            self._records.add(files, self.places)
            self._records.release(state)
        self._released = True

    def close(self) -> None:
        """Close files, messages and the folder; what is not complete is given up. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self.outputs.close()
        self._release("stopped", ())
        self.parts.close()

    def __enter__(self) -> Self:
        """Return the simulation."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close everything."""
        self.close()


def _close_earlier(folder: Path, world: World) -> None:
    """Close the simulation of these ranks that has the folder, if all of them still know it (collective)."""
    earlier = _OPEN.get(folder.resolve())
    if all(world.allgather(earlier is not None and earlier.world.size == world.size)) and earlier is not None:
        earlier.close()
