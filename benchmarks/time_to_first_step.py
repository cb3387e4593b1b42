# SPDX-License-Identifier: BSD-3-Clause
"""Seconds of a run from the start of its process: imports, stages of the set-up, first step, steps, files, exit.

    python benchmarks/time_to_first_step.py examples/bifurcation/case.toml --device cuda --json start.json

The case runs twice: `cold`, with empty caches of kernels (those of Seiche, CuPy and the driver), and `filled`, with the
caches of the first run. Each phase has wall seconds and seconds of CPU time of all threads. The first step ends when
the device is idle, which costs a run without this benchmark at most one step. `--profile` adds a third run under
cProfile, and `--imports` one with `-X importtime`; both have filled caches, and their times are not comparable with
those of the first two.
"""

from __future__ import annotations

import argparse
import cProfile
import functools
import io
import json
import os
import pstats
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
#: Folders of compiled kernels: of Seiche, of CuPy, and of the driver.
CACHES = {"SEICHE_CACHE": "seiche", "CUPY_CACHE_DIR": "cupy", "CUDA_CACHE_PATH": "driver"}
CHILD = "from benchmarks.time_to_first_step import record; record()"
#: Number of lines of each list of a profile, and of packages and kernels in a table.
PROFILE_LINES, TABLE_LINES = 60, 12


class Record:
    """Wall and CPU seconds since the start of the process at the end of each phase, and seconds of each kernel."""

    def __init__(self, begin: float) -> None:
        """Begin at the time `begin` of `time.monotonic`."""
        self._begin = begin
        self.phases: list[tuple[str, float, float]] = []
        self.kernels: list[tuple[str, float]] = []
        self.set_up: dict[str, float] = {}
        self.host: dict[str, float] = {}

    def end(self, phase: str) -> None:
        """End a phase, which began at the end of the previous one."""
        self.phases.append((phase, time.monotonic() - self._begin, time.process_time()))

    def at_end_of(self, owner: Any, name: str, phase: str, *, before: str = "", once: bool = False) -> None:
        """End `phase` when the function `name` of `owner` returns, `before` when it is called; `once`: only once."""
        function: Callable[..., Any] = getattr(owner, name)

        @functools.wraps(function)
        def recorded(*arguments: Any, **options: Any) -> Any:
            if once:
                setattr(owner, name, function)
            if before:
                self.end(before)
            result = function(*arguments, **options)
            if name == "start":  # steps are in flight
                arguments[0].backend.synchronize()
            self.end(phase)
            return result

        setattr(owner, name, recorded)

    def kernels_of(self, backend: Any) -> None:
        """Record the seconds in which each kernel is compiled or loaded."""
        load = backend.load

        @functools.wraps(load)
        def recorded(device: Any, spec: Any) -> Any:
            begin = time.monotonic()
            kernel = load(device, spec)
            self.kernels.append((spec.type, time.monotonic() - begin))
            return kernel

        backend.load = recorded


def record() -> None:
    """Run the command line of this process with records; write them to the file of the first argument, as JSON."""
    path, begin, mode = sys.argv[1:4]
    sys.argv[1:] = sys.argv[4:]
    times = Record(float(begin))
    times.end("interpreter")
    profile = cProfile.Profile() if mode == "profile" else None
    with profile or nullcontext():
        _run(times)
    content = {"phases": times.phases, "set_up": times.set_up, "host": times.host, "kernels": times.kernels}
    if profile is not None:
        content["profile"] = {order: _profile_lines(profile, order) for order in ("tottime", "cumulative")}
    Path(path).write_text(json.dumps(content))


def _run(times: Record) -> None:
    """Run the command `seiche` of this process."""
    from seiche import cli

    times.end("import command")
    from seiche.case import loading
    from seiche.case.simulation import Simulation

    times.end("import common modules")
    from seiche.backend.cpu import CpuBackend
    from seiche.backend.cuda import CudaBackend
    from seiche.case.loop import RunLoop
    from seiche.case.outputs import Outputs
    from seiche.solver import SolverBase

    for backend in (CpuBackend, CudaBackend):
        times.kernels_of(backend)
    times.at_end_of(loading, "load", "set-up", before="read options")
    times.at_end_of(Outputs, "begin", "open files", before="prepare loop")
    times.at_end_of(SolverBase, "start", "first step", once=True)
    times.at_end_of(RunLoop, "advance", "steps and output")
    times.at_end_of(Outputs, "finish", "complete files")
    times.at_end_of(Simulation, "performance", "measure bandwidth")
    times.at_end_of(Simulation, "_release", "write summary", once=True)
    close = Simulation.close

    def close_recorded(simulation: Simulation) -> None:
        times.end("print report")
        times.set_up.update(simulation.set_up.seconds())
        times.host.update(simulation.outputs.measured()["host_overhead"])
        close(simulation)

    Simulation.close = close_recorded  # type: ignore[method-assign]
    status = cli.main()
    times.end("close")
    if status:
        raise SystemExit(status)


def _profile_lines(profile: cProfile.Profile, order: str) -> list[str]:
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats(order).print_stats(PROFILE_LINES)
    return [
        re.sub(r"/\S*/(?=(?:site-packages|seiche|benchmarks|python3[.\d]*)/)", "", line)
        for line in text.getvalue().split("\n")
    ]


