# SPDX-License-Identifier: BSD-3-Clause
"""Measure all works with all installed programs in turn, print a table and store it as JSON."""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.peers.row import PeerRow
from benchmarks.peers.works import Work, works_of
from seiche.backend import open_backend
from seiche.bench import results
from seiche.domain.world import World
from seiche.observe.bandwidth import copy_bandwidth

ROOT = Path(__file__).resolve().parents[2]


class Worker:
    """A process of `benchmarks.peers.worker`."""

    def __init__(self, work: Work, program: str, device: str, threads: int, seconds: float) -> None:
        # Idle threads of one program must not take time from the other.
        environment = os.environ | {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
        words = (program, json.dumps(work.as_dict()), device, str(threads), str(seconds))
        command = [sys.executable, "-m", "benchmarks.peers.worker", *words]
        self._errors = tempfile.TemporaryFile("w+")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._errors}
        self._process = subprocess.Popen(command, cwd=ROOT, env=environment, text=True, **pipes)
        self.row = PeerRow(work.name, program, work.unit)
        self._receive()

    def measure(self) -> None:
        """Measure once unless the program cannot run."""
        if self.row.reason or self._process.stdin is None:
            return
        self._process.stdin.write("measure\n")
        self._process.stdin.flush()
        self._receive()

    def close(self) -> PeerRow:
        """End the process; return the row with the statistics of its figures."""
        self._process.communicate()
        self._errors.close()
        if figures := self.row.figures:
            self.row.median, self.row.least, self.row.greatest = median(figures), min(figures), max(figures)
        return self.row

    def _receive(self) -> None:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            self._process.wait()
            self._errors.seek(0)
            errors = self._errors.read().strip().splitlines()
            self.row.reason = errors[-1][:300] if errors else f"ended with {self._process.returncode}"
            return
        answer = json.loads(line)
        self.row.reason = answer.get("unavailable", "")
        self.row.version = answer.get("version", self.row.version)
        if "figure" in answer:
            self.row.figures.append(answer["figure"])
            self.row.details = answer["details"]


def compare(work: Work, options: argparse.Namespace) -> list[PeerRow]:
    """Return the rows of one work: the programs take turns."""
    settings = (options.device, options.threads, options.seconds)
    workers = [Worker(work, program, *settings) for program in work.programs]
    for turn in range(options.rounds):
        for worker in workers if turn % 2 == 0 else workers[::-1]:
            worker.measure()
    return [worker.close() for worker in workers]


def as_table(works: list[Work], rows: list[PeerRow]) -> Table:
    """Return the table; ratios above 1 say that Seiche is faster."""
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("work", "program", "median", "least", "greatest", "unit", "Seiche is faster by"):
        table.add_column(name, justify="right" if name in ("median", "least", "greatest") else "left")
    for work in works:
        own = next(row.median for row in rows if (row.work, row.program) == (work.name, "seiche"))
        for row in (row for row in rows if row.work == work.name):
            if row.median is None:
                table.add_row(work.name, row.program, "-", "-", "-", work.unit, row.reason)
                continue
            ratio = (own / row.median if work.larger_is_better else row.median / own) if own else None
            faster = "" if ratio is None or row.program == "seiche" else f"{ratio:.2f}"
            figures = (f"{value:.4g}" for value in (row.median, row.least or 0.0, row.greatest or 0.0))
            table.add_row(work.name, f"{row.program} {row.version}", *figures, work.unit, faster)
    return table


def main() -> int:
    """Read the command line and compare; the status is 1 if Seiche itself could not be measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", default="*", metavar="PATTERN", help='works by name, such as "kspace*"')
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each program")
    parser.add_argument("--seconds", type=float, default=2.0, help="of one measurement, about")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of each program on the CPU")
    parser.add_argument("--output", type=Path, metavar="FILE", help="JSON file")
    options = parser.parse_args()
    works = [work for work in works_of(options.device) if fnmatch.fnmatch(work.name, options.only)]
    if not works or options.rounds < 1 or options.threads < 1 or not options.seconds > 0.0:
        names = ", ".join(work.name for work in works_of(options.device))
        parser.error(f"--only matches none of {names}, or a number is not positive")
    backend = open_backend(options.device, options.threads)
    copy = copy_bandwidth(backend, World.serial())
    rows: list[PeerRow] = []
    for work in works:
        rows += compare(work, options)
        device = backend.describe()
        content = {"works": [work.as_dict() for work in works], "rounds": options.rounds}
        stored = results.document("peers", device, rows, copy_bytes_per_second=copy, **content)
        results.store(options.output, stored)
        Console().print(as_table([work], rows))
    return int(any(row.reason for row in rows if row.program == "seiche"))


if __name__ == "__main__":
    sys.exit(main())
