# SPDX-License-Identifier: BSD-3-Clause
"""Digests of stored results (tools/golden.py): equal for equal runs, whatever time they take."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.golden_digest import of_folder

import life_cases as runs
import seiche
from seiche.domain.world import World


@pytest.mark.parametrize("kind", runs.KINDS)
def test_two_runs_of_a_case_have_the_same_digests(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case, digests = runs.life_file(tmp_path, kind), []
    for number, bandwidth in enumerate((1e10, 2e10)):
        monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_, value=bandwidth: value)
        with seiche.load(case, output=tmp_path / f"out-{number}", world=World.serial()) as simulation:
            simulation.run(visible=False)
        digests.append(of_folder(tmp_path / f"out-{number}"))
    assert {"stages", "movement.message_stages"} <= digests[0]["summary.json"].keys()
    assert not [name for name in digests[0]["summary.json"] if "energy so far" in name or "supply of" in name]
    assert digests[0] == digests[1]
