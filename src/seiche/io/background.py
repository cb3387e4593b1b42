# SPDX-License-Identifier: BSD-3-Clause
"""Asynchronous output: one writer thread per rank, with occasional agreement of the ranks on progress.

The thread calls no collective, so it needs no thread support of the MPI library; the main threads exchange its
progress. When every rank has stored its part of a job, the thread of rank 0 commits the job. Jobs are executed in the
order of submission. Reasons: docs/decisions/0015-output-during-steps.md.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import copy_context
from threading import Condition, Thread
from typing import Any

from seiche.domain.world import World
from seiche.io.parallel import raise_on_all_ranks


class Job(ABC):
    """One state of a file: stored by all ranks, then committed by rank 0; OSError if writing fails.

    `label` names the output in reports.
    """

    label = "output"

    @abstractmethod
    def store(self) -> Any:
        """Write this rank's part and sync it to the disk, without collectives; the result is sent to rank 0."""

    @abstractmethod
    def commit(self, stored: list[Any]) -> None:
        """Make the state valid, on rank 0, after all ranks have stored; `stored` are their results."""

    @abstractmethod
    def finish(self, complete: bool) -> None:
        """Clean up on every rank, in the main thread, after the state is `complete` or has failed."""


class FunctionJob(Job):
    """A job that consists of three functions."""

    def __init__(
        self, store: Callable[[], Any], commit: Callable[[list[Any]], None], finish: Callable[[bool], None]
    ) -> None:
        """Store the functions."""
        self._store, self._commit, self._finish = store, commit, finish

    def store(self) -> Any:
        """Call the first function."""
        return self._store()

    def commit(self, stored: list[Any]) -> None:
        """Call the second function."""
        self._commit(stored)

    def finish(self, complete: bool) -> None:
        """Call the third function."""
        self._finish(complete)


def write_now(job: Job, world: World) -> None:
    """Store and commit `job` (collective); OSError on every rank if writing failed on any."""
    complete = False
    try:
        stored: Any = None
        with raise_on_all_ranks(world):
            stored = job.store()
        gathered = world.gather(stored)
        with raise_on_all_ranks(world):
            if gathered is not None:
                job.commit(gathered)
        complete = True
    finally:
        job.finish(complete)


class BackgroundWriter:
    """Executes jobs during the steps. All methods except `stop` are collective.

    If writing of a job fails on any rank, a later `submit`, `poll` or `drain` raises its OSError on every rank.

    Args:
        world: the ranks; all must submit the same jobs in the same order.
        limit: maximum number of unfinished jobs; at the limit `submit` waits for the oldest.
        label: returns the context in which the thread writes, such as a range of a profiler.

    Attributes:
        seconds: seconds in which the thread of this rank wrote, by label of the jobs.
        waited: seconds that the main thread waited for the disk.
        submitted: number of jobs so far.
    """

    def __init__(
        self, world: World, limit: int, label: Callable[[str], AbstractContextManager[Any]] = nullcontext
    ) -> None:
        """Start without jobs; the first one starts the thread."""
        self._label, self.seconds = label, dict[str, float]()
        self.waited, self.submitted = 0.0, 0
        self._world, self._limit = world, limit
        #: Unfinished jobs, oldest first, and numbers of jobs sent to commit and finished; the same on every rank.
        self._jobs: deque[Job] = deque()
        self._sent = self._finished = 0
        self._changed = Condition()
        # Shared with the thread, protected by `_changed`:
        self._tasks: deque[Callable[[], None]] = deque()
        self._results: dict[int, Any] = {}
        self._stored = self._committed = 0
        self._error: BaseException | None = None
        self._ended = False
        self._thread: Thread | None = None

    @property
    def unfinished(self) -> int:
        """Return the number of unfinished jobs."""
        return len(self._jobs)

    def submit(self, job: Job) -> None:
        """Queue `job`, after waiting at the limit of unfinished jobs (collective)."""
        self.wait_for_capacity()
        number = self.submitted
        self._jobs.append(job)
        self.submitted += 1
        self._queue(lambda: self._store(number, job))

    def wait_for_capacity(self) -> None:
        """Wait until one more job may be submitted (collective)."""
        while len(self._jobs) >= self._limit:
            self._finish_oldest()

    def poll(self) -> None:
        """Exchange progress, commit stored jobs and finish complete ones, without waiting for the disk (collective)."""
        if not self._jobs:
            return
        with self._changed:
            error, stored, committed = self._error, self._stored, self._committed
        with raise_on_all_ranks(self._world):
            if error is not None:
                raise error
        progress = self._world.allgather((stored, committed))
        stored, complete = min(number for number, _ in progress), progress[0][1]
        if stored > self._sent:
            job_numbers = range(self._sent, stored)
            gathered = self._world.gather([self._results.pop(number) for number in job_numbers])
            if gathered is not None:
                for number, *results in zip(job_numbers, *gathered, strict=True):
                    self._queue_commit(self._jobs[number - self._finished], results)
            self._sent = stored
        while self._finished < complete:
            self._jobs.popleft().finish(True)
            self._finished += 1

    def drain(self) -> None:
        """Wait until every job is complete (collective)."""
        while self._jobs:
            self._finish_oldest()

    def stop(self) -> None:
        """End the thread after its current task and abandon incomplete jobs. A second call does nothing."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        while self._jobs:
            self._jobs.popleft().finish(False)
            self._finished += 1
        self._tasks.clear()  # of abandoned jobs; a later job must not execute them
        self._results.clear()
        self._sent = self._stored = self._committed = self._finished

    def _finish_oldest(self) -> None:
        begin, jobs_needed = time.perf_counter(), self._finished + 1
        self._await(lambda: self._stored >= jobs_needed)
        self.poll()
        if self._world.rank == 0:
            self._await(lambda: self._committed >= jobs_needed)
        self.poll()
        self.waited += time.perf_counter() - begin

    def _await(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: condition() or self._error is not None)

    def _queue(self, task: Callable[[], None]) -> None:
        with self._changed:
            self._tasks.append(task)
            self._changed.notify_all()
        if self._thread is None:
            self._ended = False
            # A daemon: the process ends if its main thread has failed.
            self._thread = Thread(target=copy_context().run, args=(self._work,), name="seiche output", daemon=True)
            self._thread.start()

    def _queue_commit(self, job: Job, stored: list[Any]) -> None:
        def commit() -> None:
            with self._timed(job):
                job.commit(stored)
            with self._changed:
                self._committed += 1

        self._queue(commit)

    def _store(self, number: int, job: Job) -> None:
        with self._timed(job):
            result = job.store()
        with self._changed:
            self._results[number] = result
            self._stored += 1

    @contextmanager
    def _timed(self, job: Job) -> Iterator[None]:
        begin = time.perf_counter()
        with self._label(f"write {job.label}"):
            yield
        self.seconds[job.label] = self.seconds.get(job.label, 0.0) + time.perf_counter() - begin

    def _work(self) -> None:
        """Execute tasks until `stop` or the first error."""
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
            # Free the memory of the task, such as the values of a snapshot, before the next one.
            del task
            with self._changed:
                self._changed.notify_all()
