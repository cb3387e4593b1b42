# SPDX-License-Identifier: BSD-3-Clause
"""Regression test: digests of the outputs of many small runs, stored and compared.

    python tools/golden.py record --quick            # run and store in tools/golden.json
    python tools/golden.py compare --quick           # run again; a line for each difference, exit status 1 if any
    python tools/golden.py compare --jobs 8          # everything, eight runs at a time
    python tools/golden.py compare --only 'blood*' --ranks 1,2 --keep out

Runs use only the command line (`mpiexec -n R seiche run CASE ...`), each in a separate folder with one thread per rank.
`seiche` is the one on the path, so PYTHONPATH selects the code. The stages that `seiche predict` plans have no command;
the Python function named in `plan_of` returns them. For an intended change of a name, tools/golden_renames.json maps
the old name in the baseline to the new one before the comparison:

    {"files": {}, "datasets": {}, "attributes": {}, "keys": {}, "stages": {"old name": "new name"}}

The baseline is valid on all processors with at least x86-64 v3 and FMA. NumPy and OpenBLAS are restricted to these
instructions, and kernels do not contract or reorder sums. A note reports versions that differ from the baseline's.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from golden_digest import Table, of_folder, of_json
from golden_list import CASES, PREDICTED, RUNS, Run

TOOLS = Path(__file__).parent
BASELINE = TOOLS / "golden.json"
RENAMES = TOOLS / "golden_renames.json"
#: Time limit of a run in seconds, including the compilation of kernels.
LIMIT = 1200.0
#: Location of the function that plans a case on counting devices.
PLANS = ("seiche.case.plans", "seiche.predict.plans", "seiche.case.predict.plans")
DEVICES = ("cpu", "cuda")
PLANNED_RANKS = (1, 2, 4)
#: Key of the similar table to which a table of the baseline refers.
BASE_TABLE = "="
#: Files by name, and their tables of digests.
RunDigests = dict[str, Table]


class RunError(Exception):
    """A command failed; the message has its last line."""


@dataclass(frozen=True)
class Job:
    """A job: the case on `ranks`, then its restarts on other numbers; without `run` the plans of `planned`."""

    run: Run | None
    ranks: int = 1
    restarts: tuple[int, ...] = ()
    planned: str = ""
    planned_ranks: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Return its name in messages."""
        return f"{self.run.name} @ {self.ranks}" if self.run is not None else f"planned {self.planned}"


@dataclass(frozen=True)
class Commands:
    """Command words before the number of ranks, and those of the program."""

    mpiexec: tuple[str, ...]
    seiche: tuple[str, ...]


