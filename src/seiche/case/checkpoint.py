# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints of all kinds of case, written at scheduled steps or when a run is stopped, and read by a restart."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from seiche.case.kind import CaseRun, Match, Setup
from seiche.case.output import OutputTarget, Scheduled
from seiche.case.schedule import Schedule
from seiche.domain.world import World
from seiche.errors import CaseError, FormatError
from seiche.io.background import Job, write_now
from seiche.io.checkpoint import create_checkpoint_job, inspect_checkpoint, read_checkpoint
from seiche.io.files import cause_of
from seiche.solver import SolverBase, State


class CheckpointFile(Scheduled):
    """Checkpoint file of a run; a new state replaces the previous one when it is complete."""

    label = "checkpoints"
    writes = True

    def __init__(self, run: CaseRun, setup: Setup, path: Path, drain: Callable[[], None]) -> None:
        """Write the state of `run` to `path`; `drain` waits for all unfinished jobs."""
        self._run, self._setup, self.path, self._drain = run, setup, path, drain
        every = setup.case.output.checkpoint.every
        self.schedule = Schedule(setup.steps_of(every)) if every is not None else None
        #: Step of the last complete checkpoint, or None.
        self.last: int | None = None
        self._saving = False

    @property
    def targets(self) -> Sequence[OutputTarget]:
        """Return the file."""
        return (OutputTarget("output.checkpoint.file", self.path, "checkpoint"),)

    def take(self) -> Job:
        """Return the job that writes the current state."""
        if self._saving:  # both would use the same temporary name
            self._drain()
        run, step = self._run, self._run.solver.step

        def finished(complete: bool) -> None:
            self._saving = False
            self.last = step if complete else self.last

        self._saving = True
        attributes: dict[str, str | float | int] = {name: match.value for name, match in run.matches().items()}
        attributes |= {"seconds": step * self._setup.dt, "kind": self._setup.case.solver}
        attributes |= {"steering": json.dumps(run.steering.changed)} if run.steering.changed else {}
        return create_checkpoint_job(
            self.path, run.solver.world, run.state(), attributes=attributes, on_finish=finished
        )

    def save(self) -> None:
        """Write the current state and wait until it is complete (collective)."""
        write_now(self.take(), self._run.solver.world)

    def describe(self) -> str:
        """Describe the last complete checkpoint, for messages."""
        last = f"last good checkpoint: {self.path} of step {self.last}"
        return last if self.last is not None else "no checkpoint was written"


def attributes_of(path: Path) -> Mapping[str, Any]:
    """Return the attributes of a checkpoint before it is read; empty if that fails, which `resume` then reports."""
    if not (path.is_file() or path.is_dir()):
        return {}
    try:
        return inspect_checkpoint(path).attributes
    except (OSError, FormatError):
        return {}


class CheckpointRestart:
    """Checkpoint from which a run continues."""

    def __init__(self, path: Path, world: World) -> None:
        """Store the path of the checkpoint; it is read by `resume`."""
        self.path, self._world = path, world
        self.steering = "{}"

    def resume(
        self, setup: Setup, solver: SolverBase, matches: Mapping[str, Match], keys: Mapping[str, Any] | None = None
    ) -> State:
        """Load the state of the checkpoint into `solver` and return it (collective).

        Args:
            setup: the case.
            solver: its solver in the initial state.
            matches: values that the checkpoint must have, by attribute name.
            keys: keys of the required rows; by default those of the solver.

        Raises:
            CaseError: the checkpoint cannot be read, belongs to another case, or is later than the end of the run.
            FormatError: the file is damaged or not a checkpoint.
        """
        if self.path.exists() and not (self.path.is_file() or self.path.is_dir()):  # opening a pipe would wait
            raise CaseError(f"--restart {self.path}: is not a regular file")
        try:
            metadata = inspect_checkpoint(self.path)
            attributes = metadata.attributes
            kind = attributes.get("kind", setup.case.solver)  # absent in version 1
            if kind != setup.case.solver:
                raise CaseError(f'--restart {self.path}: the checkpoint belongs to a case with solver = "{kind}"')
            for name, match in matches.items():
                stored = attributes.get(name)
                if metadata.step > match.since and not match.accepts(stored):
                    remedy = f"; {match.remedy.format(stored, match.value)}" if match.remedy else ""
                    raise CaseError(
                        f"--restart {self.path}: the checkpoint was written with a different {match.description} than "
                        f"{setup.source}{remedy}"
                    )
            state = read_checkpoint(self.path, self._world, solver.keys if keys is None else keys)
        except OSError as error:
            raise CaseError(f"--restart {self.path}: cannot read the checkpoint: {cause_of(error)}") from None
        if state.step > setup.steps:
            raise CaseError(
                f"--restart {self.path}: the checkpoint is at step {state.step}, but {setup.source} ends the run at "
                f"step {setup.steps}; increase the duration of the run"
            )
        solver.set_state(state)
        self.steering = str(attributes.get("steering", "{}"))
        return state

    def restore_steering(self, run: CaseRun) -> None:
        """Restore the values that callbacks changed; CaseError if the case lacks one of them."""
        for name, value in json.loads(self.steering).items():
            if name not in run.steering:
                raise CaseError(
                    f"--restart {self.path}: the checkpoint contains a changed {name!r}, but the case has no such value"
                )
            run.steering[name] = value
