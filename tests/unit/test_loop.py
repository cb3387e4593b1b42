# SPDX-License-Identifier: BSD-3-Clause
"""Weights of Loop subdivision surfaces against explicit subdivisions, exact fractions and polynomials."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from seiche.cells import loop
from seiche.cells.mesh import biconcave, icosphere, rings_of

#: Lattice places of the control points 1 ... 12 of a regular triangle with corners 4, 7, 8.
PLACES = np.array(
    [(0, -1), (-1, 0), (1, -1), (0, 0), (-1, 1), (2, -1), (1, 0), (0, 1), (-1, 2), (2, 0), (1, 1), (0, 2)]
)
STAM = np.array(loop._STAM) - 1
POINTS = [(1 / 3, 1 / 3), (1 / 6, 1 / 6), (2 / 3, 1 / 6), (0.1, 0.7), (0.0, 0.0)]
VALENCES = [(6, 6, 6), (5, 6, 6), (6, 5, 6), (3, 6, 7), (4, 5, 8), (5, 6, 5), (7, 5, 6)]


def stam_order(weights: np.ndarray) -> np.ndarray:
    ordered = np.empty_like(weights)
    ordered[..., STAM] = weights
    return ordered


def test_weights_at_the_centroid_and_the_corners_are_the_known_fractions():
    centroid = stam_order(loop.regular_weights(1 / 3, 1 / 3)[0])
    exact = [Fraction(1, 324)] * 12
    for number in (4, 7, 8):
        exact[number - 1] = Fraction(23, 81)
    for number in (3, 5, 11):
        exact[number - 1] = Fraction(7, 162)
    np.testing.assert_allclose(centroid, [float(value) for value in exact], rtol=0, atol=1e-15)
    corner = stam_order(loop.regular_weights(0, 0)[0])
    own = np.zeros(12)
    own[3] = 1 / 2
    own[[0, 1, 2, 4, 6, 7]] = 1 / 12
    np.testing.assert_allclose(corner, own, rtol=0, atol=1e-15)


@pytest.mark.parametrize(("v", "w"), POINTS)
def test_regular_weights_reproduce_quadratic_functions(v: float, w: float):
    weights = stam_order(loop.regular_weights(v, w))
    x, y = PLACES.T.astype(float)
    np.testing.assert_allclose(weights @ np.ones(12), [1, 0, 0, 0, 0, 0], atol=1e-13)
    np.testing.assert_allclose(weights @ x, [v, 1, 0, 0, 0, 0], atol=1e-13)
    np.testing.assert_allclose(weights @ y, [w, 0, 1, 0, 0, 0], atol=1e-13)
    # The spline of a quadratic differs from it by a constant only: its derivatives are exact.
    np.testing.assert_allclose(weights[1:] @ (x * x), [2 * v, 0, 2, 0, 0], atol=1e-13)
    np.testing.assert_allclose(weights[1:] @ (x * y), [w, v, 0, 0, 1], atol=1e-13)
    np.testing.assert_allclose(weights[1:] @ (y * y), [0, 2 * w, 0, 2, 0], atol=1e-13)
    # Of a cubic the second derivatives are (x^3)'' = 6 x.
    np.testing.assert_allclose(weights[3:] @ x**3, [6 * v, 0, 0], atol=1e-12)
    np.testing.assert_allclose(weights[3:] @ (x * x * y), [2 * w, 0, 2 * v], atol=1e-12)


@pytest.mark.parametrize("valences", VALENCES)
def test_weights_are_a_partition_of_unity_and_derivatives_are_those_of_the_values(valences: tuple[int, int, int]):
    h = 1e-5
    for point in ((1 / 3, 1 / 3, 1 / 3), (2 / 3, 1 / 6, 1 / 6), (1 / 6, 2 / 3, 1 / 6), (0.11, 0.23, 0.66)):

        def at(dv: float, dw: float, point: tuple[float, ...] = point) -> np.ndarray:
            return loop.weights_at(valences, np.array(point) + np.array([-dv - dw, dv, dw]))

        weights = at(0, 0)
        np.testing.assert_allclose(weights.sum(axis=1), [1, 0, 0, 0, 0, 0], atol=2e-12)
        np.testing.assert_allclose(at(h, 0)[0] - at(-h, 0)[0], 2 * h * weights[1], atol=1e-13)
        np.testing.assert_allclose(at(0, h)[0] - at(0, -h)[0], 2 * h * weights[2], atol=1e-13)
        np.testing.assert_allclose(at(h, 0)[1] - at(-h, 0)[1], 2 * h * weights[3], atol=1e-12)
        np.testing.assert_allclose(at(0, h)[2] - at(0, -h)[2], 2 * h * weights[4], atol=1e-12)
        np.testing.assert_allclose(at(0, h)[1] - at(0, -h)[1], 2 * h * weights[5], atol=1e-12)


def subdivided(points: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Loop's rules written out edge by edge; children of a face follow each other: three corners, the middle."""
    opposite: dict[tuple[int, int], list[int]] = {}
    ring: dict[int, set[int]] = {}
    for face in faces.tolist():
        for k in range(3):
            a, b, c = face[k], face[(k + 1) % 3], face[(k + 2) % 3]
            opposite.setdefault((min(a, b), max(a, b)), []).append(c)
            ring.setdefault(a, set()).update((b, c))
    moved = []
    for vertex in range(len(points)):
        n = len(ring[vertex])
        beta = (5 / 8 - (3 / 8 + np.cos(2 * np.pi / n) / 4) ** 2) / n
        moved.append((1 - n * beta) * points[vertex] + beta * sum(points[k] for k in ring[vertex]))
    number = {}
    for (a, b), (c, d) in opposite.items():
        number[a, b] = number[b, a] = len(moved)
        moved.append(3 / 8 * (points[a] + points[b]) + (points[c] + points[d]) / 8)
    finer = []
    for a, b, c in faces.tolist():
        ab, bc, ca = number[a, b], number[b, c], number[c, a]
        finer += [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
    return np.array(moved), np.array(finer)


def test_patches_of_a_mesh_are_the_limits_of_explicit_subdivisions():
    surface = biconcave(42, 1.0)
    random = np.random.default_rng(3)
    control = surface.vertices + 0.1 * random.standard_normal(surface.vertices.shape)
    patches, valences = loop.patches(surface.faces, rings_of(surface.faces))
    faces = np.array([patch[:3] for patch in patches])
    points, finer = control, faces
    for _ in range(3):
        points, finer = subdivided(points, finer)
    limits = loop.limit_points(finer, points)
    # Vertices of the mesh after three subdivisions, found by following children.
    for face in range(0, len(faces), 7):
        for path in ((3, 0, 0), (0, 0, 0), (1, 3, 3)):
            corners = np.eye(3)
            row = face
            for child in path:
                a, b, c = corners
                ab, bc, ca = (a + b) / 2, (b + c) / 2, (c + a) / 2
                corners = np.array([(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)][child])
                row = 4 * row + child
            for corner, vertex in zip(corners, finer[row], strict=True):
                if max(corner) > 0.999:
                    continue  # a vertex of the mesh: no second derivatives there
                weights = loop.weights_at(valences[face], corner)
                expected = weights[0] @ control[patches[face]]
                np.testing.assert_allclose(limits[vertex], expected, atol=1e-12)


def test_control_points_put_the_limit_surface_on_the_mesh():
    surface = biconcave(162)
    np.testing.assert_allclose(
        loop.limit_points(surface.faces, loop.control_points(surface)), surface.vertices, atol=1e-12
    )


def test_limit_weights_are_the_published_ones():
    assert loop.vertex_weight(5) == pytest.approx(0.0840932, abs=1e-7)
    assert loop.limit_weight(5) == pytest.approx(0.1057157, abs=1e-7)
    assert loop.limit_weight(6) == pytest.approx(1 / 12, abs=1e-15)


def test_an_irregular_vertex_itself_is_rejected():
    with pytest.raises(ValueError, match="irregular vertex"):
        loop.weights_at((5, 6, 6), np.array([1.0, 0.0, 0.0]))


def test_icospheres_have_twelve_vertices_with_five_neighbours():
    for count in (42, 162, 642):
        valence = np.bincount(icosphere(count).faces.reshape(-1))
        assert len(valence) == count
        assert (valence == 5).sum() == 12
        assert (valence == 6).sum() == count - 12
