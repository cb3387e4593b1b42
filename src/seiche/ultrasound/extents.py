# SPDX-License-Identifier: BSD-3-Clause
"""Parts whose lines the kernels themselves can transform: their overlaps are widened to a good extent near."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

from seiche.backend import parse_device
from seiche.kernels.registry import Real
from seiche.kernels.registry.kspace_lines import fixed_transform, step_cost
from seiche.ultrasound.local_basis import Part
from seiche.ultrasound.problem import Window

#: A part may grow by one of so many points, or by the fewest points, so that its lines can be transformed.
_LARGEST_SHARE, _FEWEST = 10, 4
#: Of extents whose costs differ by less, the widest overlap is taken: its error is the least.
_AS_CHEAP = 1.02


def lines_of(options: Mapping[str, Any]) -> Real | None:
    """Return the precision of the lines that a `Solver` with these options takes where it can, None for a library."""
    transforms, device = options.get("transforms", "auto"), options.get("device", "cpu")
    exact = options.get("scheme", "exact") == "exact"
    wanted = transforms == "lines" or (transforms == "auto" and parse_device(device).is_gpu)
    precision: Real = options.get("precision", "float32")
    return precision if exact and wanted and precision in get_args(Real) else None


def widened(parts: Sequence[Part], real: Real) -> list[Part] | None:
    """Return parts with overlaps at least as wide, all of whose lines can be transformed; None if there are none near.

    The extent is the cheapest one near; rows have even lengths.
    """
    found = []
    for part in parts:
        windows = [_window(one, axis, len(part.windows), real) for axis, one in enumerate(part.windows)]
        known = tuple(one for one in windows if one is not None)
        if len(known) < len(windows) or len(windows) < 2:
            return None
        found.append(replace(part, windows=known))
    return found


def _window(window: Window, axis: int, dimensions: int, real: Real) -> Window | None:
    least, last = window.extent, axis == dimensions - 1
    if not window.overlap:
        return window if fixed_transform(least, last, real) is not None else None
    most = least + max(_FEWEST, least // _LARGEST_SHARE)
    near = range(least, max(least, min(most, window.total, 2 * window.core)) + 1)  # as `parts_of` allows
    costs = {extent: extent * step_cost(extent, last, real) for extent in near if not last or extent % 2 == 0}
    cheapest = min(costs.values(), default=float("inf"))
    if cheapest == float("inf"):
        return None
    extent = max(extent for extent, cost in costs.items() if cost <= _AS_CHEAP * cheapest)
    overlap, more = divmod(extent - window.core, 2)
    return replace(window, overlap=overlap, more=more)
