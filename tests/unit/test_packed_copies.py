# SPDX-License-Identifier: BSD-3-Clause
"""Copies of a packed tile in a vessel: which pairs of cells are tested for overlaps."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.cells import Box, Packing, Tube, biconcave, pack
from seiche.cells import packing as packing_module
from seiche.cells.overlap import overlapping_pairs
from seiche.cells.packing import fill
from seiche.domain.surface import Surface

RED = biconcave(162)


@pytest.mark.parametrize(("length", "at_seam"), [(40.0, False), (47.0, True)])
def test_overlaps_of_copies_are_sought_only_where_the_vessel_repeats_within_a_tile(
    monkeypatch: pytest.MonkeyPatch, length: float, at_seam: bool
):
    tested: list[Packing] = []

    def spy(surfaces: list[Surface], packing: Packing, lengths: np.ndarray) -> np.ndarray:
        tested.append(packing)
        return overlapping_pairs(surfaces, packing, lengths)

    monkeypatch.setattr(packing_module, "overlapping_pairs", spy)
    tile = Box((20, 20, 20))
    packed = pack(tile, [RED], 0.4, seed=2)
    filled = fill(Tube(16.0, length), [RED], tile, packed, 0.12, gap=0.1)
    centers = tested[-1].centers[:, 0]
    assert bool(len(centers)) == at_seam
    radius = np.linalg.norm(RED.vertices - RED.vertices.mean(axis=0), axis=1).max()
    assert ((centers < 2 * radius) | (centers > length - 2 * radius)).all()
    assert not len(overlapping_pairs([RED], filled, np.array([length, 0, 0])))
