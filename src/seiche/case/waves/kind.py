# SPDX-License-Identifier: BSD-3-Clause
"""Waves as a kind of case."""

from __future__ import annotations

from seiche.case.kind import Kind, PlannedCase
from seiche.case.source import CaseFile
from seiche.case.waves.check import describe
from seiche.case.waves.estimates import wave_estimates
from seiche.case.waves.run import WaveCaseRun
from seiche.case.waves.schema import WaveCase
from seiche.case.waves.setup import WaveSetup, prepare
from seiche.case.waves.sketch import waves_picture
from seiche.domain.sharing import on_root
from seiche.domain.world import World
from seiche.observe.plan import PlannedRank, planned_rank


def _check(source: CaseFile, world: World, ranks: int) -> list[str]:
    """Return the lines of the check; rank 0 generates the whole mesh, or a sample if the mesh is large."""
    return on_root(world, lambda: describe(_verify(source), ranks))


def _verify(source: CaseFile) -> WaveSetup:
    return prepare(source, sampled=True)


class WavePlan(PlannedCase):
    """A wave case whose runs can be planned; every rank generates its own mesh."""

    item = "elements"

    def __init__(self, source: CaseFile) -> None:
        self.setup = setup = prepare(source)
        self._source, self.total, self.dimensions = source, setup.mesh.total, setup.mesh.dim

    def rank(self, world: World, device: str) -> tuple[PlannedRank, str]:
        """Return the plan of one rank (collective)."""
        setup = prepare(self._source, world)
        solver = setup.solver(device)
        return planned_rank(solver.backend, [(1.0, stages) for stages in solver.phases], setup.mesh.count), ""


WAVES = Kind("waves", WaveCase, prepare, WaveCaseRun, _check, WavePlan, wave_estimates, waves_picture, _verify)
