# SPDX-License-Identifier: BSD-3-Clause
"""Damaged files: every reader reads them or rejects them in one line, within ten seconds and 64 MiB of memory.

Truncation, flipped bits, changed, inserted, deleted and repeated bytes in small valid files, from a fixed seed. The
ordinary tests read damaged files for two minutes; `SEICHE_FUZZ` is a number of inputs of each reader instead. The test
marked `nightly` reads 10,000 for each reader. They are read in another process, which a crash would end.
"""

from __future__ import annotations

import json
import mmap
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fuzz_readers
import launch
import numpy as np
import pytest
from fuzz_readers import LIMIT, READERS, damaged

#: Signals that end a process whose input takes too long.
TIMERS = signal.SIGALRM, signal.SIGPROF
#: Inputs of each reader, and seconds for each where their number is not given.
#: Inputs of a reader in the nightly tests; in the others at most `FEW`, of `SECONDS`, unless `NUMBER` is set.
MANY, FEW = 10_000, 2_500
NUMBER, SECONDS = int(os.environ.get("SEICHE_FUZZ", "0")), 120 / len(READERS)


class Fuzzer:
    """A process that reads damaged files; a new one after a crash."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._process = folder, None

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, fuzz_readers.__file__, str(self.folder)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, env=launch.environment(), **pipes)
        assert process.stdout is not None and process.stdout.readline() == "{}\n"
        return process

    def read(self, reader: str, **request: Any) -> dict[str, Any]:
        """Have damaged files of a reader read; return how many, or what went wrong."""
        self._process = self._process or self._start()
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"reader": reader, **request}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if answer:
            return dict(json.loads(answer))
        status, self._process = self._process.wait(), None
        ended = f"took longer than {LIMIT:g} s" if -status in TIMERS else f"ended the process ({status})"
        return {"failure": f"input {(self.folder / 'progress').read_text().strip()} {ended}"}

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzer]:
    fuzzer = Fuzzer(tmp_path_factory.mktemp("fuzz"))
    yield fuzzer
    fuzzer.close()


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", READERS)
def test_damaged_files(name: str, fuzzer: Fuzzer) -> None:
    limits: dict[str, Any] = {"number": NUMBER, "seconds": None} if NUMBER else {"number": FEW, "seconds": SECONDS}
    result = fuzzer.read(name, seed=0, **limits)
    assert "failure" not in result, result["failure"]
    assert result["done"] >= 1


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", READERS)
def test_many_damaged_files(name: str, fuzzer: Fuzzer) -> None:
    assert fuzzer.read(name, seed=1, number=MANY, seconds=None) == {"done": MANY}


def test_inputs_are_the_same_in_every_run() -> None:
    content = bytes(range(100))
    rows = [[damaged(content, np.random.default_rng(seed)) for _ in range(3)] for seed in (0, 0, 1)]
    assert rows[0] == rows[1] != rows[2]


def bomb(path: Path) -> None:
    """Use 128 MiB that no earlier test of this process has freed."""
    np.frombuffer(mmap.mmap(-1, 1 << 27), np.uint8)[:] = 1


def hang(path: Path) -> None:
    while True:
        pass


def crash(path: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail(path: Path) -> None:
    raise KeyError("x")


def fuzz_a_bad_reader(folder: Path, reader: Callable[[Path], None]) -> None:
    """Fuzz a reader that misbehaves on damaged files."""
    fuzz_readers.LIMIT = 0.5
    fuzz_readers.READERS["x"] = (
        lambda path: path.write_bytes(b"good"),
        lambda path: path.read_bytes() == b"good" or reader(path),
    )
    (folder / "found").write_text(json.dumps(fuzz_readers.fuzz(folder, "x", seed=0, number=3, seconds=None)))


@pytest.mark.parametrize(
    ("reader", "status", "words"),
    [
        (bomb, 0, "input 0: memory grew by 1"),
        (hang, -signal.SIGPROF, ""),
        (crash, -signal.SIGKILL, ""),
        (fail, 0, "input 0: KeyError: 'x'"),
    ],
)
def test_what_a_reader_may_not_do_is_found(reader: Any, status: int, words: str, tmp_path: Path) -> None:
    child = multiprocessing.get_context("fork").Process(target=fuzz_a_bad_reader, args=(tmp_path, reader))
    child.start()
    child.join(60)
    assert child.exitcode == status
    assert (tmp_path / "progress").read_text().strip() == "0"
    assert words in ((tmp_path / "found").read_text() if status == 0 else "")