def environment() -> dict[str, str]:
    """Return the environment of runs: one thread, instructions of all machines, no machine file."""
    from numpy._core._multiarray_umath import __cpu_dispatch__ as dispatched

    wide = [name for name in dispatched if "AVX512" in name or name == "X86_V4"]
    variables = {name: value for name, value in os.environ.items() if name not in ("SEICHE_MACHINE", "SEICHE_FFT")}
    variables["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), variables.get("PATH", os.defpath)])
    return variables | {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": " ".join(wide),
        "MPLBACKEND": "Agg",
        "PYTHONWARNINGS": "ignore",
    }


def versions() -> dict[str, str]:
    """Return the versions on which results may depend in addition to the code."""
    names = ("numpy", "scipy", "h5py", "pymetis", "libigl")
    python = ".".join(map(str, sys.version_info[:2]))
    result = {"python": python, **{name: metadata.version(name) for name in names}}
    return result | {"fft": "fftw" if importlib.util.find_spec("pyfftw") else "scipy"}


def execute(words: Iterable[str], folder: Path) -> str:
    """Run a command in `folder` and return its standard output; RunError with its last line if it fails."""
    command = list(words)
    try:
        process = subprocess.run(
            command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"still running after {LIMIT:.0f} s: {shlex.join(command)}") from None
    if process.returncode != 0:
        lines = (process.stderr or process.stdout).strip().splitlines() or ["no message"]
        raise RunError(f"exit status {process.returncode}: {lines[-1]}")
    return process.stdout


def plan_of(path: Path, device: str, ranks: int) -> Any:
    """Return the plan of a run; only this function imports Seiche (PLANS)."""
    for name in PLANS:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        return module.planned_case(path, (), device).plan(ranks)
    raise RunError(f"planned_case is in none of {', '.join(PLANS)}: correct PLANS in tools/golden.py")


def plans(name: str, ranks: Iterable[int]) -> dict[str, RunDigests]:
    """Return the stages of the phases of a case on every device and number of ranks, by key of a run."""
    digests: dict[str, RunDigests] = {}
    for device in DEVICES:
        for count in ranks:
            plan = plan_of(CASES / f"{name}.toml", device, count)
            phases: RunDigests = {"run": {"layout": plan.layout, "items": plan.items, "item": plan.item}}
            for number, rank in enumerate(plan.ranks):
                table: Table = {"memory": rank.memory, "items": rank.items}
                for kind, (weight, stages) in enumerate(rank.steps):
                    table[f"step {kind}"] = [f"weight | {weight!r}", *map(_planned_stage, stages)]
                phases[f"rank {number}"] = table
            digests[f"planned {name} {device} @ {count}"] = phases
    return digests


def _planned_stage(stage: Any) -> str:
    sizes = f"bytes {stage.bytes} packed {stage.packed} launches {stage.launches}"
    messages = ";".join(",".join(f"{p}:{s}:{r}" for p, s, r in entry) for entry in stage.exchanges)
    arrivals = f" arrivals {stage.arrivals}" if stage.arrivals else ""
    return f"{stage.name} | {sizes}{f' messages {messages}' if messages else ''}{arrivals}"


def perform(job: Job, commands: Commands, folder: Path) -> dict[str, RunDigests]:
    """Execute a job in `folder` and return the digests of its files, by key of a run."""
    if job.run is None:
        words = (sys.executable, __file__, "planned", "--only", job.planned)
        text = execute((*words, "--ranks", ",".join(map(str, job.planned_ranks))), folder)
        return dict(json.loads(text))
    run = job.run
    files = [*run.files, *([run.file] if run.file is not None else [])]
    for path in files:
        shutil.copy(path, folder)
    for words in run.prepare:
        execute((*commands.seiche, *words), folder)
    if run.file is None:
        for path in files:
            (folder / path.name).unlink()
        return {f"{run.name} @ 1": of_folder(folder)}
    changes = [word for change in run.changes for word in ("--set", change)]

    def run_case(ranks: int, output: str, *options: str) -> RunDigests:
        words = (*commands.mpiexec, str(ranks), *commands.seiche, "run", run.file.name)  # type: ignore[union-attr]
        execute((*words, "--device", "cpu", "--output", output, *changes, *options), folder)
        return of_folder(folder / output)

    digests = {f"{run.name} @ {job.ranks}": run_case(job.ranks, "out")}
    for ranks in job.restarts:
        key = f"{run.name} @ {job.ranks}>{ranks}"
        digests[key] = run_case(ranks, f"restart-{ranks}", "--restart", "out/checkpoint.seiche")
    return digests


def matches(name: str, patterns: str) -> bool:
    """Return whether a name matches one of the comma-separated patterns."""
    return any(fnmatch(name, pattern) for pattern in patterns.split(","))


def jobs_of(quick: bool, only: str, ranks: set[int]) -> list[Job]:
    """Return the jobs, those with restarts first, because they take longest."""
    jobs = []
    for run in RUNS:
        if not matches(run.name, only):
            continue
        for count in run.quick if quick else run.ranks:
            restarts = [on for begin, on in run.restarts if begin == count and (on <= 2 or not quick)]
            if not ranks or count in ranks:
                jobs.append(Job(run, count, tuple(on for on in restarts if not ranks or on in ranks)))
    counts = [count for count in PLANNED_RANKS if (count <= 2 or not quick) and (not ranks or count in ranks)]
    jobs += [
        Job(None, planned=name, planned_ranks=tuple(counts))
        for name in PREDICTED
        if counts and matches(f"planned {name}", only)
    ]
    return sorted(jobs, key=lambda job: (-len(job.restarts), -job.ranks))


def keys_of(job: Job) -> list[str]:
    """Return the keys of the runs of a job."""
    if job.run is None:
        return [f"planned {job.planned} {device} @ {count}" for device in DEVICES for count in job.planned_ranks]
    return [job.name, *(f"{job.name}>{ranks}" for ranks in job.restarts)]


def outcomes(jobs: list[Job], options: argparse.Namespace) -> Iterator[tuple[Job, dict[str, RunDigests] | str]]:
    """Yield each completed job with its digests or with the reason of its failure."""
    commands = Commands(tuple(shlex.split(options.mpiexec)), tuple(shlex.split(options.seiche)))

    def perform_one(job: Job) -> dict[str, RunDigests] | str:
        try:
            if options.keep is not None:
                folder = options.keep.absolute() / job.name.replace(" ", "_")
                folder.mkdir(parents=True)
                return perform(job, commands, folder)
            with tempfile.TemporaryDirectory(prefix="golden-") as name:
                return perform(job, commands, Path(name))
        except RunError as error:
            return str(error)

    with ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(perform_one, job): job for job in jobs}
        for number, future in enumerate(as_completed(futures), start=1):
            if options.verbose:
                print(f"[{number}/{len(jobs)}] {futures[future].name}", file=sys.stderr, flush=True)
            yield futures[future], future.result()


