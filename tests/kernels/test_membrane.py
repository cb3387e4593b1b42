# SPDX-License-Identifier: BSD-3-Clause
"""Forces of membranes: derivatives of the energies, conservation, invariance, rest, several types, equal bits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from seiche.backend import open_backend
from seiche.cells import Cells, CellType, MembraneModel, NeoHookean, Skalak, biconcave, ellipsoid, equilibrium
from seiche.domain.surface import Surface
from seiche.errors import CaseError, UnstableError

SKALAK, NEO_HOOKEAN = Skalak(1.3, 2.0), NeoHookean(0.7)
EVERYTHING = {"bending": 0.2, "spontaneous_curvature": -0.7, "area": 3.0, "local_area": 2.0, "volume": 5.0}
MODELS = {
    "loop-skalak": MembraneModel(SKALAK, **EVERYTHING),
    "loop-neo-hookean": MembraneModel(NEO_HOOKEAN, **EVERYTHING),
    "loop-one-point": MembraneModel(SKALAK, **EVERYTHING, points=1),
    "flat-skalak": MembraneModel(SKALAK, **EVERYTHING, shell="flat"),
    "flat-neo-hookean": MembraneModel(NEO_HOOKEAN, **EVERYTHING, shell="flat"),
}


def irregular() -> Surface:
    """A cell whose vertices have three to eight neighbours."""
    octahedron = np.array([(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)], float)
    faces = np.array([(0, 2, 4), (2, 1, 4), (1, 3, 4), (3, 0, 4), (2, 0, 5), (1, 2, 5), (3, 1, 5), (0, 3, 5)], np.int32)
    points, triangles = list(octahedron), faces.tolist()
    random = np.random.default_rng(1)
    for number in random.permutation(len(triangles))[:5]:
        a, b, c = triangles[number]
        middle = sum(points[k] for k in (a, b, c))
        points.append(middle / np.linalg.norm(middle))
        triangles[number] = [a, b, len(points) - 1]
        triangles += [[b, c, len(points) - 1], [c, a, len(points) - 1]]
    return Surface(np.array(points), np.array(triangles, np.int32))


def deformed(cells: Cells, amount: float, kind: int = 0) -> np.ndarray:
    """Displace every vertex at random and compute the forces."""
    at = cells.vertices(kind)
    moved = at + amount * np.random.default_rng(2).standard_normal(at.shape)
    cells.set_vertices(moved, kind)
    cells.compute_forces()
    return moved


@pytest.mark.parametrize("name", MODELS)
def test_force_is_minus_the_derivative_of_the_energy(name: str, device: str):
    cells = Cells(open_backend(device), [CellType("red", biconcave(162), MODELS[name])], [[(3, 4, 5), (20, 0, 0)]])
    x = deformed(cells, 0.05)[1]
    force, rest = cells.vertex_forces()[1], cells.blocks[0].rest
    assert (rest.energies(x) > 0).all()
    random, h = np.random.default_rng(3), 2e-5
    for _ in range(8):
        way = random.standard_normal(x.shape)
        slope = (rest.energies(x + h * way).sum() - rest.energies(x - h * way).sum()) / (2 * h)
        assert -(force * way).sum() == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("term", ["bending", "area", "local_area", "volume"])
@pytest.mark.parametrize("shell", ["loop", "flat"])
def test_each_term_alone_has_the_derivative_of_its_energy(term: str, shell: str):
    model = MembraneModel(Skalak(0.0, 0.0), **{term: 1.5}, shell=shell)
    cells = Cells(open_backend("cpu", 1), [CellType("red", biconcave(42), model)], [[(0, 0, 0)]])
    x = deformed(cells, 0.05)[0]
    force, rest, h = cells.vertex_forces()[0], cells.blocks[0].rest, 1e-5
    way = np.random.default_rng(4).standard_normal(x.shape)
    slope = (rest.energies(x + h * way).sum() - rest.energies(x - h * way).sum()) / (2 * h)
    assert -(force * way).sum() == pytest.approx(slope, rel=1e-6)


def test_vertices_with_any_number_of_neighbours_are_treated_exactly(device: str):
    for shell in ("loop", "flat"):
        model = MembraneModel(SKALAK, bending=0.1, volume=1.0, shell=shell)
        cells = Cells(open_backend(device), [CellType("odd", irregular(), model)], [[(0, 0, 0)]])
        x = deformed(cells, 0.02)[0]
        force, rest, h = cells.vertex_forces()[0], cells.blocks[0].rest, 1e-6
        way = np.random.default_rng(4).standard_normal(x.shape)
        slope = (rest.energies(x + h * way).sum() - rest.energies(x - h * way).sum()) / (2 * h)
        assert -(force * way).sum() == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_membrane_exerts_no_net_force_or_torque_and_turns_with_the_cell(name: str, device: str):
    kind = CellType("red", biconcave(162), MODELS[name])
    cells = Cells(open_backend(device), [kind], [[(0, 0, 0), (50, 60, 70)]])
    random = np.random.default_rng(5)
    x = cells.vertices()[0] + 0.05 * random.standard_normal((162, 3))
    turn = Rotation.random(rng=random).as_matrix()
    cells.set_vertices([x, x @ turn.T + [50, 60, 70]])
    cells.compute_forces()
    force, turned = cells.vertex_forces()
    scale = np.abs(force).sum()
    assert np.abs(force.sum(axis=0)).max() < 1e-13 * scale
    assert np.abs(np.cross(x, force).sum(axis=0)).max() < 1e-13 * scale
    np.testing.assert_allclose(turned, force @ turn.T, atol=1e-11 * np.abs(force).max())
    measures = cells.backend.download(cells.measures)
    np.testing.assert_allclose(measures[1], measures[0], rtol=1e-12)
    surface = Surface(x, kind.mesh.faces)
    np.testing.assert_allclose(measures[0], [surface.area, surface.volume], rtol=1e-12)


@pytest.mark.parametrize("shell", ["loop", "flat"])
def test_rest_shape_remains_at_rest(shell: str, device: str):
    model = MembraneModel(
        SKALAK, bending=0.5, spontaneous_curvature="rest", area=3, local_area=2, volume=5, shell=shell
    )
    cells = Cells(open_backend(device), [CellType("red", biconcave(642), model)], [[(9, 9, 9)]])
    cells.compute_forces()
    assert np.abs(cells.vertex_forces()).max() < 2e-12
    assert np.abs(cells.blocks[0].rest.energies(cells.vertices())).max() < 1e-14


def test_energy_of_a_uniform_dilation_is_that_of_the_law():
    stretch = 1.2
    for law, density in (
        (
            Skalak(1.3, 2.0),
            1.3
            / 4
            * (4 * (stretch**2 - 1) ** 2 + 4 * (stretch**2 - 1) - 2 * (stretch**4 - 1) + 2 * (stretch**4 - 1) ** 2),
        ),
        (NeoHookean(0.7), 0.7 / 2 * (2 * stretch**2 - 3 + stretch**-4)),
    ):
        for shell in ("loop", "flat"):
            cells = Cells(
                open_backend("cpu", 1), [CellType("c", biconcave(162), MembraneModel(law, shell=shell))], [[(0, 0, 0)]]
            )
            rest = cells.blocks[0].rest
            area = rest.surface_measures(rest.control)[0]
            assert rest.energies(stretch * rest.control)[0] == pytest.approx(density * area, rel=1e-12)


def test_single_precision_is_close_far_from_the_origin_too(device: str):
    kind = CellType("red", biconcave(162), MODELS["loop-skalak"])
    forces = []
    for precision, shift in (("float64", 0.0), ("float32", 0.0), ("float32", 1024.0)):
        cells = Cells(open_backend(device), [kind], [[(shift, shift, shift)]], precision=precision)
        random = np.random.default_rng(5)
        at = cells.vertices() - shift + 0.05 * random.standard_normal((1, 162, 3))
        cells.set_vertices(np.round(at * 2**20) / 2**20 + shift)
        cells.compute_forces()
        forces.append(cells.vertex_forces()[0])
    largest = np.abs(forces[0]).max()
    assert np.abs(forces[1] - forces[0]).max() < 2e-5 * largest
    assert np.abs(forces[2] - forces[1]).max() < 2e-6 * largest


def test_many_cells_of_several_types_are_what_each_is_alone(device: str):
    types = [
        CellType("red", biconcave(642), MODELS["loop-skalak"]),
        CellType("stiff", biconcave(162), MODELS["flat-neo-hookean"], ellipsoid((3.5, 3.5, 1.2), 162)),
        CellType("platelet", ellipsoid((1, 1, 0.4), 162), MODELS["loop-neo-hookean"]),
    ]
    backend = open_backend(device)
    centers = [[(0, 0, 0), (9, 0, 0), (0, 9, 4)], [(20, 0, 0)], []]
    cells = Cells(backend, types, centers)
    for number in range(2):
        deformed(cells, 0.03, number)
    cells.compute_forces()
    assert cells.count == 4
    assert cells.vertex_count == 3 * 642 + 162
    assert cells.vertices(2).shape == (0, 162, 3)
    for number, kind in enumerate(types[:2]):
        for which, vertices in enumerate(cells.vertices(number)):
            single = Cells(backend, [kind], [[(0, 0, 0)]])
            single.set_vertices(vertices[None])
            single.compute_forces()
            np.testing.assert_array_equal(cells.vertex_forces(number)[which], single.vertex_forces()[0])
    assert cells.stage().bytes == cells.vertex_count * 48


def test_bits_do_not_depend_on_the_number_of_threads():
    result = []
    for threads in (1, 2):
        kind = CellType("red", biconcave(162), MODELS["loop-skalak"])
        cells = Cells(open_backend("cpu", threads), [kind], [np.zeros((5, 3))])
        deformed(cells, 0.05)
        result.append(cells.vertex_forces())
    np.testing.assert_array_equal(result[0], result[1])


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("name", MODELS)
def test_both_devices_give_bitwise_equal_results(name: str, precision: str, device: str):
    result = []
    for where in ("cpu", device):
        kind = CellType("red", biconcave(642), MODELS[name])
        cells = Cells(open_backend(where), [kind], [[(0, 0, 0), (9, 0, 0)]], precision=precision)
        deformed(cells, 0.05)
        result.append(cells.vertex_forces())
    np.testing.assert_array_equal(result[0], result[1])


@pytest.mark.gpu
@pytest.mark.parametrize("vertices", [162, 642])
def test_teams_of_all_sizes_give_bitwise_equal_results(vertices: int, device: str):
    """As on CPUs, and with a multiprocessor for every cell, for two and for many."""
    result = []
    for multiprocessors in (0, 6, 3, 1):
        backend = open_backend(device)
        backend.multiprocessors = multiprocessors
        kind = CellType("red", biconcave(vertices), MODELS["loop-skalak"])
        cells = Cells(backend, [kind], [[(9 * k, 0, 0) for k in range(6)]], precision="float32")
        deformed(cells, 0.05)
        result.append(cells.vertex_forces())
        np.testing.assert_array_equal(result[0], result[-1])


def test_the_mean_of_the_mesh_goes_to_the_center_turned_and_packed_meshes_are_those_that_move():
    odd = irregular()
    shape = Surface(odd.vertices + np.array([3.0, 2.0, 1.0]), odd.faces)
    kind = CellType("odd", shape, MembraneModel(SKALAK))
    turn = Rotation.random(rng=np.random.default_rng(1)).as_matrix()
    cells = Cells(open_backend("cpu", 1), [kind], [[(5, 6, 7)]], [turn[None]])
    offset = kind.moving_mesh().vertices - shape.vertices.mean(axis=0)
    np.testing.assert_allclose(cells.vertices()[0], offset @ turn.T + [5, 6, 7], atol=1e-12)
    assert kind.moving_mesh().volume > shape.volume


def test_a_cell_that_is_inside_out_is_named():
    cells = Cells(
        open_backend("cpu", 1), [CellType("red", biconcave(42), MODELS["flat-skalak"])], [[(0, 0, 0), (9, 0, 0)]]
    )
    cells.compute_forces()
    cells.check_intact()
    x = cells.vertices()
    x[1] *= -1
    cells.set_vertices(x)
    cells.compute_forces()
    with pytest.raises(UnstableError, match=r"cell 1 is inverted at step 7: volume -.*1 of 2 cells.*smaller time step"):
        cells.check_intact(7)


def test_a_shrunk_sphere_comes_back_to_its_rest_shape():
    kind = CellType("ball", ellipsoid((1, 1, 1), 162), MembraneModel(Skalak(1.0, 1.0), volume=40.0))
    cells = Cells(open_backend("cpu", 1), [kind], [[(0, 0, 0)]])
    cells.set_vertices(0.95 * cells.vertices())
    equilibrium(cells, np.zeros((162, 3)), tolerance=1e-6)
    np.testing.assert_allclose(cells.vertices()[0], cells.blocks[0].rest.control, atol=1e-4)


def test_wrong_shapes_and_numbers_are_rejected():
    backend, kind = open_backend("cpu", 1), CellType("red", biconcave(42), MODELS["flat-skalak"])
    with pytest.raises(CaseError, match="1 types, but 2 sets of centers"):
        Cells(backend, [kind], [[], []])
    with pytest.raises(CaseError, match="'red': a center is not finite"):
        Cells(backend, [kind], [[(0, 0, np.nan)]])
    with pytest.raises(CaseError, match=r"'red': rotations of shape \(1, 3\) do not match 1 cells"):
        Cells(backend, [kind], [[(0, 0, 0)]], [np.zeros((1, 3))])
    cells = Cells(backend, [kind], [[(0, 0, 0)]])
    with pytest.raises(
        CaseError, match=r"vertices of shape \(2, 42, 3\): expected finite numbers of shape \(1, 42, 3\)"
    ):
        cells.set_vertices(np.zeros((2, 42, 3)))


def test_loads_that_cannot_be_balanced_are_rejected():
    kind = CellType("red", biconcave(42), MODELS["flat-skalak"])
    pair = Cells(open_backend("cpu", 1), [kind], [[(0, 0, 0), (9, 0, 0)]])
    with pytest.raises(CaseError, match="one cell in float64 and a load for each of its vertices"):
        equilibrium(pair, np.zeros((42, 3)))
    single = Cells(open_backend("cpu", 1), [kind], [[(0, 0, 0)]])
    with pytest.raises(CaseError, match="the sum of the loads is not zero"):
        equilibrium(single, np.ones((42, 3)))
    deformed(single, 0.1)
    with pytest.raises(UnstableError, match="the residual force is"):
        equilibrium(single, np.zeros((42, 3)), max_evaluations=2)
