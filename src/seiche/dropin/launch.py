# SPDX-License-Identifier: BSD-3-Clause
"""Which GPU a process of kspaceFirstOrder-CUDA has; several GPUs are as many ranks, one each, under mpiexec."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from seiche.domain.world import World
from seiche.errors import CaseError

#: Set in ranks that `start_ranks` started, so that they start no others.
_STARTED = "SEICHE_DROPIN_RANKS"
_CALL = "from seiche.dropin.command import cuda; cuda()"


def device_of(gpus: Sequence[int], world: World) -> str:
    """Return the device of this rank: the first free GPU for one rank without a number, else one of those named.

    Raises:
        CaseError: more or fewer GPUs are named than there are ranks on this host.
    """
    if not gpus:
        return "cuda:free" if world.size == 1 else "cuda"
    if len(gpus) != world.local_size:
        if os.environ.get(_STARTED):
            raise CaseError("-g: the ranks do not know of each other; mpi4py and mpiexec are of two MPI libraries")
        named = ",".join(map(str, gpus))
        raise CaseError(f"-g {named}: names {len(gpus)} GPUs, but {world.local_size} ranks run on this host")
    return f"cuda:{gpus[world.local_rank]}"


def start_ranks(ranks: int, arguments: Sequence[str]) -> None:
    """Become mpiexec, which runs the same command line on `ranks` ranks; returns only in one of them.

    Raises:
        CaseError: there is no MPI on this machine.
    """
    if os.environ.get(_STARTED):
        return
    beside = Path(sys.executable).with_name("mpiexec")
    launcher = str(beside) if beside.exists() else shutil.which("mpiexec")
    if launcher is None or importlib.util.find_spec("mpi4py") is None:
        missing = "mpiexec" if launcher is None else "mpi4py"
        raise CaseError(f"-g: several GPUs need MPI, and {missing} is not installed; name one GPU, or install it")
    sys.stdout.flush()
    sys.stderr.flush()
    command = [launcher, "-n", str(ranks), sys.executable, "-c", _CALL, *arguments]
    os.execve(launcher, command, {**os.environ, _STARTED: str(ranks)})
