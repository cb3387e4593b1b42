# SPDX-License-Identifier: BSD-3-Clause
"""`seiche.load`: a case file of any kind, ready to run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seiche.case.kind import Setup
from seiche.case.kinds import kind_of
from seiche.case.load import read_source
from seiche.case.simulation import Simulation
from seiche.domain.world import World


def load(
    path: Path | str,
    *,
    device: str | None = None,
    overrides: Sequence[str] = (),
    restart: Path | str | None = None,
    output: Path | str | None = None,
    replace: bool = False,
    world: World | None = None,
) -> Simulation:
    """Return the simulation of the case file `path`, of any kind, ready to run.

    Args:
        path: case file; the files that it names are relative to its folder.
        device: "cpu", "cuda" or "cuda:1"; the case's own by default.
        overrides: changes such as "lattice.tau=0.8" or "time.duration=2 s".
        restart: checkpoint to continue from.
        output: folder of the outputs; the case's own by default.
        replace: whether the files of an earlier run in that folder may be replaced.
        world: the ranks that take part; those of mpiexec by default.

    Raises:
        CaseError: the case is wrong or impossible, or the folder holds another run.
        FormatError: a file is broken.
        BackendUnavailable: the device is not there.
    """
    world = world or World.from_mpi()
    source = read_source(path, overrides, device)
    kind = kind_of(source)
    setup = kind.prepare(source, world, place=restart is None)
    folder = Path(output) if output is not None else source.folder / setup.case.output.folder
    checkpoint = Path(restart) if restart is not None else None
    return Simulation(kind, setup, world, folder, restart=checkpoint, replace=replace)


def prepare(
    path: Path | str, overrides: Sequence[str] = (), world: World | None = None, *, device: str | None = None
) -> Setup:
    """Return the set-up of a case file of any kind; no field is allocated (collective).

    Raises:
        CaseError: the case is wrong or impossible.
        FormatError: a file is broken.
    """
    source = read_source(path, overrides, device)
    return kind_of(source).prepare(source, world or World.serial())
