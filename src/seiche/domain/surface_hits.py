# SPDX-License-Identifier: BSD-3-Clause
"""A triangulated wall: intersections of lattice links with its triangles (`kernels/sites/surface_hits.hpp`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.candidates import CandidateNodes, Floats, WallHits
from seiche.domain.host_passes import offsets, run_pass
from seiche.domain.inside import ON_SURFACE
from seiche.domain.site_rows import Indices, Triple
from seiche.domain.surface import Surface
from seiche.kernels.registry import sites as registry

#: Tolerance of hits outside a triangle, in its coordinates u and v.
EDGE_TOLERANCE = 1e-6
#: In spacings: maximum edge of the pieces into which a triangle is divided to find its cells, and margin around a piece
#: within which links are tested.
_MAX_EDGE, _MARGIN = 2.0, 1.001
#: If a link intersects two triangles at the same distance, the later one is used if both are in the same group of this
#: number of pieces, otherwise the earlier one.
_GROUP = 8388


@dataclass(frozen=True)
class SurfaceWall:
    """A triangulated wall for `assemble`; `labels` (f,): iolet that each triangle closes, or -1."""

    surface: Surface
    labels: npt.NDArray[np.int16]
    _arguments: dict[Any, dict[str, Any]] = field(default_factory=dict, compare=False, repr=False)

    def find(self, lattice: CandidateNodes, node: Indices, direction: Indices) -> WallHits:
        """Return the first hits of the links from the ascending nodes `node` (p,) along `direction` (p,)."""
        count = len(node)
        hits = WallHits(np.empty(count), np.empty((count, 3)), np.empty(count, np.int16))
        first = np.append(np.flatnonzero(np.diff(node, prepend=-1)), count)
        run_pass(
            registry.surface_link_hits(), len(first) - 1, coords=lattice.coords, node=node, direction=direction,
            first=first, fraction=hits.fraction, normal=hits.normal, iolet=hits.iolet,
            **self._kernel_arguments(lattice),
        )  # fmt: skip
        return hits

    def _kernel_arguments(self, lattice: CandidateNodes) -> dict[str, Any]:
        """Return the arguments of the kernel that do not depend on the links."""
        key = (lattice.shape, lattice.origin, lattice.spacing)
        if key not in self._arguments:
            self._arguments.clear()
            self._arguments[key] = self._new_arguments(lattice)
        return self._arguments[key]

    def _new_arguments(self, lattice: CandidateNodes) -> dict[str, Any]:
        corners = (self.surface.corners() - np.asarray(lattice.origin)) / lattice.spacing
        surface = {"corners": corners, "vertices": self.surface.faces}
        area = self.surface.vector_areas()
        unit = area / np.maximum(np.linalg.norm(area, axis=1, keepdims=True), np.finfo(float).tiny)
        cells, first, faces, group = _cells_of(surface, len(corners), lattice.shape)
        return {
            **{"surface": surface, "shape": lattice.shape, "unit": unit, "label": np.ascontiguousarray(self.labels)},
            **{"cells": cells, "cell_first": first, "cell_count": len(cells), "faces": faces, "group": group},
            **{"edge_tolerance": EDGE_TOLERANCE, "reach": 1.0 + 3.0 * ON_SURFACE, "margin": _MARGIN},
        }


def _cells_of(
    surface: dict[str, Floats], count: int, shape: Triple
) -> tuple[Indices, Indices, npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the cells near triangles (c,), ascending; offsets of their triangles (c + 1,), the triangles; groups."""
    common = {"surface": surface, "shape": shape, "longest": _MAX_EDGE, "margin": _MARGIN}
    counts, pieces = np.empty(count, np.int64), np.empty(count, np.int64)
    run_pass(registry.triangle_cells(fill=False), count, first=None, counts=counts, pieces=pieces, cells=None, **common)
    first = offsets(counts)
    cells = np.empty(first[-1], np.int64)
    run_pass(registry.triangle_cells(fill=True), count, first=first, counts=None, pieces=None, cells=cells, **common)
    pair = cells * count + np.repeat(np.arange(count), counts)
    pair.sort()
    pair = pair[np.diff(pair, prepend=-1) > 0]
    cell, face = np.divmod(pair, max(count, 1))
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    group = (offsets(pieces)[:-1] // _GROUP).astype(np.int32)
    return cell[starts], np.append(starts, len(cell)), face.astype(np.int32), group
