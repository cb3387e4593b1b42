# SPDX-License-Identifier: BSD-3-Clause
"""Ultrasound as a kind of case."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seiche.case.kind import Kind, PlannedCase
from seiche.case.source import CaseFile
from seiche.case.ultrasound.check import describe
from seiche.case.ultrasound.estimates import ultrasound_estimates
from seiche.case.ultrasound.run import UltrasoundCaseRun
from seiche.case.ultrasound.schema import UltrasoundCase
from seiche.case.ultrasound.setup import UltrasoundSetup, check_limits, open_solver, prepare
from seiche.case.ultrasound.size import sized_setup
from seiche.case.ultrasound.sketch import ultrasound_picture
from seiche.domain.sharing import on_root
from seiche.domain.world import World
from seiche.observe.plan import PlannedRank, planned_rank
from seiche.observe.stage import Stage
from seiche.report.case_figure import CasePicture

#: Number of sampled steps from which the fraction of each kind of step is estimated.
_SAMPLES = 512


def _check(source: CaseFile, world: World, ranks: int) -> list[str]:
    return on_root(world, lambda: describe(_verify(source), ranks))


def _verify(source: CaseFile) -> UltrasoundSetup:
    return sized_setup(source) or prepare(source)


class UltrasoundPlan(PlannedCase):
    """An ultrasound case whose runs can be planned."""

    item = "points"
    graphs = False
    setup: UltrasoundSetup

    def __init__(self, source: CaseFile) -> None:
        self.setup = setup = prepare(source)
        self.total, self.dimensions = setup.problem.points, setup.problem.dimensions

    def check_ranks(self, ranks: int) -> None:
        """Raise a CaseError for a number of ranks on which the case cannot run."""
        check_limits(self.setup, ranks)

    def rank(self, world: World, device: str) -> tuple[PlannedRank, str]:
        """Return the plan of one rank (collective)."""
        solver = open_solver(self.setup, world, device=device)
        kinds: dict[int, tuple[float, Sequence[Stage]]] = {}
        for step in np.unique(np.linspace(1, max(1, self.setup.steps - 1), _SAMPLES).astype(int)):
            solver.step = int(step)
            stages = solver.stages
            kinds[id(stages)] = (kinds.get(id(stages), (0.0, stages))[0] + 1.0, stages)
        return planned_rank(solver.backend, list(kinds.values()), int(np.prod(solver.part.shape))), ""


def _picture(source: CaseFile) -> CasePicture:
    return ultrasound_picture(prepare(source))


ULTRASOUND = Kind(
    "ultrasound",
    UltrasoundCase,
    prepare,
    UltrasoundCaseRun,
    _check,
    UltrasoundPlan,
    ultrasound_estimates,
    _picture,
    _verify,
)
