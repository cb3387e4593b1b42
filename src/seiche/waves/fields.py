# SPDX-License-Identifier: BSD-3-Clause
"""Fields of elements by name: the unknowns with the incident fields of point sources, and derived fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array


def host_fields(solver: Any, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Return fields on the host, see `WaveSolver.fields`."""
    values = solver.values()
    for elements, total in _totals(solver):
        values[elements] = total
    return _fields_by_name(solver, values, names)


def device_fields(solver: Any, names: Sequence[str]) -> dict[str, Array]:
    """Return fields on the device, see `WaveSolver.device_fields`."""
    fields, totals = _fields_by_name(solver, solver.u, names), list(_totals(solver))
    for name, values in fields.items():
        if totals or (name == "pressure" and solver.medium != "acoustic"):
            fields[name] = solver.derived_field(name, values.shape, values.dtype)
            fields[name][...] = values
    for elements, total in totals:
        rows = solver.backend.upload(elements)
        for name, values in _fields_by_name(solver, total, names).items():
            fields[name][rows] = solver.backend.upload(np.ascontiguousarray(values))
    return fields


def _totals(solver: Any) -> Iterator[tuple[npt.NDArray[np.intp], npt.NDArray[Any]]]:
    """Yield the elements of this rank in boxes around sources, and their unknowns with the incident fields."""
    incident = solver.sources.incident if solver.sources is not None else None
    if incident is not None and len(incident.elements):
        total = solver.backend.download(solver.u[solver.backend.upload(incident.elements)])
        incident.add_to(total, solver.step)
        yield incident.elements, total


def _fields_by_name(solver: Any, values: Array, names: Sequence[str]) -> dict[str, Any]:
    """Return fields of unknowns, (elements, unknowns, nodes), by name."""
    fields, column = dict[str, Any](), {name: k for k, name in enumerate(solver.unknowns)}
    dim, acoustic = solver.mesh.dim, solver.medium == "acoustic"
    for name in names:
        if name == "velocity":
            fields[name] = values[:, 1:] if acoustic else values[:, :dim]
        elif name == "pressure":
            fields[name] = values[:, 0] if acoustic else -values[:, dim : 2 * dim].mean(1)
        else:
            fields[name] = values[:, column[name]]
    return fields
