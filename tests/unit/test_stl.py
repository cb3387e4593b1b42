# SPDX-License-Identifier: BSD-3-Clause
"""STL files of both kinds, as other programs really write them, give the same surface."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seiche.domain.surface import Surface
from seiche.io.formats.stl import read_stl, write_stl
from stl_files import openscad_tube

VERTICES = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 2.5)], float)
TETRAHEDRON = Surface(VERTICES, np.array([(0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)], np.int32))


def ascii_text(surface, name="a tetrahedron", newline="\n"):
    lines = [f"solid {name}"]
    for corners in surface.corners():
        lines += ["  facet normal 0 0 0", "    outer loop"]
        lines += ["      vertex " + " ".join(f"{value:.9e}" for value in corner) for corner in corners]
        lines += ["    endloop", "  endfacet"]
    return newline.join([*lines, f"endsolid {name}", ""])


def same(first, second):
    return np.array_equal(first.corners().astype(np.float32), second.corners().astype(np.float32))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "surface.stl"


def test_written_file_is_read_back(path):
    write_stl(path, TETRAHEDRON)
    assert path.stat().st_size == 84 + 50 * 4
    second = read_stl(path)
    assert same(second, TETRAHEDRON)
    assert len(second.vertices) == 4
    assert second.vertices.dtype == np.float64
    assert second.faces.dtype == np.int32
    assert second.volume == pytest.approx(2.5 / 6.0)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("change", [str, str.upper, lambda text: "\n  " + text + "\n\n"])
def test_text_with_any_line_ends_and_case(path, newline, change):
    path.write_bytes(change(ascii_text(TETRAHEDRON, newline=newline)).encode())
    assert same(read_stl(path), TETRAHEDRON)


def test_two_solids_in_one_text(path):
    path.write_text(ascii_text(TETRAHEDRON) + ascii_text(Surface(VERTICES + 5.0, TETRAHEDRON.faces)))
    assert len(read_stl(path).faces) == 8


def test_binary_file_whose_header_begins_with_solid(path):
    write_stl(path, TETRAHEDRON)
    path.write_bytes(b"solid made by some program".ljust(80) + path.read_bytes()[80:])
    assert same(read_stl(path), TETRAHEDRON)


@pytest.mark.parametrize("header", [b"solid x", b"x"])
@pytest.mark.parametrize("trailing", [1, 7, 49, 50, 512])
def test_binary_file_with_trailing_bytes(path, header, trailing):
    write_stl(path, TETRAHEDRON)
    path.write_bytes(header.ljust(80) + path.read_bytes()[80:] + bytes(trailing))
    assert same(read_stl(path), TETRAHEDRON)


def test_triangles_that_lose_a_corner_are_dropped(path):
    flat = np.array([[(0, 0, 0), (0, 0, 0), (1, 1, 1)]], float)
    corners = np.concatenate([TETRAHEDRON.corners(), flat])
    write_stl(path, Surface(corners.reshape(-1, 3), np.arange(15, dtype=np.int32).reshape(5, 3)))
    assert len(read_stl(path).faces) == 4


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(*[st.floats(-1e6, 1e6, width=32)] * 9), min_size=1, max_size=20))
def test_any_triangles_survive_both_forms(tmp_path_factory, triangles):
    surface = Surface.from_triangles(np.array(triangles, float).reshape(-1, 3, 3))
    if not len(surface.faces):
        return
    path = tmp_path_factory.mktemp("stl") / "surface.stl"
    write_stl(path, surface)
    assert same(read_stl(path), surface)
    path.write_text(ascii_text(surface))
    assert same(read_stl(path), surface)


def test_tube_as_openscad_writes_it(path):
    path.write_text(openscad_tube())
    tube = read_stl(path)
    assert (len(tube.vertices), len(tube.faces)) == (120, 236)
    assert tube.boundary_loops() == []
    assert not len(tube.orientation_conflicts())
    prism = 60 * 0.5 * 25.0 * np.sin(2.0 * np.pi / 60) * 20.0
    assert tube.volume == pytest.approx(prism, rel=1e-6)
