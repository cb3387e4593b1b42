# SPDX-License-Identifier: BSD-3-Clause
"""Generated arterial trees: Murray's law, no contact of branches, a closed wall, its openings, patterns of names."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from seiche.case.flow.schema_iolet import PressureOpening, without_patterns
from seiche.case.flow.schema_shapes import ArteryTree, opening_names
from seiche.domain.artery_tree import Branch, artery_branches, branch_angles
from seiche.domain.tree_surface import tree_surface
from seiche.domain.voxelise import voxelise
from seiche.errors import CaseError


def daughters_of(branches: list[Branch], index: int) -> list[Branch]:
    """Return the branches whose parent has this index."""
    return [branch for branch in branches if branch.parent == index]


def axis_distance(first: Branch, second: Branch) -> float:
    """Return the smallest distance of 41 points on the axis of one branch from 41 on that of the other."""
    share = np.linspace(0.0, 1.0, 41)[:, None]
    a, b = (branch.start + share * (branch.end - branch.start) for branch in (first, second))
    return float(np.linalg.norm(a[:, None] - b[None], axis=2).min())


@pytest.mark.parametrize("outlets", [2, 7, 38])
def test_radii_and_angles_follow_murray(outlets: int) -> None:
    branches = artery_branches(1.5e-3, outlets, 8.0, 3)
    assert sum(branch.outlets == 1 for branch in branches) == outlets
    assert len(branches) == 2 * outlets - 1
    for index, parent in enumerate(branches):
        daughters = daughters_of(branches, index)
        assert len(daughters) == (0 if parent.outlets == 1 else 2)
        assert np.linalg.norm(parent.end - parent.start) == pytest.approx(8.0 * parent.radius)
        if daughters:
            first, second = daughters
            assert first.radius**3 + second.radius**3 == pytest.approx(parent.radius**3)
            assert first.outlets + second.outlets == parent.outlets
            angle = np.arccos(first.direction @ parent.direction)
            assert angle == pytest.approx(branch_angles(parent.radius, (first.radius, second.radius))[0])


def test_murrays_angles_are_those_of_least_volume() -> None:
    """With r^2 as the cost of a length, the weighted unit vectors of a junction are in equilibrium."""
    parent, daughters = 1.0, (0.9, (1.0 - 0.9**3) ** (1.0 / 3.0))
    angles = branch_angles(parent, daughters)
    along = sum(r**2 * np.cos(angle) for r, angle in zip(daughters, angles, strict=True))
    across = daughters[0] ** 2 * np.sin(angles[0]) - daughters[1] ** 2 * np.sin(angles[1])
    assert (along, across) == pytest.approx((parent**2, 0.0))


def test_branches_that_do_not_join_keep_their_distance() -> None:
    branches = artery_branches(1.0, 38, 6.0, 1)
    for (i, first), (j, second) in itertools.combinations(enumerate(branches), 2):
        if i == second.parent or first.parent in (j, second.parent):
            continue
        assert axis_distance(first, second) > 1.4 * (first.radius + second.radius)


def test_a_seed_gives_the_same_tree_at_any_radius() -> None:
    small, large = (artery_branches(radius, 20, 8.0, 5) for radius in (1.0, 3.0))
    for one, other in zip(small, large, strict=True):
        assert np.allclose(3.0 * one.end, other.end, rtol=1e-14) and other.radius == pytest.approx(3.0 * one.radius)
    assert not np.allclose(small[3].end, artery_branches(1.0, 20, 8.0, 6)[3].end)


def test_the_wall_is_closed_and_has_the_volume_of_its_branches() -> None:
    open_, planes = tree_surface(1e-3, 5, seed=2)
    closed, _ = tree_surface(1e-3, 5, seed=2, open_ends=False)
    assert [plane.name for plane in planes] == ["inlet", *(f"outlet{number}" for number in range(1, 6))]
    assert len(open_.boundary_loops()) == 6 and not closed.boundary_loops()
    assert not len(closed.orientation_conflicts())
    branches = artery_branches(1e-3, 5, 8.0, 2)
    tubes = sum(np.pi * b.radius**2 * np.linalg.norm(b.end - b.start) for b in branches)
    # Tubes overlap at bifurcations by a volume of the order of r^3 each.
    assert 0.9 * tubes < closed.volume < tubes
    for plane in planes[1:]:
        assert plane.radius == pytest.approx(1e-3 / 5 ** (1 / 3))


def test_every_opening_has_sites() -> None:
    surface, planes = tree_surface(1e-3, 4, seed=1)
    spacing = 1.2e-4
    sites, _ = voxelise(surface, spacing, planes)
    assert len(sites) * spacing**3 == pytest.approx(abs(surface.volume), rel=0.03)
    assert len(sites.iolets) == 5
    for plane in sites.iolets:
        distance = np.linalg.norm(sites.origin + spacing * sites.coords - np.asarray(plane.center), axis=1)
        assert (distance < 1.5 * spacing).any()


@pytest.mark.parametrize(
    ("values", "message"),
    [((1e-3, 1, 8.0, 1), "at least two"), ((-1.0, 3, 8.0, 1), "positive"), ((1e-3, 3, 2.0, 1), "from 4 to 100")],
)
def test_impossible_trees_are_refused(values: tuple[float, int, float, int], message: str) -> None:
    with pytest.raises(CaseError, match=message):
        artery_branches(*values)


def test_a_pattern_stands_for_all_openings_without_an_iolet_of_their_own() -> None:
    tree: dict[str, Any] = {"kind": "tree", "radius": "1 mm", "outlets": 4}
    names = opening_names(ArteryTree(**tree))
    pressures = {"outlet*": "1 Pa", "outlet3": "2 Pa"}
    tables: list[dict[str, Any]] = [{"kind": "pressure", "name": n, "pressure": p} for n, p in pressures.items()]
    iolets = [PressureOpening(**table) for table in tables]
    found = {iolet.name: iolet.pressure for iolet in without_patterns(iolets, names)}  # type: ignore[union-attr]
    assert found == {"outlet1": 1.0, "outlet2": 1.0, "outlet4": 1.0, "outlet3": 2.0}
    with pytest.raises(ValueError, match="no other opening has such a name; the openings are inlet, outlet1"):
        without_patterns([iolets[0].model_copy(update={"name": "out_*"})], names)
    with pytest.raises(ValueError, match="patterns require a built-in shape"):
        without_patterns(iolets, ())
    with pytest.raises(ValueError, match="radius is not allowed for several openings"):
        without_patterns([iolets[0].model_copy(update={"radius": 1e-3})], names)
