# SPDX-License-Identifier: BSD-3-Clause
"""The media of a case: values at points, and how small elements have to be where they are slow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.case.waves.schema import AttenuationTable, Box, Ellipsoid, Layer, MaterialTable, SegyTable
from seiche.domain.world import World
from seiche.errors import CaseError, FormatError
from seiche.io.arrays import hdf5_file, values_of
from seiche.io.formats.segy import read_segy
from seiche.waves.attenuation import Attenuation, attenuated
from seiche.waves.material import SLOWEST_CP, Material
from seiche.waves.mesh import Mesh
from seiche.waves.sizes import SizeField

Floats = npt.NDArray[np.float64]
NAMES = ("density", "cp", "cs")
#: Parts along the last axis into which a body is cut to say where elements have to be small.
_PARTS = 8
#: Blocks along an axis into which a grid of values is cut for the same.
_BLOCKS = 16


@dataclass(frozen=True)
class Grid:
    """Values on a grid: `axes`, ascending, and (density, cp, cs), each of the shape of the grid."""

    axes: tuple[Floats, ...]
    values: Floats

    def at(self, points: Floats) -> Floats:
        """Return density, cp and cs at points (n, dim), those outside like the nearest of the grid: (3, n)."""
        from scipy.interpolate import RegularGridInterpolator

        inside = np.stack([np.clip(points[:, a], axis[0], axis[-1]) for a, axis in enumerate(self.axes)], 1)
        return np.stack([RegularGridInterpolator(self.axes, value)(inside) for value in self.values])

    def refuse_impossible(self, sources: Sequence[tuple[Path, str]]) -> None:
        """Refuse densities and speeds that no medium has; `sources` are file and field of each.

        Raises:
            FormatError: the first such value, by its place.
        """
        density, cp, cs = self.values
        for source, value, wrong, wanted in (
            (sources[0], density, density <= 0, "has to be > 0"),
            (sources[1], cp, cp <= 0, "has to be > 0"),
            (sources[2], cs, cs < 0, "has to be >= 0"),
            (sources[1], cp, cp <= SLOWEST_CP * cs, "has to exceed sqrt(4/3) cs there"),
        ):
            if wrong.any():
                index = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
                place = ", ".join(f"{axis[i]:g}" for axis, i in zip(self.axes, index, strict=True))
                raise FormatError(*source, f"{value[index]:g} at ({place}) m {wanted}")


def read_grid(path: Path, dim: int) -> Grid:
    """Return the grid of a file.

    Raises:
        CaseError: it cannot be opened.
        FormatError: a data set is missing or has a wrong shape, or a value is not finite.
    """
    names = ("x", "y", "z")[:dim]
    try:
        with hdf5_file(path, "not a readable HDF5 file") as file:
            for name in (*names, *NAMES):
                if name not in file:
                    raise FormatError(path, name, f"no such data set; needed are {', '.join((*names, *NAMES))}")
            axes = tuple(_unpacked(file, name) for name in names)
            values = [_in_order(file, name, names) for name in NAMES]
    except FileNotFoundError:
        raise CaseError(f"material: cannot read {path}: no such file") from None
    for name, axis in zip(names, axes, strict=True):
        if axis.ndim != 1 or len(axis) < 2 or not np.isfinite(axis).all() or np.any(np.diff(axis) <= 0):
            raise FormatError(path, name, "has to be a list of at least two ascending numbers")
    shape = tuple(len(axis) for axis in axes)
    for name, value in zip(NAMES, values, strict=True):
        if value.shape != shape:
            raise FormatError(path, name, f"has the shape {value.shape}, the axes say {shape}")
        if not np.isfinite(value).all():
            place = np.unravel_index(int(np.argmax(~np.isfinite(value))), shape)
            raise FormatError(path, name, f"is not finite at {[int(index) for index in place]}")
    grid = Grid(axes, np.stack(values))
    grid.refuse_impossible([(path, name) for name in NAMES])
    return grid


def _unpacked(file: Any, name: str) -> Floats:
    """Return the numbers of a data set, by the conventions of netCDF: missing ones are none, packed ones unpacked."""
    values, dataset = np.asarray(values_of(file, name), np.float64), file[name]
    missing = [dataset.attrs[name] for name in ("_FillValue", "missing_value") if name in dataset.attrs]
    gaps = np.isin(values, np.concatenate([np.ravel(np.asarray(mark, np.float64)) for mark in (*missing, [np.nan])]))
    for name, change in (("scale_factor", np.multiply), ("add_offset", np.add)):
        if name in dataset.attrs:
            values = change(values, np.asarray(dataset.attrs[name], np.float64).item())
    return np.where(gaps, np.nan, values)


def _in_order(file: Any, name: str, names: tuple[str, ...]) -> Floats:
    """Return the numbers of a data set whose dimensions, if they have names, stand in the order of `names`."""
    values = _unpacked(file, name)
    found = [along[0].name.rpartition("/")[2] if len(along) else "" for along in file[name].dims]
    return values.transpose([found.index(name) for name in names]) if sorted(found) == sorted(names) else values


def read_segy_grid(table: SegyTable, dim: int, folder: Path) -> Grid:
    """Return the grid of SEG-Y files.

    Raises:
        CaseError: one cannot be read.
        FormatError: one is no SEG-Y file, or its traces are no grid, or not that of the others.
    """
    found: list[Floats] = []
    axes: tuple[Floats, ...] = ()
    for name in (table.density, table.cp, table.cs):
        if name is None:
            found.append(np.zeros_like(found[0]))
            continue
        path = folder / name
        places, values = read_segy(path)
        columns = [np.unique(places[:, axis], return_inverse=True) for axis in range(dim - 1)]
        shape = tuple(len(column) for column, _ in columns)
        number = np.ravel_multi_index([where.reshape(-1) for _, where in columns], shape)
        if (
            min(shape) < 2
            or values.shape[1] < 2
            or len(np.unique(number)) != len(values)
            or np.prod(shape) != len(values)
        ):
            raise FormatError(path, "CDP_X, CDP_Y", f"the {len(values)} traces are no grid of {dim - 1} axes")
        if not np.isfinite(values).all():
            raise FormatError(path, f"trace {int(np.argmax(~np.isfinite(values).all(1))) + 1}", "is not finite")
        heights = table.top - table.step * np.arange(values.shape[1], dtype=np.float64)[::-1]
        these = tuple(np.asarray(axis, np.float64) for axis in (*(column for column, _ in columns), heights))
        if found and not (len(these[-1]) == len(axes[-1]) and all(map(np.array_equal, these, axes))):
            raise FormatError(path, "traces", f"have other places or samples than those of {table.density}")
        axes = these
        found.append(values[np.argsort(number)].reshape(*shape, -1)[..., ::-1])
    grid = Grid(axes, np.stack(found))
    grid.refuse_impossible([(folder / (name or table.cp), "samples") for name in (table.density, table.cp, table.cs)])
    return grid


def _inside(where: Layer | Box | Ellipsoid | None, points: Floats) -> npt.NDArray[np.bool_]:
    if where is None:
        return np.ones(len(points), np.bool_)
    if isinstance(where, Layer):
        return np.asarray((points[:, -1] >= where.bottom) & (points[:, -1] <= where.top))
    if isinstance(where, Box):
        return np.asarray(((points >= np.array(where.lower)) & (points <= np.array(where.upper))).all(1))
    return np.asarray((((points - np.array(where.center)) / np.array(where.radii)) ** 2).sum(1) <= 1)


def _boxes(where: Layer | Box | Ellipsoid | None, dim: int) -> tuple[Floats, Floats]:
    """Return boxes (k, dim) that together hold a region."""
    lower, upper = np.full((1, dim), -np.inf), np.full((1, dim), np.inf)
    if isinstance(where, Layer):
        lower[:, -1], upper[:, -1] = where.bottom, where.top
    elif isinstance(where, Box):
        lower[:], upper[:] = where.lower, where.upper
    elif isinstance(where, Ellipsoid):
        center, radii = np.array(where.center), np.array(where.radii)
        ends = np.linspace(-1.0, 1.0, _PARTS + 1)
        widest = np.where((ends[:-1] < 0) & (ends[1:] > 0), 0.0, np.minimum(abs(ends[:-1]), abs(ends[1:])))
        across = np.sqrt(1 - widest**2)[:, None] * radii
        lower, upper = center - across, center + across
        lower[:, -1], upper[:, -1] = center[-1] + radii[-1] * ends[:-1], center[-1] + radii[-1] * ends[1:]
    return lower, upper


def _grid_of(table: MaterialTable, dim: int, folder: Path) -> Grid | None:
    if table.segy is not None:
        return read_segy_grid(table.segy, dim, folder)
    return read_grid(folder / table.file, dim) if table.file is not None else None


class Media:
    """The tables of a case with what their files hold."""

    def __init__(self, tables: Sequence[MaterialTable], dim: int, folder: Path) -> None:
        """Read the files.

        Raises:
            CaseError, FormatError: a file that is missing or wrong, or a region with another number of axes.
        """
        self._tables, self._dim = tuple(tables), dim
        self._grids = [_grid_of(table, dim, folder) for table in tables]
        for table in tables:
            where = table.where
            if isinstance(where, Box | Ellipsoid):
                size = len(where.lower if isinstance(where, Box) else where.center)
                other = len(where.upper if isinstance(where, Box) else where.radii)
                if {size, other} != {dim}:
                    raise CaseError(f'material["{table.name}"].where: needs {dim} numbers, one an axis of the mesh')

    def notes(self, lower: Floats, upper: Floats) -> list[str]:
        """Return what a user may not have meant in a box: media beside it, files that do not cover them."""
        found = []
        for table, grid in zip(self._tables, self._grids, strict=True):
            lows, highs = _boxes(table.where, self._dim)
            low, high = np.maximum(lows.min(0), lower), np.minimum(highs.max(0), upper)
            if self._beside(table, lower, upper):
                found.append(f'material["{table.name}"] lies outside the mesh')
                continue
            for axis, name in enumerate("xyz"[: self._dim] if grid is not None else ""):
                first, last = grid.axes[axis][[0, -1]] if grid is not None else (0.0, 0.0)
                if first - low[axis] > 1e-6 * (last - first) or high[axis] - last > 1e-6 * (last - first):
                    found.append(
                        f'material["{table.name}"]: its file goes from {name} = {first:g} m to {last:g} m, the mesh'
                        f" needs {low[axis]:g} m to {high[axis]:g} m; beyond the file are the values of its edge"
                    )
        return found

    def lost(self, mesh: Mesh, nodes: Floats | None, world: World) -> list[str]:
        """Return notes about media that no element of the mesh has, or none of its `nodes` (collective)."""
        centers = mesh.lower[: mesh.count] + mesh.sizes[: mesh.count] / 2
        points = centers if nodes is None else nodes.reshape(-1, self._dim)
        held = world.allreduce_max(np.array([_inside(table.where, points).any() for table in self._tables], np.int64))
        lower, upper = mesh.extent
        what = "no element has its centre" if nodes is None else "no node is"
        return [
            f'material["{table.name}"]: {what} where it is: smaller elements (mesh.size), or it is left out'
            for table, there in zip(self._tables, held, strict=True)
            if not there and not self._beside(table, lower, upper)
        ]

    def _beside(self, table: MaterialTable, lower: Floats, upper: Floats) -> bool:
        """Return whether a medium lies outside a box."""
        lows, highs = _boxes(table.where, self._dim)
        return bool((np.maximum(lows.min(0), lower) >= np.minimum(highs.max(0), upper)).any())

    def at(self, points: Floats) -> Floats:
        """Return density, cp and cs at points (n, dim): (3, n)."""
        result = np.empty((3, len(points)))
        for table, grid in zip(self._tables, self._grids, strict=True):
            here = _inside(table.where, points)
            if grid is not None:
                result[:, here] = grid.at(points[here])
            else:
                result[:, here] = np.array([[table.density], [table.cp], [table.cs or 0.0]], np.float64)
        return result

    def qualities(self, points: Floats) -> Floats:
        """Return Q_p (not a number: shear alone loses energy) and Q_s at points (n, dim): (2, n)."""
        result = np.empty((2, len(points)))
        for table in self._tables:
            here = _inside(table.where, points)
            result[:, here] = [[np.nan if table.qp is None else table.qp], [np.inf if table.qs is None else table.qs]]
        return result

    def attenuated(self, mesh: Mesh, slow: Material, table: AttenuationTable) -> tuple[Material, Attenuation]:
        """Return media at infinite frequency and their attenuation, qualities by the centres of elements.

        Raises:
            CaseError: qualities that cannot be.
        """
        qualities = self.qualities(mesh.lower[: mesh.count] + mesh.sizes[: mesh.count] / 2)
        qp, qs = qualities[..., None] if slow.by_node else qualities
        low, high = table.band
        return attenuated(
            slow, qp, qs, dim=mesh.dim, band=(low, high), reference=table.reference, mechanisms=table.mechanisms
        )

    def material(self, mesh: Mesh, nodes: Floats | None = None) -> Material:
        """Return the media of the elements of a mesh, or at their `nodes` (elements, nodes, dim).

        An element is fluid or solid by its centre; nodes where the media say otherwise get those of the centre.
        """
        center = mesh.lower[: mesh.count] + mesh.sizes[: mesh.count] / 2
        middle = self.at(center)
        if nodes is None:
            return Material(*middle)
        # A little towards the centre: nodes on faces that are boundaries of media belong to their own side.
        inner = center[:, None] + (nodes - center[:, None]) * (1 - 1e-9)
        values = self.at(inner.reshape(-1, self._dim)).reshape(3, *nodes.shape[:2])
        other = (values[2] > 0) != (middle[2] > 0)[:, None]
        values = np.where(other, middle[:, :, None], values)
        return Material(*values)

    def sizes(self, elements_a_wavelength: float, frequency: float, origin: Floats, tree: Floats) -> SizeField:
        """Return sizes, in tree units, that give the slowest wave of `frequency` so many elements a wavelength."""
        lower, upper, sizes = [], [], []
        for table, grid in zip(self._tables, self._grids, strict=True):
            if grid is None:
                low, high = _boxes(table.where, self._dim)
                slowest = np.full(len(low), table.cs or table.cp, np.float64)
            else:
                low, high, slowest = _slowest(grid)
            lower.append((low - origin) / tree)
            upper.append((high - origin) / tree)
            sizes.append(slowest / (frequency * elements_a_wavelength) / tree.max())
        return SizeField(np.concatenate(lower), np.concatenate(upper), np.concatenate(sizes))


def _slowest(grid: Grid) -> tuple[Floats, Floats, Floats]:
    """Return blocks of a grid and the slowest speed in each; those at its edges reach to infinity."""
    speed = np.where(grid.values[2] > 0, grid.values[2], grid.values[1])
    edges = [
        np.unique(np.linspace(0, len(axis) - 1, min(_BLOCKS, len(axis) - 1) + 1).astype(int)) for axis in grid.axes
    ]
    lower, upper, slowest = [], [], []
    for block in np.ndindex(*(len(edge) - 1 for edge in edges)):
        ranges = [(int(edge[b]), int(edge[b + 1])) for edge, b in zip(edges, block, strict=True)]
        lower.append([axis[a] if a else -np.inf for axis, (a, _) in zip(grid.axes, ranges, strict=True)])
        upper.append([axis[b] if b < len(axis) - 1 else np.inf for axis, (_, b) in zip(grid.axes, ranges, strict=True)])
        slowest.append(speed[tuple(slice(a, b + 1) for a, b in ranges)].min())
    return np.array(lower), np.array(upper), np.array(slowest)
