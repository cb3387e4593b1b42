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
from seiche.domain.set_up_ranks import own_part
from seiche.domain.site_rows import Indices
from seiche.domain.surface import Surface
from seiche.kernels.registry import sites as registry

#: Tolerance for hits just outside a triangle, in its barycentric coordinates u and v.
EDGE_TOLERANCE = 1e-6
#: In lattice spacings: maximum edge length of the pieces into which a triangle is divided to find its cells, and margin
#: around a piece within which links are tested.
_MAX_EDGE, _MARGIN = 2.0, 1.001
#: Number of pieces in a group. If a link intersects two triangles at the same distance, the later one is used if both
#: are in the same group, otherwise the earlier one. An earlier implementation searched 2^20 / 5^3 = 8388 pieces at a
#: time; with this rule, the iolets and normals of such links remain the same.
_GROUP = 8388


@dataclass(frozen=True)
class SurfaceWall:
    """A triangulated wall for `assemble`; `labels` (f,): iolet whose cap each triangle belongs to, or -1."""

    surface: Surface
    labels: npt.NDArray[np.int16]
    _arguments: dict[Any, dict[str, Any]] = field(default_factory=dict, compare=False, repr=False)

    def find(self, lattice: CandidateNodes, node: Indices, direction: Indices) -> WallHits:
        """Return the first hits of the links from nodes `node` (p,), in ascending order, along `direction` (p,)."""
        count = len(node)
        hits = WallHits(np.empty(count), np.empty((count, 3)), np.empty(count, np.int16))
        coords, row = lattice.coords_at(node)
        first = np.append(np.flatnonzero(np.diff(row, prepend=-1)), count)
        run_pass(
            registry.surface_link_hits(), len(first) - 1, coords=coords, node=row, direction=direction, first=first,
            fraction=hits.fraction, normal=hits.normal, iolet=hits.iolet,
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
        """Return the arguments with the triangles near this rank's share of the nodes."""
        corners = (self.surface.corners() - np.asarray(lattice.origin)) / lattice.spacing
        common = {"shape": lattice.shape, "longest": _MAX_EDGE, "margin": _MARGIN}
        counts, pieces = _counts_of({"surface": {"corners": corners, "vertices": self.surface.faces}, **common})
        group = (offsets(pieces)[:-1] // _GROUP).astype(np.int32)
        near_triangles = _near_own_nodes(corners, lattice)
        surface = {"corners": corners[near_triangles], "vertices": self.surface.faces[near_triangles]}
        area_vectors = self.surface.vector_areas()[near_triangles]
        areas = np.linalg.norm(area_vectors, axis=1, keepdims=True)
        unit_normals = area_vectors / np.maximum(areas, np.finfo(float).tiny)
        cells, first, faces = _cells_of({"surface": surface, **common}, counts[near_triangles])
        return {
            **{"surface": surface, "shape": lattice.shape, "unit": unit_normals, "label": self.labels[near_triangles]},
            **{
                "cells": cells,
                "cell_first": first,
                "cell_count": len(cells),
                "faces": faces,
                "group": group[near_triangles],
            },
            **{"edge_tolerance": EDGE_TOLERANCE, "reach": 1.0 + 3.0 * ON_SURFACE, "margin": _MARGIN},
        }


def _near_own_nodes(corners: Floats, lattice: CandidateNodes) -> Indices:
    """Return the triangles, with `corners` in spacings, that links from this rank's nodes may intersect."""
    own_nodes = own_part(lattice.rows.site)
    if not len(own_nodes):
        return np.zeros(0, np.int64)
    first, last = (int(lattice.rows.row[run]) // lattice.shape[1] for run in (own_nodes.start, own_nodes.stop - 1))
    x = corners[:, :, 0]
    return np.flatnonzero((x.max(axis=1) >= first - 2.0 * _MARGIN) & (x.min(axis=1) <= last + 2.0 * _MARGIN))


def _counts_of(arguments: dict[str, Any]) -> tuple[Indices, Indices]:
    """Return the numbers of cells and of pieces of each triangle (f,)."""
    count = len(arguments["surface"]["corners"])
    counts, pieces = np.empty(count, np.int64), np.empty(count, np.int64)
    run_pass(
        registry.triangle_cells(fill=False), count, first=None, counts=counts, pieces=pieces, cells=None, **arguments
    )
    return counts, pieces


def _cells_of(arguments: dict[str, Any], counts: Indices) -> tuple[Indices, Indices, npt.NDArray[np.int32]]:
    """Return the cells near triangles (c,), ascending; offsets of their triangles (c + 1,), and the triangles."""
    first, count = offsets(counts), len(counts)
    cells = np.empty(first[-1], np.int64)
    run_pass(registry.triangle_cells(fill=True), count, first=first, counts=None, pieces=None, cells=cells, **arguments)
    pair = cells * count + np.repeat(np.arange(count), counts)
    pair.sort()
    pair = pair[np.diff(pair, prepend=-1) > 0]
    cell, face = np.divmod(pair, max(count, 1))
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    return cell[starts], np.append(starts, len(cell)), face.astype(np.int32)
