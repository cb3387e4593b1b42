# SPDX-License-Identifier: BSD-3-Clause
"""Sites inside closed surfaces, and the viscosity that the fluid has there."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from immersed_oracle import GivenForces

from seiche.couple import ImmersedBoundary, Placement, Surfaces
from seiche.domain import shapes
from seiche.domain.sites import SiteSet
from seiche.errors import CaseError
from seiche.flow import CarreauYasuda, FlowModel, Mrt, Newtonian, Solver, Trt
from seiche.flow.state import site_state

Floats = npt.NDArray[np.float64]


def ball(count: int = 24) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return points of the unit sphere on circles of latitude, and triangles that face outwards."""
    angles, rise = 2 * np.pi * np.arange(count) / count, np.pi * np.arange(1, count // 2) / (count // 2)
    theta, phi = np.meshgrid(rise, angles, indexing="ij")
    rings = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], axis=-1)
    points = np.concatenate([[[0.0, 0.0, 1.0]], rings.reshape(-1, 3), [[0.0, 0.0, -1.0]]])
    from scipy.spatial import ConvexHull

    faces = ConvexHull(points).simplices.astype(np.int64)
    a, b, c = points[faces.T]
    flip = np.einsum("ij,ij->i", np.cross(b - a, c - a), a) < 0
    faces[flip] = faces[flip][:, [0, 2, 1]]
    return points, faces


