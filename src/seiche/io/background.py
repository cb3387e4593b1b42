# SPDX-License-Identifier: BSD-3-Clause
"""Files written beside the steps: one thread a rank stores, and the ranks agree now and then on what is complete.

The thread calls nothing collective, so it needs no thread support of the MPI library: the main threads tell each other
how far their threads are. A job counts only when every rank has stored its part; rank 0's thread then commits it. Jobs
are done in the order in which they came. Reasons: docs/decisions/0015-output-beside-the-steps.md.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread
from typing import Any

from seiche.domain.world import World
from seiche.io.parallel import all_or_none


class Job(ABC):
    """One state of a file: stored by all ranks, then made to count by rank 0."""

    @abstractmethod
    def store(self) -> Any:
        """Write this rank's part and force it to the disk; what is returned goes to rank 0. Nothing collective.

        Raises:
            OSError: the disk refused.
        """

    @abstractmethod
    def commit(self, stored: list[Any]) -> None:
        """Make the state count, on rank 0, after all ranks have stored; `stored` is what they returned.

        Raises:
            OSError: the disk refused; the states before stay valid.
        """

    @abstractmethod
    def finish(self, complete: bool) -> None:
        """Tidy up on every rank, in the main thread: the state counts, or never will."""


def write_now(job: Job, world: World) -> None:
    """Store and commit `job` (collective).

    Raises:
        OSError: on every rank, if the disk refused on any.
    """
    complete = False
    try:
        stored: Any = None
        with all_or_none(world):
            stored = job.store()
        everything = world.gather(stored)
        with all_or_none(world):
            if everything is not None:
                job.commit(everything)
        complete = True
    finally:
        job.finish(complete)


class BackgroundWriter:
    """Does jobs beside the steps. `submit`, `look` and `drain` are collective, `stop` is not.

    Args:
        world: the ranks; all must submit the same jobs in the same order.
        limit: jobs that may be unfinished at once; `submit` waits for the oldest before it takes one more.

    Attributes:
        waited: seconds that the main thread waited for the disk.
        submitted: jobs so far.
    """

    def __init__(self, world: World, limit: int) -> None:
        """Start without a job; the thread starts with the first."""
        self.waited, self.submitted = 0.0, 0
        self._world, self._limit = world, limit
        #: Unfinished jobs, the oldest first; the same on every rank, as are the two counts of all that went before.
        self._jobs: deque[Job] = deque()
        self._handed = self._finished = 0
        self._changed = Condition()
        # What the thread changes, under `_changed`:
        self._tasks: deque[Callable[[], None]] = deque()
        self._results: dict[int, Any] = {}
        self._stored = self._committed = 0
        self._error: BaseException | None = None
        self._ended = False
        self._thread: Thread | None = None

    @property
    def unfinished(self) -> int:
        """Return the number of jobs that are not known to be complete."""
        return len(self._jobs)

    def submit(self, job: Job) -> None:
        """Give `job` to the thread, after waiting if too many are unfinished (collective).

        Raises:
            OSError: on every rank, if a job before could not be written.
        """
        self.make_room()
        number = self.submitted
        self._jobs.append(job)
        self.submitted += 1
        self._ask(lambda: self._store(number, job))

    def make_room(self) -> None:
        """Wait until one more job may be submitted (collective)."""
        while len(self._jobs) >= self._limit:
            self._finish_oldest()

    def look(self) -> None:
        """Agree on what is stored, have it committed, and let go of what is complete; waits for no disk (collective).

        Raises:
            OSError: on every rank, if a job could not be written.
        """
        if not self._jobs:
            return
        with self._changed:
            error, stored, committed = self._error, self._stored, self._committed
        with all_or_none(self._world):
            if error is not None:
                raise error
        progress = self._world.allgather((stored, committed))
        everywhere, complete = min(number for number, _ in progress), progress[0][1]
        if everywhere > self._handed:
            numbers = range(self._handed, everywhere)
            gathered = self._world.gather([self._results.pop(number) for number in numbers])
            for k, number in enumerate(numbers):
                if gathered is not None:
                    self._ask_commit(self._jobs[number - self._finished], [parts[k] for parts in gathered])
            self._handed = everywhere
        while self._finished < complete:
            self._jobs.popleft().finish(True)
            self._finished += 1

    def drain(self) -> None:
        """Wait until every job is complete (collective).

        Raises:
            OSError: on every rank, if a job could not be written.
        """
        while self._jobs:
            self._finish_oldest()

    def stop(self) -> None:
        """End the thread after what it is at; what is not complete is given up. A second call does nothing."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        while self._jobs:
            self._jobs.popleft().finish(False)
            self._finished += 1

    def _finish_oldest(self) -> None:
        begin, wanted = time.perf_counter(), self._finished + 1
        self._await(lambda: self._stored >= wanted)
        self.look()
        if self._world.rank == 0:
            self._await(lambda: self._committed >= wanted)
        self.look()
        self.waited += time.perf_counter() - begin

    def _await(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: condition() or self._error is not None)

    def _ask(self, task: Callable[[], None]) -> None:
        with self._changed:
            self._tasks.append(task)
            self._changed.notify_all()
        if self._thread is None:
            self._ended = False
            # It must not keep a process alive whose main thread has failed.
            self._thread = Thread(target=self._work, name="seiche output", daemon=True)
            self._thread.start()

    def _ask_commit(self, job: Job, stored: list[Any]) -> None:
        def commit() -> None:
            job.commit(stored)
            with self._changed:
                self._committed += 1

        self._ask(commit)

    def _store(self, number: int, job: Job) -> None:
        result = job.store()
        with self._changed:
            self._results[number] = result
            self._stored += 1

    def _work(self) -> None:
        """Do tasks until the end or the first error."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._tasks) or self._ended)
                if self._ended:
                    return
                task = self._tasks.popleft()
            try:
                task()
            except BaseException as error:  # the main thread raises it
                with self._changed:
                    self._error = error
                    self._changed.notify_all()
                return
            # What the task held, such as the values of a snapshot, must not live until the next one.
            del task
            with self._changed:
                self._changed.notify_all()
