# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of ranks that stay for the tests to come: to start Python, MPI and Seiche takes longer than most tests do.

There is one job for each number of ranks and their nodes. A job in which something failed is ended, for its other
ranks may wait for the one that did, and the next test gets a new one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path

#: Jobs that may wait at a time, and seconds that the other ranks of a job have to end as well when one has failed.
LARGEST_NUMBER, GRACE = 4, 5.0


class JobError(Exception):
    """Work that did not succeed on all ranks, with what they wrote."""


class Job:
    """Ranks under mpiexec, which wait for work."""

    def __init__(self, command: Sequence[str], ranks: int, environment: dict[str, str], deadline: float) -> None:
        """Start `ranks` processes with `command`, which gets the address to connect to as its last word.

        Raises JobError when they are not there before `deadline` (of `time.monotonic`).
        """
        self.environment, self.place = environment, os.getcwd()
        self.lines: dict[Connection, tuple[str, int, Path]] = {}
        self._folder = Path(tempfile.mkdtemp(prefix="seiche-ranks-"))
        self._launcher = self._folder / "launcher.txt"
        address = str(self._folder / "line")
        with socket.socket(socket.AF_UNIX) as server, self._launcher.open("w") as output:
            server.bind(address)
            server.listen(ranks)
            server.settimeout(0.2)
            # A session of its own: an interrupt is for pytest, which then ends its jobs.
            self._process = subprocess.Popen(
                [*command, address],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            while len(self.lines) < ranks:
                with contextlib.suppress(TimeoutError, EOFError):
                    accepted = server.accept()[0]
                    process = _peer_process(accepted)
                    connection = Connection(accepted.detach())
                    rank, own_number, written = connection.recv()
                    self.lines[connection] = rank, process or own_number, Path(written)
                if self._process.poll() is not None or time.monotonic() > deadline:
                    message = self.output()
                    self.end()
                    raise JobError(f"{ranks} ranks did not start:\n{message}")

    def output(self) -> str:
        """Return what all ranks wrote since they got work, in their order, and the launcher."""
        ranks = sorted(self.lines.values(), key=lambda line: int(line[0]))
        files = [written for _, _, written in ranks] + [self._launcher]
        return "".join(file.read_text(errors="replace") for file in files if file.exists())

    def run(self, kind: str, words: Sequence[str], deadline: float) -> str:
        """Give all ranks the same work and return what they wrote.

        Raises JobError when one of them fails, is gone, or has not ended before `deadline`.
        """
        for connection in self.lines:
            with contextlib.suppress(OSError):  # a rank that is gone will not answer either
                connection.send((kind, tuple(words)))
        waiting, failed, ranks = set(self.lines), [], len(self.lines)
        while waiting:
            ready = wait(waiting, max(0.0, deadline - time.monotonic()))
            if not ready:
                break
            for connection in ready:
                waiting.discard(connection)
                try:
                    status = connection.recv()
                    output = f"status {status}"
                except (EOFError, OSError):
                    status, output = -1, "gone"
                if status != 0:
                    failed.append(f"rank {self.lines[connection][0]} of {ranks}: {output}")
                    deadline = min(deadline, time.monotonic() + GRACE)
        if failed or waiting:
            late = [f"rank {self.lines[connection][0]} of {ranks}: did not end in time" for connection in waiting]
            self.kill()
            raise JobError("\n".join([*failed, *late, self.output()]))
        return self.output()

    def end(self) -> None:
        """Let the ranks leave, and see to it that they do."""
        for connection in self.lines:
            connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def kill(self) -> None:
        """End launcher and ranks, whatever they do."""
        if self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for _, process, _ in self.lines.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def serves(self, environment: dict[str, str]) -> bool:
        """Return whether a job started now would be the same."""
        return self._process.poll() is None and self.environment == environment and self.place == os.getcwd()


def _peer_process(line: socket.socket) -> int:
    """Return the number that the process at the other end has here, which differs in another PID namespace; or 0."""
    if not hasattr(socket, "SO_PEERCRED"):
        return 0
    process, _, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return int(process)


#: The jobs that wait, by their command; the one that was used last is the last.
_WAITING: dict[tuple[str, ...], Job] = {}


def run(
    command: Sequence[str],
    ranks: int,
    environment: dict[str, str],
    kind: str,
    words: Sequence[str],
    timeout: float,
) -> str:
    """Run work on `ranks` ranks that wait, or on new ones, and return what they wrote.

    Raises JobError as `Job` does; whatever is raised, the job has ended.
    """
    deadline = time.monotonic() + timeout
    environment = {name: value for name, value in environment.items() if name != "PYTEST_CURRENT_TEST"}
    job = _WAITING.pop(tuple(command), None)
    if job is not None and not job.serves(environment):
        job.end()
        job = None
    while len(_WAITING) >= LARGEST_NUMBER:
        _WAITING.pop(next(iter(_WAITING))).end()
    if job is None:
        job = Job(command, ranks, environment, deadline)
    try:
        written = job.run(kind, words, deadline)
    except BaseException:
        job.end()
        raise
    _WAITING[tuple(command)] = job
    return written


def end_all() -> None:
    """End the jobs that wait."""
    while _WAITING:
        _WAITING.popitem()[1].end()
