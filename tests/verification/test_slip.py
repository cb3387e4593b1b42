# SPDX-License-Identifier: BSD-3-Clause
"""Motion of membranes that the sites do not resolve (theory/coupling, section 8)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import eigsh

from seiche.backend import open_backend
from seiche.cells import Cells, CellType, MembraneModel, Skalak, biconcave
from seiche.couple import Blood
from seiche.domain import shapes
from seiche.errors import CaseError
from seiche.flow import FlowModel, Newtonian, Solver

SOFT = MembraneModel(Skalak(0.02, 1.0), bending=0.01, spontaneous_curvature="rest", local_area=0.02, volume=0.05)


def neighbours(cells: Cells) -> csr_array:
    """Return which vertices are joined by an edge, (n, n)."""
    faces = cells.blocks[0].rest.elements.faces
    ends = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    size = int(faces.max()) + 1
    joined = csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), (size, size))
    return csr_array(((joined + joined.T) > 0).astype(float))


def vertex_areas(cells: Cells) -> np.ndarray:
    """Return the undeformed area of every vertex, a third of that of the triangles around it."""
    rest = cells.blocks[0].rest
    a, b, c = (rest.control[rest.elements.faces[:, k]] for k in range(3))
    areas = np.zeros(len(rest.control))
    for corner in rest.elements.faces.T:
        np.add.at(areas, corner, np.linalg.norm(np.cross(b - a, c - a), axis=1) / 6)
    return areas


@pytest.mark.parametrize("shell", ["loop", "flat"])
def test_slip_is_that_of_its_formula_and_takes_energy(shell: str, device: str) -> None:
    model = MembraneModel(Skalak(1.3, 2.0), bending=0.2, area=3.0, local_area=2.0, volume=5.0, shell=shell)
    cells = Cells(open_backend(device), [CellType("red", biconcave(162), model)], [[(3, 4, 5), (20, 0, 0)]])
    at = cells.vertices()
    cells.set_vertices(at + 0.05 * np.random.default_rng(1).standard_normal(at.shape))
    cells.set_slip_mobility(0.3)
    cells.compute_forces()
    force, slip = cells.vertex_forces()[1], cells._host(cells.slip, 0)[1]
    joined, areas = neighbours(cells), vertex_areas(cells)
    share = areas.mean() / areas
    ends = joined.nonzero()
    control = cells.blocks[0].rest.control
    edge = np.linalg.norm(control[ends[0]] - control[ends[1]], axis=1).mean()
    dense = share[:, None] * force
    expected = 0.3 / (12 * edge) * share[:, None] * (joined.sum(axis=1)[:, None] * dense - joined @ dense)
    assert np.abs(slip - expected).max() < 1e-12 * np.abs(expected).max()
    assert (force * slip).sum() > 0
    assert np.abs(areas @ slip).max() < 1e-12 * (areas @ np.abs(slip)).max()


def test_membranes_that_do_not_resist_bending_have_no_slip(device: str) -> None:
    kind = CellType("capsule", biconcave(162), MembraneModel(Skalak(1.0), local_area=1.0))
    cells = Cells(open_backend(device), [kind], [[(0, 0, 0)]])
    cells.set_vertices(1.1 * cells.vertices())
    cells.set_slip_mobility(1.0)
    cells.compute_forces()
    assert np.abs(cells.vertex_forces()).max() > 0
    assert (cells._host(cells.slip, 0) == 0).all()


def left_of_the_shortest_wave(slip: float, device: str) -> float:
    """Return the share of a membrane's shortest wave that is left after 120 steps in a fluid at rest."""
    solver = Solver(shapes.box((24, 24, 20)), FlowModel(Newtonian(1 / 6)), device=device)
    kind = CellType("red", biconcave(642, 7.0), SOFT)  # edges of 0.9 sites
    cells = Cells(solver.backend, [kind], [[(11.5, 11.5, 9.5)]], precision=solver.precision.compute)
    joined = neighbours(cells)
    laplacian = diags_array(joined.sum(axis=1)) - joined
    wave = eigsh(laplacian, k=1, which="LA", v0=np.arange(642.0))[1][:, 0]
    places = cells.vertices()
    cells.set_vertices(places + 0.02 * (wave / np.abs(wave).max())[:, None] * np.array([0.0, 0.0, 1.0]))
    blood = Blood(solver, cells, slip=slip)
    started = wave @ (blood.vertices()[0, :, 2] - places[0, :, 2])
    blood.advance(120)
    return float(wave @ (blood.vertices()[0, :, 2] - places[0, :, 2]) / started)


def test_the_shortest_wave_of_a_membrane_dies_with_slip_and_hardly_without(device: str) -> None:
    without, with_slip = left_of_the_shortest_wave(0.0, device), left_of_the_shortest_wave(0.05, device)
    assert without > 0.9
    assert abs(with_slip) < 0.2 * without


@pytest.mark.parametrize("slip", [-0.1, np.nan, np.inf])
def test_an_impossible_slip_is_rejected(slip: float) -> None:
    solver = Solver(shapes.box((12, 12, 12)), FlowModel(Newtonian(1 / 6)))
    cells = Cells(solver.backend, [CellType("red", biconcave(162, 4.0), SOFT)], [[(6, 6, 6)]])
    with pytest.raises(CaseError, match=r"slip = .*: expected zero or more"):
        Blood(solver, cells, slip=slip)