def run(options: argparse.Namespace, folder: Path, mode: str = "") -> dict[str, Any]:
    """Run the case in a new process and return its record; `mode` is "profile", "imports" or empty."""
    path, flags = folder / "record.json", ["-X", "importtime"] if mode == "imports" else []
    changes = [part for change in options.changes for part in ("--set", change)]
    command = [
        "run",
        str(options.case),
        "--device",
        options.device,
        "--output",
        str(folder / "out"),
        "--replace",
        *changes,
    ]
    caches = {name: str(folder / cache) for name, cache in CACHES.items()}
    python_path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, **caches, "PYTHONPATH": python_path}
    before, begin = os.times(), time.monotonic()
    arguments = [sys.executable, *flags, "-c", CHILD, str(path), repr(begin), mode, *command]
    process = subprocess.run(arguments, env=environment, capture_output=True, text=True)
    end, after = time.monotonic() - begin, os.times()
    if process.returncode:
        raise SystemExit(f"{process.stderr}\nthe run ended with status {process.returncode}")
    content: dict[str, Any] = json.loads(path.read_text())
    user, system = after.children_user - before.children_user, after.children_system - before.children_system
    content["phases"].append(("exit", end, user + system))
    packages = {"imports": imports_of(process.stderr)} if mode == "imports" else {}
    return {**content, "seconds": end, "user": user, "system": system, **packages}


def imports_of(text: str) -> dict[str, float]:
    """Return the seconds of the imports of each package and each part of Seiche, without those of their imports."""
    seconds: Counter[str] = Counter()
    for own, name in re.findall(r"^import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)", text, re.M):
        depth = 2 if name.split(".")[0] in ("seiche", "scipy", "cuda", "cupy") else 1
        seconds[".".join(name.split(".")[:depth])] += int(own) * 1e-6
    return dict(seconds.most_common())


def phases_of(content: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Return wall and CPU seconds of each phase; a phase that ended several times has their sum."""
    result: dict[str, tuple[float, float]] = {}
    last = (0.0, 0.0)
    for name, wall, cpu in content["phases"]:
        former = result.get(name, (0.0, 0.0))
        result[name] = (former[0] + wall - last[0], former[1] + cpu - last[1])
        last = (wall, cpu)
    return result


def show(runs: dict[str, dict[str, Any]]) -> None:
    """Print the phases of all runs side by side, then stages, kernels and imports."""
    phases = {name: phases_of(content) for name, content in runs.items()}
    print(f"{'wall and CPU seconds':26}" + "".join(f"{name:>17}" for name in runs))
    for phase in dict.fromkeys(phase for values in phases.values() for phase in values):
        cells = [values.get(phase, (0.0, 0.0)) for values in phases.values()]
        print(f"{phase:26}" + "".join(f"{wall:9.3f}{cpu:8.3f}" for wall, cpu in cells))
    totals = [(content["seconds"], content["user"] + content["system"]) for content in runs.values()]
    print(f"{'whole run':26}" + "".join(f"{wall:9.3f}{cpu:8.3f}" for wall, cpu in totals))
    for key, prefix in (("set_up", "set-up"), ("host", "host")):
        for stage in dict.fromkeys(stage for content in runs.values() for stage in content[key]):
            row = "".join(f"{content[key].get(stage, 0.0):9.3f}{'':8}" for content in runs.values())
            print(f"{f'{prefix}: {stage}':26}{row}")
    for name, content in runs.items():
        kernels = sorted(content["kernels"], key=lambda entry: -entry[1])
        total = sum(seconds for _, seconds in kernels)
        print(f"\n{name}: {len(kernels)} loads of kernels, {total:.3f} s")
        for kernel, seconds in kernels[:TABLE_LINES]:
            print(f"  {seconds:7.3f}  {kernel}")
        for package, seconds in list(content.get("imports", {}).items())[: 2 * TABLE_LINES]:
            print(f"  {seconds:7.3f}  import {package}")
        for lines in content.get("profile", {}).values():
            print("\n".join(lines))


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--set", dest="changes", action="append", default=[], metavar="KEY=VALUE", help="change of a key"
    )
    parser.add_argument("--filled", type=int, default=1, help="number of runs with filled caches; the fastest counts")
    parser.add_argument("--profile", action="store_true", help="add a run under cProfile")
    parser.add_argument("--imports", action="store_true", help="add a run that times each import")
    parser.add_argument("--json", type=Path)
    return parser.parse_args(arguments)


def main() -> None:
    """Measure, print, and store on request."""
    options = parse()
    with tempfile.TemporaryDirectory() as folder:
        runs = {"cold": run(options, Path(folder))}
        filled = [run(options, Path(folder)) for _ in range(options.filled)]
        runs["filled"] = min(filled, key=lambda content: float(content["seconds"]))
        for mode in ("profile", "imports"):
            if getattr(options, mode):
                runs[mode] = run(options, Path(folder), mode)
        device = json.loads(next((Path(folder) / "out").glob("*.json")).read_text())["device"]
    show(runs)
    if options.json:
        from seiche.bench.results import provenance, store

        about = provenance("time to first step", device)
        case = {"case": f"{options.case.parent.name}/{options.case.name}", "changes": options.changes}
        store(options.json, {**about, **case, "rows": [{"run": name, **content} for name, content in runs.items()]})


if __name__ == "__main__":
    main()
