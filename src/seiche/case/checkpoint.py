# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints of a run of any kind: written by schedule or at a stop, and read by a restart."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from seiche.case.kind import CaseRun, Match, Setup
from seiche.case.output import Place, Scheduled
from seiche.case.schedule import Schedule
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.io.background import Job, write_now
from seiche.io.checkpoint import checkpoint_job, inspect_checkpoint, read_checkpoint
from seiche.solver import SolverBase, State


class CheckpointFile(Scheduled):
    """The file from which a run can continue; a new state replaces the one before once it is complete."""

    label = "checkpoints"
    writes = True

    def __init__(self, run: CaseRun, setup: Setup, path: Path, drain: Callable[[], None]) -> None:
        """Write the state of `run` to `path`; `drain` waits for all jobs, as two of one file exclude each other."""
        self._run, self._setup, self.path, self._drain = run, setup, path, drain
        every = setup.case.output.checkpoint.every
        self.schedule = Schedule(setup.steps_of(every)) if every is not None else None
        #: Step of the last complete checkpoint, None without.
        self.last: int | None = None
        self._saving = False

    @property
    def places(self) -> Sequence[Place]:
        """Return the file."""
        return (Place("output.checkpoint.file", self.path, "checkpoint"),)

    def take(self) -> Job:
        """Return the job that writes the present state."""
        if self._saving:  # two would share a temporary name
            self._drain()
        run, step = self._run, self._run.solver.step

        def finished(complete: bool) -> None:
            self._saving = False
            self.last = step if complete else self.last

        self._saving = True
        attributes: dict[str, str | float | int] = {name: match.value for name, match in run.matches().items()}
        attributes |= {"seconds": step * self._setup.dt, "kind": self._setup.case.solver}
        if run.steering.changed:
            attributes["steering"] = json.dumps(run.steering.changed)
        return checkpoint_job(self.path, run.solver.world, run.state(), attributes=attributes, finished=finished)

    def save(self) -> None:
        """Write the present state and wait until it is complete (collective)."""
        write_now(self.take(), self._run.solver.world)

    def describe(self) -> str:
        """Return which checkpoint there is, for messages."""
        if self.last is None:
            return "no checkpoint was written"
        return f"last good checkpoint: {self.path} of step {self.last}"


class CheckpointRestart:
    """A checkpoint from which a run continues."""

    def __init__(self, path: Path, world: World) -> None:
        """Remember the checkpoint `path`."""
        self.path, self._world = path, world
        self.steering = "{}"

    def resume(
        self, setup: Setup, solver: SolverBase, matches: Mapping[str, Match], keys: Mapping[str, Any] | None = None
    ) -> State:
        """Put the state of the checkpoint into `solver` and return it (collective).

        Args:
            setup: the case that continues.
            solver: its solver, at rest.
            matches: what must be equal, by the names of the attributes.
            keys: rows that are needed, those of the solver by default.

        Raises:
            CaseError: it cannot be read, belongs to another case, or lies beyond the end of the run.
            FormatError: it is no checkpoint, or damaged.
        """
        try:
            found = inspect_checkpoint(self.path).attributes
            kind = found.get("kind", setup.case.solver)  # version 1 does not tell
            if kind != setup.case.solver:
                raise CaseError(f'--restart {self.path}: the checkpoint is one of solver = "{kind}"')
            for name, match in matches.items():
                if found.get(name) != match.value:
                    remedy = f"; {match.remedy.format(found.get(name), match.value)}" if match.remedy else ""
                    raise CaseError(
                        f"--restart {self.path}: the checkpoint belongs to another {match.what} than"
                        f" {setup.source}{remedy}"
                    )
            state = read_checkpoint(self.path, self._world, solver.keys if keys is None else keys)
        except OSError as error:
            raise CaseError(f"--restart {self.path}: cannot read the checkpoint: {error.strerror or error}") from None
        if state.step > setup.steps:
            raise CaseError(
                f"--restart {self.path}: its step {state.step} is beyond the end of {setup.source} at step"
                f" {setup.steps}; make the run longer"
            )
        solver.set_state(state)
        self.steering = str(found.get("steering", "{}"))
        return state

    def restore_steering(self, run: CaseRun) -> None:
        """Set again what the run had changed by then; CaseError if the case lacks one of these numbers."""
        for name, value in json.loads(self.steering).items():
            if name not in run.steering:
                raise CaseError(f"--restart {self.path}: the run had set {name!r}, which the case does not have")
            run.steering[name] = value