def marked(
    sites: SiteSet, points: Floats, faces: npt.NDArray[np.int64], cells: int = 1, **options: object
) -> tuple[Solver, GivenForces, ImmersedBoundary]:
    """Return a flow with closed surfaces in it, five times as viscous inside by default."""
    chosen = {"device": "cpu", "layout": "tiles-8", "model": FlowModel(Newtonian(0.05)), "contrast": 5.0, **options}
    solver = Solver(sites, chosen["model"], layout=chosen["layout"], device=chosen["device"])  # type: ignore[arg-type]
    markers = GivenForces(solver.backend, points, np.zeros_like(points))
    arguments: dict[str, object] = {"viscosity_contrast": chosen["contrast"], "mark_every": chosen.get("every", 1)}
    arguments["surfaces"] = [Surfaces(faces, cells, len(points) // max(1, cells))] if len(faces) else []
    return solver, markers, ImmersedBoundary(solver, markers, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("layout", ["tiles-8", "list-ab"])
def test_sites_inside_are_those_inside_the_surface(layout: str, device: str) -> None:
    """A point is inside a surface whose triangles take up a solid angle of 4 pi (van Oosterom, Strackee 1983)."""
    shape = (32, 32, 32) if layout == "tiles-8" else (33, 30, 21)
    sites = shapes.box(shape)
    unit, faces = ball()
    random = np.random.default_rng(0)
    turn = np.linalg.qr(random.normal(size=(3, 3)))[0]
    cells = [unit * [7, 5, 3] @ turn + middle for middle in ([1.3, 2.7, -3.2], [16.2, 15.1, 11.7])]  # one wraps round
    _, _, boundary = marked(sites, np.concatenate(cells), faces, 2, device=device, layout=layout)
    assert boundary.inside is not None
    expected = np.zeros(len(sites), bool)
    for points in cells:
        extent = np.array(shape)
        near = (sites.coords - points.mean(axis=0) + extent / 2) % extent - extent / 2
        corners = (points - points.mean(axis=0))[faces]
        a, b, c = (corners[None, :, k] - near[:, None, :] for k in range(3))
        la, lb, lc = (np.linalg.norm(item, axis=2) for item in (a, b, c))
        dots = [np.einsum("nfi,nfi->nf", *pair) for pair in ((a, b), (b, c), (c, a))]
        triple = np.einsum("nfi,nfi->nf", a, np.cross(b, c))
        angle = 2 * np.arctan2(triple, la * lb * lc + dots[0] * lc + dots[1] * la + dots[2] * lb).sum(axis=1)
        expected |= angle > 2 * np.pi
    assert expected.sum() > 700
    assert np.array_equal(boundary.inside.sites(), expected)


def test_surfaces_on_sites_and_long_ones_are_marked_too() -> None:
    """The corners of a cube lie on sites; the other surface is longer than a window of 64 sites."""
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    from scipy.spatial import ConvexHull

    faces = ConvexHull(corners).simplices.astype(np.int64)
    sites = shapes.box((96, 16, 16))
    for size, count in (([4, 4, 4], 4**3), ([80.5, 6, 6], 81 * 36)):
        _, _, boundary = marked(sites, corners * size + 4.0, faces)
        assert boundary.inside is not None
        assert boundary.inside.sites().sum() == count


@pytest.mark.parametrize("collision", [Trt(), Mrt()], ids=["trt", "mrt"])
def test_inside_a_surface_around_everything_the_flow_is_that_of_the_inner_fluid(collision: Trt | Mrt) -> None:
    sites = shapes.duct(6.0, 7.0, 8.0, 1.0)
    unit, faces = ball()
    around = unit * 60 + 4.0
    push = (1e-5, 0.0, 0.0)
    models = [FlowModel(Newtonian(viscosity), collision, body_force=push) for viscosity in (0.04, 0.12)]
    solver, _, boundary = marked(sites, around, faces, model=models[0], contrast=3.0, layout="list-ab")
    assert boundary.inside is not None and boundary.inside.sites().all()
    inner = Solver(sites, models[1], layout="list-ab")
    for item in (solver, inner):
        item.advance(50)
    result, expected = (item.fields(["velocity", "viscosity"]) for item in (solver, inner))
    assert np.abs(result["velocity"] - expected["velocity"]).max() < 1e-17
    assert np.abs(result["viscosity"] - 0.12).max() < 1e-16


def test_sites_are_marked_again_as_often_as_asked() -> None:
    model = FlowModel(Newtonian(0.05), initial_velocity=(0.125, 0.0, 0.0))
    unit, faces = ball()
    sites = shapes.box((32, 16, 16))
    solver, _, boundary = marked(sites, unit * 5 + 8.3, faces, model=model, every=8)
    assert boundary.inside is not None
    before = boundary.inside.sites().reshape(32, 16, 16)
    solver.advance(7)
    assert np.array_equal(boundary.inside.sites().reshape(32, 16, 16), before)
    solver.advance(1)
    assert np.array_equal(boundary.inside.sites().reshape(32, 16, 16), np.roll(before, 1, axis=0))


def test_the_viscosity_of_a_snapshot_is_that_of_its_moment(device: str) -> None:
    """A ball is moved after the snapshot was taken and before it is read."""
    sites = shapes.box((32, 32, 24))
    unit, faces = ball()
    solver, _, boundary = marked(sites, 5 * unit + 9.0, faces, device=device)
    every, subset = (
        solver.measures.snapshots(("viscosity",)),
        solver.measures.snapshots(("viscosity",), np.arange(1, len(sites), 3)),
    )
    taken = [solver.measures.snapshot(every), solver.measures.snapshot(subset)]
    before = solver.fields(("viscosity",))["viscosity"]
    boundary.place_all(Placement((5 * unit + 14.0).T))
    solver.advance(2)
    after = solver.fields(("viscosity",))["viscosity"]
    on_device = solver.device_fields(("viscosity",))["viscosity"]
    np.testing.assert_array_equal(solver.backend.download(on_device), after)
    assert len(np.unique(after)) == 2
    assert sorted(set(before.round(12))) == sorted(set(after.round(12))) == [0.05, 0.25]
    assert np.count_nonzero(before != after) > 500
    np.testing.assert_array_equal(taken[0].fields()["viscosity"], before)
    np.testing.assert_array_equal(taken[1].fields()["viscosity"], before[1::3])


def test_what_is_inside_is_found_by_the_number_of_the_step_however_a_run_is_split() -> None:
    """Also after a restart between two such steps: the state contains the sites that were inside."""
    model = FlowModel(Newtonian(0.05), initial_velocity=(0.1, 0.02, 0.0))
    unit, faces = ball()
    sites = shapes.box((32, 16, 16))

    def flow() -> tuple[Solver, GivenForces, ImmersedBoundary]:
        return marked(sites, unit * 5 + 8.3, faces, model=model, every=8)

    full, parts, (second, _, boundary) = flow()[0], flow(), flow()
    full.advance(40)
    for steps in (7, 4):
        parts[0].advance(steps)
    state, position, velocity = parts[0].state(), parts[1].positions, parts[2].velocity
    assert 0 < state["inside"].sum() < len(sites)
    second.set_state(state)
    boundary.place_all(Placement(position, velocity))
    for solver, steps in ((parts[0], 29), (second, 29)):
        solver.advance(steps)
        assert "inside" not in solver.state()
        assert np.array_equal(solver.state()["populations"], full.state()["populations"])
    with pytest.raises(CaseError, match="state: the array 'inside' of the sites has shape"):
        second.set_state(site_state(second, {**state.rows["sites"].arrays, "inside": np.zeros(3)}))


def test_nothing_is_inside_when_all_cells_have_left(device: str) -> None:
    _, faces = ball()
    sites = shapes.box((16, 16, 16))
    solver, _, boundary = marked(sites, np.zeros((0, 3)), faces, 0, device=device)
    solver.advance(2)
    assert boundary.inside is not None
    assert not boundary.inside.sites().any()


def test_arguments_without_a_possible_contrast_are_rejected() -> None:
    unit, faces = ball()
    box = shapes.box((16, 16, 16))
    with pytest.raises(CaseError, match="mark_every = 3: expected 1, 2, 4, 8, 16 or 32 steps"):
        marked(box, unit * 5 + 8.0, faces, every=3)
    with pytest.raises(CaseError, match="a viscosity contrast requires closed surfaces, but there are none"):
        marked(box, unit * 5 + 8.0, faces[:0])
    with pytest.raises(CaseError, match=r"viscosity contrast -2\.0 is not positive"):
        marked(box, unit * 5 + 8.0, faces, contrast=-2.0)
    blood = FlowModel(CarreauYasuda(0.3, 0.02, 30.0, 0.64, 0.2128))
    with pytest.raises(
        CaseError, match="a viscosity contrast requires a Newtonian fluid outside the cells, not CarreauYasuda"
    ):
        marked(box, unit * 5 + 8.0, faces, model=blood)
