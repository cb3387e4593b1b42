# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints of a run: what must be equal for a run to go on from one, and the way there and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.case.flow.averages import WindowAverages
from seiche.case.flow.setup import Setup
from seiche.errors import CaseError

if TYPE_CHECKING:
    from seiche.domain.world import World
    from seiche.flow import Solver
    from seiche.io.background import Job
    from seiche.io.state import State


#: Before the numbers of Windkessel outlets among the attributes of a checkpoint.
_IOLETS = "iolets."
#: The name of the cells in it, and of the row set.
_CELLS, _ROWS = "cells", "sites"


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
    cells: tuple[npt.NDArray[np.float64], str] | None = None,
) -> Job:
    """Return the job that writes the present state to `path` (collective), keeping the file there until it is complete.

    `finished` is called in the end with whether it is; `cells` are the numbers of the cells and the note about them.
    """
    from seiche.io.checkpoint import checkpoint_job
    from seiche.io.state import RowSet, State

    arrays, samples = averages.state() if averages is not None else ({}, {})
    note = {}
    if cells is not None:
        numbers, text = cells
        arrays = {**arrays, _CELLS: spread_over_sites(numbers, len(setup.vessel.sites))[solver.owned]}
        note = {_CELLS: text}
    rows = RowSet(solver.owned, len(setup.vessel.sites), {**solver.state_rows(), **arrays})
    return checkpoint_job(
        path,
        solver.world,
        State(solver.time_step, {_ROWS: rows}),
        attributes={
            "geometry": setup.vessel.sites.fingerprint,
            "model": model_fingerprint(setup),
            "seconds": solver.time_step * setup.units.step,
            **samples,
            **note,
            **{_IOLETS + name: value for name, value in solver.iolet_state().items()},
        },
        finished=finished,
    )


def spread_over_sites(numbers: npt.NDArray[np.float64], sites: int) -> npt.NDArray[np.float64]:
    """Return any number of numbers as rows, one a site, (sites, k): a checkpoint is made of such rows."""
    width = max(1, -(-len(numbers) // sites))
    return np.pad(numbers, (0, width * sites - len(numbers))).reshape(sites, width)


def cells_state(checkpoint: State, world: World, owned: npt.NDArray[np.int64]) -> dict[str, Any] | None:
    """Return the numbers of the cells in a checkpoint and the note about them, None without (collective)."""
    if _CELLS not in checkpoint:
        return None
    parts = world.allgather((owned, checkpoint[_CELLS]))
    rows = np.concatenate([values for _, values in parts])
    numbers = rows[np.argsort(np.concatenate([sites for sites, _ in parts]), kind="stable")]
    return {"numbers": numbers.reshape(-1), "note": json.loads(str(checkpoint.attributes[_CELLS]))}


def resume(path: Path, setup: Setup, solver: Solver, world: World) -> State:
    """Put the state in `path` into `solver` and return it.

    Raises CaseError when it belongs to another geometry, fluid or lattice.
    """
    from seiche.io.checkpoint import inspect_checkpoint, read_checkpoint

    try:
        if inspect_checkpoint(path).attributes.get("geometry") != setup.vessel.sites.fingerprint:
            raise CaseError(f"--restart {path}: the checkpoint belongs to another geometry than {setup.source}")
        checkpoint = read_checkpoint(path, world, {_ROWS: solver.owned})
    except OSError as error:
        raise CaseError(f"--restart {path}: cannot read the checkpoint: {error.strerror or error}") from None
    if checkpoint.attributes.get("model") != model_fingerprint(setup):
        raise CaseError(
            f"--restart {path}: the checkpoint belongs to another fluid, lattice or time step than {setup.source}"
        )
    iolets = {name.removeprefix(_IOLETS): v for name, v in checkpoint.attributes.items() if name.startswith(_IOLETS)}
    if (setup.cells is not None) != (_CELLS in checkpoint):
        word = "no cells" if setup.cells is not None else "cells"
        raise CaseError(f"--restart {path}: the checkpoint has {word}, unlike {setup.source}")
    arrays = {name: rows[:] for name, rows in checkpoint.rows[_ROWS].arrays.items()}
    solver.load_state(arrays, checkpoint.step, iolets)
    return checkpoint


def differences(here: Mapping[str, Any], there: Mapping[str, Any], name: str = "") -> Iterator[str]:
    """Yield in which keys of both, a line each, nested tables of a case differ from those in a checkpoint."""
    for key in here.keys() & there.keys():
        one, two, path = here[key], there[key], f"{name}.{key}" if name else key
        if isinstance(one, Mapping) and isinstance(two, Mapping):
            yield from differences(one, two, path)
        elif one != two:
            said = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in (one, two)]
            yield f"{path} is {said[0]}, in the checkpoint {said[1]}"
