# SPDX-License-Identifier: BSD-3-Clause
"""Run an input file of k-Wave and write its output file: one leg, from the start or from a checkpoint to the next."""

from __future__ import annotations

import platform
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy.typing as npt

from seiche import __version__
from seiche.dropin.options import USAGE, Options, parse
from seiche.dropin.problem import problem_of, sensor_points
from seiche.errors import SeicheError
from seiche.io.formats.kwave import KWaveInput, read_input
from seiche.io.formats.kwave_output import KWaveOutput, attributes, read_checkpoint, write_checkpoint
from seiche.ultrasound.records import Request
from seiche.ultrasound.solver import Solver

_CREATED_BY = f"Seiche {__version__}"
#: Numbers of the input that the output repeats, if they are there.
_REPEATED = (
    *("Nx", "Ny", "Nz", "dt", "dx", "dy", "dz", "c_ref"),
    *(f"pml_{axis}_{what}" for axis in "xyz" for what in ("size", "alpha")),
    *(f"{name}_source_flag" for name in ("ux", "uy", "uz", "p", "p0", "transducer")),
    *("nonuniform_grid_flag", "nonlinear_flag", "absorbing_flag", "axisymmetric_flag"),
    *("p_source_mode", "p_source_many", "u_source_mode", "u_source_many"),
)
#: Phases whose times an output file says, summed over legs.
_PHASES = ("data_loading", "pre-processing", "simulation", "post-processing", "total")


