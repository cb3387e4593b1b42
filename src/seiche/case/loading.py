# SPDX-License-Identifier: BSD-3-Clause
"""`seiche.load`: a case file of any kind, ready to run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seiche.case.agreement import on_rank_zero
from seiche.case.folder import RunFolder
from seiche.case.kind import Setup
from seiche.case.kinds import kind_of
from seiche.case.load import check_tables, read_source
from seiche.case.output import Place
from seiche.case.places import overwritten
from seiche.case.simulation import Simulation
from seiche.case.source import CaseFile
from seiche.case.tables import Table
from seiche.domain.world import World
from seiche.errors import CaseError


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
    case: Any = check_tables(source.tables, str(source.path), kind.schema)
    folder = Path(output) if output is not None else source.folder / case.output.folder
    checkpoint = Path(restart) if restart is not None else None
    records = RunFolder(folder, str(source.path), restart=checkpoint, replace=replace)
    on_rank_zero(world, records.refuse_early)
    setup = kind.prepare(source, world, place=restart is None)
    refuse_inputs(setup, folder)
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
    setup = kind_of(source).prepare(source, world or World.serial())
    refuse_inputs(setup, source.folder / setup.case.output.folder)
    return setup


def refuse_inputs(setup: Setup, folder: Path) -> None:
    """Refuse outputs in `folder` that would replace what the case reads.

    Raises:
        CaseError: one would.
    """
    places = [Place(key, folder / name) for key, name in setup.case.output.files()]
    for message in overwritten(places, setup.inputs):
        raise CaseError(f"{setup.source}: {message}")


def read_case(path: Path | str, overrides: Sequence[str] = ()) -> Table:
    """Return the checked tables of a case file of any kind, after changes such as "run.device=cuda".

    Raises:
        CaseError: a key or value is wrong.
        FormatError: the file cannot be read as what it is.
    """
    return check_case(read_source(path, overrides).tables, str(path))


def check_case(tables: dict[str, Any], source: str) -> Table:
    """Return the checked tables of a case that was read from `source`.

    Raises:
        CaseError: a key or value is wrong.
    """
    return check_tables(tables, source, kind_of(CaseFile(Path(source), tables)).schema)


def read_case_and_notes(path: Path | str, overrides: Sequence[str] = ()) -> tuple[Table, tuple[str, ...]]:
    """Return the case like `read_case`, and one line for each thing that a translation leaves to say."""
    source = read_source(path, overrides)
    return check_case(source.tables, str(path)), source.notes
