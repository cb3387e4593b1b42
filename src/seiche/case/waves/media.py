# SPDX-License-Identifier: BSD-3-Clause
"""Media of a wave case: values at points, and the element sizes that they require."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.case.solids import body_of
from seiche.case.waves.interfaces import crossed, jump_notes, planes, varying
from seiche.case.waves.layer import Roots
from seiche.case.waves.schema import AttenuationTable, MaterialTable, SegyTable
from seiche.domain.solids import SolidBody
from seiche.domain.world import World
from seiche.errors import CaseError, FormatError
from seiche.io.arrays import hdf5_file, values_of
from seiche.io.formats.segy import read_segy
from seiche.waves.attenuation import Attenuation, attenuated
from seiche.waves.averages import NodeCells, averages
from seiche.waves.material import MIN_CP, Material
from seiche.waves.mesh import Mesh
from seiche.waves.sizes import SizeField

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
NAMES = ("density", "cp", "cs")
#: Relative difference between values in an element below which they count as equal.
_SAME = 1e-9
#: Number of points of a sampled mesh in each region.
_LANDMARKS = 32
#: Number of blocks along an axis that approximate a grid of values for element sizes.
_BLOCKS = 16


@dataclass(frozen=True)
class PropertyGrid:
    """Values on a grid: ascending `axes`, and density, cp and cs, each of the shape of the grid."""

    axes: tuple[Floats, ...]
    values: Floats

    def at(self, points: Floats) -> Floats:
        """Return density, cp and cs, (3, n), at points (n, dim); points outside have the nearest values of the grid."""
        from scipy.interpolate import RegularGridInterpolator

        inside = np.stack([np.clip(points[:, a], axis[0], axis[-1]) for a, axis in enumerate(self.axes)], 1)
        return np.stack([RegularGridInterpolator(self.axes, value)(inside) for value in self.values])

    def check_values(self, sources: Sequence[tuple[Path, str]]) -> None:
        """Raise a FormatError for the first invalid density or speed.

        `sources` are the file and field of each property.
        """
        density, cp, cs = self.values
        for source, value, wrong, rule in (
            (sources[0], density, density <= 0, "must be > 0"),
            (sources[1], cp, cp <= 0, "must be > 0"),
            (sources[2], cs, cs < 0, "must be >= 0"),
            (sources[1], cp, cp <= MIN_CP * cs, "must exceed sqrt(4/3) cs at the same point"),
        ):
            if wrong.any():
                index = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
                position = ", ".join(f"{axis[i]:g}" for axis, i in zip(self.axes, index, strict=True))
                raise FormatError(*source, f"{value[index]:g} at ({position}) m {rule}")


def read_grid(path: Path, dim: int) -> PropertyGrid:
    """Return the grid of a file.

    Raises:
        CaseError: the file cannot be opened.
        FormatError: a data set is missing or has a wrong shape, or a value is not finite.
    """
    names = ("x", "y", "z")[:dim]
    try:
        with hdf5_file(path, "not a readable HDF5 file") as file:
            for name in (*names, *NAMES):
                if name not in file:
                    raise FormatError(path, name, f"is missing; expected data sets {', '.join((*names, *NAMES))}")
            axes = tuple(_unpacked(file, name) for name in names)
            values = [_in_order(file, name, names) for name in NAMES]
    except FileNotFoundError:
        raise CaseError(f"material: cannot read {path}: no such file") from None
    for name, axis in zip(names, axes, strict=True):
        if axis.ndim != 1 or len(axis) < 2 or not np.isfinite(axis).all() or np.any(np.diff(axis) <= 0):
            raise FormatError(path, name, "must be a list of at least two ascending numbers")
    shape = tuple(len(axis) for axis in axes)
    for name, value in zip(NAMES, values, strict=True):
        if value.shape != shape:
            raise FormatError(path, name, f"has the shape {value.shape}, but the axes have {shape}")
        if not np.isfinite(value).all():
            index = np.unravel_index(int(np.argmax(~np.isfinite(value))), shape)
            raise FormatError(path, name, f"is not finite at {[int(k) for k in index]}")
    grid = PropertyGrid(axes, np.stack(values))
    grid.check_values([(path, name) for name in NAMES])
    return grid


def _unpacked(file: Any, name: str) -> Floats:
    """Return the values of a data set by netCDF conventions: packed values are unpacked, missing ones are nan."""
    values, dataset = np.asarray(values_of(file, name), np.float64), file[name]
    missing_values = [dataset.attrs[name] for name in ("_FillValue", "missing_value") if name in dataset.attrs]
    gaps = np.isin(
        values, np.concatenate([np.ravel(np.asarray(mark, np.float64)) for mark in (*missing_values, [np.nan])])
    )
    for name, change in (("scale_factor", np.multiply), ("add_offset", np.add)):
        if name in dataset.attrs:
            values = change(values, np.asarray(dataset.attrs[name], np.float64).item())
    return np.where(gaps, np.nan, values)


def _in_order(file: Any, name: str, names: tuple[str, ...]) -> Floats:
    """Return the values of a data set, with its dimensions, if they have names, in the order of `names`."""
    values = _unpacked(file, name)
    dims = [scale[0].name.rpartition("/")[2] if len(scale) else "" for scale in file[name].dims]
    return values.transpose([dims.index(name) for name in names]) if sorted(dims) == sorted(names) else values


def read_segy_grid(table: SegyTable, dim: int, folder: Path) -> PropertyGrid:
    """Return the grid of SEG-Y files.

    Raises:
        CaseError: a file cannot be read.
        FormatError: a file is not a SEG-Y file, its traces do not form a grid, or the grids of the files differ.
    """
    grids: list[Floats] = []
    axes: tuple[Floats, ...] = ()
    for name in (table.density, table.cp, table.cs):
        if name is None:
            grids.append(np.zeros_like(grids[0]))
            continue
        path = folder / name
        positions, values = read_segy(path)
        columns = [np.unique(positions[:, axis], return_inverse=True) for axis in range(dim - 1)]
        shape = tuple(len(column) for column, _ in columns)
        number = np.ravel_multi_index([rows.reshape(-1) for _, rows in columns], shape)
        complete = len(np.unique(number)) == len(values) == np.prod(shape)
        if min(*shape, values.shape[1]) < 2 or not complete:
            raise FormatError(path, "CDP_X, CDP_Y", f"the {len(values)} traces do not form a grid of {dim - 1} axes")
        if not np.isfinite(values).all():
            raise FormatError(path, f"trace {int(np.argmax(~np.isfinite(values).all(1))) + 1}", "is not finite")
        heights = table.top - table.step * np.arange(values.shape[1], dtype=np.float64)[::-1]
        own_axes = tuple(np.asarray(axis, np.float64) for axis in (*(column for column, _ in columns), heights))
        if grids and not (len(own_axes[-1]) == len(axes[-1]) and all(map(np.array_equal, own_axes, axes))):
            raise FormatError(path, "traces", f"differ in positions or samples from those of {table.density}")
        axes = own_axes
        grids.append(values[np.argsort(number)].reshape(*shape, -1)[..., ::-1])
    grid = PropertyGrid(axes, np.stack(grids))
    grid.check_values([(folder / (name or table.cp), "samples") for name in (table.density, table.cp, table.cs)])
    return grid


def _inside(where: SolidBody | None, points: Floats) -> npt.NDArray[np.bool_]:
    return np.ones(len(points), np.bool_) if where is None else where.contains(list(points.T))


def _boxes(where: SolidBody | None, dim: int) -> tuple[Floats, Floats]:
    """Return lower and upper corners (k, dim) of boxes that together enclose a region."""
    return where.boxes(dim) if where is not None else (np.full((1, dim), -np.inf), np.full((1, dim), np.inf))


def _grid_of(table: MaterialTable, dim: int, folder: Path) -> PropertyGrid | None:
    if table.segy is not None:
        return read_segy_grid(table.segy, dim, folder)
    return read_grid(folder / table.file, dim) if table.file is not None else None


class Media:
    """Media of a case, with the contents of their files.

    Raises:
        CaseError, FormatError: a file is missing or invalid, or a region has a wrong number of axes.
    """

    def __init__(self, tables: Sequence[MaterialTable], dim: int, folder: Path) -> None:
        self._tables, self._dim = tuple(tables), dim
        self._grids = [_grid_of(table, dim, folder) for table in tables]
        self._regions = [
            None if table.where is None else body_of(table.where, dim, folder, f'material["{table.name}"].where')
            for table in tables
        ]

    def notes(self, lower: Floats, upper: Floats) -> list[str]:
        """Return notes on media outside a box, and on files that do not cover it or contain jumps."""
        notes = []
        for table, grid, where in zip(self._tables, self._grids, self._regions, strict=True):
            low, high = self._extent(where, lower, upper)
            if (low >= high).any():
                notes.append(f'material["{table.name}"] is outside the mesh')
            elif grid is not None:
                for name, axis, needed_from, needed_to in zip("xyz"[: self._dim], grid.axes, low, high, strict=True):
                    first, last = axis[[0, -1]]
                    if max(first - needed_from, needed_to - last) > 1e-6 * (last - first):
                        notes.append(
                            f'material["{table.name}"]: its file covers {name} = {first:g} m to {last:g} m, the mesh'
                            f" needs {needed_from:g} m to {needed_to:g} m; values at the edge of the file are extended"
                        )
                notes += jump_notes(table.name, grid.axes, grid.values[0] * grid.values[1])
        return notes

    def unused(self, mesh: Mesh, nodes: Floats | None, world: World) -> list[str]:
        """Return notes on media that contain no element centre of the mesh or, with `nodes`, no node (collective)."""
        centers = mesh.lower[: mesh.count] + mesh.sizes[: mesh.count] / 2
        points = centers if nodes is None else nodes.reshape(-1, self._dim)
        used = world.allreduce_max(np.array([_inside(where, points).any() for where in self._regions], np.int64))
        extents = [self._extent(where, *mesh.extent) for where in self._regions]
        noun = "element centre" if nodes is None else "node"
        return [
            f'material["{table.name}"]: contains no {noun} and is ignored; use smaller elements (mesh.size)'
            for table, (low, high), is_used in zip(self._tables, extents, used, strict=True)
            if not is_used and not (low >= high).any()
        ]

    def _extent(self, where: SolidBody | None, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Return the corners of the intersection of a medium with a box; lower exceeds upper if there is none."""
        lows, highs = _boxes(where, self._dim)
        return np.maximum(lows.min(0), lower), np.minimum(highs.max(0), upper)

    def at(self, points: Floats) -> Floats:
        """Return density, cp and cs, (3, n), at points (n, dim)."""
        result = np.empty((3, len(points)))
        for table, grid, where in zip(self._tables, self._grids, self._regions, strict=True):
            inside = _inside(where, points)
            if grid is not None:
                result[:, inside] = grid.at(points[inside])
            else:
                result[:, inside] = np.array([[table.density], [table.cp], [table.cs or 0.0]], np.float64)
        return result

    def qualities(self, points: Floats) -> Floats:
        """Return Q_p and Q_s, (2, n), at points (n, dim); Q_p is nan if only shear dissipates energy."""
        result = np.empty((2, len(points)))
        for table, where in zip(self._tables, self._regions, strict=True):
            inside = _inside(where, points)
            result[:, inside] = [[np.nan if table.qp is None else table.qp], [np.inf if table.qs is None else table.qs]]
        return result

    def attenuated(self, mesh: Mesh, material: Material, table: AttenuationTable) -> tuple[Material, Attenuation]:
        """Return the media at infinite frequency and their attenuation, with qualities at the element centres.

        Raises:
            CaseError: the qualities are invalid.
        """
        qualities = self.qualities(mesh.lower[: mesh.count] + mesh.sizes[: mesh.count] / 2)
        qp, qs = qualities[..., None] if material.by_node else qualities
        low, high = table.band
        reference, mechanisms = table.reference, table.mechanisms
        return attenuated(material, qp, qs, dim=mesh.dim, band=(low, high), reference=reference, mechanisms=mechanisms)

    def material(self, mesh: Mesh, nodes: Floats | None = None) -> Material:
        """Return the media of the elements of a mesh, or at their `nodes` (elements, nodes, dim).

        The centre of an element determines whether it is fluid or solid; nodes of the other kind have its values.
        """
        center = mesh.lower[: mesh.count] + mesh.sizes[: mesh.count] / 2
        return Material(*(self.at(center) if nodes is None else self._at_nodes(center, nodes)))

    def _at_nodes(self, center: Floats, nodes: Floats) -> Floats:
        """Return density, cp and cs at nodes of elements with these centres, (3, elements, nodes)."""
        middle = self.at(center)
        # Nodes are shifted slightly towards the centre, so that nodes on a boundary belong to the side of the element.
        inner = center[:, None] + (nodes - center[:, None]) * (1 - 1e-9)
        values = self.at(inner.reshape(-1, self._dim)).reshape(3, *nodes.shape[:2])
        differs = (values[2] > 0) != (middle[2] > 0)[:, None]
        return np.where(differs, middle[:, :, None], values)

    def crossed(self, mesh: Mesh) -> Flags:
        """Return whether the boundary of a region crosses each element."""
        lower, upper = mesh.lower[: mesh.count], mesh.lower[: mesh.count] + mesh.sizes[: mesh.count]
        result = np.zeros(mesh.count, np.bool_)
        for where in self._regions:
            if where is not None:
                result |= crossed(where, lower, upper)
        return result

    def averaged(self, mesh: Mesh, nodes: int, positions: Floats, world: World) -> Material:
        """Return the media averaged over the cells of nodes where boundaries cross elements (collective).

        `positions` are those of the nodes, (elements, nodes, dim). Other elements have the values at their centres or,
        in a medium from a file, at their nodes. If the media vary in no element, the result has one value per element.
        """
        center = mesh.lower[: mesh.count] + mesh.sizes[: mesh.count] / 2
        crossed_elements = np.nonzero(self.crossed(mesh))[0]
        sampled = np.zeros(mesh.count, np.bool_)
        for where, grid in zip(self._regions, self._grids, strict=True):
            sampled = np.where(_inside(where, center), grid is not None, sampled)
        values = np.repeat(self.at(center)[:, :, None], nodes**self._dim, axis=2)
        values[:, sampled] = self._at_nodes(center[sampled], positions[sampled])
        if len(crossed_elements):
            across = planes([where for where in self._regions if where is not None], self._dim)
            values[:, crossed_elements] = averages(NodeCells(mesh, nodes, crossed_elements, across), self.at)
        differ = abs(values - values[:, :, :1]).max() > _SAME * abs(values).max() if mesh.count else False
        by_node = world.allreduce_max(np.array([float(differ)]))[0] > 0
        return Material(*(values if by_node else self.at(center)))

    def cut(self, mesh: Mesh, material: Material, positions: Floats, world: World, shares: Floats | None = None) -> int:
        """Return the number of elements within which media differ by more than a hundredth (collective).

        `shares` are the numbers of elements that each element of a sample represents, (elements,).
        """
        crossed = np.nonzero(self.crossed(mesh))[0]
        if material.by_node:
            values = np.stack([material.density, material.cp, material.cs])[:, crossed]
        else:
            center = mesh.lower[crossed] + mesh.sizes[crossed] / 2
            inner = center[:, None] + (positions[crossed] - center[:, None]) * (1 - 1e-9)
            values = self.at(inner.reshape(-1, self._dim)).reshape(3, *inner.shape[:2])
        flags = varying(values) if len(crossed) else np.zeros(0, np.bool_)
        number = int(flags.sum()) if shares is None else round(float(shares[crossed] @ flags))
        return int(world.allreduce_sum(np.array([number], np.int64))[0])

    def per_wavelength(self, mesh: Mesh, frequency: float, counted: Flags, world: World) -> dict[str, float]:
        """Return the minimum number of elements per wavelength of the slowest wave in each medium (collective).

        An element belongs to the medium at its centre. Media without a `counted` element are omitted.
        """
        center, sizes = mesh.lower[: mesh.count][counted], mesh.sizes[: mesh.count][counted]
        center = center + sizes / 2
        owner = np.zeros(len(center), np.int64)
        for number, where in enumerate(self._regions):
            owner[_inside(where, center)] = number
        _, cp, cs = self.at(center)
        elements = np.where(cs > 0, cs, cp) / frequency / sizes.max(1)
        fewest = np.full(len(self._tables), np.inf)
        np.minimum.at(fewest, owner, elements)
        fewest = -world.allreduce_max(-fewest)
        return {t.name: float(n) for t, n in zip(self._tables, fewest, strict=True) if np.isfinite(n)}

    def landmarks(self, lower: Floats, upper: Floats) -> Floats:
        """Return points (n, dim) in a box to be sampled: in all regions, and at the extreme values of files.

        Those in a region are reproducible random points in the box around it.
        """
        random, points = np.random.default_rng(2), []
        for grid, where in zip(self._grids, self._regions, strict=True):
            low, high = self._extent(where, lower, upper)
            if (low < high).all():
                points.append(low + random.random((_LANDMARKS, self._dim)) * (high - low))
            if grid is not None:
                density, cp, cs = grid.values
                min_speed = np.where(cs > 0, cs, cp)
                for flat_index in (np.argmin(min_speed), np.argmax(cp), np.argmin(density), np.argmax(density)):
                    index = np.unravel_index(int(flat_index), cp.shape)
                    points.append(np.array([[axis[i] for axis, i in zip(grid.axes, index, strict=True)]]))
        return np.concatenate(points)

    def sizes(self, elements_a_wavelength: float, frequency: float, roots: Roots) -> SizeField:
        """Return sizes, in tree units, such that the slowest wave at `frequency` has `elements_a_wavelength`."""
        lower, upper, sizes = [], [], []
        for table, grid, where in zip(self._tables, self._grids, self._regions, strict=True):
            if grid is None:
                low, high = _boxes(where, self._dim)
                min_speed = np.full(len(low), table.cs or table.cp, np.float64)
            else:
                low, high, min_speed = _min_speeds(grid)
            lower.append(roots.in_units(low))
            upper.append(roots.in_units(high))
            sizes.append(min_speed / (frequency * elements_a_wavelength) / roots.sides.max())
        return SizeField(np.concatenate(lower), np.concatenate(upper), np.concatenate(sizes))


def _min_speeds(grid: PropertyGrid) -> tuple[Floats, Floats, Floats]:
    """Return the corners of blocks of a grid and the lowest speed in each; blocks at the edges extend to infinity."""
    speed = np.where(grid.values[2] > 0, grid.values[2], grid.values[1])
    lasts = [len(axis) - 1 for axis in grid.axes]
    edges = [np.unique(np.linspace(0, last, min(_BLOCKS, last) + 1).astype(int)) for last in lasts]
    lower, upper, min_speed = [], [], []
    for block in np.ndindex(*(len(edge) - 1 for edge in edges)):
        ranges = [(int(edge[b]), int(edge[b + 1])) for edge, b in zip(edges, block, strict=True)]
        lower.append([axis[a] if a else -np.inf for axis, (a, _) in zip(grid.axes, ranges, strict=True)])
        upper.append([axis[b] if b < len(axis) - 1 else np.inf for axis, (_, b) in zip(grid.axes, ranges, strict=True)])
        min_speed.append(speed[tuple(slice(a, b + 1) for a, b in ranges)].min())
    return np.array(lower), np.array(upper), np.array(min_speed)
