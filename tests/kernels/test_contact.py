# SPDX-License-Identifier: BSD-3-Clause
"""Contact forces against sums over all pairs, their conservation, and independence of the order of points."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from seiche.backend import open_backend
from seiche.cells import Cells, CellType, MembraneModel, Skalak, biconcave, ellipsoid
from seiche.cells.contact import Contact, Morse, Repulsion
from seiche.errors import CaseError

REPULSION = Repulsion(0.3, 0.9)
ADHESION = Repulsion(0.3, 0.5, 3.0, Morse(0.02, 4.0, 0.6, 1.4))
NOTHING = MembraneModel(Skalak(0.0, 0.0))
TYPES = [CellType("red", biconcave(162), NOTHING), CellType("ball", ellipsoid((1, 1, 1), 42), NOTHING)]


def cells_on(device: str, precision: Any = "float64", threads: int | None = None) -> Cells:
    """Cells of two types, close to each other and across the periods of a box of 12 x 9 x 8."""
    centers = [[(3, 4, 2), (3.3, 4.5, 3.4), (11, 5, 7)], [(7.2, 4, 2), (-4, -13.2, 25)]]
    cells = Cells(open_backend(device, threads), TYPES, centers, precision=precision)
    cells.compute_forces()
    return cells


def all_pairs(cells: Cells, law: Repulsion, lengths: np.ndarray) -> tuple[float, np.ndarray]:
    """Energy and forces by a sum over all pairs of vertices of different cells."""
    places = np.concatenate([cells.vertices(k).reshape(-1, 3) for k in range(2)])
    owner = np.repeat(np.arange(5), [162, 162, 162, 42, 42])
    way = places[:, None] - places[None]
    way -= np.where(lengths > 0, lengths * np.round(way / np.maximum(lengths, 1e-9)), 0)
    d = np.linalg.norm(way, axis=2)
    d[owner[:, None] == owner] = 1e9
    n, k, c = law.exponent, law.strength, law.reach
    energy = np.where(d < c, k * (c**n * d ** (1 - n) / (n - 1) + d - c * n / (n - 1)), 0)
    force = np.where(d < c, k * ((c / d) ** n - 1), 0)
    if law.morse is not None:
        m = law.morse
        e = np.exp(m.steepness * (m.rest - d))
        energy += np.where(d < m.reach, m.depth * (e * e - 2 * e), 0)
        force += np.where(d < m.reach, 2 * m.depth * m.steepness * (e * e - e), 0)
    return 0.5 * float(energy.sum()), ((force / d)[..., None] * way).sum(axis=1)


@pytest.mark.parametrize("lengths", [(0, 0, 0), (12, 9, 8), (12, 0, 8)])
@pytest.mark.parametrize("law", [REPULSION, ADHESION], ids=["repulsion", "adhesion"])
def test_contact_forces_are_the_sums_over_all_pairs(law: Repulsion, lengths: tuple[float, ...], device: str):
    cells = cells_on(device)
    Contact(cells, law, lengths=lengths).compute_forces()
    result = np.concatenate([cells.vertex_forces(k).reshape(-1, 3) for k in range(2)])
    _, expected = all_pairs(cells, law, np.array(lengths, float))
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    np.testing.assert_array_equal(np.abs(result).max(axis=1) > 0, np.abs(expected).max(axis=1) > 0)
    assert np.abs(result.sum(axis=0)).max() < 1e-12  # action is reaction, in whole units


def test_lists_hold_while_cells_move_and_are_made_again_in_time(device: str):
    lengths = np.array([12.0, 9.0, 8.0])
    cells = cells_on(device)
    contact = Contact(cells, ADHESION, lengths=lengths, skin=0.5)
    random = np.random.default_rng(7)
    drift = np.array([0.031, -0.02, 0.025])
    for step in range(25):  # a fifth of a skin a step, at random: many steps with old lists, some with new ones
        for kind in range(2):
            x = cells.vertices(kind)
            cells.set_vertices(x + drift + random.uniform(-0.02, 0.02, x.shape), kind)
        cells.compute_forces()
        contact.compute_forces()
        if step % 4 == 0:
            result = np.concatenate([cells.vertex_forces(k).reshape(-1, 3) for k in range(2)])
            _, expected = all_pairs(cells, ADHESION, lengths)
            np.testing.assert_allclose(result, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


def forces_of_two_calls(cells: Cells, contact: Contact) -> list[npt.NDArray[np.float64]]:
    result = []
    for _ in range(2):
        cells.compute_forces()
        contact.compute_forces()
        result.append(cells.vertex_forces())
    return result


def assert_all_equal(found: list[npt.NDArray[np.float64]]) -> None:
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


@pytest.mark.parametrize("skin", [0.0, 0.2, 1.5])
def test_bits_do_not_depend_on_the_skin_nor_on_the_room_for_lists(
    skin: float, monkeypatch: pytest.MonkeyPatch, device: str
):
    result = []
    for options, room in (({}, 8), ({"skin": skin}, 8), ({"skin": skin}, 0)):
        monkeypatch.setattr("seiche.cells.contact_lists._ENTRIES_PER_VERTEX", room)
        cells = cells_on(device)
        result += forces_of_two_calls(cells, Contact(cells, ADHESION, lengths=(12, 9, 8), **options))
    assert_all_equal(result)


def test_the_skin_becomes_shorter_until_the_lists_fit(monkeypatch: pytest.MonkeyPatch, device: str):
    monkeypatch.setattr("seiche.cells.contact_lists._ENTRIES_PER_VERTEX", 20)
    cells = cells_on(device)
    contact = Contact(cells, ADHESION, lengths=(12, 9, 8))
    result, states = [], []
    for _ in range(6):
        result.append(forces_of_two_calls(cells, contact)[1])
        states.append(cells.backend.download(contact._states[0]).tolist())
    skins = [state[6] for state in states]
    assert 0 < skins[-1] < 4 and skins == sorted(skins)
    assert states[-1][0] == 0  # the lists fit
    contact.invalidate()
    result.append(forces_of_two_calls(cells, contact)[0])
    assert cells.backend.download(contact._states[0]).tolist() == states[-1]  # the skin is retained
    assert_all_equal(result)


def test_contact_force_is_minus_the_derivative_of_its_energy():
    cells = cells_on("cpu")
    Contact(cells, REPULSION).compute_forces()
    force, x = cells.vertex_forces(), cells.vertices()
    way, h, ends = np.random.default_rng(1).standard_normal(x.shape), 1e-6, []
    for sign in (1, -1):
        cells.set_vertices(x + sign * h * way)
        ends.append(all_pairs(cells, REPULSION, np.zeros(3))[0])
    assert -(force * way).sum() == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6)


@pytest.mark.parametrize("room", [0, 8, 20, 60])
def test_walls_push_cells_away(room: int, monkeypatch: pytest.MonkeyPatch, device: str):
    """The points of a wall are in bins that are filled once, also if the lists do not fit and the skin is shortened."""
    monkeypatch.setattr("seiche.cells.contact_lists._ENTRIES_PER_VERTEX", room)
    cells = cells_on(device)
    floor = np.stack(np.meshgrid(np.arange(-2, 8, 0.3), np.arange(0, 9, 0.3), [0.3], indexing="ij"), axis=-1).reshape(
        -1, 3
    )
    contact = Contact(cells, wall=REPULSION, wall_points=floor)
    for _ in range(3):
        forces_of_two_calls(cells, contact)
    force, x = cells.vertex_forces(), cells.vertices()
    way = x.reshape(-1, 1, 3) - floor[None]
    d = np.linalg.norm(way, axis=2)
    expected = (np.where(d < 0.9, 0.3 * ((0.9 / d) ** 2 - 1), 0)[..., None] / d[..., None] * way).sum(axis=1)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(force.reshape(-1, 3), expected, rtol=0, atol=1e-10)
    assert force[0, :, 2].sum() > 0


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_bits_do_not_depend_on_threads_nor_on_calls_before(precision: str):
    result = []
    for threads in (1, 2):
        cells = cells_on("cpu", precision, threads)
        contact = Contact(cells, ADHESION, lengths=(12, 9, 8))
        result += forces_of_two_calls(cells, contact)
    assert_all_equal(result)
    assert contact.stage().after == ("membrane forces",)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_both_devices_give_the_same_contact_forces(precision: str, device: str):
    result = []
    for where in ("cpu", device):
        cells = cells_on(where, precision)
        Contact(cells, ADHESION, lengths=(12, 9, 8)).compute_forces()
        result.append(cells.vertex_forces())
    np.testing.assert_array_equal(result[0], result[1])


def test_vertices_in_the_same_place_are_pushed_by_a_bounded_force():
    cells = Cells(
        open_backend("cpu", 1), [CellType("ball", ellipsoid((1, 1, 1), 42), NOTHING)], [[(0, 0, 0), (1e-2, 0, 0)]]
    )
    cells.compute_forces()
    Contact(cells, Repulsion(0.3, 0.9, 12.0, Morse(1e-3, 100.0, 0.9, 1.0))).compute_forces()
    force = cells.vertex_forces()
    assert 65536 * 0.3 < np.abs(force).max() < 10 * 65536 * 0.3
    assert np.abs(force.sum(axis=(0, 1))).max() < 1e-6


def test_the_stiffness_of_a_repulsion_is_the_slope_of_its_force():
    law, at, h = Repulsion(0.3, 0.9, 3.0), 0.4, 1e-6
    force = [0.3 * ((0.9 / d) ** 3.0 - 1) for d in (at - h, at + h)]
    assert law.stiffness(at) == pytest.approx((force[0] - force[1]) / (2 * h), rel=1e-8)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda cells: Repulsion(-1, 1), "contact: strength = -1: expected a positive number"),
        (lambda cells: Repulsion(1, np.inf), "contact: reach = inf: expected a positive number"),
        (lambda cells: Repulsion(1, 1, 0.5), "contact: exponent = 0.5: expected a number from 1 to 12"),
        (
            lambda cells: Repulsion(1, 1, morse=Morse(1, 0, 1, 1)),
            "contact: steepness = 0: expected a positive number",
        ),
        (
            lambda cells: Repulsion(1, 1, morse=Morse(1, 1, 2, 1)),
            "contact: adhesion: rest = 2 must be below reach = 1, otherwise there is no attraction",
        ),
        (lambda cells: Contact(cells, wall=REPULSION), "contact: a wall requires points"),
        (
            lambda cells: Contact(cells, REPULSION, skin=-0.1),
            "contact: skin = -0.1: expected a length of zero or more",
        ),
        (
            lambda cells: Contact(cells, REPULSION, lengths=(9, 2, 0)),
            "contact: reach = 0.9 is more than a third of the period 2 of the domain; use a shorter reach",
        ),
    ],
)
def test_impossible_contacts_are_rejected(make: Callable[[Cells], Any], words: str):
    with pytest.raises(CaseError, match=re.escape(words)):
        make(cells_on("cpu"))
