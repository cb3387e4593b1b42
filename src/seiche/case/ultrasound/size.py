# SPDX-License-Identifier: BSD-3-Clause
"""Set-up of a case with a large grid for `seiche check`, without arrays over the grid."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from seiche.case.load import check_tables
from seiche.case.source import CaseFile
from seiche.case.ultrasound.medium import averages, medium_with, placed_regions, properties_of
from seiche.case.ultrasound.points import along, check_axes
from seiche.case.ultrasound.regions import MAX_CHANGE, Filled
from seiche.case.ultrasound.schema import MediumTable, UltrasoundCase
from seiche.case.ultrasound.setup import (
    UltrasoundSetup,
    check_frequencies,
    check_plausible,
    sensor_of,
    signal_of,
    signals_of,
    with_time,
)
from seiche.case.ultrasound.sources import BallSource, Signal, shape_of
from seiche.errors import CaseError
from seiche.ultrasound import Grid, Medium, Sensor
from seiche.ultrasound.emitter import HALF_WIDTH, quadrature_of
from seiche.ultrasound.extents import slow_extent_advice
from seiche.ultrasound.medium import on_grid
from seiche.ultrasound.problem import MaskSource, Pml, Problem
from seiche.ultrasound.records import Request
from seiche.ultrasound.shapes import Shape
from seiche.ultrasound.simulate import Layers, check_stability, request_of
from seiche.ultrasound.solver import check_axisymmetric_support, check_elastic_support

#: Number of points above which `seiche check` creates no array over the grid.
MAX_CREATED_POINTS = 2_000_000
#: Number of points along a source from which its size on the grid is estimated.
_POINTS_ALONG = 64
_NOTE = "about {0:.3g} points: the sizes of media and sources are estimated from their tables"


@dataclass(frozen=True)
class SizedProblem(Problem):
    """A problem without arrays over the grid; a field contains the values that occur, in any order.

    Attributes:
        delayed_samples: number of samples of signals that differ between points.
    """

    delayed_samples: int = 0

    @property
    def stored_samples(self) -> int:
        """Return the number of samples of all signals."""
        return super().stored_samples + self.delayed_samples

    def _check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Accept any number of values."""


def sized_setup(source: CaseFile) -> UltrasoundSetup | None:
    """Return the set-up of a case with a large grid; None if the grid is small or files contain values on it.

    Raises CaseError for a case that cannot run.
    """
    case, path = check_tables(source.tables, str(source.path), UltrasoundCase).located, source.path
    shape, medium = case.grid.shape, case.medium
    if math.prod(shape) <= MAX_CREATED_POINTS or medium.file is not None or medium.ct is not None:
        return None
    if case.target is not None and case.target.steering != "none":
        return None
    if any(not isinstance(table, Signal | BallSource) for table in case.source):
        return None
    try:
        return _setup(case, path)
    except CaseError as error:
        raise CaseError(f"{path}: {error}") from None


def _setup(case: UltrasoundCase, path: Path) -> UltrasoundSetup:
    medium = _medium(case.medium, case.grid.spatial_grid, path.parent)
    grid = with_time(case, case.grid.spatial_grid, medium)
    check_plausible(medium, grid)
    if grid.symmetry is not None:
        check_axisymmetric_support(case.run.scheme, ranks=1)
    if case.medium.is_elastic:
        check_elastic_support(case.run.scheme)
    layers = Layers.of(grid, case.layer.points, case.layer.strength, case.layer.inside)
    problem = _problem(case, grid, medium, layers)
    check_frequencies(case, problem)
    limit = check_stability(problem, case.run.scheme, "grid")
    sensor, request = _records(case, grid, layers)
    sensor.check_medium(elastic=case.medium.is_elastic)
    notes = (*slow_extent_advice(problem), _NOTE.format(problem.points))
    return UltrasoundSetup(case, str(path), grid, medium, sensor, layers, problem, request, limit, notes)


