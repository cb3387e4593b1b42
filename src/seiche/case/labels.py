# SPDX-License-Identifier: BSD-3-Clause
"""Results with axes and units: arrays with named dimensions, for notebooks and xarray."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seiche.case.arguments import number_of, whole_number
from seiche.case.quantities import shorten
from seiche.domain.sharing import shared_from_root
from seiche.domain.world import World
from seiche.errors import BackendUnavailable, CaseError
from seiche.report.result_figure import ResultFigure, result_figure
from seiche.report.result_meshes import result_meshes


@dataclass(frozen=True, eq=False)
class Labelled:
    """An array with the names of its dimensions, in order, and its SI unit ("" for text)."""

    values: npt.NDArray[Any]
    dims: tuple[str, ...]
    unit: str

    def __post_init__(self) -> None:
        """Raise a ValueError if the number of dimensions differs from that of the array."""
        if len(self.dims) != self.values.ndim:
            raise ValueError(f"an array of shape {self.values.shape} cannot have the dimensions {self.dims}")

    def __repr__(self) -> str:
        """Return dimensions, unit, type and range."""
        sizes = ", ".join(f"{name}: {size}" for name, size in zip(self.dims, self.values.shape, strict=True))
        unit = f" [{self.unit}]" if self.unit else ""
        return f"({sizes}){unit} {self.values.dtype}{_range(self.values)}"


#: Arrays by name, and coordinates by name.
LabelledParts: TypeAlias = tuple[dict[str, Labelled], dict[str, Labelled]]


@dataclass(frozen=True, eq=False)
class LabelledArrays(Mapping[str, Labelled]):
    """Arrays by name, with the coordinates of their dimensions in SI units.

    Attributes:
        title: title of the case.
        time: physical time of the state, s.
        arrays: fields and records.
        coordinates: coordinates by name; the coordinates of a dimension have the name of the dimension.
    """

    title: str
    time: float
    arrays: Mapping[str, Labelled]
    coordinates: Mapping[str, Labelled] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Labelled:
        """Return an array by name; KeyError, with the names that exist, for another one."""
        if name not in self.arrays:
            raise KeyError(f"{name!r} is not in this result; it has {', '.join(self.arrays) or 'no arrays'}")
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the arrays."""
        return iter(self.arrays)

    def __len__(self) -> int:
        """Return the number of arrays."""
        return len(self.arrays)

    def to_xarray(self) -> Any:
        """Return an `xarray.Dataset`: dimensions, coordinates, and the attribute `units` of each variable.

        Raises:
            BackendUnavailable: xarray is not installed.
        """
        try:
            import xarray
        except ModuleNotFoundError as error:
            raise BackendUnavailable(
                f"to_xarray: {error.name} is not installed: pip install 'seiche[xarray]'"
            ) from None
        groups = (self.arrays, self.coordinates)
        data, coords = ({name: _variable(item) for name, item in group.items()} for group in groups)
        return xarray.Dataset(data, coords, {"title": self.title, "time": self.time, "time_units": "s"})

    def to_pyvista(self) -> Any:
        """Return the fields as meshes of PyVista, in metres (see `seiche.report.result_meshes.result_meshes`).

        A grid is an ImageData, a vessel an UnstructuredGrid of its voxels, elements of waves an UnstructuredGrid. Cells
        of blood are a PolyData, in a MultiBlock with "fluid" and "cells".

        Raises:
            BackendUnavailable: PyVista is not installed.
        """
        return result_meshes(self)

    def plot(self, name: str | None = None, *, decibels: float | None = None) -> ResultFigure:
        """Return a picture of a field, by default of the speed or the pressure, and of the records over time.

        The name of a record, such as "receiver_vz", gives a picture of it: lines, or for many receivers on a line a
        record section. With `decibels`, such as 40, a field on a grid is drawn in dB of its maximum, down to minus this
        number. Lines separate media of different sound speed.

        Notebooks display it. `figure` is the figure of Matplotlib, `save(path)` writes it.

        Raises:
            CaseError: an unknown name, or decibels that are not positive or not of a field on a grid.
        """
        return result_figure(self, name, decibels=decibels)

    def __repr__(self) -> str:
        """Return a line for each array and coordinate."""
        lines = [f"{self.title}, {self.time:.6g} s"]
        for heading, group in (("arrays", self.arrays), ("coordinates", self.coordinates)):
            width = max((len(name) for name in group), default=0)
            rows = [f"  {name:<{width}}  {item!r}" for name, item in group.items()]
            lines += [f"{heading}:", *rows] if group else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        rows = [
            f"<tr><td>{escape(name)}</td><td>{escape(', '.join(item.dims))}</td><td>{item.values.shape}</td>"
            f"<td>{escape(item.unit)}</td><td>{escape(_range(item.values).lstrip(', '))}</td></tr>"
            for group in (self.arrays, self.coordinates)
            for name, item in group.items()
        ]
        heading = "<tr><th>name</th><th>dimensions</th><th>shape</th><th>unit</th><th>range</th></tr>"
        return f"<p>{escape(self.title)}, {self.time:.6g} s</p><table>{heading}{''.join(rows)}</table>"