def read(path: Path) -> tuple[dict[str, str], dict[str, RunDigests]]:
    """Return the versions and the runs of a baseline; empty if there is no file."""
    if not path.exists():
        return {}, {}
    content = json.loads(path.read_text())
    tables: dict[str, Table] = {}
    for name, table in content["tables"].items():
        tables[name] = {**tables[table.pop(BASE_TABLE)], **table} if BASE_TABLE in table else table
    runs = {key: {name: tables[table] for name, table in files.items()} for key, files in content["runs"].items()}
    return content["versions"], runs


def write(path: Path, runs: dict[str, RunDigests]) -> None:
    """Write a baseline: a line per run with a combined digest of each file, and a line per table of digests.

    Most tables are similar to an earlier one. They name it and contain only the differences.
    """
    tables: dict[str, Table] = {}
    lines: dict[str, dict[str, str]] = {}
    for key in sorted(runs):
        lines[key] = {name: of_json(table) for name, table in sorted(runs[key].items())}
        tables |= {lines[key][name]: table for name, table in runs[key].items()}
    stored: dict[str, Table] = {}
    similar: dict[tuple[str, ...], list[str]] = {}
    for digest, table in tables.items():
        candidates = similar.setdefault(tuple(sorted(table)), [])
        shorter = [
            {BASE_TABLE: base, **{name: value for name, value in table.items() if tables[base][name] != value}}
            for base in candidates
        ]
        stored[digest] = min([table, *shorter], key=lambda entry: len(json.dumps(entry)))
        candidates.append(digest)

    def block(entries: dict[str, Any]) -> str:
        rows = (f"{json.dumps(key)}:{json.dumps(value, separators=(',', ':'))}" for key, value in entries.items())
        return "{\n" + ",\n".join(rows) + "\n}"

    head = f'{{\n"versions": {json.dumps(versions())},\n'
    path.write_text(f'{head}"runs": {block(lines)},\n"tables": {block(stored)}\n}}\n')


