# SPDX-License-Identifier: BSD-3-Clause
"""Elements of a cell type, and the lists by which vertices gather the forces of elements.

Elements are the triangles, regular ones first, ordered along a space-filling curve. The elements of a chunk therefore
share many vertices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from seiche.cells.loop import QUADRATURE, patches, weights_at
from seiche.cells.mesh import along_curve, rings_of
from seiche.cells.model import CellType
from seiche.errors import CaseError
from seiche.kernels.registry.membrane import BATCH, FLAT_CHUNK, FLAT_SLOTS, SLOTS

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer]


@dataclass(frozen=True)
class GatherLists:
    """Entries to which elements write forces on control points, and the entries that each vertex sums after a chunk.

    `entry` (elements, slots) is the index among the entries of the chunk, which are ordered by vertex, element and
    slot; unused slots come last.
    """

    chunk_first: npt.NDArray[np.int32]
    touched: npt.NDArray[np.uint16]
    entry_end: npt.NDArray[np.uint16]
    entry: npt.NDArray[np.uint16]


class Elements:
    """Elements of a cell type, on the host.

    `control` (elements, slots) are the control points, -1 for unused slots; `faces` (elements, 3) are the corners in
    the same order; `rings` are the neighbours of each vertex.
    """

    def __init__(self, cell: CellType) -> None:
        """Sort the triangles and find their control points."""
        self.cell, self.loop = cell, cell.model.shell == "loop"
        self.rings = rings_of(cell.mesh.faces)
        ordered = cell.mesh.faces[along_curve(cell.mesh.corners().mean(axis=1))]
        if self.loop and any(sum(len(self.rings[k]) == 3 for k in face) > 1 for face in ordered.tolist()):
            raise CaseError(
                f"cell type {cell.name!r}: an edge of its mesh joins two vertices with three neighbours each; a "
                "subdivision surface requires at least four at one of them: change the mesh, or use flat triangles"
            )
        if self.loop:
            lists, valences = patches(ordered, self.rings)
            order = sorted(range(len(lists)), key=lambda k: (valences[k] != (6, 6, 6), valences[k]))
            lists, self.valences = [lists[k] for k in order], [valences[k] for k in order]
            self.slots = min(slots for slots in SLOTS if slots >= max(map(len, lists)))
            self.chunk = SLOTS[self.slots]
        else:
            lists = [self._hinges(face) for face in ordered.tolist()]
            self.slots, self.chunk = FLAT_SLOTS, FLAT_CHUNK
        self.control = np.full((len(lists), self.slots), -1, np.int64)
        for row, points in zip(self.control, lists, strict=True):
            row[: len(points)] = points
        self.faces = self.control[:, :3]
        self._gathered: dict[int, GatherLists] = {}

    def _hinges(self, face: list[int]) -> list[int]:
        """Return the corners and the vertices across the edges."""
        opposite_vertices = []
        for k in range(3):
            ring = self.rings[face[k]]
            opposite_vertices.append(ring[ring.index(face[(k + 1) % 3]) - 1])
        return face + opposite_vertices

    @cached_property
    def kinds(self) -> tuple[Integers, Floats]:
        """Return the kind of each element (elements,) and the weights of each kind (kinds, slots, 6, points)."""
        points, _ = QUADRATURE[self.cell.model.points]
        kinds = {valences: number for number, valences in enumerate(dict.fromkeys(self.valences))}
        weights = np.zeros((len(kinds), self.slots, 6, len(points)))
        for valences, number in kinds.items():
            for p, point in enumerate(points):
                weights[number, : sum(valences) - 6, :, p] = weights_at(valences, point).T
        return np.array([kinds[valences] for valences in self.valences]), weights

    def derivatives(self, vertices: Floats) -> Floats:
        """Return value and derivatives (..., elements, points, 6, 3) of a surface with control points (..., n, 3).

        Flat triangles have one point, the center, and no second derivatives.
        """
        if not self.loop:
            x = vertices[..., self.faces, :]
            a, b = x[..., 1, :] - x[..., 0, :], x[..., 2, :] - x[..., 0, :]
            zero = np.zeros_like(a)
            return np.stack([x.mean(axis=-2), a, b, zero, zero, zero], axis=-2)[..., None, :, :]
        kind, weights = self.kinds
        points = vertices[..., np.maximum(self.control, 0), :]
        result: Floats = np.einsum("eksp,...ekc->...epsc", weights[kind], points, optimize=True)
        return result

    @cached_property
    def weights(self) -> Floats:
        """Return the integration weight of each point, divided by the area of the parallelogram of the derivatives."""
        return 0.5 * (QUADRATURE[self.cell.model.points][1] if self.loop else np.ones(1))

    def gather(self, chunk: int) -> GatherLists:
        """Return the lists for chunks of `chunk` elements; copies of the last element pad the last batch."""
        if chunk not in self._gathered:
            self._gathered[chunk] = self._gather(chunk)
        return self._gathered[chunk]

    def _gather(self, chunk: int) -> GatherLists:
        count = len(self.control)
        filled = -(-count // BATCH) * BATCH
        control = np.full((filled, self.slots), -1, np.int64)
        control[:count] = self.control
        chunk_first, touched, ends, entry = [0], [], [], np.zeros((filled, self.slots), np.uint16)
        for begin in range(0, filled, chunk):
            points = control[begin : begin + chunk].reshape(-1)
            order = np.argsort(np.where(points < 0, np.iinfo(np.int64).max, points), kind="stable")
            entry[begin : begin + chunk].reshape(-1)[order] = np.arange(len(points))
            vertices, counts = np.unique(points[points >= 0], return_counts=True)
            touched.append(vertices)
            ends.append(np.cumsum(counts))
            chunk_first.append(chunk_first[-1] + len(vertices))
        return GatherLists(
            np.array(chunk_first, np.int32),
            np.concatenate(touched).astype(np.uint16),
            np.concatenate(ends).astype(np.uint16),
            entry,
        )
