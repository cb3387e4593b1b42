# SPDX-License-Identifier: BSD-3-Clause
"""One run segment of a k-Wave simulation: from the start or a checkpoint, to the next checkpoint or the end.

Every rank reads the input and computes a part of the grid; rank 0 alone opens the output file.
"""

from __future__ import annotations

import platform
import resource
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche import __version__
from seiche.case.stop_signals import stop_signals
from seiche.domain.sharing import on_root
from seiche.domain.world import World
from seiche.dropin.options import Options, check_distinct_files
from seiche.dropin.problem import in_file, in_solver, problem_of, sensor_points
from seiche.errors import CaseError
from seiche.io.formats.kwave import KWaveInput, read_input
from seiche.io.formats.kwave_output import (
    KWaveOutput,
    attributes,
    check_replaceable_output,
    read_checkpoint,
    write_checkpoint,
)
from seiche.solver import RowSet, State
from seiche.solver.estimate import warnings_of
from seiche.ultrasound.advice import estimates
from seiche.ultrasound.plan import Decomposition
from seiche.ultrasound.records import Request
from seiche.ultrasound.solver import UltrasoundSolver

CREATED_BY = f"Seiche {__version__}"
#: Numbers of the input that are copied to the output, if present.
_COPIED_SCALARS = (
    *("Nx", "Ny", "Nz", "dt", "dx", "dy", "dz", "c_ref"),
    *(f"pml_{axis}_{key}" for axis in "xyz" for key in ("size", "alpha")),
    *(f"{name}_source_flag" for name in ("ux", "uy", "uz", "p", "p0", "transducer")),
    *("nonuniform_grid_flag", "nonlinear_flag", "absorbing_flag", "axisymmetric_flag"),
    *("p_source_mode", "p_source_many", "u_source_mode", "u_source_many"),
)
#: Remedy for strong absorption; input files of k-Wave have power laws only.
_REMEDY = (
    "k-Wave's files have no other model; use a case file of Seiche or seiche.ultrasound.simulate with "
    'alpha_mode = "relaxation"'
)
#: Phases whose times are written to the output file, summed over segments.
_PHASES = ("data_loading", "pre-processing", "simulation", "post-processing", "total")
#: Seconds between checks of the clock and of signals.
_POLL_INTERVAL = 0.2
#: Bytes of series that ranks buffer before rank 0 writes them.
_BUFFER_BYTES = 64 << 20

Arrays = dict[str, npt.NDArray[Any]]