def _medium(table: MediumTable, grid: Grid, folder: Path) -> Medium:
    """Return the medium with one value per part instead of one per point; CaseError for an invalid part."""
    power = table.exponent
    parts = [properties_of(table, power, elastic=table.is_elastic)]
    for number, region in enumerate(placed_regions(table, grid, folder)):
        _check_region_in_grid(region, grid, f"medium.region[{number}]")
        parts += [{**parts[0], **region.properties}, {**parts[-1], **region.properties}]
    averaged = averages(table)
    if averaged:
        parts += _extremes(parts, len(grid.shape))
    values: dict[str, Any] = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        lists = [part.get(name, 0.0) for part in parts]
        values[name] = np.array(lists) if np.ptp(lists) > 0 else lists[0]
    for name in ("sound_speed", "density"):
        if name not in values:
            raise CaseError(f"medium.{name}: is missing; set it, or choose a material or a file")
    if averaged and np.ndim(values["density"]) > 0:
        values["staggered_density"] = (values["density"],) * len(grid.shape)
    return medium_with(values, table)


def _extremes(parts: list[dict[str, float]], dimensions: int) -> list[dict[str, float]]:
    """Return the stiffest and softest part, which have the extreme speeds of averages (theory/ultrasound, eq. 33)."""
    complete = [part for part in parts if "sound_speed" in part and "density" in part]
    if not complete:
        return [{}, {}]
    values = [1 / (part["density"] * part["sound_speed"] ** 2) for part in complete]
    result = []
    for value, sign in ((min(values), -1.0), (max(values), 1.0)):
        part = complete[values.index(value)]
        change = min(MAX_CHANGE, 2 * dimensions * (max(values) - min(values)) / (24 * value))
        result.append(part | {"sound_speed": part["sound_speed"] / math.sqrt(1 + sign * change)})
    return result


def _check_region_in_grid(region: Filled, grid: Grid, name: str) -> None:
    """Raise a CaseError for a region whose bounding box contains no point of the grid."""
    low, high = region.solid.bounds()
    for axis, first, last in zip(grid.axes, low, high, strict=True):
        positions = along(grid, axis)
        if not ((positions >= first) & (positions <= last)).any():
            raise CaseError(f"{name}: the {region.kind} contains no point of the grid")


def _problem(case: UltrasoundCase, grid: Grid, medium: Medium, layers: Layers) -> SizedProblem:
    assert grid.dt is not None and grid.steps is not None
    classes = (1 + 2 * len(case.medium.region) + 2 * averages(case.medium),)
    speed = on_grid("medium.sound_speed", medium.sound_speed, classes)
    if (relaxation := medium.relaxation(classes)) is not None:
        speed = on_grid("medium.sound_speed", relaxation.unrelaxed_speeds[relaxation.labels], classes)
    reference = float(np.max(speed)) if medium.sound_speed_ref is None else float(medium.sound_speed_ref)
    sources, delayed_samples = _sources(case, grid, float(np.min(speed)))
    return SizedProblem(
        axes=grid.axes,
        shape=layers.enlarged(grid.shape),
        spacing=grid.spacings,
        dt=grid.dt,
        steps=grid.steps,
        reference_speed=reference,
        sound_speed=speed,
        density=on_grid("medium.density", medium.density, classes),
        staggered_density=None
        if medium.staggered_density is None
        else tuple(on_grid("medium.staggered_density", field, classes) for field in medium.staggered_density),
        BonA=None if medium.BonA is None else on_grid("medium.BonA", medium.BonA, classes),
        absorption=medium.absorption(classes),
        relaxation=relaxation,
        elastic=medium.elastic(classes),
        pml=tuple(Pml(size, alpha) for size, alpha in zip(layers.sizes, layers.alphas, strict=True)),
        outer_end=None if grid.symmetry is None else grid.outer_end,
        sources=sources,
        delayed_samples=delayed_samples,
    )


