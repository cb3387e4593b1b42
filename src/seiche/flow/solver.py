# SPDX-License-Identifier: BSD-3-Clause
"""Lattice Boltzmann solver for sparse vessels; see `steps.py` for the stages of a step."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, open_backend
from seiche.domain.partition import owners
from seiche.domain.sharing import on_root
from seiche.domain.sites import SiteSet
from seiche.domain.world import World
from seiche.flow.choice import LayoutName, choose_layout, make_layout, tile_edge
from seiche.flow.component_mass import ComponentMass
from seiche.flow.immersion import Contrast, Immersion
from seiche.flow.iolet_stages import IoletStages
from seiche.flow.iolets import Iolets
from seiche.flow.measures import Measures
from seiche.flow.model import FlowModel, Precision
from seiche.flow.moment_layout import MomentLayout
from seiche.flow.moment_state import COEFFICIENTS, populations_of_moments
from seiche.flow.monitor import Monitor, PendingMonitor
from seiche.flow.physics import Physics, check_model
from seiche.flow.region import Region, check_parts
from seiche.flow.state import IOLETS, OPENINGS, SITES, WALL_MASS, site_state
from seiche.flow.steps import Steps
from seiche.flow.velocity_set import VELOCITY_SETS
from seiche.flow.wall_forces import WallForces
from seiche.flow.walls import WallStages
from seiche.halo.exchange import HaloExchange
from seiche.machine.in_use import predicted_transport_times
from seiche.observe.stage import Stage
from seiche.observe.timers import StageTimers
from seiche.solver.base import Health, SolverBase
from seiche.solver.replay import Replay
from seiche.solver.state import Attribute, Rows, RowSet, State, check_row_shapes


class FlowSolver(SolverBase):
    """Flow of `model` on `sites` by the lattice Boltzmann method, on all ranks of `world`; lattice units.

    Attributes:
        region: the sites of this rank and their neighbours.
        owned: global indices (into `sites.coords`) of this rank's sites, (n,) ascending.
        populations: storage layout of the populations.
        phase: kind of the next step.
        iolets: the openings.
        halo: halo exchange between ranks.
        measures: measurements of the current state.
        restored_inside: indices of the viscosities of the owned sites from a restored state, until the next step.
    """

    item = SITES
    lookahead = True
    dt = 1.0

    def __init__(
        self,
        sites: SiteSet,
        model: FlowModel,
        *,
        device: str = "cpu",
        precision: Precision | None = None,
        layout: str = "auto",
        world: World | None = None,
        partition: str = "metis",
        transport: str = "auto",
        threads: int | None = None,
        weights: npt.NDArray[np.float64] | None = None,
        immersed: bool = False,
    ) -> None:
        """Partition the sites, allocate the populations and set the initial state.

        Args:
            sites: the fluid sites.
            model: the physics; `model.iolets[k]` belongs to `sites.iolets[k]`.
            device: "cpu", "cuda" or a numbered GPU such as "cuda:1".
            precision: precision of arithmetic and storage; float64 by default.
            layout: "auto", "list-ab", "list-aa", "tiles-4", "tiles-8" or, with `Regularised` only, "moments".
            world: the ranks; only this process by default.
            partition: "metis", "curve", "bisection" or "slabs".
            transport: "auto", "local", "host", "peer", "nccl" or "device_mpi".
            threads: CPU threads of this rank.
            weights: cost of every site (n,) for load balancing (`seiche.flow.balance.measure_costs`).
            immersed: whether bodies will be immersed, which affects the choice of a layout.

        Raises:
            CaseError: the model is invalid, there are more ranks than sites, or a periodic extent is not a multiple of
                the tile edge.
            BackendUnavailable: the device is missing or has too little memory.
        """
        self.sites, self.model, self.device, self.precision = sites, model, device, precision or Precision()
        self.world = world or World.serial()
        check_model(sites, model, self.precision, self.world.size)
        self.backend = open_backend(device, self.world.threads(threads), self.world.local_rank)
        lattice, store = VELOCITY_SETS[model.velocity_set], self.precision.storage
        chosen = partial(choose_layout, sites, layout, store, device, lattice, model=model, immersed=immersed)
        self.layout = on_root(self.world, chosen)
        self._divide(self.layout, method=partition, weights=weights)
        self.owned: npt.NDArray[np.int64] = self.region.owned
        self.items, self.total_items = len(self.owned), len(sites)
        self._openings = self.region.openings(self.world)
        self.step = self.phase = 0
        self._physics = Physics(self.backend, self.populations, model, self.precision.compute)
        subdomain, real = (self.backend, self.populations, self.region), self.precision.compute
        self.iolets = Iolets(*subdomain, model.iolets, real=real, world=self.world, transport=transport)
        self.timers = StageTimers(self.backend.clock(), label=self.backend.annotate)
        self._assemble(transport)
        self.measures = Measures(self, self._walls, self._physics, self._forces)
        mass = self._walls.mass
        if mass is not None and mass.closed.any():
            self._component_mass = ComponentMass(self.measures.observation, self._walls.component, mass.closed)
            mass.measure = self._measure_mass
        self._prepare_immersion: Callable[[int], int] | None = None
        self._contrast: Contrast | None = None
        self.restored_inside: npt.NDArray[np.uint8] | None = None
        self._phases = self._steps.phases()
        self._prepare_messages()
        self.populations.start(model.initial_density, model.initial_velocity)

    def _divide(self, layout: LayoutName, **options: Any) -> None:
        """Set the sites of this rank and the layout of their populations (collective)."""
        owner = owners(self.sites, self.world, block=tile_edge(layout), **options)
        check_parts(owner)
        self.region = Region(self.sites, owner, self.world.rank, VELOCITY_SETS[self.model.velocity_set])
        self.populations = make_layout(layout, self.backend, self.world, self.region, self.precision)

    def _assemble(self, transport: str) -> None:
        """Set up the halo and the builders of stages; CaseError on all ranks for invalid moving walls (collective)."""
        backend, world, populations, physics = self.backend, self.world, self.populations, self._physics
        compute, storage, region, model = self.precision.compute, self.precision.storage, self.region, self.model
        precision, boundary_precision = (compute, storage), (compute, populations.boundary_precision)
        plan, predict = populations.plan, predicted_transport_times
        self.halo = HaloExchange(backend, world, plan, storage, transport, predict=predict)  # type: ignore[arg-type]
        bodies, self._forces = model.walls.bodies, None
        if bodies:
            self._forces = WallForces(backend, populations, region, bodies, precision=boundary_precision, world=world)
        walls = WallStages(backend, populations, region, model.walls, precision=boundary_precision, world=world)
        self._walls = walls
        iolets = IoletStages(backend, populations, self.iolets, physics, precision=precision)
        sweep = (backend, populations, self.halo, physics)
        self._steps = Steps(*sweep, precision=precision, walls=walls, iolets=iolets, timers=self.timers)

    def _prepare_messages(self) -> None:
        """Set up the halo for each kind of step and list the exchanges of a step (collective)."""
        has_halo = bool(self.populations.plan.peers) or self.world.size > 1
        for phase in range(self.populations.phases if has_halo else 0):
            self.halo.prepare(self.populations.source(phase), self.populations.halo_mode(phase))
        depth_exchange = self.iolets.depths.exchange if self.iolets.depths is not None else None
        candidates = (self.halo if has_halo else None, depth_exchange)
        self.exchanges: list[HaloExchange] = [exchange for exchange in candidates if exchange]
        self._own_exchanges = tuple(self.exchanges)  # without those of immersed bodies
        self._time_exchanges()
        if self._walls.mass is not None:
            self.graph_steps = self._walls.mass.window
        self._replay = Replay(self.backend, self.exchanges)

    @property
    def stages(self) -> list[Stage]:
        """Return the stages of the next step."""
        return self._phases[self.phase]

    @property
    def phases(self) -> list[list[Stage]]:
        """Return the stages of each kind of step; the kinds alternate."""
        return self._phases

    def _prepare_steps(self, steps: int) -> int:
        """Prepare immersed bodies for up to `steps` steps; return the number of steps of the next launch."""
        ready = steps
        if self._prepare_immersion is not None:
            with self.timers.preparation.activity("assign cells"):
                ready = self._prepare_immersion(steps)
        if self._walls.mass is not None:
            ready = min(ready, self._walls.mass.remaining_steps(self.step))
        return self.graph_steps if self._can_replay(min(steps, ready)) else 1

    def _before_launch(self, steps: int) -> Hashable:
        """Prepare walls, iolets and the marking of sites inside cells; return the phase within the marking interval."""
        self._walls.restore()
        if self._walls.mass is not None:
            self._walls.mass.prepare(self.step)
        self.iolets.prepare(self.step, steps)
        if self._contrast is None:
            return 0
        with self.timers.preparation.activity("mark inside cells"):
            self._contrast.begin(self.step)
        return self.step % self._contrast.every

    def _measure_mass(self, host: npt.NDArray[Any]) -> None:
        """Start summing the mass of each component without openings into `host` (collective)."""
        start = partial(self._component_mass.start, self.phase, host)
        self.measures.observe_outgoing(start)

    def _after_launch(self, steps: int) -> None:
        """Update the phase after a launch of `steps` steps."""
        self.phase = (self.phase + steps) % self.populations.phases
        self.restored_inside = None

    def _may_replay(self) -> bool:
        """Return whether the next steps may be replayed from a graph: at phase 0 and without host work."""
        circuits = self.iolets.windkessels
        return self.phase == 0 and self.step > 0 and not (circuits and circuits.needs_host)

    def fields(self, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
        """Return fields of the owned sites in lattice units (collective).

        Names: density (n,), velocity (n, 3), stress (n, 6: xx yy zz xy xz yz, deviatoric), shear_rate (n,),
        wall_shear_stress and traction (n, 3; zero off the wall), viscosity (n,).

        Raises:
            KeyError: an unknown name.
        """
        return self.measures.fields(names)

    def device_fields(self, names: Sequence[str]) -> dict[str, Array]:
        """Return the same fields as `fields`, in device arrays that the next call overwrites."""
        return self.measures.device_fields(names)

    def check(self) -> Health:
        """Return the mass (in sites of density 1) and the maximum Mach number over all ranks.

        Raises:
            UnstableError: a population is not finite; on every rank, with the coordinates of the first such site.
        """
        monitor = self.monitor()
        return Health(monitor.step, {"mass": monitor.mass, "mach": monitor.mach})

    def monitor(self) -> Monitor:
        """Return the mass, the maximum Mach number and the inflows over all ranks.

        The mass is the same on any number of ranks.

        Raises:
            UnstableError: a population is not finite; on every rank, with the coordinates of the first such site.
        """
        return self.start_monitor().monitor()

    def mass_created(self) -> npt.NDArray[np.float64]:
        """Return the mass created by walls since the start, which the solver removes again; collective.

        There is one value for each connected component of the fluid, in sites of density 1, (components,). The result
        is empty if all walls are half-way walls at rest. A value of many times the mass of the component indicates that
        the walls are not resolved.
        """
        mass = self._walls.mass
        return mass.created() if mass is not None else np.zeros(0)

    def start_monitor(self, *, totals: bool = True) -> PendingMonitor:
        """Start the reduction of the current state, without `totals` only of its flow.

        The copy overlaps with later steps.
        """
        return self.measures.start_monitor(totals=totals)

    def state(self) -> State:
        """Return the restart data, which are the same for every layout, number of ranks and device.

        Arrays of the sites:

        - `populations` (n_owned, Q): outgoing, minus their weights; assembled on access, in any thread. With the layout
          `moments` they are computed from the moments and not stored in checkpoints.
        - `relaxation` (n_owned,): omega+ of the last step, for a rheology that needs it.
        - `reference_velocity` (n_owned, 3): the reference of `measures.velocity_change`, after its first call.
        - `inside` (n_owned,): the last indices of the viscosities inside cells, unless they are updated after this
          step.
        - `moments` (n_owned, 10): with the layout of this name; a restart from them is exact, whereas a restart from
          populations with this layout is exact only up to round-off. The row set "sites at openings" then has the
          `populations` of the sites with links through openings.

        Attributes "iolets.<name>.<number>" belong to Windkessel outlets.
        """
        self._walls.restore()
        arrays: dict[str, Rows] = {**self.populations.state(self.phase)}
        if self._physics.has_rates:
            arrays["relaxation"] = self._physics.even_rates().astype(np.float64)
        if self._contrast is not None and self.step % self._contrast.every:
            arrays["inside"] = self._contrast.inside().astype(np.float64)
        reference = self.measures.observation.reference_velocity
        if reference is not None:
            arrays["reference_velocity"] = reference.astype(np.float64)
        circuits = self.iolets.windkessels.state() if self.iolets.windkessels is not None else {}
        state = site_state(self, arrays, self.step, {IOLETS + name: value for name, value in circuits.items()})
        if isinstance(self.populations, MomentLayout):
            rows, keys, total = self._openings
            populations: dict[str, Rows] = {"populations": self.populations.outgoing(self.phase, rows)}
            sites = replace(state.rows[SITES], derived=self.populations.derived)
            state = replace(state, rows={SITES: sites, OPENINGS: RowSet(keys, total, populations)})
        mass = self._walls.mass
        return state if mass is None else replace(state, replicated={WALL_MASS: mass.state()})

    @property
    def keys(self) -> Mapping[str, npt.NDArray[np.int64]]:
        """Return the keys of the state rows that this rank needs."""
        return {SITES: self.owned, OPENINGS: self._openings[1]}

    def set_state(self, state: State) -> None:
        """Continue from `state`; a Windkessel outlet missing from it starts from its initial density.

        Raises:
            CaseError: an array is missing or has another shape.
        """
        rows = state.rows.get(SITES)
        available = rows.arrays if rows is not None else {}
        uses_moments = "moments" in available and (
            "populations" not in available or (self.layout == "moments" and OPENINGS in state.rows)
        )
        shapes: dict[str, tuple[int, ...]] = {}
        if not uses_moments:
            shapes["populations"] = (self.populations.velocity_set.Q,)
        if self._physics.has_rates:
            shapes["relaxation"] = ()
        optional: dict[str, tuple[int, ...]] = {"reference_velocity": (3,), "inside": ()}
        if self.layout == "moments" or uses_moments:
            optional["moments"] = (COEFFICIENTS,)
        shapes |= {name: shape for name, shape in optional.items() if name in available}
        check_row_shapes(rows, shapes, self.items, SITES)
        arrays = {name: np.asarray(available[name][:]) for name in shapes}
        self.restored_inside = arrays["inside"].astype(np.uint8) if "inside" in arrays else None
        self._walls.restore()
        self.phase, self.step = 0, state.step
        if self.iolets.windkessels is not None:
            circuits: dict[str, Attribute] = {
                name.removeprefix(IOLETS): value for name, value in state.attributes.items() if name.startswith(IOLETS)
            }
            self.iolets.windkessels.load_state(circuits)
        if self._walls.mass is not None:
            self._walls.mass.set_state(state.replicated.get(WALL_MASS))
        if uses_moments:
            self._set_moments(arrays["moments"], state.rows.get(OPENINGS))
        else:
            self.populations.set_state(arrays)
        if self._physics.has_rates:
            self._physics.set_even_rates(arrays["relaxation"])
        self.measures.observation.reference_velocity = arrays.get("reference_velocity")

    def _set_moments(self, moments: npt.NDArray[Any], openings: RowSet | None) -> None:
        """Restore the state of moment storage with any layout; CaseError without the populations at openings."""
        own, velocity_set = self._openings[0], self.populations.velocity_set
        check_row_shapes(openings, {"populations": (velocity_set.Q,)} if self._openings[2] else {}, len(own), OPENINGS)
        values = openings.arrays["populations"][:] if openings is not None else np.zeros((0, velocity_set.Q))
        if isinstance(self.populations, MomentLayout):
            self.populations.set_moments(moments, own, values)
            return
        populations = populations_of_moments(self.backend, moments, velocity_set, self.precision.compute)
        populations[own] = values
        self.populations.set_state({"populations": populations})

    def set_force(self, field: npt.NDArray[Any]) -> None:
        """Add a body force density at each site to that of the model, from the next step on; collective.

        `field` (n_owned, 3) is in lattice units, ordered as `owned`. It is not part of the state: set it again after a
        restart.

        Raises:
            CaseError: the shape is wrong, a value is not finite, or bodies are immersed.
        """
        if self._physics.set_force(np.asarray(field)):
            self._rebuild_stages()

    def set_body_force(self, force: tuple[float, float, float]) -> None:
        """Replace the body force density of the model, in lattice units, from the next step on; collective.

        It is not part of the state: set it again after a restart.

        Raises:
            CaseError: a force field has been set.
        """
        self._physics.set_body_force(force)
        self._rebuild_stages()

    def _rebuild_stages(self) -> None:
        """Rebuild the stages after kernels or arguments have changed."""
        self._phases = self._steps.phases()
        self.measures.observation.clear_launches()
        self.discard_graphs()

    def immerse(self, immersion: Immersion) -> None:
        """Couple immersed bodies to the flow from the next step on (theory/coupling); may raise CaseError."""
        self._physics.immerse(immersion)
        self._steps.immersed, self._prepare_immersion = list(immersion.stages), immersion.prepare
        self._contrast = immersion.contrast
        exchanges = (*self._own_exchanges, *immersion.exchanges)
        obsolete = [exchange for exchange in self.exchanges if exchange not in exchanges]
        self.exchanges[:] = exchanges
        self._time_exchanges()
        self._rebuild_stages()
        for exchange in obsolete:
            exchange.close()

    def _time_exchanges(self) -> None:
        """Connect the exchanges to the timers, which record the overlap of messages with computation."""
        for exchange in self.exchanges:
            exchange.overlap_timer = lambda name: self.timers.overlap(name)