class RunSegment:
    """One run segment of a simulation; every method is collective over the ranks."""

    def __init__(self, options: Options, device: str, world: World | None = None) -> None:
        """Read the input, create the solver, and restore a checkpoint, if any; raise SeicheError with the cause."""
        self._options, self._world = options, world or World.serial()
        self._timestamps = [time.perf_counter()]
        on_root(self._world, lambda: check_distinct_files(options))
        on_root(self._world, lambda: check_replaceable_output(options.output))
        self._input: KWaveInput = read_input(options.input)
        self._problem = problem_of(self._input, options.benchmark)
        self._timestamps.append(time.perf_counter())
        self.solver = self._solver(device)
        axes = self._problem.axes
        self._dataset_names = {"p": "p", **{f"u{axis}": f"u{axis}_sg{axis}" for axis in axes}}
        self._dataset_names |= {f"rho{axis}": f"rho{axis}" for axis in axes}
        self._aggregates, self._series = self.solver.recorder.aggregates, self.solver.recorder.series_names()
        self._output: KWaveOutput | None = None
        self._earlier_seconds = [0.0] * len(_PHASES[:-1])
        stored = on_root(self._world, self._open)
        if stored is not None:
            self.solver.set_state(self._state(*stored))
        self._timestamps.append(time.perf_counter())

    def _solver(self, device: str) -> UltrasoundSolver:
        options, world = self._options, self._world
        request = Request(
            points=sensor_points(self._input),
            quantities=tuple(options.quantities),
            first=options.first,
            sink=self._write_rows,
        )
        basis = None if world.size == 1 else "local" if options.overlap else "global"
        try:
            return UltrasoundSolver(
                self._problem,
                world=world,
                decomposition=Decomposition(basis, options.overlap),
                record=request,
                device=device,
                threads=options.threads,
            )
        except CaseError as error:
            hint = "; use a smaller --overlap, or 0" if options.overlap and str(error).startswith("split:") else ""
            raise CaseError(f"{error}{hint}") from None

    def _write_rows(self, name: str, row: int, values: npt.NDArray[Any]) -> None:
        assert self._output is not None
        self._output.write_rows(name, row, values)

    def _open(self) -> tuple[int, Arrays, Arrays] | None:
        """Open the output file, and return time step, fields and aggregates of the checkpoint, if any."""
        options, checkpoint = self._options, None
        if options.checkpoint_file is not None and Path(options.checkpoint_file).exists():
            checkpoint = read_checkpoint(
                options.checkpoint_file, self._input, tuple(self._dataset_names.values()), self._records()
            )
        self._output = output = KWaveOutput(
            options.output, self._input, compression=options.compression, append=checkpoint is not None
        )
        self._earlier_seconds = [output.stored_seconds(f"{phase}_phase_execution_time") for phase in _PHASES[:-1]]
        stored = None
        if checkpoint is not None:
            t_index, fields = checkpoint
            output.check_segment(t_index, str(options.checkpoint_file))
            aggregates = {name: output.read_aggregate(name) for name in self._aggregates}
            stored = (t_index, {name: fields[key] for name, key in self._dataset_names.items()}, aggregates)
        for name in self._series:
            output.create_series(name, self._problem.steps - options.first, self.solver.recorder.sensors)
        return stored

    def _state(self, t_index: int, fields: Arrays, aggregates: Arrays) -> State:
        """Return this rank's rows of the fields and aggregates of a checkpoint."""
        points, sensors = self.solver.keys["points"], self.solver.keys["sensors"]
        grid_fields = {**fields, **{name: values for name, values in aggregates.items() if name.endswith("_all")}}
        sensor_values = {name: values[sensors] for name, values in aggregates.items() if not name.endswith("_all")}
        rows = {
            "points": RowSet(
                points,
                self._problem.points,
                {name: in_solver(self._input, values).reshape(-1)[points] for name, values in grid_fields.items()},
            ),
            "sensors": RowSet(sensors, self.solver.recorder.sensors, sensor_values),
        }
        return State(t_index, rows)

    def _records(self) -> str:
        """Return a description of the records, which must be identical in all segments of a simulation."""
        options = self._options
        names = " ".join(sorted(options.quantities)) or "nothing"
        return f"{names} from step {options.first + 1} to {self._problem.steps}"

    def run(self) -> int | None:
        """Compute to the end (None), to the next checkpoint (0), or until a signal (its number)."""
        solver, options, steps = self.solver, self._options, self._problem.steps
        end = steps if options.checkpoint_steps is None else min(steps, solver.step + options.checkpoint_steps)
        interval = float("inf") if options.checkpoint_interval is None else options.checkpoint_interval
        deadline = self._timestamps[0] + interval
        report_every, signal_number, chunk = max(1, steps * options.progress // 100), 0, 1
        max_chunk = max(1, _BUFFER_BYTES // max(1, 4 * len(self._series) * self.solver.recorder.sensors))
        with stop_signals() as request:
            while solver.step < end:
                chunk_steps = min(chunk, report_every - solver.step % report_every, end - solver.step)
                begin = time.perf_counter()
                solver.advance(chunk_steps)
                step_time = (time.perf_counter() - begin) / chunk_steps
                if self._world.rank == 0 and (solver.step % report_every == 0 or solver.step == steps):
                    self._report()
                timeout = time.perf_counter() >= deadline
                # All ranks make the same decision.
                step_time, signal_number, expired = self._world.allreduce_max(
                    np.array([step_time, request.number, timeout], np.float64)
                )
                if signal_number or expired:
                    break
                chunk = max(1, min(int(_POLL_INTERVAL / max(step_time, 1e-9)), max_chunk))
        self._timestamps.append(time.perf_counter())
        if solver.step == steps:
            return None
        return int(signal_number)

    def _report(self) -> None:
        done, steps = self.solver.step, self._problem.steps
        seconds = time.perf_counter() - self._timestamps[2]
        print(f"{100 * done / steps:5.1f} %   step {done} of {steps}   {seconds:8.1f} s", flush=True)

    def finish(self, *, complete: bool) -> None:
        """Complete the output file, and write the checkpoint unless this is the last segment."""
        solver, options, recorder = self.solver, self._options, self.solver.recorder
        aggregates: Arrays = {}
        for name in self._aggregates:
            values = recorder.aggregate(name) if complete else recorder.raw_aggregate(name)
            aggregates[name] = in_file(self._input, values) if name.endswith("_all") else values
        if complete:
            for quantity in options.final:
                for name in ("p",) if quantity[0] == "p" else (f"u{axis}" for axis in self._input.axes):
                    aggregates[f"{name}_final"] = in_file(self._input, solver.field(name))
        fields: Arrays = {}
        if not complete and options.checkpoint_file is not None:
            fields = {key: in_file(self._input, solver.field(name)) for name, key in self._dataset_names.items()}
        machine = self._world.allgather(
            (
                f"{platform.node()} ({solver.backend.describe()})",
                int(getattr(solver.backend, "threads", 1)),
                resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            )
        )
        on_root(self._world, lambda: self._write(aggregates, fields, machine))
        if self._world.rank == 0 and complete and options.checkpoint_file is not None:
            Path(options.checkpoint_file).unlink(missing_ok=True)

    def _write(self, aggregates: Arrays, fields: Arrays, machine: list[tuple[str, int, int]]) -> None:
        """Write all but the series; the checkpoint is written after its output is on the disk."""
        output, options = self._output, self._options
        assert output is not None
        for name, values in aggregates.items():
            output.write_aggregate(name, values)
        for name in _COPIED_SCALARS:
            if name in self._input.scalars:
                output.write_scalar(name, self._input.scalars[name])
        output.write_scalar("Nt", self._problem.steps)
        output.write_scalar("t_index", self.solver.step)
        if options.copy_sensor_mask:
            output.write_sensor_mask()
        self._timestamps.append(time.perf_counter())
        output.write_attributes(self._header(machine))
        output.close()
        if fields and options.checkpoint_file is not None:
            step = self.solver.step
            names = {"created_by": CREATED_BY, "records": self._records()}
            write_checkpoint(options.checkpoint_file, self._input, fields, step, **names)

    def _phase_seconds(self) -> dict[str, float]:
        intervals = zip(self._timestamps[1:], self._timestamps[:-1], self._earlier_seconds, strict=True)
        seconds = [end - begin + before for end, begin, before in intervals]
        return dict(zip(_PHASES, [*seconds, sum(seconds)], strict=True))

    def _header(self, machine: list[tuple[str, int, int]]) -> dict[str, str]:
        hosts, cores, memory = zip(*machine, strict=True)
        times = {
            f"{phase}_execution_time" if phase == "total" else f"{phase}_phase_execution_time": f"{seconds:8.2f}s"
            for phase, seconds in self._phase_seconds().items()
        }
        return {
            **attributes("output", self._input.description, CREATED_BY),
            "host_names": "; ".join(dict.fromkeys(hosts)),
            "number_of_cpu_cores": str(sum(cores)),
            **times,
            "peak_core_memory_in_use": f"{max(memory)} MB",
            "total_memory_in_use": f"{sum(memory)} MB",
        }

    def description(self) -> list[str]:
        """Return lines that describe the problem and its decomposition (--verbose 2)."""
        problem, world = self._problem, self._world
        extents = " x ".join(str(n) for n in self._input.shape[::-1][: problem.dimensions])
        records = ", ".join([*self._options.quantities, *self._options.final])
        lines = [f"{extents} points, {problem.steps} steps of {problem.dt:g} s", f"records: {records}"]
        if world.size > 1:
            parts = " x ".join(str(n) for n in reversed(self.solver.part.shape))
            kind = f"overlaps of {self.solver.overlap}" if self._options.overlap else "transforms of the whole grid"
            lines.append(f"{world.size} ranks with {parts} points, {kind}")
        return lines

    def warnings(self) -> list[str]:
        """Return a warning for each estimate beyond its bound, and the notes of the device."""
        return [*warnings_of(estimates(self._problem, "exact", remedy=_REMEDY)), *self.solver.backend.notes]

    def phase_times(self) -> str:
        """Return a line with the seconds of each phase, earlier segments included (--verbose 1)."""
        return ", ".join(f"{phase} {seconds:.2f} s" for phase, seconds in self._phase_seconds().items())

    def stop_message(self, signal_number: int) -> str:
        """Return the message for a segment that a signal ended."""
        path = self._options.checkpoint_file
        outcome = "the output is incomplete" if path is None else f"run the same command to continue from {path}"
        steps = self._problem.steps
        return f"stopped by {signal.Signals(signal_number).name} at step {self.solver.step} of {steps}; {outcome}"

    def close(self) -> None:
        """Close the output file and the solver."""
        if self._output is not None:
            self._output.close()
        self.solver.close()
