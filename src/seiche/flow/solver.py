# SPDX-License-Identifier: BSD-3-Clause
"""The lattice Boltzmann solver of sparse vessels; `steps.py` has the stages of a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend, open_backend
from seiche.domain.sharing import by_rank_zero, owners
from seiche.domain.sites import SiteSet
from seiche.domain.world import World
from seiche.flow.choice import choose_layout, make_layout, tile_edge
from seiche.flow.immersion import Contrast, Immersion
from seiche.flow.iolet_stages import IoletStages
from seiche.flow.iolets import Iolets
from seiche.flow.layout import Leaving, refuse_misshapen
from seiche.flow.model import FlowModel, Precision
from seiche.flow.moment_layout import COEFFICIENTS
from seiche.flow.observation import Observation
from seiche.flow.physics import Physics, check_model
from seiche.flow.region import Region
from seiche.flow.snapshot import Snapshot, Snapshots, Staging
from seiche.flow.steps import Steps, annotated
from seiche.flow.velocity_set import VELOCITY_SETS
from seiche.flow.walls import WallStages
from seiche.flow.watch import Monitor, Watch, Watcher
from seiche.halo.exchange import HaloExchange
from seiche.machine.in_use import predict_transports
from seiche.observe.stage import Stage
from seiche.observe.timers import StageTimers
from seiche.solver.replay import GRAPH_STEPS, Replay


class Solver:
    """Flow of `model` on `sites`, on one device word, on all ranks of `world`; arguments as in the README's example."""

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
    ) -> None:
        """Partition the sites, allocate the populations and set the initial state.

        Raises:
            CaseError: an impossible model or more ranks than sites.
            BackendUnavailable: the device is not there.
        """
        self.sites, self.model, self.device, self.precision = sites, model, device, precision or Precision()
        self.world = world or World.serial()
        check_model(sites, model, self.precision, self.world.size)
        self.backend: Backend = open_backend(device, self.world.threads(threads), self.world.local_rank)
        lattice, store = VELOCITY_SETS[model.velocity_set], self.precision.storage
        self.layout_name = by_rank_zero(self.world, lambda: choose_layout(sites, layout, store, device, lattice, model))
        edge = tile_edge(self.layout_name)
        owner = owners(sites, self.world, method=partition, weights=weights, block=edge)
        self.region = Region(sites, owner, self.world.rank, lattice)
        self.layout = make_layout(self.layout_name, self.backend, self.world, self.region, self.precision)
        self.time_step = 0
        self._phase = 0
        self._physics = Physics(self.backend, self.layout, model, self.precision.compute)
        self.iolets = Iolets(
            self.backend, self.layout, self.region, model.iolets, self.precision.compute, self.world, transport
        )
        self.halo = HaloExchange(
            self.backend,
            self.world,
            self.layout.plan,
            self.precision.storage,
            transport=transport,  # type: ignore[arg-type]
            predict=predict_transports,
        )
        precisions = (self.precision.compute, self.precision.storage)
        beside = (self.precision.compute, self.layout.boundary_store)
        named = partial(annotated, self.backend)
        self._walls = WallStages(self.backend, self.layout, self.region, model.walls, beside, self.world, named)
        openings = IoletStages(self.backend, self.layout, self.iolets, self._physics, precisions, named)
        self.timers = StageTimers(self.backend.clock())
        parts = (self._physics, precisions, self._walls, openings, self.timers)
        self._steps = Steps(self.backend, self.layout, self.halo, *parts)
        self._observation = Observation(self.backend, self.layout, self.region, self._physics, precisions)
        self._staging = Staging(self._observation)
        self._watcher = Watcher(self.backend, self.world, self._observation, self.iolets)
        self._prepare: Callable[[int], int] | None = None
        self._contrast: Contrast | None = None
        #: Which sites were inside cells, and after how many steps, as a state said.
        self._loaded: tuple[int, npt.NDArray[np.bool_]] | None = None
        self._phases = self._steps.phases()
        if self.layout.plan.peers or self.world.size > 1:
            for phase in range(self.layout.phases):
                self.halo.prepare(self.layout.source(phase), self.layout.halo_mode(phase))
        deep = self.iolets.depths.exchange if self.iolets.depths is not None else None
        #: The messages of a step: of the halo, and of what lies behind openings.
        self._exchanges = [exchange for exchange in (self.halo if self.layout.plan.peers else None, deep) if exchange]
        self._own_exchanges = tuple(self._exchanges)  # without those of what is immersed
        self._time_exchanges()
        self._replay = Replay(self.backend, self._exchanges)
        self.layout.start(model.initial_density, model.initial_velocity)

    @property
    def owned(self) -> npt.NDArray[np.int64]:
        """Return the global indices (into `sites.coords`) of this rank's sites, ascending."""
        return self.region.owned

    @property
    def stages(self) -> list[Stage]:
        """Return the stages of the next step."""
        return self._phases[self._phase]

    @property
    def phases(self) -> list[list[Stage]]:
        """Return the stages of each kind of step; the kinds alternate."""
        return self._phases

    def step(self) -> None:
        """Advance the populations by one time step, hiding the halo behind the interior."""
        if self._prepare is not None:
            self._prepare(1)
        self._walls.restore()
        self.iolets.prepare(self.time_step, 1)
        self._begin()
        self.timers.step(self.stages)
        self._phase = (self._phase + 1) % self.layout.phases
        self.time_step += 1

    def run(self, steps: int) -> None:
        """Advance by `steps` steps; most of them are replays of a captured graph where all work is device work.

        Raises:
            TransportError: a message of another rank did not come.
        """
        self.start(steps)
        self.finish()

    def start(self, steps: int) -> None:
        """Hand the device `steps` steps, which it may still be at when this returns; looks at the state come after."""
        with self.timers.running():
            end = self.time_step + steps
            while self.time_step < end:
                ready = self._prepare(end - self.time_step) if self._prepare is not None else steps
                if self._can_replay(min(end - self.time_step, ready)):
                    self._walls.restore()
                    self.iolets.prepare(self.time_step, GRAPH_STEPS)
                    self.timers.replay(GRAPH_STEPS, lambda: self._replay.launch(self._graph_stages(), self._begin()))
                    self.time_step += GRAPH_STEPS
                else:
                    self.step()

    def _begin(self) -> int:
        """Tell what is immersed how many steps were done; return how many of them since all was as it is at first."""
        if self._contrast is None:
            return 0
        self._contrast.begin(self.time_step)
        return self.time_step % self._contrast.every

    def loaded_inside(self) -> npt.NDArray[np.bool_] | None:
        """Return which owned sites were inside cells in the state that was loaded, if it told and no step was since."""
        return self._loaded[1] if self._loaded is not None and self._loaded[0] == self.time_step else None

    def mark(self) -> Any:
        """Return an event that the device reaches after all it was handed so far."""
        return self.backend.current().record()

    def finish(self, mark: Any = None) -> None:
        """Wait until the device has done all it was handed, or all before `mark`.

        Raises:
            TransportError: a message of another rank did not come.
        """
        with self.timers.running(), self.timers.waiting():
            if mark is None:
                self.backend.synchronize()
            else:
                self.backend.await_event(mark)
            for exchange in self._exchanges:
                exchange.check()

    def _graph_stages(self) -> list[list[Stage]]:
        return [self._phases[k % len(self._phases)] for k in range(GRAPH_STEPS)]

    def _can_replay(self, remaining: int) -> bool:
        circuits = self.iolets.windkessels
        on_device = self.backend.has_graphs and all(exchange.capturable for exchange in self._exchanges)
        on_device = on_device and not (circuits and circuits.needs_host)
        ready = self._phase == 0 and not self.timers.due and self.time_step > 0
        return on_device and ready and remaining >= GRAPH_STEPS

    def reconsider(self) -> None:
        """Choose anew how messages travel where that takes another time than when it was chosen by a machine file.

        Collective, after `finish`. The results do not change.
        """
        if not any(exchange.can_reconsider for exchange in self._exchanges):
            return
        self._replay.clear()  # its graphs hold the messages that may go
        for exchange in self._exchanges:
            exchange.reconsider()

    def _refresh_halo(self) -> None:
        """Bring the halo of the current state up to date (the next step does it again) and let walls send back."""
        if self.layout.plan.peers:
            source, mode = self.layout.source(self._phase), self.layout.halo_mode(self._phase)
            self.halo.start(source, mode)
            self.halo.finish(source, mode)
        self._walls.replace(self._phase)

    def fields(self, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
        """Return fields of the owned sites in lattice units; all ranks must call it together.

        Names: density (n,), velocity (n, 3), stress (n, 6: xx yy zz xy xz yz, deviatoric), shear_rate (n,),
        wall_shear_stress and traction (n, 3; zero off the wall), viscosity (n,).

        Raises:
            KeyError: an unknown name.
        """
        self._refresh_halo()
        return Snapshots(self._staging, names, bounded=True).take(self._phase).fields()

    def snapshots(self, names: Sequence[str], rows: npt.NDArray[np.int64] | None = None) -> Snapshots:
        """Return what `snapshot` takes: the fields `names` of ascending rows of `owned`, None for all of them.

        Raises:
            KeyError: an unknown name.
        """
        return Snapshots(self._staging, names, rows)

    def snapshot(self, wanted: Snapshots) -> Snapshot:
        """Take fields of the present state (collective); they reach the host beside the steps that follow."""
        self._refresh_halo()
        return wanted.take(self._phase)

    def iolet_flow(self) -> npt.NDArray[np.float64]:
        """Return the mass that entered through each iolet in the last step (positive: into the fluid), of all ranks."""
        return self._watcher.take(self._phase, self.time_step, totals=False).flow()

    def wall_rows(self) -> npt.NDArray[np.int64]:
        """Return the rows of `owned` that are wall sites, (w,)."""
        return self._observation.walls[0]

    def wall_shear_stress(self) -> Array:
        """Return the wall shear stress at `wall_rows()` in the device's memory, (3 w,) (collective).

        The next call overwrites it.
        """
        self._refresh_halo()
        return self._observation.wall_shear_stress(self._phase)

    def mean_velocity(self) -> npt.NDArray[np.float64]:
        """Return the mean velocity of all sites of all ranks, (3,), in sites a step (collective)."""
        self._refresh_halo()
        return self.world.allreduce_sum(self._observation.velocity_sum(self._phase)) / len(self.sites)

    def velocity_change(self) -> float:
        """Return |u - u'|/|u|, norms over all sites and ranks, u' of the call before; infinity for the first one."""
        self._refresh_halo()
        parts = self.world.allgather(self._observation.velocity_change(self._phase))
        change, square = (sum(column) for column in zip(*parts, strict=True))
        return float(np.sqrt(change / square)) if square > 0 else float("inf" if change > 0 else 0.0)

    def monitor(self) -> Monitor:
        """Return mass, Mach number and flow over all ranks; the mass is the same to the last bit on any number.

        Raises:
            UnstableError: a population is not finite; on every rank, with the place of the first such site.
        """
        return self.watch().monitor()

    def watch(self, *, totals: bool = True) -> Watch:
        """Look at the present state (collective): `monitor`, or the flow alone, of it beside the steps that follow."""
        if totals:
            self._refresh_halo()
        return self._watcher.take(self._phase, self.time_step, totals=totals)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what a restart needs, the same for every layout, number of ranks and device.

        `populations` (n_owned, Q): those that leave, shifted by the weight; `relaxation` (n_owned,): omega+ of the
        last step, for a rheology that needs it; `reference_velocity` (n_owned, 3): what `velocity_change` compares
        with, once it was called; `inside` (n_owned,): which sites were inside cells when that was found last, if it is
        not found after this step; `moments` (n_owned, 10), of the layout of this name, which goes on from these to the
        last bit and from populations alone to round-off.
        """
        return {name: rows[:] for name, rows in self.state_rows().items()}

    def state_rows(self) -> dict[str, Leaving | npt.NDArray[np.float64]]:
        """Return `state()` as of now whose rows are put together when they are asked for, in any thread."""
        self._walls.restore()
        state: dict[str, Leaving | npt.NDArray[np.float64]] = {**self.layout.state(self._phase)}
        if self._physics.has_rates:
            state["relaxation"] = self._physics.even_rates().astype(np.float64)
        if self._contrast is not None and self.time_step % self._contrast.every:
            state["inside"] = self._contrast.inside().astype(np.float64)
        reference = self._observation.reference_velocity
        if reference is not None:
            state["reference_velocity"] = reference.astype(np.float64)
        return state

    def iolet_state(self) -> dict[str, float | int]:
        """Return what a restart needs beside `state()`: numbers of the Windkessel outlets, the same on every rank."""
        return self.iolets.windkessels.state() if self.iolets.windkessels is not None else {}

    def load_state(
        self, state: dict[str, npt.NDArray[Any]], time_step: int, iolet_state: Mapping[str, Any] | None = None
    ) -> None:
        """Set the state that `state()` returned, for the rows of `owned`, and what `iolet_state()` returned.

        A Windkessel outlet that is not in `iolet_state` starts from its initial density.

        Raises:
            CaseError: an array is missing or has another shape.
        """
        needed: dict[str, tuple[int, ...]] = {"populations": (self.layout.velocity_set.Q,)}
        if self._physics.has_rates:
            needed["relaxation"] = ()
        if "reference_velocity" in state:
            needed["reference_velocity"] = (3,)
        if self.layout_name == "moments" and "moments" in state:
            needed["moments"] = (COEFFICIENTS,)
        if "inside" in state:
            needed["inside"] = ()
        refuse_misshapen(state, len(self.owned), needed)
        self._loaded = (time_step, state["inside"].astype(bool)) if "inside" in state else None
        self._walls.restore()
        self._phase, self.time_step = 0, time_step
        if self.iolets.windkessels is not None:
            self.iolets.windkessels.load_state(dict(iolet_state or {}))
        self.layout.set_state(state)
        if self._physics.has_rates:
            self._physics.set_even_rates(state["relaxation"])
        self._observation.reference_velocity = state.get("reference_velocity")

    def set_force(self, field: npt.NDArray[Any]) -> None:
        """Give every site a body force density beside the model's from the next step on, (n_owned, 3), rows as `owned`.

        In lattice units; all ranks must call it. It is not part of the state: whoever restarts a run sets it again.

        Raises:
            CaseError: another shape, or a number that is not finite.
        """
        if self._physics.set_force(np.asarray(field)):
            self._rebuild_stages()

    def set_body_force(self, force: tuple[float, float, float]) -> None:
        """Take another body force density than the model's from the next step on, in lattice units; on all ranks.

        It is not part of the state: whoever restarts a run sets it again.

        Raises:
            CaseError: there is a field of forces.
        """
        self._physics.set_body_force(force)
        self._rebuild_stages()

    def _rebuild_stages(self) -> None:
        """Take over other kernels or arguments."""
        self._phases = self._steps.phases()
        self._observation.forget_launches()
        self._replay.clear()

    def forget_graphs(self) -> None:
        """Give back captured steps, before messages in them are closed."""
        self._replay.clear()

    def immerse(self, immersion: Immersion) -> None:
        """Take from the next step on forces of sites from what is immersed (theory/coupling); may raise CaseError."""
        self._physics.immerse(immersion)
        self._steps.immersed, self._prepare = list(immersion.stages), immersion.prepare
        self._contrast = immersion.contrast
        kept = (*self._own_exchanges, *immersion.exchanges)
        gone = [exchange for exchange in self._exchanges if exchange not in kept]
        self._exchanges[:] = kept
        self._time_exchanges()
        self._rebuild_stages()
        for exchange in gone:
            exchange.close()

    def _time_exchanges(self) -> None:
        """Let the timers see what goes on in the streams of the messages."""
        for exchange in self._exchanges:
            exchange.beside = lambda name: self.timers.beside(name)

    def close(self) -> None:
        """Give back what other ranks or the device hold for this solver."""
        self._replay.clear()  # first: a communicator waits for the graphs that use it
        for exchange in (self.halo, *self._exchanges):
            exchange.close()
