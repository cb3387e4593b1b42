# SPDX-License-Identifier: BSD-3-Clause
"""Media averaged over the cells of nodes in elements that interfaces cut."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from tests.wave_packets import WAVELENGTH, cylinder_pressure, packet

from seiche.case.waves.interfaces import crossed
from seiche.domain.solids import SolidBox, SolidEllipsoid, SolidLayer
from seiche.waves import Brick, Forest, Material, Mesh, Solver
from seiche.waves.averages import NodeCells, averages
from seiche.waves.basis import Basis

Floats = npt.NDArray[np.float64]
Medium = Callable[[Floats], Floats]

NODES = 5
WAYS = ("stairs", "averages")
#: Normal of a tilted interface between fluids of impedances 1 and 3, its distance, and reflected and passed pressure.
NORMAL, PLACE, REFLECTED, PASSED = np.array([1.0, 2.0]) / np.sqrt(5.0), 0.13, 0.5, 1.5


def tilted(points: Floats) -> Floats:
    below = points @ NORMAL < PLACE
    return np.stack([np.where(below, 1.0, 1.5), np.where(below, 1.0, 2.0), np.zeros(len(points))])


def cylinder(points: Floats) -> Floats:
    inside = (points**2).sum(1) < 1.0
    return np.stack([np.where(inside, 1.4, 1.0), np.where(inside, 1.9 / 1.5, 1.0), np.zeros(len(points))])


def mesh_of(side: float, per_wavelength: float, nodes: int = NODES) -> Mesh:
    number = round(side * per_wavelength / (nodes * WAVELENGTH))
    return Mesh.of_forest(
        Forest.uniform(Brick((number, number), (False, False)), 0), tree_size=side / number, origin=-side / 2
    )


def media(mesh: Mesh, medium: Medium, how: str, nodes: int = NODES) -> Material:
    if how == "stairs":
        return Material(*medium(mesh.lower + mesh.sizes / 2))
    return Material(*averages(NodeCells(mesh, nodes, np.arange(mesh.count), ((), ())), medium))


def plane_wave(solver: Solver, direction: Floats, start: float, inside: npt.NDArray[np.bool_] | float = 1.0) -> None:
    """Start a packet at a coordinate along a direction, in the medium of density and speed one."""
    pressure = packet(solver.positions @ direction - start) * inside
    state = np.zeros(solver.values().shape)
    state[:, 0], state[:, 1], state[:, 2] = pressure, pressure * direction[0], pressure * direction[1]
    solver.start_from(state)


def error_behind_a_tilted_interface(per_wavelength: float, how: str, device: str) -> float:
    """Return the relative error of the pressure around the middle."""
    mesh = mesh_of(8.0, per_wavelength)
    solver = Solver(mesh, media(mesh, tilted, how), nodes=NODES, device=device)
    along, start = solver.positions @ NORMAL - PLACE, -1.8
    plane_wave(solver, NORMAL, start + PLACE, along < 0)
    solver.advance(int(np.ceil(2.4 / solver.dt)))
    late = start + solver.time
    before = packet(along - late) + REFLECTED * packet(-along - late)
    exact = np.where(along < 0, before, PASSED * packet(along / 2 - late))
    weight = solver.operator.weights * (np.linalg.norm(solver.positions, axis=-1) < 1.4)
    return float(np.sqrt((weight * (solver.values()[:, 0] - exact) ** 2).sum() / (weight * exact**2).sum()))


def error_in_a_cylinder(per_wavelength: float, how: str, device: str, nodes: int = NODES) -> float:
    mesh, start = mesh_of(9.0, per_wavelength, nodes), -2.6
    solver = Solver(mesh, media(mesh, cylinder, how, nodes), nodes=nodes, device=device)
    plane_wave(solver, np.array([1.0, 0.0]), start)
    solver.advance(int(np.ceil(2.6 / solver.dt)))
    flat = solver.positions.reshape(-1, 2)
    near = np.linalg.norm(flat, axis=1) < 1.3
    exact = cylinder_pressure(flat[near], np.array([solver.time]), start)[0]
    weight, values = solver.operator.weights.ravel()[near], solver.values()[:, 0].ravel()[near]
    return float(np.sqrt((weight * (values - exact) ** 2).sum() / (weight * exact**2).sum()))


def test_averages_are_more_accurate_than_stairs_at_a_tilted_interface(device: str) -> None:
    """By a factor of 2.4 with six points a wavelength and of 3 with eight."""
    for per_wavelength, factor in ((6.0, 2.4), (8.0, 3.0)):
        stairs, averaged = (error_behind_a_tilted_interface(per_wavelength, how, device) for how in WAYS)
        assert stairs > factor * averaged, (per_wavelength, stairs, averaged)


def test_averages_are_more_accurate_than_stairs_in_a_cylinder(device: str) -> None:
    """By a factor of 3 where the dispersion of five nodes no longer hides the error of the boundary."""
    stairs, averaged = (error_in_a_cylinder(12.0, how, device) for how in WAYS)
    assert stairs > 3 * averaged


def test_six_nodes_and_averages_are_more_accurate_than_stairs_in_a_cylinder(device: str) -> None:
    """By a factor of 2.4 with six points a wavelength and of 3 with eight."""
    for per_wavelength, factor in ((6.0, 2.4), (8.0, 3.0)):
        stairs, averaged = (error_in_a_cylinder(per_wavelength, how, device, nodes=6) for how in WAYS)
        assert stairs > factor * averaged, (per_wavelength, stairs, averaged)


def error_of_a_layer(number: int, how: str) -> float:
    """Return the error of a wave through an interface along an axis at 0.37 of an element, in a strip."""
    mesh = Mesh.of_forest(Forest.uniform(Brick((number, 1), (False, True)), 0), tree_size=2 / number, origin=-1.0)
    position = (0.37 + number // 2) * 2 / number - 1

    def medium(points: Floats) -> Floats:
        below = points[:, 0] < position
        return np.stack([np.where(below, 1.0, 1.5), np.where(below, 1.0, 2.0), np.zeros(len(points))])

    if how == "stairs":
        material = Material(*medium(mesh.lower + mesh.sizes / 2))
    else:
        material = Material(*averages(NodeCells(mesh, 4, np.arange(number), ([position], ())), medium))
    solver = Solver(mesh, material, nodes=4, threads=1)
    along, start = solver.positions[..., 0] - position, -0.4
    pulse = np.exp(-((along - start) ** 2) / (2 * 0.07**2)) * (along < 0)
    state = np.zeros(solver.values().shape)
    state[:, 0] = state[:, 1] = pulse
    solver.start_from(state)
    solver.advance(int(np.ceil(0.6 / solver.dt)))
    late = start + solver.time

    def shape(x: Floats) -> Floats:
        return np.asarray(np.exp(-(x**2) / (2 * 0.07**2)))

    exact = np.where(along < 0, shape(along - late) + 0.5 * shape(-along - late), 1.5 * shape(along / 2 - late))
    far = abs(along) > 0.08
    return float(np.sqrt((((solver.values()[:, 0] - exact) * far) ** 2).mean() / ((exact * far) ** 2).mean()))


def test_averages_are_of_second_order_at_a_cut_layer() -> None:
    coarse, fine = error_of_a_layer(32, "averages"), error_of_a_layer(64, "averages")
    assert np.log2(coarse / fine) > 1.7
    assert fine < error_of_a_layer(64, "stairs") / 10


def test_a_thin_layer_has_its_exact_share() -> None:
    """The mean slowness of an element along the axis is that of the layers, however thin."""
    mesh = Mesh.of_forest(Forest.uniform(Brick((1, 1), (False, False)), 0))
    places = [0.30, 0.302]

    def medium(points: Floats) -> Floats:
        soft = (points[:, 1] > places[0]) & (points[:, 1] < places[1])
        return np.stack([np.ones(len(points)), np.where(soft, 0.5, 2.0), np.zeros(len(points))])

    density, cp, _ = averages(NodeCells(mesh, 5, np.array([0]), ((), places)), medium)[:, 0]
    weights = np.kron(Basis(5).weights, Basis(5).weights) / 4
    assert (weights / (density * cp**2)).sum() == pytest.approx(0.002 / 0.25 + 0.998 / 4, rel=1e-12)
    assert (weights * density).sum() == pytest.approx(1.0, rel=1e-14)


def test_fluid_and_solid_are_not_averaged() -> None:
    """The kind that fills most of an element fills all of it."""
    mesh = Mesh.of_forest(Forest.uniform(Brick((1, 1), (False, False)), 0))
    for place, solid in ((0.3, True), (0.7, False)):

        def medium(points: Floats, place: float = place) -> Floats:
            above = points[:, 1] > place
            return np.stack([np.where(above, 2.0, 1.0), np.where(above, 3.0, 1.5), np.where(above, 1.2, 0.0)])

        density, cp, cs = averages(NodeCells(mesh, 4, np.array([0]), ((), [place])), medium)[:, 0]
        expected = (2.0, 3.0, 1.2) if solid else (1.0, 1.5, 0.0)
        for values, value in zip((density, cp, cs), expected, strict=True):
            np.testing.assert_allclose(values, value, rtol=1e-12)


def test_boundaries_on_sides_of_elements_do_not_cut_them() -> None:
    lower = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    layer = SolidLayer(1.0, 2.0, 2)
    assert not crossed(layer, lower, lower + 1).any()
    assert crossed(SolidLayer(0.5, 2.0, 2), lower, lower + 1).tolist() == [True, True, False]
    box = SolidBox((0.0, 0.0), (1.0, 1.5))
    assert crossed(box, lower, lower + 1).tolist() == [False, False, True]
    disc = SolidEllipsoid((0.0, 0.0), (1.2, 1.2))
    assert crossed(disc, lower, lower + 1).tolist() == [True, True, True]
    wide = SolidEllipsoid((0.5, 0.5), (5.0, 5.0))
    assert not crossed(wide, lower, lower + 1).any()
