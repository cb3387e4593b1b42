# SPDX-License-Identifier: BSD-3-Clause
"""`seiche bench machine`: measurement of the cost of moving data on this machine, stored in a machine file."""

from __future__ import annotations

import sys
from pathlib import Path

from seiche.backend import open_backend
from seiche.bench import results
from seiche.domain.world import World
from seiche.errors import BackendUnavailable, CaseError
from seiche.io.files import check_output_folder
from seiche.io.parallel import raise_on_all_ranks
from seiche.machine.laws.file import Machine, write_machine
from seiche.machine.laws.flat import flat_lines
from seiche.machine.measure.survey import measure
from seiche.observe.repeat import AGREEMENT

_PROBE_TEXTS = {
    "single_copy": "processes can read each other's memory (single copy)",
    "device_mpi": "MPI accepts addresses of GPU memory",
    "peer_access": "GPUs can access each other's memory",
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
        device: "cpu", "cuda", "cuda:K", or "auto": GPUs if every rank has access to one.
        seconds: approximate duration.
        folder: folder in which file writes are timed; by default that of `output`.
        name: name of the machine.
        output: the machine file; it must not exist.
        world: the ranks.

    Raises:
        CaseError: the file exists, its folder does not exist or is not writable, or `folder` does not exist.
        BackendUnavailable: the device does not exist.
    """
    world = World.from_mpi() if world is None else world
    with raise_on_all_ranks(world):
        if world.rank == 0:
            _check_paths(output, folder)
    test_folder = folder if folder is not None else output.resolve().parent
    machine = measure(
        world,
        available(world) if device == "auto" else device,
        seconds=seconds,
        folder=test_folder,
        name=name,
        report=lambda text: None if world.rank else print(f"seiche: measuring {text}", file=sys.stderr, flush=True),
    )
    with raise_on_all_ranks(world):
        if world.rank == 0:
            write_machine(output, machine)
    if world.rank == 0:
        show(machine)
        print(f"seiche: wrote {output} after {machine.seconds:.0f} s")
    return machine


def check_new_output(output: Path) -> None:
    """Raise CaseError if the machine file already exists, or if its folder is missing or not writable."""
    if output.exists():
        raise CaseError(f"{output} exists: move it, or choose another file with --json")
    check_output_folder(output)


def _check_paths(output: Path, folder: Path | None) -> None:
    check_new_output(output)
    if folder is not None and not folder.is_dir():
        raise CaseError(f"--folder {folder}: this folder does not exist")


def available(world: World) -> str:
    """Return "cuda" if every rank has access to a GPU, otherwise "cpu" (collective)."""
    try:
        open_backend("cuda", local_rank=world.local_rank)
        has_gpu = True
    except BackendUnavailable:
        has_gpu = False
    return "cuda" if all(world.allgather(has_gpu)) else "cpu"


def show(machine: Machine) -> None:
    """Print the paths, the probes and the missing measurements."""
    headings = "path|locality|latency (us)|rate (GB/s)|gap (us)|protocol changes at (B)|error|notes".split("|")
    lines = []
    for path in machine.paths:
        first, last = path.pieces[0], path.pieces[-1]
        errors = [abs(path.curve.seconds(s) / t - 1) for s, t in zip(path.sizes, path.seconds, strict=True)]
        min_size = path.sizes[0] if path.sizes else first.begin
        lines.append(
            (
                *(path.path, path.locality, f"{1e6 * float(path.curve.seconds(min_size)):.3g}"),
                f"{1e-9 / last.beta:.4g}" if last.beta else "-",
                "-" if path.gap is None else f"{1e6 * path.gap:.3g}",
                ", ".join(str(piece.begin) for piece in path.pieces[1:]) or "-",
                f"{max(errors):.1%}" if errors else "-",
                f"{len(path.warnings)} warnings" if path.warnings else "",
            )
        )
    results.show_lines(f"{machine.name}: {machine.source}", headings, lines, text_columns=(0, 1, 7))
    if machine.trust is not None:
        print(f"{machine.trust:.0%} of the times were reproduced within {AGREEMENT:.0%} by another round")
    for line in flat_lines(machine):
        print(f"warning: {line}")
    for limit in machine.injection:
        rate = limit.rate * 1e-9
        gap = "" if limit.gap is None else f"; each sender adds {limit.gap * 1e9:.3g} ns to messages of the others"
        print(f"a node injects {rate:.4g} GB/s over {limit.path} {limit.locality} ({limit.senders} senders){gap}")
    for memory, rate in machine.memory.items():
        low, high = machine.memory_intervals.get(memory, (rate, rate))
        spread = f", {low * 1e-9:.4g} to {high * 1e-9:.4g} in individual repetitions" if high > low else ""
        print(f"copy bandwidth of {memory} memory: {rate * 1e-9:.4g} GB/s (read and written, all ranks){spread}")
    for device, launch in machine.launch.items():
        graph_microseconds = (launch.graph_kernel or 0.0) * 1e6
        print(f"kernel launch, {device}: {launch.kernel * 1e6:.3g} us; in a graph {graph_microseconds:.3g} us")
    if machine.files is not None:
        print(f"file writes: {machine.files.rate * 1e-9:.3g} GB/s, {machine.files.small * 1e3:.3g} ms for a small one")
    for name, probe in machine.probes.items():
        result = {True: "yes", False: "no", None: "not known"}[probe.works]
        print(f"{_PROBE_TEXTS.get(name, name)}: {result} ({probe.reason})")
    ranks, hosts, cores = (int(machine.hardware.get(key, 1)) for key in ("ranks", "hosts", "cores"))
    if ranks > hosts * cores:
        print(f"more ranks ({ranks}) than cores ({hosts * cores}): messages are slow because ranks wait for a core")
    for quantity, reason in machine.absent.items():
        print(f"not measured: {quantity}: {reason}")
