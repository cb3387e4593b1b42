# SPDX-License-Identifier: BSD-3-Clause
"""Regions of an ultrasound medium: their points, and averages over the cells that their boundaries cut.

The cell of a point is the box around it with a side of one spacing (theory/ultrasound, section 14, eq. 33).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend.host_threads import on_threads
from seiche.case.solids import SolidBody, body_of
from seiche.case.ultrasound.points import Floats, along
from seiche.case.ultrasound.schema import RegionTable, SolidRegion
from seiche.domain.cells import subdivide
from seiche.errors import CaseError
from seiche.ultrasound import Grid

Flags = npt.NDArray[np.bool_]
#: Samples along each axis of a cell, by the number of axes; cells are also divided at the sides of boxes.
_SAMPLES = {1: 16, 2: 16, 3: 5}
#: Number of points or samples that a thread processes at a time.
_CHUNK = 1 << 18
#: Maximum relative change of a value by sharpening.
MAX_CHANGE = 1 / 8


@dataclass(frozen=True)
class Filled:
    """A part of the medium: its body, the kind of the body for messages, and the properties that it replaces."""

    solid: SolidBody
    kind: str
    properties: Mapping[str, float]

    @staticmethod
    def of(region: RegionTable, dim: int, folder: Path, *, name: str, properties: Mapping[str, float]) -> Filled:
        """Return the part of a table; CaseError, beginning with `name`, if it does not suit the `dim` axes."""
        if isinstance(region, SolidRegion):
            return Filled(body_of(region.where, dim, folder, f"{name}.where"), region.where.kind, properties)
        return Filled(body_of(region, dim, folder, name), region.kind, properties)


def region_points(solid: SolidBody, grid: Grid) -> Flags:
    """Return the points of the grid inside a body, as a mask."""
    return np.asarray(np.broadcast_to(solid.contains([along(grid, axis) for axis in grid.axes]), grid.shape))


def average_regions(regions: Sequence[Filled], values: Mapping[str, float], grid: Grid) -> dict[str, Any]:
    """Return a uniform medium with `regions`, averaged over the cells that boundaries cut.

    Density, compressibility 1/(rho c^2), absorption and B/A are averaged over the cell. The density is also averaged
    over the cells of staggered points, "staggered_density". Compressibility and staggered density are sharpened
    (theory/ultrasound, eq. 33). Values at points away from boundaries are exact.

    Args:
        regions: regions and the properties that they replace.
        values: the medium without regions; absent properties are 0.
        grid: the grid.

    Raises:
        CaseError: a region contains no part of the grid.
    """
    result = _averaged(regions, values, grid, None)
    if "density" in result or "sound_speed" in result:
        density, speed = (result.get(name, values.get(name, 0.0)) for name in ("density", "sound_speed"))
        result["sound_speed"] = _sharpened_speed(np.asarray(density), np.asarray(speed), grid)
    if "density" in result:
        densities = [
            replace(region, properties={k: v for k, v in region.properties.items() if k == "density"})
            for region in regions
        ]
        fields = [_averaged(densities, values, grid, axis)["density"] for axis in range(len(grid.shape))]
        return {**values, **result, "staggered_density": tuple(_sharpened(field) for field in fields)}
    return {**values, **result}


def _averaged(
    regions: Sequence[Filled], values: Mapping[str, float], grid: Grid, shifted: int | None
) -> dict[str, Floats]:
    """Return the properties that regions replace, at the points or half a spacing along the axis `shifted`."""
    names = {name for region in regions for name in region.properties}
    result = {name: np.empty(grid.shape) for name in names}
    flags: list[Flags] = []

    def fill(rows: slice) -> None:
        parts = {name: field[rows] for name, field in result.items()}
        for name, part in parts.items():
            part[...] = values.get(name, 0.0)
        flags.append(_Slab(grid, rows, regions, shifted).fill(parts, values))

    _by_rows(fill, grid.shape)
    present = reduce(np.logical_or, flags)
    if shifted is None and not present.all():
        number = int(np.argmin(present))
        raise CaseError(f"medium.region[{number}]: the {regions[number].kind} contains no point of the grid")
    return result


def _by_rows(work: Callable[[slice], None], shape: Sequence[int]) -> None:
    """Apply `work` to ranges of rows of a grid in threads."""
    count = max(1, _CHUNK // int(np.prod(shape[1:], dtype=np.int64)))
    on_threads(work, [slice(first, min(first + count, shape[0])) for first in range(0, shape[0], count)])


def _sharpened_speed(density: Floats, speed: Floats, grid: Grid) -> Floats:
    """Return the sound speed of a medium with sharpened compressibility; the same where that does not change."""
    compressibility, result = np.empty(grid.shape), np.empty(grid.shape)
    density, speed = np.broadcast_to(density, grid.shape), np.broadcast_to(speed, grid.shape)

    def compress(rows: slice) -> None:
        compressibility[rows] = 1 / (density[rows] * speed[rows] ** 2)

    def sharpen(rows: slice) -> None:
        sharp = _sharpened_rows(compressibility, rows)
        result[rows] = np.where(sharp == compressibility[rows], speed[rows], 1 / np.sqrt(density[rows] * sharp))

    _by_rows(compress, grid.shape)
    _by_rows(sharpen, grid.shape)
    return result


def _sharpened(values: Floats) -> Floats:
    """Return values minus 1/24 of their second differences along all axes, which compensates the width of the cells.

    The change is at most an eighth of a value. At the ends of an axis, its difference is zero.
    """
    result = np.empty_like(values)

    def sharpen(rows: slice) -> None:
        result[rows] = _sharpened_rows(values, rows)

    _by_rows(sharpen, values.shape)
    return result


def _sharpened_rows(values: Floats, rows: slice) -> Floats:
    """Return `rows` of the result of `_sharpened`."""
    start = max(rows.start - 1, 0)
    padded, inner = values[start : rows.stop + 1], slice(rows.start - start, rows.stop - start)
    change = np.zeros_like(padded)
    for axis in range(values.ndim):
        slope = np.diff(padded, axis=axis)
        pads = [(int(axis == k), int(axis == k)) for k in range(values.ndim)]
        change += np.diff(np.pad(slope, pads), axis=axis)
    limits = MAX_CHANGE * values[rows]
    return np.asarray(values[rows] - np.clip(change[inner] / 24, -limits, limits))


@dataclass(frozen=True)
class _Slab:
    """A range of rows of the grid along its first axis, and the regions with their properties.

    Points are shifted by half a spacing along the axis `shifted`, if it is not None.
    """

    grid: Grid
    rows: slice
    regions: Sequence[Filled]
    shifted: int | None

    def fill(self, values: Mapping[str, Floats], uniform: Mapping[str, float]) -> Flags:
        """Write the medium of the slab to `values`, which contain the uniform medium.

        Return flags of the regions in it.

        `uniform` is the medium without regions.
        """
        half = np.array(self.grid.spacings) / 2
        positions = [self.grid.positions(axis) for axis in self.grid.axes]
        if self.shifted is not None:
            positions[self.shifted] = positions[self.shifted] + half[self.shifted]
        positions[0] = positions[0][self.rows]
        shape = tuple(len(x) for x in positions)
        mesh = [x.reshape([-1 if k == a else 1 for k in range(len(shape))]) for a, x in enumerate(positions)]
        inside = [np.broadcast_to(region.solid.contains(mesh), shape) for region in self.regions]
        low, high = ([x + sign * h for x, h in zip(mesh, half, strict=True)] for sign in (-1, 1))
        if self.grid.symmetry is not None:  # a cell on the axis has no points of negative radius
            low[-1] = np.maximum(low[-1], 0.0)
        cut = [np.broadcast_to(region.solid.cuts(low, high), shape) for region in self.regions]
        present = np.array([mask.any() for mask in inside])
        cut_cells = np.flatnonzero(reduce(np.logical_or, cut))
        cells = np.stack(np.unravel_index(cut_cells, shape), axis=1)
        for mask, region in zip(inside, self.regions, strict=True):
            for name, value in region.properties.items():
                values[name][mask] = value
        step = max(1, _CHUNK // _SAMPLES[len(shape)] ** len(shape))
        for start in range(0, len(cut_cells), step):
            batch = slice(start, start + step)
            index = tuple(cells[batch].T)
            flags = [(by_cut[index], by_point[index]) for by_cut, by_point in zip(cut, inside, strict=True)]
            centres = [x[cells[batch, axis]] for axis, x in enumerate(positions)]
            names = set(values) | ({"density", "sound_speed"} if "sound_speed" in values else set())
            means, reached = self._means(centres, flags, {name: uniform.get(name, 0.0) for name in names})
            present |= reached
            for name, (mean, differs) in means.items():
                if name in values:
                    values[name][tuple(axis[differs] for axis in index)] = mean[differs]
        return present

    def _means(
        self, centres: Sequence[Floats], flags: Sequence[tuple[Flags, Flags]], uniform: Mapping[str, float]
    ) -> tuple[dict[str, tuple[Floats, Flags]], Flags]:
        """Return averages over cells with flags of the varying ones, and flags of the regions found in any cell.

        `centres` are those of the cells along each axis. `flags` state whether a region cuts a cell, and whether it
        contains its centre. `uniform` are the values without regions.
        """
        dimensions = len(centres)
        lines = [self._line(axis, x) for axis, x in enumerate(centres)]
        mesh: list[Floats] = []
        product: Floats = np.ones(1)
        for axis, (positions, fractions) in enumerate(lines):
            shape = [-1, *(positions.shape[1] if k == axis else 1 for k in range(dimensions))]
            mesh.append(positions.reshape(shape))
            product = product * fractions.reshape(shape)
        samples = {name: np.full((len(product), product[0].size), value) for name, value in uniform.items()}
        reached = np.zeros(len(self.regions), bool)
        for number, (region, (cut, inside)) in enumerate(zip(self.regions, flags, strict=True)):
            fully_inside, partly = inside & ~cut, np.flatnonzero(cut)
            contained = region.solid.contains([x[partly] for x in mesh])
            contained = np.broadcast_to(contained, (len(partly), *product.shape[1:]))
            contained = contained.reshape(len(partly), product[0].size)
            reached[number] = contained.any()
            for name, value in region.properties.items():
                samples[name][fully_inside] = value
                samples[name][partly] = np.where(contained, value, samples[name][partly])
        weights = product.reshape(len(product), -1)

        def mean(array: Floats) -> Floats:
            return np.asarray((weights * array).sum(1))

        means = {name: mean(array) for name, array in samples.items() if name != "sound_speed"}
        varying = {name: array.min(1) != array.max(1) for name, array in samples.items()}
        if "sound_speed" in samples:
            compressibility = mean(1 / (samples["density"] * samples["sound_speed"] ** 2))
            means["sound_speed"] = 1 / np.sqrt(means["density"] * compressibility)
            varying["sound_speed"] |= varying["density"]
        return {name: (value, varying[name]) for name, value in means.items()}, reached

    def _line(self, axis: int, centres: Floats) -> tuple[Floats, Floats]:
        """Return the positions and weights of the samples of cells along an axis, both (cells, samples)."""
        half, dimensions = self.grid.spacings[axis] / 2, len(self.grid.shape)
        low, high = centres - half, centres + half
        if self.grid.is_radial(self.grid.axes[axis]):
            low = np.maximum(low, 0.0)
        planes = np.unique([plane for region in self.regions for plane in region.solid.planes(axis, dimensions)])
        within = (planes > low[:, None]) & (planes < high[:, None])
        count = int(within.sum(1).max(initial=0))
        cuts = np.sort(np.where(within, planes, np.inf), axis=1)[:, :count]
        return subdivide(low, high, np.where(np.isfinite(cuts), cuts, low[:, None]), _SAMPLES[dimensions])
