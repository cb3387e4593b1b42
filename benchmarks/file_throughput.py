# SPDX-License-Identifier: BSD-3-Clause
"""Throughput of output, checkpoints and restarts of a flow, against a plain copy on the same disk by the same ranks.

    mpiexec -n 2 python benchmarks/file_throughput.py --million 8 --folder /scratch --json files.json

A tube with moments in FP32 is written as VTKHDF (first the voxels, then velocity and density) and as a checkpoint,
which a restart reads. Each rank copies its part of the checkpoint to another file with `pread`, `pwrite` and `fsync`,
and reads it alone. Another VTKHDF file, with random walks as fields, is compressed, exactly and rounded. Times are
those of the slowest rank, with the data synced to the disk; the best of `--repeats` counts, since the disk is shared.
The page cache is neither filled nor cleared on purpose: a file that fits into memory is read from there, by the restart
and by the plain read.

The case stands for larger ones: bytes per site and the work per byte do not depend on the number of sites.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from seiche.bench.flow import model_of, tube_case
from seiche.bench.results import document, show, store
from seiche.domain.set_up_ranks import set_up_on
from seiche.domain.world import World
from seiche.flow import Precision, Solver
from seiche.flow.model import Newtonian
from seiche.io.checkpoint import read_checkpoint, write_checkpoint
from seiche.io.compression import Compression, ErrorBound
from seiche.io.fields import FieldSeries, VoxelCells

FIELDS = {"velocity": 3, "density": 1}
#: Bytes that a plain copy reads and writes at once.
_BLOCK = 1 << 22


@dataclass(frozen=True)
class FileRow:
    """One way of writing or reading: bytes of all ranks, seconds of the slowest, processor seconds of all."""

    case: str
    ranks: int
    sites: int
    bytes: int
    seconds: float
    processor_seconds: float


def timed(
    world: World, action: Callable[[], int], repeats: int, prepare: Callable[[], None] = lambda: None
) -> tuple[int, float, float]:
    """Return bytes of all ranks, seconds and processor seconds of the fastest of some repetitions (collective).

    Each is preceded by `prepare`, which is not timed.
    """
    best = (0, np.inf, 0.0)
    for _ in range(repeats):
        prepare()
        world.barrier()
        before, begin = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        size = action()
        after, seconds = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter() - begin
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        results = world.allgather((size, seconds, used))
        slowest = max(entry[1] for entry in results)
        if slowest < best[1]:
            best = sum(entry[0] for entry in results), slowest, sum(entry[2] for entry in results)
    return best


def plain(world: World, source: Path, target: Path | None) -> int:
    """Read this rank's part of a file and, with `target`, write it there; return the bytes."""
    size = source.stat().st_size
    begin, end = size * world.rank // world.size, size * (world.rank + 1) // world.size
    buffer = np.empty(_BLOCK, np.uint8)
    reader = os.open(source, os.O_RDONLY)
    writer = os.open(target, os.O_WRONLY | os.O_CREAT) if target is not None else -1
    for position in range(begin, end, _BLOCK):
        count = os.preadv(reader, [buffer.data[: end - position]], position)
        if target is not None:
            os.pwrite(writer, buffer.data[:count], position)
    if target is not None:
        os.fsync(writer)
        os.close(writer)
    os.close(reader)
    return end - begin


