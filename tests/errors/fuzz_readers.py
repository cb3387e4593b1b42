# SPDX-License-Identifier: BSD-3-Clause
"""Readers and small valid files for them: `python fuzz_readers.py FOLDER` reads damaged copies in a process of its own.

It takes a line of JSON for each request (reader, seed, number, seconds) and answers with one: how many inputs were
read, or what went wrong. An input that takes longer than ten seconds of processor time, or five minutes, ends the
process. A folder of the reader in `FOLDER` then has the input, and `progress` its number.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import h5py
import numpy as np
from fuzz_images import MORE_READERS

from case_files import toml_of, tube_tables
from gmy_files import four_cube
from hemelb_files import xml
from kwave_files import write_input
from segy_files import write_segy
from seiche.bench import predict
from seiche.case.folder import RECORD, RunFolder
from seiche.case.kinds import kind_of
from seiche.case.load import check_tables, read_source
from seiche.case.waves.media import read_grid
from seiche.case.waves.pulses import read_pulse
from seiche.cells.mesh import icosphere, read_mesh
from seiche.domain.world import World
from seiche.errors import FormatError, SeicheError
from seiche.io import lock
from seiche.io.arrays import HDF5_ERRORS, one_line, read_npy, read_npz
from seiche.io.cell_files import read_list, read_surfaces
from seiche.io.checkpoint import ALL, read_checkpoint, write_checkpoint
from seiche.io.formats import kwave_output
from seiche.io.formats.benchpress import read_collectives, read_copies, read_injection, read_ping_pongs
from seiche.io.formats.columns import read_time_table, read_weights
from seiche.io.formats.extraction import (
    ExtractionField,
    ExtractionHeader,
    encode_offsets,
    read_extraction,
    read_offsets,
)
from seiche.io.formats.gmy import read_gmy
from seiche.io.formats.kwave import read_input
from seiche.io.formats.pos import read_pos
from seiche.io.formats.segy import read_segy
from seiche.io.formats.stl import read_stl, write_stl
from seiche.io.series_file import SeriesFile, complete_series
from seiche.io.surface_file import CellSurfaces, write_surfaces
from seiche.machine.laws.file import read_machine
from seiche.report import run_report
from seiche.report.motion import read_motion
from seiche.solver import RowSet, State

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tools" / "golden_cases"
BALL = icosphere(12)
MACHINE = Path(read_machine.__code__.co_filename).parents[1] / "known" / "lassen.json"
#: Most seconds of an input, of the processor and by the clock, which also counts what other processes take on a busy
#: machine; most bytes by which memory may grow beside the small arrays of the files.
LIMIT, PATIENCE, MEMORY = 10.0, 300.0, 64 << 20
#: Inputs between two starts of the count of memory: caches that grow slowly are no fault of one input.
BATCH = 50
RECORDS = "p"

Writer = Callable[[Path], Any]


def words(text: str) -> Writer:
    return lambda path: path.write_text(text)


def binary(content: bytes) -> Writer:
    return lambda path: path.write_bytes(content)


def copy_of(source: Path) -> Writer:
    return lambda path: path.write_bytes(source.read_bytes())


def grid_file(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["x"], file["y"] = [0.0, 1.0, 2.0], [0.0, 1.0]
        for name, value in (("density", 1000.0), ("cp", 2000.0), ("cs", 1000.0)):
            file[name] = np.full((3, 2), value)


def motion_file(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.attrs.update({"medium": "elastic", "title": "t", "axes": ["x", "y"], "lower": [0.0, 0], "upper": [1.0, 1]})
        file["time"], file["velocity"] = [0.0, 1.0], np.ones((2, 3, 4, 2), "f4")


def snapshot_file(path: Path) -> None:
    """Write what a killed run of waves leaves."""
    series = SeriesFile(path.with_suffix(""), {"velocity": (3, 4, 2)}, {"medium": "elastic", "title": "t"}, 3)
    for at in (1.0, 2.0):
        series.append(at, {"velocity": np.ones((3, 4, 2))})


def complete_snapshots(path: Path) -> None:
    content = path.read_bytes()
    try:
        complete_series(path.with_suffix(""), 2.0)
    except HDF5_ERRORS as error:  # which a restart takes for no file
        raise FormatError(path, "file", one_line(error)) from None
    path.write_bytes(content)


def kwave_file(path: Path) -> None:
    write_input(path, (1, 8, 8), p0_source_flag=1, p0_source_input=np.ones((1, 8, 8)))


@cache
def kwave_problem(folder: Path) -> Any:
    """Return the problem of a k-Wave input in a folder."""
    kwave_file(folder / "problem.h5")
    return read_input(folder / "problem.h5")


def kwave_output_file(path: Path) -> None:
    output = kwave_output.KWaveOutput(path, kwave_problem(path.parent))
    output.write_scalar("t_index", 3)
    output.write_aggregate("p_max", np.ones(64))
    output.close()


def read_kwave_output(path: Path) -> None:
    output = kwave_output.KWaveOutput(path, kwave_problem(path.parent), append=True)
    try:
        output.check_segment(3, "checkpoint")
        output.read_aggregate("p_max")
        output.stored_seconds("total_execution_time")
    finally:
        output.close()


def kwave_checkpoint(path: Path) -> None:
    fields = {"p": np.ones((1, 8, 8), "f4")}
    kwave_output.write_checkpoint(path, kwave_problem(path.parent), fields, 3, created_by="a test", records=RECORDS)


def read_kwave_checkpoint(path: Path) -> None:
    kwave_output.read_checkpoint(path, kwave_problem(path.parent), ("p",), RECORDS)


def off_file(path: Path) -> None:
    rows = [f"{x!r} {y!r} {z!r}" for x, y, z in BALL.vertices.tolist()]
    rows += [f"3 {a} {b} {c}" for a, b, c in BALL.faces.tolist()]
    path.write_text("\n".join(["OFF", f"{len(BALL.vertices)} {len(BALL.faces)} 0", *rows, ""]))


def gmsh_file(path: Path) -> None:
    nodes = [f"{number} {x!r} {y!r} {z!r}" for number, (x, y, z) in enumerate(BALL.vertices.tolist(), start=1)]
    faces = [f"{n} 2 2 1 1 {a + 1} {b + 1} {c + 1}" for n, (a, b, c) in enumerate(BALL.faces.tolist(), start=1)]
    parts = ["$MeshFormat", "2.2 0 8", "$EndMeshFormat", "$Nodes", str(len(nodes)), *nodes, "$EndNodes"]
    path.write_text("\n".join([*parts, "$Elements", str(len(faces)), *faces, "$EndElements", ""]))


def extraction_file(path: Path) -> None:
    fields = (ExtractionField("pressure", 1, 0, (100.0,)), ExtractionField("velocity", 3, 1))
    header = ExtractionHeader(1e-4, (0.0, 0.0, 0.0), 4, fields)
    records = np.zeros((2, 4), header.site_type)
    records["place"] = np.arange(12).reshape(4, 3)
    parts = [struct.pack(">Q", step) + record.tobytes() for step, record in zip((10, 20), records, strict=True)]
    path.write_bytes(header.encode() + b"".join(parts))


def segy_file(kind: int) -> Writer:
    places, values = np.array([[0.0, 0.0], [1.0, 0.0], [2.5, 0.0]]), np.arange(1.0, 13.0).reshape(3, 4)
    return lambda path: write_segy(path, places, values, kind)


def state_file(path: Path) -> None:
    rows = {"sites": RowSet(np.arange(4), 4, {"f": np.ones((4, 3))})}
    write_checkpoint(path, World.serial(), State(1, rows, {}, {"n": 1}), attributes={})


def read_case(path: Path) -> None:
    source = read_source(path)
    check_tables(source.tables, str(path), kind_of(source).schema)


def read_summaries(path: Path) -> None:
    run_report.main([path], compare=False, machine=None, output=path.with_name("report.html"))
    run_report.main([path, path], compare=True, machine=None, output=path.with_name("compare.html"))


def cell_file(path: Path) -> None:
    write_surfaces(path, CellSurfaces(0.0, BALL.vertices, BALL.faces, {"velocity": BALL.vertices}))


ASCII_STL = (
    "solid s\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid\n"
)
OWNER = json.dumps(
    {"host": "h", "boot": "b", "namespace": "n", "pid": 1, "began": "2", "what": "a run", "nonce": "0123456789abcdef"}
)
#: What writes a valid file and what reads it, by the name of the file.
COLLECTIVES = ("Cuda-Aware", ""), ("3-Step", ""), ("3-Step", ", Extra Message"), ("3-Step", ", Duplicate DevPtr")
READERS: dict[str, tuple[Writer, Callable[[Path], Any]]] = {
    "case.toml": (words(toml_of(tube_tables())), read_case),
    "blood.toml": (copy_of(CASES / "blood.toml"), read_case),
    "ultrasound.toml": (copy_of(CASES / "ultrasound.toml"), read_case),
    "waves.toml": (copy_of(CASES / "waves.toml"), read_case),
    "case.xml": (words(xml()), read_case),
    "vessel.gmy": (binary(four_cube().file()), read_gmy),
    "vessel.gmy+": (binary(four_cube().file(weights=[7])), read_gmy),
    "binary.stl": (lambda path: write_stl(path, BALL), read_stl),
    "ascii.stl": (words(ASCII_STL), read_stl),
    "ball.off": (off_file, read_mesh),
    "ball.msh": (gmsh_file, read_mesh),
    "cells.pos": (words("2\n1 2 3 0 90 0\n4 5 6 10 20 30\n"), read_pos),
    "table.txt": (words("0 1\n1 2\n2 0\n"), read_time_table),
    "weights.txt": (words("1 2 3 0.5\n1 2 4 0.25\n"), read_weights),
    "pulse.txt": (words("0 1\n1 2\n2 0\n"), read_pulse),
    "field.off": (binary(encode_offsets([100, 200])), read_offsets),
    "field.xtr": (extraction_file, read_extraction),
    "ieee.sgy": (segy_file(5), read_segy),
    "ibm.sgy": (segy_file(1), read_segy),
    "ct.npy": (lambda path: np.save(path, np.ones((4, 3))), lambda path: read_npy(path, (4, 3))),
    "medium.npz": (
        lambda path: np.savez_compressed(path, density=np.ones((4, 3))),
        lambda path: read_npz(path, ("density",), (4, 3)),
    ),
    "grid.h5": (grid_file, lambda path: read_grid(path, 2)),
    "waves.h5": (motion_file, read_motion),
    "killed.h5.part": (snapshot_file, complete_snapshots),
    "input.h5": (kwave_file, read_input),
    "output.h5": (kwave_output_file, read_kwave_output),
    "checkpoint.h5": (kwave_checkpoint, read_kwave_checkpoint),
    "cells.vtkhdf": (cell_file, read_surfaces),
    "list.vtkhdf.series": (
        words('{"file-series-version": "1.0", "files": [{"name": "c.000000001.vtkhdf", "time": 0.5}]}'),
        lambda path: read_list(path.with_suffix("")),
    ),
    "state.seiche": (state_file, lambda path: read_checkpoint(path, World.serial(), {"sites": ALL})),
    "machine.json": (copy_of(MACHINE), read_machine),
    "summary.json": (copy_of(ROOT / "tests" / "data" / "ba2b923" / "flow-summary.json"), read_summaries),
    "predicted.json": (
        copy_of(ROOT / "benchmarks" / "results" / "predict-cpu-1.json"),
        lambda p: predict._read_scales([p]),
    ),
    "ping_pong.out": (
        words("CPU 0 and CPU 1:\t1e-6\t2e-6\t\nGPU on rank 0 and GPU on rank 7:\t1e-6\t2e-6\t\n"),
        read_ping_pongs,
    ),
    "memcpy.out": (words("Memcpy Host To Device:\nCPU 0, GPU 1:\t1e-6\t2e-6\t\n"), read_copies),
    "node_pong.out": (
        words("Timing Max-Rate CPU Ping-Pongs\nSize 1\t1e-6\t\nSize 2\t1e-6\t2e-6\t\n"),
        lambda path: read_injection(path, shared=True),
    ),
    "all_to_all.out": (
        words("".join(f"{name} Alltoall{rest}:\n1e-6\t2e-6\t\n" for name, rest in COLLECTIVES)),
        read_collectives,
    ),
    **MORE_READERS,
    "run.lock": (words(OWNER), lambda path: lock._owner_at(path)),
    RECORD: (
        words('{"run": "a", "state": "done", "files": ["x"]}'),
        lambda path: RunFolder(path.parent, "c")._read_record(),
    ),
}
#: What replaces four or eight bytes: sizes, signs and texts that a reader might believe.
_FOUR = [
    b"\xff" * 4,
    b"\0" * 4,
    b"nan ",
    b"1e99",
    b"-1  ",
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\x7f",
    b'":[{',
    b"\n\n\n\n",
]
_EIGHT = [
    *(b"\xff" * 8, b"\0" * 8, struct.pack("<q", 1 << 33), struct.pack(">q", 1 << 33), struct.pack("<q", 1 << 62)),
    *(struct.pack("<d", float("nan")), struct.pack(">d", float("inf")), b"99999999", b"-9999999"),
]


def damaged(content: bytes, random: np.random.Generator) -> bytes:
    """Return a content that is cut short, or that differs in one to four places."""
    data = bytearray(content)
    if random.integers(6) == 0:
        return bytes(data[: random.integers(len(data))])
    for _ in range(random.integers(1, 5)):
        at = int(random.integers(max(1, len(data))))
        match int(random.integers(7)):
            case 0:
                data[at : at + 1] = bytes([data[at] ^ 1 << int(random.integers(8))]) if data else b""
            case 1:
                data[at : at + 1] = random.bytes(1)
            case 2:
                data[at:at] = random.bytes(int(random.integers(1, 9)))
            case 3:
                data[at : at + 4] = _FOUR[random.integers(len(_FOUR))]
            case 4:
                data[at : at + 8] = _EIGHT[random.integers(len(_EIGHT))]
            case 5:
                del data[at : at + int(random.integers(1, 65))]
            case _:
                part, to = data[at : at + int(random.integers(1, 65))], int(random.integers(max(1, len(data))))
                data[to:to] = part
    return bytes(data)


def fuzz(folder: Path, name: str, *, seed: int, number: int, seconds: float | None) -> dict[str, Any]:
    """Read `number` damaged files of a reader, or those of `seconds`; return their number, or what went wrong."""
    write, read = READERS[name]
    path, progress = folder / f"of {name}" / name, os.open(folder / "progress", os.O_CREAT | os.O_WRONLY)
    path.parent.mkdir(exist_ok=True)
    write(path)
    read(path)
    content, random = path.read_bytes(), np.random.default_rng([seed, *name.encode()])
    end, begun = None if seconds is None else time.monotonic() + seconds, 0
    for case in range(number):
        if end is not None and time.monotonic() > end:
            return {"done": case}
        if case % BATCH == 0:
            begun = _restart_memory()
        path.write_bytes(damaged(content, random))
        os.pwrite(progress, f"{case:>12}".encode(), 0)
        _set_limits(LIMIT, PATIENCE)
        wrong = _wrong(lambda: read(path))
        _set_limits(0.0, 0.0)
        grown = _largest_memory() - begun
        if wrong is None and grown > MEMORY:
            wrong = f"memory grew by {grown >> 20} MiB"
        if wrong is not None:
            return {"failure": f"input {case}: {wrong}"}
    os.close(progress)
    return {"done": number}


def _wrong(action: Callable[[], Any]) -> str | None:
    """Return what an action does that a reader may not do: any error but one line of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            action()
        except (SeicheError, OSError) as error:
            return None if str(error) and "\n" not in str(error) else f"a message that is not one line: {error!s}"
        except Exception as error:
            import traceback

            return f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
    return None


def _set_limits(processor: float, clock: float) -> None:
    """Have the process ended by a signal after these seconds; 0 is never."""
    signal.setitimer(signal.ITIMER_PROF, processor)
    signal.setitimer(signal.ITIMER_REAL, clock)


def _restart_memory() -> int:
    """Forget the largest memory of this process so far (Linux), and return the present one in bytes."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return _largest_memory()


def _largest_memory() -> int:
    """Return the largest memory of this process so far, in bytes, without that of its parent (unlike getrusage)."""
    (line,) = [row for row in Path("/proc/self/status").read_text().splitlines() if row.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    print("{}", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(fuzz(Path(sys.argv[1]), request.pop("reader"), **request)), flush=True)
