# SPDX-License-Identifier: BSD-3-Clause
"""Simulation of a case: `sim = seiche.load("case.toml"); sim.run(); print(sim.report())`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy.typing as npt

from seiche.backend import Array
from seiche.case.agreed_arguments import agreed_end
from seiche.case.arguments import check_type, one_line, path_of, selected
from seiche.case.checkpoint import CheckpointFile, CheckpointRestart
from seiche.case.folder import RunFolder, publishing_into
from seiche.case.kind import CaseRun, Kind, Setup
from seiche.case.labels import LabelledArrays, LabelledParts, grid_request
from seiche.case.live import LiveView
from seiche.case.loop import RunLoop
from seiche.case.open_runs import close_earlier, register_open
from seiche.case.outcome import Described, Outcome
from seiche.case.output import Callback, Output, OutputTarget
from seiche.case.output_targets import check_checkpoint_target
from seiche.case.outputs import Outputs
from seiche.case.performance import PerformanceReport, enable_trace, imbalance, status_server
from seiche.case.schedule import Schedule, interval_of
from seiche.case.steering import Steering
from seiche.case.stop_signals import StopRequest, defer_signals, end_deferral, stop_signals
from seiche.case.summary import summary_of
from seiche.domain.clocks import CommonClock
from seiche.domain.sharing import fail_together, on_root
from seiche.domain.world import World
from seiche.errors import BackendUnavailable, CaseError
from seiche.io.files import Closing, publishing, real_path
from seiche.observe.bandwidth import copy_bandwidth
from seiche.observe.progress import Progress
from seiche.report.summary import content_of, read_summary, write_summary
from seiche.set_up import SetUpTimes, set_up_stage
from seiche.solver import Estimate, SolverBase
from seiche.solver.estimate import warnings_of

SimulationCallback: TypeAlias = "Callable[[Simulation], object]"


class Simulation(Described, Closing):
    """A case with its solver and outputs; every method is collective unless stated otherwise.

    Attributes:
        setup: the case before allocation.
        solver: its solver.
        case_run: the solver with its outputs and monitor; for blood also the cells.
        world: the ranks.
        folder: the output folder.
        set_up: the times of the stages of the set-up.
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
        """Create the solver, which allocates the fields, and load the checkpoint `restart` if one is given.

        Raises:
            CaseError: the folder contains another run, or the checkpoint belongs to another case.
            BackendUnavailable: the device is not available, or has insufficient memory.
        """
        self.setup, self.world, self.folder, self._kind = setup, world, folder, kind
        self.started, self.seconds, self.set_up = time.monotonic(), 0.0, SetUpTimes()
        self._request = StopRequest()
        self._closed = self._released = self._running = False
        self._view: LiveView | None = None
        self._clock: CommonClock | None = None
        self._run_folder = RunFolder(folder, setup.source, restart=restart, replace=replace)
        if replace or restart is not None:
            close_earlier(folder, world)
        checkpoint = CheckpointRestart(restart, world) if restart is not None else None
        self.case_run: CaseRun = set_up_stage("solver")(kind.open)(setup, world, folder, checkpoint)
        self.solver: SolverBase = self.case_run.solver
        if checkpoint is not None:
            checkpoint.restore_steering(self.case_run)
        self.first_step, output = self.solver.step, setup.case.output
        self.checkpoints = CheckpointFile(self.case_run, setup, folder / output.checkpoint.file, self._drain)
        self.outputs = Outputs(self.case_run, [*self.case_run.outputs, self.checkpoints], output.in_flight)
        self._trace = folder / output.trace if output.trace is not None else None
        defer_signals(self._request, world)  # later signals request the end of the run
        on_root(world, lambda: self._run_folder.claim(self.targets, setup.inputs))
        #: Whether this is a restart of a complete run in the same folder, so that `run` has nothing to do.
        self.is_complete = restart is not None and on_root(world, self._has_all_results)
        register_open(self)
        if self._trace is not None:
            enable_trace(self._trace, self.solver.timers, world)

    def _drain(self) -> None:
        self.outputs.drain()

    @property
    def targets(self) -> list[OutputTarget]:
        """Return the files that the run writes (not collective)."""
        targets = [target for output in self.outputs.items for target in output.targets]
        targets.append(OutputTarget("output.summary", self.folder / self.setup.case.output.summary, "summary"))
        return targets + ([OutputTarget("output.trace", self._trace, "trace")] if self._trace is not None else [])

    @property
    def title(self) -> str:
        """Return the title of the case, by default the name of its file (not collective)."""
        return self.setup.title

    @property
    def step(self) -> int:
        """Return the number of completed steps (not collective)."""
        return self.solver.step

    @property
    def time(self) -> float:
        """Return the physical time in s (not collective)."""
        return self.solver.step * self.setup.dt

    def run(self, steps: int | None = None, *, serve: int | None = None, visible: bool = True) -> Outcome:
        """Advance by `steps` or to the end of the case; at the end, complete the files and write the summary.

        SIGTERM, SIGINT, the wall-clock limit and `stop` finish the step, write a checkpoint and return. None does so
        after the last step of the case. A second SIGINT raises KeyboardInterrupt at once.

        Args:
            steps: number of steps, at most the remaining ones; by default all of them.
            serve: port of a status page on the loopback address, 0 for any free port.
            visible: whether rank 0 shows the progress.

        Raises:
            CaseError: a wrong argument, the simulation is closed (also by another in its folder), or a callback called
                `run`.
            UnstableError: a field is not finite; complete outputs and the last checkpoint remain valid.
        """
        self._check_not_running("run")
        target, port = agreed_end(self.world, steps, serve, self.step, self.setup)
        self._resume()
        if self.is_complete:
            self._release("done", ())
            return self._nothing_to_do()
        self._running = True
        try:
            with publishing_into(self._run_folder, self.world), stop_signals(self._request):
                outcome = self._run(target, port, visible)
        finally:
            self._running = False
        if outcome.summary:  # the signal has been processed; a signal after the last decision affects the next steps
            self._request.clear()
        return outcome

    def _check_not_running(self, name: str) -> None:
        if self._running:
            raise CaseError(f"{name}: not allowed in a callback, during a run; use `stop` to end the run")

    def _has_all_results(self) -> bool:
        summary = self.folder / self.setup.case.output.summary
        return self.step == self.setup.steps and self._run_folder.is_complete_at(self.step) and summary.is_file()

    def _nothing_to_do(self) -> Outcome:
        line = f"{self.setup.source}: nothing to do: the run in {self.folder} is complete at its last step, {self.step}"
        content = on_root(self.world, lambda: read_summary(self.folder / self.setup.case.output.summary))
        return Outcome(self.step, 0.0, None, (line,), summary=content)

    def _run(self, target: int, serve: int | None, visible: bool) -> Outcome:
        solver, last = self.solver, self.setup.steps
        solver.backend.synchronize()
        self._clock = self._clock or CommonClock(self.world, time.perf_counter_ns)
        solver.timers.align(self._clock.begin)
        begin, visible = time.monotonic(), visible and self.world.rank == 0
        bar = Progress(target, solver.total_items, item=solver.item, first=solver.step, visible=visible)
        self.case_run.stop_reason, limit = None, self.setup.case.run.wall_clock
        deadline = (limit, self.started + limit) if limit is not None else None
        if serve is not None and self._view is None:
            self._view = LiveView(self.case_run, self.setup.dt, self.outputs)
        loop = RunLoop(self.case_run, self.outputs, self.checkpoints.describe, deadline, view=self._view)
        try:
            with status_server(bar.state, self.title, serve, self._view), bar:
                stopped = loop.advance(target, last, lambda done: self._show(bar, done), self._request)
                if stopped is not None:
                    self.checkpoint()
        except BaseException:
            self.outputs.abandon()
            self._release("failed", ())
            raise
        self.seconds += time.monotonic() - begin
        unfinished = stopped is None and solver.step < last
        return Outcome(solver.step, self.seconds, None) if unfinished else self._finish(stopped)

    def _show(self, bar: Progress, done: int) -> None:
        shares, last = imbalance(self.solver.timers, self.world), self.checkpoints.last
        bar.update(done, imbalance=shares, checkpoint=last, physics=self.case_run.physics())

    def every(
        self, function: SimulationCallback | None = None, *, steps: int | None = None, time: float | None = None
    ) -> Any:
        """Call `function(simulation)` on all ranks, every `steps` steps or every `time` seconds of physical time.

        Calls are made at the steps nearest to multiples of `time`, after a check of the state. The function may read
        fields, set `steering`, and call `stop`. Without `function` this is a decorator.

        Raises:
            CaseError: not exactly one positive interval is given, `time` is shorter than half a step, or `function` is
                not callable.
        """
        if function is not None and not callable(function):
            raise CaseError(f"every: {function!r} is not a function")
        interval = self.setup.steps_of(interval_of(steps, time), "every: time")

        def add(callback: SimulationCallback) -> SimulationCallback:
            def call_checked() -> None:
                self.outputs.settle()
                with fail_together(self.world, "callback"):
                    callback(self)

            self.add(Callback(Schedule(interval), call_checked))
            return callback

        return add if function is None else add(function)

    def add(self, output: Output) -> None:
        """Add an output (collective); for functions use `every`.

        Raises:
            CaseError: its file is that of another output or an input, or was not written by this run.
        """
        self._check_open()
        check_type("add", output, Output, "an output; use every for functions")
        if new := list(output.targets):
            on_root(self.world, lambda: self._run_folder.admit(new, self.targets, self.setup.inputs))
        self.outputs.add(output)

    def stop(self, reason: str = "a callback") -> None:
        """Request the end of the run after the current step, with a checkpoint, for a `reason` in one line.

        Only during a run: in a callback, or in another thread. One rank suffices (not collective).

        Raises:
            CaseError: no run is in progress, or the reason is not a text or is empty.
        """
        if not isinstance(reason, str) or not reason.strip():
            raise CaseError(f"stop: expected a reason as text, not {reason!r}")
        if not self._running:
            raise CaseError("stop: no run is in progress; call it in a callback, or do not call `run`")
        self.case_run.stop(one_line(reason))

    def __getattr__(self, name: str) -> Any:
        """Return attributes of the kind of case, such as `flow_rates` of flow or `records` of ultrasound."""
        if name == "case_run" or not hasattr(self.case_run, name):  # the former: not set before the set-up is complete
            raise AttributeError(f"{name!r} is not an attribute of this kind of simulation")
        return getattr(self.case_run, name)

    def notes(self) -> list[str]:
        """Return notes for the user before the run, one line each (not collective)."""
        return [*self.setup.notes, *self.case_run.notes(), *warnings_of(self._expected)]

    @cached_property
    def _expected(self) -> Sequence[Estimate]:
        """Return the estimates before the run."""
        return self._kind.estimates(self.setup)

    def estimates(self) -> list[Estimate]:
        """Return estimates of discretisation effects: those before the run and those of the current state."""
        return [*self._expected, *self.case_run.estimates()]

    def fields(self, names: Sequence[str] | str = (), *more: str) -> dict[str, npt.NDArray[Any]]:
        """Return fields in SI units by the names of the case file; rows are the items of this rank.

        Names are a list or separate arguments; the default depends on the kind of case.

        Raises:
            CaseError: an unknown name.
        """
        return selected(self.case_run.fields, names, more, self.setup.case.solver)

    def device_fields(self, names: Sequence[str] | str = (), *more: str) -> dict[str, Array]:
        """Return the same fields as device arrays: NumPy on the CPU, CuPy on a GPU, on its current stream.

        Fields stored by the solver are views and must not be changed. All are valid until the callback returns.
        """
        return selected(self.case_run.device_fields, names, more, self.setup.case.solver)

    def result(
        self,
        names: Sequence[str] | str = (),
        *more: str,
        spacing: float | None = None,
        shape: Sequence[int] | None = None,
    ) -> LabelledArrays:
        """Return the current fields and the records so far, with dimensions, coordinates and units, on every rank.

        Fields of flow, blood and ultrasound are dense grids; flow is NaN outside the vessel. Fields of waves are at the
        nodes of elements, or on a regular grid of `spacing` (m) or `shape` (points along each axis).

        Raises:
            CaseError: a name is unknown, the grid is invalid, or a grid is given for another kind of case than waves.
        """
        grid = grid_request(spacing, shape)

        def get(names: Sequence[str]) -> LabelledParts:
            return self.case_run.labelled(names, grid)

        arrays, coordinates = selected(get, names, more, self.setup.case.solver)
        return LabelledArrays(self.title, self.time, arrays, coordinates)

    @property
    def steering(self) -> Steering:
        """Return the values that may be changed, as in `sim.steering["iolets.inlet.pressure"] = 120.0` (Pa)."""
        return self.case_run.steering

    def checkpoint(self, path: Path | str | None = None) -> Path:
        """Write the state to `path`, by default that of the case, and return it.

        CaseError if it would replace a file.
        """
        self.solver.finish()
        released = self._released
        other = path_of("checkpoint", path) if path is not None else self.checkpoints.path
        if real_path(other) != real_path(self.checkpoints.path):
            self._check_open()
            on_root(self.world, lambda: check_checkpoint_target(other, self.setup.inputs, self.targets))
            CheckpointFile(self.case_run, self.setup, other, self._drain).save()
            return other
        self._resume()
        with publishing_into(self._run_folder, self.world):
            self.outputs.drain()
            self.outputs.submit(self.checkpoints)
            self.outputs.drain()
            if released:
                self._release("done", ())
        return self.checkpoints.path

    def _check_open(self) -> None:
        if self._closed:
            raise CaseError(f"{self.setup.source}: the simulation is closed; load the case again")

    def _resume(self) -> None:
        """Lock the folder again after the end of the run."""
        self._check_open()
        if self._released:
            on_root(self.world, self._run_folder.resume)
            self._released = False

    def report(self) -> str:
        """Return the table stage | time | share | GB/s | share of the copy bandwidth of the completed steps."""
        return self.performance().as_text()

    @cached_property
    def _bandwidth(self) -> float | None:
        try:
            return copy_bandwidth(self.solver.backend, self.world)
        except BackendUnavailable:  # a complete run must not fail because the bandwidth cannot be measured
            return None

    def performance(self) -> PerformanceReport:
        """Return the performance report of the completed steps."""
        measured = {"set_up": self.set_up.seconds(), **self.outputs.measured()}
        return PerformanceReport(self.solver, self.seconds, self._bandwidth, **measured)

    def _finish(self, stopped: str | None) -> Outcome:
        files = self.outputs.finish(self.setup.case.output.page())
        performance, results = self.performance(), self.case_run.results(files)
        estimates, first, setup, run = self.estimates(), self.first_step, self.setup, self.case_run
        summary = summary_of(setup, run, performance, results, estimates=estimates, first=first, stopped=stopped)
        if self.world.rank == 0:
            write_summary(self.folder / self.setup.case.output.summary, summary)
        if self._trace is not None and self._clock is not None:
            performance.save_trace(self._trace, setup.title, self._clock)
        self._release("done" if stopped is None else "stopped", files)
        content, arrays = content_of(summary), self.case_run.arrays()
        lines = [*results.lines, *(f"note: {line}" for line in warnings_of(estimates))]
        return Outcome(self.solver.step, self.seconds, stopped, lines, files, content, arrays)

    def _release(self, state: str, files: Sequence[Path]) -> None:
        if self.world.rank == 0 and not self._released:
            self._run_folder.add(files)
            self._run_folder.release(state, self.solver.step)
        self._released = True

    def close(self) -> None:
        """Close files, exchanges and folder; a second call does nothing. CaseError if a callback called it."""
        if self._closed:
            return
        self._check_not_running("close")
        self._closed = True
        try:
            with publishing(self._run_folder.publish):
                self.outputs.close()
        finally:  # also if the disk is full
            self._release("done" if self.is_complete else "stopped", ())
            self.case_run.close()
            end_deferral(self._request)
        self._run_folder.warn_of_conflicts()
