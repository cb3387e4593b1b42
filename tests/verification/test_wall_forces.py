# SPDX-License-Identifier: BSD-3-Clause
"""Forces on walls: the momentum that the fluid loses in a step, on every layout, precision and kind of wall."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import pytest

from seiche.domain import shapes
from seiche.domain.sites import SiteSet
from seiche.errors import CaseError
from seiche.flow import Body, FlowModel, MovingWall, Newtonian, Precision, Regularised, Solver, Trt, Walls
from seiche.flow.model import WallKind
from seiche.flow.velocity_set import D3Q19
from seiche.kernels.registry.walls import WALL_MASS_SCALE

Floats = npt.NDArray[np.float64]

CENTER = (8.2, 7.7)
LAYOUTS = ("list-ab", "list-aa", "tiles-4", "tiles-8")


def gap(places: Floats) -> Floats:
    """Negative outside a cylinder along z in a channel between y = 0 and y = 16."""
    cylinder = 3.3 - np.hypot(places[:, 0] - CENTER[0], places[:, 1] - CENTER[1])
    return np.maximum(cylinder, np.abs(places[:, 1] - 8.0) - 8.0)


def near_cylinder(places: Floats) -> npt.NDArray[np.bool_]:
    return np.hypot(places[:, 0] - CENTER[0], places[:, 1] - CENTER[1]) < 5.0


def channel() -> SiteSet:
    return shapes.sites_from_distance(gap, (0, 0, 0), (24, 16, 8), 1.0, periodic=(True, False, True))


FORCE = (2e-5, 1e-6, -3e-6)


def model_of(kind: WallKind, *, turning: bool, moments: bool = False) -> FlowModel:
    bodies = (Body("all"), Body("cylinder", (*CENTER, 4.0), near_cylinder))
    moving = [MovingWall("cylinder", rotation=(0.0, 0.0, 0.01), center=(*CENTER, 0.0), patch=near_cylinder)]
    walls = Walls(kind, moving if turning else (), bodies)
    return FlowModel(Newtonian(0.05), Regularised() if moments else Trt(), body_force=FORCE, walls=walls)


def momentum(solver: Solver) -> Floats:
    return np.asarray(solver.state().rows["sites"].arrays["populations"][:] @ D3Q19.vectors).sum(axis=0)


@pytest.mark.parametrize("layout", [*LAYOUTS, "moments"])
@pytest.mark.parametrize("kind", ["bounce-back", "bouzidi"])
@pytest.mark.parametrize("turning", [False, True])
def test_force_on_all_walls_is_the_momentum_lost_by_the_fluid(device: str, layout: str, kind: WallKind, turning: bool):
    model = model_of(kind, turning=turning, moments=layout == "moments")
    solver = Solver(channel(), model, device=device, layout=layout, threads=1)
    solver.advance(40)
    for _ in range(3):  # both kinds of step
        before, force = momentum(solver), solver.measures.wall_forces()["all"]
        np.testing.assert_array_equal(momentum(solver), before)
        solver.advance(1)
        gained = momentum(solver) - before
        # Each link is rounded to 2^-44.
        np.testing.assert_allclose(force[:3], len(solver.sites) * np.array(FORCE) - gained, atol=1e-11)
        assert abs(force[0]) > 1e-4


def test_forces_are_bitwise_equal_on_every_layout(device: str):
    results = []
    for layout in LAYOUTS:
        solver = Solver(channel(), model_of("bouzidi", turning=True), device=device, layout=layout, threads=1)
        solver.advance(25)
        results.append(solver.measures.wall_forces())
    for other in results[1:]:
        for name, values in other.items():
            np.testing.assert_array_equal(values, results[0][name])


@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_moments_have_the_forces_of_populations(device: str, storage: str):
    """In one precision with the same bits; with halves the stored numbers differ."""
    precision = Precision("float32", storage)  # type: ignore[arg-type]
    results = []
    for layout in ("list-aa", "moments"):
        model = model_of("bouzidi", turning=True, moments=True)
        solver = Solver(channel(), model, precision=precision, device=device, layout=layout, threads=1)
        solver.advance(60)
        results.append(solver.measures.wall_forces()["cylinder"])
    error = np.abs(results[0] - results[1]).max() / np.abs(results[1]).max()
    assert error == 0.0 if storage == "float32" else error < 0.02


def test_torque_on_a_turning_cylinder_is_that_of_round_couette_flow(device: str):
    """M = 4 pi rho nu L w R1^2 R2^2/(R2^2 - R1^2) on both cylinders (Landau and Lifshitz, section 18)."""
    inner, outer, depth, rate, viscosity = 8.2, 16.4, 2, 5e-4, 1 / 6

    def ring(places: Floats) -> Floats:
        r = np.hypot(places[:, 0] - 0.3, places[:, 1] - 0.1)
        return np.maximum(inner - r, r - outer)

    def inside(places: Floats) -> npt.NDArray[np.bool_]:
        return np.hypot(places[:, 0] - 0.3, places[:, 1] - 0.1) < 12.0

    def outside(places: Floats) -> npt.NDArray[np.bool_]:
        return ~inside(places)

    low, high = (0.3 - outer, 0.1 - outer, 0.0), (0.3 + outer, 0.1 + outer, float(depth))
    sites = shapes.sites_from_distance(ring, low, high, 1.0, periodic=(False, False, True))
    center = (0.3, 0.1, 0.0)
    turning = MovingWall("inner", rotation=(0.0, 0.0, rate), center=center, patch=inside)
    bodies = (Body("inner", center, inside), Body("outer", center, outside))
    solver = Solver(
        sites, FlowModel(Newtonian(viscosity), walls=Walls("bouzidi", (turning,), bodies)), device=device, threads=1
    )
    solver.advance(12_000)
    exact = 4 * np.pi * viscosity * depth * rate * (inner * outer) ** 2 / (outer**2 - inner**2)
    torque = {name: force[5] for name, force in solver.measures.wall_forces().items()}
    assert torque["inner"] == pytest.approx(-exact, rel=0.01)
    assert torque["outer"] == pytest.approx(exact, rel=0.01)
    # In steady flow no angular momentum is left between the cylinders.
    assert torque["inner"] + torque["outer"] == pytest.approx(0.0, abs=1e-4 * exact)


def test_pressure_force_on_a_closed_body_vanishes_at_rest(device: str):
    model = FlowModel(Newtonian(0.1), initial_density=1.01, walls=model_of("bouzidi", turning=False).walls)
    solver = Solver(channel(), model, device=device, threads=1)
    force = solver.measures.wall_forces()["cylinder"]
    links = 4 * len(solver.sites)
    assert np.abs(force[:3]).max() < links / WALL_MASS_SCALE
    # The channel's walls carry the pressure: two plates cancel, one alone has p A.
    lower = Body("lower", patch=partial(below, 1.0))
    solver = Solver(channel(), FlowModel(Newtonian(0.1), initial_density=1.01, walls=Walls(bodies=(lower,))), threads=1)
    assert solver.measures.wall_forces()["lower"][1] == pytest.approx(-0.01 / 3 * 24 * 8, rel=1e-9)


def below(height: float, places: Floats) -> npt.NDArray[np.bool_]:
    return np.asarray(places[:, 1] < height)


def test_a_body_without_wall_is_rejected():
    walls = Walls(bodies=(Body("far", patch=partial(below, -5.0)),))
    with pytest.raises(CaseError, match="body 'far': its patch contains no wall link"):
        Solver(channel(), FlowModel(Newtonian(0.1), walls=walls), threads=1)
