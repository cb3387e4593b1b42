# SPDX-License-Identifier: BSD-3-Clause
"""Files to which all ranks add states, and which get their final name with the first complete state."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from seiche.domain.world import World
from seiche.io.background import FunctionJob, Job
from seiche.io.files import Closing, part_path, publish
from seiche.io.parallel import ParallelFile


class GrowingFile(Closing):
    """A file of states; its name has the suffix ".part" until the first state is complete and on the disk.

    Attributes:
        path: name of the file; after the first state its final name, which a run may change.
        steps: number of complete states.
    """

    _file: ParallelFile

    def __init__(self, path: str | os.PathLike[str], world: World) -> None:
        """Begin without states; the derived class creates `_file` under the temporary name."""
        self.path, self.steps = Path(path), 0
        self._planned, self._world = 0, world

    @property
    def associated_paths(self) -> Sequence[Path]:
        """Return the names of further files, which get their final names before this one."""
        return ()

    @property
    def size_after_first_record(self) -> int | None:
        """Return the size of the file with one state, which later states do not change; None for files with a mark."""
        return None

    def _job(self, store: Callable[[int], None], commit: Callable[[int], None]) -> Job:
        """Return the job that adds a state.

        `store(number)` writes this rank's part of state `number`; then `commit(number)` on rank 0 makes it valid.
        """
        number = self._planned
        self._planned += 1
        return FunctionJob(
            lambda: store(number),
            lambda stored: self._commit(number, commit),
            partial(self._complete, number),
        )

    def _commit(self, number: int, commit: Callable[[int], None]) -> None:
        commit(number)
        if number == 0:
            for path in self.associated_paths:
                publish(part_path(path), path)
            self.path = publish(part_path(self.path), self.path, self.size_after_first_record)

    def _complete(self, number: int, complete: bool) -> None:
        """Count state `number` if it is `complete`; otherwise the next state replaces it."""
        if complete:
            self.steps = number + 1
        else:
            self._planned = min(self._planned, number)

    def reopen(self) -> None:
        """Open the closed file for further states (collective); OSError on every rank if any cannot open it."""
        self.path = self._world.bcast(self.path)
        self._file = ParallelFile(self.path, self._world)

    def close(self) -> None:
        """Close the file, and remove it and its companions if there is no state. A second call does nothing."""
        self._file.close()
        if self.steps == 0 and self._world.rank == 0:
            for path in (self.path, *self.associated_paths):
                with suppress(OSError):
                    part_path(path).unlink()
