# SPDX-License-Identifier: BSD-3-Clause
"""Pressures that hold in the plane of an iolet: steps against the oracle, layouts, precisions, mass, messages."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from flow_cases import BLOOD, WATER
from oracle import Oracle, compare_with_oracle, fitting

from seiche.domain import shapes
from seiche.errors import CaseError
from seiche.flow import (
    CarreauYasuda,
    FlowModel,
    Newtonian,
    Precision,
    PressureIolet,
    Solver,
    VelocityIolet,
    Walls,
    WindkesselIolet,
)
from seiche.flow.choice import LAYOUT_NAMES

Floats = npt.NDArray[np.float64]

#: The outlet cuts its links at three quarters of their length, the inlet half way.
DUCT = shapes.duct(4.0, 5.0, 8.25, 1.0, periodic=False)
LAYOUTS = (*LAYOUT_NAMES, "moments")
ENDS = tuple(PressureIolet(mean, scheme="plane") for mean in (1.01, 0.997))


class PlaneOracle(Oracle):
    """The oracle of a duct along x whose ends hold their pressure in the plane."""

    def even(self, rho: Floats, f: Floats) -> Floats:
        """Return f + f of the opposite direction at equilibrium with density `rho` and the stress of `f`, (n, Q)."""
        u = self.moments(f)[1]
        both = self.lattice.equilibrium(rho, u)
        return both + both[:, self.lattice.opposite] + self.even_part

    def held(self, f: Floats, normal: Floats) -> Floats:
        """Return what the stress (n u + u n)/20 of the velocity u along the plane adds, (n, Q)."""
        u = self.moments(f)[1]
        along = u - np.outer(u @ normal, normal)
        c = self.lattice.vectors
        return -9 * self.lattice.weights * 0.1 * (along @ c.T) * (c @ normal)

    def step(self, leaving: Floats, time_step: int) -> Floats:
        self.left = leaving
        return super().step(leaving, time_step)

    def apply_iolets(self, f: Floats, time: float) -> Floats:
        result, seen = f.copy(), self.arrived
        rho = seen.sum(axis=1)
        rest = self.left + seen[:, self.lattice.opposite] - self.even(rho, seen)
        self.inflow[:] = 0.0
        for site, q, number in self.iolet_links:
            inward = np.array(self.sites.iolets[number].normal)
            behind = self.sites.find((self.sites.coords[site] + inward.astype(int))[None])[0]
            position = self.sites.origin[0] + self.sites.coords[site, 0]
            depth = abs(position - self.sites.iolets[number].center[0])
            line = rho[behind] + (self.model.iolets[number].mean - rho[behind]) / (depth + 1)
            target = 0.8 * line + 0.2 * rho[site]
            even = self.even(np.full(len(f), target), seen)[site, q] + self.held(seen, inward)[site, q]
            back = even + rest[behind, q] - f[site, q]
            self.inflow[number] += back - f[site, q]
            result[site, q] = back
        return result


def compare(model: FlowModel, bound: float, device: str, **options: object) -> None:
    solver = Solver(DUCT, model, device=device, threads=1, **options)
    compare_with_oracle(solver, PlaneOracle(DUCT, model), 3, bound, flow=10 * bound)


@pytest.mark.parametrize("rheology", [WATER, BLOOD], ids=["water", "blood"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_steps_are_those_of_the_equations(device: str, layout: str, rheology: Newtonian | CarreauYasuda):
    model = FlowModel(rheology, iolets=ENDS, body_force=(1e-3, -2e-3, 5e-4))
    compare(fitting(model, layout), 1e-14, device, layout=layout)


@pytest.mark.parametrize("name", ["D3Q15", "D3Q27"])
def test_other_velocity_sets_have_the_same_pressures(device: str, name: str):
    model = FlowModel(WATER, velocity_set=name, iolets=ENDS)
    for layout in ("list-aa", "moments"):
        compare(fitting(model, layout), 1e-14, device, layout=layout)


@pytest.mark.parametrize(("compute", "storage"), [("float32", "float32"), ("float32", "float16")])
def test_narrow_precisions_have_the_same_pressures(device: str, compute: str, storage: str):
    bound, model = {"float32": 2e-6, "float16": 4e-3}[storage], FlowModel(WATER, iolets=ENDS)
    precision = Precision(compute, storage)  # type: ignore[arg-type]
    compare(model, bound, device, precision=precision)
    compare(fitting(model, "moments"), min(bound, 2e-5), device, precision=precision, layout="moments")


def test_mass_of_a_step_changes_by_what_entered(device: str):
    sites = shapes.tube(4.3, 14.0, 1.0, axis=(1.0, 0.2, 0.1))
    outlet = WindkesselIolet(0.01, 1e3, 0.01, scheme="plane")
    for inlet in (VelocityIolet(0.01), PressureIolet(1.004, 0.001, 40.0, scheme="plane")):
        solver = Solver(sites, FlowModel(Newtonian(0.05), iolets=(inlet, outlet)), device=device, threads=1)
        before = solver.monitor().mass
        for _ in range(20):
            solver.advance()
            after, flow = solver.monitor().mass, solver.measures.iolet_flow()
            assert abs(after - before - flow.sum()) < 1e-14 * after
            before = after


def test_pulsating_flow_stays_bounded_at_low_viscosity():
    sites = shapes.tube(5.3, 24.0, 1.0, axis=(1.0, 0.3, 0.2))
    ends = (PressureIolet(1.004, 0.004, 300.0, scheme="plane"), PressureIolet(1.0, -0.004, 250.0, scheme="plane"))
    for viscosity in (0.01, 0.5):
        solver = Solver(sites, FlowModel(Newtonian(viscosity), iolets=ends, walls=Walls("bouzidi")), threads=1)
        solver.advance(1500)
        assert 1e-3 < solver.monitor().mach < 0.15


def test_opening_without_a_site_behind_it_is_rejected():
    short = shapes.duct(4.0, 4.0, 2.0, 1.0, periodic=False)
    with pytest.raises(CaseError) as caught:
        Solver(short, FlowModel(WATER, iolets=ENDS), threads=1)
    assert str(caught.value) == (
        "iolet 'inlet': no interior site within 4 spacings of its site at [0, 0, 0], which scheme = \"plane\" needs;"
        ' use scheme = "anti-bounce-back"'
    )


def test_developed_flow_between_planes_is_exact_along_the_lattice(device: str):
    sites = shapes.duct(6.0, 7.0, 16.3, 1.0, periodic=False)
    ends = (PressureIolet(1 + 1e-5, scheme="plane"), PressureIolet(scheme="plane"))
    model = FlowModel(Newtonian(1 / 6), iolets=ends)
    for layout in ("list-aa", "tiles-4", "moments"):
        solver = Solver(sites, fitting(model, layout), device=device, layout=layout, threads=1)
        solver.advance(3000)
        x = 0.5 + sites.coords[:, 0]
        exact = 1e-5 * (1 - x / 16.3)
        np.testing.assert_allclose(solver.fields(["density"])["density"] - 1, exact, atol=2e-10)
