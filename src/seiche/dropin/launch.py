# SPDX-License-Identifier: BSD-3-Clause
"""The GPU of a process of kspaceFirstOrder-CUDA; for several GPUs, mpiexec starts one rank for each."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from seiche.domain.world import World
from seiche.errors import CaseError

#: Environment variable of the ranks that `start_ranks` started; they start no further ranks.
_RANKS_VARIABLE = "SEICHE_DROPIN_RANKS"
_RANK_PROGRAM = "from seiche.dropin.command import cuda; cuda()"


def device_of(gpus: Sequence[int], world: World) -> str:
    """Return the GPU of this rank: a selected one, or the first free one; raise CaseError if their number is wrong."""
    if not gpus:
        return "cuda:free" if world.size == 1 else "cuda"
    if len(gpus) != world.local_size:
        if os.environ.get(_RANKS_VARIABLE):
            raise CaseError("-g: the ranks are not connected; mpi4py and mpiexec use different MPI libraries")
        gpu_list = ",".join(map(str, gpus))
        raise CaseError(
            f"-g {gpu_list}: {len(gpus)} GPUs for {world.local_size} ranks on this host; select one GPU per rank"
        )
    return f"cuda:{gpus[world.local_rank]}"


def start_ranks(ranks: int, arguments: Sequence[str]) -> None:
    """Replace this process by mpiexec with the same command line on `ranks` ranks; raise CaseError without MPI."""
    if os.environ.get(_RANKS_VARIABLE):
        return
    local_launcher = Path(sys.executable).with_name("mpiexec")
    launcher = str(local_launcher) if local_launcher.exists() else shutil.which("mpiexec")
    if launcher is None or importlib.util.find_spec("mpi4py") is None:
        missing_program = "mpiexec" if launcher is None else "mpi4py"
        raise CaseError(
            f"-g: several GPUs require MPI, but {missing_program} is not installed; install it or select one GPU"
        )
    sys.stdout.flush()
    sys.stderr.flush()
    command = [launcher, "-n", str(ranks), sys.executable, "-c", _RANK_PROGRAM, *arguments]
    os.execve(launcher, command, {**os.environ, _RANKS_VARIABLE: str(ranks)})