def _sources(case: UltrasoundCase, grid: Grid, speed: float) -> tuple[tuple[MaskSource, ...], int]:
    """Return the sources with placeholders for their points, and the number of samples of delayed signals."""
    assert grid.dt is not None
    for number, ball in enumerate(case.source):
        if isinstance(ball, BallSource):
            check_axes(f"source[{number}].center", ball.center, grid)
    if not case.source:
        raise CaseError("source: has neither p0 nor a signal p, ux, uy or uz")
    sources, delayed_samples = [], 0
    for emitter, source_indices in enumerate(signals_of(case)):
        tones = {number: cast(Signal, case.source[number]) for number in source_indices}
        shapes = [shape_of(tone, grid, f"source[{number}]") for number, tone in tones.items()]
        name = f"source.emitters[{emitter}]"
        count = sum(points_of(shape, grid, name) for shape in shapes)
        max_amplitude = max(tone.amplitude for tone in tones.values())
        scale = 2 * grid.dt / (len(grid.shape) * speed * min(grid.spacings))
        samples = scale * max_amplitude * signal_of(tones[source_indices[0]], grid)
        points = np.broadcast_to(np.zeros(1, np.int64), (count,))
        if np.ptp([tone.delay for tone in tones.values()]) > 0:
            max_delay = max(tone.delay for tone in tones.values()) / grid.dt
            delayed_samples += count * (len(samples) + math.ceil(min(max_delay, grid.steps or max_delay)))
        sources.append(MaskSource("p", points, samples[:, None], "additive", len(samples), origin=name))
    return tuple(sources), delayed_samples


def points_of(shape: Shape, grid: Grid, name: str) -> int:
    """Return the approximate number of grid points with a weight of a shape, those within half the kernel width.

    A cube of this width, swept along a surface with normal n, fills a volume of its width times |n_x| + |n_y| + |n_z|
    per unit area, and half a square at the rim. Raises CaseError for a shape that is not inside the grid.
    """
    spacing, dimensions = min(grid.spacings), len(grid.shape)
    width = 2 * HALF_WIDTH
    quadrature = quadrature_of(shape, grid, name, max(spacing, shape.size() / _POINTS_ALONG))
    projected_width = 1.5 if quadrature.normals is None else np.abs(quadrature.normals).sum(axis=1)
    swept = float((quadrature.weights * projected_width).sum()) / spacing**quadrature.dimension
    rim = math.pi * shape.size() / spacing * width**2 / 2 if quadrature.dimension == 2 else width**dimensions
    count = swept * float(width) ** (dimensions - quadrature.dimension) + rim
    return min(math.prod(grid.shape), int(count))


def _records(case: UltrasoundCase, grid: Grid, layers: Layers) -> tuple[Sensor, Request]:
    """Return the sensor and the request, with placeholders for the points of a ring."""
    sensor, ring = sensor_of(case, grid, None), case.record.ring
    if ring is None:
        sensor.check(grid)
        return sensor, request_of(grid, sensor, layers, elastic=case.medium.is_elastic)
    check_axes("record.ring.center", ring.center, grid)
    sides = 2 * math.pi * ring.radius, 4 * math.pi * ring.radius**2
    spacing, dimensions = min(grid.spacings), len(grid.shape)
    count = round(sides[dimensions - 2] / spacing ** (dimensions - 1)) if dimensions > 1 else 2
    points = np.broadcast_to(np.zeros(1, np.int64), (max(1, count),))
    request = replace(
        request_of(grid, sensor, layers, elastic=case.medium.is_elastic), points=points, nodes=None, weights=None
    )
    if case.record.direction is None:
        return sensor, request
    angles = np.linspace(0, math.pi, len(points), endpoint=False) * (case.record.direction == "radial")
    directions = np.zeros((len(points), dimensions))
    directions[:, 0], directions[:, -1] = np.cos(angles), np.sin(angles) if dimensions > 1 else 1.0
    return sensor, replace(request, directions=directions)
