# SPDX-License-Identifier: BSD-3-Clause
"""Extents that are fast to transform: advice for grids, and subdomains whose overlaps are widened to such extents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

from seiche.backend import parse_device
from seiche.kernels.registry import Real
from seiche.kernels.registry.kspace_lines import CAPACITIES, fixed_transform, step_cost
from seiche.ultrasound.local_basis import Part
from seiche.ultrasound.numbers import largest_prime_factor
from seiche.ultrasound.problem import Problem, Window
from seiche.ultrasound.radial import OuterEnd, continued_points

#: An extent may increase by a tenth or by `_MIN_WIDENING` points, whichever is larger, to one that the built-in
#: transforms support.
_WIDENING_DIVISOR, _MIN_WIDENING = 10, 4
#: Relative cost within which extents are considered equally cheap; the widest overlap has the smallest error.
_COST_TOLERANCE = 1.02
#: Libraries have kernels for prime factors up to this one; transforms of others take several times as long.
_MAX_PRIME = 11
#: Largest prime factor of the recommended extents: the largest one that Seiche's own transforms support on a GPU.
_ADVISED_PRIME = 7


def slow_extent_advice(problem: Problem) -> tuple[str, ...]:
    """Return advice for the axes of a grid whose extents have a large prime factor; transforms of these are slow."""
    messages = []
    for name, extent in zip(problem.axes, problem.shape, strict=True):
        end = problem.outer_end if problem.is_radial(name) else None
        prime = _largest_prime(extent, end)
        if prime > _MAX_PRIME:
            lower, upper = extent, extent
            while lower > 2 and _largest_prime(lower, end) > _ADVISED_PRIME:
                lower -= 1
            while _largest_prime(upper, end) > _ADVISED_PRIME:
                upper += 1
            extension = "" if end is None else " after symmetric extension across the axis"
            messages.append(
                f"{extent} points along {name}, absorbing layers included, have the prime factor {prime}{extension}, "
                f"for which the transforms are slow; {lower} or {upper} points would be faster"
            )
    return tuple(messages)


def _largest_prime(extent: int, end: OuterEnd | None) -> int:
    """Return the largest prime factor of the length of a transform; with an outer `end`, that of a radial axis."""
    return largest_prime_factor(extent if end is None else continued_points(extent, end))


def line_precision(options: Mapping[str, Any], *, elastic: bool = False) -> Real | None:
    """Return the precision of the line transforms of a `Solver` with these options; None for a library.

    In an `elastic` medium kernels always transform lines.
    """
    transforms, device = options.get("transforms", "auto"), options.get("device", "cpu")
    exact = options.get("scheme", "exact") == "exact"
    use_lines = transforms == "lines" or (transforms == "auto" and parse_device(device).is_gpu)
    precision: Real = options.get("precision", "float32")
    return precision if exact and (use_lines or elastic) and precision in get_args(Real) else None


def widen_overlaps(parts: Sequence[Part], real: Real) -> list[Part] | None:
    """Return subdomains with overlaps widened until the built-in transforms support all extents; None if impossible.

    The extent is the cheapest one nearby; rows have even lengths.
    """
    result = []
    for part in parts:
        windows = [_widened_window(window, axis, len(part.windows), real) for axis, window in enumerate(part.windows)]
        widened_windows = tuple(window for window in windows if window is not None)
        if len(widened_windows) < len(windows) or len(windows) < 2:
            return None
        result.append(replace(part, windows=widened_windows))
    return result


def _widened_window(window: Window, axis: int, dimensions: int, real: Real) -> Window | None:
    """Return a window with an extent that the built-in transforms support, None if there is none nearby."""
    min_extent, is_last_axis = window.extent, axis == dimensions - 1
    if not window.overlap:
        return window if fixed_transform(min_extent, is_last_axis, real) is not None else None
    max_extent = min_extent + max(_MIN_WIDENING, min_extent // _WIDENING_DIVISOR)
    if min_extent <= max(CAPACITIES):  # so that kernels for any length can transform it
        max_extent = min(max_extent, max(CAPACITIES))
    candidates = range(
        min_extent, max(min_extent, min(max_extent, window.total, 2 * window.core)) + 1
    )  # as `parts_of` allows
    costs = {
        extent: extent * step_cost(extent, is_last_axis, real)
        for extent in candidates
        if not is_last_axis or extent % 2 == 0
    }
    cheapest = min(costs.values(), default=float("inf"))
    if cheapest == float("inf"):
        return None
    extent = max(extent for extent, cost in costs.items() if cost <= _COST_TOLERANCE * cheapest)
    overlap, extra_points = divmod(extent - window.core, 2)
    return replace(window, overlap=overlap, extra_points=extra_points)
