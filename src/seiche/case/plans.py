# SPDX-License-Identifier: BSD-3-Clause
"""What a run of a case would do on any number of ranks: its solver is made on devices that only count."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seiche.backend import parse_device
from seiche.case.kind import PlannedCase
from seiche.case.kinds import kind_of
from seiche.case.load import read_source
from seiche.domain.rehearsal import rehearse
from seiche.observe.plan import RunPlan


class CasePlans:
    """A case whose runs can be planned; `plan(ranks)` is that of one.

    Attributes:
        name: of the case file.
        gpu: whether it runs on GPUs.
        planned: the case of its kind.
    """

    def __init__(self, name: str, planned: PlannedCase) -> None:
        """Remember what does not depend on the ranks."""
        self.name, self.planned = name, planned
        self._device = parse_device(planned.setup.case.run.device)
        self.gpu = self._device.is_gpu

    @property
    def solver(self) -> str:
        """Return the kind of case."""
        return str(self.planned.setup.case.solver)

    @property
    def dimensions(self) -> int:
        """Return the dimensions of the domain."""
        return self.planned.dimensions

    @property
    def steps(self) -> int:
        """Return the number of steps of the run."""
        return self.planned.setup.steps

    def plan(self, ranks: int) -> RunPlan:
        """Return what each of `ranks` ranks does in a step and holds.

        Raises:
            CaseError: the case cannot run on so many.
        """
        planned = self.planned
        device = self._device.planned
        planned.refuse(ranks)
        found = rehearse(ranks, lambda world: planned.rank(world, device))
        return RunPlan(
            tuple(rank for rank, _ in found),
            self.gpu,
            planned.setup.case.run.transport,
            planned.item,
            planned.total,
            found[0][1],
            planned.graphs or ranks == 1,
            planned.shares(found[0][1]) if self.gpu else {},
        )


def planned_case(path: Path | str, overrides: Sequence[str] = (), device: str | None = None) -> CasePlans:
    """Return the case in the file `path`, of any kind, to be planned.

    Args:
        path: case file.
        overrides: changes such as "lattice.tau=0.8".
        device: "cpu" or "cuda"; the case's own by default.

    Raises:
        CaseError: the case is wrong or impossible.
        FormatError: a file is broken.
    """
    source = read_source(path, overrides, device)
    return CasePlans(str(path), kind_of(source).plan(source))
