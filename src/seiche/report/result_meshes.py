# SPDX-License-Identifier: BSD-3-Clause
"""Results as meshes of PyVista: grids, vessels, elements and cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import BackendUnavailable, CaseError
from seiche.report import result_arrays
from seiche.report.result_arrays import NamedArray, ResultArrays


def result_meshes(result: ResultArrays) -> Any:
    """Return the fields of a result as a mesh in metres; with cells as a MultiBlock of "fluid" and "cells".

    - Grids become ImageData with values at the points. Where values are missing, as outside a vessel, the result is an
      UnstructuredGrid of the voxels around the sites with values.
    - Values at the nodes of elements become an UnstructuredGrid of the small boxes between nodes.
    - Cells become PolyData: their surfaces, with the arrays of each cell at its triangles.

    Vectors have three components. `user_dict` of each mesh has the units by name, and the time in s.

    Raises:
        BackendUnavailable: PyVista is not installed.
        CaseError: the result has no fields and no cells.
    """
    try:
        import pyvista
    except ModuleNotFoundError as error:
        raise BackendUnavailable(f"to_pyvista: {error.name} is not installed: pip install 'seiche[viz]'") from None
    fields = {name: item for name, item in result.arrays.items() if result_arrays.is_field(item)}
    at_nodes = any(result_arrays.is_at_nodes(item) for item in fields.values())
    blocks = {}
    if fields:
        blocks["fluid"] = _elements(pyvista, result, fields) if at_nodes else _grid(pyvista, result, fields)
    if "triangle_vertices" in result.arrays:
        blocks["cells"] = _cells(pyvista, result)
    if not blocks:
        raise CaseError("to_pyvista: the result has no fields")
    return next(iter(blocks.values())) if len(blocks) == 1 else pyvista.MultiBlock(blocks)


def _grid(pyvista: Any, result: ResultArrays, fields: Mapping[str, NamedArray]) -> Any:
    axes = result_arrays.axes_of(next(iter(fields.values())))
    ticks = [np.asarray(result.coordinates[axis].values) for axis in axes]
    steps = [float(values[1] - values[0]) if len(values) > 1 else 1.0 for values in ticks]
    steps += [steps[0]] * (3 - len(axes))
    counts = [len(values) for values in ticks] + [1] * (3 - len(axes))
    origin = [float(values[0]) for values in ticks] + [0.0] * (3 - len(axes))
    rows = {}
    for name, item in fields.items():
        values = item.values.reshape(*counts, *item.values.shape[len(axes) :])
        flat = np.moveaxis(values, (0, 1, 2), (2, 1, 0)).reshape(int(np.prod(counts)), *values.shape[3:])  # x fastest
        rows[name] = _vectors(flat)
    is_missing = np.zeros(int(np.prod(counts)), bool)
    for flat in rows.values():
        is_missing |= ~np.isfinite(flat.reshape(len(flat), -1)).all(axis=1)
    if is_missing.any():
        corner = [low - step / 2 for low, step in zip(origin, steps, strict=True)]
        image = pyvista.ImageData(dimensions=[count + 1 for count in counts], spacing=steps, origin=corner)
        for name, flat in rows.items():
            image.cell_data[name] = flat
        mesh = image.extract_cells(np.flatnonzero(~is_missing))
    else:
        mesh = pyvista.ImageData(dimensions=counts, spacing=steps, origin=origin)
        for name, flat in rows.items():
            mesh.point_data[name] = flat
    return _noted(mesh, result, fields)


def _elements(pyvista: Any, result: ResultArrays, fields: Mapping[str, NamedArray]) -> Any:
    positions = result_arrays.node_positions(result)
    elements, count, dim = positions.shape
    boxes = boxes_between_nodes(result_arrays.nodes_along(count, dim), dim)
    points = np.zeros((elements * count, 3))
    points[:, :dim] = positions.reshape(-1, dim)
    corners = (boxes + count * np.arange(elements)[:, None, None]).reshape(-1, boxes.shape[1])
    kind = pyvista.CellType.HEXAHEDRON if dim == 3 else pyvista.CellType.QUAD
    mesh = pyvista.UnstructuredGrid({kind: corners}, points)
    for name, item in fields.items():
        values = result_arrays.node_values(item)
        mesh.point_data[name] = _vectors(values.reshape(elements * count, *values.shape[2:]))
    return _noted(mesh, result, fields)


def boxes_between_nodes(n: int, dim: int) -> npt.NDArray[np.int64]:
    """Return the nodes (boxes, 2^dim) of the boxes between the nodes of an element, in the order of VTK.

    The element has `n` nodes along each axis, which count along x first.
    """
    strides = [n**axis for axis in range(dim)]
    first = np.arange(n**dim).reshape((n,) * dim)[(slice(n - 1),) * dim].reshape(-1)
    corner_offsets = [0, strides[0], strides[0] + strides[1], strides[1]]
    offsets = corner_offsets if dim == 2 else corner_offsets + [corner + strides[2] for corner in corner_offsets]
    return first[:, None] + np.array(offsets, np.int64)


def _cells(pyvista: Any, result: ResultArrays) -> Any:
    arrays, coordinates = result.arrays, result.coordinates
    mesh = pyvista.PolyData.from_regular_faces(arrays["vertex_position"].values, arrays["triangle_vertices"].values)
    mesh.point_data["velocity"] = arrays["vertex_velocity"].values
    number, cells = coordinates["triangle_cell"].values, coordinates["cell"].values
    order = np.argsort(cells, kind="stable")
    row = order[np.searchsorted(cells[order], number)]
    mesh.cell_data["cell"] = number
    used_arrays = {"velocity": arrays["vertex_velocity"]}
    for name, item in arrays.items():
        if item.dims[:1] == ("cell",):
            mesh.cell_data[name] = item.values[row]
            used_arrays[name] = item
    return _noted(mesh, result, used_arrays)


def _vectors(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return values (n[, components]) with vectors of two components extended by zeros, one component as a scalar."""
    if values.ndim == 2 and values.shape[1] == 1:
        return np.ascontiguousarray(values[:, 0])
    if values.ndim == 2 and values.shape[1] == 2:
        return np.concatenate([values, np.zeros((len(values), 1), values.dtype)], axis=1)
    return np.ascontiguousarray(values)


def _noted(mesh: Any, result: ResultArrays, used: Mapping[str, NamedArray]) -> Any:
    mesh.user_dict["time"] = result.time
    mesh.user_dict["units"] = {name: item.unit for name, item in used.items()}
    return mesh
