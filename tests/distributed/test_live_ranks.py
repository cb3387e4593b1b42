# SPDX-License-Identifier: BSD-3-Clause
"""The view of a run on ranks has the values of the result; rank 0 receives them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from live_checks import CHANGES, check_view
from seiche.case import new
from seiche.case.loading import load
from seiche.domain.world import World


@pytest.mark.ranks(2)
@pytest.mark.parametrize("kind", CHANGES)
def test_the_view_of_ranks_has_the_values_of_the_state(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)
    world = World.from_mpi()
    folder = world.bcast(tempfile.mkdtemp() if world.rank == 0 else None)
    case, options = new.TEMPLATES / f"{kind}.toml", CHANGES[kind]
    with load(case, overrides=options, output=Path(folder) / "out", world=world) as simulation:
        simulation.run(visible=False)
        check_view(kind, simulation)