@dataclass(frozen=True)
class GridRequest:
    """A regular grid on which `result` interpolates: its spacing in m, or its number of points along each axis.

    Raises:
        CaseError: both or neither of them are given, or values are not positive.
    """

    spacing: float | None = None
    shape: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Check the values."""
        if (self.spacing is None) == (self.shape is None):
            raise CaseError("result: give either spacing (m) or shape (points along each axis), not both")
        if self.spacing is not None and (number_of(self.spacing) or 0.0) <= 0.0:
            raise CaseError(f"result: spacing = {shorten(self.spacing)}: must be positive, in m")
        for count in self.shape or ():
            whole_number("result: shape", count, 2)


def grid_request(spacing: Any, shape: Any) -> GridRequest | None:
    """Return the grid of the arguments of `result`, None if both are; CaseError for wrong ones."""
    if spacing is None and shape is None:
        return None
    if shape is not None and (not isinstance(shape, Iterable) or isinstance(shape, str)):
        raise CaseError(f"result: shape = {shorten(shape)}: expected a list with the number of points along each axis")
    return GridRequest(spacing, tuple(shape) if shape is not None else None)


def check_no_grid(kind: str, grid: GridRequest | None) -> None:
    """Raise a CaseError if a grid is requested for a kind of case whose fields are already on a grid."""
    if grid is not None:
        raise CaseError(f"result: spacing and shape are for waves; fields of {kind} are on the grid of the solver")


def texts(words: Iterable[str], dim: str) -> Labelled:
    """Return the words of a dimension as its coordinate."""
    return Labelled(np.array(list(words), dtype=np.str_), (dim,), "")


def dense(
    shape: tuple[int, ...], coords: npt.NDArray[np.integer[Any]], values: npt.NDArray[Any], world: World | None = None
) -> npt.NDArray[np.float64]:
    """Return a grid with the rows `values` (n, ...) of all ranks at the points `coords` (n, axes), NaN elsewhere.

    Every rank receives the whole grid of `shape`; the ranks of a host share one read-only copy (collective).
    """
    world = world or World.serial()
    parts = world.gather((coords, values))

    def grid() -> npt.NDArray[np.float64]:
        assert parts is not None
        full_grid = np.full((*shape, *values.shape[1:]), np.nan)
        for positions, rows in parts:
            full_grid[tuple(positions.T)] = rows
        return full_grid

    return shared_from_root(world, grid)


def in_order(world: World, indices: npt.NDArray[np.integer[Any]], values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the rows `values` (n, ...) of all ranks in the order of their `indices` (n,), on every rank.

    On one rank, `values` itself is returned in its original order (collective).
    """
    if world.size == 1:
        return values
    parts = world.gather((indices, values))

    def rows() -> npt.NDArray[Any]:
        assert parts is not None
        order = np.argsort(np.concatenate([part[0] for part in parts]), kind="stable")
        return np.asarray(np.concatenate([part[1] for part in parts])[order])

    return shared_from_root(world, rows)


def _variable(item: Labelled) -> tuple[tuple[str, ...], npt.NDArray[Any], dict[str, str]]:
    return item.dims, item.values, {"units": item.unit} if item.unit else {}


def _range(values: npt.NDArray[Any]) -> str:
    if values.size == 0 or values.dtype.kind not in "fiu" or not np.isfinite(values).any():
        return ""
    return f", {np.nanmin(values):.4g} to {np.nanmax(values):.4g}"
