# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints of a run: what must be equal for a run to go on from one, and the way there and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from seiche.case.averages import WindowAverages
from seiche.case.setup import Setup
from seiche.errors import CaseError

if TYPE_CHECKING:
    from seiche.domain.world import World
    from seiche.flow import Solver
    from seiche.io.background import Job
    from seiche.io.checkpoint import Checkpoint


#: Before the numbers of Windkessel outlets among the attributes of a checkpoint.
_IOLETS = "iolets."


def model_fingerprint(setup: Setup) -> str:
    """Return the lattice, units and rheology as text; iolets and forces may change when a run goes on."""
    model, units = setup.model, setup.units
    return repr((model.velocity_set, model.collision, model.rheology, units.spacing, units.step, units.density))


def checkpoint_of(
    path: Path,
    setup: Setup,
    solver: Solver,
    averages: WindowAverages | None = None,
    finished: Callable[[bool], None] = lambda complete: None,
) -> Job:
    """Return the job that writes the present state to `path` (collective), keeping the file there until it is complete.

    `finished` is called in the end with whether it is.
    """
    from seiche.io.checkpoint import checkpoint_job

    arrays, samples = averages.state() if averages is not None else ({}, {})
    return checkpoint_job(
        path,
        solver.world,
        time_step=solver.time_step,
        owned=solver.owned,
        arrays={**solver.state_rows(), **arrays},
        n_sites=len(setup.vessel.sites),
        attributes={
            "geometry": setup.vessel.sites.fingerprint,
            "model": model_fingerprint(setup),
            "seconds": solver.time_step * setup.units.step,
            **samples,
            **{_IOLETS + name: value for name, value in solver.iolet_state().items()},
        },
        finished=finished,
    )


def resume(path: Path, setup: Setup, solver: Solver, world: World) -> Checkpoint:
    """Put the state in `path` into `solver` and return it.

    Raises CaseError when it belongs to another geometry, fluid or lattice.
    """
    from seiche.io.checkpoint import read_checkpoint

    try:
        checkpoint = read_checkpoint(path, world, solver.owned)
    except OSError as error:
        raise CaseError(f"--restart {path}: cannot read the checkpoint: {error.strerror or error}") from None
    if checkpoint.attributes.get("geometry") != setup.vessel.sites.fingerprint:
        raise CaseError(f"--restart {path}: the checkpoint belongs to another geometry than {setup.source}")
    if checkpoint.attributes.get("model") != model_fingerprint(setup):
        raise CaseError(
            f"--restart {path}: the checkpoint belongs to another fluid, lattice or time step than {setup.source}"
        )
    iolets = {name.removeprefix(_IOLETS): v for name, v in checkpoint.attributes.items() if name.startswith(_IOLETS)}
    solver.load_state(checkpoint.arrays, checkpoint.time_step, iolets)
    return checkpoint
