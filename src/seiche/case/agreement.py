# SPDX-License-Identifier: BSD-3-Clause
"""Ranks agree on results and on errors, so that a failing job says one thing once.

Work that would be the same on every rank (reading a file, making a geometry) is done by rank 0 and handed to the
others; an error of rank 0 is raised by all of them. An error of a single rank ends the others through `end_of_rank`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from seiche.errors import FormatError, SeicheError

if TYPE_CHECKING:
    from seiche.domain.world import World

Result = TypeVar("Result")
#: Message tag by which a failing rank tells the others; no other part of a run uses point-to-point messages of it.
_FAILED = 31_013
#: Seconds in which ranks that fail for the same reason find each other.
_PATIENCE = 0.5
#: Seconds for the launcher to pass on what a rank has printed: it stops listening when a rank aborts.
_FORWARD = 0.2


def on_rank_zero(world: World, work: Callable[[], Result]) -> Result:
    """Return what `work` returns on rank 0, on every rank; a SeicheError of rank 0 is raised by all."""
    if world.size == 1:
        return work()
    answer: tuple[Result | None, type[SeicheError] | None, tuple[object, ...]] = (None, None, ())
    if world.rank == 0:
        try:
            answer = (work(), None, ())
        except SeicheError as error:
            details = (error.path, error.place, error.reason) if isinstance(error, FormatError) else error.args
            answer = (None, type(error), details)
    answer = world.bcast(answer)
    result, kind, details = answer
    if kind is not None:
        raise kind(*details)
    return cast(Result, result)


def end_of_rank(world: World | None, message: str, status: int = 2) -> int:
    """Print `message` once for all failing ranks and return the exit status; ends ranks that did not fail.

    Every failing rank tells the others. The lowest of them prints. When all ranks failed they simply return; when
    some did not, they would wait for messages for ever, so the one that printed aborts the job.
    """
    comm = world.comm if world is not None else None
    if world is None or comm is None or world.size == 1:
        print(message, file=sys.stderr, flush=True)
        return status
    requests = [comm.isend(None, dest=rank, tag=_FAILED) for rank in range(world.size) if rank != world.rank]
    failed, deadline = {world.rank}, time.monotonic() + _PATIENCE
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
        time.sleep(10 * _PATIENCE)  # the lowest failing rank aborts; this one only makes sure of the end
    # The message stands; the MPI library would add a line of its own for every rank that aborts.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    time.sleep(_FORWARD)
    comm.Abort(status)
    return status
