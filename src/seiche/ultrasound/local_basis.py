# SPDX-License-Identifier: BSD-3-Clause
"""Local Fourier basis: the grid in overlapping parts with separate transforms (theory/ultrasound, section 12)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.problem import Elastic, Field, MaskSource, Problem, Window

Floats = npt.NDArray[np.float64]
#: Slopes of the bell function with the smallest error at four points per wavelength, by the width of the overlap.
_SLOPES = ((2, 4, 6, 8, 12, 16, 24, 32), (0.6, 1.0, 1.5, 2.0, 2.7, 3.0, 3.3, 3.6))
OVERLAPS = (4, 32)


@dataclass(frozen=True)
class Part:
    """A part of a grid: a window for each axis, and its rank."""

    rank: int
    windows: tuple[Window, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the points along each axis, overlaps included."""
        return tuple(window.extent for window in self.windows)

    @property
    def core(self) -> tuple[slice, ...]:
        """Return the slices of the owned points in the part."""
        return tuple(slice(window.overlap, window.overlap + window.core) for window in self.windows)

    @property
    def grid_slices(self) -> tuple[slice, ...]:
        """Return the slices of the owned points in the whole grid."""
        return tuple(slice(window.start, window.start + window.core) for window in self.windows)


def parts_of(shape: tuple[int, ...], split: tuple[int, ...], overlap: int) -> list[Part]:
    """Return the parts of a grid cut into `split` pieces along its axes, in C order; CaseError if they are too thin."""
    if len(split) != len(shape) or min(split) < 1:
        raise CaseError(f"split: {split} is not one number of pieces for each of {len(shape)} axes")
    _check_overlap(overlap)
    pieces = []
    for axis, (points, count) in enumerate(zip(shape, split, strict=True)):
        sizes = [points // count + (k < points % count) for k in range(count)]
        starts = np.cumsum([0, *sizes])[:-1]
        width = overlap if count > 1 else 0
        if count > 1 and min(sizes) < 2 * width:
            raise CaseError(
                f"split: {count} pieces of axis {'xyz'[axis]} have {min(sizes)} points; an overlap of {width} requires"
                f" at least {2 * width}"
            )
        pieces.append([Window(points, int(s), int(n), width) for s, n in zip(starts, sizes, strict=True)])
    return [
        Part(rank, tuple(piece[k] for piece, k in zip(pieces, indices, strict=True)))
        for rank, indices in enumerate(np.ndindex(*split))
    ]


def min_overlap(parts: Iterable[Part]) -> int:
    """Return the width of the narrowest overlap of any part, 0 where no axis is cut."""
    return min((window.overlap for part in parts for window in part.windows if window.overlap), default=0)


def best_split(shape: tuple[int, ...], ranks: int, overlap: int) -> tuple[int, ...]:
    """Return the split into `ranks` pieces whose largest part has the fewest points; raise CaseError without any split.

    Among equal splits it is the one with the most cuts of the first axes, which leaves rows and planes whole.
    """
    splits = possible_splits(shape, ranks, overlap)
    if not splits:
        raise CaseError(
            f"split: {'x'.join(map(str, shape))} points cannot be cut for {ranks} ranks with overlap {overlap}; use "
            "fewer ranks or a smaller overlap"
        )
    return min(
        splits, key=lambda split: (max(int(np.prod(part.shape)) for part in splits[split]), *(-n for n in split))
    )


def possible_splits(shape: tuple[int, ...], ranks: int, overlap: int) -> dict[tuple[int, ...], list[Part]]:
    """Return all splits into `ranks` pieces thick enough for the overlap, with their parts."""
    _check_overlap(overlap)
    splits = {}
    for split in _factorizations(ranks, len(shape)):
        with suppress(CaseError):
            splits[split] = parts_of(shape, split, overlap)
    return splits


def _check_overlap(overlap: int) -> None:
    lower_limit, upper_limit = OVERLAPS
    if not lower_limit <= overlap <= upper_limit:
        raise CaseError(f"overlap: {overlap} points is not between {lower_limit} and {upper_limit}")


def _factorizations(number: int, count: int) -> Iterator[tuple[int, ...]]:
    if count == 1:
        yield (number,)
        return
    for first in range(1, number + 1):
        if number % first == 0:
            for other_factors in _factorizations(number // first, count - 1):
                yield (first, *other_factors)


def slope_of(overlap: int) -> float:
    """Return the slope of the bell function for a width of the overlap."""
    return float(np.interp(overlap, *_SLOPES))


def bell(window: Window, slope: float | None = None) -> Floats:
    """Return the bell function along an axis, (extent,): 1 on owned points, falling to 0 over the overlaps (eq. 32)."""
    from scipy.special import erf

    def rise(width: int) -> Floats:
        z = 2 * (np.arange(width) + 0.5) / max(width, 1) - 1
        return np.asarray(0.5 * (1 + erf((slope_of(width) if slope is None else slope) * z / np.sqrt(1 - z * z))))

    return np.concatenate(
        [rise(window.overlap), np.ones(window.core), rise(window.overlap + window.extra_points)[::-1]]
    )


def derivative_error(core: int, overlap: int, points_per_wavelength: float) -> float:
    """Return the maximum error of the derivative of a wave on the owned points, over its wave number."""
    window = Window(core, 0, core, overlap)
    k = 2 * np.pi / points_per_wavelength
    wave_numbers = 2 * np.pi * np.fft.fftfreq(window.extent)
    if window.extent % 2 == 0:
        wave_numbers[window.extent // 2] = 0.0
    wave = np.exp(1j * k * (np.arange(window.extent) - overlap))
    derivative = np.fft.ifft(1j * wave_numbers * np.fft.fft(wave * bell(window)))
    inside = slice(overlap, overlap + core)
    return float(np.abs(derivative - 1j * k * wave)[inside].max() / k)


def part_problem(problem: Problem, part: Part) -> Problem:
    """Return the problem on a part with overlaps. Beyond the grid the medium is constant and fields are periodic."""
    windows = part.windows

    def medium(value: Field) -> Field:
        return values_on_part(np.asarray(value), windows, clipped=True) if np.ndim(value) else value

    absorption, relaxation, pressure = problem.absorption, problem.relaxation, problem.initial_pressure
    staggered, elastic = problem.staggered_density, problem.elastic
    return replace(
        problem,
        shape=part.shape,
        window=windows,
        sound_speed=medium(problem.sound_speed),
        density=medium(problem.density),
        BonA=None if problem.BonA is None else medium(problem.BonA),
        staggered_density=None if staggered is None else tuple(medium(value) for value in staggered),
        absorption=None if absorption is None else replace(absorption, alpha_coeff=medium(absorption.alpha_coeff)),
        relaxation=(
            None
            if relaxation is None
            else replace(relaxation, labels=values_on_part(relaxation.labels, windows, clipped=True))
        ),
        elastic=None if elastic is None else _elastic(elastic, medium),
        initial_pressure=None if pressure is None else values_on_part(pressure, windows, clipped=False),
        sources=tuple(
            local for source in problem.sources if (local := _source(source, problem.shape, part)) is not None
        ),
    )


def _elastic(elastic: Elastic, medium: Callable[[Field], Field]) -> Elastic:
    loss = elastic.shear_alpha_coeff
    return Elastic(medium(elastic.shear_speed), None if loss is None else medium(loss))


def values_on_part(values: npt.NDArray[Any], windows: tuple[Window, ...], *, clipped: bool) -> npt.NDArray[Any]:
    """Return values over the grid on a part of it; beyond the ends they are periodic, or constant if `clipped`."""
    for axis, window in enumerate(windows):
        if window.core != window.total:
            values = values.take(window.indices(clipped=clipped), axis)
    return np.ascontiguousarray(values)


def points_in(
    points: npt.NDArray[np.int64], shape: tuple[int, ...], part: Part, *, core: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return which points (indices of the grid) are in a part, or in its `core`, and their indices there."""
    inside = np.ones(len(points), bool)
    local_indices = []
    for coordinate, window in zip(np.unravel_index(points, shape), part.windows, strict=True):
        local = (coordinate - window.start + window.overlap) % window.total
        low, high = (window.overlap, window.overlap + window.core) if core else (0, window.extent)
        inside &= (local >= low) & (local < high)
        local_indices.append(np.minimum(local, window.extent - 1))
    rows = np.flatnonzero(inside)
    local = np.ravel_multi_index(tuple(coordinate[rows] for coordinate in local_indices), part.shape)
    return rows, np.asarray(local, np.int64)


def _source(source: MaskSource, shape: tuple[int, ...], part: Part) -> MaskSource | None:
    """Return a source on a part; sources in the overlaps act, too, since corrected sources spread."""
    chosen, local = points_in(source.points, shape, part, core=False)
    if not len(chosen):
        return None
    samples = source.samples if source.samples.shape[1] == 1 else np.ascontiguousarray(source.samples[:, chosen])
    return replace(
        source,
        points=local,
        samples=samples,
        weights=None if source.weights is None else source.weights[chosen],
        delays=None if source.delays is None else source.delays[chosen],
    )
