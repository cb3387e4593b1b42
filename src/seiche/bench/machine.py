# SPDX-License-Identifier: BSD-3-Clause
"""`seiche bench machine`: measure what moving data costs here, write the machine file and say what it says."""

from __future__ import annotations

import sys
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from seiche.backend import open_backend
from seiche.domain.world import World
from seiche.errors import BackendUnavailable, CaseError
from seiche.io.files import refuse_folder
from seiche.io.parallel import all_or_none
from seiche.machine.laws.file import Machine, write_machine
from seiche.machine.measure.survey import measure

_QUESTIONS = {
    "single_copy": "one process may read another's memory (single copy)",
    "device_mpi": "MPI takes addresses of GPU memory",
    "peer_access": "GPUs reach each other's memory",
}


def main(
    *,
    device: str = "auto",
    seconds: float = 60.0,
    folder: Path | None = None,
    name: str | None = None,
    output: Path = Path("machine.json"),
    world: World | None = None,
) -> Machine:
    """Measure, print on rank 0 and store at `output`; return the machine.

    Args:
        device: "cpu", "cuda", "cuda:K", or "auto": GPUs if every rank finds one.
        seconds: about how long.
        folder: where writing is tried; that of `output` by default.
        name: of the machine.
        output: the machine file, which must not be there yet.
        world: the ranks.

    Raises:
        CaseError: the file is there already, its folder is not or cannot be written in, or there is no `folder`.
        BackendUnavailable: no such device.
    """
    world = World.from_mpi() if world is None else world
    with all_or_none(world):
        if world.rank == 0:
            _refuse(output, folder)
    where = folder if folder is not None else output.resolve().parent
    quiet = world.rank != 0
    machine = measure(
        world,
        available(world) if device == "auto" else device,
        seconds=seconds,
        folder=where,
        name=name,
        say=lambda text: None if quiet else print(f"seiche: measuring {text}", file=sys.stderr, flush=True),
    )
    with all_or_none(world):
        if world.rank == 0:
            write_machine(output, machine)
    if world.rank == 0:
        show(machine)
        print(f"seiche: wrote {output} after {machine.seconds:.0f} s")
    return machine


def _refuse(output: Path, folder: Path | None) -> None:
    if output.exists():
        raise CaseError(f"{output} is there already: move it away, or name another file with --json")
    refuse_folder(output)
    if folder is not None and not folder.is_dir():
        raise CaseError(f"--folder {folder}: there is no such folder")


def available(world: World) -> str:
    """Return "cuda" if every rank finds a GPU, else "cpu" (collective)."""
    try:
        open_backend("cuda", local_rank=world.local_rank)
        found = True
    except BackendUnavailable:
        found = False
    return "cuda" if all(world.allgather(found)) else "cpu"


def show(machine: Machine) -> None:
    """Print paths, probes and what is absent."""
    console = Console(width=120, highlight=False)
    table = Table(title=f"{machine.name}: {machine.source}", title_justify="left", box=box.SIMPLE_HEAD)
    for heading in (
        "path",
        "locality",
        "latency (us)",
        "rate (GB/s)",
        "gap (us)",
        "protocols from (B)",
        "error",
        "notes",
    ):
        table.add_column(heading, justify="left" if heading in ("path", "locality", "notes") else "right")
    for each in machine.paths:
        first, last = each.pieces[0], each.pieces[-1]
        errors = [abs(each.curve.seconds(s) / t - 1) for s, t in zip(each.sizes, each.seconds, strict=True)]
        table.add_row(
            each.path,
            each.locality,
            f"{1e6 * float(each.curve.seconds(each.sizes[0] if each.sizes else first.begin)):.3g}",
            f"{1e-9 / last.beta:.4g}" if last.beta else "-",
            "-" if each.gap is None else f"{1e6 * each.gap:.3g}",
            ", ".join(str(piece.begin) for piece in each.pieces[1:]) or "-",
            f"{max(errors):.1%}" if errors else "-",
            f"{len(each.warnings)} warnings" if each.warnings else "",
        )
    console.print(table)
    for limit in machine.injection:
        rate = limit.rate * 1e-9
        print(f"a node injects {rate:.4g} GB/s over {limit.path} {limit.locality} ({limit.senders} senders)")
    for memory, rate in machine.memory.items():
        low, high = machine.memory_intervals.get(memory, (rate, rate))
        spread = f", {low * 1e-9:.4g} to {high * 1e-9:.4g} in single rounds" if high > low else ""
        print(f"copy bandwidth of {memory} memory: {rate * 1e-9:.4g} GB/s (read and written, all ranks){spread}")
    for where, launch in machine.launch.items():
        inside = (launch.graph_kernel or 0.0) * 1e6
        print(f"kernel launch, {where}: {launch.kernel * 1e6:.3g} us; in a graph {inside:.3g} us")
    if machine.files is not None:
        print(f"file writes: {machine.files.rate * 1e-9:.3g} GB/s, {machine.files.small * 1e3:.3g} ms for a small one")
    for name, probe in machine.probes.items():
        answer = {True: "yes", False: "no", None: "not known"}[probe.works]
        print(f"{_QUESTIONS.get(name, name)}: {answer} ({probe.reason})")
    ranks, hosts, cores = (int(machine.hardware.get(key, 1)) for key in ("ranks", "hosts", "cores"))
    if ranks > hosts * cores:
        print(f"more ranks ({ranks}) than cores ({hosts * cores}): messages are slow because ranks wait for their turn")
    for what, why in machine.absent.items():
        print(f"absent: {what}: {why}")
