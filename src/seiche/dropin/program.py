# SPDX-License-Identifier: BSD-3-Clause
"""The commands kspaceFirstOrder-OMP and kspaceFirstOrder-CUDA: from an input file of k-Wave to its output file."""

from __future__ import annotations

import sys
import traceback

from seiche.backend import prepare_device
from seiche.case.agreement import report_failure
from seiche.case.stop_signals import InterruptError, command_signals
from seiche.domain.world import World, check_connected
from seiche.dropin.launch import device_of, start_ranks
from seiche.dropin.options import USAGE, Options, parse
from seiche.dropin.segment import CREATED_BY, RunSegment
from seiche.errors import SeicheError
from seiche.machine.laws.binding import bind_rank
from seiche.start import rare_collections


def main(arguments: list[str], program: str, device: str) -> int:
    """Run a command line on `device`, "cpu" or "cuda"; return the exit status.

    Under mpiexec all ranks compute together. For several GPUs without it, mpiexec is started.
    """
    world = World.from_mpi(single_rank=True)
    try:
        options = parse(arguments)
    except SeicheError as error:
        return report_failure(world, f"{program}: {error}\n{USAGE.format(program=program)}", 1)
    if options.help or options.version:
        if world.rank == 0:
            print(USAGE.format(program=program) if options.help else f"{program}: {CREATED_BY}, file format 1.2")
        return 0
    try:
        check_connected(world)
        if device == "cuda":
            if len(options.gpus) > 1 and world.size == 1:
                start_ranks(len(options.gpus), arguments)
            device = device_of(options.gpus, world)
        with command_signals():
            signal_number = _run(options, program, device, bind_rank(world, device))
    except InterruptError as error:
        return report_failure(world, f"{program}: {error}", error.status)
    except KeyboardInterrupt:
        return report_failure(world, f"{program}: ended by a second SIGINT; the output is incomplete", 130)
    except SeicheError as error:
        return report_failure(world, f"{program}: {error}", 1)
    except OSError as error:
        return report_failure(world, f"{program}: {options.output}: {error}", 1)
    except Exception:
        if world.size == 1:
            raise
        return report_failure(
            world, traceback.format_exc(), 1
        )  # unexpected: end all ranks, which would wait for this one
    return 128 + signal_number if signal_number else 0


def _run(options: Options, program: str, device: str, world: World) -> int:
    """Run a segment; return the number of the signal that ended it without a checkpoint, or 0."""
    prepare_device(device, world.local_rank)
    with rare_collections():
        segment = RunSegment(options, device, world)
    verbosity = options.verbose if world.rank == 0 else 0
    try:
        if verbosity:
            print(f"{program}: {options.input} on {segment.solver.backend.describe()}", flush=True)
        if verbosity > 1:
            print("\n".join(segment.description()), flush=True)
        for line in segment.warnings() if world.rank == 0 else ():
            print(f"{program}: warning: {line}", file=sys.stderr, flush=True)
        signal_number = segment.run()
        segment.finish(complete=signal_number is None)
        if verbosity:
            print(segment.phase_times(), flush=True)
        if signal_number and world.rank == 0:
            print(f"{program}: {segment.stop_message(signal_number)}", file=sys.stderr, flush=True)
    finally:
        segment.close()
    return signal_number or 0 if options.checkpoint_file is None else 0
