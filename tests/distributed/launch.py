# SPDX-License-Identifier: BSD-3-Clause
"""Run a function of a test module on several ranks, as a user would: with mpiexec."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jobs
import nodes
import pytest

import seiche

#: Where the package that is tested lies: the source tree or an installation.
SOURCE = Path(seiche.__file__).resolve().parents[1]

#: Set to the number of ranks in the ranks of a job that stays.
IN_JOB = "SEICHE_TEST_RANKS"

_CALL = "import runpy, sys; runpy.run_path(sys.argv[1])[sys.argv[2]](*sys.argv[3:])"


def mpiexec() -> str:
    """Return the launcher next to this Python, or one on the path; skip the test if there is none."""
    beside = Path(sys.executable).with_name("mpiexec")
    result = str(beside) if beside.exists() else shutil.which("mpiexec")
    if result is None:
        pytest.skip("mpiexec is not installed")
    return result


def launcher(ranks: int, layout: str | None = None) -> list[str]:
    """Return the words that start `ranks` ranks, on imitated nodes (`nodes.py`) by `layout` or by the environment."""
    layout = nodes.layout_of(ranks) if layout is None else layout
    return [mpiexec(), *nodes.options(layout), "-n", str(ranks)]


def environment() -> dict[str, str]:
    """Return the environment of a rank: the same package and modules of tests first, one thread each, not bound.

    Several jobs run at a time, so that bound ranks of two jobs might wait for one core while another one is idle.
    """
    here = Path(__file__).parent
    paths = [str(SOURCE), str(here), str(here.parent), os.environ.get("PYTHONPATH", "")]
    settings = {"OMP_NUM_THREADS": "1", "OMP_PROC_BIND": "false"}
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **settings}


def rank_command(ranks: int, target: Path | Callable[..., object], *arguments: object) -> list[str]:
    """Return the command that runs a script, or a module-level function with text arguments, on `ranks` ranks."""
    return [*launcher(ranks), *process_command(target, *arguments)]


def process_command(target: Path | Callable[..., object], *arguments: object) -> list[str]:
    """Return the command of a process that runs a script, or a module-level function with text arguments.

    The module of a function is loaded under another name than `__main__`, so a test module may be its own script.
    """
    words = [str(argument) for argument in arguments]
    if isinstance(target, Path):
        call = [str(target), *words]
    else:
        call = ["-c", _CALL, target.__code__.co_filename, target.__name__, *words]
    return [sys.executable, *call]


def on_job(ranks: int, kind: str, *arguments: object, timeout: float, layout: str | None = None) -> str:
    """Have work of `rank_server.py` done by ranks that wait for it, on nodes by `layout`, and return what they wrote.

    Fails the test when a rank fails, or after `timeout` seconds.
    """
    command = [*launcher(ranks, layout), sys.executable, str(Path(__file__).with_name("rank_server.py"))]
    words = [str(argument) for argument in arguments]
    try:
        return jobs.run(command, ranks, environment() | {IN_JOB: str(ranks)}, kind, words, timeout)
    except jobs.JobError as error:
        pytest.fail(str(error), pytrace=False)


def run_ranks(
    ranks: int,
    target: Path | Callable[..., object],
    *arguments: object,
    timeout: float = 60.0,
    expect: int | None = 0,
    layout: str | None = None,
    new_processes: bool = False,
) -> str:
    """Run `target` on `ranks` ranks, on nodes by `layout`, and return standard output and error together.

    `expect` is the exit status that the job must have, None: any but 0. Fails the test on another, or after `timeout`
    seconds. A function that must succeed runs on ranks that stay for the tests to come, unless `new_processes`.
    """
    if expect == 0 and not isinstance(target, Path) and not new_processes:
        words = (target.__code__.co_filename, target.__name__, *arguments)
        return on_job(ranks, "function", *words, timeout=timeout, layout=layout)
    command = [*launcher(ranks, layout), *process_command(target, *arguments)]
    try:
        done = subprocess.run(
            command,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        output = error.stdout.decode(errors="replace") if isinstance(error.stdout, bytes) else error.stdout or ""
        pytest.fail(f"{ranks} ranks did not end within {timeout} s; output so far:\n{output}")
    wrong = done.returncode == 0 if expect is None else done.returncode != expect
    if wrong:
        pytest.fail(f"{ranks} ranks ended with status {done.returncode}:\n{done.stdout}")
    return done.stdout


def run_ranks_on_gpus(ranks: int, target: Callable[..., object], transport: str) -> None:
    """Run `target` of a transport on ranks that have GPUs; skip the test where they do not suffice."""
    cupy = pytest.importorskip("cupy")
    if transport == "nccl" and cupy.cuda.runtime.getDeviceCount() < ranks:
        pytest.skip("NCCL needs a GPU a rank")
    run_ranks(ranks, target, transport, timeout=400)
