# SPDX-License-Identifier: BSD-3-Clause
"""Positions and orientations of cells, as a series of cells stores them."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from seiche.case.blood.series import centers_and_rotations


def test_the_turn_of_a_cell_is_found_again() -> None:
    rng = np.random.default_rng(2)
    rest = rng.normal(size=(30, 3))
    turns = Rotation.random(5, rng=1).as_matrix()
    vertices = np.einsum("nij,vj->nvi", turns, rest - rest.mean(axis=0)) + rng.normal(size=(5, 1, 3))
    middle, result = centers_and_rotations(vertices, rest)
    assert np.abs(result - turns).max() < 1e-12
    assert np.abs(middle - vertices.mean(axis=1)).max() < 1e-12
