# SPDX-License-Identifier: BSD-3-Clause
"""Packings: no overlaps, the requested hematocrit, inside the vessel; `.pos` files; impossible packings."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from seiche.backend import open_backend
from seiche.cells import Box, Packing, SurfaceInterior, Tube, biconcave, ellipsoid, pack
from seiche.cells import packing as packing_module
from seiche.cells.overlap import overlap_or_near, overlapping_pairs, self_intersection
from seiche.cells.packing import fill, press
from seiche.cells.vessels import Vessel, signed_distance
from seiche.domain.surface import Surface
from seiche.errors import CaseError, FormatError
from seiche.io.formats.pos import read_pos, write_pos

RED, PLATELET = biconcave(162), ellipsoid((1.2, 1.2, 0.5), 42)
TUBE = Surface(
    ellipsoid((1, 1, 1), 162).vertices * (14.0, 9.0, 9.0) + (20.0, 5.0, 5.0), ellipsoid((1, 1, 1), 162).faces
)


def pack_vessel(vessel: Vessel, surfaces: list[Surface], hematocrit: float, **options: Any) -> Packing:
    """Pack on one thread: tests share their cores."""
    return pack(vessel, surfaces, hematocrit, backend=open_backend("cpu", 1), **options)


def vertex_positions(packing: Packing, kind: int, surface: Surface) -> np.ndarray:
    centers, rotations = packing.of_kind(kind)
    middle = surface.vertices - surface.vertices.mean(axis=0)
    return np.einsum("nij,vj->nvi", rotations, middle) + centers[:, None]


def crossing_counts(packing: Packing, surface: Surface, lengths: np.ndarray) -> int:
    """Vertices of cells that are inside another, or an image of it: the oracle for overlaps of fine meshes."""
    every = vertex_positions(packing, 0, surface)
    count = 0
    for one in range(len(every)):
        body = Surface(every[one], surface.faces)
        for two in range(len(every)):
            shift = every[two].mean(axis=0) - every[one].mean(axis=0)
            image = -np.where(lengths > 0, lengths * np.round(shift / np.maximum(lengths, 1e-9)), 0.0)
            if one != two and np.linalg.norm(shift + image) < 8:
                count += int((signed_distance(body, every[two] + image) < 0).sum())
    return count


@pytest.mark.parametrize(
    ("vessel", "hematocrit"),
    [
        (Box((20, 20, 20)), 0.05),
        (Box((18, 18, 18)), 0.5),
        (Box((20, 18, 16), (True, False, False)), 0.35),
        (Tube(10.0, 25.0), 0.3),
        (Tube(12.0, 15.0, repeats=False), 0.25),
        (SurfaceInterior(TUBE), 0.2),
    ],
    ids=["dilute", "dense", "channel", "tube", "closed tube", "surface"],
)
def test_packings_have_no_overlaps_and_the_hematocrit(vessel: Vessel, hematocrit: float):
    packing = pack_vessel(vessel, [RED], hematocrit, seed=4)
    lengths = np.where(vessel.periodic, vessel.high - vessel.low, 0.0)
    assert abs(packing.hematocrit - hematocrit) <= 0.51 * RED.volume / vessel.volume
    assert packing.hematocrit == pytest.approx(len(packing.centers) * RED.volume / vessel.volume, rel=1e-12)
    assert not len(overlapping_pairs([RED], packing, lengths))
    assert crossing_counts(packing, RED, lengths) == 0
    assert (vessel.distance(vertex_positions(packing, 0, RED).reshape(-1, 3)) < 0).all()


def test_types_share_a_packing_by_number():
    packing = pack_vessel(Box((20, 20, 20)), [RED, PLATELET], 0.3, shares=[0.5, 0.5], seed=1)
    counts = np.bincount(packing.kinds)
    assert abs(counts[0] - counts[1]) <= 1
    assert packing.hematocrit == pytest.approx(counts @ [RED.volume, PLATELET.volume] / 8000, rel=1e-12)
    assert not len(overlapping_pairs([RED, PLATELET], packing, np.full(3, 20.0)))


def test_same_seed_same_packing_and_random_orientations():
    first, second, other = (pack_vessel(Box((20, 20, 20)), [RED], 0.2, seed=seed) for seed in (3, 3, 5))
    np.testing.assert_array_equal(first.centers, second.centers)
    assert not np.array_equal(first.centers, other.centers)
    axes = np.concatenate([first.rotations, other.rotations])[:, :, 2]
    assert np.linalg.eigvalsh(axes.T @ axes / len(axes)).max() < 0.75  # 1 were all axes parallel


def test_vessel_is_filled_with_copies_of_a_tile_and_cells_are_removed_at_random():
    tile = Box((20, 20, 20))
    packed = pack_vessel(tile, [RED], 0.4, seed=2)
    vessel = Tube(16.0, 40.0)
    filled = fill(vessel, [RED], tile, packed, 0.15, gap=0.1)
    assert abs(filled.hematocrit - 0.15) <= 0.51 * RED.volume / vessel.volume
    assert not len(overlapping_pairs([RED], filled, np.array([40.0, 0, 0])))
    assert (vessel.distance(vertex_positions(filled, 0, RED).reshape(-1, 3)) < -0.1).all()
    other = fill(vessel, [RED], tile, packed, 0.15, gap=0.1, seed=1)
    assert not np.array_equal(filled.centers, other.centers)
    with pytest.raises(
        CaseError, match=r"hematocrit = 0\.45: copies of a packed tile reach only 0\.[12]\d\d in the vessel"
    ):
        fill(vessel, [RED], tile, packed, 0.45, gap=0.1)


def packed_from_tiles(
    monkeypatch: pytest.MonkeyPatch, radius: float, length: float, hematocrit: float
) -> tuple[Tube, Packing]:
    """Return a tube and the cells in it from copies of a tile: the requested number, without overlap."""
    monkeypatch.setattr(packing_module, "MAX_GROWN_CELLS", 40)
    monkeypatch.setattr(packing_module, "TILE_CELLS", 30)
    vessel = Tube(radius, length)
    packing = pack_vessel(vessel, [RED], hematocrit)
    assert abs(packing.hematocrit - hematocrit) <= 0.51 * RED.volume / vessel.volume
    assert not len(overlapping_pairs([RED], packing, np.array([length, 0, 0])))
    return vessel, packing


def test_large_vessel_is_packed_from_a_tile(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(packing_module, "TILE_HEMATOCRIT", 0.35)
    packed_from_tiles(monkeypatch, 20.0, 40.0, 0.15)
    # Whole tiles fill a box that repeats itself without a seam.
    packing = pack_vessel(Box((30, 30, 30)), [RED], 0.3)
    assert abs(packing.hematocrit - 0.3) <= 0.51 * RED.volume / 27000
    assert not len(overlapping_pairs([RED], packing, np.full(3, 30.0)))


def test_a_large_vessel_is_packed_as_densely_as_a_small_one(monkeypatch: pytest.MonkeyPatch):
    """Copies of a tile without the cells at the wall reach a hematocrit of 0.3 only: cells are pushed off the wall."""
    vessel, packing = packed_from_tiles(monkeypatch, 12.0, 30.0, 0.42)
    assert (vessel.distance(vertex_positions(packing, 0, RED).reshape(-1, 3)) < 0).all()
    tile = Box((20, 20, 20))
    with pytest.raises(CaseError, match=r"tile: only \d+ of 90 cells of type 0 are inside the vessel"):
        press(vessel, [RED], tile, pack_vessel(tile, [RED], 0.2), np.array([90]), gap=0.1)


def test_overlaps_are_found_when_edges_cross_and_when_one_cell_is_inside_another():
    ball, small = ellipsoid((1, 1, 1), 162), ellipsoid((0.2, 0.2, 0.2), 42)
    turns = np.broadcast_to(np.eye(3), (2, 3, 3))
    none = np.zeros(3)

    def pairs(distance: float, kinds: list[int], lengths: np.ndarray = none, margin: float = 0.0) -> list[list[int]]:
        packing = Packing(np.array([(0, 0, 0), (distance, 0.1, 0.2)]), turns, np.array(kinds), 0.0)
        return overlapping_pairs([ball, small], packing, lengths, margin).tolist()

    assert pairs(1.9, [0, 0]) == [[0, 1]]
    assert pairs(2.1, [0, 0]) == []
    assert pairs(2.1, [0, 0], margin=0.3) == [[0, 1]]
    assert pairs(0.3, [0, 1]) == [[0, 1]]
    assert pairs(9.0, [0, 0], np.array([10.5, 0, 0])) == [[0, 1]]
    assert pairs(9.0, [0, 0], np.array([11.2, 0, 0])) == []
    # Two thin crosses: edges pass through triangles though no vertex is inside.
    plank = ellipsoid((4, 1, 0.2), 42)
    quarter = Rotation.from_euler("z", 90, degrees=True).as_matrix()
    crossed = Packing(np.array([(0, 0, 0), (0, 0, 0.05)]), np.array([np.eye(3), quarter]), np.array([0, 0]), 0.0)
    assert overlapping_pairs([plank], crossed, none).tolist() == [[0, 1]]


@pytest.mark.parametrize("turn", [np.eye(3), Rotation.from_rotvec([0.4, -0.7, 0.3]).as_matrix()])
def test_flat_sides_in_one_plane_meet_only_where_they_touch(turn: np.ndarray) -> None:
    """Blocks side by side on a floor: all their edges below are in the planes of the others' triangles."""
    corners = np.array([(x, y, z) for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
    sides = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = np.array([f for a, b, c, d in sides for f in ((a, b, c), (a, c, d))], np.int32)

    def block(*place: float) -> Surface:
        return Surface((corners + place) @ turn.T + [300.0, -20.0, 7.0], faces)

    one = block(0.0, 0.0, 0.0)
    assert one.volume == pytest.approx(1.0)
    for apart in ((1.001, 0.0, 0.0), (1.001, 0.3, 0.0), (0.4, 1.01, 0.0), (1.01, 1.01, 0.0), (-1.01, 0.2, 0.0)):
        assert not overlap_or_near(one, block(*apart), 0.0), apart
        assert not overlap_or_near(block(*apart), one, 0.0), apart
    for close in ((0.999, 0.0, 0.0), (0.5, 0.3, 0.0), (0.3, 0.999, 0.0), (0.0, 0.0, 0.5)):
        assert overlap_or_near(one, block(*close), 0.0), close
        assert overlap_or_near(block(*close), one, 0.0), close


def penetrates(own: Surface, other: Surface) -> bool:
    """Take all edges of one surface with all triangles of another, in no special position, by signs of tetrahedra."""
    a, b, c = np.moveaxis(other.corners(), 1, 0)
    normal = np.cross(b - a, c - a)
    start = own.vertices[own.faces].reshape(-1, 1, 3)
    along = own.vertices[np.roll(own.faces, -1, axis=1)].reshape(-1, 1, 3) - start
    before, after = (((point - a) * normal).sum(axis=-1) for point in (start, start + along))
    sides = [(np.cross(along, q - start) * (p - start)).sum(axis=-1) for p, q in ((a, b), (b, c), (c, a))]
    same = (np.minimum.reduce(sides) > 0) | (np.maximum.reduce(sides) < 0)
    return bool(((before * after < 0) & same).any())


def test_a_mesh_crosses_itself_where_triangles_meet_that_are_not_neighbors() -> None:
    ball = ellipsoid((3.0, 3.0, 1.0), 162)
    assert self_intersection(ball) is None
    for scale in (
        1e-3,
        0.0,
    ):  # neighbours nearly in one plane meet in their edge only; two sides as one are all crossed
        flat = Surface(ball.vertices * [1.0, 1.0, scale], ball.faces)
        assert (self_intersection(flat) is None) == (scale > 0)
    pushed = ball.vertices.copy()
    top, below = np.argmax(pushed[:, 2]), np.argmin(pushed[:, 2])
    pushed[top] = pushed[below] - [0.1, 0.05, 0.5]
    crossed = self_intersection(Surface(pushed, ball.faces))
    assert crossed is not None
    one, two = (Surface(pushed, ball.faces[[face]]) for face in crossed)
    assert penetrates(one, two) or penetrates(two, one)
    assert not np.intersect1d(*ball.faces[list(crossed)]).size


@pytest.mark.parametrize("margin", [0.0, 0.3])
def test_bent_cells_meet_where_every_edge_triangle_and_vertex_says_so(margin: float):
    """Pairs at random near each other: the oracle takes all edges with all triangles, and distances of all vertices."""
    random, seen = np.random.default_rng(8), {True: 0, False: 0}

    def bent(surface: Surface, shift: np.ndarray) -> Surface:
        points = surface.vertices + 0.4 * np.sin(surface.vertices @ random.normal(scale=0.5, size=(3, 3)))
        return Surface(points @ Rotation.random(rng=random).as_matrix().T + shift, surface.faces)

    for number in range(60):
        one, two = bent(RED, np.zeros(3)), bent((RED, PLATELET)[number % 2], random.normal(scale=2.5, size=3))
        both = ((one, two), (two, one))
        nearest = min(signed_distance(body, other.vertices).min() for body, other in both)
        expected = nearest < margin or any(penetrates(*pair) for pair in both)
        assert overlap_or_near(one, two, margin) == expected
        seen[expected] += 1
    assert min(seen.values()) > 10


@pytest.mark.parametrize(
    ("vessel", "surfaces", "hematocrit", "words"),
    [
        (Box((20, 20, 20)), [RED], 0.7, "hematocrit = 0.7: expected a number above 0 and at most 0.6"),
        (Box((20, 20, 20)), [RED], 0.0, "hematocrit = 0: expected a number above 0 and at most 0.6"),
        (Box((20, 20, 20)), [RED], 0.003, "hematocrit = 0.003: gives less than one cell; the volume of the vessel is"),
        (
            Tube(3.0, 50.0),
            [RED],
            0.3,
            "cell type 0: a cell of 2.564 x 7.82 x 7.82 is larger than the vessel (bounding box 50 x 6 x 6",
        ),
        (Box((7, 7, 20)), [RED], 0.3, "larger than the vessel (bounding box 7 x 7 x 20)"),
        (SurfaceInterior(ellipsoid((80, 1.2, 1.2), 162)), [RED], 0.3, "is larger than the vessel"),
        (
            Box((20, 20, 20)),
            [Surface(RED.vertices, RED.faces[1:])],
            0.3,
            "cell type 0: mesh: the mesh is open: 3 edges",
        ),
        (
            Box((20, 20, 20)),
            [Surface(RED.vertices, RED.faces[:, ::-1])],
            0.3,
            "cell type 0: mesh: the mesh is inside out",
        ),
    ],
)
def test_what_cannot_be_packed_is_reported_in_one_line(
    vessel: Vessel, surfaces: list[Surface], hematocrit: float, words: str
):
    with pytest.raises(CaseError, match=re.escape(words)) as caught:
        pack_vessel(vessel, surfaces, hematocrit)
    assert "\n" not in str(caught.value)


def test_packing_that_jams_names_the_cells(monkeypatch: pytest.MonkeyPatch):
    from seiche.cells import growth as module

    monkeypatch.setattr(module, "_LAST_PUSHES", 30)
    with pytest.raises(CaseError, match=r"37 cells cannot be packed without overlaps.*a lower hematocrit"):
        pack_vessel(Box((18, 18, 18)), [RED], 0.57)


def test_vessels_and_shares_are_checked():
    with pytest.raises(CaseError, match="three positive lengths"):
        Box((1, 0, 1))
    with pytest.raises(CaseError, match="tube of radius -1 and length 2"):
        Tube(-1, 2)
    with pytest.raises(CaseError, match="vessel: the surface is open"):
        SurfaceInterior(Surface(RED.vertices, RED.faces[1:]))
    with pytest.raises(CaseError, match="vessel: the surface is flat"):
        SurfaceInterior(Surface(RED.vertices * [1, 1, 0], RED.faces))
    inwards = SurfaceInterior(Surface(RED.vertices, RED.faces[:, ::-1]))
    assert inwards.surface.volume == pytest.approx(RED.volume)
    with pytest.raises(CaseError, match=r"shares \[1.0\]: expected one share, zero or more, for each of 2 types"):
        pack_vessel(Box((20, 20, 20)), [RED, PLATELET], 0.3, shares=[1.0])


def test_pos_files_keep_places_and_rotations(tmp_path: Path):
    centers = 1e-6 * np.random.default_rng(1).uniform(0, 50, (20, 3))
    turns = Rotation.random(20, rng=np.random.default_rng(2)).as_matrix()
    turns[0] = Rotation.from_euler("xyz", (20, -90, 0), degrees=True).as_matrix()  # two turns about one axis
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_pos(tmp_path / "RBC.pos", centers, turns)
    read, matrices = read_pos(tmp_path / "RBC.pos")
    np.testing.assert_allclose(read, centers, atol=1e-13)
    np.testing.assert_allclose(matrices, turns, atol=1e-7)
    write_pos(tmp_path / "PLT.pos", centers, turns, thin="y")
    np.testing.assert_allclose(read_pos(tmp_path / "PLT.pos", thin="y")[1], turns, atol=1e-7)
    write_pos(tmp_path / "none.pos", np.zeros((0, 3)), np.zeros((0, 3, 3)))
    assert read_pos(tmp_path / "none.pos")[1].shape == (0, 3, 3)


def test_angles_of_pos_files_turn_as_in_hemocell(tmp_path: Path):
    """Counter-clockwise about the fixed axes x, y and z, from a cell that is thin along y (readPositionsBloodCells)."""
    path = tmp_path / "RBC.pos"
    path.write_text("3\n10 10 10 30 0 0\n1 2 3 0 0 90\n4.5 0 0 90 0 90\n")
    centers, turns = read_pos(path, thin="y")
    np.testing.assert_allclose(centers, 1e-6 * np.array([(10, 10, 10), (1, 2, 3), (4.5, 0, 0)]), rtol=1e-14)
    np.testing.assert_allclose(turns[0] @ [0, 1, 0], [0, 0.75**0.5, 0.5], atol=1e-15)
    np.testing.assert_allclose(turns[1] @ [1, 0, 0], [0, 1, 0], atol=1e-15)
    # About x first: y goes to z, and stays there when it is then turned about z.
    np.testing.assert_allclose(turns[2] @ [0, 1, 0], [0, 0, 1], atol=1e-15)
    # The same cells as meshes thin along z, as those of `biconcave` are: the thin axis has the same direction.
    assert np.ptp(RED.vertices, axis=0).argmin() == 2
    upright = read_pos(path)[1]
    np.testing.assert_allclose(np.cross(upright[:, :, 2], turns[:, :, 1]), 0, atol=1e-15)
    np.testing.assert_allclose(np.linalg.det(upright), 1)
    write_pos(tmp_path / "again.pos", centers, upright)
    rows = np.loadtxt(tmp_path / "again.pos", skiprows=1)
    np.testing.assert_allclose(rows[:2], [(10, 10, 10, 30, 0, 0), (1, 2, 3, 0, 0, 90)], atol=1e-7)


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("", "line 1", "expected the number of cells"),
        ("x\n", "line 1", "expected the number of cells"),
        ("3\n1 2 3 4 5 6\n", "line 1", "declares 3 cells, but 1 lines follow"),
        ("1\n1 2 3 4 5\n", "line 2", "expected 6 numbers"),
        ("1\n1 2 3 4 5 nan\n", "line 2", "expected 6 numbers"),
    ],
)
def test_broken_pos_files_are_named(text: str, place: str, reason: str, tmp_path: Path):
    path = tmp_path / "bad.pos"
    path.write_text(text)
    with pytest.raises(FormatError) as caught:
        read_pos(path)
    assert str(caught.value) == f"{path}: {place}: {reason}"


