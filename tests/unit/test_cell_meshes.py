# SPDX-License-Identifier: BSD-3-Clause
"""Meshes of cells: shapes with their known areas and volumes, files, and what is rejected."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seiche.cells import CellType, MembraneModel, NeoHookean, Skalak, biconcave, ellipsoid, icosphere, read_mesh
from seiche.cells.energy import RestState
from seiche.cells.mesh import mean_edge, reduced_volume
from seiche.domain.surface import Surface
from seiche.errors import CaseError, FormatError
from seiche.io.formats.off import read_off
from seiche.io.formats.stl import write_stl

MODEL = MembraneModel(Skalak(1.0, 1.0))
BALL = icosphere(42)


def test_red_cell_has_the_measured_area_and_volume():
    """Evans and Fung 1972: 134.1 um^2 and 94.1 um^3; limit surfaces come closer than polyhedra."""
    surface = biconcave(2562)
    assert surface.area == pytest.approx(134.1, rel=2e-3)
    assert surface.volume == pytest.approx(94.1, rel=3e-3)
    assert reduced_volume(surface) == pytest.approx(0.644, abs=1e-3)
    heights = surface.vertices[np.hypot(*surface.vertices.T[:2]).argsort()[:2], 2]
    assert np.ptp(heights) == pytest.approx(0.81, abs=0.02)
    area, volume = RestState(CellType("red", biconcave(642), MODEL)).surface_measures(
        CellType("red", biconcave(642), MODEL).control_points()
    )
    assert area == pytest.approx(134.09, rel=1e-3)
    assert volume == pytest.approx(94.09, rel=1e-3)
    assert mean_edge(biconcave(642)) == pytest.approx(0.5, abs=0.05)


def test_ellipsoids_have_their_volume():
    assert ellipsoid((1, 2, 3), 2562).volume == pytest.approx(8 * np.pi, rel=3e-3)


def gmsh(surface: Surface, shuffle: bool = False) -> str:
    numbers = np.arange(1, len(surface.vertices) + 1) * (3 if shuffle else 1)
    nodes = [f"{k} {x!r} {y!r} {z!r}" for k, (x, y, z) in zip(numbers, surface.vertices.tolist(), strict=True)]
    corners = numbers[surface.faces]
    elements = [f"{k} 2 3 0 1 0 {a} {b} {c}" for k, (a, b, c) in enumerate(corners.tolist(), start=1)]
    if shuffle:
        nodes.append(f"{numbers[-1] + 1} 9 9 9")
        elements.append(f"{len(elements) + 1} 15 2 0 1 {numbers[0]}")
    head = ["$MeshFormat", "2.2 0 8", "$EndMeshFormat", "$Nodes", str(len(nodes))]
    return "\n".join([*head, *nodes, "$EndNodes", "$Elements", str(len(elements)), *elements, "$EndElements", ""])


def off_file(surface: Surface) -> str:
    """Return a surface as an OFF file."""
    points = [" ".join(map(repr, vertex)) for vertex in surface.vertices.tolist()]
    faces = [f"3 {a} {b} {c}" for a, b, c in surface.faces.tolist()]
    return "\n".join(["OFF", f"{len(points)} {len(faces)} 0", *points, *faces, ""])


def test_meshes_come_back_from_files(tmp_path: Path):
    (tmp_path / "ball.off").write_text(off_file(BALL))
    (tmp_path / "ball.msh").write_text(gmsh(BALL))
    (tmp_path / "other.MSH").write_text(gmsh(BALL, shuffle=True))
    write_stl(tmp_path / "ball.stl", BALL)
    for name in ("ball.off", "ball.msh", "other.MSH"):
        surface = read_mesh(tmp_path / name)
        np.testing.assert_array_equal(surface.vertices, BALL.vertices)
        np.testing.assert_array_equal(surface.faces, BALL.faces)
    assert read_mesh(tmp_path / "ball.stl").volume == pytest.approx(BALL.volume, rel=1e-6)
    (tmp_path / "one line.off").write_text((tmp_path / "ball.off").read_text().replace("OFF\n", "OFF ", 1) + "# end\n")
    np.testing.assert_array_equal(read_off(tmp_path / "one line.off").faces, BALL.faces)


@pytest.mark.parametrize(
    ("name", "text", "place", "reason"),
    [
        ("a.off", "", "line 1", 'an OFF file begins with "OFF"'),
        ("a.off", "OFF\nx\n", "line 2", "expected the numbers of vertices and faces"),
        ("a.off", "OFF\n4 4 0\n0 0 0\n", "line 2", "4 vertices and 4 faces are declared, but 1 lines follow"),
        (
            "a.off",
            "OFF\n4 1 0\n" + "0 0 0\n" * 5,
            "line 2",
            "4 vertices and 1 faces are declared; a closed surface has at least 4 of each",
        ),
        ("a.off", "OFF\n4 4 0\n" + "0 0 x\n" * 8, "line 3", "expected 3 numbers"),
        (
            "a.off",
            "OFF\n4 4 0\n" + "0 0 0\n" * 4 + "4 0 1 2 3\n" * 4,
            "line 7",
            "expected a triangle: 3 and three vertex numbers, counted from 0",
        ),
        (
            "a.off",
            "OFF\n4 4 0\n" + "0 0 0\n" * 4 + "3 0 1 4\n" * 4,
            "line 7",
            "expected a triangle: 3 and three vertex numbers, counted from 0",
        ),
        ("a.msh", "", "whole file", "the section $MeshFormat is missing or has no end"),
        ("a.msh", "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n", "line 2", "expected Gmsh version 2 in text form"),
        ("a.msh", gmsh(BALL).replace("$EndNodes", ""), "whole file", "the section $Nodes is missing or has no end"),
        (
            "a.msh",
            gmsh(BALL).replace("\n42\n", "\n43\n"),
            "line 5",
            "the number of nodes differs from the number of lines (42)",
        ),
        ("a.msh", gmsh(BALL).replace(" 2 3 0 1 0 ", " 1 3 0 1 0 "), "whole file", "contains no triangle"),
        (
            "a.msh",
            gmsh(BALL).replace(" 2 3 0 1 0 ", " 2 2 0 1 0 ", 1),
            "line 51",
            "expected a triangle of three existing nodes",
        ),
        (
            "a.msh",
            gmsh(BALL).replace("1 2 3 0 1 0 ", "1 2 3 0 x 0 ", 1),
            "line 51",
            "expected an element as number, type, tags and nodes",
        ),
    ],
)
def test_broken_mesh_files_are_named(name: str, text: str, place: str, reason: str, tmp_path: Path):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(FormatError) as caught:
        read_mesh(path)
    assert str(caught.value) == f"{path}: {place}: {reason}"


TWO = Surface(np.concatenate([BALL.vertices, BALL.vertices + 5]), np.concatenate([BALL.faces, BALL.faces + 42]))
FLIPPED = BALL.faces.copy()
FLIPPED[7] = FLIPPED[7, ::-1]
HUGE = icosphere(10242)


def moved(vertex: int, place: Any) -> Surface:
    """Return the ball with a vertex elsewhere."""
    points = BALL.vertices.copy()
    points[vertex] = place
    return Surface(points, BALL.faces)


ON_A_LINE = moved(BALL.faces[5, 0], BALL.vertices[BALL.faces[5, 1:]].mean(axis=0))


@pytest.mark.parametrize(
    ("surface", "words"),
    [
        (Surface(BALL.vertices, BALL.faces[2:]), "the mesh is open: 6 edges belong to one triangle only"),
        (Surface(BALL.vertices, BALL.faces[:0]), "the mesh has no triangles"),
        (
            Surface(BALL.vertices, np.concatenate([BALL.faces, BALL.faces[:1]])),
            "the mesh is not manifold: 3 edges belong to more than two",
        ),
        (
            Surface(BALL.vertices, BALL.faces[:, ::-1]),
            "the mesh is inside out (volume -3.659); reverse its triangles",
        ),
        (Surface(BALL.vertices, FLIPPED), "3 edges the adjacent triangles have opposite orientations"),
        (Surface(np.concatenate([BALL.vertices, np.ones((2, 3))]), BALL.faces), "2 vertices belong to no triangle"),
        (TWO, "not one closed surface without holes"),
        (ON_A_LINE, "triangle 5 has zero area: its corners lie on a line"),
        (moved(3, [0.0, 1e300, 0.0]), "a coordinate is 1e+300; expected less than 1e+60"),
        (moved(3, [0.0, np.nan, 0.0]), "a coordinate is nan; expected less than 1e+60"),
        (HUGE, "'red': 10242 vertices; the maximum is 2562"),
    ],
)
def test_meshes_that_cannot_be_a_cell_are_rejected(surface: Surface, words: str):
    with pytest.raises(CaseError, match=re.escape(words)) as caught:
        CellType("red", surface, MODEL)
    assert str(caught.value).startswith("cell type 'red'")


def test_fans_of_many_triangles_need_flat_shells():
    count = 30
    angle = 2 * np.pi * np.arange(count) / count
    points = np.concatenate([np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1), [(0, 0, 1), (0, 0, -1)]])
    ring, after = np.arange(count), (np.arange(count) + 1) % count
    faces = np.concatenate(
        [np.stack([ring, after, 0 * ring + count], axis=1), np.stack([after, ring, 0 * ring + count + 1], axis=1)]
    )
    spindle = Surface(points, faces.astype(np.int32))
    with pytest.raises(CaseError, match=r"a triangle has 32 control points; the maximum is 24: .* shell = 'flat'"):
        CellType("spindle", spindle, MODEL)
    CellType("spindle", spindle, MembraneModel(Skalak(1.0), shell="flat"))


def test_stress_free_shape_needs_the_same_triangles():
    CellType("red", biconcave(42), MODEL, ellipsoid((3, 3, 2), 42))
    with pytest.raises(CaseError, match="the triangles of the stress-free mesh differ from those of the mesh"):
        CellType("red", biconcave(42), MODEL, ellipsoid((3, 3, 2), 162))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"law": Skalak(-1.0)}, "law.shear = -1: expected zero or more"),
        ({"law": NeoHookean(np.inf)}, "law.shear = inf: expected zero or more"),
        ({"bending": -2.0}, "bending = -2: expected zero or more"),
        ({"volume": np.nan}, "volume = nan: expected zero or more"),
        ({"spontaneous_curvature": np.inf}, "spontaneous_curvature = inf: expected a number or 'rest'"),
        ({"shell": "curved"}, "shell = 'curved': expected 'loop' or 'flat'"),
        ({"points": 2}, "points = 2: expected 1 or 3 integration points per element"),
    ],
)
def test_impossible_moduli_are_rejected(arguments: dict[str, Any], words: str):
    with pytest.raises(CaseError, match=re.escape(words)):
        MembraneModel(**{"law": Skalak(1.0), **arguments})


def test_area_moduli_are_those_of_the_laws():
    assert Skalak(2.0, 10.0).area_modulus == 42
    assert NeoHookean(2.0).area_modulus == 6


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: icosphere(100), "mesh: 100 vertices: expected one of 12, 42, 162"),
        (lambda: biconcave(42, -1.0), "mesh: radius -1: expected positive lengths"),
        (lambda: biconcave(42, 1.0, (0.2, -2.0, 0.0)), "three numbers that give a positive thickness"),
        (lambda: ellipsoid((1, 0, 1)), "mesh: half axes 1, 0, 1: expected positive lengths"),
        (
            lambda: read_mesh("cell.ply"),
            "cell.ply: unknown format of a cell mesh; expected one of .off, .stl, .msh",
        ),
    ],
)
def test_impossible_shapes_are_rejected(make: Any, words: str):
    with pytest.raises(CaseError, match=re.escape(words)):
        make()
