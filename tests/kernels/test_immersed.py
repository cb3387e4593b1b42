# SPDX-License-Identifier: BSD-3-Clause
"""Interpolation, spreading, motion and lists of immersed vertices against NumPy, and what they must conserve."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from immersed_oracle import SUPPORT, GivenForces, delta, interpolate, spread

from seiche.backend import open_backend
from seiche.couple import ImmersedBoundary
from seiche.domain import shapes
from seiche.domain.sites import SiteSet
from seiche.errors import CaseError, UnstableError
from seiche.flow import FlowModel, Newtonian, Precision, Regularised, Solver
from seiche.kernels.registry import Real
from seiche.kernels.registry import ibm as registry

Floats = npt.NDArray[np.float64]

DELTAS = tuple(SUPPORT)
WATER = FlowModel(Newtonian(0.1))
BOX = shapes.box((16, 24, 16))
TUBE = shapes.tube(7.3, 16.0, 1.0, axis=(0.0, 0.0, 1.0), periodic=True)


def points_in(sites: SiteSet, count: int, seed: int = 0) -> Floats:
    """Return random points not further than a site from a random site."""
    random = np.random.default_rng(seed)
    return sites.coords[random.integers(len(sites), size=count)] + random.uniform(-0.5, 0.5, (count, 3))


def coupled(
    sites: SiteSet,
    points: Floats,
    forces: object,
    name: str = "peskin",
    *,
    device: str = "cpu",
    layout: str = "tiles-8",
    real: Real = "float64",
    model: FlowModel = WATER,
    **options: object,
) -> tuple[Solver, GivenForces, ImmersedBoundary]:
    """Return a flow with vertices in it."""
    solver = Solver(sites, model, layout=layout, device=device, precision=Precision(real, real))
    markers = GivenForces(solver.backend, points, forces, real)
    return solver, markers, ImmersedBoundary(solver, markers, delta=name, **options)  # type: ignore[arg-type]


def velocity_of(boundary: ImmersedBoundary) -> Floats:
    return np.asarray(boundary.backend.download(boundary.velocity)[:, : boundary.markers.vertex_count].T)


def set_flow(boundary: ImmersedBoundary, velocity: Floats) -> None:
    """Give every owned site a velocity (n_owned, 3) for the next interpolation."""
    host = np.zeros((boundary.bricks.count + 1) * 512 * 4).reshape(-1, 4)
    host[boundary.bricks.slots, :3] = velocity
    boundary.backend.assign(boundary.flow, host.reshape(-1).astype(boundary.flow.dtype))


@pytest.mark.parametrize("name", DELTAS)
def test_functions_of_the_oracle_have_their_moments(name: str) -> None:
    position = np.linspace(0, 1, 41)[:, None]
    weight = delta(name, np.arange(-3, 5) - position)
    assert np.abs(weight.sum(axis=1) - 1).max() < 1e-15
    first = np.abs((weight * (np.arange(-3, 5) - position)).sum(axis=1)).max()
    assert first < 1e-15 if name != "cosine" else 0.0205 < first < 0.0212
    squares = (weight**2).sum(axis=1)
    if name != "hat":
        assert np.abs(squares - (0.5 if name == "roma" else 0.375)).max() < 1e-15


@pytest.mark.parametrize(("name", "real"), [*((name, "float64") for name in DELTAS), ("peskin", "float32")])
def test_force_and_velocity_are_those_of_numpy(name: str, real: Real, device: str) -> None:
    compare_with_numpy(name, real, device)


@pytest.mark.gpu
@pytest.mark.parametrize("name", [name for name in DELTAS if name != "peskin"])
def test_force_and_velocity_of_every_function_in_single_precision(name: str, device: str) -> None:
    compare_with_numpy(name, "float32", device)


def compare_with_numpy(name: str, real: Real, device: str) -> None:
    """Compare forces, velocities and places of 200 points after a step."""
    points, forces = points_in(BOX, 200) + 100.0, np.random.default_rng(1).normal(size=(200, 3)) * 1e-4
    solver, markers, boundary = coupled(BOX, points, forces, name, device=device, real=real)
    rounding = 1e-18 if real == "float64" else 2e-10
    assert np.abs(boundary.force_density() - spread(name, BOX, points, forces)).max() < rounding
    velocity = solver.fields(["velocity"])["velocity"]
    solver.advance()
    expected = interpolate(name, BOX, points, velocity)
    assert np.abs(velocity_of(boundary) - expected).max() < rounding
    assert np.abs(markers.points - points - expected).max() < rounding + 3e-14  # the place is about 100
    assert np.abs(boundary.force_density() - spread(name, BOX, markers.points, forces)).max() < rounding


@pytest.mark.parametrize("layout", ["list-ab", "list-aa", "tiles-4"])
def test_every_layout_finds_its_sites(layout: str, device: str) -> None:
    sites = shapes.box((17, 12, 9) if layout != "tiles-4" else (12, 16, 20))  # bricks that the box cuts
    points, forces = points_in(sites, 150), np.random.default_rng(1).normal(size=(150, 3)) * 1e-4
    solver, _, boundary = coupled(sites, points, forces, layout=layout, device=device)
    assert np.abs(boundary.force_density() - spread("peskin", sites, points, forces)).max() < 1e-18
    velocity = solver.fields(["velocity"])["velocity"]
    solver.advance()
    assert np.abs(velocity_of(boundary) - interpolate("peskin", sites, points, velocity)).max() < 1e-18


@pytest.mark.parametrize("name", DELTAS)
def test_spreading_keeps_force_and_torque(name: str) -> None:
    random = np.random.default_rng(2)
    points, forces = random.uniform(4, 12, (60, 3)), random.normal(size=(60, 3))
    _, _, boundary = coupled(BOX, points, forces, name)
    density = boundary.force_density()
    assert np.abs(density.sum(axis=0) - forces.sum(axis=0)).max() < 1e-13
    torque = np.cross(BOX.coords, density).sum(axis=0) - np.cross(points, forces).sum(axis=0)
    bound = 1e-12 if name != "cosine" else 2 * 0.0212 * np.abs(forces).sum()
    assert np.abs(torque).max() < bound
    assert name != "cosine" or np.abs(torque).max() > 1e-3  # which is why it is not the default


@pytest.mark.parametrize("name", DELTAS)
def test_work_on_the_fluid_is_that_of_the_vertices(name: str, device: str) -> None:
    sites = TUBE
    random = np.random.default_rng(3)
    points, forces = points_in(sites, 300), random.normal(size=(300, 3))
    _, _, boundary = coupled(sites, points, forces, name, device=device)
    velocity = random.normal(size=(len(sites), 3))
    work = float((boundary.force_density() * velocity).sum())
    set_flow(boundary, velocity)
    boundary.stages[0].action()
    assert abs(work - float((velocity_of(boundary) * forces).sum())) < 1e-12 * np.abs(forces).sum()


@pytest.mark.parametrize("name", DELTAS)
def test_linear_velocity_is_interpolated_exactly(name: str) -> None:
    points = np.random.default_rng(4).uniform(3, 12, (80, 3))
    _, _, boundary = coupled(BOX, points, np.zeros_like(points), name)
    gradient = np.random.default_rng(5).normal(size=(3, 3))
    set_flow(boundary, BOX.coords @ gradient + 1.0)
    boundary.stages[0].action()
    error = np.abs(velocity_of(boundary) - (points @ gradient + 1.0)).max()
    assert error < 2e-14 if name != "cosine" else 1e-3 < error < 0.0212 * np.abs(gradient).sum()


def test_near_walls_all_of_a_force_goes_to_the_fluid_and_velocities_come_from_it(device: str) -> None:
    sites = TUBE
    points, forces = points_in(sites, 400), np.random.default_rng(1).normal(size=(400, 3)) * 1e-4
    for name in ("roma", "peskin"):
        _, _, boundary = coupled(sites, points, forces, name, device=device)
        density = boundary.force_density()
        assert np.abs(density - spread(name, sites, points, forces)).max() < 1e-17
        assert np.abs(density.sum(axis=0) - forces.sum(axis=0)).max() < 1e-16
        set_flow(boundary, np.ones((len(sites), 3)))
        boundary.stages[0].action()
        assert np.abs(velocity_of(boundary) - 1).max() < 1e-14


def test_a_vertex_outside_the_fluid_is_named(device: str) -> None:
    points = np.array([[8.0, 8.0, 3.0], [-2.0, 1.0, 5.0]])
    _, _, boundary = coupled(TUBE, points, np.zeros_like(points), device=device)
    with pytest.raises(UnstableError, match=r"vertex 1 at \(-2, 1, 5\) has left the fluid at step 0"):
        boundary.check()
    _, _, boundary = coupled(BOX, points * np.array([[1.0], [np.nan]]), np.zeros_like(points), device=device)
    with pytest.raises(UnstableError, match="vertex 1 at"):
        boundary.check()


def test_vertices_are_listed_again_when_they_move(device: str) -> None:
    model = FlowModel(Newtonian(0.1), initial_velocity=(0.11, -0.07, 0.05))
    points, forces = points_in(BOX, 100), np.random.default_rng(1).normal(size=(100, 3)) * 1e-6
    solver, markers, boundary = coupled(BOX, points, forces, device=device, model=model)
    for _ in range(3):
        solver.advance(37)
        expected = spread("peskin", BOX, markers.points, forces)
        assert np.abs(boundary.force_density() - expected).max() < 1e-19
    assert np.abs(markers.points - points - 111 * np.array([0.11, -0.07, 0.05])).max() < 0.01


def test_lists_of_any_length_are_sorted(device: str) -> None:
    backend = open_backend(device)
    counts = np.array([0, 1, 2, 63, 64, 255, 256, 257, 511, 512, 513, 1000, 2049, 3, 0, 5, 300, 8])
    first = np.cumsum(counts) - counts
    random = np.random.default_rng(1)
    lists = [random.choice(10 * count + 1, count, replace=False).astype(np.uint32) for count in counts]
    entries = backend.upload(np.concatenate(lists))
    state = backend.upload(np.array([1, 77, 0], np.uint32))  # stale
    members = {"first": first.astype(np.uint32), "count": counts.astype(np.uint32), "tally": counts.astype(np.uint32)}
    arrays = {name: backend.upload(host) for name, host in members.items()}
    kernel = backend.load(registry.sort_lists())
    memory = {"state": None, "blocks": 0}
    packed = backend.pack(kernel, lists={**arrays, "entries": entries}, state=state, count=len(counts), memory=memory)
    kernel.bind(packed, 0, -(-len(counts) // registry.SORT_GROUP))()
    expected = np.concatenate([np.sort(entry) for entry in lists])
    np.testing.assert_array_equal(backend.download(entries), expected)
    assert not backend.download(arrays["tally"]).any()
    assert backend.download(state).tolist() == [1, 0, 0]


@pytest.mark.parametrize(("scheme", "order"), [("euler", 1), ("adams-bashforth", 2)])
def test_motion_has_the_order_of_its_scheme(scheme: str, order: int) -> None:
    middle, errors = np.array([7.5, 11.5, 7.5]), []
    for steps in (40, 80):
        points = middle + np.array([[3.0, 0.0, 0.0]])
        _, markers, boundary = coupled(BOX, points, np.zeros_like(points), scheme=scheme)
        set_flow(boundary, np.cross([0.0, 0.0, 1.0 / steps], BOX.coords - middle))
        for _ in range(steps):
            boundary.stages[0].action()
        errors.append(np.linalg.norm(markers.points[0] - middle - 3 * np.array([np.cos(1), np.sin(1), 0])))
    assert abs(np.log2(errors[0] / errors[1]) - order) < 0.15


def test_momentum_of_fluid_grows_by_the_forces_alone(device: str) -> None:
    points = points_in(BOX, 100)
    forces = np.random.default_rng(1).normal(size=(100, 3)) * 1e-5
    solver, _, _ = coupled(BOX, points, forces, device=device)
    solver.advance(20)
    fields = solver.fields(["density", "velocity"])
    momentum = (fields["density"][:, None] * fields["velocity"]).sum(axis=0)
    # the velocity of an observation has half of the force of the step to come (theory/flow, eq. 3)
    assert np.abs(momentum - 20.5 * forces.sum(axis=0)).max() < 1e-14


def test_pairs_of_vertices_do_not_push_the_whole() -> None:
    points = points_in(BOX, 100)

    def springs(places: Floats) -> Floats:
        pull = 1e-3 * (np.roll(places, -1, axis=0) - places)
        return np.asarray(pull - np.roll(pull, 1, axis=0))

    solver, _, _ = coupled(BOX, points, springs)
    solver.advance(50)
    fields = solver.fields(["density", "velocity"])
    assert np.abs(fields["velocity"]).max() > 1e-3
    assert np.abs((fields["density"][:, None] * fields["velocity"]).sum(axis=0)).max() < 1e-13


def test_results_are_bitwise_equal_for_threads_and_layouts() -> None:
    points = points_in(BOX, 300)
    result = []
    for layout, threads in (("tiles-8", 1), ("tiles-8", 2), ("list-ab", 2), ("list-aa", 2)):
        solver = Solver(BOX, WATER, layout=layout, threads=threads)
        markers = GivenForces(solver.backend, points, lambda places: 1e-3 * (points.mean(axis=0) - places))
        ImmersedBoundary(solver, markers, delta="peskin")
        solver.advance(30)
        result.append((markers.points, solver.fields(["velocity"])["velocity"]))
    for position, velocity in result[1:]:
        assert np.array_equal(position, result[0][0]) and np.array_equal(velocity, result[0][1])


@pytest.mark.parametrize("real", ["float64", "float32"])
@pytest.mark.parametrize("sites", [BOX, TUBE], ids=["box", "tube"])
def test_moment_storage_gives_results_bitwise_equal_to_populations(sites: SiteSet, real: Real, device: str) -> None:
    points, result = points_in(sites, 200), []
    model = FlowModel(Newtonian(0.1), Regularised(), body_force=(1e-5, 0.0, 2e-5))
    for layout in ("tiles-8", "moments"):
        springs = lambda places: 1e-3 * (points.mean(axis=0) - places)  # noqa: E731
        options = {"layout": layout, "model": model, "real": real, "device": device}
        solver, markers, boundary = coupled(sites, points, springs, **options)  # type: ignore[arg-type]
        solver.advance(30)
        result.append((markers.points, boundary.force_density(), solver.fields(["velocity"])["velocity"]))
    assert np.abs(result[0][2]).max() > 1e-3
    for one, other in zip(*result, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "spline"}, r"delta function 'spline' is not one of hat, roma, peskin, cosine"),
        ({"scheme": "leapfrog"}, r"time scheme 'leapfrog' of the vertices is not one of euler, adams-bashforth"),
    ],
)
def test_unknown_names_are_rejected(options: dict[str, str], message: str) -> None:
    with pytest.raises(CaseError, match=message):
        coupled(BOX, np.zeros((1, 3)), np.zeros((1, 3)), **options)  # type: ignore[arg-type]


def test_more_sites_than_a_processor_finds_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seiche.couple.bricks._MAX_CPU_VALUES", 4 * 512 * 12)
    with pytest.raises(CaseError, match=r"12 bricks of 8\^3 sites on one rank are too many for the CPU; use more"):
        coupled(BOX, np.zeros((1, 3)), np.zeros((1, 3)))


def test_cells_that_cannot_be_coupled_are_rejected() -> None:
    with pytest.raises(CaseError, match="the periodic extent of 6 sites along y is below 8"):
        coupled(shapes.box((16, 6, 16)), np.zeros((1, 3)), np.zeros((1, 3)), layout="list-ab")
    solver, markers, _ = coupled(BOX, np.zeros((1, 3)), np.zeros((1, 3)))
    with pytest.raises(CaseError, match="force field: not supported with immersed bodies"):
        solver.set_force(np.zeros((len(BOX), 3)))
    single = Solver(BOX, WATER, precision=Precision("float32", "float32"))
    with pytest.raises(CaseError, match="forces of vertices are float64, but the flow computes in float32"):
        ImmersedBoundary(single, markers)
