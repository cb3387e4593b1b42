# SPDX-License-Identifier: BSD-3-Clause
"""A rank of a job that stays: it does one piece of work after the other, as `jobs.py` asks for it.

Between them it waits in a read of its socket, which costs no time of a core, and it leaves when the other side is gone.
"""

from __future__ import annotations

import gc
import os
import runpy
import socket
import sys
import traceback
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

#: Variable with which a launcher passes its rank to a process (Hydra, Open MPI, PMIx).
_RANK = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")


def run_node(folder: str, node: str, root: str) -> int:
    """Run one test, with `folder` for its temporary files, and return pytest's status."""
    position = ["--rootdir", root, "--basetemp", folder, str(Path(root) / node)]
    return int(pytest.main(["-p", "no:cacheprovider", *position]))


def run_function(_folder: str, path: str, name: str, *arguments: str) -> int:
    """Call a function of a script and return the status with which a process of its own would end."""
    try:
        runpy.run_path(path)[name](*arguments)
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(left.code is not None)
    except Exception:
        traceback.print_exc()
        return 1
    return 0


WORK = {"node": run_node, "function": run_function}


def serve(address: str) -> None:
    """Connect to `address` and execute the received commands; their output goes to a file next to it."""
    rank = next((os.environ[name] for name in _RANK if name in os.environ), str(os.getpid()))
    folder = Path(address).parent
    written = folder / f"rank-{rank}.txt"
    file = os.open(written, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    for standard in (1, 2):
        os.dup2(file, standard)
    line = socket.socket(socket.AF_UNIX)
    line.connect(address)
    connection = Connection(line.detach())
    connection.send((rank, os.getpid(), str(written)))
    count = 0
    while True:
        try:
            kind, words = connection.recv()
        except EOFError:
            return
        count += 1
        os.ftruncate(1, 0)
        status = WORK[kind](str(folder / f"{count}-{rank}"), *words)
        # What frees itself across ranks does so on all of them at once.
        gc.collect()
        sys.stdout.flush()
        sys.stderr.flush()
        connection.send(status)


if __name__ == "__main__":
    serve(sys.argv[1])
