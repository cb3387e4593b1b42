# SPDX-License-Identifier: BSD-3-Clause
"""Interpolated and moving walls of every layout, velocity set, collision, fluid and precision against the oracle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from flow_cases import BLOOD, FIELDS, WATER, iolet_model
from oracle import Oracle, compare_with_oracle, fitting

from seiche.domain import shapes
from seiche.domain.sites import LINK_VECTORS, LinkKind, SiteSet
from seiche.flow import Bgk, Casson, FlowModel, MovingWall, Mrt, Newtonian, Precision, Regularised, Solver, Trt, Walls
from seiche.flow.choice import LAYOUT_NAMES

Floats = npt.NDArray[np.float64]

TUBE = shapes.tube(3.3, 8.0, 1.0, axis=(1.0, 0.2, 0.1))
#: Closed, with sites that are wedged between two walls.
PIPE = shapes.tube(1.8, 4.0, 1.0, periodic=True)
#: The same in whole tiles.
LONG_PIPE = shapes.tube(1.8, 8.0, 1.0, periodic=True)
LAYOUTS = (*LAYOUT_NAMES, "moments")


def lower_half(places: Floats) -> npt.NDArray[np.bool_]:
    return places[:, 2] < 0.0


MOVING = MovingWall("low", (0.02, -0.01, 0.005), (0.001, 0.002, -0.003), (1.0, 2.0, 3.0), lower_half)
WALLS = {
    "bouzidi": Walls("bouzidi"),
    "bouzidi, moving": Walls("bouzidi", (MOVING,)),
    "bounce-back, moving": Walls("bounce-back", (MOVING,)),
}


class WallOracle(Oracle):
    """The oracle with what Bouzidi et al. 2001 and Ladd 1994 say that walls send back, and its mass taken back.

    The fluid is one component.
    """

    WINDOW, SHARE = 16, 4

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.created = self.corrected = self.amount = 0.0
        self.at_windows = [(0.0, 0.0), (0.0, 0.0)]

    def step(self, leaving: Floats, time_step: int) -> Floats:
        if time_step % self.WINDOW == 0:
            (before, _), (last, corrected) = self.at_windows
            open_mass = last + corrected
            self.amount = (last - before + open_mass / self.SHARE) / self.WINDOW
            self.at_windows = [self.at_windows[1], (self.created, self.corrected)]
        return super().step(leaving, time_step)

    def arriving(self, leaving: Floats) -> Floats:
        result, links = self.returned(leaving)
        rest = int(np.flatnonzero((self.lattice.vectors == 0).all(axis=1))[0])
        sites = {site for site, *_ in self.beside}
        for site, q, back in links:
            self.created += result[site, back] - leaving[site, q]
            sites.add(site)
        for site in sites:
            result[site, rest] -= self.amount / len(sites)
        self.corrected -= self.amount if sites else 0.0
        return result

    def returned(self, leaving: Floats) -> tuple[Floats, list[tuple[int, int, int]]]:
        """Return what arrives, and the links (site, q, back) that are not half way or whose wall moves."""
        streamed, links = super().arriving(leaving), []
        result, lattice, walls = streamed.copy(), self.lattice, self.model.walls
        self.beside: list[tuple[int, int, int, float]] = []
        for row, site in enumerate(self.sites.boundary):
            for link in np.flatnonzero(self.sites.link_kind[row] == LinkKind.WALL):
                actual = np.flatnonzero((lattice.vectors == LINK_VECTORS[link]).all(axis=1))
                if not len(actual):
                    continue
                q, c = int(actual[0]), LINK_VECTORS[link]
                back, fraction = int(lattice.opposite[q]), float(self.sites.link_fraction[row, link])
                position = self.inside(self.sites.coords[site] + fraction * c) + np.array(self.sites.origin)
                iolet = self.sites.link_kind[row, 25 - link] > LinkKind.WALL
                wedged = self.upwind[site, q] < 0 and not (iolet and fraction < 0.5)
                if walls.kind == "bounce-back" or wedged:
                    value, lever = leaving[site, q], 1.0
                    moving = any(wall.patch(position[None])[0] for wall in walls.moving)
                    if walls.kind == "bouzidi" and iolet and not moving:
                        self.beside.append((int(site), q, back, 1 / (2 * fraction)))
                elif fraction < 0.5:
                    value, lever = 2 * fraction * leaving[site, q] + (1 - 2 * fraction) * streamed[site, q], 1.0
                else:
                    lever = 1 / (2 * fraction)
                    value = lever * leaving[site, q] + (1 - lever) * leaving[site, back]
                for wall in walls.moving:
                    if wall.patch(position[None])[0]:
                        u = np.array(wall.velocity) + np.cross(wall.rotation, position - np.array(wall.center))
                        value -= lever * 6 * lattice.weights[q] * leaving[site].sum() * (u @ c)
                result[site, back] = value
                if lever != 1.0 or any(wall.patch(position[None])[0] for wall in walls.moving):
                    links.append((int(site), q, back))
                elif walls.kind == "bouzidi" and not wedged and fraction < 0.5:
                    links.append((int(site), q, back))
        return result, links

    def inside(self, place: Floats) -> Floats:
        """Return the image in the box of a wall point, in spacings from the first site."""
        shape = np.array(self.sites.shape)
        wrapped = (place + 0.5) % shape - 0.5
        across = (place < -0.5 - 1e-6) | (place > shape - 0.5 + 1e-6)
        return np.where(across & np.array(self.sites.periodic), wrapped, place)

    def apply_iolets(self, f: Floats, time: float) -> Floats:
        """Walls next to an iolet interpolate the outgoing populations, before the iolet replaces them."""
        result = super().apply_iolets(f, time)
        for site, q, back, share in self.beside:
            result[site, q] = share * f[site, q] + (1 - share) * f[site, back]
            self.created += result[site, q] - f[site, q]
        return result


def compare(
    sites: SiteSet, model: FlowModel, steps: int, bound: float, device: str, **options: object
) -> tuple[Solver, WallOracle]:
    solver, oracle = Solver(sites, model, device=device, threads=1, **options), WallOracle(sites, model)
    compare_with_oracle(solver, oracle, steps, bound)
    return solver, oracle


@pytest.mark.parametrize("walls", WALLS.values(), ids=WALLS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_steps_with_these_walls_are_those_of_the_equations(device: str, layout: str, walls: Walls):
    model = fitting(replace(iolet_model(BLOOD), walls=walls), layout)
    compare(TUBE, model, 3, 8e-15, device, layout=layout)
    pipe = LONG_PIPE if layout == "moments" else PIPE
    compare(pipe, replace(model, iolets=()), 3, 8e-15, device, layout="list-aa" if "tiles" in layout else layout)


@pytest.mark.parametrize("name", ["bouzidi, moving", "bounce-back, moving"])
@pytest.mark.parametrize("layout", ["list-aa", "moments"])
def test_mass_is_taken_back_in_windows(device: str, layout: str, name: str):
    model = fitting(FlowModel(WATER, body_force=(1e-4, 0.0, -2e-4), walls=WALLS[name]), layout)
    _, oracle = compare(LONG_PIPE if layout == "moments" else PIPE, model, 70, 8e-15, device, layout=layout)
    assert abs(oracle.corrected) > 1e-3
    tube = fitting(replace(iolet_model(WATER), walls=WALLS[name]), layout)
    compare(TUBE, tube, 36, 8e-15, device, layout=layout)


@pytest.mark.parametrize("collision", [Bgk(), Trt(0.25), Mrt()], ids=["bgk", "trt", "mrt"])
@pytest.mark.parametrize("name", ["D3Q15", "D3Q27"])
def test_other_velocity_sets_and_collisions_have_the_same_walls(device: str, name: str, collision: Bgk | Trt | Mrt):
    walls = WALLS["bouzidi, moving"]
    model = FlowModel(Casson(1e-5, 0.02, 0.3), collision, velocity_set=name, body_force=(1e-4, 0.0, -2e-4), walls=walls)
    compare(PIPE, model, 3, 8e-15, device, layout="list-aa")


@pytest.mark.parametrize("name", ["D3Q15", "D3Q27"])
def test_moments_of_other_velocity_sets_have_the_same_walls(device: str, name: str):
    walls = WALLS["bouzidi, moving"]
    model = FlowModel(WATER, Regularised(), velocity_set=name, body_force=(1e-4, 0.0, -2e-4), walls=walls)
    compare(LONG_PIPE, model, 3, 8e-15, device, layout="moments")


@pytest.mark.parametrize(
    ("compute", "storage"), [("float64", "float32"), ("float32", "float32"), ("float32", "float16")]
)
def test_narrow_precisions_have_the_same_walls(device: str, compute: str, storage: str):
    model = FlowModel(WATER, body_force=(1e-4, 0.0, 0.0), walls=WALLS["bouzidi, moving"])
    bound = {"float32": 2e-6, "float16": 2e-3}[storage]
    precision = Precision(compute, storage)  # type: ignore[arg-type]
    compare(PIPE, model, 2, bound, device, precision=precision, layout="list-ab")
    # moments keep mass, momentum and what walls send back as floats
    compare(LONG_PIPE, fitting(model, "moments"), 2, min(bound, 1e-5), device, precision=precision, layout="moments")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_observation_does_not_change_the_flow(device: str, layout: str):
    model = fitting(replace(iolet_model(WATER), walls=WALLS["bouzidi, moving"]), layout)
    solvers = [Solver(TUBE, model, device=device, layout=layout, threads=1) for _ in range(2)]
    for step in range(4):
        for solver in solvers:
            solver.advance()
        for _ in range(step):
            solvers[1].fields(["velocity"])
            solvers[1].monitor()
    np.testing.assert_array_equal(*(solver.state()["populations"] for solver in solvers))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_fields_are_those_of_what_the_walls_send_back(device: str, layout: str):
    model = fitting(replace(iolet_model(WATER), walls=WALLS["bouzidi, moving"]), layout)
    solver, oracle = compare(TUBE, model, 2, 8e-15, device, layout=layout)
    populations = oracle.lattice.from_solver(solver.state()["populations"])
    rho, u = oracle.moments(oracle.arriving(populations))
    fields = solver.fields(FIELDS)
    np.testing.assert_allclose(fields["density"], rho, rtol=1e-13)
    np.testing.assert_allclose(fields["velocity"], u, atol=1e-14)


def test_wall_half_way_along_every_link_is_bounce_back(device: str):
    sites = shapes.duct(5.0, 5.0, 4.0, 1.0)
    model = FlowModel(Newtonian(0.05), body_force=(1e-4, 2e-5, 0.0))
    solvers = [Solver(sites, replace(model, walls=Walls(kind)), device=device) for kind in ("bounce-back", "bouzidi")]
    for solver in solvers:
        solver.advance(20)
    np.testing.assert_array_equal(*(solver.state()["populations"] for solver in solvers))
    assert [stage.name for stage in solvers[1].stages] == ["stream-collide interior"]
