# SPDX-License-Identifier: BSD-3-Clause
"""Execution of a sweep: several runs at a time, each in a separate process; stopped runs are continued."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from seiche.backend.host_threads import host_threads
from seiche.case.folder import LOCK
from seiche.case.quantities import si_value
from seiche.case.sweep import SweepRun
from seiche.errors import CaseError, FormatError
from seiche.io.lock import FolderLock
from seiche.report.summary import read_summary
from seiche.report.sweep_table import SweepRow, SweepTable
from seiche.start import signals_handled_by

#: Lock of the folder of a sweep while its runs are executed.
SWEEP_LOCK = ".seiche-sweep.lock"
#: Interval at which the processes are polled, s.
_INTERVAL = 0.05
_PR_SET_PDEATHSIG = 1


@dataclass
class SweepProcess:
    """A run in progress, its process, and the time of its start."""

    run: SweepRun
    process: subprocess.Popen[bytes]
    begin: float


class SweepRuns:
    """Executor of the runs of a sweep that are not complete.

    Attributes:
        stopped: whether SIGINT or SIGTERM ended the sweep before its last run.
    """

    def __init__(self, case: Path, runs: Sequence[SweepRun], *, jobs: int = 1, device: str | None = None) -> None:
        """Prepare to execute the `runs` of a case file, `jobs` at a time."""
        self._case, self._runs, self._jobs, self._device = case, runs, jobs, device
        self._active: list[SweepProcess] = []
        self.stopped = False

    def execute(self, report: Callable[[str], None]) -> None:
        """Execute all runs that are not complete; `report` is called with one line for each event.

        A failed run does not end the sweep. SIGINT and SIGTERM stop the runs in progress, which write checkpoints.

        Raises:
            CaseError: another sweep uses the folder.
        """
        with self._locked(), self._signals():
            waiting = []
            for run in self._runs:
                if run.state == "done":
                    report(f"{run.describe()}: was already complete")
                else:
                    waiting.append(run)
            try:
                while self._active or (waiting and not self.stopped):
                    while waiting and len(self._active) < self._jobs and not self.stopped:
                        self._start(waiting.pop(0), report)
                    self._collect(report)
                    time.sleep(_INTERVAL)
            finally:
                self._stop(signal.SIGTERM)

    def _start(self, run: SweepRun, report: Callable[[str], None]) -> None:
        self._wait_for_owner(run, report)
        if self.stopped:
            return
        words = ["run", str(self._case), "--output", str(run.folder)]
        # Only files listed by an interrupted run of this folder are replaced.
        words += ["--restart", str(run.checkpoint)] if run.checkpoint.is_file() else ["--replace"]
        words += ["--device", self._device] if self._device is not None else []
        words += [word for change in run.changes for word in ("--set", change)]
        environment = os.environ | {"OMP_NUM_THREADS": str(host_threads(self._jobs))}
        with run.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "seiche", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,  # Ctrl-C in a terminal reaches only this process, which then stops its runs
                preexec_fn=_stop_with_parent,
            )
        self._active.append(SweepProcess(run, process, time.monotonic()))

    def _wait_for_owner(self, run: SweepRun, report: Callable[[str], None]) -> None:
        """Wait until no process writes to the folder of a run, such as a stopping run of a killed sweep."""
        lock, reported = FolderLock(run.folder / LOCK, str(self._case)), False
        with suppress(OSError):  # the run reports a lock that is not a regular file
            while not self.stopped and (owner := lock.owner()) is not None:
                if not reported:
                    report(f"{run.describe()}: is waiting for {owner.describe()}")
                    reported = True
                time.sleep(_INTERVAL)

    def _collect(self, report: Callable[[str], None]) -> None:
        for item in [item for item in self._active if item.process.poll() is not None]:
            self._active.remove(item)
            seconds, state = time.monotonic() - item.begin, item.run.state
            if item.process.returncode == 0 and state in ("done", "stopped"):
                report(f"{item.run.describe()}: {state} after {seconds:.1f} s")
            elif self.stopped and item.process.returncode in (128 + signal.SIGTERM, -signal.SIGTERM):
                report(f"{item.run.describe()}: stopped before its first step")
            else:
                report(f"{item.run.describe()}: failed: {_last_line(item.run.log)}")

    def _stop(self, number: int) -> None:
        for item in self._active:
            if item.process.poll() is None:
                item.process.send_signal(number)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        folder = self._runs[0].folder.parent
        lock = FolderLock(folder / SWEEP_LOCK, f"sweep {self._case}")
        try:
            owner = lock.acquire()
        except OSError as error:
            raise CaseError(f"{folder}: cannot lock the folder: {error.strerror}") from None
        if owner is not None:
            raise CaseError(f"{folder}: another sweep uses this folder ({owner.describe()}); wait until it ends")
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def stop(number: int, _: FrameType | None) -> None:
            self.stopped = True
            self._stop(signal.SIGTERM)

        with signals_handled_by(stop):
            yield


def _stop_with_parent() -> None:
    """Let Linux send SIGTERM to this process when its parent ends, so that runs do not outlive a killed sweep."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _last_line(path: Path) -> str:
    """Return the last message of a run, without "seiche: error:"."""
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines() if path.is_file() else []
    return lines[-1].removeprefix("seiche: ").removeprefix("error: ") if lines else "no message"


def table_of(runs: Sequence[SweepRun]) -> SweepTable:
    """Return the inputs and results of runs, none of which is in progress; incomplete runs have no results."""
    names = {"running": "interrupted"}
    rows = [SweepRow(run.folder.name, names.get(run.state, run.state), run.values, _summary(run)) for run in runs]
    return SweepTable(rows, si_value)


def _summary(run: SweepRun) -> dict[str, Any]:
    if run.state == "done":
        with suppress(OSError, FormatError):
            return read_summary(run.summary)
    return {}
