# SPDX-License-Identifier: BSD-3-Clause
"""`seiche.load`: read a case file of any kind and set up its simulation."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seiche.backend import prepare_device
from seiche.backend.ranges import profiler_ranges
from seiche.case.arguments import check_type, path_of
from seiche.case.checkpoint import attributes_of
from seiche.case.folder import RunFolder
from seiche.case.kind import Setup
from seiche.case.kinds import kind_of
from seiche.case.load import check_tables, read_source
from seiche.case.output import OutputTarget
from seiche.case.output_targets import overwritten
from seiche.case.simulation import Simulation
from seiche.case.source import CaseFile
from seiche.domain.sharing import on_root
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.machine.laws.binding import bind_rank
from seiche.set_up import record_set_up, set_up_stage


def load(
    path: Path | str,
    *,
    device: str | None = None,
    overrides: Sequence[str] | Mapping[str, Any] = (),
    restart: Path | str | None = None,
    output: Path | str | None = None,
    replace: bool = False,
    world: World | None = None,
) -> Simulation:
    """Set up the simulation of the case file `path`, of any kind.

    Args:
        path: case file; paths of input files are relative to its folder.
        device: "cpu", "cuda" or a specific GPU such as "cuda:1"; by default that of the case.
        overrides: new values of keys, such as ["lattice.tau=0.8"] or {"time.duration": "2 s"}. They replace keys that
            are not allowed beside them, such as time.steps.
        restart: checkpoint from which the run continues.
        output: output folder; by default that of the case.
        replace: whether files of an earlier run in the output folder may be replaced.
        world: the ranks; by default all ranks started by mpiexec.

    Raises:
        CaseError: the case is invalid, or the output folder contains another run.
        FormatError: an input file is invalid.
        BackendUnavailable: the device is not available.
    """
    with record_set_up(label=profiler_ranges()) as times:
        arguments: dict[str, Any] = {"restart": restart, "output": output, "replace": replace, "world": world}
        simulation = _load(path, device, overrides, **arguments)
    simulation.set_up = times
    return simulation


def _load(
    path: Path | str,
    device: str | None,
    overrides: Sequence[str] | Mapping[str, Any],
    *,
    restart: Path | str | None,
    output: Path | str | None,
    replace: bool,
    world: World | None,
) -> Simulation:
    """Return the simulation of `load`."""
    world = World.from_mpi() if world is None else world
    check_type("world", world, World, "a World")
    check_type("replace", replace, bool, "True or False")
    checkpoint = path_of("restart", restart) if restart is not None else None
    source = read_source(path, overrides, device)
    kind = kind_of(source)
    case: Any = check_tables(source.tables, str(source.path), kind.schema)
    if output == "":
        raise CaseError('output: expected the name of a folder, not an empty string; "." is the current folder')
    folder = path_of("output", output) if output is not None else source.folder / case.output.folder
    run_folder = RunFolder(folder, str(source.path), restart=checkpoint, replace=replace)
    on_root(world, run_folder.check_available)
    if checkpoint is not None:
        source = source.continued(on_root(world, lambda: attributes_of(checkpoint)))
    world = bind_rank(world, case.run.device, case.run.binding)  # before fields are placed in memory
    prepare_device(case.run.device, world.local_rank)
    with set_up_stage("model"):
        setup = kind.prepare(source, world, initial_state=restart is None)
    check_inputs_preserved(setup, folder)
    absolute = Path(os.path.abspath(folder))  # the working directory may change during the run
    with set_up_stage("outputs"):
        return Simulation(kind, setup, world, absolute, restart=checkpoint, replace=replace)


def prepare(
    path: Path | str,
    overrides: Sequence[str] | Mapping[str, Any] = (),
    world: World | None = None,
    *,
    device: str | None = None,
) -> Setup:
    """Return the set-up of a case file of any kind without allocating fields (collective).

    Raises:
        CaseError: the case is invalid.
        FormatError: an input file is invalid.
    """
    source = read_source(path, overrides, device)
    world = World.serial() if world is None else world
    check_type("world", world, World, "a World")
    setup = kind_of(source).prepare(source, world)
    check_inputs_preserved(setup, source.folder / setup.case.output.folder)
    return setup


def verify(source: CaseFile) -> Setup:
    """Return the set-up of a case on one rank after all checks of `seiche check`; a large domain may have a size only.

    Raises:
        CaseError: the case is invalid.
        FormatError: an input file is invalid.
    """
    kind = kind_of(source)
    setup = (kind.verify or kind.prepare)(source)
    check_inputs_preserved(setup, source.folder / setup.case.output.folder)
    kind.estimates(setup)
    return setup


def check_inputs_preserved(setup: Setup, folder: Path) -> None:
    """Raise a CaseError if an output in `folder` would replace an input file of the case."""
    targets = [OutputTarget(key, folder / name) for key, name in setup.case.output.files()]
    for message in overwritten(targets, setup.inputs):
        raise CaseError(f"{setup.source}: {message}")
    setup.check_intervals()
