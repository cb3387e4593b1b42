# SPDX-License-Identifier: BSD-3-Clause
"""The periodic tube before an inlet: blood that flows there in a circle, from which cells enter the vessel.

It has the cross-section of the inlet, the fluid and the cells of the case, and is driven by a force. A cell that passes
its seam enters the vessel as it is, deformed and moving, and goes on round the tube, too. The tube is advanced by as
many steps as its blood needs to come as far as the blood that enters the vessel. So its hematocrit never changes, and
the vessel is owed the cells that the blood of the tube carries through a section (theory/coupling, eq. 17).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.case.cells import CellsSetup
from seiche.case.coupled import Population, couple, packed, populations_of
from seiche.case.setup import Setup
from seiche.cells.packing import pack
from seiche.cells.prism import Prism
from seiche.cells.space import FluidSpace, wall_points
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.flow.model import Walls

if TYPE_CHECKING:
    from seiche.flow import Solver

Floats = npt.NDArray[np.float64]

#: Velocity (sites a step) when nothing says it.
_UNKNOWN = 0.02
#: What blood resists more than its fluid, about; the number of steps makes up for the rest.
_THICKER = 2.5
#: Time in which a profile develops, in squares of the radius over the viscosity, and its most steps.
_DEVELOPS, _MOST = 0.3, 2000


@dataclass
class Arrival:
    """A cell that has passed the seam: its type, number in the tube, vertices and velocities among the sites.

    `beyond` says how far its last vertex is behind the seam, `waits` whether it has come there by itself.
    """

    kind: int
    number: int
    vertices: Floats
    velocity: Floats
    beyond: float
    waits: bool = True


class Upstream:
    """The tube before one inlet."""

    def __init__(
        self, setup: Setup, cells: CellsSetup, prism: Prism, hematocrit: float, seed: int, world: World
    ) -> None:
        """Pack the tube and let its flow develop; every rank computes all of it.

        Raises:
            CaseError: the cells cannot be packed.
        """
        from seiche.flow import Solver

        self._setup, self._cells, self.prism = setup, cells, prism
        self.sites = prism.sites()
        self._origin = np.asarray(self.sites.origin)
        self.speed = self._wanted_speed()
        viscosity = (setup.invariants.tau[0] - 0.5) / 3
        force = 8 * viscosity * _THICKER * self.speed * np.pi / prism.area
        model = replace(
            setup.model,
            iolets=(),
            body_force=(float(force), 0.0, 0.0),
            initial_velocity=(self.speed, 0.0, 0.0),
            initial_density=1.0,
            walls=Walls(setup.model.walls.kind),
        )
        alone = World(local_rank=world.local_rank, local_size=world.local_size)
        run = setup.case.run
        self.solver: Solver = Solver(
            self.sites, model, device=run.device, precision=setup.precision, threads=run.threads, world=alone
        )
        shares = [table.share for table in setup.case.cells]
        packing = pack(FluidSpace(self.sites), cells.surfaces, hematocrit, shares=shares, gap=cells.gap, seed=seed)
        self.hematocrit = packing.hematocrit
        self._wall = wall_points(self.sites)[0]
        self.blood = couple(setup, self.solver, packed(replace(cells, packing=packing)), self._wall)
        self._develops = min(int(_DEVELOPS * prism.area / np.pi / viscosity), _MOST)
        self._owed = 0.0
        self._rounds = [np.zeros(block.cells, np.int64) for block in self.blood.cells.blocks]

    def _wanted_speed(self) -> float:
        scale = self._setup.invariants.velocity_scale
        return 0.5 * self._setup.units.to_lattice("velocity", scale) if scale else _UNKNOWN

    def develop(self) -> None:
        """Let the flow develop from the start."""
        self.blood.run(self._develops)
        self._rounds = [self._rounds_of(population) for population in self.populations()]

    def advance(self, distance: float) -> None:
        """Advance until the blood has come so many sites farther; nothing for blood that flows back."""
        self._owed += distance
        self.speed = float(self.solver.fields(("velocity",))["velocity"][:, 0].mean())
        steps = int(self._owed / self.speed) if self.speed > 0 else 0
        if steps > 0:
            self.blood.run(steps)
            self._owed -= steps * self.speed

    def populations(self) -> list[Population]:
        """Return the cells of the tube."""
        names = [np.arange(block.cells) for block in self.blood.cells.blocks]
        return populations_of(self.blood, names)

    def _last(self, population: Population) -> Floats:
        """Return where the last vertex of each cell is along the tube."""
        return np.asarray((population.vertices[..., 0] + self._origin[0]).min(axis=1))

    def _rounds_of(self, population: Population) -> npt.NDArray[np.int64]:
        if not len(population.vertices):
            return np.zeros(0, np.int64)
        return np.floor(self._last(population) / self.prism.length).astype(np.int64)

    def discharge(self) -> float:
        """Return the hematocrit of what flows now through a section (theory/coupling, eq. 16)."""
        if not self.speed > 0:
            return self.hematocrit
        volumes, populations = self._cells.volumes(), self.populations()
        moving = sum(v * p.velocity[..., 0].mean(axis=1).sum() for v, p in zip(volumes, populations, strict=True))
        return float(moving) / (len(self.sites) * self.speed)

    def arrivals(self, shift: float) -> list[Arrival]:
        """Return the cells that wait to enter, the farthest first; `shift` is how far behind the inlet the seam is."""
        found = []
        for kind, population in enumerate(self.populations()):
            last = self._last(population)
            for number in np.flatnonzero(self._rounds_of(population) > self._rounds[kind]).tolist():
                rounds = float(np.floor(last[number] / self.prism.length)) * self.prism.length
                local = population.vertices[number] + self._origin
                local[:, 0] += shift - rounds
                moving = population.velocity[number] @ self.prism.frame
                found.append(Arrival(kind, number, self.prism.world(local), moving, float(last[number] - rounds)))
        return sorted(found, key=lambda arrival: -arrival.beyond)

    def others(self, shift: float) -> list[Arrival]:
        """Return copies of all cells, each with its last vertex at the seam, those that are the farthest first."""
        found = []
        for kind, population in enumerate(self.populations()):
            last = self._last(population)
            for number in np.argsort(-(last % self.prism.length), kind="stable").tolist():
                local = population.vertices[number] + self._origin
                local[:, 0] += shift - last[number]
                moving = population.velocity[number] @ self.prism.frame
                found.append(Arrival(kind, number, self.prism.world(local), moving, 0.0, waits=False))
        return found

    def waiting(self) -> list[int]:
        """Return how many cells of each type have passed the seam and not entered."""
        found = zip(self.populations(), self._rounds, strict=True)
        return [int(np.maximum(self._rounds_of(population) - rounds, 0).sum()) for population, rounds in found]

    def done(self, arrival: Arrival) -> None:
        """Note that a cell that waited has entered, or will in another place."""
        if arrival.waits:
            self._rounds[arrival.kind][arrival.number] += 1

    def state(self) -> tuple[list[Floats], dict[str, Any]]:
        """Return the numbers that a restart needs, and a note."""
        state = {name: np.asarray(rows, np.float64) for name, rows in self.solver.state().items()}
        cells = {name: np.asarray(rows, np.float64) for name, rows in self.blood.state().items()}
        note = {
            "step": self.solver.time_step,
            "owed": self._owed,
            "flow": {name: list(rows.shape) for name, rows in state.items()},
            "cells": {name: list(rows.shape) for name, rows in cells.items()},
            "rounds": [rounds.tolist() for rounds in self._rounds],
        }
        return [rows.ravel() for rows in (*state.values(), *cells.values())], note

    def load_state(self, numbers: Floats, note: dict[str, Any]) -> int:
        """Set what `state()` returned, from the beginning of `numbers`; return how many were used.

        Raises:
            CaseError: the state is that of another tube.
        """
        at = 0
        taken: dict[str, dict[str, npt.NDArray[Any]]] = {"flow": {}, "cells": {}}
        for part, arrays in taken.items():
            for name, shape in note[part].items():
                size = int(np.prod(shape))
                arrays[name] = numbers[at : at + size].reshape(shape)
                at += size
        if [len(rounds) for rounds in note["rounds"]] != [len(rounds) for rounds in self._rounds]:
            raise CaseError(f"--restart: the checkpoint has another reservoir than {self._setup.source}")
        real = self.blood.boundary.velocity.dtype
        taken["cells"]["velocity"] = taken["cells"]["velocity"].astype(real)
        self.solver.load_state(taken["flow"], int(note["step"]))
        self.blood.load_state(taken["cells"])
        self._owed = float(note["owed"])
        self._rounds = [np.array(rounds, np.int64) for rounds in note["rounds"]]
        return at
