# SPDX-License-Identifier: BSD-3-Clause
"""A flow run: the solver with its monitor and outputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.case.flow.development import steadiness
from seiche.case.flow.estimates import mach_estimate, mass_estimate, velocity_ratio_estimate
from seiche.case.flow.forces import in_si, lines_of, summary_of
from seiche.case.flow.labelled import labelled_flow
from seiche.case.flow.limits import check_state_counts, empty_outputs
from seiche.case.flow.live import FlowView, OpeningPressures, flow_curves
from seiche.case.flow.monitor import FlowMonitor, SteadyState
from seiche.case.flow.openings import initial_pressure
from seiche.case.flow.outputs import FlowOutputs, Picture, VesselSurface
from seiche.case.flow.progress import flow_lines, flow_physics
from seiche.case.flow.schema_iolet import WindkesselOpening
from seiche.case.flow.setup import FlowSetup
from seiche.case.flow.steering import flow_controls
from seiche.case.flow.values import FIELDS, lattice_names, si_fields, to_si
from seiche.case.kind import CaseRun, LiveParts, Match, Restart, Results
from seiche.case.labels import GridRequest, LabelledParts, check_no_grid, dense
from seiche.case.output import Output
from seiche.case.steering import Control
from seiche.domain.world import World
from seiche.flow.balance import measure_costs
from seiche.flow.solver import FlowSolver
from seiche.io.checkpoint_rows import Keys
from seiche.solver import Estimate, State


def open_solver(
    setup: FlowSetup, world: World, *, device: str | None = None, weights: npt.NDArray[np.float64] | None = None
) -> FlowSolver:
    """Return the solver of a case; `weights` are the costs of the sites, on rank 0 (collective)."""
    options = {**solver_options(setup), "device": device or setup.case.run.device}
    return FlowSolver(setup.vessel.sites, setup.model, world=world, weights=weights, **options)


def solver_options(setup: FlowSetup) -> dict[str, Any]:
    """Return the arguments of `FlowSolver` that a case sets, except for its sites and its model."""
    case = setup.case
    return {
        "device": case.run.device,
        "precision": setup.precision,
        "layout": case.lattice.layout,
        "partition": case.run.partition,
        "transport": case.run.transport,
        "threads": case.run.threads,
        "immersed": setup.immersed,
    }


class FlowCaseRun(CaseRun):
    """The solver of a flow case and its outputs.

    Raises:
        CaseError: the checkpoint belongs to another case, or a file would contain more states than its limit.
    """

    world: World
    solver: FlowSolver
    monitor: FlowMonitor
    default_fields = ("pressure", "velocity")

    def __init__(self, setup: FlowSetup, world: World, folder: Path, restart: Restart | None) -> None:
        self.setup, self.world = setup, world
        self.solver = self._balanced(world, restart)
        state = (
            restart.resume(setup, self.solver, self.matches(), self._keys_of(self.solver))
            if restart is not None
            else None
        )
        check_state_counts(setup, self.solver.step)
        self.immerse(state)
        self._files = FlowOutputs(setup, self.solver, folder)
        if state is not None and self._files.averages is not None:
            self._files.averages.resume(state)
        self.monitor = self.make_monitor()
        self.outputs = list(self._outputs(folder))

    def _balanced(self, world: World, restart: Restart | None) -> FlowSolver:
        """Return the solver with the load balance of the case."""
        setup = self.setup
        solver = open_solver(setup, world)
        if setup.case.run.balance != "measured" or world.size == 1:
            return solver
        weights = self.measured_weights(solver, restart)
        solver.close()
        return open_solver(setup, world, weights=weights if world.rank == 0 else None)

    def measured_weights(self, solver: FlowSolver, restart: Restart | None) -> npt.NDArray[np.float64]:
        """Return the measured cost of each site (collective)."""
        return measure_costs(solver).weights(self.setup.vessel.sites)

    def _keys_of(self, solver: FlowSolver) -> Mapping[str, Keys]:
        """Return the keys of the rows that `solver` and immersed objects need for a restart."""
        return dict(solver.keys)

    def immerse(self, state: State | None) -> None:
        """Add immersed objects to the flow, at their initial positions or at those in `state`."""

    def make_monitor(self) -> FlowMonitor:
        """Return the monitor of the state."""
        return FlowMonitor(self.setup, self.solver)

    def _outputs(self, folder: Path) -> Iterable[Output]:
        """Yield the outputs in the order in which they receive the state."""
        setup, solver = self.setup, self.solver
        yield VesselSurface(setup, solver, folder)
        yield from self._files.series()
        yield from self.more_outputs(folder)
        if setup.case.time.steady is not None:
            yield SteadyState(setup, solver, self.stop)
        if setup.case.output.picture is not None:
            yield self.picture(folder / setup.case.output.picture)

    def more_outputs(self, folder: Path) -> Iterable[Output]:
        """Yield outputs of immersed objects."""
        return ()

    def picture(self, path: Path) -> Output:
        """Return the picture of the run."""
        return Picture(self.setup, self.solver, path, self.monitor, self._files.wall)

    def matches(self) -> Mapping[str, Match]:
        """Return geometry, lattice, units, rheology and initial state; iolets and forces may be changed at a restart.

        The initial pressure of a Windkessel outlet may be changed only if the checkpoint does not contain the outlet.
        """
        setup, model, units = self.setup, self.setup.model, self.setup.units
        physics = (model.velocity_set, model.collision, model.rheology, units.spacing, units.step, units.density)
        return {
            "geometry": Match(setup.vessel.sites.fingerprint, "geometry"),
            "model": Match(repr(physics), "fluid, lattice or time step"),
            **self._initial_matches(),
        }

    def _initial_matches(self) -> dict[str, Match]:
        """Return the initial pressure and velocity, and the initial pressures of Windkessel outlets."""
        case = self.setup.case
        pressure = initial_pressure(case)
        start = " ".join(f"{value:.9g}" for value in (pressure, *case.fluid.initial_velocity))
        matches = {"initial": Match(start, "initial pressure or velocity", optional=True)}
        for iolet in case.iolet:
            if isinstance(iolet, WindkesselOpening):
                value = pressure if iolet.initial_pressure is None else iolet.initial_pressure
                name = f"iolet.{iolet.name}.initial_pressure"
                matches[name] = Match(f"{value:.9g}", name, optional=True)
        return matches

    def state(self) -> State:
        """Return the state of the solver and the sums of the averages."""
        state, averages = self.solver.state(), self._files.averages
        return state if averages is None else state.joined(averages.state())

    def exchange_seconds(self) -> float:
        """Return the mean time (s) of the halo exchange of a step."""
        solver = self.solver
        if solver.world.size == 1:
            return 0.0
        modes = [solver.populations.halo_mode(phase) for phase in range(solver.populations.phases)]
        return float(np.mean([solver.halo.trial(mode) for mode in modes]))

    def notes(self) -> Sequence[str]:
        """Return a line for each extraction without a site."""
        return empty_outputs(self.setup)

    def fields(self, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
        """Return fields in SI units by the names of the case file; rows are this rank's sites `solver.owned`.

        - Scalars (n,): pressure (Pa), density (kg/m^3), shear_rate (1/s), viscosity (Pa s).
        - Vectors (n, 3): velocity (m/s), wall_shear_stress and traction (Pa, zero off the wall).
        - The tensor (n, 6): stress (Pa), in the order xx, yy, zz, xy, xz, yz.
        """
        return si_fields(self.solver, self.setup.units, self._checked_names(names))

    def labelled(self, names: Sequence[str], grid: GridRequest | None = None) -> LabelledParts:
        """Return fields (x, y, z[, component]) that are NaN outside the fluid, and the records of the monitor."""
        check_no_grid("flow", grid)
        sites, world = self.setup.vessel.sites, self.solver.world
        owned, fields = sites.coords[self.solver.owned], self.fields(names)
        gathered = {name: dense(sites.shape, owned, values, world) for name, values in fields.items()}
        return labelled_flow(sites, gathered, self.monitor.record)

    def _checked_names(self, names: Sequence[str]) -> Sequence[str]:
        """Return `names`, or the default names if there are none; KeyError for an unknown name."""
        for name in names:
            if name not in FIELDS:
                raise KeyError(name)
        return names or self.default_fields

    def device_fields(self, names: Sequence[str]) -> dict[str, Array]:
        """Return the same fields as `fields`, in device arrays that the next call overwrites."""
        fields, names = dict[str, Array](), self._checked_names(names)
        lattice = self.solver.device_fields(lattice_names(names))
        for name in names:
            values = to_si(lattice, self.setup.units, [name])[name]
            fields[name] = self.solver.derived_field(f"{name} in SI units", values.shape, values.dtype)
            fields[name][...] = values
        return fields

    def live_parts(self) -> LiveParts:
        """Return the speed in a plane, and flow rates and pressures of the openings or the drift of mass."""
        setup, pressures = self.setup, None
        if setup.vessel.sites.iolets:
            pressures = OpeningPressures(setup, self.solver, self.monitor.records)
        return LiveParts(
            FlowView(setup, self.solver).slice,
            lambda: flow_curves(setup, self.monitor.record, pressures),
            () if pressures is None else (pressures,),
        )

    def controls(self) -> Mapping[str, Control]:
        """Return the values of iolets and the body force."""
        return flow_controls(self.setup, self.solver)

    def flow_rates(self) -> dict[str, float]:
        """Return the volume flow rate (m^3/s, positive into the fluid) through each iolet in the last step."""
        flow = self.setup.units.to_si("flow_rate", np.asarray(self.solver.measures.iolet_flow(), np.float64))
        return {plane.name: float(q) for plane, q in zip(self.setup.vessel.sites.iolets, flow, strict=True)}

    def wall_forces(self) -> dict[str, npt.NDArray[np.float64]]:
        """Return force (N) and torque (N m) of the fluid on each body of [[output.force]], (6,), in the next step."""
        return in_si(self.setup.units, self.solver.measures.wall_forces())

    def results(self, files: Iterable[Path]) -> Results:
        """Return the invariants, the flow rates and their history (collective)."""
        setup, record = self.setup, self.monitor.record
        names = [plane.name for plane in setup.vessel.sites.iolets]
        flows = np.stack(record.flows) if record.flows else np.zeros((0, len(names)))
        forces = summary_of(setup, record.times, record.forces)
        details = {
            "time_step_s": setup.dt,
            "spacing_m": setup.units.spacing,
            "time_s": self.solver.step * setup.dt,
            "period_s": setup.period,
            "files": [path.name for path in files],
            "notes": list(setup.notes),
            **self.more_details(),
            **({"forces": forces} if forces else {}),
            "history": {"time_s": record.times, "flow_m3_s": {name: flows[:, k] for k, name in enumerate(names)}},
        }
        invariants, rates = self._invariants(), self.flow_rates()
        steady = not any(estimate.violated for estimate in self._steadiness())
        lines = [*flow_lines(invariants, rates, is_open=bool(setup.case.iolet), steady=steady), *lines_of(forces)]
        return Results(invariants, rates, details, lines)

    def estimates(self) -> list[Estimate]:
        """Return the largest Mach number of the run, the change of flow rates and, without openings, of the mass."""
        record = self.monitor.record
        drift = mass_estimate(self.setup, record.masses, self.solver.step)
        velocity_ratio = velocity_ratio_estimate(self.setup, record.largest_mach)
        return [
            mach_estimate("largest Mach number so far", record.largest_mach, self.setup.dt),
            *velocity_ratio,
            *drift,
            *self._steadiness(),
        ]

    def _steadiness(self) -> Iterator[Estimate]:
        return steadiness(self.setup, self.monitor.record.times, self.monitor.record.flows)

    def physics(self) -> Mapping[str, str]:
        """Return the Mach number, and the relative drift of mass or the balance of the openings."""
        return flow_physics(self.monitor.record, is_open=bool(self.setup.case.iolet))

    def more_details(self) -> dict[str, Any]:
        """Return additional entries of the summary."""
        return {}

    def _invariants(self) -> dict[str, float]:
        invariants, record = self.setup.invariants, self.monitor.record
        values = {
            "reynolds": invariants.reynolds,
            "womersley": invariants.womersley,
            "mach": invariants.mach,
            "tau_smallest": invariants.tau[0],
            "tau_largest": invariants.tau[1],
            "density_smallest": invariants.density[0],
            "density_largest": invariants.density[1],
            "mach_seen": record.largest_mach,
        }
        if record.masses:
            values["mass_kg"] = record.masses[-1]
            values["mass_change_relative"] = record.masses[-1] / record.masses[0] - 1.0
        return {name: value for name, value in values.items() if value is not None}