class Leg:
    """One leg of a simulation."""

    def __init__(self, options: Options, device: str) -> None:
        """Read the input, make the solver, and go back to a checkpoint if there is one.

        Raises:
            SeicheError: with a line that says what is wrong.
        """
        self._options = options
        self._marks = [time.perf_counter()]
        self._input: KWaveInput = read_input(options.input)
        self._problem = problem_of(self._input, options.benchmark)
        self._marks.append(time.perf_counter())
        restart = options.checkpoint_file is not None and Path(options.checkpoint_file).exists()
        request = Request(
            points=sensor_points(self._input),
            quantities=tuple(options.quantities),
            first=options.first,
            sink=self._write_rows,
        )
        self.solver = Solver(self._problem, device=device, record=request, threads=options.threads)
        self._names = {"p": "p", **{f"u{axis}": f"u{axis}_sg{axis}" for axis in self._problem.axes}}
        self._names |= {f"rho{axis}": f"rho{axis}" for axis in self._problem.axes}
        state = self._read_checkpoint() if restart else None
        self._output = KWaveOutput(
            options.output, self._input, compression=options.compression, append=state is not None
        )
        self._earlier = [self._output.seconds(f"{phase}_phase_execution_time") for phase in _PHASES[:-1]]
        if state is not None:
            self._go_on(*state)
        times = self._problem.steps - options.first
        for name in self.solver.recorder.series_names():
            self._output.create_series(name, times, self.solver.recorder.sensors)
        self._marks.append(time.perf_counter())

    def _write_rows(self, name: str, row: int, values: npt.NDArray[Any]) -> None:
        self._output.write_rows(name, row, values)

    def _read_checkpoint(self) -> tuple[int, dict[str, npt.NDArray[Any]]]:
        assert self._options.checkpoint_file is not None
        return read_checkpoint(self._options.checkpoint_file, self._input, tuple(self._names.values()))

    def _go_on(self, t_index: int, fields: dict[str, npt.NDArray[Any]]) -> None:
        recorder = self.solver.recorder
        stored = {name: self._output.read_aggregate(name) for name in recorder.aggregates}
        shape = self._problem.shape
        self.solver.restore(t_index, {name: fields[at].reshape(shape) for name, at in self._names.items()}, stored)

    def run(self) -> bool:
        """Compute to the end, or to the next checkpoint; return whether it was the end."""
        solver, options, steps = self.solver, self._options, self._problem.steps
        end = steps if options.checkpoint_steps is None else min(steps, solver.time_step + options.checkpoint_steps)
        deadline = None
        if options.checkpoint_interval is not None:
            deadline = self._marks[0] + options.checkpoint_interval
        portion = max(1, steps * options.progress // 100)
        while solver.time_step < end:
            chunk = min(portion - solver.time_step % portion, end - solver.time_step)
            if deadline is not None:
                chunk = 1
            solver.run(chunk)
            if solver.time_step % portion == 0 or solver.time_step == steps:
                self._report()
            if deadline is not None and time.perf_counter() >= deadline:
                break
        self._marks.append(time.perf_counter())
        return solver.time_step == steps

    def _report(self) -> None:
        done, steps = self.solver.time_step, self._problem.steps
        seconds = time.perf_counter() - self._marks[2]
        print(f"{100 * done / steps:5.1f} %   step {done} of {steps}   {seconds:8.1f} s", flush=True)

    def finish(self, *, complete: bool) -> None:
        """Write what the output file has beside series, and the checkpoint of a leg that is not the last."""
        solver, options, output = self.solver, self._options, self._output
        for name in solver.recorder.aggregates:
            values = solver.recorder.aggregate(name) if complete else solver.recorder.raw_aggregate(name)
            whole = values.reshape(self._input.shape) if name.endswith("_all") else values
            output.write_aggregate(name, whole)
        if complete:
            for quantity in options.final:
                for name in ("p",) if quantity[0] == "p" else (f"u{axis}" for axis in self._input.axes):
                    output.write_aggregate(f"{name}_final", solver.field(name).reshape(self._input.shape))
        for name in _REPEATED:
            if name in self._input.scalars:
                output.write_scalar(name, self._input.scalars[name])
        output.write_scalar("Nt", self._problem.steps)
        output.write_scalar("t_index", solver.time_step)
        if options.copy_sensor_mask:
            output.write_sensor_mask()
        if not complete and options.checkpoint_file is not None:
            fields = {at: solver.field(name).reshape(self._input.shape) for name, at in self._names.items()}
            write_checkpoint(options.checkpoint_file, self._input, fields, solver.time_step, _CREATED_BY)
        self._marks.append(time.perf_counter())
        output.write_attributes(self._header())
        output.close()
        if complete and options.checkpoint_file is not None:
            Path(options.checkpoint_file).unlink(missing_ok=True)

    def _header(self) -> dict[str, str]:
        pairs = zip(self._marks[1:], self._marks[:-1], self._earlier, strict=True)
        spent = [end - begin + before for end, begin, before in pairs]
        names = [*(f"{phase}_phase_execution_time" for phase in _PHASES[:-1]), "total_execution_time"]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        return {
            **attributes("output", self._input.description, _CREATED_BY),
            "host_names": f"{platform.node()} ({self.solver.backend.describe()})",
            "number_of_cpu_cores": str(getattr(self.solver.backend, "threads", 1)),
            **{name: f"{seconds:8.2f}s" for name, seconds in zip(names, [*spent, sum(spent)], strict=True)},
            "peak_core_memory_in_use": f"{peak} MB",
            "total_memory_in_use": f"{peak} MB",
        }

    def close(self) -> None:
        """Close the output file."""
        self._output.close()


def main(arguments: list[str], program: str, device: str) -> int:
    """Run a command line; return the exit status."""
    try:
        options = parse(arguments)
    except SeicheError as error:
        print(f"{program}: {error}", file=sys.stderr)
        print(USAGE.format(program=program), file=sys.stderr)
        return 1
    if options.help or options.version:
        print(USAGE.format(program=program) if options.help else f"{program}: {_CREATED_BY}, file format 1.2")
        return 0
    if options.gpu is not None and device == "cuda":
        device = f"cuda:{options.gpu}"
    try:
        leg = Leg(options, device)
        try:
            if options.verbose:
                print(f"{program}: {options.input} on {leg.solver.backend.describe()}", flush=True)
            leg.finish(complete=leg.run())
        finally:
            leg.close()
    except SeicheError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{program}: {options.output}: {error}", file=sys.stderr)
        return 1
    return 0


def omp() -> None:
    """Be kspaceFirstOrder-OMP."""
    sys.exit(main(sys.argv[1:], "kspaceFirstOrder-OMP", "cpu"))


def cuda() -> None:
    """Be kspaceFirstOrder-CUDA."""
    sys.exit(main(sys.argv[1:], "kspaceFirstOrder-CUDA", "cuda"))
