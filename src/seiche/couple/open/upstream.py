# SPDX-License-Identifier: BSD-3-Clause
"""The periodic tube before an inlet: blood that flows there in a circle, from which cells enter the vessel.

It has the cross-section of the inlet, the fluid and the cells of the case, and is driven by a force that follows what
flows through the inlet. A cell that passes its seam enters the vessel as it is, deformed and moving, and goes on round
the tube, too. The tube is advanced by as many steps as its blood needs to come as far as that which enters the vessel.
So its hematocrit never changes, and the vessel is owed the cells that the blood of the tube carries through a section
(theory/coupling, eq. 17).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.cells.packing import pack
from seiche.cells.prism import Prism
from seiche.cells.space import FluidSpace, sparse_points, wall_points
from seiche.couple.open.vessel import OpenVessel
from seiche.couple.suspension import CellsSetup, Population, couple, packed, populations_of
from seiche.domain.sharing import by_rank_zero
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.flow.model import VelocityIolet, Walls
from seiche.flow.solver import FlowSolver
from seiche.flow.state import SITES, site_state

Floats = npt.NDArray[np.float64]

#: Velocity (sites a step) when nothing says it.
_UNKNOWN = 0.02
#: What blood resists more than its fluid, about, before that is known.
_THICKER = 2.5
#: The blood never stops, but at least goes on at this part of the greatest speed so far.
_LEAST = 0.05
#: Time in which a profile develops, in squares of the radius over the viscosity, and its most steps.
_DEVELOPS, _MOST = 0.3, 2000
#: The force is held for about this part of that time, for multiples of these steps, and farther where the mean speed
#: would come as near as this to the wanted one.
_HELD, _STEPS, _NEAR = 0.5, 32, 0.05
#: It is held for so many steps at least, where the tube goes few at a time until it is as slow as the vessel.
_LEAST_STEPS = 8
#: Steps at most in each of the vessel.
_LONGEST = 4.0

#: By how much copies of cells are turned about the axis of a tube from one try to the next: parts that never repeat.
GOLDEN_TURN = np.pi * (1 + 5**0.5)


@dataclass
class Arrival:
    """A cell that has passed the seam: its type, number in the tube, vertices and velocities among the sites.

    `beyond` says how far its last vertex is behind the seam, `waits` whether it has come there by itself, `rounds` how
    many lengths of the tube it had gone when it did, in sites, and `inlet` which tube; None for a copy of a cell that
    is elsewhere. It is `moved` if its place is not where the tube has it.
    """

    kind: int
    number: int
    vertices: Floats
    velocity: Floats
    beyond: float
    waits: bool = True
    rounds: float = 0.0
    inlet: str | None = None
    moved: bool = False

    @property
    def group(self) -> str | None:
        """Return the tube whose cells are about it as they are there, None if it is put elsewhere."""
        return None if self.moved else self.inlet


class Upstream:
    """The tube before one inlet."""

    def __init__(self, vessel: OpenVessel, cells: CellsSetup, name: str, prism: Prism, world: World) -> None:
        """Pack the tube `prism` before the inlet `name`; every rank computes all of it.

        Raises:
            CaseError: the cells cannot be packed.
        """
        self._vessel, self._cells, self.name, self.prism = vessel, cells, name, prism
        self.sites = prism.sites()
        self._origin = np.asarray(self.sites.origin)
        self.speed = self._most = self._expected_speed()
        viscosity = vessel.viscosity
        self._force = float(8 * viscosity * _THICKER * self.speed * np.pi / prism.area)
        model = replace(
            vessel.model,
            iolets=(),
            body_force=(self._force, 0.0, 0.0),
            initial_velocity=(self.speed, 0.0, 0.0),
            initial_density=1.0,
            walls=Walls(vessel.model.walls.kind),
        )
        alone = World(local_rank=world.local_rank, local_size=world.local_size)
        self.solver = FlowSolver(
            self.sites, model, device=vessel.device, precision=vessel.precision, threads=vessel.threads, world=alone
        )
        space, wanted, seed = FluidSpace(self.sites), vessel.hematocrit, vessel.seed
        # Processors of different make may round otherwise, and what is packed by many small pushes then differs.
        packing = by_rank_zero(
            world, lambda: pack(space, cells.surfaces, wanted, shares=cells.shares, gap=cells.gap, seed=seed)
        )
        self.hematocrit = packing.hematocrit
        self._wall = sparse_points(wall_points(self.sites)[0])
        self.blood = couple(cells, self.solver, packed(replace(cells, packing=packing)), self._wall)
        self._develops = min(max(int(_DEVELOPS * prism.area / np.pi / viscosity), 2), _MOST)
        self._held = _STEPS * max(round(_HELD * self._develops / _STEPS), 1)
        #: For how many steps at most the present force holds.
        self._hold = self._held
        self._owed = 0.0
        #: The cells, once they have been asked for since they moved.
        self._now: list[Population] | None = None
        self._rounds = [np.zeros(block.cells, np.int64) for block in self.blood.cells.blocks]

    def _expected_speed(self) -> float:
        """Return the mean velocity at the inlet, in sites a step, as far as the case says it before the run."""
        names = [plane.name for plane in self._vessel.sites.iolets]
        iolet = self._vessel.model.iolets[names.index(self.name)]
        if isinstance(iolet, VelocityIolet) and iolet.mean > 0 and iolet.table is None and iolet.profile is None:
            return float(iolet.mean)
        return _UNKNOWN if self._vessel.peak is None else 0.5 * self._vessel.peak

    def develop(self) -> None:
        """Let the flow develop from the start, at the speed that is expected at the inlet."""
        wanted = self.speed
        for first in range(0, self._develops, self._held):
            self._run(min(self._held, self._develops - first), wanted, self._held)
        self._rounds = [self._rounds_of(population) for population in self.populations()]

    def advance(self, distance: float, steps: float) -> None:
        """Advance until the blood has come `distance` sites farther, as that of the vessel did in `steps` steps.

        Nothing for blood that flows back.
        """
        self._owed += distance
        self._most = max(self._most, distance / steps)
        wanted, left = max(distance / steps, _LEAST * self._most), int(_LONGEST * steps)
        hold = int(min(max(self._own_steps(wanted), _LEAST_STEPS), self._held))
        few = 1  # fewer are left to the next time
        while (own := min(self._own_steps(wanted), self._hold, left)) >= few:
            self._owed -= self._run(own, wanted, hold)
            left, few = left - own, _LEAST_STEPS

    def _own_steps(self, wanted: float) -> int:
        """Return the steps in which the blood comes as far as it should, on the way to the wanted speed."""
        return int(self._owed / max(0.5 * (self.speed + wanted), 0.5 * wanted))

    def _run(self, steps: int, wanted: float, hold: int) -> float:
        """Advance some steps, at most as many as the force is to hold; return how many sites the blood went.

        Then the force is changed such that the mean speed is the wanted one after it was held for `hold` steps: what
        did not accelerate the blood is what it resists, and will resist for a while.
        """
        self._now, before, self._hold = None, self.speed, hold
        self.blood.advance(steps)
        self.speed = float(self.solver.measures.mean_velocity()[0])
        force = self._force - (self.speed - before) / steps + (wanted - self.speed) / hold
        if abs(force - self._force) * hold > _NEAR * wanted:
            self._force = force
            self.solver.set_body_force((force, 0.0, 0.0))
        return 0.5 * (before + self.speed) * steps

    def populations(self) -> list[Population]:
        """Return the cells of the tube, which are not to be changed."""
        if self._now is None:
            names = [np.arange(block.cells) for block in self.blood.cells.blocks]
            self._now = populations_of(self.blood, names)
        return self._now

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
                found.append(self._arrived(population, kind, number, shift, rounds))
        return sorted(found, key=lambda arrival: -arrival.beyond)

    def _arrived(self, population: Population, kind: int, number: int, shift: float, rounds: float) -> Arrival:
        local = population.vertices[number] + self._origin
        beyond = float(local[:, 0].min() - rounds)
        local[:, 0] += shift - rounds
        moving = population.velocity[number] @ self.prism.frame
        return Arrival(kind, number, self.prism.world(local), moving, beyond, rounds=rounds, inlet=self.name)

    def twins(self, entered: Sequence[tuple[int, int, float]], shift: float) -> list[Arrival]:
        """Return where cells would be now, had they gone on as in the tube since they entered with so many rounds.

        `entered` are their types, numbers and rounds, `shift` that of `arrivals`.
        """
        populations = self.populations()
        return [self._arrived(populations[kind], kind, number, shift, rounds) for kind, number, rounds in entered]

    def beyond(self, shift: float, depth: float) -> list[Arrival]:
        """Return the cells that have come less than `depth` behind the seam since they passed it, the nearest first."""
        found = []
        for kind, population in enumerate(self.populations()):
            length, last = self.prism.length, self._last(population)
            rounds = np.floor(last / length) * length
            for number in np.flatnonzero(last - rounds < depth).tolist():
                found.append(self._arrived(population, kind, number, shift, float(rounds[number])))
        return sorted(found, key=lambda arrival: arrival.beyond)

    def others(self, shift: float, angle: float) -> list[Arrival]:
        """Return copies of all cells, each with its last vertex at the seam, those that are the farthest first.

        They are turned about the axis of the tube by `angle`.
        """
        turned = np.eye(3)
        turned[1:, 1:] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        found = []
        for kind, population in enumerate(self.populations()):
            last = self._last(population)
            for number in np.argsort(-(last % self.prism.length), kind="stable").tolist():
                local = population.vertices[number] + self._origin
                local[:, 0] += shift - last[number]
                moving = population.velocity[number] @ turned.T @ self.prism.frame
                place = self.prism.world(local @ turned.T)
                found.append(Arrival(kind, number, place, moving, 0.0, waits=False))
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
        arrays = self.solver.state().rows[SITES].arrays
        state = {name: np.asarray(rows[:], np.float64) for name, rows in arrays.items()}
        cells = {
            "place": np.concatenate([each.vertices.reshape(-1, 3) for each in self.populations()]).T,
            "velocity": np.concatenate([each.velocity.reshape(-1, 3) for each in self.populations()]).T,
        }
        note = {
            "step": self.solver.step,
            "owed": self._owed,
            "speed": [self.speed, self._most, self._force],
            "hold": self._hold,
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
        sites = {shape[0] for shape in note["flow"].values()}
        counts = [len(rounds) for rounds in self._rounds]
        if sites != {len(self.sites)} or [len(rounds) for rounds in note["rounds"]] != counts:
            raise CaseError(f"--restart: the checkpoint has another reservoir than {self._cells.label}")
        self.solver.set_state(site_state(self.solver, taken["flow"], int(note["step"])))
        self.blood.move(
            *(
                [taken["cells"][name][:, b.slice].T.reshape(b.cells, b.vertices, 3) for b in self.blood.cells.blocks]
                for name in ("place", "velocity")
            )
        )
        self._now = None
        self._owed = float(note["owed"])
        if "speed" in note:
            self.speed, self._most, self._force = map(float, note["speed"])
            self.solver.set_body_force((self._force, 0.0, 0.0))
            self._hold = int(note.get("hold", self._held))
        self._rounds = [np.array(rounds, np.int64) for rounds in note["rounds"]]
        return at
