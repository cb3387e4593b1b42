# SPDX-License-Identifier: BSD-3-Clause
"""Open edges and edges of opposite orientation, compared with counts of the directed edges one by one."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seiche.domain.surface import Surface


@st.composite
def triangles(draw: st.DrawFn) -> Surface:
    count = draw(st.integers(3, 8))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    faces = [random.permutation(count)[:3] for _ in range(draw(st.integers(0, 12)))]
    return Surface(random.random((count, 3)), np.array(faces, np.int32).reshape(-1, 3))


def directed_edges(surface: Surface) -> Counter[tuple[int, int]]:
    return Counter((int(face[k]), int(face[(k + 1) % 3])) for face in surface.faces for k in range(3))


@given(triangles())
def test_two_equal_directions_of_an_edge_are_a_conflict(surface: Surface) -> None:
    counts = directed_edges(surface)
    conflicts = sorted((min(a, b), max(a, b)) for (a, b), count in counts.items() if count == 2 and not counts[b, a])
    midpoints = [0.5 * (surface.vertices[a] + surface.vertices[b]) for a, b in conflicts]
    np.testing.assert_array_equal(surface.orientation_conflicts(), np.reshape(midpoints, (-1, 3)))


@given(triangles())
def test_rims_consist_of_edges_with_an_odd_number_of_triangles(surface: Surface) -> None:
    counts = directed_edges(surface)
    is_open = {(b, a) for (a, b), count in counts.items() if (count + counts[b, a]) % 2 == 1 and count > counts[b, a]}
    starts, ends = surface._open_edges()
    assert set(zip(starts.tolist(), ends.tolist(), strict=True)) == is_open and len(starts) == len(is_open)


@given(triangles())
def test_merged_triangles_have_the_same_corners(surface: Surface) -> None:
    merged = Surface.merged(np.concatenate([surface.vertices, surface.vertices]), surface.faces + np.int32(0))
    np.testing.assert_array_equal(merged.corners(), surface.corners())
    again = Surface.from_triangles(surface.corners())
    np.testing.assert_array_equal(again.faces, merged.faces)
    np.testing.assert_array_equal(again.vertices, merged.vertices)
