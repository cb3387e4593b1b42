# SPDX-License-Identifier: BSD-3-Clause
"""Loop subdivision surfaces: weights of the control points of a triangle, at points of its patch of the limit surface.

A patch depends on the vertices of the triangle and their neighbours, n0 + n1 + n2 - 6 control points for the valences
n0, n1, n2, which are twelve in a regular mesh. In regular patches the weights are polynomials (theory/cells, eq. 1).
Next to an irregular vertex, the patch is subdivided exactly until the point is in a regular patch.

Control points are ordered as in `patches`: the corners, then the other neighbours of each corner.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.cells.mesh import rings_of
from seiche.domain.surface import Surface

Floats = npt.NDArray[np.float64]

#: Stam's numbers 1 ... 12 of the control points, in the order of `patches`.
_STAM = (4, 7, 8, 5, 2, 1, 3, 6, 10, 11, 12, 9)
#: Barycentric coordinates and weights of the quadrature rules with one and three points.
QUADRATURE: dict[int, tuple[Floats, Floats]] = {
    1: (np.full((1, 3), 1 / 3), np.ones(1)),
    3: (np.full((3, 3), 1 / 6) + 0.5 * np.eye(3), np.full(3, 1 / 3)),
}
#: Maximum number of subdivisions; a point that is then still next to an irregular vertex is replaced by this vertex.
_MAX_DEPTH = 60


def vertex_weight(valence: int) -> float:
    """Return the weight of each neighbour of a vertex in the vertex rule of subdivision (Loop 1987)."""
    return float((5 / 8 - (3 / 8 + np.cos(2 * np.pi / valence) / 4) ** 2) / valence)


def limit_weight(valence: int) -> float:
    """Return the weight of each neighbour in the limit position of a vertex (theory/cells, eq. 2)."""
    return 1 / (valence + 3 / (8 * vertex_weight(valence)))


def _box_splines() -> list[dict[tuple[int, int, int], int]]:
    """Return each box spline of the triangle, times twelve, by powers of u, v and w (Stam 1998; eq. 1)."""
    text = (
        "400:1 310:2|400:1 301:2"
        "|400:1 301:2 310:6 211:6 220:12 121:6 130:6 031:2 040:1"
        "|400:6 301:24 202:24 103:8 004:1 310:24 211:60 112:36 013:6 220:24 121:36 022:12 130:8 031:6 040:1"
        "|400:1 301:6 202:12 103:6 004:1 310:2 211:6 112:6 013:2"
        "|130:2 040:1"
        "|400:1 301:6 202:12 103:6 004:1 310:8 211:36 112:36 013:8 220:24 121:60 022:24 130:24 031:24 040:6"
        "|400:1 301:8 202:24 103:24 004:6 310:6 211:36 112:60 013:24 220:12 121:36 022:24 130:6 031:8 040:1"
        "|103:2 004:1|031:2 040:1"
        "|103:2 004:1 112:6 013:6 121:6 022:12 130:2 031:6 040:1"
        "|004:1 013:2"
    )
    splines = []
    for entry in text.split("|"):
        terms = (term.split(":") for term in entry.split())
        splines.append({(int(p[0]), int(p[1]), int(p[2])): int(c) for p, c in terms})
    return splines


#: Control point, powers of u, v, w and coefficient of each term.
_TERMS = [(row, power, c / 12) for row, number in enumerate(_STAM) for power, c in _box_splines()[number - 1].items()]


def regular_weights(v: float, w: float) -> Floats:
    """Return the weights of a regular triangle and their derivatives, (6, 12): 1, d/dv, d/dw, d2/dv2, d2/dw2, d2/dvdw.

    v and w are the barycentric coordinates of the second and third corner.
    """
    u = 1 - v - w

    def derivative(power: tuple[int, int, int], order: tuple[int, int, int]) -> float:
        result = 1.0
        for x, p, n in zip((u, v, w), power, order, strict=True):
            for step in range(n):
                result *= p - step
            result *= x ** (p - n) if p >= n else 0.0
        return result

    weights = np.zeros((6, 12))
    for row, power, c in _TERMS:
        d = {
            o: c * derivative(power, o)
            for o in (
                *((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (2, 0, 0), (0, 2, 0), (0, 0, 2)),
                *((1, 1, 0), (1, 0, 1), (0, 1, 1)),
            )
        }
        u_v, u_w = d[1, 1, 0], d[1, 0, 1]
        weights[:, row] += (
            d[0, 0, 0],
            d[0, 1, 0] - d[1, 0, 0],
            d[0, 0, 1] - d[1, 0, 0],
            d[2, 0, 0] - 2 * u_v + d[0, 2, 0],
            d[2, 0, 0] - 2 * u_w + d[0, 0, 2],
            d[2, 0, 0] - u_v - u_w + d[0, 1, 1],
        )
    return weights


class _SubdivisionWeights:
    """Weights of the control points of a triangle, for its vertices after one subdivision."""

    def __init__(self, valences: tuple[int, int, int]) -> None:
        self.rings = local_rings(valences)
        self.count = sum(valences) - 6
        self.valences = valences

    def corner(self, k: int) -> Floats:
        """Return the weights of corner k after subdivision (vertex rule)."""
        weight = vertex_weight(self.valences[k])
        row = np.zeros(self.count)
        row[k] = 1 - self.valences[k] * weight
        row[self.rings[k]] += weight
        return row

    def edge(self, k: int, other: int) -> Floats:
        """Return the weights of the new vertex on the edge from corner k to the control point `other` of its ring."""
        ring = self.rings[k]
        position = ring.index(other)
        row = np.zeros(self.count)
        for point, weight in (
            *((k, 3 / 8), (other, 3 / 8)),
            *((ring[position - 1], 1 / 8), (ring[(position + 1) % len(ring)], 1 / 8)),
        ):
            row[point] += weight
        return row


def local_rings(valences: tuple[int, int, int]) -> list[list[int]]:
    """Return the rings of the three corners in the numbering of `patches`; each begins with the next corner."""
    n0, n1, n2 = valences
    a = list(range(3, 3 + n0 - 2))
    b = [a[-1], *range(a[-1] + 1, a[-1] + n1 - 2)]
    c = [b[-1], *range(b[-1] + 1, b[-1] + n2 - 3), a[0]]
    return [[1, 2, *a], [2, 0, *b], [0, 1, *c]]


@cache
def _children(valences: tuple[int, int, int]) -> tuple[tuple[tuple[int, int, int], Floats], ...]:
    """Return the valences and the subdivision matrix of the three child triangles at corners and the central child."""
    local = _SubdivisionWeights(valences)
    children = []
    for k in range(3):
        p, q = (k + 1) % 3, (k + 2) % 3
        ring = local.rings[k]
        opposite, adjacent = ring[-1], ring[2]  # beyond the edges to the next and to the previous corner
        rows = [local.corner(k), local.edge(k, p), local.edge(k, q)]
        rows += [local.edge(k, point) for point in ring[2:]]
        rows += [local.edge(p, opposite), local.corner(p), local.edge(p, q)]
        rows += [local.corner(q), local.edge(q, adjacent)]
        children.append(((valences[k], 6, 6), np.array(rows)))
    middles = [local.edge(0, 1), local.edge(1, 2), local.edge(2, 0)]
    d, g, f = local.rings[0][-1], local.rings[1][-1], local.rings[2][-1]
    rows = [*middles, local.corner(0), local.edge(0, d), local.edge(1, d), local.corner(1)]
    rows += [local.edge(1, g), local.edge(2, g), local.corner(2), local.edge(2, f), local.edge(0, f)]
    children.append(((6, 6, 6), np.array(rows)))
    return tuple(children)


def weights_at(valences: tuple[int, int, int], barycentric: Floats) -> Floats:
    """Return weights and derivatives at a point of a triangle, (6, n0 + n1 + n2 - 6), as `regular_weights` does.

    Raises:
        ValueError: the point is an irregular vertex, where second derivatives do not exist.
    """
    point = np.asarray(barycentric, np.float64)
    matrix = np.eye(sum(valences) - 6)
    to_child = np.eye(3)  # from barycentric coordinates in the triangle to those in the child
    for _ in range(_MAX_DEPTH):
        if valences == (6, 6, 6):
            return _in_parent(regular_weights(point[1], point[2]), to_child) @ matrix
        if point.max() > 0.5:
            k = int(point.argmax())
            order = [k, (k + 1) % 3, (k + 2) % 3]
            change = 2 * np.eye(3)[order]
            change[0] -= 1.0
        else:
            k = 3
            change = np.array([[1.0, 1.0, -1.0], [-1.0, 1.0, 1.0], [1.0, -1.0, 1.0]])
        point, to_child = change @ point, change @ to_child
        valences, step = _children(valences)[k]
        matrix = step @ matrix
    raise ValueError("an irregular vertex has no second derivatives")


def _in_parent(weights: Floats, to_child: Floats) -> Floats:
    """Return derivatives with respect to the coordinates of a triangle, from those with respect to a child triangle."""
    # Columns: derivatives of v and w of the child with respect to v and w of the triangle, at constant u + v + w.
    j = to_child[1:, 1:] - to_child[1:, :1]
    value, first = weights[:1], j.T @ weights[1:3]
    (vv, ww, vw), (a, c), (b, d) = weights[3:], (j[0, 0], j[1, 0]), (j[0, 1], j[1, 1])
    second = [
        a * a * vv + c * c * ww + 2 * a * c * vw,
        b * b * vv + d * d * ww + 2 * b * d * vw,
        a * b * vv + c * d * ww + (a * d + b * c) * vw,
    ]
    return np.concatenate([value, first, np.array(second)])


def patches(
    faces: npt.NDArray[np.integer], rings: list[list[int]]
) -> tuple[list[list[int]], list[tuple[int, int, int]]]:
    """Return the control points of each triangle and the valences of its corners.

    The corners come first, beginning with the corner with the fewest neighbours; the other points of the rings follow.
    """
    points, valences = [], []
    for face in faces.tolist():
        first = int(np.argmin([len(rings[corner]) for corner in face]))
        corners = face[first:] + face[:first]
        neighbours = []
        for k in range(3):
            ring = rings[corners[k]]
            start = ring.index(corners[(k + 1) % 3])
            neighbours.append((ring[start:] + ring[:start])[2:])
        a, b, c = neighbours
        points.append([*corners, *a, *b[1:], *c[1:-1]])
        valences.append((len(rings[corners[0]]), len(rings[corners[1]]), len(rings[corners[2]])))
    return points, valences


def limit_matrix(rings: list[list[int]]) -> Any:
    """Return the sparse matrix (n, n) from control points to limit positions of the vertices (eq. 2)."""
    from scipy.sparse import csr_array

    rows = np.concatenate([np.full(len(ring) + 1, k) for k, ring in enumerate(rings)])
    columns = np.concatenate([[k, *ring] for k, ring in enumerate(rings)])
    values = np.concatenate(
        [[1 - len(ring) * limit_weight(len(ring)), *[limit_weight(len(ring))] * len(ring)] for ring in rings]
    )
    return csr_array((values, (rows, columns)), (len(rings), len(rings)))


def control_points(surface: Surface) -> Floats:
    """Return the control points (n, 3) whose limit surface passes through the vertices of a closed mesh."""
    from scipy.sparse.linalg import splu

    points: Floats = splu(limit_matrix(rings_of(surface.faces)).tocsc()).solve(surface.vertices)
    return points


def limit_points(faces: npt.NDArray[np.integer], control: Floats) -> Floats:
    """Return the limit positions (..., n, 3) of control points (..., n, 3)."""
    matrix = limit_matrix(rings_of(faces))
    flat = np.moveaxis(control, -2, 0)
    return np.moveaxis((matrix @ flat.reshape(len(flat), -1)).reshape(flat.shape), 0, -2)
