# SPDX-License-Identifier: BSD-3-Clause
"""Failure reports of parallel jobs, in which each message is printed only once.

An error of work on rank 0 is raised on every rank (`domain.sharing.on_root`). If only some ranks fail, the job aborts.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seiche.domain.world import World

#: Message tag reserved for failing ranks.
_FAILED = 31_013
#: Time in which ranks that fail for the same reason notify each other, s.
_REPORT_SECONDS = 0.5
#: Time for the launcher to forward output before a rank aborts, since it then stops forwarding, s.
_FORWARD_SECONDS = 0.2


def report_failure(world: World | None, message: str, status: int = 2) -> int:
    """Print `message` once for all failing ranks and return the exit status; abort if some ranks did not fail.

    Each failing rank notifies the others, and the lowest one prints the message. If all ranks failed, they return.
    Otherwise the remaining ranks would wait for messages forever, so the printing rank aborts the job.
    """
    comm = world.comm if world is not None else None
    if world is None or comm is None or world.size == 1:
        print(message, file=sys.stderr, flush=True)
        return status
    requests = [comm.isend(None, dest=rank, tag=_FAILED) for rank in range(world.size) if rank != world.rank]
    failed, deadline = {world.rank}, time.monotonic() + _REPORT_SECONDS
    while len(failed) < world.size and time.monotonic() < deadline:
        for rank in set(range(world.size)) - failed:
            if comm.iprobe(source=rank, tag=_FAILED):
                comm.recv(source=rank, tag=_FAILED)
                failed.add(rank)
        time.sleep(0.005)
    if world.rank == min(failed):
        print(message, file=sys.stderr, flush=True)
    if len(failed) == world.size:
        for request in requests:
            request.wait()
        return status
    if world.rank != min(failed):
        time.sleep(10 * _REPORT_SECONDS)  # the lowest failing rank aborts; this one aborts only if that fails
    # MPI_Abort would print another line for each aborting rank.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    time.sleep(_FORWARD_SECONDS)
    comm.Abort(status)
    return status
