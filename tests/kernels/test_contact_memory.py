# SPDX-License-Identifier: BSD-3-Clause
"""Memory of cells: bytes of a vertex, and lists of contact and of bricks that share memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from seiche.backend import open_backend
from seiche.bench.blood import Suspension, red_cell
from seiche.cells import Cells, CellType, MembraneModel, Skalak, ellipsoid
from seiche.cells.contact import Contact, Repulsion
from seiche.cells.contact_lists import contact_memory
from seiche.couple import Blood
from seiche.couple.bricks import list_entries
from seiche.domain import shapes
from seiche.flow import FlowModel, Newtonian, Precision, Solver

#: Bytes of a vertex of the load of Ames et al. (2020) without surface viscosity, docs/performance/tuning.md.
BYTES_OF_A_VERTEX = 117.5


def test_a_vertex_of_cells_at_a_spacing_of_one_um_takes_less_than_120_bytes() -> None:
    vertices = 281_619 * 162
    lists = contact_memory(vertices, other=list_entries((400,) * 3, (1,) * 3, 3, vertices))
    position, force, slip, velocity, listed = 24, 12, 12, 12, 3
    assert position + force + slip + velocity + listed + lists / vertices < BYTES_OF_A_VERTEX


def test_the_arrays_of_a_suspension_take_the_bytes_that_are_computed_from_its_size() -> None:
    flow = Suspension(64, "cpu", layout="moments")
    kind = red_cell(1.0, 162, 3)
    kind = CellType(kind.name, kind.mesh, replace(kind.model, viscosity=0.0))
    middle = np.stack(np.meshgrid(*[np.arange(0, 64, 6.1)] * 3), axis=-1).reshape(-1, 3)[:1154]
    cells = Cells(flow.backend, [kind], [middle], precision="float32")
    contact = Contact(cells, Repulsion(kind.model.law.shear, 1.0), lengths=(64.0,) * 3)
    blood = Blood(flow.solver, cells, contact=contact, delta="roma")
    count = cells.vertex_count
    lists = contact_memory(count, other=list_entries((64,) * 3, (1,) * 3, 3, count))
    assert contact.memory() == pytest.approx(lists, abs=1000)  # padding, state and table of types
    assert blood.memory()["vertex"] == pytest.approx(15, rel=1e-3)
    total = cells.memory() + contact.memory() + blood.memory()["vertex"] * count
    assert total / count < BYTES_OF_A_VERTEX + 1  # the lists of a type are shared by few cells


def crossing(device: str, room: int, monkeypatch: pytest.MonkeyPatch) -> tuple[npt.NDArray[np.float64], list[int]]:
    """Move cells from the middle of a brick across its corner; return vertices and the most entries of bricks."""
    monkeypatch.setattr("seiche.cells.contact_lists._ENTRIES_PER_VERTEX", room)
    model = FlowModel(Newtonian(0.1), initial_velocity=(0.06, 0.06, 0.06))
    solver = Solver(
        shapes.box((16,) * 3), model, layout="tiles-8", device=device, precision=Precision("float64", "float64")
    )
    ball = CellType("ball", ellipsoid((0.8,) * 3, 42), MembraneModel(Skalak(1e-3, 1.0)))
    offsets = np.stack(np.meshgrid([-0.4, 0.5], [-0.5, 0.4], [-0.4, 0.4]), axis=-1).reshape(-1, 3)
    cells = Cells(solver.backend, [ball], [4.5 + offsets])
    contact = Contact(cells, Repulsion(1e-5, 0.9), lengths=(16.0,) * 3)
    blood = Blood(solver, cells, contact=contact, delta="roma")
    taken = []
    for _ in range(18):
        blood.advance(4)
        taken.append(int(cells.backend.download(contact._states[0])[5]))
    return blood.vertices(), taken


def test_lists_of_bricks_may_displace_those_of_contact_without_changing_a_bit(
    monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    expected, taken = crossing(device, 400, monkeypatch)
    vertices = 8 * 42
    assert taken[0] < 2 * vertices and max(taken) > 7 * vertices  # nearly all vertices are in eight lists
    for room in (0, 6):
        result, same = crossing(device, room, monkeypatch)
        np.testing.assert_array_equal(result, expected)
        assert same == taken


def test_lists_that_are_longer_than_their_group_may_be_are_built_in_every_step(
    monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    """The lists of 128 vertices have at most 65,535 entries; here each vertex is near 1,400 others."""
    result = []
    for room in (0, 2000):
        monkeypatch.setattr("seiche.cells.contact_lists._ENTRIES_PER_VERTEX", room)
        ball = CellType("ball", ellipsoid((0.3,) * 3, 42), MembraneModel(Skalak(0.0, 0.0)))
        centers = np.random.default_rng(3).uniform(3.9, 4.1, (33, 3))
        cells = Cells(open_backend(device), [ball], [centers])
        contact = Contact(cells, Repulsion(1.0, 0.9), lengths=(9.0,) * 3)
        for _ in range(4):
            cells.compute_forces()
            contact.compute_forces()
            cells.set_vertices(cells.vertices() * 1.05)
        result.append(cells.vertex_forces())
    np.testing.assert_array_equal(result[0], result[1])
    assert np.abs(result[0]).max() > 1
