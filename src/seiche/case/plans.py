# SPDX-License-Identifier: BSD-3-Clause
"""What a run of a case would do on any number of ranks: its solver is made on devices that only count."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from seiche.backend import parse_device
from seiche.backend.planned import PlannedBackend
from seiche.domain.rehearsal import rehearse
from seiche.domain.world import World
from seiche.observe.plan import PlannedRank, RunPlan, planned_steps

#: Steps of an ultrasound case that are looked at to tell how often each kind of step comes.
_LOOKS = 512


class PlannedCase(ABC):
    """A case whose runs can be planned; `plan(ranks)` is that of one.

    Attributes:
        name: of the case file.
        gpu: whether it runs on GPUs.
        dimensions: of its domain.
        steps: of the run.
        solver: that of the case.
        item: what its ranks share out, `items` of them.
        transport: how messages travel, as the case asks for it.
        graphs: whether steps on several GPUs are replayed as graphs.
    """

    item = "sites"
    solver = "flow"
    graphs = True
    dimensions = 3

    def __init__(self, name: str, device: str, transport: str, steps: int, items: int) -> None:
        """Remember what does not depend on the ranks."""
        self.name, self.transport, self.steps, self.items = name, transport, steps, items
        word = parse_device(device)
        self.gpu, self.device = word.is_gpu, word.planned

    def plan(self, ranks: int) -> RunPlan:
        """Return what each of `ranks` ranks does in a step and holds.

        Raises:
            CaseError: the case cannot run on so many.
        """
        found = rehearse(ranks, self._rank)
        return RunPlan(
            tuple(rank for rank, _ in found),
            self.gpu,
            self.transport,
            self.item,
            self.items,
            found[0][1],
            self.graphs or ranks == 1,
            self._shares(found[0][1]),
        )

    @abstractmethod
    def _rank(self, world: World) -> tuple[PlannedRank, str]:
        """Return what one rank does, and the name of the layout (collective)."""

    def _shares(self, layout: str) -> dict[str, float]:
        return {}


class FlowPlans(PlannedCase):
    """A case of flow, with cells or without."""

    def __init__(self, path: Path | str, overrides: Sequence[str] = ()) -> None:
        """Read the case and make its geometry, once for all numbers of ranks.

        Raises:
            CaseError: the case is wrong or impossible.
            FormatError: a file is broken.
        """
        from seiche.case.flow.simulation import prepare

        self._setup = setup = prepare(path, overrides)
        run = setup.case.run
        super().__init__(str(path), run.device, run.transport, setup.steps, len(setup.vessel.sites))
        self.solver = "flow" if setup.cells is None else "blood"

    def plan(self, ranks: int) -> RunPlan:
        """Return what each of `ranks` ranks does in a step and holds.

        Raises:
            CaseError: the case cannot run on so many.
        """
        from seiche.case.flow.limits import refuse_impossible

        refuse_impossible(self._setup, ranks)
        return super().plan(ranks)

    def _rank(self, world: World) -> tuple[PlannedRank, str]:
        from seiche.case.blood.coupled import couple, packed
        from seiche.cells.space import sparse_points, wall_points
        from seiche.flow import Solver

        setup, case = self._setup, self._setup.case
        solver = Solver(
            setup.vessel.sites,
            setup.model,
            device=self.device,
            precision=setup.precision,
            layout=case.lattice.layout,
            world=world,
            partition=case.run.partition,
        )
        if setup.cells is not None:
            _counting(solver).running = True  # which cells a rank holds is found on its device
            couple(setup, solver, packed(setup.cells), sparse_points(wall_points(setup.vessel.sites)[0]))
            _counting(solver).running = False
        steps = planned_steps([(1.0, stages) for stages in solver.phases], _counting(solver))
        return PlannedRank(steps, _counting(solver).memory, len(solver.owned)), solver.layout_name

    def _shares(self, layout: str) -> dict[str, float]:
        """Return how close the sweep comes to the memory's rate, as was measured on GPUs (`flow/choice.py`)."""
        from seiche.flow.choice import layouts_for, step_bytes, step_time
        from seiche.flow.velocity_set import VELOCITY_SETS

        if not self.gpu:
            return {}
        sites, storage = self._setup.vessel.sites, self._setup.precision.storage
        lattice = VELOCITY_SETS[self._setup.model.velocity_set]
        name = next(each for each in layouts_for(self._setup.model) if each == layout)
        moved, needed = (rule(sites, name, storage, lattice) for rule in (step_bytes, step_time))
        return {"stream-collide": moved / needed}


