# SPDX-License-Identifier: BSD-3-Clause
"""Planned runs of a case on any number of ranks, with solvers on mock devices that only record operations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seiche.backend import parse_device
from seiche.case.kind import PlannedCase
from seiche.case.kinds import kind_of
from seiche.case.load import read_source
from seiche.observe.plan import RunPlan


class CasePlans:
    """Plans of the runs of a case.

    Attributes:
        name: name of the case file.
        planned: the planned case of its kind.
        gpu: whether the case runs on GPUs.
        solver: kind of case.
        dimensions: number of dimensions of the domain.
        steps: number of steps of the run.
    """

    def __init__(self, name: str, planned: PlannedCase) -> None:
        """Prepare the parts that do not depend on the number of ranks."""
        self.name, self.planned, self.dimensions = name, planned, planned.dimensions
        self.solver, self.steps = str(planned.setup.case.solver), planned.setup.steps
        self._device = parse_device(planned.setup.case.run.device)
        self.gpu = self._device.is_gpu

    def plan(self, ranks: int) -> RunPlan:
        """Return the operations and the memory of each rank in a step; CaseError if the case cannot run on `ranks`."""
        planned = self.planned
        planned.check_ranks(ranks)
        plans, layout = planned.all_ranks(ranks, self._device.planned)
        return RunPlan(
            tuple(plans),
            self.gpu,
            planned.setup.case.run.transport,
            planned.item,
            planned.total,
            layout,
            planned.graphs or ranks == 1,
            planned.shares(layout) if self.gpu else {},
        )


def planned_case(path: Path | str, overrides: Sequence[str] = (), device: str | None = None) -> CasePlans:
    """Return the planned case of the file `path` after `overrides` such as "lattice.tau=0.8".

    Raises CaseError if the case is invalid, FormatError if a file is not valid.
    """
    source = read_source(path, overrides, device)
    return CasePlans(str(path), kind_of(source).plan(source))