def renamed(digests: RunDigests, renames: dict[str, dict[str, str]]) -> RunDigests:
    """Return the files of a run of the baseline under their new names."""
    files, stages = renames.get("files", {}), renames.get("stages", {})
    names = {**stages, **renames.get("datasets", {}), **renames.get("keys", {})}
    attributes = renames.get("attributes", {})

    def new_name(name: str) -> str:
        path, separator, attribute = name.partition("@")
        path = names.get(path) or "/".join(
            names.get(part) or ".".join(names.get(word, word) for word in part.split(".")) for part in path.split("/")
        )
        return path + separator + attributes.get(attribute, attribute)

    def new_value(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        split = (str(item).partition(" | ") for item in value)
        return [stages.get(stage, stage) + bar + tail for stage, bar, tail in split]

    return {
        files.get(file, file): {new_name(name): new_value(value) for name, value in table.items()}
        for file, table in digests.items()
    }


def differences(baseline: RunDigests, current: RunDigests) -> Iterator[str]:
    """Yield one line for each file or data set in which two runs differ."""
    for file in sorted(baseline.keys() | current.keys()):
        if file not in current or file not in baseline:
            yield f"{file}: {'new file' if file in current else 'file is missing'}"
            continue
        old, new = baseline[file], current[file]
        for name in sorted(old.keys() | new.keys()):
            if name not in new or name not in old:
                yield f"{file}: {name}: {'new' if name in new else 'is missing'}"
            elif old[name] != new[name]:
                yield f"{file}: {name}: {_change(old[name], new[name])}"


def _change(old: Any, new: Any) -> str:
    if not isinstance(old, list) or not isinstance(new, list):
        return f"{old} -> {new}"
    removed, added = [item for item in old if item not in new], [item for item in new if item not in old]
    return f"{removed} -> {added}" if removed or added else "another order"


def record(options: argparse.Namespace) -> int:
    """Run and store; results of other runs in the file are unchanged."""
    _, runs = read(options.file)
    failed = 0
    all_outcomes = outcomes(jobs_of(options.quick, options.only, options.ranks), options)
    for number, (job, outcome) in enumerate(all_outcomes, start=1):
        if isinstance(outcome, str):
            failed += 1
            print(f"{job.name}: {outcome}", flush=True)
        else:
            runs.update(outcome)
        if number % 20 == 0:  # a full run takes a long time on a busy machine
            write(options.file, runs)
    current_keys = {key for job in jobs_of(False, "*", set()) for key in keys_of(job)}
    runs = {key: digests for key, digests in runs.items() if key in current_keys}
    write(options.file, runs)
    print(f"{len(runs)} runs in {options.file}, {failed} failed")
    return 1 if failed else 0


def compare(options: argparse.Namespace) -> int:
    """Run again and print the differences."""
    stored, runs = read(options.file)
    renames = json.loads(RENAMES.read_text()) if RENAMES.exists() else {}
    for name, value in versions().items():
        if stored.get(name) != value:
            print(f"note: {name} is {value}, that of the baseline {stored.get(name)}", file=sys.stderr)
    count = compared = 0
    for job, outcome in outcomes(jobs_of(options.quick, options.only, options.ranks), options):
        if isinstance(outcome, str):
            lines = [f"{job.name}: {outcome}"]
        else:
            compared += len(outcome)
            lines = [f"{key}: not in the baseline" for key in outcome if key not in runs]
            for key in outcome.keys() & runs.keys():
                lines += [f"{key}: {line}" for line in differences(renamed(runs[key], renames), outcome[key])]
        count += len(lines)
        for line in lines:
            print(line, flush=True)
    print(f"{compared} runs compared, {count} differences")
    return 1 if count or not compared else 0


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("record", "compare", "list", "planned"))
    parser.add_argument("--quick", action="store_true", help="under three minutes on two cores")
    parser.add_argument("--only", default="*", metavar="PATTERNS", help='names of runs, such as "blood*,tube"')
    parser.add_argument("--ranks", type=lambda text: set(map(int, text.split(","))), default=set(), metavar="1,2")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--file", type=Path, default=BASELINE, help="the baseline")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="folder for the outputs of all runs")
    parser.add_argument("--verbose", action="store_true", help="print the name of each completed run")
    parser.add_argument("--mpiexec", default=os.environ.get("GOLDEN_MPIEXEC", "mpiexec -n"), help="before the number")
    parser.add_argument("--seiche", default=os.environ.get("GOLDEN_SEICHE", "seiche"), help="the program")
    options = parser.parse_args()
    if options.action == "planned":
        print(json.dumps(plans(options.only, sorted(options.ranks))))
        return 0
    if options.action == "list":
        for job in jobs_of(options.quick, options.only, options.ranks):
            print(job.name, *(f"> {on}" for on in job.restarts))
        return 0
    return record(options) if options.action == "record" else compare(options)


if __name__ == "__main__":
    sys.exit(main())
