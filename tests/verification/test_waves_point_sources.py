# SPDX-License-Identifier: BSD-3-Clause
"""Waves of point sources near to the source, wherever it lies in the elements, against exact solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from seiche.errors import CaseError
from seiche.validate.waves.point_sources import stokes_velocity
from seiche.waves import Brick, Forest, Gaussian, Material, Mesh, PointSource, Solver
from seiche.waves.basis import Basis
from seiche.waves.boxes import MAX_BOXES, Surroundings, boxes_of
from seiche.waves.incident import TabulatedPulse, Uniform, coefficients, interpolated_columns, stress, unknowns

Floats = npt.NDArray[np.float64]

SOLID, FLUID = Uniform(2.5, 3.0, 1.7), Uniform(1.2, 1.7, 0.0)
PULSE = Gaussian(0.25, 1.5)
#: Kinds of source in the medium in which each acts.
KINDS: dict[str, tuple[Uniform, dict[str, Any]]] = {
    "double couple": (SOLID, {"moment": [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]}),
    "explosion": (SOLID, {"moment": np.eye(3).tolist()}),
    "force": (SOLID, {"force": (0.7, -0.4, 1.0)}),
    "volume": (FLUID, {"volume": 1.5}),
    "force in a fluid": (FLUID, {"force": (0.7, -0.4, 1.0)}),
}
#: Places in the element [0, 1]^3.
PLACES = {
    "middle": (0.5, 0.5, 0.5),
    "face": (0.0, 0.45, 0.6),
    "above a face": (1e-6, 0.45, 0.6),
    "edge": (0.0, 0.0, 0.6),
    "off a vertex": (1e-6, -1e-6, 1e-6),
}
#: Offsets of receivers: one, two and three elements away.
NEAR = ((0.5, 0.85, 0.3), (1.0, 1.7, 0.6), (1.6, 2.3, 1.0))


def exact(kind: str, x: tuple[float, ...], times: Floats, pulse: Any = PULSE) -> Floats:
    """Return the unknowns of a source in a full space, (times, fields)."""
    medium, options = KINDS[kind]
    spacing = 0.004
    rows = TabulatedPulse(pulse, spacing).rows(0, int(times[-1] / spacing) + 10)
    velocity, gradient = coefficients(PointSource((0.0,) * 3, pulse, **options), medium, np.array([x]))
    factors = unknowns(velocity, stress(gradient, medium.lame, medium.mu), medium.cs == 0)[:, 0]
    result = np.zeros((len(times), len(factors)))
    for wave, speed in enumerate(medium.speeds):
        places = (times - np.linalg.norm(x) / speed) / spacing
        result += interpolated_columns(rows, 0, places, spacing) @ factors[:, wave].T
    return result


def cube(side: int, *, fine: int | None = None) -> Mesh:
    """Return a cube of elements of side one around the origin, finer where x >= fine."""
    forest = Forest.uniform(Brick((side,) * 3, (False,) * 3), 0)
    if fine is not None:
        corner = forest.corner[:, 0] / (1 << forest.brick.depth) - side // 2
        forest = forest.refined(corner >= fine).balanced()
    return Mesh.of_forest(forest, origin=-float(side // 2))


def errors(kind: str, place: tuple[float, ...], nodes: int, mesh: Mesh, time: float = 3.1, **options: Any) -> Floats:
    """Return the largest errors of the velocity at `NEAR`, relative to the largest velocity there."""
    medium, source = KINDS[kind]
    receivers = [tuple(np.add(place, offset)) for offset in NEAR]
    solver = Solver(
        mesh,
        Material.uniform(mesh.count, medium.density, medium.cp, medium.cs),
        nodes=nodes,
        sources=[PointSource(place, PULSE, **source)],
        receivers=receivers,
        **options,
    )
    solver.advance(int(time / solver.dt))
    samples = solver.samples()
    times: Floats = solver.dt * np.arange(1.0, len(samples) + 1.0)
    velocity = slice(1, 4) if medium.cs == 0 else slice(0, 3)
    result = []
    for number, offset in enumerate(NEAR):
        waves = exact(kind, offset, times)[:, velocity]
        result.append(abs(samples[:, number, velocity] - waves).max() / abs(waves).max())
    return np.array(result)


@pytest.mark.parametrize("kind", KINDS)
def test_the_incident_field_solves_the_equations_of_motion(kind: str) -> None:
    """Differences of the formulas in space and time: rho v_t = div S and S_t = C : grad v (theory/waves, eqs. 2, 3)."""
    medium, _ = KINDS[kind]
    h, times, x = 2e-3, np.linspace(1.0, 4.0, 60), np.array([0.5, 0.85, 0.3])

    def fields(place: Floats, at: Floats) -> Floats:
        values = exact(kind, tuple(place), at).T
        if medium.cs == 0:
            p, velocity = values[0], values[1:]
            return np.concatenate([velocity, -p[None] * np.array([1, 1, 1, 0, 0, 0])[:, None]])
        return values

    along = [(fields(x + h * e, times) - fields(x - h * e, times)) / (2 * h) for e in np.eye(3)]
    rate = (fields(x, times + h) - fields(x, times - h)) / (2 * h)
    row = np.array([[3, 8, 7], [8, 4, 6], [7, 6, 5]])
    force = np.array([sum(along[a][row[i, a]] for a in range(3)) for i in range(3)])
    gradient = np.array([[along[a][i] for a in range(3)] for i in range(3)])
    stresses = stress(gradient, medium.lame, medium.mu)
    assert abs(medium.density * rate[:3] - force).max() < 5e-4 * abs(force).max()
    for i, j in np.ndindex(3, 3):
        assert abs(rate[row[i, j]] - stresses[i, j]).max() < 5e-4 * abs(stresses).max()


def test_the_incident_field_of_a_force_is_that_of_stokes() -> None:
    times = np.linspace(0.5, 5.0, 200)
    position, force = np.array([0.5, 0.85, 0.3]), np.array([0.7, -0.4, 1.0])
    stokes = stokes_velocity(position, force, times, (SOLID.density, SOLID.cp, SOLID.cs), PULSE)
    assert abs(exact("force", tuple(position), times)[:, :3] - stokes).max() < 2e-6 * abs(stokes).max()


def test_a_table_of_time_does_not_depend_on_the_rows_read_before() -> None:
    full = TabulatedPulse(PULSE, 0.01)
    rows = full.rows(-20, 900)
    assert not rows[:20].any()
    np.testing.assert_allclose(rows[-1, 2], 1.0, rtol=1e-9)  # the pulse has the area one
    t = 0.01 * np.arange(-20, 880)
    slope = -(t - PULSE.delay) / PULSE.sigma**2 * PULSE(t)  # away from the start, which cuts the pulse off
    assert abs(rows[:, 4] - slope)[24:].max() < 1e-7 * abs(slope).max()
    parts = TabulatedPulse(PULSE, 0.01)
    np.testing.assert_array_equal(parts.rows(100, 300), rows[120:420])
    np.testing.assert_array_equal(parts.rows(350, 530), rows[370:900])
    np.testing.assert_array_equal(parts.rows(-20, 900), rows)


@pytest.mark.parametrize("place", PLACES)
def test_waves_near_a_double_couple_do_not_depend_on_its_place_in_the_elements(place: str, device: str) -> None:
    """Below 1 % at one and two elements for five nodes."""
    near = errors("double couple", PLACES[place], 5, cube(8), device=device, precision="float32")
    assert near[:2].max() < 0.01
    assert near[2] < 0.04  # outside the box: the dispersion of five nodes


def test_a_delta_just_above_a_face_has_errors_of_tens_of_per_cent(device: str) -> None:
    options: dict[str, Any] = {"device": device, "precision": "float32", "source_model": "delta"}
    assert errors("double couple", PLACES["above a face"], 5, cube(8), **options)[0] > 0.2


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "double couple"])
def test_all_kinds_of_source_are_exact_near_by(kind: str, device: str) -> None:
    precision = "float32" if KINDS[kind][0] is SOLID else "float64"
    near = errors(kind, PLACES["off a vertex"], 5, cube(8), time=2.6, device=device, precision=precision)
    assert near[:2].max() < 0.01


def test_boxes_end_at_hanging_faces(device: str) -> None:
    """The mesh is twice as fine on one side of the source, within its box and beyond."""
    near = errors("volume", (-0.6, 0.45, 0.6), 5, cube(8, fine=0), time=2.4, device=device)
    assert near.max() < 0.02


def test_leapfrog_radiates_the_same_waves(device: str) -> None:
    """Velocities are half a step earlier, so the pressure of a volume source is compared."""
    mesh, (medium, options) = cube(8), KINDS["volume"]
    solver = Solver(
        mesh,
        Material.uniform(mesh.count, medium.density, medium.cp),
        nodes=5,
        flux="central",
        integrator="leapfrog",
        boundaries="free",
        sources=[PointSource(PLACES["above a face"], PULSE, **options)],
        receivers=[tuple(np.add(PLACES["above a face"], offset)) for offset in NEAR],
        device=device,
    )
    assert solver.sources is not None and not solver.sources.reasons
    solver.advance(int(3.0 / solver.dt))
    times: Floats = solver.dt * np.arange(1.0, solver.step + 1.0)
    for number, offset in enumerate(NEAR[1:], 1):
        waves = exact("volume", offset, times)[:, 0]
        assert abs(solver.samples()[:, number, 0] - waves).max() < 0.02 * abs(waves).max()


def reflected(receiver: tuple[float, ...], height: float, times: Floats, factor: float) -> Floats:
    """Return pressure and velocity above the plane z = 0 that reflects pressure with a factor, (times, 4)."""
    direct, image = (tuple(np.subtract(receiver, (0.1, 0.2, z))) for z in (height, -height))
    return exact("volume", direct, times) + factor * exact("volume", image, times)


@pytest.mark.parametrize("side", ["free", "rigid"])
def test_a_box_at_a_free_or_rigid_side_has_the_waves_of_the_image(side: str, device: str) -> None:
    """Receivers and peak velocities of a fluid above z = 0 with a source 0.7 elements above this side."""
    mesh = Mesh.of_forest(Forest.uniform(Brick((8, 8, 5), (False,) * 3), 0), origin=(-4.0, -4.0, 0.0))
    receivers, factor = [(0.9, 1.1, 1.2), (1.0, -1.2, 0.3)], -1.0 if side == "free" else 1.0
    solver = Solver(
        mesh,
        Material.uniform(mesh.count, FLUID.density, FLUID.cp),
        nodes=5,
        boundaries=("absorbing",) * 4 + (side, "absorbing"),  # type: ignore[arg-type]
        sources=[PointSource((0.1, 0.2, 0.7), PULSE, **KINDS["volume"][1])],
        receivers=receivers,
        device=device,
        peak_side=4,
    )
    assert solver.sources is not None and not solver.sources.reasons and solver.peak is not None
    solver.advance(int(3.2 / solver.dt))
    times: Floats = solver.dt * np.arange(1.0, solver.step + 1.0)
    for number, receiver in enumerate(receivers):
        waves = reflected(receiver, 0.7, times, factor)
        assert abs(solver.samples()[:, number] - waves).max() < 0.03 * abs(waves[:, 1:]).max()
    gathered = solver.peak.gather()
    assert gathered is not None
    places, peaks = gathered
    number = int(np.argmax((places[:, :2] == 0.0).all(1)))
    expected = np.linalg.norm(reflected(tuple(places[number]), 0.7, times, factor)[:, 1:], axis=1).max()
    assert abs(peaks[number, 0] - expected) < 0.04 * expected


def test_another_medium_in_a_box_reflects(device: str) -> None:
    """A fluid of twice the density and the same speed begins 0.7 elements below the source: R = 1/3 at any angle."""
    mesh, (medium, options) = cube(8), KINDS["volume"]
    below = mesh.lower[:, 2] < 0
    receivers = [(0.9, 1.1, 1.2), (1.0, -1.2, 0.3), (0.8, 1.0, -0.6)]
    solver = Solver(
        mesh,
        Material(
            np.where(below, 2.0, 1.0) * medium.density, *np.full((1, mesh.count), medium.cp), np.zeros(mesh.count)
        ),
        nodes=5,
        sources=[PointSource((0.1, 0.2, 0.7), PULSE, **options)],
        receivers=receivers,
        device=device,
    )
    assert solver.sources is not None and not solver.sources.reasons
    solver.advance(int(3.2 / solver.dt))
    times: Floats = solver.dt * np.arange(1.0, solver.step + 1.0)
    waves = [reflected(receiver, 0.7, times, 1 / 3)[:, 0] for receiver in receivers[:2]]
    waves.append(4 / 3 * exact("volume", tuple(np.subtract(receivers[2], (0.1, 0.2, 0.7))), times)[:, 0])
    for number, expected in enumerate(waves):
        assert abs(solver.samples()[:, number, 0] - expected).max() < 0.03 * abs(expected).max()


def test_the_field_left_around_a_source_is_static(device: str) -> None:
    """After the waves have left the mesh, only a delta still moves the elements around it."""
    motion, mesh = {}, cube(6)
    for model in ("incident", "delta"):
        solver = Solver(
            mesh,
            Material.uniform(mesh.count, SOLID.density, SOLID.cp, SOLID.cs),
            nodes=5,
            sources=[PointSource((0.3, 1e-6, 0.2), PULSE, **KINDS["double couple"][1])],
            receivers=[(1.3, 1.7, 0.8)],
            source_model=model,  # type: ignore[arg-type]
            precision="float32",
            device=device,
        )
        solver.advance(int(9.0 / solver.dt))
        near = (abs(mesh.lower + mesh.sizes / 2) < 1.1).all(1)
        motion[model] = abs(solver.fields(["velocity"])["velocity"][near]).max() / abs(solver.samples()[..., :3]).max()
    assert motion["incident"] < 0.006
    assert motion["delta"] > 0.2


def test_a_source_that_is_switched_off_sends_no_second_pulse(device: str) -> None:
    """Switching off between two pulses leaves the waves of the first, also across a restart."""
    first, second = Gaussian(0.2, 1.2), Gaussian(0.2, 3.6)

    def both(t: Floats) -> Floats:
        return np.asarray(first(t) + second(t))

    def solver_of(pulse: Any) -> Solver:
        mesh = cube(6)
        return Solver(
            mesh,
            Material.uniform(mesh.count, FLUID.density, FLUID.cp),
            nodes=5,
            sources=[PointSource((0.1, 0.2, 0.3), pulse, volume=1.0)],
            receivers=[(1.0, 1.7, 0.6)],
            device=device,
        )

    once, twice = solver_of(first), solver_of(both)
    off, steps = int(2.4 / once.dt), int(4.4 / once.dt)
    once.advance(steps)
    twice.advance(off)
    assert twice.sources is not None and not twice.sources.reasons
    twice.sources.factors[0] = 0.0
    twice.advance(10)
    state = twice.state()
    twice.advance(steps - off - 10)
    largest = abs(once.samples()).max()
    assert abs(twice.samples() - once.samples()).max() < 1e-4 * largest
    repeated = solver_of(both)
    repeated.set_state(state)
    assert repeated.sources is not None
    repeated.sources.factors[0] = 0.0
    repeated.advance(steps - off - 10)
    np.testing.assert_array_equal(repeated.samples(), twice.samples())


def surroundings(mesh: Mesh, material: Material, **options: Any) -> Surroundings:
    from seiche.domain.world import World

    return Surroundings(mesh, material, 3, 0.02, World.serial(), **options)


def test_sources_without_a_box_say_why() -> None:
    mesh = cube(8)
    uniform = Material.uniform(mesh.count, 2.0, 3.0, 1.0)
    soft = Material(uniform.density, uniform.cp, np.where(mesh.lower[:, 2] < 0, 1.7, 1.0))
    explosion: dict[str, Any] = {"moment": np.eye(3).tolist()}

    def reason(place: tuple[float, ...], material: Material = uniform, pulse: Any = PULSE, **options: Any) -> str:
        return boxes_of([PointSource(place, pulse, **explosion)], surroundings(mesh, material, **options))[1].get(0, "")

    assert reason((0.1, 0.2, 0.3)) == ""
    assert "side of the mesh" in reason((0.1, 0.2, 3.8))
    assert "change of the medium" in reason((0.1, 0.2, 0.3), soft)
    assert reason((0.1, 0.2, 0.7), soft) == ""
    assert "jump" in reason((0.1, 0.2, 0.3), pulse=lambda t: np.cos(3 * t))
    assert "attenuation" in reason((0.1, 0.2, 0.3), attenuated=True)
    assert "absorbing side" in reason((0.1, 0.2, 2.3), excluded_sides=(False,) * 5 + (True,))
    many = [PointSource((0.1, 0.2, 0.3), PULSE, **explosion)] * (MAX_BOXES + 1)
    assert len(boxes_of(many, surroundings(mesh, uniform))[1]) == len(many)
    periodic = Mesh.of_forest(Forest.uniform(Brick((4, 8, 8), (True, False, False)), 0), origin=-2.0)
    material = Material.uniform(periodic.count, 2.0, 3.0, 1.0)
    result = boxes_of([PointSource((0.1, 2.2, 2.3), PULSE, **explosion)], surroundings(periodic, material))[1]
    assert "periodic" in result[0]


def test_a_box_crosses_a_periodic_side(device: str) -> None:
    mesh = Mesh.of_forest(Forest.uniform(Brick((9, 8, 8), (True, False, False)), 0), origin=-4.0)
    medium, options = KINDS["volume"]
    solver = Solver(
        mesh,
        Material.uniform(mesh.count, medium.density, medium.cp),
        nodes=5,
        sources=[PointSource((4.9, 0.2, 0.3), PULSE, **options)],
        receivers=[(-3.6, 1.05, 0.6)],
        device=device,
    )
    solver.advance(int(2.8 / solver.dt))
    waves = exact("volume", (0.5, 0.85, 0.3), solver.dt * np.arange(1.0, solver.step + 1.0))
    assert abs(solver.samples()[:, 0] - waves).max() < 0.01 * abs(waves).max()


def test_an_unknown_model_of_sources_is_rejected() -> None:
    mesh = cube(2)
    with pytest.raises(CaseError, match="source_model = 'point': must be one of incident, delta"):
        Solver(mesh, Material.uniform(mesh.count, 1.0, 1.0), source_model="point")  # type: ignore[arg-type]


def test_the_medium_at_a_source_is_interpolated_between_nodes() -> None:
    mesh = cube(8)
    nodes = mesh.lower[:, None] + mesh.sizes[:, None] * np.stack(
        [axis.ravel() for axis in reversed(np.meshgrid(*((Basis(3).nodes + 1) / 2,) * 3, indexing="ij"))], 1
    )
    cp = 3.0 + 0.05 * nodes[..., 0] + 0.02 * nodes[..., 2]
    material = Material(np.full_like(cp, 2.0), cp, np.full_like(cp, 1.0))
    source = PointSource((0.3, 0.2, 0.7), PULSE, moment=np.eye(3).tolist())
    boxes, _ = boxes_of([source], surroundings(mesh, material))
    assert boxes[0].medium.cp == pytest.approx(3.0 + 0.015 + 0.014, rel=1e-12)
