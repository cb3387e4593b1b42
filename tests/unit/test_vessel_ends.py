# SPDX-License-Identifier: BSD-3-Clause
"""Ends of the vessel wall in pictures of cells, and images of cells beyond periodic ends."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from seiche.case import new
from seiche.case.blood.series import wall_of
from seiche.case.blood.setup import BloodSetup
from seiche.case.flow.wall import open_surface, wall_surface
from seiche.case.loading import load
from seiche.cells import icosphere
from seiche.domain.bifurcation import bifurcation_surface
from seiche.domain.shapes import channel, duct, tube
from seiche.domain.sites import SiteSet
from seiche.domain.surface import Surface
from seiche.domain.voxelise import voxelise
from seiche.errors import FormatError
from seiche.io.cell_files import read_surfaces
from seiche.io.surface_file import CellSurfaces, write_surfaces
from seiche.report import scene
from seiche.report.field_panel import cuts
from seiche.report.periodic_images import in_an_end, with_images

BALL = icosphere(162)
VESSELS = {
    "periodic tube": tube(5.0, 12.0, 0.5, periodic=True),
    "open tube": tube(5.0, 12.0, 0.5),
    "oblique tube": tube(5.0, 12.0, 0.5, axis=(1.0, 0.4, 0.2)),
    "periodic duct": duct(4.0, 6.0, 12.0, 0.5, periodic=True),
}


def end_planes(sites: SiteSet) -> list[tuple[np.ndarray, np.ndarray]]:
    planes = [(np.asarray(plane.center), np.asarray(plane.normal)) for plane in sites.iolets]
    for axis in np.flatnonzero(sites.periodic):
        for end in (-0.5, sites.shape[axis] - 0.5):
            planes.append((np.asarray(sites.origin) + sites.spacing * end * np.eye(3)[axis], np.eye(3)[axis]))
    return planes


def distances_from_ends(points: np.ndarray, sites: SiteSet) -> np.ndarray:
    """Return the distance of each polygon (n, k, 3) from the nearest end plane, that of its farthest corner."""
    heights = [np.abs((points - center) @ normal).max(axis=1) for center, normal in end_planes(sites)]
    return np.min(heights, axis=0)


@pytest.mark.parametrize("name", VESSELS)
def test_a_wall_ends_in_the_planes_of_its_openings_and_is_closed_there(name: str) -> None:
    pytest.importorskip("pyvista")
    sites = VESSELS[name]
    wall = wall_surface(sites)
    loops = wall.boundary_loops()
    assert len(loops) == 2
    assert sum(len(loop.vertices) for loop in loops) == len(wall._open_edges()[0])  # every open edge is in a loop
    for loop in loops:
        assert distances_from_ends(wall.vertices[loop.vertices][None], sites) < 1e-9
    caps = scene.plane_caps(wall.vertices, wall.faces)
    assert len(caps) == sum(len(loop.vertices) - 2 for loop in loops)
    assert distances_from_ends(wall.vertices[caps], sites).max() < 1e-9
    closed = Surface(wall.vertices, np.concatenate([wall.faces, caps]).astype(np.int32))
    assert closed.is_closed()
    assert not len(closed.orientation_conflicts())
    assert closed.volume == pytest.approx(len(sites) * sites.spacing**3, rel=0.08)


def test_the_wall_of_the_blood_template_is_that_of_its_whole_tube(tmp_path: Path) -> None:
    pytest.importorskip("pyvista")
    with load(new.TEMPLATES / "blood.toml", output=tmp_path) as simulation:
        setup = simulation.setup
        assert isinstance(setup, BloodSetup)
        wall = wall_of(setup)
    assert wall is not None
    write_surfaces(tmp_path / "wall.vtkhdf", wall)
    stored = read_surfaces(tmp_path / "wall.vtkhdf")  # in single precision
    assert stored.vertices[:, 0].min() == pytest.approx(0.0, abs=1e-12)
    assert stored.vertices[:, 0].max() == pytest.approx(12e-6, rel=1e-6)
    assert len(np.unique(stored.faces)) == len(stored.vertices)
    caps = scene.plane_caps(1e6 * stored.vertices, stored.faces)
    ends = 1e6 * stored.vertices[caps][:, :, 0]
    assert len(caps) and (np.minimum(np.abs(ends), np.abs(ends - 12.0)) < 1e-5).all()
    box = np.array([[0.0, -np.inf, -np.inf], [12.0, np.inf, np.inf]])
    assert in_an_end(1e6 * stored.vertices[caps], box).all()  # and a picture leaves them open


def test_a_given_surface_ends_plane_at_its_openings() -> None:
    pytest.importorskip("pyvista")
    surface, planes = bifurcation_surface()
    sites = voxelise(surface, 0.4e-3, planes)[0]
    ragged = surface.vertices.copy()
    rims = np.concatenate([loop.vertices for loop in surface.boundary_loops()])
    outwards = 0.1e-3 * (1.0 + np.sin(4e3 * ragged[rims].sum(axis=1, keepdims=True)))  # up to 0.2 mm, in waves
    nearest = [min(planes, key=lambda plane: np.linalg.norm(ragged[row] - plane.center)) for row in rims]
    ragged[rims] -= outwards * [plane.normal for plane in nearest]
    wall = open_surface(Surface(ragged, surface.faces), sites)
    loops = wall.boundary_loops()
    assert len(loops) == 3
    caps = scene.plane_caps(1e6 * wall.vertices, wall.faces)
    assert Surface(wall.vertices, np.concatenate([wall.faces, caps]).astype(np.int32)).is_closed()
    assert distances_from_ends(wall.vertices[caps], sites).max() == pytest.approx(0.01 * 0.4e-3, rel=1e-3)


def rings(*radii: float) -> tuple[np.ndarray, np.ndarray]:
    """Return open tubes along x around one axis, of length 3; every second one has its normals inwards."""
    vertices, faces = [], []
    angle = np.arange(24) * np.pi / 12
    for number, radius in enumerate(radii):
        ring = np.stack([0 * angle, radius * np.cos(angle), radius * np.sin(angle)], axis=1)
        vertices += [ring, np.add(ring, [3.0, 0.0, 0.0])]
        a = np.arange(24)
        b = np.roll(a, -1)
        strip = np.concatenate([np.stack([a, b, a + 24], 1), np.stack([b, b + 24, a + 24], 1)]) + 48 * number
        faces.append(strip[:, ::-1] if number % 2 else strip)
    return np.concatenate(vertices), np.concatenate(faces)


def test_the_cap_of_an_annulus_has_a_hole() -> None:
    pytest.importorskip("pyvista")
    vertices, faces = rings(2.0, 1.0)
    caps = scene.plane_caps(vertices, faces)
    corners = vertices[caps]
    areas = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    assert areas.sum() == pytest.approx(2 * 12 * np.sin(np.pi / 12) * (2.0**2 - 1.0**2))
    assert Surface(vertices, np.concatenate([faces, caps]).astype(np.int32)).is_closed()


def test_rims_that_are_not_plane_and_those_of_sheets_stay_open() -> None:
    pytest.importorskip("pyvista")
    vertices, faces = rings(2.0)
    vertices[1:24:2, 0] -= 0.2  # a zigzag at one end, as in files of earlier versions
    caps = scene.plane_caps(vertices, faces)
    assert len(caps) == 22 and (vertices[caps][:, :, 0] == 3.0).all()
    plates = wall_surface(channel(4.0, 8.0, 8.0, 1.0))
    assert len(plates.boundary_loops()) == 2
    assert len(scene.plane_caps(plates.vertices, plates.faces)) == 0


def test_the_wall_before_the_cells_is_transparent_and_visible() -> None:
    pytest.importorskip("pyvista")
    if not scene.can_render():
        pytest.skip("PyVista cannot render here")
    view = scene.ParallelView(np.eye(3)[[0, 2, 1]] * [[1], [1], [-1]], (-2.0, -1.5), (2.0, 1.5))
    grey = np.full((len(BALL.vertices), 3), 0.5)
    front = scene.SceneSurface(BALL.vertices, BALL.faces, grey, opacity=0.15, side="front", ambient=0.6)
    image = scene.render_scene([front], view, 200)
    assert 200 < image[75, 100, 0] < 250  # grey with 15 % opacity on white
    assert (image[0, 0] == 255).all()


def ball_at(x: float, box: np.ndarray | None) -> CellSurfaces:
    velocity = np.tile([1e-3, 0.0, 0.0], (len(BALL.vertices), 1))
    cells = {"cell": np.full(len(BALL.faces), 7)}
    return CellSurfaces(0.0, np.add(BALL.vertices, [x, 0.0, 0.0]), BALL.faces, {"velocity": velocity}, cells, box)


def test_a_cell_through_a_periodic_end_is_drawn_at_both_ends() -> None:
    box = np.array([[0.0, -np.inf, -np.inf], [10.0, np.inf, np.inf]])
    across = with_images(ball_at(9.5, box))
    assert len(across.vertices) == 2 * 162 and len(across.faces) == 2 * len(BALL.faces)
    first, second = across.vertices[:162], across.vertices[162:]
    np.testing.assert_allclose(second, first - [10.0, 0.0, 0.0])
    assert (across.faces[len(BALL.faces) :] == BALL.faces + 162).all()
    assert across.on_vertices["velocity"].shape == (324, 3) and (across.on_faces["cell"] == 7).all()
    # Both halves of the circle that a plane cuts out of the cell lie in the box.
    ends = np.clip(cuts(across.vertices[across.faces], 2, 0.0)[:, :, 0], 0.0, 10.0)
    assert np.ptp(ends, axis=1).astype(bool).sum() > 20
    assert ends.min() == 0.0 and ends.max() == 10.0
    assert len(with_images(ball_at(5.0, box)).vertices) == 162
    assert len(with_images(ball_at(9.5, None)).vertices) == 162
    corner = np.array([[0.0, -1.5, -np.inf], [10.0, 2.5, np.inf]])
    assert len(with_images(ball_at(9.5, corner)).vertices) == 2 * 162
    corner[:, 1] = -0.5, 2.5  # through an edge of the box: four images
    assert len(with_images(ball_at(9.5, corner)).vertices) == 4 * 162


def test_files_of_cells_contain_the_periodic_box(tmp_path: Path) -> None:
    box = np.array([[0.0, -np.inf, -np.inf], [10.0, np.inf, np.inf]])
    path = tmp_path / "cells.vtkhdf"
    write_surfaces(path, ball_at(9.5, box))
    stored = read_surfaces(path).periodic_box
    assert stored is not None and (stored == box).all()
    write_surfaces(path, ball_at(9.5, None))
    assert read_surfaces(path).periodic_box is None
    with h5py.File(path, "a") as file:
        file.attrs["periodic_box"] = box[::-1]
    with pytest.raises(FormatError, match="periodic_box: not the lower and upper end of three axes"):
        read_surfaces(path)