def test_a_gap_for_which_there_cannot_be_room_is_rejected_before_anything_grows() -> None:
    sphere = ellipsoid((1.0, 1.0, 1.0), 42)
    vessel, hematocrit = Box((12.0, 12.0, 12.0)), 0.1
    count = int(np.rint(hematocrit * vessel.volume / sphere.volume))
    # Balls that are thicker by half the gap fill the vessel when it is twice what their radius lacks.
    full = 2 * ((vessel.volume / (count * 4 / 3 * np.pi)) ** (1 / 3) - (sphere.volume / (4 / 3 * np.pi)) ** (1 / 3))
    with pytest.raises(
        CaseError, match=rf"gap: {count} cells with this gap need at least 1\.\d+ times the volume of the vessel"
    ):
        pack_vessel(vessel, [sphere], hematocrit, gap=1.02 * full)
    apart = pack_vessel(vessel, [sphere], hematocrit, gap=0.3 * full)
    assert len(apart.centers) == count


@dataclass(frozen=True)
class Twins(Vessel):
    """Two tubes along x, 10 and 8 wide, that open into each other along two sharp ridges."""

    low, high, periodic = np.array([0.0, -10.0, -5.0]), np.array([60.0, 8.0, 5.0]), (True, False, False)
    volume = 60.0 * 128.74

    def distance(self, points: np.ndarray) -> np.ndarray:
        tubes = ((-5.0, 5.0), (4.0, 4.0))
        return np.min([np.hypot(points[:, 1] - y, points[:, 2]) - radius for y, radius in tubes], axis=0)

    def may_fit(self, half_axes: np.ndarray) -> bool:
        return bool(half_axes[0] < 4)


@pytest.mark.parametrize("seed", [1, 2])
def test_cells_keep_off_a_ridge_that_a_lattice_of_distances_rounds_off(seed: int) -> None:
    """All vertices are inside; the lattice, 0.7 apart, alone lets them 0.2 out, more than the gap of 0.02 makes up."""
    vessel = Twins()
    packing = pack_vessel(vessel, [RED], 0.15, gap=0.02, seed=seed)
    assert abs(packing.hematocrit - 0.15) < 0.01
    assert (vessel.distance(vertex_positions(packing, 0, RED).reshape(-1, 3)) < 0).all()
    assert not len(overlapping_pairs([RED], packing, np.array([60.0, 0.0, 0.0])))
