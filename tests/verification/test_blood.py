# SPDX-License-Identifier: BSD-3-Clause
"""Cells in flow: what is conserved, exact solutions, restarts, and what is rejected."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from cell_cases import without_velocity

from seiche.cells import Cells, CellType, Contact, MembraneModel, Repulsion, Skalak, biconcave, icosphere
from seiche.couple import Blood, ImmersedBoundary
from seiche.domain import shapes
from seiche.domain.sites import SiteSet
from seiche.errors import CaseError, UnstableError
from seiche.flow import FlowModel, Newtonian, Precision, Solver
from seiche.solver import RowSet, State

sys.path.insert(0, str(Path(__file__).parents[1] / "kernels"))

from immersed_oracle import GivenForces

Floats = npt.NDArray[np.float64]

BOX = shapes.box((24, 24, 24))
SOFT = MembraneModel(Skalak(1e-3, 10.0), bending=1e-3, volume=0.01, area=0.01)


def blood(
    sites: SiteSet, centers: object, model: FlowModel, *, device: str = "cpu", radius: float = 6.0, **options: object
) -> Blood:
    """Return red cells of 162 vertices at `centers` in a flow."""
    solver = Solver(sites, model, device=device)
    cells = Cells(solver.backend, [CellType("red", biconcave(162, radius=radius), SOFT)], [centers])  # type: ignore[list-item]
    return Blood(solver, cells, **options)  # type: ignore[arg-type]


def test_a_cell_does_in_a_uniform_flow_what_it_does_at_rest(device: str) -> None:
    """Its mesh is not quite at rest: what is compared is how it relaxes."""
    velocity = np.array([0.03, -0.02, 0.01])
    centers = [[12.3, 11.8, 12.1]]
    flow = blood(BOX, centers, FlowModel(Newtonian(0.1), initial_velocity=(0.03, -0.02, 0.01)), device=device)
    still = blood(BOX, centers, FlowModel(Newtonian(0.1)), device=device)
    for item in (flow, still):
        item.advance(100)
    moved = flow.cells.vertices()[0] - still.cells.vertices()[0]
    assert np.abs(moved.mean(axis=0) - 100 * velocity).max() < 2e-5
    assert np.abs(moved - 100 * velocity).max() < 2e-3
    fields = flow.solver.fields(["density", "velocity"])
    momentum = (fields["density"][:, None] * fields["velocity"]).sum(axis=0)
    assert np.abs(momentum - len(BOX) * velocity).max() < 1e-10


def test_deformed_cells_relax_without_pushing_the_whole(device: str) -> None:
    flow = blood(BOX, [[7.0, 12.0, 12.0], [17.0, 12.0, 12.0]], FlowModel(Newtonian(0.1)), device=device, radius=5.0)
    middle = flow.cells.vertices().mean(axis=1, keepdims=True)
    flow.cells.set_vertices(middle + (flow.cells.vertices() - middle) * [1.1, 0.95, 0.95])
    flow.boundary.refresh()
    volume = flow.hematocrit()
    flow.advance(100)
    fields = flow.solver.fields(["density", "velocity"])
    assert np.abs(fields["velocity"]).max() > 1e-5
    assert np.abs((fields["density"][:, None] * fields["velocity"]).sum(axis=0)).max() < 1e-13
    assert abs(flow.hematocrit() / volume - 1) < 1e-3


def test_cells_that_replace_what_others_knew_of_the_sites_move_the_same_way(device: str) -> None:
    """One of two has left: the other continues with the same bits, with or without new bricks and fields."""
    result = []
    for over in (False, True):
        first = blood(
            BOX, [[7.0, 12.0, 12.0], [17.0, 12.0, 12.0]], FlowModel(Newtonian(0.1)), device=device, radius=5.0
        )
        first.advance(5)
        cells = Cells(first.solver.backend, first.cells.types, [first.vertices()[1:].mean(axis=1)])
        cells.set_vertices(first.vertices()[1:])
        second = Blood(first.solver, cells, previous=first if over else None)
        assert (second.boundary.bricks is first.boundary.bricks) == over
        second.advance(20)
        result.append(
            (second.vertices(), second.boundary.force_density(), second.solver.fields(["velocity"])["velocity"])
        )
    for one, other in zip(*result, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("scheme", ["euler", "adams-bashforth"])
def test_a_restart_continues_with_bitwise_equal_results(scheme: str) -> None:
    model = FlowModel(Newtonian(0.1), body_force=(1e-5, 0.0, 0.0))
    sites = shapes.tube(9.3, 24.0, 1.0, axis=(1.0, 0.0, 0.0), periodic=True)
    middle = np.array(sites.shape) / 2
    full, first, second = (blood(sites, [middle], model, radius=5.0, scheme=scheme) for _ in range(3))
    full.advance(40)
    first.advance(25)
    second.solver.set_state(first.solver.state())
    second.set_state(first.state())
    second.advance(15)
    for name in ("place", "velocity"):
        assert np.array_equal(second.state()[name], full.state()[name])
    assert np.array_equal(second.solver.state()["populations"], full.solver.state()["populations"])


#: What a sphere of vertices is larger by than the sphere on which they lie, in sites (docs/theory/coupling.md).
EXCESS = {"hat": 0.43, "roma": 0.51, "peskin": 0.67}


@pytest.mark.parametrize("name", EXCESS)
def test_drag_of_a_fixed_sphere_is_that_of_a_sphere_a_little_larger(name: str) -> None:
    """Drag of a cubic array of spheres, K = F/(6 pi mu a U) (Hasimoto 1959, J. Fluid Mech. 5, 317)."""
    length, radius, viscosity, force = 32, 5.0, 0.5, 1e-6
    sites = shapes.box((length, length, length))
    solver = Solver(sites, FlowModel(Newtonian(viscosity), body_force=(force, 0.0, 0.0)), layout="tiles-8")
    anchors = icosphere(642).vertices * radius + np.array([15.3, 16.1, 15.8])
    markers = GivenForces(solver.backend, anchors, lambda places: 0.05 * (anchors - places))
    ImmersedBoundary(solver, markers, delta=name)  # type: ignore[arg-type]
    solver.advance(1500)
    mean = solver.fields(["velocity"])["velocity"][:, 0].mean()
    expected = force * length**3 / (6 * np.pi * viscosity * mean)
    sizes = np.linspace(radius - 1, radius + 2, 3001)
    c = 4 / 3 * np.pi * (sizes / length) ** 3
    drag = sizes / (1 - 1.7601 * c ** (1 / 3) + c - 1.5593 * c**2)
    excess = sizes[np.abs(drag - expected).argmin()] - radius
    assert abs(excess - EXCESS[name]) < 0.03


def test_contact_is_a_part_of_the_step() -> None:
    solver = Solver(BOX, FlowModel(Newtonian(0.1)))
    cells = Cells(solver.backend, [CellType("ball", icosphere(162), SOFT)], [[[10.0, 12.0, 12.0], [12.6, 12.0, 12.0]]])
    contact = Contact(cells, Repulsion(1e-4, 1.0), lengths=BOX.shape)
    flow = Blood(solver, cells, contact=contact)
    gap = np.ptp(flow.cells.vertices().mean(axis=1)[:, 0])
    flow.advance(100)
    assert "contact forces" in [stage.name for stage in solver.stages]
    assert np.ptp(flow.cells.vertices().mean(axis=1)[:, 0]) > gap + 1e-3


def test_a_cell_outside_the_fluid_is_named() -> None:
    sites = shapes.tube(9.3, 24.0, 1.0, axis=(1.0, 0.0, 0.0), periodic=True)
    with pytest.raises(UnstableError, match=r"cell 1 of type 'red' has left the fluid at \(.*\), step 0"):
        blood(sites, [[12.0, 9.0, 9.0], [12.0, -9.0, 9.0]], FlowModel(Newtonian(0.1)), radius=4.0)


def test_a_cell_is_called_by_its_name_for_life_where_it_has_one() -> None:
    flow = blood(BOX, [[6.0, 12.0, 12.0], [18.0, 12.0, 12.0]], FlowModel(Newtonian(0.1)))
    measures = flow.cells.backend.download(flow.cells.measures)
    measures[1, 1] = -2.0
    flow.cells.backend.assign(flow.cells.measures, measures)
    wrong = r"of type 'red' is inverted at step 0: volume -2 \(1 of 2 cells\)"
    with pytest.raises(UnstableError, match=f"cell 1 {wrong}"):
        flow.check()
    flow.ids = [np.array([3, 7])]
    with pytest.raises(UnstableError, match=f"cell 7 {wrong}"):
        flow.check()


def test_inconsistent_arguments_are_rejected() -> None:
    flow = blood(BOX, [[12.0, 12.0, 12.0]], FlowModel(Newtonian(0.1)))
    other = Solver(BOX, FlowModel(Newtonian(0.1)), precision=Precision("float32", "float32"))
    with pytest.raises(CaseError, match="cells and flow must share a backend"):
        Blood(other, flow.cells)
    with pytest.raises(CaseError, match=r"the array 'velocity' of the cells/0 is missing; expected \(1, 162, 3\)"):
        flow.set_state(without_velocity(flow.state()))
    with pytest.raises(CaseError, match=r"state: cells/0 has 0 rows; expected each of 1 cells once"):
        rows = flow.state().rows["cells/0"]
        none = {name: values[:0] for name, values in rows.arrays.items()}
        flow.set_state(State(0, {"cells/0": RowSet(rows.keys[:0], 1, none)}))
    assert flow.memory()["site"] == pytest.approx(7 * 8 + 104 / 512)
    assert 1.4 < flow.mean_edge_lengths()["red"] < 2.0
