# SPDX-License-Identifier: BSD-3-Clause
"""A case that runs: `sim = seiche.load("case.toml"); sim.run(); print(sim.report())`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.case.account import Account, keep_trace, serving
from seiche.case.agreement import on_rank_zero
from seiche.case.blood.tubes import lacking
from seiche.case.flow.geometry import build
from seiche.case.flow.limits import refuse_impossible
from seiche.case.flow.outputs import Outputs
from seiche.case.flow.restart import cells_state, resume
from seiche.case.flow.setup import Setup, build_setup
from seiche.case.flow.values import si_fields
from seiche.case.load import read_case_and_notes
from seiche.case.run import advance
from seiche.errors import CaseError
from seiche.observe.bandwidth import copy_bandwidth
from seiche.observe.trace import common_epoch

if TYPE_CHECKING:
    from seiche.case.blood.run import BloodRun
    from seiche.domain.sites import SiteSet
    from seiche.domain.world import World
    from seiche.flow import Solver

#: More than this part of the cells that were to enter and wait is worth a word.
_OWED = 0.1


@dataclass(frozen=True)
class Outcome:
    """How a run ended: at step `step`, after `seconds`, `stopped` says why if before its time."""

    step: int
    seconds: float
    stopped: str | None


def prepare(
    path: Path | str, overrides: Sequence[str] = (), world: World | None = None, *, place: bool = True
) -> Setup:
    """Read the case file `path` and make its geometry, on rank 0 for all ranks; no field is allocated.

    Without `place` cells are not put into the vessel: a checkpoint has them.

    Raises CaseError or FormatError, the same on every rank, for whatever is wrong with the case.
    """
    from seiche.domain.sharing import shared_sites, without_arrays
    from seiche.domain.world import World

    world = world or World.serial()
    made: list[SiteSet] = []

    def make() -> Setup:
        case, notes = read_case_and_notes(path, overrides)
        vessel = build(case, Path(path).parent, str(path))
        setup = build_setup(case, replace(vessel, notes=(*notes, *vessel.notes)), str(path))
        refuse_impossible(setup, world.size)
        if case.solver == "blood":
            from seiche.case.blood.limits import refuse_impossible_cells
            from seiche.case.blood.setup import cells_setup

            refuse_impossible_cells(setup)
            setup = replace(setup, cells=cells_setup(setup, Path(path).parent, place=place))
        made.append(setup.vessel.sites)
        return with_sites(setup, without_arrays(setup.vessel.sites)) if world.size > 1 else setup

    setup = on_rank_zero(world, make)
    # A message could not hold the sites of a large vessel, and the ranks of a host need them only once.
    return with_sites(setup, shared_sites(world, made[0] if made else None))


def with_sites(setup: Setup, sites: SiteSet) -> Setup:
    """Return `setup` with other sites."""
    return replace(setup, vessel=replace(setup.vessel, sites=sites))


def load(
    path: Path | str,
    *,
    device: str | None = None,
    overrides: Sequence[str] = (),
    restart: Path | str | None = None,
    output: Path | str | None = None,
    world: World | None = None,
) -> Simulation:
    """Return the simulation of the case file `path`, ready to run.

    Args:
        path: case file; the files that it names are relative to its folder.
        device: "cpu", "cuda" or "cuda:1"; the case's own by default.
        overrides: changes such as "lattice.tau=0.8" or "iolet.inlet.velocity=0.2 m/s".
        restart: checkpoint to go on from.
        output: folder of the outputs; the case's own by default.
        world: the ranks that take part; those of mpiexec by default.

    Raises:
        CaseError: the case is wrong or impossible.
        FormatError: a file is broken.
        BackendUnavailable: the device is not there.
    """
    from seiche.domain.world import World

    world = world or World.from_mpi()
    changes = [*overrides, *([f"run.device={device}"] if device else [])]
    setup = prepare(path, changes, world, place=restart is None)
    folder = Path(output) if output is not None else Path(path).parent / setup.case.output.folder
    return Simulation(setup, world, folder, Path(restart) if restart is not None else None)


class Simulation:
    """A flow on its vessel, with the outputs of its case; every method is collective over the ranks.

    Attributes:
        setup: the case in lattice units, with its geometry.
        solver: the lattice Boltzmann solver.
        outputs: what is written and recorded.
        blood: the cells in the flow, None without.
    """

    def __init__(self, setup: Setup, world: World, folder: Path, restart: Path | None = None) -> None:
        """Make the solver (this allocates the fields) and load the state in `restart`, if given."""
        self.setup, self.world, self.folder = setup, world, folder
        self.started = time.monotonic()
        self.seconds = 0.0
        self._bandwidth: float | None = None
        case = setup.case
        self.solver: Solver = self._make_solver(None)
        if case.run.balance == "measured" and world.size > 1:
            weights = self._measured_weights(restart)
            self.solver.close()
            # Rank 0 shares the sites out.
            self.solver = self._make_solver(weights if world.rank == 0 else None)
        checkpoint = None
        if restart is not None:
            checkpoint = resume(restart, setup, self.solver, world)
            if self.solver.step >= setup.steps:
                raise CaseError(
                    f"--restart {restart}: its step {self.solver.step} is not before the end of "
                    f"{setup.source} at step {setup.steps}; make the run longer"
                )
        self._trace = folder / case.output.trace if case.output.trace is not None else None
        keep_trace(self._trace, self.solver.timers, world)
        self.blood: BloodRun | None = None
        if setup.cells is not None:
            from seiche.case.blood.run import BloodRun

            state = cells_state(checkpoint, world, self.solver.owned) if checkpoint is not None else None
            self.blood = BloodRun(setup, self.solver, state)
        self.outputs = Outputs(setup, self.solver, world, folder, self.blood)
        if checkpoint is not None and self.outputs.averages is not None:
            self.outputs.averages.resume(checkpoint)

    def _measured_weights(self, restart: Path | None) -> npt.NDArray[np.float64]:
        """Return what every site costs, with the cells that are there at first or in `restart` (collective)."""
        from seiche.flow.balance import measure_costs

        setup, solver = self.setup, self.solver
        if setup.cells is None:
            return measure_costs(solver).weights(setup.vessel.sites)
        from seiche.case.blood.run import BloodRun
        from seiche.couple.balance import measure_blood_costs

        state = None
        if restart is not None:
            checkpoint = resume(restart, setup, solver, self.world)
            state = cells_state(checkpoint, self.world, solver.owned)
        blood = BloodRun(setup, solver, state, tubes=False).blood
        return measure_blood_costs(blood).weights(blood)

    def _make_solver(self, weights: npt.NDArray[np.float64] | None) -> Solver:
        from seiche.flow import Solver

        case = self.setup.case
        return Solver(
            self.setup.vessel.sites,
            self.setup.model,
            device=case.run.device,
            precision=self.setup.precision,
            layout=case.lattice.layout,
            world=self.world,
            partition=case.run.partition,
            transport=case.run.transport,
            threads=case.run.threads,
            weights=weights,
        )

    @property
    def title(self) -> str:
        """Return the title of the case, or else its file."""
        return self.setup.case.title or self.setup.source

    @property
    def time(self) -> float:
        """Return the physical time reached, in seconds."""
        return self.solver.step * self.setup.units.step

    def run(self, steps: int | None = None, *, serve: int | None = None) -> Outcome:
        """Advance by `steps`, or to the end of the case; at the end close the files and write picture and summary.

        With `serve`, a port (0: any that is free), a page on this machine's loopback address tells how far it is.

        SIGTERM, SIGINT and the wall-clock limit finish the step, write a checkpoint and return.
        Raises UnstableError when a field is no longer finite; complete outputs and the last checkpoint stay.
        """
        from seiche.observe.progress import Progress

        target = self.setup.steps if steps is None else self.solver.step + steps
        self.solver.backend.synchronize()
        self.solver.timers.align(common_epoch(self.world))
        begin = time.monotonic()
        bar = Progress(target, len(self.setup.vessel.sites), first=self.solver.step, visible=self.world.rank == 0)
        try:
            with serving(bar.state, self.title, serve, self.world), bar as progress:
                stopped = advance(
                    self.solver,
                    self.outputs,
                    self.world,
                    target,
                    progress,
                    wall_clock=self.setup.case.run.wall_clock,
                    started=self.started,
                )
        except BaseException:
            self.outputs.close()
            raise
        self.seconds += time.monotonic() - begin
        if stopped is not None or self.solver.step >= self.setup.steps:
            self.close(stopped)
        return Outcome(self.solver.step, self.seconds, stopped)

    def lacking(self) -> list[str]:
        """Return a line for each type of cells that can enter nowhere, as none is in a tube before an inlet."""
        openings = self.blood.openings if self.blood is not None else None
        tubes = openings.tubes if openings is not None else {}
        counts = {name: [block.cells for block in tube.blood.cells.blocks] for name, tube in tubes.items()}
        return list(lacking(self.setup, counts))

    def owed(self) -> list[str]:
        """Return a line for each inlet before which more than a tenth of the cells that were to enter still wait.

        Where blood flows out through an inlet, as it may between two pulses, cells wait until it comes in again.
        """
        openings = self.blood.openings if self.blood is not None else None
        if self.blood is None or openings is None:
            return []
        entered, lines = self.blood.watch.entered, []
        for name, waiting in openings.waiting().items():
            if waiting > max(1.0, _OWED * (waiting + entered[name])) and not openings.goes_out(name):
                lines.append(
                    f'{waiting} of {waiting + entered[name]} cells still wait to enter through iolet["{name}"], so '
                    "fewer came in than the blood of its reservoir carries: so dense a flow finds no room for them"
                )
        return lines

    def fields(self, *names: str) -> dict[str, npt.NDArray[Any]]:
        """Return fields in SI units by the names of the case file; rows are this rank's sites `solver.owned`.

        pressure (n,) Pa, density (n,) kg/m^3, velocity (n, 3) m/s, shear_rate (n,) 1/s, stress (n, 6) Pa in the order
        xx, yy, zz, xy, xz, yz, wall_shear_stress and traction (n, 3) Pa (zero off the wall), viscosity (n,) Pa s.
        """
        return si_fields(self.solver, self.setup.units, names or ("pressure", "velocity"))

    def flow_rates(self) -> dict[str, float]:
        """Return the volume flow (m^3/s, positive into the fluid) through every iolet during the last step."""
        flow = self.setup.units.to_si("flow_rate", np.asarray(self.solver.measures.iolet_flow(), np.float64))
        return {plane.name: float(q) for plane, q in zip(self.setup.vessel.sites.iolets, flow, strict=True)}

    def report(self) -> str:
        """Return the table stage | time | share | GB/s | share of the copy bandwidth of the steps done so far."""
        return self.account().report()

    def bandwidth(self) -> float:
        """Return the bytes a second that plain copies reach on the devices of all ranks; measured once."""
        if self._bandwidth is None:
            self._bandwidth = copy_bandwidth(self.solver.backend, self.world)
        return self._bandwidth

    def account(self) -> Account:
        """Return the account of the steps done so far."""
        from seiche.case.flow.summary import account_of

        return account_of(self, self.bandwidth())

    def close(self, stopped: str | None = None) -> None:
        """Close the files, write the picture and the summary; done by `run` at the end of the case."""
        from seiche.case.flow.summary import save_summary

        self.outputs.finish()
        save_summary(self, stopped)
        self.account().save_trace(self._trace, self.title)

    def __enter__(self) -> Simulation:
        """Return the simulation."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the files."""
        self.outputs.close()