def run(world: World, million: float, folder: Path, repeats: int) -> list[FileRow]:
    """Measure all ways of writing and reading (collective)."""
    with set_up_on(world):
        sites = tube_case(round(1e6 * million))
    options = {"layout": "moments", "precision": Precision("float32", "float32"), "world": world}
    solver = Solver(sites, model_of(sites, Newtonian(0.1), "moments"), **options)
    solver.advance(2)
    own, rows = len(solver.owned), list[FileRow]()
    state_path, field_path, copy_path = folder / "state.seiche", folder / "fields.vtkhdf", folder / "copy"
    cells = VoxelCells(sites.shape, sites.coords, owned=solver.owned)
    snapshot = solver.measures.snapshot(solver.measures.snapshots(list(FIELDS))).fields()
    series, points = list[FieldSeries](), cells.mesh(world).points

    def geometry() -> int:
        if series:
            series.pop().close()
        series.append(FieldSeries(field_path, world, cells, FIELDS, capacity=repeats))
        return 73 * own + 24 * points  # connectivity, offset and type of each voxel; points

    def fields() -> int:
        series[0].write(float(series[0].steps), snapshot)
        return 4 * sum(FIELDS.values()) * own

    def checkpoint() -> int:
        write_checkpoint(state_path, world, solver.state(), attributes={})
        return state_path.stat().st_size // world.size

    def restart() -> int:
        solver.set_state(read_checkpoint(state_path, world, solver.keys))
        return state_path.stat().st_size // world.size

    actions: dict[str, Callable[[], int]] = {
        "write voxels": geometry,
        "write velocity and density": fields,
        "write checkpoint": checkpoint,
        "plain copy": lambda: plain(world, state_path, copy_path),
        "read checkpoint and restart": restart,
        "read checkpoint": lambda: checkpoint_read(world, solver, state_path),
        "plain read": lambda: plain(world, state_path, None),
    }
    for name, action in actions.items():
        rows.append(FileRow(name, world.size, len(sites), *timed(world, action, repeats)))
    series[0].close()
    walks = {name: np.random.default_rng(0).standard_normal((own, size)).cumsum(0) for name, size in FIELDS.items()}
    bounds = dict.fromkeys(FIELDS, ErrorBound(relative=1e-4))
    for name, compression in {"compress": Compression(), "compress, rounded to 1e-4": Compression(bounds)}.items():
        with FieldSeries(field_path, world, cells, FIELDS, capacity=1, compression=compression) as written:
            written.write(0.0, walks)

            def compress(target: FieldSeries = written) -> int:
                target.compress(world.threads())
                return 73 * own + 24 * points + 4 * sum(FIELDS.values()) * own

            figures = timed(world, compress, repeats, written.reopen)
        ratio = sum(world.allgather(compress())) / field_path.stat().st_size
        rows.append(FileRow(f"{name} by {ratio:.1f}", world.size, len(sites), *figures))
    return rows


def checkpoint_read(world: World, solver: Solver, path: Path) -> int:
    """Read the rows of this rank; return its part of the bytes of the file."""
    read_checkpoint(path, world, solver.keys)
    return path.stat().st_size // world.size


def main() -> None:
    """Measure on all ranks, print and store on rank 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--million", type=float, default=4.0, help="sites in millions")
    parser.add_argument("--folder", type=Path, default=Path("."), help="on the disk to be measured")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="a CPU", help="description of machine and disk to be stored")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    world = World.from_mpi()
    holder = tempfile.TemporaryDirectory(dir=options.folder) if world.rank == 0 else None
    folder = Path(world.bcast(holder.name if holder is not None else None))
    rows = run(world, options.million, folder, options.repeats)
    world.barrier()
    if holder is not None:
        columns = {"case": "{0.case}", "ranks": "{0.ranks}", "MB": "{0.megabytes:.0f}", "MB/s": "{0.speed:.0f}"}
        columns |= {"MB per processor second": "{0.efficiency:.0f}"}
        show(f"{rows[0].sites:,} sites", columns, [Shown.of(row) for row in rows], text_columns=1)
        store(options.json, document("file throughput", options.device, rows))
        holder.cleanup()


@dataclass(frozen=True)
class Shown:
    """A row of the printed table."""

    case: str
    ranks: int
    megabytes: float
    speed: float
    efficiency: float

    @staticmethod
    def of(row: FileRow) -> Shown:
        """Return the printed form of a row."""
        size = row.bytes / 1e6
        return Shown(row.case, row.ranks, size, size / row.seconds, size / max(row.processor_seconds, 1e-9))


if __name__ == "__main__":
    main()
