# SPDX-License-Identifier: BSD-3-Clause
"""Cells of earlier checkpoints, which have one array, and parts of cells that ranks pass to each other."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.case.blood.cell_state import stored_populations
from seiche.couple.suspension import assign_ids, gathered_ids, gathered_populations
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.solver import RowSet


def test_an_array_of_all_cells_is_that_of_its_types() -> None:
    generator = np.random.default_rng(0)
    types = [(3, 12, 0), (0, 42, 0), (2, 12, 20)]
    parts = [
        (generator.random((2, cells, vertices, 3)), 7 + np.arange(cells), generator.random((cells, elements, 3)))
        for cells, vertices, elements in types
    ]
    openings = generator.random(5)
    values = np.concatenate([array.ravel() for part in parts for array in part] + [openings])
    description = dict(zip(("cells", "vertices", "relaxed"), map(list, zip(*types, strict=True)), strict=True))
    populations, count = stored_populations(description, None, values)
    np.testing.assert_array_equal(values[count:], openings)
    for population, (arrays, ids, relaxed) in zip(populations, parts, strict=True):
        np.testing.assert_array_equal(population.vertices, arrays[0])
        np.testing.assert_array_equal(population.velocity, arrays[1])
        np.testing.assert_array_equal(population.ids, ids)
        if relaxed.size:
            np.testing.assert_array_equal(population.relaxed, relaxed)
        else:
            assert population.relaxed is None


def test_parts_of_ranks_are_joined_to_all_cells() -> None:
    generator = np.random.default_rng(1)
    rows = RowSet(np.array([2, 0, 1]), 3, {"place": generator.random((3, 4, 3)), "velocity": np.ones((3, 4, 3), "f4")})
    with pytest.raises(CaseError, match="lack the array 'id'"):
        stored_populations({}, [rows], np.zeros(0))
    rows.arrays["id"] = np.array([30, 10, 20])  # type: ignore[index]
    (part,), count = stored_populations({}, [rows], np.zeros(0))
    assert count == 0
    assert part.velocity.dtype == np.float64
    world = World.serial()
    (ids,), (joined,) = gathered_ids([part], world), gathered_populations([part], world)
    np.testing.assert_array_equal(ids, [10, 20, 30])
    np.testing.assert_array_equal(joined.ids, ids)
    np.testing.assert_array_equal(joined.vertices, np.asarray(rows.arrays["place"][:])[[1, 2, 0]])
    parts = [joined.part(World(rank, 2, rank, 2)) for rank in range(2)]
    assert [list(own.numbers) for own in parts if own.numbers is not None] == [[0], [1, 2]]
    assert assign_ids([parts[1], joined, parts[0]]) == 9
    assert [list(cells.ids) for cells in (parts[1], joined, parts[0])] == [[1, 2], [3, 4, 5], [6]]