class WavePlans(PlannedCase):
    """A case of waves."""

    item, solver = "elements", "waves"

    def __init__(self, path: Path | str, overrides: Sequence[str] = ()) -> None:
        """Read the case.

        Raises:
            CaseError: the case is wrong or impossible.
            FormatError: a file is broken.
        """
        from seiche.case.waves.setup import prepare

        self._path, self._overrides = path, tuple(overrides)
        setup = prepare(path, overrides)
        self.dimensions = setup.mesh.dim
        run = setup.case.run
        super().__init__(str(path), run.device, run.transport, setup.steps, setup.mesh.total)

    def _rank(self, world: World) -> tuple[PlannedRank, str]:
        from seiche.case.waves.setup import AXES, prepare

        setup = prepare(self._path, self._overrides, world)
        run = setup.case.run.model_copy(update={"device": self.device})
        setup = replace(setup, case=setup.case.model_copy(update={"run": run}))
        output, peak = setup.case.output, None
        if output.peak is not None:
            side = output.peak.side or AXES[setup.mesh.dim - 1] + "+"
            peak = 2 * AXES.index(side[0]) + (side[1] == "+")
        solver = setup.solver(sponge=setup.case.boundary.sponge or 0.0, peak_side=peak)
        steps = planned_steps([(1.0, stages) for stages in solver.phases], _counting(solver))
        return PlannedRank(steps, _counting(solver).memory, setup.mesh.count), ""


class UltrasoundPlans(PlannedCase):
    """A case of ultrasound."""

    item, solver = "points", "ultrasound"
    graphs = False

    def __init__(self, path: Path | str, overrides: Sequence[str] = ()) -> None:
        """Read the case and make its medium, once for all numbers of ranks.

        Raises:
            CaseError: the case is wrong or impossible.
            FormatError: a file is broken.
        """
        from seiche.case.ultrasound.setup import prepare

        self._setup = setup = prepare(path, overrides)
        self.dimensions = setup.problem.dimensions
        problem, run = setup.problem, setup.case.run
        super().__init__(str(path), run.device, run.transport, problem.steps, problem.points)

    def _rank(self, world: World) -> tuple[PlannedRank, str]:
        from seiche.case.ultrasound.simulation import UltrasoundSimulation

        case = self._setup.case
        case = case.model_copy(update={"run": case.run.model_copy(update={"device": self.device})})
        solver = UltrasoundSimulation(replace(self._setup, case=case), Path(), world).solver()
        inner: Any = getattr(solver, "solver", solver)
        kinds: dict[int, tuple[float, Any]] = {}
        steps = self._setup.problem.steps
        for step in np.unique(np.linspace(1, max(1, steps - 1), _LOOKS).astype(int)):
            inner.time_step = int(step)
            stages = inner.stages()
            kinds[id(stages)] = (kinds.get(id(stages), (0.0, None))[0] + 1.0, stages)
        planned = planned_steps(list(kinds.values()), _counting(inner))
        return PlannedRank(planned, _counting(inner).memory, inner.problem.points), ""


def _counting(solver: Any) -> PlannedBackend:
    backend = solver.backend
    assert isinstance(backend, PlannedBackend)
    return backend


def planned_case(path: Path | str, overrides: Sequence[str] = (), device: str | None = None) -> PlannedCase:
    """Return the case in the file `path`, of any solver, to be planned.

    Args:
        path: case file.
        overrides: changes such as "lattice.tau=0.8".
        device: "cpu" or "cuda"; the case's own by default.

    Raises:
        CaseError: the case is wrong or impossible.
        FormatError: a file is broken.
    """
    from seiche.case.ultrasound.simulation import is_ultrasound
    from seiche.case.waves.setup import is_waves

    changes = [*overrides, *([f"run.device={device}"] if device else [])]
    if is_waves(path):
        return WavePlans(path, changes)
    if is_ultrasound(path, changes):
        return UltrasoundPlans(path, changes)
    return FlowPlans(path, changes)
