# SPDX-License-Identifier: BSD-3-Clause
"""The state of the wave solver: unknowns, anelastic stresses, peak velocities and samples of the receivers.

The rows of a state are sorted along the curve of the elements; those of the solver are in the order of its mesh.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.solver.state import RowSet, State
from seiche.waves.mesh import Mesh
from seiche.waves.steps import Parts

#: The name of the row set.
ELEMENTS = "elements"
#: Names of arrays besides the unknowns: largest squared velocities on a side, anelastic stresses, samples.
PEAK, MEMORY, SAMPLES = "peak", "memory", "samples"
#: Steps and factors of changes of source amplitudes.
AMPLITUDES = "amplitudes"


def keys_of(mesh: Mesh) -> npt.NDArray[np.int64]:
    """Return the numbers of the elements of this rank along the curve, ascending."""
    return np.sort(mesh.number).astype(np.int64)


def state_of(step: int, mesh: Mesh, unknowns: Sequence[str], values: npt.NDArray[Any], parts: Parts) -> State:
    """Return the state after `step` steps with the unknowns `values`, (elements, unknowns, nodes) (collective)."""
    order = np.argsort(mesh.number)
    arrays = {name: np.ascontiguousarray(values[order, field]) for field, name in enumerate(unknowns)}
    if parts.peak is not None:
        squares = parts.peak.squares()
        rows = np.zeros((mesh.count, *squares.shape[1:]))
        rows[parts.peak.elements] = squares
        arrays[PEAK] = rows[order]
    if parts.memory is not None:
        arrays[MEMORY] = np.ascontiguousarray(parts.memory.state()[order])
    replicated = {SAMPLES: parts.receivers.samples()} if parts.receivers is not None else {}
    if parts.sources is not None and len(record := parts.sources.record()):
        replicated[AMPLITUDES] = record
    return State(step, {ELEMENTS: RowSet(keys_of(mesh), mesh.total, arrays)}, replicated)


def values_of(state: State, mesh: Mesh, unknowns: Sequence[str], nodes: int) -> npt.NDArray[Any]:
    """Return the unknowns of a state, (elements, unknowns, nodes); CaseError for a missing array or another shape."""
    values = np.empty((mesh.count, len(unknowns), nodes))
    order = np.argsort(mesh.number)
    for field, name in enumerate(unknowns):
        if name not in state or state[name].shape != (mesh.count, nodes):
            raise CaseError(f"state: the array {name!r} of the elements is missing or not of shape {mesh.count, nodes}")
        values[order, field] = state[name]
    return values


def restore(parts: Parts, state: State, mesh: Mesh) -> None:
    """Restore anelastic stresses, peak velocities and samples of `state`."""
    order = np.argsort(mesh.number)
    if parts.sources is not None and AMPLITUDES in state:
        parts.sources.restore(state[AMPLITUDES])
    if parts.memory is not None:
        memory = np.empty(parts.memory.shape)
        memory[order] = state[MEMORY]
        parts.memory.set_state(memory)
    if parts.peak is not None and PEAK in state:
        squares = np.empty((mesh.count, *state[PEAK].shape[1:]))
        squares[order] = state[PEAK]
        parts.peak.load(squares[parts.peak.elements])
    if parts.receivers is not None:
        parts.receivers.resume(state[SAMPLES] if SAMPLES in state else None, state.step)
