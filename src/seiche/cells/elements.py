# SPDX-License-Identifier: BSD-3-Clause
"""The elements of a cell type and the lists by which vertices gather what elements do to them.

Elements are the triangles, regular ones first, along a space-filling curve, in chunks: the elements of a chunk share
many vertices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from seiche.cells.loop import QUADRATURE, patches, weights_at
from seiche.cells.mesh import rings_of
from seiche.cells.model import CellType
from seiche.kernels.registry.membrane import FLAT_CHUNK, FLAT_SLOTS, SLOTS

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer]


@dataclass(frozen=True)
class GatherLists:
    """Which entries, slot*chunk + lane, each vertex adds up after each chunk, in ascending order of lane and slot."""

    chunk_first: npt.NDArray[np.int32]
    touched: npt.NDArray[np.uint16]
    entry_first: npt.NDArray[np.int32]
    entries: npt.NDArray[np.uint16]


class Elements:
    """Elements of a cell type, on the host.

    `control` (elements, slots) are vertices, -1 where a slot is not used; `faces` (elements, 3) the corners in the same
    order; `rings` the neighbours of every vertex.
    """

    def __init__(self, cell: CellType) -> None:
        """Order the triangles and find their control points."""
        self.cell, self.loop = cell, cell.model.shell == "loop"
        self.rings = rings_of(cell.mesh.faces)
        ordered = cell.mesh.faces[_curve(cell.mesh.corners().mean(axis=1))]
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

    def _hinges(self, face: list[int]) -> list[int]:
        """Return the corners and the vertices across the edges."""
        across = []
        for k in range(3):
            ring = self.rings[face[k]]
            across.append(ring[ring.index(face[(k + 1) % 3]) - 1])
        return face + across

    @cached_property
    def kinds(self) -> tuple[Integers, Floats]:
        """Return the row (elements,) of the second array that has each element's weights (kinds, slots, 6, points)."""
        points, _ = QUADRATURE[self.cell.model.points]
        known = {valences: number for number, valences in enumerate(dict.fromkeys(self.valences))}
        weights = np.zeros((len(known), self.slots, 6, len(points)))
        for valences, number in known.items():
            for p, point in enumerate(points):
                weights[number, : sum(valences) - 6, :, p] = weights_at(valences, point).T
        return np.array([known[valences] for valences in self.valences]), weights

    def derivatives(self, vertices: Floats) -> Floats:
        """Return value and derivatives (..., elements, points, 6, 3) of the surface of control points (..., n, 3).

        Flat triangles have one point, the value at the middle, and no second derivatives.
        """
        if not self.loop:
            x = vertices[..., self.faces, :]
            a, b = x[..., 1, :] - x[..., 0, :], x[..., 2, :] - x[..., 0, :]
            zero = np.zeros_like(a)
            return np.stack([x.mean(axis=-2), a, b, zero, zero, zero], axis=-2)[..., None, :, :]
        kind, weights = self.kinds
        points = vertices[..., np.maximum(self.control, 0), :]
        derived: Floats = np.einsum("eksp,...ekc->...epsc", weights[kind], points, optimize=True)
        return derived

    @cached_property
    def shares(self) -> Floats:
        """Return what of the unit triangle's area each point stands for, times 2/... of its parallelogram."""
        return 0.5 * (QUADRATURE[self.cell.model.points][1] if self.loop else np.ones(1))

    @cached_property
    def gather(self) -> GatherLists:
        """Return the lists of the kernel."""
        chunk_first, touched, entry_first, entries = [0], [], [0], []
        for begin in range(0, len(self.control), self.chunk):
            part = self.control[begin : begin + self.chunk]
            lane, slot = np.nonzero(part >= 0)
            order = np.argsort(part[lane, slot], kind="stable")
            lane, slot = lane[order], slot[order]
            vertices, counts = np.unique(part[lane, slot], return_counts=True)
            touched.append(vertices)
            entries.append(slot * self.chunk + lane)
            chunk_first.append(chunk_first[-1] + len(vertices))
            entry_first += (entry_first[-1] + np.cumsum(counts)).tolist()
        return GatherLists(
            np.array(chunk_first, np.int32),
            np.concatenate(touched).astype(np.uint16),
            np.array(entry_first, np.int32),
            np.concatenate(entries).astype(np.uint16),
        )


def _curve(points: Floats) -> Integers:
    """Return the order of points (n, 3) along a Morton curve of 1024 boxes an axis."""
    extent = points.max(axis=0) - points.min(axis=0)
    boxes = ((points - points.min(axis=0)) / extent.max() * 1023).astype(np.int64)
    code = np.zeros(len(points), np.int64)
    for bit in range(10):
        for axis in range(3):
            code |= ((boxes[:, axis] >> bit) & 1) << (3 * bit + axis)
    return np.argsort(code, kind="stable")
