# SPDX-License-Identifier: BSD-3-Clause
"""Energies of membranes on the host (theory/cells, eqs. 3, 4, 7, 9 and 10), whose negative gradients are the forces."""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from seiche.cells.elements import Elements
from seiche.cells.model import CellType
from seiche.domain.surface import Surface

Floats = npt.NDArray[np.float64]


class RestState:
    """Reference state of a cell type: metric, curvature, area, volume and hinge angles of its stress-free shape."""

    def __init__(self, cell: CellType) -> None:
        """Evaluate the stress-free shape.

        `metric` (elements, points, 4) has the contravariant components vv, vw, ww and the area weight of each
        integration point, `curvature` (elements, points) the spontaneous curvature.
        """
        self.cell, self.elements = cell, Elements(cell)
        self.control = cell.control_points()
        self.stress_free_control_points = cell.control_points(cell.stress_free)
        derivatives = self.elements.derivatives(self.stress_free_control_points)
        vv, vw, ww = _metric(derivatives)
        determinant = vv * ww - vw**2
        area_element = np.sqrt(determinant)
        area = self.elements.weights * area_element
        self.metric = np.stack([ww / determinant, -vw / determinant, vv / determinant, area], axis=-1)
        spontaneous = cell.model.spontaneous_curvature
        if not self.elements.loop:
            self.curvature = np.zeros(area.shape)
        else:
            self.curvature = (
                _curvature(derivatives) if spontaneous == "rest" else np.full(area.shape, float(spontaneous))
            )
        polyhedron = Surface(self.control, self._faces32)
        #: Area and volume of the polyhedron of control points, to which the penalties refer.
        self.area, self.volume = polyhedron.area, polyhedron.volume
        self.face_areas = np.linalg.norm(polyhedron.vector_areas(), axis=1)

    @cached_property
    def mean_edge_length(self) -> float:
        """Return the mean length of the edges between control points."""
        corners = self.control[self.elements.faces]
        return float(np.linalg.norm(corners - np.roll(corners, -1, axis=1), axis=2).mean())

    @cached_property
    def relative_inverse_areas(self) -> Floats:
        """Return the mean area per vertex, divided by the area of each vertex (n,), in the undeformed shape."""
        areas = np.zeros(len(self.control))
        np.add.at(areas, self.elements.faces.reshape(-1), np.repeat(self.face_areas / 3, 3))
        weights: Floats = areas.mean() / areas
        return weights

    @cached_property
    def _faces32(self) -> npt.NDArray[np.int32]:
        return self.elements.faces.astype(np.int32)

    @cached_property
    def hinge_angles(self) -> Floats:
        """Return the rest angle (elements, 3) of the hinges of flat triangles."""
        spontaneous = self.cell.model.spontaneous_curvature
        if spontaneous == "rest":
            return _hinge_angles(self.elements, self.stress_free_control_points)
        x = self.stress_free_control_points[self.elements.faces]
        length = np.linalg.norm(np.roll(x, -1, axis=1) - x, axis=2)
        angles: Floats = (
            -float(spontaneous) * length / (2 * np.sqrt(3))
        )  # for equilateral triangles on a sphere with 2H = c0
        return angles

    def energies(self, vertices: Floats) -> Floats:
        """Return the energies (..., 5) of cells (..., n, 3): in-plane, bending, area, local area, volume."""
        model = self.cell.model
        derivatives = self.elements.derivatives(vertices)
        vv, vw, ww = _metric(derivatives)
        vv_upper, vw_upper, ww_upper, area = np.moveaxis(self.metric, -1, 0)
        j2 = (vv * ww - vw**2) * (vv_upper * ww_upper - vw_upper**2)
        i1, i2 = vv_upper * vv + 2 * vw_upper * vw + ww_upper * ww - 2, j2 - 1
        in_plane = (model.law.energy(i1, i2) * area).sum(axis=(-1, -2))
        if self.elements.loop:
            excess = _curvature(derivatives) - self.curvature
            bending = 0.5 * model.bending * (excess**2 * area * np.sqrt(j2)).sum(axis=(-1, -2))
        else:
            hinge_terms = 1 - np.cos(_hinge_angles(self.elements, vertices) - self.hinge_angles)
            bending = np.sqrt(3) * model.bending * hinge_terms.sum(axis=(-1, -2))
        a, b, c = np.moveaxis(vertices[..., self.elements.faces, :], -2, 0)
        face_areas = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=-1)
        volume = np.einsum("...i,...i->...", a, np.cross(b, c)).sum(axis=-1) / 6
        return np.stack(
            [
                in_plane,
                bending,
                0.5 * model.area * (face_areas.sum(axis=-1) - self.area) ** 2 / self.area,
                0.5 * model.local_area * ((face_areas - self.face_areas) ** 2 / self.face_areas).sum(axis=-1),
                0.5 * model.volume * (volume - self.volume) ** 2 / self.volume,
            ],
            axis=-1,
        )

    def surface_measures(self, vertices: Floats) -> tuple[Floats, Floats]:
        """Return the area and volume (...,) of the surfaces, which are the limit surfaces for Loop shells."""
        derivatives = self.elements.derivatives(vertices)
        normal = np.cross(derivatives[..., 1, :], derivatives[..., 2, :])
        area = (np.linalg.norm(normal, axis=-1) * self.elements.weights).sum(axis=(-1, -2))
        volume_terms = np.einsum("...i,...i->...", derivatives[..., 0, :], normal) * self.elements.weights
        return area, volume_terms.sum(axis=(-1, -2)) / 3


@lru_cache(maxsize=16)
def rest_state(cell: CellType) -> RestState:
    """Return the rest state of a type; it is cached, because it is used often in runs with open vessels."""
    return RestState(cell)


def _metric(derivatives: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the covariant metric vv, vw, ww of derivatives (..., 6, 3)."""
    v, w = derivatives[..., 1, :], derivatives[..., 2, :]
    return (v * v).sum(axis=-1), (v * w).sum(axis=-1), (w * w).sum(axis=-1)


def _curvature(derivatives: Floats) -> Floats:
    """Return twice the mean curvature, -2/R on a sphere (eq. 6)."""
    vv, vw, ww = _metric(derivatives)
    determinant = vv * ww - vw**2
    laplacian = ww[..., None] * derivatives[..., 3, :] - 2 * vw[..., None] * derivatives[..., 5, :]
    laplacian += vv[..., None] * derivatives[..., 4, :]
    normal = np.cross(derivatives[..., 1, :], derivatives[..., 2, :])
    twice_mean_curvature: Floats = np.einsum("...i,...i->...", laplacian, normal) / determinant**1.5
    return twice_mean_curvature


def _hinge_angles(elements: Elements, vertices: Floats) -> Floats:
    """Return the angle (..., elements, 3) between the normals at each edge, positive where the surface is convex."""
    x = vertices[..., elements.control, :]
    angles = []
    for k in range(3):
        i, j, third, opposite = (x[..., c, :] for c in (k, (k + 1) % 3, (k + 2) % 3, 3 + k))
        edge = j - i
        normal, other_normal = np.cross(edge, third - i), np.cross(opposite - i, edge)
        sine = np.einsum("...i,...i->...", np.cross(normal, other_normal), edge) / np.linalg.norm(edge, axis=-1)
        angles.append(np.arctan2(sine, np.einsum("...i,...i->...", normal, other_normal)))
    return np.stack(angles, axis=-1)
